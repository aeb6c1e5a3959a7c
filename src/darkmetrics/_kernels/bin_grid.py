"""Score bins: a fixed grid that is fine where scores crowd, near 0 and near 1.

The grid follows the eighth root of the distance to the nearer end of [0, 1]: relative to that distance, bins are
0.02% wide at the middle, 0.2% at 1e-7 and 1% at 1e-14 (for 65,536 of them). Only square roots, products, quotients and
floor are used, which IEEE 754 rounds in one way: every engine that computes this formula (`frames.bin_query`) finds
the same bin, bit for bit.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

# Makes the eighth root of 0.5 the last edge of its half. One number for all engines: they must not each compute it.
HALF_ROOT = 0.5**-0.125
# The fewest that a user may ask for: with less, ranks say next to nothing.
MIN_BINS = 16


def nested_number(score_bins: int) -> int:
    """The power of two at or below a number of bins: such bins are nested, and sets of different ones merge."""
    return 1 << (int(score_bins).bit_length() - 1)


def bin_index(score: FloatArray, score_bins: int) -> IntArray:
    """Bin of each finite score: never falling in the score; 0 to `bins` - 1 for scores in [0, 1].

    `bins` is a power of two. Scores above 1 fill `bins` / 2 more above, and scores below 0 fill as many as
    `bins` below zero. Bins are nested: `bin_index(s, 2 * K) // 2 == bin_index(s, K)`.
    """
    s = np.asarray(score, dtype=np.float64)
    half = score_bins // 2
    inside = (s >= 0.0) & (s <= 1.0)
    t = np.where(s <= 0.5, s, 1.0 - s)  # exact: the difference of two numbers within a factor of two of each other
    if inside.all():
        g = _steps(t, HALF_ROOT * half, half)
        return np.where(s <= 0.5, g, score_bins - 1 - g)
    g = _steps(np.where(inside, t, 0.0), HALF_ROOT * half, half)
    size = np.abs(s)
    with np.errstate(divide="ignore", over="ignore"):  # of the tiny scores that take the other branch
        h = _steps(np.where(size > 1.0, 1.0 / size, size), float(half), half)
    above = score_bins + half - 1 - h
    below = np.where(s < -1.0, h - score_bins, -1 - h)
    return np.where(inside, np.where(s <= 0.5, g, score_bins - 1 - g), np.where(s > 1.0, above, below))


def _steps(t: FloatArray, scale: float, half: int) -> IntArray:
    """Steps of the eighth root: 0 to `half` - 1."""
    with np.errstate(invalid="ignore"):  # below zero: another branch is taken there
        root = np.sqrt(np.sqrt(np.sqrt(t)))
    return np.minimum(np.floor(root * scale), half - 1.0).astype(np.int64)
