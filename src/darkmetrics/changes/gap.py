"""Gap: how far are groups apart?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.changes.coupling import coupled
from darkmetrics.changes.laws import (
    MOST_COMBINATIONS,
    Measure,
    about_tables,
    all_values,
    node_draws,
    picked,
    spread_law,
    value_draws,
)
from darkmetrics.changes.node_tables import AtNodes, NodeTable
from darkmetrics.changes.wording import chance_above, chance_below, check_amount
from darkmetrics.distribution import Interval, MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.functional import CountFunctional
from darkmetrics.metrics import Metric
from darkmetrics.tables import (
    chance_text,
    decimals_for,
    finite,
    html_lines,
    html_table,
    interval_text,
    level_text,
    number_text,
    text_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = "darkmetrics.gap/1"
# Draws where combinations are too many: a probability is off by 0.0014 in two of three cases, at most.
_DRAWS, _MOST_NUMBERS = 1 << 17, 1 << 25
_SEED = 29
_OF_ROWS = (
    "The gap is that of these rows. Groups of few rows differ by chance too, so that it is larger than what lies "
    "between the populations they come from."
)
_OF_POPULATIONS = (
    "The gap is that between the populations that the rows came from. Of groups of few rows less is known, and what is "
    "not known drives the largest and the smallest apart."
)
# Groups of the printed table; more are not read.
_SHOWN = 40


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
class Gap:
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
        For equalized odds that of the true positive rate.
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
    >>> result = dm.evaluate_by(table, "shop", label="y", score="p", label_model="half", metrics="recall")
    >>> found = result.gap("recall")
    >>> found.words()[0]
    'Largest less smallest recall over 2 groups: 0.286 (90%: 0.263 to 0.312).'
    >>> found.wider_than(0.2)
    1.0
    """

    metric: str
    kind: str
    law: MetricDistribution
    groups: tuple[str, ...]
    means: Mapping[str, float]
    intervals: Mapping[str, Interval]
    largest: Mapping[str, float]
    smallest: Mapping[str, float]
    left_out: tuple[str, ...] = ()
    together: str = ""
    confidence_level: float = 0.9
    scope: str = "rows"
    # The law of the difference of two groups, given their keys.
    pair_of: Callable[[Any, Any], MetricDistribution] | None = field(default=None, repr=False)

    def wider_than(self, limit: float) -> float:
        """How likely is it that groups are farther apart than this: a difference above it, or a ratio below it?"""
        limit = check_amount(limit, "limit", "how far groups are apart")
        return (chance_above if KINDS[self.kind].wider_is_more else chance_below)(self.law, limit)

    def pair(self, one: GroupLike, other: GroupLike) -> MetricDistribution:
        """The law of the metric's difference between two groups, the first less the second; keys as in the result."""
        assert self.pair_of is not None
        return self.pair_of(one, other)

    def words(self) -> list[str]:
        """The gap in a sentence, and which groups are at its ends."""
        law, what = self.law, KINDS[self.kind].words.format(metric=self.metric)
        over = f"over {len(self.groups):,} groups"
        if law.undefined >= 1.0:
            return [f"{what[0].upper()}{what[1:]} {over} is undefined (0/0 in a group)."]
        low, high = law.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        inside = f" ({level_text(self.confidence_level)}: {interval_text((low, high), decimals)})"
        text = (
            f"{what[0].upper()}{what[1:]} {over}: {number_text(law.mean(), decimals)}{'' if low == high else inside}."
        )
        both = self.largest, self.smallest
        ends = [max(found, key=found.__getitem__) for found in both]
        highest, lowest = (f"{end} ({chance_text(found[end])})" for found, end in zip(both, ends, strict=True))
        name = "True positive rate" if self.kind == "equalized_odds" else f"{self.metric[0].upper()}{self.metric[1:]}"
        return [
            text,
            f"{name} is most likely highest in {highest} and lowest in {lowest}.",
        ]

    def notes(self) -> list[str]:
        """What stands below the table: what the number is, and what is left out."""
        notes = [_OF_ROWS if self.scope == "rows" else _OF_POPULATIONS]
        if self.left_out:
            notes.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*notes, *filter(None, [self.together])]

    def table(self, most: int | None = _SHOWN) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text, the highest group first."""
        name = "true positive rate" if self.kind == "equalized_odds" else self.metric
        header = ["", name, f"{level_text(self.confidence_level)} interval", "P(highest)", "P(lowest)"]
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
            **self.law.to_dict(self.confidence_level),
            "notes": self.notes(),
            "left_out": list(self.left_out),
            "groups": [
                {
                    "group": group,
                    "mean": finite(self.means[group]),
                    "low": finite(self.intervals[group].low),
                    "high": finite(self.intervals[group].high),
                    "largest": finite(self.largest[group]),
                    "smallest": finite(self.smallest[group]),
                }
                for group in self.groups
            ],
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The groups, and the law of the gap in words (`plotting.plot_gap`); needs matplotlib. Returns the Axes."""
        from darkmetrics.plotting.changes import plot_gap

        return plot_gap(self, ax=ax)

    def __repr__(self) -> str:
        low, high = self.law.interval(self.confidence_level)
        what = self.kind if self.kind == "equalized_odds" else f"{self.kind} in {self.metric}"
        level = level_text(self.confidence_level)
        return (
            f"<Gap, {what}, over {len(self.groups):,} groups: {self.law.mean():.4g}, {level} {low:.4g} to {high:.4g}>"
        )

    def __str__(self) -> str:
        more = len(self.groups) - _SHOWN
        below = [f"... and {more:,} more"] if more > 0 else []
        return "\n".join([*self.words(), "", *text_table(*self.table()), *below, "", *self.notes()])

    def _repr_html_(self) -> str:
        return f"<div>{html_lines(self.words())}{html_table(*self.table())}{html_lines(self.notes())}</div>"


