"""How the predicted laws of one metric compare with what came true: coverage, width, errors and PIT, with intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypotheses.distances import floors, ks_to_uniform, w1_to_uniform
from darkmetrics.tables import plain_numbers

_BOOTSTRAPS = 1000
_CONFIDENCE = 0.9
_FIGURES = ("w1", "ks", "mae", "rmse", "coverage", "width")


class Estimate(NamedTuple):
    """A figure with its 90% interval over the repeats: Wilson's for coverage, bootstrap for the others.

    All three are NaN where no repeat counts. The intervals take repeats as independent.
    """

    value: float
    low: float
    high: float


_NOTHING = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """One setup and one metric: the truth and the predicted law in every repeat that has a law.

    Attributes
    ----------
    truth : array
        The metric with all labels.
    centre, low, high : array
        Mean and interval of the predicted law.
    pit : array
        Where the truth falls in the law, drawn at random within a jump; uniform on [0, 1] if laws are right.
    n_failed : int
        Repeats without a law: the metric was undefined, or the label model found too little to learn from.
    """

    truth: FloatArray
    centre: FloatArray
    low: FloatArray
    high: FloatArray
    pit: FloatArray
    n_failed: int = 0

    @property
    def n(self) -> int:
        """Repeats that count."""
        return self.truth.size

    @cached_property
    def coverage(self) -> Estimate:
        """Share of repeats whose interval held the truth."""
        if not self.n:
            return _NOTHING
        from scipy.stats import binomtest

        held = int(np.count_nonzero((self.low <= self.truth + 1e-12) & (self.truth <= self.high + 1e-12)))
        # A bootstrap of a share would shrink to nothing where all repeats agree.
        interval = binomtest(held, self.n).proportion_ci(_CONFIDENCE, "wilson")
        return Estimate(held / self.n, float(interval.low), float(interval.high))

    @cached_property
    def width(self) -> Estimate:
        """Mean width of the intervals."""
        return self._mean(self.high - self.low)

    @cached_property
    def mae(self) -> Estimate:
        """Mean absolute error of the centre."""
        return self._mean(np.abs(self.centre - self.truth))

    @cached_property
    def rmse(self) -> Estimate:
        """Root mean squared error of the centre."""
        return Estimate(*(float(np.sqrt(end)) for end in self._mean((self.centre - self.truth) ** 2)))

    @cached_property
    def w1(self) -> Estimate:
        """Wasserstein-1 distance of the PIT values to uniform.

        `w1_floor` is what right laws show on average if every repeat has rows of its own. Repeats that share rows show
        more. The interval leans upwards: resampling adds some distance of its own.
        """
        return self._of_pit(w1_to_uniform)

    @cached_property
    def ks(self) -> Estimate:
        """Kolmogorov-Smirnov distance of the PIT values to uniform; `ks_floor` and the interval as for `w1`."""
        return self._of_pit(ks_to_uniform)

    @property
    def w1_floor(self) -> float:
        """Mean W1 of as many independent uniform values."""
        return floors(self.n)[0]

    @property
    def ks_floor(self) -> float:
        """Mean KS distance of as many independent uniform values."""
        return floors(self.n)[1]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain numbers, each with the ends of its 90% interval; None where no repeat counts."""
        numbers = {"w1_floor": self.w1_floor, "ks_floor": self.ks_floor}
        for name in _FIGURES:
            value, low, high = getattr(self, name)
            numbers |= {name: value, f"{name}_low": low, f"{name}_high": high}
        return {"repeats": self.n, "failed": self.n_failed, **plain_numbers(numbers)}

    def __repr__(self) -> str:
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        repeats = f"{self.n:,} {'repeat' if self.n == 1 else 'repeats'}{failed}"
        if not self.n:
            return f"<Scores of {repeats}>"
        return f"<Scores of {repeats}: coverage {self.coverage.value:.0%}, W1 of PIT {self.w1.value:.3f}>"

    def _mean(self, values: FloatArray) -> Estimate:
        if not self.n:
            return _NOTHING
        return self._interval(float(values.mean()), values[self._resamples].mean(axis=1))

    def _of_pit(self, distance: Callable[[FloatArray], FloatArray]) -> Estimate:
        if not self.n:
            return _NOTHING
        resampled = distance(np.sort(self.pit[self._resamples], axis=1))
        return self._interval(float(distance(np.sort(self.pit))), resampled)

    @cached_property
    def _resamples(self) -> Any:
        # Always the same draws, so that figures can be compared and repeated.
        return np.random.default_rng(0).integers(0, self.n, (_BOOTSTRAPS, self.n))

    @staticmethod
    def _interval(value: float, resampled: FloatArray) -> Estimate:
        low, high = np.quantile(resampled, [0.5 - _CONFIDENCE / 2, 0.5 + _CONFIDENCE / 2])
        # Resampling adds some distance to uniform of its own, so that a small one may fall below all of its resamples.
        return Estimate(value, min(float(low), value), max(float(high), value))
