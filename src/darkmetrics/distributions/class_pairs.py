"""ROC-AUC averaged over pairs of classes: a quadratic function of the labels, linearized where many rows decide."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.class_sums import ClassSums

# Squared rows times squared classes up to which drawn label assignments are evaluated exactly.
_MAX_EXACT = 2**16


class RankedCells(NamedTuple):
    """Cells sorted by the score of one class: order, first cell of each tie group, and group of each cell."""

    order: IntArray
    starts: IntArray
    group: IntArray


@dataclass(frozen=True, eq=False)
class PairSums(ClassSums):
    """The average over pairs of classes (a, b) of the ROC-AUC of a against b, by the score of a.

    The average is the sum of x_1 ... x_K. `marks` has the scores of the missing cells.
    """

    labeled_score: FloatArray
    labeled_mass: FloatArray
    total: float
    is_weighted: bool

    def take(self, cells: IntArray, factor: FloatArray) -> Self:
        return replace(self, rows=self.rows[cells] * factor, weight=self.weight[cells], marks=self.marks[cells])

    @cached_property
    def _ranked(self) -> list[RankedCells]:
        result = []
        for score in np.concatenate([self.labeled_score, self.marks]).T:
            order = np.argsort(score, kind="stable")
            ordered = score[order]
            is_new = np.append(True, ordered[1:] != ordered[:-1])[: order.size]
            group = np.empty(order.size, dtype=np.int64)
            group[order] = np.cumsum(is_new) - 1
            result.append(RankedCells(order, np.flatnonzero(is_new), group))
        return result

    def _count_pairs(self, mass: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the weight of ordered pairs (K x K) and the weight below each group, for weights of cells by class."""
        pairs, below = np.empty((self.n_classes, self.n_classes)), []
        for a, ranked in enumerate(self._ranked):
            in_group = np.add.reduceat(mass[ranked.order], ranked.starts, axis=0)
            below.append(np.cumsum(in_group, axis=0) - 0.5 * in_group)
            pairs[a] = in_group[:, a] @ below[a]
        return pairs, below

    def _average(self, pairs: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the average (...), its derivatives by the pairs (K x K x ...), and by the totals (K x ...)."""
        k = self.n_classes
        products = totals[:, None] * totals[None, :]
        is_pair = (products > 0.0) & ~np.eye(k, dtype=np.bool_).reshape(k, k, *(1,) * (totals.ndim - 1))
        n_present = (totals > 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            area = np.where(is_pair, pairs / products, 0.0)
            if self.is_weighted:
                scale = 0.5 / (self.total * (n_present - 1.0))
                share = np.where(is_pair, (totals[:, None] + totals[None, :]) * scale, 0.0)
                extra = (area + area.swapaxes(0, 1)).sum(axis=1) * scale
            else:
                share, extra = np.where(is_pair, 1.0 / (n_present * (n_present - 1.0)), 0.0), 0.0
            by_pairs = np.where(is_pair, share / products, 0.0)
            lost = ((share * area).sum(axis=1) + (share * area).sum(axis=0)) / totals
        value = np.where(n_present > 1, (share * area).sum(axis=(0, 1)), np.nan)
        return value, by_pairs, np.nan_to_num(extra - lost)

    def _expect_pairs(self, q: FloatArray) -> tuple[FloatArray, list[FloatArray], FloatArray]:
        """Return the expected weight of pairs, the weight below each group, and the weight of each class."""
        mass = (self.rows * self.weight)[:, None] * q
        pairs, below = self._count_pairs(np.concatenate([self.labeled_mass, mass]))
        pairs -= 0.5 * (q * (self.rows * self.weight**2)[:, None]).T @ q  # a row is no pair with itself
        return pairs, below, self.labeled_mass.sum(axis=0) + mass.sum(axis=0)

    def _at(self, q: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the average if labels have these probabilities, its derivative by each label, and the totals."""
        pairs, below, totals = self._expect_pairs(q)
        value, by_pairs, by_totals = self._average(pairs, totals)
        slope = np.broadcast_to(by_totals, q.shape).copy()
        itself = 0.5 * self.weight[:, None] * q
        with_a, with_b = np.empty((2, self.n_classes, self.n_classes))  # covariances of pairs with either total
        square = (self.rows * self.weight**2)[:, None] * q
        for a, ranked in enumerate(self._ranked):
            under = below[a][ranked.group[len(self.labeled_mass) :]] - itself
            over = totals[a] - under[:, a] - 2.0 * itself[:, a]
            slope[:, a] += under @ by_pairs[a]
            slope += over[:, None] * by_pairs[a]
            with_a[a] = (square[:, a] * (1.0 - q[:, a])) @ under - (square[:, a] * over) @ q
            with_b[a] = over @ (square * (1.0 - q)) - ((square[:, a, None] * q) * under).sum(axis=0)
        value = value + self._shift(
            pairs, totals, by_pairs, (with_a, with_b), np.diag(square.sum(axis=0)) - square.T @ q
        )
        return float(value), slope * self.weight[:, None], totals

    def _shift(
        self,
        pairs: FloatArray,
        totals: FloatArray,
        by_pairs: FloatArray,
        covariances: tuple[FloatArray, FloatArray],
        of_totals: FloatArray,
    ) -> FloatArray:
        """Return the second-order term of the mean, which is due to the random weight of the classes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = 1.0 / totals[:, None], 1.0 / totals[None, :]
            variance = np.diagonal(of_totals)
            term = pairs * (variance[:, None] * first**2 + variance[None, :] * second**2 + of_totals * first * second)
            term -= covariances[0] * first + covariances[1] * second
            if self.is_weighted:
                # The weight of a pair is proportional to the sum of its totals: A (1 / t_a + 1 / t_b).
                scale = totals[:, None] + totals[None, :]
                term = pairs * (variance[:, None] * first**3 + variance[None, :] * second**3)
                term -= covariances[0] * first**2 + covariances[1] * second**2
                term = term * totals[:, None] * totals[None, :] / scale
            return np.asarray(np.where(by_pairs > 0.0, by_pairs * term, 0.0).sum())

    def expect(self, q: FloatArray) -> FloatArray:
        value, _, totals = self._at(q)
        result = np.concatenate([np.zeros(self.n_classes), totals])
        result[0] = value
        return result

    def at_draws(self, q: FloatArray) -> ClassSums:
        slopes, constants = [], []
        for probability in q.reshape(-1, *q.shape[-2:]):
            value, slope, totals = self._at(probability)
            labeled = totals - (self.rows * self.weight) @ probability
            constant = np.concatenate([-self.rows @ (slope * probability), labeled])
            constant[0] += value
            slopes.append(slope)
            constants.append(constant)
        constant = constants[0] if q.ndim == 2 else np.array(constants)
        return ClassSums(self.rows, self.weight, np.array(slopes).reshape(q.shape), constant)

    def for_drawing(self, q: FloatArray) -> ClassSums:
        if (self.rows.sum() * self.n_classes) ** 2 <= _MAX_EXACT:
            return self
        return LinearPairs(**{name.name: getattr(self, name.name) for name in fields(self)}, q=q)

    def of_labels(self, labels: IntArray, cell: IntArray) -> FloatArray:
        k, n_labeled = self.n_classes, len(self.labeled_mass)
        fixed, below = self._count_pairs(np.concatenate([self.labeled_mass, np.zeros(self.marks.shape)]))
        fixed_totals = self.labeled_mass.sum(axis=0)
        weight = self.weight[cell]
        by_class = (labels == np.arange(k)[:, None, None]) * weight  # class, assignment, row
        pairs = np.repeat(fixed[:, :, None], len(labels), axis=2)
        for a, ranked in enumerate(self._ranked):
            under = below[a][ranked.group[n_labeled:]][cell]
            score = self.marks[cell, a]
            worth = (score[:, None] > score) + 0.5 * (score[:, None] == score)
            for b in range(k):
                pairs[a, b] += by_class[a] @ under[:, b] + by_class[b] @ (fixed_totals[a] - under[:, a])
                pairs[a, b] += np.einsum("ni,ni->n", by_class[a], by_class[b] @ worth.T)
        totals = fixed_totals[:, None] + by_class.sum(axis=2)
        value, _, _ = self._average(pairs, totals)
        return np.concatenate([value[None], np.zeros((k - 1, len(labels))), totals])


@dataclass(frozen=True, eq=False)
class LinearPairs(PairSums):
    """The same with weights of pairs that are linear in the labels, near labels with probabilities q."""

    q: FloatArray

    def of_labels(self, labels: IntArray, cell: IntArray) -> FloatArray:
        k, q = self.n_classes, self.q
        fixed, below, totals = self._expect_pairs(q)
        itself = 0.5 * self.weight[:, None] * q
        groups = [ranked.group[len(self.labeled_mass) :] for ranked in self._ranked]
        under = [below[a][groups[a]] - itself for a in range(k)]
        over = np.stack([totals[a] - under[a][:, a] - 2.0 * itself[:, a] for a in range(k)], axis=1)
        mass = (self.rows * self.weight)[:, None] * q
        constant = fixed - np.stack([mass[:, a] @ under[a] for a in range(k)]) - over.T @ mass
        pairs = np.repeat(constant[:, :, None], len(labels), axis=2)
        drawn = np.empty((k, len(labels)))
        for a in range(k):
            has_label = (labels == a) * self.weight[cell]
            drawn[a] = has_label.sum(axis=1)
            pairs[a] += (has_label @ under[a][cell]).T
            pairs[:, a] += (has_label @ over[cell]).T
        drawn += self.labeled_mass.sum(axis=0)[:, None]
        area = np.clip(pairs, 0.0, drawn[:, None] * drawn[None, :])
        value, _, _ = self._average(area, drawn)
        return np.concatenate([value[None], np.zeros((k - 1, len(labels))), drawn])
