"""Mode of a log posterior by damped Newton steps."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import Expansion

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
    block = np.ix_(free, free)
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


def _compute_step(precision: FloatArray, gradient: FloatArray) -> FloatArray:
    root, step, failed = scipy.linalg.lapack.dposv(precision, gradient)
    if not failed and (root.diagonal() ** 2 > _MIN_PIVOT * precision.diagonal()).all():
        return np.asarray(step, dtype=np.float64)
    scale = np.sqrt(np.maximum(np.abs(precision.diagonal()), 1e-300))
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return np.asarray(vectors @ ((vectors.T @ (gradient / scale)) / curvature) / scale)
