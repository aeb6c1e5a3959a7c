"""Moments of the weighted labels of groups of rows at the nodes, and how their characteristic functions die away."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, dots
from darkmetrics._kernels.sums.smooth import FINE, LAST, bernoulli_cumulant, cosines, stand_ins, turned
from darkmetrics.functional import Split
from darkmetrics.posterior import Posterior, columns_of

# Cells of a group that are asked for their part in its characteristic function, beside as many that have much of it.
_CELLS_ASKED = 1024
# Frequencies at most; the damping beyond which nothing is left of a peak, even if that is half as much by all rows; and
# terms that are added up where something is left.
_MOST_FREQUENCIES, _GONE, _TURNS = 1 << 14, 24.0, 1 << 21


class GroupSums:
    """Moments of the weighted labels of each group of rows, shared by all metrics of these groups.

    Rows of one column have one chance: what depends on their weights is added up before the nodes are gone through.
    """

    def __init__(self, split: Split, missing: IntArray, nodes: Posterior, like: "GroupSums | None" = None) -> None:
        self._split, self._missing, self._nodes, self._like = split, missing, nodes, like

    @cached_property
    def columns(self) -> "list[WeightSums]":
        """Of each group, the columns of the chances that its rows have."""
        if self._like is not None:
            return [group.at(self._nodes) for group in self._like.columns]
        column: IntArray = columns_of(self._nodes)
        weight = self._split.weight
        return [
            WeightSums.of(column[rows], self._missing[rows], None if weight is None else weight[rows], self._nodes)
            for rows in self._split.groups
        ]

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean, variance, third absolute moment (groups, x nodes if there are several) and largest weight."""
        mean, variance, third, largest = [], [], [], []
        for group in self.columns:
            p = group.p if len(self._nodes) > 1 else group.p[0]
            v = p * (1.0 - p)
            mean.append(dots(p, group.power(1)))
            variance.append(dots(v, group.power(2)))
            third.append(dots(v * (1.0 - 2.0 * v), group.power(3)))
            largest.append(group.heaviest)
        return np.array(mean), np.array(variance), np.array(third), np.array(largest)

    @cached_property
    def cumulants(self) -> list[FloatArray]:
        """Cumulants of orders one to five of each group's sum: nodes x groups each."""
        found = [group.cumulants(5) for group in self.columns]
        none = np.zeros((len(self._nodes), 0))
        return [np.stack([each[i] for each in found], axis=1) if found else none for i in range(5)]

    @cached_property
    def damping(self) -> "list[Damping]":
        """How each group's characteristic function dies away, and where it comes back."""
        return [group.damping() for group in self.columns]

    def chances(self, group: int, *, positive: bool) -> FloatArray:
        """Probability at each node that all missing rows of a group are positive, or that all are negative."""
        own = self.columns[group]
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(own.p) if positive else np.log1p(-own.p)
            return np.exp(np.where(own.counts > 0.0, log, 0.0) @ own.counts)

    def chance_of_all(self, *, positive: bool) -> float:
        """Probability that all missing rows are positive, or that all are negative, at the only node."""
        return float(np.prod([self.chances(i, positive=positive)[0] for i in range(len(self._split.groups))]))


class WeightSums(NamedTuple):
    """Rows of one group by the column of their chances (`p`: nodes x columns)."""

    p: FloatArray
    counts: FloatArray
    # Column and number of missing rows of each cell, and their weight where rows differ in it.
    column: IntArray
    missing: IntArray
    weight: FloatArray | None
    # Which columns of the nodes these are, and sums of powers that were asked for before.
    columns: IntArray
    powers: dict[int, FloatArray]

    @classmethod
    def of(cls, column: IntArray, missing: IntArray, weight: FloatArray | None, nodes: Posterior) -> "WeightSums":
        if np.all(column[1:] > column[:-1]):  # each cell has its own, and there is nothing to sort
            columns, own = column, np.arange(column.size)
        else:
            columns, own = np.unique(column, return_inverse=True)
        counts = np.bincount(own, missing, columns.size).astype(np.float64)
        return cls(nodes.probability[:, columns], counts, own, missing, weight, columns, {})

    def at(self, nodes: Posterior) -> "WeightSums":
        """The same rows with the chances of other nodes."""
        return self._replace(p=nodes.probability[:, self.columns])

    def power(self, order: int) -> FloatArray:
        """Sums of weights to this power over the rows of each column."""
        if self.weight is None:
            return self.counts
        if order not in self.powers:
            mass = self.missing * self.weight**order
            self.powers[order] = np.asarray(np.bincount(self.column, mass, self.counts.size), np.float64)
        return self.powers[order]

    def cumulant(self, order: int) -> FloatArray:
        """The cumulant of this order of the sum at each node."""
        return np.asarray(bernoulli_cumulant(order, self.p) @ self.power(order))

    def cumulants(self, orders: int) -> list[FloatArray]:
        """The cumulants of orders one to this one."""
        v = self.p * (1.0 - self.p)
        return [np.asarray(bernoulli_cumulant(i, self.p, v) @ self.power(i)) for i in range(1, orders + 1)]

    def damping(self) -> "Damping":
        """`sum v_i (1 - cos(t w_i))` at each node, finely enough to show where it is small.

        Where even the least of all nodes is large, as some of the cells tell, that stands for every node.
        """
        sd = np.sqrt(self.cumulant(2))
        sd = sd[sd > 0.0] if sd.any() else np.ones(1)
        step = FINE / float(sd.max())
        size = min(_MOST_FREQUENCIES, int(LAST / float(sd.min()) / step) + 2)
        weight = np.ones(self.missing.size) if self.weight is None else self.weight
        v = self.p * (1.0 - self.p)
        least = self.missing * v.min(axis=0)[self.column]
        some, times = stand_ins(least, weight, _CELLS_ASKED)
        damped = turned((times * least[some])[None], weight[some], step, size)[0]
        close = np.flatnonzero(damped < _GONE)
        rows = np.argsort(self.column, kind="stable")
        likely = self.missing[rows] * v.mean(axis=0)[self.column[rows]]
        some, times = stand_ins(likely, weight[rows], _TURNS // max(1, close.size))
        rows = rows[some]
        if close.size == size:
            chances = v[:, self.column[rows]] * (times * self.missing[rows])
            return Damping(step, turned(chances, weight[rows], step, size))
        table = np.repeat(damped[None], v.shape[0], axis=0)
        turns = (times * self.missing[rows])[:, None] * (1.0 - cosines(weight[rows], step, close))
        columns, first = np.unique(self.column[rows], return_index=True)
        table[:, close] = v[:, columns] @ np.add.reduceat(turns, first, axis=0) if rows.size else 0.0
        return Damping(step, table)

    @property
    def heaviest(self) -> float:
        """The largest weight."""
        return float(bool(self.missing.size)) if self.weight is None else float(np.max(self.weight, initial=0.0))


class Damping(NamedTuple):
    """`sum v_i (1 - cos(t w_i))` at multiples of a step of t (nodes x t)."""

    step: float
    table: FloatArray

    def at(self, t: FloatArray) -> FloatArray:
        """The same at these t (nodes x t), by straight lines; zero beyond the table, where nothing is known."""
        nodes, size = self.table.shape
        place = t / self.step
        before = np.minimum(place, size - 2).astype(np.int64)
        left = before + size * np.arange(nodes)[:, None]
        low, high = self.table.ravel()[left], self.table.ravel()[left + 1]
        return np.where(place <= size - 1, low + (place - before) * (high - low), 0.0)
