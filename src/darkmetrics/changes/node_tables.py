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
from darkmetrics.distributions import Interval, MetricDistribution, Undefined
from darkmetrics.distributions.base import slack
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.functional import CountFunctional, Functional
from darkmetrics.methods.base import GroupLaws, Problem, point_mass
from darkmetrics.methods.counts import grid_of
from darkmetrics.methods.exact import few_labelings
from darkmetrics.metrics import Metric
from darkmetrics.population import Population
from darkmetrics.posterior import Posterior

# More values than these are moved to so many places, which keep the mean and are fine beside any law's spread.
_PLACES = 4096
# Combinations of counts that are gone through; beyond, neighbouring counts are one.
_MOST_COMBINATIONS = 1 << 18
# What lies farther out has no part in any digit.
_NO_MASS, _NOTHING = 1e-17, 1e-18
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


class AtNodes:
    """The rows of an evaluation at `nodes`: its own, or others for the same rows; what its metrics share is kept."""

    def __init__(self, evaluation: Evaluation, nodes: Posterior) -> None:
        self.evaluation, self.nodes = evaluation, nodes
        self.rows, self.cases = nodes.without_strata(evaluation.data)
        self._problem = Problem(self.cases)

    def bound(self, metric: Metric, fill: float | None = None) -> Functional:
        """A metric of these rows; `fill` is what a 0/0 counts as, where it is not one that was evaluated."""
        return metric.bind(self.rows, self.evaluation.fills[metric.name] if fill is None else fill)

    def _on_rows(self, metric: Metric, fill: float | None) -> NodeTable:
        functional = self.bound(metric, fill)
        low, high, sharp = functional.extremes
        about = Interval(low, high), sharp, functional.noise, functional.given_defined
        certain = point_mass(functional, self.cases)
        if certain is not None:
            every = np.ones((len(self.nodes), 1))
            if isinstance(certain, Undefined):
                return NodeTable(np.zeros(1), 0.0 * every, every[:, 0], "exact", *about)
            return NodeTable(np.array([certain.mean()]), every, certain.undefined * every[:, 0], "exact", *about)
        found = None
        counts = functional if isinstance(functional, CountFunctional) else None
        if self.cases.independent and few_labelings(functional) and (counts is None or counts.split.weight is not None):
            found = _of_labelings(functional, self.cases)
        elif self.cases.independent and counts is not None:
            found = self._of_counts(counts)
        if found is None:
            found = _of_moments(self.law(metric, functional), self.cases)
        return NodeTable(*found, *about)

    def table(self, metric: Metric, fill: float | None = None) -> NodeTable:
        """A metric at every node: on the rows, or in their population, whichever the evaluation is about."""
        if self.evaluation.scope == "rows":
            return self._on_rows(metric, fill)
        if metric.name not in self.evaluation.laws:
            raise InputError(f"metric: {metric.name!r} was not evaluated for the population. Name it in metrics=.")
        functional = self.bound(metric, fill)
        law = self.law(metric, functional)
        found = _of_moments(law, self.cases)
        return NodeTable(*found, law.bounds, law.bounds_sharp, functional.noise, law.given_defined)

    def ends(self, metric: Metric, fill: float | None = None) -> NodeTable | None:
        """The least and the largest value in place of a table, for a formula of counts; None where it is more or less.

        Whoever draws the counts needs no table, which would take most of the time.
        """
        functional = self.bound(metric, fill)
        if self.evaluation.scope != "rows" or not isinstance(functional, CountFunctional):
            return None
        if not self.cases.independent or self.cases.certain or functional.can_be_undefined():
            return None
        low, high, sharp = functional.extremes
        if self.counts(functional)[1] is None or not low < high < np.inf:
            return None
        none = np.zeros((len(self.nodes), 0))
        about = Interval(low, high), sharp, functional.noise, functional.given_defined
        return NodeTable(np.array([low, high]), none, np.zeros(len(self.nodes)), "near exact", *about)

    def law(self, metric: Metric, functional: Functional) -> MetricDistribution:
        """The law over the nodes, found now if the evaluation does not have it."""
        known = self.evaluation.laws.get(metric.name)
        if known is not None and self.nodes is self.evaluation.nodes:
            return known
        found = next(self.evaluation.method.laws([functional], self.cases, rng=0))
        if self.evaluation.scope == "rows":
            return found
        return Population(self.rows, self.cases).law(metric, found)

    def counts(self, functional: CountFunctional) -> tuple[CountFunctional, GroupLaws | None]:
        """The formula on the cells that nodes tell apart, and the laws of its counts at all nodes; None: too many."""
        # Rows of different weights are never merged, however alike their chances.
        weighted = functional.split.weight is not None
        merged, cells = (functional, self._problem) if weighted else self._problem.on_cells(functional)
        laws = cells.groups(merged).laws
        return merged, None if laws is None or laws.rough else laws

    def _of_counts(self, functional: CountFunctional) -> "_Found | None":
        merged, laws = self.counts(functional)
        if laws is None:
            return None
        weight = self.cases.weight
        used = [i for i, direction in enumerate(merged.direction) if direction != 0 and laws.axes[i].values.size > 1]
        most = int(_MOST_COMBINATIONS ** (1.0 / max(1, len(used))))
        axes = [_likely(axis, weight) if i in used else axis for i, axis in enumerate(laws.axes)]
        wide = any(axes[i].values.size > most for i in used)
        laws = GroupLaws([_joined(axis, weight, most) for axis in axes], laws.exact and not wide)
        values, rest, last = grid_of(merged, laws, used, weight)
        mixed = (weight[:, None] * rest).T @ last
        place = np.arange(values.size).reshape(values.shape)

        def at(node: int) -> tuple[IntArray, FloatArray]:
            # Of the window that all nodes share each has mass in a small part.
            one, two = np.flatnonzero(rest[node] > _NOTHING), np.flatnonzero(last[node] > _NOTHING)
            return place[np.ix_(one, two)].ravel(), np.outer(rest[node, one], last[node, two]).ravel()

        return _reduced(merged, values.ravel(), mixed.ravel(), at, weight.size, exact=laws.exact)


