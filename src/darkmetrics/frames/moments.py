"""Points in time: columns of dates and datetimes as arrays, or as numbers that queries compare; and the day asked of.

A moment is a number of microseconds since 1970, a whole one, as Float64: exact in every engine until the year 2255.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.constraints import shortened
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import is_missing, number_column, refuse_shape, to_numpy
from darkmetrics.frames.calendar import check_dates, iso_time, without_zone
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.engines import (
    has_clocks,
    in_utc,
    is_spark,
    on_wall_clock,
    type_name,
    with_microseconds,
    zone_of,
)

DAY = 86_400_000_000.0
_EPOCH = dt.datetime(1970, 1, 1)
_UTC = ("UTC", "Etc/UTC", "Z", "Zulu", "GMT", "+00:00")
# Those in which every moment is exact.
_YEARS = (1686, 2254)
_RULE = "Write a date, a datetime or text like '2026-03-09' or '2026-03-09T14:30'."


@dataclass(frozen=True)
class Moments:
    """How a column tells time: in dates or with the time of day, and in which zone, if in any."""

    dates: bool
    zone: str | None = None
    known: bool = True  # False: nothing but nulls, and no type
    local: bool = False  # moments are what the clocks of the zone show
    session: bool = False  # the zone is that of all times, so that one without a zone is meant by it, too

    @property
    def has_days(self) -> bool:
        """Whether midnight is the same for all its moments, so that those that are all at midnight are dates."""
        return self.local or self.zone is None or self.zone in _UTC

    def clock(self) -> dt.tzinfo | None:
        """The zone, if there is one; an offset such as +02:00 is one too."""
        if self.zone is None:
            return None
        try:
            return ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            pass
        try:
            return dt.datetime.fromisoformat(f"2000-01-01T00:00{self.zone.removeprefix('UTC')}").tzinfo
        except ValueError:  # one that has no name
            return dt.UTC

    def shown(self, moment: float) -> str:
        """A moment as the column would have it: a date, where it is no more than that."""
        time = _EPOCH + dt.timedelta(microseconds=moment)
        if self.dates or (self.has_days and moment % DAY == 0.0):
            return time.date().isoformat()
        if self.zone is not None and not self.local:
            time = time.replace(tzinfo=dt.UTC).astimezone(self.clock())
        return time.isoformat(timespec="auto")


def read_moments(frame: Any, part: str, dtype: Any, name: str) -> tuple[Any, Moments]:
    """The frame with a column of dates or datetimes as moments, and how it told them; what is neither is refused."""
    # Of objects that are all None narwhals says that they are text.
    if isinstance(frame, nw.DataFrame) and dtype in (nw.Object, nw.String):
        return _from_objects(frame, part, name)
    zone = zone_of(frame, part)
    if dtype == nw.Unknown:
        frame, dtype = in_utc(frame, part)
    # A column of nothing but nulls may have no type, or that of text; one of pandas' periods has values.
    if dtype in (nw.Unknown, nw.String) and not numbers(collected(frame.select(nw.col(part).count())), part)[0]:
        return frame.with_columns(nw.col(part).cast(nw.Float64)), Moments(dates=True, known=False)
    check_dates(dtype, type_name(frame, part, dtype), "ages", name)
    return with_microseconds(frame, part), Moments(dtype == nw.Date, zone, session=is_spark(frame))


def local_days(frame: Any, parts: Sequence[str]) -> tuple[Any, str | None]:
    """The frame with times as the clocks of their zone show them, where one of its columns has midnights alone.

    A day of the calendar is then meant, though it begins at another hour of UTC, and two of them may be 23 hours apart.
    Both columns have the same zone, and the engine one for each column; the zone is said if times were changed.
    """
    zones = {part: zone_of(frame, part) for part in parts}
    zone, *others = set(zones.values())
    if others and is_spark(frame) and all(frame.collect_schema()[part] in (nw.Date, nw.Datetime) for part in parts):
        # Dates, beside times that have the zone of the session: days by its clock.
        zoned = [part for part in parts if zones[part] is not None]
        return frame.with_columns(nw.col(*zoned).dt.replace_time_zone(None)), zones[zoned[0]]
    if others or zone is None or zone in _UTC or not has_clocks(frame):
        return frame, None
    local = frame
    for part in parts:
        local = on_wall_clock(local, part)[0].with_columns(nw.col(part).dt.replace_time_zone(None))
    times = {part: nw.col(part).dt for part in parts}
    # Zero for midnights alone, and null where there is no time.
    latest = {part: (t.hour() + t.minute() + t.second() + t.microsecond()).max() for part, t in times.items()}
    found = collected(local.select(**latest))
    return (local, zone) if any(numbers(found, part)[0] == 0.0 for part in parts) else (frame, None)


def _from_objects(frame: Any, part: str, name: str) -> tuple[Any, Moments]:
    """Python's own dates and datetimes in a column of pandas; of zones, each may have another."""
    items: list[Any] = [None if is_missing(item) else item for item in frame[part].to_list()]
    held = [item for item in items if item is not None]
    odd = next((item for item in held if not isinstance(item, dt.date)), None)
    if odd is not None:
        check_dates(nw.String() if isinstance(odd, str) else nw.Object(), type(odd).__name__, "ages", name)
    zoned = [getattr(item, "tzinfo", None) is not None for item in held]
    if any(zoned) and not all(zoned):
        with_zone, without = held[zoned.index(True)], held[zoned.index(False)]
        raise InputError(
            name,
            f"{with_zone.isoformat()} has a time zone and {without.isoformat()} has none",
            "",
            "Pass all or none a zone.",
        )
    if any(zoned):
        items = [None if item is None else without_zone(item) for item in items]
    numbers = np.array(items, dtype="datetime64[us]").astype(np.int64).astype(np.float64)
    numbers[[item is None for item in items]] = np.nan
    dates = not any(isinstance(item, dt.datetime) for item in held)
    column = nw.new_series(part, numbers, nw.Float64(), backend=frame.implementation)
    return frame.with_columns(column), Moments(dates, "UTC" if any(zoned) else None, known=bool(held))


