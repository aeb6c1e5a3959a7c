"""Results by class: metrics of each class or label, and the confusion matrix with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from darkmetrics.data.class_set import ClassSet
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.methods.classes import class_distributions
from darkmetrics.metrics.class_names import class_metric_from_text
from darkmetrics.metrics.metric import metric_from_text
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.result import Result
from darkmetrics.tables import decimals_for, finite, interval_text, level_text, number_text

# Classes with fewer labels are marked.
FEW_LABELS = 20
# Classes of a confusion matrix at most.
_MAX_CLASSES = 50


@dataclass(frozen=True, eq=False, repr=False)
class PerClass(Result):
    """Metrics of each class or label.

    Attributes
    ----------
    n_labeled : mapping from class to int
        Labeled rows of each class; of several labels per row, rows whose label is known.
    distributions : mapping from class to mapping from metric to MetricDistribution
        The distribution of each metric.
    labeled_only : mapping from class to mapping from metric to float
        The metrics on the labeled rows alone.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"cat": [0.7, 0.2, 0.1], "dog": [0.2, 0.7, 0.3], "fish": [0.1, 0.1, 0.6]}
    >>> fixed = dm.missing.Fixed([[0.25, 0.25, 0.5]])
    >>> result = dm.evaluate(["cat", "dog", None], scores, missingness=fixed, metrics="accuracy")
    >>> [(record["class"], round(record["mean"], 3)) for record in result.per_class("recall").to_records()]
    [('cat', 0.875), ('dog', 0.875), ('fish', 0.5)]
    """

    n_labeled: Mapping[str, int]
    distributions: Mapping[str, Mapping[str, MetricDistribution]]
    labeled_only: Mapping[str, Mapping[str, float]]
    confidence_level: float = 0.9

    _plot: ClassVar[str] = "plotting.classes:plot_per_class"

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics."""
        return list(next(iter(self.distributions.values())))

    def to_records(self) -> list[dict[str, Any]]:
        return [
            {
                "class": name,
                "metric": metric,
                "n_labeled": self.n_labeled[name],
                "few_labels": self.n_labeled[name] < FEW_LABELS,
                "labeled_only": finite(self.labeled_only[name][metric]),
                **distribution.to_dict(self.confidence_level),
            }
            for name, distributions in self.distributions.items()
            for metric, distribution in distributions.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "darkmetrics.per_class/1", "records": self.to_records()}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        level = level_text(self.confidence_level)
        header = ["", "labels", *(text for metric in self.metrics for text in (metric, f"{level} interval"))]
        rows = []
        for name, distributions in self.distributions.items():
            cells = [name, f"{self.n_labeled[name]:,}{'*' if self.n_labeled[name] < FEW_LABELS else ''}"]
            for distribution in distributions.values():
                interval = distribution.interval(self.confidence_level)
                decimals = decimals_for(interval.high - interval.low)
                cells += [number_text(distribution.mean(), decimals), interval_text(interval, decimals)]
            rows.append(cells)
        return header, rows

    def _notes(self) -> list[str]:
        return [f"* fewer than {FEW_LABELS} labels"] if min(self.n_labeled.values()) < FEW_LABELS else []


@dataclass(frozen=True, eq=False, repr=False)
class ConfusionMatrix(Result):
    """The confusion matrix with the distribution of each entry: labels are rows, predictions are columns.

    Attributes
    ----------
    classes : sequence of str
        Names of the classes.
    entries : sequence of sequences of MetricDistribution
        Weight of the rows with each label (outer) and prediction (inner).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    >>> print(result.confusion_matrix())
              predicted 0   predicted 1
    label 0        1 1..1      0.4 0..1
    label 1        1 1..1      1.6 1..2
    """

    classes: Sequence[str]
    entries: Sequence[Sequence[MetricDistribution]]
    confidence_level: float = 0.9

    _plot: ClassVar[str] = "plotting.classes:plot_confusion"

    @property
    def mean(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Expected weight of the rows of each label and prediction."""
        return np.array([[entry.mean() for entry in row] for row in self.entries])

    def entry_text(self, label: int, prediction: int) -> tuple[str, str]:
        """Return mean and interval of an entry as text."""
        entry = self.entries[label][prediction]
        low, high = entry.interval(self.confidence_level)
        return f"{entry.mean():,.4g}", f"{low:,.5g}..{high:,.5g}"

    def to_records(self) -> list[dict[str, Any]]:
        return [
            {"label": label, "prediction": prediction, **entry.to_dict(self.confidence_level)}
            for label, row in zip(self.classes, self.entries, strict=True)
            for prediction, entry in zip(self.classes, row, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "darkmetrics.confusion_matrix/1", "records": self.to_records()}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        k = range(len(self.classes))
        rows = [[f"label {self.classes[i]}", *(" ".join(self.entry_text(i, j)) for j in k)] for i in k]
        return ["", *(f"predicted {name}" for name in self.classes)], rows


def per_class(result: Evaluation, data: ClassSet, posterior: ClassPosterior, metrics: str | Sequence[str]) -> PerClass:
    """Return metrics of each class of an evaluation of several classes."""
    if not isinstance(metrics, (str, list, tuple)):
        raise InputError("metrics", repr(metrics), "Pass one name or a list of names, such as 'recall'.")
    names = [metric_from_text(name).name for name in ([metrics] if isinstance(metrics, str) else metrics)]
    if not names:
        raise InputError("metrics", "none given", "", "Pass at least one, such as 'recall'.")
    records = [class_metric_from_text(f"{name}[{k}]", data.classes) for k in data.classes for name in names]
    functionals = [metric.bind(data, metric.undefined_as) for metric in records]
    computed = class_distributions(result.method, functionals, posterior, data.missing_counts, 0)
    classes = [str(k) for k in data.classes]
    distributions = {k: {name: next(computed) for name in names} for k in classes}
    values = iter(metric.value(data, metric.undefined_as) if data.n_labeled else np.nan for metric in records)
    labeled_only = {k: {name: next(values) for name in names} for k in classes}
    n_labeled = {k: int(n) for k, n in zip(classes, data.label_counts, strict=True)}
    return PerClass(n_labeled, distributions, labeled_only, result.confidence_level)


def class_confusion(result: Evaluation, data: ClassSet, posterior: ClassPosterior) -> ConfusionMatrix:
    """Return the confusion matrix of an evaluation of several classes."""
    if data.n_classes > _MAX_CLASSES:
        raise InputError("confusion_matrix", f"{data.n_classes} classes", f"At most {_MAX_CLASSES} are shown.")
    names = [str(name) for name in data.classes]
    records = [class_metric_from_text(f"confusion[{i},{j}]", data.classes) for i in names for j in names]
    functionals = [metric.bind(data, metric.undefined_as) for metric in records]
    computed = class_distributions(result.method, functionals, posterior, data.missing_counts, 0)
    return ConfusionMatrix(names, [[next(computed) for _ in names] for _ in names], result.confidence_level)


def binary_confusion(result: Evaluation) -> ConfusionMatrix:
    """Return the confusion matrix of an evaluation of two classes, negatives first."""
    rows, posterior = result.posterior.without_strata(result.data)
    records = [[metric_from_text(name) for name in row] for row in (("tn", "fp"), ("fn", "tp"))]
    functionals = [metric.bind(rows, np.nan) for row in records for metric in row]
    computed = result.method.distributions(functionals, posterior, rng=0)
    return ConfusionMatrix(("0", "1"), [[next(computed) for _ in row] for row in records], result.confidence_level)
