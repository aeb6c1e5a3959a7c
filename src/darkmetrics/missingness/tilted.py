"""ExponentialTilt: a stated prevalence of the missing rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism, MissingnessLike, missing_rows
from darkmetrics.posterior import Posterior

# Log odds are shifted by this much at most: beyond it, a probability is 0 or 1 to the last bit.
MAX_SHIFT = 800.0
# A Newton step of this length is the last, and the number of steps at most (four for each halving of a double).
_MIN_STEP, _MAX_STEPS = 1e-8, 400
# Prevalences that are equal but for rounding.
_SAME = 1e-12


@dataclass(frozen=True)
class ExponentialTilt(Mechanism):
    """Another label model, moved so that a stated share of the missing rows is positive ("we think 40% are fraud").

    The log odds of every missing row move by the same amount. Of all ways to reach that share this one changes the
    least: it is the maximum-entropy answer given the base model and the statement. The share is that of the mean over
    the posterior of the base model, whose own spread stays.

    Parameters
    ----------
    base : str or Mechanism
        The mechanism to start from.
    prevalence : float, optional
        The share of the missing rows that is positive, between 0 and 1.
    delta : float, optional
        In its place, how far to move the log odds: 0 leaves the base as it is, 0.7 doubles the odds.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> fraud = dm.missing.ExponentialTilt(dm.missing.Fixed(0.5), prevalence=0.4)
    >>> law = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=fraud, metrics="precision")["precision"]
    >>> round(law.mean(), 9)
    0.7
    """

    base: MissingnessLike = "by_score"
    prevalence: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if (self.prevalence is None) == (self.delta is None):
            count = "neither" if self.prevalence is None else "both"
            raise InputError("prevalence", f"{count} of prevalence= and delta= passed", "", "State one of the two.")
        super().__post_init__()

    @property
    def base_mechanism(self) -> Mechanism:
        """The mechanism to start from."""
        from darkmetrics.missingness.choice import mechanism_from

        return mechanism_from(self.base)

    def row_values(self) -> dict[str, Any]:
        return self.base_mechanism.row_values()

    @property
    def features(self) -> Any:
        return self.base_mechanism.features

    def learn_rows(self, positive: BoolArray, missing: BoolArray, data: Any) -> dict[str, Any]:
        return self.base_mechanism.learn_rows(positive, missing, data)

    def without_rows(self) -> Self:
        return replace(self, base=self.base_mechanism.without_rows())

    def with_reference_set(self, pos_label: Any, missing_label: Any = None) -> Self:
        return replace(self, base=self.base_mechanism.with_reference_set(pos_label, missing_label))

    def posterior(self, data: EvaluationSet) -> Posterior:
        posterior = self.base_mechanism.posterior(data)
        if data.missing_cells.size == 0:
            return posterior
        if self.delta is not None:
            return posterior.shift_log_odds(float(self.delta))
        assert self.prevalence is not None
        prevalence, rows = float(self.prevalence), missing_rows(data, posterior)
        shift = find_shifts(posterior, rows, [prevalence])[0]
        if np.isnan(shift):
            low, high = reachable_prevalences(posterior, rows)
            raise InputError(
                "prevalence",
                f"{prevalence:g} cannot be reached",
                f"Some labels are certain under the base mechanism: {low:.3g} to {high:.3g} of the missing rows can be "
                "positive.",
            )
        return posterior.shift_log_odds(shift)

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        base = self.base_mechanism.describe(data, posterior)
        if self.prevalence is not None:
            stated = f"Stated: {self.prevalence:.3g} of the missing rows are positive, on average."
            return f"{stated} Before that, {_lower(base)}"
        return f"Stated: the log odds of missing rows are moved by {self.delta:g}. Before that, {_lower(base)}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def reachable_prevalences(posterior: Posterior, rows: FloatArray) -> tuple[float, float]:
    """Return the prevalences of the missing rows between which shifts of the log odds lead.

    Labels that are certain stay what they are. `rows` has the missing rows of each column of the posterior.
    """
    low, high = (_prevalence(posterior.shift_log_odds(end), rows) for end in (-MAX_SHIFT, MAX_SHIFT))
    return low, high


def find_shifts(posterior: Posterior, rows: FloatArray, prevalences: Sequence[float]) -> list[float]:
    """Find the shift of all log odds that leads to each prevalence of the missing rows; NaN if none does.

    `rows` has the missing rows of each column of the posterior. Neighboring prevalences start from each other's shift.
    """
    low, high = reachable_prevalences(posterior, rows)
    shifts, start = [], 0.0
    for prevalence in prevalences:
        if prevalence in (0.0, 1.0) and np.isclose(prevalence, (low, high)[int(prevalence)], rtol=0.0, atol=_SAME):
            shifts.append(MAX_SHIFT * (2.0 * prevalence - 1.0))
        elif max(low, 0.0) < prevalence < min(high, 1.0):
            start = _find_shift(posterior, rows, prevalence, start)
            shifts.append(start)
        else:
            shifts.append(np.nan)
    return shifts


def _find_shift(posterior: Posterior, rows: FloatArray, prevalence: float, start: float) -> float:
    """Find a shift by Newton steps in the log odds of the prevalence, inside a bracket."""
    a, b, shift = -MAX_SHIFT, MAX_SHIFT, start
    for step in range(_MAX_STEPS):
        moved = posterior.shift_log_odds(shift)
        mean = _prevalence(moved, rows)
        if mean == prevalence:
            break
        a, b = (shift, b) if mean < prevalence else (a, shift)
        # The log odds of the prevalence are nearly straight in the shift; every fourth step halves the bracket.
        p = moved.probability
        slope, newton = float(moved.weight @ ((p * (1.0 - p)) @ (rows / rows.sum()))), np.nan
        if slope > 0.0 and 0.0 < mean < 1.0 and step % 4 < 3:
            newton = shift + float(logit(prevalence) - logit(mean)) * mean * (1.0 - mean) / slope
        # The error after a Newton step is about the square of its length.
        if abs(newton - shift) <= _MIN_STEP:
            return newton
        shift = newton if a < newton < b else 0.5 * (a + b)
        if b - a <= 1e-13 * max(1.0, abs(shift)):
            break
    return shift


def _prevalence(posterior: Posterior, rows: FloatArray) -> float:
    return float(posterior.weight @ (posterior.probability @ (rows / rows.sum())))
