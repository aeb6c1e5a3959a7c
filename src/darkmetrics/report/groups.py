"""The page of segments and periods: alerts, pictures over time, differences, the table of groups, all rows."""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from darkmetrics._text import called, counted, visible
from darkmetrics.argument_types import PageSettings, PathLike
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring import Alert, Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import Key, group_text, key_text
from darkmetrics.monitoring.periods import time_name
from darkmetrics.monitoring.run import PHRASES
from darkmetrics.monitoring.wording import probability_text, records_of, target_text
from darkmetrics.plotting.over_time import places_of
from darkmetrics.plotting.summaries import Column, column_of, view_of
from darkmetrics.report import sentences
from darkmetrics.report.charts import Scale, period_chart, period_places, span_chart
from darkmetrics.report.exports import link
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.page import code_shown
from darkmetrics.report.render import ReportPage, filled, write_or_show
from darkmetrics.report.reproduce import as_argument, audit_facts, code_of_call, date_of, reproduction, source_facts
from darkmetrics.tables import finite, level_text

# Groups of the table, pictures, and warnings in full: a page of more is not looked at.
_GROUPS, _PICTURES, _WARNINGS = 1_000, 24, 40
_NUMBERS = re.compile(r"\d[\d.,]*")
# Groups named in a sentence, and metrics of all rows with a tile.
_NAMED, _TILES = 5, 4


