"""Find metrics of several classes by name."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike
from darkmetrics.constraints import is_whole
from darkmetrics.data.class_set import ClassSet
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.metrics.classes import (
    AucMetric,
    AverageMetric,
    ClassLossMetric,
    ClassMetric,
    EventMetric,
    KappaMetric,
    MccMetric,
    PairAucMetric,
)
from darkmetrics.metrics.confusion import FN, FP, TP, ConfusionMetric, Linear, Ratio
from darkmetrics.metrics.metric import UNIT, Metric, metric_from_text
from darkmetrics.wording import code

DEFAULT_CLASS_METRICS = ("accuracy", "balanced_accuracy", "f1_macro", "mcc", "roc_auc_ovr")
"""What is evaluated for several classes if no metrics are passed."""

# One metric of several classes: its name or its record.
ClassMetricLike: TypeAlias = str | ClassMetric
ClassMetricsLike: TypeAlias = ClassMetricLike | Sequence[ClassMetricLike] | Mapping[str, ClassMetricLike]

_ACCURACY = Ratio(TP, TP + FP)
_AVERAGES = ("macro", "micro", "weighted")


def _event(name: str, formula: Ratio, *, better: Any = "higher", meaning: str, **event: Any) -> EventMetric:
    """Return a metric of the rows with an event, all of which are predicted positive."""
    binary = ConfusionMetric(name=name, formula=formula, range=UNIT, direction=(1 if better == "higher" else -1, 0))
    return EventMetric(name=name, binary=binary, meaning=meaning, better=better, **{"event": "correct", **event})


def _log_loss(data: ClassSet) -> FloatArray:
    eps = float(np.finfo(np.float64).eps)  # as in scikit-learn
    return np.asarray(-np.log(np.clip(_probabilities(data, "log_loss"), eps, 1.0 - eps)))


def _brier(data: ClassSet) -> FloatArray:
    score = _probabilities(data, "brier")
    loss = (score**2).sum(axis=1, keepdims=True) - 2.0 * score + 1.0
    return np.asarray(0.5 * loss if data.n_classes == 2 else loss)  # as in scikit-learn


def _probabilities(data: ClassSet, name: str) -> FloatArray:
    score = data.cells.score
    low, high = float(score.min(initial=0.0)), float(score.max(initial=0.0))
    if low < 0.0 or high > 1.0:
        bad = low if low < 0.0 else high
        raise InputError("metrics", f"{name!r} needs scores that are probabilities, found {bad:g}")
    return score


def _cost(matrix: FloatArray, data: ClassSet) -> FloatArray:
    if matrix.shape != (data.n_classes, data.n_classes):
        raise InputError(
            "cost",
            f"a table of shape {matrix.shape}",
            f"It must have a row for each of the {data.n_classes} labels and a column for each prediction.",
        )
    return np.asarray(matrix.T[data.cells.decision])


def class_cost(cost: ArrayLike) -> ClassLossMetric:
    """Return the mean cost of a row; `cost[label][prediction]` has the cost of each outcome.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.metrics.class_cost([[0, 1, 5], [1, 0, 5], [2, 2, 0]]).name
    'expected_cost'
    """
    matrix = np.asarray(cost, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        finding = f"a table of shape {matrix.shape}" if np.isfinite(matrix).all() else "a value that is not finite"
        rule = "It must be a square table of finite numbers, with a row per label and a column per prediction."
        raise InputError("cost", finding, rule)
    return ClassLossMetric(
        name="expected_cost",
        loss=partial(_cost, matrix),
        better="lower",
        range=(float(matrix.min()), float(matrix.max())),
        meaning="mean cost of a row",
    )


def top_k_accuracy(k: int = 2) -> EventMetric:
    """Return the fraction of rows whose label is among the k classes with the highest scores.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.metrics.top_k_accuracy(3).name
    'top_k_accuracy(3)'
    """
    if not is_whole(k) or k < 1:
        raise InputError("k", repr(k), "It must be a whole number of at least 1.")
    meaning = f"fraction of rows whose label is among the {k} highest scores"
    return _event(f"top_k_accuracy({k})", _ACCURACY, event="top", k=int(k), meaning=meaning)


def _area(name: str, *, against_rest: bool, is_weighted: bool) -> ClassMetric:
    metric: Any = AucMetric if against_rest else PairAucMetric
    pairs = "each class against the rest" if against_rest else "each pair of classes"
    average = "weighted by class size" if is_weighted else "all counting alike"
    result: ClassMetric = metric(name=name, is_weighted=is_weighted, meaning=f"mean ROC-AUC of {pairs}, {average}")
    return result


_KAPPA = "agreement of prediction and label beyond chance"
_NAMED: dict[str, ClassMetric] = {
    metric.name: metric
    for metric in (
        _event("accuracy", _ACCURACY, meaning="fraction of rows that are predicted correctly"),
        AverageMetric(
            name="balanced_accuracy",
            binary=ConfusionMetric(name="recall", formula=TP / (TP + FN), range=UNIT, direction=(1, -1)),
            only_present=True,
            meaning="mean recall of the classes that have a row",
        ),
        MccMetric(name="mcc", range=(-1.0, 1.0), undefined_as=0.0, meaning="correlation of prediction and label"),
        KappaMetric(name="cohen_kappa", range=(-1.0, 1.0), meaning=_KAPPA),
        KappaMetric(name="cohen_kappa_linear", power=1, range=(-1.0, 1.0), meaning=f"{_KAPPA}, by distance"),
        KappaMetric(name="cohen_kappa_quadratic", power=2, range=(-1.0, 1.0), meaning=f"{_KAPPA}, by squared distance"),
        top_k_accuracy(2),
        _event("zero_one", Ratio(FP, TP + FP), better="lower", meaning="fraction of rows that are predicted wrongly"),
        _event("hamming", Ratio(FP, TP + FP), better="lower", meaning="fraction of rows that are predicted wrongly"),
        ClassLossMetric(
            name="log_loss",
            loss=_log_loss,
            better="lower",
            range=(0.0, np.inf),
            meaning="mean surprise of the label under the scores, in nats",
        ),
        ClassLossMetric(
            name="brier",
            loss=_brier,
            better="lower",
            range=(0.0, 2.0),
            meaning="mean squared distance between scores and label",
        ),
        _area("roc_auc_ovr", against_rest=True, is_weighted=False),
        _area("roc_auc_ovr_weighted", against_rest=True, is_weighted=True),
        _area("roc_auc_ovo", against_rest=False, is_weighted=False),
        _area("roc_auc_ovo_weighted", against_rest=False, is_weighted=True),
    )
}
_ALIASES = {
    "roc_auc": "roc_auc_ovr",
    "auc": "roc_auc_ovr",
    "matthews_corrcoef": "mcc",
    "kappa": "cohen_kappa",
    "top_k_accuracy": "top_k_accuracy(2)",
    "neg_log_loss": "log_loss",
}


def list_class_metrics() -> list[str]:
    """Return the names of the metrics of several classes.

    Any metric of the confusion matrix of two classes has averages, such as "precision_macro", "recall_weighted" and
    "f1_micro". Any metric of two classes can be that of one class, such as "recall[cat]". "confusion[cat,dog]" is the
    weight of rows with label cat that are predicted as dog.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.metrics.list_class_metrics()[:3]
    ['accuracy', 'balanced_accuracy', 'mcc']
    """
    return list(_NAMED)


def _average(binary: Metric, average: str) -> ClassMetric:
    """Return the macro, micro or weighted average of a metric of the confusion matrix of two classes."""
    name = f"{binary.name}_{average}"
    if not isinstance(binary, ConfusionMetric):
        finding = f"{name!r} is not available, because only metrics of the confusion matrix have averages"
        raise InputError("metrics", finding)
    facts: dict[str, Any] = {"better": binary.better, "range": binary.range, "undefined_as": binary.undefined_as}
    if average != "micro":
        weighted = average == "weighted"
        meaning = f"mean over classes{', weighted by class size' if weighted else ''}: {binary.meaning}"
        return AverageMetric(name=name, binary=binary, is_weighted=weighted, meaning=meaning, **facts)
    if not isinstance(binary.formula, Ratio):
        finding = f"{name!r} is not available, because only ratios of counts have a micro average"
        raise InputError("metrics", finding)
    numerator, denominator = (_pool(sum_) for sum_ in (binary.formula.numerator, binary.formula.denominator))
    pooled = ConfusionMetric(name=name, formula=numerator / denominator, range=binary.range, direction=(None, 0))
    # A correct row is one true positive; a wrong one is a false positive and a false negative.
    return EventMetric(
        name=name, binary=pooled, event="correct", meaning=f"pooled over classes: {binary.meaning}", **facts
    )


def _pool(counts: Linear) -> Linear:
    """Return a sum of counts pooled over classes, as a sum of correct (tp) and wrong (fp) rows."""
    if counts.tn:
        finding = "a metric that counts true negatives has no micro average"
        raise InputError("metrics", finding, "", "Use a macro average.")
    return Linear(tp=counts.tp, fp=counts.fp + counts.fn)


def _class_index(text: str, classes: Sequence[Any]) -> int:
    names = [str(name) for name in classes]
    if text.strip() not in names:
        raise unknown_name("metrics", "class", text.strip(), names)
    return names.index(text.strip())


def _of_class(name: str, inside: str, classes: Sequence[Any]) -> ClassMetric:
    """Return the metric of one class, or one entry of the confusion matrix."""
    if name == "confusion":
        label, separator, predicted = inside.partition(",")
        if not separator:
            fix = "Name label and prediction, such as 'confusion[cat,dog]'."
            raise InputError("metrics", f"'confusion[{inside}]'", "", fix)
        i, j = (_class_index(text, classes) for text in (label, predicted))
        name = f"confusion[{classes[i]},{classes[j]}]"
        counted = f"rows with label {classes[i]} that are predicted as {classes[j]}"
        event: dict[str, Any] = {"event": "cell", "label": i, "predicted": j, "range": (0.0, np.inf)}
        better: Any = "higher" if i == j else "lower"
        return EventMetric(name=name, binary=metric_from_text("tp"), better=better, meaning=counted, **event)
    binary, k = metric_from_text(name), _class_index(inside, classes)
    return EventMetric(
        name=f"{binary.name}[{classes[k]}]",
        binary=binary,
        event="class",
        label=k,
        meaning=f"{binary.meaning}, where positive is {classes[k]}",
        better=binary.better,
        range=binary.range,
        undefined_as=binary.undefined_as,
    )


def class_metric_from_text(text: str, classes: Sequence[Any]) -> ClassMetric:
    """Return the metric for a name such as "f1_macro", "recall[cat]" or "top_k_accuracy(3)".

    A metric of two classes without an average, such as "recall", becomes its macro average.
    """
    bracket = re.fullmatch(r"\s*([^\[\]]+)\[(.+)\]\s*", text)
    if bracket:
        return _of_class(bracket[1].strip(), bracket[2], classes)
    plain = re.sub(r"[\s-]+", "_", text.strip().lower())
    call = re.fullmatch(r"top_k_accuracy(?:_score)?\((.*)\)", plain)
    if call:
        try:
            k = ast.literal_eval(call[1].strip("_").removeprefix("k="))
        except (SyntaxError, ValueError):
            raise InputError("metrics", f"cannot read {text!r}", "", "Write it like 'top_k_accuracy(3)'.") from None
        return top_k_accuracy(k)
    for spelling in (plain, *(plain.removesuffix(ending) for ending in ("_score", "_score_loss", "_loss"))):
        name = _ALIASES.get(spelling, spelling)
        if name in _NAMED:
            return _NAMED[name]
    stem, _, average = plain.rpartition("_")
    if average in _AVERAGES:
        return _average(metric_from_text(stem.removesuffix("_score")), average)
    try:
        binary = metric_from_text(text)
    except InputError:
        choices = [*_NAMED, "precision_macro", "recall_macro", "f1_macro", "f1_micro", "f1_weighted", "recall[class]"]
        raise unknown_name(
            "metrics", "metric", text, choices, f"{code('metrics.list_class_metrics()')} shows all."
        ) from None
    if isinstance(binary, ConfusionMetric):
        return _average(binary, "macro")
    raise InputError(
        "metrics",
        f"{binary.name!r} is a metric of two classes",
        "",
        f"Name the class that is positive, such as '{binary.name}[{classes[0]}]'.",
    )


def class_metrics_from(metrics: Any, classes: Sequence[Any]) -> list[ClassMetric]:
    """Return the metrics of several classes for a name, a record, or a sequence or mapping of these."""
    if isinstance(metrics, Mapping):
        chosen = [replace(_one_metric(metric, classes), name=str(name)) for name, metric in metrics.items()]
    elif isinstance(metrics, (str, ClassMetric)) or callable(metrics):
        chosen = [_one_metric(metrics, classes)]
    elif isinstance(metrics, Sequence) or hasattr(metrics, "__iter__"):
        chosen = [_one_metric(metric, classes) for metric in metrics]
    else:
        raise InputError("metrics", repr(metrics), "It must be names or metrics.")
    if not chosen:
        fix = f"Pass at least one. {code('metrics.list_class_metrics()')} shows all."
        raise InputError("metrics", "none given", "", fix)
    names = [metric.name for metric in chosen]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError("metrics", f"{repeated!r} is asked for twice", "", "Pass it once.")
    return chosen


def _one_metric(metric: Any, classes: Sequence[Any]) -> ClassMetric:
    if isinstance(metric, str):
        return class_metric_from_text(metric, classes)
    if isinstance(metric, ClassMetric):
        return metric
    if isinstance(metric, ConfusionMetric):
        return replace(_average(metric, "macro"), name=metric.name)
    raise InputError(
        "metrics",
        f"{metric!r} is no metric of several classes",
        "",
        "Pass a name such as 'f1_macro', or metrics.MatrixMetric(name=..., formula=...) for a formula of the confusion "
        "matrix.",
    )
