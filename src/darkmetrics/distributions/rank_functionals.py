"""The functionals of ranks: ROC-AUC and average precision."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, merged_keys
from darkmetrics._kernels.auc.cdf_bounds import Spread
from darkmetrics._kernels.auc.ranks import RankData, auc_extremes
from darkmetrics.distributions.functional import Extremes, Functional, SumFunctional
from darkmetrics.distributions.functionals import MergedCells, add_up, mean_within
from darkmetrics.distributions.pairs import PairTerm

# Levels per doubling of the number of rows ranked above, between which ranks are not merged.
_LEVELS_PER_OCTAVE = 4.0


@dataclass(frozen=True, eq=False)
class RankFunctional(Functional):
    """`shift + scale * ROC-AUC`, through P = sum w Y and R = sum w (rho - W/2) Y: ROC-AUC = 1/2 + R / (P (W - P))."""

    data: RankData
    scale: float = 1.0
    shift: float = 0.0
    merged: MergedCells | None = None

    @property
    def columns(self) -> FloatArray:
        data = self.data
        rank = data.rho - 0.5 * data.total
        if data.full_ties:
            rank = rank + (0.5 * data.group_total - data.group_known)[data.group]
        return np.stack([data.weight, data.weight * rank], axis=1)

    @cached_property
    def constant(self) -> FloatArray:
        data = self.data
        tied = 0.0
        if data.full_ties:
            tied = data.settled_ties + 0.5 * float((data.group_known * (data.group_total - data.group_known)).sum())
        return np.array([data.known_p, data.known_r - 0.5 * data.total * data.known_p + tied])

    @cached_property
    def pairs(self) -> tuple[PairTerm, ...]:
        if not self.data.full_ties or not self.missing.size:
            return ()
        none = np.zeros(self.data.group_total.size)
        return (PairTerm(1, self.data.group, self.data.weight, none, none - 0.5),)

    def at(self, sums: FloatArray) -> FloatArray:
        p, r = sums
        pairs = p * (self.data.total - p)
        absent = np.minimum(p, self.data.total - p) <= self.data.dust
        auc = np.full(np.shape(p), np.nan)
        np.divide(r, pairs, out=auc, where=~absent)
        return self.affine(np.clip(0.5 + auc, 0.0, 1.0))  # the numerator cancels, and rounding shows

    def affine(self, auc: FloatArray) -> FloatArray:
        """Return the metric for these values of ROC-AUC."""
        return self.shift + self.scale * auc

    @cached_property
    def spread(self) -> Spread | None:
        """How the ranks differ within the cells that were merged."""
        return None if self.merged is None else self.merged.spread()

    def merge(self, column: IntArray) -> tuple[Self, IntArray]:
        data = self.data
        if data.full_ties:  # the increment of a row depends on the labels it is tied with
            return self, column
        equal = bool(np.all(data.weight == data.weight[:1]))
        first, owner = merged_keys(column, None if equal else data.weight)
        rho, rounded = mean_within(owner, data.counts, data.rho)
        counts, weight = add_up(owner, data.counts), data.weight[first]
        own, none = np.arange(first.size), np.zeros(first.size)
        joined = data._replace(
            counts=counts, weight=weight, rho=rho, group=own, group_total=counts * weight, group_known=none
        )
        merged = MergedCells(owner, data.counts, data.rho, rho) if rounded else None
        facts: dict[str, Any] = {"bounds": self.extremes, "is_rounded": rounded, "merged": merged}
        return replace(self, data=joined, missing=counts.astype(np.int64), **facts), column[first]

    def _extremes(self) -> Extremes:
        low, high = auc_extremes(self.data)
        # With unequal weights the scan is proven sharp only for half ties and extremes on either side of one half.
        equal = bool(np.all(self.data.weight == self.data.weight[:1]))
        if not (equal or (low <= 0.5 <= high and not self.data.full_ties)):
            return self._extremes_or_range()
        first, last = sorted(self.affine(np.array([low, high])).tolist())
        return Extremes(first, last, sharp=True)


class Ranking(NamedTuple):
    """Tie groups by falling score, and the missing cells: their rows, weight of a row and tie group."""

    known: FloatArray
    total: FloatArray
    missing: IntArray
    weight: FloatArray
    group: IntArray


@dataclass(frozen=True, eq=False)
class PrecisionFunctional(Functional):
    """Average precision, through P = sum w Y and the sum over positives of the precision at their score.

    A group g of tied scores with positive weight a_g, found weight F_g (positive weight ranked at or above it) and
    total weight S_g at or above it contributes a_g F_g / S_g.
    """

    ranking: Ranking

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Per tie group: 1 / S, the known weight found up to it, and what known positives from it on gain."""
        ranking = self.ranking
        seen = np.cumsum(ranking.total)
        share = np.divide(1.0, seen, out=np.zeros(seen.size), where=seen > 0.0)
        found = np.cumsum(ranking.known)
        gained = np.cumsum((ranking.known * share)[::-1])[::-1]
        return share, found, gained

    @property
    def columns(self) -> FloatArray:
        share, found, gained = self._parts
        linear = (found * share + gained)[self.ranking.group]
        return np.stack([self.ranking.weight, self.ranking.weight * linear], axis=1)

    @cached_property
    def constant(self) -> FloatArray:
        share, found, _ = self._parts
        known = self.ranking.known
        return np.array([known.sum(), float((known * share) @ found)])

    @cached_property
    def pairs(self) -> tuple[PairTerm, ...]:
        if not self.missing.size:
            return ()
        groups, group = np.unique(self.ranking.group, return_inverse=True)
        share = self._parts[0][groups]
        return (PairTerm(1, group, self.ranking.weight, share, share),)

    def at(self, sums: FloatArray) -> FloatArray:
        p, gained = sums
        result = np.full(np.shape(p), np.nan)
        np.divide(gained, p, out=result, where=np.asarray(p) > 0.0)
        return np.minimum(result, 1.0)

    def merge(self, column: IntArray) -> tuple[Functional, IntArray]:
        """Merge neighbors in rank; pairs within a merged cell count as if its ranks were in random order."""
        share, pair = self._parts[0], self.pairs[0] if self.pairs else None
        if pair is None:
            return self, column
        level = np.floor(-np.log2(np.maximum(share[self.ranking.group], 1e-300)) * _LEVELS_PER_OCTAVE).astype(np.int64)
        first, owner = merged_keys(column, level, self.ranking.weight)
        if first.size == column.size:
            return self, column
        rows = self.missing.astype(np.float64)
        counts = add_up(owner, rows)
        own_share = share[self.ranking.group]
        outer = add_up(owner, rows * own_share) / counts
        rank = add_up(owner, rows * self.ranking.group) / counts
        order = np.argsort(rank, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        weight = self.ranking.weight[first]
        single = counts == 1.0
        # Two rows of a merged cell meet in one order or the other; in a tie group each meets the other and itself.
        tied = np.bincount(owner, rows * pair.sum_by_group(rows)[pair.group]) / counts == counts
        inner = np.where(tied | single, outer, 0.5 * outer)
        columns = np.stack([add_up(owner, rows * own) / counts for own in self.columns.T], axis=1)
        columns[:, 1] += weight**2 * (outer - inner)
        merged = SumFunctional(
            missing=counts.astype(np.int64),
            fill=self.fill,
            range=self.range,
            bounds=self.extremes,
            is_rounded=True,
            last_digits=self.noise,
            parts=(columns, self.constant, (PairTerm(1, place, weight, outer[order], inner[order]),)),
            evaluate=self.at,
        )
        return merged, column[first]

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()
