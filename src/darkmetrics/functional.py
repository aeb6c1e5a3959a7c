"""A metric bound to an evaluation set, as a function of the unknown labels: `g(A y)` (architecture, second idea).

A functional knows nothing of probabilities. It says what the metric is for any labeling of the missing rows, and
which values it can take at all (the sharp bounds). Methods turn it, together with probabilities, into a law.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    dots,
    merged_keys,
    same_arrays,
)
from darkmetrics._kernels.auc.cdf_bounds import Spread
from darkmetrics._kernels.auc.ranks import RankData, auc_extremes, auc_influence, auc_values
from darkmetrics._kernels.sums.enumeration import all_labelings, number_of_labelings
from darkmetrics._kernels.sums.linear_sum import weight_levels
from darkmetrics._kernels.sums.precision_draws import PrecisionDraws, Ranking
from darkmetrics._kernels.sums.precision_expansion import PrecisionExpansion
from darkmetrics.exceptions import MethodError
from darkmetrics.storing import made_of

# Extremes of a formula of which nothing is known are searched over at most this many combinations of counts.
_SEARCH_LIMIT = 4_000_000
_ENUMERATE_LIMIT = 2**15
# Two units in the last place of a number of size one.
_NOISE = 4e-16
# Ranks that differ by so small a part of all rows are one, but for rounding.
_ROUNDING = 1e-12


class Extremes(NamedTuple):
    """Smallest and largest value over all labelings of the missing rows; `sharp` when both are attained."""

    low: float
    high: float
    sharp: bool


@dataclass(frozen=True, eq=False)
class Functional(ABC):
    """A function of the labels of the missing rows.

    `missing` counts the missing rows per cell (cells without any are left out), `fill` is the value of a 0/0 (nan:
    labelings that lead there are left out), `range` encloses every value the metric can have on any data.
    """

    missing: IntArray
    fill: float
    range: tuple[float, float]
    # Set by `coarse`: the bounds of the functional before its cells were merged, and whether that changed its values.
    bounds: Extremes | None = field(default=None, kw_only=True)
    rounded: bool = field(default=False, kw_only=True)
    # Whether the metric is a difference of larger terms; sums of one sign are right to their own last digits.
    cancels: bool = field(default=True, kw_only=True)
    # Rounding error of such terms, where it is not that of the metric's own size.
    last_digits: float | None = field(default=None, kw_only=True)

    @property
    def noise(self) -> float:
        """Rounding error that differences of terms leave in a value, however small it is itself."""
        if not self.cancels or self.last_digits is not None:
            return self.last_digits or 0.0
        return _NOISE * self.size

    @cached_property
    def size(self) -> float:
        """How large values are, on any data or else on these rows: what a formula of your own adds up has any unit."""
        known = (lambda: self.range, lambda: self.extremes[:2], self.corners)  # in turn, as the last ones take longer
        return next((size for values in known if np.isfinite(size := float(np.abs(values()).max()))), 1.0)

    @property
    def given_defined(self) -> bool:
        """Whether labelings with a 0/0 are left out: laws are then given that the metric is defined."""
        return bool(np.isnan(self.fill))

    __getstate__ = made_of

    @abstractmethod
    def values(self, positives: IntArray) -> FloatArray:
        """The metric for each labeling (row: positives among the missing rows of each cell); nan where 0/0."""

    def influence(self, p: FloatArray) -> FloatArray:
        """How far one label of each missing cell moves the metric, to first order.

        That is the derivative by the label of a row where each label is its chance `p`; nan where there is none.
        """
        raise MethodError("metric: known by its values alone, it does not say how far one label moves it.")

    def coarse(self, column: IntArray) -> tuple[Self, IntArray]:
        """The same functional on fewer cells, and the column of each of them; its bounds stay what they are.

        Missing cells of one column have the same probability. Those that also move the metric alike are merged; ranks
        and losses within a column are replaced by their mean. What cannot be merged stays as it is.
        """
        return self, column

    @abstractmethod
    def _extremes(self) -> Extremes:
        """Extremes over the labelings for which the metric is defined; nan when there is none."""

    @cached_property
    def extremes(self) -> Extremes:
        """The sharp bounds: no labeling of the missing rows leads outside, and both ends can happen."""
        if self.bounds is not None:
            return self.bounds
        low, high, sharp = self._extremes()
        if not self.given_defined and self.can_be_undefined():
            low, high = float(np.fmin(low, self.fill)), float(np.fmax(high, self.fill))
        return Extremes(low, high, sharp)

    @cached_property
    def _all_values(self) -> FloatArray | None:
        """The metric of every labeling, if they are few."""
        if number_of_labelings(self.missing) > _ENUMERATE_LIMIT:
            return None
        positives, _ = all_labelings(self.missing, np.full(self.missing.size, 0.5))
        return self.values(positives)

    def _extremes_or_range(self) -> Extremes:
        """The extremes by going through all labelings; if they are too many, what encloses them."""
        return Extremes(*self.range, False) if self._all_values is None else _extremes_of(self._all_values)

    def corners(self) -> FloatArray:
        """The metric when every missing row is negative, and when every one is positive."""
        return self.values(np.stack([np.zeros_like(self.missing), self.missing]))

    def can_be_undefined(self) -> bool:
        """Whether some labeling leads to 0/0; for most metrics a class has to vanish, which takes a corner."""
        return bool(self._undefined_corners.any())

    @cached_property
    def _undefined_corners(self) -> BoolArray:
        """At which corners the metric is 0/0; asked at every node, and the same at all."""
        return np.isnan(self.corners())

    def undefined_mass(self, p: FloatArray) -> float:
        """Probability of 0/0 when a class has to vanish for it: all missing rows negative, or all positive."""
        undefined = self._undefined_corners
        if not undefined.any():
            return 0.0
        if undefined.all() and np.isnan(self._extremes().low):
            return 1.0
        with np.errstate(divide="ignore"):
            none, all_ = np.exp(self.missing @ np.log1p(-p)), np.exp(self.missing @ np.log(p))
        return float(none * undefined[0] + all_ * undefined[1]) if self.missing.size else float(undefined[0])


@dataclass(frozen=True, eq=False)
class Split:
    """Missing cells sorted into groups; the law of each group's positives is independent of the others'."""

    groups: tuple[IntArray, ...]
    # Weight of a row, per missing cell; None when every row counts once.
    weight: FloatArray | None

    def same(self, other: "Split") -> bool:
        """Whether both have the same groups of cells, with the same weights."""
        return same_arrays((self.weight, *self.groups), (other.weight, *other.groups))

    def totals(self, missing: IntArray) -> tuple[float, ...]:
        """The largest sum of each group: all its rows positive."""
        mass = missing if self.weight is None else missing * self.weight
        return tuple(float(mass[rows].sum()) for rows in self.groups)

    def coarse(self, missing: IntArray, column: IntArray) -> tuple["Split", IntArray, IntArray]:
        """Cells that share column, group and weight as one: the split, missing rows and column of the merged cells."""
        group = np.zeros(missing.size, dtype=np.int64)
        for i, rows in enumerate(self.groups):
            group[rows] = i
        first, owner = merged_keys(column, group, self.weight)
        groups = tuple(np.flatnonzero(group[first] == i) for i in range(len(self.groups)))
        weight = None if self.weight is None else self.weight[first]
        return Split(groups, weight), _add_up(owner, missing).astype(np.int64), column[first]

    def smallest(self) -> tuple[float, ...]:
        """The smallest change that one row of each group can make to its sum."""
        if self.weight is None:
            return (1.0,) * len(self.groups)
        positive = (self.weight[rows][self.weight[rows] > 0.0] for rows in self.groups)
        return tuple(float(w.min()) if w.size else 1.0 for w in positive)


class Merged(NamedTuple):
    """Cells that were merged: which one each went to, its rows, its value, and the mean that replaced it."""

    owner: IntArray
    rows: FloatArray
    value: FloatArray
    mean: FloatArray

    def spread(self) -> Spread:
        """How far the values lie from the mean that replaced them."""
        off = np.abs(self.value - self.mean[self.owner])
        second, third = (_add_up(self.owner, self.rows * off**power) for power in (2, 3))
        return Spread(second, third, float(off.max(initial=0.0)))


class RatioForm(NamedTuple):
    """Numerator and denominator of a ratio of linear sums: a constant and one coefficient per group each."""

    numerator: FloatArray
    denominator: FloatArray

    def at(self, *sums: float) -> float:
        """The ratio at the sums of the groups."""
        known = np.array([1.0, *sums])
        return float(np.divide(self.numerator @ known, self.denominator @ known))


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
        """The value at the sums of the groups."""
        p = sum(sums)
        curve = self.factor * (p * (self.total - p)) ** self.power
        return float(self.shift + self.scale * np.divide(self.numerator @ np.array([1.0, *sums]), curve))


@dataclass(frozen=True, eq=False)
class CountFunctional(Functional):
    """A formula of the positives in a few groups of rows: every confusion-matrix and top-k metric."""

    split: Split
    offset: tuple[float, ...]
    formula: Formula
    # For each group, how the metric moves with its positives: +1, -1, 0 (not at all) or None (either way).
    direction: tuple[int | None, ...]
    ratio: RatioForm | None = None
    bent: BentForm | None = None

    def coarse(self, column: IntArray) -> tuple[Self, IntArray]:
        split, missing, merged = self.split.coarse(self.missing, column)
        return replace(self, split=split, missing=missing, bounds=self.extremes), merged

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """The largest sum of each group: all its missing rows positive."""
        return self.split.totals(self.missing)

    def at(self, sums: Sequence[FloatArray] | FloatArray) -> FloatArray:
        """The formula at sums of positive weight among the missing rows of each group; nan where undefined."""
        known = [offset + np.asarray(s, dtype=np.float64) for offset, s in zip(self.offset, sums, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.formula(*known), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)

    def influence(self, p: FloatArray) -> FloatArray:
        weight = np.ones(p.size) if self.split.weight is None else self.split.weight
        effect, mean = weight.copy(), self.missing * weight * p
        sums = np.array([mean[rows].sum() for rows in self.split.groups])
        for rows, slope in zip(self.split.groups, self.slopes(sums), strict=True):
            effect[rows] *= slope
        return effect

    def slopes(self, sums: FloatArray) -> FloatArray:
        """Derivatives of the formula by the sum of each group (groups x points, or one point); nan where is none."""
        if self.ratio is None:
            zero = np.zeros(sums.shape[1:])
            return np.array([self._slope(sums, i) if total > 0.0 else zero for i, total in enumerate(self.totals)])
        numerator, denominator = self.ratio
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes: FloatArray = numerator[1:] - np.multiply.outer(self.at(sums), denominator[1:])
            below: FloatArray = denominator[0] + dots(sums.T + self.offset, denominator[1:])
            return slopes.T / below

    def _slope(self, sums: FloatArray, axis: int) -> FloatArray:
        """Partial derivative by a five-point difference that stays inside the range of the sum.

        Where the sum is so close to an end that no step fits in between, it is the derivative a little further inside.
        """
        total = self.totals[axis]
        x = np.clip(sums[axis], 1e-9 * total, (1.0 - 1e-9) * total)
        # Next to an end a formula may be a root of what is left: five points off by a share of that miss by its fourth
        # power. Nothing here is a number of rows: weights have any unit.
        size = np.maximum(0.01 * total, np.abs(x + self.offset[axis]))
        step = np.minimum(1e-3 * size, 0.03 * np.minimum(x, total - x))
        moved: list[FloatArray] = list(sums)
        value: FloatArray = np.zeros(sums.shape[1:])
        for multiple, factor in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved[axis] = x + multiple * step
            value = value + factor * self.at(moved)
        value /= 12.0 * step
        return value

    def corners(self) -> FloatArray:
        return self.at([np.array([0.0, total]) for total in self.totals])

    def values(self, positives: IntArray) -> FloatArray:
        mass: Any = positives if self.split.weight is None else positives * self.split.weight
        return self.at([mass[:, rows].sum(axis=1) for rows in self.split.groups])

    @cached_property
    def _search(self) -> FloatArray | None:
        """The formula at every place where an extreme or a 0/0 can be; None when there are too many."""
        totals, smallest = self.totals, self.split.smallest()
        choices: list[FloatArray] = []
        for total, least, direction in zip(totals, smallest, self.direction, strict=True):
            if direction is None and not self.denominator_keeps_its_sign():
                if self.split.weight is not None or total > _SEARCH_LIMIT:
                    return None
                choices.append(np.arange(total + 1.0))
            else:
                # A monotone formula and a ratio of linear sums have their extremes at the ends, or next to them where
                # the denominator vanishes there (0/0).
                choices.append(np.array(sorted({0.0, min(least, total), max(0.0, total - least), total})))
        if prod(c.size for c in choices) > _SEARCH_LIMIT:
            return None
        return self.at(np.ix_(*choices))

    def denominator_keeps_its_sign(self) -> bool:
        """Whether the metric is a ratio of linear sums whose denominator is nowhere negative (or nowhere positive)."""
        if self.ratio is None:
            return False
        constant, slopes = self.ratio.denominator[0], self.ratio.denominator[1:]
        start, change = constant + float(slopes @ self.offset), slopes * self.totals
        return bool(start + change[change < 0.0].sum() >= 0.0 or start + change[change > 0.0].sum() <= 0.0)

    def can_be_undefined(self) -> bool:
        return bool(np.isnan(self.corners() if self._search is None else self._search).any())

    def _extremes(self) -> Extremes:
        if self._search is not None:
            return _extremes_of(self._search)
        return self._extremes_or_range()


@dataclass(frozen=True, eq=False)
class LinearFunctional(Functional):
    """`constant + sum weight_i Y_i`: Brier score, log loss, any mean of a per-row loss."""

    weight: FloatArray
    constant: float
    merged: "Merged | None" = None

    @cached_property
    def spread(self) -> Spread | None:
        """How the weights differ within the cells that were merged."""
        return None if self.merged is None else self.merged.spread()

    def coarse(self, column: IntArray) -> tuple[Self, IntArray]:
        rows = self.missing.astype(np.float64)
        # Rows of one score may have different sample weights; losses within one per cent or 1/250 of the typical one
        # are one, and their mean keeps the mean of the sum.
        typical = float(np.sqrt(dot(rows, self.weight**2) / max(1.0, float(rows.sum()))))
        first, owner = merged_keys(column, weight_levels(self.weight, typical / 250.0) if typical > 0.0 else None)
        weight, rounded = _mean_within(owner, rows, self.weight)
        missing = _add_up(owner, rows).astype(np.int64)
        merged = Merged(owner, rows, self.weight, weight) if rounded else None
        coarse = replace(self, weight=weight, missing=missing, bounds=self.extremes, rounded=rounded, merged=merged)
        return coarse, column[first]

    def influence(self, p: FloatArray) -> FloatArray:
        return self.weight

    def values(self, positives: IntArray) -> FloatArray:
        result: FloatArray = self.constant + positives @ self.weight
        return result

    def _extremes(self) -> Extremes:
        change = self.missing * self.weight
        low, high = float(change[change < 0.0].sum()), float(change[change > 0.0].sum())
        return Extremes(self.constant + low, self.constant + high, sharp=True)


@dataclass(frozen=True, eq=False)
class RankFunctional(Functional):
    """`shift + scale * ROC-AUC`, through the two sums it depends on."""

    data: RankData
    scale: float = 1.0
    shift: float = 0.0
    merged: "Merged | None" = None

    @cached_property
    def spread(self) -> Spread | None:
        """How the ranks differ within the cells that were merged."""
        return None if self.merged is None else self.merged.spread()

    def coarse(self, column: IntArray) -> tuple[Self, IntArray]:
        data = self.data
        if data.full_ties:  # what a row adds then depends on the labels it is tied with
            return self, column
        equal = bool(np.all(data.weight == data.weight[:1]))
        first, owner = merged_keys(column, None if equal else data.weight)
        rho, rounded = _mean_within(owner, data.counts, data.rho)
        counts, weight = _add_up(owner, data.counts), data.weight[first]
        own, none = np.arange(first.size), np.zeros(first.size)
        joined = data._replace(
            counts=counts, weight=weight, rho=rho, group=own, group_total=counts * weight, group_known=none
        )
        whole = counts.astype(np.int64)
        merged = Merged(owner, data.counts, data.rho, rho) if rounded else None
        coarse = replace(self, data=joined, missing=whole, bounds=self.extremes, rounded=rounded, merged=merged)
        return coarse, column[first]

    @property
    def never_moves(self) -> bool:
        """Whether it is one half for all labels: missing rows have the middle rank, and known positives on average.

        Up to what adding up weights leaves, which is no law to expand.
        """
        data = self.data
        near, middle = _ROUNDING * data.total, 0.5 * data.total
        known = abs(data.known_r - middle * data.known_p) <= near * data.total
        return not data.full_ties and known and bool(np.all(np.abs(data.rho - middle) <= near))

    def affine(self, auc: FloatArray) -> FloatArray:
        """The metric for these values of ROC-AUC."""
        return self.shift + self.scale * auc

    def influence(self, p: FloatArray) -> FloatArray:
        return self.scale * auc_influence(self.data, p)

    def values(self, positives: IntArray) -> FloatArray:
        return self.affine(auc_values(self.data, positives))

    def _extremes(self) -> Extremes:
        low, high = auc_extremes(self.data)
        # With unequal weights the scan is proven sharp only for half ties and extremes on either side of one half.
        equal = bool(np.all(self.data.weight == self.data.weight[:1]))
        if not (equal or (low <= 0.5 <= high and not self.data.full_ties)):
            return self._extremes_or_range()
        first, last = sorted(self.affine(np.array([low, high])).tolist())
        return Extremes(first, last, sharp=True)


@dataclass(frozen=True, eq=False)
class ScenarioFunctional(Functional):
    """Any function of the labels, known only by calling it: `call` takes labelings (rows) and returns values."""

    call: Callable[[IntArray], FloatArray]

    def values(self, positives: IntArray) -> FloatArray:
        return self.call(positives)

    def can_be_undefined(self) -> bool:
        return bool(np.isnan(self.corners() if self._all_values is None else self._all_values).any())

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()


@dataclass(frozen=True, eq=False)
class DrawnFunctional(ScenarioFunctional):
    """Average precision, which knows a faster way to random labelings, and expansions where much is random."""

    ranking: Ranking

    @cached_property
    def draws(self) -> PrecisionDraws:
        """Random labelings; their values are within `blur` of the true ones."""
        return PrecisionDraws.of(self.ranking)

    @cached_property
    def expansion(self) -> PrecisionExpansion:
        """Moments and expansions at nodes."""
        return PrecisionExpansion(self.ranking)


def _add_up(owner: IntArray, values: AnyArray) -> FloatArray:
    return np.asarray(np.bincount(owner, values), dtype=np.float64)


def _mean_within(owner: IntArray, counts: FloatArray, values: FloatArray) -> tuple[FloatArray, bool]:
    """The mean of the values of merged cells, weighted by counts, and whether some of them differed."""
    mean = _add_up(owner, counts * values) / _add_up(owner, counts)
    off = np.abs(values - mean[owner]).max(initial=0.0)
    return mean, bool(off > 1e-12 * np.abs(values).max(initial=0.0))


def _extremes_of(values: FloatArray) -> Extremes:
    """Smallest and largest defined value, nan when there is none."""
    defined = values[~np.isnan(values)]
    ends = (float(defined.min()), float(defined.max())) if defined.size else (np.nan, np.nan)
    return Extremes(*ends, sharp=True)
