"""Proposals for importance sampling: a Gaussian at the mode, or Gaussians along a grid of one bent parameter.

Both have a different width on either side of each axis (Geweke 1989), because posteriors may be one-sided: the log odds
of a rate that no row has shown yet are an example. A posterior is bent along a parameter if its conditional Gaussians
follow a curve or change their width. The parameter then gets a grid of values, and all others a Gaussian conditional
on it, whose mode follows the grid by cubic Hermite interpolation.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.posterior.likelihood import LOG_2PI, Likelihood
from darkmetrics.posterior.mode import Mode, find_modes
from darkmetrics.posterior.tables import log_total

LogDensity = Callable[[FloatArray], FloatArray]

# A parameter is bent if the log posterior drops this much more or less (log of the ratio) than its Gaussian does at a
# distance of so many standard deviations.
_BENT, _BENT_DISTANCE = 0.25, 2.0
# Below this a Gaussian is tried nevertheless if the prior is Gaussian, because importance weights correct it; of a
# Cauchy tail they may not show that it is missed. With more than `_MANY` parameters weights often fail.
_VERY_BENT, _MANY = 1.0, 20
# A parameter with a Cauchy prior gets a grid if its standard deviation is above this fraction of the prior's scale: its
# posterior then has a heavy tail, which no Gaussian reaches.
_HEAVY = 0.3
# Number of parameters to try a grid along.
_MAX_GRIDS = 2
# Widths on either side of an axis are measured at this distance and limited to this range.
_WIDTH_DISTANCE, _WIDTHS = 1.5, (0.5, 3.0)
_MIN_DROP = 0.05
# Newton steps to the mode of the marginal density are measured at this distance. Curvatures and steps are limited.
_STEP_DISTANCE, _CURVATURES, _MAX_STEP = 0.5, (0.5, 2.0), 2.0
# The grid ends where the density has dropped by exp(-9). Its steps grow geometrically.
_GRID_DROP, _GRID_STEPS, _GRID_START, _GRID_GROWTH = 9.0, 14, 0.8, 1.3
# Conditional modes on the grid need not be exact, because weights correct the proposal.
_GRID_GAIN = 0.05
# A proposal wider than the posterior limits the importance weights: less so in many dimensions.
_INFLATION, _INFLATED_AXES = 0.1, 12.0


class Proposed(NamedTuple):
    """Proposed parameters (n_parameters x n_draws) and the log density of the main ones."""

    theta: FloatArray
    log_density: FloatArray


@dataclass(frozen=True, eq=False)
class ConditionalGaussian:
    """Laplace approximation of the main parameters, conditional on the value of a grid parameter (if any).

    Attributes
    ----------
    mode : array (n_parameters,)
        Conditional mode of all parameters.
    axes : array (n_parameters, n_axes)
        Moves of all parameters along independent standard normal axes; nuisance parameters follow the main ones.
    log_root : float
        Log determinant of the Cholesky factor of the covariance of the free main parameters.
    log_integral : float
        Log integral over all free parameters.
    slope : array (n_parameters,)
        Derivative of the conditional mode with respect to the grid parameter; zeros without a grid parameter.
    """

    mode: FloatArray
    axes: FloatArray
    log_root: float
    log_integral: float
    slope: FloatArray

    @classmethod
    def from_mode(cls, mode: Mode, main: IntArray, nuisance: IntArray, grid: int | None) -> "ConditionalGaussian":
        """Build the approximation from a mode."""
        precision, size = mode.precision, mode.theta.size
        free = main if grid is None else main[main != grid]
        block, log_volume = precision[free[:, None], free], 0.0
        response, inverse = np.zeros((nuisance.size, free.size)), np.zeros((0, 0))
        if nuisance.size:
            inverse, log_volume = _invert(precision[np.ix_(nuisance, nuisance)])
            response = -inverse @ precision[np.ix_(nuisance, free)]
            block = block + precision[np.ix_(free, nuisance)] @ response
        root = _invert_root(block)
        axes = np.zeros((size, free.size))
        axes[free], axes[nuisance] = root, response @ root
        log_root, slope = float(np.log(np.diag(root)).sum()), np.zeros(size)
        if grid is not None:
            slope[grid] = 1.0
            slope[free] = -root @ (root.T @ (precision[free, grid] + response.T @ precision[nuisance, grid]))
            slope[nuisance] = response @ slope[free] - inverse @ precision[nuisance, grid]
        log_volume += 0.5 * (free.size + nuisance.size) * LOG_2PI + log_root
        return cls(mode.theta, axes, log_root, mode.value + log_volume, slope)


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposal for the main parameters of a likelihood.

    Attributes
    ----------
    main : array of int
        Indices of the main parameters.
    grid_parameter : int, optional
        The parameter that has a grid.
    grid : sequence of ConditionalGaussian
        Approximations along the grid, or a single one.
    widths : array (2, n_axes)
        Widths on the left and right of each axis.
    """

    main: IntArray
    grid_parameter: int | None
    grid: Sequence[ConditionalGaussian]
    widths: FloatArray

    @property
    def n_axes(self) -> int:
        """Number of uniform coordinates of a draw."""
        return int(self.widths.shape[1]) + (self.grid_parameter is not None)

    @property
    def log_evidence(self) -> float:
        """Log evidence of the approximation."""
        if self.grid_parameter is None:
            return self.grid[0].log_integral
        return LogLinearDensity(self._grid_values, np.array([g.log_integral for g in self.grid])).log_integral

    def propose(self, u: FloatArray) -> Proposed:
        """Transform uniform points (n_draws x n_axes) to parameters."""
        inflation = 1.0 + _INFLATION * min(1.0, _INFLATED_AXES / max(1, self.widths.shape[1]))
        z, log_density = _draw_two_sided_normal(u[:, self.n_axes - self.widths.shape[1] :], self.widths, inflation)
        if self.grid_parameter is None:
            center = self.grid[0]
            return Proposed(center.mode[:, None] + center.axes @ z.T, log_density - center.log_root)
        segments = LogLinearDensity(self._grid_values, np.array([gaussian.log_integral for gaussian in self.grid]))
        low, fraction, log_grid_density = segments.draw(u[:, 0])
        theta, free = np.empty((self.grid[0].mode.size, low.size)), self.main[self.main != self.grid_parameter]
        for k in np.unique(low):
            draws, left, right = np.flatnonzero(low == k), self.grid[k], self.grid[k + 1]
            t, width = fraction[draws], segments.width[k]
            # Linear interpolation between modes would leave a narrow curved ridge.
            weights = np.stack([(1 + 2 * t) * (1 - t) ** 2, t**2 * (3 - 2 * t), t * (1 - t) ** 2, t**2 * (t - 1)])
            path = np.stack([left.mode, right.mode, width * left.slope, width * right.slope], axis=1) @ weights
            moves = (1 - t) * (left.axes @ z[draws].T) + t * (right.axes @ z[draws].T)
            theta[:, draws] = path + moves
            left_root, right_root = (gaussian.axes[free].diagonal()[:, None] for gaussian in (left, right))
            log_density[draws] -= np.log((1 - t) * left_root + t * right_root).sum(axis=0)
        return Proposed(theta, log_density + log_grid_density)

    @property
    def _grid_values(self) -> FloatArray:
        return np.array([gaussian.mode[self.grid_parameter] for gaussian in self.grid])


