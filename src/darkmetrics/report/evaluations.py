"""The report of an evaluation: from its summary to sections."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from darkmetrics._text import called
from darkmetrics.curves.bands import nearest
from darkmetrics.report.charts import (
    band_chart,
    cursor_places,
    distribution_chart,
    distribution_scale,
    rate_chart,
    unit_scale,
)
from darkmetrics.report.exports import links
from darkmetrics.report.numbers import NOTHING, interval_shown, percent, shown
from darkmetrics.report.sections import (
    Block,
    Cell,
    Report,
    Section,
    charts_block,
    figure,
    heading_block,
    list_block,
    table_block,
    text_block,
)
from darkmetrics.report.summarize import MOST_CURVES
from darkmetrics.tables import level_text

_DIGITS = range(3, 18)
# What distributions show, by scope.
_SPREAD = {
    "rows": "How the missing labels spread each metric",
    "population": "How missing labels and sampling spread each metric",
}
_ROWS_ONLY = "This section is for the rows, not for the population."
# Rates that are drawn against each other: key, title, upwards, across.
_RATES = (
    ("roc", "ROC curve", "recall", "false positive rate"),
    ("precision_recall", "Precision-recall curve", "precision", "recall"),
)


def evaluation_report(summary: Mapping[str, Any]) -> Report:
    """Return the report of a summary, as `summarize` makes it."""
    threshold, fraction = _threshold_slider(summary), _fraction_slider(summary)
    sliders = {"threshold": threshold, "share": fraction}
    rates = _rate_figures(summary)
    csv = links(summary)
    sections = [
        _metrics_section(summary, csv["metrics"]),
        _confusion_section(summary, csv.get("confusion")),
        _distributions_section(summary),
        _thresholds_section(summary, threshold, rates, csv),
        _what_if_section(summary, fraction, csv),
        _diagnosis_section(summary),
        _arrival_section(summary),
        _assumptions_section(summary),
    ]
    return Report(
        title=summary["title"],
        answer=_answer(summary),
        counts=summary["counts_sentence"],
        warnings=[warned["message"] for warned in summary["warnings"]],
        facts=_facts(summary),
        source=summary["source"],
        sections=[section for section in sections if section is not None],
        reproduce=summary["reproduce"],
        audit=summary.get("audit"),
        targets=_targets(summary),
        sliders={name: slider["data"] for name, slider in sliders.items() if slider is not None},
        hover=distribution_hover(islice(summary["metrics"].values(), MOST_CURVES))
        | {rate["id"]: rate["hover"] for rate in rates},
    )


def _answer(summary: Mapping[str, Any]) -> str:
    """Return the first sentence: whether all targets are met, or what is known of the first metric."""
    metrics = summary["metrics"]
    targets = [(name, entry["target"]) for name, entry in metrics.items() if entry["target"]]
    missed = [(name, target) for name, target in targets if target.get("verdict") == "FAIL"]
    if not targets:
        sentence = next(iter(metrics.values()))["sentence"]
        return f"{sentence[:1].upper()}{sentence[1:]}."
    if not missed:
        return "Every target is met with the required probability."
    names = ", ".join(f"{called(name)} {target['side']} {target['value']:g}" for name, target in missed)
    return f"{len(missed)} of {len(targets)} targets not met with the required probability: {names}."


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    threshold = summary["threshold"]
    facts = {
        "assumed": summary.get("assumption", ""),
        "threshold": "predictions were passed" if threshold is None else f"{threshold:.6g}",
        "date of the report": summary.get("date", ""),
    }
    return {name: text for name, text in facts.items() if text}


def _targets(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    targets = {name: entry["target"] for name, entry in summary["metrics"].items() if entry["target"]}
    return [
        {
            "verdict": target.get("verdict", ""),
            "text": f"{called(name)} {target['side']} {target['value']:g}",
            "chance": f"{percent(target['probability'])}, asked for {level_text(target['confidence'])}",
        }
        for name, target in targets.items()
        if "confidence" in target
    ]


def _metrics_section(summary: Mapping[str, Any], address: str) -> Section:
    """Return the table of all metrics."""
    on_rows, level = summary["scope"] == "rows", level_text(summary["confidence_level"])
    header = ["metric", "estimate", f"{level} interval", "labeled only", *(["bounds"] if on_rows else [])]
    header += [f"sensitivity (odds x{summary['odds']:g})", "method"]
    rows = []
    for name, entry in summary["metrics"].items():
        low, high = entry["low"], entry["high"]
        bounds = interval_shown(entry["lowest_possible"], entry["highest_possible"])
        row = [name, shown(entry["mean"], low, high), interval_shown(low, high), shown(entry["labeled_only"])]
        row += [bounds if entry["bounds_sharp"] else f"({bounds})"] if on_rows else []
        row += [interval_shown(entry["sensitivity"]["low"], entry["sensitivity"]["high"]), entry["method"]]
        rows.append(row)
    note = f"{summary['scope_sentence']} Labeled only: the metric without the rows that have no label. "
    note += "Bounds: the lowest and highest value over all label assignments. " if on_rows else ""
    note += (
        f"Sensitivity: the interval if the odds that missing rows are positive are up to {summary['odds']:g} times "
        "higher or lower than assumed, with one factor for rows predicted positive and one for rows predicted negative."
    )
    csv = {"name": "metrics", "address": address}
    return Section("words", "All metrics", [table_block("headline-table", header, rows, note=note, csv=csv)])


def _confusion_section(summary: Mapping[str, Any], address: str | None) -> Section | None:
    """Return the confusion matrix, if there is one."""
    counts = summary.get("confusion")
    if not counts or address is None:
        return None
    is_known = not summary["counts"]["missing"]

    def cell(name: str) -> dict[str, Any]:
        entry = counts[name]
        below = [f"{_count(entry['low'])} to {_count(entry['high'])}", f"{_count(entry['known'])} known"]
        return {"sign": name.upper(), "text": _count(entry["mean"]), "below": [] if is_known else below}

    lines = (("predicted positive", "tp", "fp"), ("predicted negative", "fn", "tn"))
    rows: list[list[Cell]] = [[name, cell(left), cell(right)] for name, left, right in lines]
    unit, level = "weight" if counts["weighted"] else "number", level_text(summary["confidence_level"])
    note = f"Expected {unit} of rows, its {level} interval, and the rows that have their label already."
    csv = {"name": "confusion", "address": address}
    note = "Every label is known." if is_known else note
    table = table_block("confusion-table", ["rows", "positive", "negative"], rows, note=note, csv=csv, look="matrix")
    return Section("confusion", "Confusion matrix", [*_scope_note(summary), table])


def _scope_note(summary: Mapping[str, Any]) -> list[Block]:
    return [] if summary["scope"] == "rows" else [text_block(_ROWS_ONLY)]


def _count(value: float | None) -> str:
    """Return a number of rows; weights, and means of few rows, are not whole numbers."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 or abs(value) >= 10.0 else f"{value:,.1f}"


