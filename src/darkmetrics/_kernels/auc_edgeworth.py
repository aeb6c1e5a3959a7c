"""The law of ROC-AUC when much is random: an Edgeworth expansion at every t (mathematics, section 3)."""

from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc import LinearParts, RankData, auc_moments, linear_parts, settle

_GRID = 4001
# A row is leading when it contributes more than this share of the variance; as many can be settled both ways.
_LARGEST_SHARE = 0.05
_MOST_LEADING = 5
_MOST_PARTS = 64
_CHUNK = 1 << 15  # rows summed at a time: few enough to stay in the processor's cache


def edgeworth_cdf(data: RankData, p: FloatArray, t: FloatArray) -> FloatArray:
    """P(ROC-AUC <= t) from the first four cumulants of A - tD, a quadratic form in the labels, at every t.

    No ratio is expanded: {A / D <= t} = {A - tD <= 0}. Mean and variance are exact; the third and fourth cumulants
    take the linear part and its interplay with the pairs e_i e_j (for full ties: of the half-tie form).
    """
    parts = linear_parts(data, p)
    moments = auc_moments(data, p, parts)
    sums = _joint_sums(data, p, parts)

    def in_t(kernel: str, degree: int) -> FloatArray:
        """Sum of kernel * (a - t d)^degree, at every t."""
        terms = [comb(degree, j) * sums[kernel, degree - j, j] * (-t) ** j for j in range(degree + 1)]
        return np.asarray(np.sum(terms, axis=0), dtype=np.float64)

    mean = moments.mean_a - t * moments.mean_d
    variance = moments.var_a - 2.0 * t * moments.cov + t**2 * moments.var_d
    gamma = 1.0 - 2.0 * t
    total_v = sums["v", 0, 0]
    ls = in_t("v", 1)
    lls = in_t("third", 2)
    l_third = in_t("third", 1)
    k3 = (
        in_t("third", 3)
        - 3.0 * gamma * (ls**2 - in_t("v^2", 2))
        + 3.0 * gamma**2 * (l_third * total_v - in_t("third v", 1))
        - gamma**3 * (total_v**3 - 3.0 * total_v * sums["v^2", 0, 0] + 2.0 * sums["v^3", 0, 0])
    )
    k4 = in_t("fourth", 4) - 12.0 * gamma * lls * ls + 12.0 * gamma**2 * ls**2 * total_v
    k4 = k4 + 3.0 * gamma**4 * total_v**4
    sd = np.sqrt(variance)
    x = -mean / sd
    skewness, kurtosis = k3 / sd**3, k4 / variance**2
    he2, he3, he5 = x**2 - 1.0, x**3 - 3.0 * x, x**5 - 10.0 * x**3 + 15.0 * x
    density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    correction = skewness / 6.0 * he2 + kurtosis / 24.0 * he3 + skewness**2 / 72.0 * he5
    result: FloatArray = np.clip(ndtr(x) - density * correction, 0.0, 1.0)
    return result


class Part(NamedTuple):
    """A case that the labels of a few leading rows leave: its probability, and what is still open in it."""

    weight: float
    data: RankData
    p: FloatArray


def split_at_leading_rows(data: RankData, p: FloatArray) -> list[Part] | None:
    """All labelings of the rows that contribute too much to the variance for an expansion; None if too many do.

    An expansion needs many rows of comparable influence. A row of huge weight, or of extreme rank among rows that
    hardly matter, is settled both ways instead, and the law is the mixture.
    """
    parts = linear_parts(data, p)
    moments = auc_moments(data, p, parts)
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
        return [Part(1.0, data, p)]
    cases: list[Part] = []
    for signs in product((-1, 1), repeat=len(leading)):
        labels = np.zeros(p.size, dtype=np.int64)
        labels[leading] = signs
        weight = float(np.prod(np.where(np.array(signs) > 0, p[leading], 1.0 - p[leading])))
        # Once these rows are settled, others may lead: a heavy positive leaves only the rows that score above it.
        inner = split_at_leading_rows(*settle(data, p, labels))
        if inner is None or len(cases) + len(inner) > _MOST_PARTS:
            return None
        cases += [part._replace(weight=weight * part.weight) for part in inner]
    return cases


def mixed_edgeworth_cdf(parts: list[Part], low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """A grid of ROC-AUC within [low, high], fine wherever a part has its mass, and the cdf of the mixture on it."""
    grids = []
    for part in parts:
        m = auc_moments(part.data, part.p)
        mean = m.mean_a / m.mean_d
        sd = float(np.sqrt(max(m.var_a - 2.0 * mean * m.cov + mean**2 * m.var_d, 0.0))) / m.mean_d
        grids.append(np.linspace(max(low, mean - 9.0 * sd), min(high, mean + 9.0 * sd), _GRID))
    t = np.unique(np.concatenate(grids))
    levels = np.sum([part.weight * edgeworth_cdf(part.data, part.p, t) for part in parts], axis=0)
    return t, np.maximum.accumulate(levels)


def _joint_sums(data: RankData, p: FloatArray, parts: LinearParts) -> dict[tuple[str, int, int], float]:
    """Sums over rows of a cumulant times a^i d^j: all that the cumulants of A - tD need, whatever t."""
    sums: dict[tuple[str, int, int], float] = {}
    for start in range(0, p.size, _CHUNK):
        rows = slice(start, start + _CHUNK)
        c, w, v, chance = data.counts[rows], data.weight[rows], parts.variance[rows], p[rows]
        third = w * (1.0 - 2.0 * chance) * v
        fourth = w**2 * v * (1.0 - 6.0 * chance * (1.0 - chance))
        kernels = {"v": (v, 1), "v^2": (v**2, 2), "v^3": (v**3, 0), "third": (third, 3), "third v": (third * v, 1)}
        a_power, d_power = [np.ones_like(v)], [np.ones_like(v)]
        for _ in range(4):
            a_power.append(a_power[-1] * parts.a[rows])
            d_power.append(d_power[-1] * parts.d[rows])
        for name, (kernel, highest) in {**kernels, "fourth": (fourth, 4)}.items():
            weighted = c * kernel
            for i in range(highest + 1):
                for j in range(highest + 1 - i):
                    key = (name, i, j)
                    sums[key] = sums.get(key, 0.0) + dot(weighted, a_power[i] * d_power[j])
    return sums
