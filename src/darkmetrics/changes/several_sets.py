"""Metrics of several evaluations of different rows, and their joint distribution."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.changes.pairing import LearnedSet, Pairing
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.choice import n_imputations
from darkmetrics.distributions.drawing import N_IMPUTATIONS
from darkmetrics.distributions.functional import Extremes
from darkmetrics.distributions.joint import Joint, JointDraws, SetTerms
from darkmetrics.distributions.problem import Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.population import Population, View, draw_in_population, sampling_correlation

# Maximum number of values drawn for a result.
_MAX_NUMBERS = 2**23


class SeveralSets:
    """Evaluations of different rows, with paired posterior draws.

    `fills` has the value of 0/0 by metric name; default: the value of each evaluation.
    """

    def __init__(self, evaluations: Sequence[Evaluation], fills: dict[str, float] | None = None) -> None:
        self.evaluations = evaluations
        self.fills = [evaluation.fills if fills is None else fills for evaluation in evaluations]
        self.scope = evaluations[0].scope
        self.pairing = Pairing.of([LearnedSet.of(evaluation) for evaluation in evaluations])

    @cached_property
    def _rows(self) -> list[tuple[Any, Problem]]:
        """The rows of each set and the posterior of their missing labels."""
        pairs = zip(self.evaluations, self.pairing.posteriors, strict=True)
        rows = [posterior.without_strata(evaluation.data) for evaluation, posterior in pairs]
        return [(data, Problem(posterior, seed=i)) for i, (data, posterior) in enumerate(rows, 1)]

    def joint(self, metrics: Sequence[Metric]) -> Joint:
        """Return the joint distribution of metrics on the rows, numbered by set and then by metric."""
        sets = []
        for (data, problem), fills in zip(self._rows, self.fills, strict=True):
            # A metric that is 0/0 on the rows has no value in the population.
            terms = [
                metric.bind(data, np.nan if self.scope == "population" else fills[metric.name]) for metric in metrics
            ]
            sets.append(SetTerms(terms, problem))
        return Joint(sets, self.pairing.blocks)

    def distributions(self, metric: Metric) -> list[MetricDistribution]:
        """Return the distribution of a metric in each set."""
        return [self._distribution(i, metric, self.scope) for i in range(len(self.evaluations))]

    def _distribution(self, number: int, metric: Metric, scope: str) -> MetricDistribution:
        """Return the distribution of a metric in a set; it is computed if it was not evaluated."""
        evaluation = self.evaluations[number]
        evaluated = evaluation if scope == "population" else evaluation.rows
        distribution = evaluated.distributions.get(metric.name)
        if distribution is not None:
            return distribution
        data, posterior = evaluation.posterior.without_strata(evaluation.data)
        functional = metric.bind(data, self.fills[number][metric.name])
        on_rows = next(evaluation.method.distributions([functional], posterior))
        return on_rows if scope == "rows" else Population(data, posterior).distribution(metric, on_rows)

    def draw(self, metrics: Sequence[Metric], joint: Joint) -> JointDraws:
        """Draw metrics of all sets jointly: every combination of values if there are few."""
        n = min(n_imputations(term, N_IMPUTATIONS) for term in joint.terms)
        n = min(n, _MAX_NUMBERS // len(joint.terms))
        if self.scope == "rows":
            return joint.draw(n)
        drawn = joint.draw(n, equally_likely=True)
        on_rows, in_population = (
            [self._distribution(i, metric, scope) for i in range(len(self.evaluations)) for metric in metrics]
            for scope in ("rows", "population")
        )
        is_given = [evaluation.posterior.given for evaluation in self.evaluations for _ in metrics]
        values = draw_in_population(
            drawn.values, on_rows, in_population, correlation=self._sampling_correlation(metrics), given=is_given
        )
        return drawn._replace(values=values)

    def _sampling_correlation(self, metrics: Sequence[Metric]) -> FloatArray | None:
        """Return the correlation of the sampling errors; rows of different sets are independent."""
        if len(metrics) == 1:
            return None
        size = len(metrics)
        correlation = np.zeros((size * len(self.evaluations),) * 2)
        for i, (data, problem) in enumerate(self._rows):
            block = slice(i * size, (i + 1) * size)
            views = [View(metric, data) for metric in metrics]
            correlation[block, block] = sampling_correlation(views, problem.posterior)
        return correlation

    def combine(self, metric: Metric, combine: Callable[..., Any], bounds: Extremes) -> MetricDistribution:
        """Return the distribution of a function of one metric in all sets."""
        joint = self.joint([metric])
        return joint.distribution_of(self.draw([metric], joint), combine, bounds=bounds)

    def add_up(self, metric: Metric, factors: Sequence[float]) -> MetricDistribution:
        """Return the distribution of a weighted sum of one metric in all sets, such as a difference or a slope."""
        in_sets = self.distributions(metric)
        ends = [np.sort(np.multiply(factor, x.bounds)) for factor, x in zip(factors, in_sets, strict=True)]
        low, high = np.sum(ends, axis=0).tolist()
        weights = np.asarray(factors)
        is_sharp = all(x.bounds_sharp for x in in_sets)
        return self.combine(metric, lambda *values: weights @ np.stack(values), Extremes(low, high, is_sharp))
