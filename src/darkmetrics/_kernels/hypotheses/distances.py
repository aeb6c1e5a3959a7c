"""How far samples are from each other (Mann-Whitney, Kolmogorov-Smirnov), and values from uniform (W1, KS)."""

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


def w1_to_uniform(values: FloatArray) -> FloatArray:
    """Wasserstein-1 distance of the empirical law of each row of sorted values to the uniform law.

    The integral of |F(x) - x| over [0, 1]: between two values F is constant, so each piece is a triangle or two.
    """
    n = values.shape[-1]
    edges = np.concatenate([np.zeros((*values.shape[:-1], 1)), values, np.ones((*values.shape[:-1], 1))], axis=-1)
    level = np.arange(n + 1) / n
    low, high = edges[..., :-1] - level, edges[..., 1:] - level
    crossing = (low < 0.0) & (high > 0.0)
    whole = 0.5 * np.abs(high**2 - low**2)
    return np.asarray(np.where(crossing, 0.5 * (high**2 + low**2), whole).sum(axis=-1))


def ks_to_uniform(values: FloatArray) -> FloatArray:
    """Kolmogorov-Smirnov distance of the empirical law of each row of sorted values to the uniform law."""
    n = values.shape[-1]
    steps = np.arange(n + 1) / n
    return np.asarray(np.maximum(steps[1:] - values, values - steps[:-1]).max(axis=-1))


def floors(n: int) -> tuple[float, float]:
    """Mean W1 and KS distance of n independent uniform values; NaN if there are none.

    The limits are the mean of the integral and of the maximum of the absolute value of a Brownian bridge. W1 is there
    soon (1.5% below the mean at n = 5); KS comes in from below by 0.2 / sqrt(n), and with that is within 1% from n = 2.
    """
    if n == 0:
        return np.nan, np.nan
    root = np.sqrt(n)
    return float(np.sqrt(np.pi / 32.0) / root), float(np.sqrt(np.pi / 2.0) * np.log(2.0) / (root + 0.2))
