"""A file as a table whose rows an engine counts: Parquet where it lies, anything else read first."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import darkmetrics as dm
from darkmetrics.cli.inputs import MISSING_WORDS, file_of, names_of
from darkmetrics.cli.options import MonitorOptions
from darkmetrics.cli.output import in_words
from darkmetrics.cli.rows import Rows
from darkmetrics.cli.scanning import can_be_scanned, files_of, scanned
from darkmetrics.cli.words import WordedError, worded
from darkmetrics.files import DataFile

_ENGINES = ("polars", "pyarrow", "pandas")


def load_table(options: MonitorOptions) -> Rows:
    """The table that the options name."""
    paths = [Path(name) for name in files_of(options.file)]
    with worded():
        file = file_of(str(paths[0]), options.input_format)
        names = names_of(file, options, {"pred": options.pred, "prob": options.prob})
        groups = dict.fromkeys(options.by or [], "by")
        groups |= {} if options.time is None else {options.time: "time"}
        if isinstance(file.source, Path) and can_be_scanned(file, paths):
            return scanned(file, paths, names, options, list(groups))
        if len(paths) > 1:
            raise WordedError(
                f"{options.file}: {len(paths):,} files. Several must be Parquet, for Polars or DuckDB to count."
            )
    return _read(file, options, names, groups)


def _read(file: DataFile, options: MonitorOptions, names: Mapping[str, str], groups: Mapping[str, str]) -> Rows:
    """Text and Arrow, read as the other commands read them and checked as they check them: errors name rows."""
    from darkmetrics import frames

    with worded():
        label = names["label"]
        wanted = [*names.values(), *groups]
        columns = file.read(wanted, {label: MISSING_WORDS - {options.pos_label}})
        rows = Rows.of_columns(file.name, columns, names, options)
    with in_words(names):
        dm.EvaluationSet(**rows.data(options.threshold))
        table: dict[str, Any] = {}
        for role, name in names.items():
            if role in ("label", "pred"):
                table[name] = _values(columns[name], name)
            else:
                table[name] = frames.number_column(columns[name], f"column {name!r} (--{role})")
    with worded():
        for name, role in groups.items():
            if name not in table:
                table[name] = _dates(columns[name], name) if role == "time" else _keys(columns[name])
        engines = [type(column).__module__.partition(".")[0] for column in columns.values()]
        frame = _frame(table, next((engine for engine in _ENGINES if engine in engines), None))
    return replace(rows, columns={}, frame=frame)


def _frame(columns: Mapping[str, Any], engine: str | None) -> Any:
    """A table of the engine that the columns came from, or of any."""
    from darkmetrics import frames

    try:
        return frames.to_native_frame(columns, engine)
    except dm.InputError:
        raise WordedError(
            f"monitor: needs one of {', '.join(_ENGINES)} to count rows, and none is installed."
        ) from None


def _values(column: Any, name: str) -> Any:
    """Labels or decisions that an engine takes for a column: numbers, or one kind of values with None for missing."""
    import numpy as np

    from darkmetrics import frames

    values, missing = frames.label_column(column, f"column {name!r}")
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
    if not isinstance(column, list) and "float" not in str(getattr(column, "dtype", "")).lower():
        return column
    values = []
    for row, value in enumerate(column):
        try:
            values.append(None if value is None else dt.datetime.fromisoformat(value).replace(tzinfo=None))
        except (TypeError, ValueError):
            raise WordedError(
                f"column {name!r} (--time): cannot read {value!r} at row {row} as a date. Write dates like "
                "2026-03-09 or 2026-03-09T14:30, or give the column as --by."
            ) from None
    return values
