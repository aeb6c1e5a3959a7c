"""curves(): every metric at many thresholds, from one evaluation."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._text import a_kind_of
from darkmetrics.argument_types import ArrayLike
from darkmetrics.calls import suggest_call
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.curves.bands import Band, levels_of
from darkmetrics.curves.result import ThresholdCurves
from darkmetrics.curves.sweep import curve_metrics, sweep
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number, is_whole
from darkmetrics.distributions import check_level
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import MetricsLike

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
        What `evaluate` returned, for decisions by a threshold.
    metrics : str, Metric, or a sequence or mapping of these, optional
        Metrics of the confusion matrix: names, `metrics.expected_cost(1, 10)`, formulas of your own. By default
        precision, recall, F1 and accuracy.
    thresholds : None, int, "all" or array-like of float
        None: up to 200 of the different scores, half evenly spread over their ranks, half denser towards the highest;
        the best threshold is the best of these. A whole number: that many. "all": every different score. To these the
        evaluation's own threshold is added. An array: just those, [0.5] for one. Where scores are in buckets, the
        lowest score of each bucket is what can be a threshold, and none may lie inside one.
    method : {"auto", "exact", "monte_carlo", "gaussian"}
        "exact" computes the exact distribution at every threshold. "monte_carlo" draws the sums that the metrics depend
        on, for all thresholds at once; its cdf is within 0.01 of the exact one. "gaussian" uses the paper's Gaussian,
        which is inaccurate where few rows decide. "auto" is exact where that takes seconds, drawn for up to 1,000
        thresholds, and Gaussian beyond; the result's `method` is the one that was used.
    confidence_levels : float or sequence of float
        Probabilities of the intervals.

    Returns
    -------
    Curves
        A mapping from metric name to `Band`, with `roc()`, `precision_recall()` and `best_threshold()`.

    Notes
    -----
    A row is flagged when its score is at or above the threshold. A label model that learns may itself look at the
    threshold (the default one chooses the curves that stand for its posterior by how many flagged rows they make
    positive), so that `evaluate` with another threshold and the model fitted anew can differ a little. How the bands
    are computed is in `docs/explanation/mathematics.md`.

    With many thresholds the time is in proportion to thresholds times metrics times posterior draws.

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
        raise InputError(f"evaluation: expected what evaluate(...) returns, got {a_kind_of(evaluation)}.")
    if evaluation.scope == "population":
        raise InputError("evaluation: it is about the population, and curves are for the rows. Give evaluation.rows.")
    data = evaluation.data
    if data.threshold is None:
        raise InputError(
            "evaluation: its decisions were given (y_pred), so there is no threshold to move. "
            "Evaluate with scores and threshold= instead."
        )
    levels = _checked_levels(confidence_levels)
    chosen = curve_metrics(evaluation, DEFAULT_METRICS if metrics is None else metrics)
    grid = _grid(data, thresholds)
    found, swept = sweep(evaluation, chosen, grid, levels_of(levels), method)
    below = np.concatenate(([0], np.cumsum(data.cells.total)))[np.searchsorted(data.cells.score, grid)]
    return ThresholdCurves(
        thresholds=grid,
        bands={metric.name: Band.of(column, levels) for metric, column in zip(chosen, swept, strict=True)},
        confidence_levels=levels,
        current=data.threshold,
        method=found,
        flagged=1.0 - below / data.n_rows,
        metrics={metric.name: metric for metric in chosen},
        evaluation=evaluation,
    )


def _checked_levels(levels: Any) -> tuple[float, ...]:
    if is_number(levels):
        levels = [levels]
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        raise InputError(f"confidence_levels: expected a number or several, such as (0.5, 0.9), got {levels!r}.")
    checked = tuple(check_level(level, "confidence_levels") for level in levels)
    if not checked:
        raise InputError("confidence_levels: none given. Name at least one, such as 0.9.")
    if len(set(checked)) != len(checked):
        raise InputError(f"confidence_levels: {levels!r} names one twice.")
    return checked


def _places(n_scores: int, wanted: int) -> IntArray:
    """So many places among sorted scores: half denser towards the top, where decisions are made, the rest even."""
    taken = np.zeros(n_scores, dtype=np.bool_)
    wanted = min(wanted, n_scores)
    taken[n_scores - np.rint(np.geomspace(1, n_scores, max(1, wanted // 2))).astype(np.int64)] = True
    left = np.flatnonzero(~taken)
    more = min(left.size, wanted - int(taken.sum()))
    if more > 0:
        taken[left[np.rint(np.linspace(0, left.size - 1, more)).astype(np.int64)]] = True
    return np.flatnonzero(taken)


def _grid(data: EvaluationSet, thresholds: Any) -> FloatArray:
    """The thresholds asked for, in rising order and each once."""
    assert data.threshold is not None
    score, _ = data.cells.tie_ends  # the lowest score of a bucket: as a threshold, it cuts none
    if thresholds is None:
        thresholds = _THRESHOLDS
    if isinstance(thresholds, str):
        if thresholds != "all":
            raise InputError(f"thresholds: expected None, a number, 'all' or an array, got {thresholds!r}.")
        return np.union1d(score, data.threshold)
    if is_number(thresholds) and not is_whole(thresholds):
        one = f"{thresholds:g}"
        raise InputError(f"thresholds: {one}. Give [{one}] for one threshold, or a whole number for how many.")
    if is_whole(thresholds):
        if thresholds < 1:
            raise InputError(f"thresholds: {thresholds}. At least one is needed.")
        return np.union1d(score[_places(score.size, int(thresholds))], data.threshold)
    try:
        given = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"thresholds: expected None, a number, 'all' or an array, got {thresholds!r}.") from None
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"thresholds: expected a one-dimensional array with at least one, got shape {given.shape}.")
    if (bad := np.flatnonzero(~np.isfinite(given))).size:
        where = f"thresholds: {given[bad[0]]} at position {bad[0]}."
        raise InputError(f"{where} All must be finite numbers; one above or below all scores flags none or all.")
    data.check_cuts(given, "thresholds")
    return np.unique(given)
