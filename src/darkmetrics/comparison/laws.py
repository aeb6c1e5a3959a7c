"""The law of a difference: exact where little is open, else by the expansion that fits, else by random labelings."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import sobol_points
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.sums.smooth import cornish_fisher
from darkmetrics.comparison.differences import Difference, tied_groups
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, NodeMoments, Undefined
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import CountFunctional, Functional, LinearFunctional, RankFunctional
from darkmetrics.methods import Auto, Exact, Method, MonteCarlo
from darkmetrics.methods.base import Problem, about, point_mass
from darkmetrics.methods.counts import law_of_groups
from darkmetrics.methods.exact import enumerated_law, few_labelings
from darkmetrics.methods.rank_laws import rank_law
from darkmetrics.methods.smooth import smooth_law
from darkmetrics.posterior import Posterior

F = TypeVar("F", bound=Functional)

# Combinations of counts of which each is looked at.
_MOST_COMBINATIONS = 1 << 19
# Where labels have less variance than this in all, or a group's have, steps show that expansions and lattices blur.
_FEW_DECIDE = 64.0
# Random labelings where nothing else is left: the cdf is off by 0.001 typically.
_DRAWS, _MOST_LABELS = 1 << 18, 1 << 26
# The same where each is a call of a function of the user's own for either model, unless more are asked for: 0.004.
_CALLS = 1 << 14
# With so many missing rows, and where one row more is so small a part of the standard deviation of the positives in
# each group, an expansion is all that print can show: its cdf is off by a step of the exact one, 0.006 at most.
_MANY_ROWS, _NO_STEPS = 1 << 17, 1.0 / 64.0
# A count of this variance is a normal one with skewness and kurtosis, rounded.
_NORMAL, _SEED = 16.0, 5


@dataclass(frozen=True)
class _OwnLaws(Auto):
    """As `Auto`, but for counts of very many rows expansions, as differences have them there.

    Nodes are four times as many as one evaluation has: exact laws at each were most of the time that a print took.
    """

    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        many = len(problem.nodes) > 1 and functional.missing.sum() > _MANY_ROWS
        if many and isinstance(functional, CountFunctional) and functional.split.weight is None:
            merged, own = problem.on_cells(functional)
            variance = np.maximum(own.groups(merged).sums.cumulants[1], 1e-300)
            law = smooth_law(merged, own) if np.all(own.nodes.weight @ variance**-0.5 <= _NO_STEPS) else None
            if law is not None:
                return replace(law, certify=None)
        return super().law(functional, problem, rng=rng)


def own_method(method: Method) -> Method:
    """The method for the laws of the models themselves."""
    return _OwnLaws(method.n_resamples) if type(method) is Auto else method


def law_of_difference(
    difference: Difference, nodes: Posterior, method: Method, rng: np.random.Generator
) -> MetricDistribution:
    """The mixture over `nodes` of the shared missing cells."""
    functional, cells = difference.functional, difference.cells
    if _never_moves(functional):
        value = np.atleast_1d(functional.values(np.zeros((1, functional.missing.size), dtype=np.int64)))
        return Discrete.from_atoms(value, np.ones(1), np.nan, **about(functional, "exact"))
    nodes = taken(nodes, cells)
    certain = point_mass(functional, nodes)
    if certain is not None:
        return certain
    if not isinstance(method, Auto):
        return method.law(functional, Problem(nodes), rng=rng)
    if few_labelings(functional):
        return enumerated_law(functional, nodes)
    law = None
    if isinstance(functional, CountFunctional):
        law = _law_of_counts(functional, difference.linear, nodes, rng)
    elif isinstance(functional, RankFunctional):
        law = _law_of_ranks(functional, nodes)
    elif isinstance(functional, LinearFunctional):
        law = _exact(functional, nodes, rng)
    if law is None:
        return _drawn(functional, nodes, rng, max(_CALLS, method.n_resamples) if difference.called else _DRAWS)
    return replace(law, certify=None)


def _never_moves(functional: Functional) -> bool:
    """Whether the labels of missing rows move the difference nowhere, as with two models that are the same."""
    if isinstance(functional, CountFunctional):
        if not functional.split.groups:
            return True
        low, high, sharp = functional.extremes
        return sharp and low == high
    if isinstance(functional, RankFunctional):
        return functional.never_moves
    return functional.missing.size == 0


def taken(nodes: Posterior, cells: IntArray) -> Posterior:
    """The nodes for some of the cells, in this order."""
    if nodes.bucket is None:
        return nodes.on(cells)
    return replace(nodes, bucket=nodes.bucket[cells])


def _law_of_counts(
    functional: CountFunctional, linear: LinearFunctional | None, nodes: Posterior, rng: np.random.Generator
) -> MetricDistribution | None:
    merged, problem = _on_cells(functional, nodes)
    mean, variance, *_ = problem.groups(merged).sums.cumulants
    if functional.split.weight is None and _windows(merged, mean, variance) <= _MOST_COMBINATIONS:
        laws = problem.groups(merged).laws
        law = None if laws is None else law_of_groups(merged, laws, nodes.weight)
        if law is not None:
            return law
    # Of a weighted sum every row of one group counts alike; where two of them do, its values are evenly spaced.
    if linear is not None and (functional.split.weight is not None or _evenly(linear.weight)):
        return _exact(linear, nodes, rng)
    return smooth_law(merged, problem)


def _evenly(weight: FloatArray) -> bool:
    size = np.abs(weight)
    return float(size.max()) == float(size.min())


def _exact(functional: Functional, nodes: Posterior, rng: np.random.Generator) -> MetricDistribution | None:
    try:
        return Exact().law(functional, Problem(nodes), rng=rng)
    except MethodError:
        return None


def _windows(functional: CountFunctional, mean: FloatArray, variance: FloatArray) -> float:
    """Combinations of the counts that groups can have at some node, but for what is next to impossible."""
    reach = 9.0 * np.sqrt(variance) + 9.0
    low, high = np.maximum(mean - reach, 0.0).min(axis=0), np.minimum(mean + reach, functional.totals).max(axis=0)
    return float(np.prod(high - low + 1.0))


def _law_of_ranks(functional: RankFunctional, nodes: Posterior) -> MetricDistribution | None:
    rows = (
        functional.missing
        if nodes.bucket is None
        else np.bincount(nodes.bucket, functional.missing, nodes.probability.shape[1])
    )
    variance = float(nodes.weight @ ((nodes.probability * (1.0 - nodes.probability)) @ rows))
    if variance < _FEW_DECIDE and functional.missing.sum() <= _MOST_LABELS // _DRAWS:
        return None
    merged, problem = _on_cells(functional, nodes)
    order = np.argsort(merged.data.rho, kind="stable")
    data = merged.data
    tied = tied_groups(data.rho[order])
    data = data._replace(
        counts=data.counts[order],
        weight=data.weight[order],
        rho=data.rho[order],
        group=tied,
        group_total=np.bincount(tied, (data.counts * data.weight)[order]).astype(np.float64),
        group_known=np.zeros(int(tied[-1]) + 1),
    )
    merged = replace(merged, data=data, missing=merged.missing[order], bounds=functional.extremes)
    sorted_nodes = problem.nodes.on(order)
    if len(nodes) == 1:
        # As two cases that are the same: what knows a single one counts on ranks being halves of whole numbers.
        sorted_nodes = Posterior(np.full(2, 0.5), np.repeat(sorted_nodes.probability, 2, axis=0))
    try:
        return rank_law(merged, Problem(sorted_nodes))
    except MethodError:
        return None


def _on_cells(functional: F, nodes: Posterior) -> tuple[F, Problem]:
    """The functional and the nodes with one probability per cell; cells that share theirs are merged."""
    if nodes.bucket is None:
        return functional, Problem(nodes)
    return Problem(nodes).on_cells(functional)


def mirrored(law: Discrete) -> Discrete:
    """The law of the difference the other way round."""
    own, (low, high) = law.by_node, law.bounds
    return replace(
        law,
        atoms=np.ascontiguousarray(-law.atoms[::-1]),
        masses=np.ascontiguousarray(law.masses[::-1]),
        bounds=Interval(-high, -low),
        by_node=None if own is None else own._replace(mean=-own.mean),
    )


def _drawn(functional: Functional, nodes: Posterior, rng: np.random.Generator, most: int) -> MetricDistribution:
    if isinstance(functional, CountFunctional) and functional.split.weight is None:
        return _drawn_counts(*_on_cells(functional, nodes))
    labels = max(1, int(functional.missing.sum()))
    draws = max(10_000, min(most, _MOST_LABELS // labels))
    return MonteCarlo(draws).law(functional, Problem(nodes), rng=rng)


def _drawn_counts(functional: CountFunctional, problem: Problem) -> MetricDistribution:
    """The law from counts of the groups: points that fill the cube of their levels evenly, the same in every run."""
    p, weight = problem.nodes.probability, problem.nodes.weight
    cumulants = problem.groups(functional).sums.cumulants[:4]
    size = len(functional.split.groups)
    # Stretches of a sequence, of a power of two: each fills the cube evenly by itself, which every so many-th point of
    # it does not.
    each = 1 << (-(-_DRAWS // weight.size) - 1).bit_length()
    node = np.repeat(np.arange(weight.size), each)
    levels = sobol_points(each * weight.size, size, _SEED)
    counts = []
    for group, rows in enumerate(functional.split.groups):
        mean, variance, third, fourth = (part[:, group] for part in cumulants)
        sd = np.sqrt(np.maximum(variance, 1e-12))
        z = ndtri(np.clip(levels[:, group], 1e-12, 1.0 - 1e-12))
        drawn = np.rint(mean[node] + sd[node] * cornish_fisher(z, (third / sd**3)[node], (fourth / sd**4)[node]))
        few = np.flatnonzero(variance < _NORMAL)
        first, pmfs = 0, np.zeros((0, 1))
        if few.size:
            first, pmfs = poisson_binomial_pmfs(p[np.ix_(few, rows)], functional.missing[rows])
        for k, pmf in zip(few.tolist(), pmfs, strict=True):
            own = slice(k * each, (k + 1) * each)
            place = np.searchsorted(np.cumsum(pmf), levels[own, group], side="right")
            drawn[own] = first + np.minimum(place, pmf.size - 1)
        counts.append(np.clip(drawn, 0.0, functional.totals[group]))
    values = functional.at(counts)
    law = Discrete.from_atoms(values, weight[node] / each, np.nan, **about(functional, "monte carlo"))
    if weight.size == 1 or isinstance(law, Undefined):
        return law
    by_node = np.where(np.isnan(values), law.mean(), values).reshape(weight.size, each)
    return replace(law, by_node=NodeMoments.of(weight, by_node.mean(axis=1), by_node.var(axis=1)))


def expected_value(functional: Functional, chance: FloatArray) -> float:
    """The metric with each missing label at its chance; NaN where fractions of labels mean nothing."""
    if not isinstance(functional, (CountFunctional, RankFunctional, LinearFunctional)):
        return np.nan
    expected: Any = (functional.missing * chance)[None, :]
    value = float(functional.values(expected)[0])
    return functional.fill if np.isnan(value) else value


def expected_by_node(functional: Functional, nodes: Posterior) -> FloatArray:
    """The same at every node, for metrics that have it."""
    merged, problem = _on_cells(functional, nodes)
    expected: Any = merged.missing * problem.nodes.probability
    value = merged.values(expected)
    return np.where(np.isnan(value), functional.fill, value)
