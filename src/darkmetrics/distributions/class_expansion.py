"""Expansions of metrics of several classes: four cumulants of a smooth function of sums, then Edgeworth.

The mathematics is in section "Smooth functions of sums of independent vectors". Expected sums are computed at every
posterior draw. Covariances and higher cumulants change little between draws: they are computed at some draws, of large
sets at some rows, and interpolated in between.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.class_sums import ClassFunctional, ClassSums
from darkmetrics.distributions.expansion import compute_lattice_errors, edgeworth_cdf

# Levels per posterior draw, in standard deviations.
LEVELS = np.linspace(-4.5, 4.5, 33)
# Step of numerical derivatives, as a fraction of each sum's standard deviation.
_STEP = 0.02
# Numbers (draws x rows x classes) that are processed at a time.
_BATCH = 2**17
# Draws at which the lattice error is estimated.
_N_LATTICE = 5


def compute_class_derivatives(
    functional: ClassFunctional, point: FloatArray, spread: FloatArray, *, hessian: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Compute gradient and Hessian (n_draws x n_sums x ...) by the sums at points (n_sums x n_draws).

    `spread` has the standard deviation of each sum, which determines the steps.
    """
    size, n = point.shape
    is_fixed = spread <= 1e-12 * np.abs(point)
    step = np.where(is_fixed, 1.0, _STEP * spread)
    gradient, second = np.zeros((n, size)), np.zeros((n, size, size))
    if functional.terms is not None:
        k = size // 2
        grid = np.arange(-1.0, 2.0)
        moved = np.empty((size, n, 3, 3))
        moved[:k] = point[:k, :, None, None] + step[:k, :, None, None] * grid[:, None]
        moved[k:] = point[k:, :, None, None] + step[k:, :, None, None] * grid
        with np.errstate(divide="ignore", invalid="ignore"):
            u, hx, ha, at = functional.terms(moved), step[:k], step[k:], np.arange(k)
            gradient[:, :k] = ((u[..., 2, 1] - u[..., 0, 1]) / (2.0 * hx)).T
            gradient[:, k:] = ((u[..., 1, 2] - u[..., 1, 0]) / (2.0 * ha)).T
            second[:, at, at] = ((u[..., 2, 1] + u[..., 0, 1] - 2.0 * u[..., 1, 1]) / hx**2).T
            second[:, at + k, at + k] = ((u[..., 1, 2] + u[..., 1, 0] - 2.0 * u[..., 1, 1]) / ha**2).T
            mixed = (u[..., 2, 2] + u[..., 0, 0] - u[..., 2, 0] - u[..., 0, 2]) / (4.0 * hx * ha)
        second[:, at, at + k] = second[:, at + k, at] = mixed.T
    else:
        unit = np.eye(size)[:, None, :] * step[..., None]  # sum moved, draw, direction
        centre = functional.at(point)[:, None]
        up, down = (functional.at(point[..., None] + sign * unit) for sign in (1.0, -1.0))
        gradient = (up - down) / (2.0 * step.T)
        for i in range(size if hessian else 0):
            moves = unit[..., i : i + 1] + unit[..., i:]
            both = functional.at(point[..., None] + moves) + functional.at(point[..., None] - moves)
            cross = both + 2.0 * centre - up[:, i : i + 1] - down[:, i : i + 1] - up[:, i:] - down[:, i:]
            second[:, i, i:] = second[:, i:, i] = cross / (2.0 * step.T[:, i : i + 1] * step.T[:, i:])
            second[:, i, i] = (up[:, i] + down[:, i] - 2.0 * centre[:, 0]) / step[i] ** 2
    fixed = is_fixed.T
    return np.where(fixed, 0.0, gradient), np.where(fixed[:, :, None] | fixed[:, None, :], 0.0, second)


