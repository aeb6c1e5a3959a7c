"""Metrics of several classes as functions of a few sums of the labels.

A missing row with label k adds one column to the sums. Metrics of the same columns share everything that depends on the
labels and their probabilities: expected sums, covariances, drawn sums.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.distributions.functional import Extremes, Functional

# Values are accurate to this fraction of the metric's size.
_ROUNDING = 4e-15


@dataclass(frozen=True, eq=False)
class ClassSums:
    """For each class k, two sums over the rows with label k: of the marks of the row for k, and of its weight.

    Marks of 1 for the predicted class count correct rows; marks that are ranks lead to ROC-AUC, losses to a mean loss.
    The sums are ordered x_1 ... x_K, a_1 ... a_K.

    Attributes
    ----------
    rows : array (n_cells,)
        Rows without a label.
    weight : array (n_cells,)
        Weight of a row.
    marks : array (n_cells, K)
        Increment of x_k by a row with label k, including its weight.
    constant : array (2 K,)
        Sums of the labeled rows.
    """

    rows: FloatArray
    weight: FloatArray
    marks: FloatArray
    constant: FloatArray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.marks.shape[-1])

    def totals(self, sums: FloatArray) -> FloatArray:
        """Return the weight of each class at sums."""
        return np.asarray(sums[self.n_classes :])

    def expect(self, q: FloatArray) -> FloatArray:
        """Return the expected sums if labels have these probabilities (n_cells x K)."""
        # A BLAS with several threads takes longer than one pass over the rows.
        marks, weight = self._counted
        expected = [np.einsum("ik,ik->k", marks, q), np.einsum("i,ik->k", weight, q)]
        return np.asarray(self.constant + np.concatenate(expected))

    @cached_property
    def _counted(self) -> tuple[FloatArray, FloatArray]:
        """Marks and weights of all rows of each cell."""
        if np.all(self.rows == 1.0):
            return self.marks, self.weight
        return self.marks * self.rows[:, None], self.weight * self.rows

    def expect_columns(self, q: FloatArray) -> FloatArray:
        """Return the expected column of each row (... x n_cells x n_sums)."""
        return np.concatenate([self.marks * q, self.weight[:, None] * q], axis=-1)

    def covariance(self, q: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the covariance of the sums (... x n_sums x n_sums), given the expected columns."""
        result = -np.swapaxes(columns * self.rows[:, None], -1, -2) @ columns
        k = np.arange(self.n_classes)
        k2 = k + k.size
        squares = (self.marks * self.marks, self.marks * self.weight[:, None], self.weight[:, None] ** 2)
        xx, xa, aa = (np.einsum("i,...ik->...k", self.rows, q * square) for square in squares)
        result[..., k, k] += xx
        result[..., k, k2] += xa
        result[..., k2, k] += xa
        result[..., k2, k2] += aa
        return np.asarray(result)

    def project(self, v: FloatArray) -> FloatArray:
        """Return the inner product of each label's column with vectors (... x n_sums): ... x n_cells x K."""
        k = self.n_classes
        return self.marks * v[..., :k] + self.weight[:, None] * v[..., k:]

    def square(self, h: FloatArray) -> FloatArray:
        """Return the quadratic form of each label's column with matrices (... x n_sums x n_sums)."""
        k = np.arange(self.n_classes)
        weight = self.weight[:, None]
        xx, xa, aa = (h[..., i, j][..., None, :] for i, j in ((k, k), (k, k + k.size), (k + k.size, k + k.size)))
        return np.asarray(self.marks * (self.marks * xx + 2.0 * weight * xa) + weight**2 * aa)

    def at_draws(self, q: FloatArray) -> "ClassSums":
        """Return the sums linearized at probabilities (... x n_cells x K); linear sums are returned unchanged."""
        return self

    def for_drawing(self, q: FloatArray) -> "ClassSums":
        """Return the sums that label assignments with these probabilities are evaluated with."""
        return self

    def of_labels(self, labels: IntArray, cell: IntArray) -> FloatArray:
        """Return the sums of label assignments (n x n_rows), given the cell of each row."""
        n, k = len(labels), self.n_classes
        at = (labels + k * np.arange(n)[:, None]).ravel()
        marks = np.take(self.marks.ravel(), labels + k * cell).ravel()
        weight = None if self._is_unit else np.broadcast_to(self.weight[cell], labels.shape).ravel()
        sums = [np.bincount(at, values, n * k).reshape(n, k) for values in (marks, weight)]
        return np.asarray(self.constant[:, None] + np.concatenate(sums, axis=1).T)

    @cached_property
    def _is_unit(self) -> bool:
        return bool(np.all(self.weight == 1.0))

    def add_changes(self, sums: FloatArray, imputation: IntArray, cell: IntArray, label: IntArray, sign: float) -> None:
        """Add (sign 1) or remove (-1) rows with a label to the sums (n_sums x n) of imputations, in place."""
        k, n = self.n_classes, sums.shape[1]
        marks = sign * self.marks[cell, label]
        sums[:k] += np.bincount(label * n + imputation, marks, k * n).reshape(k, n)
        sums[k:] += np.bincount(label * n + imputation, sign * self.weight[cell], k * n).reshape(k, n)

    def take(self, cells: IntArray, factor: FloatArray) -> Self:
        """Return the sums of some of the cells, whose rows count `factor` times."""
        return replace(self, rows=self.rows[cells] * factor, weight=self.weight[cells], marks=self.marks[cells])


