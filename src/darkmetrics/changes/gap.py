"""Gap: how far are groups apart?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.changes.coupling import Block, coupled
from darkmetrics.changes.laws import (
    MOST_COMBINATIONS,
    Measure,
    Spread,
    about_tables,
    all_values,
    node_draws,
    picked,
    spread_law,
    value_draws,
)
from darkmetrics.changes.node_tables import AtNodes, NodeTable
from darkmetrics.changes.wording import chance_above, chance_below, check_amount, names_text, zero_by_zero_text
from darkmetrics.distributions import Interval, MetricDistribution, Undefined
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
_TPR = "true positive rate"
# From this probability on it is all groups that are level, and not two of them at the ends.
_MOSTLY = 0.5
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
        about = f"{what[0].upper()}{what[1:]} over {len(self.groups):,} groups"
        about += "" if self.scope == "rows" else " in the population"
        ends = self._ends_in_words()
        if np.isnan(law.mean()):
            return [f"{about} is undefined ({self._why_undefined()}).", *ends]
        low, high = law.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        inside = f" ({level_text(self.confidence_level)}: {interval_text((low, high), decimals)})"
        return [f"{about}: {number_text(law.mean(), decimals)}{'' if low == high else inside}.", *ends]

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

    def notes(self) -> list[str]:
        """What stands below the table: what the number is, and what is left out."""
        notes = [_OF_ROWS if self.scope == "rows" else _OF_POPULATIONS, *filter(None, [self.zero_by_zero])]
        if self.left_out:
            notes.append(f"Left out, with too few labels: {', '.join(self.left_out)}.")
        return [*notes, *filter(None, [self.together])]

    def table(self, most: int | None = _SHOWN) -> tuple[list[str], list[list[str]]]:
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
            **self.law.to_dict(self.confidence_level),
            "tie": finite(self.tie),
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
                    "undefined": self.undefined[group],
                }
                for group in self.groups
            ],
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat record per group, with the metric and what it is about: the rows of `to_frame`."""
        return [{"metric": self._name, "scope": self.scope, **entry} for entry in self.to_dict()["groups"]]

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per group, as a pandas, Polars or PyArrow frame (the first one installed, unless named)."""
        words, rows = ("metric", "scope", "group"), self.records()
        columns = {
            key: [np.nan if value is None and key not in words else value for value in (row[key] for row in rows)]
            for key in rows[0]
        }
        return frames.to_native_frame(columns, backend)

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
    size = min(_DRAWS, _MOST_NUMBERS // (len(metrics) * len(groups)))
    rng = np.random.default_rng(_SEED)  # the same draws in every run
    drawn = np.empty((len(groups), len(metrics), size))
    undefined = np.zeros((len(metrics), len(groups)))
    never = np.zeros((len(metrics), len(groups)), dtype=np.bool_)
    tables: list[list[NodeTable]] = []
    combinations = 1.0
    for i, node in enumerate(node_draws(found.blocks, size, rng)):
        rows = AtNodes(evaluations[i], found.nodes[i])
        own = _tables(metrics, fills, rows, drawn=combinations * len(groups) > MOST_COMBINATIONS)
        drawn[i] = _drawn(metrics, fills, rows, own, node, rng)
        undefined[:, i] = [min(1.0, float(rows.cases.weight @ table.undefined)) for table in own]
        never[:, i] = [not table.values.size or (table.mass.size > 0 and not table.mass.any()) for table in own]
        combinations *= own[0].values.size
        # The masses of many groups take more room than they are worth once there is no going through all of them.
        keep = combinations * len(groups) <= MOST_COMBINATIONS
        tables.append(own if keep else [table._replace(mass=table.mass[:, :0], method="near exact") for table in own])
    by_metric = list(zip(*tables, strict=True))
    some = np.flatnonzero(~never[0])
    if never.any():
        # No gap over groups of which one has no value; which of the others is highest is known all the same.
        of_some = tuple(by_metric[0][i] for i in some)
        blocks = [Block(block.weight, tuple(block.shares[i] for i in some)) for block in found.blocks]
        spread = _spread([of_some], blocks, drawn[some][:, :1], "difference") if some.size else _NOTHING
        spread = spread._replace(law=Undefined(undefined=1.0))
    else:
        spread = _spread(by_metric, found.blocks, drawn, kind)
    chances = np.full((2, len(groups)), np.nan)
    chances[:, some] = spread.largest, spread.smallest
    own_nodes = (AtNodes(one, one.nodes) for one in evaluations)
    laws = [rows.law(metrics[0], rows.bound(metrics[0], fills[0])) for rows in own_nodes]
    level, scope = evaluations[0].confidence_level, evaluations[0].scope
    zeros = [
        zero_by_zero_text(metric.name, dict(zip(groups, chance.tolist(), strict=True)), fill, scope=scope)
        for metric, chance, fill in zip(metrics, undefined, fills, strict=True)
    ]
    if 0.0 < spread.lost < 1.0:
        chance = chance_text(spread.lost)
        zeros.append(f"The ratio is 0/0 where {metrics[0].name} is 0 in all groups ({chance}); that is left out.")
    return Gap(
        metric=metrics[0].name if len(metrics) == 1 else kind,
        kind=kind,
        law=spread.law,
        groups=tuple(groups),
        means={group: law.mean() for group, law in zip(groups, laws, strict=True)},
        intervals={group: law.interval(level) for group, law in zip(groups, laws, strict=True)},
        largest=dict(zip(groups, chances[0].tolist(), strict=True)),
        smallest=dict(zip(groups, chances[1].tolist(), strict=True)),
        undefined=dict(zip(groups, undefined[0].tolist(), strict=True)),
        tie=spread.tie,
        left_out=tuple(left_out),
        together=found.words,
        zero_by_zero=" ".join(filter(None, zeros)),
        confidence_level=level,
        scope=scope,
        pair_of=pair_of,
    )


_NOTHING = Spread(Undefined(undefined=1.0), np.empty(0), np.empty(0), np.nan, 0.0)


def _spread(by_metric: Sequence[Sequence[NodeTable]], blocks: Sequence[Block], drawn: FloatArray, kind: str) -> Spread:
    """The spread over groups that all have a value: over all combinations of values, or over draws of them."""
    about = [about_tables(of_sets, blocks, [1.0] * len(of_sets)) for of_sets in by_metric]
    facts = about[0] | {
        "bounds": _bounds(by_metric, kind),
        "bounds_sharp": len(by_metric) == 1 and about[0]["bounds_sharp"],
        "undefined": max(one["undefined"] for one in about),
    }
    size = drawn.shape[-1]
    values, masses, listed = drawn, np.full(size, 1.0 / size), None
    if len(by_metric) == 1:
        listed = all_values(by_metric[0], blocks)
    elif all(table.values.size == 1 for of_sets in by_metric for table in of_sets):
        listed = drawn[:, :, :1], np.ones(1)  # nothing is random
    if listed is not None:
        values, masses = listed
    return spread_law(values, masses, KINDS[kind].measure, facts, drawn=listed is None)


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
        one, other = np.nonzero(~np.eye(low.size, dtype=np.bool_))
        if kind == "ratio":
            least.append(float(_ratio(high[one], low[other])[high[one] > 0.0].min(initial=1.0)))
            most.append(float(min(1.0, high.min() / low.max())) if low.max() > 0.0 else 1.0)
        else:
            least.append(max(0.0, float(low.max() - high.min())))
            most.append(float((high[one] - low[other]).max(initial=0.0)))
    return Interval(max(least), max(most))
