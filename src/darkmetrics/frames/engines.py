"""What is done to a frame in its own engine, because narwhals cannot address its names or read its types."""

from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics.exceptions import InputError


def addressable(frame: Any) -> tuple[Any, list[str]]:
    """The frame with names that a query can hold, and the user's names in the same order."""
    kind = frame.implementation
    if not (kind.is_pyspark() or kind.is_pyspark_connect()):
        return frame, frame.collect_schema().names()
    # Spark reads a dot as "the field of" and takes two names for one that differ in case; places are never ambiguous.
    native = frame.to_native()
    names = list(native.columns)
    return nw.from_native(native.toDF(*(f"c{place}" for place in range(len(names))))), names


def check_levels(native: Any) -> None:
    """Columns of pandas may be named by several words each, and then no word names one."""
    if nw.dependencies.is_pandas_dataframe(native) and native.columns.nlevels > 1:
        raise InputError(
            "frame: its columns have names of several levels. Flatten them first, for example with "
            "frame.columns = frame.columns.map('_'.join)."
        )


def on_wall_clock(frame: Any, column: str) -> tuple[Any, Any]:
    """The frame with times of a zone as its clocks show them, and their type: narwhals reads not all names of zones."""
    if _has_dtypes(frame):
        native = frame.to_native()
        if getattr(native.dtypes[column], "tz", None) is not None:
            native = native.assign(**{column: native[column].dt.tz_localize(None)})
            frame = nw.from_native(native)
    return frame, frame.collect_schema()[column]


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
