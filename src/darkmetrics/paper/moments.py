"""Moments of the confusion matrix, of ROC-AUC and of the accuracy estimator, and metrics as probabilistic queries."""

from typing import Literal, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc.ranks import auc_moments
from darkmetrics.argument_types import Numbers
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_whole
from darkmetrics.distributions.rank_functionals import RankFunctional
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import DEFAULT_METRICS, metrics_from, roc_auc
from darkmetrics.metrics.metric import MetricsLike, number_argument
from darkmetrics.missing import Mechanism
from darkmetrics.paper.probabilities import known_probabilities

# Label and prediction of the rows that each element of the confusion matrix counts, in the paper's order.
_ELEMENTS = {"TP": (True, True), "FN": (True, False), "FP": (False, True), "TN": (False, False)}


class ConfusionMoments(NamedTuple):
    """Mean and covariance of the confusion matrix as counts of rows, in the order TP, FN, FP, TN.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.confusion_moments(dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.8]), 0.5).mean
    array([1.5, 0. , 0.5, 1. ])
    """

    mean: FloatArray
    covariance: FloatArray


def confusion_moments(evaluation_set: EvaluationSet, p: Numbers | Mechanism | None = None) -> ConfusionMoments:
    """Return mean and covariance of the confusion matrix under missing labels, the paper's Lemma 6.

    Parameters
    ----------
    evaluation_set, p
        As in `pemi`.

    Returns
    -------
    ConfusionMoments
        Mean and covariance of the counts of true positives, false negatives, false positives and true negatives. True
        and false positives of missing rows exclude each other, so their covariance is negative.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.8, 0.3])
    >>> moments = dm.paper.confusion_moments(data, 0.5)
    >>> moments.mean
    array([1.5, 0.5, 0.5, 1.5])
    >>> moments.covariance
    array([[ 0.25,  0.  , -0.25,  0.  ],
           [ 0.  ,  0.25,  0.  , -0.25],
           [-0.25,  0.  ,  0.25,  0.  ],
           [ 0.  , -0.25,  0.  ,  0.25]])
    """
    probability = known_probabilities(evaluation_set, p)
    cells = evaluation_set.cells
    weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
    missing, rows = evaluation_set.missing_cells, evaluation_set.missing_counts
    predicted = cells.decision[missing]
    mean, sign = np.zeros(4), np.zeros((4, missing.size))
    for k, (is_positive, is_predicted) in enumerate(_ELEMENTS.values()):
        labeled = cells.positives if is_positive else cells.negatives
        sign[k] = np.where(predicted == is_predicted, 1.0 if is_positive else -1.0, 0.0)
        chance = probability if is_positive else 1.0 - probability
        mean[k] = weight @ (labeled * (cells.decision == is_predicted))
        mean[k] += (weight[missing] * rows * (predicted == is_predicted)) @ chance
    variance = weight[missing] ** 2 * rows * probability * (1.0 - probability)
    return ConfusionMoments(mean, (sign * variance) @ sign.T)


class RocAucMoments(NamedTuple):
    """Moments of ROC-AUC's numerator (pairs that are ranked rightly) and denominator (all pairs), and of their ratio.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.8, 0.3])
    >>> moments = dm.paper.roc_auc_moments(data, 0.5)
    >>> round(moments.mean, 3), round(moments.variance, 4)
    (0.929, 0.014)
    """

    numerator: float
    denominator: float
    covariance: FloatArray

    @property
    def mean(self) -> float:
        """Mean of the Gaussian: the ratio of the means."""
        return self.numerator / self.denominator

    @property
    def variance(self) -> float:
        """Variance of the Gaussian of the ratio, by Theorem 2."""
        slopes = np.array([1.0, -self.mean]) / self.denominator
        return max(0.0, float(slopes @ self.covariance @ slopes))


