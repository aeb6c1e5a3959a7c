"""Any report as Markdown: the same sections, for a pull request or a wiki."""

import re
from collections.abc import Mapping
from typing import Any

from darkmetrics._text import markdown_text as escape
from darkmetrics.report.sections import Block, Cell, Report
from darkmetrics.tables import markdown_table

# Positions of a slider that are shown.
_MAX_POSITIONS = 9


def render_markdown(report: Report) -> str:
    """Return a report as Markdown; text that came with the data is escaped."""
    lines = [f"# {escape(report.title)}", "", escape(report.answer, 2000), ""]
    for message in report.warnings:
        lines += [f"> **Warning.** {escape(message, 5000)}", ""]
    lines += [escape(report.counts), ""]
    lines += [f"- {name}: {escape(text, 1000)}" for name, text in report.facts.items()]
    for target in report.targets:
        verdict = f"**{target['verdict']}** " if target["verdict"] else ""
        lines.append(f"- target: {verdict}{escape(target['text'])} ({escape(target['chance'])})")
    lines += [f"- {escape(key)}: {escape(value)}" for key, value in report.source.items()]
    for section in report.sections:
        lines += ["", f"## {escape(section.heading)}", ""]
        for block in section.blocks:
            lines += [*_BLOCKS[block["kind"]](block), ""]
    if report.audit is not None:
        lines += ["", "## For the audit file", ""]
        lines += [f"- {escape(key)}: {escape(value, 2000)}" for key, value in _audit_facts(report.audit).items()]
    versions = ", ".join(f"{name} {number}" for name, number in report.reproduce["versions"].items())
    # The code is indented, not fenced: no line of it can end the block.
    code = [f"    {line}".rstrip() for line in report.code.split("\n")]
    lines += ["", "## Reproduce", "", *code, "", escape(f"{report.reproduce['seed']} Made with {versions}.")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _audit_facts(audit: Mapping[str, Any]) -> dict[str, str]:
    facts = dict(audit["facts"])
    for rows in audit.get("sets", [audit]):
        name = f" of {rows['name']}" if "name" in rows else ""
        facts |= {f"rows{name}": f"{rows['rows']:,}", f"SHA-256 of the rows{name}": rows["sha256"]}
    return {**facts, **audit["versions"]}


def _text(block: Block) -> list[str]:
    return [escape(block["text"], 5000)]


def _heading(block: Block) -> list[str]:
    return [f"### {escape(block['text'])}"]


def _list(block: Block) -> list[str]:
    return [f"- {escape(text, 5000)}" for text in block["items"]]


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if "span" in cell:
        return ""
    below = "; ".join(text for text in cell.get("below", ()) if text)
    text = f"{cell['sign']} {cell['text']}" if cell.get("sign") else str(cell["text"])
    return f"{text} ({below})" if below else text


def _table(block: Block) -> list[str]:
    title = [escape(block["caption"]), ""] if block["caption"] else []
    table = markdown_table(block["header"], [[_cell(cell) for cell in row] for row in block["rows"]], block["words"])
    return [*title, *table, *(["", escape(block["note"], 2000)] if block["note"] else [])]


def _charts(block: Block) -> list[str]:
    """Return the captions of pictures, which Markdown has none of."""
    captions = [f"- {escape(item['title'])}: {escape(item['caption'], 400)}" for item in block["figures"]]
    return [line for line, item in zip(captions, block["figures"], strict=True) if item["caption"]]


def _slider(block: Block) -> list[str]:
    """Return some positions of a slider as a table, with estimates and intervals."""
    grid = block["grid"]["data"]
    count = len(grid["short"])
    places = sorted({round(i * (count - 1) / (_MAX_POSITIONS - 1)) for i in range(_MAX_POSITIONS)} | {grid["start"]})
    header = [block["name"], *(row["name"] for row in block["grid"]["rows"])]
    rows = [[grid["short"][i], *(f"{row[0][i]} ({row[1][i]})" for row in grid["rows"])] for i in places]
    return markdown_table(header, rows)


_BLOCKS = {
    "text": _text,
    "heading": _heading,
    "list": _list,
    "table": _table,
    "charts": _charts,
    "slider": _slider,
}
