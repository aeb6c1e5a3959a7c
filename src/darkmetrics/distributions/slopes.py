"""Derivatives of formulas of a few sums."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray


def compute_ratio_slopes(
    numerator: FloatArray, denominator: FloatArray, value: FloatArray, sums: Sequence[FloatArray]
) -> list[FloatArray]:
    """Return the derivative of a ratio with respect to each of its sums.

    `value` is the ratio at the sums. Numerator and denominator have a constant and one coefficient per sum.
    Coefficients may be arrays that broadcast with the sums, such as one per threshold.
    """
    terms = zip(denominator[1:], sums, strict=True)
    denominator_value = denominator[0] + sum(coefficient * total for coefficient, total in terms)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return [(a - value * b) / denominator_value for a, b in zip(numerator[1:], denominator[1:], strict=True)]


def compute_slope(
    at: Callable[..., FloatArray], sums: Sequence[FloatArray] | FloatArray, axis: int, total: Any, offset: Any
) -> FloatArray:
    """Return the derivative of `at([sum_1, sum_2, ...])` with respect to a sum, by a five-point difference.

    The sum lies between 0 and `total`, and the formula adds `offset` to it; `total` and `offset` may be arrays that
    broadcast with the sums. If the sum is too close to an end for a step, the derivative is taken slightly inside.
    """
    x = np.clip(sums[axis], 1e-9 * total, (1.0 - 1e-9) * total)
    # Near an end a formula may be a root of the distance to it, so the step is a small fraction of that distance.
    size = np.maximum(0.01 * total, np.abs(x + offset))
    step = np.minimum(1e-3 * size, 0.03 * np.minimum(x, total - x))
    moved: list[FloatArray] = list(sums)
    value: FloatArray = np.zeros(np.shape(x))
    for multiple, factor in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
        moved[axis] = x + multiple * step
        value = value + factor * at(moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(value / (12.0 * step))