def _distributions_section(summary: Mapping[str, Any]) -> Section:
    metrics, level = summary["metrics"], level_text(summary["confidence_level"])
    figures = []
    for number, (name, entry) in enumerate(islice(metrics.items(), MOST_CURVES), start=1):
        chart = distribution_chart(entry)
        meaning = entry["meaning"] or "A metric of your own"
        about = {"id": f"distribution-{number}", "name": name, "sentence": entry["sentence"]}
        caption = f"{meaning}{'' if chart else '; it is 0/0 for every label assignment'}."
        figures.append(figure(name, chart, kind="distribution", caption=caption, **about))
    hidden = len(metrics) - len(figures)
    note = f"Pictures are of the first {len(figures)} metrics; {hidden} more are in the table." if hidden else ""
    with_target = any(entry["target"] for entry in metrics.values())
    signs = [
        ("interval", f"{level} interval and mean"),
        ("labeled", "labeled only"),
        ("bounds", "bounds (an arrow: outside the picture)"),
        *([("target", "target")] if with_target else []),
    ]
    return Section("distributions", _SPREAD[summary["scope"]], [charts_block("", figures, note, signs)])


def _thresholds_section(
    summary: Mapping[str, Any], slider: Mapping[str, Any] | None, rates: list[dict[str, Any]], csv: Mapping[str, str]
) -> Section:
    blocks, level = _scope_note(summary), level_text(summary["confidence_level"])
    if slider is None:
        blocks.append(text_block(summary["curves"]["absent"]))
    else:
        intro = "A row is predicted positive if its score is at least the threshold. The table has every metric that "
        blocks.append(text_block(f"{intro}depends on the threshold, with its {level} interval."))
        signs = [
            ("band", f"mean and {level} interval"),
            ("labeled-line", "labeled only"),
            ("possible", "bounds, cut at the edge of the picture"),
            ("cursor", "the slider"),
        ]
        columns = ["estimate", f"{level} interval", "labeled only"]
        blocks.append(_slider_block("threshold", "Threshold", "threshold", slider, columns, signs, csv["threshold"]))
        if slider["fixed"]:
            more = " and more" if len(slider["fixed"]) > 30 else ""
            names = ", ".join(called(name) for name in slider["fixed"][:30])
            blocks.append(text_block(f"The same at every threshold, or not shown here: {names}{more}.", is_soft=True))
        note = f"Found by the method “{slider['method']}”. Each interval is for its threshold alone, with the "
        blocks.append(text_block(f"{note}probabilities of the missing labels of this evaluation.", is_soft=True))
    if rates:
        note = f"One point for each threshold: the means of both rates, with the {level} interval of the upper one. "
        note += f"The dot is the threshold evaluated. Found by the method “{rates[0]['method']}”."
        for rate in rates:
            rate["csv"] = {"name": rate["title"].lower().replace(" ", "-"), "address": csv[rate["key"]]}
        blocks += [heading_block("ROC and precision-recall"), text_block(note), charts_block("rates-charts", rates)]
    return Section("thresholds", "At other thresholds", blocks)


