"""Periods: the grouping column that is time, how periods may be written, and which periods alerts judge."""

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from darkmetrics import frames
from darkmetrics._text import number_from
from darkmetrics.constraints import check_value
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring.groups import GroupSummary, Key, key_text
from darkmetrics.wording import named, setting

# Labels are delayed if the newest period lacks this much more of its labels than earlier periods.
_DELAYED = 0.1
# Text that begins like a date: 2026-04, 2026-04-01 12:00, 2026-Q2, 2026-W17.
_DATE_LIKE = re.compile(r"\d{4}(-\d\d|-?[QW]\d)")
# A period as it is written ("2026-05", "2026-Q2"), a date in it, or a number where periods are numbers.
PeriodLike: TypeAlias = str | float | dt.date | np.datetime64


def time_name(names: Sequence[str], time: str | None, keys: Iterable[Key]) -> str | None:
    """Return the time column: the one that was passed, or a single column with dates; None if there is none."""
    if time is not None or len(names) != 1:
        return time
    values = [key[0] for key in keys if key[0] is not None]
    return names[0] if values and all(map(_is_date_like, values)) else None


def _is_date_like(value: Any) -> bool:
    return isinstance(value, dt.date) or (isinstance(value, str) and _DATE_LIKE.match(value) is not None)


def describe_delay(
    names: Sequence[str], time: str | None, period: str | None, groups: Mapping[Key, GroupSummary], *, modeled: bool
) -> list[str]:
    """Return a sentence if the newest period lacks far more labels than earlier ones; `modeled`: by the model."""
    time = time_name(names, time, groups)
    if time is None:
        return []
    column = names.index(time)
    counts: dict[Any, list[int]] = {}
    for key, group in groups.items():
        if key[column] is not None:
            sums = counts.setdefault(key[column], [0, 0])
            sums[0] += group.counts["missing"]
            sums[1] += group.counts["rows"]
    if len(counts) < 3:
        return []
    try:
        last = max(counts)
    except TypeError:  # values of several types have no order
        return []
    fractions = {value: missing / rows for value, (missing, rows) in counts.items()}
    newest, usual = fractions.pop(last), median(fractions.values())
    if newest - usual < _DELAYED:
        return []
    text = f"{key_text(last, period)} lacks {newest:.0%} of its labels, earlier periods {usual:.0%} (median)"
    if modeled:
        return [f"{text}: they are still to come, which its intervals allow for."]
    return [f"{text}: labels come late. Its numbers will move as they arrive; evaluate it again then."]


def match_period(value: Any, periods: Iterable[Any], period: str | None) -> Any:
    """Return the date among `periods` that a text or a time stands for; the value itself if there is none."""
    value = _convert_datetime64(value)
    if not isinstance(value, (str, dt.date)):
        return value
    begin = begin_of(value)
    for date in periods:
        if isinstance(date, dt.date) and (
            key_text(date, period) == value or (begin is not None and begin_of(date) == begin)
        ):
            return date
    return value


def _convert_datetime64(value: Any) -> Any:
    return value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value


def begin_of(value: str | dt.date) -> dt.datetime | None:
    """Return the time at which a date or month begins; None if a text is neither."""
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    try:
        return dt.datetime.fromisoformat(f"{value}-01" if re.fullmatch(r"\d{4}-\d\d", value) else value)
    except ValueError:
        return None


class Window(NamedTuple):
    """The periods that are judged: the column of the period in keys, and the first period."""

    column: int
    first: Any

    def contains(self, key: Key) -> bool:
        """Return whether a group is judged; a group without a date is not."""
        return key[self.column] is not None and bool(key[self.column] >= self.first)


def check_window(since: Any, last: Any) -> None:
    """Check both arguments as far as possible without the table."""
    if since is not None and last is not None:
        finding = f"{named('since')} sets already from which period on alerts look"
        raise InputError("last_periods", finding, "", "Pass one of the two.")
    if since is not None and not frames.is_container(type(since)) and frames.is_missing(since):
        fix = "Give one as it is written, such as '2026-05', or a date in it."
        raise InputError("since", f"{since!r} is no period", "", fix)
    if last is not None:
        check_value("last_periods", last)


def window_from(
    since: Any, last: int | None, names: Sequence[str], time: str | None, period: str | None, keys: Collection[Key]
) -> Window | None:
    """Return the window of the periods from `since` on, or of the `last` periods; None for all groups."""
    if since is None and last is None:
        return None
    argument = "since" if last is None else "last_periods"
    time = time_name(names, time, keys)
    if time is None:
        fix = f"Name a column of dates with {setting('time')}, which {setting('period')} may cut."
        raise InputError(argument, f"there are no periods, only {' and '.join(map(repr, names))}", "", fix)
    column = names.index(time)
    try:
        periods = sorted({key[column] for key in keys} - {None})
    except TypeError:
        raise InputError(argument, f"the values of {time!r} are of several types and have no order") from None
    if not periods:
        raise InputError(argument, f"no row has a value of {time!r}")
    if last is not None:
        return Window(column, periods[-min(last, len(periods))])
    first = next((value for value in periods if _contains_or_follows(value, since, period)), None)
    if first is None:
        raise InputError("since", f"{since!r} is after the newest period, {key_text(periods[-1], period)}")
    return Window(column, first)


def _contains_or_follows(value: Any, since: Any, period: str | None) -> bool:
    """Return whether a period contains `since` or comes after it."""
    since = _convert_datetime64(since)
    if isinstance(value, dt.date):
        first = _begin_of_period(since, period)
        begin = begin_of(value)
        if first is not None and begin is not None:
            try:
                return begin >= first
            except TypeError:  # one of the two has a time zone
                pass
    elif isinstance(value, str):
        text = since.isoformat() if isinstance(since, dt.date) else since
        if isinstance(text, str) and _has_same_form(value, text):
            return value >= text[: len(value)]
    else:
        number = number_from(since) if isinstance(since, str) else since
        try:
            return bool(value >= number)
        except TypeError:
            pass
    raise InputError("since", f"{since!r} cannot be compared with the periods, such as {key_text(value, period)!r}")


def _begin_of_period(since: Any, period: str | None) -> dt.datetime | None:
    """Return when the period of a date begins; a year or a quarter stands for its first day."""
    if isinstance(since, str):
        since = since.strip()
        match = re.fullmatch(r"(\d{4})(?:-?[Qq]([1-4]))?", since)
        if match and int(match[1]):
            since = dt.date(int(match[1]), 3 * int(match[2] or 1) - 2, 1)
    date = begin_of(since) if isinstance(since, (str, dt.date)) else None
    if date is None or period is None:
        return date
    if period == "hour":
        return date.replace(minute=0, second=0, microsecond=0, tzinfo=None)
    day = dt.datetime(date.year, date.month, date.day)
    if period == "week":
        return day - dt.timedelta(days=day.weekday())
    month = {"year": 1, "quarter": date.month - (date.month - 1) % 3}.get(period, date.month)
    return day if period == "day" else dt.datetime(date.year, month, 1)


def _has_same_form(first: str, second: str) -> bool:
    """Return whether two texts have digits at the same positions, as far as the shorter text reaches."""
    forms = [re.sub(r"\d", "0", text) for text in (first, second)]
    length = min(map(len, forms))
    return length > 0 and forms[0][:length] == forms[1][:length]
