"""ROC-AUC as a function of two sums of the labels (mathematics, section 3).

With weighted mid-ranks `rho_i` (weight below the score plus half the weight tied with it), `P = sum w_i Y_i` and
`R = sum w_i Y_i rho_i`: numerator `A = R - P^2 / 2`, denominator `D = P (W - P)`, ROC-AUC = A / D. Counting ties in
full, as the paper does, adds `1/2 sum_g P_g (W_g - P_g)` over groups g of tied scores to the numerator.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, dots


class RankData(NamedTuple):
    """What ROC-AUC needs of an evaluation set; arrays hold one entry per cell with missing rows, by rising score."""

    counts: FloatArray
    weight: FloatArray
    rho: FloatArray
    group: IntArray
    known_p: float
    known_r: float
    total: float
    full_ties: bool
    # One entry per group of tied scores that holds missing rows: total weight, known positive weight.
    group_total: FloatArray
    group_known: FloatArray
    # Tied pairs of groups without missing rows: a constant of the numerator when ties count in full.
    settled_ties: float
    # A class whose weight is no larger is absent: what is left of it is the rounding error of a sum.
    dust: float = 0.0


class AucMoments(NamedTuple):
    """Means, variances and covariance of numerator A and denominator D: numbers, or arrays over nodes."""

    mean_a: FloatArray
    mean_d: FloatArray
    var_a: FloatArray
    var_d: FloatArray
    cov: FloatArray


class LinearParts(NamedTuple):
    """Coefficients of the centred labels `w_i (Y_i - p_i)` in A and D, and the variance and means they rest on."""

    a: FloatArray
    d: FloatArray
    variance: FloatArray
    mean_p: FloatArray
    mean_r: FloatArray


def linear_parts(data: RankData, p: FloatArray) -> LinearParts:
    """First-order coefficients of numerator and denominator, using e^2 = v + (1 - 2p) e; `p` may have rows (nodes)."""
    w, c = data.weight, data.counts
    mean_p = np.asarray(data.known_p + dots(w * p, c))
    mean_r = np.asarray(data.known_r + dots(w * p * data.rho, c))
    skew = w * (1.0 - 2.0 * p)
    a = data.rho - mean_p[..., None] - 0.5 * skew
    d = data.total - 2.0 * mean_p[..., None] - skew
    if data.full_ties:
        group_mean = data.group_known + _by_tie(data, w * p)
        a = a + 0.5 * ((data.group_total - 2.0 * group_mean)[..., data.group] - skew)
    return LinearParts(a, d, w**2 * p * (1.0 - p), mean_p, mean_r)


def _by_tie(data: RankData, values: FloatArray) -> FloatArray:
    """The sum of a value of each missing row over the rows of each group of tied scores."""
    rows = (data.counts * values).reshape(-1, values.shape[-1])
    size = data.group_total.size
    return np.array([np.bincount(data.group, row, size) for row in rows]).reshape(*values.shape[:-1], size)


def auc_moments(data: RankData, p: FloatArray, parts: LinearParts | None = None) -> AucMoments:
    """First two moments of numerator and denominator, equal to the paper's O(n^4) sums, in O(cells) for each node."""
    c = data.counts
    parts = linear_parts(data, p) if parts is None else parts
    v = parts.variance
    total_v = dots(v, c)
    pairs = 0.5 * (total_v**2 - dots(v**2, c))
    mean_a = parts.mean_r - 0.5 * (parts.mean_p**2 + total_v)
    mean_d = parts.mean_p * (data.total - parts.mean_p) - total_v
    var_a = dots(v * parts.a**2, c) + pairs
    var_d = dots(v * parts.d**2, c) + 4.0 * pairs
    cov = dots(v * parts.a * parts.d, c) + 2.0 * pairs
    if data.full_ties:
        group_mean, group_v = data.group_known + _by_tie(data, data.weight * p), _by_tie(data, v)
        tied_pairs = 0.5 * (group_v**2 - _by_tie(data, v**2)).sum(axis=-1)
        mean_a += data.settled_ties + 0.5 * (group_mean * (data.group_total - group_mean) - group_v).sum(axis=-1)
        var_a += 3.0 * tied_pairs
        cov += 2.0 * tied_pairs
    return AucMoments(mean_a, mean_d, var_a, var_d, cov)


class RankSums(NamedTuple):
    """Sums over the rows of each column of their weight to a power, times their rank (about the middle) to one."""

    w1: FloatArray
    w1_rank: FloatArray
    w2: FloatArray
    w2_rank: FloatArray
    w2_rank2: FloatArray
    w3: FloatArray
    w3_rank: FloatArray
    w4: FloatArray

    @classmethod
    def of(cls, data: RankData, column: IntArray, columns: int) -> "RankSums":
        w, rho = data.weight, data.rho - 0.5 * data.total  # so that little cancels
        return cls(
            *(
                np.asarray(np.bincount(column, data.counts * w**power * rho**rank, columns), dtype=np.float64)
                for power, rank in ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (4, 0))
            )
        )


