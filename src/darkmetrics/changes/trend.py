"""Trend: the slope of a straight line through the periods of a metric."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.changes.wording import (
    LIKELY,
    check_amount,
    describe_undefined,
    drop_negative_zero,
    is_sure,
    probability_above,
    probability_below,
)
from darkmetrics.distributions import Interval, MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.result import Result
from darkmetrics.tables import chance_text, decimals_for, finite, interval_text, level_text, number_text


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trend(Result):
    """The distribution of the slope of a straight line through the periods of a metric.

    The slope is that of unweighted least squares, per period, on the rows of these periods, where the missing labels
    are uncertain. If the periods were evaluated with scope="population", it is that of the populations that the rows
    came from. It does not predict later periods.

    Attributes
    ----------
    metric : Metric
        The metric.
    distribution : MetricDistribution
        The slope per period; below zero the metric decreases.
    periods : tuple of str
        The periods as text, oldest first.
    positions : tuple of float
        Positions of the periods on the line, in periods since the first.
    means : tuple of float
        Mean of the metric in each period.
    intervals : tuple of Interval
        Interval of the metric in each period, at the confidence level.
    unit : str
        Length of a step, such as "month", or "period".
    left_out : tuple of str
        Periods with too few labels.
    shared_uncertainty : str
        Sentence on uncertainty that is the same in all periods; empty if there is none.
    confidence_level : float
        Confidence level of the intervals.
    scope : str
        "rows" or "population".

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> table = pd.DataFrame({"month": ["2026-04"] * 60 + ["2026-05"] * 60, "y": [1, 0, 1, 0, None, 1] * 20})
    >>> table["p"] = [0.9, 0.2, 0.6, 0.7, 0.8, 0.6] * 10 + [0.9, 0.2, 0.4, 0.7, 0.8, 0.6] * 10
    >>> result = dm.evaluate_by("y", "p", data=table, by="month", missingness=dm.missing.Fixed(0.5), metrics="recall")
    >>> trend = result.trend("recall")
    >>> trend
    <Trend of recall over 2 periods: -0.2863 per period>
    >>> trend.probability_decreasing(by=0.2)
    1.0
    """

    _plot: ClassVar[str] = "plotting.over_time:plot_trend"

    metric: Metric
    distribution: MetricDistribution
    periods: tuple[str, ...]
    positions: tuple[float, ...]
    means: tuple[float, ...]
    intervals: tuple[Interval, ...]
    unit: str
    left_out: tuple[str, ...] = ()
    shared_uncertainty: str = ""
    # Sentence on periods in which the metric is 0/0; empty if there are none.
    undefined_periods: str = ""
    confidence_level: float = 0.9
    scope: str = "rows"

    def probability_decreasing(self, by: float = 0.0) -> float:
        """Return the probability that the metric decreases by more than `by` per period; NaN if it is never defined."""
        return probability_below(self.distribution, -check_amount(by))

    def probability_increasing(self, by: float = 0.0) -> float:
        """Return the probability that the metric increases by more than `by` per period; NaN if it is never defined."""
        return probability_above(self.distribution, check_amount(by))

    def _words(self) -> list[str]:
        """Return sentences on the slope and its limitations."""
        name, distribution = self.metric.name, self.distribution
        number = f"{len(self.periods):,} {self.unit}s, {self.periods[0]} to {self.periods[-1]}"
        if np.isnan(distribution.mean()):
            return [f"{name} is undefined (0/0) in one of {number}, and so is its trend."]
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low) + 1
        level = level_text(self.confidence_level)
        falling, rising = self.probability_decreasing(), self.probability_increasing()
        down = falling >= rising
        verb, participle = ("falls", "falling") if down else ("rises", "rising")
        if low == high:
            size = number_text(abs(drop_negative_zero(low)), decimals)
            text = f"{name} {verb} by {size} per {self.unit} over {number}, for certain."
        elif max(falling, rising) >= LIKELY:
            near, far = (-high, -low) if down else (low, high)
            if not is_sure(max(falling, rising), near):
                verb = "seems to fall" if down else "seems to rise"
            text = (
                f"{name} {verb} by {number_text(abs(distribution.mean()), decimals)} per {self.unit} ({level}: "
                f"{interval_text((near, far), decimals)}) over {number}."
            )
        else:
            text = (
                f"{name} may go either way over {number}: {interval_text((low, high), decimals)} per {self.unit} "
                f"({level})."
            )
        texts = [f"{text} Probability that it is {participle}: {chance_text(max(falling, rising))}."]
        scope = "on these rows" if self.scope == "rows" else "in the populations that the rows came from"
        texts.append(f"It is the slope of a straight line {scope}; part of it is the mix of rows.")
        if self.left_out:
            texts.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*texts, *filter(None, [self.undefined_periods, self.shared_uncertainty])]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/change.md`)."""
        return {
            "schema": "darkmetrics.trend/1",
            "metric": self.metric.name,
            "better": self.metric.better,
            "unit": self.unit,
            "scope": self.scope,
            "probability_decreasing": finite(self.probability_decreasing()),
            "probability_increasing": finite(self.probability_increasing()),
            **self.distribution.to_dict(self.confidence_level),
            "notes": self._words()[1:],
            "left_out": list(self.left_out),
            "periods": [
                {"period": period, "position": x, "mean": finite(mean), "low": finite(low), "high": finite(high)}
                for period, x, mean, (low, high) in zip(
                    self.periods, self.positions, self.means, self.intervals, strict=True
                )
            ],
        }

    def __repr__(self) -> str:
        slope = number_text(self.distribution.mean(), 4)
        return f"<Trend of {self.metric.name} over {len(self.periods):,} {self.unit}s: {slope} per {self.unit}>"


def trend_over(
    metric: str,
    evaluations: Sequence[Evaluation],
    periods: Sequence[str],
    positions: Sequence[float],
    *,
    unit: str = "period",
    left_out: Sequence[str] = (),
) -> Trend:
    """Return the trend of a metric over evaluations of different rows, at these positions on a line."""
    sets, record = SeveralSets(evaluations), evaluations[0].metrics[metric]
    distance = np.asarray(positions, dtype=np.float64) - np.mean(positions)
    factors = distance / float(distance @ distance)
    return Trend(
        metric=record,
        distribution=sets.add_up(record, factors.tolist()),
        periods=tuple(periods),
        positions=tuple(map(float, positions)),
        means=tuple(evaluation[metric].mean() for evaluation in evaluations),
        intervals=tuple(evaluation.intervals[metric] for evaluation in evaluations),
        unit=unit,
        left_out=tuple(left_out),
        shared_uncertainty=sets.pairing.describe(),
        undefined_periods=describe_undefined(
            metric,
            {period: evaluation[metric].undefined for period, evaluation in zip(periods, evaluations, strict=True)},
            evaluations[0].fills[metric],
            scope=evaluations[0].scope,
        ),
        confidence_level=evaluations[0].confidence_level,
        scope=evaluations[0].scope,
    )
