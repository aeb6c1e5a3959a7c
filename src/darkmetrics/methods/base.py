"""Base class of methods: settings, and the computation of the distribution of a functional."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np

from darkmetrics.constraints import check_value
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Problem
from darkmetrics.posterior import Posterior


class Method(ABC):
    """Settings of a way to compute the distributions of metrics."""

    name: ClassVar[str]

    @abstractmethod
    def distribution(self, functional: Functional, problem: Problem) -> MetricDistribution:
        """Return the distribution of one metric, mixed over the posterior draws of `problem`.

        A method that needs independent labels calls `problem.posterior.check_independent`.
        """

    def distributions(
        self, functionals: Iterable[Functional], posterior: Posterior, *, rng: np.random.Generator | int = 0
    ) -> Iterator[MetricDistribution]:
        """Return the distributions of metrics of one set, lazily; metrics share intermediate results."""
        problem = Problem(posterior, seed=seed_from(rng))
        for functional in functionals:
            yield self.distribution(functional, problem)


def seed_from(rng: np.random.Generator | int) -> int:
    """Return a seed: the number itself, or a number drawn from a generator."""
    return rng if isinstance(rng, int) else int(rng.integers(2**63))


# How distributions are computed: "auto", "exact", "monte_carlo", "gaussian", or a settings object.
MethodLike: TypeAlias = str | Method


def check_n_resamples(number: Any, name: str = "n_resamples") -> int:
    """Validate a number of imputations, resamples or repeats."""
    check_value(name, number)
    return int(number)
