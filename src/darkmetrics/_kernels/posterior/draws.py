"""A posterior of few parameters as equally likely nodes: its mode, weighted draws around it, and a fair choice of them.

The Gaussian at the mode proposes, importance weights correct its shape, and their mean is the evidence of the model.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtri, gammaln, logsumexp, ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.sobol import normal_points

_MAX_STEPS = 200
# The proposal is a little wider than the Gaussian at the mode, so that no draw gets a huge weight.
_WIDER = 1.2
# A number that shares no factor with usual numbers of nodes: else each slab is sampled at the same few midpoints of its
# second sum, whose spread comes out 7% too small.
_SLABS = 11
_DRAWS, _HEAVY_DRAWS, _MORE_DRAWS = 256, 1024, 1024
_FREEDOM = 3.0
_ENOUGH = 0.3
_SEED = 7


class _Expansion(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> FloatArray: ...
    @property
    def precision(self) -> FloatArray: ...


class Draws(NamedTuple):
    """Draws of the parameters (rows) with their weights, and the log evidence of the model."""

    parameters: FloatArray
    weight: FloatArray
    log_evidence: float

    def efficiency(self) -> float:
        """How many equally weighted draws these are worth, as a share of their number."""
        return 1.0 / (self.weight.size * float(self.weight @ self.weight))


class _Posterior(Protocol):
    def expand(self, parameters: FloatArray) -> _Expansion: ...
    def log_posterior(self, parameters: FloatArray) -> FloatArray: ...
    def bend(self, straight: FloatArray) -> FloatArray: ...
    def straighten(self, parameters: FloatArray) -> FloatArray: ...
    def bend_slope(self, parameters: FloatArray) -> FloatArray: ...


def posterior_draws(posterior: _Posterior, start: FloatArray, *, heavy: bool = False, n_draws: int = _DRAWS) -> Draws:
    """Weighted draws from a posterior; more of them, from a proposal learnt from the first, where it is not Gaussian.

    They are drawn in the coordinates that the posterior `bend`s, in which it is closer to Gaussian; volumes stay.
    `heavy`: its tails may be, so that a part of the draws is sent far out to find them.
    """

    def log_posterior(straight: FloatArray) -> FloatArray:
        return posterior.log_posterior(posterior.bend(straight))

    n_draws = max(n_draws, _HEAVY_DRAWS) if heavy else n_draws
    mode, precision = posterior_mode(posterior.expand, start)
    slope = posterior.bend_slope(mode)
    draws = weighted_draws(log_posterior, posterior.straighten(mode), slope.T @ precision @ slope, n_draws, heavy=heavy)
    if draws.efficiency() < _ENOUGH:
        mean = draws.weight @ draws.parameters
        off = draws.parameters - mean
        precision = np.asarray(np.linalg.inv(_positive((off.T * draws.weight) @ off)), dtype=np.float64)
        more = weighted_draws(log_posterior, mean, precision, max(n_draws, _MORE_DRAWS), heavy=heavy)
        if more.efficiency() * more.weight.size > draws.efficiency() * draws.weight.size:
            draws = more
    return draws._replace(parameters=posterior.bend(draws.parameters))


def gaussian_posterior(posterior: _Posterior, start: FloatArray, n_draws: int) -> Draws:
    """Draws from the Gaussian at the mode, equally weighted, with the evidence that it leads to."""
    mode, precision = posterior_mode(posterior.expand, start)
    precision = _positive(precision)
    root = np.linalg.cholesky(precision)
    points = mode + solve_triangular(root, normal_points(n_draws, mode.size, _SEED).T, trans="T", lower=True).T
    volume = 0.5 * mode.size * np.log(2.0 * np.pi) - float(np.log(np.diag(root)).sum())
    log_evidence = float(posterior.log_posterior(mode[None])[0]) + volume
    return Draws(points, np.full(n_draws, 1.0 / n_draws), log_evidence)


def posterior_mode(expand: Callable[[FloatArray], _Expansion], start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mode and the precision there, by Newton's method with step halving.

    The likelihood of a mixture is not concave everywhere: where the curvature has the wrong sign its size is used,
    which still leads uphill.
    """
    here, at = start, expand(start)
    for _ in range(_MAX_STEPS):
        values, vectors = np.linalg.eigh(at.precision)
        steep = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
        step = vectors @ ((vectors.T @ at.gradient) / steep)
        gain = float(at.gradient @ step)
        if gain <= 1e-9:
            break
        for _ in range(40):
            new = expand(here + step)
            if new.value >= at.value + 1e-4 * float(at.gradient @ step):
                break
            step = 0.5 * step
        else:
            break
        here, at = here + step, new
    return here, at.precision


