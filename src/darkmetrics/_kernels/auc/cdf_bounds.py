"""Bounds on the cdf of ROC-AUC (mathematics of certificates: Berry-Esseen for the linear part, Bernstein for the rest).

With `e_i = w_i (Y_i - p_i)`, their sum e1, P0 and R0 the means of P and R:
`A - t D = R0 - P0^2/2 - t P0 (W - P0) + sum (rho_i - kappa) e_i + (t - 1/2) e1^2`, `kappa = P0 + t (W - 2 P0)`.
Ties counted in full add `(W_g - 2 P_g) / 2` to rho_i and `-1/2 sum_g e_g^2`, and a constant.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, dot
from darkmetrics._kernels.auc.ranks import RankData
from darkmetrics._kernels.cdf_bounds import Line, bernstein, sum_cdf_lower, third_moment

# Sums below each cell are kept of so many; of more of them below each block, and what is below within it is summed when
# it is asked for.
_FEW_CELLS, _BLOCK = 4096, 512
# Where the squares of tied groups are cut, in standard deviations.
_TIE_CUTS = np.array([4.0, 16.0, 64.0])


class Spread(NamedTuple):
    """What was lost when ranks were replaced by their mean: sums of squares and cubes per cell, the largest step."""

    second: FloatArray
    third: FloatArray
    largest: float


class AucSums(NamedTuple):
    """Sums over the missing rows from which the bounds at any t follow."""

    # Moments of rank around `centre` in units of the total weight: weighted by variance (all rows), and by the third
    # moment (all rows below a block of cells, for each block); `third` has the latter of each cell.
    centre: float
    rank: FloatArray
    variance_moments: FloatArray
    third: FloatArray
    third_moments: FloatArray
    block: int
    hidden_variance: float
    hidden_third: float
    hidden_step: float
    largest_weight: float
    mean_p: float
    mean_a: float  # without the part that is quadratic in e1
    total: float
    variance_p: float
    reach_p: float
    # Mean, variance and largest value of the sum of the squares of tied groups, zero when ties count half.
    ties: tuple[float, float, float]


def auc_sums(data: RankData, p: FloatArray, spread: Spread | None) -> AucSums:
    """One pass over the cells; O(cells), or O(cells log cells) when ties count in full."""
    c, w, v = data.counts, data.weight, p * (1.0 - p)
    unit = bool(np.all(w == 1.0))
    mass = c if unit else c * w
    expected = mass * p
    open_p = float(expected.sum())
    mean_p = data.known_p + open_p
    mean_a = data.known_r + dot(expected, data.rho) - 0.5 * mean_p**2
    rho, ties = data.rho, (0.0, 0.0, 0.0)
    second = c * v if unit else c * w * w * v
    third = second * (1.0 - 2.0 * v) if unit else second * w * (1.0 - 2.0 * v)  # E|Y - p|^3 = v (1 - 2 v)
    if data.full_ties:
        size = data.group_total.size
        group_open = np.bincount(data.group, expected, size)
        group_mean = data.group_known + group_open
        mean_a += data.settled_ties + 0.5 * float((group_mean * (data.group_total - group_mean)).sum())
        rho = rho + 0.5 * (data.group_total - 2.0 * group_mean)[data.group]
        group_v = np.bincount(data.group, second, size)
        spread_v = dot(c, w**4 * v * (1.0 - 6.0 * v)) + 2.0 * dot(group_v, group_v)
        reach = np.maximum(group_open, np.bincount(data.group, mass * (1.0 - p), size))
        ties = float(group_v.sum()), max(spread_v, 0.0), dot(reach, reach)
    if np.any(rho[1:] < rho[:-1]):
        order = np.argsort(rho, kind="stable")
        rho, second, third = rho[order], second[order], third[order]
    centre = float(np.clip(mean_p, rho[0], rho[-1]))
    rank = (rho - centre) / data.total
    variance_p = float(second.sum())
    block = 1 if rank.size <= _FEW_CELLS else _BLOCK
    starts = np.arange(0, rank.size, block)
    below, power = np.zeros((4, starts.size + 1)), third
    for i, row in enumerate(below):
        power = power * rank if i else third
        np.cumsum(power if block == 1 else np.add.reduceat(power, starts), out=row[1:])
    hidden = (0.0, 0.0, 0.0)
    if spread is not None:
        hidden = dot(w * w * v, spread.second), dot(w * w * w * third_moment(p), spread.third), spread.largest
    return AucSums(
        centre=centre,
        rank=rank,
        variance_moments=np.array([variance_p, dot(second, rank), dot(second * rank, rank)]),
        third=third,
        third_moments=below,
        block=block,
        hidden_variance=hidden[0],
        hidden_third=hidden[1],
        hidden_step=hidden[2],
        largest_weight=float(w.max()),
        mean_p=mean_p,
        mean_a=mean_a,
        total=data.total,
        variance_p=variance_p,
        reach_p=max(open_p, float(mass.sum()) - open_p),
        ties=ties,
    )


def auc_cdf_bounds(sums: AucSums, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on P(ROC-AUC <= t), had 0/0 no mass; O(log cells) for each t."""
    total, mean_p = sums.total, sums.mean_p
    kappa = (mean_p + t * (total - 2.0 * mean_p) - sums.centre) / total
    variance, third, largest = _linear_part(sums, kappa)
    s = t * mean_p * (total - mean_p) - sums.mean_a
    rounding = 1e-12 * (1.0 + np.abs(t)) * total * mean_p
    facts = [x[:, None] for x in (variance, third, largest, rounding)]
    s = s[:, None]
    # The part that is quadratic in e1 has the sign of `bend`: it only lowers the cdf, or only raises it. Beyond a cut
    # of e1 it is not bounded, but there is little mass. A bound that is raised is one minus a lower one at -s.
    bend = (t - 0.5)[:, None]
    cuts = _cuts(sums, np.abs(bend), s, facts[0])
    tails = 2.0 * bernstein(cuts, np.array(sums.variance_p), np.array(sums.largest_weight))
    tails[cuts >= sums.reach_p] = 0.0
    sign = np.where(bend > 0.0, 1.0, -1.0)
    bent = (sum_cdf_lower(sign * s - np.abs(bend) * cuts**2, *facts) - tails).max(axis=1, keepdims=True)
    straight = sum_cdf_lower(-sign * s, *facts)
    lower, upper = np.where(sign > 0.0, bent, straight), 1.0 - np.where(sign > 0.0, straight, bent)
    mean, spread, most = sums.ties
    if most > 0.0:
        # Squares of tied groups only raise the cdf; how much, Chebyshev bounds.
        upper = np.ones((t.size, 1))
        chances = np.append(1.0 / _TIE_CUTS**2, 0.0).tolist()
        for cut, chance in zip([*(mean + _TIE_CUTS * np.sqrt(spread)).tolist(), most], chances, strict=True):
            kept = sum_cdf_lower(-s - np.maximum(-bend, 0.0) * cuts**2 - 0.5 * cut, *facts)
            raised = 1.0 - kept + np.where(bend < 0.0, tails, 0.0) + chance
            upper = np.minimum(upper, raised.min(axis=1, keepdims=True))
    return np.clip(lower[:, 0], 0.0, 1.0), np.clip(upper[:, 0], 0.0, 1.0)