def roc_auc_moments(
    evaluation_set: EvaluationSet, p: Numbers | Mechanism | None = None, *, ties: Literal["half", "full"] = "full"
) -> RocAucMoments:
    """Return the moments of ROC-AUC under missing labels: the paper's Lemma 13 and Remark 14, for any number of rows.

    The paper's sums have n^4 terms, so above 120 rows it takes mean and variance from 10,000 imputations. The same sums
    are computed here from cumulated counts.

    Parameters
    ----------
    evaluation_set, p
        As in `pemi`.
    ties : {"full", "half"}
        Whether a tied pair counts as ranked rightly, as in the paper, or as half of one, as in scikit-learn.

    Returns
    -------
    RocAucMoments
        Means and covariance of numerator and denominator.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.8, 0.3])
    >>> moments = dm.paper.roc_auc_moments(data, 0.5)
    >>> moments.numerator, moments.denominator
    (3.25, 3.5)
    """
    probability = known_probabilities(evaluation_set, p)
    functional = roc_auc(ties=ties).bind(evaluation_set, np.nan)
    assert isinstance(functional, RankFunctional)
    if probability.size:
        a, d, var_a, var_d, cov = (float(value[0]) for value in auc_moments(functional.data, probability[None]))
    else:
        cells = evaluation_set.cells
        d = float(cells.mass(cells.positives).sum() * cells.mass(cells.negatives).sum())
        a, var_a, var_d, cov = d * float(functional.values(np.zeros((1, 0)))[0]), 0.0, 0.0, 0.0
    if not d > 0.0:
        raise InputError(
            "evaluation_set", "no pair of a positive and a negative row is possible", "ROC-AUC needs both classes."
        )
    return RocAucMoments(a, d, np.array([[var_a, cov], [cov, var_d]]))


class AccuracyEstimator(NamedTuple):
    """Mean and variance of the accuracy of n labeled rows over random test sets: unbiased, with variance O(1/n).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> round(dm.paper.proposition_5(0.9, n=100).deviation_probability(0.2), 4)
    0.0225
    """

    mean: float
    variance: float

    def deviation_probability(self, epsilon: float) -> float:
        """Return Chebyshev's bound on the probability of an error of at least `epsilon`, which proves consistency."""
        return min(1.0, self.variance / number_argument(epsilon, "epsilon", above=0.0) ** 2)


def proposition_5(accuracy: float, n: int) -> AccuracyEstimator:
    """Return mean and variance of the accuracy of n labeled rows: the paper's Proposition 5.

    Parameters
    ----------
    accuracy : float
        Probability that the classifier is right on a row.
    n : int
        Number of rows of the test set.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> estimator = dm.paper.proposition_5(0.9, n=1000)
    >>> estimator.mean, round(estimator.variance, 7), round(estimator.deviation_probability(0.03), 3)
    (0.9, 9e-05, 0.1)
    """
    value = number_argument(accuracy, "accuracy", above=-np.inf)
    if not 0.0 <= value <= 1.0:
        raise InputError("accuracy", f"{value:g}", "A probability lies in [0, 1].")
    if not is_whole(n) or n < 1:
        raise InputError("n", f"{n!r}", "It must be a whole number of at least 1.")
    return AccuracyEstimator(value, value * (1.0 - value) / n)


def probabilistic_query(
    metrics: MetricsLike = DEFAULT_METRICS, *, tp: float, fn: float, fp: float, tn: float
) -> dict[str, float]:
    """Return metrics of a classifier from the joint probabilities of label and prediction.

    A probabilistic query is a formula of probabilities, such as P(Y = 1, psi = 1) / P(psi = 1) for precision. The
    metric of a test set estimates it, with fractions of rows in place of the probabilities.

    Parameters
    ----------
    metrics
        Metrics of the confusion matrix, as in `evaluate`.
    tp, fn, fp, tn : float
        P(Y = 1, psi = 1), P(Y = 1, psi = 0), P(Y = 0, psi = 1) and P(Y = 0, psi = 0); their sum is 1.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.probabilistic_query(["precision", "accuracy"], tp=0.25, fn=0.125, fp=0.25, tn=0.375)
    {'precision': 0.5, 'accuracy': 0.625}
    """
    probability = [
        number_argument(value, name, above=-np.inf) for name, value in zip(_ELEMENTS, (tp, fn, fp, tn), strict=True)
    ]
    if min(probability) < 0.0 or abs(sum(probability) - 1.0) > 1e-9:
        raise InputError("tp, fn, fp, tn", f"{probability}", "Probabilities are at least 0, and these add up to 1.")
    label, predicted = zip(*_ELEMENTS.values(), strict=True)
    rows = EvaluationSet(
        [int(value) for value in label],
        [float(value) for value in predicted],
        sample_weight=probability,
        threshold=0.5,
    )
    return {metric.name: metric.value(rows) for metric in metrics_from(metrics)}
