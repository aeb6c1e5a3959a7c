"""Average precision of many labelings at once."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray


def average_precision(positive: FloatArray, total: FloatArray) -> FloatArray:
    """Average precision of each labeling (row): positive and total weight per tie group, by falling score.

    The sum over groups of recall gained times precision reached, with no interpolation; nan without positives.
    """
    found, seen = np.cumsum(positive, axis=1), np.cumsum(total, axis=1)
    everything = found[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(seen > 0.0, found / seen, 0.0)
        result: FloatArray = (positive * precision).sum(axis=1) / everything
    return result
