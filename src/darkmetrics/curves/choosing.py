"""The threshold to take: the best for a metric, and how likely it beats the current one; or one that meets targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._text import prints_plainly
from darkmetrics.curves.sweep import curve_metrics, fill_of, sweep
from darkmetrics.data.rules import is_number
from darkmetrics.distributions.joint import Joint
from darkmetrics.distributions.problem import Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.methods.base import seed_from
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.targets import target_from
from darkmetrics.question import generator_from
from darkmetrics.tables import html_lines, html_table, level_text

# Values of a metric that differ by less, as part of the largest, are equal: the same weights were added up in another
# order, or another unit.
_ROUNDING = 1e-12


@prints_plainly
@dataclass(frozen=True)
class BestThreshold:
    """The threshold that serves a metric best; print it for a sentence.

    Attributes
    ----------
    threshold, value : float
        The best threshold of the grid, and there the mean of the metric, or the quantile asked for.
    current, current_value : float
        The threshold in use, and the same figure there.
    probability_better : float
        Probability that the metric is strictly better at `threshold` than at `current`: whatever the missing labels
        are, they are the same for both.
    metric : str
        Its name.
    risk : "mean" or float
        As asked for.
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
        if isinstance(self.risk, str):
            what = f"its mean is {self.value:.3f}"
        else:
            what = f"with probability {level_text(1.0 - self.risk)} it is {self.value:.3f} or better"
        return (
            f"{self.metric}: best at {self.threshold:g}, where {what} (at the current {self.current:g}: "
            f"{self.current_value:.3f}); better than now with probability {_chance(self.probability_better)}."
        )

    def _repr_html_(self) -> str:
        header = ["", "threshold", self.metric]
        rows = [
            ["best", f"{self.threshold:g}", f"{self.value:.3f}"],
            ["current", f"{self.current:g}", f"{self.current_value:.3f}"],
        ]
        return f"<div>{html_lines([str(self)])}{html_table(header, rows)}</div>"


def _chance(probability: float) -> str:
    """A probability in words that do not claim to be sure because all draws agree."""
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
    """The threshold with the best mean or quantile; of equally good ones the current one, else the lowest.

    `may_stay`: whether the current one, also if it is not among them, may be the answer.
    """
    if metric.better == "neither":
        raise InputError(f"metric: {metric.name!r} is neither better high nor low, so no threshold is best for it.")
    sign = -1.0 if metric.better == "lower" else 1.0
    level = _level(risk, sign)
    current = evaluation.data.threshold
    assert current is not None  # no curves without
    grid = np.union1d(thresholds, current)
    _, (swept,) = sweep(evaluation, [metric], grid, np.array([0.5 if level is None else level]), method)
    values = swept.mean if level is None else swept.quantiles[0]
    known = np.where(np.isnan(values), -np.inf, sign * values)
    here = int(np.searchsorted(grid, current))
    candidates = np.searchsorted(grid, thresholds)
    if not np.isfinite(known[candidates]).any():
        raise InputError(f"metric: {metric.name!r} is undefined (0/0) at every threshold.")
    highest = float(known[candidates].max())
    good = known >= highest - _ROUNDING * float(np.nanmax(np.abs(values)))
    place = here if good[here] and may_stay else int(candidates[np.argmax(good[candidates])])
    chance = 0.0
    if grid[place] != current:
        chance = probability_better(evaluation, metric, float(grid[place]), current, n_resamples=n_resamples, rng=rng)
    return BestThreshold(
        threshold=float(grid[place]),
        value=float(values[place]),
        current=current,
        current_value=float(values[here]),
        probability_better=chance,
        metric=metric.name,
        risk=risk,
    )


def _level(risk: Any, sign: float) -> float | None:
    """The quantile level that a risk stands for; None for the mean."""
    if isinstance(risk, str) and risk == "mean":
        return None
    if not is_number(risk) or not 0.0 < risk < 1.0:
        raise InputError(f"risk: {risk!r}. It must be 'mean' or a number strictly between 0 and 1, such as 0.1.")
    return float(risk) if sign > 0.0 else 1.0 - float(risk)


def probability_better(
    evaluation: Evaluation, metric: ConfusionMetric, new: float, old: float, *, n_resamples: int, rng: Any
) -> float:
    """P(the metric is strictly better at `new` than at `old`), the labels being the same for both.

    0/0 counts as in the evaluation. Where the evaluation leaves it out, this is the probability given that the metric
    is defined at both thresholds.
    """
    fill = fill_of(evaluation, metric)
    terms = [metric.bind(evaluation.data.with_threshold(threshold), fill) for threshold in (new, old)]
    drawn = Joint.of_set(terms, Problem(evaluation.posterior, seed=seed_from(generator_from(rng)))).draw(n_resamples)
    gain = drawn.values[0] - drawn.values[1]
    if metric.better == "lower":
        gain = -gain
    defined = ~np.isnan(gain)
    # Gains as small as the rounding of sums are none.
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
        A row is flagged when its score is at or above it.
    flagged : float
        Share of rows that are.
    targets : mapping from metric name to float
        What was to be met.
    values : mapping from metric name to float
        What each metric is there, or better, with the probability asked for.
    probability : float
        With which each target is met at least.
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
        there = " and ".join(f"{name} is {value:.3f} or better" for name, value in self.values.items())
        each = ", each" if len(self.values) > 1 else ""
        where = f"With rows flagged from a score of {self.threshold:g} on ({self.flagged:.1%} of them)"
        return f"{where}, {there} ({level} sure{each})."

    def _repr_html_(self) -> str:
        rows = [[name, f"{target:g}", f"{self.values[name]:.3f}"] for name, target in self.targets.items()]
        header = ["metric", "target", f"{level_text(self.probability)} sure"]
        return f"<div>{html_lines([str(self)])}{html_table(header, rows)}</div>"


