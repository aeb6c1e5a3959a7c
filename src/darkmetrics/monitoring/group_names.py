"""Groups in words: their keys as text, which may hold anything, and as plain values for JSON."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._text import short


def key_text(value: Any, every: str | None = None) -> str:
    r"""The value of a grouping column in one line, signs that cannot be shown written out, and dates short.

    Examples
    --------
    >>> import datetime as dt
    >>> from darkmetrics.monitoring.group_names import key_text
    >>> day = dt.date(2026, 4, 1)
    >>> [key_text(day, every) for every in ("day", "month", "quarter", "year")]
    ['2026-04-01', '2026-04', '2026-Q2', '2026']
    >>> key_text("two\nlines"), key_text(None), key_text("(missing)")
    ('two\\nlines', '(missing)', "'(missing)'")
    """
    if value is None:
        return "(missing)"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "minutes") if every in (None, "hour") else _period(value, every)
    if isinstance(value, dt.date):
        return _period(value, every)
    # Text that looks like a missing value is marked as text.
    return short(repr(value) if value == "(missing)" else value)


def told_apart(texts: Sequence[str]) -> list[str]:
    """The texts, with a number where one was there before.

    Examples
    --------
    >>> from darkmetrics.monitoring.group_names import told_apart
    >>> told_apart(["web", "app", "web"])
    ['web', 'app', 'web (2)']
    """
    found: dict[str, None] = {}
    for text in texts:
        number, name = 1, text
        while name in found:
            number += 1
            name = f"{text} ({number})"
        found[name] = None
    return list(found)


def _period(day: dt.date, every: str | None) -> str:
    if every == "year":
        return f"{day.year:04}"
    if every == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}-{day.month:02}" if every == "month" else f"{day.year:04}-{day.month:02}-{day.day:02}"


def group_text(names: Sequence[str], key: Sequence[Any], period: str | None, every: str | None) -> str:
    """A group in words: its values, with periods as short as they can be."""
    return ", ".join(group_texts(names, key, period, every))


def group_texts(names: Sequence[str], key: Sequence[Any], period: str | None, every: str | None) -> list[str]:
    """The value of each column, as text."""
    return [key_text(value, every if name == period else None) for name, value in zip(names, key, strict=True)]


def named(names: Sequence[str], key: Sequence[Any]) -> str:
    """A group as a message calls it: country='DE', month=2026-04-01."""
    return ", ".join(
        f"{key_text(name)}={key_text(value) if value is None or isinstance(value, dt.date) else _quoted(value)}"
        for name, value in zip(names, key, strict=True)
    )


def _quoted(value: Any) -> str:
    return f"'{key_text(value)}'" if isinstance(value, str) else key_text(value)


def listed(words: Sequence[str]) -> str:
    """Words in a sentence: a, b and c."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def counted(number: int, word: str) -> str:
    """A number of things."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def plain(value: Any) -> Any:
    """A key for JSON: numbers, text and truth values as they are, dates in ISO form, anything else as its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)


def in_order(keys: Sequence[Sequence[Any]]) -> list[int]:
    """The places of the keys in rising order, missing values last."""

    def rank(key: Sequence[Any], text: bool) -> list[tuple[bool, Any]]:
        return [(value is None, "" if value is None else str(value) if text else value) for value in key]

    try:
        return sorted(range(len(keys)), key=lambda i: rank(keys[i], text=False))
    except TypeError:  # values that know no order, such as several types in one column
        return sorted(range(len(keys)), key=lambda i: rank(keys[i], text=True))
