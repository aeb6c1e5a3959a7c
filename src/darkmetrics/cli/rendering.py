"""Results as text: formats for people, with assumptions and verdicts, and formats for programs."""

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

from darkmetrics._text import csv_text, markdown_text, printable


@dataclass(frozen=True)
class Table:
    """Cells as text; the first `words` columns are words and stand on the left."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    words: int = 1


@dataclass(frozen=True)
class Check:
    """A condition; if one fails, the exit code is 1."""

    name: str  # what was to hold, such as "recall at least 0.8"
    passed: bool | None  # None: too little is known to judge
    words: str  # a sentence: how it stands
    group: str = ""  # where it was to hold, if not in all rows

    @property
    def verdict(self) -> str:
        """First word of the line."""
        return {True: "PASS", False: "FAIL", None: "SKIP"}[self.passed]

    @property
    def line(self) -> str:
        """Verdict and reason."""
        return f"{self.verdict}: {self.words}"


@dataclass(frozen=True)
class Result:
    """A result in the shapes that formats need."""

    document: Mapping[str, Any]  # for JSON
    records: Sequence[Mapping[str, Any]]  # for CSV: one row each, plain values
    tables: Sequence[Table]  # for a table and Markdown
    above: Sequence[str] = ()  # sentences above the tables, such as what was assumed
    below: Sequence[str] = ()  # and below them
    warnings: Sequence[str] = ()  # above the tables too; standard error has them already
    checks: Sequence[Check] = ()
    closing: str = ""  # instead of a line for each check, where they would be hundreds
    # For Prometheus: columns of the records that say what a number is about.
    about: Sequence[str] = ()
    # And other names for columns that mean something else there than in an evaluation.
    gauges: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[str]:
        """Return a line per check."""
        return [self.closing] if self.closing else [check.line for check in self.checks]

    @property
    def missed(self) -> bool:
        """Return whether a check failed."""
        return any(check.passed is False for check in self.checks)


# Of a sentence in Markdown: more than any has, unless a name in it is endless.
_MOST_CHARACTERS = 5000
# Columns of text that is not for a terminal, such as the log of a pipeline.
WIDTH = 80
# Formats that a person reads.
FOR_PEOPLE = ("table", "markdown")
_GAP = "   "


def rendered(result: Result, format_: str, width: int = WIDTH) -> str:
    """Return the result as text in a format; a table is at most `width` columns wide if possible."""
    if format_ == "json":
        return json.dumps(result.document, indent=2, allow_nan=False) + "\n"
    if format_ == "csv":
        return _as_csv(result.records)
    if format_ == "prometheus":
        from darkmetrics.cli.prometheus import as_prometheus

        return as_prometheus(result)
    if format_ == "junit":
        from darkmetrics.cli.junit import as_junit

        return as_junit(result)
    blocks = _markdown(result) if format_ == "markdown" else _text(result, width)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def terminal_width() -> int:
    """Return the width of text on standard output."""
    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH
    return max(WIDTH, shutil.get_terminal_size().columns)


def wrapped(lines: Sequence[str], width: int = WIDTH) -> list[str]:
    """Return lines of at most `width` columns; words are never cut, and indented lines stay indented."""
    return [part for line in lines for part in _wrapped(printable(line), width) or [""]]


def _printable(table: Table) -> Table:
    header, *rows = ([printable(cell) for cell in line] for line in (table.header, *table.rows))
    return replace(table, header=header, rows=rows, title=printable(table.title))


def _wrapped(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _text(result: Result, width: int) -> list[list[str]]:
    blocks = [wrapped([*result.above, *result.warnings], width)]
    for table in map(_printable, result.tables):
        blocks += [[*wrapped([table.title] if table.title else [], width), *_folded(table, width)]]
    return [*blocks, wrapped([*result.below, *result.verdicts], width)]


def _markdown(result: Result) -> list[list[str]]:
    from darkmetrics.tables import markdown_table

    # Each sentence by itself: Markdown makes one paragraph of lines that stand together.
    blocks = [[_in_markdown(line)] for line in (*result.above, *result.warnings)]
    for table in result.tables:
        blocks += [[markdown_text(table.title)]] if table.title else []
        # A head without a word is one that a reader of screens has nothing to say of.
        names = [*result.about, *[""] * len(table.header)]
        header = [cell or name for cell, name in zip(table.header, names, strict=False)]
        blocks.append(markdown_table(header, table.rows, table.words))
    return blocks + [[_in_markdown(line)] for line in (*result.below, *result.verdicts)]


def _in_markdown(line: str) -> str:
    """Return an escaped sentence; the word that a verdict or a warning begins with is bold."""
    return re.sub(r"^(PASS|FAIL|SKIP|Warning):", r"**\1:**", markdown_text(line, _MOST_CHARACTERS))


def _folded(table: Table, width: int) -> list[str]:
    """Return the table as lines; columns beyond the width follow below, after the columns of words again."""
    from darkmetrics.tables import text_table

    widths = [max(map(len, column)) for column in zip(table.header, *table.rows, strict=True)]
    if table.words == len(widths) and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return _text_in_last_column(table, widths, width)
    return text_table(table.header, table.rows, table.words, width)


def _text_in_last_column(table: Table, widths: Sequence[int], width: int) -> list[str]:
    """Return a table whose last column has sentences, which continue in the next line."""
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    lines = []
    for row in (table.header, *table.rows):
        head = _GAP.join(cell.ljust(w) for cell, w in zip(row[:-1], widths, strict=False)) + _GAP
        first, *others = _wrapped(row[-1], max(20, width - before)) or [""]
        lines += [(head + first).rstrip(), *(" " * before + other for other in others)]
    return lines


def _as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writerow({name: _csv_cell(name) for name in names})
    writer.writerows({name: _csv_cell(value) for name, value in record.items()} for record in records)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    """Return numbers and empty values as they are, and everything else as text that no program runs."""
    return value if value is None or isinstance(value, Number) else csv_text(str(value))