def auc_moments_of_columns(data: RankData, p: FloatArray, sums: RankSums) -> AucMoments:
    """The same where rows of one column have one chance (`p`: nodes x columns) and ties count one half.

    Powers of weights and ranks are added up before the nodes are gone through, which takes O(columns) for each.
    """
    v, tilt = p * (1.0 - p), 1.0 - 2.0 * p
    mean_p = data.known_p + p @ sums.w1
    mean_r = data.known_r + p @ sums.w1_rank + 0.5 * data.total * (p @ sums.w1)
    one, two, three = v @ sums.w2, v @ sums.w2_rank, v @ sums.w2_rank2
    bent, bent_rank, twice = (v * tilt) @ sums.w3, (v * tilt) @ sums.w3_rank, (v * tilt**2) @ sums.w4
    pairs = 0.5 * (one**2 - v**2 @ sums.w4)
    a, d = mean_p - 0.5 * data.total, data.total - 2.0 * mean_p  # a row's part in A is rho - a, but for its own label
    var_a = three - 2.0 * a * two + a**2 * one - (bent_rank - a * bent) + 0.25 * twice + pairs
    var_d = d**2 * one - 2.0 * d * bent + twice + 4.0 * pairs
    cov = d * (two - a * one) - (bent_rank - a * bent) - 0.5 * d * bent + 0.5 * twice + 2.0 * pairs
    mean_d = mean_p * (data.total - mean_p) - one
    return AucMoments(mean_r - 0.5 * (mean_p**2 + one), mean_d, var_a, var_d, cov)


def auc_influence(data: RankData, p: FloatArray) -> FloatArray:
    """Derivative of ROC-AUC by the label of one row of each cell, every label being at its chance; nan where D = 0."""
    mass = data.counts * data.weight
    p_sum, r_sum = data.known_p + float(p @ mass), data.known_r + float(p @ (mass * data.rho))
    a, d, slope = r_sum - 0.5 * p_sum**2, p_sum * (data.total - p_sum), data.rho - p_sum
    if data.full_ties:
        group = data.group_known + np.bincount(data.group, mass * p, data.group_total.size)
        a += data.settled_ties + 0.5 * float((group * (data.group_total - group)).sum())
        slope = slope + 0.5 * (data.group_total - 2.0 * group)[data.group]
    if not d > 0.0:
        return np.full(p.size, np.nan)
    return data.weight * (slope - a / d * (data.total - 2.0 * p_sum)) / d


def auc_from_sums(data: RankData, p_sum: FloatArray, r_sum: FloatArray, ties: FloatArray | float) -> FloatArray:
    """ROC-AUC of labelings with these totals; nan where one class is absent."""
    d = p_sum * (data.total - p_sum)
    absent = np.minimum(p_sum, data.total - p_sum) <= data.dust
    result: FloatArray = np.full(d.shape, np.nan)
    np.divide(r_sum - 0.5 * p_sum**2 + ties, d, out=result, where=~absent)
    return np.clip(result, 0.0, 1.0)  # the numerator cancels, and with very unequal weights rounding shows


def half_ties(data: RankData, p: FloatArray, groups: BoolArray | None = None) -> RankData:
    """The same problem without the tied pairs that count in full: to first order about `p` they are part of the ranks.

    Of all groups, or of some. The mean stays what it is; what is left out, the square of the deviation of a group's
    positives, is nothing beside the ranks of many groups.
    """
    if not data.full_ties:
        return data
    some = np.ones(data.group_total.size, dtype=np.bool_) if groups is None else groups
    mass = data.counts * data.weight
    known, total = np.where(some, data.group_known, 0.0), np.where(some, data.group_total, 0.0)
    open_ = np.where(some, np.bincount(data.group, mass * p, some.size), 0.0)
    slope = 0.5 * (total - 2.0 * (known + open_))
    pairs = 0.5 * (known + open_) * (total - known - open_) - slope * open_
    pairs -= np.where(some, 0.5 * np.bincount(data.group, mass * data.weight * p * (1.0 - p), some.size), 0.0)
    all_ = bool(some.all())
    return data._replace(
        full_ties=not all_,
        rho=data.rho + slope[data.group],
        known_r=data.known_r + float(pairs.sum()) + (data.settled_ties if all_ else 0.0),
        group_total=data.group_total - total,
        group_known=data.group_known - known,
        settled_ties=0.0 if all_ else data.settled_ties,
    )


def settled_ties(data: RankData) -> float:
    """What tied pairs of known labels add to the numerator, wherever the missing rows fall."""
    if not data.full_ties:
        return 0.0
    return data.settled_ties + 0.5 * float((data.group_known * (data.group_total - data.group_known)).sum())


