"""Mechanism, the base class of all statements on why labels are missing."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior


class Mechanism(ABC):
    """Why labels are missing: assumptions that lead to the probabilities of the missing labels.

    A mechanism of your own defines `posterior` and `describe`, and is a frozen dataclass if it has settings.
    """

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
            f"missingness: {type(self).__name__} is for two classes, and the scores have {data.n_classes}. Pass "
            "'by_score', 'by_label', or probabilities of the missing labels as dm.missing.Fixed(Q)."
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


# Why labels are missing: a word, a mechanism, or None if it is not known.
MissingnessLike: TypeAlias = str | Mechanism | None


def missing_rows(data: EvaluationSet, posterior: Posterior) -> FloatArray:
    """How many missing rows each column of the nodes' probabilities stands for; rows of weight zero are left out."""
    if posterior.bucket is None:
        return data.missing_counts.astype(np.float64)
    rows = np.bincount(posterior.bucket, weights=data.missing_counts, minlength=posterior.probability.shape[1])
    return np.asarray(rows, dtype=np.float64)  # without missing cells numpy answers in whole numbers


class Estimate(NamedTuple):
    """A mean with its 90% interval."""

    mean: float
    low: float
    high: float


def percent_text(estimate: Estimate) -> str:
    """A share and its interval in percent."""
    return f"{estimate.mean:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def missing_prevalence(data: EvaluationSet, posterior: Posterior) -> Estimate:
    """How many of the missing rows are positive: mean and 90% interval of their share.

    Each node contributes a Gaussian with the mean and variance of the share given its probabilities.
    """
    count = missing_rows(data, posterior)
    rows = count.sum()
    mean = posterior.probability @ count / rows
    sd = np.sqrt((posterior.probability * (1.0 - posterior.probability)) @ count) / rows
    low, high = (normal_mixture_quantile(q, posterior.weight, mean, sd) for q in (0.05, 0.95))
    return Estimate(float(posterior.weight @ mean), max(0.0, low), min(1.0, high))


def of_weight(data: EvaluationSet) -> str:
    """What tells the missing rows that probabilities are about from those of weight zero; empty if all are."""
    return " of a weight above 0" if data.missing_counts.sum() < data.n_missing else ""


def prevalence_in_words(data: EvaluationSet, posterior: Posterior) -> str:
    """How many of the missing rows are positive, beside the labeled ones."""
    mean, low, high = missing_prevalence(data, posterior)
    text = f"About {mean:.1%} of the missing rows{of_weight(data)} are positive (90%: {low:.1%} to {high:.1%})"
    counts = data.counts()
    if counts["labeled"]:
        text += f"; among the labeled ones it is {counts['positive'] / counts['labeled']:.1%}"
    return f"{text}."
