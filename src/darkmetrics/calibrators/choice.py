"""From the word or object a user gives to the calibrator it stands for."""

from typing import Any

from darkmetrics.calibrators.base import Calibrator
from darkmetrics.calibrators.binning import ScalingBinning
from darkmetrics.calibrators.fitted import Fitted
from darkmetrics.calibrators.flexible import Flexible
from darkmetrics.calibrators.isotonic import Isotonic
from darkmetrics.calibrators.logistic import Beta, Platt
from darkmetrics.exceptions import InputError, unknown_name

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
        if calibrator not in WORDS:
            raise unknown_name("calibrator", "calibrator", calibrator, WORDS)
        return WORDS[calibrator]()
    if isinstance(calibrator, type):
        raise InputError(f"calibrator: {calibrator.__name__} is a class. Pass an object: {calibrator.__name__}().")
    if callable(getattr(calibrator, "predict_proba", None)):
        return Fitted(calibrator)
    raise InputError(
        f"calibrator: expected {', '.join(map(repr, WORDS))}, a calibrator or a fitted object with predict_proba, "
        f"got {calibrator!r}."
    )
