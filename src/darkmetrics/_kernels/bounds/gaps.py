"""How far two cdfs can be apart, from bounds at single places, and how far an empirical cdf can be from its law."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray

# The grid on which a supremum is taken is refined at most this often, an interval into at most so many.
_ROUNDS, _MOST_PIECES = 4, 32
# Bounds on whole intervals that are below this are as good as a search.
_SMALL = 0.01


class CdfBounds(NamedTuple):
    """What is known of a cdf F at some places: `lower` <= F(t) <= `upper`, and F(t-) <= `below`."""

    lower: FloatArray
    upper: FloatArray
    below: FloatArray


def largest_gap(
    points: FloatArray,
    cdf: Callable[..., FloatArray],
    bounds: Callable[[FloatArray], CdfBounds],
    between: FloatArray,
    tolerance: float,
) -> float:
    """Bound on sup |F - G| from the cdf G and bounds on F at the points of a rising grid, which is refined as needed.

    From one point up to the next, both cdfs only rise: F is at most its left limit at the second while G is at least
    its level at the first, and the other way round. Nothing is assumed about what happens in between; beyond the ends
    0 and 1 take the place of what is not known. `between` are bounds on the intervals that come from elsewhere, 1 where
    there is none. Intervals are split until little is to gain: 2e-4, and the share `tolerance` of the bound.
    """
    small = float(between.max(initial=0.0)) < _SMALL
    asked = points[[0, -1]] if small else points
    level, before, found = cdf(asked, left=False), cdf(asked, left=True), bounds(asked)
    settled = max(float(x) for x in (found.below[0], before[0], 1.0 - level[-1], 1.0 - found.lower[-1]))
    if small:  # there is hardly anything to gain, and nothing needs to be looked for inside
        return max(settled, float(between.max(initial=0.0)))
    floor = max(float((found.upper - level).max()), float((level - found.lower).max()), settled)
    # Columns are intervals: their ends, G and the lower bound at the first, G and the upper bound before the second.
    at = np.stack([points[:-1], points[1:], level[:-1], found.lower[:-1], before[1:], found.below[1:], between])
    for round_ in range(_ROUNDS + 1):
        gap = np.nan_to_num(np.minimum(np.maximum(at[5] - at[2], at[4] - at[3]), at[6]), nan=1.0)
        # What the bound is at the points themselves, no refinement can undercut.
        to_gain = 2e-4 + tolerance * floor
        split = (gap > floor + to_gain) & (round_ < _ROUNDS)
        settled = max(settled, float(gap[~split].max(initial=0.0)))
        if not split.any():
            break
        floor = max(floor, settled)
        pieces = int(np.clip(np.ceil((gap[split].max() - floor) / to_gain) + 1.0, 2, _MOST_PIECES))
        first, last = at[0, split], at[1, split]
        inner = (first + (last - first) * (np.arange(1, pieces) / pieces)[:, None]).ravel()
        level, before, found = cdf(inner, left=False), cdf(inner, left=True), bounds(inner)
        floor = max(floor, float((found.upper - level).max()), float((level - found.lower).max()))
        shape = (pieces - 1, -1)
        left, right = (
            [x.reshape(shape) for x in side] for side in ((inner, level, found.lower), (inner, before, found.below))
        )
        old = at[:, split][:, None]
        starts = [np.concatenate([o, new]) for o, new in zip((old[0], old[2], old[3]), left, strict=True)]
        stops = [np.concatenate([new, o]) for new, o in zip(right, (old[1], old[4], old[5]), strict=True)]
        kept = np.broadcast_to(old[6], starts[0].shape)
        at = np.stack([x.ravel() for x in (starts[0], stops[0], starts[1], starts[2], stops[1], stops[2], kept)])
    return float(min(1.0, settled))


def dkw_radius(n: int, confidence: float) -> float:
    """Largest distance of an empirical cdf of n draws to the law they come from, missed with chance 1 - confidence."""
    return float(min(1.0, np.sqrt(np.log(2.0 / (1.0 - confidence)) / (2.0 * n))))


def stratified_radius(n: int, confidence: float) -> float:
    """The same when the n independent draws come from different laws, and the mean of these is wanted.

    Hoeffding's inequality at m - 1 quantiles of the mean law, once for each side of a jump, and monotony in between.
    """
    m = np.arange(2, 2049)
    radius = np.sqrt(np.log(2.0 * (m - 1) / (1.0 - confidence)) / (2.0 * n)) + 1.0 / m
    return float(min(1.0, radius.min()))
