"""Distributions in closed form: atoms, a table of the cdf, a Gaussian, or no value at all."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray
from darkmetrics.distributions.base import MetricDistribution, slack


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Discrete(MetricDistribution):
    """Finitely many values with their probabilities: enumerated, counted or sampled ones, and single points."""

    atoms: FloatArray
    masses: FloatArray

    @classmethod
    def from_atoms(cls, values: FloatArray, masses: FloatArray, fill: float, **facts: Any) -> "MetricDistribution":
        """Sort the atoms and join equal ones; undefined values (NaN) become `fill`, or are dropped if `fill` is NaN."""
        is_undefined = np.isnan(values)
        facts = {"given_defined": bool(np.isnan(fill)), **facts}
        undefined = 0.0
        if is_undefined.any():
            undefined = min(1.0, float(masses[is_undefined].sum()) / float(masses.sum()))
            if np.isnan(fill):
                values, masses = values[~is_undefined], masses[~is_undefined]
            else:
                values = np.where(is_undefined, fill, values)
        if values.size == 0 or not masses.sum() > 0.0:
            return Undefined(**{**facts, "undefined": 1.0, "given_defined": True})
        order = np.argsort(values, kind="stable")
        values, masses = values[order], masses[order] / masses.sum()
        is_new_atom = np.concatenate(([True], np.diff(values) > slack(values[1:], facts.get("noise", 0.0))))
        starts = np.flatnonzero(is_new_atom)
        return cls(atoms=values[starts], masses=np.add.reduceat(masses, starts), undefined=undefined, **facts)

    @cached_property
    def _cumulative(self) -> FloatArray:
        total = np.cumsum(self.masses)
        return np.asarray(np.minimum(total / total[-1], 1.0), dtype=np.float64)

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        margin = slack(t, self.noise)
        index = np.searchsorted(self.atoms, t - margin if left else t + margin, side="left" if left else "right")
        return np.where(index > 0, self._cumulative[index - 1], 0.0)

    def _ppf(self, q: FloatArray) -> FloatArray:
        index = np.searchsorted(self._cumulative, q - LEVEL_ROUNDING, side="left")
        return self.atoms[np.minimum(index, self.atoms.size - 1)]

    def _moments(self) -> tuple[float, float]:
        if self.by_draw is not None:  # exact, also where the atoms are rounded to a lattice
            return self.by_draw.total()
        # Rounding errors must not move the mean outside the atoms.
        mean = float(np.clip(self.masses @ self.atoms, self.atoms[0], self.atoms[-1]))
        return mean, float(self.masses @ (self.atoms - mean) ** 2)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Undefined(MetricDistribution):
    """Distribution of a metric that is 0/0 for every label assignment: it has no value, and `undefined` is 1."""

    given_defined: bool = True

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        return np.full(t.shape, np.nan)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return np.full(q.shape, np.nan)

    def _moments(self) -> tuple[float, float]:
        return np.nan, np.nan

    def __repr__(self) -> str:
        return "<Undefined: the metric is 0/0 for every label assignment>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Normal(MetricDistribution):
    """A Gaussian distribution, as computed by PEMI-Gauss; its mass beyond the bounds lies at the bounds.

    It has no atom for the value of 0/0, so it is conditional on the metric being defined.
    """

    method: str = "gaussian"
    given_defined: bool = True
    loc: float
    scale: float

    @property
    def _point(self) -> float:
        """Value of a distribution without spread; rounding must not move it outside the bounds."""
        low, high = self.bounds
        return float(np.fmin(np.fmax(self.loc, low), high))

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        if self.scale == 0.0:
            return np.asarray(t > self._point if left else t >= self._point, dtype=np.float64)
        low, high = self.bounds
        level = np.asarray(ndtr((t - self.loc) / self.scale))
        if left:
            return np.where(t <= low, 0.0, np.where(t > high, 1.0, level))
        return np.where(t < low, 0.0, np.where(t >= high, 1.0, level))

    def _ppf(self, q: FloatArray) -> FloatArray:
        if self.scale == 0.0:
            return np.full(q.shape, self._point)
        return np.clip(self.loc + self.scale * np.asarray(ndtri(q)), *self.bounds)

    def _moments(self) -> tuple[float, float]:
        return self.loc, self.scale**2


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Tabulated(MetricDistribution):
    """A continuous distribution given by its cdf on a fine grid, with linear interpolation."""

    grid: FloatArray
    levels: FloatArray

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        return np.interp(t, self.grid, self.levels, left=0.0, right=1.0)

    def _ppf(self, q: FloatArray) -> FloatArray:
        index = np.clip(np.searchsorted(self.levels, q, side="left"), 1, self.grid.size - 1)
        low, high = self.levels[index - 1], self.levels[index]
        fraction = np.clip((q - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
        return self.grid[index - 1] + fraction * (self.grid[index] - self.grid[index - 1])

    def _moments(self) -> tuple[float, float]:
        mass, middle = np.diff(self.levels), 0.5 * (self.grid[1:] + self.grid[:-1])
        mean = float(mass @ middle)
        width = np.diff(self.grid)
        return mean, float(mass @ ((middle - mean) ** 2 + width**2 / 12.0))
