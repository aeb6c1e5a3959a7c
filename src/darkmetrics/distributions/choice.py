"""Choose one of four methods that compute the distribution of a functional.

    enumerate   at most 2^15 label assignments                               exact
    count       at most four kinds of rows, 2^19 combinations of counts      exact
    expand      the estimated error of an Edgeworth expansion is <= 0.008    cdf error 0.001 typically, 0.01 at most
    draw        everything else: 2^16 imputations                            cdf error 0.002 typically, 0.01 at most

Single metrics, differences of models, totals and thresholds are functionals of one set and use this rule; `joint`
combines several sets.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions.base import DrawMoments, Interval, MetricDistribution
from darkmetrics.distributions.combined import Combined
from darkmetrics.distributions.counting import Atoms, count_positives, enumerate_assignments
from darkmetrics.distributions.drawing import N_IMPUTATIONS, Draws
from darkmetrics.distributions.expansion import MAX_EXPANSION_ERROR, Expansion
from darkmetrics.distributions.functional import Functional, Reordered, ScenarioFunctional
from darkmetrics.distributions.kinds import Discrete, Tabulated, Undefined
from darkmetrics.distributions.problem import Problem

# Imputations of a metric that is a user's function of the labels.
N_CALLS = 10_000
# Cells read at most, and imputations at least, of a metric that reads all cells for each imputation.
_MAX_CELLS_READ, _MIN_READ = 2**27, 2**15
# Such a metric that is rarely defined gets more imputations, by this factor at most.
_MAX_REPEATS = 8.0


def describe_result(functional: Functional, method: str) -> dict[str, Any]:
    """Return the method, the bounds and the rounding error, as attributes of a distribution."""
    low, high, sharp = functional.extremes
    if method == "exact" and functional.is_rounded:
        method = "near exact"
    return {"method": method, "bounds": Interval(low, high), "bounds_sharp": sharp, "noise": functional.noise}


def exact_atoms(functional: Functional, problem: Problem) -> Atoms | None:
    """Return all values with their probabilities, by enumeration or counting; None if there are too many."""
    if not problem.posterior.independent:
        return None
    return enumerate_assignments(functional, problem) or count_positives(functional, problem)


def repeat_undefined(functional: Functional, problem: Problem, n: int) -> int:
    """Return the number of imputations of which n are defined, of a metric that reads all cells for each of them.

    Metrics with sums need no more: nearly all of their undefined mass is in assignments that are not drawn.
    """
    if functional.columns is not None or not (functional.undefined_at_corners and functional.given_defined):
        return n
    undefined = float(problem.weight @ problem.undefined_mass(functional) / problem.weight.sum())
    return int(n * min(_MAX_REPEATS, 1.0 / max(1.0 - undefined, 1e-9)))


def n_imputations(functional: Functional, n: int) -> int:
    """Return how many imputations to draw: fewer than the default where each takes long."""
    if n != N_IMPUTATIONS or functional.columns is not None:
        return n
    if isinstance(functional, Combined):
        return min(n_imputations(term, n) for term in functional.terms)
    if isinstance(functional, Reordered):
        return n_imputations(functional.base, n)
    n_cells = functional.n_cells if isinstance(functional, ScenarioFunctional) else None
    return N_CALLS if n_cells is None else int(np.clip(_MAX_CELLS_READ // max(1, n_cells), _MIN_READ, n))


def compute_without_sampling(functional: Functional, problem: Problem) -> MetricDistribution | None:
    """Compute the distribution by enumeration, counting or expansion; None if none of them applies."""
    certain = certain_distribution(functional, problem)
    if certain is not None:
        return certain
    atoms = exact_atoms(functional, problem)
    if atoms is not None:
        return distribution_of_atoms(functional, atoms)
    return expanded_distribution(functional, problem)


def certain_distribution(functional: Functional, problem: Problem) -> MetricDistribution | None:
    """Return the distribution if nothing is random: no missing row, or one label assignment that is certain."""
    posterior = problem.posterior
    if not posterior.certain:
        return None
    p = posterior.of_cells(0)
    value = functional.values((functional.missing * (p >= 1.0))[None, :].astype(np.int64))
    return Discrete.from_atoms(value, np.ones(1), functional.fill, **describe_result(functional, "exact"))


def distribution_of_atoms(functional: Functional, atoms: Atoms) -> MetricDistribution:
    """Return the mixture over the posterior draws."""
    facts = describe_result(functional, "exact")
    values, mass = atoms.values.ravel(), atoms.probability.ravel()
    is_possible = mass > 0.0
    if not is_possible.all():
        values, mass = values[is_possible], mass[is_possible]
    distribution = Discrete.from_atoms(values, mass, functional.fill, **facts)
    if isinstance(distribution, Undefined) or atoms.weight.size == 1:
        return distribution
    return replace(distribution, by_draw=atoms.moments(functional.fill, distribution.mean()))


def expanded_distribution(functional: Functional, problem: Problem) -> MetricDistribution | None:
    """Return the distribution by expansion; None if the metric is not smooth, or the estimated error is too large."""
    if not functional.is_smooth or not problem.posterior.independent:
        return None
    merged, cells = problem.cells(functional)
    expansion = Expansion(merged, cells)
    if not expansion.estimate_error() <= MAX_EXPANSION_ERROR:
        return None
    grid, levels = expansion.distribution()
    low, high, _ = functional.extremes
    undefined = 0.0
    if functional.can_be_undefined():
        undefined = float(problem.weight @ problem.undefined_mass(functional))
    if undefined > 1e-9 and not functional.given_defined:
        return None  # a table cannot represent the atom at the value of 0/0
    distribution = Tabulated(
        grid=np.clip(grid, low, high),
        levels=levels,
        undefined=undefined,
        given_defined=functional.given_defined and undefined > 0.0,
        **describe_result(functional, "near exact"),
    )
    mean, variance = expansion.moments
    if not np.isfinite(mean).all():
        return None
    if problem.weight.size == 1:
        return distribution
    return replace(distribution, by_draw=DrawMoments.of(problem.weight, mean, variance))


def distribution_of_draws(functional: Functional, problem: Problem, draws: Draws) -> MetricDistribution:
    """Return the distribution of values that were drawn."""
    values, mass = draws.values, draws.mass
    facts = describe_result(functional, "monte carlo")
    distribution = Discrete.from_atoms(values, mass, functional.fill, **facts)
    if isinstance(distribution, Undefined):
        return distribution
    if problem.posterior.independent and functional.undefined_at_corners and functional.can_be_undefined():
        exact = float(problem.weight @ problem.undefined_mass(functional) / problem.weight.sum())
        distribution = replace(distribution, undefined=exact)
    if problem.weight.size == 1:
        return distribution
    return replace(distribution, by_draw=moments_of_draws(functional.filled(values), draws, problem.weight.size))


def moments_of_draws(values: FloatArray, draws: Draws, n_draws: int) -> DrawMoments:
    """Return weight, mean and variance of drawn values at each posterior draw; undefined ones are left out."""
    defined = ~np.isnan(values)
    values, mass, draw = values[defined], draws.mass[defined], draws.draw[defined]
    total = np.bincount(draw, mass, n_draws)
    safe = np.where(total > 0.0, total, 1.0)
    mean = np.bincount(draw, mass * values, n_draws) / safe
    variance = np.bincount(draw, mass * (values - mean[draw]) ** 2, n_draws) / safe
    return DrawMoments.of(total / total.sum(), mean, variance)
