"""The score table: labeled and missing rows counted by score, which is all that calibration needs (math, section 8).

Probabilities are smooth in the score, so neighbors are joined if there are very many different scores. Neither a fit
nor a posterior draw then costs more for a billion rows than for a few thousand.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray
from darkmetrics.data.cells import COUNTS, Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.reference import ReferenceLike, reference_set
from darkmetrics.wording import setting

# A table has up to twice this many rows: bins hold at most 1/512 of the rows and span at most 1/512 of the range.
_BINS = 512
MOST_STRATA = 30
# Joint tables have about this many rows at most.
_MAX_JOINT = 10_000


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Counts of positive, negative and missing rows per score; each count is a float array."""

    score: FloatArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    # Missing rows that are predicted positive.
    decided: FloatArray
    # The row of this table that each of the set's `missing_cells` belongs to.
    column: IntArray
    # The row of this table that each of the set's cells belongs to.
    row_of_cell: IntArray
    # The counted cells, for calibrators with steps in their curves, which need unbinned scores.
    cells: Cells
    # Stratum of each row, from 0, and the names of the strata, if the table has rows by stratum.
    stratum: IntArray | None = None
    strata: IntArray | None = None

    @property
    def labeled(self) -> FloatArray:
        """Rows with a label, per score."""
        return self.positives + self.negatives

    @cached_property
    def with_missing(self) -> tuple[IntArray, IntArray]:
        """Rows of the table with missing labels, and `column` counted among these."""
        has_missing = self.missing > 0.0
        if not has_missing.any():
            return np.arange(has_missing.size), self.column
        return np.flatnonzero(has_missing), (np.cumsum(has_missing) - 1)[self.column]

    @property
    def rank(self) -> FloatArray:
        """Mid-rank of each row of the table among all rows, with mean 0 and variance 1 where scores differ."""
        rows = self.labeled + self.missing
        return np.asarray(np.sqrt(12.0) * ((np.cumsum(rows) - 0.5 * rows) / rows.sum() - 0.5), dtype=np.float64)


