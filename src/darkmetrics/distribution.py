"""MetricDistribution: the law of a metric over everything the missing labels could be."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray, Formula, IntArray
from darkmetrics._kernels.quadrature import product_moments
from darkmetrics.exceptions import InputError

# Values of a metric that differ by less are one atom: the last bits of a float are noise of the arithmetic.
_ATOM = 1e-13


class Interval(NamedTuple):
    """Two ends of an interval."""

    low: float
    high: float


def _slack(t: FloatArray, scale: float) -> FloatArray:
    """How far apart two values may be and still count as one, in a law whose values reach `scale`."""
    return np.where(np.isinf(t), 0.0, _ATOM * np.maximum(scale, np.abs(t)))


def check_level(confidence_level: Any) -> float:
    """The probability of an interval, checked."""
    if not isinstance(confidence_level, (int, float, np.number)) or not 0.0 < confidence_level < 1.0:
        raise InputError(f"confidence_level: {confidence_level!r}. It must lie strictly between 0 and 1.")
    return float(confidence_level)


@dataclass(frozen=True, eq=False, kw_only=True)
class MetricDistribution(ABC):
    """The law of one metric on the rows at hand, given what is known about the missing labels.

    Methods follow `scipy.stats`: `mean std var median cdf sf ppf interval support rvs`. All randomness is about the
    missing labels; with no label missing the law is a single point.

    Attributes
    ----------
    method : str
        How the law was found: "exact", "near exact", "monte carlo", "gaussian".
    undefined : float
        Probability that the metric is 0/0. Its value there follows `zero_division`; when that is NaN the law is
        conditional on the metric being defined.
    bounds : Interval
        Worst and best value over all labelings of the missing rows, whatever their probability.
    bounds_sharp : bool
        Whether both bounds are attained by some labeling; if not they are only known to enclose the law.
    """

    method: str = "exact"
    undefined: float = 0.0
    bounds: Interval = field(default=Interval(-np.inf, np.inf))
    bounds_sharp: bool = True

    @abstractmethod
    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        """P(metric <= t), or P(metric < t) when `left`; `t` is one-dimensional."""

    @abstractmethod
    def _ppf(self, q: FloatArray) -> FloatArray:
        """Smallest value whose cdf reaches q; `q` is one-dimensional, inside [0, 1]."""

    @abstractmethod
    def _moments(self) -> tuple[float, float]:
        """Mean and variance."""

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return self._moments()

    def mean(self) -> float:
        """Expected value: the estimate to report when one number is wanted."""
        return self._mean_and_variance[0]

    def var(self) -> float:
        """Variance due to the missing labels."""
        return self._mean_and_variance[1]

    def std(self) -> float:
        """Standard deviation due to the missing labels."""
        return float(np.sqrt(self.var()))

    def median(self) -> float:
        """Value that the metric exceeds with probability one half at most."""
        return float(self.ppf(0.5))

    def cdf(self, t: Any) -> Any:
        """Probability that the metric is at most `t`."""
        return self._over(t, lambda x: self._cdf(x, left=False))

    def sf(self, t: Any) -> Any:
        """Probability that the metric is above `t`."""
        return self._over(t, lambda x: 1.0 - self._cdf(x, left=False))

    def pit(self, t: Any) -> Any:
        """Where a realised value falls in the law: (F(t-) + F(t)) / 2, uniform if the law is right."""
        return self._over(t, lambda x: 0.5 * (self._cdf(x, left=True) + self._cdf(x, left=False)))

    def ppf(self, q: Any) -> Any:
        """Quantile: the smallest value that the metric stays at or below with probability at least `q`."""
        levels = np.asarray(q, dtype=np.float64)
        if bool(np.any(~((levels >= 0.0) & (levels <= 1.0)))):
            bad = levels.ravel()[np.argmax(~((levels.ravel() >= 0.0) & (levels.ravel() <= 1.0)))]
            raise InputError(f"q: {bad:g}. Quantile levels must lie in [0, 1].")
        return self._over(levels, self._ppf)

    def interval(self, confidence_level: float = 0.9) -> Interval:
        """Equal-tailed interval that holds the metric with at least this probability."""
        tail = 0.5 * (1.0 - check_level(confidence_level))
        return Interval(*(float(end) for end in self.ppf([tail, 1.0 - tail])))

    def support(self) -> Interval:
        """Worst and best case over all labelings of the missing rows (`bounds_sharp` says if both can happen)."""
        return self.bounds

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        """Draws from the law; `rng` is a seed or a numpy Generator."""
        uniform = np.random.default_rng(rng).random(size)
        return self._over(uniform, self._ppf)

    def to_dict(self, confidence_level: float = 0.9) -> dict[str, Any]:
        """Plain numbers at full precision, ready for JSON; what does not exist is None."""
        low, high = self.interval(confidence_level)
        worst, best = self.support()
        numbers = {
            "mean": self.mean(),
            "std": self.std(),
            "median": self.median(),
            "interval_low": low,
            "interval_high": high,
            "lowest_possible": worst,
            "highest_possible": best,
        }
        return {
            "method": self.method,
            **{key: float(value) if np.isfinite(value) else None for key, value in numbers.items()},
            "confidence_level": confidence_level,
            "bounds_sharp": self.bounds_sharp,
            "undefined": self.undefined,
        }

    def __repr__(self) -> str:
        low, high = self.interval()
        return f"<{type(self).__name__}: mean {self.mean():.4g}, 90% interval {low:.4g} to {high:.4g}, {self.method}>"

    @staticmethod
    def _over(x: Any, function: Any) -> Any:
        """Apply a function of one-dimensional arrays to a number or an array of any shape."""
        array = np.asarray(x, dtype=np.float64)
        result = np.where(np.isnan(array.ravel()), np.nan, function(array.ravel())).reshape(array.shape)
        return float(result) if array.ndim == 0 else result


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Discrete(MetricDistribution):
    """Finitely many values with their probabilities: enumerated, tabulated or sampled laws, and single points."""

    atoms: FloatArray
    masses: FloatArray

    @classmethod
    def from_atoms(cls, values: FloatArray, masses: FloatArray, fill: float, **about: Any) -> "MetricDistribution":
        """Sort the atoms and join equal ones; nan values are undefined and become `fill`, or are left out."""
        nan = np.isnan(values)
        total = float(masses.sum())
        undefined = min(1.0, float(masses[nan].sum()) / total)
        if nan.any():
            if np.isnan(fill):
                values, masses = values[~nan], masses[~nan]
            else:
                values = np.where(nan, fill, values)
        if values.size == 0 or not masses.sum() > 0.0:
            return Undefined(undefined=1.0, **about)
        order = np.argsort(values, kind="stable")
        values, masses = values[order], masses[order] / masses.sum()
        new = np.concatenate(([True], np.diff(values) > _slack(values[1:], float(np.abs(values).max()))))
        starts = np.flatnonzero(new)
        return cls(atoms=values[starts], masses=np.add.reduceat(masses, starts), undefined=undefined, **about)

    @cached_property
    def _cumulative(self) -> FloatArray:
        total = np.cumsum(self.masses)
        return np.asarray(np.minimum(total / total[-1], 1.0), dtype=np.float64)

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        slack = _slack(t, float(np.abs(self.atoms[[0, -1]]).max()))
        place = np.searchsorted(self.atoms, t - slack if left else t + slack, side="left" if left else "right")
        level: FloatArray = np.concatenate(([0.0], self._cumulative))[place]
        return level

    def _ppf(self, q: FloatArray) -> FloatArray:
        # Rounding in the cumulated masses must not push a quantile to the next atom.
        place = np.searchsorted(self._cumulative, q - 1e-14, side="left")
        return self.atoms[np.minimum(place, self.atoms.size - 1)]

    def _moments(self) -> tuple[float, float]:
        # Rounding must not carry the mean outside the atoms.
        mean = float(np.clip(self.masses @ self.atoms, self.atoms[0], self.atoms[-1]))
        return mean, float(self.masses @ (self.atoms - mean) ** 2)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Undefined(MetricDistribution):
    """The law of a metric that is 0/0 for every labeling: it has no value, and says so with `undefined` = 1."""

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        return np.full(t.shape, np.nan)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return np.full(q.shape, np.nan)

    def _moments(self) -> tuple[float, float]:
        return np.nan, np.nan

    def __repr__(self) -> str:
        return "<Undefined: the metric is 0/0 for every labeling>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Normal(MetricDistribution):
    """A Gaussian law, as PEMI-Gauss gives it; it may reach beyond the bounds that no labeling can pass."""

    loc: float
    scale: float

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        if self.scale == 0.0:
            return np.asarray(t > self.loc if left else t >= self.loc, dtype=np.float64)
        return np.asarray(ndtr((t - self.loc) / self.scale))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.loc + (self.scale * np.asarray(ndtri(q)) if self.scale > 0.0 else np.zeros(q.shape))

    def _moments(self) -> tuple[float, float]:
        return self.loc, self.scale**2


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Tabulated(MetricDistribution):
    """A continuous law given by its cdf on a fine grid, straight in between."""

    grid: FloatArray
    levels: FloatArray

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        return np.interp(t, self.grid, self.levels, left=0.0, right=1.0)

    def _ppf(self, q: FloatArray) -> FloatArray:
        place = np.clip(np.searchsorted(self.levels, q, side="left"), 1, self.grid.size - 1)
        low, high = self.levels[place - 1], self.levels[place]
        share = np.clip((q - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
        return self.grid[place - 1] + share * (self.grid[place] - self.grid[place - 1])

    def _moments(self) -> tuple[float, float]:
        mass, middle = np.diff(self.levels), 0.5 * (self.grid[1:] + self.grid[:-1])
        mean = float(mass @ middle)
        width = np.diff(self.grid)
        return mean, float(mass @ ((middle - mean) ** 2 + width**2 / 12.0))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProductLaw(MetricDistribution):
    """A formula of independent lattice variables that is monotone in the first: nothing is tabulated.

    `P(metric <= t)` is a sum over the other variables of the first one's cdf at the place where the formula crosses t
    (mathematics, section 1); that place is found by bisection on the formula itself, so atoms are never misjudged.
    """

    formula: Formula
    axes: Sequence[FloatArray]
    masses: Sequence[FloatArray]
    rising: bool

    @cached_property
    def _rows(self) -> tuple[list[FloatArray], FloatArray]:
        """All combinations of the variables after the first, and their probabilities."""
        grid = [g.ravel() for g in np.meshgrid(*self.axes[1:], indexing="ij")]
        weight = np.ones(1)
        for mass in self.masses[1:]:
            weight = np.multiply.outer(weight, mass).ravel()
        return grid, weight

    @cached_property
    def _cumulative(self) -> FloatArray:
        total = np.cumsum(self.masses[0])
        return np.concatenate(([0.0], total / total[-1]))

    def _crossing(self, t: float, between: tuple[IntArray, IntArray] | None = None) -> IntArray:
        """Per row, how many values of the first variable come before the formula passes t.

        `between` holds crossings of a smaller and a larger t, in either order, which leave fewer values to try.
        """
        axis, (grid, weight) = self.axes[0], self._rows
        if between is None:
            low = np.zeros(weight.size, dtype=np.int64)
            high = np.full(weight.size, axis.size, dtype=np.int64)
        else:
            low, high = np.minimum(*between), np.maximum(*between)
        while np.any(low < high):
            middle = (low + high) // 2
            value = self.formula(axis[np.minimum(middle, axis.size - 1)], *grid)
            before = (value <= t) if self.rising else (value > t)
            before &= low < high
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        return low

    def _mass_up_to(self, crossing: IntArray) -> float:
        """P(metric <= t) from the crossing of t."""
        level = self._cumulative[crossing]
        return float(self._rows[1] @ (level if self.rising else 1.0 - level))

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        slack = _slack(t, float(np.abs(self._corner_range).max()))
        shifted = t - slack if left else t + slack
        return np.array([self._mass_up_to(self._crossing(float(x))) for x in shifted])

    def _ppf(self, q: FloatArray) -> FloatArray:
        return np.array([self._quantile(float(level)) for level in q])

    def _quantile(self, q: float) -> float:
        low, high = self._corner_range
        if q <= 0.0:
            return low
        search = _Search(self, low - 1e-9 * max(abs(low), abs(high)), high, q - 1e-14)
        # The law is nearly Gaussian wherever it is not tabulated: two Newton steps from the Gaussian quantile leave
        # only a small fraction of a standard deviation to bisect.
        sd, z = self.std(), float(ndtri(min(max(q, 1e-15), 1.0 - 1e-15)))
        guess, density = self.mean() + sd * z, np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        for _ in range(2):
            guess += sd * float(np.clip((q - search.try_at(guess)) / density, -1.0, 1.0))
        for side in (-1.0, 1.0):
            search.try_at(guess + side * 1e-6 * sd)
        while search.width() > 1e-7 * sd:
            search.try_at(0.5 * (search.a + search.b))
        return search.first_atom()

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        generator = np.random.default_rng(rng)
        draws = []
        for axis, mass in zip(self.axes, self.masses, strict=True):
            place = np.searchsorted(np.cumsum(mass), generator.random(size), side="right")
            draws.append(axis[np.minimum(place, axis.size - 1)])
        return self.formula(*draws) if size is not None else float(self.formula(*draws))

    @cached_property
    def _corner_range(self) -> tuple[float, float]:
        """Smallest and largest value on the lattice window."""
        grid, weight = self._rows
        ends = [self.formula(np.full(weight.size, self.axes[0][end]), *grid) for end in (0, -1)]
        return float(np.min(ends)), float(np.max(ends))

    def _moments(self) -> tuple[float, float]:
        return product_moments(self.formula, self.axes, self.masses)


class _Search:
    """A bracket [a, b] with cdf(a) < q <= cdf(b) that shrinks, keeping the crossings of both ends."""

    def __init__(self, law: ProductLaw, a: float, b: float, q: float) -> None:
        self.law, self.a, self.b, self.q = law, a, b, q
        rows, size = law._rows[1].size, law.axes[0].size
        self._at_a = np.full(rows, 0 if law.rising else size, dtype=np.int64)
        self._at_b = np.full(rows, size if law.rising else 0, dtype=np.int64)

    def width(self) -> float:
        """Width of the bracket, zero when no number lies between its ends."""
        return 0.0 if self.b <= np.nextafter(self.a, np.inf) else self.b - self.a

    def try_at(self, t: float) -> float:
        """The cdf at t, which becomes an end of the bracket if it lies inside."""
        if not self.a < t < self.b:
            return self.law._mass_up_to(self.law._crossing(t))
        crossing = self.law._crossing(t, (self._at_a, self._at_b))
        mass = self.law._mass_up_to(crossing)
        if mass < self.q:
            self.a, self._at_a = t, crossing
        else:
            self.b, self._at_b = t, crossing
        return mass

    def first_atom(self) -> float:
        """The smallest atom in the bracket at which the cdf reaches q; few are left by now."""
        axis, (grid, _) = self.law.axes[0], self.law._rows
        atom = self.b
        for _ in range(1000):
            place = self._at_a - (0 if self.law.rising else 1)
            inside = (place >= 0) & (place < axis.size)
            value = self.law.formula(axis[np.clip(place, 0, axis.size - 1)], *grid)
            atom = float(np.min(value[inside])) if inside.any() else self.b
            if atom >= self.b:
                break
            # Values that differ by rounding alone are one atom, and the largest of them carries all its mass.
            slack = float(_slack(np.array(atom), float(np.abs(self.law._corner_range).max())))
            if self.try_at(min(atom + slack, np.nextafter(self.b, -np.inf))) >= self.q:
                return atom
        return min(atom, self.b)
