"""Mode of a log posterior by damped Newton steps."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.posterior.likelihood import Expansion, Expansions

_MAX_STEPS, _MAX_HALVINGS = 200, 40
MIN_GAIN = 1e-8
# Cholesky factors are used if every direction adds at least this fraction of its curvature to those before it.
_MIN_PIVOT = 1e-6


class Mode(NamedTuple):
    """A mode with the log posterior and minus its Hessian."""

    theta: FloatArray
    value: float
    precision: FloatArray


def find_mode(
    expand: Callable[[FloatArray], Expansion],
    start: FloatArray,
    free: IntArray | None = None,
    min_gain: float = MIN_GAIN,
) -> Mode:
    """Find the mode of a log posterior.

    Where the log posterior is not concave, steps use the absolute eigenvalues of the Hessian, which still lead uphill.

    Parameters
    ----------
    expand : callable
        Returns the log posterior at a point with its derivatives.
    start : array (n_parameters,)
        Point to start from.
    free : array of int, optional
        Indices of the parameters to move; all if not passed.
    min_gain : float
        The search ends with a Newton step that raises the log posterior by less; the Hessian is the one before it.
    """
    free = np.arange(start.size) if free is None else free
    block = free[:, None], free
    theta, expansion = start.copy(), expand(start)
    if not free.size:
        return Mode(theta, expansion.value, expansion.precision)
    for _ in range(_MAX_STEPS):
        gradient = expansion.gradient[free]
        step = _compute_step(expansion.precision[block], gradient)
        gain = float(gradient @ step)
        if gain < 2.0 * min_gain:
            theta[free] += step
            return Mode(theta, expansion.value + 0.5 * gain, expansion.precision)
        for _ in range(_MAX_HALVINGS):
            candidate = theta.copy()
            candidate[free] += step
            new = expand(candidate)
            if new.value >= expansion.value + 1e-4 * float(gradient @ step):
                break
            step = 0.5 * step
        else:
            break
        theta, expansion = candidate, new
    return Mode(theta, expansion.value, expansion.precision)


def find_modes(
    expand: Callable[[FloatArray], Expansions], start: FloatArray, free: IntArray, min_gain: float
) -> list[Mode]:
    """Find conditional modes from several points at once; as `find_mode` does.

    Parameters
    ----------
    expand : callable
        Returns the log posterior at columns of parameters with its derivatives.
    start : array (n_parameters, n_points)
        Points to start from.
    free : array of int
        Indices of the parameters to move.
    min_gain : float
        As in `find_mode`.
    """
    theta, (value, gradient, precision) = start.copy(), expand(start)
    active, block = np.arange(start.shape[1] if free.size else 0), (slice(None), free[:, None], free)
    for _ in range(_MAX_STEPS):
        if not active.size:
            break
        steps = np.zeros_like(theta)
        steps[free[:, None], active] = _compute_steps(precision[active][block], gradient[active][:, free]).T
        gain = np.einsum("ij,ji->i", gradient, steps)
        is_last = gain[active] < 2.0 * min_gain
        last, active = active[is_last], active[~is_last]
        theta[:, last] += steps[:, last]
        value[last] += 0.5 * gain[last]
        searched = active
        for _ in range(_MAX_HALVINGS):
            if not searched.size:
                break
            candidate = theta[:, searched] + steps[:, searched]
            new = expand(candidate)
            is_better = new.value >= value[searched] + 1e-4 * gain[searched]
            better = searched[is_better]
            theta[:, better], value[better] = candidate[:, is_better], new.value[is_better]
            gradient[better], precision[better] = new.gradient[is_better], new.precision[is_better]
            searched = searched[~is_better]
            steps[:, searched] *= 0.5
            gain[searched] *= 0.5
        if searched.size:  # no step raises the log posterior
            active = active[~np.isin(active, searched)]
    return [Mode(theta[:, point], float(value[point]), precision[point]) for point in range(theta.shape[1])]


def _compute_steps(precision: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return Newton steps of several points (n_points x n_parameters)."""
    try:
        root = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return np.array([_compute_step(*values) for values in zip(precision, gradient, strict=True)])
    pivots, curvature = (np.diagonal(matrix, axis1=1, axis2=2) for matrix in (root, precision))
    if not (pivots**2 > _MIN_PIVOT * curvature).all():
        return np.array([_compute_step(*values) for values in zip(precision, gradient, strict=True)])
    return np.asarray(np.linalg.solve(precision, gradient[..., None])[..., 0])


def _compute_step(precision: FloatArray, gradient: FloatArray) -> FloatArray:
    root, step, failed = scipy.linalg.lapack.dposv(precision, gradient)
    if not failed and (root.diagonal() ** 2 > _MIN_PIVOT * precision.diagonal()).all():
        return np.asarray(step, dtype=np.float64)
    scale = np.sqrt(np.maximum(np.abs(precision.diagonal()), 1e-300))
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return np.asarray(vectors @ ((vectors.T @ (gradient / scale)) / curvature) / scale)
