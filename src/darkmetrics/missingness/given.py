"""Probabilities that no label teaches: given one per row, one half, or one and the same for all."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import LabelModel
from darkmetrics.posterior import Posterior


@dataclass(frozen=True)
class Given(LabelModel):
    """The probabilities given with the evaluation set (`probability=`), taken as known.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None], [0.9, 0.4, 0.7], probability=[0.8])
    >>> round(dm.evaluate(data, label_model="given", metrics="precision")["precision"].mean(), 9)
    0.9
    """

    def nodes(self, data: EvaluationSet) -> Posterior:
        if data.cells.probability is None:
            raise InputError("label_model: 'given' needs an EvaluationSet built with probability=.")
        chance = data.cells.probability[data.missing_cells]
        without = int(data.missing_counts[np.isnan(chance)].sum())
        if without:
            raise InputError(
                f"probability: {without:,} of {data.n_missing:,} rows without a label have none. "
                "Give one for every row when building the set."
            )
        return Posterior.single(chance)

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        if not nodes.independent:
            return "Assumed: missing labels have the probabilities given, but for what rows of their group tell."
        return "Assumed: missing labels are independent, with the probabilities given."


@dataclass(frozen=True)
class Half(LabelModel):
    """Nothing is known about the missing labels: each is positive with chance 1/2.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model="half", metrics="accuracy")["accuracy"].mean()
    0.8333333333333333
    """

    def nodes(self, data: EvaluationSet) -> Posterior:
        return Posterior.single(np.full(data.missing_cells.size, 0.5))

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return "Assumed: every missing label is positive with chance 1/2."


@dataclass(frozen=True)
class Prevalence(LabelModel):
    """Every missing label is positive with one and the same chance: N+/N of the labelled rows, or the value given.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> rare = dm.label_models.Prevalence(0.1)
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=rare, metrics="precision")["precision"].mean()
    0.55
    """

    prevalence: float | None = None

    def __post_init__(self) -> None:
        given: Any = self.prevalence
        if given is not None and not (is_number(given) and 0.0 <= given <= 1.0):
            raise InputError(f"prevalence: {self.prevalence!r}. It must lie in [0, 1].")

    def _value(self, data: EvaluationSet) -> float:
        if self.prevalence is not None:
            return float(self.prevalence)
        cells = data.cells
        positives, negatives = (
            float(cells.mass(cells.positives).sum()),
            float(cells.mass(cells.negatives).sum()),
        )
        if positives + negatives == 0.0:
            raise InputError(
                "label_model: 'prevalence' takes the share of positives from the labelled rows, and there are none. "
                "State it: label_models.Prevalence(0.1)."
            )
        return positives / (positives + negatives)

    def nodes(self, data: EvaluationSet) -> Posterior:
        return Posterior.single(np.full(data.missing_cells.size, self._value(data) if data.n_missing else 0.5))

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        source = "as stated" if self.prevalence is not None else "as among the labelled rows"
        return f"Assumed: every missing label is positive with chance {self._value(data):.3g}, {source}."
