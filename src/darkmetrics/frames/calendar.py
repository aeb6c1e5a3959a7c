"""Calendar periods as whole numbers, from parts of a date that every engine can take."""

import datetime as dt
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics._vocabulary import PERIODS
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.wording import setting


def check_period(time: str | None, period: str | None) -> None:
    """`time` and `period` come together, and `period` is one of PERIODS."""
    if time is None and period is not None:
        raise InputError("period", f"{period!r}, but no time column is named", "", f"Pass {setting('time')}.")
    if time is not None:
        if period is None:
            raise InputError("period", "missing", "", f"Pass how to cut {time!r}: {', '.join(map(repr, PERIODS))}.")
        if period not in PERIODS:
            raise unknown_name("period", "period", str(period), PERIODS)


def check_time_type(dtype: Any, called: str, period: str, name: str) -> None:
    """Only dates and datetimes have periods, and only datetimes have hours."""
    check_dates(dtype, called, "periods", name)
    if period == "hour" and dtype == nw.Date:
        raise InputError(
            name,
            "has dates without a time, which have no hours",
            "",
            f"Set {setting('period', 'day')} or longer.",
        )


def check_dates(dtype: Any, called: str, what: str, name: str) -> None:
    """A column has dates or datetimes; `what` is what it is needed for."""
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        raise InputError(
            name,
            f"has text, and {what} need dates",
            "",
            "Cast it first, for example with pd.to_datetime(...), pl.col(...).str.to_date() or CAST(... AS DATE).",
        )
    if dtype not in (nw.Date, nw.Datetime):
        raise InputError(name, f"has type {called}", f"{what.capitalize()} need dates or datetimes.", "Cast it first.")


def period_number(time: nw.Expr, period: str) -> nw.Expr:
    """Which period a time lies in, counted from the year 1: equal for times of one period, rising with time.

    Computed from calendar fields rather than by truncating, since engines disagree about the type of a truncated time
    and about the day on which weeks begin. A time zone is that of the column: the fields are those of its clock.
    """
    year = time.dt.year().cast(nw.Float64)
    if period == "year":
        return year
    if period in ("month", "quarter"):
        months = year * 12.0 + time.dt.month().cast(nw.Float64) - 1.0
        return months if period == "month" else _whole(months / 3.0)
    past = year - 1.0
    leaps = _whole(past / 4.0) - _whole(past / 100.0) + _whole(past / 400.0)
    day = past * 365.0 + leaps + time.dt.ordinal_day().cast(nw.Float64)
    if period == "week":
        return _whole((day - 1.0) / 7.0)  # day 1 was a Monday
    return day if period == "day" else day * 24.0 + time.dt.hour().cast(nw.Float64)


def period_start(number: float, period: str) -> dt.date | dt.datetime:
    """The first day of a period, or its hour."""
    n = int(number)
    if period == "year":
        return dt.date(n, 1, 1)
    if period == "quarter":
        return dt.date(n // 4, n % 4 * 3 + 1, 1)
    if period == "month":
        return dt.date(n // 12, n % 12 + 1, 1)
    if period == "hour":
        return dt.datetime.combine(dt.date.fromordinal(n // 24), dt.time(n % 24))
    return dt.date.fromordinal(7 * n + 1 if period == "week" else n)


def _whole(number: nw.Expr) -> nw.Expr:
    return number.floor().cast(nw.Float64)


def iso_time(text: str) -> dt.date | None:
    """The date or datetime that a text is, as ISO 8601 has it; None if it is none."""
    for kind in (dt.date, dt.datetime):
        try:
            return kind.fromisoformat(text.strip())
        except ValueError:
            continue
    return None


def without_zone(time: dt.datetime) -> dt.datetime:
    """The time in UTC, if it has a zone, and without one."""
    return time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)
