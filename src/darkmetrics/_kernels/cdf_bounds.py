"""Proven bounds on cdfs: of a sum of labels against a Gaussian, of two laws, and of draws against their law.

For `S = sum k_i (Y_i - p_i)` of independent labels and v_i = p_i (1 - p_i): Berry and Esseen bound the distance of its
cdf to the Gaussian by `CONSTANT sum |k_i|^3 v_i (1 - 2 v_i) / (sum k_i^2 v_i)^(3/2)`, Bernstein bounds its tails
(explanation, certificates).

Between two points nobody has to look: the theorems bound P(S(t) <= slope (t - root)) at every t, and what they are made
of is simple in t. The variance of S is a quadratic, its third moment convex, a remainder at most linear, so that their
worst case on an interval is known (`gaps_between`).

A sum over a concave function of the number of positives (Youden's J, MCC) adds a remainder: with P = P0 + e1 and the
tangent of g at P0, `sum - t g(P) = sum - t (g0 + g1 e1) + t r`, where r is at least 0 and at most `bend(x) x^2 / 2` for
|e1| <= x. So for t > 0 it only lowers the cdf, for t < 0 it only raises it (`bent_cdf_bounds`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray

# Shevtsova (2010): the best constant known for summands that are not identically distributed, and the paper's.
CONSTANT = 0.56

# Variances below are no numbers to divide by; with labels they come of chances such as 1e-200.
_NOTHING = 1e-200


def third_moment(p: FloatArray) -> FloatArray:
    """E|Y - p|^3 of a Bernoulli label."""
    v = p * (1.0 - p)
    return v * (1.0 - 2.0 * v)


def bernstein(x: FloatArray, variance: FloatArray, largest: FloatArray) -> FloatArray:
    """Bound on P(S >= x), and on P(S <= -x), of a centred sum of independent terms none of which passes `largest`."""
    x = np.maximum(x, 0.0)
    spread = 2.0 * (variance + largest * x / 3.0)
    with np.errstate(over="ignore"):
        exponent = np.divide(x**2, spread, out=np.where(x > 0.0, np.inf, 0.0), where=spread > 0.0)
    return np.asarray(np.exp(-exponent))


def cantelli(x: FloatArray, variance: FloatArray) -> FloatArray:
    """The same by the variance alone: better than Bernstein where few terms are likely to be anything but zero."""
    square = np.maximum(x, 0.0) ** 2
    with np.errstate(over="ignore"):
        ratio = np.divide(square, variance, out=np.where(square > 0.0, np.inf, 0.0), where=variance > 0.0)
    return np.asarray(1.0 / (1.0 + ratio))


def sum_cdf_lower(
    s: FloatArray, variance: FloatArray, third: FloatArray, largest: FloatArray, rounding: FloatArray
) -> FloatArray:
    """Lower bound on P(S <= s), and on P(S < s): Berry-Esseen, or Bernstein or Cantelli where they say more.

    `third` is the sum of |k|^3 E|Y - p|^3, `rounding` the largest error that s may carry; shapes broadcast. The
    theorems do not tell S from -S, so that one minus the bound at -s is an upper bound at s.
    """
    s = s - rounding
    known = variance > _NOTHING
    sd = np.sqrt(np.where(known, variance, 1.0))
    near = ndtr(s / sd) - CONSTANT * third / sd**3
    # Without variance S is zero, and only which side of zero s lies on matters.
    near = np.where(known, near, (s > 0.0) & (variance == 0.0))
    tail = np.minimum(bernstein(s, variance, largest), cantelli(s, variance))
    lower: FloatArray = np.clip(np.maximum(near, 1.0 - tail), 0.0, 1.0)
    return lower


def sum_cdf_bounds(s: FloatArray, *facts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on P(S <= s), and on P(S < s); `facts` as in `sum_cdf_lower`."""
    lower, above = sum_cdf_lower(np.stack([s, -s]), *facts)
    return lower, 1.0 - above


_DENSITY = 1.0 / np.sqrt(2.0 * np.pi)


class Line(NamedTuple):
    """The event {S(t) <= slope (t - root)}, slope > 0: variance and third moment of S at any t.

    `vertex` is the t at which the variance is least.

    `remainder` gives, for the intervals between points, by how much a part of S that is not linear in the labels can
    raise and lower the threshold, and the chance that it does so by more; None when there is no such part.
    """

    slope: float
    root: float
    variance: Callable[[FloatArray], FloatArray]
    third: Callable[[FloatArray], FloatArray]
    vertex: float
    remainder: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray, FloatArray]] | None = None


def gaps_between(lines: Sequence[Line], points: FloatArray, loc: FloatArray, scale: FloatArray) -> FloatArray:
    """Bound on |P(S(t) <= slope (t - root)) - Phi((t - loc) / scale)| on each interval between rising points.

    Rows are events, each with the Gaussian that it is held against.
    """
    first, last = points[:-1], points[1:]
    variance, third = (
        np.stack([of(points) for of in each]) for each in zip(*(line[2:4] for line in lines), strict=True)
    )
    least = np.stack([line.variance(np.clip(line.vertex, first, last)) for line in lines])
    # Rounding may put the variance at the vertex above that at an end.
    least = np.minimum(least, np.minimum(variance[:, :-1], variance[:, 1:]))
    most = np.maximum(variance[:, :-1], variance[:, 1:])
    slope, root = np.array([(line.slope, line.root) for line in lines]).T[:, :, None]
    loc, scale = loc[:, None], scale[:, None]
    off, y = np.stack([first, last])[:, None] - root, (points - loc) / scale
    raised = lowered = tail_up = tail_down = np.zeros(least.shape)
    if any(line.remainder is not None for line in lines):
        none = [np.zeros(first.shape)] * 4
        found = [none if line.remainder is None else line.remainder(points) for line in lines]
        raised, lowered, tail_up, tail_down = np.stack(found, axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # without variance nothing is known
        error = CONSTANT * np.maximum(third[:, :-1], third[:, 1:]) / least**1.5
        raised, lowered = raised / np.sqrt(least), lowered / np.sqrt(least)
        steep = slope / np.sqrt(np.stack([least, most]))
        z = steep[:, None] * off  # (least or most variance) x (first or last) x event x interval
        # z - y is linear in 1 / sd and in t, so that its extremes are at the four corners.
        corners = (steep - 1.0 / scale)[:, None] * off + (loc - root) / scale
        above, below = corners.max(axis=(0, 1)) + raised, lowered - corners.min(axis=(0, 1))
        low = np.minimum(z.min(axis=(0, 1)) - lowered, y[:, :-1])
        high = np.maximum(z.max(axis=(0, 1)) + raised, y[:, 1:])
        nearest = np.maximum(np.maximum(low, -high), 0.0)
        density = _DENSITY * np.exp(-0.5 * nearest**2)
        up = np.minimum(np.maximum(above, 0.0) * density, 1.0) + tail_up
        down = np.minimum(np.maximum(below, 0.0) * density, 1.0) + tail_down
        gap = np.maximum(up, down) + error
    return np.where(np.isfinite(gap), np.minimum(gap, 1.0), 1.0)


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
