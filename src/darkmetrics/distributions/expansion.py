"""Method "expand": an Edgeworth expansion of P(metric <= t) at every level t (mathematics, smooth functions of sums).

Sums of many influential rows are nearly normal, and their first four cumulants measure the deviation. At each level t
the event {metric <= t} is a half space of the sums, except for the curvature of its boundary. Ratios are not expanded,
so a metric with maximum 1 has no probability above 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, combinations_with_replacement, permutations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.pairs import PairTerm
from darkmetrics.distributions.problem import Cells

# Largest estimated cdf error of an expansion that is used.
MAX_EXPANSION_ERROR = 0.008
# Levels per posterior draw, and how many standard deviations they reach.
_N_LEVELS, _REACH = 33, 4.5
# Levels of the mixture over the draws: coarse ones for the sum over the draws, fine ones for the result.
_N_COARSE, _N_FINE = 129, 1025
# Influences below this fraction of their terms are 0: numerical derivatives are not more accurate.
_CANCELED = 1e-9
# Step of numerical derivatives, as a fraction of each sum's standard deviation.
_STEP = 0.02
# Frequencies of the characteristic function of the influences, and the number of rows that it uses.
_FREQUENCIES, _MIN_FREQUENCY, _MAX_ROWS = np.arange(512.0, dtype=np.float32), 4, 64
# With at most this many kinds of rows, or from this error on, it is computed at several levels of the metric (in
# standard deviations).
_FEW_KINDS, _MIN_LATTICE_ERROR, _LATTICE_LEVELS = 16, 0.001, np.linspace(-2.0, 2.0, 17)
# Maximum number of rows that are sorted; more are represented by every second, third, ... row.
_MAX_SORTED = 2**13
# Ranks of the posterior draws, by label variance, at which the error of an expansion is estimated: denser at small
# variances, where the error changes fast.
_ESTIMATED_RANKS = np.linspace(0.0, 1.0, 9) ** 2
# Tail probabilities below this are clipped.
_TAIL = 1e-9


class SumCumulants(NamedTuple):
    """Joint cumulants of the sums: mean (n_sums x n_draws) and tensors of order 2 to 4, draws on the last axis."""

    mean: FloatArray
    k2: FloatArray
    k3: FloatArray
    k4: FloatArray


class Rows(NamedTuple):
    """Increments of each sum, and cumulants of order 1 to 4 of the numbers of positives (n_draws x n).

    There is one entry per kind of row if there are few kinds, else one per cell. Increments have an axis of draws only
    with pair terms.
    """

    increments: list[FloatArray]
    cumulants: list[FloatArray]


def rows_of(functional: Functional, cells: Cells) -> Rows:
    """Return the rows of a functional; metrics of the same rows share the cumulants."""
    if functional.has_few_kinds and functional.kinds is not None:
        return Rows(list(functional.kinds[0].T), cells.cumulants_by_kind(functional))
    cumulants = cells.cumulants_by_cell(functional.missing)
    if functional.pairs:
        increments = functional.linearize(cells.probability)[1]
        for pair in functional.pairs:
            increments[pair.sum_index] = increments[pair.sum_index] + pair.slope_of_squares(cells.probability)
        return Rows(increments, cumulants)
    assert functional.columns is not None
    return Rows(list(functional.columns.T), cumulants)


def compute_sum_cumulants(
    functional: Functional, cells: Cells, orders: Sequence[int] = (2, 3, 4), rows: Rows | None = None
) -> SumCumulants:
    """Compute the joint cumulants of a functional's sums at every draw; omitted orders are zero."""
    rows = rows_of(functional, cells) if rows is None else rows
    if functional.pairs:
        mean, _ = functional.linearize(cells.probability)
    else:
        mean = np.zeros((len(rows.increments), cells.n_draws)) + functional.constant[:, None]
        for i, increment in enumerate(rows.increments):
            mean[i] += rows.cumulants[0] @ increment
    tensors = {order: np.zeros((len(mean),) * order + (cells.n_draws,)) for order in (2, 3, 4)}
    for order in orders:
        for axes in combinations_with_replacement(range(len(mean)), order):
            product = reduce(np.multiply, (rows.increments[axis] for axis in axes))
            cumulant = rows.cumulants[order - 1]
            value = cumulant @ product if product.ndim == 1 else (cumulant * product).sum(axis=1)
            for permuted in set(permutations(axes)):
                tensors[order][permuted] = value
    result = SumCumulants(mean, tensors[2], tensors[3], tensors[4])
    for pair in functional.pairs:
        _add_pair_cumulants(pair, cells.probability, functional, rows.increments, result, orders)
    return result


