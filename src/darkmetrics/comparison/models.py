"""Metrics of several models on the same rows: distributions of differences, and jointly drawn values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.comparison.beliefs import Beliefs
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, Tabulated
from darkmetrics.distributions.choice import distribution_of_draws
from darkmetrics.distributions.combined import subtract_terms
from darkmetrics.distributions.drawing import MAX_LABELS, N_IMPUTATIONS, Draws
from darkmetrics.distributions.expansion import compute_sum_cumulants
from darkmetrics.distributions.functional import SAME, Functional
from darkmetrics.distributions.joint import Joint, JointDraws
from darkmetrics.distributions.problem import Cells, Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.methods import Auto
from darkmetrics.metrics import Metric
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.population import View, draw_in_population, sampling_correlation
from darkmetrics.posterior import Posterior
from darkmetrics.question import Question

# Minimum number of imputations of all models, and maximum number of label additions per sum.
_MIN_DRAWS, _MAX_ADDITIONS = 2**14, 2**29
# Up to this many models, each distribution is computed; with more models they are drawn.
_MAX_COMPUTED = 8


class ModelDraws(NamedTuple):
    """Values of a metric of all models under the same labels (n_models x n), and the mass of each draw."""

    values: FloatArray
    mass: FloatArray
    method: str
    scope: str = "rows"


@dataclass(frozen=True, eq=False)
class ComparedModels:
    """All models on the same rows, under one posterior of the missing labels."""

    rows: SharedRows
    question: Question
    beliefs: Beliefs
    seed: int
    # Each metric of each model as a function of the labels of the shared missing cells.
    _terms: dict[tuple[str, int], Functional] = field(default_factory=dict)
    _evaluations: dict[int, Evaluation] = field(default_factory=dict, init=False)
    _drawn: dict[tuple[str, bool], JointDraws] = field(default_factory=dict, init=False)
    _draws: dict[tuple[str, str], ModelDraws] = field(default_factory=dict, init=False)

    def believing(self, beliefs: Beliefs) -> "ComparedModels":
        """Return the same models under another posterior."""
        return ComparedModels(self.rows, self.question, beliefs, self.seed, self._terms)

    @cached_property
    def problem(self) -> Problem:
        """The posterior and results that the metrics of all models share."""
        return Problem(self.posterior, seed=self.seed)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the shared missing cells."""
        return self.beliefs.posterior

    def term(self, metric: Metric, model: int) -> Functional:
        """Return the metric of a model as a function of the labels of the shared missing cells."""
        key = metric.name, model
        if key not in self._terms:
            data, new_index, *_ = self.rows.of(model)
            self._terms[key] = metric.bind(data, self.question.fill_of(metric)).reorder(new_index)
        return self._terms[key]

    def evaluation(self, model: int) -> Evaluation:
        """Return the evaluation of a model on these rows."""
        if model not in self._evaluations:
            rng, name = np.random.default_rng(self.seed), self.rows.names[model]
            distributions = self._drawn_distributions(model) if self._evaluates_by_draws else None
            self._evaluations[model] = self.beliefs.evaluation(
                self.question, self.rows.of(model), rng, name, distributions
            )
        return self._evaluations[model]

    @cached_property
    def _evaluates_by_draws(self) -> bool:
        """Whether the distribution of each model uses the values that rank the models."""
        if len(self.rows.names) <= _MAX_COMPUTED or type(self.question.method) is not Auto or self.posterior.certain:
            return False
        return all(self._draw_on_rows(metric).draw is not None for metric in self.question.metrics)

    def _drawn_distributions(self, model: int) -> Iterator[MetricDistribution]:
        for metric in self.question.metrics:
            drawn = self._draw_on_rows(metric)
            assert drawn.draw is not None
            draws = Draws(drawn.values[model], drawn.mass, drawn.draw, exact_labels=True)
            yield distribution_of_draws(self.term(metric, model), self.problem, draws)

    def difference(self, metric: Metric, b: int, a: int, scope: str) -> MetricDistribution:
        """Return the distribution of the metric of model b minus that of model a."""
        if scope == "rows":
            functional = subtract_terms(self.term(metric, b), self.term(metric, a))
            return self.question.method.distribution(functional, self.problem)
        drawn, (low, high) = self.draw(metric, scope), metric.range
        noise = SAME * float(np.nanmax(np.abs(drawn.values), initial=0.0))
        facts: dict[str, Any] = {"bounds": Interval(low - high, high - low), "noise": noise, "method": drawn.method}
        return Discrete.from_atoms(drawn.values[b] - drawn.values[a], drawn.mass, np.nan, **facts)

    def draw(self, metric: Metric, scope: str) -> ModelDraws:
        """Return values of the metric of all models under the same labels, on these rows or in the population."""
        key = metric.name, scope
        if key not in self._draws:
            drawn = self._draw_on_rows(metric, equally_likely=scope == "population")
            undefined = np.isnan(drawn.values)
            fill = self.question.fill_of(metric)
            values = np.where(undefined, fill, drawn.values) if undefined.any() else drawn.values
            result = ModelDraws(values, drawn.mass, "exact" if drawn.is_exact else "monte carlo")
            self._draws[key] = result if scope == "rows" else self._move_to_population(metric, result)
        return self._draws[key]

    def _draw_on_rows(self, metric: Metric, *, equally_likely: bool = False) -> JointDraws:
        """Draw values of all models; metrics share their label assignments. NaN where a metric is 0/0."""
        if (metric.name, equally_likely) not in self._drawn:
            models = range(len(self.rows.names))
            metrics, n = self._drawn_with(metric), self._n_draws
            terms = [replace(self.term(other, model), fill=np.nan) for other in metrics for model in models]
            drawn = Joint.of_set(terms, self.problem).draw(n, equally_likely=equally_likely)
            for other, values in zip(metrics, np.split(drawn.values, len(metrics)), strict=True):
                self._drawn[other.name, equally_likely] = drawn._replace(values=values)
        return self._drawn[metric.name, equally_likely]

    def _drawn_with(self, metric: Metric) -> Sequence[Metric]:
        """Return the metrics that are drawn jointly with this one: all functions of sums, unless rows are many."""
        if self.term(metric, 0).columns is None or self._n_draws * self.rows.missing.sum() > MAX_LABELS:
            return [metric]
        return [other for other in self.question.metrics if self.term(other, 0).columns is not None]

    @cached_property
    def _n_draws(self) -> int:
        additions = max(1.0, float(self.rows.missing.sum()) * len(self.rows.names))
        return int(np.clip(_MAX_ADDITIONS / additions, _MIN_DRAWS, N_IMPUTATIONS))

    def _move_to_population(self, metric: Metric, drawn: ModelDraws) -> ModelDraws:
        """Convert values on these rows to values in the population; the models share the sampling error of the rows."""
        models = range(len(self.rows.names))
        on_rows = [self.evaluation(model) for model in models]
        of_population = replace(self.question, scope="population")
        in_population = [of_population.in_scope(evaluation) for evaluation in on_rows]
        views = [View(metric, self.rows.of(model).data, np.argsort(self.rows.score[model])) for model in models]
        values = draw_in_population(
            drawn.values,
            [evaluation[metric.name] for evaluation in on_rows],
            [evaluation[metric.name] for evaluation in in_population],
            correlation=sampling_correlation(views, self.posterior),
            given=has_probabilities(self.question.model),
            seed=self.seed,
        )
        return ModelDraws(values, np.full(values.shape[1], 1.0 / values.shape[1]), "first order", "population")

    def plug_in_estimate(self, metric: Metric, model: int) -> float:
        """Return the metric of a model with each missing label at its probability; NaN if it is no function of sums."""
        posterior = self.posterior
        mean = posterior.weight @ posterior.probability
        return float(self._plug_in(metric, model, Cells(mean[None], posterior.column, np.ones(1)))[0])

    def plug_in_estimates(self, metric: Metric, model: int) -> FloatArray:
        """Return the metric of a model with each missing label at its probability, at every posterior draw."""
        posterior = self.posterior
        return self._plug_in(metric, model, Cells(posterior.probability, posterior.column, posterior.weight))

    def _plug_in(self, metric: Metric, model: int, cells: Cells) -> FloatArray:
        functional = self.term(metric, model)
        if functional.columns is None or functional.pairs:
            return np.full(cells.n_draws, np.nan)
        return functional.filled(functional.at(compute_sum_cumulants(functional, cells, orders=()).mean))


def mirror(distribution: MetricDistribution) -> MetricDistribution | None:
    """Return the distribution of the opposite difference; None if it has to be computed."""
    by_draw, (low, high) = distribution.by_draw, distribution.bounds
    facts: dict[str, Any] = {
        "bounds": Interval(-high, -low),
        "by_draw": None if by_draw is None else by_draw._replace(mean=-by_draw.mean),
        "certify": None,
    }
    if isinstance(distribution, Discrete):
        return replace(distribution, atoms=-distribution.atoms[::-1], masses=distribution.masses[::-1].copy(), **facts)
    if isinstance(distribution, Tabulated):
        return replace(distribution, grid=-distribution.grid[::-1], levels=1.0 - distribution.levels[::-1], **facts)
    return None
