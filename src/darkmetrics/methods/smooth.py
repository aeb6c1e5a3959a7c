"""The law of a formula of counts where each group of rows is large: an expansion at every node, no grid."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc.expansion import Expansions, mixed_cdf
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant, smooth_cumulants
from darkmetrics.distribution import MetricDistribution, NodeMoments
from darkmetrics.functional import CountFunctional
from darkmetrics.methods.ranks import tabulated
from darkmetrics.nodes import Nodes

# A group is large where its sum has this variance, in units of its heaviest row, at every node that counts.
_LARGE, _LITTLE = 30.0, 1e-3
# Derivatives of the formula, by differences over this part of a standard deviation.
_STEP = 0.25


def smooth_law(functional: CountFunctional, nodes: Nodes) -> MetricDistribution | None:
    """The mixture over the nodes (one probability per cell) of four-cumulant expansions; None where a group is small.

    Then the law has steps that an expansion knows nothing of.
    """
    mean, *cumulants = group_cumulants(functional, nodes.probability)
    heaviest = (
        1.0
        if functional.split.weight is None
        else np.array([functional.split.weight[rows].max() for rows in functional.split.groups])
    )
    count = nodes.weight > _LITTLE * nodes.weight.max()
    if np.any(cumulants[0][count] < _LARGE * heaviest**2):
        return None
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
    more, variance, k3, k4 = smooth_cumulants(gradient, hessian, *tensors)
    centre = functional.at(list(mean.T)) + more
    if not np.all(variance > 0.0):
        return None
    sd, none = np.sqrt(variance), np.zeros(len(mean))
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
    object.__setattr__(law, "by_node", NodeMoments.of(nodes.weight, cdf.mean, cdf.var))
    return law


def group_cumulants(functional: CountFunctional, p: FloatArray) -> list[FloatArray]:
    """Mean and cumulants of orders two to four of each group's sum: nodes x groups each."""
    found: list[list[FloatArray]] = [[], [], [], []]
    for rows in functional.split.groups:
        counts, own = functional.missing[rows].astype(np.float64), p[:, rows]
        weight = np.ones(rows.size) if functional.split.weight is None else functional.split.weight[rows]
        found[0].append(own @ (counts * weight))
        for order in (2, 3, 4):
            found[order - 1].append(bernoulli_cumulant(order, own) @ (counts * weight**order))
    return [np.stack(each, axis=1) if each else np.zeros((len(p), 0)) for each in found]


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
    for i in range(size):
        up, down, far_up, far_down = at((i, 1.0)), at((i, -1.0)), at((i, 2.0)), at((i, -2.0))
        gradient[:, i] = (8.0 * (up - down) - (far_up - far_down)) / (12.0 * step[:, i])
        hessian[:, i, i] = (16.0 * (up + down) - (far_up + far_down) - 30.0 * here) / (12.0 * step[:, i] ** 2)
        for j in range(i):
            cross = at((i, 1.0), (j, 1.0)) - at((i, 1.0), (j, -1.0)) - at((i, -1.0), (j, 1.0))
            cross = (cross + at((i, -1.0), (j, -1.0))) / (4.0 * step[:, i] * step[:, j])
            hessian[:, i, j] = hessian[:, j, i] = cross
    return gradient, hessian
