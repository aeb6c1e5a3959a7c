"""Periods: which groups are some, how they may be written, whether labels come late, and which ones alerts look at."""

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from darkmetrics import frames
from darkmetrics._text import number_from
from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring.groups import GroupSummary, Key, key_text

# The newest period lacks this much more of its labels than earlier ones: they come late.
_LATE = 0.1
# Text that begins like a date: 2026-04, 2026-04-01 12:00, 2026-Q2, 2026-W17.
_DATED = re.compile(r"\d{4}(-\d\d|-?[QW]\d)")


def time_name(names: Sequence[str], time: str | None, keys: Iterable[Key]) -> str | None:
    """The column that is time: the one that was given as such, or a single one that holds dates; None if none is."""
    if time is not None or len(names) != 1:
        return time
    values = [key[0] for key in keys if key[0] is not None]
    return names[0] if values and all(map(_is_dated, values)) else None


def _is_dated(value: Any) -> bool:
    return isinstance(value, dt.date) or (isinstance(value, str) and _DATED.match(value) is not None)


def late_labels(
    names: Sequence[str],
    time: str | None,
    period: str | None,
    groups: Mapping[Key, GroupSummary],
    *,
    told: bool = False,
) -> list[str]:
    """A sentence where the newest period lacks far more of its labels than earlier ones; `told`: the model knows."""
    time = time_name(names, time, groups)
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
    says = f"{key_text(last, period)} lacks {newest:.0%} of its labels, earlier periods {usual:.0%} (median)"
    if told:
        return [f"{says}: they are still to come, which its intervals allow for."]
    return [f"{says}: labels come late. Its numbers will move as they arrive; evaluate it again then."]


def as_known(value: Any, known: Iterable[Any], period: str | None) -> Any:
    """The date among `known` that a text, a time or a Timestamp stands for; the value itself if there is none."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, (str, dt.date)):
        return value
    wanted = moment_of(value)
    for one in known:
        if isinstance(one, dt.date) and (
            key_text(one, period) == value or (wanted is not None and moment_of(one) == wanted)
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


# A period as it is written ("2026-05", "2026-Q2"), a date in it, or a number where periods are numbers.
PeriodLike: TypeAlias = str | float | dt.date | np.datetime64


class Watched(NamedTuple):
    """From which period on groups are looked at: the place of the period in keys, and the first one."""

    place: int
    first: Any

    def has(self, key: Key) -> bool:
        """Whether a group is looked at; one without a date is of no period."""
        return key[self.place] is not None and bool(key[self.place] >= self.first)


def check_asked(since: Any, last: Any) -> None:
    """What can be said against both before a table is read."""
    if since is not None and last is not None:
        raise InputError("last_periods: since says already from which period on alerts look. Pass one of the two.")
    if since is not None and not frames.is_container(type(since)) and frames.is_missing(since):
        raise InputError(
            f"since: {since!r} is no period. Give one as it is written, such as '2026-05', or a date in it."
        )
    if last is not None and (not is_whole(last) or last < 1):
        raise InputError(f"last_periods: {last!r}. It must be a whole number of periods, at least 1.")


def watched_from(
    since: Any, last: int | None, names: Sequence[str], time: str | None, period: str | None, keys: Collection[Key]
) -> Watched | None:
    """The periods from `since` on, or the `last` ones that there are; None for all groups."""
    if since is None and last is None:
        return None
    argument = "since" if last is None else "last_periods"
    time = time_name(names, time, keys)
    if time is None:
        raise InputError(
            f"{argument}: there are no periods, only {' and '.join(map(repr, names))}. Name a column of dates with "
            "time=, which period= may cut."
        )
    place = names.index(time)
    there = {key[place] for key in keys} - {None}
    try:
        periods = sorted(there)
    except TypeError:
        raise InputError(f"{argument}: the values of {time!r} are of several types and have no order.") from None
    if not periods:
        raise InputError(f"{argument}: no row has a value of {time!r}.")
    if last is not None:
        return Watched(place, periods[-min(last, len(periods))])
    first = next((one for one in periods if _reached(one, since, period)), None)
    if first is None:
        raise InputError(f"since: {since!r} is after the newest period, {key_text(periods[-1], period)}.")
    return Watched(place, first)


def _reached(one: Any, since: Any, period: str | None) -> bool:
    """Whether a period holds `since` or comes after it."""
    if isinstance(since, np.datetime64):
        since = since.astype("datetime64[us]").item()
    if isinstance(one, dt.date):
        wanted = _begin(since, period)
        begin = moment_of(one)
        if wanted is not None and begin is not None:
            try:
                return begin >= wanted
            except TypeError:  # one of the two has a time zone
                pass
    elif isinstance(one, str):
        text = since.isoformat() if isinstance(since, dt.date) else since
        if isinstance(text, str) and _alike(one, text):
            return one >= text[: len(one)]
    else:
        number = number_from(since) if isinstance(since, str) else since
        try:
            return bool(one >= number)
        except TypeError:
            pass
    raise InputError(f"since: {since!r} cannot be compared with the periods, such as {key_text(one, period)!r}.")


def _begin(since: Any, period: str | None) -> dt.datetime | None:
    """When the period begins that holds a date; a year or a quarter stands for its first day."""
    if isinstance(since, str):
        found = re.fullmatch(r"(\d{4})(?:-?[Qq]([1-4]))?", since.strip())
        if found:
            since = dt.date(int(found[1]), 3 * int(found[2] or 1) - 2, 1) if int(found[1]) else since
    when = moment_of(since.strip() if isinstance(since, str) else since) if isinstance(since, (str, dt.date)) else None
    if when is None or period is None:
        return when
    if period == "hour":
        return when.replace(minute=0, second=0, microsecond=0, tzinfo=None)
    day = dt.datetime(when.year, when.month, when.day)
    if period == "week":
        return day - dt.timedelta(days=day.weekday())
    month = {"year": 1, "quarter": when.month - (when.month - 1) % 3}.get(period, when.month)
    return day if period == "day" else dt.datetime(when.year, month, 1)


def _alike(one: str, other: str) -> bool:
    """Whether two texts are written in one way, as far as the shorter one goes: digits where the other has digits."""
    forms = [re.sub(r"\d", "0", text) for text in (one, other)]
    shorter = min(map(len, forms))
    return shorter > 0 and forms[0][:shorter] == forms[1][:shorter]
