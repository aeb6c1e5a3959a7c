"""Beta laws as parts of a mixture: matched to a mean and a variance, and many of them as few."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray

# Jeffreys' prior of a share: half a row on either side.
PRIOR = 0.5
# Parts closer together than this, in their own standard deviations, are one; and how many there may be at most.
_CLOSE, _MOST = 0.25, 512


def matched_beta(mean: FloatArray, var: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Beta laws after as many rows as a share with this mean and variance comes from, with Jeffreys' prior.

    Near 0 and 1 mean and variance say little of that number; it is then drawn towards `rows`.
    """
    rows = np.maximum(rows, 1.0)
    spread, little = mean * (1.0 - mean), 0.25 / rows
    size = (spread + little) / (var + little / rows)
    return size * mean + PRIOR, size * (1.0 - mean) + PRIOR


def few_betas(a: FloatArray, b: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A mixture of Beta laws as one of fewer: neighbours become one law with their mean and variance.

    On the scale of the arcsine of the root all Beta laws of as many rows have one width; what is merged lies within a
    quarter of it, so that only fourth moments of a part differ, by less than a hundredth.
    """
    if a.size <= _MOST:
        return a, b, weight
    size = a + b
    mean = a / size
    var = mean * (1.0 - mean) / (size + 1.0)
    place = 2.0 * np.arcsin(np.sqrt(mean)) * np.sqrt(float(size.max()))
    step = max(_CLOSE, float(np.ptp(place)) / (_MOST - 1))
    number = np.floor((place - place.min()) / step).astype(np.int64)
    held, owner = np.unique(number, return_inverse=True)
    total: FloatArray = np.asarray(np.bincount(owner, weight, held.size), dtype=np.float64)
    kept = total > 0.0
    total = np.where(kept, total, 1.0)
    centre = np.bincount(owner, weight * mean, held.size) / total
    spread = np.bincount(owner, weight * (var + (mean - centre[owner]) ** 2), held.size) / total
    centre, spread, total = centre[kept], spread[kept], total[kept]
    rows = centre * (1.0 - centre) / spread - 1.0
    return rows * centre, rows * (1.0 - centre), total