def check_zones(titles: dict[str, str], moments: dict[str, Moments]) -> None:
    """Both columns have a time zone or both have none."""
    first, *others = [part for part, one in moments.items() if one.known] or [""]
    for other in others:
        if (moments[first].zone is None) != (moments[other].zone is None):
            raise InputError(
                titles[other],
                f"has {_zone(moments[other].zone)}, but {titles[first]} has {_zone(moments[first].zone)}",
                "Times with and without a zone cannot be compared.",
                "Pass both columns with a zone, or neither.",
            )


@dataclass(frozen=True)
class AsOf:
    """The point in time that is asked about: a whole day, up to its end, or a moment."""

    day: dt.date | None
    time: dt.datetime | None

    @classmethod
    def of(cls, given: Any) -> "AsOf":
        """What a user gives: a date, a datetime, either of NumPy's, or ISO text."""
        value = given
        if isinstance(value, np.datetime64):
            is_day = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
            value = value.astype("datetime64[D]" if is_day else "datetime64[us]").item()
        if isinstance(value, str):
            value = iso_time(value)
        if is_missing(value) or not isinstance(value, dt.date):
            raise InputError("as_of", f"cannot read {shortened(given)} as a date", _RULE)
        if not _YEARS[0] <= value.year <= _YEARS[1]:
            raise InputError(
                "as_of",
                value.isoformat(),
                f"It must lie in the years {_YEARS[0]} to {_YEARS[1]}.",
                "Pass the day on which the table was taken.",
            )
        return cls(None, value) if isinstance(value, dt.datetime) else cls(value, None)

    @property
    def date(self) -> dt.date:
        """The day, on the clock that it was given by."""
        if self.day is not None:
            return self.day
        assert self.time is not None
        return self.time.date()

    @property
    def given(self) -> dt.date:
        """The day or the moment, as it was given."""
        return self.date if self.time is None else self.time

    def last(self, scored: Moments) -> float:
        """The last moment that counts; of a day, on the clock of the column, the microsecond before it ends."""
        if self.day is not None:
            end = dt.datetime.combine(self.day, dt.time()) + dt.timedelta(days=1)
            return _moment(end.replace(tzinfo=None if scored.local else scored.clock())) - 1.0
        assert self.time is not None
        if self.time.tzinfo is None and scored.session:
            return _moment(self.time.replace(tzinfo=None if scored.local else scored.clock()))
        zone = None if self.time.tzinfo is None else str(self.time.tzinfo)
        if scored.known and (zone is None) != (scored.zone is None):
            advice = "a time zone, such as '2026-03-09T14:30+00:00'" if zone is None else "none"
            raise InputError(
                "as_of",
                f"{self.time.isoformat()} has {_zone(zone)}, but the columns have {_zone(scored.zone)}",
                "",
                f"Pass it {advice}, or a plain date.",
            )
        return _moment(self.time.astimezone(scored.clock()).replace(tzinfo=None) if scored.local else self.time)


