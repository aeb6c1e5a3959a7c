"""The law of ROC-AUC at many nodes at once when little is random (mathematics, section 3).

ROC-AUC is decided by the number of positives K and their rank sum S. Nodes whose log odds differ by `x + y rho_i` have
joint laws of K and S that differ by the factor `exp(x K + y S)` and a constant, exactly. Nodes of one posterior differ
by little else. So the law is found on a lattice for a few anchors, the means of alike nodes, and tilted to the mean of
K and of S that each node has. The mixture over nodes is then one product of two matrices for each anchor.
"""

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc import RankData, auc_from_sums
from darkmetrics._kernels.auc_halves import NodeAtoms, moments_given_counts
from darkmetrics._kernels.auc_node_lattice import MOST_BUCKETS, lattice_laws, window_of
from darkmetrics._kernels.posterior.log_odds import chance

# Chances are kept this far from 0 and 1: log odds of +-21.
_SURE = 1e-9
# Places of a lattice above which nodes are dealt out to two of them.
_PLACES = 1 << 16
# Anchors, as many as the numbers moved in all allow.
_ANCHORS, _WORK = (4, 16), 4e6
# How much less a difference counts that the tilt takes care of, when nodes are grouped.
_TILTED = 0.25
# A node becomes its own anchor when, tilted, it is off by more than this share of the usual standard deviation of a
# node, in its mean or in its own standard deviation.
_OFF_MEAN, _OFF_SD = 0.02, 0.1
_NEWTON = 12


