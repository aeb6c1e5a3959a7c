"""PEMI-Gauss, Algorithm 2 of the paper: a Gaussian with the mean and variance of a ratio of sums."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any, ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, dots
from darkmetrics._kernels.auc.ranks import auc_moments, auc_moments_of_columns
from darkmetrics.distributions import MetricDistribution, Normal, Undefined
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import CountFunctional, Functional, LinearFunctional, RankFunctional
from darkmetrics.methods.base import Method, Problem, about, chances_at, point_mass, rank_sums_of
from darkmetrics.methods.exact import exact_law, over_nodes
from darkmetrics.methods.group_sums import WeightSums
from darkmetrics.methods.proofs import certifier
from darkmetrics.posterior import columns_of

# What rounding leaves of a difference of like terms, as a share of these.
_ROUNDING = 1e-14
# Probabilities of nodes that are gone through at once.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Gaussian(Method):
    """The paper's Gaussian approximation (PEMI-Gauss): cheap, smooth, and wrong by O(n^-1/2).

    Ratios and linear metrics have the paper's mean and variance; ROC-AUC has the paper's moments in O(n log n); other
    formulas of the confusion matrix the first-order (delta method) ones, which agree with the paper's for ratios. It
    describes the metric where it is defined: `zero_division` does not enter, the chance of 0/0 is in `undefined`. The
    law's `certificate` bounds its error on these data, and `interval(certified=True)` allows for it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=[0.8], method=dm.methods.Gaussian())["precision"]
    <Normal: mean 0.9, 90% interval 0.571 to 1, gaussian>
    """

    name: ClassVar[str] = "gaussian"

    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        certain = point_mass(functional, problem.nodes)
        if certain is not None:
            return certain
        problem.nodes.check_independent("'gaussian' needs", " Use 'auto' or 'monte_carlo'.")
        merged, cells = problem.on_cells(functional)
        if not isinstance(merged, RankFunctional):
            return over_nodes(merged, cells, _gaussian_law)
        moments = zip(*moments_at_nodes(merged, cells), strict=True)
        at = {id(one): both for one, both in zip(cells.each, moments, strict=True)}
        return over_nodes(merged, cells, lambda functional, one: _normal(functional, one, lambda: at[id(one)]))


def _gaussian_law(functional: Functional, problem: Problem) -> MetricDistribution:
    return _normal(functional, problem, partial(gaussian_moments, functional, problem))


def _normal(functional: Functional, problem: Problem, moments: Callable[[], tuple[Any, Any]]) -> MetricDistribution:
    facts = about(functional, "gaussian")
    undefined = _undefined_mass(functional, problem)
    if undefined >= 1.0:
        return Undefined(undefined=1.0, **facts)
    mean, variance = (float(moment) for moment in moments())
    if np.isnan(mean) or np.isnan(variance):
        raise MethodError(
            "method: 'gaussian' finds no slope here, where the metric is 0/0 next to its mean; use 'auto'."
        )
    certify = certifier(functional, problem)
    scale = float(np.sqrt(max(variance, 0.0)))
    return Normal(loc=mean, scale=scale, undefined=undefined, certify=certify, **facts)


def _undefined_mass(functional: Functional, problem: Problem) -> float:
    """Probability of 0/0; a formula of counts may be undefined anywhere, other metrics where a class vanishes."""
    if isinstance(functional, CountFunctional):
        if functional.denominator_keeps_its_sign() and not functional.can_be_undefined():
            return 0.0  # a ratio is 0/0 nowhere inside if it is not at the ends
        try:
            return exact_law(functional, problem).undefined
        except MethodError:
            pass
    return functional.undefined_mass(problem.nodes.of_cells(0))


def moments_at_nodes(functional: Functional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """`gaussian_moments` as arrays over the nodes: all at once, as passes over few cells cost next to nothing."""
    by_row = isinstance(functional, RankFunctional) and functional.data.full_ties
    few = (len(problem.nodes) * functional.missing.size if by_row else problem.nodes.probability.size) <= _AT_ONCE
    parts = [problem] if few else problem.each
    mean, var = np.column_stack([np.array(gaussian_moments(functional, part)) for part in parts])
    return mean, var


@singledispatch
def gaussian_moments(functional: Functional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the Gaussian that stands for the law at the only node, or at each of several."""
    raise MethodError("method: 'gaussian' needs a metric with a known mean and variance; use 'auto' or 'monte_carlo'.")


@gaussian_moments.register
def _(functional: LinearFunctional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    if len(problem.nodes) == 1:
        p = chances_at(problem.nodes)
        mean = functional.constant + dots(functional.weight * p, functional.missing)
        return mean, dots(functional.weight**2 * p * (1.0 - p), functional.missing)
    rows = WeightSums.of(columns_of(problem.nodes), functional.missing, functional.weight, problem.nodes)
    return functional.constant + rows.cumulant(1), rows.cumulant(2)


@gaussian_moments.register
def _(functional: CountFunctional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    means, variances, *_ = problem.groups(functional).sums.moments
    # All rows of a group have the same influence, but for their weight. A group in which nothing is random has no part
    # in the variance, and perhaps no slope.
    slopes = np.where(variances > 0.0, functional.slopes(means), 0.0)
    variance = (slopes**2 * variances).sum(axis=0)
    return functional.at(means), np.where(np.isfinite(variance), variance, np.nan)


@gaussian_moments.register
def _(functional: RankFunctional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    nodes, data = problem.nodes, functional.data
    a, d, var_a, var_d, cov = (
        auc_moments(data, chances_at(nodes))
        if nodes.bucket is None or data.full_ties or len(nodes) == 1
        else auc_moments_of_columns(data, nodes.probability, rank_sums_of(problem, data))
    )
    d = np.where(d > 0.0, d, np.nan)
    # The paper's variances of numerator and denominator have terms of the second order too.
    terms = a**2 * var_d + d**2 * var_a
    variance = (terms - 2.0 * cov * a * d) / d**4
    as_one = np.abs(variance) * d**4 <= _ROUNDING * terms  # numerator and denominator move as one
    return functional.shift + functional.scale * a / d, functional.scale**2 * np.where(as_one, 0.0, variance)
