"""Mean and variance of a formula of independent lattice variables, by Gauss quadrature on their own laws."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import BoolArray, FloatArray, Formula, IntArray

_NODES = 20
_FEW = 8
_CHUNK = 1 << 20
_FEWER_DIGITS = 1e7
_MOST_JOINT = 1 << 23
_SOME_MASS, _NO_MASS = 1e-15, 1e-20
# Combinations of less mass are not listed.
_FAINT = 1e-40
# Nodes for which every combination is looked at: more than so many at once, with so many numbers held for them at most.
_MANY_OFF, _HELD_AT_ONCE = 4, 1 << 22


def gauss_rule(values: FloatArray, masses: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights that integrate polynomials up to degree 2 * nodes - 1 exactly under a discrete law.

    Fewer of them where fewer values hold all of the mass. Stieltjes' procedure gives the recurrence of the orthogonal
    polynomials, Golub and Welsch's eigenproblem the rule.
    """
    if values.size <= nodes:
        return values, masses
    centre = float(masses @ values)
    scale = float(np.sqrt(masses @ (values - centre) ** 2))
    if scale == 0.0:
        return np.array([centre]), np.ones(1)
    x = (values - centre) / scale
    previous, current = np.zeros_like(x), np.ones_like(x)
    diagonal, off = np.empty(nodes), np.empty(nodes - 1)
    norm = 1.0
    for k in range(nodes):
        diagonal[k] = float(masses @ (x * current**2)) / norm
        if k == nodes - 1:
            break
        following = (x - diagonal[k]) * current - (off[k - 1] ** 2 if k else 0.0) * previous
        new_norm = float(masses @ following**2)
        if new_norm == 0.0:
            diagonal, off = diagonal[: k + 1], off[:k]
            break
        off[k] = np.sqrt(new_norm / norm)
        previous, current, norm = current, following, new_norm
    points, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off)
    return np.asarray(centre + scale * points, dtype=np.float64), vectors[0] ** 2


