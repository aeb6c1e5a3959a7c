"""Groups: what is kept of each, which is a few numbers per metric and not the laws, and how their keys are written.

Keys may hold anything: they become text that can be shown, and plain values for JSON.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._text import short
from darkmetrics.exceptions import RecordedWarning
from darkmetrics.tables import decimals_for, number_text

if TYPE_CHECKING:
    from darkmetrics.evaluation import Evaluation

Key = tuple[Any, ...]
# Numbers in the evaluations that are kept: of all groups together, and of groups that were evaluated again.
_MAX_KEPT, _MAX_KEPT_AGAIN = 2**24, 2**22
# A group with fewer labeled positives or negatives is too small to judge: its mechanism depends on a prior, and one
# label more or less moves its metrics by a fifth.
MIN_LABELS = 5


def is_small(evaluation: "Evaluation", n_groups: int) -> bool:
    """Return whether the evaluations of so many groups of this size can all be kept in memory."""
    return _count_numbers(evaluation) * n_groups <= _MAX_KEPT


def make_room(kept: "dict[Key, Evaluation]") -> None:
    """Drop the oldest evaluations until there is room for another."""
    while kept and sum(map(_count_numbers, kept.values())) > _MAX_KEPT_AGAIN:
        del kept[next(iter(kept))]


def _count_numbers(evaluation: "Evaluation") -> int:
    """Count the numbers in the posterior and the distributions of an evaluation."""
    arrays = (
        array for x in evaluation.distributions.values() for array in vars(x).values() if isinstance(array, np.ndarray)
    )
    on_rows = 0 if evaluation.on_rows is None else _count_numbers(evaluation.on_rows)
    return evaluation.posterior.probability.size + sum(array.size for array in arrays) + on_rows


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric in one group, in numbers; NaN where there is none.

    Attributes
    ----------
    mean, low, high : float
        Mean of the law and ends of its interval.
    labeled_only : float
        The metric on the labeled rows alone.
    lowest_possible, highest_possible : float
        What the metric can be at all, over all labelings of the missing rows.
    undefined : float
        Probability of a 0/0.
    method : str
        How the law was found; "bounds" where the labels do not suffice for one, and only what is possible holds.
    binning_error : float
        How far score buckets can have moved the metric: 0 where scores are exact or the metric counts decisions, NaN
        where it is not known.
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
    """One group in numbers.

    Attributes
    ----------
    key : tuple
        The value of each grouping column; None where it is null.
    counts : dict
        Counts: "rows", "labeled", "positive", "negative", "missing".
    metrics : mapping from metric name to MetricSummary
        The numbers.
    notes : tuple of str
        Warnings about this group.
    warnings : tuple of RecordedWarning
        The same with their categories, as the evaluation of the group keeps them.
    lacking : str
        Which labels are missing altogether, so that only bounds are known; empty if the group was evaluated.
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
        """Say which labels are fewer than `min_labels`; empty if none are."""
        if self.lacking:
            return self.lacking
        kind = "labeled and expected" if self.expected else "labeled"
        numbers = {name: self.counts[name] + self.expected.get(name, 0.0) for name in ("positive", "negative")}
        few = [
            f"{number:.3g} {kind} {name}{'' if number == 1 else 's'}"
            for name, number in numbers.items()
            if number < min_labels
        ]
        return f"{' and '.join(few)}, fewer than {min_labels}" if few else ""


def cell_text(one: MetricSummary) -> str:
    """What a table says of one metric in a group."""
    if one.method == "bounds" and not np.isnan(one.lowest_possible):
        return f"{number_text(one.lowest_possible, 2)} to {number_text(one.highest_possible, 2)} at all"
    if np.isnan(one.mean):
        return "undefined"
    decimals = decimals_for(one.high - one.low)
    mean, low, high = (number_text(x, decimals) for x in (one.mean, one.low, one.high))
    return f"{mean} ({low} to {high})"


def key_text(value: Any, period: str | None = None) -> str:
    r"""The value of a grouping column in one line, signs that cannot be shown written out, and dates short.

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
        return value.isoformat(" ", "minutes") if period in (None, "hour") else _period_text(value, period)
    if isinstance(value, dt.date):
        return _period_text(value, period)
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


def _period_text(day: dt.date, period: str | None) -> str:
    if period == "year":
        return f"{day.year:04}"
    if period == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}-{day.month:02}" if period == "month" else f"{day.year:04}-{day.month:02}-{day.day:02}"


def group_text(names: Sequence[str], key: Sequence[Any], time: str | None, period: str | None) -> str:
    """A group in words: its values, with periods as short as they can be."""
    return ", ".join(group_texts(names, key, time, period))


def group_texts(names: Sequence[str], key: Sequence[Any], time: str | None, period: str | None) -> list[str]:
    """The value of each column, as text."""
    return [key_text(value, period if name == time else None) for name, value in zip(names, key, strict=True)]


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
