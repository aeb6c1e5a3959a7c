"""The report as Markdown: the same sections, for a pull request or a wiki."""

import re
from collections.abc import Mapping
from typing import Any

from darkmetrics._text import markdown_text as plain
from darkmetrics._text import visible
from darkmetrics.report.head import confusion_shown, head
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.tables import level_text, markdown_table

_SHARES_SHOWN = 5
_THRESHOLDS_SHOWN = 9


def markdown(summary: Mapping[str, Any]) -> str:
    """The summary as Markdown; text that came with the data is escaped."""
    level = level_text(summary["confidence_level"])
    lines = [f"# {plain(summary['title'])}", ""]
    for warned in summary["warnings"]:
        lines += [f"> **Warning.** {plain(warned['message'], 5000)}", ""]
    lines += [plain(summary["counts_sentence"]), ""]
    top = head(summary)
    lines += [f"- {name}: {plain(text, 1000)}" for name, text in top["facts"].items()]
    lines += [f"- target: **{one['verdict']}** {plain(one['text'])} ({plain(one['chance'])})" for one in top["targets"]]
    lines += [f"- {plain(key)}: {plain(value)}" for key, value in summary["source"].items()]
    lines += ["", "## In words", ""]
    for entry in summary["metrics"].values():
        target = f"; {entry['target']['sentence']}" if entry["target"] else ""
        lines.append(f"- {plain(entry['sentence'] + target, 1000)}.")
    on_rows = summary["scope"] == "rows"

    def possible(entry: Mapping[str, Any]) -> list[str]:
        """What any labels can make of the metric on the rows; of the population nothing is ruled out."""
        return [interval_shown(entry["lowest_possible"], entry["highest_possible"])] if on_rows else []

    rows = [
        [
            name,
            shown(entry["mean"], entry["low"], entry["high"]),
            interval_shown(entry["low"], entry["high"]),
            interval_shown(entry["sensitivity"]["low"], entry["sensitivity"]["high"]),
            shown(entry["labeled_only"]),
            *possible(entry),
            entry["method"],
        ]
        for name, entry in summary["metrics"].items()
    ]
    header = ["metric", "estimate", f"{level} interval", f"if odds {summary['odds']:g}x off"]
    header += ["labeled only", *(["possible"] if on_rows else []), "method"]
    lines += ["", *markdown_table(header, rows), "", plain(summary["scope_sentence"]), ""]
    lines += [*_confusion(summary, level), "## At other thresholds", ""]
    lines += [] if on_rows else ["These are for the rows, not for the population.", ""]
    lines += _thresholds(summary["curves"], level)
    lines += ["", "## What if another share of the missing rows were positive?", ""]
    lines += [] if on_rows else ["These are for the rows, not for the population.", ""]
    lines += _what_if(summary["what_if"], level)
    lines += ["", "## Why are labels missing?", "", plain(summary["diagnosis"]["verdict"], 5000)]
    for table in summary["diagnosis"]["tables"]:
        lines += ["", plain(table["title"]), "", *markdown_table(table["header"], table["rows"])]
    if (arrival := summary.get("arrival")) is not None:
        lines += ["", "## When do labels come?", "", *(f"- {plain(text, 1000)}" for text in arrival["words"])]
        lines += ["", *markdown_table(arrival["table"]["header"], arrival["table"]["rows"])]
    lines += ["", "## What was assumed, and how it was computed", ""]
    lines += [f"- {plain(text, 5000)}" for text in (*summary["assumptions"], *summary["method"])]
    if (audit := summary.get("audit")) is not None:
        facts = {**audit["facts"], "rows": f"{audit['rows']:,}", "SHA-256 of the rows": audit["sha256"]}
        lines += ["", "## For the audit file", ""]
        lines += [f"- {plain(key)}: {plain(value, 2000)}" for key, value in (facts | audit["versions"]).items()]
    reproduce = summary["reproduce"]
    versions = ", ".join(f"{name} {number}" for name, number in reproduce["versions"].items())
    # The code is indented, not fenced: no line of it can end the block.
    code = [f"    {visible(line, 5000)}".rstrip() for line in reproduce["code"].split("\n")]
    lines += ["", "## Reproduce", "", *code, "", plain(f"{reproduce['seed']} Made with {versions}.")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _confusion(summary: Mapping[str, Any], level: str) -> list[str]:
    matrix = confusion_shown(summary)
    if matrix is None:
        return []
    rows = [
        [row["name"], *(f"{sign} {cell['value']}{_known(cell)}" for sign, cell in row["cells"])]
        for row in matrix["rows"]
    ]
    note = [] if matrix["sure"] else [f"Expected rows, {level} interval, and those whose label is known.", ""]
    return ["## Confusion matrix", "", *note, *markdown_table(["rows", "positive", "negative"], rows), ""]


def _known(cell: Mapping[str, str]) -> str:
    return f" ({cell['interval']}; {cell['known']} known)" if cell["interval"] else ""


def _thresholds(curves: Mapping[str, Any], level: str) -> list[str]:
    area = curves.get("auc") or {}
    auc = f"ROC-AUC {shown(area.get('mean'))} ({level}: {interval_shown(area.get('low'), area.get('high'))})."
    if curves["absent"] is not None:
        return [plain(curves["absent"], 1000), *(["", auc] if area else [])]
    rows = []
    for i in _some(len(curves["thresholds"]), _THRESHOLDS_SHOWN):
        cells = (_estimate(band, i) for band in curves["metrics"].values())
        rows.append([f"{curves['thresholds'][i]:.4g}", percent(curves["flagged"][i]), *cells])
    note = f"Estimate and {level} interval; the threshold evaluated is {curves['current']:.4g}."
    table = markdown_table(["threshold", "decided positive", *curves["metrics"]], rows)
    return [plain(note), "", *table, *(["", auc] if area else [])]


def _what_if(asked: Mapping[str, Any], level: str) -> list[str]:
    if asked["absent"] is not None:
        return [plain(asked["absent"], 1000)]
    found = asked["estimate"]
    lines = [
        plain(
            f"This evaluation finds {percent(found['mean'])} of the missing rows positive "
            f"(90%: {percent(found['low'])} to {percent(found['high'])}). Estimates and {level} intervals:"
        ),
        "",
    ]
    bands = asked["metrics"].values()
    places = _some(len(asked["shares"]), _SHARES_SHOWN)
    rows = [[percent(asked["shares"][i]), *(_estimate(band, i) for band in bands)] for i in places]
    lines += [*markdown_table(["positive", *asked["metrics"]], rows), ""]
    lines += [f"- {plain(point['sentence'], 1000)}." for point in asked["tipping_points"]]
    lines += [f"- {plain(name)} is left out: {plain(why)}." for name, why in asked["left_out"].items()]
    return lines


def _estimate(band: Mapping[str, Any], i: int) -> str:
    low, high = band["low"][i], band["high"][i]
    return f"{shown(band['mean'][i], low, high)} ({interval_shown(low, high)})"


def _some(count: int, most: int) -> list[int]:
    """Evenly spread positions, the first and the last among them."""
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
