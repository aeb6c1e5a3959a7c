"""The law of ROC-AUC from the numbers of positives in clusters of rows that move it alike (mathematics, section 3).

Missing rows of neighbouring ranks (and equal weight) form a cluster. Which of its rows are positive matters little once
it is known how many are: given the counts of all clusters, ROC-AUC is a narrow smooth variable, of which four cumulants
are known; and it is one value where the rows of each cluster are tied. The law is the mixture over all combinations of
counts. Clusters are split while combinations are few enough, so that with few rows, or few ties, the law is exact.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc.lattice import Counted, pairs_on_lattice
from darkmetrics._kernels.auc.plan import (
    FAINTEST,
    LIKELIEST,
    Effects,
    Plan,
    alike_nodes,
    anchors_of,
    effects_of,
    likeliest,
    whole_groups,
)
from darkmetrics._kernels.auc.ranks import RankData, auc_from_sums, auc_values, half_ties, settled_ties
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.sums.smooth import cornish_fisher

_ORDERS = 5  # the mass, and four moments
_BINOMIAL = np.array([[comb(j, i) for i in range(_ORDERS)] for j in range(_ORDERS)], dtype=np.float64)
_LOWER = np.subtract.outer(np.arange(_ORDERS), np.arange(_ORDERS))
# Rows of a block at least, when many are added; the least mass of a count that is kept.
_BLOCK, _FAINTEST = 32, 1e-24


class Given(NamedTuple):
    """Mean of the sum for each count, its cumulants 2 to 4 (rows), and the mean of another sum."""

    mean: FloatArray
    cumulants: FloatArray
    also: FloatArray


def cumulants_given_count(
    p: FloatArray, weight: FloatArray, counts: IntArray, x: FloatArray, other: FloatArray | None, k: IntArray
) -> Given:
    """Cumulants of sum x_i Y_i given sum Y_i = k, for labels of chances `p` (a row for each node, mixed by `weight`).

    `counts[i]` labels share x[i] and the chances. `other` are the terms of another sum of which the mean is wanted.
    """
    v = counts * (weight @ p) * (1.0 - weight @ p) + 1e-300
    centre = float(v @ x / v.sum())
    scale = float(np.sqrt(v @ (x - centre) ** 2 / v.sum()))
    # Rows that are nearly sure may lie far out: their fourth powers stay numbers.
    scale = max(scale, 1e-30 * float(np.abs(x - centre).max())) or 1.0
    z, chances = np.repeat((x - centre) / scale, counts), np.repeat(p, counts, axis=1)
    moments = _on(k, *_added_up(z, chances), weight)
    mass = np.where(moments[0] > 0.0, moments[0], 1.0)
    m1, m2, m3, m4 = np.where(moments[0] > 0.0, moments[1:] / mass, 0.0)
    c2 = np.maximum(m2 - m1**2, 0.0)
    c2[c2 < 1e-12 * (1.0 + m1**2)] = 0.0
    c3 = m3 - 3.0 * m2 * m1 + 2.0 * m1**3
    c4 = m4 - 4.0 * m3 * m1 - 3.0 * m2**2 + 12.0 * m2 * m1**2 - 6.0 * m1**4
    # No variable has a fourth moment below the square of its second and what its third adds to it.
    c4 = np.maximum(c4, np.divide(c3**2, c2, out=np.zeros_like(c2), where=c2 > 0.0) - 2.0 * c2**2)
    also: FloatArray = k.astype(np.float64)
    if other is not None:
        w = np.repeat(other, counts)
        first = _on(k, *_added_up(w, chances, orders=2), weight)
        also = np.where(first[0] > 0.0, first[1] / np.where(first[0] > 0.0, first[0], 1.0), k * float(w.mean()))
    cumulants = np.stack([c2, c3, c4]) * scale ** np.array([[2.0], [3.0], [4.0]])
    return Given(k * centre + scale * m1, cumulants, also)


def _on(k: IntArray, low: int, moments: FloatArray, weight: FloatArray) -> FloatArray:
    """The moments mixed over the nodes, for the counts asked for."""
    mixed = np.tensordot(moments, weight, axes=(2, 0))
    place = np.clip(k - low, 0, mixed.shape[1] - 1)
    return np.where((k >= low) & (k < low + mixed.shape[1]), mixed[:, place], 0.0)


def _added_up(z: FloatArray, p: FloatArray, orders: int = _ORDERS) -> tuple[int, FloatArray]:
    """First count, and E[Z^j 1{count}] for Z = sum z_i Y_i: orders x counts x nodes.

    Labels are dealt out to blocks that are added up at once, label by label; then pairs of blocks are joined.
    """
    nodes, rows = p.shape
    blocks = 1 << max(0, (rows // _BLOCK).bit_length() - 1)
    each = -(-rows // blocks)
    chances, steps = np.zeros((each * blocks, nodes)), np.zeros(each * blocks)
    chances[:rows], steps[:rows] = p.T, z  # a label too many has no chance
    chances, steps = chances.reshape(each, blocks, nodes), steps.reshape(each, blocks)
    powers = steps[..., None, None] ** np.maximum(_LOWER[:orders, :orders], 0) * _BINOMIAL[:orders, :orders]
    moments = np.zeros((blocks, orders, each + 1, nodes))
    moments[:, 0, 0] = 1.0
    for i in range(each):
        q, part = chances[i][:, None, None, :], moments[:, :, : i + 1]
        moved = (powers[i] @ part.reshape(blocks, orders, -1)).reshape(part.shape) * q
        part *= 1.0 - q
        moments[:, :, 1 : i + 2] += moved
    low, moments = _trimmed(0, moments)
    while blocks > 1:
        blocks //= 2
        low, moments = _trimmed(2 * low, _moments_of_sums(moments[:blocks], moments[blocks:]))
    return low, moments[0]


def _moments_of_sums(one: FloatArray, two: FloatArray) -> FloatArray:
    """E[(Z + Z')^j 1{count}] for the counts of two parts together, from those of each (all: blocks x j x count x node).

    All their convolutions are products of matrices, of which one has in each row the counts that lead to one in all.
    """
    orders, size = one.shape[1:3]
    wide = np.zeros((*two.shape[:2], 3 * size - 2, two.shape[3]))
    wide[:, :, size - 1 : 2 * size - 1] = two
    # Blocks x nodes x j x count in all x count of the one part.
    pairs = np.lib.stride_tricks.sliding_window_view(wide, size, axis=2)[..., ::-1].transpose(0, 3, 1, 2, 4)
    each = np.ascontiguousarray(pairs) @ one.transpose(0, 3, 2, 1)[:, :, None]
    total = np.zeros((one.shape[0], orders, 2 * size - 1, one.shape[3]))
    for j in range(orders):
        for i in range(j + 1):
            total[:, j] += _BINOMIAL[j, i] * each[:, :, j - i, :, i].swapaxes(1, 2)
    return total


def _trimmed(low: int, moments: FloatArray) -> tuple[int, FloatArray]:
    kept = np.flatnonzero(moments[:, 0].max(axis=(0, 2)) > _FAINTEST)
    return low + int(kept[0]), moments[:, :, kept[0] : kept[-1] + 1]


# So many labelings that differ from the likeliest are gone through at most, and numbers to hold them.
_MOST_FLIPPED, _MOST_NUMBERS = 20_000, 2_000_000
# Masses of combinations (times nodes) of a half at most, and pairs of combinations of two halves: a plan is made for
# few of the nodes, and others may ask for far more.
_MOST_MASSES, _MOST_PAIRS = 1 << 25, 1 << 23
# How many combinations are looked at in one go.
_PORTION = 1 << 16
# A law has this many points for a mass of one, and one for each combination.
_POINTS = 1 << 15
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
# Skewness and excess kurtosis within which an expansion of quantiles is of use.
_MOST_SKEWED, _FLATTEST, _MOST_PEAKED = 1.0, -1.2, 2.0
# Nodes that differ little share what is known of a cluster given its count; numbers moved for that.
_WORK = 4e6


class Points(NamedTuple):
    """A law as points (nan: undefined) with masses; of each node the chance to be defined, mean and variance."""

    values: FloatArray
    masses: FloatArray
    defined: FloatArray
    mean: FloatArray
    var: FloatArray


class _Combos(NamedTuple):
    """Combinations of the counts of some clusters, with the mass of each at every node (row)."""

    # Positive weight; rows that differ from their likeliest label, if that can be told from the count.
    p_sum: FloatArray
    flips: FloatArray
    # The effect of the positives: its mean, and its cumulants 2 to 4.
    effect: FloatArray
    rest: FloatArray
    mass: FloatArray

    def plus(self, other: "_Combos", least: float, weight: FloatArray) -> "_Combos":
        mass = (self.mass[:, :, None] * other.mass[:, None, :]).reshape(weight.size, -1)
        kept = np.flatnonzero(_likely(mass, weight, least) > least)
        rest = (self.rest[:, :, None] + other.rest[:, None, :]).reshape(3, -1)
        return _Combos(
            np.add.outer(self.p_sum, other.p_sum).ravel()[kept],
            np.add.outer(self.flips, other.flips).ravel()[kept],
            np.add.outer(self.effect, other.effect).ravel()[kept],
            rest[:, kept],
            mass[:, kept],
        )

    def of(self, some: IntArray | slice) -> "_Combos":
        """Some of the combinations."""
        return _Combos(self.p_sum[some], self.flips[some], self.effect[some], self.rest[:, some], self.mass[:, some])


def auc_law_of_alike_nodes(
    data: RankData, halved: RankData, p: FloatArray, weight: FloatArray, plan: Plan, fill: float
) -> Points | None:
    """`auc_law_by_clusters` for one group of alike nodes after another; `halved` are the data with half ties."""

    def law(own: IntArray, share: float) -> Points | None:
        part = plan._replace(least=plan.least / share)
        return auc_law_by_clusters(data, p[own], weight[own] / share, part, fill)

    return of_node_groups(alike_nodes(halved, p, weight, plan.clusters), weight, law)


def of_node_groups(
    groups: list[IntArray], weight: FloatArray, law: Callable[[IntArray, float], Points | None]
) -> Points | None:
    """The mixture over all nodes from the `law` of each group of them, given its nodes and share; None if one is."""
    values, masses, moments = [], [], np.zeros((3, weight.size))
    for own in groups:
        share = float(weight[own].sum())
        points = law(own, share)
        if points is None:
            return None
        moments[:, own] = points[2:]
        values.append(points.values)
        masses.append(share * points.masses)
    return Points(np.concatenate(values), np.concatenate(masses), *moments)


def auc_law_by_clusters(data: RankData, p: FloatArray, weight: FloatArray, plan: Plan, fill: float) -> Points | None:
    """The mixture over the nodes (rows of `p`) of the laws of ROC-AUC; `weight` sums to one.

    The moments of the nodes take `fill` where ROC-AUC is undefined, or leave that out if `fill` is nan. None where
    more combinations matter than can be gone through.
    """
    mean = weight @ p
    original, (clusters, least, likely) = data, plan
    tied = [bool(np.ptp(data.rho[cells]) == 0.0 and np.ptp(data.weight[cells]) == 0.0) for cells in clusters]
    if data.full_ties:
        whole = whole_groups(data, clusters)
        tied = [is_tied and bool(whole[data.group[cells[0]]]) for cells, is_tied in zip(clusters, tied, strict=True)]
        data = half_ties(data, mean, ~whole & (np.bincount(data.group, minlength=whole.size) > 0))
    effects = effects_of(data, mean)
    none = _Combos(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros((3, 1)), np.ones((weight.size, 1)))
    halves = [none, none]
    parts = [
        _counts(
            data, p, weight, effects, cells, least, is_tied=is_tied, on=likely is not None and bool(likely[cells[0]])
        )
        for cells, is_tied in zip(clusters, tied, strict=True)
    ]
    for part in sorted(parts, key=lambda part: -part.p_sum.size):
        place = int(halves[1].p_sum.size < halves[0].p_sum.size)
        if weight.size * halves[place].p_sum.size * part.p_sum.size > _MOST_MASSES:
            return None
        halves[place] = halves[place].plus(part, least, weight)
    values, masses, flipped = np.empty(0), np.empty(0), -1
    if likely is not None:
        values, masses, flipped = _few_flips(original, p, weight, likely)
    if weight.size == 1 and all(tied) and least <= FAINTEST and likely is None:
        both = _of_same_sums(*halves)
        halves = halves if both is None else [both, none]
    points = _joined(data, effects, halves[0], halves[1], weight, fill, least, flipped)
    if points is None:
        return None
    # What a cluster does given its count was taken as the same at all nodes: for their means that is put right.
    p_sum, off = data.known_p + p @ (data.counts * data.weight), np.zeros(weight.size)
    for cells, part, is_tied in zip(clusters, parts, tied, strict=True):
        if not is_tied:
            off += p[:, cells] @ (data.counts * effects.effect)[cells] - part.mass @ part.effect / part.mass.sum(axis=1)
    return points._replace(
        values=np.append(points.values, values),
        masses=np.append(points.masses, masses),
        mean=points.mean + off / np.maximum(p_sum * (data.total - p_sum), 1e-300),
    )


def _of_same_sums(one: _Combos, two: _Combos) -> _Combos | None:
    """All combinations of two halves at one node, those of the same sums together; None without a lattice."""
    found = pairs_on_lattice(*(Counted(part.p_sum, part.effect, part.mass[0]) for part in (one, two)))
    if found is None:
        return None
    none = np.zeros(found.mass.size)
    return _Combos(found.positives, none, found.added, np.stack([none] * 3), found.mass[None])


def _few_flips(
    data: RankData, p: FloatArray, weight: FloatArray, likely: BoolArray
) -> tuple[FloatArray, FloatArray, int]:
    """Labelings that differ from the likeliest in few rows: values, masses, and in how many rows they do at most.

    These are atoms too large for what is said of a cluster given its count, which is smooth.
    """
    total, mass, odds = likeliest(data, p, weight, likely)
    counts = data.counts.astype(np.int64)
    base = np.where(likely, counts, 0)
    values, masses, flips = [], [], -1
    while total > LIKELIEST and flips < int(counts.sum()):
        number = comb(counts.size + flips, flips + 1)
        if number > min(_MOST_FLIPPED, _MOST_NUMBERS / (counts.size + weight.size)):
            break
        flips += 1
        cells = np.array(list(combinations_with_replacement(range(counts.size), flips)), dtype=np.int64)
        cells = cells.reshape(number if flips else 1, flips)
        chance_of = np.repeat((weight * mass)[:, None], len(cells), axis=1)
        for i in range(flips):
            cell, before = cells[:, i], (cells[:, :i] == cells[:, i : i + 1]).sum(axis=1)
            chance_of *= odds[:, cell] * (np.maximum(counts[cell] - before, 0) / (before + 1.0))
        found = chance_of.sum(axis=0)
        held = found > 0.0
        values.append(_flipped(data, base, cells[held]))
        masses.append(found[held])
    return np.concatenate([np.empty(0), *values]), np.concatenate([np.empty(0), *masses]), flips


def _flipped(data: RankData, base: IntArray, cells: IntArray) -> FloatArray:
    """ROC-AUC of the labelings in which a row of each of these cells (labelings x flips) has the other label."""
    sign = np.where(base > 0, -1, 1)
    if data.full_ties:
        labels = np.tile(base, (len(cells), 1))
        for cell in cells.T:
            np.add.at(labels, (np.arange(len(cells)), cell), sign[cell])
        return auc_values(data, labels)
    # Of the sums a flip changes one term each.
    p_sum, r_sum = data.known_p + base @ data.weight, data.known_r + base @ (data.weight * data.rho)
    step = sign * data.weight
    return auc_from_sums(data, p_sum + step[cells].sum(axis=1), r_sum + (step * data.rho)[cells].sum(axis=1), 0.0)


def _likely(mass: FloatArray, weight: FloatArray, least: float) -> FloatArray:
    """What decides if a combination is kept: its mass in the mixture or, where nothing may be lost, at any node."""
    result: FloatArray = mass.max(axis=0) if least <= FAINTEST else weight @ mass
    return result


def _joined(
    data: RankData,
    effects: Effects,
    one: _Combos,
    two: _Combos,
    weight: FloatArray,
    fill: float,
    least: float,
    flipped: int,
) -> Points | None:
    """All pairs of combinations of two halves that are likely enough; given the node the halves are independent.

    Those of at most `flipped` flips count for the moments alone. None where the pairs are too many.
    """
    ties, about = settled_ties(data), effects.auc
    if least > FAINTEST:  # where all pairs are gone through, their order does not matter
        one = one.of(np.argsort(-one.mass.max(axis=0), kind="stable"))
        two = two.of(np.argsort(-(weight @ two.mass), kind="stable"))
    upper, likely = one.mass.max(axis=0), weight @ two.mass
    # How many of the one half are looked at for each of the other: some of these pairs are likely enough.
    reached = np.searchsorted(-upper, -least / np.maximum(likely, 1e-300)) if least > FAINTEST else upper.size
    if np.broadcast_to(reached, likely.shape).sum() > _MOST_PAIRS:
        return None
    found, moments = [], np.zeros((4, weight.size))
    left_open = bool(one.rest.any() or two.rest.any())
    start = 0
    while start < likely.size:
        # The likeliest of the portion decides how far down the other list pairs can matter.
        size = one.p_sum.size if least <= FAINTEST else int(np.searchsorted(-upper * likely[start], -least))
        if size == 0:
            break
        part = slice(start, start + max(1, min(_PORTION // size, start + 1)))
        start = part.stop
        left, right = one.of(slice(size)), two.of(part)
        more = np.add.outer(left.p_sum, right.p_sum)
        p_sum = data.known_p + more
        r_sum = data.known_r + effects.level * more + np.add.outer(left.effect, right.effect)
        auc = auc_from_sums(data, p_sum, r_sum, ties)
        absent = np.isnan(auc)
        pairs = np.where(absent, 1.0, p_sum * (data.total - p_sum))
        masses = (weight[:, None] * left.mass).T @ right.mass
        moments[0] += left.mass.sum(axis=1) * right.mass.sum(axis=1)
        value = np.where(absent, fill, auc)
        off = np.where(np.isnan(value), 0.0, value - about)
        spread = np.where(absent, 0.0, np.add.outer(left.rest[0], right.rest[0]) / pairs**2)
        for row, of in enumerate(((~np.isnan(value)).astype(np.float64), off, off**2 + spread), start=1):
            moments[row] += ((left.mass @ of) * right.mass).sum(axis=1)
        matters = masses > (least if least > FAINTEST else 0.0)
        if flipped >= 0:
            matters &= np.add.outer(left.flips, right.flips) > flipped
        i, j = np.nonzero(matters)
        rest = np.empty((0, i.size))
        if left_open:
            rest = (left.rest[:, i] + right.rest[:, j]) / pairs[i, j] ** np.array([[2.0], [3.0], [4.0]])
        found.append(np.vstack([auc[i, j], masses[i, j], rest]))
    auc, masses, *cumulants = np.hstack(found)
    total, defined, first, second = moments
    scale = np.where(defined > 0.0, defined, 1.0)
    mean = first / scale
    facts = defined / total, about + mean, np.maximum(second / scale - mean**2, 0.0)
    if left_open and np.any(cumulants[0] > 0.0):
        return Points(*_spread_out(auc, np.stack(cumulants), masses), *facts)
    return Points(auc, masses, *facts)


def _counts(
    data: RankData,
    p: FloatArray,
    weight: FloatArray,
    effects: Effects,
    cells: IntArray,
    least: float,
    *,
    is_tied: bool,
    on: bool,
) -> _Combos:
    """The counts of one cluster, and what is known of its effect given each of them."""
    counts, effect, w = data.counts[cells].astype(np.int64), effects.effect[cells], data.weight[cells]
    first, pmf = poisson_binomial_pmfs(p[:, cells], counts)
    kept = np.flatnonzero(_likely(pmf, weight, least) > least)
    k = (first + kept).astype(np.float64)
    flips = float(counts.sum()) - k if on else k
    if is_tied:
        added = k * effect[0]
        if data.full_ties:
            group = data.group[cells[0]]
            known, size = data.group_known[group], data.group_total[group]
            positive = known + k * w[0]
            added = added + 0.5 * positive * (size - positive) - 0.5 * known * (size - known)
        return _Combos(k * w[0], flips, added, np.zeros((3, k.size)), pmf[:, kept])
    groups = int(np.clip(_WORK / (float(counts.sum()) * k.size * 25.0), 1, weight.size))
    share, anchors = anchors_of(p[:, cells], weight, data.counts[cells], groups)
    wide = np.ptp(w) > 0.0
    given: Given = cumulants_given_count(anchors, share, counts, effect, w if wide else None, first + kept)
    return _Combos(given.also if wide else k * w[0], flips, given.mean, given.cumulants, pmf[:, kept])


def _spread_out(auc: FloatArray, cumulants: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Combinations as points at quantiles of what they leave open; heavy ones have many.

    Those that have one point take it at a level of their own: along a sequence that fills (0, 1) evenly, so that
    combinations of about the same value make up for each other.
    """
    order = np.argsort(auc, kind="stable")
    auc, cumulants, masses = auc[order], cumulants[:, order], masses[order]
    sd = np.sqrt(np.maximum(cumulants[0], 0.0))
    open_ = sd > 1e-13
    number = np.where(open_, 1 + (masses * _POINTS).astype(np.int64), 1)
    owner = np.repeat(np.arange(auc.size), number)
    place = np.arange(owner.size) - np.repeat(np.cumsum(number) - number, number)
    start = np.modf(_GOLDEN * np.arange(1, auc.size + 1))[0]
    start = np.where(number > 1, 0.5, start)
    z = ndtri((place + start[owner]) / number[owner])
    scale = np.where(open_, sd, 1.0)
    skewness = np.clip(cumulants[1] / scale**3, -_MOST_SKEWED, _MOST_SKEWED)[owner]
    kurtosis = np.clip(cumulants[2] / scale**4, _FLATTEST, _MOST_PEAKED)[owner]
    x = cornish_fisher(z, skewness, kurtosis)
    return auc[owner] + np.where(open_, sd, 0.0)[owner] * x, (masses / number)[owner]
