"""Differences as text: moves of metrics, assumptions and warnings of the sets, sets that look like the same rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, FloatArray
from darkmetrics._text import short
from darkmetrics.data.cells import Cells
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.base import mass_below
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.tables import chance_text, decimals_for, level_text, number_text

# Half a unit in the last place of 1.
_ROUNDING = 2.0**-53
# From the first probability on a sentence claims that a metric seems to have moved, from the second that it moved.
LIKELY, _SURE = 0.9, 0.95
# A smaller probability of 0/0 has no printed digit; longer lists of sets are cut.
_MIN_SHOWN, _MAX_NAMED = 5e-4, 3
# Stated mechanisms in a sentence; those with the same label model have the same text.
_MECHANISMS = {
    None: "not stated",
    "unknown": "not stated",
    "random": "by score or at random",
    "by_score": "by score or at random",
    "by_label": "by label",
    "by_score_and_label": "by score and label",
    "propensity": "as the chances to get a label say",
    "delayed": "labels are late",
    "probabilities": "probabilities given",
}
_CLUSTERS = (
    "A cluster of rows (clusters=) that is in both, such as a customer, is taken as two: what it does in one says "
    "nothing about the other."
)
_IDENTICAL = (
    "The two sets look identical: the same scores, decisions and labels. If they are the same rows, nothing changed, "
    "and the intervals mean nothing."
)
_OTHER_LABELS = (
    "The two sets look like the same rows with other labels or decisions: every score is in both, as often. If they "
    "are, what moved is what is known of them, and the intervals mean nothing; verify says whether labels that came "
    "since agree with what was said before."
)
_CONTAINED = (
    "The two sets look as if they had rows in common: every score of the smaller one is in the other too. If they "
    "have, these count on both sides, and the intervals mean nothing."
)
# With fewer distinct scores, different rows have equal scores by chance.
_MIN_SCORES = 10
# The scores of a set are in another set by chance if it has few rows, or the other set has many rows per score.
_MIN_ROWS, _MAX_ROWS_PER_SCORE = 20, 2.0


def is_sure(probability: float, near: float) -> bool:
    """Return whether a sentence may claim that a metric moved; `near` is the end of the interval towards zero."""
    return probability >= _SURE and near >= 0.0


def check_amount(by: Any, name: str = "by", what: str = "how far the metric moved at least") -> float:
    """Validate the smallest difference that counts."""
    if not is_number(by) or not np.isfinite(by) or by < 0.0:
        raise InputError(name, repr(by), f"It must be a number of at least 0: {what}.")
    return float(by)


def probability_below(distribution: MetricDistribution, t: float) -> float:
    """Return P(X < t); NaN if the distribution has no value."""
    return _keep_uncertain(distribution, t, mass_below(distribution, t))


def probability_above(distribution: MetricDistribution, t: float) -> float:
    """Return P(X > t); NaN if the distribution has no value."""
    return _keep_uncertain(distribution, t, float(distribution.sf(t)))


def _keep_uncertain(distribution: MetricDistribution, t: float, probability: float) -> float:
    """Return a probability; that of an approximation is 0 or 1 only if no label assignment contradicts it."""
    is_open = distribution.method != "exact" and distribution.bounds.low < t < distribution.bounds.high
    rounding = _ROUNDING if is_open else 0.0
    return probability if math.isnan(probability) else min(1.0 - rounding, max(rounding, probability))


def drop_negative_zero(value: float) -> float:
    """Return a difference for print, with 0 for rounding errors."""
    return 0.0 if abs(value) < 5e-13 else value


def describe_undefined(metric: str, probabilities: Mapping[str, float], fill: float, *, scope: str) -> str:
    """Return in which sets a metric is 0/0, how likely, and the value that replaces it; empty if in none.

    `probabilities` has the probability of a 0/0 by the name of the set. In the population `fill` is not used.
    """
    left_out = scope == "population" or math.isnan(fill)
    always = [name for name, p in probabilities.items() if p >= 1.0]
    possible = [f"{name} ({chance_text(p)})" for name, p in probabilities.items() if _MIN_SHOWN <= p < 1.0]
    texts = []
    if always:
        counts = "" if left_out else f" and counts as {fill:g}"
        texts.append(f"In {join_names(always)} {metric} is undefined (0/0){counts}.")
    if possible:
        counts = "left out" if left_out else f"counted as {fill:g}"
        texts.append(
            f"{metric[0].upper()}{metric[1:]} may be undefined (0/0) in {join_names(possible)}; that is {counts}."
        )
    return " ".join(texts)


def join_names(names: list[str]) -> str:
    """Join names for a sentence; of many names, the first and the number of the others."""
    more = len(names) - _MAX_NAMED
    if more > 1:
        return f"{', '.join(names[:_MAX_NAMED])} and {more:,} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def describe_move(metric: str, means: tuple[float, float], distribution: MetricDistribution, level: float) -> str:
    """Return how a metric moved from the first mean to the second, given the distribution of their difference."""
    if math.isnan(distribution.mean()):
        sets = "both" if all(map(math.isnan, means)) else "one of the two"
        return f"{metric} is undefined (0/0) in {sets}, and so is its change."
    low, high = distribution.interval(level)
    decimals = decimals_for(high - low)
    first, second = (number_text(mean, decimals) for mean in means)
    decreased, increased = probability_below(distribution, 0.0), probability_above(distribution, 0.0)
    if low == high:
        if drop_negative_zero(low) == 0.0:
            return f"{metric} is {first} in both; every label that matters is known."
        verb = "fell" if low < 0.0 else "rose"
        return f"{metric} {verb} from {first} to {second}: by {number_text(abs(low), decimals)}, for certain."
    down = decreased >= increased
    verb = "fell" if down else "rose"
    near, far = (-high, -low) if down else (low, high)
    size = number_text(abs(drop_negative_zero(distribution.mean())), decimals)
    probability = max(decreased, increased)
    if probability >= LIKELY:
        interval = f"{number_text(near, decimals)} to {number_text(far, decimals)}"
        moved = verb if is_sure(probability, near) else f"seems to have {'fallen' if down else 'risen'}"
        return (
            f"{metric} {moved} from {first} to {second}: by {size} ({level_text(level)}: {interval}). "
            f"Probability that it {verb}: {chance_text(probability)}."
        )
    ends = f"{number_text(low, decimals)} to {number_text(high, decimals)}"
    return (
        f"{metric} went from {first} to {second}, but it may have moved either way: a change of {ends} "
        f"({level_text(level)}). Probability that it {verb}: {chance_text(probability)}."
    )


def name_differences(names: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str]:
    """Return texts of two sets: those of both sets as they are, and those of one set with its name."""
    after, before = texts
    result = [text if text in before else f"{names[0]}: {text}" for text in after]
    return result + [f"{names[1]}: {text}" for text in before if text not in after]


def describe_assumptions(names: Sequence[str], pair: Sequence[Evaluation]) -> list[str]:
    """Return what was assumed about missing labels, for both sets or for each; empty without missing labels."""
    texts = [
        [_first_sentence(evaluation.assumption)] if evaluation.data.n_missing and evaluation.assumption else []
        for evaluation in pair
    ]
    return name_differences([short(name) for name in names], texts)


def describe_mechanisms(names: Sequence[str], pair: Sequence[Evaluation]) -> list[str]:
    """Return a sentence if the mechanisms of the two sets differ."""
    texts = [_MECHANISMS.get(one_set.stated, str(one_set.stated)) for one_set in pair if one_set.data.n_missing]
    if len(set(texts)) < 2:
        return []
    stated = ", ".join(f"{mechanism} ({short(name)})" for mechanism, name in zip(texts, names, strict=True))
    return [f"Why labels are missing is not the same in both: {stated}. Part of the change may be that."]


def describe_warnings(names: Sequence[str], pair: Sequence[Evaluation]) -> list[str]:
    """Return the first sentence of each warning about the two sets; `warnings` of each evaluation has the full text."""
    after, before = ([_first_sentence(warned.message) for warned in evaluation.warnings] for evaluation in pair)
    texts = []
    for text in dict.fromkeys([*after, *before]):
        name = "both" if text in after and text in before else short(names[0 if text in after else 1])
        texts.append(f"Warning for {name}: {text}")
    return texts


def describe_clusters(pair: Sequence[Evaluation]) -> list[str]:
    """Return what is assumed about clusters that are in both sets; empty if rows have no clusters."""
    return [_CLUSTERS] if all(evaluation.data.groups is not None for evaluation in pair) else []


def _first_sentence(text: str) -> str:
    first = text.partition("\n")[0].partition(". ")[0]
    return first if first.endswith(".") else f"{first}."


class _Scores(NamedTuple):
    """The distinct scores of a set in increasing order, with their numbers of rows and weights."""

    score: FloatArray
    rows: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> "_Scores":
        starts = np.arange(cells.score.size) if cells.tie_starts is None else cells.tie_starts
        total = cells.total.astype(np.float64)
        rows, weight = (np.add.reduceat(values, starts) for values in (total, cells.mass(cells.total)))
        return cls(cells.score[starts], rows, weight)

    def is_within(self, other: "_Scores") -> bool:
        """Return whether the other set has every score at least as often, and with as much weight."""
        if self.score.size > other.score.size:
            return False
        at = np.minimum(np.searchsorted(other.score, self.score), other.score.size - 1)
        return bool(
            np.array_equal(other.score[at], self.score)
            and np.all(self.rows <= other.rows[at])
            and np.all(self.weight <= other.weight[at] * (1.0 + 1e-12))
        )


def describe_overlap(after: Evaluation, before: Evaluation) -> str:
    """Return a sentence if two sets look like the same rows or have rows in common; empty otherwise."""
    pair = [evaluation.data.cells for evaluation in (after, before)]
    if all(np.array_equal(*columns) for columns in zip(*map(_columns, pair), strict=True)):
        return _IDENTICAL
    small, large = sorted(map(_Scores.of, pair), key=lambda scores: float(scores.rows.sum()))
    if not small.is_within(large):
        return ""
    if large.is_within(small):
        return _OTHER_LABELS if small.score.size >= _MIN_SCORES else ""
    is_unlikely = small.rows.sum() >= _MIN_ROWS and large.rows.sum() <= _MAX_ROWS_PER_SCORE * large.score.size
    return _CONTAINED if is_unlikely else ""


def _columns(cells: Cells) -> list[AnyArray]:
    return [cells.score, cells.decision, cells.positives, cells.negatives, cells.missing, cells.mass(cells.total)]
