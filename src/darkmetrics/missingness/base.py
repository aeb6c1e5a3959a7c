"""Mechanism, the base class of all statements on why labels are missing."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.argument_types import LabelValue
from darkmetrics.constraints import check_fields
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.reference import Reference, reference_set
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.wording import setting


class Mechanism(ABC):
    """Why labels are missing: assumptions that lead to the probabilities of the missing labels.

    A mechanism of your own defines `posterior` and `describe`, and is a frozen dataclass if it has settings.
    """

    def __post_init__(self) -> None:
        check_fields(self)

    # Fields that hold one value per row: arrays, or names of columns of `data`. True: those of an EvaluationSet.
    row_fields: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def posterior(self, data: EvaluationSet) -> Posterior:
        """Return draws of the probability that a missing row of each of the set's `missing_cells` is positive."""

    @abstractmethod
    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        """Return a sentence on what is assumed about the missing labels; `posterior` is that of the same set."""

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        """Return draws of the probabilities of each class for a missing row of each of the set's `missing_cells`."""
        raise InputError(
            "missingness",
            f"{type(self).__name__} is for two classes, and the scores have {data.n_classes}",
            "",
            f"Pass {setting('missingness', 'by_score', 'by_label')}, or probabilities of the missing labels as "
            "dm.missing.Fixed(Q).",
        )

    def row_values(self) -> dict[str, Any]:
        """Return the values per row, by field, that the mechanism was made with."""
        fields = {name: getattr(self, name) for name in self.row_fields}
        return {name: value for name, value in fields.items() if value is not None and value is not True}

    @property
    def features(self) -> Any:
        """Features of the rows, from which `learn_rows` learns; None if counts of rows are enough."""
        return None

    def learn_rows(self, positive: BoolArray, missing: BoolArray, data: Any) -> dict[str, Any]:
        """Return values per row that the mechanism computes from the labels; `data` is the table of the rows."""
        return {}

    def without_rows(self) -> Self:
        """Return the mechanism for rows that an EvaluationSet has counted: values per row become True."""
        values = self.row_values()
        mechanism: Any = self
        return replace(mechanism, **dict.fromkeys(values, True)) if values else self

    def with_reference_set(self, pos_label: LabelValue, missing_label: LabelValue = None) -> Self:
        """Return the mechanism with its reference rows as an EvaluationSet."""
        reference = getattr(self, "reference", None)
        if not (isinstance(reference, Reference) and hasattr(self, "__dataclass_fields__")):
            return self
        mechanism: Any = self
        changed: Self = replace(mechanism, reference=reference_set(reference, pos_label, missing_label))
        return changed


# Why labels are missing: a word, a mechanism, or None if it is not known.
MissingnessLike: TypeAlias = str | Mechanism | None


def missing_rows(data: EvaluationSet, posterior: Posterior) -> FloatArray:
    """Return the number of missing rows of each column of a posterior; rows of weight zero do not count."""
    if posterior.column is None:
        return data.missing_counts.astype(np.float64)
    rows = np.bincount(posterior.column, weights=data.missing_counts, minlength=posterior.probability.shape[1])
    return np.asarray(rows, dtype=np.float64)  # without missing cells, bincount returns integers


class Estimate(NamedTuple):
    """A mean with its 90% interval."""

    mean: float
    low: float
    high: float


def percent_text(estimate: Estimate) -> str:
    """Return a fraction and its interval in percent."""
    return f"{estimate.mean:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def estimate_count(probability: FloatArray, rows: FloatArray, weight: FloatArray) -> Estimate:
    """Return the number of rows with an outcome that has these probabilities (n_draws x n_columns), with its interval.

    Each draw contributes a Gaussian with the mean and variance of the number given its probabilities.
    """
    mean, sd = probability @ rows, np.sqrt(np.maximum(probability * (1.0 - probability), 0.0) @ rows)
    low, high = (normal_mixture_quantile(q, weight, mean, sd) for q in (0.05, 0.95))
    return Estimate(float(weight @ mean), max(0.0, low), min(float(rows.sum()), high))


def missing_prevalence(data: EvaluationSet, posterior: Posterior) -> Estimate:
    """Return the prevalence of the missing rows, with its 90% interval."""
    rows = missing_rows(data, posterior)
    count = estimate_count(posterior.probability, rows, posterior.weight)
    return Estimate(*(value / float(rows.sum()) for value in count))


def of_weight(data: EvaluationSet) -> str:
    """Return how to tell missing rows from those of weight zero; empty if there are none of these."""
    return " of a weight above 0" if data.missing_counts.sum() < data.n_missing else ""


def describe_prevalence(data: EvaluationSet, posterior: Posterior) -> str:
    """Return a sentence on the prevalence of the missing rows, compared with the labeled rows."""
    mean, low, high = missing_prevalence(data, posterior)
    text = f"About {mean:.1%} of the missing rows{of_weight(data)} are positive (90%: {low:.1%} to {high:.1%})"
    counts = data.counts()
    if counts["labeled"]:
        text += f"; among the labeled ones it is {counts['positive'] / counts['labeled']:.1%}"
    return f"{text}."
