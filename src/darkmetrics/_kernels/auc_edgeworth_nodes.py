"""Edgeworth expansions of ROC-AUC at many nodes at once: what `auc_edgeworth` does at one (mathematics, section 3).

A node is a row of a matrix of chances. Ties count one half here.
"""

from functools import partial
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.auc import RankData
from darkmetrics._kernels.auc_edgeworth import cumulants_in_t, expansion, product

# Nodes are taken in portions of at most this many numbers, which stay in the processor's cache.
_PORTION = 1 << 15
# Points for a standard deviation: cubics between them are off by 1e-6 of cdf, and straight lines by 1e-4 at four times
# as many. Where nodes hardly overlap, each has some of its own.
_PER_SD, _POINTS, _OWN_POINTS = 8.0, 512, 24
_REACH = 9.0

# Of each kernel the power of the weight in it, and the highest power of the row's coefficient that it goes with.
_KERNELS = {"v": (2, 2), "v^2": (4, 2), "v^3": (6, 0), "third": (3, 3), "third v": (5, 1), "fourth": (4, 4)}
_H = np.array([-0.5, 1.0])

KernelSums: TypeAlias = dict[tuple[str, int], FloatArray]


class NodeCumulants(NamedTuple):
    """Of each node: cumulants of A - tD as polynomials in t (nodes x powers), and what decides if they will do."""

    polynomials: list[FloatArray]
    mean: FloatArray
    sd: FloatArray
    # Total variance of the labels.
    variance: FloatArray
    # The largest share of the variance that one row contributes.
    largest: FloatArray

    def of(self, nodes: BoolArray) -> "NodeCumulants":
        """Those of some nodes."""
        return NodeCumulants([poly[nodes] for poly in self.polynomials], *(part[nodes] for part in self[1:]))


