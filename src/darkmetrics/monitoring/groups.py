"""Groups: the numbers that are kept of each group, and how keys of groups are written.

Values of keys can be of any type: they are converted to printable text, and to plain values for JSON.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from darkmetrics._text import short
from darkmetrics.exceptions import InputError, RecordedWarning
from darkmetrics.tables import decimals_for, number_text

Key = tuple[Any, ...]
# A group with fewer labeled positives or negatives is too small to judge: its mechanism depends on a prior, and one
# label more or less moves its metrics by a fifth.
MIN_LABELS = 5


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """Numbers of one metric in one group; NaN where there is none.

    Attributes
    ----------
    mean, low, high : float
        Mean of the distribution and ends of its interval.
    labeled_only : float
        The metric on the labeled rows only.
    lowest_possible, highest_possible : float
        Bounds over all label assignments to the missing rows.
    undefined : float
        Probability of a 0/0.
    method : str
        How the distribution was computed; "bounds" if there are too few labels for a distribution.
    binning_error : float
        Largest distance by which score bins can have moved the metric: 0 if scores are exact or the metric counts
        predictions, NaN if it is unknown.
    """

    mean: float
    low: float
    high: float
    labeled_only: float
    lowest_possible: float
    highest_possible: float
    undefined: float
    method: str
    binning_error: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Numbers of one group.

    Attributes
    ----------
    key : tuple
        The value of each grouping column; None where it is null.
    counts : dict
        Counts: "rows", "labeled", "positive", "negative", "missing".
    metrics : mapping from metric name to MetricSummary
        The numbers.
    notes : tuple of str
        Python warnings about this group.
    warnings : tuple of RecordedWarning
        All warnings about this group, with their categories, as its evaluation records them.
    lacking : str
        Labels that are missing altogether, so that only bounds are known; empty if the group was evaluated.
    expected : mapping from str to float
        "positive" and "negative" rows expected among those without a label, where they count as labels do: with
        reference rows, given probabilities or delayed labels.
    """

    key: Key
    counts: Mapping[str, int]
    metrics: Mapping[str, MetricSummary]
    notes: tuple[str, ...] = ()
    warnings: tuple[RecordedWarning, ...] = ()
    lacking: str = ""
    expected: Mapping[str, float] = field(default_factory=dict)

    @property
    def too_small(self) -> str:
        """Why the group is too small to judge: fewer than 5 positives or negatives; empty if it is not."""
        return self.shortage(MIN_LABELS)

    def shortage(self, min_labels: int) -> str:
        """Return which labels are fewer than `min_labels`; empty if none are."""
        if self.lacking:
            return self.lacking
        kind = "labeled and expected" if self.expected else "labeled"
        numbers = {name: self.counts[name] + self.expected.get(name, 0.0) for name in ("positive", "negative")}
        texts = [
            f"{number:.3g} {kind} {name}{'' if number == 1 else 's'}"
            for name, number in numbers.items()
            if number < min_labels
        ]
        return f"{' and '.join(texts)}, fewer than {min_labels}" if texts else ""


class MissingGroupError(KeyError):
    """A KeyError, as mappings raise: finding, rule and fix of an `InputError` about the argument `key`."""

    def __str__(self) -> str:
        return str(InputError("key", *self.args))


def format_cell(summary: MetricSummary) -> str:
    """Format a metric of a group for a table."""
    if summary.method == "bounds" and not np.isnan(summary.lowest_possible):
        return f"{number_text(summary.lowest_possible, 2)} to {number_text(summary.highest_possible, 2)} at all"
    if np.isnan(summary.mean):
        return "undefined"
    decimals = decimals_for(summary.high - summary.low)
    mean, low, high = (number_text(x, decimals) for x in (summary.mean, summary.low, summary.high))
    return f"{mean} ({low} to {high})"


def key_text(value: Any, period: str | None = None) -> str:
    r"""Format the value of a grouping column in one printable line, with dates as short as the period allows.

    Examples
    --------
    >>> import datetime as dt
    >>> from darkmetrics.monitoring.groups import key_text
    >>> day = dt.date(2026, 4, 1)
    >>> [key_text(day, period) for period in ("day", "month", "quarter", "year")]
    ['2026-04-01', '2026-04', '2026-Q2', '2026']
    >>> key_text("two\nlines"), key_text(None), key_text("(missing)")
    ('two\\nlines', '(missing)', "'(missing)'")
    """
    if value is None:
        return "(missing)"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "minutes") if period in (None, "hour") else _format_period(value, period)
    if isinstance(value, dt.date):
        return _format_period(value, period)
    # Text that looks like a missing value is marked as text.
    return short(repr(value) if value == "(missing)" else value)


def number_duplicates(texts: Sequence[str]) -> list[str]:
    """Return the texts, with a number added to those that occurred before.

    Examples
    --------
    >>> from darkmetrics.monitoring.groups import number_duplicates
    >>> number_duplicates(["web", "app", "web"])
    ['web', 'app', 'web (2)']
    """
    unique: dict[str, None] = {}
    for text in texts:
        number, name = 1, text
        while name in unique:
            number += 1
            name = f"{text} ({number})"
        unique[name] = None
    return list(unique)


def _format_period(day: dt.date, period: str | None) -> str:
    if period == "year":
        return f"{day.year:04}"
    if period == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}-{day.month:02}" if period == "month" else f"{day.year:04}-{day.month:02}-{day.day:02}"


def group_texts(names: Sequence[str], key: Sequence[Any], time: str | None, period: str | None) -> list[str]:
    """Format the value of each grouping column, with periods as short as possible."""
    return [key_text(value, period if name == time else None) for name, value in zip(names, key, strict=True)]


def group_text(names: Sequence[str], key: Sequence[Any], time: str | None, period: str | None) -> str:
    """Format a key as one text."""
    return ", ".join(group_texts(names, key, time, period))


def describe_key(names: Sequence[str], key: Sequence[Any]) -> str:
    """Format a key for a message: country='DE', month=2026-04-01."""
    texts = [f"'{key_text(value)}'" if isinstance(value, str) else key_text(value) for value in key]
    return ", ".join(f"{key_text(name)}={text}" for name, text in zip(names, texts, strict=True))


def plain_value(value: Any) -> Any:
    """Convert a value of a key for JSON: dates in ISO form, unknown types as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)


def sort_keys(keys: Sequence[Sequence[Any]]) -> list[int]:
    """Return the indices of the keys in increasing order, missing values last."""

    def rank(key: Sequence[Any], text: bool) -> list[tuple[bool, Any]]:
        return [(value is None, "" if value is None else str(value) if text else value) for value in key]

    try:
        return sorted(range(len(keys)), key=lambda i: rank(keys[i], text=False))
    except TypeError:  # several types in one column
        return sorted(range(len(keys)), key=lambda i: rank(keys[i], text=True))
