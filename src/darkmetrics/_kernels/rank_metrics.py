"""Metrics of ranks: average precision of many labelings at once, and how far one more row moves a metric.

The latter is the influence function, from which the variance due to sampling rows follows. Arrays have a row for each
set, or labeling, and a column for each group of tied scores; all are weights of the rows.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray


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