def node_cumulants(data: RankData, p: FloatArray) -> NodeCumulants:
    """The cumulants at each node (row of `p`)."""
    w, c = data.weight, data.counts
    mean_p, mean_r = data.known_p + p @ (c * w), data.known_r + p @ (c * w * data.rho)
    # With a - t d = r + e(t) + h(t) w u, where the rank r does not depend on the node, e(t) on no row and h(t) on
    # neither, every sum over rows is a product of a matrix (nodes x rows) and a few columns.
    centre = 0.5 * data.total
    r = data.rho - centre
    e = np.stack([centre - mean_p, 2.0 * mean_p - data.total], axis=1)
    in_t = partial(_sum_in_t, _kernel_sums(c, w, p, r), e)
    total_v, total_v2, total_v3 = (in_t(name, 0) for name in ("v", "v^2", "v^3"))
    mean_a = mean_r - 0.5 * (mean_p**2 + total_v[:, 0])
    mean_d = mean_p * (data.total - mean_p) - total_v[:, 0]
    triangles = total_v**3 - 3.0 * total_v * total_v2 + 2.0 * total_v3
    pairs = 0.5 * (total_v**2 - total_v2)
    polynomials = cumulants_in_t(in_t, total_v, triangles, np.stack([mean_a, mean_d], axis=1), pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = mean_a / mean_d
        variance = np.maximum((polynomials[1] * mean[:, None] ** np.arange(3)).sum(axis=1), 0.0)
        largest = np.where(mean_d > 0.0, _largest_share(c, w, p, r, e[:, 0] + e[:, 1] * mean, mean - 0.5), 1.0)
        return NodeCumulants(polynomials, mean, np.sqrt(variance) / mean_d, (p * (1.0 - p)) @ c, largest)


def _portions(p: FloatArray) -> list[slice]:
    size = max(1, _PORTION // max(1, p.shape[1]))
    return [slice(i, i + size) for i in range(0, p.shape[0], size)]


def _kernel_sums(c: FloatArray, w: FloatArray, p: FloatArray, r: FloatArray) -> KernelSums:
    """Sums over rows of a cumulant times (w u)^j r^i with u = 1 - 2p, by kernel: a list over j of nodes x i."""
    powers = r[:, None] ** np.arange(5)
    columns = {
        (name, j): (c * w ** (power + j))[:, None] * powers[:, : degree - j + 1]
        for name, (power, degree) in _KERNELS.items()
        for j in range(degree + 1)
    }
    sums = {key: np.empty((p.shape[0], column.shape[1])) for key, column in columns.items()}
    for nodes in _portions(p):
        u = 1.0 - 2.0 * p[nodes]
        v = p[nodes] * (1.0 - p[nodes])
        square = v * v
        kernels = [v.copy(), square, square * v, v * u, square * u, v - 6.0 * square]
        for kernel, (name, (_, degree)) in zip(kernels, _KERNELS.items(), strict=True):
            for j in range(degree + 1):
                np.matmul(kernel, columns[name, j], out=sums[name, j][nodes])
                if j < degree:
                    np.multiply(kernel, u, out=kernel)
    return sums


def _largest_share(
    c: FloatArray, w: FloatArray, p: FloatArray, r: FloatArray, constant: FloatArray, slope: FloatArray
) -> FloatArray:
    """The largest share of a row in the variance of A - tD, which is r + constant + slope w u to first order."""
    shares = []
    for nodes in _portions(p):
        line = slope[nodes, None] * (w * (1.0 - 2.0 * p[nodes]))
        line += r
        line += constant[nodes, None]
        line *= line
        line *= p[nodes] * (1.0 - p[nodes])
        line *= w**2
        shares.append(line.max(axis=1) / (line @ c))
    return np.concatenate(shares)


def _sum_in_t(sums: KernelSums, e: FloatArray, kernel: str, degree: int) -> FloatArray:
    """The sum of kernel * (r + e(t) + h(t) w u)^degree, a polynomial in t for each node."""
    result = np.zeros((e.shape[0], degree + 1))
    of_h: FloatArray = np.ones(1)
    for j in range(degree + 1):
        of_e = np.broadcast_to(of_h, (e.shape[0], j + 1))
        for k in range(degree - j + 1):
            i = degree - j - k
            ways = comb(degree, j) * comb(degree - j, k)
            result[:, : j + k + 1] += ways * sums[kernel, j][:, i : i + 1] * of_e
            of_e = product(of_e, e) if k < degree - j else of_e
        of_h = np.convolve(of_h, _H)
    return result


class MixedCdf(NamedTuple):
    """The cdf of a mixture on a rising grid, and mean and variance at each of its nodes."""

    grid: FloatArray
    levels: FloatArray
    mean: FloatArray
    var: FloatArray


def mixed_cdf(nodes: NodeCumulants, weight: FloatArray, low: float, high: float) -> MixedCdf:
    """The mixture of the expansions within [low, high]; `weight` sums to one."""
    first, last = np.maximum(low, nodes.mean - _REACH * nodes.sd), np.minimum(high, nodes.mean + _REACH * nodes.sd)
    t, even = _common_grid(nodes, first, last)
    middle, width, centre = 0.5 * (t[1:] + t[:-1]), np.diff(t), float(weight @ nodes.mean)
    levels, mean, second = np.zeros(t.size), np.empty(weight.size), np.empty(weight.size)
    # Neighbours have their mass in the same stretch of the grid, outside of which the cdf is 0 or 1.
    for some in np.array_split(np.argsort(nodes.mean, kind="stable"), max(1, weight.size * t.size // _PORTION)):
        start, end = np.searchsorted(t, first[some].min()), np.searchsorted(t, last[some].max(), side="right")
        part = slice(int(start), int(end))
        cdf = expansion([poly[some].T[:, :, None] for poly in nodes.polynomials], t[part])
        cdf = np.maximum.accumulate(cdf, axis=1)
        cdf = (cdf - cdf[:, :1]) / (cdf[:, -1:] - cdf[:, :1])
        levels[part] += weight[some] @ cdf
        levels[part.stop :] += weight[some].sum()
        mass, inner = np.diff(cdf, axis=1), slice(part.start, part.stop - 1)
        mean[some] = mass @ (middle[inner] - centre)
        # Sheppard's correction: mass that is spread evenly between two points has a little more spread than it had.
        second[some] = mass @ ((middle[inner] - centre) ** 2 - width[inner] ** 2 / 12.0)
    if even:
        t, levels = _finer(t, levels)
    return MixedCdf(t, levels, centre + mean, np.maximum(second - mean**2, 0.0))


def _common_grid(nodes: NodeCumulants, first: FloatArray, last: FloatArray) -> tuple[FloatArray, bool]:
    """Points from the first end of a node to the last, fine enough for each of them, and if they are evenly spaced."""
    low, high = float(first.min()), float(last.max())
    points = (high - low) * _PER_SD / float(nodes.sd.min())
    if points <= _POINTS:
        return np.linspace(low, high, int(points) + 33), True
    share = np.linspace(-1.0, 1.0, _OWN_POINTS)
    # Denser in the middle, where the cdf bends.
    own = nodes.mean[:, None] + _REACH * nodes.sd[:, None] * (0.3 * share + 0.7 * share**3)
    return np.unique(np.concatenate([np.clip(own, first[:, None], last[:, None]).ravel(), [low, high]])), False


def _finer(t: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Four times as many evenly spaced points, by cubics through the four nearest."""
    padded = np.concatenate([levels[:1], levels, levels[-1:]])
    a, b, c, d = padded[:-3], padded[1:-2], padded[2:-1], padded[3:]
    x = np.arange(4)[:, None] / 4.0
    between = (
        -a * x * (x - 1.0) * (x - 2.0) / 6.0
        + b * (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0
        - c * (x + 1.0) * x * (x - 2.0) / 2.0
        + d * (x + 1.0) * x * (x - 1.0) / 6.0
    )
    finer = np.append(between.T.ravel(), levels[-1])
    return np.linspace(t[0], t[-1], finer.size), np.maximum.accumulate(np.clip(finer, levels[0], levels[-1]))
