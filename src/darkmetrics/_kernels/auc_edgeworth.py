"""The law of ROC-AUC when much is random: an Edgeworth expansion at every t (mathematics, section 3)."""

from collections.abc import Callable
from itertools import product as combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc import AucMoments, LinearParts, RankData, auc_moments, linear_parts, settle

# A row is leading when it contributes more than this share of the variance; as many can be settled both ways.
_LARGEST_SHARE = 0.05
_MOST_LEADING = 5
_MOST_PARTS = 64
_KERNELS = ("v", "v^2", "v^3", "third", "third v", "fourth")
_POWERS = [(degree - j, j) for degree in range(5) for j in range(degree + 1)]  # of a and d
# Each power but the first is one of lower degree times a (0) or d (1).
_STEPS = [(_POWERS.index((i - 1, j) if i else (i, j - 1)), 0 if i else 1) for i, j in _POWERS[1:]]
_KEYS = [(name, i, j) for name in _KERNELS for i, j in _POWERS]
_CHUNK = 1 << 15  # rows summed at a time: few enough to stay in the processor's cache


def edgeworth_cdf(
    data: RankData, p: FloatArray, t: FloatArray, known: tuple[LinearParts, AucMoments] | None = None
) -> FloatArray:
    """P(ROC-AUC <= t) from the first four cumulants of A - tD, a quadratic form in the labels, at every t.

    No ratio is expanded: {A / D <= t} = {A - tD <= 0}. Mean and variance are exact; the third and fourth cumulants
    take the linear part and its interplay with the pairs e_i e_j (for full ties: of the half-tie form).
    """
    parts, moments = known or _parts_and_moments(data, p)
    return expansion(_cumulants_in_t(data, p, parts, moments), t)


def expansion(cumulants: list[FloatArray], t: FloatArray) -> FloatArray:
    """The cdf at t from cumulants that are polynomials in t, lowest power first; powers x nodes x 1 for many nodes."""
    mean, variance, k3, k4 = (_horner(poly, t) for poly in cumulants)
    sd = np.sqrt(variance)
    x = -mean / sd
    skewness, kurtosis = k3 / (sd * variance), k4 / variance**2
    square = x**2
    he2, he3, he5 = square - 1.0, x * (square - 3.0), x * (square * (square - 10.0) + 15.0)
    density = np.exp(-0.5 * square) / np.sqrt(2.0 * np.pi)
    correction = skewness / 6.0 * he2 + kurtosis / 24.0 * he3 + skewness**2 / 72.0 * he5
    result: FloatArray = np.clip(ndtr(x) - density * correction, 0.0, 1.0)
    return result


def _horner(poly: FloatArray, t: FloatArray) -> FloatArray:
    result: FloatArray = poly[-1] * t + poly[-2]
    for coefficient in poly[-3::-1]:
        result *= t
        result += coefficient
    return result


def _parts_and_moments(data: RankData, p: FloatArray) -> tuple[LinearParts, AucMoments]:
    parts = linear_parts(data, p)
    return parts, auc_moments(data, p, parts)


def _cumulants_in_t(data: RankData, p: FloatArray, parts: LinearParts, moments: AucMoments) -> list[FloatArray]:
    sums = _joint_sums(data, p, parts)

    def in_t(kernel: str, degree: int) -> FloatArray:
        return np.array([comb(degree, j) * sums[kernel, degree - j, j] * (-1.0) ** j for j in range(degree + 1)])

    total_v = sums["v", 0, 0]
    triangles = total_v**3 - 3.0 * total_v * sums["v^2", 0, 0] + 2.0 * sums["v^3", 0, 0]
    means = np.array([moments.mean_a, moments.mean_d])
    mean, _, k3, k4 = cumulants_in_t(in_t, np.array([total_v]), np.array([triangles]), means, np.zeros(1))
    # Variances and covariance have terms of their own where ties count in full.
    return [mean, np.array([moments.var_a, -2.0 * moments.cov, moments.var_d]), k3, k4]


