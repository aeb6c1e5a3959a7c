"""Laws of ROC-AUC from fixed labelings: of nodes of little weight, and of few ranks (mathematics, section 3)."""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.auc.clusters import Points
from darkmetrics._kernels.auc.ranks import RankData, auc_from_sums
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs

# Labelings of all nodes together, a power of two, and of one node at least; numbers that they may take.
_LABELINGS, _LEAST, _MOST_FLIPS = 1 << 13, 1 << 6, 1 << 18
_SEED = 23
# Combinations of counts of all nodes together, a power of two, and of one node at least.
_COMBINATIONS, _LEAST_OF_NODE = 1 << 18, 1 << 8
# The points i (1, a, a^2, ...) / n of a lattice (Korobov) fill the cube evenly with this a, as measured for n from 2^12
# to 2^18 and up to 28 ranks.
_KOROBOV = 17797


class Labelings(NamedTuple):
    """ROC-AUC of equally likely labelings of each node (row); nan where a class is absent."""

    values: FloatArray

    def points(self, weight: FloatArray, fill: float) -> Points:
        """The mixture of the nodes with these weights, which sum to one; undefined ones count as `fill`, or not if nan.

        That is for the moments of the nodes; among the points an undefined one stays what it is.
        """
        values = np.where(np.isnan(self.values), fill, self.values)
        held = ~np.isnan(values)
        number = np.maximum(held.sum(axis=1), 1)
        mean = np.where(held, values, 0.0).sum(axis=1) / number
        var = np.where(held, (values - mean[:, None]) ** 2, 0.0).sum(axis=1) / number
        of_node = self.values.shape[1]
        return Points(self.values.ravel(), np.repeat(weight / of_node, of_node), held.mean(axis=1), mean, var)


def spread_labelings(data: RankData, p: FloatArray) -> Labelings | None:
    """Labelings that stand for the law at each node (row of `p`); None where they would take long.

    Each row has its less likely label in as many of them as its chance says, to one, at places of a progression of its
    own: rows are spread evenly, and one against the other as if by chance. They are the same in every run. Ties count
    one half.
    """
    nodes = len(p)
    n = max(_LEAST, _LABELINGS >> (nodes - 1).bit_length())
    # By cells, before anything is made that has a place for every row.
    if n * float((np.minimum(p, 1.0 - p) @ data.counts).sum()) + nodes * float(data.counts.sum()) > _MOST_FLIPS:
        return None
    cell = np.repeat(np.arange(p.shape[1]), data.counts.astype(np.int64))
    q = p[:, cell]
    rare = np.minimum(q, 1.0 - q)
    rng = np.random.default_rng(_SEED)
    number = np.floor(n * rare + rng.random(rare.shape)).astype(np.int64).ravel()
    first, stride = rng.integers(n, size=(2, number.size))
    owner = np.repeat(np.arange(number.size), number)
    step = np.arange(owner.size) - np.repeat(np.cumsum(number) - number, number)
    # An odd stride meets each of the places, a power of two of them, once.
    place = owner // cell.size * n + ((first[owner] + step * (2 * stride[owner] + 1)) & (n - 1))
    likely = q > 0.5
    w = data.weight[cell]
    turned = np.where(likely, -w, w).ravel()[owner]
    p_sum = data.known_p + np.repeat(likely @ w, n) + np.bincount(place, turned, nodes * n)
    rho = data.rho[cell]
    r_sum = data.known_r + np.repeat(likely @ (w * rho), n)
    r_sum += np.bincount(place, turned * rho[owner % cell.size], nodes * n)
    return Labelings(auc_from_sums(data, p_sum, r_sum, 0.0).reshape(nodes, n))


def spread_counts(data: RankData, p: FloatArray, clusters: list[IntArray], nodes: int) -> Labelings:
    """Counts of the positives of each cluster that stand for the law at each node (row of `p`), of `nodes` in all.

    The rows of a cluster have one rank and weight. Each count comes as often as its chance says, to one, and counts of
    different clusters meet as the coordinates of a lattice do. They are the same in every run.
    """
    n = max(_LEAST_OF_NODE, _COMBINATIONS >> (nodes - 1).bit_length())
    shape, rng = (len(p), n), np.random.default_rng(_SEED)
    own: IntArray = np.arange(len(p))[:, None] * n
    p_sum, r_sum = np.full(shape, data.known_p), np.full(shape, data.known_r)
    groups: dict[int, FloatArray] = {}
    stride = 1
    for cells in clusters:
        first, pmf = poisson_binomial_pmfs(p[:, cells], data.counts[cells].astype(np.int64))
        ends = np.minimum(np.floor(n * np.cumsum(pmf, axis=1) + rng.random((len(p), 1))), n)
        ends[:, -1] = n
        number = np.diff(ends, axis=1, prepend=0.0).astype(np.int64)
        cell, k = int(cells[0]), np.tile(first + np.arange(pmf.shape[1], dtype=np.float64), len(p))
        place = (np.arange(n) * stride + rng.integers(n, size=(len(p), 1))) & (n - 1)
        positive = data.weight[cell] * np.repeat(k, number.ravel())[own + place]
        p_sum += positive
        r_sum += data.rho[cell] * positive
        if data.full_ties:
            group = int(data.group[cell])
            groups[group] = groups.get(group, data.group_known[group]) + positive
        stride = stride * _KOROBOV % n
    ties: FloatArray | float = data.settled_ties if data.full_ties else 0.0
    for group, positive in groups.items():
        ties = ties + 0.5 * positive * (data.group_total[group] - positive)
    return Labelings(auc_from_sums(data, p_sum, r_sum, ties))
