"""Average precision of many random labelings, without holding them (mathematics, section 6).

By falling score let a tie group g have the positive weight `a_g`, and let `F_g` be the positive and `S_g` the whole
weight seen up to it. Average precision times the positive weight is the sum of `a_g F_g / S_g`. Neighbouring groups,
between which S hardly changes, are taken together: the positives found before such a block meet every `1 / S_g` in it
exactly; for pairs within it one value in the middle does, which is off by a known and tiny amount.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray

# Blocks at most; up to as many tie groups are a block each, and nothing is approximated.
_MOST_BLOCKS = 1024
# Rows of a cell that are drawn one by one; the positives of a larger one are one binomial number.
_MOST_SINGLE = 32
# Labels that are drawn at a time, and labelings of which they are.
_PORTION, _LABELINGS = 1 << 19, 128
# Rounding error of a sum in single precision, per term.
_SINGLE = 6e-8


class Ranking(NamedTuple):
    """Tie groups by falling score, and the missing cells: their rows, weight of a row and tie group."""

    known: FloatArray
    total: FloatArray
    missing: IntArray
    weight: FloatArray
    group: IntArray


class _Part(NamedTuple):
    """Labels that are drawn together (rows of cells, or whole cells of many rows), and what is summed of them.

    `sums` maps labels to the weights of `blocks` blocks from `first` on, then to their weights over S and, unless these
    are the weights, to squares of weights, both for blocks of several groups alone. The squares of groups with several
    labels need the sums of these, `tied`.
    """

    cell: IntArray
    rows: IntArray
    first: int
    blocks: int
    sums: "scipy.sparse.csr_array"
    tied: "scipy.sparse.csr_array | None"
    tied_known: FloatArray
    tied_block: IntArray


@dataclass(frozen=True, eq=False)
class PrecisionDraws:
    """What it takes to evaluate average precision on random labelings; every value is within `blur` of the true one."""

    missing: IntArray
    blur: float
    known: FloatArray
    inner_known: FloatArray
    squares: FloatArray
    # 1 / S of each block: of its only group, or in the middle of its groups; and whether it has several.
    share: FloatArray
    several: BoolArray
    weighted: bool
    parts: list[_Part]

    @classmethod
    def of(cls, ranking: Ranking) -> "PrecisionDraws":
        """Blocks for these groups and cells."""
        seen = np.cumsum(ranking.total)
        share = np.divide(1.0, seen, out=np.zeros(seen.size), where=seen > 0.0)
        starts = block_starts(seen)
        block = np.repeat(np.arange(starts.size), np.diff(starts, append=seen.size))
        highest, lowest = np.maximum.reduceat(share, starts), np.minimum.reduceat(share, starts)
        several = np.diff(starts, append=seen.size) > 1
        # The pairs of a block are K (K + ...) / 2 at most K^2, K being its positive weight, which all blocks share.
        largest = ranking.known.copy()
        np.add.at(largest, ranking.group, ranking.missing * ranking.weight)
        off = 0.5 * (highest - lowest) * np.add.reduceat(largest, starts)
        labels = _drawn_labels(ranking)
        blocks = _Blocks(ranking, block, share, several, weighted=True)
        inside = several[block[labels[2]]]
        alone, square = blocks.squares(labels[2], labels[1], ranking.weight[labels[0]])
        weighted = not bool(np.all((alone & (square == ranking.weight[labels[0]]))[inside]))
        # Whole numbers and weights of few rows lose nothing in single precision that matters.
        most = int(np.bincount(block[labels[2]]).max(initial=0))
        single = bool(several.any()) and most <= 512 and bool(np.all(labels[1] == 1))
        return cls(
            missing=ranking.missing,
            blur=(float(off.max()) if several.any() else 0.0) + (_SINGLE * (most + 2) if single else 0.0),
            known=np.add.reduceat(ranking.known, starts),
            inner_known=np.add.reduceat(ranking.known * share, starts),
            squares=np.add.reduceat(ranking.known**2, starts),
            share=np.where(several, 0.5 * (highest + lowest), highest),
            several=several,
            weighted=weighted,
            parts=_parts(blocks._replace(weighted=weighted), labels, np.float32 if single else np.float64),
        )

    def draw(self, runs: Iterable[tuple[FloatArray, int]], rng: np.random.Generator) -> FloatArray:
        """Average precision of random labelings; nan without positives.

        Each run has the chances of the missing cells and a number of labelings.
        """
        # Of its own, and of the fastest kind: what takes time is drawing bytes.
        own = np.random.Generator(np.random.SFC64(rng.integers(2**63, size=4)))
        largest = max(part.cell.size for part in self.parts)
        step = max(1, min(_LABELINGS, 8 * _PORTION // largest))
        # Once for all runs, as memory that is new costs as much as the draws.
        space = np.empty(largest * step, dtype=self.parts[0].sums.dtype)
        sums = np.empty((4, self.share.size * step))
        sizes = ((p, min(step, size - start)) for p, size in runs for start in range(0, size, step))
        return np.concatenate([self._draw(p, size, own, space, sums) for p, size in sizes])

    def _draw(
        self, p: FloatArray, size: int, rng: np.random.Generator, space: AnyArray, of_blocks: FloatArray
    ) -> FloatArray:
        found, inner, squares, before = of_blocks[:, : self.share.size * size].reshape(4, -1, size)
        found[:], several = self.known[:, None], np.flatnonzero(self.several)
        if several.size:
            inner[:], squares[:] = self.inner_known[:, None], self.squares[:, None]
        for part in self.parts:
            labels = space[: part.cell.size * size].reshape(-1, size)
            _labels(part, p[part.cell], labels, rng)
            sums = part.sums @ labels
            here = slice(part.first, part.first + part.blocks)
            found[here] += sums[: part.blocks]
            if several.size:
                inner[here] += sums[part.blocks : 2 * part.blocks]
                squares[here] += sums[-part.blocks :] if self.weighted else sums[: part.blocks]
            if part.tied is not None:
                weight = part.tied_known[:, None] + part.tied @ labels
                np.add.at(squares, part.tied_block, weight**2 - part.tied_known[:, None] ** 2)
        np.cumsum(found, axis=0, out=before)
        everything = before[-1].copy()
        # A block of one group meets its own 1 / S alone, and so do all its pairs.
        own = found[several]
        value = np.einsum("bd,bd->d", before[several] - own, inner[several])
        value += (0.5 * self.share[several]) @ (squares[several] + own**2)
        value += np.where(self.several, 0.0, self.share) @ np.multiply(found, before, out=found)
        result = np.full(size, np.nan)
        np.divide(value, everything, out=result, where=everything > 0.0)
        return result


def block_starts(seen: FloatArray) -> IntArray:
    """First group of each block: within one the weight seen grows by a small factor, which leaves few blocks enough."""
    if seen.size <= _MOST_BLOCKS:
        return np.arange(seen.size)
    place = np.log(np.maximum(seen, np.finfo(np.float64).tiny))
    own = np.diff(seen, prepend=0.0)
    starts = np.zeros(1, dtype=np.int64)
    for growth in np.geomspace(1e-4, 1.0, 60):
        # A group that makes the weight grow by more by itself is a block of its own.
        heavy = own > growth * seen
        new = np.diff(np.floor(place / np.log1p(growth)), prepend=np.nan) != 0.0
        starts = np.flatnonzero(new | heavy | np.append(False, heavy[:-1]))
        if starts.size <= _MOST_BLOCKS:
            break
    return starts


class _Blocks(NamedTuple):
    """Block and 1 / S of each group, which blocks have several groups, and if squares of weights are not weights."""

    ranking: Ranking
    block: IntArray
    share: FloatArray
    several: BoolArray
    weighted: bool

    def squares(self, group: IntArray, rows: IntArray, weight: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Which labels are alone in their group, and what these add to the square of its positive weight."""
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        number = np.diff(starts, append=group.size)
        alone = np.repeat(number == 1, number) & (rows == 1)
        return alone, np.where(alone, weight * (2.0 * self.ranking.known[group] + weight), 0.0)


