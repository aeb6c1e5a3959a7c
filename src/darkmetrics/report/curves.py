"""What a report says along the threshold: metrics of the confusion matrix, ROC, precision-recall, and ROC-AUC."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from darkmetrics.curves import RateCurve, ThresholdCurves
from darkmetrics.curves import threshold_curves as curves_of
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Gaussian
from darkmetrics.metrics import ConfusionMetric, Metric, RankMetric, metrics_from, roc_auc
from darkmetrics.tables import finite, level_text

# Positions of the threshold slider, besides the threshold of the evaluation.
THRESHOLDS = 100


def curve_numbers(
    evaluation: Evaluation, charted: Mapping[str, Metric], ready: ThresholdCurves | None
) -> dict[str, Any]:
    """The metrics of the confusion matrix at every threshold of a grid, and the rates against each other."""
    if evaluation.data.threshold is None:
        return {"absent": "Decisions were given with y_pred, not made by a threshold, so there is no other to try."}
    own: list[Metric] = [metric for metric in charted.values() if isinstance(metric, ConfusionMetric)]
    ranked = any(isinstance(metric, RankMetric) for metric in charted.values())
    absent = None
    if ready is None:
        if not own:
            absent = "None of these metrics depends on the threshold."
            if not ranked:
                return {"absent": absent}
        try:
            # Metrics of ranks have no curve of their own, but a ROC curve.
            ready = _make_curves(evaluation, own or metrics_from("recall"))
        except MethodError as error:
            return {"absent": str(error)}
    level = evaluation.confidence_level
    rates = {
        "roc": _rates(ready.roc, ready.method, level),
        "precision_recall": _rates(ready.precision_recall, ready.method, level),
        "auc": area_under_roc(evaluation),
    }
    if absent is not None:
        return {"absent": absent, "current": float(ready.current), **rates}
    return {
        "absent": None,
        "thresholds": _column(ready.thresholds),
        "flagged": _column(ready.flagged),
        "current": float(ready.current),
        "method": ready.method,
        "confidence_level": level,
        "metrics": {
            name: {
                "mean": _column(band.mean),
                "low": _column(band.intervals[level][0]),
                "high": _column(band.intervals[level][1]),
                "labeled_only": _column(band.labeled_only),
                "lowest_possible": _column(band.lowest_possible),
                "highest_possible": _column(band.highest_possible),
            }
            for name, band in ready.bands.items()
        },
        **rates,
    }


def area_under_roc(evaluation: Evaluation) -> dict[str, Any] | None:
    """ROC-AUC with its interval: as evaluated, from a metric that is a multiple of it (gini), or found here."""
    halves = [
        (name, one) for name, one in evaluation.metrics.items() if isinstance(one, RankMetric) and not one.full_ties
    ]
    if halves:
        name, metric = min(halves, key=lambda both: both[1].scale)  # ROC-AUC itself where it is there
        distribution, labeled_only = evaluation[name], evaluation.labeled_only[name]
    else:
        metric = roc_auc()
        try:
            functional = metric.bind(evaluation.data, np.nan)
            rng = np.random.default_rng(0)  # draws equal those of an evaluation of ROC-AUC without a seed
            distribution = next(evaluation.method.distributions([functional], evaluation.posterior, rng=rng))
        except MethodError:
            return None
        labeled_only = metric.value(evaluation.data) if evaluation.data.n_labeled else np.nan
    values = (distribution.mean(), *distribution.interval(evaluation.confidence_level), labeled_only)
    return {
        key: finite((value - metric.shift) / metric.scale)
        for key, value in zip(("mean", "low", "high", "labeled_only"), values, strict=True)
    }


def check_curves(evaluation: Evaluation, curves: Any) -> None:
    """What the page says about curves is true only of those of this evaluation, at its confidence level."""
    if not isinstance(curves, ThresholdCurves):
        raise InputError("curves", f"expected what threshold_curves returns, got {type(curves).__name__}")
    if curves.evaluation is not evaluation.rows:
        raise InputError("curves", "they were made from another evaluation", "", "Make them from this one.")
    level = evaluation.confidence_level
    if level not in curves.confidence_levels:
        others = " and ".join(map(level_text, curves.confidence_levels))
        finding = f"their intervals are of {others}, those of the evaluation of {level_text(level)}"
        raise InputError("curves", finding, "", f"Make them with confidence_levels=[{level:.10g}].")


def _rates(make: Callable[[], RateCurve], method: str, level: float) -> dict[str, Any] | None:
    """Two rates against each other as the threshold rises."""
    try:
        rates = make()
    except InputError:  # a metric that does not depend on the threshold was given the name of a rate
        return None
    low, high = rates.y.intervals[level]
    return {
        "method": method,
        "thresholds": _column(rates.thresholds),
        "x": _column(rates.x.mean),
        "mean": _column(rates.y.mean),
        "low": _column(low),
        "high": _column(high),
        "labeled_only_x": _column(rates.x.labeled_only),
        "labeled_only": _column(rates.y.labeled_only),
    }


def _column(values: Any) -> list[float | None]:
    return [finite(value) for value in np.asarray(values, dtype=np.float64)]


def _make_curves(evaluation: Evaluation, metrics: list[Metric]) -> ThresholdCurves:
    """Return the curves of a report, by the method of the evaluation if that is the Gaussian."""
    method = "gaussian" if isinstance(evaluation.method, Gaussian) else "auto"
    levels = (evaluation.confidence_level,)
    return curves_of(evaluation, metrics=metrics, thresholds=THRESHOLDS, method=method, confidence_levels=levels)
