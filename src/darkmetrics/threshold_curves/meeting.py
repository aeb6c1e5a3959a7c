"""Thresholds at which metrics meet their targets, and the one to take among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.data.rules import is_number
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.tables import html_lines, html_table, level_text
from darkmetrics.threshold_curves.sweep import curve_metrics, sweep


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
    met, surest, checked = _meets(evaluation, thresholds, targets, probability, method)
    if not met.any():
        raise InputError(_nowhere(thresholds, checked, surest, probability))
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
    met, surest, checked = _meets(evaluation, thresholds, targets, probability, method)
    if not met.any():
        raise InputError(_nowhere(thresholds, checked, surest, probability))
    return thresholds[met]


def _meets(
    evaluation: Evaluation, thresholds: FloatArray, targets: Any, probability: Any, method: str
) -> tuple[BoolArray, list[FloatArray], list[tuple[ConfusionMetric, float]]]:
    """Where each target is met with that probability, the value that each metric reaches with it, and the targets.

    A metric is at least t with probability p where its quantile of level 1 - p is; if less is better, at most t where
    its quantile of level p is.
    """
    if not is_number(probability) or not 0.0 < probability < 1.0:
        raise InputError(f"probability: {probability!r}. It must lie strictly between 0 and 1, such as 0.9.")
    checked = _checked(evaluation, targets)
    met, surest = np.ones(thresholds.size, dtype=np.bool_), []
    for metric, target in checked:
        less = metric.better == "lower"
        level = float(probability) if less else 1.0 - float(probability)
        _, (swept,) = sweep(evaluation, [metric], thresholds, np.array([level]), method)
        values = swept.quantiles[0]
        surest.append(values)
        met &= values <= target if less else values >= target  # NaN, where it is 0/0, is neither
    return met, surest, checked


def _checked(evaluation: Evaluation, targets: Any) -> list[tuple[ConfusionMetric, float]]:
    if not isinstance(targets, Mapping) or not targets:
        raise InputError(f"constraint: expected metrics and their targets, such as {{'recall': 0.6}}, got {targets!r}.")
    found = []
    for name, target in targets.items():
        metric = curve_metrics(evaluation, [name])[0]
        if metric.better == "neither":
            raise InputError(f"constraint: {metric.name!r} is neither better high nor low, so it has no target.")
        if not is_number(target) or not np.isfinite(target):
            raise InputError(f"constraint: {target!r} for {name!r}. A target must be a finite number.")
        found.append((metric, float(target)))
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
    return f"constraint: at no threshold is it {level} sure: {'; '.join(parts)}. Ask for less, or for less certainty."
