"""Equally weighted draws that represent weighted ones."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

# A number that shares no factor with usual numbers of draws: else each slab is sampled at the same few midpoints of its
# second sum, whose spread comes out 7% too small.
_SLABS = 11


def sort_draws(first: FloatArray, second: FloatArray, weight: FloatArray) -> IntArray:
    """Return the order of draws along a path through (first, second).

    The draws are cut into slabs by `first` and sorted by `second` within each, forth and back.
    """
    order = np.argsort(first, kind="stable")
    level = np.cumsum(weight[order]) - 0.5 * weight[order]
    slab = np.empty(first.size, dtype=np.int8)  # which sorts in one pass
    slab[order] = np.minimum(_SLABS * level, _SLABS - 1.0)
    return np.lexsort([np.where(slab % 2 == 0, second, -second), slab])


def representatives(first: FloatArray, second: FloatArray, weight: FloatArray, size: int) -> IntArray:
    """`size` draws that stand, equally weighted, for all: a systematic sample along a path through (first, second).

    Both sums have nearly the same law among the chosen as among all, although they are few.
    """
    path = sort_draws(first, second, weight)
    reached = np.cumsum(weight[path])
    index = np.searchsorted(reached / reached[-1], (np.arange(size) + 0.5) / size)
    return path[np.minimum(index, path.size - 1)]
