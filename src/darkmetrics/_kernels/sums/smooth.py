"""Cumulants of sums of labels, and what follows from them: laws of smooth functions, variances of ratios.

Labels are independent, each with its chance (mathematics, sections 2, 4 and 15).
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray, dot

# The first terms that Edgeworth's expansion leaves out, at their largest: of the fifth cumulant, of the product of the
# third and fourth, and of the cube of the third, each of a standardised variable.
_LEFT_OUT = (0.010, 0.042, 0.033)
# Frequencies, in units of 1 / sd, at which steps of a law would show: from where on an expansion says nothing of the
# characteristic function, up to which one, and how far apart. Where all weights turn alike it has a peak about as wide
# as 1 / sd.
_FIRST, LAST, FINE = 5.0, 1e3, 0.5
# Numbers that are held at a time.
_NUMBERS = 1 << 20


@cache
def _in_variance(order: int) -> Polynomial:
    """kappa_k / v of even order, or kappa_k / (v (1 - 2 p)) of odd order from 3 on, as a polynomial in v = p (1 - p).

    From kappa_(k+1) = v d kappa_k / dp, with dv / dp = 1 - 2 p and (1 - 2 p)^2 = 1 - 4 v.
    """
    if order == 2:
        return Polynomial([1.0])
    v = Polynomial([0.0, 1.0])
    whole = v * _in_variance(order - 1)
    return whole.deriv() if order % 2 else (1.0 - 4.0 * v) * whole.deriv() - 2.0 * whole


def bernoulli_cumulant(order: int, p: FloatArray, variance: FloatArray | None = None) -> FloatArray:
    """The cumulant of this order of a Bernoulli variable, for each chance in `p`; its `variance` may be known."""
    v = p * (1.0 - p) if variance is None else variance
    if order == 2:
        return v
    if order == 3:
        return v * (1.0 - 2.0 * p)
    if order == 4:
        return v * (1.0 - 6.0 * v)
    if order == 1:
        return p
    first, *others = _in_variance(order).coef[::-1].tolist()
    result: FloatArray = np.full_like(v, first)
    for coefficient in others:  # in place: arrays are large, and new memory takes longer than the sum
        result *= v
        result += coefficient
    result *= v
    if order % 2:
        result *= 1.0 - 2.0 * p
    return result


def sum_cumulants(weights: FloatArray, p: FloatArray, counts: FloatArray, orders: int) -> FloatArray:
    """Cumulants 1..orders of sum w_i Y_i, where `counts` rows share each weight and chance."""
    cumulants = np.empty(orders)
    scaled = counts * weights
    for order in range(1, orders + 1):
        cumulants[order - 1] = dot(scaled, bernoulli_cumulant(order, p))
        scaled = scaled * weights
    return cumulants


def smooth_cumulants(
    gradient: FloatArray, hessian: FloatArray, second: FloatArray, third: FloatArray, fourth: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """First four cumulants of `g.x + x'Hx / 2`, for x of mean zero with these joint cumulants (tensors).

    The first is what the Hessian adds to the value at the mean. Mean and variance are exact, the others to the order
    that Edgeworth's expansion needs. All arguments may have leading axes.
    """
    bent = hessian @ second  # H Sigma
    along = np.einsum("...ab,...b->...a", second, gradient)  # Sigma g
    turned = np.einsum("...ab,...b->...a", hessian, along)  # H Sigma g
    pulled = np.einsum("...abc,...a->...bc", third, gradient)
    pulled2 = np.einsum("...abcd,...a,...b->...cd", fourth, gradient, gradient)
    bent2 = bent @ bent
    variance = _inner(gradient, along) + _inner2(pulled, hessian) + 0.5 * _trace(bent2)
    variance = variance + 0.25 * np.einsum("...abcd,...ab,...cd->...", fourth, hessian, hessian)
    k3 = np.einsum("...ab,...a,...b->...", pulled, gradient, gradient) + 3.0 * _inner(along, turned)
    k3 = k3 + 1.5 * _inner2(pulled2, hessian) + 3.0 * _inner2(pulled, bent @ hessian) + _trace(bent2 @ bent)
    k4 = _inner2(pulled2, gradient[..., :, None] * gradient[..., None, :])
    k4 = k4 + 12.0 * np.einsum("...a,...ab,...b->...", turned, second, turned)
    k4 = k4 + 12.0 * np.einsum("...ab,...a,...b->...", pulled, gradient, turned) + 3.0 * _trace(bent2 @ bent2)
    return 0.5 * _trace(bent), variance, k3, k4


def edgeworth_cdf(x: FloatArray, skewness: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """P(X <= x) of a standardised variable from its third and fourth cumulants."""
    square = x * x
    he2, he3, he5 = square - 1.0, x * (square - 3.0), x * (square * (square - 10.0) + 15.0)
    density = np.exp(-0.5 * square) / np.sqrt(2.0 * np.pi)
    correction = skewness / 6.0 * he2 + kurtosis / 24.0 * he3 + skewness**2 / 72.0 * he5
    result: FloatArray = np.clip(ndtr(x) - density * correction, 0.0, 1.0)
    return result


def left_out(variance: FloatArray, third: FloatArray, fourth: FloatArray, fifth: FloatArray) -> FloatArray:
    """What Edgeworth's expansion with these cumulants is off by: the first terms left out, at their largest."""
    skewness, kurtosis = np.abs(third) / variance**1.5, np.abs(fourth) / variance**2
    terms = np.stack([np.abs(fifth) / variance**2.5, skewness * kurtosis, skewness**3], axis=-1)
    return np.asarray(terms @ np.array(_LEFT_OUT))