@dataclass(frozen=True, eq=False)
class MatrixSums(ClassSums):
    """The confusion matrix: the weight of the rows of each predicted class (c) and label (k), in the order c K + k.

    `marks` has the weight of a row, and `decision` the predicted class of each cell.
    """

    decision: IntArray

    def totals(self, sums: FloatArray) -> FloatArray:
        k = self.n_classes
        return np.asarray(sums.reshape(k, k, *sums.shape[1:]).sum(axis=0))

    def _by_decision(self, values: FloatArray) -> FloatArray:
        result = np.zeros((self.n_classes, self.n_classes))
        np.add.at(result, self.decision, values)
        return result.ravel()

    def expect(self, q: FloatArray) -> FloatArray:
        return self.constant + self._by_decision((self.rows * self.weight)[:, None] * q)

    def expect_columns(self, q: FloatArray) -> FloatArray:
        n, k = len(self.rows), self.n_classes
        result = np.zeros((*q.shape[:-2], n, k, k))
        result[..., np.arange(n), self.decision, :] = self.weight[:, None] * q
        return result.reshape(*q.shape[:-1], k * k)

    def covariance(self, q: FloatArray, columns: FloatArray) -> FloatArray:
        result = -np.swapaxes(columns * self.rows[:, None], -1, -2) @ columns
        at = np.arange(columns.shape[-1])
        result[..., at, at] += np.einsum("i,...ij->...j", self.rows * self.weight, columns)
        return np.asarray(result)

    def project(self, v: FloatArray) -> FloatArray:
        k = self.n_classes
        n = len(self.rows)
        rows = np.broadcast_to(v, (*v.shape[:-2], n, k * k)) if v.ndim > 1 else np.broadcast_to(v, (n, k * k))
        return np.asarray(rows.reshape(*rows.shape[:-1], k, k)[..., np.arange(n), self.decision, :] * self.marks)

    def square(self, h: FloatArray) -> FloatArray:
        k = self.n_classes
        diagonal = np.einsum("...jj->...j", h).reshape(*h.shape[:-2], k, k)
        return np.asarray(diagonal[..., self.decision, :] * self.marks**2)

    def of_labels(self, labels: IntArray, cell: IntArray) -> FloatArray:
        n, size = len(labels), self.n_classes**2
        at = (labels + self.n_classes * self.decision[cell] + size * np.arange(n)[:, None]).ravel()
        weight = np.broadcast_to(self.weight[cell], labels.shape).ravel()
        return np.asarray(self.constant[:, None] + np.bincount(at, weight, n * size).reshape(n, size).T)

    def add_changes(self, sums: FloatArray, imputation: IntArray, cell: IntArray, label: IntArray, sign: float) -> None:
        at = (self.decision[cell] * self.n_classes + label) * sums.shape[1] + imputation
        sums += np.bincount(at, sign * self.weight[cell], sums.size).reshape(sums.shape)

    def take(self, cells: IntArray, factor: FloatArray) -> Self:
        return replace(super().take(cells, factor), decision=self.decision[cells])


