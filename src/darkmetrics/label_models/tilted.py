"""Tilted: a stated prevalence of the missing rows."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel, LabelModelLike, missing_rows
from darkmetrics.posterior import Posterior

# Beyond these log odds a probability is 0 or 1 to the last bit.
_FARTHEST = 800.0
# Odds that are multiplied by more than the exponential of this may overflow.
_ODDS_OVERFLOW = 300.0
_SETTLED = 1e-8
_MOST_STEPS = 400  # four for each halving that doubles allow


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

    def nodes(self, data: EvaluationSet) -> Posterior:
        from darkmetrics.label_models.choice import label_model_from

        nodes = label_model_from(self.base).nodes(data)
        if data.missing_cells.size == 0:
            return nodes
        moves = Moves(nodes, missing_rows(data, nodes))
        if self.prevalence is not None:
            return moves.by(moves.to(float(self.prevalence)))
        assert self.delta is not None
        return moves.by(float(self.delta))

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        from darkmetrics.label_models.choice import label_model_from

        base = label_model_from(self.base).describe(data, nodes)
        if self.prevalence is not None:
            stated = f"Stated: {self.prevalence:.3g} of the missing rows are positive, on average."
            return f"{stated} Before that, {_lower(base)}"
        return f"Stated: the log odds of missing rows are moved by {self.delta:g}. Before that, {_lower(base)}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


class Moves:
    """Nodes whose log odds are all moved by the same amount; `rows` are the missing rows of each of their columns."""

    def __init__(self, nodes: Posterior, rows: FloatArray) -> None:
        self.nodes = nodes
        self._share = rows / rows.sum()

    def by(self, delta: float) -> Posterior:
        """The nodes after a move; their `shift` stays: it is what was found, and this move is stated, not found."""
        return self.nodes if delta == 0.0 else replace(self.nodes, probability=self._moved(delta))

    def _moved(self, delta: float) -> FloatArray:
        p = self.nodes.probability
        if abs(delta) > _ODDS_OVERFLOW:
            with np.errstate(divide="ignore"):
                return np.asarray(expit(logit(p) + delta))
        # The odds are multiplied: no exponential for each of them.
        positive = p * math.exp(delta)
        return positive / (1.0 - p + positive)

    def _mean(self, p: FloatArray) -> float:
        return float(self.nodes.weight @ (p @ self._share))

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Shares of positives between which moves can lead: labels that are certain stay what they are."""
        low, high = (self._mean(self._moved(end)) for end in (-_FARTHEST, _FARTHEST))
        return low, high

    def to(self, prevalence: float, near: float = 0.0) -> float:
        """The move after which this share of the missing rows is positive, looked for from a move that is `near`."""
        low, high = self.reach
        if not low < prevalence < high:
            raise InputError(
                f"prevalence: {prevalence:g} cannot be reached. The base model is sure of some labels: from "
                f"{low:.3g} to {high:.3g} of the missing rows can be positive."
            )
        a, b, delta = -_FARTHEST, _FARTHEST, near
        for step in range(_MOST_STEPS):
            p = self._moved(delta)
            mean = self._mean(p)
            if mean == prevalence:
                break
            a, b = (delta, b) if mean < prevalence else (a, delta)
            # Newton in log odds, in which a share is nearly straight; every fourth step halves what is left in between.
            slope, newton = self._mean(p * (1.0 - p)), np.nan
            if slope > 0.0 and 0.0 < mean < 1.0 and step % 4 < 3:
                newton = delta + float(logit(prevalence) - logit(mean)) * mean * (1.0 - mean) / slope
            # The error after a Newton step is about the square of its length. A step of no length at all ends on an end
            # of the bracket: the last bit of the mean cannot be had, and what is left in between is not looked at.
            if abs(newton - delta) <= _SETTLED:
                return newton
            delta = newton if a < newton < b else 0.5 * (a + b)
            if b - a <= 1e-13 * max(1.0, abs(delta)):
                break
        return delta