def cumulants_in_t(
    in_t: Callable[[str, int], FloatArray],
    total_v: FloatArray,
    triangles: FloatArray,
    means: FloatArray,
    pairs: FloatArray,
) -> list[FloatArray]:
    """The first four cumulants of A - tD as polynomials in t, lowest power first, along the last axis.

    `in_t` gives the sum of a kernel times (a - t d)^degree as such a polynomial, `means` those of A and D; all may have
    a row for each node.
    """
    gamma = np.array([1.0, -2.0])
    gamma2 = np.convolve(gamma, gamma)
    ls = in_t("v", 1)
    ls2 = product(ls, ls)
    k3 = (
        in_t("third", 3)
        - 3.0 * product(gamma, ls2 - in_t("v^2", 2))
        + 3.0 * product(gamma2, in_t("third", 1) * total_v - in_t("third v", 1))
        - np.convolve(gamma, gamma2) * triangles
    )
    k4 = in_t("fourth", 4) - 12.0 * product(product(gamma, in_t("third", 2)), ls)
    k4 = k4 + 12.0 * product(gamma2, ls2) * total_v + 3.0 * np.convolve(gamma2, gamma2) * total_v**4
    return [means * np.array([1.0, -1.0]), in_t("v", 2) + pairs * gamma2, k3, k4]


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Products of polynomials along the last axis."""
    shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    result: FloatArray = np.zeros((*shape, a.shape[-1] + b.shape[-1] - 1))
    for i in range(a.shape[-1]):
        result[..., i : i + b.shape[-1]] += a[..., i : i + 1] * b
    return result


class Part(NamedTuple):
    """A case that the labels of a few leading rows leave: its probability, and what is still open in it."""

    weight: float
    data: RankData
    p: FloatArray
    known: tuple[LinearParts, AucMoments]


def split_at_leading_rows(data: RankData, p: FloatArray) -> list[Part] | None:
    """All labelings of the rows that contribute too much to the variance for an expansion; None if too many do.

    An expansion needs many rows of comparable influence. A row of huge weight, or of extreme rank among rows that
    hardly matter, is settled both ways instead, and the law is the mixture.
    """
    parts, moments = _parts_and_moments(data, p)
    if moments.mean_d <= 0.0:
        return None
    influence = parts.variance * (parts.a - moments.mean_a / moments.mean_d * parts.d) ** 2
    left = dot(data.counts, influence)
    leading: list[int] = []
    most = min(_MOST_LEADING + 1, influence.size)
    top = np.argpartition(-influence, most - 1)[:most]
    for cell in top[np.argsort(-influence[top])].tolist():
        if influence[cell] <= _LARGEST_SHARE * left:
            break
        if data.counts[cell] > 1 or len(leading) == _MOST_LEADING:
            return None
        leading.append(cell)
        left -= float(influence[cell])
    if not leading:
        return [Part(1.0, data, p, (parts, moments))]
    cases: list[Part] = []
    for signs in combinations((-1, 1), repeat=len(leading)):
        labels = np.zeros(p.size, dtype=np.int64)
        labels[leading] = signs
        weight = float(np.prod(np.where(np.array(signs) > 0, p[leading], 1.0 - p[leading])))
        # Once these rows are settled, others may lead: a heavy positive leaves only the rows that score above it.
        inner = split_at_leading_rows(*settle(data, p, labels))
        if inner is None or len(cases) + len(inner) > _MOST_PARTS:
            return None
        cases += [part._replace(weight=weight * part.weight) for part in inner]
    return cases


def mixed_edgeworth_cdf(
    parts: list[Part], low: float, high: float, points: int = 4001
) -> tuple[FloatArray, FloatArray]:
    """A grid of ROC-AUC within [low, high], fine wherever a part has its mass, and the cdf of the mixture on it.

    Straight lines between `points` places over 18 standard deviations are off by 10 / points^2 at most.
    """
    grids = []
    for part in parts:
        m = part.known[1]
        mean = m.mean_a / m.mean_d
        sd = float(np.sqrt(max(m.var_a - 2.0 * mean * m.cov + mean**2 * m.var_d, 0.0))) / m.mean_d
        grids.append(np.linspace(max(low, mean - 9.0 * sd), min(high, mean + 9.0 * sd), points))
    t = grids[0] if len(grids) == 1 else np.unique(np.concatenate(grids))
    levels = np.sum([part.weight * edgeworth_cdf(part.data, part.p, t, part.known) for part in parts], axis=0)
    return t, np.maximum.accumulate(levels)


def _joint_sums(data: RankData, p: FloatArray, parts: LinearParts) -> dict[tuple[str, int, int], float]:
    """Sums over rows of a cumulant times a^i d^j: all that the cumulants of A - tD need, whatever t."""
    total = np.zeros((len(_KERNELS), len(_POWERS)))
    for start in range(0, p.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        c, w, v, chance = data.counts[rows], data.weight[rows], parts.variance[rows], p[rows]
        third = w * (1.0 - 2.0 * chance) * v
        fourth = w**2 * v * (1.0 - 6.0 * chance * (1.0 - chance))
        kernels = c * np.array([v, v**2, v**2 * v, third, third * v, fourth])
        powers = np.empty((len(_POWERS), v.size))
        powers[0] = 1.0
        factors = (parts.a[rows], parts.d[rows])
        for place, (lower, factor) in enumerate(_STEPS, start=1):
            np.multiply(powers[lower], factors[factor], out=powers[place])
        total += kernels @ powers.T
    return dict(zip(_KEYS, total.ravel().tolist(), strict=True))
