"""Methods "enumerate" and "count": every label assignment, or every combination of counts of positives per kind.

Both are exact. They return atoms: values of a functional with their probabilities at every posterior draw, which
factor into the probabilities of independent blocks of rows.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions.base import DrawMoments
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Problem, window_of

# Maximum number of kinds of rows, and of combinations of their counts.
MAX_KINDS, MAX_COMBINATIONS = 4, 2**19
# Maximum number of probabilities of counts, over all draws.
MAX_NUMBERS = 2**22
# Counts of smaller probability are dropped.
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class Atoms:
    """All values of a functional, and their probabilities at every draw.

    `values` has one axis per block, after an axis for the metrics if the functional combines several. `blocks` has the
    probabilities of each block (n_draws x n_values), which are independent given the draw.
    """

    values: FloatArray
    blocks: tuple[FloatArray, ...]
    weight: FloatArray

    @property
    def probability(self) -> FloatArray:
        """Probability of each atom, averaged over the draws (in the shape of the blocks)."""
        *first, last = self.blocks
        joint = _outer([self.weight[:, None], *first])
        shape = tuple(block.shape[1] for block in self.blocks)
        return np.asarray((joint.T @ last).reshape(shape))

    def at_draws(self) -> FloatArray:
        """Return the probability of each atom at every draw (n_draws x n_atoms)."""
        return _outer(list(self.blocks))

    def moments(self, fill: float, centre: float) -> DrawMoments:
        """Return the mean and variance of the functional at every draw; undefined values count as `fill`, if any."""
        values = np.where(np.isnan(self.values), fill, self.values)
        defined = ~np.isnan(values)
        x = np.where(defined, values - centre, 0.0)
        if defined.all():
            mean, square = self._expected(np.stack([x, x * x]))
            total = np.ones(self.weight.size)
        else:
            mean, square, total = self._expected(np.stack([x, x * x, defined]))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, square = mean / total, square / total
        weight = self.weight * total
        return DrawMoments.of(weight / weight.sum(), centre + mean, square - mean**2)

    def _expected(self, values: FloatArray) -> FloatArray:
        """Return the expected values of functions of the atoms, on the first axis, at every draw (last axis)."""
        *first, last = self.blocks
        result = values @ last.T
        for block in reversed(first):
            result = np.einsum("...nk,kn->...k", result, block)
        return np.asarray(result)


def _outer(blocks: list[FloatArray]) -> FloatArray:
    """Return the products of one column of each block (n_draws x n_combinations)."""

    def pair(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(max(len(left), len(right)), -1))

    return reduce(pair, blocks)


def enumerate_assignments(functional: Functional, problem: Problem) -> Atoms | None:
    """Return the atoms of all label assignments; None if there are too many."""
    if functional.assignments is None:
        return None
    cells, values = functional.assignments
    halves = problem.assignment_probabilities(cells, functional.missing)
    return Atoms(values.reshape(*values.shape[:-1], *(half.shape[1] for half in halves)), halves, problem.weight)


def count_positives(functional: Functional, problem: Problem) -> Atoms | None:
    """Return the atoms of all combinations of counts per kind of row; None if there are too many."""
    if not functional.has_few_kinds or functional.kinds is None:
        return None
    columns, kind = functional.kinds
    total = np.bincount(kind, functional.missing, len(columns))
    moving = np.flatnonzero(columns.any(axis=1) & (total > 0)).tolist()
    if len(moving) > MAX_KINDS:
        return None
    mean, variance, *_ = problem.cells(functional)[1].cumulants_by_kind(functional)
    windows = [window_of(mean[:, k], variance[:, k], float(total[k])) for k in moving]
    if np.prod(windows) > 8.0 * MAX_COMBINATIONS or problem.weight.size * sum(windows) > MAX_NUMBERS:
        return None
    cells = [np.flatnonzero(kind == k) for k in moving]
    count_pmfs = [
        _trim_counts(*problem.count_pmfs(kind_cells, functional.missing), problem.weight) for kind_cells in cells
    ]
    if np.prod([float(pmf.shape[1]) for _, pmf in count_pmfs]) > MAX_COMBINATIONS:
        return None
    grid = np.meshgrid(*(low + np.arange(float(pmf.shape[1])) for low, pmf in count_pmfs), indexing="ij", sparse=True)
    shape = tuple(pmf.shape[1] for _, pmf in count_pmfs)
    sums = np.empty((columns.shape[1], *shape))
    for i, constant in enumerate(functional.constant):
        sums[i] = constant + sum(columns[k, i] * count for k, count in zip(moving, grid, strict=True))
    blocks = tuple(pmf for _, pmf in count_pmfs) or (np.ones((problem.weight.size, 1)),)
    values = functional.at(sums)
    return Atoms(values if moving else values[..., None], blocks, problem.weight)


def _trim_counts(low: int, pmf: FloatArray, weight: FloatArray) -> tuple[int, FloatArray]:
    """Drop counts at either end that have negligible probability at every draw."""
    positive_mass = np.flatnonzero(weight @ pmf > _NEGLIGIBLE)
    return low + int(positive_mass[0]), pmf[:, positive_mass[0] : positive_mass[-1] + 1]
