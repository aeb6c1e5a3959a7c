"""Metrics as data: records in a registry, one formula each.

Import rule: a metric knows evaluation sets and functionals; it knows no method and no label model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.metrics.class_names import class_cost, list_class_metrics, top_k_accuracy
from darkmetrics.metrics.classes import MatrixMetric
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS, expected_cost, fbeta
from darkmetrics.metrics.metric import (
    Family,
    Metric,
    aliases,
    list_metrics,
    metric_from_text,
    register_metric,
    registered,
    understand,
)
from darkmetrics.metrics.ranking import (
    RANKING_METRICS,
    RankMetric,
    TopMetric,
    gini,
    lift_at_k,
    precision_at_k,
    recall_at_k,
    roc_auc,
)
from darkmetrics.metrics.scoring import SCORING_METRICS, CallableMetric, LossMetric, metric_from_callable
from darkmetrics.metrics.unlisted import OTHER_NAMES, UNLISTED_METRICS

__all__ = [
    "DEFAULT_METRICS",
    "FN",
    "FP",
    "TN",
    "TP",
    "CallableMetric",
    "ConfusionMetric",
    "Family",
    "LossMetric",
    "MatrixMetric",
    "Metric",
    "RankMetric",
    "TopMetric",
    "aliases",
    "class_cost",
    "expected_cost",
    "fbeta",
    "gini",
    "lift_at_k",
    "list_class_metrics",
    "list_metrics",
    "metrics_from",
    "precision_at_k",
    "recall_at_k",
    "register_metric",
    "registered",
    "roc_auc",
    "top_k_accuracy",
]

DEFAULT_METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
"""What is evaluated when nothing is said."""

for _record in (*CONFUSION_METRICS, *RANKING_METRICS, *SCORING_METRICS):
    register_metric(_record)
for _unlisted in UNLISTED_METRICS:
    understand(_unlisted)
for _alias, _name in OTHER_NAMES.items():
    understand(replace(metric_from_text(_name), name=_alias), alias_of=_name)


def metrics_from(metrics: object) -> list[Metric]:
    """The metrics that a name, a record, a callable, or a sequence or mapping of these stands for.

    "all", alone or in a sequence, stands for every listed metric that needs no parameter, and no scores that are
    probabilities.
    """
    if isinstance(metrics, Mapping):
        chosen = [_named(str(name), metric) for name, metric in metrics.items()]
    elif isinstance(metrics, (str, Metric, Family)) or callable(metrics):
        chosen = _meant(metrics)
    elif isinstance(metrics, Sequence) or hasattr(metrics, "__iter__"):
        chosen = [one for metric in metrics for one in _meant(metric)]
    else:
        raise InputError(f"metrics: expected names or metrics, got {metrics!r}.")
    if not chosen:
        raise InputError("metrics: none given. Name at least one; list_metrics() shows all.")
    names = [metric.name for metric in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"metrics: {twice!r} is asked for twice.")
    return chosen


def _meant(metric: Any) -> list[Metric]:
    if isinstance(metric, str) and metric == "all":
        return [metric_from_text(name) for name in list_metrics() if _of_any(registered(name))]
    return [_one(metric)]


def _of_any(record: Metric | Family) -> bool:
    """Whether a metric takes any scores, and no parameter."""
    if isinstance(record, Family):
        return not record.needs_argument
    return not (isinstance(record, LossMetric) and record.needs_probabilities)


def _one(metric: Any) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, Family):
        return metric_from_text(metric.name)
    if isinstance(metric, str):
        return metric_from_text(metric)
    if callable(metric):
        return metric_from_callable(metric)
    raise InputError(f"metrics: expected a name, a Metric or a callable f(y_true, y_score), got {metric!r}.")


def _named(name: str, metric: Any) -> Metric:
    if callable(metric) and not isinstance(metric, Metric):
        return metric_from_callable(metric, name)
    return replace(_one(metric), name=name)
