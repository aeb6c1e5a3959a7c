"""PEMI, Algorithm 1 of the paper: draw labelings, evaluate the metric on each, return the empirical law."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distribution import Discrete, MetricDistribution
from darkmetrics.functional import CountFunctional, Functional
from darkmetrics.methods.base import Memo, Method, about, check_n_resamples, point_mass
from darkmetrics.methods.exact import group_laws

_CHUNK = 1 << 22


@dataclass(frozen=True)
class MonteCarlo(Method):
    """Multiple imputation (PEMI): the empirical law over `n_resamples` random labelings.

    Confusion-matrix metrics draw the number of positives in each group of rows, not the rows. Only uniform numbers of
    the generator are used, so a seed gives the same draws on every platform. With B labelings the cdf is off by more
    than sqrt(log(2 / 0.001) / (2 B)) somewhere with probability at most 0.001 (Dvoretzky-Kiefer-Wolfowitz).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> few = dm.methods.MonteCarlo(n_resamples=1000)
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=[0.8], method=few, rng=0)["recall"].median()
    1.0
    """

    n_resamples: int = 10_000
    name: ClassVar[str] = "monte_carlo"

    def __post_init__(self) -> None:
        check_n_resamples(self.n_resamples)

    def law(self, functional: Functional, p: FloatArray, *, rng: np.random.Generator, memo: Memo) -> MetricDistribution:
        point = point_mass(functional, p)
        if point is not None:
            return point
        values = (
            self._count_values(functional, p, rng, memo)
            if isinstance(functional, CountFunctional)
            else self._labeling_values(functional, p, rng)
        )
        return Discrete.from_atoms(values, np.ones(values.size), functional.fill, **about(functional, "monte carlo"))

    def _count_values(
        self, functional: CountFunctional, p: FloatArray, rng: np.random.Generator, memo: Memo
    ) -> FloatArray:
        laws = memo.get((functional.split.groups, p), partial(group_laws, functional, p))
        draws = []
        for law in laws:
            place = np.searchsorted(np.cumsum(law.pmf), rng.random(self.n_resamples), side="right")
            draws.append(law.values()[np.minimum(place, law.pmf.size - 1)])
        return np.broadcast_to(functional.at(draws), (self.n_resamples,))

    def _labeling_values(self, functional: Functional, p: FloatArray, rng: np.random.Generator) -> FloatArray:
        chunk = max(1, min(self.n_resamples, _CHUNK // max(1, int(functional.missing.sum()))))
        parts = []
        for start in range(0, self.n_resamples, chunk):
            size = min(chunk, self.n_resamples - start)
            parts.append(functional.values(draw_labelings(functional.missing, p, size, rng)))
        return np.concatenate(parts)


def draw_labelings(missing: IntArray, p: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Random labelings (size x cells): how many of the missing rows of each cell are positive."""
    if missing.size == int(missing.sum()):
        return (rng.random((size, missing.size)) < p).astype(np.int64)
    hits = rng.random((size, int(missing.sum()))) < np.repeat(p, missing)
    starts = np.concatenate(([0], np.cumsum(missing)[:-1]))
    return np.add.reduceat(hits.astype(np.int64), starts, axis=1)
