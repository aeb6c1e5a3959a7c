"""Differences in words, and the numbers that users ask about them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from darkmetrics.data.rules import is_number
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.base import mass_below
from darkmetrics.exceptions import InputError
from darkmetrics.tables import chance_text, decimals_for, level_text, number_text

# Half a unit in the last place of 1.
_ROUNDING = 2.0**-53
# From this probability on a metric is said to seem to have moved, and from the second to have moved.
LIKELY, _SURE = 0.9, 0.95
# A chance of 0/0 below this shows in no printed digit; and so many names are read, where it is many sets.
_SHOWS, _NAMED = 5e-4, 3


def is_sure(chance: float, near: float) -> bool:
    """Whether a metric may be said to have moved: `near` is the end of the interval towards zero."""
    return chance >= _SURE and near >= 0.0


def check_amount(by: Any, name: str = "by", what: str = "how far the metric moved at least") -> float:
    """How far a metric may move and still count as unmoved, checked."""
    if not is_number(by) or not np.isfinite(by) or by < 0.0:
        raise InputError(f"{name}: {by!r}. It must be a number of at least 0: {what}.")
    return float(by)


def chance_below(distribution: MetricDistribution, t: float) -> float:
    """P(X < t); NaN where the law has no value."""
    return _uncertain(distribution, t, mass_below(distribution, t))  # rounding must leave it a probability


def chance_above(distribution: MetricDistribution, t: float) -> float:
    """P(X > t); NaN where the law has no value."""
    return _uncertain(distribution, t, float(distribution.sf(t)))


def _uncertain(distribution: MetricDistribution, t: float, chance: float) -> float:
    """A probability; one that is not known to the last digit is 0 or 1 only where no labeling says otherwise."""
    open_ = distribution.method != "exact" and distribution.bounds.low < t < distribution.bounds.high
    rounding = _ROUNDING if open_ else 0.0
    return chance if math.isnan(chance) else min(1.0 - rounding, max(rounding, chance))


def amount(value: float) -> float:
    """A difference in print, which has no negative zero."""
    return 0.0 if abs(value) < 5e-13 else value


def zero_by_zero_text(what: str, chances: Mapping[str, float], fill: float, *, scope: str) -> str:
    """In which sets a metric is 0/0, how likely, and what that counts as; empty if in none.

    `chances` has the probability of a 0/0 by the name of the set. In the population `fill` counts for nothing.
    """
    left_out = scope == "population" or math.isnan(fill)
    always = [name for name, chance in chances.items() if chance >= 1.0]
    some = [f"{name} ({chance_text(chance)})" for name, chance in chances.items() if _SHOWS <= chance < 1.0]
    texts = []
    if always:
        counts = "" if left_out else f" and counts as {fill:g}"
        texts.append(f"In {names_text(always)} {what} is undefined (0/0){counts}.")
    if some:
        counts = "left out" if left_out else f"counted as {fill:g}"
        texts.append(f"{what[0].upper()}{what[1:]} may be undefined (0/0) in {names_text(some)}; that is {counts}.")
    return " ".join(texts)


def names_text(names: list[str]) -> str:
    """A few names in a sentence, and how many more there are."""
    more = len(names) - _NAMED
    if more > 1:
        return f"{', '.join(names[:_NAMED])} and {more:,} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def moved_text(metric: str, means: tuple[float, float], distribution: MetricDistribution, level: float) -> str:
    """What happened to a metric from the first mean to the second, given the law of their difference."""
    if math.isnan(distribution.mean()):
        where = "both" if all(map(math.isnan, means)) else "one of the two"
        return f"{metric} is undefined (0/0) in {where}, and so is its change."
    low, high = distribution.interval(level)
    decimals = decimals_for(high - low)
    first, second = (number_text(mean, decimals) for mean in means)
    fell, rose = chance_below(distribution, 0.0), chance_above(distribution, 0.0)
    if low == high:
        if amount(low) == 0.0:
            return f"{metric} is {first} in both; every label that matters is known."
        verb = "fell" if low < 0.0 else "rose"
        return f"{metric} {verb} from {first} to {second}: by {number_text(abs(low), decimals)}, for certain."
    down = fell >= rose
    verb = "fell" if down else "rose"
    near, far = (-high, -low) if down else (low, high)
    size = number_text(abs(amount(distribution.mean())), decimals)
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