def threshold_for(
    evaluation: Evaluation, thresholds: FloatArray, targets: Mapping[str, Any], probability: Any, method: str
) -> TargetThreshold:
    """The threshold to take among those at which every target is met with that probability."""
    met, surest, checked = _meets(evaluation, thresholds, targets, probability, method, "targets")
    # What a low threshold meets, such as recall, is had with the fewest alarms; what it does not, such as precision,
    # while the most is found.
    places = np.flatnonzero(met)
    place = int(places[-1] if met[0] else places[0])
    cells = evaluation.data.cells
    flagged = cells.total[cells.score >= thresholds[place]].sum() / cells.total.sum()
    return TargetThreshold(
        threshold=float(thresholds[place]),
        flagged=float(flagged),
        targets={metric.name: target for metric, target in checked},
        values={metric.name: float(values[place]) for (metric, _), values in zip(checked, surest, strict=True)},
        probability=float(probability),
    )


def allowed(
    evaluation: Evaluation, thresholds: FloatArray, targets: Mapping[str, Any], probability: Any, method: str
) -> FloatArray:
    """The thresholds at which every target is met with that probability; there is one at least."""
    return thresholds[_meets(evaluation, thresholds, targets, probability, method, "constraint")[0]]


def _meets(
    evaluation: Evaluation, thresholds: FloatArray, targets: Any, probability: Any, method: str, argument: str
) -> tuple[BoolArray, list[FloatArray], list[tuple[ConfusionMetric, float]]]:
    """Where every target is met with that probability, the value that each metric reaches with it, and the targets.

    A metric is at least t with probability p where its quantile of level 1 - p is; if less is better, at most t where
    its quantile of level p is. Errors are about the `argument` that the targets came by.
    """
    if not is_number(probability) or not 0.0 < probability < 1.0:
        raise InputError(f"probability: {probability!r}. It must lie strictly between 0 and 1, such as 0.9.")
    checked = _checked(evaluation, targets, argument)
    met, surest = np.ones(thresholds.size, dtype=np.bool_), []
    for metric, target in checked:
        less = metric.better == "lower"
        level = float(probability) if less else 1.0 - float(probability)
        _, (swept,) = sweep(evaluation, [metric], thresholds, np.array([level]), method)
        values = swept.quantiles[0]
        surest.append(values)
        blur = _ROUNDING * np.nanmax(np.abs(values), initial=abs(target))
        # NaN, where it is 0/0, is neither.
        met &= values <= target + blur if less else values >= target - blur
    if not met.any():
        raise InputError(f"{argument}: {_nowhere(thresholds, checked, surest, probability)}")
    return met, surest, checked


def _checked(evaluation: Evaluation, targets: Any, argument: str) -> list[tuple[ConfusionMetric, float]]:
    if not isinstance(targets, Mapping) or not targets:
        raise InputError(f"{argument}: expected metrics and their targets, such as {{'recall': 0.6}}, got {targets!r}.")
    found = []
    for name, target in targets.items():
        try:
            metric = curve_metrics(evaluation, [name])[0]
        except InputError as error:
            raise error.renamed({"metrics": argument}) from None
        if metric.better == "neither":
            raise InputError(f"{argument}: {metric.name!r} is neither better high nor low, so it has no target.")
        found.append((metric, target_from(target, metric, argument, f"{target!r} for {name!r}")))
    return found


def _nowhere(
    thresholds: FloatArray,
    checked: list[tuple[ConfusionMetric, float]],
    surest: list[FloatArray],
    probability: float,
) -> str:
    """That no threshold will do, and how near each metric comes by itself."""
    level, parts = level_text(probability), []
    for (metric, target), values in zip(checked, surest, strict=True):
        less = metric.better == "lower"
        if np.isnan(values).all():
            parts.append(f"{metric.name} is undefined (0/0) at every threshold")
            continue
        place = int(np.nanargmin(values) if less else np.nanargmax(values))
        best = f"{values[place]:.3f} at {thresholds[place]:g}"
        parts.append(f"{metric.name} {'at most' if less else 'at least'} {target:g} (best: {best})")
    return f"at no threshold is it {level} sure: {'; '.join(parts)}. Ask for less, or for less certainty."
