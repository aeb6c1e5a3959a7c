"""Groups: what is kept of each, which is a few numbers per metric and not the laws, and how their keys are written.

Keys may hold anything: they become text that can be shown, and plain values for JSON.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._text import short
from darkmetrics.exceptions import Warned
from darkmetrics.tables import decimals_for, number_text

if TYPE_CHECKING:
    from darkmetrics.evaluation import Evaluation

Key = tuple[Any, ...]
# Numbers in the evaluations that are kept: of all groups together, and of groups that were evaluated again.
_MAX_KEPT, _MAX_KEPT_AGAIN = 2**24, 2**22


def is_small(evaluation: "Evaluation", n_groups: int) -> bool:
    """Return whether the evaluations of so many groups of this size can all be kept in memory."""
    return _count_numbers(evaluation) * n_groups <= _MAX_KEPT


def make_room(kept: "dict[Key, Evaluation]") -> None:
    """Drop the oldest evaluations until there is room for another."""
    while kept and sum(map(_count_numbers, kept.values())) > _MAX_KEPT_AGAIN:
        del kept[next(iter(kept))]


def _count_numbers(evaluation: "Evaluation") -> int:
    """Count the numbers in the posterior and the distributions of an evaluation."""
    arrays = (array for x in evaluation.laws.values() for array in vars(x).values() if isinstance(array, np.ndarray))
    on_rows = 0 if evaluation.on_rows is None else _count_numbers(evaluation.on_rows)
    return evaluation.nodes.probability.size + sum(array.size for array in arrays) + on_rows


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric in one group, in numbers; NaN where there is none.

    Attributes
    ----------
    mean, low, high : float
        Mean of the law and ends of its interval.
    labelled_only : float
        The metric on the labelled rows alone.
    lowest_possible, highest_possible : float
        What the metric can be at all, over all labelings of the missing rows.
    undefined : float
        Probability of a 0/0.
    method : str
        How the law was found; "bounds" where the labels do not suffice for one, and only what is possible holds.
    bucket_effect : float
        How far score buckets can have moved the metric: 0 where scores are exact or the metric counts decisions, NaN
        where it is not known.
    """

    mean: float
    low: float
    high: float
    labelled_only: float
    lowest_possible: float
    highest_possible: float
    undefined: float
    method: str
    bucket_effect: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One group in numbers.

    Attributes
    ----------
    key : tuple
        The value of each grouping column; None where it is null.
    counts : dict
        Counts: "rows", "labelled", "positive", "negative", "missing".
    metrics : mapping from metric name to MetricSummary
        The numbers.
    chance_missed : mapping from metric name to float
        Probability that the target is missed, for each metric that has one; NaN where the metric is never defined or
        the group has no law.
    too_small : str
        Why the group says too little to take part in the alerts; empty if it does take part.
    notes : tuple of str
        Warnings about this group.
    warnings : tuple of Warned
        The same with their categories, as the evaluation of the group keeps them.
    """

    key: Key
    counts: Mapping[str, int]
    metrics: Mapping[str, MetricSummary]
    chance_missed: Mapping[str, float]
    too_small: str
    notes: tuple[str, ...]
    warnings: tuple[Warned, ...] = ()


def cell_text(one: MetricSummary) -> str:
    """What a table says of one metric in a group."""
    if one.method == "bounds" and not np.isnan(one.lowest_possible):
        return f"{number_text(one.lowest_possible, 2)} to {number_text(one.highest_possible, 2)} at all"
    if np.isnan(one.mean):
        return "undefined"
    decimals = decimals_for(one.high - one.low)
    mean, low, high = (number_text(x, decimals) for x in (one.mean, one.low, one.high))
    return f"{mean} ({low} to {high})"


def key_text(value: Any, every: str | None = None) -> str:
    r"""The value of a grouping column in one line, signs that cannot be shown written out, and dates short.

    Examples
    --------
    >>> import datetime as dt
    >>> from darkmetrics.monitoring.groups import key_text
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
    >>> from darkmetrics.monitoring.groups import told_apart
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
