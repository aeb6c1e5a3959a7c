"""Every label assignment of a few missing rows, and its probability (brute force)."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmf, poisson_binomial_pmfs


def count_assignments(missing: IntArray) -> float:
    """Return how many count vectors the cells can have: prod(missing + 1), as a float that cannot overflow."""
    return float(np.exp(min(700.0, float(np.log1p(missing).sum()))))


def list_assignments(missing: IntArray) -> IntArray:
    """Return all count vectors (n_assignments x n_cells) of positive rows; the last cell changes first.

    The rows of a cell are interchangeable, so a cell of c rows has c + 1 counts, not 2^c.
    """
    shape = tuple(int(c) + 1 for c in missing)
    return np.indices(shape, dtype=np.int64).reshape(len(shape), int(np.prod(shape))).T


def compute_assignment_probabilities(missing: IntArray, p: FloatArray) -> FloatArray:
    """Return the probability of each count vector (n_draws x n_assignments) for each row of p (n_draws x n_cells)."""
    probability = np.ones((len(p), 1))
    for cell, c in enumerate(missing.tolist()):
        pmf = _binomial_pmfs(p[:, cell], c)
        probability = (probability[:, :, None] * pmf[:, None, :]).reshape(len(p), -1)
    return probability


def _binomial_pmfs(p: FloatArray, rows: int) -> FloatArray:
    """Return the distribution of the positive rows of a cell for each probability in `p`."""
    if rows == 1:
        return np.stack([1.0 - p, p], axis=1)
    if p.size == 1:
        offset, inside = poisson_binomial_pmf(p, np.array([rows]))
        inside = inside[None, :]
    else:
        offset, inside = poisson_binomial_pmfs(p[:, None], np.array([rows]))
    return np.pad(inside, ((0, 0), (offset, rows + 1 - offset - inside.shape[1])))
