"""Which missing rows form clusters for the law of ROC-AUC, how finely, and where that is needed (section 3)."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc.ranks import RankData
from darkmetrics._kernels.posterior.logistic import chance
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.sums.smooth import steps_left

# The least chance of a combination of counts that is kept where the law is exact.
FAINTEST = 1e-20
# Clusters at most; the mass that may be left out when combinations are pruned; groups of nodes, and bins of the
# logarithm of a mass (down to 1e-11 of the largest), for which it is estimated how many combinations that leaves.
_MOST_CLUSTERS, _LEFT_OUT, _TRIED, _BIN, _BINS = 64, 1e-4, 3, 0.5, 52
_EXACT_ROWS = 64
# Chances that rounding alone tells apart.
_SAME = 1e-12
# Where the likeliest labeling has more mass than this, those that differ from it in few rows are gone through.
LIKELIEST = 0.001
# A node for which the likeliest labeling of all nodes has less than this share of the mass of its own is apart.
_COMMON = 0.01
# Groups of nodes at most, as many as keep what their tilts move below a share of the spread.
_MOST_GROUPS, _MOVED = 8, 0.02
# How large a step between clumps may be, in standard deviations of what blurs it, and how large a clump.
_STEP, _CLUMP, _LEVELS = 1.8, 0.006, 4
# Where steps of a lattice show: how far they may move the cdf; t looked at, up to so many standard deviations from the
# mean of a node, and slopes among them; numbers of positives that a node is likely to have, in standard deviations.
_SHOWN, _PLACES, _FAR, _SLOPES = 0.002, 33, 2.5, 33
_POSITIVES = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
# A row that holds so much of the squared weight of its like decides among them.
_DECIDES = 0.25
# Masses, over all nodes, of combinations of the counts of ties.
_MOST_TIED = 1 << 20


class Plan(NamedTuple):
    """Clusters (cells of each), and the mass from which on a combination of their counts matters."""

    clusters: list[IntArray]
    least: float = FAINTEST
    # The likeliest label of each cell, one for all cells of a cluster, where labelings close to it are gone through.
    likely: BoolArray | None = None


class Effects(NamedTuple):
    """What a positive row of each cell does: its effect `w (rho - level)` on the numerator, and how much it varies."""

    auc: float
    level: float
    effect: FloatArray
    variance: FloatArray


def effects_of(data: RankData, p: FloatArray) -> Effects:
    """Measured from the rank at which a positive leaves ROC-AUC as it is; of one weight, to its next half."""
    p_sum = data.known_p + float(p @ (data.counts * data.weight))
    r_sum = data.known_r + float(p @ (data.counts * data.weight * data.rho))
    auc = (r_sum - 0.5 * p_sum**2) / max(p_sum * (data.total - p_sum), 1e-300)
    auc = float(np.clip(auc, 0.0, 1.0))
    level = p_sum + auc * (data.total - 2.0 * p_sum)
    unit = float(data.weight.max(initial=0.0))
    if unit > 0.0 and np.all(data.weight == unit):  # of several weights no half is a step of all
        level = unit * float(np.rint(2.0 * level / unit) / 2.0)
    return Effects(auc, level, data.weight * (data.rho - level), data.counts * p * (1.0 - p))


def tie_clusters(data: RankData, most: float) -> list[IntArray] | None:
    """Rows of the same rank and weight: given their counts nothing is left open; None if they are more than `most`."""
    if data.group_total.size > most:
        return None
    order = np.lexsort((data.weight, data.rho))
    new = (np.diff(data.rho[order]) != 0.0) | (np.diff(data.weight[order]) != 0.0)
    return None if new.sum() >= most else np.split(order, np.flatnonzero(new) + 1)


def combinations(data: RankData, p: FloatArray, clusters: list[IntArray], reach: float = 9.0) -> float:
    """About how many combinations of counts there are, within so many standard deviations at any node."""
    number = 1.0
    for cells in clusters:
        counts, chances = data.counts[cells], p[:, cells]
        mean, sd = chances @ counts, np.sqrt((chances * (1.0 - chances)) @ counts)
        low, high = max(float((mean - reach * sd).min()) - 1.0, 0.0), float((mean + reach * sd).max()) + 1.0
        number *= np.floor(min(high, float(counts.sum()))) - np.ceil(low) + 1.0
    return float(number)


class _Cluster:
    """Some cells, the variance that they leave open given their count, and the best way to split them."""

    def __init__(self, cells: IntArray, axes: list[FloatArray], variance: FloatArray) -> None:
        self.cells = cells
        self.within, self.left, self.right = _best_split(cells, axes, variance)
        self.pmf: list[tuple[float, FloatArray]] | None = None

    def bins(self, data: RankData, p: FloatArray) -> list[tuple[float, FloatArray]]:
        """At each row of `p`: the largest mass of a count, and all of them by the logarithm of their share of it."""
        if self.pmf is None:
            counts, chances = data.counts[self.cells], p[:, self.cells]
            self.pmf = [_binned(pmf) for pmf in _laws_of_count(counts, chances)]
        return self.pmf


def _laws_of_count(counts: FloatArray, p: FloatArray) -> Iterable[FloatArray]:
    """The law of the number of positives among some cells at each row of `p`: Gaussian ones of many rows will do."""
    if counts.sum() <= 1.0:
        return np.hstack([1.0 - p, p])
    if counts.sum() <= _EXACT_ROWS:
        return poisson_binomial_pmfs(p, counts.astype(np.int64))[1]
    laws = []
    for sd in np.maximum(np.sqrt((p * (1.0 - p)) @ counts), 0.3).tolist():
        k = np.arange(-np.ceil(8.0 * sd), np.ceil(8.0 * sd) + 1.0)
        pmf = np.exp(-0.5 * (k / sd) ** 2)
        laws.append(pmf / pmf.sum())
    return laws


def _binned(pmf: FloatArray) -> tuple[float, FloatArray]:
    """The largest mass; how many there are by the logarithm of their share of it, and how much they are together.

    A mass between two bins is partly in each: rounded, the logarithms of many clusters would all be off the same way.
    """
    pmf = pmf[pmf > 0.0]
    largest = float(pmf.max())
    place = np.minimum(np.log(largest / pmf) / _BIN, float(_BINS))
    first = place.astype(np.int64)
    part = place - first
    each = ((1.0 - part, part), (pmf * (1.0 - part), pmf * part))
    return largest, np.stack(
        [(np.bincount(first, a, _BINS + 2) + np.bincount(first + 1, b, _BINS + 2))[:_BINS] for a, b in each]
    )


def rank_clusters(data: RankData, p: FloatArray, weight: FloatArray, most: float) -> Plan:
    """Clusters with about as many combinations that matter, and the mass from which on a combination does.

    The widest cluster is split again and again. Combinations matter, the likeliest first, until they hold all but a
    little of the mass; where most rows are nearly sure these are few, however many clusters there are.
    """
    mean = weight @ p
    effects = effects_of(data, mean)
    # A weight matters beyond its effect, as it moves the level: by so much for the same share of the total.
    axes = [effects.effect, data.weight * float(np.ptp(data.rho))][: 2 if np.ptp(data.weight) > 0.0 else 1]
    share, anchors = anchors_of(p, weight, data.counts, min(_TRIED, weight.size))
    if float(np.ptp(anchors, axis=0).max()) < _SAME:  # their combinations are the same, and count once
        share, anchors = np.ones(1), anchors[:1]
    # Where few rows flip, a cluster has one likeliest label: its count then says how many did.
    likely: BoolArray | None = mean > 0.5
    sides = [mean > 0.5, mean <= 0.5]
    if likeliest(data, p, weight, mean > 0.5)[0] <= LIKELIEST:
        likely, sides = None, [np.ones(mean.size, dtype=np.bool_)]
    steps = [[_Cluster(np.flatnonzero(side), axes, effects.variance) for side in sides if side.any()]]
    low, high, least = 0, _MOST_CLUSTERS, _needed(steps[0], data, share, anchors)[1]
    # Twice as many splits at a time until they are too many, then halfway between: what is not tried is not split.
    ahead = 1
    while high - low > 1:
        middle = min(low + ahead, (low + high) // 2)
        while len(steps) <= middle and (widest := max(steps[-1], key=lambda cluster: cluster.within)).within > 0.0:
            parts = [_Cluster(cells, axes, effects.variance) for cells in (widest.left, widest.right)]
            steps.append([cluster for cluster in steps[-1] if cluster is not widest] + parts)
        if middle >= len(steps):  # nothing is left to be split
            high = len(steps)
            continue
        number, level = _needed(steps[middle], data, share, anchors)
        if number <= most:
            low, least, ahead = middle, level, 2 * ahead
        else:
            high = middle
    return Plan([cluster.cells for cluster in steps[low]], least, likely)


def tie_plan(data: RankData, clusters: list[IntArray], p: FloatArray, weight: FloatArray) -> Plan | None:
    """All combinations of the counts of `tie_clusters` that matter; None where that takes too long."""
    share, anchors = anchors_of(p, weight, data.counts, min(_TRIED, weight.size))
    number, least = _needed([_Cluster(cells, [], anchors[0]) for cells in clusters], data, share, anchors)
    return Plan(clusters, least) if number * weight.size <= _MOST_TIED else None


def _needed(clusters: list[_Cluster], data: RankData, share: FloatArray, p: FloatArray) -> tuple[float, float]:
    """How many combinations hold nearly all mass, and the least mass among them."""
    number, least = 0.0, 1.0
    each = [cluster.bins(data, p) for cluster in clusters]
    for i, own in enumerate(share.tolist()):
        many, mass, largest = np.eye(1, _BINS)[0], np.eye(1, _BINS)[0], own
        for bins in each:
            largest *= bins[i][0]
            many, mass = (np.convolve(a, b)[:_BINS] for a, b in zip((many, mass), bins[i][1], strict=True))
        held = np.cumsum(mass)
        last = int(np.searchsorted(held, 1.0 - _LEFT_OUT))
        if last == _BINS:  # more than can be told apart
            return np.inf, 0.0
        number += float(many[: last + 1].sum())
        least = min(least, largest * float(np.exp(-_BIN * (last + 1.0))))
    return number, least


def _best_split(cells: IntArray, axes: list[FloatArray], variance: FloatArray) -> tuple[float, IntArray, IntArray]:
    """How much variance lies within a cluster (given its count), and the two parts in which least is left."""
    best = (0.0, 0.0, cells, cells[:0])
    for axis in axes:
        own = cells[np.argsort(axis[cells], kind="stable")]
        x = axis[own] - axis[own].mean()
        v = variance[own] + 1e-12 * variance.max() + 1e-300
        mass, first = np.cumsum(v), np.cumsum(v * x)
        within = float(v @ x**2) - float(first[-1]) ** 2 / float(mass[-1])
        apart = np.flatnonzero(np.diff(axis[own]) > 0.0)
        if not apart.size:
            continue
        between = (first[apart] * mass[-1] / mass[apart] - first[-1]) ** 2 * mass[apart] / (mass[-1] - mass[apart])
        cut = int(np.argmax(between))
        if between[cut] / mass[-1] > best[0] or not best[3].size:
            at = int(apart[cut]) + 1
            best = (float(between[cut] / mass[-1]), max(within, 1e-300), own[:at], own[at:])
    return best[1], best[2], best[3]


def all_light(data: RankData, clusters: list[IntArray], p: FloatArray, weight: FloatArray) -> float:
    """Chance that all rows of a class are among light ones that share clusters, though few of these decide then.

    Clusters are made for what rows do beside heavy ones. ROC-AUC has no scale: where all heavy rows are of one class
    the light ones are all that there is of the other, and the heaviest of them decide.
    """
    shared = np.zeros(data.weight.size, dtype=np.bool_)
    for cells in clusters:
        shared[cells] = np.ptp(data.weight[cells]) > 0.0
    apart, mass = ~shared & (data.counts > 0), data.counts * data.weight
    square = mass[shared] * data.weight[shared]
    if not apart.any() or square.size == 0 or square.max() <= _DECIDES * square.sum():
        return 0.0
    light, result = float(mass[shared].sum()), 0.0
    for known, of_other in ((data.known_p, 1.0 - p), (data.total - data.known_p - float(mass.sum()), p)):
        if known < light:  # else known rows of the class set the scale
            result += float(weight @ np.prod(of_other[:, apart] ** data.counts[apart], axis=1))
    return result


def whole_groups(data: RankData, clusters: list[IntArray]) -> BoolArray:
    """The groups of ties that are one cluster, of equal weights: its count settles the pairs that count in full."""
    whole = np.zeros(data.group_total.size, dtype=np.bool_)
    size = np.bincount(data.group, minlength=whole.size)
    for cells in clusters:
        group = data.group[cells[0]]
        alone = bool(np.all(data.group[cells] == group)) and cells.size == size[group]
        whole[group] = alone and float(np.ptp(data.weight[cells])) == 0.0
    return whole


def neglected(data: RankData, halved: RankData, p: FloatArray, weight: FloatArray, whole: BoolArray) -> float:
    """The spread of what `half_ties` leaves out of groups that are not whole, as a share of that of ROC-AUC.

    It is half the square of the deviation of a group's positive weight, with the variance of half the square of a
    Gaussian of that variance; what nodes (rows of `p`) expect of a group deviates from what they expect together.
    """
    mean = weight @ p
    effects = effects_of(halved, mean)
    own = np.bincount(data.group, data.weight**2 * effects.variance, whole.size)
    if weight.size > 1:
        off = (data.counts * data.weight) * (p - mean)
        own = own + weight @ np.array([np.bincount(data.group, row, whole.size) ** 2 for row in off])
    own = own[~whole]
    return float(np.sqrt(0.5 * (own @ own) / max(float(effects.variance @ effects.effect**2), 1e-300)))


def clumped(data: RankData, p: FloatArray, weight: FloatArray) -> bool:
    """Whether the law falls into clumps that no expansion sees, as it does where missing rows are neighbours in rank.

    A positive more, or one in another cluster, moves ROC-AUC by a step; what else is open blurs it. Where the blur is
    narrower than about half a step there are clumps, and they matter if one of them holds more than 0.6% of the mass.
    """
    mean = weight @ p
    effect, v = (part for part in effects_of(data, mean)[2:])
    step, clump = abs(float(v @ effect)) / float(v.sum()), 1.0 / np.sqrt(2.0 * np.pi * float(v.sum()))
    if clump <= _CLUMP:
        return False
    parts = [_best_split(np.arange(mean.size), [effect], v)]
    for _ in range(_LEVELS):
        blur = np.sqrt(sum(part[0] for part in parts))
        if step > _STEP * blur:
            return True
        within, left, right = parts.pop(int(np.argmax([part[0] for part in parts])))
        if within <= 0.0 or not right.size:
            return True
        halves = [float(v[cells].sum()) for cells in (left, right)]
        means = [
            float(v[cells] @ effect[cells]) / max(half, 1e-300)
            for cells, half in zip((left, right), halves, strict=True)
        ]
        step, joint = abs(means[0] - means[1]), halves[0] * halves[1] / max(sum(halves), 1e-300)
        clump *= min(1.0, 1.0 / np.sqrt(2.0 * np.pi * max(joint, 1e-300)))
        if clump <= _CLUMP:
            return False
        parts += [_best_split(cells, [effect], v) for cells in (left, right)]
    return False


def stepped(
    data: RankData, clusters: list[IntArray], p: FloatArray, weight: FloatArray, mean: FloatArray, sd: FloatArray
) -> bool:
    """Whether the law has steps that no expansion sees, as it does where all missing rows are of few ranks.

    `clusters` are rows of one rank and weight; `mean` and `sd` those of ROC-AUC at each node. {ROC-AUC <= t} is
    {sum w (rho - level) Y <= c}, to first order about P positives, with `level = P + t (W - 2 P)`. Steps are high where
    the ranks are whole multiples of one step away from that level, and are averaged over what P and the node may be.
    """
    # A node that expects one class alone has no ROC-AUC, and so no steps.
    held = np.isfinite(mean) & np.isfinite(sd) & (weight > 0.0)
    if not held.any():
        return False
    p, mean, sd, weight = p[held], mean[held], sd[held], weight[held] / weight[held].sum()
    chance = weight @ p
    v = np.array([float(data.counts[cells] @ (chance * (1.0 - chance))[cells]) for cells in clusters])
    first = [int(cells[0]) for cells in clusters]
    w, rho = data.weight[first], data.rho[first]
    mass = data.counts * data.weight
    spread = np.sqrt((p * (1.0 - p)) @ (mass * data.weight))
    positives = data.known_p + (p @ mass)[:, None] + spread[:, None] * _POSITIVES
    t = np.linspace(float((mean - _FAR * sd).min()), float((mean + _FAR * sd).max()), _PLACES)[:, None, None]
    level = positives + t * (data.total - 2.0 * positives)
    low, high = float(level.min()), float(level.max())
    slopes = np.union1d(np.linspace(low, high, _SLOPES), rho[(rho > low) & (rho < high)])
    effects = w * (rho - slopes[:, None])
    left = np.array([steps_left(v, own, float(v @ own**2)) for own in effects])
    # In the tails of a node its steps are as low as its density.
    share = weight[:, None] * np.exp(-0.5 * _POSITIVES**2) / np.exp(-0.5 * _POSITIVES**2).sum()
    share = share * np.exp(-0.5 * ((t - mean[:, None]) / sd[:, None]) ** 2)
    return float((share * np.interp(level, slopes, left)).sum(axis=(1, 2)).max()) > _SHOWN


def likeliest(
    data: RankData, p: FloatArray, weight: FloatArray, likely: BoolArray
) -> tuple[float, FloatArray, FloatArray]:
    """The mass of the likeliest labeling in the mixture, and at each node; and the odds against its labels."""
    turned = np.where(likely, 1.0 - p, p)
    mass = np.exp(np.log1p(-np.minimum(turned, 1.0 - 1e-16)) @ data.counts)
    return float(weight @ mass), mass, turned / np.maximum(1.0 - turned, 1e-16)


def nodes_by_labeling(data: RankData, p: FloatArray, weight: FloatArray) -> list[IntArray]:
    """Nodes in groups: those nearly sure of a labeling that the mean of all does not have, by labeling; and the others.

    A labeling that one node is sure of is an atom, which no plan made for the mean of the nodes shows.
    """
    doubt = np.minimum(p, 1.0 - p)
    sure = np.flatnonzero(doubt @ data.counts < -np.log(LIKELIEST))  # 1 - x < exp(-x): others have no such atom
    own, common = p[sure] > 0.5, likeliest(data, p[sure], weight[sure], weight @ p > 0.5)[1]
    mass = np.exp(np.log1p(-doubt[sure]) @ data.counts)
    far = (weight[sure] * mass > LIKELIEST) & (common < _COMMON * mass)
    others = np.setdiff1d(np.arange(weight.size), sure[far])
    if not far.any():
        return [others]
    _, owner = np.unique(own[far], axis=0, return_inverse=True)
    groups = [sure[far][owner.ravel() == k] for k in range(int(owner.max()) + 1)]
    return [*groups, others] if others.size else groups


def alike_nodes(data: RankData, p: FloatArray, weight: FloatArray, clusters: list[IntArray]) -> list[IntArray]:
    """Nodes in groups, in each of which the rows of a cluster are alike given its count.

    What moves the log odds of all its rows is known from the count; what tilts them along their effects is not, and it
    moves what the cluster leaves open. Nodes are grouped by that tilt, in more groups the more it moves.
    """
    effects = effects_of(data, weight @ p)
    x = effects.effect.copy()
    for cells in clusters:
        x[cells] -= effects.variance[cells] @ x[cells] / max(float(effects.variance[cells].sum()), 1e-300)
    within = float(effects.variance @ x**2)
    sure = np.clip(p, 1e-12, 1.0 - 1e-12)
    tilt = (np.log(sure) - np.log1p(-sure)) @ (effects.variance * x) / max(within, 1e-300)
    moved = within * np.sqrt(float(weight @ (tilt - weight @ tilt) ** 2))
    spread = np.sqrt(float(effects.variance @ effects.effect**2)) + 1e-300
    groups = int(np.clip(np.ceil(moved / (_MOVED * spread)), 1, min(_MOST_GROUPS, weight.size)))
    order = np.argsort(tilt, kind="stable")
    middle = np.cumsum(weight[order]) - 0.5 * weight[order]
    owner = np.minimum((groups * middle).astype(np.int64), groups - 1)
    return [order[owner == group] for group in range(groups) if weight[order[owner == group]].sum() > 0.0]


def anchors_of(p: FloatArray, weight: FloatArray, counts: FloatArray, groups: int) -> tuple[FloatArray, FloatArray]:
    """Nodes of like numbers of positives as one, with the mean of their log odds.

    Given the count of a cluster its law depends on the ratios of odds within it alone, and these are nearly the same at
    all nodes.
    """
    if groups >= weight.size:
        return weight, p
    sure = np.clip(p, 1e-12, 1.0 - 1e-12)
    log_odds = np.log(sure) - np.log1p(-sure)
    order = np.argsort(p @ counts, kind="stable")
    middle = np.cumsum(weight[order]) - 0.5 * weight[order]
    owner = np.minimum((groups * middle / weight.sum()).astype(np.int64), groups - 1)
    matrix = np.zeros((groups, weight.size))
    matrix[owner, order] = weight[order]
    share = matrix.sum(axis=1)
    held = share > 0.0
    return share[held], chance(matrix[held] @ log_odds / share[held, None])
