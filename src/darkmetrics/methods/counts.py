"""The law of a formula of counts, from the laws of the groups' positives at every node: tables and sums."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, Formula, IntArray
from darkmetrics._kernels.sums.poisson_binomial import CONVOLUTION_LIMIT, poisson_binomial_pmfs
from darkmetrics._kernels.sums.quadrature import NodeAxis, product_moments_by_node
from darkmetrics._kernels.sums.related_counts import MovablePmfs
from darkmetrics.distributions import Discrete, MetricDistribution, NodeMoments, ProductLaw, Undefined, mix
from darkmetrics.functional import CountFunctional
from darkmetrics.methods.base import CountLaws, GroupLaws, about, chances_of
from darkmetrics.posterior import Posterior

# Up to this many combinations of counts the law is tabulated and sorted; above, it is summed on demand.
_TABLE_LIMIT = 2**17
# Combinations of counts that are gone through one by one where nothing else is left.
EVERY_LIMIT = 2**23
# Terms that a law summed on demand may have, at one node and over all nodes.
_ROWS_LIMIT, _TERMS_LIMIT = 2**17, 2**24
# Places per variable, for one to four variables, at which a larger formula is tried.
_TRIED = (4096, 512, 96, 32)
# The same where the direction is declared and only 0/0 is looked for, which lies at the ends.
_TRIED_FOR_ENDS = 32


def formula_of(functional: CountFunctional, laws: GroupLaws, used: list[int], *x: FloatArray) -> FloatArray:
    """The formula as a function of the variables in use, the others at a value that cannot matter."""
    sums: list[FloatArray] = [np.asarray(axis.values[0]) for axis in laws.axes]
    for i, value in zip(used, x, strict=True):
        sums[i] = value
    return functional.at(sums)


def law_of_groups(functional: CountFunctional, laws: GroupLaws, weight: FloatArray) -> MetricDistribution | None:
    """The law of a formula of the groups' sums, whose laws at the nodes have these weights; None if it is too large."""
    # A variable the formula does not depend on takes no part in the law.
    used = [i for i, direction in enumerate(functional.direction) if direction != 0 and laws.axes[i].values.size > 1]
    used.sort(key=lambda i: (functional.direction[i] is None, -laws.axes[i].values.size))
    law = _table_or_product(functional, laws, used, weight)
    if law is None and used and functional.direction[used[0]] is not None:
        law = _ends_apart(functional, laws, used, weight)
    if law is None and prod(laws.sizes(used)) <= EVERY_LIMIT:
        return _table_law(functional, laws, used, weight)
    return law


def _table_or_product(
    functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray
) -> MetricDistribution | None:
    """A small table, or a sum on demand where the formula is defined and monotone."""
    size = prod(laws.sizes(used))
    if len(used) < 2 or size <= _TABLE_LIMIT:
        return _table_law(functional, laws, used, weight)
    axes = [laws.axes[i] for i in used]
    values = [axis.values for axis in axes]
    rows = size / values[0].size
    if rows > _ROWS_LIMIT or (size > EVERY_LIMIT and rows * weight.size > _TERMS_LIMIT):
        return None
    formula = partial(formula_of, functional, laws, used)
    rises = rising(functional, formula, values, used)
    if rises is None:
        return None
    facts: dict[str, Any] = {"formula": formula, "axes": values, "rising": rises, **about(functional, laws.method)}
    if weight.size == 1:
        return ProductLaw(masses=[axis.pmf[0] for axis in axes], lattices=axes, **facts)
    facts["by_node"] = NodeMoments.of(weight, *product_moments_by_node(formula, axes, exact=laws.exact))
    return ProductLaw(masses=[axis.pmf for axis in axes], weight=weight, joint=laws.joint(used, weight), **facts)


