"""Metrics as data: records in a registry, one formula each.

Import rule: a metric knows evaluation sets and functionals; it knows no method and no label model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.metrics.callables import CallableMetric, metric_from_callable, negate
from darkmetrics.metrics.class_names import class_cost, list_class_metrics, top_k_accuracy
from darkmetrics.metrics.classes import MatrixMetric
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS, expected_cost, fbeta
from darkmetrics.metrics.metric import (
    Family,
    Metric,
    accept_metric,
    aliases,
    list_metrics,
    metric_from_text,
    register_metric,
    registered,
    registered_names,
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
from darkmetrics.metrics.scoring import SCORING_METRICS, LossMetric
from darkmetrics.metrics.unlisted import ALIASES, METRICS_NOT_IN_ALL
from darkmetrics.wording import code

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
    "registered_names",
    "roc_auc",
    "top_k_accuracy",
]

DEFAULT_METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
"""Metrics that `evaluate` computes by default."""

for _record in (*CONFUSION_METRICS, *RANKING_METRICS, *SCORING_METRICS):
    register_metric(_record)
for _metric in METRICS_NOT_IN_ALL:
    accept_metric(_metric)
for _alias, _name in ALIASES.items():
    accept_metric(replace(metric_from_text(_name), name=_alias), alias_of=_name)
for _name, _loss in {"neg_brier_score": "brier", "neg_log_loss": "log_loss"}.items():
    _negated = negate(metric_from_text(_loss))
    assert _negated is not None
    accept_metric(replace(_negated, name=_name))


def metrics_from(metrics: object) -> list[Metric]:
    """Return the metrics that a name, a record, a callable, or a sequence or mapping of these stands for.

    "all", alone or in a sequence, stands for every registered metric that needs no parameter, and no scores that are
    probabilities.
    """
    if isinstance(metrics, Mapping):
        chosen = [_named_metric(str(name), metric) for name, metric in metrics.items()]
    elif isinstance(metrics, (str, Metric, Family)) or callable(metrics):
        chosen = _metrics_of(metrics)
    elif isinstance(metrics, Sequence) or hasattr(metrics, "__iter__"):
        chosen = [metric for item in metrics for metric in _metrics_of(item)]
    else:
        raise InputError("metrics", repr(metrics), "It must be names or metrics.")
    if not chosen:
        raise InputError("metrics", "none", "", f"Pass at least one. {code('list_metrics()')} shows all.")
    names = [metric.name for metric in chosen]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError("metrics", f"{repeated!r} is passed twice", "", "Pass it once.")
    return chosen


def _metrics_of(item: Any) -> list[Metric]:
    if isinstance(item, str) and item == "all":
        return [metric_from_text(name) for name in registered_names() if _needs_nothing(registered(name))]
    return [_metric_from(item)]


def _needs_nothing(record: Metric | Family) -> bool:
    """Return whether a metric takes any scores, and no parameter."""
    if isinstance(record, Family):
        return not record.needs_argument
    return not (isinstance(record, LossMetric) and record.needs_probabilities)


def _metric_from(item: Any) -> Metric:
    if isinstance(item, Metric):
        return item
    if isinstance(item, Family):
        return metric_from_text(item.name)
    if isinstance(item, str):
        return metric_from_text(item)
    if callable(item):
        return metric_from_callable(item)
    raise InputError("metrics", repr(item), "It must be a name, a Metric or a function f(y_true, y_score).")


def _named_metric(name: str, item: Any) -> Metric:
    if callable(item) and not isinstance(item, Metric):
        return metric_from_callable(item, name)
    return replace(_metric_from(item), name=name)
