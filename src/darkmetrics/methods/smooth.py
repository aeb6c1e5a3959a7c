"""The law of a formula of counts where each group of rows is large: an expansion at every node, no grid."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc.expansion import Expansions, mixed_cdf
from darkmetrics._kernels.sums.smooth import frequencies_of_steps, left_out, of_steps, smooth_cumulants
from darkmetrics.distributions import MetricDistribution, NodeMoments
from darkmetrics.functional import CountFunctional, LinearFunctional
from darkmetrics.methods.base import Problem
from darkmetrics.methods.group_sums import Damping, GroupSums, WeightSums
from darkmetrics.methods.rank_laws import tabulated
from darkmetrics.posterior import Posterior, columns_of

# A group is large where its sum has this variance, in units of its heaviest row, at every node that counts.
_LARGE, _LITTLE = 30.0, 1e-3
# Derivatives of the formula, by differences over this part of a standard deviation.
_STEP = 0.25
# From so many different weights in a group on no exact law is looked for; then what expansions may be off by, all nodes
# together, where these are few or many (their errors lie at different places then), and how often a group may be at an
# end, next to which 0/0 is.
_MANY_WEIGHTS, _MANY_NODES, _OFF, _UNDEFINED = 512, 8, (2e-3, 8e-3), 1e-7
# Where the formula is held against its parabola: points of Gauss and Hermite.
_POINTS, _SHARES = np.polynomial.hermite_e.hermegauss(5)


class _Expanded(NamedTuple):
    """A formula at the means of each node, and cumulants of its parabola there."""

    gradient: FloatArray
    hessian: FloatArray
    # Of the parabola: mean, variance, third and fourth cumulant.
    cumulants: tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def smooth_law(functional: CountFunctional, problem: Problem) -> MetricDistribution | None:
    """The mixture over the nodes of four-cumulant expansions; None where a group is small.

    Then the law has steps that an expansion knows nothing of.
    """
    nodes, sums = problem.nodes, problem.groups(functional).sums
    heaviest = np.array([group.heaviest for group in sums.columns])
    count = nodes.weight > _LITTLE * nodes.weight.max()
    if np.any(sums.cumulants[1][count] < _LARGE * heaviest**2):
        return None
    expanded = _expanded(functional, sums)
    return None if expanded is None else _law(functional, nodes, expanded)


def law_of_many_weights(functional: CountFunctional, problem: Problem) -> MetricDistribution | None:
    """The same where rows have very many different weights, which no lattice fits; None unless it is nearly right.

    What it leaves out is added up over the nodes: the next terms of the expansion, what the formula has beyond a
    parabola, and what is left of the characteristic function where an expansion says nothing of it.
    """
    weight = functional.split.weight
    used = (
        rows for rows, direction in zip(functional.split.groups, functional.direction, strict=True) if direction != 0
    )
    if weight is None or all(rows.size <= _MANY_WEIGHTS or _alike(weight[rows]) for rows in used):
        return None
    nodes, sums = problem.nodes, problem.groups(functional).sums
    undefined = _undefined(functional, nodes, sums)
    if undefined is None:
        return None
    expanded = _expanded(functional, sums)
    if expanded is None:
        return None
    off = _next_terms(expanded, sums.cumulants[4]) + _beyond_parabola(functional, expanded, sums)
    right = _nearly_right(nodes, expanded, off, lambda: sums.damping)
    return _law(functional, nodes, expanded, undefined) if right else None


def law_of_many_losses(functional: LinearFunctional, nodes: Posterior) -> MetricDistribution | None:
    """The same of a sum of losses."""
    rows = WeightSums.of(columns_of(nodes), functional.missing, functional.weight, nodes)
    mean, variance, third, fourth, fifth = (rows.cumulant(order) for order in range(1, 6))
    if not np.all(variance > 0.0):
        return None
    slope = np.ones((len(nodes), 1))
    expanded = _Expanded(slope, 0.0 * slope[:, None], (functional.constant + mean, variance, third, fourth))
    off = _next_terms(expanded, fifth[:, None])
    return _law(functional, nodes, expanded) if _nearly_right(nodes, expanded, off, lambda: [rows.damping()]) else None


def _nearly_right(
    nodes: Posterior, expanded: _Expanded, off: FloatArray, groups: Callable[[], Sequence[Damping]]
) -> bool:
    """Whether what expansions are `off` by at the nodes, and what is left of the steps of these groups, is little."""
    return little_off(nodes, off) and little_off(nodes, off + _steps(expanded, groups()))


def little_off(nodes: Posterior, off: FloatArray) -> bool:
    """Whether expansions at the nodes that may each be `off` by so much make a law that is nearly right."""
    most = _OFF[int(len(nodes) >= _MANY_NODES)]
    return bool(nodes.weight / nodes.weight.sum() @ np.minimum(off, 1.0) <= most)


def _alike(weight: FloatArray) -> bool:
    """Whether weights are so few that their sums may lie on a lattice."""
    return np.unique(weight).size <= _MANY_WEIGHTS


def _expanded(functional: CountFunctional, sums: GroupSums) -> _Expanded | None:
    """The parabola of the formula at every node; None where there is none."""
    mean, *cumulants = sums.cumulants[:4]
    gradient, hessian = _derivatives(functional, mean, np.sqrt(cumulants[0]))
    if not (np.isfinite(gradient).all() and np.isfinite(hessian).all()):
        return None
    size = mean.shape[1]
    tensors = []
    for order, values in zip((2, 3, 4), cumulants, strict=True):
        # Groups are independent: what is not on the diagonal is zero.
        on_diagonal = np.all(np.diff(np.indices((size,) * order), axis=0) == 0, axis=0)
        tensor = np.zeros((len(mean), *(size,) * order))
        tensor[:, on_diagonal] = values
        tensors.append(tensor)
    more, *others = smooth_cumulants(gradient, hessian, *tensors)
    centre = functional.at(list(mean.T)) + more
    if not np.all(others[0] > 0.0):
        return None
    return _Expanded(gradient, hessian, (centre, others[0], others[1], others[2]))


def _law(
    functional: CountFunctional | LinearFunctional, nodes: Posterior, expanded: _Expanded, undefined: float = 0.0
) -> MetricDistribution:
    centre, variance, k3, k4 = expanded.cumulants
    sd, none = np.sqrt(variance), np.zeros(len(centre))
    polynomials = [
        np.stack([none, -sd]),
        np.stack([variance, none, none]),
        np.stack([k3, none, none, none]),
        np.stack([k4, none, none, none, none]),
    ]
    found = Expansions(polynomials, centre, sd, variance, none)
    low, high, _ = functional.extremes
    cdf = mixed_cdf(found, nodes.weight / nodes.weight.sum(), max(low, -1e300), min(high, 1e300))
    law = tabulated(functional, cdf.grid, cdf.levels)
    by_node = NodeMoments.of(nodes.weight, cdf.mean, cdf.var)
    given_defined = undefined > 0.0 and functional.given_defined
    return replace(law, by_node=by_node, undefined=undefined, given_defined=given_defined)


def _undefined(functional: CountFunctional, nodes: Posterior, sums: GroupSums) -> float | None:
    """The chance of 0/0 where each group is at an end; None if some group is there so often that it may matter."""
    ends = np.meshgrid(*([0.0, total] for total in functional.totals), indexing="ij")
    undefined = np.isnan(functional.at(ends))
    if not undefined.any():
        return 0.0
    chances = np.array([[sums.chances(i, positive=end) for end in (False, True)] for i in range(undefined.ndim)])
    if float((chances @ nodes.weight).sum()) > _UNDEFINED:
        return None
    at_nodes = sum(chances[np.arange(undefined.ndim), ends].prod(axis=0) for ends in np.argwhere(undefined))
    return float(at_nodes @ nodes.weight)


def _next_terms(expanded: _Expanded, fifths: FloatArray) -> FloatArray:
    """What Edgeworth's expansion is off by at each node: the first terms that it leaves out.

    `fifths` are the fifth cumulants of the sums: nodes x groups.
    """
    _, variance, k3, k4 = expanded.cumulants
    return left_out(variance, k3, k4, np.abs(expanded.gradient**5 * fifths).sum(axis=1))


def _beyond_parabola(functional: CountFunctional, expanded: _Expanded, sums: GroupSums) -> FloatArray:
    """What the formula has beyond its parabola moves the cdf at each node by so much: its mean size by the density."""
    mean, sd = sums.cumulants[0], np.sqrt(sums.cumulants[1])
    here, which = functional.at(list(mean.T)), list(product(range(_POINTS.size), repeat=mean.shape[1]))
    # Points x nodes x groups.
    place = np.clip(mean + sd * _POINTS[which][:, None], 0.0, np.array(functional.totals))
    x = place - mean
    parabola = here + (expanded.gradient * x).sum(axis=2) + 0.5 * np.einsum("pni,nij,pnj->pn", x, expanded.hessian, x)
    far = np.nan_to_num(np.abs(functional.at(list(place.transpose(2, 0, 1))) - parabola), nan=np.inf)
    off: FloatArray = np.prod(_SHARES[which] / np.sqrt(2.0 * np.pi), axis=1) @ far
    return off / np.sqrt(2.0 * np.pi * expanded.cumulants[1])


def _steps(expanded: _Expanded, groups: Sequence[Damping]) -> FloatArray:
    """What is left at each node of the characteristic function beyond the expansion, where weights are nearly alike.

    `|phi(t)| <= exp(-sum v_i (1 - cos(t w_i)))`. Weights near whole multiples of one have peaks there, which are
    narrow: t goes in steps that a peak is wider than.
    """
    own = frequencies_of_steps() / np.sqrt(expanded.cumulants[1])[:, None]
    damped = sum(
        group.at(np.abs(slope)[:, None] * own) for group, slope in zip(groups, expanded.gradient.T, strict=True)
    )
    return of_steps(np.asarray(damped))


def _derivatives(functional: CountFunctional, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian of the formula at the means of each node."""
    size = mean.shape[1]
    gradient, hessian = np.zeros((len(mean), size)), np.zeros((len(mean), size, size))
    step = _STEP * sd

    def at(*moves: tuple[int, float]) -> FloatArray:
        place = mean.copy()
        for axis, times in moves:
            place[:, axis] += times * step[:, axis]
        return functional.at(list(place.T))

    here = at()
    for i in np.flatnonzero(sd.any(axis=0)).tolist():  # what never moves has no slope
        up, down, far_up, far_down = at((i, 1.0)), at((i, -1.0)), at((i, 2.0)), at((i, -2.0))
        gradient[:, i] = (8.0 * (up - down) - (far_up - far_down)) / (12.0 * step[:, i])
        hessian[:, i, i] = (16.0 * (up + down) - (far_up + far_down) - 30.0 * here) / (12.0 * step[:, i] ** 2)
        for j in np.flatnonzero(sd[:, :i].any(axis=0)).tolist():
            cross = at((i, 1.0), (j, 1.0)) - at((i, 1.0), (j, -1.0)) - at((i, -1.0), (j, 1.0))
            cross = (cross + at((i, -1.0), (j, -1.0))) / (4.0 * step[:, i] * step[:, j])
            hessian[:, i, j] = hessian[:, j, i] = cross
    return gradient, hessian
