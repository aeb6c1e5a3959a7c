"""ROC-AUC as a function of two sums of the labels (mathematics, section 3).

With weighted mid-ranks `rho_i` (weight below the score plus half the weight tied with it), `P = sum w_i Y_i` and
`R = sum w_i Y_i rho_i`: numerator `A = R - P^2 / 2`, denominator `D = P (W - P)`, ROC-AUC = A / D. Counting ties in
full, as the paper does, adds `1/2 sum_g P_g (W_g - P_g)` over groups g of tied scores to the numerator.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, dots


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


def auc_from_sums(data: RankData, p_sum: FloatArray, r_sum: FloatArray, ties: FloatArray | float) -> FloatArray:
    """ROC-AUC of labelings with these totals; nan where one class is absent."""
    d = p_sum * (data.total - p_sum)
    absent = np.minimum(p_sum, data.total - p_sum) <= data.dust
    result: FloatArray = np.full(d.shape, np.nan)
    np.divide(r_sum - 0.5 * p_sum**2 + ties, d, out=result, where=~absent)
    return np.clip(result, 0.0, 1.0)  # the numerator cancels, and with very unequal weights rounding shows


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
