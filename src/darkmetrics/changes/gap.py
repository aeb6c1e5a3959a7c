"""Gap: how far are groups apart?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.changes.wording import chance_above, chance_below, check_amount, names_text, zero_by_zero_text
from darkmetrics.distributions import Interval, MetricDistribution, Undefined
from darkmetrics.distributions.functional import Extremes
from darkmetrics.distributions.joint import JointDraws
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.result import Result
from darkmetrics.tables import (
    chance_text,
    decimals_for,
    finite,
    interval_text,
    level_text,
    number_text,
)

if TYPE_CHECKING:
    pass

SCHEMA = "darkmetrics.gap/1"
# Values of two groups that differ by this part of their size are equal but for rounding.
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
# From this probability on it is all groups that are level, and not two of them at the ends.
_MOSTLY = 0.5
# Groups of the printed table; more are not read.
_SHOWN = 40


# How far groups are apart, as a function of the largest and the smallest value.
Measure = Callable[[FloatArray, FloatArray], FloatArray]


class Kind(NamedTuple):
    """How far groups are apart, from the largest and the smallest value, in words, and whether more is wider."""

    measure: Measure
    words: str
    wider_is_more: bool


def _ratio(high: FloatArray, low: FloatArray) -> FloatArray:
    """The smallest over the largest; NaN where all are zero."""
    ratio: FloatArray = np.divide(low, high, out=np.full(np.shape(high), np.nan), where=np.asarray(high) > 0.0)
    return ratio


KINDS = {
    "difference": Kind(np.subtract, "largest less smallest {metric}", wider_is_more=True),
    "ratio": Kind(_ratio, "smallest {metric} over the largest", wider_is_more=False),
    "equalized_odds": Kind(
        np.subtract, "the larger of the differences in true and false positive rate", wider_is_more=True
    ),
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disparity(Result):
    """Do groups differ? The law of how far they are apart in a metric.

    It is about the rows of these groups, unless they were evaluated with scope="population": then about the populations
    that the rows came from. Groups of few rows differ by chance as well: on the rows, the largest less the smallest of
    them is larger than what lies between the populations.

    Attributes
    ----------
    metric : str
        What is compared; "equalized_odds" has two.
    kind : str
        "difference", "ratio" or "equalized_odds".
    law : MetricDistribution
        The gap.
    groups : tuple of str
        The groups in words.
    means : mapping from group to float
        The metric in each; for equalized odds the true positive rate.
    intervals : mapping from group to Interval
        Its interval in each, at the confidence level.
    largest, smallest : mapping from group to float
        How likely each group is the one with the largest, and with the smallest value; groups that are level share.
        For equalized odds that of the true positive rate. NaN for a group that has none (0/0, left out): chances are
        those among the others.
    undefined : mapping from group to float
        How likely the metric is 0/0 in each, whatever that counts as; for equalized odds the true positive rate.
    tie : float
        How likely all groups are level, those left aside that are never defined.
    left_out : tuple of str
        Groups with too few labels to say something.
    together : str
        What is open about all groups and taken to be the same, in a sentence; empty if nothing is.
    confidence_level : float
        Of the intervals in print.
    scope : str
        What it is about: "rows" or "population".

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> table = pd.DataFrame({"shop": ["app"] * 60 + ["web"] * 60, "y": [1, 0, 1, 0, None, 1] * 20})
    >>> table["p"] = [0.9, 0.2, 0.4, 0.7, 0.8, 0.6] * 10 + [0.9, 0.2, 0.6, 0.7, 0.8, 0.6] * 10
    >>> result = dm.evaluate_by("y", "p", data=table, by="shop", missingness=dm.missing.Fixed(0.5), metrics="recall")
    >>> found = result.disparity("recall")
    >>> found._words()[0]
    'Largest less smallest recall over 2 groups: 0.286 (90%: 0.263 to 0.312).'
    >>> found.probability_above(0.2)
    1.0
    """

    _plot: ClassVar[str] = "plotting.forests:plot_disparity"
    _max_rows: ClassVar[int | None] = _SHOWN

    metric: str
    kind: str
    distribution: MetricDistribution
    groups: tuple[str, ...]
    means: Mapping[str, float]
    intervals: Mapping[str, Interval]
    largest: Mapping[str, float]
    smallest: Mapping[str, float]
    undefined: Mapping[str, float]
    tie: float
    left_out: tuple[str, ...] = ()
    together: str = ""
    # In which groups a metric is 0/0, and what that counts as, in a sentence; empty if in none.
    zero_by_zero: str = ""
    confidence_level: float = 0.9
    scope: str = "rows"
    # The law of the difference of two groups, given their keys.
    pair_of: Callable[[Any, Any], MetricDistribution] | None = field(default=None, repr=False)

    def probability_above(self, limit: float) -> float:
        """How likely is it that groups are farther apart than this: a difference above it, or a ratio below it?"""
        limit = check_amount(limit, "limit", "how far groups are apart")
        return (chance_above if KINDS[self.kind].wider_is_more else chance_below)(self.distribution, limit)

    def pairwise(self, one: GroupLike, other: GroupLike) -> MetricDistribution:
        """The law of the metric's difference between two groups, the first less the second; keys as in the result."""
        assert self.pair_of is not None
        return self.pair_of(one, other)

    def _words(self) -> list[str]:
        """The gap in a sentence, and which groups are at its ends."""
        distribution, what = self.distribution, KINDS[self.kind].words.format(metric=self.metric)
        about = f"{what[0].upper()}{what[1:]} over {len(self.groups):,} groups"
        about += "" if self.scope == "rows" else " in the population"
        ends = self._ends_in_words()
        if np.isnan(distribution.mean()):
            return [f"{about} is undefined ({self._why_undefined()}).", *ends]
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        inside = f" ({level_text(self.confidence_level)}: {interval_text((low, high), decimals)})"
        return [f"{about}: {number_text(distribution.mean(), decimals)}{'' if low == high else inside}.", *ends]

    @property
    def _name(self) -> str:
        """What the means are of."""
        return _TPR if self.kind == "equalized_odds" else self.metric

    def _why_undefined(self) -> str:
        never = [group for group in self.groups if np.isnan(self.means[group])]
        if never:
            return f"0/0 in {names_text(never)}"
        return f"{self.metric} is 0 in all of them" if self.kind == "ratio" and self.tie >= 1.0 else "0/0 in a group"

    def _ends_in_words(self) -> list[str]:
        """Which of the groups that have a value are most likely highest and lowest; nothing where one or none has."""
        some = [group for group in self.groups if not np.isnan(self.largest[group])]
        if len(some) < 2:
            return []
        name = f"{self._name[0].upper()}{self._name[1:]}"
        others = "" if len(some) == len(self.groups) else " of the others"
        if self.tie >= _MOSTLY:
            chance = "" if self.tie >= 1.0 else f" with probability {chance_text(self.tie)}"
            return [f"{name} is the same in all {'of them' if not others else 'others'}{chance}."]
        highest, lowest = (
            f"{end} ({chance_text(found[end])})"
            for found in (self.largest, self.smallest)
            for end in [max(some, key=found.__getitem__)]
        )
        return [f"{name}{others} is most likely highest in {highest} and lowest in {lowest}."]

    def _notes(self) -> list[str]:
        """What stands below the table: what the number is, and what is left out."""
        notes = [_OF_ROWS if self.scope == "rows" else _OF_POPULATIONS, *filter(None, [self.zero_by_zero])]
        if self.left_out:
            notes.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*notes, *filter(None, [self.together])]

    def _table(self, most: int | None = _SHOWN) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text, the highest group first."""
        header = ["", self._name, f"{level_text(self.confidence_level)} interval", "P(highest)", "P(lowest)"]
        rows = []
        for group in sorted(self.groups, key=lambda group: -np.nan_to_num(self.means[group], nan=-np.inf))[:most]:
            low, high = self.intervals[group]
            decimals = decimals_for(high - low)
            chances = [chance_text(found[group]) for found in (self.largest, self.smallest)]
            rows.append(
                [group, number_text(self.means[group], decimals), interval_text((low, high), decimals), *chances]
            )
        return header, rows

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/change.md` has the schema)."""
        return {
            "schema": SCHEMA,
            "metric": self.metric,
            "kind": self.kind,
            "scope": self.scope,
            **self.distribution.to_dict(self.confidence_level),
            "tie": finite(self.tie),
            "notes": self._notes(),
            "left_out": list(self.left_out),
            "groups": [
                {
                    "group": group,
                    "mean": finite(self.means[group]),
                    "low": finite(self.intervals[group].low),
                    "high": finite(self.intervals[group].high),
                    "largest": finite(self.largest[group]),
                    "smallest": finite(self.smallest[group]),
                    "undefined": self.undefined[group],
                }
                for group in self.groups
            ],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per group, with the metric and what it is about: the rows of `to_frame`."""
        return [{"metric": self._name, "scope": self.scope, **entry} for entry in self.to_dict()["groups"]]

    def __repr__(self) -> str:
        low, high = self.distribution.interval(self.confidence_level)
        what = self.kind if self.kind == "equalized_odds" else f"{self.kind} in {self.metric}"
        level = level_text(self.confidence_level)
        mean = self.distribution.mean()
        return f"<Disparity, {what}, over {len(self.groups):,} groups: {mean:.4g}, {level} {low:.4g} to {high:.4g}>"


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
    """Return the gap between evaluations of different rows in one metric, or the widest of several."""
    values_of_zero = dict(zip((metric.name for metric in metrics), fills, strict=True))
    sets = SeveralSets(evaluations, values_of_zero)
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
    largest, smallest = np.full((2, len(groups)), np.nan)
    largest[has_value], smallest[has_value] = ends.largest, ends.smallest
    level, scope = evaluations[0].confidence_level, evaluations[0].scope
    zeros = [
        zero_by_zero_text(
            metric.name,
            {group: x.undefined for group, x in zip(groups, by_group, strict=True)},
            values_of_zero[metric.name],
            scope=scope,
        )
        for metric, by_group in zip(metrics, in_groups, strict=True)
    ]
    if kind == "ratio" and 0.0 < ends.all_zero < 1.0:
        chance = chance_text(ends.all_zero)
        zeros.append(f"The ratio is 0/0 where {metrics[0].name} is 0 in all groups ({chance}); that is left out.")
    return Disparity(
        metric=metrics[0].name if len(metrics) == 1 else kind,
        kind=kind,
        distribution=distribution,
        groups=tuple(groups),
        means={group: x.mean() for group, x in zip(groups, in_groups[0], strict=True)},
        intervals={group: x.interval(level) for group, x in zip(groups, in_groups[0], strict=True)},
        largest=dict(zip(groups, largest.tolist(), strict=True)),
        smallest=dict(zip(groups, smallest.tolist(), strict=True)),
        undefined={group: x.undefined for group, x in zip(groups, in_groups[0], strict=True)},
        tie=ends.tie,
        left_out=tuple(left_out),
        together=sets.pairing.describe(),
        zero_by_zero=" ".join(filter(None, zeros)),
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

    largest: FloatArray
    smallest: FloatArray
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
