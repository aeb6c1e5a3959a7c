"""Few labels where they matter: rows on a side of the threshold where a class was hardly seen get a level of their own.

A smooth curve extrapolates from the rows above the threshold to those below it. Labels below refute a wrong level only
if both classes are among them. Until then the step of the curve at the threshold has a wide prior.
"""

from collections.abc import Sequence

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators.logistic import STEP_SD
from darkmetrics.missingness.score_table import ScoreTable

# Prior standard deviation of the step where a class was not seen on a side. Jeffreys' Beta(1/2, 1/2) has 3.1 in log
# odds. It shrinks to that of a curve that was checked, as the labels of the class become this many.
_LEVEL_SD, _CHECKED = 3.0, 10.0
# Few labels are named where the uncertain rows are this fraction of the rows in the denominator of the metric.
_RELEVANT = 0.05


def count_by_side(tables: Sequence[ScoreTable], threshold: float) -> FloatArray:
    """Return the number of labels below and above the threshold (rows), negative and positive (columns)."""
    counts = np.zeros((2, 2))
    for table in tables:
        first = int(np.searchsorted(table.score, threshold))
        for side, rows in enumerate((slice(None, first), slice(first, None))):
            counts[side] += table.negatives[rows].sum(), table.positives[rows].sum()
    return counts


def level_sd(tables: Sequence[ScoreTable], threshold: float | None) -> float:
    """Return the prior standard deviation of the step at the threshold: wide if a class was hardly seen on a side."""
    if threshold is None:
        return STEP_SD
    unchecked = max(0.0, 1.0 - float(count_by_side(tables, threshold).min()) / _CHECKED)
    return STEP_SD + (_LEVEL_SD - STEP_SD) * unchecked


def describe_few_labels(tables: Sequence[ScoreTable], threshold: float | None) -> str:
    """Return a sentence for recall and for precision if it depends on few labels; empty if none does.

    Recall depends on positives below the threshold, precision on negatives above. The first table has the missing rows.
    """
    if threshold is None:
        return ""
    labels, is_above = count_by_side(tables, threshold), tables[0].score >= threshold
    sentences = []
    for metric, side, kind, where in (("Recall", 0, 1, "below"), ("Precision", 1, 0, "at or above")):
        n, seen, missing = labels[side].sum(), labels[side, kind], tables[0].missing[is_above == side].sum()
        total = labels[:, 1].sum() if metric == "Recall" else n + missing
        error = missing * np.sqrt(seen + 0.5) / (n + 1.0)  # standard deviation under Jeffreys' prior, nearly
        if seen < _CHECKED and error > _RELEVANT * total > 0.0:
            class_name = ("negative", "positive")[kind]
            text = f"{n:,.0f} labels {where} the threshold, {seen:.0f}" if n else f"no label {where} the threshold"
            sentences.append(f" {metric} depends on {text.replace(', 0', ', none')}{f' {class_name}' if n else ''}.")
    return "".join(sentences)
