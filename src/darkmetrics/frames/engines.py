"""What is done to a frame in its own engine, because narwhals has no word for it."""

from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics._kernels.arrays import IntArray
from darkmetrics.exceptions import InputError
from darkmetrics.files.readers import POLARS_PATTERN
from darkmetrics.frames.calendar import period_number


def addressable(frame: Any) -> tuple[Any, list[str]]:
    """The frame with names that a query can hold, and the user's names in the same order."""
    kind, names = frame.implementation, frame.collect_schema().names()
    if is_spark(frame):
        # It reads a dot as "the field of" and takes two names for one that differ in case; places are never ambiguous.
        native = frame.to_native()
        names = list(native.columns)
        return nw.from_native(native.toDF(*(f"c{place}" for place in range(len(names))))), names
    if kind.is_polars() and any(map(POLARS_PATTERN.fullmatch, names)):
        # Polars takes such a name for all the columns that it matches.
        return nw.from_native(frame.to_native().rename({name: f"c{place}" for place, name in enumerate(names)})), names
    if kind.is_duckdb() and "*" in names:
        # DuckDB takes this name for all columns, unless it stands in quotes.
        parts = [f"{quoted(name)} AS c{place}" for place, name in enumerate(names)]
        return nw.from_native(frame.to_native().project(", ".join(parts))), names
    return frame, names


def quoted(name: str) -> str:
    """Return the name of a column as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def is_spark(frame: Any) -> bool:
    """Whether the frame is one of Spark, whose times all have the zone of the session, meant or not."""
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect())


def check_levels(native: Any) -> None:
    """Columns of pandas may be named by several words each, and then no word names one."""
    if nw.dependencies.is_pandas_dataframe(native) and native.columns.nlevels > 1:
        raise InputError(
            "data",
            "its columns have names of several levels",
            "",
            "Flatten them first, for example with frame.columns = frame.columns.map('_'.join).",
        )


def on_wall_clock(frame: Any, column: str) -> tuple[Any, Any]:
    """The frame with times of a zone as its clocks show them, and their type: narwhals reads not all names of zones."""
    if _has_dtypes(frame):
        native = frame.to_native()
        if getattr(native.dtypes[column], "tz", None) is not None:
            native = native.assign(**{column: native[column].dt.tz_localize(None)})
            frame = nw.from_native(native)
    return frame, frame.collect_schema()[column]


def in_utc(frame: Any, column: str) -> tuple[Any, Any]:
    """The frame with times of a zone that narwhals cannot name as times of UTC, and their type."""
    if _has_dtypes(frame):
        native = frame.to_native()
        if getattr(native.dtypes[column], "tz", None) is not None:
            frame = nw.from_native(native.assign(**{column: native[column].dt.tz_convert("UTC")}))
    return frame, frame.collect_schema()[column]


def zone_of(frame: Any, column: str) -> str | None:
    """The time zone of a column, also where narwhals cannot name it; None if there is none."""
    zone = getattr(frame.collect_schema()[column], "time_zone", None)
    if zone is not None and is_spark(frame):  # narwhals keeps what the session had first, which may have been changed
        return str(frame.to_native().sparkSession.conf.get("spark.sql.session.timeZone"))
    if zone is None and _has_dtypes(frame):
        zone = getattr(frame.to_native().dtypes[column], "tz", None)
    return None if zone is None else str(zone)


def has_clocks(frame: Any) -> bool:
    """Whether each column of times has a zone of its own; other engines have one for all."""
    return bool(frame.implementation.is_polars() or frame.implementation.is_pyarrow() or _has_dtypes(frame))


def with_microseconds(frame: Any, column: str) -> Any:
    """The frame with dates or datetimes as microseconds since 1970, in floats; of a zone, those of the instant."""
    kind, time, dtype = frame.implementation, nw.col(column), frame.collect_schema()[column]
    if kind.is_duckdb():
        native = frame.to_native()
        time_in_sql = f"epoch_us({quoted(column)})::DOUBLE AS {quoted(column)}"
        parts = [time_in_sql if name == column else quoted(name) for name in native.columns]
        return nw.from_native(native.project(", ".join(parts)))
    if has_clocks(frame):
        return frame.with_columns(time.dt.timestamp("us").cast(nw.Float64))
    if is_spark(frame) and getattr(dtype, "time_zone", None) is not None:
        native = frame.to_native()
        expressions = [
            f"double(unix_micros({name})) AS {name}" if name == column else f"`{name}`" for name in native.columns
        ]
        return nw.from_native(native.selectExpr(*expressions))
    # Fields of the clock, which every engine has: right for dates, and for times without a zone.
    days = period_number(time, "day") - 719_163.0
    seconds: Any = nw.lit(0.0)
    if dtype != nw.Date:
        hours = time.dt.hour().cast(nw.Float64)
        minutes = hours * 60.0 + time.dt.minute().cast(nw.Float64)
        seconds = minutes * 60e6 + time.dt.second().cast(nw.Float64) * 1e6 + time.dt.microsecond().cast(nw.Float64)
    return frame.with_columns((days * 86_400e6 + seconds).alias(column))


def looks_up(frame: Any) -> bool:
    """Whether the engine finds an entry of a short table by its place, which is quicker than to compute it."""
    return bool(frame.implementation.is_duckdb() or frame.implementation.is_polars())


def looked_up(frame: Any, column: str, table: IntArray) -> Any:
    """The frame with entries of a table instead of their places in it, which are whole floats; null stays null."""
    native = frame.to_native()
    if frame.implementation.is_polars():
        import polars as pl

        entries = pl.lit(pl.Series(table, dtype=pl.Int32))
        return nw.from_native(native.with_columns(entries.gather(pl.col(column).cast(pl.Int32)).alias(column)))
    entry = f"({table.tolist()})[{quoted(column)}::INTEGER + 1] AS {quoted(column)}"
    parts = [entry if name == column else quoted(name) for name in native.columns]
    return nw.from_native(native.project(", ".join(parts)))


def with_plain_floats(frame: Any, column: str) -> Any:
    """The frame with a column of numpy's floats, where Dask would merge partial groups by floats of Arrow.

    Of those, null and NaN are different keys that it takes for one label, and so are 0.0 and -0.0.
    """
    if not frame.implementation.is_dask():
        return frame
    native = frame.to_native()
    return nw.from_native(native.assign(**{column: native[column].astype("float64") + 0.0}))


def type_name(frame: Any, column: str, dtype: Any) -> str:
    """The type of a column as its engine calls it, where narwhals has no name for it."""
    if dtype != nw.Unknown:
        return str(dtype)
    kind = frame.implementation
    if _has_dtypes(frame):
        return str(frame.to_native().dtypes[column])
    if kind.is_pyspark() or kind.is_pyspark_connect():
        return str(frame.to_native().schema[column].dataType.simpleString())
    return str(dtype)


def _has_dtypes(frame: Any) -> bool:
    return bool(frame.implementation.is_pandas_like() or frame.implementation.is_dask())
