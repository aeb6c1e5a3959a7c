"""Totals: what the cells of an evaluation set add up to, each sum made once."""

from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.data.cells import COUNTS, Cells
from darkmetrics.storing import made_of
from darkmetrics.tables import html_lines, html_table


class Totals:
    """The sums over cells that metrics and label models ask for, and what is printed of them."""

    cells: Cells
    # Scores are in so many buckets (see `buckets` of `EvaluationSet.from_frame`); None: they are exact.
    buckets: int | None
    # A number for the group that the rows of each cell belong to; None where every row is one of its own.
    groups: IntArray | None = None

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
        return self.n_labelled + self.n_missing

    @property
    def n_labelled(self) -> int:
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
            mass = cells.mass(getattr(cells, name))
            inside = float(mass @ yes)
            sums[name] = (inside, float(mass.sum()) - inside if cells.weight is None else float(mass @ ~yes))
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
        """Rows, labelled, positive, negative and missing, as plain numbers."""
        counts = self._counts
        return {
            "rows": self.n_rows,
            "labelled": self.n_labelled,
            "positive": counts["positives"],
            "negative": counts["negatives"],
            "missing": counts["missing"],
        }

    def __repr__(self) -> str:
        cells = f"{self.cells.score.size:,} cells"
        if self.buckets is not None:
            cells += f" in {self.buckets:,} score buckets"
        return f"EvaluationSet({self.n_rows:,} rows, {self.n_missing:,} missing, {cells})"

    def __str__(self) -> str:
        counts = self._counts
        n, m, yes, yes_missing = self.n_rows, self.n_missing, counts["decided"], counts["decided_missing"]
        return (
            f"{n:,} rows: {self.n_labelled:,} labelled ({counts['positives']:,} positive, "
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