def _ends_apart(
    functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray
) -> MetricDistribution | None:
    """The law in three parts: the first variable at either end, where a class can be absent (0/0), or between them."""
    first = used[0]
    axis = laws.axes[first]
    parts, shares, defined = [], [], []
    for inside, others in ((slice(0, 1), used[1:]), (slice(1, -1), used), (slice(-1, None), used[1:])):
        values, pmf = axis.values[inside], axis.pmf[:, inside]
        at_node = weight * pmf.sum(axis=1)
        share = float(at_node.sum())
        if share <= 0.0:
            continue
        held = np.where(at_node > 0.0, at_node, 1.0)[:, None]
        axes = [*laws.axes[:first], NodeAxis(values, weight[:, None] * pmf / held), *laws.axes[first + 1 :]]
        own = replace(laws, axes=axes, _joint={})
        law = _table_or_product(functional, own, others, at_node / share)
        if law is None:
            return None
        parts.append(law)
        shares.append(share)
        # One minus the mass of 0/0 would lose what is left of it where that is nearly all there is.
        defined.append(1.0 if isinstance(law, ProductLaw) else _defined_mass(functional, own, others, at_node / share))
    counted = np.array(shares) * (np.array(defined) if functional.given_defined else 1.0)
    facts = {**about(functional, laws.method), "undefined": min(1.0, float(np.dot(shares, 1.0 - np.array(defined))))}
    if not counted.sum() > 0.0:
        return Undefined(**{**facts, "undefined": 1.0, "given_defined": True})
    whole = mix(parts, counted / counted.sum(), given_defined=False, **facts)
    facts = {"undefined": facts["undefined"], "given_defined": functional.given_defined}
    return replace(whole, by_node=_joined_moments(parts, counted, weight.size), **facts)


def _defined_mass(functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray) -> float:
    """Probability that the formula of these groups is not 0/0."""
    values, rest, last = grid_of(functional, laws, used, weight)
    return float((((weight[:, None] * rest).T @ last)[~np.isnan(values)]).sum())


def _joined_moments(parts: Sequence[MetricDistribution], shares: FloatArray, nodes: int) -> NodeMoments:
    """Moments at each node of a law that was found in parts, with the share of each."""
    total, first, second = np.zeros((3, nodes))
    for law, share in zip(parts, shares.tolist(), strict=True):
        if isinstance(law, Undefined):
            continue
        own = law.by_node or NodeMoments(np.ones(1), np.array([law.mean()]), np.array([law.var()]))
        mass = own.weight * share
        total, first = total + mass, first + mass * own.mean
        second = second + mass * (own.var + own.mean**2)
    held = np.where(total > 0.0, total, 1.0)
    return NodeMoments.of(total / total.sum(), first / held, second / held - (first / held) ** 2)


