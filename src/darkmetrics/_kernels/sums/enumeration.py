"""Every labeling of a few missing rows, with its probability (the brute force that needs no theory)."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmf, poisson_binomial_pmfs


def number_of_labelings(missing: IntArray) -> float:
    """How many different count vectors the cells can take: prod(missing + 1), as a float that cannot overflow."""
    return float(np.exp(min(700.0, float(np.log1p(missing).sum()))))


def all_labelings(missing: IntArray, p: FloatArray) -> tuple[IntArray, FloatArray]:
    """Count vectors (labelings x cells) of positives among the missing rows, and the probability of each.

    Rows of one cell are alike, so a cell of c rows takes c + 1 values, not 2^c. Rows of a matrix `p` are cases, each
    with its own chances and probabilities (cases x labelings).
    """
    cases = np.atleast_2d(p)
    shape = tuple(int(c) + 1 for c in missing)
    positives = np.indices(shape, dtype=np.int64).reshape(len(shape), int(np.prod(shape))).T
    probability = np.ones((cases.shape[0], 1))
    for cell, c in enumerate(missing.tolist()):
        pmf = _binomial_pmfs(cases[:, cell], c)
        probability = (probability[:, :, None] * pmf[:, None, :]).reshape(cases.shape[0], -1)
    return positives, probability if p.ndim == 2 else probability[0]


def _binomial_pmfs(p: FloatArray, rows: int) -> FloatArray:
    """The law of the positives of a cell, for each chance in `p`."""
    if rows == 1:
        return np.stack([1.0 - p, p], axis=1)
    if p.size == 1:
        offset, inside = poisson_binomial_pmf(p, np.array([rows]))
        inside = inside[None, :]
    else:
        offset, inside = poisson_binomial_pmfs(p[:, None], np.array([rows]))
    return np.pad(inside, ((0, 0), (offset, rows + 1 - offset - inside.shape[1])))
