"""The table of cells: rows that are alike, counted by label."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, CountArray, FloatArray, IntArray

COUNTS = ("positives", "negatives", "missing")
# What tells rows apart for label models, and not for metrics.
KINDS = ("stratum", "propensity")


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows alike in score, decision, weight, probability, stratum and propensity, counted by label; by rising score.

    Where scores were counted in buckets, `score`, `low` and `high` are the mean, smallest and largest score of the rows
    in the bucket (on one side of the threshold): the same for all cells of a bucket, which are ties.

    `stratum` is a number that the user gives to rows of one kind (an age band, a segment): label models may tell such
    rows apart, metrics do not. `propensity` is the chance that such a row would get its label.

    Arrays are held as read-only views, so that a table does not change by accident.
    """

    score: FloatArray
    decision: BoolArray
    positives: CountArray
    negatives: CountArray
    missing: CountArray
    weight: FloatArray | None = None
    probability: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    stratum: IntArray | None = None
    propensity: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, array in self.arrays().items():
            if array is not None:
                view = array.view()  # the array itself may be the user's and stays as it is
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[type["Cells"], tuple[Any, ...]]:
        return Cells, tuple(self.arrays().values())  # copies and pickles are read-only too

    @property
    def total(self) -> CountArray:
        """Rows per cell, whatever their label."""
        return self.positives + self.negatives + self.missing

    @cached_property
    def tie_starts(self) -> IntArray | None:
        """Index of the first cell of each distinct score; None when no two cells share a score."""
        new = np.ones(self.score.size, dtype=np.bool_)
        new[1:] = self.score[1:] != self.score[:-1]
        return None if new.all() else np.flatnonzero(new)

    @cached_property
    def tie_ends(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest true score of each group of ties; both are the score where there are no buckets."""
        starts = self.tie_starts
        low, high = (self.score, self.score) if self.low is None or self.high is None else (self.low, self.high)
        if starts is None:
            return low, high
        return np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)

    def arrays(self) -> dict[str, Any]:
        """The columns of the table by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def take(self, places: IntArray) -> "Cells":
        """Some of the cells, in this order."""
        columns: dict[str, Any] = {name: None if a is None else a[places] for name, a in self.arrays().items()}
        return Cells(**columns)

    def mass(self, counts: CountArray) -> FloatArray:
        """Weight of that many rows of each cell."""
        return counts.astype(np.float64) if self.weight is None else counts * self.weight


def count_type(rows: int) -> type[np.signedinteger[Any]]:
    """Half the memory for counts that cannot overflow: no sum of them exceeds the number of rows."""
    return np.int64 if rows >= 2**31 else np.int32


def group_rows(rows: Cells, *, split: bool, apart: IntArray | None = None) -> tuple[Cells, IntArray]:
    """Sort by score and add up rows with equal keys; `split` when equal scores may have different decisions.

    Rows with different numbers in `apart` stay apart. Also returns one of the rows of each cell.
    """
    order = np.argsort(rows.score)
    score = rows.score[order] + 0.0  # -0.0 and 0.0 are one score
    tied = bool(np.any(score[1:] == score[:-1]))
    keys: list[AnyArray] = [score]
    if tied:
        other: list[AnyArray] = [
            key
            for key in (apart, rows.propensity, rows.stratum, rows.decision if split else None, rows.weight)
            if key is not None
        ]
        if rows.probability is not None:
            other.append(np.where(np.isnan(rows.probability), -1.0, rows.probability))
        if other:
            order = np.lexsort([*other, rows.score + 0.0])
            keys = [rows.score[order] + 0.0, *(key[order] for key in other)]
    kept = order
    dtype = count_type(sum(int(getattr(rows, name).sum(dtype=np.int64)) for name in COUNTS))
    counts = {name: getattr(rows, name)[order].astype(dtype) for name in COUNTS}
    if tied:
        new = np.ones(score.size, dtype=np.bool_)
        new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        starts = np.flatnonzero(new)
        kept, score = order[starts], score[starts]
        counts = {name: np.add.reduceat(count, starts, dtype=dtype) for name, count in counts.items()}
    cells = Cells(
        score=score,
        decision=rows.decision[kept],
        **counts,
        weight=None if rows.weight is None else rows.weight[kept],
        probability=None if rows.probability is None else rows.probability[kept],
        stratum=None if rows.stratum is None else rows.stratum[kept],
        propensity=None if rows.propensity is None else rows.propensity[kept],
    )
    return cells, kept
