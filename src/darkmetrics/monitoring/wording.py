"""What a result over groups says: its rows as a table, and the sentences above and below it."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from darkmetrics._text import counted
from darkmetrics.metrics import Metric
from darkmetrics.monitoring.groups import GroupSummary, Key, cell_text, group_texts, key_text, listed, plain
from darkmetrics.monitoring.periods import late_labels
from darkmetrics.result import Result, load
from darkmetrics.tables import chance_text, level_text, plain_numbers

if TYPE_CHECKING:
    from darkmetrics.monitoring.alerts import Alert, Alerts

# Alerts that are named, and rows of the printed table; more are not read.
_NAMED, _SHOWN = 5, 40
# The other side of a target.
_WRONG = {"<=": ">", ">=": "<"}


class GroupTexts(Result):
    """What groups say in print: all of them, and which of them miss a target if that was asked."""

    _plot: ClassVar[str] = "plotting.by_group:plot_groups"
    _report: ClassVar[str] = "report.groups:write_groups_report"

    @property
    def _view(self) -> "Alerts":
        """What is printed and drawn: the alerts, with no target if none was asked for."""
        raise NotImplementedError

    def plot_over_time(self, metric: str | None = None, **settings: Any) -> Any:
        """One metric over the periods (`plotting.plot_over_time`); needs matplotlib. Returns the Axes drawn on."""
        return load("plotting.over_time:plot_over_time")(self, metric, **settings)

    @property
    def _text_columns(self) -> int:
        return 1 + len(self._view.grouped.names)

    def _words(self) -> list[str]:
        """What stands above the table: how many groups and rows, which targets are missed, what is too small."""
        view, result = self._view, self._view.grouped
        counts = result.total.data.counts()
        by = listed([key_text(name) for name in result.names])
        whole = f"{counted(counts['rows'], 'row')}, {counts['labeled']:,} labeled, {counts['missing']:,} missing"
        share = counts["missing"] / counts["rows"]
        words = [f"{counted(len(result), 'group')} by {by}: {whole} ({share:.1%})"]
        words += [*_window_text(view), *(_verdict_text(view, name) for name in view.targets), *_gone_texts(view)]
        small = len(view.too_small)
        if small:
            words.append(
                f"{counted(small, 'group')} {'is' if small == 1 else 'are'} too small to judge: fewer than "
                f"{view.min_labels} positives or negatives to go by."
            )
        return words

    def _notes(self, *, remarks: bool = True) -> list[str]:
        """What stands below the table: what the intervals are for and, with `remarks`, what groups warn of."""
        result = self._view.grouped
        level = level_text(result.confidence_level)
        late = any(piece.model is not None for piece in result.pieces.values())
        own = "which has a label model of its own; all is their sum"
        if late:
            own = "with delays of labels learned from all groups and a level of its own; all is their sum"
        these = (
            "the rows of each group" if result.total.scope == "rows" else "the population that each group comes from"
        )
        notes = [f"In brackets: {level} intervals for {these}, {own}."]
        warned = sum(bool(group.notes) and not group.too_small for group in result.groups.values())
        if warned and remarks:
            notes.append(
                f"{counted(warned, 'group')} {'has' if warned == 1 else 'have'} something to say about "
                f"{'its' if warned == 1 else 'their'} labels ({'; '.join(result.remarks)}): groups[key].notes."
            )
        notes += [f"All rows together: {note}" for note in result.total_notes]
        notes += _bucket_texts(self._view)
        others = [name for name in result.metrics if name not in (self._view.targets or result.metrics)]
        if others:
            notes.append(f"Not in the table, which has the metrics with a target: {listed(others)}; see .grouped.")
        return [*notes, *late_labels(result.names, result.time, result.period, result.groups, told=late)]

    def _table(self, most: int | None = _SHOWN) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text: all rows together, then one row per group, `most` of them at most.

        The first column has the alerts and the groups that are too small. With targets each metric is followed by the
        probability that it misses its target, and metrics without a target are left out.
        """
        view, result = self._view, self._view.grouped
        columns = {name: [name] for name in view.targets or result.metrics}
        for name in view.targets:
            columns[name].append(f"P({_compared(view, name, _WRONG)})")
        header = ["", *(key_text(name) for name in result.names), "rows", "missing", *chain(*columns.values())]
        order = self._keys_shown(most)
        # A group may be called "all" as well.
        called = "(all rows)" if any(str(key[0]) == "all" for key in order) else "all"
        first = ["", called, *[""] * (len(result.names) - 1)]
        rows = [[*first, *_cells(view, result.task.of_all(result.total), view._total_missed)]]
        for key, mark in zip(order, _marks(view, order), strict=True):
            keys = group_texts(result.names, key, result.time, result.period)
            rows.append([mark, *keys, *_cells(view, result.groups[key], view.chance_missed.get(key, {}))])
        return header, rows

    def _keys_shown(self, most: int | None = _SHOWN) -> list[Key]:
        """The groups of a table of at most so many: all by key, or those with new alerts first, then those with any."""
        order = list(self._view.grouped.groups)
        if most is None or most >= len(order):
            return order
        alerts = {alert.key for alert in self._view}
        new = {alert.key for alert in self._view if alert.new}
        return sorted(order, key=lambda key: (key not in new, key not in alerts))[:most]

    def _left_out(self, n_rows: int) -> list[str]:
        more = len(self._view.grouped) + 1 - n_rows
        first = "; those with an alert come first" if self._view else ""
        return [f"... and {more:,} more{first}"] if more > 0 else []


