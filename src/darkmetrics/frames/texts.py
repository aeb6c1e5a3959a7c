"""Columns that were read from text as a table in memory, in types that an engine compares."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from darkmetrics.exceptions import InputError
from darkmetrics.files import MISSING_WORDS, DataFile, read_together
from darkmetrics.frames.arrays import label_column, meaning_missing, number_column, to_native_frame
from darkmetrics.frames.roles import TIMES, ColumnNames, title

_ENGINES = ("polars", "pyarrow", "pandas")


def read_text(
    files: Sequence[str],
    columns: ColumnNames,
    by: Sequence[str] = (),
    time: str | None = None,
    pos_label: Any = 1,
    missing_label: Any = None,
) -> Any:
    """The named columns of CSV files as a frame; words for "no label" are missing labels.

    Where the user speaks of the labels as text ("1", and not 1), they stay text.
    """
    label = columns.label
    spoken = any(isinstance(one, str) for one in (pos_label, *meaning_missing(missing_label)))
    classes = {label: MISSING_WORDS - {str(pos_label)}}
    if columns.decision is not None:
        classes[columns.decision] = frozenset()
    needed = [*columns.given().values(), *by, *([] if time is None else [time])]
    read = read_together(
        [DataFile.of_path(Path(file)) for file in files],
        list(dict.fromkeys(needed)),
        classes,
        as_text=[label] if spoken else [],
    )
    return table_of(read, columns.given(), by, time)


def table_of(columns: Mapping[str, Any], parts: Mapping[str, str], by: Collection[str], time: str | None) -> Any:
    """A frame of the engine that the columns came from, or of any; `parts` are names of columns by part.

    Raises InputError for what cannot play its part: a score that is no number, a time that is no date.
    """
    table: dict[str, Any] = {}
    for part, name in parts.items():
        if part in ("label", "decision"):
            table[name] = _values(columns[name], title(part, name))
        elif part == "stratum":
            table[name] = _keys(columns[name])
        elif part in TIMES:
            table[name] = _moments(columns[name], title(part, name))
        else:
            table[name] = number_column(columns[name], title(part, name))
    for name in [*by, *([] if time is None else [time])]:
        if name not in table:
            table[name] = _dates(columns[name], title("time", name)) if name == time else _keys(columns[name])
    engines = [type(column).__module__.partition(".")[0] for column in columns.values()]
    try:
        return to_native_frame(table, next((engine for engine in _ENGINES if engine in engines), None))
    except InputError:
        raise InputError(
            "data",
            f"{', '.join(_ENGINES)} are not installed",
            "Counting rows of text needs one of them.",
            "pip install 'darkmetrics[files]'.",
        ) from None


def _values(column: Any, name: str) -> Any:
    """Labels or decisions that an engine takes for a column: numbers, or one kind of values with None for missing."""
    values, missing = label_column(column, name)
    if values.dtype.kind in "fiu":
        return np.where(missing, np.nan, values.astype(np.float64))
    return [None if gone else value for gone, value in zip(missing.tolist(), values.tolist(), strict=True)]


def _keys(column: Any) -> Any:
    """Values that tell groups apart: whole numbers as such, and as text what is of several kinds."""
    if not isinstance(column, list) and "float" not in str(getattr(column, "dtype", "")).lower():
        return column  # an engine has found their type
    values = column if isinstance(column, list) else list(column)
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float, bool}:
        whole = all(value is None or float(value).is_integer() for value in values)
        return [None if value is None else int(value) if whole else float(value) for value in values]
    return [None if value is None else str(value) for value in values] if kinds != {str} else values


def _dates(column: Any, name: str) -> Any:
    """Dates and times that a file has as text, in ISO form; of a time zone they are taken as written."""
    times = _times(column, name, ", or give the column as by=")
    return [time and time.replace(tzinfo=None) for time in times] if isinstance(times, list) else times


def _moments(column: Any, name: str) -> Any:
    """The same as points in time: of a time zone, which all of them have or none, those of UTC."""
    times = _times(column, name)
    if not isinstance(times, list):
        return times
    zoned = {time.tzinfo is not None: row for row, time in enumerate(times) if time is not None}
    if len(zoned) == 2:
        raise InputError(
            name,
            f"{column[zoned[True]]!r} at row {zoned[True]} has a time zone and {column[zoned[False]]!r} at row "
            f"{zoned[False]} has none",
            "",
            "Pass all or none a zone.",
        )
    return [time.astimezone(dt.UTC) if time is not None and True in zoned else time for time in times]


def _times(column: Any, name: str, advice: str = "") -> Any:
    """Dates and times in ISO form; columns for which an engine has found a type are left as they are."""
    if not isinstance(column, list) and "float" not in str(getattr(column, "dtype", "")).lower():
        return column
    known: dict[Any, dt.datetime | None] = {None: None}
    for row, value in enumerate(column):
        if value not in known:
            try:
                known[value] = dt.datetime.fromisoformat(value.strip())
            except (AttributeError, ValueError):
                raise InputError(
                    name,
                    f"cannot read {value!r} at row {row} as a date",
                    "",
                    f"Write dates like 2026-03-09 or 2026-03-09T14:30{advice}.",
                ) from None
    return [known[value] for value in column]
