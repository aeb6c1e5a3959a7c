"""The law of average precision where much is random: an expansion at every t, at one node or many (mathematics, 6).

No ratio is expanded: {AP <= t} = {Q - t P <= 0} with `Q = sum a_g F_g / S_g`, which is quadratic in the labels.
Neighbouring tie groups are taken together to blocks, within which S hardly changes; what is added up within a block is
exact to first order, and the pairs of a block are as they are at the mean of the nodes.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.auc.expansion import Expansions, polynomials_of, settling_places
from darkmetrics._kernels.sums.precision_draws import Ranking, block_starts
from darkmetrics._kernels.sums.smooth import (
    FINE,
    LAST,
    bernoulli_cumulant,
    frequencies_of_steps,
    left_out,
    of_steps,
    stand_ins,
    turned,
)

# Cells that are asked for their part in the characteristic function, beside as many that have much of it.
_CELLS_ASKED = 1024


class PrecisionLaws(NamedTuple):
    """Expansions at the nodes, and what each may be off by: terms that are left out, and steps of the law."""

    expansions: Expansions
    off: FloatArray


@dataclass(frozen=True, eq=False)
class PrecisionExpansion:
    """Average precision of these groups and missing cells."""

    ranking: Ranking
    # The last columns that were asked for, and sums over their cells: other chances of the same ones are as likely.
    _kept: "list[tuple[IntArray, list[scipy.sparse.csr_array]]]" = field(default_factory=list, repr=False)

    @cached_property
    def _groups(self) -> "_Groups":
        return _Groups.of(self.ranking)

    def _parts(self, column: IntArray, columns: int) -> "list[scipy.sparse.csr_array]":
        if not (self._kept and self._kept[0][0] is column):
            self._kept[:] = [(column, self._groups.parts(column, columns))]
        return self._kept[0][1]

    def at(self, p: FloatArray, column: IntArray, weight: FloatArray) -> PrecisionLaws | None:
        """Expansions at nodes of this weight (rows of `p`), cells in a `column` of it; None where nothing varies."""
        blocks = self._groups.blocks(self._parts(column, p.shape[1]), p, column, weight)
        K, A, V, T2, k3, k4, k5 = blocks.sums(p)
        if not (np.all(V.sum(axis=1) > 0.0) and np.all(K.sum(axis=1) > 0.0)):
            return None
        before = np.cumsum(K, axis=1) - K
        after = np.cumsum(A[:, ::-1], axis=1)[:, ::-1] - A
        share = np.where(V > 0.0, T2 / np.where(V > 0.0, V, 1.0), blocks.share)
        slope = before * share + 2.0 * blocks.bend * K + after
        total = K.sum(axis=1)
        mean_q = (before * A + blocks.bend * K**2 + T2).sum(axis=1)
        pairs = 2.0 * (V * blocks.bend) ** 2 + V * (np.cumsum(V, axis=1) - V) * share**2 + k4 * blocks.bend**2
        second = pairs.sum(axis=1)

        def cumulants(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
            """Cumulants of Q - t P, of blocks with these: nodes."""
            g = slope - t[:, None]
            y = V * g
            later = np.cumsum((share * y)[:, ::-1], axis=1)[:, ::-1] - share * y
            turned = 2.0 * blocks.bend * y + share * (np.cumsum(y, axis=1) - y) + later
            variance = (y * g + 2.0 * k3 * g * blocks.bend).sum(axis=1) + second
            third = (k3 * g**3 + 3.0 * y * turned + 3.0 * k4 * g**2 * blocks.bend).sum(axis=1)
            fourth = (k4 * g**4 + 12.0 * (V * turned + k3 * g**2) * turned).sum(axis=1)
            return mean_q - t * total, variance, third, fourth

        mean = mean_q / total
        _, variance, third, fourth = cumulants(mean)
        if not np.all(variance > 0.0):
            return None
        sd = np.sqrt(variance) / total
        found = [np.stack(each, axis=1) for each in zip(*map(cumulants, settling_places(mean, sd).T), strict=True)]
        v = p * (1.0 - p)
        expansions = Expansions(polynomials_of(found), mean, sd, v @ blocks.parts[-1].sum(axis=1), np.zeros(mean.size))
        off = left_out(variance, third, fourth, np.abs(k5 * (slope - mean[:, None]) ** 5).sum(axis=1))
        # Of pairs that spread the law by themselves the higher cumulants are left out.
        off += (second / variance) ** 1.5
        middle = int(np.argmin(np.abs(mean - float(weight @ mean) / weight.sum())))
        return PrecisionLaws(expansions, off + blocks.steps(v[middle], slope[middle] - mean[middle], variance[middle]))


class _Groups(NamedTuple):
    """Tie groups, and the blocks of neighbours among them: first group of each, and the block of every group."""

    ranking: Ranking
    # 1 / S of each group.
    inverse: FloatArray
    starts: IntArray
    owner: IntArray

    @classmethod
    def of(cls, ranking: Ranking) -> "_Groups":
        seen = np.cumsum(ranking.total)
        inverse = np.divide(1.0, seen, out=np.zeros(seen.size), where=seen > 0.0)
        starts = block_starts(seen)
        return cls(ranking, inverse, starts, np.repeat(np.arange(starts.size), np.diff(starts, append=seen.size)))

    def parts(self, column: IntArray, columns: int) -> "list[scipy.sparse.csr_array]":
        """Sums over the missing cells of a column in a block (columns x blocks), as `_Blocks` needs them."""
        rows, w, s = self.ranking.missing, self.ranking.weight, self.inverse[self.ranking.group]
        values = [rows * w, rows * w * s, rows * w**2, rows * w**2 * s, rows * w**3, rows * w**4, rows * w**5, rows]
        keys, own = np.unique(column * self.starts.size + self.owner[self.ranking.group], return_inverse=True)
        place, shape = (keys // self.starts.size, keys % self.starts.size), (columns, self.starts.size)
        return [scipy.sparse.csr_array((np.bincount(own, each, keys.size), place), shape=shape) for each in values]

    def blocks(
        self, parts: "list[scipy.sparse.csr_array]", p: FloatArray, column: IntArray, weight: FloatArray
    ) -> "_Blocks":
        """The blocks, with their pairs as they are at the mean of these nodes."""
        ranking, starts, inverse = self.ranking, self.starts, self.inverse
        mean = (weight @ p / weight.sum())[column]
        groups = ranking.known + np.bincount(ranking.group, ranking.missing * ranking.weight * mean, inverse.size)
        before = np.cumsum(groups)
        inner = groups * (before - (before - groups)[starts][self.owner])
        found, middle = np.add.reduceat(groups, starts), 0.5 * (inverse[starts] + np.minimum.reduceat(inverse, starts))
        some = np.where(found > 0.0, found, 1.0)
        return _Blocks(
            ranking=ranking,
            column=column,
            block=self.owner[ranking.group],
            known=np.add.reduceat(ranking.known, starts),
            known_inner=np.add.reduceat(ranking.known * inverse, starts),
            share=middle,
            bend=np.where(found > 0.0, np.add.reduceat(inner * inverse, starts) / some**2, 0.5 * middle),
            parts=parts,
        )


class _Blocks(NamedTuple):
    """Blocks of neighbouring groups; `parts` (columns x blocks) turn numbers of the columns into sums of the blocks."""

    ranking: Ranking
    column: IntArray
    block: IntArray
    known: FloatArray
    known_inner: FloatArray
    # 1 / S in the middle of the groups, and the pairs within a block as a share of its squared positive weight.
    share: FloatArray
    bend: FloatArray
    # Weight, weight over S, square of the weight, that over S, weights to the third, fourth and fifth power, and rows.
    parts: "list[scipy.sparse.csr_array]"

    def sums(self, p: FloatArray) -> list[FloatArray]:
        """Of each block at each node: means of positive weight and of that over S, variance, that over S, cumulants."""
        orders = (1, 1, 2, 2, 3, 4, 5)
        of_order = [bernoulli_cumulant(order, p) for order in range(1, 6)]
        found = [np.asarray(of_order[order - 1] @ part) for order, part in zip(orders, self.parts[:-1], strict=True)]
        return [found[0] + self.known, found[1] + self.known_inner, *found[2:]]

    def steps(self, v: FloatArray, slope: FloatArray, variance: float) -> float:
        """What is left of the characteristic function beyond the expansion, as some of the cells tell.

        `|phi(t)| <= exp(-sum v_i (1 - cos(t u_i)))`.
        """
        order = np.argsort(self.ranking.group, kind="stable")
        own = self.ranking.missing[order] * v[self.column[order]]
        moved = self.ranking.weight[order] * slope[self.block[order]]
        some, times = stand_ins(own, moved, _CELLS_ASKED)
        step, size = FINE / float(np.sqrt(variance)), round(LAST / FINE)
        damped = turned(times * own[some], moved[some], step, size)
        return float(of_steps(damped[size - frequencies_of_steps().size :]))