def _cells(view: "Alerts", group: GroupSummary, missed: Mapping[str, float]) -> list[str]:
    missing = group.counts["missing"] / max(group.counts["rows"], 1)
    cells = [f"{group.counts['rows']:,}", f"{missing:.1%}"]
    for name in view.targets or view.grouped.metrics:
        cells.append(cell_text(group.metrics[name]))
        cells += [probability_text(missed[name])] if name in view.targets else []
    return cells


def _marks(view: "Alerts", keys: Sequence[Key]) -> list[str]:
    """Whether each group has an alert: of several the newest says how new the group's is."""
    marks = dict.fromkeys(view.too_small, "too small")
    for alert in sorted(view, key=lambda alert: (alert.new, alert.known_since or dt.date.min)):
        marks[alert.key] = "alert" if view.gone is None else alert.age
    return [marks.get(key, "") for key in keys]


def _compared(view: "Alerts", name: str, signs: Mapping[str, str]) -> str:
    return f"{name} {signs[side_of(view.grouped.metrics[name])]} {view.targets[name]:g}"


def target_text(view: "Alerts", name: str) -> str:
    """A target in print: recall >= 0.8."""
    return _compared(view, name, {side: side for side in _WRONG})


def probability_text(chance: float) -> str:
    """A probability in print; only what is certain is 1.

    Examples
    --------
    >>> from darkmetrics.monitoring.wording import probability_text
    >>> probability_text(0.98765), probability_text(0.9999999), probability_text(1.0)
    ('0.988', '>0.999', '1')
    """
    if math.isnan(chance):
        return "not known"
    if chance in (0.0, 1.0):
        return f"{chance:.0f}"
    return ">0.999" if chance > 0.9995 else "<0.001" if chance < 0.0005 else f"{chance:.3f}"


def side_of(metric: Metric) -> str:
    """The side of the target that is wanted."""
    return "<=" if metric.better == "lower" else ">="


def _verdict_text(view: "Alerts", name: str) -> str:
    """How many groups miss a target, and which; where no alert is raised, which one comes nearest to it."""
    missed = [alert for alert in view if alert.metric == name]
    judged = [key for key, metric in view.q_values if metric == name]
    target = target_text(view, name)
    rate = f"(false-discovery rate {level_text(view.false_discovery_rate)})"
    if not missed:
        text = f"No alert for {target} in {counted(len(judged), 'group')} {rate}."
        if not judged:
            return text
        nearest = max(judged, key=lambda key: view.chance_missed[key][name])
        chance = chance_text(view.chance_missed[nearest][name])
        return f"{text} Most likely to miss: {view.grouped.label(nearest)} ({chance})."
    text = f"{len(missed):,} of {counted(len(judged), 'group')} miss{'es' if len(missed) < 2 else ''} {target} {rate}"
    if view.gone is not None:
        text += f", {sum(alert.new for alert in missed) or 'none'} of them new"
        missed.sort(key=lambda alert: not alert.new)  # a stable sort
    age = [f", {alert.age}" if view.gone is not None else "" for alert in missed]
    which = [
        f"{alert.group} ({probability_text(alert.probability)}{since})"
        for alert, since in zip(missed[:_NAMED], age, strict=False)
    ]
    which += [f"and {len(missed) - _NAMED:,} more"] if len(missed) > _NAMED else []
    return f"{text}: {'; '.join(which)}."


