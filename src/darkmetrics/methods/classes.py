"""Distributions of metrics of several classes by any method of the library."""

from collections.abc import Iterator, Sequence

import numpy as np

from darkmetrics._kernels.arrays import IntArray
from darkmetrics.distributions import MetricDistribution, Normal, mix
from darkmetrics.distributions.class_expansion import ClassExpansion
from darkmetrics.distributions.class_sums import ClassFunctional, Event
from darkmetrics.distributions.classes import ClassProblem, distributions_of
from darkmetrics.exceptions import MethodError
from darkmetrics.methods.base import Method, seed_from
from darkmetrics.methods.exact import Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo
from darkmetrics.posterior.classes import ClassPosterior


def class_distributions(
    method: Method,
    metrics: Sequence[ClassFunctional | Event],
    posterior: ClassPosterior,
    missing: IntArray,
    rng: np.random.Generator | int = 0,
) -> Iterator[MetricDistribution]:
    """Return the distributions of metrics of one set of several classes, lazily.

    Parameters
    ----------
    method : Method
        How they are computed; metrics of one event per row are computed as metrics of two classes.
    metrics : sequence of ClassFunctional or Event
        The metrics, bound to the set.
    posterior : ClassPosterior
        Probabilities of the missing labels.
    missing : array of int
        Rows of each missing cell.
    rng : numpy Generator or int
        Source of randomness.
    """
    problem = ClassProblem(metrics, posterior, missing, seed_from(rng))
    if not isinstance(method, (Exact, Gaussian, MonteCarlo)):
        yield from distributions_of(problem, method.distribution)
        return
    for metric in metrics:
        if isinstance(metric, Event):
            yield problem.event_distribution(metric, method.distribution)
            continue
        certain = problem.certain_distribution(metric)
        if certain is not None:
            yield certain
        elif isinstance(method, MonteCarlo):
            yield problem.draw_distributions([metric], method.n_resamples)[0]
        elif isinstance(method, Gaussian):
            yield _gaussian_distribution(problem, metric)
        else:
            yield _exact_distribution(problem, metric)


def _exact_distribution(problem: ClassProblem, functional: ClassFunctional) -> MetricDistribution:
    """Return the distribution by enumeration or expansion."""
    if problem.assignments is not None:
        return problem.enumerate()[problem.functionals.index(functional)]
    result = problem.expanded_distribution(functional)
    if result is None:
        raise MethodError(
            "method",
            f"'exact' cannot be used for {int(problem.missing.sum()):,} missing rows here, because few of them decide "
            "this metric",
            "",
            "Use 'auto' or 'monte_carlo'.",
        )
    return result


def _gaussian_distribution(problem: ClassProblem, functional: ClassFunctional) -> MetricDistribution:
    """Return a Gaussian with first-order moments at every posterior draw."""
    if not functional.is_smooth:
        finding = "'gaussian' needs a metric that has derivatives"
        raise MethodError("method", finding, "", "Use 'auto' or 'monte_carlo'.")
    expansion = ClassExpansion(functional, problem.moments_of(functional))
    mean, variance = expansion.value, expansion.linear_variance
    if not np.isfinite(mean).all() or not np.isfinite(variance).all():
        finding = "'gaussian' finds no slope here, where the metric is 0/0 next to its mean"
        raise MethodError("method", finding, "", "Use 'auto'.")
    facts = problem.describe(functional, "gaussian")
    normals = [Normal(loc=float(m), scale=float(np.sqrt(v)), **facts) for m, v in zip(mean, variance, strict=True)]
    return normals[0] if len(normals) == 1 else mix(normals, problem.weight, given_defined=True, **facts)