@dataclass(frozen=True, eq=False)
class ClassFunctional:
    """A metric of several classes bound to a set: a function of sums of the labels.

    Attributes
    ----------
    sums : ClassSums
        The sums; metrics of one set share them.
    evaluate : callable
        Maps sums (n_sums x ...) to values; NaN: 0/0.
    fill : float
        Value that replaces 0/0; NaN: the distribution is conditional on the metric being defined.
    find_extremes : callable
        Returns bounds over all label assignments that cannot be enumerated.
    terms : callable, optional
        Maps sums to one term per class (K x ...), a function of x_k and a_k alone, if the metric is their sum. The
        derivatives of such metrics are cheap.
    undefined_without, undefined_with : array of bool (K,), optional
        Classes for which a term of an average is 0/0 if the class has no row, or if it has one. The value of
        zero_division replaces such a term.
    needs_all_classes : bool
        Whether the metric jumps where a class has no row.
    size : float
        Order of magnitude of the terms of the metric, for rounding errors.
    """

    sums: ClassSums
    evaluate: Callable[[FloatArray], FloatArray]
    fill: float
    find_extremes: Callable[[], Extremes]
    terms: Callable[[FloatArray], FloatArray] | None = None
    undefined_without: BoolArray | None = None
    undefined_with: BoolArray | None = None
    needs_all_classes: bool = True
    size: float = 1.0
    is_smooth: bool = True

    def at(self, sums: FloatArray) -> FloatArray:
        """Return the metric at sums (n_sums x ...); NaN where it is undefined (0/0)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.evaluate(sums), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)

    @property
    def noise(self) -> float:
        """Rounding error that sums of terms leave in a value."""
        return _ROUNDING * self.size

    @property
    def has_terms(self) -> bool:
        """Whether a 0/0 is replaced in a term, not in the metric."""
        return self.undefined_without is not None

    def count_undefined(self, is_absent: FloatArray) -> FloatArray:
        """Return the probability that a term is 0/0, given the probability that each class has no row (K x ...)."""
        if self.undefined_without is None or self.undefined_with is None:
            return np.zeros(is_absent.shape[1:])
        defined = 1.0 - is_absent[self.undefined_without], is_absent[self.undefined_with]
        return np.asarray(1.0 - np.prod(np.concatenate(defined), axis=0))

    @cached_property
    def extremes(self) -> Extremes:
        """Bounds over all label assignments."""
        return self.find_extremes()


class Event(NamedTuple):
    """A metric that depends on the labels through one event per row: a metric of two classes.

    Attributes
    ----------
    functional : Functional
        The metric of two classes, whose positive rows are those with the event.
    members : array of int (n_cells,) or of bool (n_cells, K)
        The label, or the labels, that make the event of each missing cell of `functional`.
    cell : array of int, optional
        Missing cell of the set of several classes behind each of these cells; None: they are in the same order.
    key : str
        Metrics of one set with the same key have the same events in the same order.
    """

    functional: Functional
    members: IntArray | BoolArray
    cell: IntArray | None
    key: str

    def probability(self, q: FloatArray) -> FloatArray:
        """Return the probability of the event for each missing cell, given those of the labels in the set."""
        if self.members.ndim == 1:
            return np.asarray(q[np.arange(len(q)) if self.cell is None else self.cell, self.members])
        return np.asarray(np.einsum("ik,ik->i", q if self.cell is None else q[self.cell], self.members))
