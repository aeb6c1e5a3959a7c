"""Metrics of the scores themselves: means of a per-row loss, and any function of labels and scores."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray
from darkmetrics.data.cells import COUNTS, Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import ScenarioFunctional
from darkmetrics.distributions.functionals import LinearFunctional
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import UNIT, Metric

# Complete labelings are built this many numbers at a time, so that memory does not grow with their number.
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LossMetric(Metric):
    """The (weighted) mean over all rows of a loss `f(y, score)`; `y` is 0.0 or 1.0, arrays go in.

    Attributes
    ----------
    loss : callable
        Loss of each row.
    needs_probabilities : bool
        Whether the scores must lie in [0, 1].
    monotone : bool
        Whether the loss of either label only rises, or only falls, with the score. If so, `binning_error` is known.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> off = dm.metrics.LossMetric(name="off", loss=lambda y, s: abs(y - s), better="lower", range=(0, 1))
    >>> round(
    ...     dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics=off, missingness=dm.missing.Fixed([0.5]))["off"].mean(),
    ...     4,
    ... )
    0.3333
    """

    loss: Callable[[Any, FloatArray], Any]
    needs_probabilities: bool = False
    monotone: bool = False

    def bind(self, data: EvaluationSet, fill: float) -> LinearFunctional:
        cells, rows = data.cells, data.missing_cells
        if self.needs_probabilities and not (cells.score[0] >= 0.0 and cells.score[-1] <= 1.0):
            bad = cells.score[0] if cells.score[0] < 0.0 else cells.score[-1]
            rule = f"{self.name!r} needs scores that are probabilities."
            raise InputError("y_score", f"{bad:g}", rule, f"Pass probabilities, or leave {self.name!r} out.")
        if_one, if_zero = (self._losses(y, cells.score) for y in (1.0, 0.0))
        total = float(cells.mass(cells.total).sum())
        known = cells.mass(cells.positives) @ if_one + cells.mass(cells.negatives + cells.missing) @ if_zero
        weight = 1.0 if cells.weight is None else cells.weight[rows]
        return LinearFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            weight=np.asarray(weight * (if_one - if_zero)[rows] / total),
            total=float(known) / total,
        )

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negatives, positives = counts
        one, zero = (self._losses(y, cells.score) for y in (1.0, 0.0))
        total = (positives + negatives).sum(axis=1)
        result = np.full(total.shape, np.nan)
        np.divide(positives @ one + negatives @ zero, total, out=result, where=total > 0.0)
        return result

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negatives, positives = counts
        loss = np.stack([self._losses(y, cells.score) for y in (0.0, 1.0)])
        total = (positives + negatives).sum(axis=1)
        mean = (positives @ loss[1] + negatives @ loss[0]) / total
        result: FloatArray = (loss[:, None, :] - mean[:, None]) / total[:, None]
        return result

    def rests_on(self, cells: Cells) -> FloatArray:
        return np.ones((1, 2, cells.score.size))

    def _binning_error(self, data: EvaluationSet) -> float:
        if not self.monotone:
            return np.nan
        cells = data.cells
        starts, (low, high) = cells.tie_starts, cells.tie_ends
        mean = cells.score if starts is None else cells.score[starts]
        # A monotone loss is furthest from its value at the mean at an end of the bucket.
        one, zero = (
            np.max([np.abs(self._losses(y, end) - self._losses(y, mean)) for end in (low, high)], axis=0)
            for y in (1.0, 0.0)
        )
        sums = [cells.mass(getattr(cells, name)) for name in COUNTS]
        positive, negative, missing = (mass if starts is None else np.add.reduceat(mass, starts) for mass in sums)
        worst = positive @ one + negative @ zero + missing @ np.maximum(one, zero)
        return float(worst / (positive + negative + missing).sum())

    def _losses(self, label: float, score: FloatArray) -> FloatArray:
        y = np.full_like(score, label)
        loss = np.asarray(self.loss(y, score), dtype=np.float64)
        if loss.shape != y.shape:
            raise InputError(
                "loss",
                f"{self.name!r} returned shape {loss.shape} for {y.shape[0]:,} rows",
                "It must return one loss per row.",
            )
        if not np.isfinite(loss).all():
            at = int(np.argmax(~np.isfinite(loss)))
            raise InputError(
                "loss",
                f"{self.name!r} is {loss[at]} for label {y[at]:g} and score {score[at]:g}",
                "A loss must be finite for both labels.",
            )
        return loss


@dataclass(frozen=True, kw_only=True)
class CallableMetric(Metric):
    """Any function `f(y_true, y_score)` or `f(y_true, y_pred)` of complete labels, for example one of scikit-learn's.

    It is called once per label assignment: all of them for up to 15 missing rows, random ones above. With sample
    weights it is called with `sample_weight=`. NaN means undefined.

    Attributes
    ----------
    function : callable
        The function.
    takes_predictions : bool
        Whether its second argument is the predictions (0 or 1) in place of the scores.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from sklearn.metrics import roc_auc_score
    >>> auc = dm.metrics.CallableMetric(name="auc", function=roc_auc_score)
    >>> round(
    ...     dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics=auc, missingness=dm.missing.Fixed([0.8]))["auc"].mean(),
    ...     9,
    ... )
    1.0
    """

    function: Callable[..., Any]
    takes_predictions: bool = False

    def bind(self, data: EvaluationSet, fill: float) -> ScenarioFunctional:
        call = partial(self._of_labelings, data)
        return ScenarioFunctional(missing=data.missing_counts, fill=fill, range=self.range, call=call)

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
        values = np.empty(counts.shape[1])
        for i, of_set in enumerate(np.swapaxes(counts, 0, 1) / np.where(weight > 0.0, weight, 1.0)):
            zeros, ones = np.rint(of_set).astype(np.int64)
            cell, place = _rows_of(zeros + ones)
            values[i] = self._call(
                (place < ones[cell]).astype(np.int64), self._second(cells)[cell], _named(cells, cell)
            )
        return values

    def _of_labelings(self, data: EvaluationSet, positives: IntArray) -> FloatArray:
        """The function for each labeling (row: positives among the missing rows of each missing cell)."""
        cells, missing = data.cells, data.missing_cells
        # Rows without weight are none.
        cell, place = _rows_of(cells.total if cells.weight is None else np.where(cells.weight > 0.0, cells.total, 0))
        above = place - cells.positives[cell]
        known, score = (above < 0).astype(np.int64), self._second(cells)[cell]
        # Of rows that are told apart by nothing else the first ones are the positives.
        of_missing = np.full(cells.score.size, -1)
        of_missing[missing] = np.arange(missing.size)
        open_ = np.flatnonzero(of_missing[cell] >= 0)
        above, column = above[open_], of_missing[cell[open_]]
        values = np.empty(len(positives))
        step = max(1, _CHUNK // max(1, cell.size))
        for start in range(0, len(positives), step):
            ones = np.take(positives[start : start + step], column, axis=1)
            labels = np.tile(known, (len(ones), 1))
            labels[:, open_] = above < ones
            for i, label in enumerate(labels, start):
                values[i] = self._call(label, score.copy(), _named(cells, cell))  # it may write into what it is given
        return values

    def _second(self, cells: Cells) -> AnyArray:
        """Return what the function takes after the labels, for each cell."""
        return cells.decision.astype(np.int64) if self.takes_predictions else cells.score

    def _call(self, y_true: IntArray, y_score: AnyArray, named: dict[str, Any]) -> float:
        value = self.function(y_true, y_score, **named)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError("metrics", f"{self.name!r} returned {value!r}", "A metric returns one number.") from None


def _rows_of(total: IntArray) -> tuple[IntArray, IntArray]:
    """The cell of every row, given the number of rows of each, and its place among them."""
    cell = np.repeat(np.arange(total.size), total)
    return cell, np.arange(cell.size) - (np.cumsum(total) - total)[cell]


def _named(cells: Cells, cell: IntArray) -> dict[str, Any]:
    return {} if cells.weight is None else {"sample_weight": cells.weight[cell]}


def metric_from_callable(function: Callable[..., Any], name: str | None = None) -> CallableMetric:
    """Return the metric for a function of labels and scores, or predictions if its second parameter is `y_pred`.

    A scorer of scikit-learn stands for its function, with the sign and the arguments of the scorer.
    """
    scored = getattr(function, "_score_func", None)
    if scored is not None:  # a scorer of scikit-learn
        scorer: Any = function
        inner = metric_from_callable(scored, name)
        call = partial(_signed, scored, getattr(scorer, "_sign", 1), dict(getattr(scorer, "_kwargs", {})))
        return replace(inner, function=call)
    own = getattr(function, "__name__", type(function).__name__)
    text = inspect.getdoc(function) or ""
    return CallableMetric(
        name=name or own,
        function=function,
        meaning=text.partition("\n")[0],
        better="neither",
        takes_predictions=_second_parameter(function) == "y_pred",
    )


def _signed(function: Callable[..., Any], sign: int, settings: dict[str, Any], *arguments: Any, **named: Any) -> Any:
    return sign * function(*arguments, **settings, **named)


def _second_parameter(function: Callable[..., Any]) -> str:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some functions of C have no signature
        return ""
    return names[1] if len(names) > 1 else ""


def _squared_error(y: FloatArray, score: FloatArray) -> FloatArray:
    return (score - y) ** 2


def _log_loss(y: FloatArray, score: FloatArray) -> FloatArray:
    # Clipped as in scikit-learn, so that a score of exactly 0 or 1 costs much but not everything.
    eps = float(np.finfo(np.float64).eps)
    p = np.clip(score, eps, 1.0 - eps)
    return -np.where(y > 0.0, np.log(p), np.log1p(-p))


SCORING_METRICS: tuple[Metric, ...] = (
    LossMetric(
        name="brier",
        range=UNIT,
        loss=_squared_error,
        needs_probabilities=True,
        monotone=True,
        meaning="mean squared distance between score and label",
        better="lower",
    ),
    LossMetric(
        name="log_loss",
        loss=_log_loss,
        needs_probabilities=True,
        monotone=True,
        meaning="mean surprise of the label under the score, in nats",
        better="lower",
        range=(0.0, np.inf),
    ),
)
