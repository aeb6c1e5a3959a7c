"""GroupedEvaluation: what evaluate_by found in every group, as words, table and numbers."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from darkmetrics import frames
from darkmetrics._text import counted, printable, prints_plainly
from darkmetrics.argument_types import GroupLike, PageSettings, PathLike
from darkmetrics.changes import Change, Gap, Trend
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.monitoring.alerts import SCHEMA, Alert, probability_text, side_of
from darkmetrics.monitoring.comparing import change_of_groups, gap_of_groups, trend_of_groups
from darkmetrics.monitoring.groups import (
    GroupSummary,
    Key,
    cell_text,
    group_text,
    group_texts,
    key_text,
    listed,
    make_room,
    named,
    plain,
)
from darkmetrics.monitoring.periods import as_known, late_labels
from darkmetrics.monitoring.tasks import Group, Notes, Task, arrival_in
from darkmetrics.monitoring.wording import bucket_texts, gone_texts, rows_of, verdict_text, window_text
from darkmetrics.tables import html_lines, html_table, level_text, plain_numbers, text_table

if TYPE_CHECKING:
    from darkmetrics.report.render import ReportPage

# Rows of the printed table; more are not read.
_SHOWN = 40
# More metrics than these are too wide to be read, and only those with a target are shown.
_WIDE = 3
# Letters of a key that an error shows.
_TYPED = 120
# The other side of a target.
_WRONG = {"<=": ">", ">=": "<"}


@prints_plainly
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupedEvaluation(Mapping[Any, Evaluation]):
    """Segments and periods, each evaluated by itself: a mapping from the key of a group to its `Evaluation`.

    `groups` has the numbers of every group, and `result[key]` its evaluation, which is computed again if those of all
    groups do not fit into memory. With one grouping column, the value is a key; dates may be text ("2026-04").

    Attributes
    ----------
    names : tuple of str
        The grouping columns; keys have one value for each.
    period : str or None
        The one among them that is time; it comes last.
    every : str or None
        How long a period is, if time was cut into periods here: "hour", "day", ..., "year".
    groups : mapping from key to GroupSummary
        The numbers, sorted by key.
    total : Evaluation
        All rows together: the sum of the groups, each with its own label model, and never a fit that contradicts them.
    metrics : mapping from name to Metric
        What was evaluated.
    targets : mapping from metric name to float
        What was to be reached.
    alerts : tuple of Alert
        Groups that miss a target, the surest first.
    q_values : mapping from (key, metric name) to float
        The smallest false-discovery rate at which there is an alert, for each target of each group that takes part.
    false_discovery_rate : float
        Expected share of false ones among the alerts, at most.
    correction : str
        "bh" or "by": how it is kept.
    confidence_level : float
        Of the intervals.
    min_labels : int
        A group with fewer labels of a class is too small.
    evaluated_on : date
        The day of this evaluation.
    since : optional
        The first period that alerts look at; None if they look at all groups.
    gone : tuple of Alert, or None
        Alerts of the earlier result (`known=`) that are none now; None where there was no earlier result.
    total_notes : tuple of str
        What the evaluation of all rows warned of.
    remarks : tuple of str
        What groups warned of, in a phrase each.
    arguments : mapping from argument to code
        The call that made it, without arguments that are defaults.

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> labels, scores = [1, 0, 1, 0, None, None] * 20, [0.9, 0.2, 0.4, 0.7, 0.8, 0.3] * 20
    >>> table = pd.DataFrame({"shop": ["app", "web"] * 60, "fraud": labels, "p": scores})
    >>> result = dm.evaluate_by(table, "shop", label="fraud", score="p", label_model="half", metrics="accuracy")
    >>> result
    <GroupedEvaluation of 2 groups by shop, 120 rows: accuracy>
    >>> {key: round(group.metrics["accuracy"].mean, 3) for key, group in result.groups.items()}
    {('app',): 0.5, ('web',): 0.5}
    >>> result["web"]["accuracy"]
    <Discrete: mean 0.5, 90% interval 0.4333 to 0.5667, exact>
    """

    names: tuple[str, ...]
    period: str | None
    every: str | None
    groups: Mapping[Key, GroupSummary]
    total: Evaluation
    metrics: Mapping[str, Metric]
    targets: Mapping[str, float]
    alerts: tuple[Alert, ...]
    q_values: Mapping[tuple[Key, str], float]
    false_discovery_rate: float
    correction: str
    confidence_level: float
    min_labels: int
    evaluated_on: dt.date
    since: object = None
    gone: tuple[Alert, ...] | None = None
    total_notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    # Evaluations that were kept, and what the other groups are evaluated from again.
    evaluations: Mapping[Key, Evaluation] = field(default_factory=dict, repr=False)
    task: Task = field(repr=False)
    pieces: Mapping[Key, Group] = field(repr=False)
    _kept: dict[Key, Evaluation] = field(default_factory=dict, init=False)

    @cached_property
    def arrival(self) -> Arrival | None:
        """When labels come (`Evaluation.arrival`), learnt from the rows of all groups; None unless they have ages."""
        return arrival_in(list(self.pieces.values()), self.evaluated_on)

    def __getitem__(self, key: GroupLike) -> Evaluation:
        key = self.key_of(key)
        if key not in self.evaluations and key not in self._kept:
            summary = self.groups[key]
            if all(metric.method == "bounds" for metric in summary.metrics.values()):
                raise InputError(
                    f"{named(self.names, key)}: {summary.too_small}, so there is nothing to learn from. groups[key] "
                    "has what any labels can make of the metrics; reference= (fully labelled rows) would give more."
                )
            with Notes().taken():  # they are among the notes of the group already
                evaluation = self.task.evaluated(self.pieces[key])
            make_room(self._kept)
            self._kept[key] = evaluation
        return self.evaluations.get(key) or self._kept[key]

    def __contains__(self, key: object) -> bool:
        try:
            self.key_of(key)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[Key]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def key_of(self, key: GroupLike) -> Key:
        """The key of a group that there is; one value will do where there is one column."""
        whole = key if isinstance(key, tuple) else (key,)
        try:
            if whole in self.groups:
                return whole
            if len(whole) == len(self.names):
                meant = tuple(
                    as_known(value, {known[i]: None for known in self.groups}, self._every(name))
                    for i, (name, value) in enumerate(zip(self.names, whole, strict=True))
                )
                if meant in self.groups:
                    return meant
        except TypeError:  # a list, say, which is no key of anything
            pass
        first = next(iter(self.groups))
        typed = repr(first if len(first) > 1 else first[0])
        # A value that is a page long is described.
        shown = typed if len(typed) <= _TYPED else f"that of the first group ({named(self.names, first)})"
        raise MissingGroupError(
            f"key: {key!r} is not among the {counted(len(self.groups), 'group')}. Give the value of "
            f"{listed([repr(name) for name in self.names])}, such as {shown}."
        )

    def _every(self, name: str) -> str | None:
        return self.every if name == self.period else None

    def label(self, key: GroupLike) -> str:
        """A group in words, fit to be shown: its values, with periods as short as they can be."""
        return group_text(self.names, self.key_of(key), self.period, self.every)

    def change(self, after: GroupLike, before: GroupLike, *, confidence_level: float | None = None) -> Change:
        """Did it get worse from one group to another? The law of each metric's difference, after less before.

        What is open about the labels of both groups is counted once, as in `change`: delays of labels that were learnt
        from all groups, a reason that was not stated, reference rows.

        Parameters
        ----------
        after, before
            Keys of two groups, such as "2026-06" and "2026-05".
        confidence_level : float, optional
            Of intervals in print; that of the result unless given.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> table = pd.DataFrame({"day": ["2026-06-01"] * 60 + ["2026-05-01"] * 60})
        >>> table["y"], table["p"] = [1, 0, 1, 0, None, None] * 20, [0.9, 0.2, 0.4, 0.7, 0.8, 0.3] * 20
        >>> result = dm.evaluate_by(table, "day", label="y", score="p", label_model="half", metrics="accuracy")
        >>> round(result.change("2026-06-01", "2026-05-01").fell("accuracy"), 3)
        0.437
        """
        return change_of_groups(self, after, before, confidence_level)

    def trend(self, metric: str, segment: GroupLike = None) -> Trend:
        """Is a metric falling over the periods? The law of the slope of a straight line through them.

        Periods with too few labels (`too_small`) are left out, unless none of their labels is missing.

        Parameters
        ----------
        metric : str
            One of the metrics.
        segment : optional
            Whose periods, where there are grouping columns besides time: their value, or a tuple with a value for each.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> rows = [("2026-04", 1, 0.9), ("2026-04", 0, 0.1), ("2026-05", 1, 0.9), ("2026-05", 0, 0.1)]
        >>> rows += [("2026-06", 1, 0.9), ("2026-06", 0, 0.7)]
        >>> table = pd.DataFrame(rows, columns=["month", "y", "p"])
        >>> result = dm.evaluate_by(table, "month", label="y", score="p", metrics="accuracy")
        >>> print(str(result.trend("accuracy")).splitlines()[0])
        accuracy falls by 0.2500 per period over 3 periods, 2026-04 to 2026-06, for certain. Probability that it is
        falling: 100%.
        """
        return trend_of_groups(self, metric, segment)

    def gap(self, metric: str | None = None, kind: str = "difference", *, groups: Sequence[Any] | None = None) -> Gap:
        """Do groups differ? The law of how far they are apart in a metric.

        With no label missing it is what fairlearn's `MetricFrame` has: `difference()`, `ratio()` and
        `equalized_odds_difference`. Groups with too few labels (`too_small`) are left out, unless none of their labels
        is missing. It is the gap of these rows: among groups of few rows it is larger than that of the populations.
        With scope="population" it is that of the populations.

        Parameters
        ----------
        metric : str, optional
            One of the metrics; not needed for equalized odds, which are those of "recall" and "fpr".
        kind : {"difference", "ratio", "equalized_odds"}
            Largest less smallest; smallest over largest; the larger of the differences in true and in false positive
            rate, which is for scope="rows" alone.
        groups : list of keys, optional
            The groups to compare; all of them unless given, 256 at most.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> rows = [("app", 1, 0.9), ("app", 1, 0.8), ("web", 1, 0.9), ("web", 1, 0.2), ("web", 0, 0.6)]
        >>> table = pd.DataFrame(rows, columns=["shop", "y", "p"])
        >>> result = dm.evaluate_by(table, "shop", label="y", score="p", metrics="recall")
        >>> result.gap("recall")
        <Gap, difference in recall, over 2 groups: 0.5, 90% 0.5 to 0.5>
        >>> result.gap("recall", kind="ratio").law.mean()
        0.5
        """
        return gap_of_groups(self, metric, kind, groups)

    def plot(self, metric: str | None = None, **settings: Any) -> Any:
        """One metric in every group as a forest plot (`plotting.plot_groups`); needs matplotlib. Returns the Axes."""
        from darkmetrics.plotting.by_group import plot_groups

        return plot_groups(self, metric, **settings)

    def plot_over_time(self, metric: str | None = None, **settings: Any) -> Any:
        """One metric over the periods (`plotting.plot_over_time`); needs matplotlib. Returns the Axes drawn on."""
        from darkmetrics.plotting.over_time import plot_over_time

        return plot_over_time(self, metric, **settings)

    @overload
    def report(self, path: None = None, **about: Unpack[PageSettings]) -> "ReportPage": ...
    @overload
    def report(self, path: PathLike, **about: Unpack[PageSettings]) -> Path: ...
    def report(self, path: PathLike | None = None, **about: Unpack[PageSettings]) -> "Path | ReportPage":
        """Writes one HTML page with alerts, pictures over time, the groups and the total, and returns its path.

        The page opens offline and can be mailed; it needs jinja2. The file appears when it is complete. Without a path
        the page is returned, and a notebook shows it.

        Parameters
        ----------
        path : str or path, optional
            The file to write, which ends in .html; one that exists is replaced.
        about
            As for the report of an evaluation: `title`, `source` (a file name, or facts by name), `audit` (facts for
            an audit file by name) and `date`, which is that of the evaluation unless given.
        """
        from darkmetrics.report.groups import write_groups_report

        return write_groups_report(self, path, **about)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/monitoring.md` has the schema)."""
        return {
            "schema": SCHEMA,
            "names": list(self.names),
            "period": self.period,
            "every": self.every,
            "confidence_level": self.confidence_level,
            "scope": self.total.scope,
            "targets": dict(self.targets),
            "false_discovery_rate": self.false_discovery_rate,
            "correction": self.correction,
            "min_labels": self.min_labels,
            "notes": self.notes(),
            "evaluated_on": self.evaluated_on.isoformat(),
            "since": plain(self.since),
            "alerts": [alert.to_dict() for alert in self.alerts],
            "gone": None if self.gone is None else [alert.to_dict() for alert in self.gone],
            "total": self.total.to_dict(),
            "groups": [
                {
                    "key": list(map(plain, key)),
                    "counts": dict(group.counts),
                    "too_small": group.too_small,
                    "notes": list(group.notes),
                    "warnings": [warned._asdict() for warned in group.warnings],
                    "chance_missed": plain_numbers(group.chance_missed),
                    "metrics": {name: plain_numbers(asdict(one)) for name, one in group.metrics.items()},
                }
                for key, group in self.groups.items()
            ],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per group and metric, as a pandas, Polars or PyArrow frame (the first one installed, unless named).

        Grouping columns come first, as text where the engine has no such values; numbers called like one end in "_".
        """
        rows = rows_of(self)
        return frames.to_native_frame({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def records(self) -> list[dict[str, Any]]:
        """The rows of `to_frame` as plain numbers and text, ready for JSON or CSV."""
        keys = dict.fromkeys(self.names)
        return [
            {name: plain(row[name]) for name in keys}
            | plain_numbers({name: value for name, value in row.items() if name not in keys})
            for row in rows_of(self)
        ]

    def __repr__(self) -> str:
        names = listed([key_text(name) for name in self.names])
        alerts = f", {counted(len(self.alerts), 'alert')}" if self.targets else ""
        return (
            f"<GroupedEvaluation of {counted(len(self.groups), 'group')} by {names}, "
            f"{counted(self.total.data.n_rows, 'row')}{alerts}: {', '.join(self.metrics)}>"
        )

    def __str__(self) -> str:
        table = text_table(*self.table(), words=len(self.names))
        return "\n".join([*self.words(), "", *table, *self._left_out(), "", *self.notes()])

    def _repr_html_(self) -> str:
        below = [*self._left_out(), *self.notes()]
        return f"<div>{html_lines(self.words())}{html_table(*self.table())}{html_lines(below)}</div>"

    def words(self) -> list[str]:
        """What stands above the table: how many groups and rows, which targets are missed, what is too small."""
        counts = self.total.data.counts()
        by = listed([key_text(name) for name in self.names])
        whole = f"{counted(counts['rows'], 'row')}, {counts['labelled']:,} labelled, {counts['missing']:,} missing"
        share = counts["missing"] / counts["rows"]
        words = [f"{counted(len(self.groups), 'group')} by {by}: {whole} ({share:.1%})"]
        words += [*window_text(self), *(verdict_text(self, name) for name in self.targets), *gone_texts(self)]
        small = sum(bool(group.too_small) for group in self.groups.values())
        if small:
            words.append(
                f"{counted(small, 'group')} {'is' if small == 1 else 'are'} too small to judge: fewer than "
                f"{self.min_labels} positives or negatives to go by."
            )
        return words

    def notes(self, *, remarks: bool = True) -> list[str]:
        """What stands below the table: what the intervals are for and, with `remarks`, what groups warn of."""
        level = level_text(self.confidence_level)
        own = "which has a label model of its own; all is their sum"
        if self._late:
            own = "with delays of labels learnt from all groups and a level of its own; all is their sum"
        these = "the rows of each group" if self.total.scope == "rows" else "the population that each group comes from"
        notes = [f"In brackets: {level} intervals for {these}, {own}."]
        warned = sum(bool(group.notes) and not group.too_small for group in self.groups.values())
        if warned and remarks:
            notes.append(
                f"{counted(warned, 'group')} {'has' if warned == 1 else 'have'} something to say about "
                f"{'its' if warned == 1 else 'their'} labels ({'; '.join(self.remarks)}): groups[key].notes."
            )
        notes += [f"All rows together: {note}" for note in self.total_notes]
        notes += bucket_texts(self)
        if len(self._shown()) < len(self.metrics):
            others = [name for name in self.metrics if name not in self.targets]
            notes.append(f"Not in the table, which has the metrics with a target: {listed(others)}; see to_frame().")
        return [*notes, *late_labels(self.names, self.period, self.every, self.groups, told=self._late)]

    @property
    def _late(self) -> bool:
        """Whether delays of labels were learnt, from all groups together."""
        return any(piece.model is not None for piece in self.pieces.values())

    def _shown(self) -> list[str]:
        """The metrics of the table: all of them, or those with a target where all would be too many."""
        return list(self.metrics if len(self.metrics) <= _WIDE else self.targets or self.metrics)

    def table(self, most: int | None = _SHOWN) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text: all rows together, then one row per group, `most` of them at most.

        Groups are sorted by key; where not all are shown, those with an alert come first. Of more than three metrics
        only those with a target are shown, if there are any.
        """
        shown = self._shown()
        header = [
            *(key_text(name) for name in self.names),
            "rows",
            "missing",
            *shown,
            *(f"P({name} {_WRONG[side_of(self.metrics[name])]} {self.targets[name]:g})" for name in self.targets),
            "",
        ]
        whole = self.task.of_all(self.total)
        alerts: dict[Key, list[Alert]] = {}
        for alert in self.alerts:
            alerts.setdefault(alert.key, []).append(alert)
        order = self.keys_shown(most)
        # A group may be called "all" as well.
        called = "(all rows)" if any(str(key[0]) == "all" for key in order) else "all"
        first = [[called, *[""] * (len(self.names) - 1), *self._cells(whole, shown), ""]]
        rows = [
            [
                *group_texts(self.names, key, self.period, self.every),
                *self._cells(self.groups[key], shown),
                self._mark(self.groups[key], alerts.get(key, [])),
            ]
            for key in order
        ]
        return header, first + rows

    def keys_shown(self, most: int | None = _SHOWN) -> list[Key]:
        """The groups of a table of at most so many: all by key, or those with new alerts first, then those with any."""
        order = list(self.groups)
        if most is None or most >= len(order):
            return order
        alerts = {alert.key for alert in self.alerts}
        new = {alert.key for alert in self.alerts if alert.new}
        return sorted(order, key=lambda key: (key not in new, key not in alerts))[:most]

    def _cells(self, group: GroupSummary, shown: list[str]) -> list[str]:
        return [
            f"{group.counts['rows']:,}",
            f"{group.counts['missing'] / max(group.counts['rows'], 1):.1%}",
            *(cell_text(group.metrics[name]) for name in shown),
            *(probability_text(group.chance_missed[name]) for name in self.targets),
        ]

    def _mark(self, group: GroupSummary, alerts: list[Alert]) -> str:
        """What stands at the end of a line: of several alerts the newest says how new the group's is."""
        if not alerts:
            return "too small" if group.too_small else ""
        newest = max(alerts, key=lambda alert: (alert.new, alert.known_since or dt.date.min))
        return "alert" if self.gone is None else "new alert" if newest.new else f"alert, {newest.age}"

    def _left_out(self) -> list[str]:
        more = len(self.groups) - _SHOWN
        first = "; those with an alert come first" if self.alerts else ""
        return [f"... and {more:,} more{first}"] if more > 0 else []


class MissingGroupError(KeyError):
    """A KeyError, as mappings raise, whose message is printed as it is written."""

    def __str__(self) -> str:
        return printable(str(self.args[0]), keep="\n")
