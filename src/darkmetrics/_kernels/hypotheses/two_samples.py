"""Two samples given as counts of the same values: are they alike, and which is higher?"""

from typing import NamedTuple

import numpy as np
from scipy.special import kolmogorov, ndtr

from darkmetrics._kernels.arrays import FloatArray


class Comparison(NamedTuple):
    """How the values of a second sample compare with those of a first."""

    effect: float  # P(second > first) + P(tie) / 2
    p_location: float  # Mann-Whitney, ties corrected
    distance: float  # largest difference of the two distribution functions
    p_shape: float  # Kolmogorov-Smirnov


def compared(first: FloatArray, second: FloatArray) -> Comparison:
    """Mann-Whitney and Kolmogorov-Smirnov tests of two samples with these counts of each value, lowest value first.

    Both have rows. Ties need no care: they are in the variance of the first test, and the second is conservative then.
    """
    n, m = float(first.sum()), float(second.sum())
    below = np.cumsum(first)
    effect = float(second @ (below - 0.5 * first)) / (n * m)
    together, rows = first + second, n + m
    # What ties leave of the variance of the ranks; nothing but rounding where all values are equal.
    spread = 1.0 - float(np.sum((together / rows) ** 3))
    variance = n * m / 12.0 * rows * (rows / (rows - 1.0)) * spread
    off = max(abs(effect - 0.5) * n * m - 0.5, 0.0)  # half a step, because the statistic moves in steps
    p_location = min(1.0, 2.0 * float(ndtr(-off / np.sqrt(variance)))) if spread > 1e-12 else 1.0
    distance = float(np.abs(below / n - np.cumsum(second) / m).max())
    return Comparison(effect, p_location, distance, float(kolmogorov(np.sqrt(n / rows * m) * distance)))
