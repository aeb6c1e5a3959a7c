"""A metric bound to an evaluation set: a function of the missing labels, usually through a few sums of them.

A functional does not depend on probabilities. It returns the metric of any label assignment, and the bounds over all
assignments. With a `Posterior` it has a distribution (`choice.py`, `joint.py`).

Most metrics depend on the labels through sums `S = constant + sum_i columns_i Y_i`, and `at` maps sums to values.
Arrays of sums have the sums on the first axis, followed by other axes (posterior draws, levels, label assignments).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray, merged_keys
from darkmetrics._kernels.sums.enumeration import count_assignments, list_assignments
from darkmetrics.distributions.pairs import PairTerm
from darkmetrics.exceptions import MethodError
from darkmetrics.storing import made_of

MAX_ENUMERATED = 2**15
# Maximum number of kinds of rows that are counted per kind, and cells in the sample that estimates their number.
MAX_FEW_KINDS, _N_SAMPLED = 8, 64
# Values of two metrics that differ by at most this fraction of their size are equal up to rounding.
SAME = 1e-12
# Two units in the last place of a number of size one.
_ROUNDING_NOISE = 4e-16


class Extremes(NamedTuple):
    """Smallest and largest value over all label assignments; `sharp` if some assignment attains each of them."""

    low: float
    high: float
    sharp: bool


@dataclass(frozen=True, eq=False)
class Functional(ABC):
    """A function of the labels of the missing rows.

    Attributes
    ----------
    missing : ndarray of int
        Number of rows with a missing label per cell.
    fill : float
        Value that replaces 0/0; NaN: the distribution is conditional on the metric being defined.
    range : tuple of float
        Encloses every value of the metric on any data.
    bounds : Extremes, optional
        Extremes, if they are known from the functional before its cells were merged.
    is_rounded : bool
        Whether merging cells changed values.
    cancels : bool
        Whether the metric subtracts terms; sums of terms of the same sign are accurate to their own last digits.
    last_digits : float, optional
        Rounding error of such terms, if it differs from the rounding error of the metric's size.
    """

    missing: IntArray
    fill: float
    range: tuple[float, float]
    bounds: Extremes | None = field(default=None, kw_only=True)
    is_rounded: bool = field(default=False, kw_only=True)
    cancels: bool = field(default=True, kw_only=True)
    last_digits: float | None = field(default=None, kw_only=True)

    __getstate__ = made_of

    @property
    def columns(self) -> FloatArray | None:
        """Increment of each sum by one positive row of each cell (n_cells x n_sums); None: values only."""
        return None

    @property
    def constant(self) -> FloatArray:
        """Sums if all missing labels are negative, without the pair terms."""
        return np.zeros(0)

    @property
    def pairs(self) -> tuple[PairTerm, ...]:
        """Quadratic terms of the sums."""
        return ()

    @property
    def linear(self) -> tuple[FloatArray, float] | None:
        """Increment by one positive row of each cell, and the value if no row is positive; None: not linear."""
        return None

    @property
    def is_smooth(self) -> bool:
        """Whether `at` has derivatives; maxima and ranks have none."""
        return self.columns is not None

    def at(self, sums: FloatArray) -> FloatArray:
        """Return the metric at sums (n_sums x ...); NaN where it is undefined (0/0)."""
        raise MethodError("metric", "known by its values alone, it is no function of sums")

    def sums(self, positives: Any) -> FloatArray:
        """Return the sums (n_sums x n) of label assignments (n x n_cells: positive rows per cell)."""
        columns = self.columns
        assert columns is not None
        sums = self.constant[:, None] + np.asarray(positives @ columns, dtype=np.float64).T
        for pair in self.pairs:
            sums[pair.sum_index] += pair.value(pair.sum_by_group(positives * pair.weight))
        return sums

    def values(self, positives: Any) -> FloatArray:
        """Return the metric of label assignments (n x n_cells: positive rows per cell); NaN where undefined."""
        return self.at(self.sums(positives))

    def values_on(self, cells: IntArray, positives: IntArray) -> FloatArray:
        """Return the metric if only these cells have positive rows (n x n_cells)."""
        if self.columns is not None and not self.pairs:
            return self.at(self.constant[:, None] + np.asarray(positives @ self.columns[cells], dtype=np.float64).T)
        complete = np.zeros((len(positives), self.missing.size), dtype=np.int64)
        complete[:, cells] = positives
        return self.values(complete)

    def linearize(self, p: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return sums at labels equal to p (... x n_cells), and each sum's increment per label (n_cells, or as p)."""
        columns = self.columns
        assert columns is not None
        labels = p * self.missing
        sums = np.moveaxis(self.constant + labels @ columns, -1, 0).copy()
        increments = list(columns.T)
        for pair in self.pairs:
            x = pair.sum_by_group(labels * pair.weight)
            sums[pair.sum_index] += pair.value(x)
            increments[pair.sum_index] = increments[pair.sum_index] + pair.slope(x)
        return sums, increments

    @cached_property
    def kinds(self) -> tuple[FloatArray, IntArray] | None:
        """Distinct columns (n_kinds x n_sums) and the kind of each cell; None with pair terms or without sums."""
        columns = self.columns
        if columns is None or self.pairs:
            return None
        first, kind = (
            merged_keys(*columns.T)
            if columns.shape[1]
            else (np.arange(min(1, len(columns))), np.zeros(len(columns), np.int64))
        )
        return columns[first], kind

    @property
    def moving(self) -> IntArray:
        """Number of missing rows per cell, 0 for cells that move no sum."""
        if not self.pairs and self.has_few_kinds and self.kinds is not None:
            by_kind, kind = self.kinds
            moves: BoolArray = np.asarray(by_kind.any(axis=1))
            return self.missing if moves.all() else np.where(moves[kind], self.missing, 0)
        columns = self.columns
        if columns is None or self.pairs:
            return self.missing
        return np.where(columns.any(axis=1), self.missing, 0)

    @cached_property
    def has_few_kinds(self) -> bool:
        """Whether there may be few kinds of rows, judged by a sample of the cells."""
        columns = self.columns
        if columns is None or self.pairs:
            return False
        if len(columns) <= MAX_FEW_KINDS:
            return True
        sample = columns[np.unique(np.linspace(0, len(columns) - 1, _N_SAMPLED).astype(np.int64))]
        return len(np.unique(sample, axis=0)) <= MAX_FEW_KINDS

    @cached_property
    def sum_limits(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest possible value of each sum."""
        if self.has_few_kinds and self.kinds is not None:
            columns, kind = self.kinds
            missing: AnyArray = np.bincount(kind, self.missing, len(columns))
        else:
            assert self.columns is not None
            columns, missing = self.columns, self.missing
        low, high = (self.constant + missing @ clip(columns, 0.0) for clip in (np.minimum, np.maximum))
        for pair in self.pairs:
            size = pair.sum_by_group(self.missing * pair.weight)
            ends = [0.0, float((np.abs(pair.outer) * size * np.cumsum(size) + np.abs(pair.inner) * size**2).sum())]
            low[pair.sum_index] -= (
                ends[1] if min(pair.inner.min(initial=0.0), pair.outer.min(initial=0.0)) < 0.0 else 0.0
            )
            high[pair.sum_index] += ends[1]
        return low, high

    def merge(self, column: IntArray) -> tuple["Functional", IntArray]:
        """Return the functional on fewer cells, and the probability column of each merged cell.

        Missing cells of one column have the same probability. Cells that also have equal increments are merged, and
        nearly equal increments are replaced by their mean. A functional that cannot be merged is returned unchanged.
        """
        return self, column

    def reorder(self, new_index: IntArray) -> "Functional":
        """Return the same function of cells in another order: cell i of this functional becomes cell `new_index[i]`."""
        return Reordered(
            missing=_reorder_cells(self.missing, new_index),
            fill=self.fill,
            range=self.range,
            bounds=self.extremes,
            last_digits=self.noise,
            base=self,
            new_index=new_index,
        )

    @property
    def noise(self) -> float:
        """Rounding error that differences of terms leave in a value, however small the value is."""
        if not self.cancels or self.last_digits is not None:
            return self.last_digits or 0.0
        return _ROUNDING_NOISE * self.size

    @cached_property
    def size(self) -> float:
        """Largest absolute value of the range, of the bounds or of the corners: the first that is finite."""
        sources = (lambda: self.range, lambda: self.extremes[:2], self.corners)  # in order of computing time
        return next((size for values in sources if np.isfinite(size := float(np.abs(values()).max()))), 1.0)

    @property
    def given_defined(self) -> bool:
        """Whether label assignments with a 0/0 are excluded."""
        return bool(np.isnan(self.fill))

    def filled(self, values: FloatArray) -> FloatArray:
        """Replace undefined values by `fill`."""
        return np.where(np.isnan(values), self.fill, values)

    def influence(self, p: FloatArray) -> FloatArray:
        """Return the derivative of the metric by the label of one row of each cell, labels being equal to p."""
        if self.columns is None:
            raise MethodError("metric", "known by its values alone, it does not say how far one label moves it")
        from darkmetrics.distributions.expansion import compute_influence

        return np.asarray(compute_influence(self, p[None])[0])

    @abstractmethod
    def _extremes(self) -> Extremes:
        """Return the extremes over the label assignments for which the metric is defined; NaN if there is none."""

    @cached_property
    def extremes(self) -> Extremes:
        """Bounds over all label assignments."""
        if self.bounds is not None:
            return self.bounds
        if not self.missing.any():
            return extremes_of(self.filled(self.corners()[:1]))
        low, high, sharp = self._extremes()
        if not self.given_defined and self.can_be_undefined():
            low, high = float(np.fmin(low, self.fill)), float(np.fmax(high, self.fill))
        return Extremes(low, high, sharp)

    @cached_property
    def assignments(self) -> tuple[IntArray, FloatArray] | None:
        """Cells that move the metric, and its values for all label assignments to them; None if there are too many."""
        moving = self.moving
        # Every cell has a missing row, so it at least doubles the number of assignments.
        if np.count_nonzero(moving) > np.log2(MAX_ENUMERATED) or count_assignments(moving) > MAX_ENUMERATED + 0.5:
            return None
        cells = np.flatnonzero(moving)
        return cells, self.values_on(cells, list_assignments(self.missing[cells]))

    @cached_property
    def _all_values(self) -> FloatArray | None:
        """Values for all label assignments, or for all combinations of counts per kind; None if there are too many."""
        if self.assignments is not None:
            return self.assignments[1]
        if self.kinds is None:
            return None
        columns, kind = self.kinds
        counts = np.where(columns.any(axis=1), np.bincount(kind, self.missing, len(columns)), 0.0)
        counts = counts.astype(np.int64)
        if count_assignments(counts) > MAX_ENUMERATED + 0.5:
            return None
        grid = np.indices(tuple((counts + 1).tolist())).reshape(counts.size, -1)
        return self.at(self.constant[:, None] + columns.T @ grid)

    def _extremes_or_range(self) -> Extremes:
        """Return the extremes over all label assignments; the range if there are too many."""
        return Extremes(*self.range, False) if self._all_values is None else extremes_of(self._all_values)

    def corners(self) -> FloatArray:
        """Return the metric if every missing row is negative, and if every one is positive."""
        return self.values(np.stack([np.zeros_like(self.missing), self.missing]))

    @cached_property
    def undefined_corners(self) -> BoolArray:
        """Whether the metric is 0/0 if every missing row is negative, and if every one is positive."""
        return np.isnan(self.corners())

    def can_be_undefined(self) -> bool:
        """Return whether any label assignment leads to 0/0; most metrics need both classes, so a corner has the 0/0."""
        return bool(self.undefined_corners.any())

    @property
    def undefined_at_corners(self) -> bool:
        """Whether the metric is 0/0 only if every missing row is negative, or every one positive."""
        return self.columns is not None

    def undefined_mass(self, p: FloatArray, rows: AnyArray | None = None) -> FloatArray:
        """Return the probability of 0/0 (one per row of p), for metrics that are 0/0 only without one of the classes.

        `rows`: number of missing rows of each column of p, if p does not have one column per cell.
        """
        undefined = self.undefined_corners
        if not undefined.any():
            return np.zeros(len(p))
        if undefined.all() and np.isnan(self._extremes().low):
            return np.ones(len(p))
        if not self.missing.size:
            return np.full(len(p), float(undefined[0]))
        rows = self.missing if rows is None else rows
        with np.errstate(divide="ignore", invalid="ignore"):
            all_negative, all_positive = (
                np.exp(np.where(rows > 0, np.log(probability), 0.0) @ rows) for probability in (1.0 - p, p)
            )
        return np.asarray(all_negative * undefined[0] + all_positive * undefined[1])


@dataclass(frozen=True, eq=False)
class Reordered(Functional):
    """A functional of cells in another order: two models rank the same rows differently."""

    base: Functional = field(kw_only=True)
    new_index: IntArray = field(kw_only=True)

    @cached_property
    def columns(self) -> FloatArray | None:
        return None if self.base.columns is None else _reorder_cells(self.base.columns, self.new_index)

    @property
    def constant(self) -> FloatArray:
        return self.base.constant

    @cached_property
    def pairs(self) -> tuple[PairTerm, ...]:
        return tuple(pair.on_cells(self.new_index) for pair in self.base.pairs)

    @cached_property
    def kinds(self) -> tuple[FloatArray, IntArray] | None:
        if self.base.kinds is None:
            return None
        columns, kind = self.base.kinds
        return columns, _reorder_cells(kind, self.new_index)

    @property
    def linear(self) -> tuple[FloatArray, float] | None:
        if self.base.linear is None:
            return None
        weight, constant = self.base.linear
        return _reorder_cells(weight, self.new_index), constant

    @property
    def is_smooth(self) -> bool:
        return self.base.is_smooth

    def at(self, sums: FloatArray) -> FloatArray:
        return self.base.at(sums)

    def values(self, positives: Any) -> FloatArray:
        return self.base.values(np.take(positives, self.new_index, axis=1))

    def can_be_undefined(self) -> bool:
        return self.base.can_be_undefined()

    def _extremes(self) -> Extremes:
        return self.base._extremes()


@dataclass(frozen=True, eq=False)
class SumFunctional(Functional):
    """A functional that is defined by its columns, constant, pair terms and a function of the sums."""

    coefficients: tuple[FloatArray, FloatArray, tuple[PairTerm, ...]] = field(kw_only=True)
    evaluate: Callable[[FloatArray], FloatArray] = field(kw_only=True)
    smooth: bool = field(default=True, kw_only=True)

    @property
    def columns(self) -> FloatArray:
        return self.coefficients[0]

    @property
    def constant(self) -> FloatArray:
        return self.coefficients[1]

    @property
    def pairs(self) -> tuple[PairTerm, ...]:
        return self.coefficients[2]

    @property
    def is_smooth(self) -> bool:
        return self.smooth

    def at(self, sums: FloatArray) -> FloatArray:
        return self.evaluate(sums)

    def merge(self, column: IntArray) -> tuple[Functional, IntArray]:
        return (self, column) if self.pairs else merge_sums(self, self.columns, column)

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()


@dataclass(frozen=True, eq=False)
class ScenarioFunctional(Functional):
    """Any function of the labels: `call` maps label assignments (rows) to values.

    `n_cells` is the number of cells that `call` reads per assignment; None: it calls a user's function per assignment.
    `is_undefined_at_corners`: 0/0 takes an absent class.
    """

    call: Callable[[IntArray], FloatArray]
    n_cells: int | None = None
    is_undefined_at_corners: bool = False

    @property
    def undefined_at_corners(self) -> bool:
        return self.is_undefined_at_corners

    def values(self, positives: Any) -> FloatArray:
        return self.call(positives)

    def can_be_undefined(self) -> bool:
        return bool(np.isnan(self.corners() if self._all_values is None else self._all_values).any())

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()


# Increments that differ by less than this fraction of the root mean square are merged.
_LEVEL = 1.0 / 250.0


def merge_sums(functional: Functional, columns: FloatArray, column: IntArray) -> tuple[Functional, IntArray]:
    """Merge cells with the same probability column and nearly equal increments, and use their mean increments."""
    rows = functional.missing.astype(np.float64)
    typical = np.sqrt((rows @ columns**2) / max(1.0, float(rows.sum())))
    levels = [
        np.rint(increment / (_LEVEL * size)).astype(np.int64)
        for increment, size in zip(columns.T, typical, strict=True)
        if size
    ]
    first, owner = merged_keys(column, *levels)
    counts = np.bincount(owner, rows)
    mean = np.stack([np.bincount(owner, rows * increment) / counts for increment in columns.T], axis=1)
    merged = SumFunctional(
        missing=counts.astype(np.int64),
        fill=functional.fill,
        range=functional.range,
        bounds=functional.extremes,
        is_rounded=bool(np.any(np.abs(columns - mean[owner]) > 1e-12 * typical)),
        last_digits=functional.noise,
        coefficients=(mean, functional.constant, ()),
        evaluate=functional.at,
        smooth=functional.is_smooth,
    )
    return merged, column[first]


def _reorder_cells(values: Any, new_index: IntArray) -> Any:
    """Return values of cells in the new order."""
    result = np.empty_like(values)
    result[new_index] = values
    return result


def extremes_of(values: FloatArray) -> Extremes:
    """Return the smallest and largest defined value, NaN if there is none."""
    defined = values[~np.isnan(values)]
    ends = (float(defined.min()), float(defined.max())) if defined.size else (np.nan, np.nan)
    return Extremes(*ends, sharp=True)
