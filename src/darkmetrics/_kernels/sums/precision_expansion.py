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
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant, left_out, stand_ins, steps_left

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

    def _blocks(self, p: FloatArray, column: IntArray, weight: FloatArray) -> "_Blocks":
        if not (self._kept and self._kept[0][0] is column):
            self._kept[:] = [(column, self._groups.parts(column, p.shape[1]))]
        return self._groups.blocks(self._kept[0][1], p, column, weight)

    def moments(self, p: FloatArray, column: IntArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance at nodes, those that `at` expands; nan where nothing is positive."""
        found = self._blocks(p, column, weight).quadratic(p)
        with np.errstate(invalid="ignore"):
            mean = found.mean
            return mean, found.variance(mean) / found.total**2

    def at(self, p: FloatArray, column: IntArray, weight: FloatArray) -> PrecisionLaws | None:
        """Expansions at nodes of this weight (rows of `p`), cells in a `column` of it; None where nothing varies."""
        blocks = self._blocks(p, column, weight)
        found = blocks.quadratic(p)
        if not (np.all(found.k2.sum(axis=1) > 0.0) and np.all(found.total > 0.0)):
            return None
        mean, (_, variance, third, fourth) = found.mean, found.cumulants(found.mean)
        if not np.all(variance > 0.0):
            return None
        sd = np.sqrt(variance) / found.total
        cumulants = [
            np.stack(each, axis=1) for each in zip(*map(found.cumulants, settling_places(mean, sd).T), strict=True)
        ]
        v, off_mean = p * (1.0 - p), found.slope - mean[:, None]
        expansions = Expansions(
            polynomials_of(cumulants), mean, sd, v @ blocks.parts[-1].sum(axis=1), np.zeros(mean.size)
        )
        fifth = np.asarray(bernoulli_cumulant(5, p) @ blocks.parts[-2])
        off = left_out(variance, third, fourth, np.abs(fifth * off_mean**5).sum(axis=1))
        # Of pairs that spread the law by themselves the higher cumulants are left out.
        off += (found.of_pairs / variance) ** 1.5
        middle = int(np.argmin(np.abs(mean - float(weight @ mean) / weight.sum())))
        return PrecisionLaws(expansions, off + blocks.steps(v[middle], off_mean[middle], variance[middle]))


class _Quadratic(NamedTuple):
    """Q - t P at each node, quadratic in the positive weights of the blocks: what its cumulants are made of."""

    # Means of Q and P, and the variance that pairs of blocks have by themselves: nodes.
    mean_q: FloatArray
    total: FloatArray
    of_pairs: FloatArray
    # Slope of Q, 1 / S where labels vary, and cumulants of orders two to four: nodes x blocks; pairs within a block.
    slope: FloatArray
    share: FloatArray
    k2: FloatArray
    k3: FloatArray
    k4: FloatArray
    bend: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Where the mean of Q - t P is zero."""
        return self.mean_q / self.total

    def variance(self, t: FloatArray) -> FloatArray:
        g = self.slope - t[:, None]
        result: FloatArray = (self.k2 * g * g + 2.0 * self.k3 * g * self.bend).sum(axis=1) + self.of_pairs
        return result

    def cumulants(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Cumulants of Q - t P at the t of each node."""
        g = self.slope - t[:, None]
        y = self.k2 * g
        later = np.cumsum((self.share * y)[:, ::-1], axis=1)[:, ::-1] - self.share * y
        turned = 2.0 * self.bend * y + self.share * (np.cumsum(y, axis=1) - y) + later
        third = (self.k3 * g**3 + 3.0 * y * turned + 3.0 * self.k4 * g**2 * self.bend).sum(axis=1)
        fourth = (self.k4 * g**4 + 12.0 * (self.k2 * turned + self.k3 * g**2) * turned).sum(axis=1)
        return self.mean_q - t * self.total, self.variance(t), third, fourth


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

    def quadratic(self, p: FloatArray) -> _Quadratic:
        """Average precision at nodes with these chances."""
        of_order = [bernoulli_cumulant(order, p) for order in range(1, 5)]
        pairs = zip((1, 1, 2, 2, 3, 4), self.parts, strict=False)
        K, A, V, T2, k3, k4 = (np.asarray(of_order[order - 1] @ part) for order, part in pairs)
        K, A = K + self.known, A + self.known_inner
        before = np.cumsum(K, axis=1) - K
        after = np.cumsum(A[:, ::-1], axis=1)[:, ::-1] - A
        share = np.where(V > 0.0, T2 / np.where(V > 0.0, V, 1.0), self.share)
        # The variance of a square: nothing for a single row of chance one half, and rounding may leave less than that.
        of_square = np.maximum(2.0 * V**2 + k4, 0.0)
        of_pairs = self.bend**2 * of_square + V * (np.cumsum(V, axis=1) - V) * share**2
        return _Quadratic(
            mean_q=(before * A + self.bend * K**2 + T2).sum(axis=1),
            total=K.sum(axis=1),
            of_pairs=of_pairs.sum(axis=1),
            slope=before * share + 2.0 * self.bend * K + after,
            share=share,
            k2=V,
            k3=k3,
            k4=k4,
            bend=self.bend,
        )

    def steps(self, v: FloatArray, slope: FloatArray, variance: float) -> float:
        """What is left of the characteristic function beyond the expansion, as some of the cells tell.

        `|phi(t)| <= exp(-sum v_i (1 - cos(t u_i)))`.
        """
        order = np.argsort(self.ranking.group, kind="stable")
        own = self.ranking.missing[order] * v[self.column[order]]
        moved = self.ranking.weight[order] * slope[self.block[order]]
        some, times = stand_ins(own, moved, _CELLS_ASKED)
        return steps_left(times * own[some], moved[some], variance)
