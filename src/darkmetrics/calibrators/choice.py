"""From the word or object a user gives to the calibrator it stands for; also a classifier that somebody else fitted."""

from typing import Any, Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike, Classifier
from darkmetrics.calibrators.base import Calibrator, checked_draws, checked_scores
from darkmetrics.calibrators.binning import ScalingBinning
from darkmetrics.calibrators.isotonic import Isotonic
from darkmetrics.calibrators.logistic import Beta, Flexible, Platt
from darkmetrics.exceptions import InputError, unknown_name


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
                "calibrator",
                f"{name}.predict_proba does not accept a column of scores: {str(error).rstrip('.')}",
                "It must be fitted, on the score as its only feature.",
            ) from error
        if answer.shape != (score.size, 2):
            raise InputError(
                "calibrator",
                f"{name}.predict_proba returned an array of shape {answer.shape} for {score.size:,} scores",
                f"It must be {(score.size, 2)}: the probabilities of the negative and of the positive class.",
            )
        chance: FloatArray = answer[:, 1]
        bad = ~((chance >= 0.0) & (chance <= 1.0))  # NaN is bad too
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                "calibrator",
                f"{name}.predict_proba returned {chance[first]:g} at row {first}",
                "Probabilities must lie in [0, 1].",
            )
        return chance

    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        return np.tile(self.predict(scores), (checked_draws(n_draws), 1))


WORDS: dict[str, type[Calibrator]] = {
    "beta": Beta,
    "flexible": Flexible,
    "isotonic": Isotonic,
    "platt": Platt,
    "scaling_binning": ScalingBinning,
}


def calibrator_from(calibrator: Any) -> Calibrator:
    """The calibrator that a word, a calibrator or a fitted object with `predict_proba` stands for.

    Examples
    --------
    >>> from darkmetrics.calibrators import calibrator_from
    >>> calibrator_from("beta")
    Beta(prior_sd=1.0)
    """
    if isinstance(calibrator, Calibrator):
        return calibrator
    if isinstance(calibrator, str):
        name = calibrator.lower().replace("-", "_")  # "scaling-binning" is how papers write it
        if name not in WORDS:
            raise unknown_name("calibrator", "calibrator", calibrator, WORDS)
        return WORDS[name]()
    if isinstance(calibrator, type):
        name = calibrator.__name__
        raise InputError("calibrator", f"{name} is a class", "", f"Pass an object: {name}().")
    if callable(getattr(calibrator, "predict_proba", None)):
        return Fitted(calibrator)
    raise InputError(
        "calibrator",
        f"{calibrator!r}",
        f"It must be {', '.join(map(repr, WORDS))}, a calibrator or a fitted object with predict_proba.",
    )