def _add_pair_cumulants(
    pair: PairTerm,
    p: FloatArray,
    functional: Functional,
    increments: Sequence[FloatArray],
    cumulants: SumCumulants,
    orders: Sequence[int],
) -> None:
    """Add the quadratic term of a pair term to the cumulants, in place.

    With M the matrix of the products of different rows and V the label variances, the third cumulant gains a'VMVb and
    the fourth 2 a'VMVMVb.
    """
    at, size = pair.sum_index, len(cumulants.mean)
    label_variance = p * (1.0 - p)
    v = label_variance * functional.missing
    cumulants.mean[at] += pair.sum_by_group(v * pair.weight**2) @ pair.inner
    cumulants.k2[at, at] += pair.variance(v, functional.missing)
    if max(orders) == 2:
        return
    square = 2.0 * label_variance * pair.inner[pair.group] * pair.weight**2
    slopes = [
        pair.slope(pair.sum_by_group(v * pair.weight * increment)) - square * increment for increment in increments
    ]
    for a in range(size):
        for b in range(size):
            third = (v * increments[a] * slopes[b]).sum(axis=1)
            for axes in ((at, a, b), (a, at, b), (a, b, at)):
                cumulants.k3[axes] += third
            if 4 not in orders:
                continue
            fourth = 2.0 * (v * slopes[a] * slopes[b]).sum(axis=1)
            for i, j in combinations(range(4), 2):
                index = [at] * 4
                index[i], index[j] = a, b
                cumulants.k4[tuple(index)] += fourth


