"""Evenly spread points: a scrambled Sobol sequence, bit for bit that of `scipy.stats.qmc.Sobol`.

`scipy.stats` takes longer to import than a small evaluation takes. So points in few dimensions are computed here, and
only those in more dimensions are left to scipy.
"""

from functools import cache

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray

_BITS = 30
# Primitive polynomials modulo 2 (as bits, the highest power first) and the direction numbers that start each dimension:
# Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008.
_POLYNOMIALS = (
    (1, ()),
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
)


def sobol_points(n: int, dimensions: int, seed: int) -> FloatArray:
    """The first `n` points in [0, 1)^`dimensions`, scrambled by a random triangular matrix and a shift."""
    rng = np.random.default_rng(seed)
    if dimensions > len(_POLYNOMIALS):
        from scipy.stats import qmc

        # A generator, because scipy renamed `seed` to `rng` and reads whole numbers differently since.
        sequence = qmc.Sobol(dimensions, scramble=True, seed=rng)
        return np.asarray(sequence.random_base2((n - 1).bit_length())[:n], dtype=np.float64)
    rng = rng.spawn(1)[0]  # as scipy does with a generator that it is given
    place = np.arange(_BITS)
    shift = rng.integers(2, size=(dimensions, _BITS), dtype=np.uint32) @ (1 << place)
    matrix = np.tril(rng.integers(2, size=(dimensions, _BITS, _BITS), dtype=np.uint32)).astype(np.int64)
    matrix[:, place, place] = 1
    plain = np.array([_direction_numbers(*polynomial) for polynomial in _POLYNOMIALS[:dimensions]])
    bits = plain[:, :, None] >> place[::-1] & 1  # the highest first, like the rows of the matrix
    directions = (np.einsum("dpk,djk->djp", matrix, bits) & 1) @ (1 << place[::-1])
    points = shift[None]
    for j in range((n - 1).bit_length()):  # a Gray code: what is there already backwards, with one more bit
        points = np.concatenate([points, points[::-1] ^ directions[:, j]])
    return np.asarray(points[:n] / 2.0**_BITS, dtype=np.float64)


@cache
def normal_points(n: int, dimensions: int, seed: int) -> FloatArray:
    """Points that fill a standard Gaussian evenly: the same in every run."""
    points = sobol_points(n, dimensions, seed)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)), dtype=np.float64)


def _direction_numbers(polynomial: int, start: tuple[int, ...]) -> list[int]:
    """One dimension's numbers, by the recursion that its polynomial says."""
    degree = len(start)
    numbers = list(start) if degree else [1] * _BITS
    for j in range(len(numbers), _BITS):
        number = numbers[j - degree]
        for k in range(degree):
            number ^= (polynomial >> (degree - 1 - k) & 1) * (numbers[j - k - 1] << (k + 1))
        numbers.append(number)
    return [number << (_BITS - 1 - j) for j, number in enumerate(numbers)]
