"""Cumulants of Bernoulli variables and of their weighted sums (mathematics, section 4)."""

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial

from darkmetrics._kernels.arrays import FloatArray, dot


@cache
def _cumulant_polynomial(order: int) -> Polynomial:
    """kappa_k as a polynomial in p, from kappa_(k+1) = p (1 - p) d kappa_k / dp."""
    if order == 1:
        return Polynomial([0.0, 1.0])
    return Polynomial([0.0, 1.0, -1.0]) * _cumulant_polynomial(order - 1).deriv()


def bernoulli_cumulant(order: int, p: FloatArray) -> FloatArray:
    """The cumulant of this order of a Bernoulli variable, for each chance in `p`."""
    v = p * (1.0 - p)
    if order == 2:
        return v
    if order == 3:
        return v * (1.0 - 2.0 * p)
    if order == 4:
        return v * (1.0 - 6.0 * v)
    result: FloatArray = _cumulant_polynomial(order)(p)
    return result


def sum_cumulants(weights: FloatArray, p: FloatArray, counts: FloatArray, orders: int) -> FloatArray:
    """Cumulants 1..orders of sum w_i Y_i, where `counts` rows share each weight and chance."""
    cumulants = np.empty(orders)
    scaled = counts * weights
    for order in range(1, orders + 1):
        cumulants[order - 1] = dot(scaled, bernoulli_cumulant(order, p))
        scaled = scaled * weights
    return cumulants
