"""What one repeat of a backtest finds, and how the predicted laws of a metric compare with what came true in all.

Coverage, width, errors and PIT, with intervals.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypothesis_tests import floors, ks_to_uniform, w1_to_uniform
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import CalibrationWarning, InputError, MissingnessWarning, UndefinedMetricWarning
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


class Found(NamedTuple):
    """What a repeat found: the truth by metric; centre, low, high and PIT by setup and metric; why setups failed."""

    truth: Mapping[str, float]
    distributions: dict[tuple[str, str], tuple[float, ...]]
    failures: dict[str, str]
    note: str = ""

    def add(self, setup: str, answer: Callable[[], Evaluation], within: float) -> None:
        """Adds what a setup answers, without its warnings; `within` says where in a jump the truth falls."""
        try:
            with warnings.catch_warnings():
                for category in (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning):
                    warnings.simplefilter("ignore", category)
                distributions = answer()
        except InputError as error:
            self.failures[setup] = str(error)
            return
        for metric, truth in self.truth.items():
            distribution = distributions[metric]
            low, high = distribution.interval(distributions.confidence_level)
            self.distributions[setup, metric] = (distribution.mean(), low, high, _pit(distribution, truth, within))


def collected(found: Sequence[Found], setup: str, metric: str) -> Scores:
    """The scores of a setup and metric over all repeats."""
    rows = np.array(
        [(repeat.truth[metric], *repeat.distributions.get((setup, metric), (np.nan,) * 4)) for repeat in found]
    )
    kept = np.isfinite(rows).all(axis=1)
    truth, centre, low, high, pit = rows[kept].T
    return Scores(truth, centre, low, high, pit, n_failed=int((~kept).sum()))


def notes_of(found: Sequence[Found], setups: Iterable[str], repeat: str = "repeat") -> list[str]:
    """What had to be given up: rows to hide, metrics that are 0/0 with all labels, setups that gave no law."""
    notes = list(dict.fromkeys(one.note for one in found if one.note))
    undefined = [name for name in found[0].truth if not any(np.isfinite(one.truth[name]) for one in found)]
    notes += [f"{name} is undefined with all labels: there is nothing to compare with." for name in undefined]
    for setup in setups:
        reasons = [one.failures[setup] for one in found if setup in one.failures]
        if reasons:
            count = f"{len(reasons):,} of {len(found):,} {repeat}{'' if len(found) == 1 else 's'}"
            notes.append(f"{setup!r} gave no law in {count}. {reasons[0]}")
    return notes


def check_any(scores: Mapping[str, Mapping[str, Scores]], notes: Iterable[str], where: str) -> None:
    """Some setup has a law of some metric in some repeat."""
    if not any(of_metric.n for of_setup in scores.values() for of_metric in of_setup.values()):
        raise InputError(
            "missingness", f"no distribution of any metric in {where}", " ".join(notes) or "All are undefined."
        )


def _pit(distribution: MetricDistribution, truth: float, within: float) -> float:
    """F(t-) + within (F(t) - F(t-)): uniform for a law that is right, even if it jumps at the truth."""
    middle = distribution.pit(truth)
    return float(np.clip(middle + (2.0 * within - 1.0) * (distribution.cdf(truth) - middle), 0.0, 1.0))
