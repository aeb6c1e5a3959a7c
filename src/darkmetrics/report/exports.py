"""Numbers of a page to take away: tables as CSV, inside the links that save them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from darkmetrics._text import csv_text as value_text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV: numbers with nine digits, nothing where there is none, and no text that is run as a formula.

    Examples
    --------
    >>> from darkmetrics.report.exports import csv_text
    >>> print(csv_text(["metric", "mean"], [["recall", 0.5], ["=1+1", None]]))
    metric,mean
    recall,0.5
    '=1+1,
    """
    return "\n".join(",".join(map(_cell, row)) for row in (header, *rows))


def link(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The address of a link that saves the table: the table itself, so that no script and no network is needed."""
    text = csv_text(header, rows) + "\n"
    return "data:text/csv;charset=utf-8," + quote(text.encode("utf-8", "replace"), safe=",.-_ ")


def links(summary: Mapping[str, Any]) -> dict[str, str]:
    """A link for each table of numbers of an evaluation's page."""
    found = {"metrics": link(*_metrics(summary))}
    if summary.get("confusion"):
        counts = [(name, entry) for name, entry in summary["confusion"].items() if isinstance(entry, Mapping)]
        found["confusion"] = link(["count", *counts[0][1]], [[name, *entry.values()] for name, entry in counts])
    curves, asked = summary["curves"], summary["what_if"]
    if curves["absent"] is None:
        found["threshold"] = link(*_bands("threshold", curves["thresholds"], curves["metrics"]))
    for key in ("roc", "precision_recall"):
        if curves.get(key):
            columns = {name: values for name, values in curves[key].items() if isinstance(values, list)}
            found[key] = link(list(columns), zip(*columns.values(), strict=True))
    if asked["absent"] is None:
        found["share"] = link(*_bands("share", asked["shares"], asked["metrics"]))
    return found


def _metrics(summary: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    columns = ["mean", "low", "high", "labeled_only", "lowest_possible", "highest_possible", "std", "method"]
    header = ["metric", *columns, "sensitivity_low", "sensitivity_high", "target", "target_probability", "verdict"]
    rows = []
    for name, entry in summary["metrics"].items():
        target = entry["target"] or {}
        moved = [entry["sensitivity"]["low"], entry["sensitivity"]["high"]]
        goal = [target.get(key) for key in ("value", "probability", "verdict")]
        rows.append([name, *(entry[column] for column in columns), *moved, *goal])
    return header, rows


def _bands(along: str, places: Sequence[float], bands: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """One line for each metric and place."""
    columns = list(dict.fromkeys(name for band in bands.values() for name, v in band.items() if isinstance(v, list)))
    nothing: list[None] = [None] * len(places)
    rows = [
        [name, place, *(band.get(column, nothing)[i] for column in columns)]
        for name, band in bands.items()
        for i, place in enumerate(places)
    ]
    return ["metric", along, *columns], rows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = value_text(str(value))
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text