def _what_if_section(summary: Mapping[str, Any], slider: Mapping[str, Any] | None, csv: Mapping[str, str]) -> Section:
    shifted, blocks = summary["what_if"], _scope_note(summary)
    if slider is None:
        blocks.append(text_block(shifted["absent"]))
    else:
        estimate = shifted["estimate"]
        ends = f"{percent(estimate['low'])} to {percent(estimate['high'])}"
        intro = f"This evaluation estimates that {percent(estimate['mean'])} of the missing rows are positive "
        blocks.append(text_block(f"{intro}(90%: {ends}). If another fraction is, all metrics move:"))
        level = level_text(summary["confidence_level"])
        columns = ["estimate", f"{level} interval", *(["probability of the target"] if slider["has_target"] else [])]
        label, along = "Positive among the missing rows", "fraction of the missing rows that is positive"
        blocks.append(_slider_block("share", label, along, slider, columns, [], csv["share"]))
        if shifted["tipping_points"]:
            sentences = [f"{point['sentence']}." for point in shifted["tipping_points"]]
            blocks += [heading_block("Tipping points"), list_block(sentences, "tipping-points")]
        methods = " and ".join(
            f"the method “{method}” ({', '.join(map(called, names))})" for method, names in slider["methods"].items()
        )
        note = "The log odds of every missing row move by the same amount until the stated fraction is reached "
        note += f"(dm.missing.ExponentialTilt); other uncertainty stays. Found by {methods}."
        blocks.append(text_block(note, is_soft=True))
        for name, why in shifted["left_out"].items():
            blocks.append(text_block(f"{called(name)} is left out: {why}.", is_soft=True))
    return Section("what-if", "What if another fraction of the missing rows were positive?", blocks)


def _diagnosis_section(summary: Mapping[str, Any]) -> Section:
    found = summary["diagnosis"]
    tables = [
        table_block("", [table["header"][0] or "metric", *table["header"][1:]], table["rows"], caption=table["title"])
        for table in found["tables"]
    ]
    return Section("diagnosis", "Why are labels missing?", [text_block(found["verdict"]), *tables])


