"""Bounds on the cdf of a weighted sum of labels over a concave function of their number (Youden's J, MCC).

With P = P0 + e1 and the tangent of g at P0, `sum - t g(P) = sum - t (g0 + g1 e1) + t r`, where the remainder r is at
least 0 and at most `bend(x) x^2 / 2` for |e1| <= x. So for t > 0 it only lowers the cdf, for t < 0 it only raises it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.bounds.berry_esseen import bernstein, sum_cdf_lower

# Multiples of the standard deviation of e1 at which its tail is cut; every one gives a bound, the best is taken.
_CUTS = np.array([1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0, 4.6, 5.4])


class Curve(NamedTuple):
    """A concave function at the mean: value, slope, and the largest second derivative within a distance."""

    value: float
    slope: float
    bend: Callable[[FloatArray], FloatArray]


def concave_curve(factor: float, power: float, total: float, mean: float, ends: tuple[float, float]) -> Curve:
    """`factor (P (total - P))^power` for powers 1 and 1/2, where P stays between the ends."""

    def second(p: FloatArray) -> FloatArray:
        h, slope = np.maximum(p * (total - p), 0.0), total - 2.0 * p
        with np.errstate(divide="ignore", invalid="ignore"):
            bend = factor * power * ((1.0 - power) * h ** (power - 2.0) * slope**2 + 2.0 * h ** (power - 1.0))
        return np.asarray(np.where(h > 0.0, bend, 2.0 * factor if power == 1.0 else np.inf))

    def bend(x: FloatArray) -> FloatArray:
        # h is concave, so the second derivative is largest at one of the ends
        return np.maximum(second(np.maximum(mean - x, ends[0])), second(np.minimum(mean + x, ends[1])))

    h = mean * (total - mean)
    return Curve(factor * h**power, factor * power * h ** (power - 1.0) * (total - 2.0 * mean), bend)


def bent_cdf_bounds(
    s: FloatArray,
    t: FloatArray,
    bend: Callable[[FloatArray], FloatArray],
    facts: tuple[FloatArray, ...],
    facts_p: tuple[float, float, float],
) -> tuple[FloatArray, FloatArray]:
    """Bounds on P(S + t r <= s), r >= 0; `facts` of S as in `sum_cdf_lower`, `facts_p` of e1: variance, step, reach."""
    variance, largest, reach = facts_p
    cuts = np.append(np.sqrt(variance) * _CUTS, reach)
    tails = 2.0 * bernstein(cuts, np.array(variance), np.array(largest))
    tails[cuts >= reach] = 0.0
    remainder = 0.5 * bend(cuts) * cuts**2
    usable = np.isfinite(remainder)
    sign = np.where(t > 0.0, 1.0, -1.0)[:, None]
    columns = [x[:, None] for x in facts]
    moved = np.abs(t)[:, None] * np.where(usable, remainder, 0.0)
    bent = sum_cdf_lower(sign * s[:, None] - moved, *columns) - np.where(usable, tails, 1.0)
    bent = bent.max(axis=1)
    straight = sum_cdf_lower(-sign * s[:, None], *columns)[:, 0]
    up = t > 0.0
    return np.clip(np.where(up, bent, straight), 0.0, 1.0), np.clip(1.0 - np.where(up, straight, bent), 0.0, 1.0)
