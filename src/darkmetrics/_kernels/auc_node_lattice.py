"""The joint law of the number of positives K and their rank sum S at many nodes, on one lattice (section 3).

Every row has a likeliest label, the same at all nodes; what is counted are the rows that differ from it. Little is
random, so these are few.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc import RankData
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs

# How far the window reaches from the mean of a node: standard deviations, and rows of the farthest rank besides.
_REACH, _ROWS_BESIDES = 5.5, 1.5
# Steps of the lattice for a standard deviation of the mixture, and for that of a node, where exact ranks would need too
# many places.
_STEPS, _OWN_STEPS, _EXACT_PLACES = 24.0, 16.0, 3 << 14
MOST_BUCKETS = 32
# Flips in one bucket: expected, counted, and the least chance of them that is kept.
_FEW_FLIPS, _MOST_FLIPS, _FAINTEST = 4.0, 24, 1e-11


class _Flips(NamedTuple):
    """Rows of nearly equal rank: how many differ from their likeliest label, at each anchor, and what one moves."""

    pmf: FloatArray
    sign: int
    rank: float


class Window(NamedTuple):
    """The lattice: rows of K from `low`, columns of S from `start` in steps of `step`."""

    low: int
    rows: int
    start: float
    step: float
    columns: int
    # Mid-ranks are on the lattice: nothing is rounded.
    exact: bool

    def size(self) -> int:
        """Places in all."""
        return self.rows * self.columns

    def k(self) -> FloatArray:
        """Numbers of positives, by row."""
        return self.low + np.arange(self.rows, dtype=np.float64)

    def s(self) -> FloatArray:
        """Rank sums, by column."""
        return self.start + self.step * np.arange(self.columns, dtype=np.float64)


def window_of(data: RankData, p: FloatArray, weight: FloatArray, rho: FloatArray, flip: BoolArray) -> Window:
    """A lattice that holds the laws of all nodes."""
    c = data.counts
    v = p * (1.0 - p) * c
    mean_k, mean_s, var_s = p @ c, p @ (c * rho), v @ rho**2
    reach = _REACH * np.sqrt(v.sum(axis=1)) + _ROWS_BESIDES
    likeliest, on = float((c * rho)[flip].sum()), float(c[flip].sum())
    low = max(0, int(np.floor(min(on, float((mean_k - reach).min())))))
    rows = min(int(c.sum()), int(np.ceil(max(on, float((mean_k + reach).max()))))) - low + 1
    reach = _REACH * np.sqrt(var_s) + _ROWS_BESIDES * float(np.abs(rho).max())
    start, end = min(likeliest, float((mean_s - reach).min())), max(likeliest, float((mean_s + reach).max()))
    sd = max(float(np.sqrt(weight @ (var_s + (mean_s - weight @ mean_s) ** 2))), 0.25)
    unit = 1.0 if np.all(rho == np.rint(rho)) else 0.5
    few = rho.size <= 3 * MOST_BUCKETS and rows * (end - start) <= _EXACT_PLACES * unit
    exact = few and bool(np.all(2.0 * rho == np.rint(2.0 * rho)))
    step = unit if exact else min(sd / _STEPS, max(float(np.sqrt(weight @ var_s)), 0.25) / _OWN_STEPS)
    # The likeliest labeling is on the lattice: its atom, perhaps a large one, is not rounded.
    start = likeliest - step * float(np.ceil((likeliest - start) / step))
    return Window(low, rows, start, step, int(np.ceil((end - start) / step)) + 1, exact)


def lattice_laws(data: RankData, p: FloatArray, rho: FloatArray, flip: BoolArray, window: Window) -> FloatArray:
    """Joint law of K and S at each anchor (row of `p`): anchors x rows x columns.

    Both places are one number, so that a sum that leaves its row of the window for a while finds its way back.
    """
    size = window.rows * window.columns
    k, s = float(data.counts[flip].sum()), float((data.counts * rho)[flip].sum())
    low = int(k - window.low) * window.columns + round((s - window.start) / window.step)
    high = low + 1  # all mass is in between
    mass, into, spare = np.zeros((3, p.shape[0], size))
    mass[:, low] = 1.0
    for flips in _rank_flips(data, p, rho, flip, window):
        moves = _moves(flips, window)
        first, last = max(0, low + min(0, *moves)), min(size, high + max(0, *moves))
        into[:, first:low] = into[:, high:last] = 0.0
        np.multiply(mass[:, low:high], flips.pmf[:, :1], out=into[:, low:high])
        for by, factor in moves.items():
            a, b = max(low, -by), min(high, size - by)
            if a < b:
                moved = np.multiply(mass[:, a:b], factor, out=spare[:, : b - a])
                into[:, a + by : b + by] += moved
        mass, into, low, high = into, mass, first, last
    mass[:, :low] = mass[:, high:] = 0.0
    return mass.reshape(p.shape[0], window.rows, window.columns)


def _moves(flips: _Flips, window: Window) -> dict[int, FloatArray]:
    """How far mass moves, and how much of it at each anchor; between two places it is shared, which keeps the mean."""
    moves: dict[int, FloatArray] = {}
    for j in range(1, flips.pmf.shape[1]):
        place = j * flips.sign * flips.rank / window.step
        column = int(np.floor(place + 1e-9))
        part = 0.0 if window.exact else max(0.0, place - column)
        by = j * flips.sign * window.columns + column
        for to, share in ((by, 1.0 - part), (by + 1, part)):
            if share > 1e-9:
                moves[to] = moves.get(to, 0.0) + share * flips.pmf[:, j : j + 1]
    return moves


def _rank_flips(data: RankData, p: FloatArray, rho: FloatArray, flip: BoolArray, window: Window) -> list[_Flips]:
    """Cells by rank, each by itself or neighbours together, those that are likely positive apart from the others."""
    level = np.arange(rho.size)
    if not window.exact and rho.size > MOST_BUCKETS:
        width = max(window.step, float(np.ptp(rho)) / MOST_BUCKETS)
        level = 2 * np.rint(rho / width).astype(np.int64) + flip
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=level[order[0]] - 1))
    rare = np.where(flip, 1.0 - p, p)[:, order]
    share = rare.sum(axis=0) * data.counts[order]
    rank = np.add.reduceat(share * rho[order], starts) / np.add.reduceat(share, starts)
    result = [
        _Flips(pmf, -1 if flip[order[first]] else 1, float(at))
        for pmf, first, at in zip(_flip_pmfs(rare, data.counts[order], starts), starts.tolist(), rank, strict=True)
    ]
    # From both ends in turn, so that sums do not stray far on their way.
    return [result[i // 2] if i % 2 == 0 else result[-(i // 2) - 1] for i in range(len(result))]


def _flip_pmfs(rare: FloatArray, counts: FloatArray, starts: IntArray) -> list[FloatArray]:
    """The law of how many rows of each bucket flip, at each anchor: a list over buckets of anchors x flips.

    From power sums of the odds, `k P(k) = sum_j (-1)^(j-1) T_j P(k-j)`, which loses no digits where few are expected.
    """
    rows, ends = np.add.reduceat(counts, starts), np.append(starts[1:], counts.size)
    expected = np.add.reduceat(counts * rare, starts, axis=1).max(axis=0)
    few = (expected <= _FEW_FLIPS) & (np.maximum.reduceat(rare.max(axis=0), starts) <= 0.5)
    odds = np.minimum(rare / (1.0 - rare), 1.0)
    pmf = np.zeros((*rare.shape[:1], starts.size, int(min(rows.max(), _MOST_FLIPS)) + 1))
    pmf[..., 0] = np.exp(np.add.reduceat(counts * np.log1p(-rare), starts, axis=1))
    sums, power = [], counts * np.ones_like(odds)
    for k in range(1, pmf.shape[2]):
        power = power * odds
        sums.append(np.add.reduceat(power, starts, axis=1))
        for j in range(1, k + 1):
            pmf[..., k] += (-1.0) ** (j - 1) / k * sums[j - 1] * pmf[..., k - j]
        pmf[..., k] = np.where(rows >= k, np.maximum(pmf[..., k], 0.0), 0.0)
        if pmf[:, few, k].max(initial=0.0) < _FAINTEST:
            break
    kept = (pmf.max(axis=0) > _FAINTEST).sum(axis=1).tolist()
    result = []
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if few[i]:
            result.append(np.ascontiguousarray(pmf[:, i, : max(1, kept[i])]))
        else:
            first, each = poisson_binomial_pmfs(rare[:, start:end], counts[start:end].astype(np.int64))
            result.append(np.pad(each, ((0, 0), (first, 0))))
    return result
