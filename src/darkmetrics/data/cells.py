"""The table of cells: rows that are alike, counted by label; and what its sums are, each made once."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.age_grid import Ages, read_ages
from darkmetrics._kernels.arrays import AnyArray, BoolArray, CountArray, FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.storing import made_of
from darkmetrics.tables import html_lines, html_table

COUNTS = ("positives", "negatives", "missing")
# What tells rows apart for label models, and not for metrics.
KINDS = ("stratum", "age", "propensity")


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows alike in score, decision, weight, probability, stratum, age and propensity, counted by label; by score.

    Where scores were counted in bins, `score`, `low` and `high` are the mean, smallest and largest score of the rows
    in the bin (on one side of the threshold): the same for all cells of a bin, which are ties.

    `stratum` is a number that the user gives to rows of one kind (an age band, a segment): label models may tell such
    rows apart, metrics do not. `age` is a number that holds the bins of age and delay, which `ages` returns: models of
    delayed labels use them. `propensity` is the chance that such a row would get its label.

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
    age: IntArray | None = None
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
        """Smallest and largest true score of each group of ties; both are the score where there are no bins."""
        starts = self.tie_starts
        low, high = (self.score, self.score) if self.low is None or self.high is None else (self.low, self.high)
        if starts is None:
            return low, high
        return np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)

    @cached_property
    def ages(self) -> Ages | None:
        """Bins of the ages and delays of each cell; None if rows have no ages."""
        return None if self.age is None else read_ages(self.age)

    def arrays(self) -> dict[str, Any]:
        """The columns of the table by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def kinds(self) -> dict[str, AnyArray]:
        """Return the columns that tell rows apart for label models alone, by name."""
        return {name: array for name in KINDS if (array := getattr(self, name)) is not None}

    def without_kinds(self) -> "Cells":
        """Return the same cells as metrics see them; cells that differ in their kinds alone stay apart."""
        none: dict[str, Any] = dict.fromkeys(KINDS)
        return replace(self, **none)

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
    order, kinds = np.argsort(rows.score), rows.kinds()
    score = rows.score[order]
    score += 0.0  # -0.0 and 0.0 are one score
    tied = bool(np.any(score[1:] == score[:-1]))
    keys: list[AnyArray] = [score]
    if tied:
        other: list[AnyArray] = [
            key
            for key in (apart, *reversed(kinds.values()), rows.decision if split else None, rows.weight)
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
        **{name: kind[kept] for name, kind in kinds.items()},
    )
    return cells, kept


class Totals:
    """The sums over cells that metrics and label models ask for, and what is printed of them."""

    cells: Cells
    # Scores are in so many bins (see `bins` of `EvaluationSet.from_frame`); None: they are exact.
    score_bins: int | None
    # A number for the group that the rows of each cell belong to; None where every row is one of its own.
    groups: IntArray | None = None
    # One and the same thing for the sets of all models of a comparison, whose rows are the same.
    compared: object | None = None

    __getstate__ = made_of

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def _counts(self) -> dict[str, int]:
        c = self.cells
        return {
            "positives": int(c.positives.sum()),
            "negatives": int(c.negatives.sum()),
            "missing": int(c.missing.sum()),
            "decided": int(c.total[c.decision].sum()),
            "decided_missing": int(c.missing[c.decision].sum()),
        }

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_labeled + self.n_missing

    @property
    def n_labeled(self) -> int:
        """Number of rows with a label."""
        return self._counts["positives"] + self._counts["negatives"]

    @property
    def n_missing(self) -> int:
        """Number of rows without a label."""
        return self._counts["missing"]

    @cached_property
    def missing_cells(self) -> IntArray:
        """Indices of the cells that hold missing rows; probabilities of labels are aligned with these.

        Rows of weight zero are left out: no metric depends on their labels.
        """
        weight = self.cells.weight
        return np.flatnonzero(self.cells.missing if weight is None else self.cells.missing * weight)

    @property
    def counts_at_all(self) -> bool:
        """Whether a row has a weight above zero; a set always has one, a group of a table need not."""
        return self.cells.weight is None or bool(self.cells.weight.any())

    @cached_property
    def dust(self) -> float:
        """A weight so small that it can only be the rounding error of a sum; zero when every row counts once."""
        weight = self.cells.weight
        if weight is None:
            return 0.0
        return min(1e-12 * float(self.cells.mass(self.cells.total).sum()), 0.5 * float(weight[weight > 0.0].min()))

    @cached_property
    def missing_counts(self) -> IntArray:
        """Missing rows in each of the `missing_cells`."""
        counts: IntArray = self.cells.missing[self.missing_cells].astype(np.int64)
        return counts

    @cached_property
    def missing_by_decision(self) -> tuple[IntArray, IntArray]:
        """Positions within `missing_cells` of the cells decided positive, and of those decided negative."""
        decided = self.cells.decision[self.missing_cells]
        return np.flatnonzero(decided), np.flatnonzero(~decided)

    @cached_property
    def by_decision(self) -> dict[str, tuple[float, float]]:
        """Weight of the positive, negative and missing rows that are decided positive, and decided negative."""
        cells, yes = self.cells, self.cells.decision
        sums = {}
        for name in COUNTS:
            counts = getattr(cells, name)
            if cells.weight is None:
                inside = int(counts[yes].sum(dtype=np.int64))
                sums[name] = (float(inside), float(self._counts[name] - inside))
            else:
                mass = cells.mass(counts)
                sums[name] = (float(mass @ yes), float(mass @ ~yes))
        return sums

    @property
    def unequal_weights(self) -> bool:
        """Whether missing rows count differently: laws are then sums over lattices and no longer over counts."""
        weight = self.missing_weight
        return weight is not None and bool(weight.size) and bool(np.ptp(weight) > 0.0)

    @property
    def missing_weight(self) -> FloatArray | None:
        """Weight of a row in each of the `missing_cells`; None when every row counts once."""
        return None if self.cells.weight is None else self.cells.weight[self.missing_cells]

    def counts(self) -> dict[str, int]:
        """Rows, labeled, positive, negative and missing, as plain numbers."""
        counts = self._counts
        return {
            "rows": self.n_rows,
            "labeled": self.n_labeled,
            "positive": counts["positives"],
            "negative": counts["negatives"],
            "missing": counts["missing"],
        }

    def __repr__(self) -> str:
        cells = counted(self.cells.score.size, "cell")
        if self.score_bins is not None:
            cells += f" in {self.score_bins:,} score bins"
        return f"EvaluationSet({counted(self.n_rows, 'row')}, {self.n_missing:,} missing, {cells})"

    def __str__(self) -> str:
        counts = self._counts
        n, m, yes, yes_missing = self.n_rows, self.n_missing, counts["decided"], counts["decided_missing"]
        return (
            f"{counted(n, 'row')}: {self.n_labeled:,} labeled ({counts['positives']:,} positive, "
            f"{counts['negatives']:,} negative), {m:,} missing ({m / max(n, 1):.1%})\n"
            f"{yes:,} positive decisions ({yes_missing:,} of them missing their label), "
            f"{n - yes:,} negative ({m - yes_missing:,})"
        )

    def _repr_html_(self) -> str:
        sums = self.by_decision.values()
        rows = [
            [
                f"decided {side}",
                *(f"{of[i]:,.6g}" if self.cells.weight is not None else f"{int(of[i]):,}" for of in sums),
            ]
            for i, side in enumerate(("positive", "negative"))
        ]
        header = ["rows" if self.cells.weight is None else "weight of rows", "positive", "negative", "missing"]
        return f"<div>{html_lines(str(self).splitlines())}{html_table(header, rows)}</div>"
