"""Which groups are periods, what their keys may be written like, and whether labels of the newest one come late."""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from darkmetrics.monitoring.group_names import key_text
from darkmetrics.monitoring.summary import GroupSummary, Key

# The newest period lacks this much more of its labels than earlier ones: they come late.
_LATE = 0.1
# Text that begins like a date: 2026-04, 2026-04-01 12:00, 2026-Q2, 2026-W17.
_DATED = re.compile(r"\d{4}(-\d\d|-?[QW]\d)")


def period_name(names: Sequence[str], period: str | None, keys: Iterable[Key]) -> str | None:
    """The column that is time: the one that was given as such, or a single one that holds dates; None if none is."""
    if period is not None or len(names) != 1:
        return period
    values = [key[0] for key in keys if key[0] is not None]
    return names[0] if values and all(map(_is_dated, values)) else None


def _is_dated(value: Any) -> bool:
    return isinstance(value, dt.date) or (isinstance(value, str) and _DATED.match(value) is not None)


def late_labels(
    names: Sequence[str],
    period: str | None,
    every: str | None,
    groups: Mapping[Key, GroupSummary],
    *,
    told: bool = False,
) -> list[str]:
    """A sentence where the newest period lacks far more of its labels than earlier ones; `told`: the model knows."""
    time = period_name(names, period, groups)
    if time is None:
        return []
    place = names.index(time)
    counts: dict[Any, list[int]] = {}
    for key, group in groups.items():
        if key[place] is not None:
            sums = counts.setdefault(key[place], [0, 0])
            sums[0] += group.counts["missing"]
            sums[1] += group.counts["rows"]
    if len(counts) < 3:
        return []
    try:
        last = max(counts)
    except TypeError:  # values of several types have no order
        return []
    shares = {when: missing / rows for when, (missing, rows) in counts.items()}
    newest, usual = shares.pop(last), median(shares.values())
    if newest - usual < _LATE:
        return []
    says = f"{key_text(last, every)} lacks {newest:.0%} of its labels, earlier periods {usual:.0%} (median)"
    if told:
        return [f"{says}: they are still to come, which its intervals allow for."]
    return [f"{says}: labels come late. Its numbers will move as they arrive; evaluate it again then."]


def as_known(value: Any, known: Iterable[Any], every: str | None) -> Any:
    """The date among `known` that a text, a time or a Timestamp stands for; the value itself if there is none."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, (str, dt.date)):
        return value
    wanted = moment_of(value)
    for one in known:
        if isinstance(one, dt.date) and (
            key_text(one, every) == value or (wanted is not None and moment_of(one) == wanted)
        ):
            return one
    return value


def moment_of(value: str | dt.date) -> dt.datetime | None:
    """A date as the time at which it begins, a month as its first day."""
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    try:
        return dt.datetime.fromisoformat(f"{value}-01" if re.fullmatch(r"\d{4}-\d\d", value) else value)
    except ValueError:
        return None