def grid_of(
    functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The formula at every combination, and masses at the nodes of all variables but the last, and of the last."""
    grid = np.meshgrid(*(laws.axes[i].values for i in used), indexing="ij", sparse=True) if used else []
    values = np.broadcast_to(formula_of(functional, laws, used, *grid), tuple(laws.sizes(used)))
    # Counts are independent given the node: all but the last variable multiply node by node, the last one in a sum.
    rest: FloatArray = np.ones((weight.size, 1))
    for i in used[:-1]:
        rest = (rest[:, :, None] * laws.axes[i].pmf[:, None, :]).reshape(weight.size, -1)
    last: FloatArray = laws.axes[used[-1]].pmf if used else np.ones((weight.size, 1))
    return values.reshape(rest.shape[1], last.shape[1]), rest, last


def _table_law(functional: CountFunctional, laws: GroupLaws, used: list[int], weight: FloatArray) -> MetricDistribution:
    """The law from the formula at every combination of counts."""
    values, rest, last = grid_of(functional, laws, used, weight)
    # The first variable has the most values: along it stretches of the table are in order, and long ones sort faster.
    held, masses = laws.joint(used, weight).held(rest, last)
    law = Discrete.from_atoms(values.T[held], masses, functional.fill, **about(functional, laws.method))
    if weight.size == 1 or isinstance(law, Undefined):
        return law
    return replace(law, by_node=product_node_moments(values, rest, last, weight, functional.fill, law.mean()))


def product_node_moments(
    values: FloatArray, rest: FloatArray, last: FloatArray, weight: FloatArray, fill: float, centre: float
) -> NodeMoments:
    """Mean and variance at each node of `values` of two variables that are independent given the node.

    They are taken about the mean of the mixture, so that little cancels.
    """
    off, share = values - centre, np.ones(weight.size)

    def expected(of: Any) -> FloatArray:
        if rest.shape[1] < last.shape[1]:
            return np.asarray(np.einsum("ij,ij->i", last @ of.T, rest))
        return np.asarray(np.einsum("ij,ij->i", rest @ of, last))

    undefined = np.isnan(off)
    if undefined.any():
        off = np.where(undefined, fill - centre, off)
        defined = ~np.isnan(off)
        off = np.where(defined, off, 0.0)
        share = expected(defined.astype(np.float64))
    scale = np.where(share > 0.0, share, 1.0)
    first, second = expected(off) / scale, expected(off**2) / scale
    total = weight * share
    return NodeMoments.of(total / total.sum(), centre + first, second - first**2)


def rising(functional: CountFunctional, formula: Formula, axes: list[FloatArray], used: list[int]) -> bool | None:
    """Whether the formula rises (True) or falls (False) with the first variable everywhere; None if neither.

    None also where it is 0/0. A formula with more combinations than can be gone through is tried where its variables
    are at their ends or next to them, and at pairs of neighbours in between.
    """
    declared = functional.direction[used[0]]
    every = declared is None and np.prod([a.size for a in axes], dtype=np.float64) <= EVERY_LIMIT
    most = _TRIED[min(len(axes), len(_TRIED)) - 1] if declared is None else _TRIED_FOR_ENDS
    tried = [a if every else a[_tried(a.size, most)] for a in axes]
    rows = max(1, 2**20 // int(np.prod([a.size for a in tried[1:]])))
    rises = falls = True
    before = None
    for start in range(0, tried[0].size, rows):
        values = formula(*np.meshgrid(tried[0][start : start + rows], *tried[1:], indexing="ij"))
        if np.isnan(values).any():
            return None
        if declared is None:
            change = np.diff(values if before is None else np.concatenate([before, values]), axis=0)
            rises, falls = rises and bool(np.all(change >= 0.0)), falls and bool(np.all(change <= 0.0))
            before = values[-1:]
            if not (rises or falls):
                return None
    return rises if declared is None else declared > 0


def _tried(size: int, most: int) -> IntArray:
    """Indices at the ends, next to them, and pairs of neighbours in between that follow no period."""
    if size <= most:
        return np.arange(size)
    share = (np.arange(1, most // 2) * 0.6180339887498949) % 1.0
    inner = (share * (size - 2)).astype(np.int64)
    return np.unique(np.concatenate([[0, 1, 2, size - 3, size - 2, size - 1], inner, inner + 1]))


class MovedCounts:
    """Laws of the number of positives among some of the missing cells, kept from one move to the next."""

    def __init__(self, missing: IntArray) -> None:
        self._missing = missing
        # The last law that was found from scratch, by the cells it counts, and the move it belongs to.
        self._found: dict[bytes, tuple[float, MovablePmfs]] = {}

    def at(self, delta: float, nodes: Posterior) -> CountLaws | None:
        """The laws at nodes whose log odds were moved by `delta`; None where there are too many rows for this."""
        if self._missing.sum() > CONVOLUTION_LIMIT:
            return None
        return partial(self._law, delta, nodes)

    def _law(self, delta: float, nodes: Posterior, rows: IntArray) -> tuple[int, FloatArray]:
        key = rows.tobytes()
        if key in self._found:
            start, law = self._found[key]
            moved = law.moved(delta - start)
            if moved is not None:
                return moved
        p, counts = chances_of(rows, self._missing, nodes)
        self._found[key] = delta, MovablePmfs.of(p, counts)
        return self._found[key][1].moved(0.0) or poisson_binomial_pmfs(p, counts)
