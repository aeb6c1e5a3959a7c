"""Probabilities from log odds.

They come from `exp` and `log1p`, which numpy computes for many numbers at once. scipy's `expit` and `log_expit` go
number by number and take five to twenty times as long.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray

# Beyond, exp overflows.
_FARTHEST = 700.0


def chance(log_odds: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):  # a chance below 1e-308 is 0
        result = np.negative(log_odds)
        np.exp(result, out=result)
    result += 1.0
    return np.divide(1.0, result, out=result)


def log_chance(log_odds: FloatArray) -> FloatArray:
    """Logarithm of 1 / (1 + exp(-x)), to the last digits for any finite x; that of the other outcome is x less."""
    result = np.negative(log_odds)
    if result.max(initial=0.0) > _FARTHEST:
        return np.asarray(np.minimum(log_odds, 0.0) - np.log1p(np.exp(-np.abs(log_odds))))
    np.exp(result, out=result)
    np.log1p(result, out=result)
    return np.negative(result, out=result)
