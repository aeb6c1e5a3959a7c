"""Sensitivity analysis: metrics when the odds of the missing labels differ from what was assumed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.enumeration import count_assignments
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics._text import prints_plainly
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import Interval, MetricDistribution, chance_of_target
from darkmetrics.distributions.choice import distribution_of_atoms, exact_atoms
from darkmetrics.distributions.expansion import Expansion
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Cells, Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Auto, MonteCarlo
from darkmetrics.population import Population
from darkmetrics.posterior import Posterior
from darkmetrics.tables import decimals_for, interval_text, level_text, text_table

# Missing rows and combinations of label counts up to which a quick answer is exact.
_MAX_ROWS, _MAX_COMBINATIONS = 256, 2**12
# Variance of the labels that a metric depends on from which it is nearly normal; with less it is drawn this often, and
# this often if it is known only by calling it.
_MIN_VARIANCE, _N_IMPUTATIONS, _N_CALLS = 8.0, 4096, 1024
# Labels drawn for the distribution at a shift, and imputations at least.
_MAX_END_LABELS, _MIN_END_DRAWS = 2**25, 2**14
# Probabilities in memory at a time; fewer with pair terms, which take many steps for each of them.
_MAX_NUMBERS, _MAX_PAIR_NUMBERS = 2**19, 2**15
# Fractions of the largest shift on the first grid of a search, and how often the grid's step is halved.
_GRID, _N_HALVINGS = (-1.0, -0.5, 0.0, 0.5, 1.0), 2
# Relative accuracy of the quantiles of mixtures, and the fraction of their range by which equal ones may differ.
_ACCURACY, _SAME = 1e-9, 1e-7
_ROOT = float(np.sqrt(2.0 * np.pi))
# Larger factors are reported as infinite.
_MAX_ODDS = 1e6

# Added to the log odds of missing rows: of those predicted positive, and of those predicted negative.
Shift = tuple[float, float]


@prints_plainly
@dataclass(frozen=True, eq=False)
class Sensitivity(Mapping[str, Interval]):
    """The interval of each metric if the odds of missing rows are up to `odds` times higher or lower than assumed.

    A mapping from metric name to `Interval`; print it for a table. `assumed` has the intervals of the evaluation.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.9], metrics=["precision", "recall"])
    >>> print(result.sensitivity(odds=4))
                  90% interval   if odds 4x off
    precision   0.500 to 1.000   0.500 to 1.000
    recall      0.500 to 0.667   0.500 to 0.667
    """

    odds: float
    confidence_level: float
    assumed: Mapping[str, Interval]
    intervals: Mapping[str, Interval]

    def __getitem__(self, name: str) -> Interval:
        return self.intervals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __repr__(self) -> str:
        return f"<Sensitivity to odds {self.odds:g} times off: {', '.join(self.intervals)}>"

    def __str__(self) -> str:
        header = ["", f"{level_text(self.confidence_level)} interval", self.column]
        return "\n".join(
            text_table(header, [[name, *map(_shown, (self.assumed[name], self[name]))] for name in self.intervals])
        )

    @property
    def column(self) -> str:
        """The heading of these intervals in a table."""
        return f"if odds {self.odds:g}x off"


@prints_plainly
@dataclass(frozen=True)
class TippingPoint:
    """The smallest factor on the odds of missing rows at which a target is no longer met, as a number and in words.

    Attributes
    ----------
    metric, target, side
        What is asked for: `side` is "at least", or "at most" where lower is better.
    odds : float
        The factor; 1 where the target is not met as it is, infinity where no factor does it.
    confidence_level : float
        A target is met when it is so with at least this probability.
    flagged, unflagged : int
        Whether it takes higher (1) or lower (-1) odds of the rows decided positive, and negative; 0: they do not
        matter.
    """

    metric: str
    target: float
    side: str
    confidence_level: float
    odds: float
    flagged: int = 0
    unflagged: int = 0

    def __float__(self) -> float:
        return self.odds

    def __str__(self) -> str:
        sure = f"with probability {level_text(self.confidence_level)} or more"
        claim = f"{self.metric} is {self.side} {self.target:g} {sure}"
        if np.isnan(self.odds):
            return f"Whether {self.metric} is {self.side} {self.target:g} cannot be said: it is 0/0."
        if self.odds == 1.0:
            return f"It is not so that {claim}, even if the odds of the missing rows are as assumed."
        if np.isinf(self.odds):
            return f"{claim}, however far off the odds of the missing rows are."
        sides = {"decided positive": self.flagged, "decided negative": self.unflagged}
        words = {1: "higher", -1: "lower"}
        times = f"{self.odds:.3g} times"
        moved = [f"{times} {words[sign]} for those {rows}" for rows, sign in sides.items() if sign]
        if len(moved) == 2 and self.flagged == self.unflagged:
            moved = [f"{times} {words[self.flagged]}"]
        odds = f"the odds that missing rows are positive are {' and '.join(moved)} than assumed"
        return f"{claim} unless {odds}."


def check_odds(odds: Any) -> float:
    """Validate a factor on the odds."""
    if not is_number(odds) or not 1.0 <= odds < np.inf:
        raise InputError(
            f"odds: {odds!r}. It must be a finite number of at least 1: how many times higher or lower the odds of the "
            "missing rows may be. What no labels can pass is result[metric].support()."
        )
    return float(odds)


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
        self._rows, posterior = evaluation.nodes.without_strata(evaluation.data)
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
        return not (self._posterior.independent and self._functional(name).is_smooth)

    def _functional(self, name: str) -> Functional:
        if name not in self._functionals:
            evaluation = self._evaluation
            self._functionals[name] = evaluation.metrics[name].bind(self._rows, evaluation.fills[name])
        return self._functionals[name]

    def _stack(self, shifts: Sequence[Shift]) -> Problem:
        """Return one posterior with the draws of all shifts, a shift after the other."""
        posterior, n = self._posterior, len(shifts)
        move = np.array([np.where(self._predicted, *shift) for shift in shifts])
        stacked = Posterior(np.tile(posterior.weight, n) / n, np.tile(posterior.probability, (n, 1)), posterior.bucket)
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
        if in_rows and is_small(functional):
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


def sensitivity_of(evaluation: Evaluation, odds: float) -> Sensitivity:
    """Compute the intervals over all shifts by up to this factor on the odds (see `Evaluation.sensitivity`)."""
    level = evaluation.confidence_level
    assumed, intervals = evaluation.intervals, dict(evaluation.intervals)
    result = partial(Sensitivity, odds, level, assumed)
    if not evaluation.data.missing_cells.size or evaluation.nodes.certain or odds == 1.0:
        return result(intervals)
    if not evaluation.nodes.independent:
        return result(dict.fromkeys(intervals, Interval(np.nan, np.nan)))
    names = [name for name in intervals if np.isfinite(assumed[name].low)]
    search = _Search(ShiftedMetrics(evaluation), names, float(np.log(odds)))
    tail = 0.5 * (1.0 - level)
    # Ends at the same shift share its posterior.
    ends: dict[Shift, list[tuple[str, int]]] = {}
    for name, sign in product(names, (-1, 1)):
        ends.setdefault(search.extreme_shift(name, 0.5 + sign * (0.5 - tail), sign), []).append((name, sign))
    for shift, questions in ends.items():
        problem = search.metrics.problem(shift)
        for name, sign in questions:
            value = search.metrics.distribution(name, problem).ppf(0.5 + sign * (0.5 - tail))
            low, high = intervals[name]
            intervals[name] = Interval(min(low, value), high) if sign < 0 else Interval(low, max(high, value))
    return result(intervals)


def tipping_point_of(evaluation: Evaluation, name: str, target: float) -> TippingPoint:
    """Find the smallest factor at which a target is no longer met (see `Evaluation.tipping_point`)."""
    assumed = evaluation[name]
    lower = evaluation.metrics[name].better == "lower"
    level = evaluation.confidence_level
    result = partial(TippingPoint, name, target, "at most" if lower else "at least", level)
    if np.isnan(assumed.mean()):
        return result(np.nan)
    if not evaluation.target_probability(name, target) >= level:
        return result(1.0)
    worst = assumed.support()[1 if lower else 0]
    if (worst <= target if lower else worst >= target) or not evaluation.data.missing_cells.size:
        return result(np.inf)
    if not evaluation.nodes.independent:
        return result(np.nan)
    sign, q = (1, level) if lower else (-1, 1.0 - level)
    metrics = ShiftedMetrics(evaluation)
    shifts: dict[float, Shift] = {}

    def margin(reach: float) -> float:
        """Return by how much the extreme quantile meets the target."""
        shifts[reach] = _Search(metrics, [name], reach).extreme_shift(name, q, sign)
        distribution = metrics.distribution(name, metrics.problem(shifts[reach]))
        return sign * (target - float(distribution.ppf(q)))

    from scipy.optimize import brentq

    end = float(np.log(_MAX_ODDS))
    if margin(end) >= 0.0:
        return result(np.inf)
    # Without a shift the target is met, so the margin is positive there.
    reach = float(brentq(lambda x: margin(x) if x > 0.0 else 1e-300, 0.0, end, xtol=1e-4))
    margin(reach)
    above, below = (int(np.sign(shift)) for shift in shifts[reach])
    return result(float(np.exp(reach)), above, below)


class _Search:
    """A search for the shift within reach at which a quantile of a metric is lowest or highest."""

    def __init__(self, metrics: ShiftedMetrics, names: Sequence[str], reach: float) -> None:
        self.metrics, self._reach = metrics, reach
        drawn = [name for name in names if metrics.is_drawn(name)]
        self._grids: dict[str, tuple[list[Shift], ShiftedDistributions]] = {}
        for group, fractions in (([name for name in names if name not in drawn], _GRID), (drawn, _GRID[::2])):
            grid = [(reach * a, reach * b) for a, b in product(fractions, repeat=2)]
            if group:
                self._grids |= {
                    name: (grid, distributions) for name, distributions in metrics.approximate(group, grid).items()
                }

    def extreme_shift(self, name: str, q: float, sign: int) -> Shift:
        """Return the shift at which the quantile is lowest (`sign` -1) or highest (1), the smallest of equal ones."""
        grid, distributions = self._grids[name]
        values = dict(zip(grid, (sign * distributions.quantiles(q)).tolist(), strict=True))
        tolerance = _SAME * float(np.ptp(list(values.values())))
        extreme, step = _largest(values, tolerance), 0.5 * self._reach
        for _ in range(0 if self.metrics.is_drawn(name) else _N_HALVINGS):
            step *= 0.5
            above, below = ((x,) if abs(x) >= self._reach else (x - step, x, x + step) for x in extreme)
            shifts = [shift for shift in product(above, below) if shift != extreme]
            if not shifts:
                break
            near = sign * self.metrics.approximate([name], shifts)[name].quantiles(q)
            if np.abs(near - values[extreme]).max() <= tolerance:
                break  # the metric does not depend on these rows
            values |= zip(shifts, near.tolist(), strict=True)
            extreme = _largest(values, tolerance)
        return extreme


def _largest(values: Mapping[Shift, float], tolerance: float) -> Shift:
    """Return the smallest of the shifts with the largest value."""
    largest = max(values.values())
    equal = (shift for shift, value in values.items() if value >= largest - tolerance)
    return min(equal, key=lambda shift: abs(shift[0]) + abs(shift[1]), default=(0.0, 0.0))  # all are NaN


def _shown(interval: Interval) -> str:
    return interval_text(interval, decimals_for(interval.high - interval.low))
