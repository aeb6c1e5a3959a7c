"""Answers of an engine as arrays: the only place where rows of a query reach this process."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import is_missing, number_column, plain_values


def collected(query: Any) -> nw.DataFrame[Any]:
    """The result of a query; a frame in memory is its own."""
    if isinstance(query, nw.DataFrame):
        return query
    settings: dict[str, Any] = {}
    if query.implementation.is_polars() and "engine" in signature(query.to_native().collect).parameters:
        settings = {"engine": "streaming"}  # in batches: the rows never are in memory all at once
    try:
        result: nw.DataFrame[Any] = query.collect(**settings)
    except ModuleNotFoundError as error:
        engine = query.implementation.name.lower()
        extra = "'darkmetrics[duckdb]'" if engine == "duckdb" else error.name
        raise InputError(
            "data",
            f"results of {engine} come through {error.name}, which is not installed: pip install {extra}",
        ) from None
    return result


def numbers(table: nw.DataFrame[Any], column: str) -> FloatArray:
    """A column as float64, NaN where it is null."""
    return number_column(table[column], column)


def coded(column: Any) -> tuple[IntArray, list[Any]]:
    """A column as places in the sorted list of its values; null and NaN are both None, which comes last."""
    dtype = column.dtype
    if dtype.is_float() or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128)) or dtype == nw.Boolean:
        array, missing = plain_values(column)
        known = ~missing
        values, inverse = np.unique(array[known], return_inverse=True)  # NaN is one value, and the last
        codes = np.full(known.size, values.size, dtype=np.int64)
        codes[known] = inverse
        listed = values.tolist()
        if listed and is_missing(listed[-1]):
            listed[-1] = None
            codes[~known] = values.size - 1
        elif not known.all():
            listed.append(None)
        return codes, listed
    if dtype == nw.String:
        known = ~column.is_null().to_numpy().astype(np.bool_)
        words = column.drop_nulls()
        listed = sorted(words.unique().to_list())
        codes = np.full(known.size, len(listed), dtype=np.int64)
        if listed:
            codes[known] = words.replace_strict(listed, list(range(len(listed))), return_dtype=nw.Int64).to_numpy()
        return codes, listed if known.all() else [*listed, None]
    places: dict[Any, int] = {}
    items = column.to_list()
    codes = np.fromiter((places.setdefault(item, len(places)) for item in items), dtype=np.int64, count=len(items))
    found = list(places)
    gaps = [is_missing(value) for value in found]
    present = in_order([value for value, gap in zip(found, gaps, strict=True) if not gap])
    rank = {value: place for place, value in enumerate(present)}
    to = np.array(
        [len(present) if gap else rank[value] for value, gap in zip(found, gaps, strict=True)], dtype=np.int64
    )
    return to[codes] if to.size else codes, [*present, *([None] if any(gaps) else [])]


def in_order(values: Sequence[Any]) -> list[Any]:
    """Sorted, by type and text where values do not compare."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
