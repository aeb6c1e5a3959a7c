"""The posterior of a set, and results that its metrics share: label cumulants, counts of positives, imputations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray, fingerprint
from darkmetrics._kernels.sums.enumeration import compute_assignment_probabilities
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmf, poisson_binomial_pmfs
from darkmetrics.distributions.functional import Functional
from darkmetrics.posterior import Posterior, columns_of

# If there are more cells, those with the same probability are merged.
_MAX_CELLS = 1024

# Maps missing cells to the distribution of their number of positives: the first count, and pmfs (n_draws x window).
CountDistributions: TypeAlias = Callable[[IntArray], tuple[int, FloatArray]]


def label_cumulant(order: int, p: FloatArray) -> FloatArray:
    """Return the cumulant of a label with probability p, for order 1 to 4."""
    if order == 1:
        return p
    v = p * (1.0 - p)
    return (v, v * (1.0 - 2.0 * p), v * (1.0 - 6.0 * v))[order - 2]


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a functional with their probabilities; several cells can share a column of `p`."""

    p: FloatArray  # n_draws x n_columns
    column: IntArray | None  # of each cell; None: one column per cell
    weight: FloatArray  # of the draws
    # Cumulants by fingerprint of the rows, shared by metrics.
    cached: dict[bytes, list[FloatArray]] = field(default_factory=dict)

    @property
    def n_draws(self) -> int:
        """Number of posterior draws."""
        return self.weight.size

    @cached_property
    def probability(self) -> FloatArray:
        """Probability of a positive label (n_draws x n_cells)."""
        return self.p if self.column is None else self.p[:, self.column]

    def add_up(self, per_cell: FloatArray) -> FloatArray:
        """Sum values of cells over the cells of each column."""
        if self.column is None:
            return per_cell
        return np.asarray(np.bincount(self.column, per_cell, self.p.shape[1]), dtype=np.float64)

    def cumulants_by_kind(self, functional: Functional) -> list[FloatArray]:
        """Return the cumulants of order 1 to 4 of the number of positives of each kind (n_draws x n_kinds)."""
        assert functional.kinds is not None
        columns, kind = functional.kinds
        key = bytes([len(columns)]) + fingerprint(kind, functional.missing)
        if key not in self.cached:
            column = np.arange(kind.size) if self.column is None else self.column
            number, n_kinds = self.p.shape[1], len(columns)
            rows = np.bincount(column * n_kinds + kind, functional.missing, number * n_kinds).reshape(number, n_kinds)
            self.cached[key] = [cumulant @ rows for cumulant in self.cumulants]
        return self.cached[key]

    def cumulants_by_cell(self, missing: IntArray) -> list[FloatArray]:
        """Return the cumulants of order 1 to 4 of the number of positives of each cell (n_draws x n_cells)."""
        key = b"cells" + fingerprint(missing)
        if key not in self.cached:
            of_label = (cumulant if self.column is None else cumulant[:, self.column] for cumulant in self.cumulants)
            self.cached[key] = list(of_label) if np.all(missing == 1) else [value * missing for value in of_label]
        return self.cached[key]

    @cached_property
    def cumulants(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Cumulants of order 1 to 4 of a label, at each draw and column."""
        v = self.p * (1.0 - self.p)
        return self.p, v, v * (1.0 - 2.0 * self.p), v * (1.0 - 6.0 * v)


def window_of(mean: FloatArray, variance: FloatArray, total: float) -> float:
    """Return the number of counts up to `total` within ten standard deviations of the mean of any draw."""
    reach = 10.0 * np.sqrt(variance) + 10.0
    return float(np.minimum(mean + reach, total).max() - np.maximum(mean - reach, 0.0).min()) + 1.0


class Problem:
    """The posterior of a set, and intermediate results that its metrics share.

    `counts` replaces the computation of count distributions, for callers that already have them.
    """

    def __init__(self, posterior: Posterior, counts: CountDistributions | None = None, seed: int = 0) -> None:
        self.posterior, self.seed = posterior, seed
        self._count_function = counts
        self._counts: dict[bytes, tuple[int, FloatArray]] = {}
        self._assignments: dict[bytes, tuple[FloatArray, FloatArray]] = {}
        self._cells: dict[bytes, Cells] = {}
        # Other results that all metrics share, by name.
        self.shared: dict[str, object] = {}
        # Label assignments that all metrics share: packed, in portions.
        self.packed: dict[bytes, list[AnyArray]] = {}

    @property
    def weight(self) -> FloatArray:
        """Weight of each posterior draw."""
        return self.posterior.weight

    def cells(self, functional: Functional) -> tuple[Functional, Cells]:
        """Return the functional on at most about a thousand cells per distinct increment, and their probabilities."""
        posterior = self.posterior
        column = columns_of(posterior)
        if posterior.column is None or functional.missing.size <= _MAX_CELLS or functional.has_few_kinds:
            return functional, self._cells_of(posterior.column)
        merged, column = functional.merge(column)
        return merged, self._cells_of(column)

    def _cells_of(self, column: IntArray | None) -> Cells:
        key = b"" if column is None else fingerprint(column)
        if key not in self._cells:
            self._cells[key] = Cells(self.posterior.probability, column, self.weight)
        return self._cells[key]

    def undefined_mass(self, functional: Functional) -> FloatArray:
        """Return the probability of 0/0 at every draw, for metrics that are 0/0 only without one of the classes."""
        posterior = self.posterior
        if posterior.column is None:
            return functional.undefined_mass(posterior.probability)
        rows = np.bincount(posterior.column, functional.missing, posterior.probability.shape[1])
        return functional.undefined_mass(posterior.probability, np.asarray(rows))

    def assignment_probabilities(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of all label assignments to each of two halves of the cells (n_draws x n).

        The halves are independent given the draw, so the mixture over the draws is a product of two matrices.
        """
        key = fingerprint(cells, missing[cells])
        if key not in self._assignments:
            p, counts = self.posterior.on_all_cells.probability[:, cells], missing[cells]
            bits = np.log1p(counts)
            middle = int(np.searchsorted(np.cumsum(bits), 0.5 * bits.sum()))
            first, second = (
                compute_assignment_probabilities(counts[half], p[:, half]) for half in np.s_[:middle, middle:]
            )
            self._assignments[key] = first, second
        return self._assignments[key]

    def count_pmfs(self, cells: IntArray, missing: IntArray) -> tuple[int, FloatArray]:
        """Return the distribution of the number of positives in cells: first count, pmfs (n_draws x window)."""
        if self._count_function is not None:
            return self._count_function(cells)
        key = fingerprint(cells, missing[cells])
        if key not in self._counts:
            p, counts = self._probabilities_of(cells, missing)
            if len(p) == 1:
                first, pmf = poisson_binomial_pmf(p[0], counts)
                self._counts[key] = first, pmf[None]
            else:
                self._counts[key] = poisson_binomial_pmfs(p, counts)
        return self._counts[key]

    def count_window(self, cells: IntArray, missing: IntArray) -> float:
        """Return the number of possible counts within ten standard deviations of the mean of any draw."""
        p, counts = self._probabilities_of(cells, missing)
        return window_of(p @ counts, (p * (1.0 - p)) @ counts, float(counts.sum()))

    def _probabilities_of(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the distinct probabilities of cells at every draw, and the number of missing rows of each."""
        posterior = self.posterior
        if posterior.column is None:
            return posterior.probability[:, cells], missing[cells]
        counts = np.bincount(posterior.column[cells], missing[cells], posterior.probability.shape[1]).astype(np.int64)
        columns = np.flatnonzero(counts)
        return posterior.probability[:, columns], counts[columns]
