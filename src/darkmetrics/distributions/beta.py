"""BetaMixture: distribution of a fraction with known counts, mixed over the counts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import RngLike
from darkmetrics.distributions.base import MetricDistribution

# Probabilities of all components that are computed at a time.
_CHUNK = 1 << 20
# Steps of the search for a quantile: bisection alone needs this many, Newton's method far fewer.
_STEPS = 60
# Points at which a ratio is integrated, and the tail probability beyond the first and last of them.
_N_POINTS, _TAIL = 400, 1e-13


class Rational(NamedTuple):
    """A metric as a function of a fraction J: `(p J + q (1 - J)) / (r J + s (1 - J))`, increasing in J."""

    p: float
    q: float
    r: float
    s: float

    def at(self, fraction: FloatArray) -> FloatArray:
        """Return the metric at a fraction."""
        complement = 1.0 - fraction
        return (self.p * fraction + self.q * complement) / (self.r * fraction + self.s * complement)

    def inverse(self, value: FloatArray) -> FloatArray:
        """Return the fraction at a value of the metric, inside [0, 1]."""
        with np.errstate(invalid="ignore"):
            above, below = value * self.s - self.q, self.p - value * self.r
            fraction = above / (above + below)
        return np.where(above <= 0.0, 0.0, np.where(below <= 0.0, 1.0, np.clip(fraction, 0.0, 1.0)))


IDENTITY = Rational(1.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BetaMixture(MetricDistribution):
    """A weighted mixture of Beta distributions of a fraction; the metric is a rational function of the fraction."""

    a: FloatArray
    b: FloatArray
    weight: FloatArray
    form: Rational = IDENTITY

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        low, high = self.form.at(np.array([0.0, 1.0]))
        level = np.where(t < low, 0.0, self._fraction_cdf(self.form.inverse(np.clip(t, low, high))))
        return np.where(t >= high, 1.0, level)

    def _fraction_cdf(self, x: FloatArray) -> FloatArray:
        """Return the probability that the fraction is at most x."""
        level = np.empty(x.size)
        chunk = max(1, _CHUNK // self.a.size)
        for start in range(0, x.size, chunk):
            block = x[start : start + chunk, None]
            level[start : start + chunk] = np.asarray(betainc(self.a, self.b, block)) @ self.weight
        return np.minimum(level, 1.0)

    def _density(self, x: FloatArray) -> FloatArray:
        """Return the density of the fraction; x lies inside (0, 1)."""
        log = xlogy(self.a - 1.0, x[:, None]) + xlog1py(self.b - 1.0, -x[:, None]) - betaln(self.a, self.b)
        return np.asarray(np.exp(log) @ self.weight)

    def _ppf(self, q: FloatArray) -> FloatArray:
        mean, var = self._fraction_moments
        size = max(mean * (1.0 - mean) / var - 1.0, 1e-3)
        x = np.asarray(betaincinv(mean * size, (1.0 - mean) * size, q))
        low, high = np.zeros(q.size), np.ones(q.size)
        for _ in range(_STEPS):
            x = np.clip(x, low + 1e-9 * (high - low), high - 1e-9 * (high - low))
            error = self._fraction_cdf(x) - q
            low, high = np.where(error < 0.0, x, low), np.where(error < 0.0, high, x)
            with np.errstate(all="ignore"):  # steps that are not finite are replaced below
                step = x - error / self._density(x)
            inside = np.isfinite(step) & (step > low) & (step < high)
            proposal = np.where(inside, step, 0.5 * (low + high))
            done = np.abs(proposal - x) <= 1e-14 * np.maximum(np.abs(x), 1e-3)
            x = proposal
            if done.all():
                break
        return self.form.at(x)

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: RngLike = None) -> Any:
        generator = np.random.default_rng(rng)
        cumulative = np.cumsum(self.weight)
        chosen = np.searchsorted(cumulative, generator.random(size) * cumulative[-1], side="right")
        chosen = np.minimum(chosen, self.weight.size - 1)
        draws = self.form.at(np.asarray(generator.beta(self.a[chosen], self.b[chosen])))
        return float(draws) if size is None else draws

    @cached_property
    def _fraction_moments(self) -> tuple[float, float]:
        size = self.a + self.b
        mean = self.a / size
        total = float(self.weight @ mean)
        return total, float(self.weight @ (mean * (1.0 - mean) / (size + 1.0) + (mean - total) ** 2))

    def _moments(self) -> tuple[float, float]:
        p, q, r, s = self.form
        if r == s:
            mean, var = self._fraction_moments
            return (q + (p - q) * mean) / r, ((p - q) / r) ** 2 * var
        # The density of a fraction near 0 or 1 has a pole there; the density of its arcsine has none.
        ends = np.arcsin(np.sqrt(self.form.inverse(self._ppf(np.array([_TAIL, 1.0 - _TAIL])))))
        position, weight = np.polynomial.legendre.leggauss(_N_POINTS)
        angle = ends[0] + 0.5 * (ends[1] - ends[0]) * (position + 1.0)
        fraction = np.clip(np.sin(angle) ** 2, 1e-300, 1.0 - 1e-16)
        mass = weight * self._density(fraction) * np.sin(2.0 * angle)
        value = self.form.at(fraction)
        mean = float(mass @ value / mass.sum())
        return mean, float(mass @ (value - mean) ** 2 / mass.sum())
