"""Array types that the whole package passes around, and what is done with arrays everywhere: sums, equality, keys."""

from collections.abc import Callable
from hashlib import blake2b
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


def fingerprint(*arrays: AnyArray) -> bytes:
    """Return a short key that equal arrays share; it holds no copy of them."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(_compress(array)).data)
    return digest.digest()


def _compress(array: AnyArray) -> AnyArray:
    """Whole numbers in few bytes, because reading them takes most of the time."""
    if array.size < _SMALL or not np.issubdtype(array.dtype, np.integer):
        return array
    low, high = int(array.min()), int(array.max())
    if low == high:
        return np.array([low])
    return array.astype(np.uint8) if low >= 0 and high < 256 else array


def merged_keys(*keys: AnyArray | None) -> tuple[IntArray, IntArray]:
    """A cell of each distinct combination of keys, and for each cell the number of its combination."""
    given = [key for key in keys if key is not None]
    code: IntArray = np.zeros(given[0].size, dtype=np.int64)
    for key in given:
        number = key if np.issubdtype(key.dtype, np.integer) else np.unique(key, return_inverse=True)[1]
        low, high = (int(number.min()), int(number.max())) if number.size else (0, 0)
        code = code * (high - low + 1) + (number - low)
    size = int(code.max()) + 1 if code.size else 0
    if size > 4 * code.size + 1024:  # sparse: sorting is cheaper than counting
        _, first, owner = np.unique(code, return_index=True, return_inverse=True)
        return first, owner
    first = np.full(size, -1, dtype=np.int64)
    first[code[::-1]] = np.arange(code.size)[::-1]
    held = first >= 0
    return first[held], (np.cumsum(held) - 1)[code]
