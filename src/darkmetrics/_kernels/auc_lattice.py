"""The law of ROC-AUC when little is random: the joint law of the number of positives and of their rank sum.

Both are sums over groups of tied scores, so the law comes from adding up groups: as a list of atoms while the groups
are few, on a two-dimensional lattice otherwise (mathematics, section 3).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc import RankData, auc_from_sums
from darkmetrics._kernels.sums.poisson_binomial import (
    chernoff_reach,
    poisson_binomial_pmf,
    poisson_binomial_pmfs,
    tail_reach,
)

# Atoms that a list may hold; numbers that a lattice may move in all (its rows x columns x rolls).
_MOST_ATOMS = 1 << 20
_EXACT_WORK = 1e8
_ROUNDED_WORK = 2e7
_FEWEST_STEPS, _FEWEST_MIXED, _MOST_STEPS = 64.0, 16.0, 512.0
_MOST_COLUMNS, _MOST_MIXED = 16384, 2048
_MAX_BUCKETS = 256


class _Bucket(NamedTuple):
    """Cells that move together: the law of their positives, and what each count adds to the rank sum."""

    first: int
    pmf: FloatArray
    added: FloatArray

    @property
    def likeliest(self) -> float:
        """What the likeliest count adds."""
        return float(self.added[int(np.argmax(self.pmf))])


def auc_law_by_groups(data: RankData, p: FloatArray, share: float = 1.0) -> tuple[FloatArray, FloatArray] | None:
    """Atoms of ROC-AUC (nan where undefined) and their masses, exactly; None when they are too many. Unit weights.

    As one of several laws that are mixed it gets a `share` of the atoms.
    """
    most = share * _MOST_ATOMS
    if data.group_total.size > np.log2(most):  # each group has at least two counts
        return None
    k, s, mass = np.zeros(1), np.zeros(1), np.ones(1)
    for bucket in _tie_groups(data, data.rho, p):
        if mass.size * bucket.pmf.size > most:
            return None
        count = bucket.first + np.arange(bucket.pmf.size)
        k, s = np.add.outer(k, count).ravel(), np.add.outer(s, bucket.added).ravel()
        mass = np.multiply.outer(mass, bucket.pmf).ravel()
        kept = mass > 1e-20
        k, s, mass = k[kept], s[kept], mass[kept]
    return auc_from_sums(data, data.known_p + k, data.known_r + s, settled_ties(data)), mass


def auc_law_on_lattice(data: RankData, p: FloatArray, share: float = 1.0) -> tuple[FloatArray, FloatArray, bool]:
    """Atoms of ROC-AUC (nan where undefined), their masses, and whether they are exact. Unit weights.

    The number of positives is a whole number. The rank sum is exact while the half-integer ranks fit on the lattice,
    else rounded to 1/64 of its standard deviation or finer; as one of several laws that are mixed it gets a `share` of
    the work, and 1/16 will do.
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
    reach, reach_k = tail_reach(var_s, spread), chernoff_reach(np.ones(p.size), p, data.counts)
    if not data.full_ties:
        reach = max(0.5, min(reach, chernoff_reach(rho, p, data.counts)))
    mean_k, mean_s = dot(data.counts, p), dot(data.counts, p * rho) + _tie_mean(data, p)
    k_low = max(0, int(mean_k - reach_k))
    rows = min(int(data.counts.sum()), int(np.ceil(mean_k + reach_k))) - k_low + 1
    groups = data.group_total.size
    # A group rolls the lattice once for each count it can have: its missing rows and none.
    exact = rows * 4.0 * reach * (groups + float(data.counts.sum())) <= share * _EXACT_WORK
    step = 0.5
    if not exact:
        sd = float(np.sqrt(var_s))
        affordable = share * _ROUNDED_WORK / (min(groups, _MAX_BUCKETS) * rows * 2.0 * reach / sd)
        # Where hardly anything happens the window is many standard deviations wide; its own width then sets the step.
        fewest = _FEWEST_STEPS if share == 1.0 else _FEWEST_MIXED
        most = _MOST_COLUMNS if share == 1.0 else _MOST_MIXED
        step = max(sd / float(np.clip(affordable, fewest, _MOST_STEPS)), 2.0 * reach / most)
        if step <= 0.5:  # no finer than exact ranks
            exact, step = groups <= _MAX_BUCKETS, 0.5
    if exact or (data.full_ties and groups <= _MAX_BUCKETS):
        buckets = list(_tie_groups(data, rho, p))
    else:
        buckets = _rank_buckets(data, rho, p, step)
    # Every bucket is measured from its likeliest count, so that the largest atom of the law is never rounded.
    base = sum(bucket.likeliest for bucket in buckets)
    s_low = int(np.floor((mean_s - base - reach) / step)) - 1
    columns = int(np.ceil(2.0 * reach / step)) + 4
    # Places are kept modulo the window: what falls outside has mass below 1e-18 and wraps around unseen.
    mass = np.zeros((rows, columns))
    mass[0, 0] = 1.0
    for bucket in buckets:
        mass = _add_bucket(mass, bucket, step, exact=exact)
    mass = np.roll(mass, (-(k_low % rows), -(s_low % columns)), axis=(0, 1))
    k_index, s_index = np.nonzero(mass > 1e-18)
    k = (k_low + k_index).astype(np.float64)
    s = base + step * (s_low + s_index)
    auc = auc_from_sums(data, data.known_p + k, data.known_r + s + centre * k, settled_ties(data))
    return auc, mass[k_index, s_index], exact