def auc_line(sums: AucSums, scale: float, shift: float) -> Line | None:
    """The event {shift + scale ROC-AUC <= t} as one that is linear in t; None when ties count in full."""
    slope, tilt = sums.mean_p * (sums.total - sums.mean_p), sums.total - 2.0 * sums.mean_p
    if sums.ties[2] > 0.0 or slope <= 0.0:
        return None
    m0, m1, _ = sums.variance_moments
    least = 0.0 if tilt == 0.0 or m0 == 0.0 else (m1 / m0 * sums.total + sums.centre - sums.mean_p) / tilt

    def kappa(t: FloatArray) -> FloatArray:
        return (sums.mean_p + (t - shift) / scale * tilt - sums.centre) / sums.total

    def variance_at(t: FloatArray) -> FloatArray:
        return _variance(sums, kappa(t))

    def third_at(t: FloatArray) -> FloatArray:
        return _third(sums, kappa(t))

    def remainder(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        t = (points - shift) / scale
        s, variance = slope * t - sums.mean_a, variance_at(points)
        bend = t - 0.5
        x = _cuts(sums, np.abs(bend)[:, None], s[:, None], variance[:, None])[:-1, 0]
        tail = np.where(
            x >= sums.reach_p, 0.0, 2.0 * bernstein(x, np.array(sums.variance_p), np.array(sums.largest_weight))
        )
        raised, lowered = np.maximum(-bend[:-1], 0.0) * x**2, np.maximum(bend[1:], 0.0) * x**2
        return raised, lowered, np.where(raised > 0.0, tail, 0.0), np.where(lowered > 0.0, tail, 0.0)

    moments = variance_at, third_at
    return Line(slope / scale, shift + scale * sums.mean_a / slope, *moments, shift + scale * least, remainder)


def _cuts(sums: AucSums, bend: FloatArray, s: FloatArray, variance: FloatArray) -> FloatArray:
    """Where to cut e1, two places for each t: the best one to first order, and the end of its range.

    What is lost, `bend x^2 phi(z) / sd + 2 exp(-x^2 / (2 (variance + largest x / 3)))`, is least near this x.
    """
    sd = np.sqrt(np.maximum(variance, 1e-300))
    density = np.exp(-0.5 * np.minimum(s**2 / sd**2, 100.0)) / np.sqrt(2.0 * np.pi)
    cost = bend * density * (sums.variance_p / sd)
    gain = np.log(np.maximum(1.0 / np.maximum(cost, 1e-30), 2.0))
    x = np.sqrt(2.0 * sums.variance_p * gain)
    x = np.sqrt(2.0 * (sums.variance_p + sums.largest_weight * x / 3.0) * gain)
    return np.concatenate([np.minimum(x, sums.reach_p), np.full(x.shape, sums.reach_p)], axis=1)


def _linear_part(sums: AucSums, kappa: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variance, third moment and largest term of `sum (rho_i - kappa) e_i`."""
    reach = np.maximum(np.abs(sums.rank[-1] - kappa), np.abs(sums.rank[0] - kappa))
    largest = sums.largest_weight * (sums.total * reach + sums.hidden_step)
    return _variance(sums, kappa), _third(sums, kappa), largest


def _variance(sums: AucSums, kappa: FloatArray) -> FloatArray:
    m0, m1, m2 = sums.variance_moments
    square = np.maximum(m2 - 2.0 * kappa * m1 + kappa**2 * m0, 0.0)
    return np.asarray(sums.total**2 * square + sums.hidden_variance)


def _third(sums: AucSums, kappa: FloatArray) -> FloatArray:
    powers = np.stack([-(kappa**3), 3.0 * kappa**2, -3.0 * kappa, np.ones(kappa.shape)])
    every, below = sums.third_moments[:, -1], _below(sums, np.searchsorted(sums.rank, kappa))
    signed = every @ powers - 2.0 * np.einsum("it,it->t", below, powers)
    noise = 1e-13 * (every[0] * (np.abs(kappa) + np.abs(sums.rank[[0, -1]]).max()) ** 3)
    cubes = sums.total**3 * (np.maximum(signed, 0.0) + noise)
    return np.asarray((np.cbrt(cubes) + np.cbrt(sums.hidden_third)) ** 3)


def _below(sums: AucSums, place: IntArray) -> FloatArray:
    """Sums of the third moments of all cells below each place, times powers of their rank (rows)."""
    if sums.block == 1:
        return sums.third_moments[:, place]
    start = place // sums.block
    blocks, own = np.unique(start, return_inverse=True)
    cells = np.minimum(blocks[:, None] * sums.block + np.arange(sums.block), sums.rank.size - 1)
    third, rank = sums.third[cells], sums.rank[cells]
    inside = np.zeros((4, blocks.size, sums.block + 1))
    for row in inside:
        np.cumsum(third, axis=1, out=row[:, 1:])
        third = third * rank
    return np.asarray(sums.third_moments[:, start] + inside[:, own, place - start * sums.block])
