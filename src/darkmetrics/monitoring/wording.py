"""Results of groups as text: the table, and the sentences above and below it."""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from darkmetrics._text import counted, join_words
from darkmetrics.metrics import Metric
from darkmetrics.monitoring.groups import GroupSummary, Key, format_cell, group_texts, key_text, plain_value
from darkmetrics.monitoring.periods import describe_delay
from darkmetrics.result import Result, load
from darkmetrics.tables import chance_text, level_text, plain_numbers
from darkmetrics.wording import Message, code

if TYPE_CHECKING:
    from darkmetrics.monitoring.alerts import Alert, Alerts

# Maximum number of alerts in a sentence, and of rows in a printed table.
_MAX_NAMED, _MAX_ROWS = 5, 40
# The relation of a metric that misses a target.
_OPPOSITE = {"<=": ">", ">=": "<"}


class GroupTexts(Result):
    """Text of all groups, and of those that miss a target if there are targets."""

    _plot: ClassVar[str] = "plotting.by_group:plot_groups"
    _report: ClassVar[str] = "report.groups:write_groups_report"

    @property
    def _view(self) -> "Alerts":
        """The alerts that are printed and drawn; without targets, they show the groups only."""
        raise NotImplementedError

    def plot_over_time(self, metric: str | None = None, **settings: Any) -> Any:
        """Draw one metric over the periods (`plotting.plot_over_time`) and return the Axes; needs matplotlib."""
        return load("plotting.over_time:plot_over_time")(self, metric, **settings)

    @property
    def _text_columns(self) -> int:
        return 1 + len(self._view.grouped.names)

    def _words(self) -> list[str]:
        """Return the lines above the table: groups and rows, targets that are missed, groups that are too small."""
        view, result = self._view, self._view.grouped
        counts = result.total.data.counts()
        by = join_words([key_text(name) for name in result.names])
        rows = f"{counted(counts['rows'], 'row')}, {counts['labeled']:,} labeled, {counts['missing']:,} missing"
        texts = [f"{counted(len(result), 'group')} by {by}: {rows} ({counts['missing'] / counts['rows']:.1%})"]
        texts += [*_describe_window(view), *(_describe_target(view, name) for name in view.targets)]
        texts += _describe_resolved(view)
        small = len(view.too_small)
        if small:
            texts.append(
                f"{counted(small, 'group')} {'is' if small == 1 else 'are'} too small to judge: fewer than "
                f"{view.min_labels} positives or negatives to go by."
            )
        return texts

    def _notes(self, *, remarks: bool = True) -> list[str]:
        """Return the lines below the table: what the intervals are for and, with `remarks`, warnings of groups."""
        result = self._view.grouped
        level = level_text(result.confidence_level)
        modeled = any(piece.model is not None for piece in result.pieces.values())
        model = "which has a label model of its own; all is their sum"
        if modeled:
            model = "with delays of labels learned from all groups and a level of its own; all is their sum"
        scope = (
            "the rows of each group" if result.total.scope == "rows" else "the population that each group comes from"
        )
        notes = [f"In brackets: {level} intervals for {scope}, {model}."]
        warned = sum(bool(group.notes) and not group.too_small for group in result.groups.values())
        if warned and remarks:
            have, their = ("has", "its") if warned == 1 else ("have", "their")
            where = code(": groups[key].notes.", "group notes")
            notes.append(
                f"{counted(warned, 'group')} {have} something to say about {their} labels "
                f"({'; '.join(result.remarks)}){where}"
            )
        notes += [f"All rows together: {note}" for note in result.total_notes]
        notes += _describe_binning(self._view)
        others = [name for name in result.metrics if name not in (self._view.targets or result.metrics)]
        if others:
            where = code("; see .grouped.", "grouped")
            notes.append(f"Not in the table, which has the metrics with a target: {join_words(others)}{where}")
        notes = [Message(note) for note in notes]
        return [*notes, *describe_delay(result.names, result.time, result.period, result.groups, modeled=modeled)]

    def _table(self, most: int | None = _MAX_ROWS) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text: all rows together, then at most this number of groups.

        The first column marks alerts and groups that are too small. With targets each metric is followed by the
        probability that it misses its target, and metrics without a target are left out.
        """
        view, result = self._view, self._view.grouped
        columns = {name: [name] for name in view.targets or result.metrics}
        for name in view.targets:
            columns[name].append(f"P({_compare(view, name, _OPPOSITE)})")
        header = ["", *(key_text(name) for name in result.names), "rows", "missing", *chain(*columns.values())]
        keys = self._keys_shown(most)
        # A group may have the name "all".
        title = "(all rows)" if any(str(key[0]) == "all" for key in keys) else "all"
        titles = ["", title, *[""] * (len(result.names) - 1)]
        rows = [[*titles, *_cells(view, result.task.summarize_total(result.total), view._total_missed)]]
        for key, mark in zip(keys, _marks(view, keys), strict=True):
            texts = group_texts(result.names, key, result.time, result.period)
            rows.append([mark, *texts, *_cells(view, result.groups[key], view.probability_missed.get(key, {}))])
        return header, rows

    def _keys_shown(self, most: int | None = _MAX_ROWS) -> list[Key]:
        """Return the groups of a table with this number of rows: all by key, or groups with (new) alerts first."""
        keys = list(self._view.grouped.groups)
        if most is None or most >= len(keys):
            return keys
        alerts = {alert.key for alert in self._view}
        new = {alert.key for alert in self._view if alert.new}
        return sorted(keys, key=lambda key: (key not in new, key not in alerts))[:most]

    def _left_out(self, n_rows: int) -> list[str]:
        more = len(self._view.grouped) + 1 - n_rows
        order = "; those with an alert come first" if self._view else ""
        return [f"... and {more:,} more{order}"] if more > 0 else []


def _cells(view: "Alerts", group: GroupSummary, missed: Mapping[str, float]) -> list[str]:
    missing = group.counts["missing"] / max(group.counts["rows"], 1)
    cells = [f"{group.counts['rows']:,}", f"{missing:.1%}"]
    for name in view.targets or view.grouped.metrics:
        cells.append(format_cell(group.metrics[name]))
        cells += [probability_text(missed[name])] if name in view.targets else []
    return cells


def _marks(view: "Alerts", keys: Sequence[Key]) -> list[str]:
    """Return the mark of each group: "too small", or "alert", or how new its newest alert is."""
    marks = dict.fromkeys(view.too_small, "too small")
    for alert in sorted(view, key=lambda alert: (alert.new, alert.known_since or dt.date.min)):
        marks[alert.key] = "alert" if view.resolved is None else alert.age
    return [marks.get(key, "") for key in keys]


def _compare(view: "Alerts", name: str, signs: Mapping[str, str]) -> str:
    return f"{name} {signs[side_of(view.grouped.metrics[name])]} {view.targets[name]:g}"


def target_text(view: "Alerts", name: str) -> str:
    """Format a target: recall >= 0.8."""
    return _compare(view, name, {side: side for side in _OPPOSITE})


def probability_text(probability: float) -> str:
    """Format a probability; only a certain event has 1.

    Examples
    --------
    >>> from darkmetrics.monitoring.wording import probability_text
    >>> probability_text(0.98765), probability_text(0.9999999), probability_text(1.0)
    ('0.988', '>0.999', '1')
    """
    if math.isnan(probability):
        return "not known"
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    return ">0.999" if probability > 0.9995 else "<0.001" if probability < 0.0005 else f"{probability:.3f}"


def side_of(metric: Metric) -> str:
    """Return the relation of a metric that meets its target."""
    return "<=" if metric.better == "lower" else ">="


def _describe_target(view: "Alerts", name: str) -> str:
    """Return which groups miss a target; without alerts, the group that is most likely to miss it."""
    missed = [alert for alert in view if alert.metric == name]
    judged = [key for key, metric in view.q_values if metric == name]
    target = target_text(view, name)
    rate = f"(false-discovery rate {level_text(view.false_discovery_rate)})"
    if not missed:
        text = f"No alert for {target} in {counted(len(judged), 'group')} {rate}."
        if not judged:
            return text
        nearest = max(judged, key=lambda key: view.probability_missed[key][name])
        probability = chance_text(view.probability_missed[nearest][name])
        return f"{text} Most likely to miss: {view.grouped.label(nearest)} ({probability})."
    text = f"{len(missed):,} of {counted(len(judged), 'group')} miss{'es' if len(missed) < 2 else ''} {target} {rate}"
    if view.resolved is not None:
        text += f", {sum(alert.new for alert in missed) or 'none'} of them new"
        missed.sort(key=lambda alert: not alert.new)  # a stable sort
    groups = [
        f"{alert.group} ({probability_text(alert.probability)}{'' if view.resolved is None else f', {alert.age}'})"
        for alert in missed
    ]
    return f"{text}: {_shorten_list(groups)}."


def _shorten_list(texts: list[str]) -> str:
    more = [f"and {len(texts) - _MAX_NAMED:,} more"] if len(texts) > _MAX_NAMED else []
    return "; ".join([*texts[:_MAX_NAMED], *more])


def _describe_window(view: "Alerts") -> list[str]:
    """Return which groups are judged, if not all are."""
    if view.since is None or not view.targets:
        return []
    judged = len({key for key, _ in view.q_values})
    first = key_text(view.since, view.grouped.period)
    return [f"Alerts look at {first} and later: {judged:,} of {counted(len(view.grouped), 'group')} are judged."]


def _describe_resolved(view: "Alerts") -> list[str]:
    """Return which earlier alerts are none now, and why."""
    if not view.resolved:
        return []
    texts = [
        f"{alert.group} ({alert.metric} {alert.side} {alert.target:g}; {_describe_end(view, alert)})"
        for alert in view.resolved
    ]
    return [f"No longer an alert: {_shorten_list(texts)}."]


def _describe_end(view: "Alerts", alert: "Alert") -> str:
    if alert.key not in view.grouped.groups:
        return "not in the table"
    if view.targets.get(alert.metric) != alert.target:
        return "not asked for now"
    if (alert.key, alert.metric) in view.q_values:
        return f"probability of a miss now {probability_text(view.probability_missed[alert.key][alert.metric])}"
    return "too small to judge" if alert.key in view.too_small else "not looked at now"


def _describe_binning(view: "Alerts") -> list[str]:
    """Return how far score bins can have moved the metrics; empty if scores are exact."""
    result = view.grouped
    if result.total.data.score_bins is None:
        return []
    errors = {name: [group.metrics[name].binning_error for group in result.groups.values()] for name in result.metrics}
    moved = [f"{name} by at most {max(of_groups):.1g}" for name, of_groups in errors.items() if max(of_groups) > 0.0]
    unknown = [name for name, of_groups in errors.items() if any(map(math.isnan, of_groups))]
    text = f"Scores are in {result.total.data.score_bins:,} bins per group"
    text += f", which can move {join_words(moved)} in a group; alerts allow for it." if moved else "."
    return [text + (f" The binning error of {join_words(unknown)} is not known: no alerts." if unknown else "")]


def with_key(names: Sequence[str], key: Iterable[Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row: values of the grouping columns, then numbers, with "_" after names that a column has."""
    row = dict(zip(names, key, strict=True))
    return row | {name + "_" * (name in row): number for name, number in numbers.items()}


