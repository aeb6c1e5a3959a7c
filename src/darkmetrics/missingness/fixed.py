"""Probabilities that no label of these rows teaches: one for all missing rows, one per row, or a prevalence."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import numpy as np

from darkmetrics.argument_types import Numbers
from darkmetrics.constraints import is_number
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior, FixedClassPosterior
from darkmetrics.wording import code


@dataclass(frozen=True, eq=False)
class Fixed(Mechanism):
    """The probabilities of the missing labels are known.

    Parameters
    ----------
    probability : float, str, array-like or None
        Probability of being positive: one number for all missing rows, one per row or per missing row, or the name of a
        column of `data`. None takes the probabilities of an EvaluationSet that was built with them.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None], [0.9, 0.4, 0.7]
    >>> per_row, for_all = dm.missing.Fixed([0.8]), dm.missing.Fixed(0.5)
    >>> for fixed in (per_row, for_all):
    ...     result = dm.evaluate(y_true, y_score, missingness=fixed, metrics="precision")
    ...     print(round(result["precision"].mean(), 9))
    0.9
    0.75
    """

    row_fields: ClassVar[tuple[str, ...]] = ("probability",)

    probability: Numbers | str | None = None

    def row_values(self) -> dict[str, Any]:
        return {} if is_number(self.probability) else super().row_values()

    def posterior(self, data: EvaluationSet) -> Posterior:
        value: Any = self.probability
        if is_number(value):
            return Posterior.single(np.full(data.missing_cells.size, float(value)))
        if data.cells.probability is None:
            fix = f"Pass {code('dm.missing.Fixed(...)')} with one per row."
            raise InputError("probability", "none with these rows", "", fix)
        probability = data.cells.probability[data.missing_cells]
        without = int(data.missing_counts[np.isnan(probability)].sum())
        if without:
            raise InputError(
                "probability",
                f"{without:,} of {data.n_missing:,} rows without a label have none",
                "",
                "Pass one for every row when building the set.",
            )
        return Posterior.single(probability)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        if data.cells.probability is None:
            raise InputError(
                "probability",
                "one number does not tell the probabilities of several classes",
                "",
                f"Pass dm.missing.Fixed(Q) with {data.n_classes} columns.",
            )
        probability = data.cells.probability[data.missing_cells]
        posterior = FixedClassPosterior(probability / probability.sum(axis=1, keepdims=True))
        posterior.assumption = "Assumed: missing labels are independent, with the probabilities given."
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        if is_number(self.probability):
            return f"Assumed: every missing label is positive with probability {self.probability:.3g}."
        if not posterior.independent:
            return "Assumed: missing labels have the probabilities given, but for what rows of their cluster tell."
        return "Assumed: missing labels are independent, with the probabilities given."


def has_probabilities(mechanism: Mechanism) -> TypeGuard[Fixed]:
    """Return whether probabilities per row were passed, which an evaluation takes as they are."""
    return isinstance(mechanism, Fixed) and not is_number(mechanism.probability)


@dataclass(frozen=True)
class TrainingPrevalence(Mechanism):
    """Every missing label is positive with the prevalence of the labeled rows.

    The paper's N+/N is the prevalence of the training set: `dm.paper.training_prevalence(y_train)`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> prevalence = dm.missing.TrainingPrevalence()
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=prevalence, metrics="precision")["precision"].mean()
    0.75
    """

    def _value(self, data: EvaluationSet) -> float:
        cells = data.cells
        positives, negatives = (float(cells.mass(count).sum()) for count in (cells.positives, cells.negatives))
        if positives + negatives == 0.0:
            raise InputError(
                "missingness",
                "TrainingPrevalence takes the fraction of positives from the labeled rows, and there are none",
                "",
                "State it: dm.missing.Fixed(0.1).",
            )
        return positives / (positives + negatives)

    def posterior(self, data: EvaluationSet) -> Posterior:
        return Posterior.single(np.full(data.missing_cells.size, self._value(data) if data.n_missing else 0.5))

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return (
            f"Assumed: every missing label is positive with probability {self._value(data):.3g}, the prevalence of the "
            "labeled rows."
        )