def score_table(data: EvaluationSet, *, by_probability: bool = False, by_stratum: bool = False) -> ScoreTable:
    """Return the table of a set; `by_probability` uses the probabilities of the set in row_of_cell of the scores.

    `by_stratum` keeps the strata of one score, or bin, apart, one row after the other.
    """
    cells = data.cells
    value, order = cells.score, np.arange(cells.score.size)
    if by_probability:
        assert cells.probability is not None
        order = np.argsort(cells.probability, kind="stable")
        value = cells.probability[order]
    starts = _find_bin_starts(value, cells.total[order], None if by_probability else data.threshold)
    names = stratum = None
    if by_stratum:
        names, code = _strata(cells)
        bin_of = np.repeat(np.arange(starts.size), np.diff(np.append(starts, value.size)))
        by_stratum_too = np.lexsort([code[order], bin_of])
        order, value = order[by_stratum_too], value[by_stratum_too]
        key = bin_of * names.size + code[order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        stratum = code[order][starts]
    rows = cells.total[order]

    def total(counts: Any) -> FloatArray:
        return np.add.reduceat(np.asarray(counts, dtype=np.float64), starts) if starts.size else np.zeros(0)

    sizes = np.diff(np.append(starts, value.size))
    # From the lowest value up, because a mean of equal numbers need not be that number in floating point, and scores of
    # exactly 0 and 1 are special to calibrators.
    low = np.repeat(value[starts], sizes)
    mean = value[starts] + total(rows * (value - low)) / total(rows)
    row_of_cell = np.empty(value.size, dtype=np.int64)
    row_of_cell[order] = np.repeat(np.arange(starts.size), sizes)
    return ScoreTable(
        mean,
        **{name: total(getattr(cells, name)[order]) for name in COUNTS},
        decided=total((cells.missing * cells.decision)[order]),
        column=row_of_cell[data.missing_cells],
        row_of_cell=row_of_cell,
        cells=cells,
        stratum=stratum,
        strata=names,
    )


def joint_table(data: EvaluationSet, *values: FloatArray) -> tuple[ScoreTable, list[FloatArray]]:
    """Return a table by score and by other values of the set's cells, with the means of these values.

    Parameters
    ----------
    data : EvaluationSet
        Rows to count.
    *values : array (n_cells,)
        Values, such as probabilities or propensities. Up to 10,000 cells have a row of the table each. In larger sets
        cells that are similar in all values share a row.
    """
    cells = data.cells
    row_of_cell = np.arange(cells.score.size)
    if row_of_cell.size > _MAX_JOINT:
        n_levels = int((_MAX_JOINT / 2) ** (1.0 / (1 + len(values))))
        code = _levels(cells.score, cells.total, n_levels)
        code = 2 * code + (0 if data.threshold is None else (cells.score >= data.threshold).astype(np.int64))
        for value in values:
            code = n_levels * code + _levels(value, cells.total, n_levels)
        row_of_cell = np.unique(code, return_inverse=True)[1]
    rows = cells.total.astype(np.float64)
    total = _sums(row_of_cell, rows)
    score, *means = (
        value if row_of_cell.size == total.size else _sums(row_of_cell, rows * value) / total
        for value in (cells.score, *values)
    )
    table = ScoreTable(
        score,
        positives=_sums(row_of_cell, cells.positives),
        negatives=_sums(row_of_cell, cells.negatives),
        missing=_sums(row_of_cell, cells.missing),
        decided=_sums(row_of_cell, cells.missing * cells.decision),
        column=row_of_cell[data.missing_cells],
        row_of_cell=row_of_cell,
        cells=cells,
    )
    return table, means


def _sums(row_of_cell: IntArray, values: AnyArray) -> FloatArray:
    return np.asarray(np.bincount(row_of_cell, values), dtype=np.float64)


def _levels(value: FloatArray, rows: IntArray, n_levels: int) -> IntArray:
    """Return the level of each value, of `n_levels` with about equally many rows; equal values share a level."""
    distinct, code = np.unique(value, return_inverse=True)
    before = np.cumsum(np.bincount(code, rows, distinct.size))
    level: IntArray = np.minimum((before / before[-1] * n_levels).astype(np.int64), n_levels - 1)[code]
    return level


def _strata(cells: Cells) -> tuple[IntArray, IntArray]:
    """Return the strata, and the stratum of each cell."""
    if cells.stratum is None:
        fix = f"Pass {setting('strata')} to the mechanism when building the EvaluationSet, or to evaluate."
        raise InputError("strata", "none with these rows", "", fix)
    names, code = np.unique(cells.stratum, return_inverse=True)
    if names.size > MOST_STRATA:
        raise InputError(
            "strata", f"{names.size:,} different strata", f"There may be at most {MOST_STRATA}.", "Join neighbors."
        )
    return names, code


def _find_bin_starts(ranked: FloatArray, rows: IntArray, threshold: float | None) -> IntArray:
    """Return where the rows of the table begin in the sorted values: a row per value, or per bin if there are many.

    No bin extends across the threshold, where the probability of a label may jump.
    """
    new = np.ones(ranked.size, dtype=np.bool_)
    new[1:] = ranked[1:] != ranked[:-1]
    if int(new.sum()) > 2 * _BINS:
        probabilities = ranked[0] >= 0.0 and ranked[-1] <= 1.0
        x = np.asarray(logit(np.clip(ranked, 1e-12, 1.0 - 1e-12)) if probabilities else ranked)
        reach = float(x[-1] / 2.0 - x[0] / 2.0)  # halves, so that the range of huge scores stays finite
        by_value = np.floor((x / 2.0 - x[0] / 2.0) * (_BINS / reach)) if reach > 0.0 else np.zeros(x.size)
        before = np.cumsum(rows, dtype=np.float64)
        by_count = np.floor(before * (_BINS / before[-1]))
        new[1:] &= (by_value[1:] > by_value[:-1]) | (by_count[1:] > by_count[:-1])
        if threshold is not None:
            new[np.searchsorted(ranked, threshold) % ranked.size] = True
    return np.flatnonzero(new)


def reference_table(reference: ReferenceLike | None, data: EvaluationSet) -> ScoreTable | None:
    """Return the table of reference rows for a set; None if there are none."""
    if reference is None:
        return None
    rows = reference_set(reference, data.pos_label)
    if rows.n_rows == 0:
        raise InputError("reference", "the EvaluationSet has no rows", "", "Pass fully labeled rows, or leave it out.")
    if rows.n_missing:
        raise InputError(
            "reference",
            f"{rows.n_missing:,} of {rows.n_rows:,} rows have no label",
            "Reference rows must all be labeled; drop the others.",
        )
    return score_table(rows)