def _window_text(view: "Alerts") -> list[str]:
    """Which groups alerts look at, where these are not all."""
    if view.since is None or not view.targets:
        return []
    judged = len({key for key, _ in view.q_values})
    first = key_text(view.since, view.grouped.period)
    return [f"Alerts look at {first} and later: {judged:,} of {counted(len(view.grouped), 'group')} are judged."]


def _gone_texts(view: "Alerts") -> list[str]:
    """Which earlier alerts are none any more, and what has become of them."""
    if not view.gone:
        return []
    which = [f"{one.group} ({one.metric} {one.side} {one.target:g}; {_became(view, one)})" for one in view.gone]
    more = [f"and {len(which) - _NAMED:,} more"] if len(which) > _NAMED else []
    return [f"No longer an alert: {'; '.join([*which[:_NAMED], *more])}."]


def _became(view: "Alerts", alert: "Alert") -> str:
    if alert.key not in view.grouped.groups:
        return "not in the table"
    if view.targets.get(alert.metric) != alert.target:
        return "not asked for now"
    if (alert.key, alert.metric) in view.q_values:
        return f"probability of a miss now {probability_text(view.chance_missed[alert.key][alert.metric])}"
    return "too small to judge" if alert.key in view.too_small else "not looked at now"


def _bucket_texts(view: "Alerts") -> list[str]:
    """What counting scores in buckets can have done to the metrics; nothing where scores are exact."""
    result = view.grouped
    if result.total.data.score_bins is None:
        return []
    effects = {name: [group.metrics[name].binning_error for group in result.groups.values()] for name in result.metrics}
    moved = [f"{name} by at most {max(found):.1g}" for name, found in effects.items() if max(found) > 0.0]
    unknown = [name for name, found in effects.items() if any(math.isnan(effect) for effect in found)]
    text = f"Scores are in {result.total.data.score_bins:,} buckets per group"
    text += f", which can move {listed(moved)} in a group; alerts allow for it." if moved else "."
    return [text + (f" What they do to {listed(unknown)} is not known: no alerts." if unknown else "")]


def with_key(names: Sequence[str], key: Iterable[Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """One row: the values of the grouping columns, then numbers, with "_" after those called like a column."""
    row = dict(zip(names, key, strict=True))
    return row | {part + "_" * (part in row): number for part, number in numbers.items()}


def rows_of(view: "Alerts", *, judged: bool = True) -> list[dict[str, Any]]:
    """One row per group and metric, with NaN where there is no number; with what is said of targets if `judged`."""
    alerts, result = {(alert.key, alert.metric): alert for alert in view}, view.grouped
    rows = []
    for key, group in result.groups.items():
        for name, one in group.metrics.items():
            of_target = {
                "target": view.targets.get(name, np.nan),
                "chance_missed": view.chance_missed.get(key, {}).get(name, np.nan),
                "q_value": view.q_values.get((key, name), np.nan),
                "alert": (key, name) in alerts,
                "new": (key, name) in alerts and alerts[key, name].new,
            }
            numbers = {
                "metric": name,
                "scope": result.total.scope,
                **group.counts,
                **asdict(one),
                **(of_target if judged else {}),
                "too_small": view.too_small.get(key, ""),
                "warnings": ", ".join(dict.fromkeys(warned.category for warned in group.warnings)),
            }
            rows.append(with_key(result.names, key, numbers))
    return rows


def records_of(view: "Alerts", *, judged: bool = True) -> list[dict[str, Any]]:
    """The same as plain numbers and text, ready for JSON or CSV."""
    names = view.grouped.names
    return [
        {name: plain(row[name]) for name in names}
        | plain_numbers({name: value for name, value in row.items() if name not in names})
        for row in rows_of(view, judged=judged)
    ]
