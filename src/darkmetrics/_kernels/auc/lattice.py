"""The exact joint law of the number of positives and of their rank sum at one node (mathematics, section 3).

Mid-ranks are halves of whole numbers, so that both live on a lattice, whose step is the largest that all ranks share;
groups of tied scores are added one by one.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc.ranks import RankData, auc_from_sums, settled_ties
from darkmetrics._kernels.sums.poisson_binomial import chernoff_reach, poisson_binomial_pmf, tail_reach

# Numbers that a lattice may move in all (its rows x columns x rolls).
_WORK = 1e8
# Places for combinations of counts, at all and for each of them; up to so much floats hold every whole number.
_FEW_PLACES, _PLACES_PER_PAIR, _MOST_WHOLE = 1 << 16, 8, 2.0**52


def auc_law_on_lattice(data: RankData, p: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Atoms of ROC-AUC (nan where undefined) and their masses; None where there is no lattice, or too large a one.

    Missing rows have unit weights. Ranks are halves apart where labelled rows between them weigh whole numbers.
    """
    if not _in_halves(data):
        return None
    v, step, first = data.counts * p * (1.0 - p), _step(data), float(data.rho[0])
    # Whole steps away from a rank, so that all ranks are.
    centre = first + step * float(np.rint((dot(v, data.rho) / float(v.sum()) - first) / step))
    rho = data.rho - centre
    spread = max(float(np.abs(rho).max()), step)
    var_s = max(dot(v, rho**2), step**2)
    if data.full_ties:  # a tied pair moves the sum by at most half the size of its group
        spread += 0.5 * float(data.group_total.max())
        var_s += 0.25 * dot(np.bincount(data.group, v), data.group_total**2)
    rolls = data.group_total.size + float(data.counts.sum())  # one for each count a group can have
    # Four standard deviations to each side, a lower bound that takes no time.
    if 8.0 * np.sqrt(var_s) / step * rolls * (1.0 + np.sqrt(float(v.sum()))) > _WORK:
        return None
    reach, reach_k = tail_reach(var_s, spread), chernoff_reach(np.ones(p.size), p, data.counts)
    if not data.full_ties:
        reach = max(step, min(reach, chernoff_reach(rho, p, data.counts)))
    mean_k, mean_s = dot(data.counts, p), dot(data.counts, p * rho) + _tie_mean(data, p)
    k_low = max(0, int(mean_k - reach_k))
    rows = min(int(data.counts.sum()), int(np.ceil(mean_k + reach_k))) - k_low + 1
    if rows * 2.0 * (reach / step) * rolls > _WORK:
        return None
    s_low, columns = int(np.floor((mean_s - reach) / step)) - 1, int(np.ceil(2.0 * reach / step)) + 4
    # Places are kept modulo the window: what falls outside has mass below 1e-18 and wraps around unseen.
    mass = np.zeros((rows, columns))
    mass[0, 0] = 1.0
    starts = np.flatnonzero(np.diff(data.group, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), p.size], strict=True):
        least, pmf = poisson_binomial_pmf(p[start:end], data.counts[start:end].astype(np.int64))
        new = np.zeros_like(mass)
        for k, chance in enumerate(pmf.tolist(), start=least):
            if chance >= 1e-18:
                _add_moved(new, mass, chance, k % rows, round(_added(data, rho, k, start) / step) % columns)
        mass = new
    mass = np.roll(mass, (-(k_low % rows), -(s_low % columns)), axis=(0, 1))
    k_index, s_index = np.nonzero(mass > 1e-18)
    positives, rank_sum = (k_low + k_index).astype(np.float64), step * (s_low + s_index)
    sums = data.known_p + positives, data.known_r + rank_sum + centre * positives
    return auc_from_sums(data, *sums, settled_ties(data)), mass[k_index, s_index]


