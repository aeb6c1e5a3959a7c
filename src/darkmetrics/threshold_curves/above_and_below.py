"""What lies above and below each threshold: sums over rows, for all thresholds and nodes from one pass."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.data.cells import COUNTS
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.functional import merged_keys
from darkmetrics.nodes import Nodes, columns_of

# Numbers held at once: nodes x thresholds, and nodes x cells.
_MOST_NUMBERS = 1 << 21


class Blocks:
    """Rows between neighbouring thresholds, counted; `block` is the number of thresholds at or below a row's score.

    Sums above and below a threshold are added up from their own ends, so that few rows above a high threshold are not
    what is left of a difference of large numbers.
    """

    def __init__(self, data: EvaluationSet, nodes: Nodes, thresholds: FloatArray) -> None:
        self.data, self.nodes, self.size = data, nodes, thresholds.size
        cells = data.cells
        cuts = np.searchsorted(cells.score, thresholds)
        of_cell = np.repeat(np.arange(self.size + 1), np.diff(np.concatenate(([0], cuts, [cells.score.size]))))
        self.known = {
            name: _either_side(np.bincount(of_cell, cells.mass(getattr(cells, name)), self.size + 1)) for name in COUNTS
        }
        block = of_cell[data.missing_cells]
        weight = data.missing_weight
        count = data.missing_counts.astype(np.float64)
        self.least = self._least_weights(block, weight)
        self.column: IntArray = columns_of(nodes)
        self.block: IntArray = block
        # Rows, their weights and the squares of these: per missing cell, or per column within a block.
        self.rows = [count, count if weight is None else count * weight, count if weight is None else count * weight**2]
        if nodes.bucket is not None:
            first, owner = merged_keys(block, nodes.bucket)
            self.block, self.column = block[first], nodes.bucket[first]
            self.rows = [np.bincount(owner, rows, first.size).astype(np.float64) for rows in self.rows]

    def _least_weights(self, block: IntArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """The smallest weight of a missing row above and below each threshold; 1 where there is none."""
        if weight is None:
            return np.ones(self.size), np.ones(self.size)
        least = np.full(self.size + 1, np.inf)
        np.minimum.at(least, block, weight)
        above, below = np.minimum.accumulate(least[:0:-1])[::-1], np.minimum.accumulate(least[:-1])
        return np.where(np.isinf(above), 1.0, above), np.where(np.isinf(below), 1.0, below)

    def stretches(self) -> Iterator["Stretch"]:
        """The thresholds in stretches, short enough for every node at once."""
        length = max(1, _MOST_NUMBERS // len(self.nodes))
        starts = np.arange(0, self.size, length)
        total = _Totals(self, starts)
        for i, start in enumerate(starts.tolist()):
            yield Stretch(self, i, slice(start, min(start + length, self.size)), total)

    def sums(self, kind: str, starts: IntArray) -> FloatArray:
        """Sums at each node (nodes x stretches) over the cells from each start to the next."""
        result = np.zeros((len(self.nodes), starts.size - 1))
        held = np.flatnonzero(np.diff(starts))
        if not held.size:
            return result
        inside = slice(int(starts[0]), int(starts[-1]))
        column, rows = self.column[inside], [part[inside] for part in self.rows]
        step = max(1, _MOST_NUMBERS // column.size)
        for first in range(0, len(self.nodes), step):
            some = slice(first, first + step)
            term = _term(kind, self.nodes.probability[some][:, column], rows)
            result[some, held] = np.add.reduceat(term, starts[held] - starts[0], axis=1)
        return result


class _Totals:
    """Sums over each stretch of thresholds and over what lies above the last of them, made when first asked for."""

    def __init__(self, blocks: Blocks, starts: IntArray) -> None:
        self._blocks = blocks
        self._starts = np.concatenate(
            (np.searchsorted(blocks.block, np.append(starts, blocks.size)), [blocks.block.size])
        )
        self._kept: dict[str, tuple[FloatArray, FloatArray]] = {}

    def outside(self, kind: str, stretch: int) -> tuple[FloatArray, FloatArray]:
        """Sums at each node above the stretch and below it."""
        if kind not in self._kept:
            sums = self._blocks.sums(kind, self._starts)
            after = np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1]
            before = np.pad(np.cumsum(sums[:, :-1], axis=1), ((0, 0), (1, 0)))
            self._kept[kind] = after, before
        after, before = self._kept[kind]
        return after[:, stretch, None], before[:, stretch, None]


class Stretch:
    """Some neighbouring thresholds: the known counts, and sums over missing rows at every node (nodes x thresholds)."""

    def __init__(self, blocks: Blocks, number: int, where: slice, totals: _Totals) -> None:
        self._blocks, self._number, self.where, self._totals = blocks, number, where, totals
        (self.tp, self.fn), (self.fp, self.tn), self.open = (
            tuple(side[where] for side in blocks.known[name]) for name in COUNTS
        )
        self.yes, self.no = self.tp + self.fp + self.open[0], self.fn + self.tn + self.open[1]
        self.least = tuple(side[where] for side in blocks.least)

    @cached_property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Expected positive weight among the missing rows above and below each threshold."""
        return self._sums("mean")

    @cached_property
    def variances(self) -> tuple[FloatArray, FloatArray]:
        """Its variance."""
        return self._sums("variance")

    @cached_property
    def none(self) -> tuple[FloatArray, FloatArray]:
        """Probability that no missing row above, or below, is positive."""
        above, below = self._sums("log none")
        return np.exp(above), np.exp(below)

    @cached_property
    def all(self) -> tuple[FloatArray, FloatArray]:
        """Probability that every missing row above, or below, is positive."""
        above, below = self._sums("log all")
        return np.exp(above), np.exp(below)

    def _sums(self, kind: str) -> tuple[FloatArray, FloatArray]:
        blocks, first, last = self._blocks, self.where.start, self.where.stop
        sums = blocks.sums(kind, np.searchsorted(blocks.block, np.arange(first, last + 1)))
        after, before = self._totals.outside(kind, self._number)
        above = np.cumsum(np.concatenate((after, sums[:, :0:-1]), axis=1), axis=1)[:, ::-1]
        return above, np.cumsum(np.concatenate((before + sums[:, :1], sums[:, 1:]), axis=1), axis=1)


def _term(kind: str, p: FloatArray, rows: list[FloatArray]) -> Any:
    if kind == "mean":
        return p * rows[1]
    if kind == "variance":
        return p * (1.0 - p) * rows[2]
    with np.errstate(divide="ignore"):
        return (np.log1p(-p) if kind == "log none" else np.log(p)) * rows[0]


def _either_side(sums: Any) -> tuple[FloatArray, FloatArray]:
    """What lies above each threshold and below it, from the sums of the blocks."""
    return np.cumsum(sums[:0:-1])[::-1], np.cumsum(sums[:-1])
