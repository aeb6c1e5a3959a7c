"""The report of segments and periods: alerts, pictures over time, differences, the table of groups, all rows."""

import re
from collections.abc import Sequence
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
from darkmetrics.plotting.summaries import Column, column_of, view_of, view_values
from darkmetrics.report import sentences
from darkmetrics.report.charts import Scale, period_chart, period_places, span_chart
from darkmetrics.report.differences import About
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.render import ReportPage, render_html, write_or_show
from darkmetrics.report.reproduce import audit_facts, code_of_call, date_of, reproduction
from darkmetrics.report.sections import (
    Report,
    Section,
    charts_block,
    csv_link,
    figure,
    list_block,
    table_block,
    text_block,
)
from darkmetrics.tables import finite, level_text

# Groups of the table, pictures, and warnings in full: a page of more is not looked at.
_GROUPS, _PICTURES, _WARNINGS = 1_000, 24, 40
_NUMBERS = re.compile(r"\d[\d.,]*")
# Groups named in a sentence.
_NAMED = 5


def write_groups_report(
    result: GroupedEvaluation | Alerts, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Write the report of segments and periods. See `GroupedEvaluation.report`."""
    return write_or_show(path, lambda: groups_report(result, **about), result.to_dict)


def groups_page(result: GroupedEvaluation | Alerts, **about: Unpack[PageSettings]) -> str:
    """Return the report as a page."""
    return render_html(groups_report(result, **about))


def groups_report(result: GroupedEvaluation | Alerts, **settings: Unpack[PageSettings]) -> Report:
    """Return the report of segments and periods."""
    view = view_of("result", result)
    result = view.grouped
    settings["date"] = date_of(settings.get("date") or result.evaluated_on)
    about = About.of(**settings)
    counts, *words = view._words()
    said, full = _warnings(result)
    time = time_name(result.names, result.time, result.groups)
    pictures = [] if time is None else _pictures(view, time)
    reproduce = _reproduce(view, about)
    sections = [
        _alerts_section(view, words),
        _periods_section(view, pictures),
        _compared_section(result, time, _judged(view)),
        _groups_section(view, time),
        Section("total", "All rows together", [list_block(_total(view))]),
        _warnings_section(full),
        _assumptions_section(view),
    ]
    return Report(
        title=_title(view) if about.title is None else str(about.title),
        answer=_answer(view),
        counts=counts,
        warnings=said,
        facts=_facts(result, time, about.date),
        source=about.source,
        sections=[section for section in sections if section is not None],
        reproduce=reproduce,
        audit=audit_facts(result.total.data, about.audit, reproduce["versions"]),
        targets=[_target(view, name) for name in view.targets],
        hover={f"period-{i}": picture["hover"] for i, picture in enumerate(pictures[:_PICTURES], 1)},
    )


def _title(view: Alerts) -> str:
    return f"Classifier metrics in {counted(len(view.grouped), 'group')}"


def _answer(view: Alerts) -> str:
    """Return the first sentence: how many groups miss a target, or where the first metric is highest and lowest."""
    groups = counted(len(view.grouped), "group")
    if view.targets:
        missed = len({alert.key for alert in view})
        new = (
            f", {len({alert.key for alert in view if alert.new})} of them new"
            if missed and view.resolved is not None
            else ""
        )
        return (
            f"{missed} of {groups} {'misses' if missed == 1 else 'miss'} a target{new}."
            if missed
            else f"No alert in {groups}."
        )
    name = next(iter(view.grouped.metrics))
    means = {key: group.metrics[name].mean for key, group in view.grouped.groups.items() if not group.too_small}
    means = {key: mean for key, mean in means.items() if np.isfinite(mean)}
    if not means:
        return f"{groups[:1].upper()}{groups[1:]}: too few labels to judge any."
    low, high = min(means, key=lambda key: means[key]), max(means, key=lambda key: means[key])
    ends = [f"{means[key]:.3f} ({called(view.grouped.label(key))})" for key in (low, high)]
    return f"Estimates of {called(name)} are between {ends[0]} and {ends[1]}."


def _alerts_section(view: Alerts, words: Sequence[str]) -> Section | None:
    """Return the alerts, or what there is to say of all groups."""
    if not view.targets:
        return Section("words", "In words", [list_block(words)]) if words else None
    blocks = [list_block(words)]
    if view:
        with_age = view.resolved is not None
        header = ["group", "misses", "probability", "q-value", *(["since"] if with_age else [])]
        note = "Probability: that the target is missed, given the labels of the group; certain: for every label "
        note += "assignment. q-value: the smallest false-discovery rate at which there is this alert."
        rows = [_alert_row(alert, with_age=with_age) for alert in sorted(view, key=lambda alert: not alert.new)]
        blocks.append(table_block("alerts-table", header, rows, words=2, note=note))
    return Section("alerts", "Alerts", blocks)


def _periods_section(view: Alerts, pictures: Sequence[dict[str, Any]]) -> Section | None:
    """Return a picture of each segment and metric over the periods."""
    if not pictures:
        return None
    figures = [
        figure(picture["name"], picture["chart"], kind="periods", id=f"period-{number}", name=picture["name"])
        | {"sentence": picture["sentence"]}
        for number, picture in enumerate(pictures[:_PICTURES], 1)
    ]
    hidden = len(pictures) - len(figures)
    note = f"{hidden} more pictures are left out; those with alerts come first." if hidden > 0 else ""
    signs = [*_signs(view), ("absent", "fraction of labels that are missing, at the foot")]
    return Section("periods", "From period to period", [charts_block("periods-charts", figures, note, signs)])


def _signs(view: Alerts) -> list[tuple[str, str]]:
    signs = [("period", f"{level_text(view.grouped.confidence_level)} interval and mean"), ("square", "labeled only")]
    if view.targets:
        signs += [("target-line", "target"), ("alert", "alert")]
        signs += [("new", "new alert")] if view.resolved is not None else []
    return [*signs, ("few", "too few labels")]


def _compared_section(result: GroupedEvaluation, time: str | None, metrics: Sequence[str]) -> Section | None:
    texts = _compared(result, time, metrics)
    if not texts:
        return None
    target_rows = "the populations that the rows came from" if result.total.scope == "population" else "these rows"
    note = f"Differences are those of {target_rows}; part of them is the mix of rows."
    return Section("compared", "What differs", [list_block(texts), text_block(note, is_soft=True)])


def _groups_section(view: Alerts, time: str | None) -> Section:
    """Return the table of all groups, with the state of each group first."""
    header, rows = _groups_table(view)
    spans = _spans(view, _judged(view)[0]) if time is None else []
    if spans:
        header = [*header, _judged(view)[0]]
        rows = [[*row, {"span": span} if span else ""] for row, span in zip(rows, spans, strict=True)]
    left_out = len(view.grouped) - _GROUPS
    note = f"{left_out:,} more groups are left out; those with alerts come first. " if left_out > 0 else ""
    note += view._notes(remarks=False)[0].replace("In brackets:", "Below the estimates:")
    records = records_of(view)[: _GROUPS * len(view.grouped.metrics)]
    has_state = any(row[0] for row in rows)
    if not has_state:
        header, rows = header[1:], [row[1:] for row in rows]
    words, csv = len(view.grouped.names) + has_state, csv_link("groups", records)
    table = table_block("groups-table", header, rows, words=words, note=note, csv=csv) | {"head": int(has_state)}
    legend = [charts_block("", [], "", _signs(view))] if spans else []
    return Section("groups", "Groups", [*legend, table])


def _groups_table(view: Alerts) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows: state, group, rows with missing labels, and each metric with its interval below."""
    result = view.grouped
    header, texts = view._table(most=_GROUPS)
    n_names = len(result.names)
    rows: list[list[Any]] = []
    for row in texts:
        state, *names = row[: 1 + n_names]
        mark = {"text": state, "new": True} if state == "new" else state
        missing = f"{row[2 + n_names]} missing"
        cells: list[Any] = [mark, *names, {"text": row[1 + n_names], "below": [missing]}]
        for text in row[3 + n_names :]:
            mean, _, interval = text.partition(" (")
            cells.append({"text": mean, "below": [interval.removesuffix(")")]} if interval else text)
        rows.append(cells)
    return ["state", *header[1 : 2 + n_names], *header[3 + n_names :]], rows


def _warnings_section(full: Sequence[tuple[str, str]]) -> Section | None:
    if not full:
        return None
    blocks = [list_block(f"{called(group)}: {note}" for group, note in full[:_WARNINGS])]
    hidden = len(full) - _WARNINGS
    blocks += [text_block(f"{hidden} more are left out.", is_soft=True)] if hidden > 0 else []
    return Section("noted", "Warnings of single groups", blocks)


def _assumptions_section(view: Alerts) -> Section:
    result = view.grouped
    texts = [*filter(None, [result.total.assumption]), *view._notes(remarks=False)[1:], *sentences.method(result.total)]
    texts.append(f"Evaluated on {result.evaluated_on.isoformat()}.")
    return Section("assumed", "Assumptions and methods", [list_block(texts)])


def _facts(result: GroupedEvaluation, time: str | None, date: str) -> dict[str, str]:
    threshold = result.total.data.threshold
    facts = {
        "assumed": sentences.assumed(result.total),
        "threshold": "predictions were passed" if threshold is None else f"{threshold:.6g}",
    }
    if time is not None:
        place = result.names.index(time)
        periods = sorted({key[place] for key in result.groups if key[place] is not None})
        facts["periods"] = " to ".join(dict.fromkeys(key_text(end, result.period) for end in (periods[0], periods[-1])))
    return facts | {"date of the report": date}


def _target(view: Alerts, name: str) -> dict[str, str]:
    """A target and how many groups have an alert for it; that none has does not prove that it is met."""
    alerts = [alert for alert in view if alert.metric == name]
    new = f", {sum(alert.new for alert in alerts)} new" if alerts and view.resolved is not None else ""
    chance = f"{counted(len(alerts), 'alert') if alerts else 'no alert'}{new}, {counted(len(view.grouped), 'group')}"
    return {"verdict": "FAIL" if alerts else "", "text": target_text(view, name), "chance": chance}


def _judged(view: Alerts) -> list[str]:
    """Return the metrics that are compared in words: those with a target, or the first one."""
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


def _alert_row(alert: Alert, *, with_age: bool) -> list[Any]:
    probability = "certain" if alert.certain else probability_text(alert.probability)
    age = {"text": "new", "new": True} if alert.new else alert.age
    row = [alert.group, f"{alert.metric} {alert.side} {alert.target:g}", probability, f"{alert.q_value:.2g}"]
    return [*row, age] if with_age else row


def _pictures(view: Alerts, time: str) -> list[dict[str, Any]]:
    """Return a picture per segment and metric: those with new alerts first, then those with alerts, then targets."""
    result = view.grouped
    metrics = list(dict.fromkeys([*view.targets, *result.metrics]))
    place = result.names.index(time)
    lines: dict[Key, list[GroupSummary]] = {}
    for key, group in result.groups.items():
        if key[place] is not None:
            lines.setdefault(key[:place] + key[place + 1 :], []).append(group)
    everything = [group for groups in lines.values() for group in groups]
    values = {
        metric: view_values([column_of(view, metric, everything)], view.targets.get(metric)) for metric in metrics
    }
    found = []
    for segment, groups in lines.items():
        x = places_of([group.key[place] for group in groups])
        names = [key_text(group.key[place], result.period) for group in groups]
        for metric in metrics:
            column = column_of(view, metric, groups)
            new = _new(view, metric, [group.key for group in groups])
            chart = period_chart(x, names, column, new, view.targets.get(metric), values[metric])
            words = ", ".join([metric, *map(key_text, segment)])
            rank = (not new.any(), not column.alert.any(), bool(view.targets) and metric not in view.targets)
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


def _spans(view: Alerts, metric: str) -> list[dict[str, Any] | None]:
    """A small picture for each row of the table."""
    result = view.grouped
    groups = [result.task.summarize_total(result.total), *(result.groups[key] for key in view._keys_shown(_GROUPS))]
    column = column_of(view, metric, groups)
    new = _new(view, metric, [group.key for group in groups])
    target = view.targets.get(metric)
    values = view_values([column], target)
    known = values[np.isfinite(values)].tolist()
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


def _reproduce(view: Alerts, about: About) -> dict[str, Any]:
    result = view.grouped
    notes, call = code_of_call("evaluate_by", result.arguments)
    code = ["import darkmetrics as dm", "", *notes, f"result = {call}"]
    if view.targets:
        arguments = ", ".join(f"{name}={text}" for name, text in view.arguments.items())
        code.append(f"alerts = result.alerts({arguments})")
    code.append(f'{"alerts" if view.targets else "result"}.report("report.html"{about.code})')
    methods = {metric.method for group in result.groups.values() for metric in group.metrics.values()}
    return reproduction(code, result.arguments, methods, about.source)


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
