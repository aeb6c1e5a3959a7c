"""Chances and their logarithms from log odds, from `exp` and `log1p`: numpy computes these for many numbers at once.

scipy's `expit` and `log_expit` go number by number and take five to twenty times as long.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

# Beyond, exp overflows.
_FARTHEST = 700.0
# Beyond, 1 + exp(x) is exp(x) to the last bit. Products of 2^4 such numbers do not overflow, even of some a little
# larger.
_LARGE, _DOUBLINGS = 40.0, 4
LITTLE = 4.0


def chance(log_odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):  # a chance below 1e-308 is 0
        result: FloatArray = np.exp(-log_odds)
    result += 1.0
    return np.divide(1.0, result, out=result)


def cut_odds(log_odds: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """exp(x) of x up to 40, in place; the columns that have larger ones, and there what is more than that."""
    large = np.flatnonzero(log_odds.max(axis=0, initial=0.0) > _LARGE)
    more = np.maximum(log_odds[:, large] - _LARGE, 0.0)
    if large.size:
        np.minimum(log_odds, _LARGE, out=log_odds)
    return np.exp(log_odds, out=log_odds), large, more


def sum_log1p(odds: FloatArray) -> FloatArray:
    """Sum over each row of log(1 + odds), odds up to exp(44): of products of 16, since logarithms take the time.

    It is off by a unit in the last place of 1 for each number, and not of the sum.
    """
    factors, result = odds + 1.0, np.zeros(odds.shape[0])
    for _ in range(_DOUBLINGS):
        half, odd = divmod(factors.shape[1], 2)
        if odd:
            result += np.log(factors[:, -1])
        factors = factors[:, :half] * factors[:, half : 2 * half]
    result += np.log(factors).sum(axis=1)
    return result


def log_chance(log_odds: FloatArray) -> FloatArray:
    """Logarithm of 1 / (1 + exp(-x)), to the last digits for any finite x; that of the other outcome is x less."""
    result = np.negative(log_odds)
    if result.max(initial=0.0) > _FARTHEST:
        return np.asarray(np.minimum(log_odds, 0.0) - np.log1p(np.exp(-np.abs(log_odds))))
    np.exp(result, out=result)
    np.log1p(result, out=result)
    return np.negative(result, out=result)
