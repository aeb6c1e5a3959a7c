"""How far counting scores in bins can move a metric: proven bounds, for all labelings and all places in a bin.

Everywhere `known` is the positive weight of each group of tied cells, `open_` the weight of its rows without a label,
`total` that of all its rows, and `wide` says whether the group holds different scores.
"""

from collections.abc import Callable

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray

# Tangents to a concave function: so many at first, and so many more where the bound is attained, a few times.
_TANGENTS, _MORE, _TIMES = 24, 8, 3
# A few rounds bring a ratio to within a thousandth of its largest value.
_ROUNDS = 20


def auc_effect(known: FloatArray, open_: FloatArray, total: FloatArray, wide: BoolArray, least: float) -> float:
    """A bound on `sum p_b n_b / (P N)` over wide groups: all pairs whose order in a bin is not known.

    Given the number P of positives, the sum is at most a concave function of P (continuous p_b, water-filling), which
    lies below its tangents. On a stretch where one tangent is lowest the bound is a linear over a concave function,
    and so is largest at an end of the stretch. `least` is the smallest positive weight of a row: with none of the
    rows positive, or all, there is no AUC. O(groups) for each tangent.
    """
    everything = float(total.sum())
    start, end = float(known.sum()), float(known.sum() + open_.sum())
    low, high = max(start, least), min(end, everything - least)
    p, m, t = known[wide], open_[wide], total[wide]
    if low > high or not t.size:
        return 0.0
    rest_known, rest_open = start - float(p.sum()), end - start - float(m.sum())

    def tangent(slope: float) -> float:
        """The height at P = 0 of the tangent of this slope."""
        best = np.clip(0.5 * (t - slope), p, p + m)
        rest = max(0.0, -slope * rest_open) - slope * rest_known
        return float(np.einsum("i,i->", best, t - best - slope)) + rest

    moving = m > 0.0
    ends = np.concatenate([(t - 2.0 * p)[moving], (t - 2.0 * (p + m))[moving], [0.0]])
    slopes = np.unique(np.quantile(ends, np.linspace(0.0, 1.0, _TANGENTS), method="nearest"))
    heights = np.array([tangent(slope) for slope in slopes])
    bound = np.inf
    for _ in range(_TIMES):
        # Neighbouring tangents cross here; slopes rise, so that P falls.
        crossing = -np.diff(heights) / np.diff(slopes)
        places = np.concatenate([[low, high], np.clip(crossing, low, high)])
        below = np.min(heights[:, None] + slopes[:, None] * places, axis=0)
        ratio = below / (places * (everything - places))
        best = int(np.argmax(ratio))
        bound = min(bound, float(ratio[best]))
        here = int(np.argmin(heights + slopes * places[best]))
        around = slopes[max(0, here - 1)], slopes[min(slopes.size - 1, here + 1)]
        more = np.setdiff1d(np.linspace(*around, _MORE + 2), slopes)
        slopes = np.concatenate([slopes, more])
        heights = np.concatenate([heights, [tangent(slope) for slope in more]])
        order = np.argsort(slopes)
        slopes, heights = slopes[order], heights[order]
    return max(0.0, bound)


def top_effect(known: float, open_: float, total: float, inside: float, elsewhere: float | None) -> float:
    """A bound on the change of the positives in the top k, or of their share among all positives.

    The cut goes through one bin, of which the weight `inside` belongs to the top. With p positives it counts
    `p inside / total` of them, while the truth is anything from `p + inside - total` to p, but not below 0 nor above
    `inside`. `elsewhere` is the smallest positive weight in all other bins, for the share; None for the sum itself.
    """
    change = 0.0
    # Both differences rise and then fall with p, as sums and as shares; they turn at these places.
    for turn in (inside, total - inside):
        p = min(max(turn, known), known + open_)
        share = p * inside / total
        most = max(min(p, inside) - share, share - max(0.0, p + inside - total))
        whole = 1.0 if elsewhere is None else p + elsewhere
        change = max(change, most / whole if whole > 0.0 else 0.0)
    return change


def average_precision_effect(
    known: FloatArray, open_: FloatArray, total: FloatArray, wide: BoolArray, least: float
) -> float:
    """A bound on the change of average precision; groups by falling score.

    A group with F positives among S rows above it, p positives and n negatives adds `p (F + p) / (S + p + n)`. With
    its positives first it would add at most `p (F + p) / (S + p)`, which is more by `p n / (S + p + n)` times the
    precision `(F + p) / (S + p)`; with its negatives first at least `sum_i (F + i) / (S + n + i)`, which is less by at
    most `p^2 / (2 (S + p + n))` times the share of negatives `(S + n - F) / (S + n)`. The largest sum of either over
    the number of positives is a fractional program whose terms are known one by one.
    """
    if not wide.any():
        return 0.0
    through = np.cumsum(total)
    above = through - total
    most_known, least_known = np.cumsum(known + open_), np.cumsum(known) - known
    ends = known, known + open_
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(wide, most_known / (above + ends[1]), 0.0)
        others = above + total - known
        negative = np.where(wide & (others > 0.0), (others - least_known) / others, 0.0)
        up = np.nan_to_num(np.minimum(precision, 1.0) / through)
        down = np.nan_to_num(np.minimum(negative, 1.0) / (2.0 * through))

    def up_at(slope: float) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = 0.5 * (total - slope / up)
        return np.clip(np.where(up > 0.0, peak, -np.inf), *ends)

    def down_at(slope: float) -> FloatArray:
        # Convex: the largest difference to a line is at an end.
        gain = [down * end**2 - slope * end for end in ends]
        return np.where(gain[1] > gain[0], ends[1], ends[0])

    smallest = max(float(known.sum()), least)
    return max(
        _largest_ratio(lambda p: up * p * (total - p), up_at, ends[1], smallest),
        _largest_ratio(lambda p: down * p**2, down_at, ends[1], smallest),
    )


def _largest_ratio(
    gain: Callable[[FloatArray], FloatArray], best: Callable[[float], FloatArray], first: FloatArray, smallest: float
) -> float:
    """A bound on the largest `sum gain(p) / sum p` (Dinkelbach): `probability_best(t)` maximises `sum gain(p) - t p`.

    The ratio climbs to its largest value from below; what may be missing when it stops is added.
    """
    p, ratio, left = first, 0.0, 0.0
    for _ in range(_ROUNDS):
        whole = float(p.sum())
        if whole > 0.0:
            ratio = max(ratio, float(gain(p).sum()) / whole)
        p = best(ratio)
        left = max(0.0, float((gain(p) - ratio * p).sum()) / smallest)
        if left <= 1e-3 * ratio:
            break
    return ratio + left