_Found = tuple[FloatArray, FloatArray, FloatArray, str]


def _of_labelings(functional: Functional, nodes: Posterior) -> _Found:
    positives, probability = all_labelings(functional.missing, nodes.on_all_cells.probability)
    values, mixed = functional.values(positives), nodes.weight @ probability
    every = np.arange(values.size)
    return _reduced(functional, values, mixed, lambda node: (every, probability[node]), len(nodes), exact=True)


def _reduced(
    functional: Functional,
    values: FloatArray,
    mixed: FloatArray,
    at: Callable[[int], tuple[IntArray, FloatArray]],
    size: int,
    *,
    exact: bool,
) -> _Found:
    """Equal values as one, or all of them at few places.

    `mixed` is the mass of each value over the nodes; `at` has that at one node: which values, and their masses.
    """
    undefined: FloatArray = np.zeros(size)
    nan = np.isnan(values)
    if nan.any():
        undefined = np.array([mass[nan[which]].sum() for which, mass in map(at, range(size))])
    values = np.where(nan, functional.fill, values)
    kept = np.flatnonzero(~np.isnan(values) & (mixed > _NO_MASS))
    if not kept.size:
        return np.zeros(1), np.zeros((size, 1)), np.ones(size), "exact"
    kept = kept[np.argsort(values[kept], kind="stable")]
    rising = values[kept]
    new = np.concatenate(([True], np.diff(rising) > slack(rising[1:], functional.noise)))
    few = int(new.sum()) <= _PLACES
    step = 0.0 if few else (rising[-1] - rising[0]) / (_PLACES - 1)
    places: FloatArray = rising[new] if few else rising[0] + step * np.arange(_PLACES)
    # What is left out goes to a place beyond the last.
    own, share = np.full(values.size, places.size, dtype=np.int64), np.zeros(values.size)
    if few:
        own[kept] = np.cumsum(new) - 1
    else:
        own[kept], share[kept] = placed(rising, rising[0], step, _PLACES)
    mass = np.zeros((size, places.size + 2))
    for node in range(size):
        which, here = at(node)
        mass[node] = np.bincount(own[which], here * (1.0 - share[which]), places.size + 2)
        if not few:
            mass[node, 1:] += np.bincount(own[which], here * share[which], places.size + 1)
    return places, mass[:, : places.size], undefined, "exact" if exact and few else "near exact"


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


def _of_moments(law: MetricDistribution, nodes: Posterior) -> _Found:
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
    undefined = np.full(size, law.undefined)
    # Weights of a law that was drawn are off by a little, which is not the chance of a 0/0.
    if law.given_defined and law.undefined > 0.0:
        counts = parts.weight * (1.0 - law.undefined) / np.where(nodes.weight > 0.0, nodes.weight, 1.0)
        undefined = np.clip(1.0 - counts, 0.0, 1.0)
    mass = np.diff(levels, axis=1) * counts[:, None]
    return 0.5 * (edges[1:] + edges[:-1]), mass, undefined, "gaussian"