def frequencies_of_steps() -> FloatArray:
    """Frequencies, in units of 1 / sd, at which a characteristic function must have died away."""
    return np.arange(_FIRST, LAST, FINE)


def of_steps(damped: FloatArray) -> FloatArray:
    """What is left of the steps of a sum where |phi| is at most exp(-damped) at these frequencies (last axis).

    Cdfs differ by the integral of |phi| / t by pi.
    """
    return np.asarray(np.exp(-damped) @ (FINE / (np.pi * frequencies_of_steps())))


def steps_left(v: FloatArray, weight: FloatArray, variance: float) -> float:
    """`of_steps` for a sum of this variance of labels that have these variances and weights."""
    step, size = FINE / float(np.sqrt(max(variance, 1e-300))), round(LAST / FINE)
    return float(of_steps(turned(v[None], weight, step, size)[0, size - frequencies_of_steps().size :]))


def turned(v: FloatArray, weight: FloatArray, step: float, size: int) -> FloatArray:
    """`sum v_i (1 - cos(t w_i))` at `size` multiples t of a step, for each row of `v`."""
    side, (cos, sin), (even, odd) = _turns(weight, step, size)
    if v.shape[0] == 1:
        return np.asarray(v.sum() - ((v * even.T) @ cos - (v * odd.T) @ sin).reshape(1, side**2)[:, :size])
    result = np.repeat(v.sum(axis=1, keepdims=True), side**2, axis=1)
    # All rows have the same turns, of a few cells at a time.
    for some in np.array_split(np.arange(weight.size), 1 + weight.size * side**2 // _NUMBERS):
        turns = even[some, :, None] * cos[some, None, :]
        turns -= odd[some, :, None] * sin[some, None, :]
        result -= v[:, some] @ turns.reshape(some.size, side**2)
    return result[:, :size]


def cosines(weight: FloatArray, step: float, multiples: IntArray) -> FloatArray:
    """`cos(t w)` of each weight (rows) at rising whole multiples t of a step.

    The cosine of few far turns and few near ones together follows from theirs.
    """
    side, (cos, sin), (even, odd) = _turns(weight, step, int(multiples.max(initial=0)) + 1)
    far, near = np.divmod(multiples, side)
    result = np.take(even, far, axis=1)
    result *= np.take(cos, near, axis=1)
    rest = np.take(odd, far, axis=1)
    rest *= np.take(sin, near, axis=1)
    return np.asarray(result - rest)


def _turns(
    weight: FloatArray, step: float, size: int
) -> tuple[int, tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """How many near turns there are of each weight, and as many far ones; cosines and sines of near, and of far."""
    side = int(np.ceil(np.sqrt(size)))
    near = np.multiply.outer(weight, step * np.arange(side))
    far = np.multiply.outer(weight, step * side * np.arange(side))
    return side, (np.cos(near), np.sin(near)), (np.cos(far), np.sin(far))


def stand_ins(v: FloatArray, weight: FloatArray, most: int) -> tuple[IntArray, FloatArray]:
    """Few of these cells in order, and how many times each counts, so that `sum v (1 - cos(t w))` stays what it is.

    `v` is the variance of all rows of a cell. What a cell adds is like its part in the variance of the sum for small t,
    like `v` for large ones. Cells with more of both than others stand for themselves alone: a giant that counted for
    its neighbours would damp what nothing damps. The others are met at equal steps of these parts.
    """
    if v.size <= most:
        return np.arange(v.size), np.ones(v.size)
    parts = [each / each.sum() for each in (v, v * weight**2) if each.any()]
    part = np.sum(parts, axis=0) if parts else np.zeros(v.size)
    own = part * most > part.sum()
    step = float(part[~own].sum()) / most
    ticks = step * (np.arange(most if step > 0.0 else 0) + 0.5)
    met = np.searchsorted(np.cumsum(np.where(own, 0.0, part)), ticks)
    chosen = np.union1d(np.flatnonzero(own), met)
    return chosen, np.where(own[chosen], 1.0, np.maximum(1.0, step / part[chosen]))


def cornish_fisher(z: FloatArray, skewness: FloatArray, kurtosis: FloatArray) -> FloatArray:
    """The quantile of a standardised variable where the normal one is z: Edgeworth's expansion turned around."""
    square = z * z
    bend = skewness / 6.0 * (square - 1.0) - skewness**2 / 36.0 * z * (2.0 * square - 5.0)
    result: FloatArray = z + bend + kurtosis / 24.0 * z * (square - 3.0)
    return result


def _inner(a: FloatArray, b: FloatArray) -> FloatArray:
    result: FloatArray = (a * b).sum(axis=-1)
    return result


def _inner2(a: FloatArray, b: FloatArray) -> FloatArray:
    result: FloatArray = (a * b).sum(axis=(-2, -1))
    return result


def _trace(a: FloatArray) -> FloatArray:
    result: FloatArray = np.trace(a, axis1=-2, axis2=-1)
    return result


def ratio_variance(mean: Any, numerator: Any, denominator: Any, sums: Any, variances: Any) -> Any:
    """The paper's variance of `(a_0 + sum a_i X_i) / (b_0 + sum b_i X_i)` with independent X_i; nan where 0/0.

    `mean` is the ratio at the means `sums` of the X_i. Each of the other arguments is a sequence, of numbers or of
    arrays of one shape for many ratios at once.
    """
    below = denominator[0] + sum(b * x for b, x in zip(denominator[1:], sums, strict=True))
    pairs = zip(numerator[1:], denominator[1:], variances, strict=True)
    return sum(((a - mean * b) / below) ** 2 * variance for a, b, variance in pairs)
