"""The exact law of ROC-AUC at many nodes at once, while the combinations of counts are few (mathematics, section 3).

The groups of tied scores are dealt out to two halves. Given the node the halves are independent, so that the mass of
every combination, mixed over the nodes, is one product of two matrices (nodes x combinations of a half).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc import RankData, auc_from_sums
from darkmetrics._kernels.auc_lattice import settled_ties, tie_groups_of_nodes

# Combinations of counts, all groups together.
_MOST = 1 << 18


class NodeAtoms(NamedTuple):
    """Atoms of a mixture (nan: undefined) with their masses; of each node the chance to be defined, mean, variance."""

    values: FloatArray
    masses: FloatArray
    defined: FloatArray
    mean: FloatArray
    var: FloatArray


class _Half(NamedTuple):
    """All combinations of the counts of some groups: positives, rank sum, and the mass at each node."""

    k: FloatArray
    s: FloatArray
    mass: FloatArray

    def moments(self, centre: float) -> list[FloatArray]:
        """Of each node and number of positives: mass, and first and second moment of the rank sum about a centre."""
        positives = (self.k[:, None] == np.arange(self.k.max() + 1.0)).astype(np.float64)
        return [self.mass @ ((self.s[:, None] - centre) ** power * positives) for power in range(3)]


def auc_law_by_halves(data: RankData, p: FloatArray, weight: FloatArray, fill: float) -> NodeAtoms | None:
    """The law of the mixture over the rows of `p`; None where the combinations are too many. Unit weights.

    The moments of the nodes take `fill` where it is undefined, or leave that out if `fill` is nan.
    """
    if data.group_total.size > np.log2(_MOST) or _fewest_combinations(data, p) > _MOST:
        return None
    groups = list(tie_groups_of_nodes(data, p))
    if np.prod([float(group.added.size) for group in groups]) > _MOST:
        return None
    none = np.zeros(1), np.zeros(1), np.ones((p.shape[0], 1))
    halves = [_Half(*none), _Half(*none)]
    for group in sorted(groups, key=lambda group: -group.added.size):
        place = int(halves[1].k.size < halves[0].k.size)
        half = halves[place]
        count = group.first + np.arange(group.added.size, dtype=np.float64)
        halves[place] = _Half(
            np.add.outer(half.k, count).ravel(),
            np.add.outer(half.s, group.added).ravel(),
            (half.mass[:, :, None] * group.pmf[:, None, :]).reshape(p.shape[0], -1),
        )
    one, two = halves
    masses = (weight[:, None] * one.mass).T @ two.mass
    k, s, mass = _joined(np.add.outer(one.k, two.k).ravel(), np.add.outer(one.s, two.s).ravel(), masses.ravel())
    values = auc_from_sums(data, data.known_p + k, data.known_r + s, settled_ties(data))
    return NodeAtoms(values, mass, *_moments(data, one, two, fill))


def _fewest_combinations(data: RankData, p: FloatArray) -> float:
    """How many combinations there are at least: counts within four standard deviations of the mean of some node."""
    starts = np.flatnonzero(np.diff(data.group, prepend=-1))
    mean = np.add.reduceat(p * data.counts, starts, axis=1)
    sd = np.sqrt(np.add.reduceat(p * (1.0 - p) * data.counts, starts, axis=1))
    rows = np.add.reduceat(data.counts, starts)
    low, high = np.maximum((mean - 4.0 * sd).min(axis=0), 0.0), np.minimum((mean + 4.0 * sd).max(axis=0), rows)
    return float(np.prod(np.maximum(high - low, 2.0)))


def _joined(k: FloatArray, s: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Combinations of the same positives and rank sum as one, where rank sums are halves of whole numbers."""
    low, high, twice = float(s.min()), float(s.max()), 2.0 * s
    width = int(2.0 * (high - low)) + 1
    size = (int(k.max()) + 1) * width
    if size > 4 * k.size or np.any(twice != np.rint(twice)):
        return k, s, mass
    code = (k * width + (twice - 2.0 * low)).astype(np.int64)
    total = np.bincount(code, mass, size)
    held = np.flatnonzero(total)
    places = (held // width).astype(np.float64), low + 0.5 * (held % width).astype(np.float64)
    return *places, np.asarray(total[held], dtype=np.float64)


def _moments(data: RankData, one: _Half, two: _Half, fill: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    centre = float(one.s.mean()), float(two.s.mean())
    left, right = one.moments(centre[0]), two.moments(centre[1])
    sums = [
        _convolved(left[0], right[0]),
        _convolved(left[1], right[0]) + _convolved(left[0], right[1]),
        _convolved(left[2], right[0]) + 2.0 * _convolved(left[1], right[1]) + _convolved(left[0], right[2]),
    ]
    k = np.arange(sums[0].shape[1], dtype=np.float64)
    return moments_given_counts(data, k, sum(centre) + settled_ties(data) + np.zeros(k.size), sums, fill)


def moments_given_counts(
    data: RankData, k: FloatArray, centre: FloatArray, sums: Sequence[FloatArray], fill: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chance to be defined (or filled), mean and variance given that, at each node.

    `sums` are, for each node and each number of positives `k`, the mass and the first two moments of the rank sum about
    `centre`. Given k ROC-AUC is linear in the rank sum, so that these are enough.
    """
    p_sum = data.known_p + k
    pairs = p_sum * (data.total - p_sum)
    absent = pairs <= 0.0
    slope = np.where(absent, 0.0, 1.0 / np.where(absent, 1.0, pairs))
    auc = np.where(absent, fill, slope * (data.known_r + centre - 0.5 * p_sum**2))
    kept = ~np.isnan(auc)
    share = sums[0] @ kept
    scale = np.where(share > 0.0, share, 1.0)
    about = float(auc[kept].mean()) if kept.any() else 0.0
    off = np.where(kept, auc - about, 0.0)
    first = (sums[0] @ off + sums[1] @ slope) / scale
    second = (sums[0] @ off**2 + 2.0 * (sums[1] @ (off * slope)) + sums[2] @ slope**2) / scale
    return share, about + first, np.maximum(second - first**2, 0.0)


def _convolved(left: FloatArray, right: FloatArray) -> FloatArray:
    """Row by row the law (or moment) of a sum of two numbers."""
    result: FloatArray = np.zeros((left.shape[0], left.shape[1] + right.shape[1] - 1))
    for place in range(left.shape[1]):
        result[:, place : place + right.shape[1]] += left[:, place : place + 1] * right
    return result