def settle(data: RankData, p: FloatArray, labels: IntArray) -> tuple[RankData, FloatArray]:
    """The same problem once some missing rows are labelled: per cell, rows turned positive (+) or negative (-).

    `p` may have a row for each node.
    """
    turned = np.abs(labels)
    positive = data.weight * np.maximum(labels, 0)
    counts = data.counts - turned
    kept = counts > 0
    group_known = data.group_known + np.bincount(data.group, positive, data.group_total.size)
    group = data.group[kept]
    held = np.bincount(group, minlength=data.group_total.size) > 0
    open_groups = np.flatnonzero(held)
    pairs = 0.5 * group_known * (data.group_total - group_known)
    rest = data._replace(
        counts=counts[kept],
        weight=data.weight[kept],
        rho=data.rho[kept],
        group=(np.cumsum(held) - 1)[group],
        known_p=data.known_p + float(positive.sum()),
        known_r=data.known_r + float((positive * data.rho).sum()),
        group_total=data.group_total[open_groups],
        group_known=group_known[open_groups],
        settled_ties=data.settled_ties + float(pairs.sum() - pairs[open_groups].sum()) if data.full_ties else 0.0,
    )
    return rest, p[..., kept]


def auc_values(data: RankData, positives: IntArray) -> FloatArray:
    """ROC-AUC of each labeling (rows of `positives`: positives among the missing rows of each cell)."""
    mass = positives * data.weight
    p_sum = data.known_p + mass.sum(axis=1)
    r_sum = data.known_r + mass @ data.rho
    ties: FloatArray | float = 0.0
    if data.full_ties:
        size = data.group_total.size
        group_p = np.broadcast_to(data.group_known, (mass.shape[0], size)).copy()
        np.add.at(group_p.T, data.group, mass.T)
        ties = data.settled_ties + 0.5 * (group_p * (data.group_total - group_p)).sum(axis=1)
    return auc_from_sums(data, p_sum, r_sum, ties)


def auc_extremes(data: RankData) -> tuple[float, float]:
    """Lowest and highest ROC-AUC over all labelings of the missing rows (mathematics, section 5); O(cells).

    For each number q of positives the best labeling takes the q highest missing scores, the worst the q lowest; one
    scan over q with prefix sums. With unequal weights the scan is sharp when the extremes lie on their side of 1/2.
    """
    worst, best = _scan(data, best=False), _scan(data, best=True)
    if np.isnan(worst).all():
        return np.nan, np.nan
    return float(np.nanmin(worst)), float(np.nanmax(best))


def _scan(data: RankData, *, best: bool) -> FloatArray:
    """ROC-AUC where it can be extreme while missing rows turn positive one by one, from the best or the worst score.

    While the rows of a cell turn, numerator and denominator are quadratic in how many have: the extremes are where the
    cell begins or ends, or beside a root of `N' D - N D'`, which is quadratic again. Next to an end that has one class
    alone, and so no value, they are one row away from it.
    """
    step = -1 if best else 1
    counts, weight, rho = (values[::step] for values in (data.counts.astype(np.float64), data.weight, data.rho))
    p_sum = data.known_p + np.concatenate(([0.0], np.cumsum(counts * weight)))
    r_sum = data.known_r + np.concatenate(([0.0], np.cumsum(counts * weight * rho)))
    first, second = weight * (rho - p_sum[:-1]), -0.5 * weight**2
    ties = np.zeros(p_sum.size)
    if data.full_ties:
        group = data.group[::step]
        start = np.flatnonzero(np.diff(group, prepend=-1))
        before = p_sum[:-1] - np.repeat(p_sum[start], np.diff(np.append(start, group.size)))
        gain = 0.5 * weight * (data.group_total - 2.0 * data.group_known)[group] - weight * before
        base = 0.5 * float((data.group_known * (data.group_total - data.group_known)).sum())
        ties = data.settled_ties + base + np.concatenate(([0.0], np.cumsum(counts * (gain + counts * second))))
        first, second = first + gain, second + second
    ends = auc_from_sums(data, p_sum, r_sum, ties)
    inner = np.flatnonzero(counts > 1.0)
    if not inner.size:
        return ends
    c, w, p = counts[inner], weight[inner], p_sum[inner]
    n = (r_sum[inner] - 0.5 * p**2 + ties[inner], first[inner], second[inner])
    d = (p * (data.total - p), w * (data.total - 2.0 * p), -(w**2))
    roots = _roots(n[2] * d[1] - n[1] * d[2], n[2] * d[0] - n[0] * d[2], n[1] * d[0] - n[0] * d[1])
    q = np.clip(np.stack([np.ones(c.size), c - 1.0, *(f(root) for root in roots for f in (np.floor, np.ceil))]), 0.0, c)
    r = r_sum[inner] + q * (w * rho[inner])
    # What the numerator has beyond R - P^2 / 2 is due to ties.
    tied = n[0] + q * (n[1] + q * n[2]) - (r - 0.5 * (p + q * w) ** 2) if data.full_ties else 0.0
    return np.concatenate([ends, auc_from_sums(data, p + q * w, r, tied).ravel()])


def _roots(a: FloatArray, half_b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Real roots of `a x^2 + 2 half_b x + c`; zero where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        larger = -(half_b + np.copysign(np.sqrt(half_b**2 - a * c), half_b))
        found = larger / a, c / larger
    low, high = (np.where(np.isfinite(root), root, 0.0) for root in found)
    return low, high
