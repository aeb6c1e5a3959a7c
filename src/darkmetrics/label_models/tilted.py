"""Tilted: a stated prevalence of the missing rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel, LabelModelLike, missing_rows
from darkmetrics.nodes import Nodes

# Beyond these log odds a probability is 0 or 1 to the last bit.
_FARTHEST = 800.0


@dataclass(frozen=True)
class Tilted(LabelModel):
    """Another label model, moved so that a stated share of the missing rows is positive ("we think 40% are fraud").

    The log odds of every missing row move by the same amount. Of all ways to reach that share this one changes the
    least: it is the maximum-entropy answer given the base model and the statement. The share is that of the mean over
    the posterior of the base model, whose own spread stays.

    Parameters
    ----------
    base : str or LabelModel
        The model to start from.
    prevalence : float, optional
        The share of the missing rows that is positive, between 0 and 1.
    delta : float, optional
        In its place, how far to move the log odds: 0 leaves the base as it is, 0.7 doubles the odds.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> fraud = dm.label_models.Tilted("half", prevalence=0.4)
    >>> law = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=fraud, metrics="precision")["precision"]
    >>> round(law.mean(), 9)
    0.7
    """

    base: LabelModelLike = "calibrated"
    prevalence: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if (self.prevalence is None) == (self.delta is None):
            raise InputError("prevalence: state either prevalence= or delta=, and not both.")
        number: Any = self.prevalence if self.delta is None else self.delta
        if not is_number(number) or not np.isfinite(number):
            name = "prevalence" if self.delta is None else "delta"
            raise InputError(f"{name}: {number!r}. It must be a finite number.")
        if self.prevalence is not None and not 0.0 < self.prevalence < 1.0:
            raise InputError(f"prevalence: {self.prevalence!r}. It must lie strictly between 0 and 1.")

    def nodes(self, data: EvaluationSet) -> Nodes:
        from darkmetrics.label_models.choice import label_model_from

        nodes = label_model_from(self.base).nodes(data)
        if data.missing_cells.size == 0:
            return nodes
        count = missing_rows(data, nodes)
        with np.errstate(divide="ignore"):
            log_odds = np.asarray(logit(nodes.probability))
        if self.delta is not None:
            delta = float(self.delta)
        else:
            delta = self._delta(log_odds, nodes.weight, count / count.sum())
        # The nodes' `shift` stays: it is what the base model has found, and this move is stated, not found.
        return nodes if delta == 0.0 else replace(nodes, probability=np.asarray(expit(log_odds + delta)))

    def _delta(self, log_odds: FloatArray, weight: FloatArray, share: FloatArray) -> float:
        """The common move that makes the mean probability the stated one."""
        assert self.prevalence is not None

        def excess(delta: float) -> float:
            return float(weight @ (expit(log_odds + delta) @ share)) - float(self.prevalence or 0.0)

        if excess(-_FARTHEST) >= 0.0 or excess(_FARTHEST) <= 0.0:
            low, high = (excess(end) + self.prevalence for end in (-_FARTHEST, _FARTHEST))
            raise InputError(
                f"prevalence: {self.prevalence:g} cannot be reached. The base model is sure of some labels: from "
                f"{low:.3g} to {high:.3g} of the missing rows can be positive."
            )
        if excess(0.0) == 0.0:
            return 0.0
        from scipy.optimize import brentq

        return float(brentq(excess, -_FARTHEST, _FARTHEST, xtol=1e-13, rtol=1e-13, maxiter=500))

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        from darkmetrics.label_models.choice import label_model_from

        base = label_model_from(self.base).describe(data, nodes)
        if self.prevalence is not None:
            return f"Stated: {self.prevalence:.3g} of the missing rows are positive. Before that, {_lower(base)}"
        return f"Stated: the log odds of missing rows are moved by {self.delta:g}. Before that, {_lower(base)}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