def _arrival_section(summary: Mapping[str, Any]) -> Section | None:
    """Return the fraction of labels that have arrived by age, if rows have ages."""
    arrival = summary.get("arrival")
    if arrival is None:
        return None
    table = arrival["table"]
    ages = [0.0, *(b["high"] for b in arrival["bins"])]
    figures = []
    for number, name in enumerate(("positives", "negatives"), start=1):
        curve = arrival[name]
        band = {"mean": [0.0, *curve["share"]], "low": [0.0, *curve["low"]], "high": [0.0, *curve["high"]]}
        chart = {"dot": None, **(band_chart(ages, band, None) or {})}
        about = {"name": f"fraction of labels of {name} that have arrived", "along": table["header"][0]}
        where = "the table below has the numbers"
        title = f"{name}: labels that have arrived"
        figures.append(figure(title, chart, kind="band", id=f"arrival-{number}", where=where, **about))
    charts = charts_block("arrival-charts", figures, "Lines are fractions of labels, areas their 90% intervals.")
    rows = table_block("arrival-table", table["header"], table["rows"], caption="Bins of ages", look="folded")
    return Section("arrival", "When do labels arrive?", [list_block(arrival["words"]), charts, rows])


def _assumptions_section(summary: Mapping[str, Any]) -> Section:
    blocks = [list_block([*summary["assumptions"], *summary["method"]])]
    sources = ["the labels themselves", "calibration", "fraction of positives", "sampling of rows"]
    rows = [
        [name, *(percent(entry[key], 0) for key in entry if key.startswith("variance_from_"))]
        for name, entry in summary["metrics"].items()
        if entry["std"]
    ]
    if rows:
        note = "The first part shrinks only as labels arrive; the second with more labels anywhere; the third by "
        note += "knowing why labels are missing, or with reference rows; the fourth, in the population, with more rows."
        header = ["metric", *sources[: len(rows[0]) - 1]]
        blocks.append(table_block("", header, rows, caption="Sources of the variance of each metric", note=note))
    return Section("assumed", "Assumptions and methods", blocks)