def _add_bucket(mass: FloatArray, bucket: _Bucket, step: float, *, exact: bool) -> FloatArray:
    rows, columns = mass.shape
    place = (bucket.added - bucket.likeliest) / step
    level = np.floor(place + 1e-9).astype(np.int64)
    part = np.zeros(place.size) if exact else np.maximum(place - level, 0.0)
    new = np.zeros_like(mass)
    for j, chance in enumerate(bucket.pmf.tolist()):
        if chance < 1e-18:
            continue
        row, column = (bucket.first + j) % rows, int(level[j])
        _add_moved(new, mass, chance * (1.0 - part[j]), row, column % columns)
        if part[j] > 1e-9:  # share the mass between two neighbours so that the mean stays right
            _add_moved(new, mass, chance * part[j], row, (column + 1) % columns)
    return new


def _add_moved(to: FloatArray, mass: FloatArray, factor: float, row: int, column: int) -> None:
    """Add `factor * mass`, moved down and to the right; what leaves the window comes in again on the other side."""
    rows, columns = mass.shape
    for down, up in ((slice(row, None), slice(0, rows - row)), (slice(0, row), slice(rows - row, None))):
        for right, left in (
            (slice(column, None), slice(0, columns - column)),
            (slice(0, column), slice(columns - column, None)),
        ):
            to[down, right] += factor * mass[up, left]


def tie_groups_of_nodes(data: RankData, p: FloatArray) -> Iterator[_Bucket]:
    """The same for each row of `p`: what a group adds does not depend on the node, its pmf has a row for each."""
    ends = np.append(np.flatnonzero(np.diff(data.group)) + 1, p.shape[1])
    for start, end in zip(np.append(0, ends[:-1]), ends, strict=True):
        first, pmf = poisson_binomial_pmfs(p[:, start:end], data.counts[start:end].astype(np.int64))
        k = np.arange(first, first + pmf.shape[1], dtype=np.float64)
        yield _Bucket(first, pmf, _added(data, data.rho, k, start))


def _added(data: RankData, rho: FloatArray, k: FloatArray, cell: int) -> FloatArray:
    """What k positives in the group of a cell add to the rank sum."""
    added: FloatArray = k * rho[cell]
    if data.full_ties:
        known, size = data.group_known[data.group[cell]], data.group_total[data.group[cell]]
        added = added + 0.5 * (known + k) * (size - known - k) - 0.5 * known * (size - known)
    return added


def _tie_groups(data: RankData, rho: FloatArray, p: FloatArray) -> Iterator[_Bucket]:
    """One bucket for each group of tied scores that holds missing rows, made when it is asked for."""
    ends = np.append(np.flatnonzero(np.diff(data.group)) + 1, rho.size)
    for start, end in zip(np.append(0, ends[:-1]), ends, strict=True):
        cells = np.arange(start, end)
        first, pmf = poisson_binomial_pmf(p[cells], data.counts[cells].astype(np.int64))
        k = np.arange(first, first + pmf.size, dtype=np.float64)
        yield _Bucket(first, pmf, _added(data, rho, k, start))


def _rank_buckets(data: RankData, rho: FloatArray, p: FloatArray, step: float) -> list[_Bucket]:
    """Cells of nearly equal rank together, those that are likely positive apart from those that are not.

    Ranks are averaged over the rarer outcome, which keeps the mean of the rank sum exact. Where ties count in full, the
    pairs that a first positive of its group gains go with its rank; the one pair less that a second one gains is
    nothing beside a rank among many groups.
    """
    if data.full_ties:
        rho = rho + 0.5 * (data.group_total - 2.0 * data.group_known - 1.0)[data.group]
    width = max(step, float(np.ptp(rho)) / _MAX_BUCKETS)
    level = 2 * np.rint(rho / width).astype(np.int64) + (p > 0.5)
    order = np.argsort(level, kind="stable")
    buckets = []
    for cells in np.split(order, np.flatnonzero(np.diff(level[order])) + 1):
        c, likely = data.counts[cells], bool(p[cells[0]] > 0.5)
        first, pmf = poisson_binomial_pmf(p[cells], c.astype(np.int64))
        k = np.arange(first, first + pmf.size, dtype=np.float64)
        rare = c * (1.0 - p[cells] if likely else p[cells])
        rank = dot(rare, rho[cells]) / float(rare.sum()) if rare.any() else float(rho[cells[0]])
        added = dot(c, rho[cells]) - (float(c.sum()) - k) * rank if likely else k * rank
        buckets.append(_Bucket(first, pmf, added))
    return buckets


def settled_ties(data: RankData) -> float:
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
