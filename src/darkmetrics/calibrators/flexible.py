"""Flexible: the curve of Beta or Platt, bent where labels insist on it."""

from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators.logistic import Beta, LogisticCalibrator, Platt
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError

# Prior standard deviations, against those of the slopes (1): how far the curve may turn at each knot, on the log odds
# scale, and how far it may jump where the decision changes.
_HINGE, _STEP = 0.7, 0.7
_KNOTS = 5


class Flexible(LogisticCalibrator):
    """Beta calibration (Platt scaling where scores are not probabilities) that can bend at five scores, and jump once.

    The scores of a logistic regression, or of a network trained on other rows, are often wrong in ways that three
    coefficients cannot mend. The curve may turn at the quantiles 1/6, ..., 5/6 of the scores and jump at the threshold
    of the decision, each shrunk towards not doing so: a few labels leave the plain curve, many bend it.

    Parameters
    ----------
    prior_sd : float, default 1.0
        How far all coefficients may be from "the scores are right" before seeing labels, as a multiple of the default.
    threshold : float, optional
        The score from which the decision is positive.

    Attributes
    ----------
    coef_, covariance_ : posterior mode and covariance of the coefficients.
    base_ : the Beta or Platt that it extends.
    knots_ : where the curve may turn, in log odds of the score (or standardised scores).

    Examples
    --------
    >>> from darkmetrics.calibrators import Flexible
    >>> curve = Flexible(threshold=0.5).fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> curve.predict([0.2, 0.7]).round(2)
    array([0.16, 0.7 ])
    """

    base_: LogisticCalibrator
    knots_: FloatArray
    steps_: bool

    def __init__(self, prior_sd: float | None = 1.0, threshold: float | None = None) -> None:
        super().__init__(prior_sd)
        self.threshold = threshold

    def _prepare(self, scores: FloatArray, counts: FloatArray) -> None:
        if self.prior_sd is None:
            raise InputError("prior_sd: None. Flexible needs a prior to keep its curve from following single labels.")
        given: Any = self.threshold
        if given is not None and not (is_number(given) and given == given):
            raise InputError(f"threshold: {given!r}. It must be a number, or None for a curve without a jump.")
        inside = bool(np.all((scores >= 0.0) & (scores <= 1.0)))
        self.base_ = (Beta if inside else Platt)().prepare(scores, counts)
        self.knots_, self.steps_ = np.zeros(0), False
        if scores.size:
            order = np.argsort(scores, kind="stable")
            level = np.cumsum(counts[order]) / counts.sum()
            inner = np.searchsorted(level, np.arange(1, _KNOTS + 1) / (_KNOTS + 1.0))
            x = np.unique(self.line(scores[order][np.minimum(inner, scores.size - 1)]))
            # A knot at the lowest score turns nothing: it is the slope once more.
            self.knots_ = x[x > self.line(scores[order[:1]])[0]]
            above = 0.0 if self.threshold is None else float(counts @ (scores >= self.threshold))
            self.steps_ = 0.0 < above < counts.sum()
        n_more = [self.knots_.size, int(self.steps_)]
        self._set_prior(
            [*self.base_.prior_mean_, *np.zeros(sum(n_more))],
            [*self.base_.prior_scale_, *np.repeat([_HINGE, _STEP], n_more)],
        )

    def line(self, scores: FloatArray) -> FloatArray:
        return self.base_.line(scores)

    def _design(self, scores: FloatArray) -> FloatArray:
        x = self.line(scores)
        columns = [self.base_.design(scores), np.maximum(x[:, None] - self.knots_, 0.0)]
        if self.steps_:
            assert self.threshold is not None
            columns.append((scores >= self.threshold)[:, None].astype(np.float64))
        return np.hstack(columns)
