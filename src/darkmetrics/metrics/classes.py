"""Metrics of several classes: names and values as in scikit-learn, one record each.

A metric of one class, accuracy, micro averages and top-k accuracy depend on one event per row, so they are metrics of
two classes. Averages over classes are functions of sums.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.class_sums import ClassFunctional, Event
from darkmetrics.distributions.functional import Extremes
from darkmetrics.metrics.class_formulas import (
    AucAverage,
    Average,
    Kappa,
    MatrixFormula,
    Mcc,
    Total,
    average_extremes,
    kappa_extremes,
    total_extremes,
)
from darkmetrics.metrics.class_sums import (
    correct_sums,
    kappa_marks,
    loss_sums,
    matrix_sums,
    pair_sums,
    predicted_weight,
    rank_sums,
    top_classes,
    total_weight,
)
from darkmetrics.metrics.confusion import ConfusionMetric
from darkmetrics.metrics.metric import UNIT, Metric, MetricRecord
from darkmetrics.metrics.ranking import RankMetric


@dataclass(frozen=True, kw_only=True)
class ClassMetric(MetricRecord, ABC):
    """A metric of several classes as data."""

    range: tuple[float, float] = UNIT

    @abstractmethod
    def bind(self, data: ClassSet, fill: float) -> ClassFunctional | Event:
        """Return the metric on these rows as a function of the missing labels; `fill` replaces a 0/0."""

    def value(self, data: ClassSet, fill: float = np.nan) -> float:
        """Return the metric on the labeled rows of a set; `fill` (NaN by default) where it is 0/0."""
        functional = self.bind(data.labeled(), fill)
        assert isinstance(functional, ClassFunctional)
        value = float(functional.at(functional.sums.constant))
        return fill if np.isnan(value) else value


@dataclass(frozen=True, kw_only=True)
class EventMetric(ClassMetric):
    """A metric of two classes, whose positive rows are those with an event.

    Attributes
    ----------
    binary : Metric
        The metric of two classes.
    event : str
        "class": the label is `label`. "correct": the label is the predicted class. "top": it is among the `k` classes
        with the highest scores. "cell": it is `label`, among the rows that are predicted as `predicted`.
    """

    binary: Metric
    event: Literal["class", "correct", "top", "cell"]
    label: int = 0
    predicted: int = 0
    k: int = 1

    def _binary_set(self, data: ClassSet) -> tuple[EvaluationSet, Any, Any]:
        """Return the set of two classes, and for each of its cells the labels of the event and the cell of `data`."""
        cells = data.cells
        if self.event == "class":
            binary, order = data.against_rest(self.label)
            return binary, np.full(order.size, self.label), order
        order = np.arange(cells.missing.size)
        if self.event == "cell":
            order = np.flatnonzero(cells.decision == self.predicted)
            data = data.with_cells(cells.take(order))
            members: Any = np.full(order.size, self.label)
        else:
            members = cells.decision if self.event == "correct" else top_classes(cells.score, self.k)
        table = members if members.ndim == 2 else members[:, None] == np.arange(data.n_classes)
        return data.event_set(table, np.ones(order.size, dtype=np.bool_)), members, order

    def bind(self, data: ClassSet, fill: float) -> Event:
        binary, members, order = self._binary_set(data)
        position = np.zeros(data.cells.missing.size, dtype=np.int64)
        position[data.missing_cells] = np.arange(data.missing_cells.size)
        missing = binary.missing_cells
        cell = position[order[missing]]
        is_same = cell.size == data.missing_cells.size and bool(np.all(cell[1:] > cell[:-1]))
        key = f"{self.event} {self.label} {self.predicted} {self.k}"
        return Event(self.binary.bind(binary, fill), members[missing], None if is_same else cell, key)

    def value(self, data: ClassSet, fill: float = np.nan) -> float:
        return self.binary.value(self._binary_set(data)[0], fill)


@dataclass(frozen=True, kw_only=True)
class AverageMetric(ClassMetric):
    """The macro or weighted average over classes of a metric of the confusion matrix of two classes.

    As in scikit-learn, the classes of a macro average are those with a row or a prediction.
    """

    binary: ConfusionMetric
    is_weighted: bool = False
    only_present: bool = False

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        sums, predicted = correct_sums(data), predicted_weight(data)
        fill = np.nan if self.only_present else fill
        average = Average(
            formula=self.binary.formula,
            predicted=predicted,
            total=total_weight(data),
            dust=data.dust,
            is_weighted=self.is_weighted,
            fill=fill,
            only_present=self.only_present,
        )
        is_predicted = predicted > data.dust
        without, with_row = self._undefined(is_predicted, data)
        return ClassFunctional(
            sums=sums,
            evaluate=average,
            terms=average.terms,
            fill=fill,
            find_extremes=partial(self._extremes, data, fill, is_predicted),
            undefined_without=without,
            undefined_with=with_row,
            needs_all_classes=not self.is_weighted or not self.binary.direction[0],
        )

    def _undefined(self, is_predicted: Any, data: ClassSet) -> tuple[Any, Any]:
        """Return the classes whose term is 0/0 if they have no row, and those whose term is 0/0 if they have one."""
        nothing = np.zeros(is_predicted.size, dtype=np.bool_)
        if self.only_present:
            return nothing, nothing
        with np.errstate(divide="ignore", invalid="ignore"):
            # A predicted class without a row, and a row of a class that is never predicted.
            absent, unpredicted = (
                float(self.binary.formula(*map(np.float64, counts))) for counts in ((0, 2, 0, 3), (0, 0, 2, 3))
            )
        without = is_predicted if not np.isfinite(absent) and not self.is_weighted else nothing
        return without, nothing if np.isfinite(unpredicted) else ~is_predicted

    def _extremes(self, data: ClassSet, fill: float, is_predicted: Any) -> Extremes:
        by_class = []
        for k in range(data.n_classes):
            members = np.zeros((data.cells.missing.size, data.n_classes), dtype=np.bool_)
            members[:, k] = True
            by_class.append(self.binary.bind(data.event_set(members, data.cells.decision == k), fill).extremes)
        is_labeled = data.label_counts > 0
        may_lack = ~is_labeled if self.only_present or np.isnan(fill) else ~(is_labeled | is_predicted)
        return average_extremes(by_class, may_lack=may_lack, is_weighted=self.is_weighted)


@dataclass(frozen=True, kw_only=True)
class KappaMetric(ClassMetric):
    """Cohen's kappa; disagreements count alike (`power` 0), by distance in the order of classes (1), or its square."""

    power: int = 0

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        marks = kappa_marks(data.n_classes, self.power)
        sums = loss_sums(data, marks[data.cells.decision], f"kappa {self.power}")
        expected = predicted_weight(data) @ marks / total_weight(data)
        kappa = Kappa(expected=expected, dust=data.dust)
        return ClassFunctional(
            sums=sums,
            evaluate=kappa,
            fill=fill,
            find_extremes=partial(kappa_extremes, kappa, sums),
            needs_all_classes=False,
        )


