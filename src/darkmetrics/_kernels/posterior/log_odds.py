"""Chances and their logarithms from log odds, from `exp` and `log1p`: numpy computes these for many numbers at once.

scipy's `expit` and `log_expit` go number by number and take five to twenty times as long.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

# Beyond, exp overflows.
_FARTHEST = 700.0
# Numbers are cut at exp(80) and multiplied four at a time, which does not overflow even if each is exp(40) times as
# large; and exp(-40) times as large 1 + exp(80) is exp(80) to the last bit.
_LARGE, LITTLE, TOGETHER = 80.0, 40.0, 4


def chance(log_odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):  # a chance below 1e-308 is 0
        result: FloatArray = np.exp(-log_odds)
    result += 1.0
    return np.divide(1.0, result, out=result)


def cut_odds(log_odds: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """exp(x) of x up to 80, in place; the columns that have larger ones, and there what is more than that."""
    large = np.flatnonzero(log_odds.max(axis=0, initial=0.0) > _LARGE)
    more = np.maximum(log_odds[:, large] - _LARGE, 0.0)
    if large.size:
        np.minimum(log_odds, _LARGE, out=log_odds)
    return np.exp(log_odds, out=log_odds), large, more


def sum_log1p(odds: FloatArray, sizes: list[int]) -> FloatArray:
    """Sums of log(1 + odds) over bundles of columns, of products, since logarithms take the time; in place.

    The first `sizes[0]` columns are the first of each bundle, the next `sizes[1]` the second, ..., of the same bundles
    in the same order. A sum is off by a unit in the last place of 1 for each number, and not of the sum.
    """
    odds += 1.0
    factors, start = odds[:, : sizes[0]], sizes[0]
    for size in sizes[1:]:
        factors[:, :size] *= odds[:, start : start + size]
        start += size
    return np.log(factors, out=factors)


def log_chance(log_odds: FloatArray) -> FloatArray:
    """Logarithm of 1 / (1 + exp(-x)), to the last digits for any finite x; that of the other outcome is x less."""
    result = np.negative(log_odds)
    if result.max(initial=0.0) > _FARTHEST:
        return np.asarray(np.minimum(log_odds, 0.0) - np.log1p(np.exp(-np.abs(log_odds))))
    np.exp(result, out=result)
    np.log1p(result, out=result)
    return np.negative(result, out=result)
