"""The top of a page: what was assumed, when, whether targets are met, the metrics at a glance, the confusion matrix."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from darkmetrics._text import called
from darkmetrics.report.numbers import NOTHING, interval_shown, percent, shown
from darkmetrics.tables import level_text

# Metrics with a tile of their own; the table has all.
_TILES = 8


def head(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the top of a page says: what about, when, under which assumption, and whether targets are met."""
    threshold = summary["threshold"]
    facts = {
        "assumed": summary.get("assumption", ""),
        "threshold": "decisions were given" if threshold is None else f"{threshold:.6g}",
        "date": summary.get("date", ""),
    }
    targets = [
        {
            "verdict": target.get("verdict", ""),
            "text": f"{called(name)} {target['side']} {target['value']:g}",
            "chance": f"{percent(target['probability'])}, asked for {level_text(target['confidence'])}",
        }
        for name, target in ((name, entry["target"]) for name, entry in summary["metrics"].items())
        if target is not None and "confidence" in target
    ]
    return {
        "title": summary["title"],
        "warnings": [warned["message"] for warned in summary["warnings"]],
        "counts_sentence": summary["counts_sentence"],
        "facts": {name: text for name, text in facts.items() if text},
        "targets": targets,
        "source": summary["source"],
        "audit": summary.get("audit"),
        "reproduce": summary["reproduce"],
    }


def tiles(metrics: Mapping[str, Any]) -> list[dict[str, str]]:
    """The first metrics at a glance."""
    return [_tile(name, entry) for name, entry in islice(metrics.items(), _TILES)]


def _tile(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    target = entry["target"] or {}
    low, high = entry["low"], entry["high"]
    return {
        "name": name,
        "value": shown(entry["mean"], low, high),
        "interval": interval_shown(low, high),
        "verdict": target.get("verdict", ""),
        "target": f"{target['side']} {target['value']:g}" if target else "",
    }


def confusion_shown(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """The four counts as texts, in the lines of the decisions."""
    counts = summary.get("confusion")
    if not counts:
        return None
    sure = not summary["counts"]["missing"]

    def cell(name: str) -> dict[str, str]:
        entry = counts[name]
        span = f"{_count(entry['low'])} to {_count(entry['high'])}"
        return {"value": _count(entry["mean"]), "interval": "" if sure else span, "known": _count(entry["known"])}

    lines = [("decided positive", "tp", "fp"), ("decided negative", "fn", "tn")]
    rows = [{"name": name, "cells": [(one.upper(), cell(one)) for one in both]} for name, *both in lines]
    return {"rows": rows, "weighted": counts["weighted"], "sure": sure}


def _count(value: float | None) -> str:
    """A number of rows; what has weights, or is a mean of few, is not whole."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 or abs(value) >= 10.0 else f"{value:,.1f}"
