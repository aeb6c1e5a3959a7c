"""Metrics of ranks: average precision of many labelings at once, and how far one more row moves a metric.

The latter is the influence function, from which the variance due to sampling rows follows. Arrays have a row for each
set, or labeling, and a column for each group of tied scores; all are weights of the rows.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.precision_draws import Ranking

# Labels that are gone through at a time: as many as the fastest memory holds.
_PORTION = 1 << 16


def average_precision(positive: FloatArray, total: FloatArray) -> FloatArray:
    """Average precision of each labeling (row): positive and total weight per tie group, by falling score.

    The sum over groups of recall gained times precision reached, with no interpolation; nan without positives.
    """
    found, seen = np.cumsum(positive, axis=1), np.cumsum(total, axis=1)
    everything = found[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(seen > 0.0, found / seen, 0.0)
        result: FloatArray = (positive * precision).sum(axis=1) / everything
    return result


def average_precision_of_labels(ranking: Ranking, positives: IntArray) -> FloatArray:
    """Average precision of each labeling (row): the positives among the missing rows of each missing cell.

    What labels are known leave the same in all labelings: only tie groups with a missing row are gone through.
    """
    group = ranking.group[::-1]  # cells are by rising score
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    of_group, several = group[starts], starts.size < group.size
    seen = np.cumsum(ranking.total)
    share = np.divide(1.0, seen, out=np.zeros(seen.size), where=seen > 0.0)
    before = np.cumsum(ranking.known)
    # A positive meets what is known above it, and what is known from it on meets the positive.
    below = np.cumsum((ranking.known * share)[::-1])[::-1]
    each, fixed = (below + before * share)[of_group], float((ranking.known * share) @ before)
    share, weight, everything = share[of_group], ranking.weight[::-1], float(ranking.known.sum())
    values = np.empty(len(positives))
    step = max(1, _PORTION // max(1, group.size))
    for start in range(0, len(positives), step):
        own = positives[start : start + step, ::-1] * weight
        if several:
            own = np.add.reduceat(own, starts, axis=1)
        found = np.cumsum(own, axis=1)
        total = everything + (found[:, -1] if found.shape[1] else 0.0)
        pairs = fixed + own @ each + np.multiply(found, own, out=found) @ share
        values[start : start + step] = np.divide(pairs, total, out=np.full(len(own), np.nan), where=total > 0.0)
    return np.minimum(values, 1.0)


def auc_row_influence(positive: FloatArray, negative: FloatArray, *, full_ties: bool) -> FloatArray:
    """Derivative of ROC-AUC by the weight of a row, for negatives and positives; groups by rising score.

    Their squares, summed over rows, are DeLong's variance but for its divisors n - 1.
    """
    tied = 1.0 if full_ties else 0.5
    below = np.cumsum(negative, axis=1) - (1.0 - tied) * negative
    above = positive.sum(axis=1, keepdims=True) - np.cumsum(positive, axis=1) + tied * positive
    p, n = positive.sum(axis=1, keepdims=True), negative.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        auc = (positive * below).sum(axis=1, keepdims=True) / (p * n)
        return np.stack([(above / p - auc) / n, (below / n - auc) / p])


def average_precision_row_influence(positive: FloatArray, total: FloatArray) -> FloatArray:
    """Derivative of average precision by the weight of a row, for negatives and positives; groups by falling score."""
    found, seen = np.cumsum(positive, axis=1), np.cumsum(total, axis=1)
    p = found[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(seen > 0.0, found / seen, 0.0)
        ap = (positive * precision).sum(axis=1, keepdims=True) / p
        # A row takes part in the precision at its own score and at every lower one.
        per_row = np.where(seen > 0.0, positive / seen, 0.0)
        lost = np.cumsum((per_row * precision)[:, ::-1], axis=1)[:, ::-1]
        gained = np.cumsum(per_row[:, ::-1], axis=1)[:, ::-1]
        return np.stack([-lost / p, (precision + gained - lost - ap) / p])


def top_row_influence(
    share: FloatArray, top: FloatArray, positives: FloatArray, rate: FloatArray, k: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Derivative of the positives among the k highest of n rows by the weight of a row; then that of all positives.

    `share` of each group is in the top, and `rate` of the rows at the cut are positive: a row that comes into the top
    pushes out another one. Totals stay n. Given for a negative and a positive in the top, then for all positives of a
    positive row.
    """
    kept = rate * (k / n) - top / n
    return kept - share * rate, kept + share * (1.0 - rate), 1.0 - positives / n