def gap_between(
    metrics: Sequence[Metric],
    fills: Sequence[float],
    kind: str,
    evaluations: Sequence[Evaluation],
    groups: Sequence[str],
    *,
    left_out: Sequence[str] = (),
    pair_of: Callable[[Any, Any], MetricDistribution] | None = None,
) -> Gap:
    """The gap between evaluations of different rows in one metric, or the widest of several."""
    found = coupled(evaluations)
    measure = KINDS[kind].measure
    size = min(_DRAWS, _MOST_NUMBERS // (len(metrics) * len(groups)))
    rng = np.random.default_rng(_SEED)  # the same draws in every run
    drawn = np.empty((len(groups), len(metrics), size))
    tables: list[list[NodeTable]] = []
    combinations = 1.0
    for i, node in enumerate(node_draws(found.blocks, size, rng)):
        rows = AtNodes(evaluations[i], found.nodes[i])
        own = _tables(metrics, fills, rows, drawn=combinations * len(groups) > MOST_COMBINATIONS)
        drawn[i] = _drawn(metrics, fills, rows, own, node, rng)
        combinations *= own[0].values.size
        # The masses of many groups take more room than they are worth once there is no going through all of them.
        keep = combinations * len(groups) <= MOST_COMBINATIONS
        tables.append(own if keep else [table._replace(mass=table.mass[:, :0], method="near exact") for table in own])
    by_metric = list(zip(*tables, strict=True))
    about = [about_tables(of_sets, found.blocks, [1.0] * len(groups)) for of_sets in by_metric]
    facts = about[0] | {
        "bounds": _bounds(by_metric, kind),
        "bounds_sharp": len(metrics) == 1 and about[0]["bounds_sharp"],
        "undefined": max(one["undefined"] for one in about),
    }
    values, masses, listed = drawn, np.full(size, 1.0 / size), None
    if len(metrics) == 1:
        listed = all_values(by_metric[0], found.blocks)
    elif all(table.values.size == 1 for of_sets in by_metric for table in of_sets):
        listed = drawn[:, :, :1], np.ones(1)  # nothing is random
    if listed is not None:
        values, masses = listed
    spread = spread_law(values, masses, measure, facts, drawn=listed is None)
    own_nodes = (AtNodes(one, one.nodes) for one in evaluations)
    laws = [rows.law(metrics[0], rows.bound(metrics[0], fills[0])) for rows in own_nodes]
    level = evaluations[0].confidence_level
    return Gap(
        metric=metrics[0].name if len(metrics) == 1 else kind,
        kind=kind,
        law=spread.law,
        groups=tuple(groups),
        means={group: law.mean() for group, law in zip(groups, laws, strict=True)},
        intervals={group: law.interval(level) for group, law in zip(groups, laws, strict=True)},
        largest=dict(zip(groups, spread.largest.tolist(), strict=True)),
        smallest=dict(zip(groups, spread.smallest.tolist(), strict=True)),
        left_out=tuple(left_out),
        together=found.words,
        confidence_level=level,
        scope=evaluations[0].scope,
        pair_of=pair_of,
    )


def _tables(metrics: Sequence[Metric], fills: Sequence[float], rows: AtNodes, *, drawn: bool) -> list[NodeTable]:
    """What the metrics of one set can be; their ends alone if all else that is asked of them is `drawn` from counts."""
    both = list(zip(metrics, fills, strict=True))
    if drawn:
        ends = [rows.ends(metric, fill) for metric, fill in both]
        if all(table is not None for table in ends):
            return [table for table in ends if table is not None]
    return [rows.table(metric, fill) for metric, fill in both]


def _drawn(
    metrics: Sequence[Metric],
    fills: Sequence[float],
    rows: AtNodes,
    tables: Sequence[NodeTable],
    node: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of the metrics of one set (metrics x draws), at these nodes."""
    by_counts = len(metrics) > 1 or tables[0].mass.shape[1] == 0
    if by_counts and rows.cases.independent and any(table.values.size > 1 for table in tables):
        # Metrics of the same decisions hang together: they are formulas of the same counts.
        bound = [rows.bound(metric, fill) for metric, fill in zip(metrics, fills, strict=True)]
        formulas = [rows.counts(one) for one in bound if isinstance(one, CountFunctional)]
        laws = formulas[0][1] if len(formulas) == len(bound) else None
        if laws is not None:
            counts = [axis.values[np.minimum(picked(axis.pmf, node, rng), axis.values.size - 1)] for axis in laws.axes]
            values = np.stack([np.broadcast_to(formula.at(counts), node.shape) for formula, _ in formulas])
            return np.where(np.isnan(values), np.array(fills)[:, None], values)
    return np.stack([value_draws(table, node, rng) for table in tables])


def _bounds(by_metric: Sequence[Sequence[NodeTable]], kind: str) -> Interval:
    """The least and the most that groups can be apart, over all labelings of the missing rows."""
    least, most = [], []
    for of_sets in by_metric:
        low, high = np.array([table.bounds for table in of_sets]).T
        # The two groups at the ends are different ones.
        other = np.where(np.eye(low.size, dtype=np.bool_), np.nan, low[None, :])
        if kind == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                least.append(float(np.nanmin(other / high[:, None])))
                most.append(float(min(1.0, np.nanmin(high) / np.nanmax(low))) if np.nanmax(low) > 0.0 else 1.0)
        else:
            least.append(max(0.0, float(np.nanmax(low) - np.nanmin(high))))
            most.append(float(np.nanmax(high[:, None] - other)))
    return Interval(max(least), max(most))
