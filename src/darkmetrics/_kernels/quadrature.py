"""Mean and variance of a formula of independent lattice variables, by Gauss quadrature on their own laws."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh_tridiagonal

from darkmetrics._kernels.arrays import FloatArray, Formula

_NODES = 20
_FEW = 8
_CHUNK = 1 << 20


def gauss_rule(values: FloatArray, masses: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights that integrate polynomials up to degree 2 * nodes - 1 exactly under a discrete law.

    Stieltjes' procedure gives the recurrence of the orthogonal polynomials, Golub and Welsch's eigenproblem the rule.
    """
    if values.size <= nodes:
        return values, masses
    centre = float(masses @ values)
    scale = float(np.sqrt(masses @ (values - centre) ** 2))
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
        off[k] = np.sqrt(new_norm / norm)
        previous, current, norm = current, following, new_norm
    points, vectors = eigh_tridiagonal(diagonal, off)
    return np.asarray(centre + scale * points, dtype=np.float64), vectors[0] ** 2


class NodeAxis:
    """A lattice variable with one law per node: `pmf` is nodes x values. Keeps the Gauss rules that formulas share."""

    def __init__(self, values: FloatArray, pmf: FloatArray) -> None:
        self.values, self.pmf = values, pmf
        self._rules: dict[int, tuple[FloatArray, FloatArray]] = {}

    def rule(self, nodes: int) -> tuple[FloatArray, FloatArray]:
        """Points and weights of the Gauss rule at each node (nodes of the law x points)."""
        if nodes not in self._rules:
            points, weights = np.zeros((self.pmf.shape[0], nodes)), np.zeros((self.pmf.shape[0], nodes))
            for i, row in enumerate(self.pmf):
                x, mass = gauss_rule(*own_window(self.values, row), nodes)
                points[i], points[i, : x.size], weights[i, : x.size] = x[0], x, mass
            self._rules[nodes] = points, weights
        return self._rules[nodes]


def own_window(values: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The stretch of a common window where a law has its mass."""
    held = np.flatnonzero(masses)
    inside = slice(int(held[0]), int(held[-1]) + 1)
    return values[inside], masses[inside]


def product_moments_by_node(formula: Formula, axes: Sequence[NodeAxis]) -> tuple[FloatArray, FloatArray]:
    """Like `product_moments`, at each node: a small rule for all at once, the usual ones where it is too small."""
    fine, coarse = (_with_rules(formula, [axis.rule(nodes) for axis in axes]) for nodes in (_FEW, _FEW - 2))
    scale = np.abs(fine[0]) + np.sqrt(fine[1])
    agree = (np.abs(fine[0] - coarse[0]) <= 1e-13 * scale) & (np.abs(fine[1] - coarse[1]) <= 1e-11 * fine[1])
    mean, variance = fine
    for i in np.flatnonzero(~agree):
        own = [own_window(axis.values, axis.pmf[i]) for axis in axes]
        mean[i], variance[i] = product_moments(formula, [x for x, _ in own], [mass for _, mass in own])
    return mean, variance


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


def product_moments(formula: Formula, axes: Sequence[FloatArray], masses: Sequence[FloatArray]) -> tuple[float, float]:
    """Mean and variance of `formula(x_1, ..., x_k)` for independent x_j on the lattices `axes`.

    Two rules of different order must agree to 1e-12; where they do not (a formula with kinks), every point is summed.
    """
    fine = _with_rule(formula, axes, masses, _NODES)
    coarse = _with_rule(formula, axes, masses, _NODES - 5)
    scale = abs(fine[0]) + np.sqrt(max(fine[1], 0.0))
    agree = abs(fine[0] - coarse[0]) <= 1e-12 * scale and abs(fine[1] - coarse[1]) <= 1e-10 * fine[1]
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
