"""Columns of points in time as arrays: dates, datetimes, or numbers in a unit of the user's."""

import datetime as dt
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import is_missing, number_column, refuse_shape, to_numpy
from darkmetrics.frames.calendar import iso_time, without_zone

_DAY = np.timedelta64(1, "D")
_RULE = "Give dates, datetimes or numbers."


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
                raise InputError.about(name, "some times have a time zone and some have none. Give all or none a zone.")
            zoned = zones == {True}
            plain = [without_zone(item) if isinstance(item, dt.datetime) else item for item in read]
            array = np.array(plain, dtype="datetime64[us]")
        elif any(isinstance(item, (str, dt.date)) for item in held):
            odd = next(item for item in held if not isinstance(item, dt.date))
            raise InputError.about(name, f"cannot read {str(odd)!r} as a date. {_RULE}")
    if array.dtype.kind == "M":
        number = (array - np.datetime64(0, "D")) / _DAY
        number = np.where(missing | np.isnat(array), np.nan, number)
    elif array.dtype.kind == "m":
        raise InputError.about(name, f"expected points in time, got spans of time. {_RULE}")
    else:
        number = number_column(values, name)
    there = number[~np.isnan(number)]
    return Times(number, array.dtype.kind == "M", bool(np.all(there == np.floor(there))), zoned)


def _read(item: Any) -> Any:
    if isinstance(item, np.datetime64):
        return item.astype("datetime64[us]").item()
    return (iso_time(item) or item) if isinstance(item, str) else item