def compute_derivatives(
    functional: Functional, point: FloatArray, spread: FloatArray, *, hessian: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Compute gradient and Hessian of the metric at sums (n_sums x ...) by central differences.

    Derivatives along a sum without spread are 0. The Hessian is zero unless `hessian`.
    """
    size, step = len(point), _STEP * np.broadcast_to(spread, point.shape)
    if not size:  # no missing row moves the metric
        return np.zeros(point.shape), np.zeros((0, *point.shape))
    fixed, safe = step <= 0.0, np.where(step > 0.0, step, 1.0)
    moves = np.eye(size).reshape(size, size, *(1,) * (point.ndim - 1)) * step
    up, down = (np.stack([functional.at(point + sign * move) for move in moves]) for sign in (1.0, -1.0))
    gradient, second = np.where(fixed, 0.0, (up - down) / (2.0 * safe)), np.zeros((size, *point.shape))
    if not hessian:
        return gradient, second
    centre = functional.at(point)
    for i in range(size):
        second[i, i] = np.where(fixed[i], 0.0, (up[i] + down[i] - 2.0 * centre) / safe[i] ** 2)
        for j in range(i):
            diagonal = functional.at(point + moves[i] + moves[j]) + functional.at(point - moves[i] - moves[j])
            cross = (diagonal + 2.0 * centre - up[i] - down[i] - up[j] - down[j]) / (2.0 * safe[i] * safe[j])
            second[i, j] = second[j, i] = np.where(fixed[i] | fixed[j], 0.0, cross)
    return gradient, second


def compute_influence(functional: Functional, p: FloatArray) -> FloatArray:
    """Compute the derivative of the metric by the label of one row of each cell, at every draw (n_draws x n_cells)."""
    sums, increments = functional.linearize(p)
    v = p * (1.0 - p) * functional.missing
    spread = np.sqrt([(v * increment**2).sum(axis=-1) for increment in increments])
    # The spread determines the step; if nothing varies, use a small fraction of each sum's range.
    low, high = functional.sum_limits
    spread = np.maximum(spread, 1e-6 * (high - low)[:, None])
    gradient, _ = compute_derivatives(functional, sums, spread, hessian=False)
    return _add_influences(gradient, increments, v.shape)


def _add_influences(gradient: FloatArray, increments: Sequence[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """Return the influence of each row: the sum of slope times increment, or zero if the terms cancel."""
    total, size = np.zeros(shape), np.zeros(shape)
    for slope, increment in zip(gradient, increments, strict=True):
        move = slope[:, None] * increment
        total += move
        size += np.abs(move, out=move)
    return np.where(np.abs(total) <= _CANCELED * size, 0.0, total)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A functional at the draws of a posterior: moments, the distribution, and an estimate of its error."""

    functional: Functional
    cells: Cells

    @cached_property
    def rows(self) -> Rows:
        """Increments and cumulants of the rows."""
        return rows_of(self.functional, self.cells)

    @cached_property
    def cumulants(self) -> SumCumulants:
        """Joint cumulants of the sums at every draw."""
        return compute_sum_cumulants(self.functional, self.cells, rows=self.rows)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the metric at every draw, to second order; NaN where it has no derivative."""
        return self.value_cumulants[:2]

    @cached_property
    def value_cumulants(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and third cumulant of the metric at every draw; NaN where it has no derivative."""
        cached = self.__dict__.get("cumulants")  # of all orders, if the distribution was computed
        mean, k2, k3, k4 = cached or compute_sum_cumulants(self.functional, self.cells, (2, 3), self.rows)
        spread = np.sqrt(np.maximum(np.einsum("aak->ak", k2), 0.0))
        with np.errstate(invalid="ignore"):
            g, h = compute_derivatives(self.functional, mean, spread)
            shift, variance, third, _ = quadratic_cumulants(g, h, k2, k3, k4)
            return self.functional.at(mean) + shift, np.maximum(variance, 0.0), third

    def estimate_error(self) -> float:
        """Estimate the error of the expansion in units of the cdf, averaged over the draws.

        The estimate has three terms: the effective number of rows (`D = (sum z^2 v)^2 / sum z^4 v`; z is the influence
        of a row, v the variance of its label), influences on a lattice, and curvature of the metric.
        """
        cells, functional, rows = self.cells, self.functional, self.rows
        mean, k2, _, _ = self.cumulants
        order = np.argsort(rows.cumulants[1].sum(axis=1))
        ranks = np.unique((_ESTIMATED_RANKS * (order.size - 1)).astype(np.int64))
        chosen = order[ranks]
        mean, k2, v = mean[:, chosen], k2[..., chosen], rows.cumulants[1][chosen]
        gradient, hessian = compute_derivatives(functional, mean, np.sqrt(np.einsum("aak->ak", k2)))
        increments = [increment if increment.ndim == 1 else increment[chosen] for increment in rows.increments]
        z = _add_influences(gradient, increments, v.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread, fourth = np.einsum("kn,kn,kn->k", v, z, z), np.einsum("kn,kn,kn,kn,kn->k", v, z, z, z, z)
            effective_rows = np.maximum(np.nan_to_num(spread**2 / fourth), 1e-9)
            curvature = self._curvature(gradient, hessian, k2, v)
        few_rows = 0.01 / effective_rows + 0.01 / effective_rows**2 + 2.0 * curvature**1.5
        lattice_errors = compute_lattice_errors(z, v, np.sqrt(spread))
        is_uneven = (lattice_errors > _MIN_LATTICE_ERROR) | (z.shape[1] <= _FEW_KINDS)
        at = np.flatnonzero(is_uneven & (few_rows <= MAX_EXPANSION_ERROR))
        if at.size:
            at_draws = [increment if increment.ndim == 1 else increment[at] for increment in increments]
            lattice_errors[at] = self._lattice_error_of_levels(mean[:, at], k2[..., at], at_draws, v[at])
        error = few_rows + lattice_errors
        error = np.where(np.isfinite(error), np.minimum(error, 1.0), 1.0)
        by_draw = np.interp(np.arange(order.size), ranks, error)
        return float(by_draw @ cells.weight[order] / cells.weight.sum())

    def _lattice_error_of_levels(
        self, mean: FloatArray, k2: FloatArray, increments: Sequence[FloatArray], v: FloatArray
    ) -> FloatArray:
        """Return the largest lattice error over levels of the metric, at each draw.

        Influences can be near multiples of one number at one level and not at the next.
        """
        points, spread = self._points(mean, k2, _LATTICE_LEVELS), np.sqrt(np.einsum("aak->ak", k2))
        gradients, _ = compute_derivatives(self.functional, points, spread[..., None], hessian=False)
        influences = [_add_influences(gradient, increments, v.shape) for gradient in np.moveaxis(gradients, -1, 0)]
        z, v = np.concatenate(influences), np.tile(v, (len(influences), 1))
        errors = compute_lattice_errors(z, v, np.sqrt(np.einsum("kn,kn,kn->k", v, z, z)))
        return np.asarray(errors.reshape(len(influences), -1).max(axis=0))

    def _points(self, mean: FloatArray, k2: FloatArray, levels: FloatArray) -> FloatArray:
        """Return the most likely sums at each level of the metric (n_sums x n_draws x n_levels)."""
        mean, k2 = mean[..., None], k2[..., None]
        gradient, _ = compute_derivatives(self.functional, mean, np.sqrt(np.einsum("aakl->akl", k2)), hessian=False)
        ascent = _contract(k2, gradient)
        return mean + levels * ascent / np.sqrt(np.maximum(_contract(ascent, gradient), 1e-300))

    def _curvature(self, g: FloatArray, h: FloatArray, k2: FloatArray, v: FloatArray) -> FloatArray:
        """Return the variance of the quadratic term of the metric relative to the linear term, at each draw."""
        for pair in self.functional.pairs:  # k2 includes the variance of the pair term, which is not linear
            k2 = k2.copy()
            k2[pair.sum_index, pair.sum_index] -= pair.variance(v, self.functional.missing)
        hs = (_project_hessian(g, h, k2)[:, :, None] * k2[None]).sum(axis=1)
        quadratic = 0.5 * (hs * hs.swapaxes(0, 1)).sum(axis=(0, 1))
        for pair in self.functional.pairs:
            quadratic = quadratic + g[pair.sum_index] ** 2 * pair.variance(v, self.functional.missing)
        ratio = np.nan_to_num(quadratic / _contract(g, _contract(k2, g)), nan=1.0)
        return np.asarray(np.where(ratio >= 0.0, ratio, 1.0))  # rounding left no variance

    def distribution(self) -> tuple[FloatArray, FloatArray]:
        """Return levels of the metric and the cdf there."""
        functional = self.functional
        point = self._points(self.cumulants.mean, self.cumulants.k2, np.linspace(-_REACH, _REACH, _N_LEVELS))
        mean, k2, k3, k4 = (tensor[..., None] for tensor in self.cumulants)
        spread = np.sqrt(np.einsum("aakl->akl", k2))
        with np.errstate(invalid="ignore", divide="ignore"):
            g, h = compute_derivatives(functional, point, spread)
            h, x = _project_hessian(g, h, k2), mean - point
            hx = _contract(h, x)
            shift, variance, third, fourth = quadratic_cumulants(g + hx, h, k2, k3, k4)
            centre = _contract(g, x) + 0.5 * _contract(x, hx) + shift
            cdf = edgeworth_cdf(-centre / np.sqrt(variance), third / variance**1.5, fourth / variance**2)
            level = functional.at(point)
        return mix_draws(level, cdf, self.cells.weight)


def compute_lattice_errors(z: FloatArray, v: FloatArray, sd: FloatArray) -> FloatArray:
    """Estimate the cdf error of an expansion that ignores the steps of influences on a lattice, at each draw.

    The modulus of the characteristic function is at most exp(-sum v (1 - cos(t z))). An expansion assumes that it
    vanishes at large t; the integral of this bound over t, divided by pi t, is the estimate.
    """
    step = -(-z.shape[1] // _MAX_SORTED)
    z, v = z[:, ::step], step * v[:, ::step]
    if z.shape[1] > _MAX_ROWS:
        z, v = _represent_by_quantiles(z, v)
    is_valid = (sd > 0.0) & np.isfinite(sd)
    angle, mass = (x[:, None].astype(np.float32) for x in (z / np.where(is_valid, sd, 1.0)[:, None], v))
    # cos((a + b) x) = cos(a x) cos(b x) - sin(a x) sin(b x), with a multiple a of 16 and b below it.
    high, low = _FREQUENCIES[::16, None] * angle, _FREQUENCIES[:16, None] * angle
    cosines = (np.cos(high) * mass) @ np.cos(low).swapaxes(1, 2) - (np.sin(high) * mass) @ np.sin(low).swapaxes(1, 2)
    bound = np.exp(cosines.reshape(len(z), -1)[:, _MIN_FREQUENCY:] - mass.sum(axis=2))
    error = (bound / _FREQUENCIES[_MIN_FREQUENCY:]).sum(axis=1) / np.pi
    return np.where(is_valid, error, 1.0).astype(np.float64)


def _represent_by_quantiles(z: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Represent all rows by quantiles of z, weighted by the label variance, at each draw."""
    order = np.argsort(z, axis=1)
    cumulative = np.cumsum(np.take_along_axis(v, order, axis=1), axis=1)
    total = cumulative[:, -1:]
    levels = (np.arange(_MAX_ROWS) + 0.5) / _MAX_ROWS * total
    index = [np.searchsorted(reached, level) for reached, level in zip(cumulative, levels, strict=True)]
    quantiles = np.take_along_axis(z, np.take_along_axis(order, np.array(index), axis=1), axis=1)
    return quantiles, np.broadcast_to(total / _MAX_ROWS, quantiles.shape)


def _project_hessian(g: FloatArray, h: FloatArray, k2: FloatArray) -> FloatArray:
    """Remove the curvature along the direction of steepest ascent, which does not affect the boundary of {T <= t}."""
    u = _contract(k2, g)
    u = u / _contract(u, g)
    hu = _contract(h, u)
    a = hu - 0.5 * g * _contract(hu, u)
    return np.asarray(h - g[:, None] * a - a[:, None] * g)


def quadratic_cumulants(
    g: FloatArray, h: FloatArray, k2: FloatArray, k3: FloatArray, k4: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return four cumulants of g'x + x'Hx / 2 for x with mean 0 and these joint cumulants (mathematics, section 15)."""
    hs = (h[:, :, None] * k2[None]).sum(axis=1)
    k2_g, k3_g = _contract(k2, g), _contract(k3, g)
    h_k2_g = _contract(h, k2_g)
    variance = _contract(g, k2_g) + (k3_g * h).sum(axis=(0, 1)) + 0.5 * (hs * hs.swapaxes(0, 1)).sum(axis=(0, 1))
    third = _contract(_contract(k3_g, g), g) + 3.0 * _contract(k2_g, h_k2_g)
    fourth = _contract(_contract(_contract(_contract(k4, g), g), g), g)
    fourth = fourth + 12.0 * _contract(h_k2_g, _contract(k2, h_k2_g))
    return np.asarray(0.5 * np.einsum("aa...->...", hs)), variance, third, fourth


def _contract(tensor: FloatArray, vector: FloatArray) -> FloatArray:
    """Contract the first axis of a symmetric tensor with a vector; the later axes of the vector are batch axes."""
    shaped = vector.reshape(len(vector), *(1,) * (tensor.ndim - vector.ndim), *vector.shape[1:])
    return np.asarray((tensor * shaped).sum(axis=0))


def edgeworth_cdf(x: FloatArray, skewness: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """Return P(X <= x) of a standardized variable by its Edgeworth expansion; `kurtosis` is the excess."""
    square = x * x
    he2, he3, he5 = square - 1.0, x * (square - 3.0), x * (square * (square - 10.0) + 15.0)
    correction = skewness / 6.0 * he2 + kurtosis / 24.0 * he3 + skewness**2 / 72.0 * he5
    return np.asarray(np.clip(ndtr(x) - np.exp(-0.5 * square) / np.sqrt(2.0 * np.pi) * correction, 0.0, 1.0))


def mix_draws(level: FloatArray, cdf: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average the distributions of the draws, given levels and the cdf there (n_draws x n_levels each).

    Interpolation uses normal scores of the cdf, which are nearly linear in the level.
    """
    middle = level.shape[1] // 2
    rising = (np.diff(level, axis=1) > 0.0) & np.isfinite(cdf[:, 1:] + cdf[:, :-1])
    # From the middle outward, use levels until the metric stops rising.
    above = np.cumprod(rising[:, middle:], axis=1, dtype=np.bool_)
    below = np.cumprod(rising[:, :middle][:, ::-1], axis=1, dtype=np.bool_)[:, ::-1]
    used = np.concatenate([below, np.ones((len(level), 1), np.bool_), above], axis=1)
    used &= np.isfinite(level) & np.isfinite(cdf) & (weight > 0.0)[:, None]
    coarse = np.linspace(level[used].min(), level[used].max(), _N_COARSE)
    normal_scores = ndtri(np.clip(cdf, _TAIL, 1.0 - _TAIL))
    draws = np.flatnonzero(used.any(axis=1))
    interpolated = np.empty((draws.size, _N_COARSE))
    # The levels that are used are contiguous. Outside them the cdf is 0 or 1.
    starts, stops = used.argmax(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1)
    for row, draw in zip(interpolated, draws, strict=True):
        inside = slice(starts[draw], stops[draw])
        score = np.maximum.accumulate(normal_scores[draw, inside])
        row[:] = np.interp(coarse, level[draw, inside], score, left=-np.inf, right=np.inf)
    mixed = weight[draws] / weight.sum() @ ndtr(interpolated)
    grid = np.linspace(coarse[0], coarse[-1], _N_FINE)
    levels = ndtr(np.interp(grid, coarse, ndtri(np.clip(mixed, 1e-12, 1.0 - 1e-12))))
    levels[0], levels[-1] = 0.0, 1.0
    return grid, levels
