"""From the summary to what the page template asks for: texts, places in pictures, and tables that sliders look up."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from darkmetrics._text import visible
from darkmetrics.curves.bands import nearest
from darkmetrics.report.charts import band_chart, cursor_places, distribution_chart, law_scale, rate_chart, unit_scale
from darkmetrics.report.exports import links
from darkmetrics.report.head import confusion_shown, head, tiles
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.summarize import MOST_CURVES
from darkmetrics.tables import level_text

_DIGITS = range(3, 18)
# What pictures of laws show, by scope.
_SPREAD = {
    "rows": "How the missing labels spread each metric",
    "population": "How missing labels and sampling spread each metric",
}
# Rates that are drawn against each other: key, title, upwards, across.
_RATES = (
    ("roc", "ROC curve", "recall", "false positive rate"),
    ("precision_recall", "Precision-recall curve", "precision", "recall"),
)


def page(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What `report.html.j2` is filled with: the summary, ready to print; scripts look numbers up and compute none."""
    metrics = summary["metrics"]
    threshold, share = _threshold_slider(summary), _share_slider(summary)
    sliders = {"threshold": threshold, "share": share}
    rates = _rates(summary)
    found = summary["what_if"].get("estimate", {})
    return {
        **head(summary),
        "tiles": tiles(metrics),
        "confusion": confusion_shown(summary),
        "rates": rates,
        "spread_heading": _SPREAD[summary["scope"]],
        "csv": links(summary),
        "summary": summary,
        "level": level_text(summary["confidence_level"]),
        "if_odds": f"if odds {summary['odds']:g}x off",
        "has_target": any(entry["target"] for entry in metrics.values()),
        "headline": [_headline_row(name, entry) for name, entry in metrics.items()],
        "distributions": [
            {"name": name, "entry": entry, "chart": distribution_chart(entry)}
            for name, entry in islice(metrics.items(), MOST_CURVES)
        ],
        "not_drawn": max(0, len(metrics) - MOST_CURVES),
        **sliders,
        # What the script looks up; no text of a user is in it.
        "data": {
            "sliders": {name: slider["data"] for name, slider in sliders.items() if slider is not None},
            "hover": law_hover(islice(metrics.values(), MOST_CURVES)) | {rate["id"]: rate["hover"] for rate in rates},
        },
        "arrival": _arrival(summary.get("arrival")),
        "share_found": percent(found.get("mean")),
        "share_range": f"{percent(found.get('low'))} to {percent(found.get('high'))}",
        "code": code_shown(summary["reproduce"]["code"]),
        "split": [
            [name, *(percent(entry[key], 0) for key in entry if key.startswith("variance_from_"))]
            for name, entry in metrics.items()
            if entry["std"]
        ],
    }


def law_hover(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """For each picture of a law: what a pointer reads at its places."""
    found = {}
    for number, entry in enumerate(entries, start=1):
        shape = entry["shape"]
        if not shape["x"] or "up_to" not in shape:
            continue
        scale = law_scale(entry)
        width = (entry["low"], entry["high"])
        if shape["kind"] == "bars":
            texts = [f"{shown(x, *width)}: {percent(y)}" for x, y in zip(shape["x"], shape["y"], strict=True)]
        else:
            texts = [
                f"{shown(x, *width)} or less: {percent(p)}" for x, p in zip(shape["x"], shape["up_to"], strict=True)
            ]
        found[f"distribution-{number}"] = {"at": [round(v, 1) for v in scale(shape["x"]).tolist()], "text": texts}
    return found


def _rates(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """ROC and precision-recall: pictures, what a pointer reads there, and the area."""
    curves, found = summary["curves"], []
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
            caption += "the dashed diagonal is guessing"
        points = [
            (x, f"{across} {shown(x)}: {name} {shown(y, low, high)} ({interval_shown(low, high)})")
            for x, y, low, high in zip(rates["x"], rates["mean"], rates["low"], rates["high"], strict=True)
            if x is not None and y is not None
        ]
        at = [round(place, 1) for place in unit_scale()([x for x, _ in points]).tolist()]
        found.append(
            {
                "id": f"rates-{number}",
                "key": key,
                "title": title,
                "name": name,
                "across": across,
                "method": rates["method"],
                "chart": chart,
                "caption": caption,
                "hover": {"at": at, "text": [text for _, text in points]},
            }
        )
    return found


def code_shown(code: str) -> str:
    """Code fit to be shown, line by line."""
    return "\n".join(visible(line, 5000) for line in code.split("\n"))


def _headline_row(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    low, high = entry["low"], entry["high"]
    worst, best = entry["lowest_possible"], entry["highest_possible"]
    if entry["better"] == "lower":
        worst, best = best, worst
    bounds = "undefined" if worst is None or best is None else f"{shown(worst)} to {shown(best)}"
    return {
        "name": name,
        "meaning": entry["meaning"],
        "sentence": entry["sentence"],
        "estimate": shown(entry["mean"], low, high),
        "interval": interval_shown(low, high),
        "moved": interval_shown(entry["sensitivity"]["low"], entry["sensitivity"]["high"]),
        "labeled_only": shown(entry["labeled_only"]),
        "bounds": bounds if entry["bounds_sharp"] else f"({bounds})",
        "target": entry["target"],
        "chance": percent(entry["target"]["probability"]) if entry["target"] else "",
        "method": entry["method"],
    }


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


def _share_slider(summary: Mapping[str, Any]) -> dict[str, Any] | None:
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


def _arrival(arrival: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The share of labels that are in by age, as a picture for each class."""
    if arrival is None:
        return None
    ages = [0.0, *(b["high"] for b in arrival["bins"])]
    figures = []
    for name in ("positives", "negatives"):
        of = arrival[name]
        band = {"mean": [0.0, *of["share"]], "low": [0.0, *of["low"]], "high": [0.0, *of["high"]]}
        figures.append({"name": name, "chart": {"dot": None, **(band_chart(ages, band, None) or {})}})
    table = arrival["table"]
    return {"words": arrival["words"], "table": table, "figures": figures, "along": table["header"][0]}


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
    >>> from darkmetrics.report.page import distinct
    >>> distinct([0.12341, 0.5, 0.12349])
    ['0.1234', '0.5', '0.1235']
    """
    texts: list[str] = []
    for digits in _DIGITS:
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(values):
            break
    return texts
