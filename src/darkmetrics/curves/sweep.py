"""Compute curves from an evaluation and thresholds: choice of the method and of the metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.curves.bands import Swept, join_ranges
from darkmetrics.curves.bounds import MetricRange
from darkmetrics.curves.drawn import N_POINTS, draw_sums, drawn_range
from darkmetrics.curves.gaussian import gaussian_range
from darkmetrics.curves.single import MAX_SINGLE, sweep_single
from darkmetrics.curves.sums import ThresholdSums
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.methods import Auto, Exact, Gaussian, Method
from darkmetrics.metrics import ConfusionMetric, Metric, metrics_from
from darkmetrics.posterior import Posterior

# Maximum of thresholds x metrics x missing rows x root of draws: exact distributions then take about three seconds.
_MAX_EXACT_EFFORT = 2**21
# Maximum number of missing rows with unequal weights for an enumeration of label assignments.
_MAX_WEIGHTED = 12
# Maximum number of thresholds for drawn sums, which then take a few seconds.
_MAX_DRAWN = 1000
METHODS = ("auto", "exact", "monte_carlo", "gaussian")


def sweep(
    evaluation: Evaluation,
    metrics: Sequence[ConfusionMetric],
    thresholds: FloatArray,
    levels: FloatArray,
    method: str,
) -> tuple[str, list[Swept]]:
    """Return the method used, and mean, quantiles and bounds of each metric at each threshold."""
    if method not in METHODS:
        raise unknown_name("method", "method", str(method), METHODS)
    evaluation.posterior.check_independent("curves need")
    fills = [fill_of(evaluation, metric) for metric in metrics]
    arguments = evaluation.data, evaluation.posterior, metrics, fills, thresholds, levels
    if method == "exact":
        return method, sweep_single(*arguments, Exact())
    if method == "auto":
        if _is_exact_quick(evaluation, thresholds.size, len(metrics)):
            try:
                return "exact", sweep_single(*arguments, Exact())
            except MethodError:  # a metric has no exact distribution at some threshold
                pass
        method = "monte_carlo" if thresholds.size <= _MAX_DRAWN else "gaussian"
    return method, _sweep_ranges(*arguments, drawn=method == "monte_carlo")


def _sweep_ranges(
    data: EvaluationSet,
    posterior: Posterior,
    metrics: Sequence[ConfusionMetric],
    fills: Sequence[float],
    thresholds: FloatArray,
    levels: FloatArray,
    *,
    drawn: bool,
) -> list[Swept]:
    """Compute ranges of thresholds at once if possible, and the remaining thresholds one by one."""
    ranges: list[list[Swept]] = [[] for _ in metrics]
    excluded: list[list[BoolArray]] = [[] for _ in metrics]
    for window in ThresholdSums(data, posterior, thresholds).ranges(max(N_POINTS if drawn else 0, len(posterior))):
        sums = draw_sums(window) if drawn and not posterior.certain else None
        for i, (metric, fill) in enumerate(zip(metrics, fills, strict=True)):
            points = MetricRange(metric, fill, window)
            irregular = points.excluded
            if posterior.certain:
                swept = points.certain(levels)
            elif sums is not None:
                swept = drawn_range(points, sums, levels)
            else:
                swept, without_slope = gaussian_range(points, levels)
                irregular = irregular | without_slope
            ranges[i].append(swept)
            excluded[i].append(irregular)
    result = []
    method: Method = Auto() if drawn else Gaussian()
    for i, pieces in enumerate(ranges):
        swept, single = join_ranges(pieces), np.concatenate(excluded[i])
        if single.any():
            (replacement,) = sweep_single(data, posterior, [metrics[i]], [fills[i]], thresholds[single], levels, method)
            swept = swept.replace_at(single, replacement)
        result.append(swept)
    return result


def _is_exact_quick(evaluation: Evaluation, thresholds: int, metrics: int) -> bool:
    """Return whether exact distributions take seconds, judged by size, so that results are reproducible."""
    if evaluation.data.unequal_weights and evaluation.data.n_missing > _MAX_WEIGHTED:
        return False
    effort = thresholds * metrics * evaluation.data.n_missing * float(np.sqrt(len(evaluation.posterior)))
    return thresholds <= MAX_SINGLE and effort <= _MAX_EXACT_EFFORT


def curve_metrics(evaluation: Evaluation, metrics: Any) -> list[ConfusionMetric]:
    """Return the metrics that a user passes; names of evaluated metrics refer to the evaluation."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Metric) and isinstance(metrics, Sequence):
        metrics = [evaluation.metrics.get(name, name) if isinstance(name, str) else name for name in metrics]
    chosen = []
    for metric in metrics_from(metrics):
        if not isinstance(metric, ConfusionMetric):
            raise InputError(
                f"metrics: {metric.name!r} does not depend on the threshold. Curves are for metrics of the confusion "
                "matrix, such as 'precision', 'recall' or metrics.expected_cost(1, 10)."
            )
        chosen.append(metric)
    return chosen


def fill_of(evaluation: Evaluation, metric: Metric) -> float:
    """Return the value of 0/0 in the evaluation; metrics without one use the `zero_division` of the evaluation."""
    if metric.name in evaluation.fills:
        return evaluation.fills[metric.name]
    for name, fill in evaluation.fills.items():
        default = evaluation.metrics[name].undefined_as
        if fill != default and not (np.isnan(fill) and np.isnan(default)):
            return fill  # zero_division was set
    return metric.undefined_as