def write_groups_report(
    result: GroupedEvaluation | Alerts, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Writes the page of segments and periods. See `GroupedEvaluation.report`."""
    title = about.get("title") or _title(result._view)
    return write_or_show(path, title, lambda: groups_page(result, **about))


def groups_page(
    result: GroupedEvaluation | Alerts,
    *,
    title: str | None = None,
    source: str | Mapping[str, Any] | None = None,
    date: str | dt.date | None = None,
    audit: Mapping[str, Any] | None = None,
) -> str:
    """The page as text."""
    source_facts(audit, "audit")  # before the work
    view = view_of("result", result)
    result = view.grouped
    date = date_of(result.evaluated_on if date is None else date)
    counts, *words = view._words()
    in_brackets, *notes = view._notes(remarks=False)
    said, full = _warnings(result)
    drawn = _drawn(view)
    time = time_name(result.names, result.time, result.groups)
    pictures = [] if time is None else _pictures(view, time, drawn)
    spans = _spans(view, drawn[0]) if time is None else []
    header, *rows = _table(view)
    about = {"title": title, "date": date, "audit": audit}
    reproduce = _reproduce(view, "".join(as_argument(name, value) for name, value in about.items()), source)
    context = {
        "title": _title(view) if title is None else str(title),
        "warnings": said,
        "counts_sentence": counts,
        "facts": _facts(result, date),
        "targets": [_target(view, name) for name in view.targets],
        "tiles": _tiles(view),
        "source": source_facts(source),
        "csv": _csv(view),
        "audit": audit_facts(result.total.data, audit, reproduce["versions"]),
        "reproduce": reproduce,
        "data": {
            "sliders": {},
            "hover": {f"period-{i}": one["hover"] for i, one in enumerate(pictures[:_PICTURES], 1)},
        },
        "code": code_shown(reproduce["code"]),
        "level": level_text(result.confidence_level),
        "words": words,
        "alerts": [_alert_row(alert) for alert in _newest_first(view)],
        "compared": view.resolved is not None,
        "periods": pictures[:_PICTURES],
        "not_drawn": max(0, len(pictures) - _PICTURES),
        "compared_words": _compared(result, time, drawn),
        "scope": result.total.scope,
        "has_target": bool(view.targets),
        "header": header,
        "rows": _rows(view, header, rows, spans),
        "left_out": max(0, len(result) - _GROUPS),
        "spanned": drawn[0] if spans else None,
        "total": _total(view),
        "noted": full[:_WARNINGS],
        "not_noted": max(0, len(full) - _WARNINGS),
        "assumption": result.total.assumption,
        "in_brackets": in_brackets,
        "notes": notes,
        "method": sentences.method(result.total),
        "evaluated_on": result.evaluated_on.isoformat(),
    }
    return filled("groups.html.j2", context)


def _title(view: Alerts) -> str:
    groups = counted(len(view.grouped), "group")
    return f"Which of {groups} miss a target?" if view.targets else f"How good is this classifier in {groups}?"


def _facts(result: GroupedEvaluation, date: str) -> dict[str, str]:
    threshold = result.total.data.threshold
    decided = "decisions were given" if threshold is None else f"{threshold:.6g}"
    return {"assumed": sentences.assumed(result.total), "threshold": decided, "date": date}


def _target(view: Alerts, name: str) -> dict[str, str]:
    """A target and how many groups have an alert for it; that none has does not prove that it is met."""
    alerts = [alert for alert in view if alert.metric == name]
    new = f", {sum(alert.new for alert in alerts)} new" if alerts and view.resolved is not None else ""
    chance = f"{counted(len(alerts), 'alert') if alerts else 'no alert'}{new}, {counted(len(view.grouped), 'group')}"
    return {"verdict": "FAIL" if alerts else "", "text": target_text(view, name), "chance": chance}


def _tiles(view: Alerts) -> list[dict[str, str]]:
    """The whole at a glance."""
    result = view.grouped
    counts = result.total.data.counts()
    new = f"{sum(alert.new for alert in view)} new" if view.resolved is not None else ""
    tiles = [("groups", f"{len(result):,}", f"by {', '.join(map(key_text, result.names))}")]
    tiles += [("alerts", f"{len(view):,}", new)] if view.targets else []
    missing = f"{counts['missing']:,} of {counts['rows']:,} rows"
    tiles += [("labels missing", percent(counts["missing"] / max(counts["rows"], 1)), missing)]
    for name, distribution in islice(result.total.distributions.items(), _TILES):
        low, high = result.total.intervals[name]
        ends = interval_shown(finite(low), finite(high))
        level = level_text(result.confidence_level)
        tiles.append(
            (f"{name}, all rows", shown(finite(distribution.mean()), finite(low), finite(high)), f"{level}: {ends}")
        )
    return [dict(zip(("name", "value", "note"), tile, strict=True)) for tile in tiles]


def _csv(view: Alerts) -> str:
    """A link that saves the numbers of all groups that the table has room for."""
    records = records_of(view)[: _GROUPS * len(view.grouped.metrics)]
    return link(list(records[0]), [list(record.values()) for record in records])


def _drawn(view: Alerts) -> list[str]:
    """The metrics that are drawn: those with a target, else the first one."""
    return list(view.targets) or list(view.grouped.metrics)[:1]


def _warnings(result: GroupedEvaluation) -> tuple[list[str], list[tuple[str, str]]]:
    """What was warned of in a sentence each, and what single groups say in full where they do not say the same.

    Of groups that are too small the table says so, and no more.
    """
    said = [f"All rows together: {warned.message}" for warned in result.total.warnings]
    full: list[tuple[str, str]] = []
    kinds: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key, group in result.groups.items():
        for warned in group.warnings if not group.too_small else ():
            # Messages that differ in their numbers alone are one.
            begin = _NUMBERS.sub("0", warned.message.partition(". ")[0])
            kinds.setdefault((warned.category, begin), []).append((result.label(key), warned.message))
    phrases = {kind.__name__: phrase for kind, phrase in PHRASES.items()}
    for (category, begin), found in kinds.items():
        groups = list(dict.fromkeys(group for group, _ in found))
        more = f" and {len(groups) - _NAMED:,} more" if len(groups) > _NAMED else ""
        where = f"{'; '.join(map(called, groups[:_NAMED]))}{more}"
        same = len({message for _, message in found}) == 1
        text = found[0][1] if same else f"{phrases.get(category, begin)}."
        said.append(f"In {len(groups):,} of {counted(len(result), 'group')} ({where}): {text}")
        full += [] if same else found
    return said, full


def _newest_first(alerts: Sequence[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: not alert.new)


def _alert_row(alert: Alert) -> dict[str, Any]:
    return {
        "group": alert.group,
        "misses": f"{alert.metric} {alert.side} {alert.target:g}",
        "chance": "certain" if alert.certain else probability_text(alert.probability),
        "q_value": f"{alert.q_value:.2g}",
        "age": alert.age,
        "new": alert.new,
    }


def _pictures(view: Alerts, time: str, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """A picture per segment and metric, those with new alerts first, then those with any."""
    result = view.grouped
    place = result.names.index(time)
    lines: dict[Key, list[GroupSummary]] = {}
    for key, group in result.groups.items():
        if key[place] is not None:
            lines.setdefault(key[:place] + key[place + 1 :], []).append(group)
    found = []
    for segment, groups in lines.items():
        x = places_of([group.key[place] for group in groups])
        names = [key_text(group.key[place], result.period) for group in groups]
        for metric in metrics:
            column = column_of(view, metric, groups)
            new = _new(view, metric, [group.key for group in groups])
            chart = period_chart(x, names, column, new, view.targets.get(metric))
            words = ", ".join([metric, *map(key_text, segment)])
            rank = (not new.any(), not column.alert.any())
            picture = {"name": words, "chart": chart, "sentence": _in_words(metric, names, column)}
            picture["hover"] = _hover(x, names, column)
            found.append((rank, picture))
    found.sort(key=lambda one: one[0])  # a stable sort
    return [picture for _, picture in found if picture["chart"]]


def _hover(x: Any, names: Sequence[str], column: Column) -> dict[str, Any]:
    """What a pointer reads at each period."""
    texts = []
    for i, name in enumerate(names):
        low, high = finite(float(column.low[i])), finite(float(column.high[i]))
        value = f"{shown(finite(float(column.mean[i])), low, high)} ({interval_shown(low, high)})"
        text = value if low is not None else "too few labels"
        texts.append(f"{visible(name, 40)}: {text}, {percent(column.missing[i], 0)} missing")
    return {"at": [round(place, 1) for place in period_places(x)[0].tolist()], "text": texts}


def _in_words(metric: str, names: Sequence[str], column: Column) -> str:
    """What a picture shows, for those who do not see it."""
    known = np.flatnonzero(np.isfinite(column.mean)).tolist()
    alerts = [names[i] for i in np.flatnonzero(column.alert).tolist()]
    text = f"{len(names)} periods from {names[0]} to {names[-1]}."
    if known:
        first, last = known[0], known[-1]
        text += f" {called(metric)} is {column.mean[first]:.3f} in {names[first]} and {column.mean[last]:.3f} in "
        text += f"{names[last]}."
    return text + (f" Alerts: {', '.join(alerts)}." if alerts else "")


def _new(view: Alerts, metric: str, keys: Sequence[Key]) -> Any:
    """Which groups have an alert that an earlier result did not have; none without an earlier result."""
    new = {alert.key for alert in view if alert.metric == metric and alert.new and view.resolved is not None}
    return np.array([key in new for key in keys], dtype=np.bool_)


def _table(view: Alerts) -> list[list[str]]:
    """Header and rows of the table, with the state of a group in the last column."""
    header, rows = view._table(most=_GROUPS)
    table = [[*row, mark] for mark, *row in (header, *rows)]
    return [[*table[0][:-1], "state"], *table[1:]]


def _rows(
    view: Alerts, header: Sequence[str], rows: Sequence[Sequence[str]], spans: Sequence[Any]
) -> list[dict[str, Any]]:
    """The rows of the table, of which the first is that of all rows; `spans` has a picture for each, or is empty."""
    last = len(header) - 1
    found = []
    for number, (name, *texts) in enumerate(rows):
        cells = [
            {
                "column": header[i],
                "text": text,
                "words": i < len(view.grouped.names) or i == last,
                "new": i == last and text == "new",
            }
            for i, text in enumerate(texts, 1)
        ]
        found.append({"name": name, "cells": cells, "span": spans[number] if spans else None})
    return found


def _spans(view: Alerts, metric: str) -> list[dict[str, Any] | None]:
    """A small picture for each row of the table."""
    result = view.grouped
    groups = [result.task.summarize_total(result.total), *(result.groups[key] for key in view._keys_shown(_GROUPS))]
    column = column_of(view, metric, groups)
    new = _new(view, metric, [group.key for group in groups])
    target = view.targets.get(metric)
    sure = ~column.small if not column.small.all() else column.small
    ends = np.concatenate([column.low[sure], column.high[sure], column.mean, column.labeled_only])
    known = [*ends[np.isfinite(ends)].tolist(), *([] if target is None else [target])]
    if not known:
        return []
    scale = Scale(known, 4.0, 156.0)
    return [span_chart(scale, column, i, target, new=bool(new[i])) for i in range(len(groups))]


def _total(view: Alerts) -> list[str]:
    """All rows together, a sentence per metric."""
    numbers = view.grouped.total.to_dict()
    told = [
        sentences.headline(name, entry, numbers["counts"], numbers["scope"])
        for name, entry in numbers["metrics"].items()
    ]
    missed = view._total_missed
    goals = [
        f"; the chance that it misses {view.targets[name]:g} is {probability_text(missed[name])}"
        if name in missed
        else ""
        for name in numbers["metrics"]
    ]
    return [f"{text}{goal}." for text, goal in zip(told, goals, strict=True)]


def _reproduce(view: Alerts, about: str, source: Any) -> dict[str, Any]:
    result = view.grouped
    notes, call = code_of_call("evaluate_by", result.arguments)
    code = ["import darkmetrics as dm", "", *notes, f"result = {call}"]
    if view.targets:
        asked = ", ".join(f"{name}={text}" for name, text in view.arguments.items())
        code.append(f"alerts = result.alerts({asked})")
    code.append(f'{"alerts" if view.targets else "result"}.report("report.html"{about})')
    methods = {one.method for group in result.groups.values() for one in group.metrics.values()}
    return reproduction(code, result.arguments, methods, source)


# Each of these is evaluated again: segments and periods of them, groups whose gap is found, metrics.
_SEGMENTS, _PERIODS, _COMPARED, _METRICS = 4, 24, 24, 2


def _compared(result: GroupedEvaluation, time: str | None, metrics: Sequence[str]) -> list[str]:
    """Sentences about differences between groups, as many as a reader reads; none where labels do not suffice."""
    if time is None:
        return [] if len(result) > _COMPARED else _gaps(result, metrics[:_METRICS])
    place = result.names.index(time)
    others = [name for name in result.names if name != time]
    lines: dict[Key, list[Key]] = {}
    for key in result.groups:
        if key[place] is not None:
            lines.setdefault(key[:place] + key[place + 1 :], []).append(key)
    found = []
    for segment, keys in list(lines.items())[:_SEGMENTS]:
        whose = f"{group_text(others, segment, None, None)}: " if segment else ""
        found += [f"{whose}{text}" for text in _over_time(result, segment, place, keys, metrics[:_METRICS])]
    return found


def _over_time(
    result: GroupedEvaluation, segment: Key, place: int, keys: Sequence[Key], metrics: Sequence[str]
) -> list[str]:
    """The newest period that says enough against the one before it, and the trend over all of them."""
    told = [key for key in keys if not result.groups[key].too_small]
    if len(told) < 2:
        return []
    after, before = told[-1], told[-2]
    change = result.compare(after, before)
    names = " against ".join(key_text(key[place], result.period) for key in (after, before))
    texts = [f"{names}: {change.sentence(name)}" for name in metrics]
    if 2 < len(told) <= _PERIODS:
        texts += [result.trend(name, segment or None)._words()[0] for name in metrics]
    return texts


def _gaps(result: GroupedEvaluation, metrics: Sequence[str]) -> list[str]:
    """How far groups are apart."""
    try:
        return [text for name in metrics for text in result.disparity(name)._words()]
    except InputError:  # fewer than two groups have enough labels
        return []
