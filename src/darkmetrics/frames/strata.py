"""Strata of any values as whole numbers: the same number for the same value, in every table and every process."""

import hashlib
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.frames.arrays import is_missing, number_column, value_column

# Strata are smaller in size; in stored counts of earlier versions, larger ones are ages.
MAX_STRATUM = 1 << 52
# Values with a number, for messages; a few more than a mechanism fits within.
_NAMES: dict[int, str] = {}
_MAX_NAMES = 1000


def are_strata(numbers: FloatArray, limit: float = MAX_STRATUM) -> BoolArray:
    """Return which numbers are whole and below a limit in size."""
    return np.asarray((np.abs(numbers) < limit) & (numbers == np.floor(numbers)), dtype=np.bool_)


def stratum_number(value: Any) -> float:
    """Return the whole number that stands for a value that is none: a hash, so that counts of tables can be merged.

    Examples
    --------
    >>> from darkmetrics.frames.strata import stratum_name, stratum_number
    >>> stratum_number("north") == stratum_number("north") != stratum_number("south")
    True
    >>> stratum_name(int(stratum_number("north"))), stratum_name(3)
    ("'north'", '3')
    """
    if is_missing(value):
        return float("nan")
    if isinstance(value, (int, float, np.number)):
        return float(value)
    text = value if isinstance(value, str) else f"{type(value).__name__} {value!r}"
    digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    # In the upper half of the numbers of strata, which hardly anybody uses.
    number = MAX_STRATUM // 2 + digest % (MAX_STRATUM // 2)
    if len(_NAMES) < _MAX_NAMES:
        _NAMES[number] = repr(value)
    return float(number)


def stratum_name(number: int) -> str:
    """Return what messages call a stratum: its value, or its number."""
    return _NAMES.get(number, str(number))


def stratum_column(values: Any) -> FloatArray:
    """Return the numbers of the strata of rows; NaN where there is none."""
    array, missing = value_column(values, "strata")
    if array.dtype.kind in "fiub" or not array.size:
        return number_column(values, "strata")
    items = array.tolist()
    numbers = {value: stratum_number(value) for value in set(items)}
    return np.where(missing, np.nan, [numbers[value] for value in items])
