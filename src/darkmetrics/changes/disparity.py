"""Disparity: the difference or ratio between the groups with the highest and lowest metric."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.changes.wording import (
    check_amount,
    describe_undefined,
    join_names,
    probability_above,
    probability_below,
)
from darkmetrics.distributions import Interval, MetricDistribution, Undefined
from darkmetrics.distributions.functional import Extremes
from darkmetrics.distributions.joint import JointDraws
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.result import Result
from darkmetrics.tables import chance_text, decimals_for, finite, interval_text, level_text, number_text

# Values of two groups that differ by at most this fraction of their size are equal up to rounding.
_SAME = 1e-12
_OF_ROWS = (
    "The gap is that of these rows. Groups of few rows differ by chance too, so that it is larger than what lies "
    "between the populations they come from."
)
_OF_POPULATIONS = (
    "The gap is that between the populations that the rows came from. Of groups of few rows less is known, and what is "
    "not known drives the largest and the smallest apart."
)
_TPR = "true positive rate"
# From this probability of a tie on, the text names the tie and not the groups at the ends.
_LIKELY_TIE = 0.5
# Groups in a printed table.
_MAX_ROWS = 40


class Kind(NamedTuple):
    """A function of the largest and the smallest value, its description, and whether larger means more disparity."""

    measure: Callable[[FloatArray, FloatArray], FloatArray]
    text: str
    larger_is_worse: bool


def _ratio(high: FloatArray, low: FloatArray) -> FloatArray:
    """Return the smallest value divided by the largest; NaN where all are zero."""
    ratio: FloatArray = np.divide(low, high, out=np.full(np.shape(high), np.nan), where=np.asarray(high) > 0.0)
    return ratio


KINDS = {
    "difference": Kind(np.subtract, "largest minus smallest {metric}", larger_is_worse=True),
    "ratio": Kind(_ratio, "smallest {metric} over the largest", larger_is_worse=False),
    "equalized_odds": Kind(
        np.subtract, "the larger of the differences in true and false positive rate", larger_is_worse=True
    ),
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disparity(Result):
    """The distribution of the difference or ratio between the groups with the highest and lowest metric.

    It is that of the rows of these groups. If they were evaluated with scope="population", it is that of the
    populations that the rows came from. Small groups differ by chance, so the disparity of the rows is larger than that
    of the populations.

    Attributes
    ----------
    metric : str
        The metric; "equalized_odds" has two.
    kind : str
        "difference", "ratio" or "equalized_odds".
    distribution : MetricDistribution
        The disparity.
    groups : tuple of str
        The groups as text.
    means : mapping from group to float
        Mean of the metric in each group; for equalized odds of the true positive rate.
    intervals : mapping from group to Interval
        Interval of the metric in each group, at the confidence level.
    probability_highest, probability_lowest : mapping from group to float
        Probability that a group has the largest, or the smallest value; groups that tie share it. For equalized odds
        that of the true positive rate. NaN for a group that is always 0/0, which the other groups leave out.
    undefined : mapping from group to float
        Probability that the metric is 0/0 in each group; for equalized odds the true positive rate.
    probability_tie : float
        Probability that all groups tie, without groups that are always 0/0.
    left_out : tuple of str
        Groups with too few labels.
    shared_uncertainty : str
        Sentence on uncertainty that is the same in all groups; empty if there is none.
    confidence_level : float
        Confidence level of printed intervals.
    scope : str
        "rows" or "population".

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> table = pd.DataFrame({"shop": ["app"] * 60 + ["web"] * 60, "y": [1, 0, 1, 0, None, 1] * 20})
    >>> table["p"] = [0.9, 0.2, 0.4, 0.7, 0.8, 0.6] * 10 + [0.9, 0.2, 0.6, 0.7, 0.8, 0.6] * 10
    >>> result = dm.evaluate_by("y", "p", data=table, by="shop", missingness=dm.missing.Fixed(0.5), metrics="recall")
    >>> disparity = result.disparity("recall")
    >>> print(disparity.summary().splitlines()[0])
    Largest minus smallest recall over 2 groups: 0.286 (90%: 0.263 to 0.312).
    >>> disparity.probability_above(0.2)
    1.0
    """

    _plot: ClassVar[str] = "plotting.forests:plot_disparity"
    _max_rows: ClassVar[int | None] = _MAX_ROWS

    metric: str
    kind: str
    distribution: MetricDistribution
    groups: tuple[str, ...]
    means: Mapping[str, float]
    intervals: Mapping[str, Interval]
    probability_highest: Mapping[str, float]
    probability_lowest: Mapping[str, float]
    undefined: Mapping[str, float]
    probability_tie: float
    left_out: tuple[str, ...] = ()
    shared_uncertainty: str = ""
    # Sentence on groups in which the metric is 0/0; empty if there are none.
    undefined_groups: str = ""
    confidence_level: float = 0.9
    scope: str = "rows"
    # The distribution of the difference of two groups, by their keys.
    pair_of: Callable[[Any, Any], MetricDistribution] | None = field(default=None, repr=False)

    def probability_above(self, limit: float) -> float:
        """Return the probability that the disparity exceeds a limit: a larger difference, or a smaller ratio."""
        limit = check_amount(limit, "limit", "how far groups are apart")
        return (probability_above if KINDS[self.kind].larger_is_worse else probability_below)(self.distribution, limit)

    def pairwise(self, first: GroupLike, second: GroupLike) -> MetricDistribution:
        """Return the distribution of the metric's difference between two groups, the first minus the second."""
        assert self.pair_of is not None
        return self.pair_of(first, second)

    def _words(self) -> list[str]:
        """Return sentences on the disparity and the groups at its ends."""
        distribution, text = self.distribution, KINDS[self.kind].text.format(metric=self.metric)
        title = f"{text[0].upper()}{text[1:]} over {len(self.groups):,} groups"
        title += "" if self.scope == "rows" else " in the population"
        ends = self._describe_ends()
        if np.isnan(distribution.mean()):
            return [f"{title} is undefined ({self._explain_undefined()}).", *ends]
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        interval = f" ({level_text(self.confidence_level)}: {interval_text((low, high), decimals)})"
        return [f"{title}: {number_text(distribution.mean(), decimals)}{'' if low == high else interval}.", *ends]

    @property
    def _name(self) -> str:
        """Name of the metric in the table."""
        return _TPR if self.kind == "equalized_odds" else self.metric

    def _explain_undefined(self) -> str:
        never = [group for group in self.groups if np.isnan(self.means[group])]
        if never:
            return f"0/0 in {join_names(never)}"
        if self.kind == "ratio" and self.probability_tie >= 1.0:
            return f"{self.metric} is 0 in all of them"
        return "0/0 in a group"

    def _describe_ends(self) -> list[str]:
        """Return which groups are most likely highest and lowest; empty if fewer than two groups have a value."""
        defined = [group for group in self.groups if not np.isnan(self.probability_highest[group])]
        if len(defined) < 2:
            return []
        name = f"{self._name[0].upper()}{self._name[1:]}"
        others = "" if len(defined) == len(self.groups) else " of the others"
        tie = self.probability_tie
        if tie >= _LIKELY_TIE:
            probability = "" if tie >= 1.0 else f" with probability {chance_text(tie)}"
            return [f"{name} is the same in all {'of them' if not others else 'others'}{probability}."]
        highest, lowest = (
            f"{group} ({chance_text(probabilities[group])})"
            for probabilities in (self.probability_highest, self.probability_lowest)
            for group in [max(defined, key=probabilities.__getitem__)]
        )
        return [f"{name}{others} is most likely highest in {highest} and lowest in {lowest}."]

    def _notes(self) -> list[str]:
        """Return the lines below the table: the scope, and groups that are left out."""
        notes = [_OF_ROWS if self.scope == "rows" else _OF_POPULATIONS, *filter(None, [self.undefined_groups])]
        if self.left_out:
            notes.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*notes, *filter(None, [self.shared_uncertainty])]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text, the highest group first."""
        header = ["", self._name, f"{level_text(self.confidence_level)} interval", "P(highest)", "P(lowest)"]
        rows = []
        for group in sorted(self.groups, key=lambda group: -np.nan_to_num(self.means[group], nan=-np.inf)):
            low, high = self.intervals[group]
            decimals = decimals_for(high - low)
            ends = [chance_text(values[group]) for values in (self.probability_highest, self.probability_lowest)]
            rows.append([group, number_text(self.means[group], decimals), interval_text((low, high), decimals), *ends])
        return header, rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/change.md`)."""
        return {
            "schema": "darkmetrics.disparity/1",
            "metric": self.metric,
            "kind": self.kind,
            "scope": self.scope,
            **self.distribution.to_dict(self.confidence_level),
            "probability_tie": finite(self.probability_tie),
            "notes": self._notes(),
            "left_out": list(self.left_out),
            "groups": [
                {
                    "group": group,
                    "mean": finite(self.means[group]),
                    "low": finite(self.intervals[group].low),
                    "high": finite(self.intervals[group].high),
                    "probability_highest": finite(self.probability_highest[group]),
                    "probability_lowest": finite(self.probability_lowest[group]),
                    "undefined": self.undefined[group],
                }
                for group in self.groups
            ],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record per group, with the metric and the scope: the rows of `to_frame`."""
        return [{"metric": self._name, "scope": self.scope, **entry} for entry in self.to_dict()["groups"]]

    def __repr__(self) -> str:
        low, high = self.distribution.interval(self.confidence_level)
        title = self.kind if self.kind == "equalized_odds" else f"{self.kind} in {self.metric}"
        level = level_text(self.confidence_level)
        mean = self.distribution.mean()
        return f"<Disparity, {title}, over {len(self.groups):,} groups: {mean:.4g}, {level} {low:.4g} to {high:.4g}>"


def disparity_between(
    metrics: Sequence[Metric],
    fills: Sequence[float],
    kind: str,
    evaluations: Sequence[Evaluation],
    groups: Sequence[str],
    *,
    left_out: Sequence[str] = (),
    pair_of: Callable[[Any, Any], MetricDistribution] | None = None,
) -> Disparity:
    """Return the disparity between evaluations of different rows in one metric, or the largest of several."""
    fill_by_name = dict(zip((metric.name for metric in metrics), fills, strict=True))
    sets = SeveralSets(evaluations, fill_by_name)
    in_groups = [sets.distributions(metric) for metric in metrics]
    joint = sets.joint(metrics)
    drawn = sets.draw(metrics, joint)
    values = drawn.values.reshape(len(groups), len(metrics), -1)
    has_value = np.array([x.undefined < 1.0 for x in in_groups[0]])
    distribution: MetricDistribution = Undefined(undefined=1.0)
    if all(x.undefined < 1.0 or not x.given_defined for by_group in in_groups for x in by_group):
        has_value[:] = True
        distribution = joint.distribution_of(drawn, _spread_of(kind, len(metrics)), bounds=_bounds(in_groups, kind))
    ends = _ends(values[has_value, 0], drawn)
    highest, lowest = np.full((2, len(groups)), np.nan)
    highest[has_value], lowest[has_value] = ends.highest, ends.lowest
    level, scope = evaluations[0].confidence_level, evaluations[0].scope
    undefined = [
        describe_undefined(
            metric.name,
            {group: x.undefined for group, x in zip(groups, by_group, strict=True)},
            fill_by_name[metric.name],
            scope=scope,
        )
        for metric, by_group in zip(metrics, in_groups, strict=True)
    ]
    if kind == "ratio" and 0.0 < ends.all_zero < 1.0:
        probability = chance_text(ends.all_zero)
        text = f"The ratio is 0/0 where {metrics[0].name} is 0 in all groups ({probability}); that is left out."
        undefined.append(text)
    return Disparity(
        metric=metrics[0].name if len(metrics) == 1 else kind,
        kind=kind,
        distribution=distribution,
        groups=tuple(groups),
        means={group: x.mean() for group, x in zip(groups, in_groups[0], strict=True)},
        intervals={group: x.interval(level) for group, x in zip(groups, in_groups[0], strict=True)},
        probability_highest=dict(zip(groups, highest.tolist(), strict=True)),
        probability_lowest=dict(zip(groups, lowest.tolist(), strict=True)),
        undefined={group: x.undefined for group, x in zip(groups, in_groups[0], strict=True)},
        probability_tie=ends.tie,
        left_out=tuple(left_out),
        shared_uncertainty=sets.pairing.describe(),
        undefined_groups=" ".join(filter(None, undefined)),
        confidence_level=level,
        scope=scope,
        pair_of=pair_of,
    )


def _spread_of(kind: str, n_metrics: int) -> Callable[..., FloatArray]:
    """Return the function from the values of all metrics in all groups to the spread over groups."""

    def spread(*values: FloatArray) -> FloatArray:
        # With several metrics, the largest spread counts.
        by_metric = [np.stack(values[i::n_metrics]) for i in range(n_metrics)]
        spreads = [KINDS[kind].measure(x.max(axis=0), x.min(axis=0)) for x in by_metric]
        return np.asarray(np.max(spreads, axis=0))

    return spread


class _Ends(NamedTuple):
    """Probabilities: each group has the largest or smallest value, all groups tie, all groups are zero."""

    highest: FloatArray
    lowest: FloatArray
    tie: float
    all_zero: float


def _ends(values: FloatArray, drawn: JointDraws) -> _Ends:
    """Compute the probabilities of the groups at the ends, from values of a metric (n_groups x n)."""
    if not len(values):
        return _Ends(np.empty(0), np.empty(0), np.nan, 0.0)
    high, low = values.max(axis=0), values.min(axis=0)
    is_known = ~np.isnan(high)
    mass = drawn.mass * is_known
    total = float(mass.sum()) or 1.0
    tolerance = _SAME * np.nanmax(np.abs(values), initial=0.0)
    is_random = not drawn.is_exact and float(np.ptp(values[:, is_known], axis=1).max(initial=0.0)) > 0.0

    def probability(event: BoolArray | FloatArray) -> FloatArray:
        """Return the probability of an event; a finite number of draws never makes it 0 or 1."""
        result = np.asarray(event @ mass) / total
        return np.clip(result, 0.5 / mass.size, 1.0 - 0.5 / mass.size) if is_random else result

    def shares(end: FloatArray) -> FloatArray:
        at_end = np.abs(values - end) <= tolerance
        return probability(at_end / np.maximum(at_end.sum(axis=0), 1))  # groups that tie share the probability

    tie = float(probability(np.abs(high - low) <= tolerance))
    return _Ends(shares(high), shares(low), tie, float(drawn.mass[is_known & (high <= 0.0)].sum()))


def _bounds(in_groups: Sequence[Sequence[MetricDistribution]], kind: str) -> Extremes:
    """Return the smallest and largest possible spread over groups, over all label assignments."""
    smallest, largest = [], []
    for by_group in in_groups:
        low, high = np.array([x.bounds for x in by_group]).T
        # Two different groups are at the ends.
        first, second = np.nonzero(~np.eye(low.size, dtype=np.bool_))
        if kind == "ratio":
            smallest.append(float(_ratio(high[first], low[second])[high[first] > 0.0].min(initial=1.0)))
            largest.append(float(min(1.0, high.min() / low.max())) if low.max() > 0.0 else 1.0)
        else:
            smallest.append(max(0.0, float(low.max() - high.min())))
            largest.append(float((high[first] - low[second]).max(initial=0.0)))
    is_sharp = len(in_groups) == 1 and all(x.bounds_sharp for x in in_groups[0])
    return Extremes(max(smallest), max(largest), is_sharp)
