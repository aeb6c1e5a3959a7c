"""Many rows of a table of scores as few: sums over them of anything smooth in the score stay what they are.

Rows are cut into bins along the line that the scores lie on, and those of a bin are replaced by the two points of
Gauss's rule for them: their number, mean, spread and skewness are the same, so that a sum of a smooth function is off
by the fourth power of the width of a bin. A likelihood then costs as much for a thousand scores as for a hundred.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray

# Bins by place along the line, and by number of rows; breaks of the columns come on top.
_BY_PLACE, _BY_COUNT = 16, 16
# A bin of a heavy tail is wider than this part of what all but the last sixteenths of the rows span: two points do not
# stand for it. It is cut up by how many rows are left towards the end, so often for each half of them.
_WIDE, _BY_HALF = 0.25, 2.0
# Fewer rows than this are not worth it.
LEAST_ROWS = 400


class Few(NamedTuple):
    """Few rows that stand for those of a table: their columns, what they count, and their bin.

    Labelled rows come first, then missing ones. `table_bins` has the bin of each row of the table.
    """

    columns: FloatArray
    labelled: FloatArray
    missing: FloatArray
    bins: IntArray
    table_bins: IntArray

    def counts(self, missing: FloatArray, counts: FloatArray) -> FloatArray:
        """Numbers of missing rows of some kind (columns), which the table has, for the few in its place."""
        size = int(self.table_bins.max()) + 1
        total = np.maximum(np.bincount(self.table_bins, missing, size), 1e-300)
        share = np.stack([np.bincount(self.table_bins, kind, size) / total for kind in counts.T])
        return np.asarray(self.missing * share[:, self.bins]).T


@dataclass(frozen=True, eq=False)
class Along:
    """A table whose columns follow a line along which its rows rise, and bend or jump at `breaks` alone."""

    columns: FloatArray
    line: FloatArray
    breaks: FloatArray
    labelled: FloatArray
    missing: FloatArray

    @cached_property
    def few(self) -> Few | None:
        """Few rows in place of these; None where these are few enough."""
        rows = self.labelled + self.missing
        some = np.flatnonzero(rows)
        if some.size < LEAST_ROWS:
            return None
        bins = np.zeros(rows.size, dtype=np.int64)
        bins[some] = bins_along(self.line[some], rows[some], self.breaks)
        parts = [gauss_points(self.columns, self.line, bins, count) for count in (self.labelled, self.missing)]
        labelled, missing = (part.rows for part in parts)
        return Few(
            np.concatenate([part.columns for part in parts]),
            np.append(labelled, np.zeros(missing.size)),
            np.append(np.zeros(labelled.size), missing),
            np.concatenate([part.bins for part in parts]),
            bins,
        )


class Points(NamedTuple):
    """Columns at each point, how many rows it stands for, and the bin that it is in."""

    columns: FloatArray
    rows: FloatArray
    bins: IntArray


def bins_along(line: FloatArray, rows: FloatArray, breaks: FloatArray) -> IntArray:
    """The bin of each row, from 0 on, of rows in the order of `line`; none reaches across a break.

    A break belongs to the bin above it.
    """
    low, high = float(line[0]), float(line[-1])
    reach = high - low
    by_place = np.floor((line - low) * (_BY_PLACE / reach)) if reach > 0.0 else np.zeros(line.size)
    before = np.cumsum(rows)
    below = (before - 0.5 * rows) / before[-1]
    by_count = np.floor(below * _BY_COUNT)
    by_break = np.searchsorted(breaks, line, side="right")
    bins: IntArray = np.cumsum(_changes(by_place) | _changes(by_count) | _changes(by_break), dtype=np.int64)
    first = np.searchsorted(bins, np.arange(bins[-1] + 2))
    inner = np.searchsorted(below, [1.0 / _BY_COUNT, 1.0 - 1.0 / _BY_COUNT])
    span = float(np.diff(line[np.minimum(inner, line.size - 1)])[0])
    wide = line[first[1:] - 1] - line[first[:-1]] > _WIDE * span
    if not wide.any():
        return bins
    left = np.maximum(np.minimum(below, 1.0 - below), 1e-18)
    by_half = np.sign(below - 0.5) * np.floor(_BY_HALF * np.log2(left))
    return np.cumsum(_changes(bins) | (_changes(by_half) & wide[bins]), dtype=np.int64)


def _changes(level: FloatArray | IntArray) -> BoolArray:
    """Where a row has another level than the one before it."""
    changes = np.zeros(level.size, dtype=np.bool_)
    np.not_equal(level[1:], level[:-1], out=changes[1:])
    return changes


def gauss_points(columns: FloatArray, line: FloatArray, bins: IntArray, count: FloatArray) -> Points:
    """Two points for the rows of each bin, and one where all of them lie in one place.

    Columns are taken as straight along the line within a bin; what they bend there leaves their mean as it is.
    """
    held = np.flatnonzero(count > 0.0)
    if not held.size:
        return Points(columns[:0], count[:0], bins[:0])
    line, bins, count = line[held], bins[held], count[held]
    new = np.append(True, bins[1:] != bins[:-1])
    starts, place = np.flatnonzero(new), np.cumsum(new) - 1
    total = np.add.reduceat(count, starts)

    def means(weighted: FloatArray) -> FloatArray:
        """Of each row in each bin: sums along rows take a fraction of the time of sums down columns."""
        return np.asarray(np.add.reduceat(weighted, starts, axis=1) / total)

    rows = np.empty((columns.shape[1] + 2, held.size))
    rows[0], rows[1:-1] = line, columns[held].T
    first = means(count * rows[:-1])
    off, centre = line - first[0][place], first[1:]
    rows[0], rows[-1] = off, off * off
    rows *= off
    rows *= count
    variance, *mixed, third = means(rows)
    wide = variance > 1e-24 * (1.0 + float(np.abs(line).max()) ** 2)
    sd = np.sqrt(np.where(wide, variance, 1.0))
    half = np.where(wide, 0.5 * third / sd**3, 0.0)
    root = np.sqrt(1.0 + half**2)
    slope = np.array(mixed) / sd**2
    upper, lower = sd * (half + root), sd * (half - root)
    share = 0.5 * (1.0 - half / root)  # of the upper point
    at_upper, at_lower = np.where(wide, centre + slope * upper, centre), (centre + slope * lower)[:, wide]
    return Points(
        np.ascontiguousarray(np.concatenate([at_upper, at_lower], axis=1).T),
        np.concatenate([np.where(wide, share, 1.0) * total, ((1.0 - share) * total)[wide]]),
        np.concatenate([bins[starts], bins[starts][wide]]),
    )
