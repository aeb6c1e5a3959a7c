"""Names for the array types that the whole package passes around, and what their numbers are rounded by."""

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

AnyArray: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
# Numbers of rows, in as many bits as they need.
CountArray: TypeAlias = npt.NDArray[np.signedinteger[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ComplexArray: TypeAlias = npt.NDArray[np.complex128]
Formula: TypeAlias = Callable[..., Any]
# Rounding in cumulated masses must not push a quantile to the next atom: levels are asked for less this.
LEVEL_ROUNDING = 1e-14
# Fewer numbers are no work: what takes time is the call.
_SMALL = 4096


def dot(a: Any, b: Any) -> float:
    """Inner product on one core: the threads of a BLAS cost more than they bring for one pass over the data."""
    if np.size(a) < _SMALL:  # where a BLAS takes one thread too
        return float(np.dot(a, b))
    return float(np.einsum("i,i->", a, b))


def dots(a: Any, b: Any) -> Any:
    """The same of each row of `a`: a number of one row, an array of several."""
    return np.einsum("...i,i->...", a, b)


def same_arrays(some: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether two rows of arrays, numbers or nothing are equal one by one; objects that are the same are not read."""
    return all(a is b or np.array_equal(a, b) for a, b in zip_longest(some, others))