def weighted_draws(
    log_posterior: Callable[[FloatArray], FloatArray],
    mode: FloatArray,
    precision: FloatArray,
    n_draws: int,
    *,
    heavy: bool = False,
) -> Draws:
    """Draws from the posterior: quasi-random points of a wide Gaussian at the mode, with importance weights.

    `heavy`: a quarter of the points come from a Student distribution with three degrees of freedom instead. A Gaussian
    never goes where a heavy tail is, and then its weights cannot tell that something is missing.
    """
    # A triangular root, because eigenvectors have no sign of their own and would differ from machine to machine.
    root = np.linalg.cholesky(_positive(precision))
    size = mode.size
    far = n_draws // 4 if heavy else 0
    z = _WIDER * normal_points(n_draws - far, size, _SEED)
    if far:
        points = normal_points(far, size + 1, _SEED)
        radius = np.sqrt(_FREEDOM / chdtri(_FREEDOM, ndtr(points[:, -1])))
        z = np.concatenate([z, points[:, :-1] * radius[:, None]])
    square = (z**2).sum(axis=1)
    log_proposal = -0.5 * square / _WIDER**2 - size * np.log(_WIDER * np.sqrt(2.0 * np.pi))
    if far:
        student = gammaln((_FREEDOM + size) / 2.0) - gammaln(_FREEDOM / 2.0) - 0.5 * size * np.log(_FREEDOM * np.pi)
        log_student = student - 0.5 * (_FREEDOM + size) * np.log1p(square / _FREEDOM)
        log_proposal = np.logaddexp(np.log1p(-far / n_draws) + log_proposal, np.log(far / n_draws) + log_student)
    log_proposal += np.log(np.diag(root)).sum()
    points = mode + solve_triangular(root, z.T, trans="T", lower=True).T
    log_weight = log_posterior(points) - log_proposal
    total = float(logsumexp(log_weight))
    return Draws(points, np.exp(log_weight - total), total - np.log(n_draws))


def _positive(matrix: FloatArray) -> FloatArray:
    """A symmetric matrix without the directions in which rounding, or a saddle, has left nothing or less."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    mended = (vectors * np.maximum(values, 1e-12 * values.max())) @ vectors.T
    result: FloatArray = mended * np.outer(scale, scale)
    return result


def representatives(first: FloatArray, second: FloatArray, weight: FloatArray, size: int) -> IntArray:
    """`size` draws that stand, equally weighted, for all: a systematic sample along a path through (first, second).

    The draws are cut into slabs by `first` and sorted by `second` within each, forth and back. Both sums then have
    nearly the same law among the chosen as among all, although they are few.
    """
    order = np.argsort(first, kind="stable")
    level = np.cumsum(weight[order]) - 0.5 * weight[order]
    slab = np.empty(first.size, dtype=np.int64)
    slab[order] = np.minimum((_SLABS * level).astype(np.int64), _SLABS - 1)
    path = np.lexsort([np.where(slab % 2 == 0, second, -second), slab])
    reached = np.cumsum(weight[path])
    place = np.searchsorted(reached / reached[-1], (np.arange(size) + 0.5) / size)
    return path[np.minimum(place, path.size - 1)]
