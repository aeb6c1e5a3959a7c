"""Trend: is a metric falling from period to period?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.changes.wording import (
    LIKELY,
    amount,
    chance_above,
    chance_below,
    check_amount,
    is_sure,
    zero_by_zero_text,
)
from darkmetrics.distributions import Interval, MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.result import Result
from darkmetrics.tables import chance_text, decimals_for, finite, interval_text, level_text, number_text

if TYPE_CHECKING:
    pass

SCHEMA = "darkmetrics.trend/1"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trend(Result):
    """Is a metric falling? The law of the slope of a straight line through the periods, each counting once.

    The slope is that of least squares, per period, on the rows of these periods; that missing labels are not known is
    what is left open. Where the periods were evaluated with scope="population", it is that of the populations that the
    rows came from. It says nothing about periods to come.

    Attributes
    ----------
    metric : Metric
        What is followed.
    law : MetricDistribution
        The slope per period; below zero the metric falls.
    periods : tuple of str
        The periods in words, oldest first.
    places : tuple of float
        Where they lie on the line, in periods since the first.
    means : tuple of float
        The metric in each.
    intervals : tuple of Interval
        Its interval in each, at the confidence level.
    unit : str
        What one step is: "month", say, or "period".
    left_out : tuple of str
        Periods with too few labels to say something.
    together : str
        What is open about all periods and taken to be the same, in a sentence; empty if nothing is.
    confidence_level : float
        Of the intervals.
    scope : str
        What it is about: "rows" or "population".

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> table = pd.DataFrame({"month": ["2026-04"] * 60 + ["2026-05"] * 60, "y": [1, 0, 1, 0, None, 1] * 20})
    >>> table["p"] = [0.9, 0.2, 0.6, 0.7, 0.8, 0.6] * 10 + [0.9, 0.2, 0.4, 0.7, 0.8, 0.6] * 10
    >>> result = dm.evaluate_by("y", "p", data=table, by="month", missingness=dm.missing.Fixed(0.5), metrics="recall")
    >>> found = result.trend("recall")
    >>> found
    <Trend of recall over 2 periods: -0.2863 per period>
    >>> found.probability_decreasing(by=0.2)
    1.0
    """

    _plot: ClassVar[str] = "plotting.over_time:plot_trend"

    metric: Metric
    distribution: MetricDistribution
    periods: tuple[str, ...]
    places: tuple[float, ...]
    means: tuple[float, ...]
    intervals: tuple[Interval, ...]
    unit: str
    left_out: tuple[str, ...] = ()
    together: str = ""
    # In which periods the metric is 0/0, and what that counts as, in a sentence; empty if in none.
    zero_by_zero: str = ""
    confidence_level: float = 0.9
    scope: str = "rows"

    def probability_decreasing(self, by: float = 0.0) -> float:
        """How likely is it that the metric falls, by more than `by` per period? NaN where it is never defined."""
        return chance_below(self.distribution, -check_amount(by))

    def probability_increasing(self, by: float = 0.0) -> float:
        """How likely is it that the metric rises, by more than `by` per period? NaN where it is never defined."""
        return chance_above(self.distribution, check_amount(by))

    def _words(self) -> list[str]:
        """The slope in a sentence, and what it rests on."""
        name, distribution = self.metric.name, self.distribution
        number = f"{len(self.periods):,} {self.unit}s, {self.periods[0]} to {self.periods[-1]}"
        if np.isnan(distribution.mean()):
            return [f"{name} is undefined (0/0) in one of {number}, and so is its trend."]
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low) + 1
        level = level_text(self.confidence_level)
        falling, rising = self.probability_decreasing(), self.probability_increasing()
        down = falling >= rising
        verb, chance = ("falls", "falling") if down else ("rises", "rising")
        if low == high:
            size = number_text(abs(amount(low)), decimals)
            said = f"{name} {verb} by {size} per {self.unit} over {number}, for certain."
        elif max(falling, rising) >= LIKELY:
            near, far = (-high, -low) if down else (low, high)
            if not is_sure(max(falling, rising), near):
                verb = "seems to fall" if down else "seems to rise"
            said = (
                f"{name} {verb} by {number_text(abs(distribution.mean()), decimals)} per {self.unit} ({level}: "
                f"{interval_text((near, far), decimals)}) over {number}."
            )
        else:
            said = (
                f"{name} may go either way over {number}: {interval_text((low, high), decimals)} per {self.unit} "
                f"({level})."
            )
        texts = [f"{said} Probability that it is {chance}: {chance_text(max(falling, rising))}."]
        where = "on these rows" if self.scope == "rows" else "in the populations that the rows came from"
        texts.append(f"It is the slope of a straight line {where}; part of it is the mix of rows.")
        if self.left_out:
            texts.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*texts, *filter(None, [self.zero_by_zero, self.together])]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/change.md` has the schema)."""
        return {
            "schema": SCHEMA,
            "metric": self.metric.name,
            "better": self.metric.better,
            "unit": self.unit,
            "scope": self.scope,
            "falling": finite(self.probability_decreasing()),
            "rising": finite(self.probability_increasing()),
            **self.distribution.to_dict(self.confidence_level),
            "notes": self._words()[1:],
            "left_out": list(self.left_out),
            "periods": [
                {"period": period, "place": place, "mean": finite(mean), "low": finite(low), "high": finite(high)}
                for period, place, mean, (low, high) in zip(
                    self.periods, self.places, self.means, self.intervals, strict=True
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
    places: Sequence[float],
    *,
    unit: str = "period",
    left_out: Sequence[str] = (),
) -> Trend:
    """The trend of a metric over evaluations of different rows, which lie at `places` on a line."""
    sets, record = SeveralSets(evaluations), evaluations[0].metrics[metric]
    distance = np.asarray(places, dtype=np.float64) - np.mean(places)
    factors = distance / float(distance @ distance)
    return Trend(
        metric=record,
        distribution=sets.add_up(record, factors.tolist()),
        periods=tuple(periods),
        places=tuple(map(float, places)),
        means=tuple(one[metric].mean() for one in evaluations),
        intervals=tuple(one.intervals[metric] for one in evaluations),
        unit=unit,
        left_out=tuple(left_out),
        together=sets.pairing.describe(),
        zero_by_zero=zero_by_zero_text(
            metric,
            {period: one[metric].undefined for period, one in zip(periods, evaluations, strict=True)},
            evaluations[0].fills[metric],
            scope=evaluations[0].scope,
        ),
        confidence_level=evaluations[0].confidence_level,
        scope=evaluations[0].scope,
    )
