"""Band and RateCurve: distributions of metrics at many thresholds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._text import prints_plainly
from darkmetrics.tables import level_text


class Swept(NamedTuple):
    """A metric over thresholds; `quantiles` has a row for each quantile level."""

    mean: FloatArray
    quantiles: FloatArray
    low: FloatArray
    high: FloatArray
    undefined: FloatArray
    labeled_only: FloatArray

    def replace_at(self, index: BoolArray, points: "Swept") -> "Swept":
        """Return the curve with other numbers at some thresholds, inside their bounds."""
        columns = [np.array(column) for column in self]
        points = points._replace(quantiles=np.clip(points.quantiles, points.low, points.high))
        for column, values in zip(columns, points, strict=True):
            column[..., index] = values
        return Swept(*columns)


def join_ranges(ranges: Sequence[Swept]) -> Swept:
    """Return one curve for ranges of thresholds that follow each other."""
    return Swept(*(np.concatenate(column, axis=-1) for column in zip(*ranges, strict=True)))


def levels_of(confidence_levels: tuple[float, ...]) -> FloatArray:
    """Return the two quantile levels of each equal-tailed interval, pair by pair."""
    tails = [0.5 * (1.0 - level) for level in confidence_levels]
    return np.array([end for tail in tails for end in (tail, 1.0 - tail)])


def nearest(thresholds: FloatArray, target: float) -> int:
    """Return the index of the nearest of sorted thresholds; thresholds may be infinite."""
    right = min(int(np.searchsorted(thresholds, target)), thresholds.size - 1)
    left = max(right - 1, 0)
    if thresholds[right] == target:  # inf - inf is NaN
        return right
    return left if target - thresholds[left] <= thresholds[right] - target else right


@dataclass(frozen=True, eq=False, repr=False)
class Band:
    """Estimates, intervals and bounds of a metric at each threshold.

    Attributes
    ----------
    mean : array
        Expected value at each threshold: the estimate.
    intervals : mapping from confidence level to (low, high)
        Equal-tailed intervals: at each single threshold, the interval contains the metric with that probability.
    lowest_possible, highest_possible : array
        Extremes over all label assignments to the missing rows.
    labeled_only : array
        The metric on the labeled rows only.
    undefined : array
        Probability that the metric is 0/0 at each threshold.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    >>> band = dm.threshold_curves(result, thresholds=[0.3, 0.5, 0.8])["recall"]
    >>> band.mean.round(2).tolist()
    [1.0, 0.6, 0.4]
    >>> low, high = band.intervals[0.9]
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([1.0, 0.5, 0.33], [1.0, 0.67, 0.5])
    """

    mean: FloatArray
    intervals: Mapping[float, tuple[FloatArray, FloatArray]]
    lowest_possible: FloatArray
    highest_possible: FloatArray
    labeled_only: FloatArray
    undefined: FloatArray

    @classmethod
    def of(cls, swept: Swept, confidence_levels: tuple[float, ...]) -> "Band":
        """Build a band from quantiles at `levels_of(confidence_levels)`."""
        pairs = zip(swept.quantiles[::2], swept.quantiles[1::2], strict=True)
        intervals = dict(zip(confidence_levels, pairs, strict=True))
        return cls(swept.mean, intervals, swept.low, swept.high, swept.labeled_only, swept.undefined)

    def __repr__(self) -> str:
        levels = ", ".join(map(level_text, self.intervals))
        return f"<Band over {self.mean.size:,} thresholds: mean, {levels}, bounds>"

    def at(self, place: int) -> dict[str, Any]:
        """Return the numbers at a threshold, by its index in the grid."""
        numbers = {name: float(getattr(self, name)[place]) for name in COLUMNS}
        intervals = {level: (float(low[place]), float(high[place])) for level, (low, high) in self.intervals.items()}
        return {**numbers, "intervals": intervals}

    def take(self, places: Any) -> "Band":
        """Return the band at a subset of the thresholds."""
        intervals = {level: (low[places], high[places]) for level, (low, high) in self.intervals.items()}
        return Band(intervals=intervals, **{name: getattr(self, name)[places] for name in COLUMNS})


# The columns of a band that hold one number per threshold.
COLUMNS = ("mean", "lowest_possible", "highest_possible", "labeled_only", "undefined")


@prints_plainly
@dataclass(frozen=True, eq=False, repr=False)
class RateCurve:
    """Two metrics against each other as the threshold moves: a ROC or precision-recall curve with bands.

    Both bands are for a fixed threshold, so the interval of `y` is vertical, at the mean of `x`.

    Attributes
    ----------
    x, y : Band
        The two metrics at each threshold.
    x_name, y_name : str
        Names of the two metrics.
    thresholds : array
        In increasing order; the last threshold of a ROC curve is infinite: no row is predicted positive.
    """

    x: Band
    y: Band
    x_name: str
    y_name: str
    thresholds: FloatArray

    def __repr__(self) -> str:
        return f"<RateCurve of {self.y_name} against {self.x_name} at {self.thresholds.size:,} thresholds>"
