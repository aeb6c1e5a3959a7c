"""PEMI, Algorithm 1 of the paper: draw label assignments, evaluate the metric on each, return the empirical cdf."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.choice import certain_distribution
from darkmetrics.distributions.drawing import Draws, allocate, draw_values_at
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Problem
from darkmetrics.methods.base import Method, check_n_resamples
from darkmetrics.methods.exact import drawn_distribution


@dataclass(frozen=True)
class MonteCarlo(Method):
    """Multiple imputation (PEMI): the empirical distribution over `n_resamples` random label assignments.

    Confusion-matrix metrics draw the number of positives of each kind of row, others draw labels. The draws are the
    same in every run unless `rng=` is set. With B imputations the cdf is off by more than sqrt(log(2 / 0.001) / (2 B))
    somewhere with probability at most 0.001 (Dvoretzky-Kiefer-Wolfowitz).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> few = dm.methods.MonteCarlo(n_resamples=1000)
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), method=few, rng=0)[
    ...     "recall"
    ... ].median()
    1.0
    """

    n_resamples: int = 10_000
    name: ClassVar[str] = "monte_carlo"

    def __post_init__(self) -> None:
        check_n_resamples(self.n_resamples)

    def distribution(self, functional: Functional, problem: Problem) -> MetricDistribution:
        certain = certain_distribution(functional, problem)
        if certain is not None:
            return certain
        draw = allocate(problem.weight, self.n_resamples)
        values, exact_labels = draw_values_at(functional, problem, draw)
        draws = Draws(values, np.full(draw.size, 1.0 / draw.size), draw, exact_labels)
        return drawn_distribution(functional, problem, draws)
