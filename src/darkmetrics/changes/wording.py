"""Differences in words, and the numbers that users ask about them."""

import math
from typing import Any

import numpy as np

from darkmetrics.data.rules import is_number
from darkmetrics.distribution import MetricDistribution
from darkmetrics.distribution.base import mass_below
from darkmetrics.exceptions import InputError
from darkmetrics.tables import chance_text, decimals_for, level_text, number_text

# Half a unit in the last place of 1.
_ROUNDING = 2.0**-53
# From this probability on a metric is said to seem to have moved, and from the second to have moved.
LIKELY, _SURE = 0.9, 0.95


def is_sure(chance: float, near: float) -> bool:
    """Whether a metric may be said to have moved: `near` is the end of the interval towards zero."""
    return chance >= _SURE and near >= 0.0


def check_amount(by: Any, name: str = "by", what: str = "how far the metric moved at least") -> float:
    """How far a metric may move and still count as unmoved, checked."""
    if not is_number(by) or not np.isfinite(by) or by < 0.0:
        raise InputError(f"{name}: {by!r}. It must be a number of at least 0: {what}.")
    return float(by)


def chance_below(law: MetricDistribution, t: float) -> float:
    """P(X < t); NaN where the law has no value."""
    return _uncertain(law, t, mass_below(law, t))  # rounding must leave it a probability


def chance_above(law: MetricDistribution, t: float) -> float:
    """P(X > t); NaN where the law has no value."""
    return _uncertain(law, t, float(law.sf(t)))


def _uncertain(law: MetricDistribution, t: float, chance: float) -> float:
    """A probability; one that is not known to the last digit is 0 or 1 only where no labeling says otherwise."""
    open_ = law.method != "exact" and law.bounds.low < t < law.bounds.high
    rounding = _ROUNDING if open_ else 0.0
    return chance if math.isnan(chance) else min(1.0 - rounding, max(rounding, chance))


def amount(value: float) -> float:
    """A difference in print, which has no negative zero."""
    return 0.0 if abs(value) < 5e-13 else value


def moved_text(metric: str, means: tuple[float, float], law: MetricDistribution, level: float) -> str:
    """What happened to a metric from the first mean to the second, given the law of their difference."""
    if math.isnan(law.mean()):
        return f"{metric} is undefined (0/0) in one of the two, and so is its change."
    low, high = law.interval(level)
    decimals = decimals_for(high - low)
    first, second = (number_text(mean, decimals) for mean in means)
    fell, rose = chance_below(law, 0.0), chance_above(law, 0.0)
    if low == high:
        if amount(low) == 0.0:
            return f"{metric} is {first} in both; every label that matters is known."
        verb = "fell" if low < 0.0 else "rose"
        return f"{metric} {verb} from {first} to {second}: by {number_text(abs(low), decimals)}, for certain."
    down = fell >= rose
    verb = "fell" if down else "rose"
    near, far = (-high, -low) if down else (low, high)
    size = number_text(abs(amount(law.mean())), decimals)
    chance = chance_text(fell if down else rose)
    if max(fell, rose) >= LIKELY:
        inside = f"{number_text(near, decimals)} to {number_text(far, decimals)}"
        moved = verb if is_sure(max(fell, rose), near) else f"seems to have {'fallen' if down else 'risen'}"
        return (
            f"{metric} {moved} from {first} to {second}: by {size} ({level_text(level)}: {inside}). "
            f"Probability that it {verb}: {chance}."
        )
    ends = f"{number_text(low, decimals)} to {number_text(high, decimals)}"
    return (
        f"{metric} went from {first} to {second}, but it may have moved either way: a change of {ends} "
        f"({level_text(level)}). Probability that it {verb}: {chance}."
    )
