"""How far a sum of independent, weighted, centred Bernoulli labels can be from a Gaussian: what is proven.

For `S = sum k_i (Y_i - p_i)` and v_i = p_i (1 - p_i): Berry and Esseen bound the distance of its cdf to the Gaussian by
`CONSTANT sum |k_i|^3 v_i (1 - 2 v_i) / (sum k_i^2 v_i)^(3/2)`, Bernstein bounds its tails (explanation, certificates).
"""

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray

# Shevtsova (2010): the best constant known for summands that are not identically distributed, and the paper's.
CONSTANT = 0.56

# Variances below are no numbers to divide by; with labels they come of chances such as 1e-200.
_NOTHING = 1e-200


def third_moment(p: FloatArray) -> FloatArray:
    """E|Y - p|^3 of a Bernoulli label."""
    v = p * (1.0 - p)
    return v * (1.0 - 2.0 * v)


def bernstein(x: FloatArray, variance: FloatArray, largest: FloatArray) -> FloatArray:
    """Bound on P(S >= x), and on P(S <= -x), of a centred sum of independent terms none of which passes `largest`."""
    x = np.maximum(x, 0.0)
    spread = 2.0 * (variance + largest * x / 3.0)
    with np.errstate(over="ignore"):
        exponent = np.divide(x**2, spread, out=np.where(x > 0.0, np.inf, 0.0), where=spread > 0.0)
    return np.asarray(np.exp(-exponent))


def cantelli(x: FloatArray, variance: FloatArray) -> FloatArray:
    """The same by the variance alone: better than Bernstein where few terms are likely to be anything but zero."""
    square = np.maximum(x, 0.0) ** 2
    with np.errstate(over="ignore"):
        ratio = np.divide(square, variance, out=np.where(square > 0.0, np.inf, 0.0), where=variance > 0.0)
    return np.asarray(1.0 / (1.0 + ratio))


def sum_cdf_lower(
    s: FloatArray, variance: FloatArray, third: FloatArray, largest: FloatArray, rounding: FloatArray
) -> FloatArray:
    """Lower bound on P(S <= s), and on P(S < s): Berry-Esseen, or Bernstein or Cantelli where they say more.

    `third` is the sum of |k|^3 E|Y - p|^3, `rounding` the largest error that s may carry; shapes broadcast. The
    theorems do not tell S from -S, so that one minus the bound at -s is an upper bound at s.
    """
    s = s - rounding
    known = variance > _NOTHING
    sd = np.sqrt(np.where(known, variance, 1.0))
    near = ndtr(s / sd) - CONSTANT * third / sd**3
    # Without variance S is zero, and only which side of zero s lies on matters.
    near = np.where(known, near, (s > 0.0) & (variance == 0.0))
    tail = np.minimum(bernstein(s, variance, largest), cantelli(s, variance))
    lower: FloatArray = np.clip(np.maximum(near, 1.0 - tail), 0.0, 1.0)
    return lower


def sum_cdf_bounds(s: FloatArray, *facts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on P(S <= s), and on P(S < s); `facts` as in `sum_cdf_lower`."""
    return sum_cdf_lower(s, *facts), 1.0 - sum_cdf_lower(-s, *facts)
