"""Compute metrics at thresholds: exact at each threshold, or drawn or Gaussian at many thresholds at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, merged_keys
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics.curves.bands import Swept, join_ranges
from darkmetrics.curves.bounds import MetricRange
from darkmetrics.curves.drawn import N_POINTS, draw_sums, drawn_range
from darkmetrics.curves.sums import ThresholdSums
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.problem import Problem
from darkmetrics.distributions.slopes import compute_ratio_slopes, compute_slope
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.methods import Auto, Exact, Gaussian, Method
from darkmetrics.metrics import ConfusionMetric, Metric, metrics_from
from darkmetrics.posterior import Posterior
from darkmetrics.wording import code, setting

# Maximum of thresholds x metrics x missing rows x root of draws: exact distributions then take about three seconds.
_MAX_EXACT_EFFORT = 2**21
# Maximum number of missing rows with unequal weights for an enumeration of label assignments.
_MAX_WEIGHTED = 12
# Maximum number of thresholds that are computed one by one, in milliseconds each.
_MAX_SINGLE = 2000
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
    return thresholds <= _MAX_SINGLE and effort <= _MAX_EXACT_EFFORT


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
                "metrics",
                f"{metric.name!r} does not depend on the threshold",
                "Curves are for metrics of the confusion matrix, such as 'precision', 'recall' or "
                f"{code('metrics.expected_cost(1, 10)')}.",
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


def gaussian_range(metric: MetricRange, levels: FloatArray) -> tuple[Swept, BoolArray]:
    """Return mean and quantiles of mixtures of Gaussians, and the thresholds at which there is none."""
    mean, variance, undefined = metric.at(metric.window.means), _variance(metric), metric.undefined_mass
    weight = metric.window.weight
    # The weight of a draw is in proportion to the probability that the metric is defined there.
    shares = np.where(undefined >= 1.0, 0.0, weight[:, None] * (1.0 - undefined))
    total = shares.sum(axis=0)
    never = ~(total > 0.0)
    shares = shares / np.where(never, 1.0, total)
    used, finite = shares > 0.0, np.isfinite(mean) & np.isfinite(variance)
    regular = used & finite
    # Draws without weight get the mean of the others, which does not widen the search for quantiles.
    center = np.where(regular, shares * mean, 0.0).sum(axis=0)
    mean, sd = np.where(regular, mean, center), np.sqrt(np.where(regular, np.maximum(variance, 0.0), 0.0))
    quantiles = normal_mixture_quantiles(levels, shares, mean, sd)
    quantiles[:, never] = np.nan
    swept = metric.swept(
        np.where(never, np.nan, (shares * mean).sum(axis=0)),
        quantiles,
        np.where(never, 1.0, np.minimum(1.0, weight @ undefined)),
    )
    return swept, np.asarray((used & ~finite).any(axis=0))


def _variance(metric: MetricRange) -> FloatArray:
    """Return the first-order variance of the metric at every draw and threshold; NaN where there is no slope."""
    window, form = metric.window, metric.form
    offsets = window.tp, window.fn
    if form is not None:
        sums = [offset + mean for offset, mean in zip(offsets, window.means, strict=True)]
        slopes = compute_ratio_slopes(*form, metric.at(window.means), sums)
    else:
        sides = enumerate(zip(window.missing, offsets, strict=True))
        slopes = [compute_slope(metric.at, window.means, axis, total, offset) for axis, (total, offset) in sides]
    result: FloatArray = np.zeros(window.means[0].shape)
    with np.errstate(invalid="ignore", over="ignore"):
        for slope, variance in zip(slopes, window.variances, strict=True):
            # A side on which nothing is random has no part in the variance, and perhaps no slope.
            result += np.where(variance > 0.0, slope, 0.0) ** 2 * variance
    return result


def sweep_single(
    data: EvaluationSet,
    posterior: Posterior,
    metrics: Sequence[ConfusionMetric],
    fills: Sequence[float],
    thresholds: FloatArray,
    levels: FloatArray,
    method: Method,
) -> list[Swept]:
    """Return what `evaluate` returns at each threshold, for the same posterior."""
    if thresholds.size > _MAX_SINGLE:
        raise InputError(
            "thresholds",
            f"{thresholds.size:,}, but at most {_MAX_SINGLE:,} are possible for {metrics[0].name!r} with method "
            f"{method.name!r}, which computes them one by one",
            "",
            f"Pass fewer, or {setting('method', 'gaussian')}.",
        )
    data, posterior = merge_cells(data, posterior, thresholds)
    shape = (len(metrics), thresholds.size)
    mean, low, high, undefined, labeled_only = (np.empty(shape) for _ in range(5))
    quantiles = np.empty((len(metrics), levels.size, thresholds.size))
    for j, threshold in enumerate(thresholds.tolist()):
        # Not by `with_threshold`: a ROC curve ends at infinity.
        cells = replace(data.cells, decision=data.cells.score >= threshold)
        at_threshold = EvaluationSet.from_cells(cells, threshold=threshold, pos_label=data.pos_label)
        problem = Problem(posterior)
        for i, (metric, fill) in enumerate(zip(metrics, fills, strict=True)):
            try:
                distribution = method.distribution(metric.bind(at_threshold, fill), problem)
            except MethodError as error:
                text = f"{error.args[3]} (metric: {metric.name!r}, threshold: {threshold:g})"
                raise error.replace(fix=text.lstrip()) from None
            mean[i, j], undefined[i, j] = distribution.mean(), distribution.undefined
            low[i, j], high[i, j] = distribution.support()
            quantiles[i, :, j] = distribution.ppf(levels)
            labeled_only[i, j] = metric.value(at_threshold, fill) if at_threshold.n_labeled else np.nan
    columns = zip(mean, quantiles, low, high, undefined, labeled_only, strict=True)
    return [Swept(*column) for column in columns]


def merge_cells(data: EvaluationSet, posterior: Posterior, thresholds: FloatArray) -> tuple[EvaluationSet, Posterior]:
    """Return a set with the same confusion matrix at each threshold for every label assignment, and its posterior.

    Labeled rows between two thresholds become one cell, and so do missing rows of one probability column. A set with
    weights stays as it is, because exact distributions depend on the number of different weights.
    """
    cells = data.cells
    if cells.weight is not None:
        return data, posterior
    band = np.searchsorted(thresholds, cells.score, side="right")
    starts = np.flatnonzero(np.diff(band, prepend=-1))
    labeled = {
        name: np.add.reduceat(getattr(cells, name), starts, dtype=np.int64) for name in ("positives", "negatives")
    }
    band_of_missing, missing, column = band[data.missing_cells], data.missing_counts, posterior.column
    if column is not None:
        first, owner = merged_keys(band_of_missing, column)
        band_of_missing, column = band_of_missing[first], column[first]
        missing = np.bincount(owner, missing, first.size).astype(np.int64)
    # Labeled cells first and then missing ones, in the order of the bands; a band has a single score.
    order = np.argsort(np.concatenate((band[starts], band_of_missing)), kind="stable")
    lowest = np.empty(thresholds.size + 1)
    lowest[band[starts]] = cells.score[starts]
    score = lowest[np.concatenate((band[starts], band_of_missing))][order]
    no_labels, no_missing = np.zeros(band_of_missing.size, dtype=np.int64), np.zeros(starts.size, dtype=np.int64)
    table = Cells(
        score=score,
        decision=score >= (np.inf if data.threshold is None else data.threshold),
        **{name: np.concatenate((counts, no_labels))[order] for name, counts in labeled.items()},
        missing=np.concatenate((no_missing, missing))[order],
    )
    merged = EvaluationSet.from_cells(table, threshold=data.threshold, pos_label=data.pos_label)
    return merged, replace(posterior, column=column)
