"""Rows of a weighted sum as factors of its characteristic functions at many nodes (mathematics, section 4)."""

import math
from collections.abc import Callable

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs

# Rows of one chance that are multiplied in together: more would lose digits where the factors are small.
_TOGETHER = 4
# Complex numbers of all nodes that are multiplied at a time.
_NUMBERS = 1 << 15
# Rows of one weight at least that are counted, and frequencies from which on a law of their number pays.
_MANY_ROWS, _MANY_FREQUENCIES = 8, 128
# What a place of that law takes beside a row that is multiplied in, and powers found by steps of one.
_OF_A_PLACE, _POWERS = 0.5, 32
# Nodes go together that hold numbers of frequencies within so many doublings.
_DOUBLINGS = 1.5


def blocks(held: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """Nodes that hold about as many frequencies, and all those that one of them does."""
    number = held.sum(axis=1)
    size = np.ceil(np.log2(np.maximum(number, 1)) / _DOUBLINGS)
    groups = [np.flatnonzero(size == one) for one in np.unique(size)]
    return [(nodes, np.flatnonzero(held[nodes].any(axis=0))) for nodes in groups]


def multiply_in(
    cf: ComplexArray,
    p: FloatArray,
    column: IntArray,
    counts: FloatArray,
    weight: FloatArray,
    which: IntArray,
    moved: Callable[[FloatArray], ComplexArray],
) -> None:
    """Multiply by (1 + p (E - 1))^counts of some rows, in place, with chances `p[:, column]` at the nodes.

    `moved` is E - 1 of some weights at the frequencies. Many rows of one weight only differ in how many of them are
    positive: the law of that number is found, and the mean of E to its power.
    """
    which = which[np.argsort(weight[which], kind="stable")]
    starts = np.flatnonzero(np.diff(weight[which], prepend=np.nan) != 0.0)
    ends = np.append(starts[1:], which.size)
    many = (ends - starts >= _MANY_ROWS) & (cf.shape[1] >= _MANY_FREQUENCIES)
    alone = np.ones(which.size, dtype=np.bool_)
    for start, end in zip(starts[many].tolist(), ends[many].tolist(), strict=True):
        own = which[start:end]
        if _better_counted(p, column[own], counts[own]):
            alone[start:end] = False
            columns, at = np.unique(column[own], return_inverse=True)
            number = np.rint(np.bincount(at, counts[own])).astype(np.int64)
            _multiply_in_number(cf, p[:, columns], number, 1.0 + moved(weight[own[:1]])[0])
    _multiply_in_rows(cf, p, column, counts, weight, np.sort(which[alone]), moved)


def _better_counted(p: FloatArray, column: IntArray, counts: FloatArray) -> bool:
    """Whether the law of the number of positives has fewer places than its rows would be factors."""
    variance = float(((p * (1.0 - p))[:, column] @ counts).max())
    # Powers are found by squares, each about as long as the factor itself.
    factors = float(np.where(counts == 1.0, 1.0, 3.0 + 2.0 * np.log2(counts)).sum())
    return bool(_OF_A_PLACE * min(float(counts.sum()), 20.0 * math.sqrt(variance) + 20.0) < factors)


def _multiply_in_number(cf: ComplexArray, p: FloatArray, counts: IntArray, turn: ComplexArray) -> None:
    """Multiply by the mean of `turn` to the power of how many trials succeed, with `counts` trials of each chance."""
    first, pmfs = poisson_binomial_pmfs(p, counts)
    starts = range(0, pmfs.shape[1], _POWERS)
    for some in np.array_split(np.arange(turn.size), -(-cf.size // _NUMBERS)):
        part = slice(int(some[0]), int(some[-1]) + 1)
        powers: ComplexArray = np.ones((min(_POWERS, pmfs.shape[1]) + 1, some.size), dtype=np.complex128)
        np.cumprod(np.broadcast_to(turn[part], (len(powers) - 1, some.size)), axis=0, out=powers[1:])
        mean: ComplexArray = np.zeros((len(pmfs), some.size), dtype=np.complex128)
        with np.errstate(under="ignore"):
            for start in reversed(starts):
                masses = pmfs[:, start : start + _POWERS]
                mean *= powers[-1]
                mean += (masses @ powers[: masses.shape[1]].view(np.float64)).view(np.complex128)
        _multiply(mean, turn[part].copy(), first)
        cf[:, part] *= mean


def _multiply_in_rows(
    cf: ComplexArray,
    p: FloatArray,
    column: IntArray,
    counts: FloatArray,
    weight: FloatArray,
    which: IntArray,
    moved: Callable[[FloatArray], ComplexArray],
) -> None:
    """Each row a factor. Rows of one chance go together: a polynomial in p, whose coefficients all nodes share."""
    single = which[counts[which] == 1.0]
    single = single[np.argsort(column[single], kind="stable")]
    first = np.flatnonzero(np.diff(column[single], prepend=-1))
    place = np.arange(single.size) - np.repeat(first, np.diff(first, append=single.size))
    start = np.flatnonzero(place % _TOGETHER == 0)
    size = np.diff(start, append=single.size)
    for number in range(1, _TOGETHER + 1):
        groups = single[start[size == number, None] + np.arange(number)]
        parts = min(len(groups), -(-len(groups) * cf.size // _NUMBERS))
        for some in np.array_split(groups, parts) if parts else []:
            terms: ComplexArray = np.zeros((len(some), number + 1, cf.shape[1]), dtype=np.complex128)
            terms[:, 0] = 1.0
            turned = moved(weight[some.ravel()]).reshape(*some.shape, -1)
            for k in range(number):
                terms[:, 1 : k + 2] += terms[:, : k + 1] * turned[:, k : k + 1]
            powers = p[:, column[some[:, 0]]].T[:, :, None] ** np.arange(number + 1)
            factors = (powers @ terms.view(np.float64)).view(np.complex128)
            with np.errstate(under="ignore"):
                cf *= factors[0] if len(some) == 1 else np.multiply.reduce(factors)
    for i in which[counts[which] != 1.0]:
        _multiply(cf, 1.0 + np.multiply.outer(p[:, column[i]], moved(weight[[i]])[0]), int(counts[i]))


def _multiply(cf: ComplexArray, factor: ComplexArray, times: int) -> None:
    """Multiply by the factor so many times, both in place: by squares, as a complex logarithm takes fifty products."""
    with np.errstate(under="ignore"):
        while True:
            if times & 1:
                cf *= factor
            times >>= 1
            if not times:
                return
            factor *= factor
