"""Metrics at many thresholds, as text, table and numbers, and the choice of a threshold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._text import counted, join_words
from darkmetrics.argument_types import RngLike
from darkmetrics.constraints import checked
from darkmetrics.curves.bands import COLUMNS, Band, RateCurve, levels_of, nearest
from darkmetrics.curves.choosing import BestThreshold, TargetThreshold, best_threshold, find_met, threshold_for
from darkmetrics.curves.sweep import curve_metrics, sweep
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.targets import name_in
from darkmetrics.result import Result
from darkmetrics.tables import finite, interval_text, level_text, number_text

# Thresholds in a printed table.
_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdCurves(Result, Mapping[str, Band]):
    """Metrics at many thresholds: a mapping from metric name to `Band`.

    Print it for a table, `to_dict()` for plain numbers, `to_frame()` for a DataFrame.

    Attributes
    ----------
    thresholds : array
        Thresholds in increasing order; a row is predicted positive if its score is at or above the threshold.
    bands : mapping
        The band of each metric; `curves[name]` returns it.
    confidence_levels : tuple of float
        Confidence levels of the intervals.
    current : float
        The threshold of the evaluation.
    method : str
        "exact", "monte_carlo" or "gaussian".
    flagged : array
        Fraction of rows predicted positive at each threshold.
    metrics : mapping
        The metrics by name.
    evaluation : Evaluation
        The evaluation of the same rows at the current threshold.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    >>> print(dm.threshold_curves(result, metrics=["precision", "recall"], confidence_levels=[0.9]))
    precision and recall at 5 thresholds, exact; the current threshold is 0.5
    <BLANKLINE>
    threshold   flagged                precision                   recall
          0.2    100.0%   0.650 (0.500 to 0.750)   1.000 (1.000 to 1.000)
          0.4     75.0%   0.867 (0.667 to 1.000)   1.000 (1.000 to 1.000)
          0.5     50.0%   0.800 (0.500 to 1.000)   0.600 (0.500 to 0.667)
          0.7     50.0%   0.800 (0.500 to 1.000)   0.600 (0.500 to 0.667)
          0.9     25.0%   1.000 (1.000 to 1.000)   0.400 (0.333 to 0.500)
    <BLANKLINE>
    In brackets: 90% intervals, each for its threshold by itself.
    """

    _text_columns = 0

    thresholds: FloatArray
    bands: Mapping[str, Band]
    confidence_levels: tuple[float, ...]
    current: float
    method: str
    flagged: FloatArray
    metrics: Mapping[str, ConfusionMetric]
    evaluation: Evaluation

    def __getitem__(self, name: str) -> Band:
        return self.bands[name_in(self.bands, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bands)

    def __len__(self) -> int:
        return len(self.bands)

    @checked
    def at(self, threshold: float) -> dict[str, dict[str, Any]]:
        """Return every metric at the nearest threshold of the grid; each entry has this `threshold`."""
        index = nearest(self.thresholds, float(threshold))
        value = float(self.thresholds[index])
        return {name: {"threshold": value, **band.at(index)} for name, band in self.bands.items()}

    def roc(self) -> RateCurve:
        """Return recall against the false-positive rate, with bands, from no row predicted positive to all rows."""
        return self._rates("fpr", "recall", np.append(self.thresholds, [self._lowest, np.inf]))

    def precision_recall(self) -> RateCurve:
        """Return precision against recall, with bands, at thresholds with rows predicted positive.

        The curve of the labeled rows ends at the highest of their scores.
        """
        cells = self.evaluation.data.cells
        grid = np.append(self.thresholds[self.thresholds <= cells.score[-1]], self._lowest)
        rates = self._rates("recall", "precision", grid)
        highest = np.max(cells.score, where=cells.positives + cells.negatives > 0, initial=-np.inf)
        only = np.where(rates.thresholds <= highest, rates.y.labeled_only, np.nan)
        return replace(rates, y=replace(rates.y, labeled_only=only))

    @property
    def _lowest(self) -> float:
        return float(self.evaluation.data.cells.tie_ends[0][0])

    def _rates(self, x: str, y: str, thresholds: FloatArray) -> RateCurve:
        metrics, grid = curve_metrics(self.evaluation, [x, y]), np.unique(thresholds)
        _, swept = sweep(self.evaluation, metrics, grid, levels_of(self.confidence_levels), self.method)
        bands = {name: Band.of(column, self.confidence_levels) for name, column in zip((x, y), swept, strict=True)}
        return RateCurve(x=bands[x], y=bands[y], x_name=x, y_name=y, thresholds=grid)

    @checked
    def best_threshold(
        self,
        metric: str | None = None,
        risk: str | float = "mean",
        *,
        constraint: Mapping[str, float] | None = None,
        probability: float = 0.9,
        n_resamples: int = 10_000,
        rng: RngLike = None,
    ) -> BestThreshold:
        """Return the best threshold of the grid for a metric, and the probability that it beats the current one.

        Parameters
        ----------
        metric : str
            One of these curves. Default with a `constraint`: the first curve without a target.
        risk : "mean" or float
            "mean" compares means. A number such as 0.1 compares the values that the metric reaches with probability
            90%: its 10% quantile, or the 90% quantile if lower is better.
        constraint : mapping from metric to number, optional
            Use only thresholds at which each of these metrics meets its target, such as {"recall": 0.6}.
        probability : float
            Minimum probability of each target.
        n_resamples, rng
            Imputations drawn for the probability, and their seed. With few missing rows it is exact.
        """
        if metric is None and constraint is not None:
            metric = next((name for name in self.bands if name not in constraint), None)
        if metric is None:
            raise InputError("metric", "missing", "", f"Pass a metric, such as {next(iter(self.bands))!r}.")
        metric = name_in(self.bands, metric)
        grid, may_stay = self.thresholds, True
        if constraint is not None:
            grid = grid[find_met(self.evaluation, grid, constraint, probability, self.method, "constraint")[0]]
            may_stay = bool((grid == self.current).any())
        return best_threshold(
            self.evaluation,
            self.metrics[metric],
            grid,
            risk,
            self.method,
            may_stay=may_stay,
            n_resamples=n_resamples,
            rng=rng,
        )

    @checked
    def threshold_for(
        self, targets: Mapping[str, float] | None = None, *, probability: float = 0.9, **named: float
    ) -> TargetThreshold:
        """Return a threshold at which each metric meets its target with a probability.

        Of the thresholds of the grid that meet all targets, it is the highest, with the fewest alarms, if the lowest
        threshold meets them too (recall). Otherwise it is the lowest, with the most positives (precision).

        Parameters
        ----------
        targets : mapping from metric to number, optional
            Value that each metric should reach: at least, or at most if lower is better.
        probability : float
            Minimum probability of each target.
        **named
            Targets by name: `recall=0.6`.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
        >>> print(dm.threshold_curves(result).threshold_for(recall=0.6, probability=0.9))
        With rows flagged from a score of 0.4 on (75.0% of them), recall is 1.000 or better (90% sure).
        """
        wanted: Any = named if targets is None else targets
        if isinstance(wanted, Mapping) and targets is not None:
            if name := next((name for name in named if name in wanted), None):
                raise InputError("targets", f"{name!r} is named twice, with {wanted[name]!r} and {named[name]!r}")
            wanted = {**wanted, **named}
        return threshold_for(self.evaluation, self.thresholds, wanted, probability, self.method)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/curves.md`)."""
        return {
            "schema": "darkmetrics.curves/1",
            "method": self.method,
            "current": self.current,
            "confidence_levels": list(self.confidence_levels),
            "thresholds": self.thresholds.tolist(),
            "flagged": self.flagged.tolist(),
            "metrics": {
                name: {
                    "meaning": self.metrics[name].meaning,
                    "better": self.metrics[name].better,
                    **{column: _plain(getattr(band, column)) for column in COLUMNS},
                    "intervals": [
                        {"confidence_level": level, "low": _plain(low), "high": _plain(high)}
                        for level, (low, high) in band.intervals.items()
                    ],
                }
                for name, band in self.bands.items()
            },
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row per metric and threshold, as a pandas, Polars or PyArrow frame (the first installed)."""
        columns: dict[str, Any] = {
            "metric": [name for name in self.bands for _ in range(self.thresholds.size)],
            "threshold": np.tile(self.thresholds, len(self.bands)),
            "flagged": np.tile(self.flagged, len(self.bands)),
        }
        bands = list(self.bands.values())
        for column in COLUMNS:
            columns[column] = np.concatenate([getattr(band, column) for band in bands])
        for level in self.confidence_levels:
            for end, side in enumerate(("low", "high")):
                columns[f"{side}_{100 * level:g}"] = np.concatenate([band.intervals[level][end] for band in bands])
        return frames.to_native_frame(columns, backend)

    def __repr__(self) -> str:
        return f"<ThresholdCurves of {', '.join(self.bands)} at {self.thresholds.size:,} thresholds, {self.method}>"

    def _words(self) -> list[str]:
        number = counted(self.thresholds.size, "threshold")
        return [f"{join_words([*self.bands])} at {number}, {self.method}; the current threshold is {self.current:g}"]

    def _notes(self) -> list[str]:
        return [f"In brackets: {level_text(max(self.confidence_levels))} intervals, each for its threshold by itself."]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        level = max(self.confidence_levels)
        rows = []
        for i in np.unique(np.rint(np.linspace(0, self.thresholds.size - 1, _SHOWN)).astype(np.int64)).tolist():
            cells = [_format_cell(band.mean[i], *(end[i] for end in band.intervals[level])) for band in self.values()]
            rows.append([f"{self.thresholds[i]:.4g}", f"{self.flagged[i]:.1%}", *cells])
        return ["threshold", "flagged", *self.bands], rows


def _format_cell(mean: float, low: float, high: float) -> str:
    return "undefined" if np.isnan(mean) else f"{number_text(mean, 3)} ({interval_text((low, high), 3)})"


def _plain(values: FloatArray) -> list[float | None]:
    """Return numbers for JSON; infinite and undefined ones are None."""
    return [finite(value) for value in values.tolist()]
