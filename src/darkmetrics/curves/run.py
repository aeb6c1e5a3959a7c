"""Compute threshold curves from an evaluation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._text import a_kind_of
from darkmetrics.argument_types import ArrayLike
from darkmetrics.calls import suggest_call
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.constraints import is_number, is_whole
from darkmetrics.curves.bands import Band, levels_of
from darkmetrics.curves.result import ThresholdCurves
from darkmetrics.curves.sweep import curve_metrics, sweep
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.wording import named, setting

DEFAULT_METRICS = ("precision", "recall", "f1", "accuracy")
# Enough for a smooth line on any screen.
_THRESHOLDS = 200


@suggest_call(
    "threshold_curves takes what evaluate returns, and thresholds=: "
    "threshold_curves(evaluate(...), thresholds=[0.3, 0.5])."
)
def threshold_curves(
    evaluation: Evaluation,
    *,
    metrics: MetricsLike | None = None,
    thresholds: ArrayLike | int | str | None = None,
    method: str = "auto",
    confidence_levels: float | Sequence[float] = (0.5, 0.9),
) -> ThresholdCurves:
    """Compute metrics at many thresholds, with intervals for the missing labels.

    At each threshold the result has what `evaluate` returns there: mean, intervals, and bounds of every metric, for
    these rows. The probabilities of the missing labels are those of the evaluation; they are not fitted again for each
    threshold.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate` with predictions by a threshold.
    metrics : str, Metric, or a sequence or mapping of these, optional
        Metrics of the confusion matrix: names, `metrics.expected_cost(1, 10)`, your own formulas. Default: precision,
        recall, F1 and accuracy.
    thresholds : None, int, "all" or array-like of float
        None: up to 200 of the distinct scores, half at evenly spread ranks, half denser towards the highest. A whole
        number: that many. "all": every distinct score. The threshold of the evaluation is added to these. An array:
        exactly these thresholds, such as [0.5]. If scores are binned, only the lowest score of each bin can be a
        threshold.
    method : {"auto", "exact", "monte_carlo", "gaussian"}
        "exact" computes the exact distribution at every threshold. "monte_carlo" draws the sums that the metrics depend
        on, for all thresholds at once; its cdf is within 0.01 of the exact one. "gaussian" uses the paper's Gaussian,
        which is inaccurate where few rows decide. "auto" is exact where that takes seconds, drawn for up to 1,000
        thresholds, and Gaussian beyond; the result's `method` is the one that was used.
    confidence_levels : float or sequence of float
        Probabilities of the intervals.

    Returns
    -------
    ThresholdCurves
        A mapping from metric name to `Band`, with `roc()`, `precision_recall()` and `best_threshold()`.

    Notes
    -----
    A row is predicted positive if its score is at or above the threshold. A label model may depend on the threshold:
    the default model selects its posterior draws by the positives among the rows predicted positive. `evaluate` with
    another threshold can therefore differ slightly. `docs/explanation/mathematics.md` describes the computation.

    With many thresholds the time is proportional to thresholds x metrics x posterior draws.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true = [1, 0, None, 1, None, 0, 1, 0]
    >>> y_score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> curves = dm.threshold_curves(result, metrics=["precision", "recall"])
    >>> curves
    <ThresholdCurves of precision, recall at 9 thresholds, exact>
    >>> curves["recall"].mean.round(3).tolist()
    [1.0, 1.0, 1.0, 0.957, 0.694, 0.694, 0.431, 0.431, 0.263]
    >>> print(curves.best_threshold("precision", risk=0.1))
    precision: best at 0.9, where with probability 90% it is 1.000 or better (at the current 0.5: 0.500); better than
    now with probability over 99.9%.
    """
    refuse_classes("threshold_curves", evaluation)
    if not isinstance(evaluation, Evaluation):
        raise InputError("evaluation", f"expected what evaluate(...) returns, got {a_kind_of(evaluation)}")
    if evaluation.scope == "population":
        finding = "it is about the population, and curves are for the rows"
        raise InputError("evaluation", finding, "", "Give evaluation.rows.")
    data = evaluation.data
    if data.threshold is None:
        finding = f"its decisions were given ({named('y_pred')}), so there is no threshold to move"
        raise InputError("evaluation", finding, "", f"Evaluate with scores and {setting('threshold')} instead.")
    levels = tuple(map(float, np.atleast_1d(np.asarray(confidence_levels)).tolist()))
    chosen = curve_metrics(evaluation, DEFAULT_METRICS if metrics is None else metrics)
    grid = _grid(data, thresholds)
    method, swept = sweep(evaluation, chosen, grid, levels_of(levels), method)
    below = np.concatenate(([0], np.cumsum(data.cells.total)))[np.searchsorted(data.cells.score, grid)]
    return ThresholdCurves(
        thresholds=grid,
        bands={metric.name: Band.of(column, levels) for metric, column in zip(chosen, swept, strict=True)},
        confidence_levels=levels,
        current=data.threshold,
        method=method,
        flagged=1.0 - below / data.n_rows,
        metrics={metric.name: metric for metric in chosen},
        evaluation=evaluation,
    )


def _select_scores(n_scores: int, n: int) -> IntArray:
    """Return n indices of sorted scores: half denser towards the highest, the others evenly spread."""
    selected = np.zeros(n_scores, dtype=np.bool_)
    n = min(n, n_scores)
    selected[n_scores - np.rint(np.geomspace(1, n_scores, max(1, n // 2))).astype(np.int64)] = True
    others = np.flatnonzero(~selected)
    more = min(others.size, n - int(selected.sum()))
    if more > 0:
        selected[others[np.rint(np.linspace(0, others.size - 1, more)).astype(np.int64)]] = True
    return np.flatnonzero(selected)


def _grid(data: EvaluationSet, thresholds: Any) -> FloatArray:
    """Return distinct thresholds in increasing order."""
    assert data.threshold is not None
    score, _ = data.cells.tie_ends  # a threshold at the lowest score of a bin does not split the bin
    if thresholds is None:
        thresholds = _THRESHOLDS
    if isinstance(thresholds, str):
        if thresholds != "all":
            raise InputError("thresholds", f"expected None, a number, 'all' or an array, got {thresholds!r}")
        return np.union1d(score, data.threshold)
    if is_number(thresholds) and not is_whole(thresholds):
        number = f"{thresholds:g}"
        fix = f"Give [{number}] for one threshold, or a whole number for how many."
        raise InputError("thresholds", number, "", fix)
    if is_whole(thresholds):
        if thresholds < 1:
            raise InputError("thresholds", f"{thresholds}", "At least one is needed.")
        return np.union1d(score[_select_scores(score.size, int(thresholds))], data.threshold)
    try:
        grid = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError):
        finding = f"expected None, a number, 'all' or an array, got {thresholds!r}"
        raise InputError("thresholds", finding) from None
    if grid.ndim != 1 or grid.size == 0:
        finding = f"expected a one-dimensional array with at least one, got shape {grid.shape}"
        raise InputError("thresholds", finding)
    if (bad := np.flatnonzero(~np.isfinite(grid))).size:
        rule = "All must be finite numbers; one above or below all scores flags none or all."
        raise InputError("thresholds", f"{grid[bad[0]]} at position {bad[0]}", rule)
    data.check_cuts(grid, "thresholds")
    return np.unique(grid)