def rows_of(view: "Alerts", *, judged: bool = True) -> list[dict[str, Any]]:
    """Return one row per group and metric, with NaN where there is no number; with the targets if `judged`."""
    alerts, result = {(alert.key, alert.metric): alert for alert in view}, view.grouped
    rows = []
    for key, group in result.groups.items():
        for name, summary in group.metrics.items():
            alert = alerts.get((key, name))
            of_target = {
                "target": view.targets.get(name, np.nan),
                "probability_missed": view.probability_missed.get(key, {}).get(name, np.nan),
                "q_value": view.q_values.get((key, name), np.nan),
                "alert": alert is not None,
                "new": alert is not None and alert.new,
            }
            numbers = {
                "metric": name,
                "scope": result.total.scope,
                **group.counts,
                **asdict(summary),
                **(of_target if judged else {}),
                "too_small": view.too_small.get(key, ""),
                "warnings": ", ".join(dict.fromkeys(warned.category for warned in group.warnings)),
            }
            rows.append(with_key(result.names, key, numbers))
    return rows


def records_of(view: "Alerts", *, judged: bool = True) -> list[dict[str, Any]]:
    """Return the rows as plain numbers and text, ready for JSON or CSV."""
    names = view.grouped.names
    return [
        {name: plain_value(row[name]) for name in names}
        | plain_numbers({name: value for name, value in row.items() if name not in names})
        for row in rows_of(view, judged=judged)
    ]
