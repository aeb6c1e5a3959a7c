"""Formulas of metrics of several classes: functions of the sums x_k and a_k, and of the confusion matrix.

x_k is the weight of the correct rows of class k, or the sum of other marks of its rows; a_k is the weight of its rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.distributions.class_sums import ClassSums
from darkmetrics.distributions.functional import Extremes

# Steps of the search for the extremes of a ratio; it converges in a few.
_MAX_STEPS = 50


def _spread(values: FloatArray, like: FloatArray) -> FloatArray:
    """Return values of classes with as many further axes as an array of sums has."""
    return values.reshape(values.size, *(1,) * (like.ndim - 1))


@dataclass(frozen=True)
class Average:
    """The average over classes of a formula of (tp, fp, fn, tn).

    Attributes
    ----------
    formula : callable
        The formula; NaN or infinity: 0/0.
    predicted : array (K,)
        Weight of the rows that are predicted as each class.
    total : float
        Weight of all rows.
    dust : float
        Weights up to this one are rounding errors.
    is_weighted : bool
        Whether classes count by their weight.
    fill : float
        Value of a 0/0; NaN: the class is left out.
    only_present : bool
        Whether classes without a row are left out even if they are predicted.
    """

    formula: Callable[..., Any]
    predicted: FloatArray
    total: float
    dust: float
    is_weighted: bool
    fill: float
    only_present: bool = False

    def _values_and_weights(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = self.predicted.size
        predicted = _spread(self.predicted, sums)
        tp, actual = sums[:k], sums[k:]
        counts = tp, predicted - tp, actual - tp, self.total - predicted - actual + tp
        if self.dust > 0.0:
            counts = tuple(np.where(np.abs(count) <= self.dust, 0.0, count) for count in counts)  # type: ignore[assignment]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.formula(*counts), dtype=np.float64)
        value = np.where(np.isfinite(value), value, self.fill)
        is_present = actual > self.dust
        if not self.only_present:
            is_present = is_present | (predicted > self.dust)
        weight = np.where(is_present & np.isfinite(value), actual if self.is_weighted else 1.0, 0.0)
        return np.where(weight > 0.0, value, 0.0), weight

    def __call__(self, sums: FloatArray) -> FloatArray:
        value, weight = self._values_and_weights(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((value * weight).sum(axis=0) / weight.sum(axis=0))

    def terms(self, sums: FloatArray) -> FloatArray:
        """Return the term of each class."""
        value, weight = self._values_and_weights(sums)
        return value * weight / (self.total if self.is_weighted else weight.sum(axis=0))


@dataclass(frozen=True)
class AucAverage:
    """The average over classes of one-against-rest ROC-AUC; x_k is the sum of centered ranks."""

    n_classes: int
    total: float
    dust: float
    is_weighted: bool

    def terms(self, sums: FloatArray) -> FloatArray:
        """Return the term of each class."""
        x, actual = sums[: self.n_classes], sums[self.n_classes :]
        others = self.total - actual
        is_undefined = np.minimum(actual, others) <= self.dust
        auc = np.clip(0.5 + x / np.where(is_undefined, np.nan, actual * others), 0.0, 1.0)
        if not self.is_weighted:
            return np.asarray(auc / self.n_classes)
        return np.where(actual <= self.dust, 0.0, auc * actual / self.total)

    def __call__(self, sums: FloatArray) -> FloatArray:
        return np.asarray(self.terms(sums).sum(axis=0))


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa: one minus observed over expected disagreement; x_k is the disagreement of the rows of class k."""

    expected: FloatArray  # disagreement that a row of each class is expected to have
    dust: float

    def __call__(self, sums: FloatArray) -> FloatArray:
        k = self.expected.size
        expected = (sums[k:] * _spread(self.expected, sums)).sum(axis=0)
        is_undefined = expected <= self.dust
        return np.asarray(1.0 - sums[:k].sum(axis=0) / np.where(is_undefined, np.nan, expected))


