"""What a weighted sum of independent labels is like once it is known how many of them are positive."""

from math import comb
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

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
        one, two = moments[:blocks], moments[blocks:]
        size = one.shape[2]
        moments = np.zeros((blocks, orders, 2 * size - 1, nodes))
        for j in range(orders):
            for i in range(j + 1):
                left, right = one[:, i] * float(comb(j, i)), two[:, j - i]
                for k in range(size):
                    moments[:, j, k : k + size] += left[:, k : k + 1] * right
        low, moments = _trimmed(2 * low, moments)
    return low, moments[0]


def _trimmed(low: int, moments: FloatArray) -> tuple[int, FloatArray]:
    kept = np.flatnonzero(moments[:, 0].max(axis=(0, 2)) > _FAINTEST)
    return low + int(kept[0]), moments[:, :, kept[0] : kept[-1] + 1]