@dataclass(frozen=True, eq=False)
class SumMoments:
    """What the expansions of metrics of the same sums share.

    Attributes
    ----------
    sums : ClassSums
        The sums.
    mean : array (n_sums, n_draws)
        Expected sums at every draw.
    draws : array of int
        Draws at which the probabilities of some rows are kept.
    rows : ClassSums
        The sums of these rows, which count for all rows.
    q : array (n, n_rows, K)
        Probabilities at these draws and rows.
    """

    sums: ClassSums
    mean: FloatArray
    draws: IntArray
    rows: ClassSums
    q: FloatArray

    def batches(self) -> list[slice]:
        """Return portions of the kept draws."""
        n = max(1, _BATCH // max(1, self.q[0].size))
        return [slice(start, start + n) for start in range(0, len(self.q), n)]

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the sums at the kept draws (n x n_sums x n_sums)."""
        result = []
        for at in self.batches():
            rows = self.rows.at_draws(self.q[at])
            result.append(rows.covariance(self.q[at], rows.expect_columns(self.q[at])))
        return np.concatenate(result)


@dataclass(frozen=True, eq=False)
class ClassExpansion:
    """A functional at the draws of a posterior: moments, the distribution, and an estimate of its error."""

    functional: ClassFunctional
    moments_of_sums: SumMoments

    @cached_property
    def value(self) -> FloatArray:
        """The functional at the expected sums of every draw."""
        return self.functional.at(self.moments_of_sums.mean)

    @cached_property
    def _cumulants(self) -> dict[str, FloatArray]:
        """Cumulants and diagnostics at the kept draws."""
        moments = self.moments_of_sums
        sigma = moments.covariance
        spread = np.sqrt(np.maximum(np.einsum("bjj->jb", sigma), 0.0))
        g, h = compute_class_derivatives(self.functional, moments.mean[:, moments.draws], spread)
        ascent = np.einsum("bij,bj->bi", sigma, g)
        linear = np.maximum(np.einsum("bi,bi->b", g, ascent), 1e-300)
        # Curvature along the direction of steepest ascent does not affect the boundary of {metric <= t}.
        along = np.einsum("bi,bij,bj->b", ascent, h, ascent) / linear**2
        bent = h - along[:, None, None] * g[:, :, None] * g[:, None, :]
        facts = {"ascent": ascent, "linear": linear, "gradient": g}
        for name, hessian in (("", h), ("level_", bent)):
            product = hessian @ sigma
            facts[name + "shift"] = 0.5 * np.einsum("bii->b", product)
            facts[name + "quadratic"] = 0.5 * np.einsum("bij,bji->b", product, product)
            change = np.einsum("bij,bj->bi", hessian, ascent)
            facts[name + "bend"] = 3.0 * np.einsum("bi,bi->b", ascent, change)
            facts[name + "fourth"] = 12.0 * np.einsum("bi,bij,bj->b", change, sigma, change)
        by_row = [self._sum_rows(moments.q[at], g[at], h[at], bent[at]) for at in moments.batches()]
        names = ("variance", "third", "fourth_power", "fourth_cumulant", "mixed", "level_mixed")
        facts |= {name: np.concatenate(values) for name, values in zip(names, zip(*by_row, strict=True), strict=True)}
        return facts

    def _sum_rows(self, q: FloatArray, g: FloatArray, h: FloatArray, bent: FloatArray) -> tuple[FloatArray, ...]:
        """Return sums over the rows of moments of the influence, and of its products with the quadratic term."""
        sums = self.moments_of_sums.rows.at_draws(q)
        z = sums.project(g[:, None, :])
        z = z - (q * z).sum(axis=-1, keepdims=True)
        qz = q * z
        second, third, fourth = (np.einsum("...k,...k->...", x, y) for x, y in ((qz, z), (qz, z * z), (qz * z, z * z)))
        columns = sums.expect_columns(q)
        mixed = [
            (qz * (sums.square(hessian) - 2.0 * sums.project(columns @ hessian))).sum(axis=-1) for hessian in (h, bent)
        ]
        per_row = (second, third, fourth, fourth - 3.0 * second**2, *mixed)
        return tuple(np.asarray(np.einsum("bi,i->b", values, sums.rows)) for values in per_row)

    @cached_property
    def _interpolation(self) -> FloatArray:
        """Weights (n_draws x n_kept) that interpolate between the kept draws, in the order of the metric."""
        draws = self.moments_of_sums.draws
        n = self.value.size
        if draws.size == n:
            return np.eye(n)
        order = np.argsort(self.value[draws], kind="stable")
        position = np.interp(self.value, self.value[draws][order], np.arange(draws.size))
        below = np.minimum(position.astype(np.int64), draws.size - 2) if draws.size > 1 else np.zeros(n, np.int64)
        fraction, weights, at = position - below, np.zeros((n, draws.size)), np.arange(n)
        weights[at, order[below]] = 1.0 - fraction
        weights[at, order[np.minimum(below + 1, draws.size - 1)]] += fraction
        return weights

    @property
    def linear_variance(self) -> FloatArray:
        """Variance of the metric at every draw, to first order."""
        return np.asarray(self._interpolation @ self._cumulants["variance"])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the metric at every draw, to second order."""
        facts = self._cumulants
        variance = facts["variance"] + facts["mixed"] + facts["quadratic"]
        return self.value + self._interpolation @ facts["shift"], self._interpolation @ np.maximum(variance, 0.0)

    def distribution(self) -> tuple[FloatArray, FloatArray]:
        """Return levels of the metric and the cdf there, at every draw (n_draws x n_levels)."""
        facts, mean = self._cumulants, self.moments_of_sums.mean[:, self.moments_of_sums.draws]
        sd = np.sqrt(facts["linear"])
        points = mean[..., None] + (facts["ascent"] / sd[:, None]).T[..., None] * LEVELS
        offset = self.functional.at(points) - self.functional.at(mean)[:, None]
        variance = facts["variance"] + facts["level_mixed"] + facts["level_quadratic"]
        scale = np.sqrt(np.maximum(variance, 0.25 * facts["variance"]))
        x = (LEVELS * sd[:, None] - facts["level_shift"][:, None]) / scale[:, None]
        third = facts["third"] + facts["level_bend"]
        fourth = facts["fourth_cumulant"] + facts["level_fourth"]
        cdf = edgeworth_cdf(x, (third / scale**3)[:, None], (fourth / scale**4)[:, None])
        return self.value[:, None] + self._interpolation @ offset, self._interpolation @ cdf

    def estimate_error(self, weight: FloatArray) -> float:
        """Estimate the error of the expansion in units of the cdf, averaged over the draws.

        The terms are those of metrics of two classes: the effective number of rows, steps of a lattice, curvature.
        """
        facts = self._cumulants
        with np.errstate(divide="ignore", invalid="ignore"):
            effective_rows = np.maximum(np.nan_to_num(facts["variance"] ** 2 / facts["fourth_power"]), 1e-9)
            curvature = np.nan_to_num(facts["level_quadratic"] / facts["variance"], nan=1.0)
        error = 0.01 / effective_rows + 0.01 / effective_rows**2 + 2.0 * np.maximum(curvature, 0.0) ** 1.5
        error = np.minimum(np.where(np.isfinite(error), error, 1.0), 1.0)
        average = float(weight @ (self._interpolation @ error) / weight.sum())
        return average + (self._lattice_error() if average < 0.01 else 0.0)

    def _lattice_error(self) -> float:
        """Return the mean lattice error at some draws.

        A row that leaves its most likely label moves the metric by the difference of their influences.
        """
        moments = self.moments_of_sums
        at = np.unique(np.linspace(0, len(moments.q) - 1, _N_LATTICE).astype(np.int64))
        q = moments.q[at]
        z = moments.rows.at_draws(q).project(self._cumulants["gradient"][at, None, :])
        likely = q.argmax(axis=-1)[..., None]
        jump = z - np.take_along_axis(z, likely, axis=-1)
        mass = q * np.take_along_axis(q, likely, axis=-1) * moments.rows.rows[:, None]
        np.put_along_axis(mass, likely, 0.0, axis=-1)
        sd = np.sqrt(self._cumulants["variance"][at])
        errors = compute_lattice_errors(jump.reshape(len(at), -1), mass.reshape(len(at), -1), sd)
        return float(errors.mean())
