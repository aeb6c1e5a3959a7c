"""The law of ROC-AUC: on a lattice of its two sums when little is random, by Edgeworth expansion when much is."""

from math import comb

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray, dot
from darkmetrics._kernels.auc import LinearParts, RankData, auc_from_sums, auc_moments, linear_parts
from darkmetrics._kernels.poisson_binomial import poisson_binomial_pmf, tail_reach

# How finely the rank sums are resolved: as many steps per standard deviation as this many operations allow.
_BUDGET = 2e7
_FEWEST_STEPS, _MOST_STEPS = 64.0, 512.0
_EXACT_COLUMNS = 8192
_CHUNK = 1 << 15  # rows summed at a time: few enough to stay in the processor's cache
_MAX_BUCKETS = 256


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


def lattice_law(data: RankData, p: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    """Atoms of ROC-AUC (nan where undefined), their masses, and whether they are exact; unit weights only.

    The joint law of the number of positives K and their rank sum S, on a two-dimensional lattice: K is a whole number,
    S is exact while the half-integer ranks fit on the lattice, else rounded to 1/64 of its standard deviation or finer.
    """
    v = data.counts * p * (1.0 - p)
    # A half-integer centre, so that exact ranks stay on the half-integer lattice.
    centre = float(np.rint(2.0 * dot(v, data.rho) / float(v.sum())) / 2.0)
    rho = data.rho - centre
    spread = max(float(np.abs(rho).max()), 0.5)
    var_s = max(dot(v, rho**2), 0.25)
    if data.full_ties:  # a tied pair moves the sum by at most half the size of its group
        spread += 0.5 * float(data.group_total.max())
        var_s += 0.25 * dot(np.bincount(data.group, v), data.group_total**2)
    reach, reach_k = tail_reach(var_s, spread), tail_reach(float(v.sum()))
    mean_k, mean_s = dot(data.counts, p), dot(data.counts, p * rho)
    k_low = max(0, int(mean_k - reach_k))
    rows = min(int(data.counts.sum()), int(np.ceil(mean_k + reach_k))) - k_low + 1
    exact = 4.0 * reach <= _EXACT_COLUMNS
    sd = float(np.sqrt(var_s))
    affordable = _BUDGET / (min(rho.size, _MAX_BUCKETS) * rows * 2.0 * reach / sd)
    step = 0.5 if exact else sd / float(np.clip(affordable, _FEWEST_STEPS, _MOST_STEPS))
    buckets = [_bucket(data, rho, p, cells, exact) for cells in _cells_by_rank(data, rho, step, exact)]
    # Every bucket is measured from its likeliest count, so that the largest atom of the law is never rounded.
    base = sum(contribution[int(np.argmax(pmf))] for _, pmf, contribution in buckets)
    s_low = int(np.floor((mean_s + _tie_mean(data, p) - base - reach) / step)) - 1
    columns = int(np.ceil(2.0 * reach / step)) + 4
    # Places are kept modulo the window: what falls outside has mass below 1e-18 and wraps around unseen.
    mass = np.zeros((rows, columns))
    mass[0, 0] = 1.0
    for first, pmf, contribution in buckets:
        place = (contribution - contribution[int(np.argmax(pmf))]) / step
        level = np.floor(place + 1e-9).astype(np.int64)
        part = np.zeros(pmf.size) if exact else place - level
        new = np.zeros_like(mass)
        for j, chance in enumerate(pmf.tolist()):
            row, column = (first + j) % rows, int(level[j])
            new += chance * (1.0 - part[j]) * np.roll(mass, (row, column % columns), axis=(0, 1))
            if part[j] > 1e-9:  # share the mass between two neighbours so that the mean stays right
                new += chance * part[j] * np.roll(mass, (row, (column + 1) % columns), axis=(0, 1))
        mass = new
    mass = np.roll(mass, (-(k_low % rows), -(s_low % columns)), axis=(0, 1))
    k_index, s_index = np.nonzero(mass > 1e-18)
    k = (k_low + k_index).astype(np.float64)
    s = base + step * (s_low + s_index)
    auc = auc_from_sums(data, data.known_p + k, data.known_r + s + centre * k, _settled(data))
    return auc, mass[k_index, s_index], exact


def _settled(data: RankData) -> float:
    """What tied pairs of known labels add to the numerator, wherever the missing rows fall."""
    if not data.full_ties:
        return 0.0
    return data.settled_ties + 0.5 * float((data.group_known * (data.group_total - data.group_known)).sum())


def _tie_mean(data: RankData, p: FloatArray) -> float:
    """Expected addition of the missing rows to the tied pairs."""
    if not data.full_ties:
        return 0.0
    size = data.group_total.size
    added = np.bincount(data.group, data.counts * p, size)
    squares = added**2 + np.bincount(data.group, data.counts * p * (1.0 - p), size)
    return 0.5 * float((added * (data.group_total - 2.0 * data.group_known) - squares).sum())


def _bucket(
    data: RankData, rho: FloatArray, p: FloatArray, cells: IntArray, exact: bool
) -> tuple[int, FloatArray, FloatArray]:
    """First count, law of the number of positives, and what each count adds to the rank sum."""
    first, pmf = poisson_binomial_pmf(p[cells], data.counts[cells].astype(np.int64))
    k = np.arange(first, first + pmf.size, dtype=np.float64)
    weight = data.counts[cells] * np.where(p[cells] > 0.5, 1.0 - p[cells], p[cells])
    rank = rho[cells[0]] if exact or not weight.any() else dot(weight, rho[cells]) / float(weight.sum())
    # A count above one half is best read from the full side: all rows positive, less the rare negatives.
    total = dot(data.counts[cells], rho[cells])
    trials = float(data.counts[cells].sum())
    from_full = dot(data.counts[cells], p[cells]) > 0.5 * trials
    contribution = total - (trials - k) * rank if from_full else k * rank
    if data.full_ties:
        known, size = data.group_known[data.group[cells[0]]], data.group_total[data.group[cells[0]]]
        contribution = contribution + 0.5 * (known + k) * (size - known - k) - 0.5 * known * (size - known)
    return first, pmf, contribution


def _cells_by_rank(data: RankData, rho: FloatArray, step: float, exact: bool) -> list[IntArray]:
    """Cells that move together: one tie group each, or, on a rounded lattice, ranks that fall on one step."""
    level = data.group
    if not exact and not data.full_ties:
        width = max(step, float(np.ptp(rho)) / _MAX_BUCKETS)
        level = np.rint(rho / width).astype(np.int64)
    return np.split(np.arange(level.size), np.flatnonzero(np.diff(level)) + 1)
