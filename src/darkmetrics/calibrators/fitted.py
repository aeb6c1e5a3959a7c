"""A classifier that somebody else has fitted, as a calibrator."""

from typing import Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.accepted import ArrayLike, Classifier
from darkmetrics.calibrators.base import Calibrator, checked_number, checked_scores
from darkmetrics.exceptions import InputError


class Fitted(Calibrator):
    """A fitted object with `predict_proba` whose only feature is the score, taken as it is.

    `fit` leaves it unchanged, and its draws are all the same curve: how uncertain it is, it does not say.

    Parameters
    ----------
    estimator : object with `predict_proba`
        Takes an (n, 1) array of scores and returns (n, 2) probabilities; the second column is that of the positive
        class, as scikit-learn has it for labels 0 and 1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from darkmetrics.calibrators import Fitted
    >>> known = LogisticRegression().fit([[-1.0], [1.0], [2.0]], [0, 0, 1])
    >>> Fitted(known).predict([0.0, 2.0]).round(2)
    array([0.21, 0.53])
    """

    def __init__(self, estimator: Classifier) -> None:
        self.estimator = estimator

    def __sklearn_clone__(self) -> Self:
        return self  # a clone of the settings would lose what was fitted

    def _fit(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> None:
        pass

    def predict(self, scores: ArrayLike) -> FloatArray:
        score = checked_scores(scores)
        if score.size == 0:
            return score  # estimators refuse empty input
        name = type(self.estimator).__name__
        try:
            answer = np.asarray(self.estimator.predict_proba(score[:, None]), dtype=np.float64)
        except (AttributeError, TypeError, ValueError) as error:  # what scikit-learn raises when it is not fitted
            raise InputError(
                f"calibrator: {name}.predict_proba cannot take a column of scores: {error} "
                "It must be fitted, on the score as its only feature."
            ) from error
        if answer.shape != (score.size, 2):
            raise InputError(
                f"calibrator: {name}.predict_proba gave an array of shape {answer.shape} for {score.size:,} scores. "
                f"It must be {(score.size, 2)}: the chances of the negative and of the positive class."
            )
        chance: FloatArray = answer[:, 1]
        bad = ~((chance >= 0.0) & (chance <= 1.0))  # NaN is bad too
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                f"calibrator: {name}.predict_proba gave {chance[first]:g} at row {first}. "
                "Probabilities must lie in [0, 1]."
            )
        return chance

    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        return np.tile(self.predict(scores), (checked_number(n_draws, "n_draws", 1, 1 << 20), 1))
