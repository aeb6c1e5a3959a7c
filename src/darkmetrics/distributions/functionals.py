"""Functionals of metrics: formulas of counts, and weighted sums of labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    Formula,
    IntArray,
    dot,
    merged_keys,
)
from darkmetrics._kernels.auc.cdf_bounds import Spread
from darkmetrics.distributions.functional import (
    MAX_FEW_KINDS,
    Extremes,
    Functional,
    extremes_of,
)
from darkmetrics.distributions.slopes import compute_ratio_slopes, compute_slope

# Maximum number of combinations of counts over which the extremes of a user's formula are searched.
_SEARCH_LIMIT = 4_000_000
# Losses within this fraction of the root mean square are merged.
_LEVEL = 1.0 / 250.0


@dataclass(frozen=True, eq=False)
class Split:
    """Groups of missing cells; the positive rows of each group are one sum."""

    groups: tuple[IntArray, ...]
    # Weight of a row, per missing cell; None if every row counts once.
    weight: FloatArray | None

    def totals(self, missing: IntArray) -> tuple[float, ...]:
        """Return the largest sum of each group, if all its rows are positive."""
        mass = missing if self.weight is None else missing * self.weight
        return tuple(float(mass[rows].sum()) for rows in self.groups)

    def group_of_cells(self, n_cells: int) -> IntArray:
        """Return the group index of each missing cell."""
        group = np.zeros(n_cells, dtype=np.int64)
        for i, rows in enumerate(self.groups):
            group[rows] = i
        return group

    def merge(self, missing: IntArray, column: IntArray) -> tuple["Split", IntArray, IntArray]:
        """Merge cells that share column, group and weight; return the split, missing rows and columns."""
        first, owner = merged_keys(column, self.group_of_cells(missing.size), self.weight)
        group = self.group_of_cells(missing.size)[first]
        groups = tuple(np.flatnonzero(group == i) for i in range(len(self.groups)))
        weight = None if self.weight is None else self.weight[first]
        return Split(groups, weight), add_up(owner, missing).astype(np.int64), column[first]

    def smallest(self) -> tuple[float, ...]:
        """Return the smallest change that one row of each group can make to its sum."""
        if self.weight is None:
            return (1.0,) * len(self.groups)
        positive = (self.weight[rows][self.weight[rows] > 0.0] for rows in self.groups)
        return tuple(float(w.min()) if w.size else 1.0 for w in positive)


class MergedCells(NamedTuple):
    """Merged cell, number of rows and value of each original cell, and the mean of each merged cell."""

    owner: IntArray
    rows: FloatArray
    value: FloatArray
    mean: FloatArray

    def spread(self) -> Spread:
        """Return the deviations of the values from the mean of their merged cell."""
        distance = np.abs(self.value - self.mean[self.owner])
        second, third = (add_up(self.owner, self.rows * distance**power) for power in (2, 3))
        return Spread(second, third, float(distance.max(initial=0.0)))


class RatioForm(NamedTuple):
    """Numerator and denominator of a ratio of linear sums: a constant and one coefficient per group each."""

    numerator: FloatArray
    denominator: FloatArray

    def at(self, *sums: float) -> float:
        """Return the ratio at the sums of the groups."""
        terms = np.array([1.0, *sums])
        return float(np.divide(self.numerator @ terms, self.denominator @ terms))


class BentForm(NamedTuple):
    """`shift + scale (sum / (factor (P (total - P))^power))`: a linear sum over a concave function of the positives P.

    The sum has a constant and one coefficient per group; P counts the positives of all groups.
    """

    numerator: FloatArray
    factor: float
    power: float
    total: float
    scale: float = 1.0
    shift: float = 0.0

    def at(self, *sums: float) -> float:
        """Return the value at the sums of the groups."""
        p = sum(sums)
        curve = self.factor * (p * (self.total - p)) ** self.power
        return float(self.shift + self.scale * np.divide(self.numerator @ np.array([1.0, *sums]), curve))


@dataclass(frozen=True, eq=False)
class CountFunctional(Functional):
    """A formula of the positives in a few groups of rows: every confusion-matrix and top-k metric."""

    split: Split
    offset: tuple[float, ...]
    formula: Formula
    # For each group, the direction in which its positives move the metric: +1, -1, 0 (constant) or None (not monotone).
    direction: tuple[int | None, ...]
    ratio: RatioForm | None = None
    bent: BentForm | None = None
    has_derivatives: bool = False

    @cached_property
    def used(self) -> list[int]:
        """Groups that the formula depends on and that have missing rows."""
        return [i for i, way in enumerate(self.direction) if way != 0 and self.split.groups[i].size]

    @property
    def has_few_kinds(self) -> bool:
        return len(self.kinds[0]) <= MAX_FEW_KINDS

    @cached_property
    def kinds(self) -> tuple[FloatArray, IntArray]:
        """Increments of the kinds of rows (n_kinds x n_sums) and the kind of each cell.

        Groups that move no sum are kinds too, so that metrics of the same groups share the cumulants of kinds.
        """
        group = self.split.group_of_cells(self.missing.size)
        columns = np.zeros((len(self.split.groups), len(self.used)))
        columns[self.used, range(len(self.used))] = 1.0
        if self.split.weight is None:
            return columns, group
        moves: BoolArray = np.asarray(columns.any(axis=1))
        weight = np.where(moves[group], self.split.weight, 0.0)
        first, kind = merged_keys(group, weight)
        return columns[group[first]] * weight[first, None], kind

    @property
    def columns(self) -> FloatArray:
        columns, kind = self.kinds
        return columns[kind]

    @property
    def constant(self) -> FloatArray:
        return np.array([self.offset[i] for i in self.used], dtype=np.float64)

    @property
    def is_smooth(self) -> bool:
        return self.ratio is not None or self.bent is not None or self.has_derivatives

    @property
    def undefined_at_corners(self) -> bool:
        return None not in self.direction

    def at(self, sums: FloatArray) -> FloatArray:
        group_sums = [np.float64(offset) for offset in self.offset]
        for i, group_sum in zip(self.used, sums, strict=True):
            group_sums[i] = group_sum
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.formula(*group_sums), dtype=np.float64)
        # A formula may be a constant.
        return np.broadcast_to(np.where(np.isfinite(value), value, np.nan), sums.shape[1:])

    def at_groups(self, sums: Sequence[Any] | FloatArray) -> FloatArray:
        """Return the formula at the positive weight among the missing rows of each group."""
        group_sums = [offset + np.asarray(s, dtype=np.float64) for offset, s in zip(self.offset, sums, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.formula(*group_sums), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)

    @property
    def linear(self) -> tuple[FloatArray, float] | None:
        ratio = self.ratio
        if ratio is None or np.any(ratio.denominator[1:]) or not ratio.denominator[0] > 0.0:
            return None
        numerator = ratio.numerator / ratio.denominator[0]
        increment = numerator[1:][self.split.group_of_cells(self.missing.size)]
        if self.split.weight is not None:
            increment = increment * self.split.weight
        return increment, float(numerator[0] + numerator[1:] @ self.offset)

    def influence(self, p: FloatArray) -> FloatArray:
        weight = np.ones(p.size) if self.split.weight is None else self.split.weight
        effect, mean = weight.copy(), self.missing * weight * p
        sums = np.array([mean[rows].sum() for rows in self.split.groups])
        for rows, slope in zip(self.split.groups, self.slopes(sums), strict=True):
            effect[rows] *= slope
        return effect

    def slopes(self, sums: FloatArray) -> FloatArray:
        """Return the derivative of the formula by the sum of each group (groups x points); NaN where there is none."""
        if self.ratio is not None:
            group_sums = [offset + missing_sum for offset, missing_sum in zip(self.offset, sums, strict=True)]
            return np.array(compute_ratio_slopes(*self.ratio, self.at_groups(sums), group_sums))
        zero = np.zeros(sums.shape[1:])
        return np.array(
            [
                compute_slope(self.at_groups, sums, i, total, offset) if total > 0.0 else zero
                for i, (total, offset) in enumerate(zip(self.totals, self.offset, strict=True))
            ]
        )

    def values(self, positives: Any) -> FloatArray:
        mass: Any = positives if self.split.weight is None else positives * self.split.weight
        values = self.at_groups([mass[:, rows].sum(axis=1) for rows in self.split.groups])
        return np.broadcast_to(values, (len(positives),))

    def merge(self, column: IntArray) -> tuple[Self, IntArray]:
        split, missing, merged = self.split.merge(self.missing, column)
        return replace(self, split=split, missing=missing, bounds=self.extremes), merged

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """Largest sum of each group, if all its missing rows are positive."""
        return self.split.totals(self.missing)

    def corners(self) -> FloatArray:
        return self.at_groups([np.array([0.0, total]) for total in self.totals])

    @cached_property
    def _candidate_values(self) -> FloatArray | None:
        """Values at all combinations of sums where an extreme or a 0/0 can be; None if there are too many."""
        choices: list[FloatArray] = []
        for total, min_change, direction in zip(self.totals, self.split.smallest(), self.direction, strict=True):
            if direction is None and not self.denominator_keeps_its_sign():
                if self.split.weight is not None or total > _SEARCH_LIMIT:
                    return None
                choices.append(np.arange(total + 1.0))
            else:
                # Monotone formulas and ratios of linear sums have their extremes at the ends, or next to an end if the
                # denominator vanishes there (0/0).
                choices.append(np.array(sorted({0.0, min(min_change, total), max(0.0, total - min_change), total})))
        if prod(c.size for c in choices) > _SEARCH_LIMIT:
            return None
        return self.at_groups(np.ix_(*choices))

    def denominator_keeps_its_sign(self) -> bool:
        """Return whether the metric is a ratio of sums and the denominator never changes its sign."""
        if self.ratio is None:
            return False
        constant, slopes = self.ratio.denominator[0], self.ratio.denominator[1:]
        start, change = constant + float(slopes @ self.offset), slopes * self.totals
        return bool(start + change[change < 0.0].sum() >= 0.0 or start + change[change > 0.0].sum() <= 0.0)

    def can_be_undefined(self) -> bool:
        values = self._candidate_values if self.assignments is None else self.assignments[1]
        return bool(np.isnan(self.corners() if values is None else values).any())

    def _extremes(self) -> Extremes:
        if self.assignments is None and self._candidate_values is not None:
            return extremes_of(self._candidate_values)
        return self._extremes_or_range()


@dataclass(frozen=True, eq=False)
class LinearFunctional(Functional):
    """`total + sum weight_i Y_i`: Brier score, log loss, any mean of a per-row loss."""

    weight: FloatArray
    total: float
    merged: MergedCells | None = None

    @property
    def columns(self) -> FloatArray:
        return self.weight[:, None]

    @property
    def constant(self) -> FloatArray:
        return np.array([self.total])

    @property
    def linear(self) -> tuple[FloatArray, float]:
        return self.weight, self.total

    def at(self, sums: FloatArray) -> FloatArray:
        return np.asarray(sums[0])

    def influence(self, p: FloatArray) -> FloatArray:
        return self.weight

    @cached_property
    def spread(self) -> Spread | None:
        """Deviations of the weights within merged cells."""
        return None if self.merged is None else self.merged.spread()

    def merge(self, column: IntArray) -> tuple[Self, IntArray]:
        rows = self.missing.astype(np.float64)
        typical = float(np.sqrt(dot(rows, self.weight**2) / max(1.0, float(rows.sum()))))
        level = np.rint(self.weight / (_LEVEL * typical)).astype(np.int64) if typical > 0.0 else None
        first, owner = merged_keys(column, level)
        weight, rounded = mean_within(owner, rows, self.weight)
        missing = add_up(owner, rows).astype(np.int64)
        merged = MergedCells(owner, rows, self.weight, weight) if rounded else None
        facts: dict[str, Any] = {"bounds": self.extremes, "is_rounded": rounded, "merged": merged}
        return replace(self, weight=weight, missing=missing, **facts), column[first]

    def _extremes(self) -> Extremes:
        change = self.missing * self.weight
        low, high = float(change[change < 0.0].sum()), float(change[change > 0.0].sum())
        return Extremes(self.total + low, self.total + high, sharp=True)


def add_up(owner: IntArray, values: AnyArray) -> FloatArray:
    """Sum the values of cells over each merged cell."""
    return np.asarray(np.bincount(owner, values), dtype=np.float64)


def mean_within(owner: IntArray, counts: FloatArray, values: FloatArray) -> tuple[FloatArray, bool]:
    """Return the mean value of each merged cell, weighted by counts, and whether values within a cell differ."""
    mean = add_up(owner, counts * values) / add_up(owner, counts)
    distance = np.abs(values - mean[owner]).max(initial=0.0)
    return mean, bool(distance > 1e-12 * np.abs(values).max(initial=0.0))
