"""Choose a threshold: the best one for a metric, or one that meets targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._text import prints_plainly
from darkmetrics.curves.sweep import curve_metrics, fill_of, sweep
from darkmetrics.distributions.joint import Joint
from darkmetrics.distributions.problem import Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.methods.base import seed_from
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.targets import target_from
from darkmetrics.question import generator_from
from darkmetrics.tables import html_lines, html_table, level_text

# Values of a metric that differ by at most this fraction of the largest are equal up to rounding.
_ROUNDING = 1e-12


@prints_plainly
@dataclass(frozen=True)
class BestThreshold:
    """The best threshold for a metric; print it for a sentence.

    Attributes
    ----------
    threshold, value : float
        The best threshold of the grid, and the mean or quantile of the metric there.
    current, current_value : float
        The threshold in use, and the mean or quantile there.
    probability_better : float
        Probability that the metric is strictly better at `threshold` than at `current`, with the same labels at both.
    metric : str
        Name of the metric.
    risk : "mean" or float
        The `risk` that was passed.
    """

    threshold: float
    value: float
    current: float
    current_value: float
    probability_better: float
    metric: str
    risk: str | float

    def __str__(self) -> str:
        if self.threshold == self.current:
            return (
                f"{self.metric}: the current threshold {self.current:g} is the best of those tried ({self.value:.3f})."
            )
        value = f"its mean is {self.value:.3f}"
        if not isinstance(self.risk, str):
            value = f"with probability {level_text(1.0 - self.risk)} it is {self.value:.3f} or better"
        probability = _format_probability(self.probability_better)
        return (
            f"{self.metric}: best at {self.threshold:g}, where {value} (at the current {self.current:g}: "
            f"{self.current_value:.3f}); better than now with probability {probability}."
        )

    def _repr_html_(self) -> str:
        header = ["", "threshold", self.metric]
        rows = [
            ["best", f"{self.threshold:g}", f"{self.value:.3f}"],
            ["current", f"{self.current:g}", f"{self.current_value:.3f}"],
        ]
        return f"<div>{html_lines([str(self)])}{html_table(header, rows)}</div>"


def _format_probability(probability: float) -> str:
    """Format a probability that was estimated from draws, which are never certain."""
    if probability > 0.999:
        return "over 99.9%"
    return "below 0.1%" if probability < 0.001 else f"{probability:.1%}"


def best_threshold(
    evaluation: Evaluation,
    metric: ConfusionMetric,
    thresholds: FloatArray,
    risk: str | float,
    method: str,
    *,
    may_stay: bool = True,
    n_resamples: int,
    rng: Any,
) -> BestThreshold:
    """Return the threshold with the best mean or quantile; of equal ones the current threshold, else the lowest.

    `may_stay`: whether the current threshold is allowed, even if it is not among `thresholds`.
    """
    if metric.better == "neither":
        raise InputError("metric", f"{metric.name!r} is neither better high nor low", "No threshold is best for it.")
    sign = -1.0 if metric.better == "lower" else 1.0
    level = _quantile_level(risk, sign)
    current = evaluation.data.threshold
    assert current is not None  # no curves without
    grid = np.union1d(thresholds, current)
    _, (swept,) = sweep(evaluation, [metric], grid, np.array([0.5 if level is None else level]), method)
    values = swept.mean if level is None else swept.quantiles[0]
    known = np.where(np.isnan(values), -np.inf, sign * values)
    current_index = int(np.searchsorted(grid, current))
    candidates = np.searchsorted(grid, thresholds)
    if not np.isfinite(known[candidates]).any():
        raise InputError("metric", f"{metric.name!r} is undefined (0/0) at every threshold")
    highest = float(known[candidates].max())
    is_best = known >= highest - _ROUNDING * float(np.nanmax(np.abs(values)))
    index = int(candidates[np.argmax(is_best[candidates])])
    if is_best[current_index] and may_stay:
        index = current_index
    probability = 0.0
    if grid[index] != current:
        pair = float(grid[index]), current
        probability = probability_better(evaluation, metric, *pair, n_resamples=n_resamples, rng=rng)
    return BestThreshold(
        threshold=float(grid[index]),
        value=float(values[index]),
        current=current,
        current_value=float(values[current_index]),
        probability_better=probability,
        metric=metric.name,
        risk=risk,
    )


def _quantile_level(risk: Any, sign: float) -> float | None:
    """Return the quantile level of a risk; None for the mean."""
    if isinstance(risk, str):
        return None
    return float(risk) if sign > 0.0 else 1.0 - float(risk)


def probability_better(
    evaluation: Evaluation, metric: ConfusionMetric, new: float, old: float, *, n_resamples: int, rng: Any
) -> float:
    """Return the probability that the metric is strictly better at `new` than at `old`, with the same labels at both.

    0/0 counts as in the evaluation. If the evaluation leaves it out, the probability is conditional on the metric being
    defined at both thresholds.
    """
    fill = fill_of(evaluation, metric)
    terms = [metric.bind(evaluation.data.with_threshold(threshold), fill) for threshold in (new, old)]
    drawn = Joint.of_set(terms, Problem(evaluation.posterior, seed=seed_from(generator_from(rng)))).draw(n_resamples)
    gain = drawn.values[0] - drawn.values[1]
    if metric.better == "lower":
        gain = -gain
    defined = ~np.isnan(gain)
    # Smaller gains are rounding errors.
    better = gain > _ROUNDING * max(term.size for term in terms)
    total = float(drawn.mass[defined].sum())
    return float(drawn.mass[better].sum()) / total if total > 0.0 else np.nan


@prints_plainly
@dataclass(frozen=True)
class TargetThreshold:
    """The threshold at which targets are met; print it for a sentence, `float(...)` for the number.

    Attributes
    ----------
    threshold : float
        Rows with a score at or above the threshold are predicted positive.
    flagged : float
        Fraction of rows predicted positive.
    targets : mapping from metric name to float
        The targets.
    values : mapping from metric name to float
        Value that each metric reaches with the probability.
    probability : float
        Minimum probability that a target is met.
    """

    threshold: float
    flagged: float
    targets: Mapping[str, float]
    values: Mapping[str, float]
    probability: float

    def __float__(self) -> float:
        return self.threshold

    def __str__(self) -> str:
        level = level_text(self.probability)
        values = " and ".join(f"{name} is {value:.3f} or better" for name, value in self.values.items())
        separately = ", each" if len(self.values) > 1 else ""
        rows = f"With rows flagged from a score of {self.threshold:g} on ({self.flagged:.1%} of them)"
        return f"{rows}, {values} ({level} sure{separately})."

    def _repr_html_(self) -> str:
        rows = [[name, f"{target:g}", f"{self.values[name]:.3f}"] for name, target in self.targets.items()]
        header = ["metric", "target", f"{level_text(self.probability)} sure"]
        return f"<div>{html_lines([str(self)])}{html_table(header, rows)}</div>"


def threshold_for(
    evaluation: Evaluation, thresholds: FloatArray, targets: Mapping[str, Any], probability: Any, method: str
) -> TargetThreshold:
    """Return the threshold to use among those at which every target is met with the probability."""
    is_met, reached = find_met(evaluation, thresholds, targets, probability, method, "targets")
    # If low thresholds meet the targets (recall), use the highest one, with the fewest alarms; otherwise (precision)
    # the lowest, with the most positives.
    met = np.flatnonzero(is_met)
    index = int(met[-1] if is_met[0] else met[0])
    cells = evaluation.data.cells
    flagged = cells.total[cells.score >= thresholds[index]].sum() / cells.total.sum()
    return TargetThreshold(
        threshold=float(thresholds[index]),
        flagged=float(flagged),
        targets={result.metric.name: result.target for result in reached},
        values={result.metric.name: float(result.values[index]) for result in reached},
        probability=float(probability),
    )


class _Reached(NamedTuple):
    """A metric, its target, and the value that it reaches with the probability at each threshold."""

    metric: ConfusionMetric
    target: float
    values: FloatArray

    def describe(self, thresholds: FloatArray) -> str:
        """Return the target and the best value."""
        name, lower = self.metric.name, self.metric.better == "lower"
        if np.isnan(self.values).all():
            return f"{name} is undefined (0/0) at every threshold"
        index = int(np.nanargmin(self.values) if lower else np.nanargmax(self.values))
        best = f"{self.values[index]:.3f} at {thresholds[index]:g}"
        return f"{name} {'at most' if lower else 'at least'} {self.target:g} (best: {best})"


def find_met(
    evaluation: Evaluation, thresholds: FloatArray, targets: Any, probability: Any, method: str, argument: str
) -> tuple[BoolArray, list[_Reached]]:
    """Return at which thresholds every target is met with the probability, and the values that metrics reach with it.

    A metric is at least t with probability p if its quantile of level 1 - p is; if lower is better, it is at most t if
    its quantile of level p is. Errors are about the `argument` that has the targets.
    """
    if not isinstance(targets, Mapping) or not targets:
        raise InputError(argument, f"expected metrics and their targets, such as {{'recall': 0.6}}, got {targets!r}")
    is_met, reached = np.ones(thresholds.size, dtype=np.bool_), []
    for name, value in targets.items():
        metric = _metric_with_target(evaluation, name, argument)
        target = target_from(value, metric, argument, f"{value!r} for {name!r}")
        lower = metric.better == "lower"
        level = float(probability) if lower else 1.0 - float(probability)
        _, (swept,) = sweep(evaluation, [metric], thresholds, np.array([level]), method)
        values = swept.quantiles[0]
        reached.append(_Reached(metric, target, values))
        rounding = _ROUNDING * np.nanmax(np.abs(values), initial=abs(target))
        # NaN (0/0) meets no target.
        is_met &= values <= target + rounding if lower else values >= target - rounding
    if not is_met.any():
        texts = "; ".join(result.describe(thresholds) for result in reached)
        finding = f"at no threshold is it {level_text(probability)} sure: {texts}"
        raise InputError(argument, finding, "", "Ask for less, or for less certainty.")
    return is_met, reached


def _metric_with_target(evaluation: Evaluation, name: Any, argument: str) -> ConfusionMetric:
    try:
        metric = curve_metrics(evaluation, [name])[0]
    except InputError as error:
        raise error.worded_for({"metrics": argument}) from None
    if metric.better == "neither":
        raise InputError(argument, f"{metric.name!r} is neither better high nor low, so it has no target")
    return metric