def _moment(time: dt.datetime) -> float:
    return float((without_zone(time) - _EPOCH) // dt.timedelta(microseconds=1))


def _zone(zone: str | None) -> str:
    return "no time zone" if zone is None else f"the time zone {zone}"


_DAY = np.timedelta64(1, "D")
_COLUMN_RULE = "Give dates, datetimes or numbers."


class Times(NamedTuple):
    """Points in time, NaN where there is none: days since 1970, or numbers as they were given (`days` is False).

    `whole`: all of them are dates, or at midnight. `zoned`: they had time zones, and are in UTC.
    """

    number: FloatArray
    days: bool
    whole: bool
    zoned: bool = False

    def shown(self, number: float) -> str:
        """A point in time, as a text."""
        if not self.days:
            return f"{number:g}"
        time = dt.datetime(1970, 1, 1) + dt.timedelta(days=number)
        if number == np.floor(number):
            return time.date().isoformat()
        return time.isoformat(timespec="seconds")


def time_column(values: Any, name: str) -> Times:
    """A column of dates, datetimes or numbers; text is read if it is written as ISO 8601 has it."""
    array, missing = to_numpy(values, name)
    if array.ndim != 1:
        refuse_shape(array, name, "date")
    zoned = False
    if array.dtype.kind in "OU":
        read = [None if gap or is_missing(item) else _read(item) for item, gap in zip(array, missing, strict=True)]
        held = [item for item in read if item is not None]
        if held and all(isinstance(item, dt.date) for item in held):
            zones = {getattr(item, "tzinfo", None) is not None for item in held}
            if len(zones) > 1:
                raise InputError(name, "some times have a time zone and some have none", "", "Pass all or none a zone.")
            zoned = zones == {True}
            plain = [without_zone(item) if isinstance(item, dt.datetime) else item for item in read]
            array = np.array(plain, dtype="datetime64[us]")
        elif any(isinstance(item, (str, dt.date)) for item in held):
            odd = next(item for item in held if not isinstance(item, dt.date))
            raise InputError(name, f"cannot read {str(odd)!r} as a date", _COLUMN_RULE)
    if array.dtype.kind == "M":
        number = (array - np.datetime64(0, "D")) / _DAY
        number = np.where(missing | np.isnat(array), np.nan, number)
    elif array.dtype.kind == "m":
        raise InputError(name, "has spans of time", _COLUMN_RULE)
    else:
        number = number_column(values, name)
    there = number[~np.isnan(number)]
    return Times(number, array.dtype.kind == "M", bool(np.all(there == np.floor(there))), zoned)


def _read(item: Any) -> Any:
    if isinstance(item, np.datetime64):
        return item.astype("datetime64[us]").item()
    return (iso_time(item) or item) if isinstance(item, str) else item
