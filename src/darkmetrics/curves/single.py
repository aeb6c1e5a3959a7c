"""The distribution of every metric at each threshold by itself, from the engine.

Rows that no threshold of the grid separates are counted together first.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, merged_keys
from darkmetrics.curves.bands import Swept
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.problem import Problem
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Method
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.posterior import Posterior

# A distribution takes milliseconds; for more thresholds than this, that is too long.
MAX_SINGLE = 2000


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
    if thresholds.size > MAX_SINGLE:
        raise InputError(
            f"thresholds: {thresholds.size:,}, but at most {MAX_SINGLE:,} are possible for {metrics[0].name!r} with "
            f"method {method.name!r}, which takes each threshold by itself. Pass fewer, or method='gaussian'."
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
                raise error.also(f"(metric: {metric.name!r}, threshold: {threshold:g})") from None
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
