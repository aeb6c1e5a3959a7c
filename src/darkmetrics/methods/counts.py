"""What the law of a formula of counts is made of: the law of each group's positives at every node, and tables."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, Formula
from darkmetrics._kernels.linear_sum import Lattice, linear_sum_law
from darkmetrics._kernels.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.quadrature import NodeAxis
from darkmetrics.distribution import Discrete, MetricDistribution, NodeMoments, Undefined
from darkmetrics.functional import CountFunctional
from darkmetrics.methods.base import Memo, about
from darkmetrics.nodes import Nodes

# Numbers that the laws of one group may hold at all nodes on their common window.
_WINDOW_LIMIT = 2**24
# Places of the lattice that nodes share where rows have weights.
_COMMON_PLACES = 2048


class GroupLaws(NamedTuple):
    """The law of each group's positive weight at every node, on a window that the nodes share."""

    axes: list[NodeAxis]
    method: str

    def sizes(self, used: list[int]) -> list[int]:
        """Values of each of these groups."""
        return [self.axes[i].values.size for i in used]


def group_lattices(functional: CountFunctional, p: FloatArray) -> list[Lattice]:
    """The law of the positive weight among the missing rows of each group, for one set of probabilities."""
    weight = np.ones(p.size) if functional.split.weight is None else functional.split.weight
    return [linear_sum_law(weight[rows], p[rows], functional.missing[rows]) for rows in functional.split.groups]


def group_laws(functional: CountFunctional, nodes: Nodes, memo: Memo) -> GroupLaws | None:
    """The laws of the groups, shared by all metrics of the same groups; None when no window holds all nodes."""
    return memo.get((functional.split.groups, nodes), partial(_group_laws, functional, nodes))


def _group_laws(functional: CountFunctional, nodes: Nodes) -> GroupLaws | None:
    if len(nodes) == 1:
        lattices = group_lattices(functional, nodes.rows[0])
        axes = [NodeAxis(lattice.values(), lattice.pmf[None, :]) for lattice in lattices]
        return GroupLaws(axes, "exact" if all(lattice.exact for lattice in lattices) else "near exact")
    if functional.split.weight is not None:
        return _weighted_group_laws(functional, nodes)
    axes = []
    for rows in functional.split.groups:
        p, missing = nodes.probability[:, rows], functional.missing[rows]
        # Before anything of that size is made: the window holds ten standard deviations either side of every mean.
        mean, sd = p @ missing, np.sqrt((p * (1.0 - p)) @ missing)
        if len(nodes) * float(np.max(mean + 10.0 * sd) - np.min(mean - 10.0 * sd)) > _WINDOW_LIMIT:
            return None
        first, pmfs = poisson_binomial_pmfs(p, missing)
        axes.append(NodeAxis(first + np.arange(pmfs.shape[1], dtype=np.float64), pmfs))
    return GroupLaws(axes, "exact")


def _weighted_group_laws(functional: CountFunctional, nodes: Nodes) -> GroupLaws:
    """Sums of weights live on a lattice of their own at each node; here they are brought onto a common one."""
    by_node = [group_lattices(functional, p) for p in nodes.rows]
    shared = [_common_lattice(list(lattices)) for lattices in zip(*by_node, strict=True)]
    return GroupLaws([axis for axis, _ in shared], "exact" if all(exact for _, exact in shared) else "near exact")


def _common_lattice(lattices: list[Lattice]) -> tuple[NodeAxis, bool]:
    """The laws on the same places, and whether these are all true atoms.

    Where they have few places between them all are kept. Else a mass between two places of a common lattice is shared
    by both, which keeps the mean and adds less than (step / 2)^2 to the variance. Zero stays a place: the mass there
    decides what is 0/0.
    """
    places = [lattice.values() for lattice in lattices]
    # Places that differ by the rounding of a sum are one.
    unit = 1e-12 * max(1e-300, *(float(np.abs(x).max()) for x in places))
    kept = np.unique(np.rint(np.concatenate(places) / unit)) * unit
    exact = all(lattice.exact for lattice in lattices)
    if kept.size <= _COMMON_PLACES:
        pmf = np.zeros((len(lattices), kept.size))
        for row, x, lattice in zip(pmf, places, lattices, strict=True):
            np.add.at(row, np.searchsorted(kept, np.rint(x / unit) * unit - 0.5 * unit), lattice.pmf)
        return NodeAxis(kept, pmf), exact
    step = (kept[-1] - kept[0]) / _COMMON_PLACES
    first = int(np.floor(kept[0] / step))
    pmf = np.zeros((len(lattices), _COMMON_PLACES + 4))
    for row, x, lattice in zip(pmf, places, lattices, strict=True):
        place = x / step - first
        level = np.floor(place + 1e-9).astype(np.int64)
        part = np.maximum(place - level, 0.0)
        np.add.at(row, level, lattice.pmf * (1.0 - part))
        np.add.at(row, level + 1, lattice.pmf * part)
    used = np.flatnonzero(pmf.any(axis=0))
    window = np.arange(used[0], used[-1] + 1)
    return NodeAxis(step * (first + window), pmf[:, window]), False


