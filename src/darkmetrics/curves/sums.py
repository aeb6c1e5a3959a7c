"""Sums over the rows above and below each of many thresholds, at every posterior draw.

Rows are sorted by score, so that cumulative sums over them serve all thresholds.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, merged_keys
from darkmetrics.data.cells import COUNTS
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.problem import label_cumulant
from darkmetrics.posterior import Posterior, columns_of

# Numbers in memory at once: posterior draws x thresholds, and posterior draws x cells.
_MAX_NUMBERS = 2**21
# Weights that differ by this fraction are equal.
_SAME = 1e-9

# Sums above and below each threshold.
Sides: TypeAlias = tuple[FloatArray, FloatArray]


class ThresholdSums:
    """Rows sorted into bands between neighboring thresholds.

    Band b has the rows with a score that reaches b of the thresholds: they lie above the first b thresholds.
    """

    def __init__(self, data: EvaluationSet, posterior: Posterior, thresholds: FloatArray) -> None:
        self.data, self.posterior, self.n_thresholds = data, posterior, thresholds.size
        cells = data.cells
        band = np.searchsorted(thresholds, cells.score, side="right")
        self.labeled_sums = {}
        for name in COUNTS:
            counts = np.bincount(band, cells.mass(getattr(cells, name)), thresholds.size + 1)
            self.labeled_sums[name] = _sides(counts.astype(np.float64))
        band = band[data.missing_cells]
        count = data.missing_counts.astype(np.float64)
        weight = np.ones(count.size) if data.missing_weight is None else data.missing_weight
        self.smallest = self._smallest_weights(band, data.missing_weight)
        self.cell_band = band
        # Rows and powers of their weight, of each missing cell or each probability column of a band.
        rows = [count * weight**power for power in range(5)]
        self.band, self.column = band, columns_of(posterior)
        if posterior.column is not None:
            first, owner = merged_keys(band, posterior.column)
            self.band, self.column = band[first], posterior.column[first]
            rows = [np.bincount(owner, power, first.size).astype(np.float64) for power in rows]
        self.rows = rows

    def _smallest_weights(self, band: IntArray, weight: FloatArray | None) -> Sides:
        """Return the smallest weight of a missing row above and below each threshold; 1 where there is none."""
        if weight is None:
            return np.ones(self.n_thresholds), np.ones(self.n_thresholds)
        smallest = np.full(self.n_thresholds + 1, np.inf)
        np.minimum.at(smallest, band, weight)
        above, below = np.minimum.accumulate(smallest[:0:-1])[::-1], np.minimum.accumulate(smallest[:-1])
        return np.where(np.isinf(above), 1.0, above), np.where(np.isinf(below), 1.0, below)

    @cached_property
    def expected(self) -> FloatArray:
        """Expected positive weight of all missing rows at each draw."""
        probability = self.posterior.probability
        return probability @ np.bincount(self.column, self.rows[1], probability.shape[1])

    @cached_property
    def lattice_step(self) -> float:
        """Smallest weight of a missing row if all weights are multiples of it, else 0."""
        weight = self.data.missing_weight
        if weight is None:
            return 1.0
        step = float(np.min(weight, where=weight > 0.0, initial=np.inf))
        multiple = weight / step
        return step if bool(np.all(np.abs(multiple - np.rint(multiple)) <= _SAME * multiple)) else 0.0

    @cached_property
    def label_variance(self) -> FloatArray:
        """Variance of a label of each probability column, averaged over the draws."""
        return self.posterior.weight @ _label_variance(self.posterior.probability)

    def ranges(self, n: int) -> Iterator["ThresholdRange"]:
        """Split the thresholds into ranges that are short enough for n numbers per threshold."""
        length = max(1, _MAX_NUMBERS // n)
        for start in range(0, self.n_thresholds, length):
            yield ThresholdRange(self, slice(start, min(start + length, self.n_thresholds)))

    def add_up(self, term: Callable[[FloatArray], FloatArray], power: int, index: slice) -> Sides:
        """Sum `term(p) * weight**power` over the missing rows on either side of a range of thresholds, at every draw.

        Each side is summed from its end, because the difference of two large sums would lose digits.
        """
        probability, rows = self.posterior.probability, self.rows[power]
        starts = np.append(0, np.searchsorted(self.band, np.arange(index.start + 1, index.stop + 1)))
        used = np.flatnonzero(np.diff(np.append(starts, rows.size)))
        sums = np.zeros((len(probability), starts.size))
        step = max(1, _MAX_NUMBERS // max(1, rows.size))
        for first in range(0, len(probability) if used.size else 0, step):
            values = term(probability[first : first + step])[:, self.column] * rows
            sums[first : first + step, used] = np.add.reduceat(values, starts[used], axis=1)
        return _sides(sums)


class ThresholdRange:
    """Neighboring thresholds: sums over labeled rows, and over missing rows at every draw (n_draws x n_thresholds)."""

    def __init__(self, sums: ThresholdSums, index: slice) -> None:
        self.sums, self.index = sums, index
        (self.tp, self.fn), (self.fp, self.tn), self.missing = (
            tuple(side[index] for side in sums.labeled_sums[name]) for name in COUNTS
        )
        self.n_positive, self.n_negative = self.tp + self.fp + self.missing[0], self.fn + self.tn + self.missing[1]
        self.smallest = tuple(side[index] for side in sums.smallest)

    @property
    def data(self) -> EvaluationSet:
        """The evaluation set."""
        return self.sums.data

    @property
    def weight(self) -> FloatArray:
        """Weight of each posterior draw."""
        return self.sums.posterior.weight

    @property
    def n_draws(self) -> int:
        """Number of posterior draws."""
        return self.weight.size

    @property
    def n_thresholds(self) -> int:
        """Number of thresholds."""
        return self.tp.size

    @cached_property
    def means(self) -> Sides:
        """Expected positive weight among the missing rows above and below each threshold."""
        return self.cumulant(1)

    @cached_property
    def variances(self) -> Sides:
        """Variance of the positive weight."""
        return self.cumulant(2)

    def cumulant(self, order: int) -> Sides:
        """Return the cumulant of an order from 1 to 4 of the positive weight."""
        return self.sums.add_up(partial(label_cumulant, order), order, self.index)

    @cached_property
    def n_deciding(self) -> Sides:
        """Effective number of missing rows: `(sum w^2 v)^2 / sum w^4 v`."""
        result = []
        for second, fourth in zip(self.variances, self.sums.add_up(_label_variance, 4, self.index), strict=True):
            mean, spread = self.weight @ second, self.weight @ fourth
            result.append(np.divide(mean**2, spread, out=np.zeros(mean.size), where=spread > 0.0))
        return result[0], result[1]

    def cells_of_side(self, band: IntArray, side: int, threshold: int) -> slice:
        """Return the cells above (0) or below (1) a threshold of the range, from the bands of sorted cells."""
        cut = int(np.searchsorted(band, self.index.start + threshold, side="right"))
        return slice(cut, None) if side == 0 else slice(0, cut)

    @cached_property
    def probability_none(self) -> Sides:
        """Probability that no missing row above, or below, is positive."""
        return self._products(lambda p: np.log1p(-p))

    @cached_property
    def probability_all(self) -> Sides:
        """Probability that every missing row above, or below, is positive."""
        return self._products(np.log)

    def _products(self, log: Callable[[FloatArray], FloatArray]) -> Sides:
        with np.errstate(divide="ignore"):
            above, below = self.sums.add_up(log, 0, self.index)
        return np.exp(above), np.exp(below)


def _label_variance(p: FloatArray) -> FloatArray:
    return p * (1.0 - p)


def _sides(sums: FloatArray) -> Sides:
    """Return the sums above and below each threshold, from sums over bands (last axis)."""
    return np.cumsum(sums[..., :0:-1], axis=-1)[..., ::-1], np.cumsum(sums[..., :-1], axis=-1)
