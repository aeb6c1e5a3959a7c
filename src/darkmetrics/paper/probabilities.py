"""Probabilities p_i of the missing labels, in the three ways of the paper: two by maximum entropy, one calibrated."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike, LabelValue
from darkmetrics.calibrators import Calibrator, ScalingBinning
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Fixed, Mechanism, Posterior, mechanism_from


def maximum_entropy(mean: float | None = None) -> Fixed:
    """Return the mechanism with the probabilities of largest entropy: 1/2, or a known mean.

    The Maximum Entropy Principle picks the distribution of the labels that assumes least. Without a constraint every
    missing label is positive with probability 1/2. If the mean of the labels is known, it is the probability of each.

    Parameters
    ----------
    mean : float, optional
        Known mean of the labels, such as the prevalence of the training set.

    Returns
    -------
    Fixed
        Mechanism for `evaluate(missingness=)`, `pemi` and `pemi_gauss`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.maximum_entropy().probability
    0.5
    >>> dm.paper.maximum_entropy(mean=0.2).probability
    0.2
    """
    if mean is None:
        return Fixed(0.5)
    if not is_number(mean) or not 0.0 <= mean <= 1.0:
        raise InputError("mean", f"{mean!r}", "The mean of labels must lie in [0, 1].")
    return Fixed(float(mean))


def training_prevalence(y_train: ArrayLike, pos_label: LabelValue = 1) -> Fixed:
    """Return the mechanism with p = N+/N: every missing label has the prevalence of the training set.

    This is maximum entropy with a fixed mean. The paper counts N and N+ in the training set. The labeled rows of the
    test set have another prevalence if labels are missing because of their value.

    Parameters
    ----------
    y_train : array-like
        Labels of the training set, none of them missing.
    pos_label : label
        The label that counts as positive.

    Returns
    -------
    Fixed
        Mechanism for `evaluate(missingness=)`, `pemi` and `pemi_gauss`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.training_prevalence([1, 0, 0, 0]).probability
    0.25
    """
    n_rows = len(np.asarray(y_train))
    training_set = EvaluationSet(y_train, np.zeros(n_rows), pos_label=pos_label)
    if training_set.n_missing or not n_rows:
        raise InputError(
            "y_train",
            f"{training_set.n_missing:,} of {n_rows:,} labels are missing",
            "The rows of a training set have labels.",
            "Pass the rows that have one.",
        )
    return maximum_entropy(training_set.counts()["positive"] / n_rows)


def scaling_binning(y_calibration: ArrayLike, score_calibration: ArrayLike, n_bins: int = 10) -> "CalibratedScores":
    """Return the mechanism with calibrated probabilities: scaling-binning, fitted on held-out rows.

    The paper's third choice: p_i is the calibrated score. The probabilities are taken as known, so the distribution of
    a metric does not include the uncertainty of the calibration.

    Parameters
    ----------
    y_calibration, score_calibration : array-like
        Labels and scores of the held-out rows, none of them missing.
    n_bins : int
        Number of bins; the paper uses 10.

    Returns
    -------
    CalibratedScores
        Mechanism for `evaluate(missingness=)`, `pemi` and `pemi_gauss`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> p = dm.paper.scaling_binning([0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9], n_bins=2)
    >>> rows = dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7])
    >>> round(dm.paper.pemi_gauss(rows, "precision", p)["precision"].mean(), 3)
    0.906
    """
    return CalibratedScores(ScalingBinning(n_bins).fit(score_calibration, y_calibration))


@dataclass(frozen=True, eq=False)
class CalibratedScores(Mechanism):
    """The probability of a missing label is its calibrated score, taken as known.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted calibrator.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> p = dm.paper.scaling_binning([0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9], n_bins=2)
    >>> p.calibrator.values_.round(3)
    array([0.187, 0.813])
    """

    calibrator: Calibrator

    def posterior(self, data: EvaluationSet) -> Posterior:
        return Posterior.single(self.calibrator.predict(data.cells.score[data.missing_cells]))

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return "Assumed: every missing label is positive with its calibrated score as probability, taken as known."


def known_probabilities(evaluation_set: Any, p: Any) -> FloatArray:
    """Return the probability of each missing cell of a set that `p` stands for: None, a number, or a mechanism."""
    check_set(evaluation_set)
    if p is None:
        if evaluation_set.cells.probability is None:
            raise InputError(
                "p",
                "missing",
                fix="Pass the probabilities of the missing labels, or a set built with EvaluationSet(..., "
                "missingness=dm.missing.Fixed(p)).",
            )
        return Fixed().posterior(evaluation_set).of_cells(0)
    if isinstance(p, (str, Mechanism)):
        posterior = mechanism_from(p).posterior(evaluation_set).on_all_cells
        return np.asarray(posterior.weight @ posterior.probability)
    if not is_number(p):
        raise InputError(
            "p",
            f"expected a number or a mechanism, got {type(p).__name__}",
            "An EvaluationSet keeps no order of rows.",
            "Pass one probability per row as EvaluationSet(..., missingness=dm.missing.Fixed(p)), and leave p out.",
        )
    if not 0.0 <= p <= 1.0:
        raise InputError("p", f"{p:g}", "Probabilities must lie in [0, 1].")
    return np.full(evaluation_set.missing_cells.size, float(p))


def check_set(evaluation_set: Any) -> EvaluationSet:
    """Return the argument if it is an EvaluationSet."""
    if not isinstance(evaluation_set, EvaluationSet):
        raise InputError("evaluation_set", f"expected an EvaluationSet, got {type(evaluation_set).__name__}")
    return evaluation_set