def formula_of(functional: CountFunctional, laws: GroupLaws, used: list[int], *x: FloatArray) -> FloatArray:
    """The formula as a function of the variables in use, the others at a value that cannot matter."""
    sums: list[FloatArray] = [np.asarray(axis.values[0]) for axis in laws.axes]
    for i, value in zip(used, x, strict=True):
        sums[i] = value
    return functional.at(sums)


def table_law(functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray) -> MetricDistribution:
    """The law from the formula at every combination of counts."""
    grid = np.meshgrid(*(laws.axes[i].values for i in used), indexing="ij") if used else []
    values = np.broadcast_to(formula_of(functional, laws, used, *grid), tuple(laws.sizes(used)))
    # Counts are independent given the node: all but the last variable multiply node by node, the last one in a sum.
    rest: FloatArray = np.ones((weight.size, 1))
    for i in used[:-1]:
        rest = (rest[:, :, None] * laws.axes[i].pmf[:, None, :]).reshape(weight.size, -1)
    last: FloatArray = laws.axes[used[-1]].pmf if used else np.ones((weight.size, 1))
    values = values.reshape(rest.shape[1], last.shape[1])
    masses = (weight[:, None] * rest).T @ last
    keep = masses > 1e-40
    law = Discrete.from_atoms(values[keep], masses[keep], functional.fill, **about(functional, laws.method))
    if weight.size == 1 or isinstance(law, Undefined):
        return law
    return replace(law, by_node=product_node_moments(values, rest, last, weight, functional.fill, law.mean()))


def product_node_moments(
    values: FloatArray, rest: FloatArray, last: FloatArray, weight: FloatArray, fill: float, centre: float
) -> NodeMoments:
    """Mean and variance at each node of `values` of two variables that are independent given the node.

    They are taken about the mean of the mixture, so that little cancels.
    """
    off = np.where(np.isnan(values), fill, values) - centre
    defined = ~np.isnan(off)
    off = np.where(defined, off, 0.0)

    def expected(of: Any) -> FloatArray:
        result: FloatArray = ((rest @ of) * last).sum(axis=1)
        return result

    share = expected(defined.astype(np.float64)) if not defined.all() else np.ones(weight.size)
    scale = np.where(share > 0.0, share, 1.0)
    first, second = expected(off) / scale, expected(off**2) / scale
    total = weight * share
    return NodeMoments.of(total / total.sum(), centre + first, second - first**2)


def rising(functional: CountFunctional, formula: Formula, axes: list[FloatArray], used: list[int]) -> bool | None:
    """Whether the formula rises (True) or falls (False) with the first variable everywhere; None if neither."""
    declared = functional.direction[used[0]]
    edges = formula(*np.meshgrid(*(a[[0, 1, -2, -1]] if a.size > 4 else a for a in axes), indexing="ij"))
    if np.isnan(edges).any():
        return None
    if declared is not None and functional.denominator_keeps_its_sign():
        return declared > 0  # the denominator vanishes nowhere inside if it does not at the edges
    grid = np.meshgrid(*axes[1:], indexing="ij")
    rises = falls = True
    before = formula(np.full(grid[0].shape, axes[0][0]), *grid)
    for x in axes[0][1:]:
        value = formula(np.full(grid[0].shape, x), *grid)
        change = value - before
        if declared is not None and not np.isnan(change).any():
            continue  # the direction is known; only a 0/0 inside is looked for
        rises, falls = rises and bool(np.all(change >= 0.0)), falls and bool(np.all(change <= 0.0))
        before = value
        if not (rises or falls):
            return None
    return rises if declared is None else declared > 0
