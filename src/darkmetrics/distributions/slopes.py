"""Derivatives of formulas of a few sums."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray


def compute_ratio_slopes(
    numerator: FloatArray, denominator: FloatArray, value: FloatArray, sums: Sequence[FloatArray]
) -> list[FloatArray]:
    """Return the derivative of a ratio by each of its sums, where it has this value.

    Numerator and denominator have a constant and one coefficient per sum. Coefficients may be arrays that broadcast
    with the sums, such as one per threshold.
    """
    terms = zip(denominator[1:], sums, strict=True)
    below = denominator[0] + sum(coefficient * total for coefficient, total in terms)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return [(a - value * b) / below for a, b in zip(numerator[1:], denominator[1:], strict=True)]


def compute_slope(
    at: Callable[..., FloatArray], sums: Sequence[FloatArray] | FloatArray, axis: int, total: Any, offset: Any
) -> FloatArray:
    """Return the derivative of `at([sum_1, sum_2, ...])` by a sum, from a five-point difference inside its range.

    The sum lies between 0 and `total`, and the formula adds `offset` to it; both may be arrays that broadcast with the
    sums. Where the sum is so close to an end that no step fits, it is the derivative a little further inside.
    """
    x = np.clip(sums[axis], 1e-9 * total, (1.0 - 1e-9) * total)
    # Next to an end a formula may be a root of the distance to it, so the step is a small part of that distance.
    size = np.maximum(0.01 * total, np.abs(x + offset))
    step = np.minimum(1e-3 * size, 0.03 * np.minimum(x, total - x))
    moved: list[FloatArray] = list(sums)
    value: FloatArray = np.zeros(np.shape(x))
    for multiple, factor in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
        moved[axis] = x + multiple * step
        value = value + factor * at(moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(value / (12.0 * step))