def distribution_hover(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """For each picture of a law: what a pointer reads at its places."""
    found = {}
    for number, entry in enumerate(entries, start=1):
        shape = entry["shape"]
        if not shape["x"] or "up_to" not in shape:
            continue
        scale = distribution_scale(entry)
        width = (entry["low"], entry["high"])
        if shape["kind"] == "bars":
            texts = [f"{shown(x, *width)}: {percent(y)}" for x, y in zip(shape["x"], shape["y"], strict=True)]
        else:
            texts = [
                f"{shown(x, *width)} or less: {percent(p)}" for x, p in zip(shape["x"], shape["up_to"], strict=True)
            ]
        found[f"distribution-{number}"] = {"at": [round(v, 1) for v in scale(shape["x"]).tolist()], "text": texts}
    return found


def _rate_figures(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ROC and precision-recall curves: pictures, what a pointer reads there, and the area."""
    curves, figures = summary["curves"], []
    level = level_text(summary["confidence_level"])
    for number, (key, title, name, across) in enumerate(_RATES, start=1):
        rates = curves.get(key)
        chart = rate_chart(rates, curves["current"], diagonal=key == "roc") if rates else None
        if chart is None:
            continue
        caption, area = "", curves.get("auc")
        if key == "roc" and area and area["mean"] is not None:
            low, high = area["low"], area["high"]
            caption = f"ROC-AUC {shown(area['mean'], low, high)} ({level}: {interval_shown(low, high)}); "
            caption += "the dashed diagonal is guessing."
        points = [
            (x, f"{across} {shown(x)}: {name} {shown(y, low, high)} ({interval_shown(low, high)})")
            for x, y, low, high in zip(rates["x"], rates["mean"], rates["low"], rates["high"], strict=True)
            if x is not None and y is not None
        ]
        at = [round(place, 1) for place in unit_scale()([x for x, _ in points]).tolist()]
        about = {"id": f"rates-{number}", "key": key, "name": name, "along": across, "method": rates["method"]}
        about |= {"hover": {"at": at, "text": [text for _, text in points]}}
        where = "a dot marks the threshold evaluated"
        figures.append(figure(title, chart, kind="band", caption=caption, where=where, **about))
    return figures


def _threshold_slider(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metrics at each threshold: a row of a table for each metric, texts for each position."""
    curves = summary["curves"]
    if curves["absent"] is not None:
        return None
    thresholds = curves["thresholds"]
    start = nearest(np.array(thresholds), curves["current"])
    texts = [f"threshold {text}" for text in distinct(thresholds)]
    texts[start] += ", the one evaluated" if thresholds[start] == curves["current"] else ""
    notes = [f"{percent(share)} of the rows are decided positive." for share in curves["flagged"]]
    rows = []
    for name, band in curves["metrics"].items():
        columns = [*_estimate_columns(band), [shown(value) for value in band["labeled_only"]]]
        rows.append({"name": name, "chart": band_chart(thresholds, band, _target(summary, name)), "columns": columns})
    fixed = [name for name in summary["metrics"] if name not in curves["metrics"]]
    about = {"fixed": fixed, "method": curves["method"]}
    return _slider(thresholds, distinct(thresholds), texts, notes, start, rows) | about


def _fraction_slider(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metrics at each share of positives among the missing rows."""
    asked = summary["what_if"]
    if asked["absent"] is not None:
        return None
    shares, found = asked["shares"], asked["estimate"]["mean"]
    start = int(np.argmin(np.abs(np.array(shares) - found)))
    texts = [f"{percent(share)} of the missing rows are positive" for share in shares]
    texts[start] += ", as this evaluation finds" if abs(shares[start] - found) < 1e-9 else ""
    missing = summary["counts"]["missing"]
    notes = [f"That is about {round(share * missing):,} of {missing:,} rows." for share in shares]
    rows = []
    for name, band in asked["metrics"].items():
        chance = [percent(value) for value in band["target_probability"]] if "target_probability" in band else None
        columns = [*_estimate_columns(band), chance or ["" for _ in shares]]
        rows.append({"name": name, "chart": band_chart(shares, band, _target(summary, name)), "columns": columns})
    methods: dict[str, list[str]] = {}
    for name, band in asked["metrics"].items():
        methods.setdefault(band["method"], []).append(name)
    has_target = any("target_probability" in band for band in asked["metrics"].values())
    return _slider(shares, [percent(share) for share in shares], texts, notes, start, rows) | {
        "methods": methods,
        "has_target": has_target,
    }


def _slider_block(
    name: str,
    label: str,
    along: str,
    grid: Mapping[str, Any],
    columns: Sequence[str],
    signs: Sequence[tuple[str, str]],
    address: str,
) -> Block:
    """Return a slider with its table and its pictures."""
    figures = [
        figure(row["name"], row["chart"], kind="band", id=f"{name}-{number}", name=row["name"], along=along)
        | {"cursor": grid["cursor"], "slider": name, "row": number - 1}
        for number, row in enumerate(grid["rows"], start=1)
        if row["chart"]
    ]
    charts = charts_block(f"{name}-charts", figures, "", signs)
    about = {"name": name, "label": label, "along": along, "columns": columns, "charts": charts}
    return {"kind": "slider", "grid": grid, "csv": {"name": name, "address": address}, **about}


def _estimate_columns(band: Mapping[str, Any]) -> list[list[str]]:
    rows = list(zip(band["mean"], band["low"], band["high"], strict=True))
    return [[shown(*row) for row in rows], [interval_shown(low, high) for _, low, high in rows]]


def _slider(
    places: Sequence[float],
    short: list[str],
    texts: list[str],
    notes: list[str],
    start: int,
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    cursor = cursor_places(places)
    return {
        "start": start,
        "last": len(places) - 1,
        "text": texts[start],
        "note": notes[start],
        "cursor": cursor[start],
        "rows": [{**row, "cells": [column[start] for column in row["columns"]]} for row in rows],
        "data": {
            "start": start,
            "short": short,
            "text": texts,
            "note": notes,
            "cursor": cursor,
            "rows": [row["columns"] for row in rows],
        },
    }


def _target(summary: Mapping[str, Any], name: str) -> float | None:
    target = summary["metrics"].get(name, {}).get("target")
    return target["value"] if target else None


def distinct(values: Sequence[float]) -> list[str]:
    """Numbers with as few digits as tell them apart.

    Examples
    --------
    >>> from darkmetrics.report.evaluations import distinct
    >>> distinct([0.12341, 0.5, 0.12349])
    ['0.1234', '0.5', '0.1235']
    """
    texts: list[str] = []
    for digits in _DIGITS:
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(values):
            break
    return texts
