"""What every label model is: a record with `nodes`, and a sentence on what it assumes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.argument_types import ArrayLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import reference_from
from darkmetrics.posterior import Posterior


class LabelModel(ABC):
    """A way to find the probabilities of the missing labels."""

    @abstractmethod
    def nodes(self, data: EvaluationSet) -> Posterior:
        """Probabilities that a missing row of each of the set's `missing_cells` is positive."""

    @abstractmethod
    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        """What is assumed about the missing labels, in one sentence; `nodes` are those of the same set."""


# Where probabilities come from: a word, a model, one probability for all rows, or one per row or missing row.
LabelModelLike: TypeAlias = str | LabelModel | float | ArrayLike | None


_Model = TypeVar("_Model", bound=type[LabelModel])


def takes_calibration(model: _Model) -> _Model:
    """The class, which may be told `calibration=` for `reference=`: the older word, with a warning."""
    changed: Any = model
    made: Callable[..., None] = changed.__init__

    @wraps(made)
    def told(self: LabelModel, *given: Any, calibration: Any = None, **named: Any) -> None:
        if calibration is not None:
            named["reference"] = reference_from(named.get("reference"), calibration)
        made(self, *given, **named)

    changed.__init__ = told
    return model


def missing_rows(data: EvaluationSet, nodes: Posterior) -> FloatArray:
    """How many missing rows each column of the nodes' probabilities stands for; rows of weight zero are left out."""
    if nodes.bucket is None:
        return data.missing_counts.astype(np.float64)
    rows = np.bincount(nodes.bucket, weights=data.missing_counts, minlength=nodes.probability.shape[1])
    return np.asarray(rows, dtype=np.float64)  # without missing cells numpy answers in whole numbers


class Estimate(NamedTuple):
    """A mean with its 90% interval."""

    mean: float
    low: float
    high: float


def percent_text(estimate: Estimate) -> str:
    """A share and its interval in percent."""
    return f"{estimate.mean:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def missing_prevalence(data: EvaluationSet, nodes: Posterior) -> Estimate:
    """How many of the missing rows are positive: mean and 90% interval of their share.

    Each node contributes a Gaussian with the mean and variance of the share given its probabilities.
    """
    count = missing_rows(data, nodes)
    rows = count.sum()
    mean = nodes.probability @ count / rows
    sd = np.sqrt((nodes.probability * (1.0 - nodes.probability)) @ count) / rows
    low, high = (normal_mixture_quantile(q, nodes.weight, mean, sd) for q in (0.05, 0.95))
    return Estimate(float(nodes.weight @ mean), max(0.0, low), min(1.0, high))


def of_weight(data: EvaluationSet) -> str:
    """What tells the missing rows that probabilities are about from those of weight zero; empty if all are."""
    return " of a weight above 0" if data.missing_counts.sum() < data.n_missing else ""


def prevalence_in_words(data: EvaluationSet, nodes: Posterior) -> str:
    """How many of the missing rows are positive, beside the labelled ones."""
    mean, low, high = missing_prevalence(data, nodes)
    text = f"About {mean:.1%} of the missing rows{of_weight(data)} are positive (90%: {low:.1%} to {high:.1%})"
    counts = data.counts()
    if counts["labelled"]:
        text += f"; among the labelled ones it is {counts['positive'] / counts['labelled']:.1%}"
    return f"{text}."
