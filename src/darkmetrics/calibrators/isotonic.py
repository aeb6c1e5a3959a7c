"""Isotonic calibration: the best curve that never falls."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike
from darkmetrics.calibrators.base import Calibrator, checked_draws, checked_scores, random_generator
from darkmetrics.exceptions import InputError


class Isotonic(Calibrator):
    """Isotonic regression of the label on the score: the best fit among all curves that never fall.

    Straight lines between the scores seen, constant beyond them, any scores. It answers exactly 0 or 1 where only one
    class was seen, and so do its draws: a Bayesian bootstrap (rows with random weights, fitted anew) cannot imagine
    labels that it has not seen. With few labels prefer `Beta` or `Platt`.

    Attributes
    ----------
    scores_, values_ : the curve's corners, one per distinct score.
    positives_, negatives_ : labels seen at each of them.

    Examples
    --------
    >>> from darkmetrics.calibrators import Isotonic
    >>> isotonic = Isotonic().fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> isotonic.predict([0.2, 0.5, 0.7])
    array([0.  , 0.5 , 0.75])
    """

    scores_: FloatArray
    values_: FloatArray
    positives_: FloatArray
    negatives_: FloatArray

    def _fit(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> None:
        if scores.size == 0:
            raise InputError("scores", "no rows", "Isotonic needs at least one; Beta() and Platt() do not.")
        self.scores_, of_cell = np.unique(scores, return_inverse=True)
        self.positives_ = np.asarray(np.bincount(of_cell, positives), dtype=np.float64)
        self.negatives_ = np.asarray(np.bincount(of_cell, negatives), dtype=np.float64)
        self.values_ = _never_falling(self.positives_, self.negatives_)

    def predict(self, scores: ArrayLike) -> FloatArray:
        self._check_fitted("values_")
        return np.interp(checked_scores(scores), self.scores_, self.values_)

    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        self._check_fitted("values_")
        score, rng = checked_scores(scores), random_generator()
        curves = np.empty((checked_draws(n_draws), score.size))
        for curve in curves:
            # The exponential weights of equal rows add up to a gamma variable, so a cell of any count costs one.
            positives, negatives = rng.standard_gamma(self.positives_), rng.standard_gamma(self.negatives_)
            seen = positives + negatives > 0.0  # counts far below one can vanish
            if not seen.any():
                positives, negatives, seen = self.positives_, self.negatives_, np.ones(seen.size, dtype=np.bool_)
            values = _never_falling(positives[seen], negatives[seen])
            curve[:] = np.interp(score, self.scores_[seen], values)
        return curves


def _never_falling(positives: FloatArray, negatives: FloatArray) -> FloatArray:
    from scipy.optimize import isotonic_regression

    counts = positives + negatives
    fitted = isotonic_regression(positives / counts, weights=counts)
    return np.asarray(np.clip(fitted.x, 0.0, 1.0), dtype=np.float64)  # means of shares can be off by rounding
