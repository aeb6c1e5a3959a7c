"""The metrics of an evaluation when the log odds of its missing labels are shifted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.enumeration import count_assignments
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics.distributions import Interval, MetricDistribution, chance_of_target
from darkmetrics.distributions.choice import distribution_of_atoms, exact_atoms
from darkmetrics.distributions.expansion import Expansion
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Cells, Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import MethodError
from darkmetrics.methods import Auto, MonteCarlo
from darkmetrics.population import Population
from darkmetrics.posterior import Posterior

# Missing rows and combinations of label counts up to which a quick answer is exact.
_MAX_ROWS, _MAX_COMBINATIONS = 256, 2**12
# Variance of the labels that a metric depends on from which it is nearly normal; with less it is drawn this often, and
# this often if it is known only by calling it.
_MIN_VARIANCE, _N_IMPUTATIONS, _N_CALLS = 8.0, 4096, 1024
# Labels drawn for the distribution at a shift, and imputations at least.
_MAX_END_LABELS, _MIN_END_DRAWS = 2**25, 2**14
# Probabilities in memory at a time; fewer with pair terms, which take many steps for each of them.
_MAX_NUMBERS, _MAX_PAIR_NUMBERS = 2**19, 2**15
# Relative accuracy of the quantiles of mixtures.
_ACCURACY = 1e-9
_ROOT = float(np.sqrt(2.0 * np.pi))

# Added to the log odds of missing rows: of those predicted positive, and of those predicted negative.
Shift = tuple[float, float]


@dataclass(frozen=True, eq=False)
class ShiftedDistributions:
    """The distributions of a metric at several shifts: nearly normal at every posterior draw, or listed.

    The skewness of the former is corrected to first order (Edgeworth).
    """

    listed: Sequence[MetricDistribution | None]
    weight: FloatArray  # n_draws
    mean: FloatArray  # n_shifts x n_draws
    sd: FloatArray
    skewness: FloatArray
    bounds: Interval

    @classmethod
    def of_list(cls, distributions: Sequence[MetricDistribution]) -> "ShiftedDistributions":
        """Return these distributions, one for each shift."""
        none = np.full((len(distributions), 1), np.nan)
        return cls(distributions, np.ones(1), none, none, none, Interval(-np.inf, np.inf))

    @classmethod
    def join(cls, batches: Sequence["ShiftedDistributions"]) -> "ShiftedDistributions":
        """Return the distributions of several batches of shifts."""
        mean, sd, skewness = (
            np.concatenate([getattr(batch, name) for batch in batches]) for name in ("mean", "sd", "skewness")
        )
        listed = [distribution for batch in batches for distribution in batch.listed]
        return replace(batches[0], listed=listed, mean=mean, sd=sd, skewness=skewness)

    @property
    def method(self) -> str:
        """How the distributions were computed; at the ends, where nothing is random, any method is exact."""
        middle = self.listed[len(self.listed) // 2]
        return "gaussian" if middle is None else middle.method

    def means(self) -> FloatArray:
        """Return the mean at every shift."""
        return self._fill(self.mean @ self.weight, lambda distribution: distribution.mean())

    def quantiles(self, q: float) -> FloatArray:
        """Return the quantile at every shift."""
        mean, sd = self.mean.T, self.sd.T
        weight = np.broadcast_to(self.weight[:, None], mean.shape)
        values = normal_mixture_quantiles(np.array([q]), weight, mean, sd, tolerance=_ACCURACY)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            score = (values[:, None] - self.mean) / self.sd
            density = (np.exp(-0.5 * score**2) / (_ROOT * self.sd)) @ self.weight
            values = values + np.nan_to_num((self._correction(score) @ self.weight) / density, posinf=0.0, neginf=0.0)
        return self._fill(np.clip(values, *self.bounds), lambda distribution: float(distribution.ppf(q)))

    def target_probabilities(self, target: float, better: str) -> FloatArray:
        """Return the probability of meeting a target at every shift."""
        sign = 1.0 if better == "lower" else -1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(self.mean == target, 0.0, (target - self.mean) / self.sd)
        values = np.clip((ndtr(sign * score) - sign * self._correction(score)) @ self.weight, 0.0, 1.0)
        return self._fill(values, lambda distribution: chance_of_target(distribution, target, better))

    def _correction(self, score: FloatArray) -> FloatArray:
        """Return the skewness correction, to be subtracted from the cdf at these standardized values."""
        finite = np.isfinite(score)
        square = np.where(finite, score**2, 0.0)
        return np.where(finite, self.skewness / 6.0 * (square - 1.0) * np.exp(-0.5 * square) / _ROOT, 0.0)

    def _fill(self, values: FloatArray, compute: Callable[[MetricDistribution], float]) -> FloatArray:
        """Return values at all shifts; `compute` returns the values of listed distributions."""
        filled = [
            value if distribution is None else compute(distribution)
            for value, distribution in zip(values.tolist(), self.listed, strict=True)
        ]
        return np.array(filled)


class ShiftedMetrics:
    """The metrics of an evaluation when the log odds of its missing labels are shifted.

    `distribution` computes what the evaluation's method finds; `approximate` is much faster, for searches and curves.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._rows, posterior = evaluation.posterior.without_strata(evaluation.data)
        predicted = self._rows.cells.decision[self._rows.missing_cells]
        self._posterior, kind = posterior.split_columns(predicted.astype(np.int64))
        self._predicted = kind.astype(np.bool_)  # whether the rows of each column are predicted positive
        self._functionals: dict[str, Functional] = {}
        self._merged: dict[str, tuple[Functional, Cells]] = {}

    def problem(self, shift: Shift) -> Problem:
        """Return the shifted posterior, to be shared by the metrics that are computed from it."""
        return Problem(self._posterior.shift_log_odds(np.where(self._predicted, *shift)))

    def distribution(self, name: str, problem: Problem) -> MetricDistribution:
        """Compute the distribution of a metric by the evaluation's method, in the evaluation's scope."""
        functional, evaluation, method = self._functional(name), self._evaluation, self._evaluation.method
        if isinstance(method, Auto):  # one quantile needs fewer imputations than a distribution
            n = _MAX_END_LABELS // max(1, int(functional.missing.sum()))
            method = Auto(int(np.clip(n, min(_MIN_END_DRAWS, method.n_resamples), method.n_resamples)))
        try:
            result = method.distribution(functional, problem)
        except MethodError:  # such as "exact" where the shifted distribution has to be drawn
            result = Auto().distribution(functional, problem)
        if evaluation.scope == "rows":
            return result
        return Population(self._rows, problem.posterior).distribution(evaluation.metrics[name], result)

    def approximate(self, names: Sequence[str], shifts: Sequence[Shift]) -> dict[str, ShiftedDistributions]:
        """Compute the distributions of metrics at several shifts.

        They are exact if few combinations of labels are possible, and else mixtures of normals. Metrics that are not
        smooth functions of sums are drawn.
        """
        answers: dict[str, list[ShiftedDistributions]] = {name: [] for name in names}
        size = max(1, _MAX_NUMBERS // max(1, self._posterior.probability.size))
        for start in range(0, len(shifts), size):
            batch = shifts[start : start + size]
            problem = self._stack(batch)
            shared: dict[bytes, Cells] = {}
            for name in names:
                answers[name].append(self._approximate(name, problem, batch, shared))
        return {name: ShiftedDistributions.join(batches) for name, batches in answers.items()}

    def is_drawn(self, name: str) -> bool:
        """Return whether even an approximation has to draw labels."""
        return not (self._posterior.independent and (self._functional(name).is_smooth or self.is_exact(name)))

    def is_exact(self, name: str) -> bool:
        """Return whether approximations are exact, because few combinations of labels are possible."""
        independent = self._evaluation.scope == "rows" and self._posterior.independent
        return independent and is_small(self._functional(name))

    def _functional(self, name: str) -> Functional:
        if name not in self._functionals:
            evaluation = self._evaluation
            self._functionals[name] = evaluation.metrics[name].bind(self._rows, evaluation.fills[name])
        return self._functionals[name]

    def _stack(self, shifts: Sequence[Shift]) -> Problem:
        """Return one posterior with the draws of all shifts, a shift after the other."""
        posterior, n = self._posterior, len(shifts)
        move = np.array([np.where(self._predicted, *shift) for shift in shifts])
        stacked = Posterior(np.tile(posterior.weight, n) / n, np.tile(posterior.probability, (n, 1)), posterior.column)
        return Problem(stacked.shift_log_odds(np.repeat(move, len(posterior), axis=0)))

    def _draw(self, name: str, shift: Shift) -> MetricDistribution:
        """Draw a metric a few times; every shift has the same random numbers."""
        functional, method = self._functional(name), self._evaluation.method
        n = _N_CALLS if functional.columns is None else _N_IMPUTATIONS
        n = min(n, method.n_resamples) if isinstance(method, Auto | MonteCarlo) else n
        return Auto(n).distribution(functional, self.problem(shift))

    def _approximate(
        self, name: str, problem: Problem, shifts: Sequence[Shift], shared: dict[bytes, Cells]
    ) -> ShiftedDistributions:
        """Compute the distributions of a metric; `problem` has the draws of all shifts."""
        if self.is_drawn(name):
            return ShiftedDistributions.of_list([self._draw(name, shift) for shift in shifts])
        functional, weight, evaluation = self._functional(name), self._posterior.weight, self._evaluation
        in_rows, given = evaluation.scope == "rows", self._posterior.given
        # In the population, probabilities that were given stand for the labels, which add no variance.
        sampling = 0.0 if in_rows else evaluation[name].var()
        if not (in_rows or given):
            sampling = max(sampling - evaluation.rows[name].var(), 0.0)
        if self.is_exact(name):
            atoms = exact_atoms(functional, problem)
            if atoms is not None:
                draws = (slice(i * weight.size, (i + 1) * weight.size) for i in range(len(shifts)))
                blocks = [tuple(block[rows] for block in atoms.blocks) for rows in draws]
                at_shifts = (replace(atoms, blocks=pmfs, weight=weight) for pmfs in blocks)
                return ShiftedDistributions.of_list(
                    [distribution_of_atoms(functional, shifted) for shifted in at_shifts]
                )
        merged, cells = self._cells(name, problem, shared)
        cumulants = (*_compute_cumulants(merged, cells), _label_variance(merged, cells))
        mean, variance, third, labels = (values.reshape(len(shifts), weight.size) for values in cumulants)
        if given and not in_rows:
            variance, third = np.zeros_like(variance), np.zeros_like(third)
        weight, sd = weight / weight.sum(), np.sqrt(variance + sampling)
        skewness = np.divide(third, sd**3, out=np.zeros_like(sd), where=sd > 0.0)
        # With few labels that vary it is not nearly normal, and without finite moments it is 0/0 next to some mean.
        drawn = ~np.isfinite(mean + sd).all(axis=1) | ((labels @ weight < _MIN_VARIANCE) & (sampling == 0.0))
        listed = [self._draw(name, shift) if draw else None for shift, draw in zip(shifts, drawn, strict=True)]
        bounds = Interval(*(functional.range if sampling else functional.extremes[:2]))
        return ShiftedDistributions(listed, weight, mean, sd, np.clip(skewness, -1.0, 1.0), bounds)

    def _cells(self, name: str, problem: Problem, shared: dict[bytes, Cells]) -> tuple[Functional, Cells]:
        """Return the functional on merged cells with their probabilities; metrics with equal cells share these."""
        if name not in self._merged:
            self._merged[name] = problem.cells(self._functional(name))
        functional, cells = self._merged[name]
        key = b"" if cells.column is None else cells.column.tobytes()
        if key not in shared:
            shared[key] = Cells(problem.posterior.probability, cells.column, problem.weight)
        return functional, shared[key]


def _compute_cumulants(functional: Functional, cells: Cells) -> Sequence[FloatArray]:
    """Compute three cumulants of a metric at every draw; with pair terms, for a batch of draws at a time."""
    if not functional.pairs:  # other metrics share the results for all draws
        return Expansion(functional, cells).value_cumulants
    size = max(1, _MAX_PAIR_NUMBERS // max(1, functional.missing.size))
    draws: list[IntArray] = np.array_split(np.arange(cells.n_draws), -(-cells.n_draws // size))
    batches = [
        Expansion(functional, Cells(cells.p[batch], cells.column, cells.weight[batch])).value_cumulants
        for batch in draws
    ]
    return [np.concatenate(values) for values in zip(*batches, strict=True)]


def _label_variance(functional: Functional, cells: Cells) -> FloatArray:
    """Return the variance of the number of positives among the rows that the metric depends on, at every draw."""
    columns = functional.columns
    assert columns is not None
    rows: FloatArray = np.where(columns.any(axis=1), functional.missing, 0.0)
    return np.asarray(cells.cumulants[1] @ cells.add_up(rows))


def is_small(functional: Functional) -> bool:
    """Return whether a metric depends on few combinations of counts of positives, per kind of row or per cell."""
    if functional.missing.sum() > _MAX_ROWS:
        return False
    n_combinations = count_assignments(functional.missing)
    if functional.kinds is not None:
        columns, kind = functional.kinds
        rows = np.bincount(kind, functional.missing, len(columns))[columns.any(axis=1)]
        n_combinations = min(n_combinations, count_assignments(rows))
    return n_combinations <= _MAX_COMBINATIONS
