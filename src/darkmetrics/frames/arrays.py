"""Columns of any engine as arrays, the names of their rows, and what counts as a missing label."""

import datetime as dt
import importlib
import numbers
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._text import a_kind_of, number_from
from darkmetrics.constraints import shortened
from darkmetrics.exceptions import InputError
from darkmetrics.wording import named

_ENGINES = ("pandas", "polars", "pyarrow")
_PLAIN = {int, bool, float, NoneType}


DATE_RULE = "Dates and times are not labels. Pass two classes, such as 0 and 1."


def label_column(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    """Return labels or predictions as an array and where they are missing; dates and times are refused."""
    array, missing = value_column(values, name)
    if array.dtype.kind in "mM" or (array.dtype.kind == "O" and any(map(_is_date_type, set(map(type, array))))):
        row = next((i for i in np.flatnonzero(~missing).tolist() if _is_date_type(type(array[i]))), None)
        if row is not None:
            raise InputError(name, f"found {_described(_items(array)[row])} at row {row}", DATE_RULE)
        if array.dtype.kind in "mM":  # nothing but NaT
            array = np.full(array.size, np.nan)
    return array, missing


def value_column(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    """Return values of any kind as an array and where they are missing: null, None, NaN, NaT, pd.NA or masked."""
    array, missing = to_numpy(values, name)
    if array.ndim != 1:
        refuse_shape(array, name, "label")
    if array.dtype.kind in "fc":
        missing = missing | np.isnan(array)
    elif array.dtype.kind in "mM":
        missing = missing | np.isnat(array)
    elif array.dtype.kind == "O":
        array, missing = _labels_from_objects(array, missing, name)
    elif array.dtype.kind == "V":
        raise InputError(name, f"records of type {array.dtype}", "It needs one value per row.", "Pass one field.")
    return array, missing


def number_column(values: Any, name: str) -> FloatArray:
    """A column of numbers as float64; nulls become NaN, which the caller judges."""
    array, missing = to_numpy(values, name)
    if array.ndim != 1:
        refuse_shape(array, name, "number")
    if array.dtype.kind == "O":
        result = _numbers_from_objects(array, missing, name)
    elif array.dtype.kind in "fiub":
        with np.errstate(over="ignore"):  # beyond the range of float64 is infinite, which the caller judges
            result = array.astype(np.float64, copy=False)
    else:
        if array.size:
            _refuse_values(_items(array), name, 0)
        result = np.empty(0)  # an empty column has no numbers, whatever its type
    return np.where(missing, np.nan, result) if missing.any() else result


def duration_column(values: Any, name: str) -> tuple[FloatArray, bool]:
    """A column of times that have passed: numbers as they are, timedeltas in days, and whether it is in days."""
    array, missing = to_numpy(values, name)
    if array.dtype.kind == "O" and array.ndim == 1:
        # pandas has NaT among its own timedeltas, which is none of Python's
        missing = missing | np.array([is_missing(item) for item in array.tolist()], dtype=np.bool_)
        held = [item for item, gap in zip(array.tolist(), missing.tolist(), strict=True) if not gap]
        if held and all(isinstance(item, dt.timedelta) for item in held):
            spans = [
                np.timedelta64("NaT") if gap else np.timedelta64(array[at], "us") for at, gap in enumerate(missing)
            ]
            array = np.array(spans, dtype="timedelta64[us]")
    kinds = {type(item) for item in array.flat} if array.dtype == object else {array.dtype.type}
    if not kinds.isdisjoint((bool, np.bool_)):
        raise InputError(name, "has True and False", "", "Pass numbers or timedeltas.")
    if array.dtype.kind != "m":
        return number_column(values, name), False
    if array.ndim != 1:
        refuse_shape(array, name, "timedelta")
    return np.where(missing | np.isnat(array), np.nan, array / np.timedelta64(1, "D")), True


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, pd.NA or masked, told by behaviour: none of them equals itself."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ArithmeticError):  # pd.NA refuses to be a truth value, and a signalling NaN to be compared
        return True


def is_container(kind: type) -> bool:
    """Whether values of this type hold other values, and so cannot be a label or a number."""
    return hasattr(kind, "__len__") and not issubclass(kind, (str, bytes, np.ma.core.MaskedConstant))


def meaning_missing(missing_label: Any) -> list[Any]:
    """The labels that mean missing, of one or of a list, tuple or set; no gaps, which do so anyway."""
    several = isinstance(missing_label, (list, tuple, set, frozenset))
    return [
        one for one in (missing_label if several else [missing_label]) if is_container(type(one)) or not is_missing(one)
    ]


def to_native_frame(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """A DataFrame of the named engine, or of the first one installed among pandas, polars and pyarrow."""
    if backend is None:
        backend = next((name for name in _ENGINES if _importable(name)), None)
        if backend is None:
            fix = "Install one of them, or call to_dict(), which needs none."
            raise InputError("to_frame", "pandas, polars and pyarrow are not installed", "", fix)
    elif backend not in _ENGINES:
        raise InputError("backend", repr(backend), f"It must be {', '.join(map(repr, _ENGINES))} or None.")
    elif not _importable(backend):
        raise InputError("backend", f"{backend!r} is not installed", "", "Install it, or call to_dict().")
    engine = importlib.import_module(backend)
    if backend != "pandas":  # whose columns hold anything
        columns = {name: _held(values, engine) for name, values in columns.items()}
    return nw.from_dict(dict(columns), backend=engine).to_native()


def _held(values: Any, engine: Any) -> Any:
    """The values where the engine has a column for them; else, as for periods or numbers beside text, their texts."""
    if isinstance(values, np.ndarray):
        return values
    try:
        if nw.new_series("values", values, backend=engine).dtype != nw.Object:
            return values
    except (TypeError, ValueError, OverflowError, NotImplementedError):  # as the engines name it
        pass
    return [None if value is None else str(value) for value in values]


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def to_numpy(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    """Array and null mask of anything column-like."""
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        array = np.asarray(values.data)
    elif isinstance(values, np.ndarray):
        array = np.asarray(values)
        missing = np.zeros(array.shape[:1], dtype=np.bool_)
    elif isinstance(values, (list, tuple)):
        array = _from_list(values)
        missing = np.zeros(array.shape[:1], dtype=np.bool_)
    else:
        array, missing = _from_engine(values, name)
    # numpy's own variable-width text compares and sorts unlike its other kinds; as objects it is ordinary text.
    return (array.astype(object) if array.dtype.kind == "T" else array), missing


def _from_list(values: Sequence[Any]) -> AnyArray:
    kinds = set(map(type, values))
    text = any(issubclass(kind, (str, bytes)) for kind in kinds)
    # numpy would turn masked elements into NaN with a warning, and numbers beside text into text.
    if np.ma.core.MaskedConstant not in kinds and (not text or len(kinds) == 1):
        try:
            return np.asarray(values)
        except (TypeError, ValueError):
            pass  # rows of different shapes; the caller names the first
    return _object_array(values)


def _object_array(items: Sequence[Any]) -> AnyArray:
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def _from_engine(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(values, pyarrow.Array):
        values = pyarrow.chunked_array([values])
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        array = _from_other(values, name)
        return array, np.zeros(array.shape[:1], dtype=np.bool_)
    if series.implementation.is_polars():
        series = series.alias("values")  # Polars looks a Series up by its name, which it may take for a pattern
    dtype = series.dtype
    if not (dtype.is_float() or dtype.is_integer() or dtype == nw.Boolean) or dtype in (nw.Int128, nw.UInt128):
        array = _object_array(series.to_list())
        return array, np.zeros(array.size, dtype=np.bool_)
    array, missing = plain_values(series)
    if missing.any() and not dtype.is_float():
        known = array[~missing]
        if dtype.is_integer() and bool(np.any((known > 2**53) | (known < -(2**53)))):
            return _object_array(series.to_list()), missing  # as floats, different ones would be the same
        array = np.full(missing.size, np.nan)
        array[~missing] = known
    return array, missing


def plain_values(series: nw.Series[Any]) -> tuple[AnyArray, BoolArray]:
    """Numbers or truth values, and where they are null: floats are NaN there, and others may be anything."""
    if series.implementation.is_pyarrow():
        return _from_buffers(series.to_native())
    missing = series.is_null().to_numpy().astype(np.bool_)
    if not missing.any() or series.dtype.is_float():
        return np.asarray(series.to_numpy()), missing
    known = np.asarray(series.filter(~series.is_null()).to_numpy())
    array = np.zeros(missing.size, dtype=known.dtype)
    array[~missing] = known
    return array, missing


def _from_buffers(column: Any) -> tuple[AnyArray, BoolArray]:
    """The same from the memory of PyArrow's columns: its own way to arrays takes the time to import pandas."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    arrays, gaps = [np.empty(0, dtype)], [np.empty(0, np.bool_)]
    for chunk in column.chunks:
        if not len(chunk):
            continue
        valid, data = chunk.buffers()
        first, last = chunk.offset, chunk.offset + len(chunk)
        arrays.append(_bits(data, first, last) if dtype == np.bool_ else np.frombuffer(data, dtype, last)[first:])
        gaps.append(~_bits(valid, first, last) if chunk.null_count else np.zeros(len(chunk), dtype=np.bool_))
    array, missing = np.concatenate(arrays), np.concatenate(gaps)
    if dtype.kind == "f":
        array[missing] = np.nan
    return array, missing


def _bits(buffer: Any, first: int, last: int) -> BoolArray:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=last, bitorder="little")
    return bits[first:].astype(np.bool_)


def _from_other(values: Any, name: str) -> AnyArray:
    """Array of anything that is neither an array nor a list nor a Series; what is not a column is refused by name."""
    rule = "expected a list, array or Series with one value per row"
    name_of_kind, kind = type(values).__name__, a_kind_of(values)
    if values is None or isinstance(values, (str, bytes, numbers.Number, np.generic)):
        raise InputError(name, f"{rule}, got {shortened(values)}")
    if isinstance(values, Mapping):
        raise InputError(name, f"{rule}, got {kind}", "", "Pass one of its values.")
    if isinstance(values, Set):
        raise InputError(name, f"{rule}, got {kind}, which has no order")
    if isinstance(values, Iterator):
        raise InputError(name, f"{rule}, got {kind}, which can be read only once", "", "Make it a list first.")
    frame = nw.from_native(values, pass_through=True)
    if isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        names = frame.collect_schema().names()
        shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
        raise InputError(name, f"{rule}, got {kind} ({shown})", "", "Pass one of its columns.")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # arrays of other libraries say why in their own words
        raise InputError(name, f"{rule}, got type {name_of_kind}, which cannot be read: {error}") from None
    if array.ndim == 0:
        raise InputError(name, f"{rule}, got type {name_of_kind}")
    if array.dtype.kind in "SU" and not all(isinstance(value, (str, bytes)) for value in values):
        array = _object_array(list(values))
    return array


def _labels_from_objects(array: AnyArray, missing: BoolArray, name: str) -> tuple[AnyArray, BoolArray]:
    items = array.tolist()
    kinds = set(map(type, items))
    if kinds <= _PLAIN:
        try:
            numbers_ = array.astype(np.float64)
        except OverflowError:  # a whole number of 300 digits is a label like any other
            pass
        else:
            gaps = np.isnan(numbers_)
            if bool(np.all(gaps | (numbers_ == 0.0) | (numbers_ == 1.0) | missing)):
                return numbers_, missing | gaps
    held = {kind for kind in kinds if is_container(kind)}
    missing = missing.copy()
    for i, item in enumerate(items):
        if not missing[i]:
            if type(item) in held:
                raise InputError(name, f"expected one label per row, found {_described(item)} at row {i}")
            missing[i] = is_missing(item)
    return array, missing


def _numbers_from_objects(array: AnyArray, missing: BoolArray, name: str) -> FloatArray:
    items = array.tolist()
    odd = tuple(kind for kind in set(map(type, items)) if kind not in _PLAIN and not _is_number_type(kind))
    if odd or missing.any():
        gaps = missing.copy()
        for i, item in enumerate(items):
            if not gaps[i] and type(item) in odd:
                if is_container(type(item)) or not is_missing(item):
                    _refuse_values(items, name, i)
                gaps[i] = True
        array = array.copy()
        array[gaps] = None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([_as_float(item, name, i) for i, item in enumerate(array.tolist())])


def _as_float(item: Any, name: str, row: int) -> float:
    try:
        return np.nan if item is None else float(item)
    except OverflowError:
        raise InputError(name, f"the number at row {row} is too large for a 64-bit float") from None
    except (TypeError, ValueError):
        _refuse_value(item, name, row)


def _items(array: AnyArray) -> list[Any]:
    """Return the values as Python objects; numpy itself makes plain integers of nanoseconds."""
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] in ("ns", "ps", "fs", "as"):
        array = array.astype(f"{array.dtype.kind}8[us]")
    return list(array.tolist())


def _is_date_type(kind: type) -> bool:
    dates = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
    return issubclass(kind, dates) or hasattr(kind, "to_timestamp")  # the latter is a period of pandas


def _is_number_type(kind: type) -> bool:
    if is_container(kind) or issubclass(kind, (complex, np.complexfloating, np.ma.core.MaskedConstant)):
        return False
    return issubclass(kind, (numbers.Real, Decimal, np.bool_)) or hasattr(kind, "__float__")


def _refuse_values(items: Sequence[Any], name: str, row: int) -> NoReturn:
    """Says which value is no number: the one at `row`, but among text that is all but one numbers, that one."""
    if isinstance(items[row], str):
        words = (i for i, item in enumerate(items) if isinstance(item, str) and number_from(item) is None)
        row = next(words, row)
    _refuse_value(items[row], name, row)


def _refuse_value(value: Any, name: str, row: int) -> NoReturn:
    raise InputError(name, f"expected numbers, found {_described(value)} at row {row}")


def refuse_shape(array: AnyArray, name: str, what: str) -> NoReturn:
    """Says that a column has more than one dimension, or none, and what to pass."""
    hint = ""
    if array.ndim == 2 and array.shape[1] == 1:
        hint = f" Flatten it: {name}[:, 0]."
    elif array.ndim == 2 and array.shape[1] == 2 and what == "number":
        hint = f" For predict_proba output pass the column of the positive class: {name}[:, 1]."
    elif array.ndim == 2 and what == "number":
        hint = " Scores of several classes are for dm.evaluate."
    found = f"the single value {shortened(array.item())}" if array.ndim == 0 else f"an array of shape {array.shape}"
    raise InputError(name, f"expected one {what} per row, got {found}.{hint}")


def _described(value: Any) -> str:
    return f"{shortened(value)} of type {type(value).__name__}"


def row_count(table: Any, name: str) -> int:
    """Rows of a two-dimensional table: a DataFrame of any engine, an array, a sparse matrix, or nested lists."""
    shape: tuple[int, ...] = tuple(_table(table).shape)
    if len(shape) != 2:
        raise InputError(name, f"shape {shape}", "It must be a table with one row per label.")
    return shape[0]


def columns_of(table: Any, argument: str) -> Any:
    """The columns of a table in memory, or of a mapping, by their names; anything else as it is."""
    try:
        frame = nw.from_native(table, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return table
        return {name: column.to_native() for name, column in zip(frame.columns, frame.iter_columns(), strict=True)}
    except nw.exceptions.DuplicateError as error:
        raise InputError(argument, "column names must differ", " ".join(str(error).split())) from None


def select_columns(table: Any, names: Sequence[str]) -> Any:
    """Return some columns of a table in memory, or of a mapping of arrays, as a table."""
    if isinstance(table, Mapping):
        return np.column_stack([np.asarray(table[name]) for name in names])
    return nw.from_native(table, eager_only=True).select(names).to_native()


def take_rows(table: Any, rows: IntArray) -> Any:
    """Some rows of such a table, as the same kind of table."""
    native = _table(table)
    frame = nw.from_native(native, eager_only=True, pass_through=True)
    return frame[rows].to_native() if isinstance(frame, nw.DataFrame) else native[rows]


def _table(table: Any) -> Any:
    return table if hasattr(table, "shape") else np.asarray(table)


class RowNames(NamedTuple):
    """The index of a column, and which argument the column is."""

    argument: str
    index: Any

    def at(self, rows: BoolArray) -> "RowNames":
        """The names of some of the rows."""
        return RowNames(self.argument, self.index[rows])

    def check(self, argument: str, column: Any) -> None:
        """A column of as many rows has the same names in the same order, or none; other lengths are not judged here."""
        other = _index(column)
        if other is None or len(other) != len(self.index) or other.equals(self.index):
            return
        for row, (own, first) in enumerate(zip(other, self.index, strict=True)):
            if not _same(own, first):
                raise InputError(
                    argument,
                    f"its index differs from that of {named(self.argument)}, {shortened(own)} and "
                    f"{shortened(first)} at row {row}",
                    "Columns are paired row by row.",
                    "Sort them into one order with .loc[...], or pass .to_numpy() of both if they have one.",
                )


def row_names(**columns: Any) -> RowNames | None:
    """The index that the columns share, if some of them have one; columns that name their rows differently are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from darkmetrics.frames import row_names
    >>> y = pd.Series([1, 0], index=["a", "b"])
    >>> row_names(y_true=y, y_score=[0.9, 0.2]).argument
    'y_true'
    >>> row_names(y_true=y, y_score=pd.Series([0.2, 0.9], index=["b", "a"]))
    Traceback (most recent call last):
    darkmetrics.exceptions.InputError: y_score: its index differs from that of y_true, 'b' and 'a' at row 0. ...
    """
    found: RowNames | None = None
    for argument, column in columns.items():
        if found is not None:
            found.check(argument, column)
        elif (index := _index(column)) is not None:
            found = RowNames(argument, index)
    return found


def _index(column: Any) -> Any:
    """The index of a Series or DataFrame of pandas or its kin; None where rows have no names."""
    if column is None or isinstance(column, (np.ndarray, list, tuple)) or not hasattr(column, "index"):
        return None
    known = nw.from_native(column, pass_through=True, eager_only=True, allow_series=True)
    return nw.maybe_get_index(known) if isinstance(known, (nw.DataFrame, nw.Series)) else None


def _same(one: Any, other: Any) -> bool:
    if is_missing(one) or is_missing(other):
        return is_missing(one) and is_missing(other)
    return bool(one == other)
