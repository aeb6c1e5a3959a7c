"""Distributions of metrics of several classes: enumerate, expand or draw, all metrics of a set together.

event       the metric depends on one event per row      as for two classes
enumerate   at most 2^15 label assignments               exact
expand      the estimated error is at most 0.008         cdf error 0.002 typically, 0.01 at most
draw        everything else                              cdf error 0.003 typically, 0.01 at most
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.base import DrawMoments, Interval, MetricDistribution
from darkmetrics.distributions.choice import moments_of_draws
from darkmetrics.distributions.class_drawing import ClassDrawing
from darkmetrics.distributions.class_expansion import ClassExpansion, SumMoments
from darkmetrics.distributions.class_sums import ClassFunctional, Event
from darkmetrics.distributions.counting import Atoms
from darkmetrics.distributions.drawing import Draws
from darkmetrics.distributions.expansion import MAX_EXPANSION_ERROR, mix_draws
from darkmetrics.distributions.functional import MAX_ENUMERATED, Extremes, Functional, extremes_of
from darkmetrics.distributions.kinds import Discrete, Tabulated, Undefined
from darkmetrics.distributions.problem import Problem
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior

# Probabilities of an event that are kept (draws x columns); cells with nearly equal probabilities share a column.
_MAX_TABLE = 2**20
# Probabilities that are kept for covariances and higher cumulants (draws x rows x classes), rows, and multiplications.
_MAX_KEPT, _MAX_KEPT_ROWS, _MIN_KEPT_ROWS, _MAX_MULTIPLICATIONS = 2**21, 2**14, 2**11, 2**33
# A metric that jumps where a class has no row is drawn if a class is absent with more than this probability.
_MAX_ABSENT = 1e-4

Binary = Callable[[Functional, Problem], MetricDistribution]


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """Metrics of one set and the posterior of its missing labels; draws are computed once for all metrics.

    Attributes
    ----------
    metrics : sequence of ClassFunctional or Event
        The metrics, bound to the set.
    posterior : ClassPosterior
        Probabilities of the labels of the missing cells.
    missing : array of int
        Rows of each missing cell.
    seed : int
        Seed of the random numbers.
    """

    metrics: Sequence[ClassFunctional | Event]
    posterior: ClassPosterior
    missing: IntArray
    seed: int = 0

    @cached_property
    def functionals(self) -> list[ClassFunctional]:
        """Metrics that are functions of sums."""
        return [metric for metric in self.metrics if isinstance(metric, ClassFunctional)]

    @cached_property
    def events(self) -> list[Event]:
        """One metric of each event."""
        return list({metric.key: metric for metric in self.metrics if isinstance(metric, Event)}.values())

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.functionals[0].sums.n_classes

    def describe(self, functional: ClassFunctional, method: str, extremes: Extremes | None = None) -> dict[str, Any]:
        """Return the method, the bounds and the rounding error, as attributes of a distribution."""
        low, high, sharp = extremes or functional.extremes
        return {"method": method, "bounds": Interval(low, high), "bounds_sharp": sharp, "noise": functional.noise}

    @cached_property
    def assignments(self) -> IntArray | None:
        """All label assignments (n x n_rows); None if there are too many."""
        n_rows = int(self.missing.sum())
        if not self.functionals or n_rows * np.log(self.n_classes) > np.log(MAX_ENUMERATED + 0.5):
            return None
        return np.indices((self.n_classes,) * n_rows).reshape(n_rows, self.n_classes**n_rows).T

    @cached_property
    def _assignment_probabilities(self) -> tuple[FloatArray, FloatArray]:
        """Probabilities of the labels of each half of the rows, at every draw."""
        cell = np.repeat(np.arange(self.missing.size), self.missing)
        halves = []
        for rows in np.split(cell, [cell.size // 2]):
            table = np.ones((len(self.posterior), self.n_classes**rows.size))
            for draw, joint in enumerate(table):
                product = np.ones(1)
                for q in self.posterior.of_draw(draw)[rows]:
                    product = np.multiply.outer(product, q).ravel()
                joint[:] = product
            halves.append(table)
        return halves[0], halves[1]

    def enumerate(self) -> list[MetricDistribution]:
        """Return the exact distributions of all functions of sums."""
        assert self.assignments is not None
        first, second = self._assignment_probabilities
        cell = np.repeat(np.arange(self.missing.size), self.missing)
        result = []
        for functional in self.functionals:
            sums = functional.sums.of_labels(self.assignments, cell)
            atoms = Atoms(functional.at(sums).reshape(first.shape[1], second.shape[1]), (first, second), self.weight)
            filled = np.where(np.isnan(atoms.values), functional.fill, atoms.values)
            facts = self.describe(functional, "exact", extremes_of(filled))
            mass = atoms.probability.ravel()
            possible = mass > 0.0
            distribution = Discrete.from_atoms(atoms.values.ravel()[possible], mass[possible], functional.fill, **facts)
            if not isinstance(distribution, Undefined):
                if self.weight.size > 1:
                    moments = atoms.moments(functional.fill, distribution.mean())
                    distribution = replace(distribution, by_draw=moments)
                if functional.has_terms:
                    is_absent = (functional.sums.totals(sums) <= 0.0).astype(np.float64)
                    undefined = float(np.clip(mass @ functional.count_undefined(is_absent), 0.0, 1.0))
                    distribution = replace(distribution, undefined=undefined, given_defined=False)
            result.append(distribution)
        return result

    @property
    def weight(self) -> FloatArray:
        """Weight of each posterior draw."""
        return self.posterior.weight

    @cached_property
    def _typical(self) -> FloatArray:
        """Probabilities of the missing cells at a few draws on average."""
        draws = np.unique(np.linspace(0, len(self.posterior) - 1, 5).astype(np.int64))
        return np.asarray(sum(self.posterior.of_draw(int(draw)) for draw in draws) / draws.size)

    def _select_rows(self) -> tuple[IntArray, FloatArray]:
        """Return cells that count for all cells, and how often: influential cells once, some of the others more often.

        A cell is influential if it has a large fraction of the expected rows of a class.
        """
        n, size = self.missing.size, max(_MIN_KEPT_ROWS, min(_MAX_KEPT_ROWS, 2**17 // self.n_classes))
        if n <= size:
            return np.arange(n), np.ones(n)
        expected = self._typical * self.missing[:, None]
        order = np.argsort(-(expected / np.maximum(expected.sum(axis=0), 1e-300)).max(axis=1), kind="stable")
        certain, others = order[: size // 2], order[size // 2 :]
        sampled = others[np.linspace(0, others.size - 1, size - size // 2).astype(np.int64)]
        factor = np.ones(size)
        factor[size // 2 :] = self.missing[others].sum() / self.missing[sampled].sum()
        return np.concatenate([certain, sampled]), factor

    def _columns_of_event(self, event: Event) -> IntArray:
        """Return the column of each missing cell: cells of one kind with nearly equal probabilities share one."""
        functional = event.functional
        n, n_columns = functional.missing.size, max(64, _MAX_TABLE // len(self.posterior))
        if n <= n_columns:
            return np.arange(n)
        has_kinds = functional.kinds is not None and functional.has_few_kinds
        kind = functional.kinds[1] if has_kinds and functional.kinds is not None else np.zeros(n, dtype=np.int64)
        order = np.lexsort([event.probability(self._typical), kind])
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n)
        return np.asarray(np.unique(rank * n_columns // n + kind * n_columns, return_inverse=True)[1])

    @cached_property
    def _sweep(self) -> tuple[dict[int, SumMoments], dict[str, Posterior]]:
        """Moments of the sums, and posteriors of the events, from one pass over the posterior draws."""
        posterior, n_draws = self.posterior, len(self.posterior)
        sums = {id(functional.sums): functional.sums for functional in self.functionals}
        expected = {key: np.empty((value.constant.size, n_draws)) for key, value in sums.items()}
        columns = {event.key: self._columns_of_event(event) for event in self.events}
        rows = {event.key: event.functional.missing for event in self.events}
        totals = {key: np.bincount(column, rows[key]) for key, column in columns.items()}
        tables = {key: np.empty((n_draws, total.size)) for key, total in totals.items()}
        draws, cells, factor = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        if sums:
            cells, factor = self._select_rows()
            widest = max(value.constant.size for value in sums.values())
            n_kept = min(
                n_draws,
                _MAX_KEPT // max(1, cells.size * self.n_classes),
                _MAX_MULTIPLICATIONS // max(1, cells.size * widest**2),
            )
            draws = np.unique(np.linspace(0, n_draws - 1, max(3, n_kept)).astype(np.int64))
        kept = np.empty((draws.size, cells.size, self.n_classes if sums else 0))
        for draw in range(n_draws):
            q = posterior.of_draw(draw)
            for key, value in sums.items():
                expected[key][:, draw] = value.expect(q)
            for event in self.events:
                probability = event.probability(q)
                mass = np.bincount(columns[event.key], rows[event.key] * probability, totals[event.key].size)
                tables[event.key][draw] = np.clip(mass / totals[event.key], 0.0, 1.0)
            for at in np.flatnonzero(draws == draw):
                kept[at] = q[cells]
        moments = {
            key: SumMoments(value, expected[key], draws, value.take(cells, factor), kept) for key, value in sums.items()
        }
        about: dict[str, Any] = {
            "shift": posterior.shift,
            "mechanism": posterior.mechanism,
            "mechanisms": posterior.mechanisms,
        }
        posteriors = {}
        for event in self.events:
            posteriors[event.key] = Posterior(self.weight, tables[event.key], columns[event.key], **about)
        return moments, posteriors

    def moments_of(self, functional: ClassFunctional) -> SumMoments:
        """Return the moments of the sums of a functional."""
        return self._sweep[0][id(functional.sums)]

    @cached_property
    def _problems(self) -> dict[str, Problem]:
        return {key: Problem(posterior, seed=self.seed) for key, posterior in self._sweep[1].items()}

    def event_distribution(self, event: Event, binary: Binary) -> MetricDistribution:
        """Return the distribution of a metric of one event per row, as for two classes."""
        problem, functional = self._problems[event.key], event.functional
        if problem.posterior.probability.shape[1] < functional.missing.size:
            functional = replace(functional, is_rounded=True)
        return binary(functional, problem)

    def _absent(self, functional: ClassFunctional) -> FloatArray:
        """Return the probability that each class has no row (K x n_kept_draws)."""
        moments, sums = self.moments_of(functional), functional.sums
        unlabeled = np.flatnonzero(sums.totals(sums.constant) <= 0.0)
        absent = np.zeros((self.n_classes, len(moments.q)))
        q = np.minimum(moments.q[..., unlabeled], 1.0 - 1e-15)
        absent[unlabeled] = np.exp(np.einsum("i,bik->kb", moments.rows.rows, np.log1p(-q)))
        return absent

    def expanded_distribution(self, functional: ClassFunctional) -> MetricDistribution | None:
        """Return the distribution by expansion; None if the estimated error is too large."""
        if not functional.is_smooth:
            return None
        absent = self._absent(functional)
        jumps = functional.needs_all_classes and bool((absent.mean(axis=1) > _MAX_ABSENT).any())
        undefined = float(functional.count_undefined(absent).mean()) if functional.has_terms else 0.0
        expansion = ClassExpansion(functional, self.moments_of(functional))
        if jumps or not np.isfinite(expansion.value).all():
            return None
        if not expansion.estimate_error(self.weight) <= MAX_EXPANSION_ERROR:
            return None
        level, cdf = expansion.distribution()
        low, high, _ = functional.extremes
        grid, levels = mix_draws(level, cdf, self.weight)
        distribution = Tabulated(
            grid=np.clip(grid, low, high),
            levels=levels,
            undefined=undefined if undefined > 1e-9 else 0.0,
            **self.describe(functional, "near exact"),
        )
        mean, variance = expansion.moments()
        return (
            distribution
            if len(mean) == 1
            else replace(distribution, by_draw=DrawMoments.of(self.weight, mean, variance))
        )

    def certain_distribution(self, functional: ClassFunctional) -> MetricDistribution | None:
        """Return the distribution if all labels are certain; None otherwise."""
        if len(self.posterior) > 1 or np.any(self.posterior.of_draw(0).max(axis=1) < 1.0):
            return None
        value = functional.at(functional.sums.expect(self.posterior.of_draw(0))[:, None])
        return Discrete.from_atoms(value, np.ones(1), functional.fill, **self.describe(functional, "exact"))

    def draw_distributions(
        self, functionals: Sequence[ClassFunctional], n: int | None = None
    ) -> list[MetricDistribution]:
        """Return the distributions of values that are drawn together."""
        if not functionals:
            return []
        moments = [self.moments_of(functional) for functional in functionals]
        drawing = ClassDrawing(functionals, moments, self.posterior, self.missing, self.seed, n)
        return [
            self._distribution_of_draws(functional, draws)
            for functional, draws in zip(functionals, drawing.draw(), strict=True)
        ]

    def _distribution_of_draws(self, functional: ClassFunctional, draws: Draws) -> MetricDistribution:
        facts = self.describe(functional, "monte carlo")
        low, high = facts["bounds"]
        values = np.clip(draws.values, low, high)
        distribution = Discrete.from_atoms(values, draws.mass, functional.fill, **facts)
        if isinstance(distribution, Undefined):
            return distribution
        if functional.has_terms:
            undefined = float(functional.count_undefined(self._absent(functional)).mean())
            distribution = replace(distribution, undefined=undefined, given_defined=False)
        if self.weight.size == 1:
            return distribution
        filled = np.where(np.isnan(values), functional.fill, values)
        return replace(distribution, by_draw=moments_of_draws(filled, draws, self.weight.size))


def distributions_of(problem: ClassProblem, binary: Binary) -> Iterator[MetricDistribution]:
    """Return the distributions of all metrics of a problem, lazily, by the first method that applies.

    `binary` computes the distribution of a metric of two classes.
    """
    if problem.assignments is not None:
        computed: Iterator[MetricDistribution] = iter(problem.enumerate())
    else:
        results = [
            problem.certain_distribution(functional) or problem.expanded_distribution(functional)
            for functional in problem.functionals
        ]
        remaining = [f for f, result in zip(problem.functionals, results, strict=True) if result is None]
        drawn = iter(problem.draw_distributions(remaining))
        computed = (next(drawn) if result is None else result for result in results)
    for metric in problem.metrics:
        yield problem.event_distribution(metric, binary) if isinstance(metric, Event) else next(computed)
