"""Functionals of ranks: ROC-AUC and average precision."""

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
        zeros = np.zeros(self.data.group_total.size)
        return (PairTerm(1, self.data.group, self.data.weight, zeros, zeros - 0.5),)

    def at(self, sums: FloatArray) -> FloatArray:
        p, r = sums
        negatives = self.data.total - p
        is_undefined = np.minimum(p, negatives) <= self.data.dust
        auc = 0.5 + r / np.where(is_undefined, np.nan, p * negatives)
        # Rounding errors can leave [0, 1], because the numerator cancels.
        return self.affine(np.clip(auc, 0.0, 1.0))

    def affine(self, auc: FloatArray) -> FloatArray:
        """Return the metric for these values of ROC-AUC."""
        return self.shift + self.scale * auc

    @cached_property
    def spread(self) -> Spread | None:
        """Deviations of the ranks within merged cells."""
        return None if self.merged is None else self.merged.spread()

    def merge(self, column: IntArray) -> tuple[Self, IntArray]:
        data = self.data
        if data.full_ties:  # the increment of a row depends on the labels it is tied with
            return self, column
        equal = bool(np.all(data.weight == data.weight[:1]))
        first, owner = merged_keys(column, None if equal else data.weight)
        rho, rounded = mean_within(owner, data.counts, data.rho)
        counts, weight = add_up(owner, data.counts), data.weight[first]
        own_group, zeros = np.arange(first.size), np.zeros(first.size)
        joined = data._replace(
            counts=counts, weight=weight, rho=rho, group=own_group, group_total=counts * weight, group_known=zeros
        )
        merged = MergedCells(owner, data.counts, data.rho, rho) if rounded else None
        facts: dict[str, Any] = {"bounds": self.extremes, "is_rounded": rounded, "merged": merged}
        return replace(self, data=joined, missing=counts.astype(np.int64), **facts), column[first]

    def _extremes(self) -> Extremes:
        low, high = auc_extremes(self.data)
        # With unequal weights the extremes are proven sharp only if ties count half and one half lies between them.
        equal = bool(np.all(self.data.weight == self.data.weight[:1]))
        if not (equal or (low <= 0.5 <= high and not self.data.full_ties)):
            return self._extremes_or_range()
        first, last = sorted(self.affine(np.array([low, high])).tolist())
        return Extremes(first, last, sharp=True)


class Ranking(NamedTuple):
    """Positive and total weight of tie groups by falling score; rows, row weight and tie group of missing cells."""

    positive: FloatArray
    total: FloatArray
    missing: IntArray
    weight: FloatArray
    group: IntArray


@dataclass(frozen=True, eq=False)
class PrecisionFunctional(Functional):
    """Average precision, through P = sum w Y and the sum over positives of the precision at their score.

    A group g of tied scores contributes a_g F_g / S_g: a_g is its positive weight, F_g the positive weight and S_g the
    total weight ranked at or above it.
    """

    ranking: Ranking

    @cached_property
    def _group_terms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Per tie group: 1 / S, labeled positive weight at or above it, gain by labeled positives at or below it."""
        ranking = self.ranking
        total_above = np.cumsum(ranking.total)
        inverse_total = np.divide(1.0, total_above, out=np.zeros(total_above.size), where=total_above > 0.0)
        positive_above = np.cumsum(ranking.positive)
        gained = np.cumsum((ranking.positive * inverse_total)[::-1])[::-1]
        return inverse_total, positive_above, gained

    @property
    def columns(self) -> FloatArray:
        inverse_total, positive_above, gained = self._group_terms
        linear = (positive_above * inverse_total + gained)[self.ranking.group]
        return np.stack([self.ranking.weight, self.ranking.weight * linear], axis=1)

    @cached_property
    def constant(self) -> FloatArray:
        inverse_total, positive_above, _ = self._group_terms
        positive = self.ranking.positive
        return np.array([positive.sum(), float((positive * inverse_total) @ positive_above)])

    @cached_property
    def pairs(self) -> tuple[PairTerm, ...]:
        if not self.missing.size:
            return ()
        groups, group = np.unique(self.ranking.group, return_inverse=True)
        inverse_total = self._group_terms[0][groups]
        return (PairTerm(1, group, self.ranking.weight, inverse_total, inverse_total),)

    def at(self, sums: FloatArray) -> FloatArray:
        p, gained = sums
        result = np.full(np.shape(p), np.nan)
        np.divide(gained, p, out=result, where=np.asarray(p) > 0.0)
        return np.minimum(result, 1.0)

    def merge(self, column: IntArray) -> tuple[Functional, IntArray]:
        """Merge neighbors in rank; pairs within a merged cell count as if their order were random."""
        inverse_total, pair = self._group_terms[0], self.pairs[0] if self.pairs else None
        if pair is None:
            return self, column
        level = np.floor(-np.log2(np.maximum(inverse_total[self.ranking.group], 1e-300)) * _LEVELS_PER_OCTAVE).astype(
            np.int64
        )
        first, owner = merged_keys(column, level, self.ranking.weight)
        if first.size == column.size:
            return self, column
        rows = self.missing.astype(np.float64)
        counts = add_up(owner, rows)
        cell_inverse = inverse_total[self.ranking.group]
        outer = add_up(owner, rows * cell_inverse) / counts
        rank = add_up(owner, rows * self.ranking.group) / counts
        order = np.argsort(rank, kind="stable")
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        weight = self.ranking.weight[first]
        single = counts == 1.0
        # Two rows of a merged cell are one pair, in random order; rows of a tie group also pair with themselves.
        tied = np.bincount(owner, rows * pair.sum_by_group(rows)[pair.group]) / counts == counts
        inner = np.where(tied | single, outer, 0.5 * outer)
        columns = np.stack([add_up(owner, rows * increment) / counts for increment in self.columns.T], axis=1)
        columns[:, 1] += weight**2 * (outer - inner)
        merged = SumFunctional(
            missing=counts.astype(np.int64),
            fill=self.fill,
            range=self.range,
            bounds=self.extremes,
            is_rounded=True,
            last_digits=self.noise,
            coefficients=(columns, self.constant, (PairTerm(1, position, weight, outer[order], inner[order]),)),
            evaluate=self.at,
        )
        return merged, column[first]

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()
