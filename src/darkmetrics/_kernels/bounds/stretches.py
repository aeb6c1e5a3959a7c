"""How far a cdf can be from a Gaussian anywhere between two points, without looking in between.

The theorems bound P(S(t) <= slope (t - root)) at every t, and what they are made of is simple in t: the variance of S
is a quadratic, its third moment convex, a remainder at most linear. So their worst case on an interval is known.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.bounds import berry_esseen

_DENSITY = 1.0 / np.sqrt(2.0 * np.pi)


class Line(NamedTuple):
    """The event {S(t) <= slope (t - root)}, slope > 0: moments of S at any t, and the t at which its variance is least.

    `remainder` gives, for the intervals between points, by how much a part of S that is not linear in the labels can
    raise and lower the threshold, and the chance that it does so by more; None when there is no such part.
    """

    slope: float
    root: float
    moments: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    vertex: float
    remainder: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray, FloatArray]] | None = None


def gaps_between(line: Line, points: FloatArray, loc: float, scale: float) -> FloatArray:
    """Bound on |P(S(t) <= slope (t - root)) - Phi((t - loc) / scale)| on each interval between rising points."""
    first, last = points[:-1], points[1:]
    variance, third = line.moments(points)
    least = line.moments(np.clip(line.vertex, first, last))[0]
    # Rounding may put the variance at the vertex above that at an end.
    least = np.minimum(least, np.minimum(variance[:-1], variance[1:]))
    most = np.maximum(variance[:-1], variance[1:])
    ends, y = np.stack([first, last]), (points - loc) / scale
    raised = lowered = tail_up = tail_down = np.zeros(first.shape)
    if line.remainder is not None:
        raised, lowered, tail_up, tail_down = line.remainder(points)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # without variance nothing is known
        error = berry_esseen.CONSTANT * np.maximum(third[:-1], third[1:]) / least**1.5
        raised, lowered = raised / np.sqrt(least), lowered / np.sqrt(least)
        steep = line.slope / np.sqrt(np.stack([least, most]))
        z = steep[:, None] * (ends - line.root)  # (least or most variance) x (first or last) x interval
        # z - y is linear in 1 / sd and in t, so that its extremes are at the four corners.
        corners = (steep - 1.0 / scale)[:, None] * (ends - line.root) + (loc - line.root) / scale
        above, below = corners.max(axis=(0, 1)) + raised, lowered - corners.min(axis=(0, 1))
        low = np.minimum(z.min(axis=(0, 1)) - lowered, y[:-1])
        high = np.maximum(z.max(axis=(0, 1)) + raised, y[1:])
        nearest = np.maximum(np.maximum(low, -high), 0.0)
        density = _DENSITY * np.exp(-0.5 * nearest**2)
        up = np.minimum(np.maximum(above, 0.0) * density, 1.0) + tail_up
        down = np.minimum(np.maximum(below, 0.0) * density, 1.0) + tail_down
        gap = np.maximum(up, down) + error
    return np.where(np.isfinite(gap), np.minimum(gap, 1.0), 1.0)
