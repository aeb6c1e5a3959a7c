"""Rows of a model: bins of a score table, which enter the likelihood, and rows of the table to predict labels for.

Probabilities are smooth in the score. Neighboring rows of a table therefore share a bin, which has the mean of their
columns, so that a fit costs about the same for a thousand scores as for a hundred.
"""

from dataclasses import dataclass

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.missingness.score_table import ScoreTable

# Bins have at most 1 of 64 parts of the rows and span 1 of 64 parts of the range; of 256 parts in large sets, whose
# posterior is narrow.
_PARTS, _MANY_PARTS, _MANY_ROWS = 64, 256, 50_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Bins of a score table, followed by its rows with missing labels, which have counts of 0.

    Attributes
    ----------
    columns : array (n, width)
        Columns of the calibration curve.
    stratum : array of int (n,)
        Stratum of each row, from 0.
    n_strata : int
        Number of strata; 1 if the model does not distinguish them.
    rank : array (n,)
        Mid-rank of the score, from 0 to 1.
    is_above : array of bool (n,)
        Whether the score is at or above the threshold.
    positives, negatives, missing : array (n,)
        Numbers of rows.
    decided : array (n_bins,)
        Number of missing rows that are predicted positive.
    n_bins : int
        Number of bins.
    predicted_column : array of int
        Row to predict, counted from `n_bins`, of each of the set's `missing_cells`.
    """

    columns: FloatArray
    stratum: IntArray
    n_strata: int
    rank: FloatArray
    is_above: FloatArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    decided: FloatArray
    n_bins: int
    predicted_column: IntArray

    @property
    def strata(self) -> FloatArray:
        """A column per stratum that is 1 on its rows; none if there is a single stratum."""
        n = self.n_strata if self.n_strata > 1 else 0
        return np.asarray(self.stratum[:, None] == np.arange(n), dtype=np.float64)

    @property
    def fraction_missing(self) -> FloatArray:
        """Fraction of all missing rows in each row of the model."""
        return np.asarray(self.missing / max(1.0, float(self.missing.sum())))


def build_rows(
    table: ScoreTable, columns: FloatArray, line: FloatArray, threshold: float | None, max_bins: int | None = None
) -> Rows:
    """Return the rows of a model from a score table and the columns of a curve.

    Parameters
    ----------
    table : ScoreTable
        Table, sorted by score.
    columns : array (n, width)
        Columns of the curve for each row of the table.
    line : array (n,)
        Position of each row on the score axis.
    threshold : float, optional
        Score that no bin extends across.
    max_bins : int, optional
        Tables with more rows are binned; 128 (512 in large sets) if not passed.
    """
    counts = np.stack([table.positives, table.negatives, table.missing, table.decided])
    total = counts[:3].sum(axis=0)
    is_above = np.zeros(total.size) if threshold is None else (table.score >= threshold).astype(np.float64)
    n_strata = 1 if table.stratum is None or table.strata is None else int(table.strata.size)
    stratum = np.zeros(total.size, dtype=np.int64) if table.stratum is None else table.stratum
    rank = (np.cumsum(total) - 0.5 * total) / max(1.0, float(total.sum()))
    parts = _PARTS if total.sum() < _MANY_ROWS else _MANY_PARTS
    bins = np.arange(total.size)
    if total.size > (2 * parts * n_strata if max_bins is None else max_bins):
        reach = float(np.ptp(line))
        by_line = (line - line.min()) * (parts / reach) if reach > 0.0 else np.zeros(total.size)
        code = (by_line.astype(np.int64) * (parts + 1) + (rank * parts).astype(np.int64)) * 2 + is_above.astype(
            np.int64
        )
        bins = np.unique(code * n_strata + stratum, return_inverse=True)[1]
    predicted, predicted_column = table.with_missing
    values = np.concatenate([columns, rank[:, None], is_above[:, None], stratum[:, None]], axis=1)
    means, sums = values, counts
    if (bins.size and bins[-1] + 1 < bins.size) or n_strata > 1:
        n_bins = int(bins.max()) + 1
        sums = np.stack([np.bincount(bins, count, n_bins) for count in counts])
        weight = np.where(total > 0.0, total, 1e-12)
        of_bin = np.bincount(bins, weight, n_bins)
        means = np.stack([np.bincount(bins, weight * value, n_bins) for value in values.T], axis=1) / of_bin[:, None]
    joined = np.concatenate([means, values[predicted]])
    padded = np.concatenate([sums[:3], np.zeros((3, predicted.size))], axis=1)
    return Rows(
        np.ascontiguousarray(joined[:, :-3]),
        np.rint(joined[:, -1]).astype(np.int64),
        n_strata,
        joined[:, -3],
        joined[:, -2],
        padded[0],
        padded[1],
        padded[2],
        sums[3],
        sums.shape[1],
        predicted_column,
    )
