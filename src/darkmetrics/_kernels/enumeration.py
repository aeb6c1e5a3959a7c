"""Every labeling of a few missing rows, with its probability (the brute force that needs no theory)."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.poisson_binomial import poisson_binomial_pmf


def number_of_labelings(missing: IntArray) -> float:
    """How many different count vectors the cells can take: prod(missing + 1), as a float that cannot overflow."""
    return float(np.exp(min(700.0, float(np.log1p(missing).sum()))))


def all_labelings(missing: IntArray, p: FloatArray) -> tuple[IntArray, FloatArray]:
    """Count vectors (labelings x cells) of positives among the missing rows, and the probability of each.

    Rows of one cell are alike, so a cell of c rows takes c + 1 values, not 2^c.
    """
    if missing.size == 0:
        return np.zeros((1, 0), dtype=np.int64), np.ones(1)
    shape = tuple(int(c) + 1 for c in missing)
    positives = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
    probability = np.ones(positives.shape[0])
    for cell, (c, chance) in enumerate(zip(missing.tolist(), p.tolist(), strict=True)):
        offset, inside = poisson_binomial_pmf(np.array([chance]), np.array([c]))
        pmf = np.zeros(c + 1)
        pmf[offset : offset + inside.size] = inside
        probability *= pmf[positives[:, cell]]
    return positives, probability