def _drawn_labels(ranking: Ranking) -> tuple[IntArray, IntArray, IntArray]:
    """Cell, number of rows and group of every label that is drawn, by falling score."""
    order = np.argsort(ranking.group, kind="stable")
    missing = ranking.missing[order]
    number = np.where(missing <= _MOST_SINGLE, missing, 1)
    cell, rows = np.repeat(order, number), np.repeat(np.where(missing <= _MOST_SINGLE, 1, missing), number)
    return cell, rows, ranking.group[cell]


def _parts(blocks: _Blocks, labels: tuple[IntArray, IntArray, IntArray], dtype: type[np.floating]) -> list[_Part]:
    cell, rows, group = labels
    owner = blocks.block[group]
    # A part ends with a block, unless that has one group and is simply a sum.
    size = max(1, _PORTION // _LABELINGS)
    free = np.flatnonzero(~blocks.several[owner] | (np.diff(owner, prepend=-1) != 0))
    ends = free[np.searchsorted(free, np.arange(size, cell.size, size).clip(max=free.max(initial=0)))]
    portions = np.split(np.arange(cell.size), np.unique(ends))
    return [_part(blocks, (cell[some], rows[some], group[some]), dtype) for some in portions if some.size]


def _part(blocks: _Blocks, labels: tuple[IntArray, IntArray, IntArray], dtype: type[np.floating]) -> _Part:
    cell, rows, group = labels
    weight, owner = blocks.ranking.weight[cell], blocks.block[group]
    first, number = int(owner[0]), int(owner[-1] - owner[0]) + 1
    place, inside = owner - first, np.flatnonzero(blocks.several[owner])
    alone, square = blocks.squares(group, rows, weight)
    values, places, at = [weight, (weight * blocks.share[group])[inside]], [place, number + place[inside]], [inside]
    if blocks.weighted:
        values, places, at = [*values, square[inside]], [*places, 2 * number + place[inside]], [inside, inside]
    at = [np.arange(cell.size), *at]
    sums = scipy.sparse.csr_array(
        (np.concatenate(values).astype(dtype), (np.concatenate(places), np.concatenate(at))),
        shape=((3 if blocks.weighted else 2) * number, cell.size),
    )
    shared = np.flatnonzero(blocks.several[owner] & ~alone)
    groups, own = np.unique(group[shared], return_inverse=True)
    tied = (
        scipy.sparse.csr_array((weight[shared].astype(dtype), (own, shared)), shape=(groups.size, cell.size))
        if shared.size
        else None
    )
    return _Part(cell, rows, first, number, sums, tied, blocks.ranking.known[groups], blocks.block[groups])


def _labels(part: _Part, p: FloatArray, out: AnyArray, rng: np.random.Generator) -> None:
    """Positives of each label (labels x labelings): one for a row, a binomial number for a cell of many."""
    _bernoulli(p, out, rng)
    many = np.flatnonzero(part.rows > 1)
    if many.size:
        out[many] = rng.binomial(part.rows[many, None], p[many, None], size=(many.size, out.shape[1]))


def _bernoulli(p: FloatArray, out: AnyArray, rng: np.random.Generator) -> None:
    """Labels with the chances `p` (rows of `out`), from one random byte each.

    A byte is an event with a chance that is a multiple of 1/256, and at most that of the rarer label; what is missing
    to it, less than 1/128, is added at few random places.
    """
    likely = p > 0.5
    scaled = 256.0 * np.minimum(p, 1.0 - p)
    whole = scaled.astype(np.uint8)
    byte = rng.bit_generator.random_raw(-(-out.size // 8)).astype("<u8", copy=False).view(np.uint8)
    # Unsigned bytes: -whole is 256 - whole, but for none, which is every byte and not one.
    level = np.where(likely, -whole, whole)[:, None]
    np.less(byte[: out.size].reshape(out.shape), level, out=out, casting="unsafe")
    out[likely & (whole == 0)] = 1
    # A place is chosen with a chance of 1/128, independently of all others, and then kept with the rest of its own.
    expected = out.size / 128.0
    gaps = int(expected + 8.0 * np.sqrt(expected) + 16.0)
    place = np.cumsum(rng.geometric(1.0 / 128.0, gaps)) - 1
    while place[-1] < out.size:  # eight standard deviations were not enough
        place = np.append(place, place[-1] + np.cumsum(rng.geometric(1.0 / 128.0, gaps)))
    place = place[: np.searchsorted(place, out.size)]
    row = place // out.shape[1]
    kept = rng.random(place.size) < (128.0 * (scaled - whole) / (256.0 - whole))[row]
    out.reshape(-1)[place[kept]] = ~likely[row[kept]]
