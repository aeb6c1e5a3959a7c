"""Metrics of the scores themselves: means of a loss per row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.cells import COUNTS, Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functionals import LinearFunctional
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import UNIT, Metric


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
        # A monotone loss is furthest from its value at the mean at an end of the bin.
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