@dataclass(frozen=True, eq=False)
class LogLinearDensity:
    """A density whose logarithm is piecewise linear between grid values, up to a constant."""

    values: FloatArray
    log_heights: FloatArray

    @property
    def width(self) -> FloatArray:
        """Width of each segment."""
        return np.diff(self.values)

    @property
    def _log_masses(self) -> FloatArray:
        rise = np.diff(self.log_heights)
        steep = np.abs(rise) > 1e-8
        ratio = np.where(steep, np.expm1(-np.abs(rise)) / np.where(steep, -np.abs(rise), 1.0), 1.0)
        top = np.maximum(self.log_heights[:-1], self.log_heights[1:])
        return np.asarray(np.log(self.width) + top + np.log(ratio))

    @property
    def log_integral(self) -> float:
        """Log of the integral."""
        return log_total(self._log_masses)

    def draw(self, u: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return segment, position within the segment (0 to 1) and log density at quantiles `u`."""
        log_masses = self._log_masses
        log_integral = log_total(log_masses)
        mass = np.exp(log_masses - log_integral)
        reached = np.cumsum(mass)
        low = np.minimum(np.searchsorted(reached, u * reached[-1]), mass.size - 1)
        v = np.clip((u * reached[-1] - (reached - mass)[low]) / mass[low], 0.0, 1.0)
        rise = np.diff(self.log_heights)[low]
        is_flat = np.abs(rise) < 1e-8
        slope = np.where(is_flat, 1.0, rise)
        t = np.where(is_flat, v, np.log1p(v * np.expm1(slope)) / slope)
        return low, t, self.log_heights[low] + t * rise - log_integral


def make_positive(matrix: FloatArray) -> FloatArray:
    """Return a symmetric matrix without directions of negative or no curvature, which it leaves to rounding."""
    if not matrix.size:
        return matrix
    scale = np.sqrt(np.maximum(np.abs(matrix.diagonal()), 1e-300))
    _, failed = scipy.linalg.lapack.dpotrf(matrix / np.outer(scale, scale), lower=1)
    if not failed:
        return matrix
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    mended = (vectors * np.maximum(values, 1e-8 * values.max())) @ vectors.T
    return np.asarray(mended * np.outer(scale, scale))


def _invert_root(precision: FloatArray) -> FloatArray:
    """Return the upper triangular root of the covariance, from a precision matrix."""
    if not precision.size:
        return precision
    root, failed = scipy.linalg.lapack.dpotrf(precision, lower=1, clean=1)
    if failed:
        root = np.linalg.cholesky(make_positive(precision))
    return np.asarray(scipy.linalg.lapack.dtrtri(root, lower=1)[0].T, dtype=np.float64)


def _invert(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Return the inverse of a precision matrix, and half the log determinant of the inverse."""
    diagonal = matrix.diagonal()
    if np.count_nonzero(matrix) == diagonal.size and diagonal.min() > 0.0:
        return np.diag(1.0 / diagonal), -0.5 * float(np.log(diagonal).sum())
    mended = make_positive(matrix)
    return np.asarray(np.linalg.inv(mended), dtype=np.float64), -0.5 * float(np.linalg.slogdet(mended)[1])


def iterate_proposals(likelihood: Likelihood, mode: Mode, log_density: LogDensity) -> Iterator[Proposal]:
    """Build proposals for the main parameters, the most promising one first.

    A Gaussian comes first unless the posterior is bent along a parameter. Grids along the parameters with the largest
    deviations from a Gaussian follow.

    Parameters
    ----------
    likelihood : Likelihood
        Likelihood and prior.
    mode : Mode
        Mode of all parameters.
    log_density : callable
        Log posterior of the main parameters at columns of all parameters, nuisance parameters integrated out.
    """
    main = likelihood.main
    center = ConditionalGaussian.from_mode(mode, main, likelihood.nuisance, None)
    covariance = center.axes @ center.axes.T
    sd = np.sqrt(np.diag(covariance)[main])
    (center,) = _recenter(likelihood, log_density, [center])
    drop = _measure_drops(log_density, center.mode, _BENT_DISTANCE * covariance[:, main] / sd)
    deviation = np.abs(np.log(drop / (0.5 * _BENT_DISTANCE**2))).max(axis=0)
    cauchy = np.searchsorted(main, likelihood.prior.cauchy)
    deviation[cauchy] += sd[cauchy] > _HEAVY * likelihood.prior.scale
    limit = np.full(main.size, _BENT if main.size > _MANY else _VERY_BENT)
    limit[cauchy] = _BENT
    if (deviation <= limit).all():
        yield Proposal(main, None, [center], _measure_widths(log_density, center))
    for index in np.argsort(-deviation)[:_MAX_GRIDS]:
        parameter = int(main[index])
        grid = _recenter(likelihood, log_density, _build_grid(likelihood, mode, parameter, float(sd[index])))
        middle = max(grid, key=lambda gaussian: gaussian.log_integral)
        yield Proposal(main, parameter, grid, _measure_widths(log_density, middle))


def _recenter(
    likelihood: Likelihood, log_density: LogDensity, grid: list[ConditionalGaussian]
) -> list[ConditionalGaussian]:
    """Move Gaussians to about the mode of the log density, by a Newton step along each axis.

    With nuisance parameters integrated out, the mode is another one than that of all parameters together. The step is
    measured at the most likely Gaussian.
    """
    if not likelihood.nuisance.size:
        return grid
    middle = max(grid, key=lambda gaussian: gaussian.log_integral)
    moves = _STEP_DISTANCE * middle.axes
    points = np.concatenate([np.zeros((len(moves), 1)), -moves, moves], axis=1)
    value = log_density(middle.mode[:, None] + points)
    left, right = value[1:].reshape(2, -1) - value[0]
    gradient, curvature = (right - left) / (2.0 * _STEP_DISTANCE), -(right + left) / _STEP_DISTANCE**2
    step = np.clip(gradient / np.clip(curvature, *_CURVATURES), -_MAX_STEP, _MAX_STEP)
    return [replace(gaussian, mode=gaussian.mode + gaussian.axes @ step) for gaussian in grid]


def _measure_drops(log_density: LogDensity, center: FloatArray, moves: FloatArray) -> FloatArray:
    """Return how much the log density drops along each move, to the left and to the right (2 x n_moves)."""
    points = np.concatenate([np.zeros((center.size, 1)), -moves, moves], axis=1)
    value = log_density(center[:, None] + points)
    return np.asarray(np.maximum(value[0] - value[1:], _MIN_DROP).reshape(2, -1))


def _measure_widths(log_density: LogDensity, gaussian: ConditionalGaussian) -> FloatArray:
    """Return widths on the left and right of each axis (2 x n_axes), relative to the Gaussian."""
    drop = _measure_drops(log_density, gaussian.mode, _WIDTH_DISTANCE * gaussian.axes)
    return np.clip(_WIDTH_DISTANCE / np.sqrt(2.0 * drop), *_WIDTHS)


def _build_grid(likelihood: Likelihood, center: Mode, parameter: int, sd: float) -> list[ConditionalGaussian]:
    """Extend a grid from the mode in both directions until the density is negligible, in growing steps.

    Conditional modes are searched from the line through the last mode.
    """
    main, nuisance = likelihood.main, likelihood.nuisance
    free = np.delete(np.arange(center.theta.size), parameter)
    middle = ConditionalGaussian.from_mode(center, main, nuisance, parameter)
    sides, peak = {-1.0: [middle], 1.0: [middle]}, middle.log_integral
    for step in _GRID_START * sd * _GRID_GROWTH ** np.arange(_GRID_STEPS):
        extended = [direction for direction in sides if sides[direction][-1].log_integral >= peak - _GRID_DROP]
        if not extended:
            break
        ends = [(sides[direction][-1], direction * step) for direction in extended]
        starts = np.stack([end.mode + move * end.slope for end, move in ends], axis=1)
        for direction, mode in zip(
            extended, find_modes(likelihood.expand_points, starts, free, _GRID_GAIN), strict=True
        ):
            gaussian = ConditionalGaussian.from_mode(mode, main, nuisance, parameter)
            sides[direction].append(gaussian)
            peak = max(peak, gaussian.log_integral)
    return [*sides[-1.0][:0:-1], *sides[1.0]]


def _draw_two_sided_normal(u: FloatArray, widths: FloatArray, inflation: float) -> tuple[FloatArray, FloatArray]:
    """Transform uniform points (n_draws x n_axes) to two-sided normals; return the points and their log density."""
    left = widths[0] / widths.sum(axis=0)
    z = ndtri(np.where(u < left, 0.5 * u / left, 0.5 + 0.5 * (u - left) / (1.0 - left)))
    log_density = (-0.5 * z**2 + np.log(2.0 / (inflation * widths.sum(axis=0))) - 0.5 * LOG_2PI).sum(axis=1)
    return inflation * z * np.where(z < 0.0, widths[0], widths[1]), log_density