@dataclass(frozen=True, kw_only=True)
class MccMetric(ClassMetric):
    """Matthews correlation coefficient of several classes."""

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        mcc = Mcc(predicted=predicted_weight(data), total=total_weight(data), dust=data.dust)
        return ClassFunctional(
            sums=correct_sums(data),
            evaluate=mcc,
            fill=fill,
            find_extremes=partial(Extremes, -1.0, 1.0, sharp=False),
            needs_all_classes=False,
        )


@dataclass(frozen=True, kw_only=True)
class ClassLossMetric(ClassMetric):
    """The mean over all rows of a loss: `loss` maps a set to the loss of each cell for each label (n_cells x K)."""

    loss: Callable[[ClassSet], FloatArray]

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        sums = loss_sums(data, self.loss(data) / total_weight(data), self.name)
        total = Total(n_classes=data.n_classes)
        return ClassFunctional(
            sums=sums,
            evaluate=total,
            terms=total.terms,
            fill=fill,
            find_extremes=partial(total_extremes, sums),
            needs_all_classes=False,
            size=float(np.abs(sums.constant[: data.n_classes]).sum() + sums.rows @ np.abs(sums.marks).max(axis=1)),
        )


@dataclass(frozen=True, kw_only=True)
class AucMetric(ClassMetric):
    """The average over classes of ROC-AUC, one class against the rest."""

    is_weighted: bool = False

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        average = AucAverage(
            n_classes=data.n_classes, total=total_weight(data), dust=data.dust, is_weighted=self.is_weighted
        )
        return ClassFunctional(
            sums=rank_sums(data),
            evaluate=average,
            terms=average.terms,
            fill=fill,
            find_extremes=partial(self._extremes, data, fill),
            needs_all_classes=not self.is_weighted,
        )

    def _extremes(self, data: ClassSet, fill: float) -> Extremes:
        area = RankMetric(name="roc_auc")
        by_class = [area.bind(data.against_rest(k)[0], np.nan).extremes for k in range(data.n_classes)]
        may_lack = np.zeros(data.n_classes, dtype=np.bool_)
        low, high, sharp = average_extremes(by_class, may_lack=may_lack, is_weighted=self.is_weighted)
        if (data.label_counts == 0).any() and not self.is_weighted:
            low, high = float(np.fmin(low, fill)), float(np.fmax(high, fill))
        return Extremes(low, high, sharp)


@dataclass(frozen=True, kw_only=True)
class PairAucMetric(ClassMetric):
    """The average over pairs of classes of ROC-AUC, one class against the other."""

    is_weighted: bool = False

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        total = Total(n_classes=data.n_classes)
        return ClassFunctional(
            sums=pair_sums(data, is_weighted=self.is_weighted),
            evaluate=total,
            terms=total.terms,
            fill=fill,
            find_extremes=partial(Extremes, 0.0, 1.0, sharp=False),
        )

    def value(self, data: ClassSet, fill: float = np.nan) -> float:
        labeled = data.labeled()
        sums = pair_sums(labeled, is_weighted=self.is_weighted).expect(np.zeros((0, data.n_classes)))
        return fill if np.isnan(sums[0]) else float(sums[0])


@dataclass(frozen=True, kw_only=True)
class MatrixMetric(ClassMetric):
    """A formula of the confusion matrix `C[label, prediction]` of (weighted) counts, as in scikit-learn.

    Attributes
    ----------
    formula : callable
        The metric; numpy arrays go in, with label and prediction as the first two axes and label assignments as
        further axes. NaN or infinity: undefined (0/0).
    smooth : bool
        Whether the formula has derivatives everywhere: no `minimum`, `abs` or condition.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.metrics.MatrixMetric(name="cats as dogs", formula=lambda c: c[0, 1] / c[0].sum(axis=0), smooth=True).name
    'cats as dogs'
    """

    formula: Callable[[FloatArray], Any]
    smooth: bool = False
    range: tuple[float, float] = (-np.inf, np.inf)

    def bind(self, data: ClassSet, fill: float) -> ClassFunctional:
        return ClassFunctional(
            sums=matrix_sums(data),
            evaluate=MatrixFormula(self.formula, data.n_classes),
            fill=fill,
            find_extremes=partial(Extremes, *self.range, sharp=False),
            is_smooth=self.smooth,
            needs_all_classes=False,
        )
