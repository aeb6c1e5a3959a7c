"""A metric at every node of an evaluation: what it can be, and how likely each value is there.

Rows of other sets are independent of these given the nodes, so that this is all that a change or a gap needs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.enumeration import all_labelings
from darkmetrics._kernels.sums.quadrature import NodeAxis
from darkmetrics.distribution import Interval, MetricDistribution, Undefined
from darkmetrics.distribution.base import slack
from darkmetrics.evaluation import Evaluation
from darkmetrics.functional import CountFunctional, Functional
from darkmetrics.methods.base import point_mass
from darkmetrics.methods.counts import grid_of
from darkmetrics.methods.exact import few_labelings
from darkmetrics.methods.problem import GroupLaws, Problem
from darkmetrics.metrics import Metric
from darkmetrics.nodes import Nodes

# More values than these are moved to so many places, which keep the mean and are fine beside any law's spread.
_PLACES = 4096
# Combinations of counts that are gone through; beyond, neighbouring counts are one.
_MOST_COMBINATIONS = 1 << 18
# What lies farther out has no part in any digit.
_NO_MASS = 1e-17
# Standard deviations of a Gaussian at a node.
_REACH = 8.0


class NodeTable(NamedTuple):
    """Values of a metric, rising, and the mass of each at every node (nodes x values).

    Rows add up to the chance that the metric counts there, which is less than one where a 0/0 is left out;
    `undefined` has the chance of a 0/0 at each node, left out or not. `method` "exact" says that the values are the
    metric's own; else they are places near them.
    """

    values: FloatArray
    mass: FloatArray
    undefined: FloatArray
    method: str
    bounds: Interval
    sharp: bool
    noise: float
    given_defined: bool


def node_table(evaluation: Evaluation, metric: Metric, nodes: Nodes, fill: float | None = None) -> NodeTable:
    """A metric on the rows of an evaluation at `nodes`: its own, or others for the same rows.

    `fill` is what a 0/0 counts as, where the metric is not one that the evaluation was asked for.
    """
    rows, cases = nodes.without_strata(evaluation.data)
    fill = evaluation.fills[metric.name] if fill is None else fill
    functional = metric.bind(rows, fill)
    low, high, sharp = functional.extremes
    about = Interval(low, high), sharp, functional.noise, bool(np.isnan(fill))
    certain = point_mass(functional, cases)
    if certain is not None:
        every = np.ones((len(nodes), 1))
        if isinstance(certain, Undefined):
            return NodeTable(np.zeros(1), 0.0 * every, every[:, 0], "exact", *about)
        return NodeTable(np.array([certain.mean()]), every, certain.undefined * every[:, 0], "exact", *about)
    found = None
    if cases.independent:
        if isinstance(functional, CountFunctional) and functional.split.weight is None:
            found = _of_counts(functional, cases)
        elif few_labelings(functional):
            found = _of_labelings(functional, cases)
        elif isinstance(functional, CountFunctional):
            found = _of_counts(functional, cases)
    if found is not None:
        return NodeTable(*found, *about)
    law = law_of(evaluation, metric, fill) if nodes is evaluation.nodes else _found_again(evaluation, functional, cases)
    return NodeTable(*_of_moments(law, cases), *about)


def law_of(evaluation: Evaluation, metric: Metric, fill: float) -> MetricDistribution:
    """The law of a metric, whether the evaluation was asked for it or not."""
    known = evaluation.laws.get(metric.name)
    if known is not None:
        return known
    rows, cases = evaluation.nodes.without_strata(evaluation.data)
    return _found_again(evaluation, metric.bind(rows, fill), cases)


def _found_again(evaluation: Evaluation, functional: Functional, nodes: Nodes) -> MetricDistribution:
    return next(evaluation.method.laws([functional], nodes, rng=0))


_Found = tuple[FloatArray, FloatArray, FloatArray, str]


def group_laws(functional: CountFunctional, nodes: Nodes) -> tuple[CountFunctional, GroupLaws | None]:
    """The formula on the cells that nodes tell apart, and the laws of its counts at all of them; None: too many."""
    problem = Problem(nodes)
    # Rows of different weights are never merged, however alike their chances.
    merged, cells = problem.on_cells(functional) if functional.split.weight is None else (functional, problem)
    laws = cells.groups(merged).laws
    return merged, None if laws is None or laws.rough else laws


def _of_counts(functional: CountFunctional, nodes: Nodes) -> _Found | None:
    merged, laws = group_laws(functional, nodes)
    if laws is None:
        return None
    used = [i for i, direction in enumerate(merged.direction) if direction != 0 and laws.axes[i].values.size > 1]
    most = int(_MOST_COMBINATIONS ** (1.0 / max(1, len(used))))
    axes = [_likely(axis, nodes.weight) if i in used else axis for i, axis in enumerate(laws.axes)]
    wide = any(axes[i].values.size > most for i in used)
    laws = GroupLaws([_joined(axis, nodes.weight, most) for axis in axes], laws.exact and not wide)
    values, rest, last = grid_of(merged, laws, used, nodes.weight)
    mixed = (nodes.weight[:, None] * rest).T @ last

    def at(node: int) -> FloatArray:
        return np.asarray(np.multiply.outer(rest[node], last[node]).ravel(), dtype=np.float64)

    return _reduced(merged, values.ravel(), mixed.ravel(), at, len(nodes), exact=laws.exact)


def _of_labelings(functional: Functional, nodes: Nodes) -> _Found:
    positives, probability = all_labelings(functional.missing, nodes.on_all_cells.probability)
    values, mixed = functional.values(positives), nodes.weight @ probability
    return _reduced(functional, values, mixed, lambda node: probability[node], len(nodes), exact=True)


def _reduced(
    functional: Functional,
    values: FloatArray,
    mixed: FloatArray,
    at: Callable[[int], FloatArray],
    size: int,
    *,
    exact: bool,
) -> _Found:
    """Equal values as one, or all of them at few places; `mixed` and `at` have the mass over the nodes and at one."""
    nan = np.isnan(values)
    undefined: FloatArray = np.zeros(size)
    if nan.any():
        undefined = np.array([at(node)[nan].sum() for node in range(size)])
    values = np.where(nan, functional.fill, values)
    kept = np.flatnonzero(~np.isnan(values) & (mixed > _NO_MASS))
    if not kept.size:
        return np.zeros(1), np.zeros((size, 1)), np.ones(size), "exact"
    kept = kept[np.argsort(values[kept], kind="stable")]
    values = values[kept]
    new = np.concatenate(([True], np.diff(values) > slack(values[1:], functional.noise)))
    own: IntArray = np.cumsum(new) - 1
    if own[-1] < _PLACES:
        joined = np.array([np.bincount(own, at(node)[kept]) for node in range(size)], dtype=np.float64)
        return values[new], joined, undefined, "exact" if exact else "near exact"
    step = (values[-1] - values[0]) / (_PLACES - 1)
    place, share = placed(values, values[0], step, _PLACES)
    mass = np.empty((size, _PLACES))
    for node in range(size):
        here = at(node)[kept]
        mass[node] = np.bincount(place, here * (1.0 - share), _PLACES)
        mass[node, 1:] += np.bincount(place, here * share, _PLACES - 1)
    return values[0] + step * np.arange(_PLACES), mass, undefined, "near exact"


def placed(values: FloatArray, start: float, step: float, size: int) -> tuple[IntArray, FloatArray]:
    """The place below each value on a lattice, and the share of it that goes to the next: this keeps the mean."""
    exact = (values - start) / step if step > 0.0 else np.zeros(values.size)
    place = np.clip(np.floor(exact).astype(np.int64), 0, max(0, size - 2))
    return place, np.clip(exact - place, 0.0, 1.0)


def _likely(axis: NodeAxis, weight: FloatArray) -> NodeAxis:
    """A count without its far tails."""
    total = np.cumsum(weight @ axis.pmf)
    first, end = np.searchsorted(total, _NO_MASS), np.searchsorted(total, total[-1] * (1.0 - 1e-16)) + 1
    return NodeAxis(axis.values[first:end], axis.pmf[:, first:end])


def _joined(axis: NodeAxis, weight: FloatArray, most: int) -> NodeAxis:
    """A count at `most` places at most, neighbours joined at their mean."""
    size = axis.values.size
    if size <= most:
        return axis
    starts = np.arange(0, size, -(-size // most))
    mixed = weight @ axis.pmf + 1e-300
    mean = np.add.reduceat(mixed * axis.values, starts) / np.add.reduceat(mixed, starts)
    return NodeAxis(mean, np.add.reduceat(axis.pmf, starts, axis=1))


def _of_moments(law: MetricDistribution, nodes: Nodes) -> _Found:
    """A Gaussian at each node with its mean and variance; where nodes have none, the law is the same at all."""
    size = len(nodes)
    if isinstance(law, Undefined):
        return np.zeros(1), np.zeros((size, 1)), np.ones(size), "exact"
    parts = law.by_node
    if parts is None or parts.weight.size != size:
        # Known as a whole alone. Its quantiles are as many places, all equally likely.
        values = np.asarray(law.ppf((np.arange(_PLACES) + 0.5) / _PLACES))
        mass = np.full((size, _PLACES), (1.0 - law.undefined if law.given_defined else 1.0) / _PLACES)
        return values, mass, np.full(size, law.undefined), "near exact" if law.method == "exact" else law.method
    sd = np.sqrt(parts.var)
    low = max(law.bounds.low, float((parts.mean - _REACH * sd).min()))
    high = min(law.bounds.high, float((parts.mean + _REACH * sd).max()))
    edges = np.linspace(low, high, _PLACES + 1)
    step = edges[1] - edges[0]
    levels = ndtr((edges - parts.mean[:, None]) / np.maximum(sd, max(1e-3 * step, 1e-300))[:, None])
    levels[:, 0], levels[:, -1] = 0.0, 1.0
    counts: FloatArray = np.ones(size)
    if law.given_defined:
        counts = parts.weight * (1.0 - law.undefined) / np.where(nodes.weight > 0.0, nodes.weight, 1.0)
    mass = np.diff(levels, axis=1) * counts[:, None]
    undefined = np.full(size, law.undefined) if not law.given_defined else np.clip(1.0 - counts, 0.0, 1.0)
    return 0.5 * (edges[1:] + edges[:-1]), mass, undefined, "gaussian"
