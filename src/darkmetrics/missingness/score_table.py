"""The score table: labeled and missing rows counted by score, the one thing that calibration needs (math, section 8).

Probabilities are smooth in the score, so that with very many different scores neighbours share a row of the table. Then
neither fitting nor a posterior node costs more for a billion rows than for a few thousand.
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

# Up to twice this many rows: buckets hold at most 1/512 of the rows and span at most 1/512 of the range.
_BUCKETS = 512
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
    # Of the missing rows, those that are decided positive.
    decided: FloatArray
    # The row of this table that each of the set's `missing_cells` belongs to.
    column: IntArray
    # The row of this table that each of the set's cells belongs to.
    place: IntArray
    # What was counted, for calibrators whose curves have steps and must not see means of neighbours.
    cells: Cells
    # Which stratum each row belongs to, from 0 on, where rows of one score are kept apart by stratum; and their names.
    stratum: IntArray | None = None
    strata: IntArray | None = None

    @property
    def labeled(self) -> FloatArray:
        """Rows with a label, per score."""
        return self.positives + self.negatives

    @cached_property
    def with_missing(self) -> tuple[IntArray, IntArray]:
        """The rows of the table that hold missing ones, for which alone nodes are made, and `column` among these."""
        held = self.missing > 0.0
        if not held.any():
            return np.arange(held.size), self.column
        return np.flatnonzero(held), (np.cumsum(held) - 1)[self.column]

    @property
    def rank(self) -> FloatArray:
        """Mid-rank of each row of the table among all rows, with mean 0 and variance 1 where scores differ."""
        rows = self.labeled + self.missing
        return np.asarray(np.sqrt(12.0) * ((np.cumsum(rows) - 0.5 * rows) / rows.sum() - 0.5), dtype=np.float64)


def score_table(data: EvaluationSet, *, by_probability: bool = False, by_stratum: bool = False) -> ScoreTable:
    """The table of a set; `by_probability` takes the set's own probabilities in place of the scores.

    `by_stratum` keeps the strata of one score, or bucket, apart, one row after the other.
    """
    cells = data.cells
    value, order = cells.score, np.arange(cells.score.size)
    if by_probability:
        assert cells.probability is not None
        order = np.argsort(cells.probability, kind="stable")
        value = cells.probability[order]
    starts = _bucket_starts(value, cells.total[order], None if by_probability else data.threshold)
    names = stratum = None
    if by_stratum:
        names, code = _strata(cells)
        bucket = np.repeat(np.arange(starts.size), np.diff(np.append(starts, value.size)))
        again = np.lexsort([code[order], bucket])
        order, value = order[again], value[again]
        key = bucket * names.size + code[order]
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
    place = np.empty(value.size, dtype=np.int64)
    place[order] = np.repeat(np.arange(starts.size), sizes)
    return ScoreTable(
        mean,
        **{name: total(getattr(cells, name)[order]) for name in COUNTS},
        decided=total((cells.missing * cells.decision)[order]),
        column=place[data.missing_cells],
        place=place,
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
    place = np.arange(cells.score.size)
    if place.size > _MAX_JOINT:
        n_levels = int((_MAX_JOINT / 2) ** (1.0 / (1 + len(values))))
        code = _levels(cells.score, cells.total, n_levels)
        code = 2 * code + (0 if data.threshold is None else (cells.score >= data.threshold).astype(np.int64))
        for value in values:
            code = n_levels * code + _levels(value, cells.total, n_levels)
        place = np.unique(code, return_inverse=True)[1]
    rows = cells.total.astype(np.float64)
    total = _sums(place, rows)
    score, *means = (
        value if place.size == total.size else _sums(place, rows * value) / total for value in (cells.score, *values)
    )
    table = ScoreTable(
        score,
        positives=_sums(place, cells.positives),
        negatives=_sums(place, cells.negatives),
        missing=_sums(place, cells.missing),
        decided=_sums(place, cells.missing * cells.decision),
        column=place[data.missing_cells],
        place=place,
        cells=cells,
    )
    return table, means


def _sums(place: IntArray, values: AnyArray) -> FloatArray:
    return np.asarray(np.bincount(place, values), dtype=np.float64)


def _levels(value: FloatArray, rows: IntArray, n_levels: int) -> IntArray:
    """Return the level of each value, of `n_levels` with about equally many rows; equal values share a level."""
    distinct, code = np.unique(value, return_inverse=True)
    before = np.cumsum(np.bincount(code, rows, distinct.size))
    level: IntArray = np.minimum((before / before[-1] * n_levels).astype(np.int64), n_levels - 1)[code]
    return level


def _strata(cells: Cells) -> tuple[IntArray, IntArray]:
    """The strata there are, and which of them each cell belongs to."""
    if cells.stratum is None:
        fix = f"Pass {setting('strata')} to the mechanism when building the EvaluationSet, or to evaluate."
        raise InputError("strata", "none with these rows", "", fix)
    names, code = np.unique(cells.stratum, return_inverse=True)
    if names.size > MOST_STRATA:
        raise InputError(
            "strata", f"{names.size:,} different strata", f"There may be at most {MOST_STRATA}.", "Join neighbors."
        )
    return names, code


def _bucket_starts(ranked: FloatArray, rows: IntArray, threshold: float | None) -> IntArray:
    """Where the rows of the table begin in the sorted values: a row per value, or per bucket if these are too many.

    No bucket reaches across the threshold, where the chance of getting a label may jump.
    """
    new = np.ones(ranked.size, dtype=np.bool_)
    new[1:] = ranked[1:] != ranked[:-1]
    if int(new.sum()) > 2 * _BUCKETS:
        probabilities = ranked[0] >= 0.0 and ranked[-1] <= 1.0
        x = np.asarray(logit(np.clip(ranked, 1e-12, 1.0 - 1e-12)) if probabilities else ranked)
        reach = float(x[-1] / 2.0 - x[0] / 2.0)  # halves, so that the range of huge scores stays finite
        by_value = np.floor((x / 2.0 - x[0] / 2.0) * (_BUCKETS / reach)) if reach > 0.0 else np.zeros(x.size)
        before = np.cumsum(rows, dtype=np.float64)
        by_count = np.floor(before * (_BUCKETS / before[-1]))
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
