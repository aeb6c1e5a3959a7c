"""Numbers and tables of text as results print them, and as notebooks show them."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from darkmetrics._text import markdown_text, printable


def decimals_for(width: float) -> int:
    """As many decimals as the width of an interval deserves: three at least, so that its two ends differ."""
    return 3 if not 0.0 < width < 0.01 else min(8, int(np.ceil(-np.log10(width))) + 1)


def number_text(value: float, decimals: int) -> str:
    """A metric's value in print; nan is a 0/0."""
    if np.isnan(value):
        return "undefined"
    # Of what rounds to zero the sign says nothing.
    return f"{value:z.{decimals}f}" if abs(value) < 100.0 else f"{value:,.4g}"


def interval_text(interval: tuple[float, float], decimals: int) -> str:
    """Both ends of an interval in print; nan is a 0/0."""
    low, high = interval
    return f"{number_text(low, decimals)} to {number_text(high, decimals)}" if np.isfinite(low) else "undefined"


def finite(value: float | None) -> float | None:
    """A number for JSON, which has none that is infinite or undefined: those are None."""
    return float(value) if value is not None and np.isfinite(value) else None


def flat_numbers(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Numbers by one name each, such as "recall_low"; those of the empty key by the name alone.

    What is undefined is left out. Names have letters, digits and underscores, which every tracking server takes.

    Examples
    --------
    >>> from darkmetrics.tables import flat_numbers
    >>> flat_numbers({"fbeta(2)": {"": 0.5, "low": 0.4, "high": None}})
    {'fbeta_2': 0.5, 'fbeta_2_low': 0.4}
    """
    return {
        "_".join(filter(None, [re.sub(r"\W+", "_", name).strip("_"), key])): float(value)
        for name, numbers in entries.items()
        for key, value in numbers.items()
        if finite(value) is not None
    }


def plain_numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same for every number of a record; what is no number stays as it is."""
    return {name: finite(value) if isinstance(value, float) else value for name, value in record.items()}


def level_text(level: float) -> str:
    """A confidence level in percent, with the digits it has: 97.5% is not 98%, and none is 100%.

    Examples
    --------
    >>> from darkmetrics.tables import level_text
    >>> level_text(0.9), level_text(0.975), level_text(0.9999999)
    ('90%', '97.5%', '99.99999%')
    """
    texts = (f"{100.0 * level:.{digits}g}" for digits in range(6, 18))
    return next((text for text in texts if 0.0 < float(text) < 100.0), f"{100.0 * level:g}") + "%"


def chance_text(chance: float) -> str:
    """A probability in percent; only what is certain is 0% or 100%, and near these it has a decimal.

    Examples
    --------
    >>> from darkmetrics.tables import chance_text
    >>> [chance_text(chance) for chance in (0.0, 1e-9, 0.0512, 0.5, 0.9512, 1.0, float("nan"))]
    ['0%', '<0.1%', '5.1%', '50%', '95.1%', '100%', 'undefined']
    """
    if np.isnan(chance):
        return "undefined"
    if 0.0 < chance < 0.001:
        return "<0.1%"
    if 0.999 < chance < 1.0:
        return ">99.9%"
    return f"{chance:.1%}" if min(chance, 1.0 - chance) < 0.1 and 0.0 < chance < 1.0 else f"{chance:.0%}"


# Columns of a terminal that a printed table fits into.
WIDTH = 80


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, width: int | None = WIDTH
) -> list[str]:
    r"""Return the lines of a table that is at most `width` wide: further columns follow below, after the text columns.

    The first `words` columns hold text and are aligned to the left, the others to the right. The first column is
    repeated in any case. Columns without heading and text are left out.

    Examples
    --------
    >>> from darkmetrics.tables import text_table
    >>> print("\n".join(text_table(["", "mean", "bounds"], [["recall", "0.5", "0 to 1"]], width=14)))
            mean
    recall   0.5
    <BLANKLINE>
            bounds
    recall  0 to 1
    """
    lines = [list(map(printable, line)) for line in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    columns = [i for i, size in enumerate(widths) if size]
    text, numbers = [i for i in columns if i < max(words, 1)], [i for i in columns if i >= max(words, 1)]
    gap = 3

    def total(block: Sequence[int]) -> int:
        return sum(widths[i] + gap for i in (*text, *block)) - gap

    if width is not None and total(numbers) > width:
        gap = 2
    blocks: list[list[int]] = [[]]
    for i in numbers:
        if width is not None and blocks[-1] and total([*blocks[-1], i]) > width:
            blocks.append([])
        blocks[-1].append(i)
    printed: list[str] = []
    for block in blocks:
        printed += [""] if printed else []
        for line in lines:
            cells = [line[i].ljust(widths[i]) if i < words else line[i].rjust(widths[i]) for i in (*text, *block)]
            printed.append((" " * gap).join(cells).rstrip())
    return printed


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """The same table in Markdown, with everything escaped."""
    lines = [f"| {' | '.join(map(markdown_text, line))} |" for line in (header, *rows)]
    rule = "|" + "|".join(":--" if i < words else "--:" for i in range(len(header))) + "|"
    return [lines[0], rule, *lines[1:]]


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", words: int = 1) -> str:
    """Return the table in HTML with everything escaped; all columns after the first `words` are aligned to the right.

    Examples
    --------
    >>> from darkmetrics.tables import html_table
    >>> html_table(["", "mean"], [["recall", "0.5"]]).partition("<tbody>")[2]
    '<tr><td style="text-align: left">recall</td><td style="text-align: right">0.5</td></tr></tbody></table>'
    """
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""

    def cell(name: str, i: int, text: str) -> str:
        return f'<{name} style="text-align: {"left" if i < words else "right"}">{html.escape(text)}</{name}>'

    # An empty heading is an ordinary cell: screen readers would announce it.
    head = "".join(cell("th", i, text) if text else "<td></td>" for i, text in enumerate(header))
    body = "".join("<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """Lines of text as paragraphs, escaped."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)
