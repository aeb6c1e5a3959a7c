"""The only file that knows DataFrame engines: columns in, columns out, and what counts as a missing label."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray
from darkmetrics.exceptions import InputError


def label_column(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    """The labels as an array, and where they are missing: null, None, NaN, NaT, pd.NA or masked."""
    array, missing = _to_numpy(values, name)
    if array.ndim != 1:
        raise InputError(f"{name}: expected one label per row, got an array of shape {array.shape}.")
    if array.dtype.kind == "f":
        missing = missing | np.isnan(array)
    elif array.dtype.kind in "mM":
        missing = missing | np.isnat(array)
    elif array.dtype.kind == "O":
        missing = missing | np.fromiter((_is_gap(value) for value in array), dtype=np.bool_, count=array.size)
    return array, missing


def number_column(values: Any, name: str) -> FloatArray:
    """A column of numbers as float64; nulls become NaN, which the caller judges."""
    array, missing = _to_numpy(values, name)
    if array.ndim != 1:
        hint = ""
        if array.ndim == 2 and array.shape[1] == 2:
            hint = f" For predict_proba output pass the column of the positive class: {name}[:, 1]."
        raise InputError(f"{name}: expected one number per row, got an array of shape {array.shape}.{hint}")
    if array.dtype.kind not in "fiub":
        if array.dtype.kind == "O" and missing.any():
            array = np.where(missing, np.nan, array)
        try:
            if array.dtype.kind == "c":
                raise TypeError
            if array.dtype.kind in "SU":
                raise ValueError
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            first = next((v for v in array.tolist() if not _is_number(v)), array.tolist()[0])
            raise InputError(f"{name}: expected numbers, found {first!r} of type {type(first).__name__}.") from None
    numbers: FloatArray = array.astype(np.float64, copy=False)
    if missing.any():
        numbers = np.where(missing, np.nan, numbers)
    return numbers


def to_native_frame(columns: Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """A DataFrame of the named engine, or of the first one installed among pandas, polars and pyarrow."""
    if backend is None:
        backend = next((name for name in ("pandas", "polars", "pyarrow") if _importable(name)), None)
        if backend is None:
            raise InputError("to_frame: needs pandas, polars or pyarrow; to_dict() needs none of them.")
    elif backend not in ("pandas", "polars", "pyarrow"):
        raise InputError(f"backend: expected 'pandas', 'polars' or 'pyarrow', got {backend!r}.")
    return nw.from_dict(dict(columns), backend=importlib.import_module(backend)).to_native()


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _to_numpy(values: Any, name: str) -> tuple[AnyArray, BoolArray]:
    """Array and null mask of anything column-like."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.data), np.ma.getmaskarray(values)
    if isinstance(values, np.ndarray):
        return values, np.zeros(values.shape[:1], dtype=np.bool_)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(values, pyarrow.Array):
        values = pyarrow.chunked_array([values])
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        missing = series.is_null().to_numpy().astype(np.bool_)
        if missing.any() and not (series.dtype.is_float()):
            present = series.filter(~series.is_null()).to_numpy()
            array = np.empty(missing.size, dtype=object if present.dtype.kind in "OSU" else np.float64)
            array[~missing] = present
            array[missing] = None if array.dtype.kind == "O" else np.nan
            return array, missing
        return np.asarray(series.to_numpy()), missing
    if isinstance(values, (str, bytes)) or np.isscalar(values) or values is None:
        raise InputError(f"{name}: expected one value per row, got {values!r}.")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "SU" and not all(isinstance(value, str) for value in values):
            array = _object_array(values)  # numpy would have turned None and numbers into text
    except (TypeError, ValueError):
        try:
            array = _object_array(values)
        except TypeError:
            raise InputError(f"{name}: expected one value per row, got {type(values).__name__}.") from None
    return array, np.zeros(array.shape[:1], dtype=np.bool_)


def _object_array(values: Any) -> AnyArray:
    items = list(values)
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def _is_gap(value: Any) -> bool:
    """None, NaN, NaT or pd.NA, told by behaviour: none of them equals itself."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:  # pd.NA refuses to be a truth value
        return True


def _is_number(value: Any) -> bool:
    if isinstance(value, (str, bytes, complex)):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
