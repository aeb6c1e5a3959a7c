"""Quadratic terms of sums: a positive row contributes the number of positive rows ranked above it."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PairTerm:
    """Quadratic term of one sum: `sum_g outer_g x_g (x_1 + ... + x_(g-1)) + inner_g x_g^2`.

    x_g is the positive weight of the missing rows of group g. Average precision has such a term, because a positive row
    contributes the number of positive rows ranked above it; ROC-AUC has one if ties count in full.
    """

    sum_index: int
    group: IntArray  # of each cell; every group has at least one cell
    weight: FloatArray  # of one row of each cell
    outer: FloatArray  # n_groups
    inner: FloatArray  # n_groups

    @cached_property
    def _order(self) -> IntArray | None:
        """Order of the cells by group; None if they are sorted."""
        return None if np.all(np.diff(self.group) >= 0) else np.argsort(self.group, kind="stable")

    @cached_property
    def _starts(self) -> IntArray:
        group = self.group if self._order is None else self.group[self._order]
        return np.searchsorted(group, np.arange(self.outer.size))

    def sum_by_group(self, x: FloatArray) -> FloatArray:
        """Sum values of cells (last axis) over the cells of each group."""
        if self._order is not None:
            x = x[..., self._order]
        if self.outer.size == self.group.size:
            return x
        result: FloatArray = np.add.reduceat(x, self._starts, axis=-1)
        return result

    def value(self, x: FloatArray) -> FloatArray:
        """Return the term for these positive weights of the groups (last axis)."""
        above = np.cumsum(x, axis=-1) - x
        result: FloatArray = (x * (self.outer * above + self.inner * x)).sum(axis=-1)
        return result

    def slope(self, x: FloatArray) -> FloatArray:
        """Return the derivative of the term by the label of one row of each cell."""
        above = np.cumsum(x, axis=-1) - x
        weighted = self.outer * x
        below = np.cumsum(weighted[..., ::-1], axis=-1)[..., ::-1] - weighted
        return self.weight * (self.outer * above + below + 2.0 * self.inner * x)[..., self.group]

    def slope_of_squares(self, p: FloatArray) -> FloatArray:
        """Return the contribution of the square of a row's deviation to its slope.

        A label equals its square, so the squared deviation from p is p (1 - p) plus 1 - 2p times the deviation.
        """
        return (1.0 - 2.0 * p) * self.inner[self.group] * self.weight**2

    def variance(self, v: FloatArray, rows: IntArray) -> FloatArray:
        """Return the variance of the products of different rows, given the label variance and rows of each cell."""
        cell_variance = v * self.weight**2
        group, within = self.sum_by_group(cell_variance), self.sum_by_group(cell_variance**2 / np.maximum(rows, 1))
        above = np.cumsum(group, axis=-1) - group
        result: FloatArray = (group * self.outer**2 * above + 2.0 * self.inner**2 * (group**2 - within)).sum(axis=-1)
        return result

    def on_cells(self, new_index: IntArray) -> "PairTerm":
        """Return the same term for cells in another order: cell i becomes cell `new_index[i]`."""
        group, weight = np.empty_like(self.group), np.empty_like(self.weight)
        group[new_index], weight[new_index] = self.group, self.weight
        return replace(self, group=group, weight=weight)