def auc_law_by_tilts(data: RankData, p: FloatArray, weight: FloatArray, fill: float) -> NodeAtoms:
    """The mixture over the rows of `p` of the laws of ROC-AUC; `weight` sums to one. Unit weights, half ties.

    The moments of the nodes take `fill` where it is undefined, or leave that out if `fill` is nan.
    """
    p = np.clip(p, _SURE, 1.0 - _SURE)
    mean = weight @ p
    centre, flip = _centre(data, mean), mean > 0.5
    rho = data.rho - centre
    window = window_of(data, p, weight, rho, flip)
    if window.size() > _PLACES and weight.size > _ANCHORS[1]:
        return _in_two(data, p, weight, fill)
    log_odds = np.log(p) - np.log1p(-p)
    c, k, s = data.counts, window.k(), window.s()
    mean_k, mean_s, var_s = p @ c, p @ (c * rho), (p * (1.0 - p)) @ (c * rho**2)
    moves = 2.0 * min(float(c.sum()), 3.0 * MOST_BUCKETS)
    n_anchors = int(np.clip(_WORK / (moves * window.size()), *_ANCHORS))
    owner = _alike(log_odds, weight, rho, c * (weight @ (p * (1.0 - p))), n_anchors)
    groups = [np.flatnonzero(owner == i) for i in range(int(owner.max()) + 1)]
    middle = float(s[s.size // 2])
    total, sums = np.zeros((k.size, s.size)), np.zeros((3, weight.size, k.size))
    while groups:
        batch, groups = groups[: _ANCHORS[1]], groups[_ANCHORS[1] :]
        anchors = np.array([(weight[own] + 1e-12) @ log_odds[own] / (weight[own] + 1e-12).sum() for own in batch])
        laws = lattice_laws(data, chance(anchors), rho, flip, window)
        for mass, anchor, own in zip(laws, anchors, batch, strict=True):
            x, y = _tilts(c, rho, anchor, p[own], log_odds[own])
            up, across = _factors(x, k, mean_k[own]), _factors(y, s, mean_s[own])
            part = np.stack([up * ((across * (s - middle) ** power) @ mass.T) for power in range(3)])
            norm = part[0].sum(axis=1)
            sums[:, own] = part / norm[:, None]
            share = weight[own] / norm
            if own.size > 1:
                off = _is_off(
                    sums[:, own].sum(axis=2), mean_s[own] - middle, var_s[own], float(np.sqrt(weight @ var_s))
                )
                groups += [own[i : i + 1] for i in np.flatnonzero(off)]
                share = np.where(off, 0.0, share)
            total += mass * ((share[:, None] * up).T @ across)
    row, column = np.nonzero(total > 1e-18)
    values = auc_from_sums(data, data.known_p + k[row], data.known_r + s[column] + centre * k[row], 0.0)
    facts = moments_given_counts(data, k, middle + centre * k, list(sums), fill)
    return NodeAtoms(values, total[row, column], *facts)


def _is_off(moments: FloatArray, mean: FloatArray, var: FloatArray, sd: float) -> BoolArray:
    """Nodes whose rank sum, tilted, has not the mean and spread it should have; `moments`: mass, first and second."""
    spread = np.sqrt(np.maximum(moments[2] - moments[1] ** 2, 0.0))
    off: BoolArray = np.abs(moments[1] - mean) > _OFF_MEAN * sd
    off |= np.abs(spread - np.sqrt(var)) > _OFF_SD * sd
    return off


def _in_two(data: RankData, p: FloatArray, weight: FloatArray, fill: float) -> NodeAtoms:
    """Nodes whose numbers of positives are far apart, on two lattices in place of one that holds both."""
    order = np.argsort(p @ data.counts, kind="stable")
    sides = order[: order.size // 2], order[order.size // 2 :]
    shares = [max(float(weight[side].sum()), 1e-300) for side in sides]
    laws = [
        auc_law_by_tilts(data, p[side], weight[side] / share, fill) for side, share in zip(sides, shares, strict=True)
    ]
    back = np.argsort(np.concatenate(sides))
    return NodeAtoms(
        np.concatenate([law.values for law in laws]),
        np.concatenate([share * law.masses for share, law in zip(shares, laws, strict=True)]),
        *(np.concatenate(parts)[back] for parts in zip(*(law[2:] for law in laws), strict=True)),
    )


def _factors(slope: FloatArray, places: FloatArray, mean: FloatArray) -> FloatArray:
    """exp(slope * (place - mean)), nodes x places; far from the mean, where there is no mass, held finite."""
    return np.exp(np.clip(slope[:, None] * (places - mean[:, None]), -300.0, 300.0))


def _centre(data: RankData, p: FloatArray) -> float:
    """The rank at which a positive leaves ROC-AUC as it is, a whole number away from the others where these are.

    Measured from there the rank sum is nearly proportional to ROC-AUC, and no more is tabulated than its spread.
    """
    mean_p = data.known_p + float(p @ data.counts)
    mean_r = data.known_r + float(p @ (data.counts * data.rho))
    auc = (mean_r - 0.5 * mean_p**2) / max(mean_p * (data.total - mean_p), 1e-300)
    centre = mean_p + float(np.clip(auc, 0.0, 1.0)) * (data.total - 2.0 * mean_p)
    return float(data.rho[0] + np.rint(centre - data.rho[0]))


def _alike(log_odds: FloatArray, weight: FloatArray, rho: FloatArray, v: FloatArray, n: int) -> IntArray:
    """Nodes in `n` groups of alike ones: the most scattered group is cut in two, at its mean, again and again.

    Nodes are told apart by the polynomials in the rank of which their log odds are made up, up to the third power.
    """
    scale = max(float(np.abs(rho).max()), 1e-300)
    root, _ = np.linalg.qr(np.sqrt(v + 1e-9 * v.max())[:, None] * (rho / scale)[:, None] ** np.arange(min(4, rho.size)))
    off = (log_odds - weight @ log_odds) * np.sqrt(v)
    place = off @ root
    place[:, :2] *= _TILTED
    owner, share = np.zeros(weight.size, dtype=np.int64), weight + 1e-9
    scatter = [_scatter(place, share)]
    while len(scatter) < min(n, weight.size):
        group = int(np.argmax([most for most, _ in scatter]))
        own, axis = np.flatnonzero(owner == group), scatter[group][1]
        along = place[own, axis]
        apart = along > share[own] @ along / share[own].sum()
        if apart.all() or not apart.any():  # alike to the last digits
            break
        owner[own[apart]] = len(scatter)
        scatter[group] = _scatter(place[own[~apart]], share[own[~apart]])
        scatter.append(_scatter(place[own[apart]], share[own[apart]]))
    return owner


def _scatter(place: FloatArray, share: FloatArray) -> tuple[float, int]:
    """Sum of squares about the mean along the widest axis, and that axis."""
    squares = share @ (place - share @ place / share.sum()) ** 2
    axis = int(np.argmax(squares))
    return float(squares[axis]), axis


def _tilts(
    counts: FloatArray, rho: FloatArray, anchor: FloatArray, p: FloatArray, log_odds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The x and y that give the anchor, tilted, the mean of K and S of each node (row of `p`); Newton's method."""
    scale = max(float(np.abs(rho).max()), 1e-300)
    z = rho / scale
    first, second, third = counts, counts * z, counts * z**2

    def solve(v: FloatArray, to_k: FloatArray, to_s: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, b, c = v @ first + 1e-12, v @ second, v @ third + 1e-12
        det = np.maximum(a * c - b**2, 1e-9 * a * c)
        return (c * to_k - b * to_s) / det, (a * to_s - b * to_k) / det

    # The best fit to the differences in log odds; weighted by the mean slope it is nearly the answer.
    off = log_odds - anchor
    near = np.abs(off) < 1e-6
    v = np.where(near, p * (1.0 - p), (p - chance(anchor)) / np.where(near, 1.0, off))
    x, y = solve(v, (v * off) @ first, (v * off) @ second)
    mean_k, mean_s = p @ first, p @ second
    for _ in range(_NEWTON):
        q = chance(anchor + x[:, None] + y[:, None] * z)
        to_k, to_s = mean_k - q @ first, mean_s - q @ second
        if np.all(np.abs(to_k) + np.abs(to_s) <= 1e-7 * (1.0 + mean_k)):
            break
        dx, dy = solve(q * (1.0 - q), to_k, to_s)
        x, y = x + np.clip(dx, -1.0, 1.0), y + np.clip(dy, -1.0, 1.0)
    return x, y / scale