class Counted(NamedTuple):
    """Combinations of counts at one node: number of positives, what they add to the rank sum, and mass."""

    positives: FloatArray
    added: FloatArray
    mass: FloatArray


def pairs_on_lattice(one: Counted, two: Counted) -> Counted | None:
    """All pairs of combinations of two lists, those of the same sums as one: by rising positives, then rank sums.

    None where sums are no halves, or would be more places than there are pairs to put on them.
    """
    counts, sums = [], []
    for part in (one, two):
        number, halves = np.rint(part.positives), np.rint(2.0 * part.added)
        if np.any(part.positives != number) or np.any(2.0 * part.added != halves):
            return None
        if max(float(number.max()), float(np.abs(halves).max())) > _MOST_WHOLE:
            return None
        counts.append(number.astype(np.int64))
        sums.append((halves - halves.min()).astype(np.int64))
    step = max(1, int(np.gcd.reduce(np.concatenate(sums))))
    width, height = (sum(int(part.max()) for part in parts) // by + 1 for parts, by in ((sums, step), (counts, 1)))
    if width * height > max(_FEW_PLACES, _PLACES_PER_PAIR * one.mass.size * two.mass.size):
        return None
    place = np.add.outer(*(number * width + total // step for number, total in zip(counts, sums, strict=True)))
    each = np.multiply.outer(one.mass, two.mass).ravel()
    mass = np.asarray(np.bincount(place.ravel(), each, width * height), dtype=np.float64)
    held = np.flatnonzero(mass > 0.0)
    least = 0.5 * (np.rint(2.0 * one.added).min() + np.rint(2.0 * two.added).min())
    return Counted((held // width).astype(np.float64), least + 0.5 * step * (held % width), mass[held])


def _in_halves(data: RankData) -> bool:
    """Whether ranks, and tied pairs where they count in full, are whole numbers of halves apart."""
    parts = [2.0 * np.diff(data.rho), *([data.group_total, data.group_known] if data.full_ties else [])]
    # To the last digit, as sums of halves are: a tolerance would take all small weights for none.
    return all(bool(np.all(part == np.rint(part)) and np.abs(part).max(initial=0.0) <= _MOST_WHOLE) for part in parts)


def _step(data: RankData) -> float:
    """The largest step of which all ranks are a whole number apart: grades of equal size are as far as their rows."""
    if data.full_ties:  # tied pairs come in halves
        return 0.5
    return 0.5 * max(1.0, float(np.gcd.reduce(np.rint(2.0 * np.diff(data.rho)).astype(np.int64), initial=0)))


def _add_moved(to: FloatArray, mass: FloatArray, factor: float, row: int, column: int) -> None:
    """Add `factor * mass`, moved down and to the right; what leaves the window comes in again on the other side."""
    rows, columns = mass.shape
    for down, up in ((slice(row, None), slice(0, rows - row)), (slice(0, row), slice(rows - row, None))):
        for right, left in (
            (slice(column, None), slice(0, columns - column)),
            (slice(0, column), slice(columns - column, None)),
        ):
            to[down, right] += factor * mass[up, left]


def _added(data: RankData, rho: FloatArray, k: float, cell: int) -> float:
    """What k positives in the group of a cell add to the rank sum."""
    added = k * float(rho[cell])
    if data.full_ties:
        known, size = float(data.group_known[data.group[cell]]), float(data.group_total[data.group[cell]])
        added += 0.5 * (known + k) * (size - known - k) - 0.5 * known * (size - known)
    return added


def _tie_mean(data: RankData, p: FloatArray) -> float:
    """Expected addition of the missing rows to the tied pairs."""
    if not data.full_ties:
        return 0.0
    size = data.group_total.size
    added = np.bincount(data.group, data.counts * p, size)
    squares = added**2 + np.bincount(data.group, data.counts * p * (1.0 - p), size)
    return 0.5 * float((added * (data.group_total - 2.0 * data.group_known) - squares).sum())
