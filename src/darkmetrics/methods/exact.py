"""Methods without sampling error, and `auto`, which draws if none of them applies."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.choice import (
    compute_without_sampling,
    distribution_of_draws,
    n_imputations,
    repeat_undefined,
)
from darkmetrics.distributions.drawing import N_IMPUTATIONS, Draws, draw_values
from darkmetrics.distributions.functional import Functional, ScenarioFunctional
from darkmetrics.distributions.problem import Problem
from darkmetrics.exceptions import MethodError
from darkmetrics.methods.base import Method, check_n_resamples
from darkmetrics.methods.proofs import Prover, sampled_certificate
from darkmetrics.wording import setting


def _compute_without_sampling(functional: Functional, problem: Problem) -> MetricDistribution | None:
    """Compute the distribution and its certificate by enumeration, counting or expansion; None if none applies."""
    result = compute_without_sampling(functional, problem)
    if result is None or result.method == "exact":
        return result
    return replace(result, certify=Prover(functional, problem.posterior))


@dataclass(frozen=True)
class Exact(Method):
    """Exact distributions if possible, else accurate expansions; no sampling.

    The distribution is exact for up to 2^15 label assignments and for confusion-matrix metrics with up to 2^19
    combinations of counts. An expansion is called "near exact": its cdf error is about 0.001, and 0.01 at most. If
    few rows decide, and for black-box callables beyond 2^15 label assignments, it raises a `MethodError`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> exact = dm.methods.Exact()
    >>> result = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), method=exact)
    >>> result["precision"].ppf([0.1, 0.9]).tolist()
    [0.5, 1.0]
    """

    name: ClassVar[str] = "exact"

    def distribution(self, functional: Functional, problem: Problem) -> MetricDistribution:
        if not problem.posterior.certain:
            problem.posterior.check_independent("'exact' needs", " Use 'auto' or 'monte_carlo'.")
        result = _compute_without_sampling(functional, problem)
        if result is not None:
            return result
        rows = int(functional.missing.sum())
        if isinstance(functional, ScenarioFunctional):
            raise MethodError(
                "method",
                f"'exact' with {rows:,} missing rows",
                "It enumerates every label assignment for this metric, of at most 15 rows with different scores.",
                f"Use {setting('method', 'auto', 'monte_carlo')}.",
            )
        raise MethodError(
            "method",
            f"no exact distribution, because few of {rows:,} missing rows decide and an expansion is not accurate",
            "",
            f"Use {setting('method', 'auto', 'monte_carlo')}.",
        )


@dataclass(frozen=True)
class Auto(Method):
    """The first of four methods that applies: enumerate, count, expand, draw; `method` of the result names it.

    Parameters
    ----------
    n_resamples : int
        Number of imputations if the distribution is drawn. With the default, a black-box callable is called at most
        10,000 times.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> many = dm.methods.Auto(n_resamples=100_000)
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), method=many)["recall"].method
    'exact'
    """

    n_resamples: int = N_IMPUTATIONS
    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        check_n_resamples(self.n_resamples)

    def distribution(self, functional: Functional, problem: Problem) -> MetricDistribution:
        result = _compute_without_sampling(functional, problem)
        if result is not None:
            return result
        n = repeat_undefined(functional, problem, n_imputations(functional, self.n_resamples))
        return drawn_distribution(functional, problem, draw_values(functional, problem, n))


def drawn_distribution(functional: Functional, problem: Problem, draws: Draws) -> MetricDistribution:
    """Return the distribution of drawn values with the certificate of the draws."""
    result = distribution_of_draws(functional, problem, draws)
    if result.undefined >= 1.0:
        return result
    if not draws.exact_labels:  # theorems on draws do not cover approximate sums
        return replace(result, certify=Prover(functional, problem.posterior))
    return replace(result, certify=partial(sampled_certificate, functional, draws, problem.posterior))