@dataclass(frozen=True)
class Mcc:
    """Matthews correlation coefficient of several classes (Gorodkin)."""

    predicted: FloatArray
    total: float
    dust: float

    def __call__(self, sums: FloatArray) -> FloatArray:
        k = self.predicted.size
        actual, predicted = sums[k:], _spread(self.predicted, sums)
        # Products of large weights would lose their last digits; fractions of the total do not.
        covariance = sums[:k].sum(axis=0) / self.total - (actual / self.total * (predicted / self.total)).sum(axis=0)
        variances = [(w / self.total * (1.0 - w / self.total)).sum(axis=0) for w in (actual, predicted)]
        smallest = max(self.dust / self.total, 1e-15)
        is_undefined = np.minimum(*np.broadcast_arrays(*variances)) <= smallest
        root = np.sqrt(variances[0]) * np.sqrt(variances[1])
        return np.asarray(np.clip(covariance / np.where(is_undefined, np.nan, root), -1.0, 1.0))


@dataclass(frozen=True)
class Total:
    """The sum of the marks of all rows: a mean loss."""

    n_classes: int

    def terms(self, sums: FloatArray) -> FloatArray:
        """Return the term of each class."""
        return sums[: self.n_classes]

    def __call__(self, sums: FloatArray) -> FloatArray:
        return np.asarray(sums[: self.n_classes].sum(axis=0))


@dataclass(frozen=True)
class MatrixFormula:
    """A formula of the confusion matrix C[label, prediction]."""

    formula: Callable[[FloatArray], Any]
    n_classes: int

    def __call__(self, sums: FloatArray) -> FloatArray:
        matrix = sums.reshape(self.n_classes, self.n_classes, *sums.shape[1:]).swapaxes(0, 1)
        return np.broadcast_to(np.asarray(self.formula(matrix), dtype=np.float64), sums.shape[1:])


def total_extremes(sums: ClassSums) -> Extremes:
    """Return the smallest and largest sum of all marks."""
    constant = sums.constant[: sums.n_classes].sum()
    low, high = (float(constant + sums.rows @ end) for end in (sums.marks.min(axis=1), sums.marks.max(axis=1)))
    return Extremes(low, high, sharp=True)


def kappa_extremes(kappa: Kappa, sums: ClassSums) -> Extremes:
    """Return the extremes of kappa: of a ratio of two sums, by choosing every label for a ratio and its improvement."""
    k = sums.n_classes
    expected = sums.weight[:, None] * kappa.expected
    constants = float(sums.constant[:k].sum()), float(sums.constant[k:] @ kappa.expected)
    ends = []
    for sign in (1.0, -1.0):
        ratio = 0.0
        for step in range(_MAX_STEPS):
            label = (sign * (sums.marks - ratio * expected)).argmax(axis=1)[:, None]
            numerator, denominator = (
                constant + float(sums.rows @ np.take_along_axis(table, label, axis=1)[:, 0])
                for constant, table in zip(constants, (sums.marks, expected), strict=True)
            )
            if not denominator > kappa.dust:
                return Extremes(-np.inf, 1.0, sharp=False)
            if step and sign * (numerator / denominator - ratio) <= 1e-15 * abs(ratio):
                break
            ratio = numerator / denominator
        ends.append(1.0 - ratio)
    return Extremes(ends[0], ends[1], sharp=True)


def average_extremes(by_class: list[Extremes], *, may_lack: BoolArray, is_weighted: bool) -> Extremes:
    """Return an enclosure of an average over classes; `may_lack`: classes that may be left out of the average."""
    lows, highs = (np.array(ends) for ends in list(zip(*by_class, strict=True))[:2])
    if np.isnan(lows).all():
        return Extremes(np.nan, np.nan, sharp=False)
    if is_weighted or may_lack.any() or np.isnan(lows).any():
        return Extremes(float(np.nanmin(lows)), float(np.nanmax(highs)), sharp=False)
    return Extremes(float(lows.mean()), float(highs.mean()), sharp=False)
