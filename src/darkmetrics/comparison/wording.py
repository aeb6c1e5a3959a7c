"""A comparison in words: which model is better, what was assumed, and what scores in buckets leave open."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics._text import counted, short
from darkmetrics.comparison.ranking import range_text
from darkmetrics.footnotes import describe_binning, rounded_up, scope_in_words
from darkmetrics.tables import chance_text, decimals_for, interval_text, level_text, number_text

if TYPE_CHECKING:
    from darkmetrics.comparison.result import Comparison

# Labels from which on chances to be the best of several came true as often as said (how-to, champion and challenger).
_ENOUGH = 300


def sentence_of(found: "Comparison", metric: str, model: str, other: str) -> str:
    """Which of two models is better in a metric."""
    distribution, a, b = found.difference(metric, model, other), short(model), short(other)
    if distribution.undefined >= 1.0:
        return f"The difference of {a} and {b} in {metric} is never defined (0/0)."
    low, high = distribution.interval(found.confidence_level)
    decimals = decimals_for(high - low)
    moved = found.binning_error(metric, model, other)
    words = ""
    if found.metrics[metric].better == "neither":
        first = f"{a} less {b} in {metric}"
        if not moved < abs(distribution.mean()) and moved != 0.0:
            words = moved_words(moved)
    else:
        chance, worse = (found.probability_better(metric, *pair) for pair in ((model, other), (other, model)))
        where = metric if found.scope == "rows" else f"{metric} in the population"
        side, probability = ("better", chance) if not chance < worse else ("worse", worse)
        first = f"{a} is {side} than {b} in {where} with probability {chance_text(probability)}: the difference"
        pair = (model, other) if side == "better" else (other, model)
        left_open = range_text(probability, found.better_range(metric, *pair))
        if left_open:
            words = f"{moved_words(moved)}: with exact scores the probability is {left_open}"
    interval = interval_text((low, high), decimals)
    said = (
        f"{first} is {number_text(distribution.mean(), decimals)} ({level_text(found.confidence_level)}: {interval})."
    )
    return f"{said} {words}." if words else said


def moved_words(effect: float) -> str:
    """How far buckets can have moved a difference."""
    if np.isnan(effect):
        return "How far buckets of scores have moved it is not known"
    return f"Buckets of scores may have moved it by up to {rounded_up(effect):.2g}"


def words_of(found: "Comparison") -> list[str]:
    """What stands above the table: how many rows, what was assumed, and which model is better."""
    counts = found.rows.counts
    n, m = counts["rows"], counts["missing"]
    words = [f"{len(found.models)} models, {counted(n, 'row')}: {n - m:,} labeled, {m:,} missing ({m / n:.1%})"]
    words += filter(None, found.beliefs.assumption.split("\n"))
    if len(found.models) == 2:
        words += [found.sentence(metric) for metric in found.metrics]
    else:
        words += [
            str(found.probability_best(metric))
            for metric, record in found.metrics.items()
            if record.better != "neither"
        ]
    return words


def few_labels_of(found: "Comparison") -> list[str]:
    """What so few labels do to the chance to be best among several models; nothing where there are enough."""
    labels = found.beliefs.labels
    if len(found.models) < 3 or labels is None or labels >= _ENOUGH or not found.rows.counts["missing"]:
        return []
    return [f"Learned from {labels} labels: below {_ENOUGH} the chance that a model is best is often too sure."]


def notes_of(found: "Comparison") -> list[str]:
    """What stands below the table: what the intervals are for, few labels, and how far buckets move the metrics."""
    notes = [f"{scope_in_words(found.scope, found.rows.counts['rows'])} A tie is not better.", *found.few_labels()]
    if found.rows.score_bins is not None:
        effects = {metric: float(found.effects(metric).max()) for metric in found.metrics}
        notes.append(describe_binning(found.rows.score_bins, effects))
    return notes