def _recurrences(values: FloatArray, masses: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Centre, scale and matrix whose eigenproblem is `gauss_rule`, for each row of values and masses.

    All have many more values than the rule has nodes. The first rows and columns are those of smaller rules.
    """
    centre = np.einsum("ij,ij->i", masses, values)
    x = values - centre[:, None]
    scale = np.sqrt((masses * x**2).sum(axis=1))
    x /= scale[:, None]
    matrix = np.zeros((masses.shape[0], nodes, nodes))
    previous, current, norm, off = np.zeros_like(x), np.ones_like(x), np.ones(x.shape[0]), np.zeros(x.shape[0])
    for k in range(nodes):
        held = masses * current
        diagonal = (held * x * current).sum(axis=1) / norm
        matrix[:, k, k] = diagonal
        if k == nodes - 1:
            break
        following = (x - diagonal[:, None]) * current - (off**2)[:, None] * previous
        new_norm = (masses * following**2).sum(axis=1)
        off = np.sqrt(new_norm / norm)
        matrix[:, k, k + 1] = matrix[:, k + 1, k] = off
        previous, current, norm = current, following, new_norm
    return centre, scale, matrix


class NodeAxis:
    """A lattice variable with one law per node: `pmf` is nodes x values. Keeps the Gauss rules that formulas share."""

    def __init__(self, values: FloatArray, pmf: FloatArray) -> None:
        self.values, self.pmf = values, pmf

    @cached_property
    def rules(self) -> list[tuple[FloatArray, FloatArray]]:
        """A small Gauss rule and a smaller one: points and weights at each node (nodes of the law x points)."""
        many = np.sum(self.pmf > _SOME_MASS, axis=1) > 4 * _FEW
        centre, scale, matrix = _recurrences(*self._own_windows(many), _FEW)
        found = []
        for nodes in (_FEW, _FEW - 2):
            points, weights = np.zeros((2, self.pmf.shape[0], nodes))
            x, vectors = np.linalg.eigh(matrix[:, :nodes, :nodes])
            points[many], weights[many] = centre[:, None] + scale[:, None] * x, vectors[:, 0, :] ** 2
            for i in np.flatnonzero(~many):
                # Next to no mass at more places than the rule has nodes would make its polynomials overflow.
                held = self.pmf[i] > _NO_MASS
                x, mass = gauss_rule(self.values[held], self.pmf[i][held], nodes)
                points[i], points[i, : x.size], weights[i, : x.size] = x[0], x, mass
            found.append((points, weights))
        return found

    def _own_windows(self, which: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Values and masses of some nodes where they have mass: of the common window that may be a small part."""
        held = (self.pmf > _NO_MASS)[which]
        first, end = windows(held)
        width = int(np.max(end - first, initial=0))
        place = np.minimum(first, held.shape[1] - width)[:, None] + np.arange(width)
        return self.values[place], self.pmf[np.flatnonzero(which)[:, None], place]


class JointMass:
    """Masses of all combinations of lattice variables, mixed over the nodes, which formulas of the same ones share."""

    def __init__(self, masses: Sequence[FloatArray], weight: FloatArray) -> None:
        self._masses, self._weight = masses, weight
        self._held: tuple[BoolArray, FloatArray] | None = None

    def held(self, rest: FloatArray, last: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Which values of the last variable (rows) with which of the others, given at the nodes, have mass, and it."""
        if self._held is None:
            table = last.T @ (self._weight[:, None] * rest)
            held = table > _FAINT
            self._held = held, table[held]
        return self._held

    @cached_property
    def cumulative(self) -> FloatArray | None:
        """Mass up to each value of the first variable, for every combination of the others; None if too many."""
        if np.prod([mass.shape[1] for mass in self._masses], dtype=np.float64) > _MOST_JOINT:
            return None
        each = self._weight[:, None]
        for mass in self._masses[1:]:
            each = (each[:, :, None] * mass[:, None, :]).reshape(self._weight.size, -1)
        total = np.zeros((self._masses[0].shape[1] + 1, each.shape[1]))
        np.matmul(np.cumsum(self._masses[0], axis=1).T, each, out=total[1:])
        return total

    @cached_property
    def terms(self) -> "Terms":
        """What is summed where masses are not tabulated: one term for each node and combination with mass there."""
        each = self._weight[:, None]
        for mass in self._masses[1:]:
            each = (each[:, :, None] * mass[:, None, :]).reshape(self._weight.size, -1)
        node, row = np.nonzero(each)  # each node has mass in its own window alone
        first, end = windows(self._masses[0] > 0.0)
        parts = [cumulated(own[a:b]) for own, a, b in zip(self._masses[0], first.tolist(), end.tolist(), strict=True)]
        shift = np.cumsum([0, *(part.size for part in parts[:-1])]) - first
        return Terms(each[node, row], row, first[node], end[node], shift[node], np.concatenate(parts))


class Terms(NamedTuple):
    """Masses of combinations of all variables but the first, node after node, and where the cdf of the first is."""

    mass: FloatArray
    row: IntArray
    # Where the first variable has mass at the node, and where its cdf there is found: all nodes on one line.
    first: IntArray
    end: IntArray
    shift: IntArray
    cdf: FloatArray

    def levels(self, crossing: IntArray) -> FloatArray:
        """The cdf of the first variable after so many of its values, which differ by row."""
        place = crossing[self.row]
        np.clip(place, self.first, self.end, out=place)
        place += self.shift
        return self.cdf[place]


def windows(held: BoolArray) -> tuple[IntArray, IntArray]:
    """Where the part of each row starts and ends that holds something."""
    return held.argmax(axis=1), held.shape[1] - held[:, ::-1].argmax(axis=1)


def cumulated(masses: FloatArray) -> FloatArray:
    """Cumulated masses, from zero on."""
    total = np.zeros(masses.size + 1)
    np.cumsum(masses, out=total[1:])
    total /= total[-1]
    return total


def own_atoms(values: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The places of a common window where a law has mass."""
    held = masses > 0.0
    return values[held], masses[held]


def product_moments_by_node(
    formula: Formula, axes: Sequence[NodeAxis], *, exact: bool
) -> tuple[FloatArray, FloatArray]:
    """Like `product_moments`, at each node: a small rule for all at once, the usual ones where it is too small.

    Laws that are not `exact` need no more digits than they have.
    """
    fine, coarse = (_with_rules(formula, [axis.rules[which] for axis in axes]) for which in (0, 1))
    scale = np.abs(fine[0]) + np.sqrt(fine[1])
    tolerance = 1.0 if exact else _FEWER_DIGITS
    off = np.abs(fine[0] - coarse[0]) > tolerance * 1e-13 * scale
    off |= np.abs(fine[1] - coarse[1]) > tolerance * 1e-11 * fine[1]
    mean, variance = fine
    held = [axis.pmf[off] > 0.0 for axis in axes]
    # Combinations of all nodes together, and of each: few heavy rows leave most of a window empty.
    shared, *others = (int(np.any(one, axis=0).sum()) for one in held)
    own = float(np.prod([one.sum(axis=1) for one in held], axis=0, dtype=np.float64).sum())
    if np.sum(off) > _MANY_OFF and shared * prod(others) <= own and np.sum(off) * prod(others) <= _HELD_AT_ONCE:
        mean[off], variance[off] = _grid_of_all(formula, axes, off)
        return mean, variance
    for i in np.flatnonzero(off):
        atoms = [own_atoms(axis.values, axis.pmf[i]) for axis in axes]
        mean[i], variance[i] = product_moments(formula, [x for x, _ in atoms], [mass for _, mass in atoms], tolerance)
    return mean, variance


def _grid_of_all(formula: Formula, axes: Sequence[NodeAxis], which: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Moments at several nodes with the formula at every combination, which is evaluated once for all of them."""
    found = [np.any(axis.pmf[which] > 0.0, axis=0) for axis in axes]
    (x, mass), *others = ((axis.values[held], axis.pmf[which][:, held]) for axis, held in zip(axes, found, strict=True))
    grid = [values.ravel() for values in np.meshgrid(*(values for values, _ in others), indexing="ij")]
    rest = np.ones((mass.shape[0], 1))
    for _, masses in others:
        rest = (rest[:, :, None] * masses[:, None, :]).reshape(rest.shape[0], -1)
    shift = float(formula(x[x.size // 2], *(values[values.size // 2] for values in grid)))
    first, second = np.zeros(mass.shape[0]), np.zeros(mass.shape[0])
    rows = max(1, _CHUNK // rest.shape[1])
    for start in range(0, x.size, rows):
        some = slice(start, start + rows)
        off = np.reshape(formula(x[some, None], *grid), (-1, rest.shape[1])) - shift
        first += ((mass[:, some] @ off) * rest).sum(axis=1)
        off *= off
        second += ((mass[:, some] @ off) * rest).sum(axis=1)
    return shift + first, np.maximum(second - first**2, 0.0)


def _with_rules(formula: Formula, rules: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    number = len(rules)
    spread = [tuple(slice(None) if j in (0, i + 1) else None for j in range(number + 1)) for i in range(number)]
    value = formula(*(points[place] for (points, _), place in zip(rules, spread, strict=True)))
    weight: FloatArray = np.ones(1)
    for (_, weights), place in zip(rules, spread, strict=True):
        weight = weight * weights[place]
    over = tuple(range(1, number + 1))
    mean = (weight * value).sum(axis=over)
    centred = value - mean.reshape((-1,) + (1,) * number)
    return mean, (weight * centred**2).sum(axis=over)


def product_moments(
    formula: Formula, axes: Sequence[FloatArray], masses: Sequence[FloatArray], tolerance: float = 1.0
) -> tuple[float, float]:
    """Mean and variance of `formula(x_1, ..., x_k)` for independent x_j on the lattices `axes`.

    Two rules of different order must agree to 1e-12, times the tolerance; where they do not (a formula with kinks),
    every point is summed.
    """
    fine = _with_rule(formula, axes, masses, _NODES)
    coarse = _with_rule(formula, axes, masses, _NODES - 5)
    scale = abs(fine[0]) + np.sqrt(max(fine[1], 0.0))
    agree = abs(fine[0] - coarse[0]) <= tolerance * 1e-12 * scale
    agree &= abs(fine[1] - coarse[1]) <= tolerance * 1e-10 * fine[1]
    return fine if agree else _over_grid(formula, axes, masses)


def _with_rule(
    formula: Formula, axes: Sequence[FloatArray], masses: Sequence[FloatArray], nodes: int
) -> tuple[float, float]:
    rules = [gauss_rule(x, m, nodes) for x, m in zip(axes, masses, strict=True)]
    value = formula(*np.meshgrid(*(x for x, _ in rules), indexing="ij"))
    weight = np.ones(())
    for _, mass in rules:
        weight = np.multiply.outer(weight, mass)
    mean = float(np.sum(weight * value))
    return mean, float(np.sum(weight * (value - mean) ** 2))


def _over_grid(formula: Formula, axes: Sequence[FloatArray], masses: Sequence[FloatArray]) -> tuple[float, float]:
    grid = [g.ravel() for g in np.meshgrid(*axes[1:], indexing="ij")]
    weight = np.ones(1)
    for mass in masses[1:]:
        weight = np.multiply.outer(weight, mass).ravel()
    rows = max(1, _CHUNK // weight.size)
    total = first = second = 0.0
    shift: float | None = None
    for start in range(0, axes[0].size, rows):
        x, mass = axes[0][start : start + rows, None], masses[0][start : start + rows]
        value = formula(x, *grid)
        if shift is None:
            shift = float(value.flat[value.size // 2])
        total += float(mass.sum() * weight.sum())
        first += float(mass @ ((value - shift) @ weight))
        second += float(mass @ ((value - shift) ** 2 @ weight))
    first, second = first / total, second / total
    return first + (shift or 0.0), max(0.0, second - first**2)
