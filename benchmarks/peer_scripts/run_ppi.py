"""ppi-python: prediction-powered inference, with the score as the prediction of the label.

Means have a formula (precision is the mean label of the rows decided positive, accuracy the mean of being right); the
other three take the library's bootstrap, which returns no estimate: the middle of its interval stands for one.
"""

import numpy as np
from harness import LEVEL, THRESHOLD, Answer, main
from ppi_py import ppboot, ppi_mean_ci, ppi_mean_pointestimate

ALPHA = 1.0 - LEVEL


def mean(y: np.ndarray, predicted: np.ndarray, predicted_missing: np.ndarray) -> tuple[float, float, float]:
    (low,), (high,) = ppi_mean_ci(y, predicted, predicted_missing, alpha=ALPHA)
    return float(ppi_mean_pointestimate(y, predicted, predicted_missing)[0]), float(low), float(high)


def recall(score: np.ndarray, y: np.ndarray) -> float:
    return float(y[score >= THRESHOLD].sum() / y.sum())


def f1(score: np.ndarray, y: np.ndarray) -> float:
    decided = score >= THRESHOLD
    return float(2.0 * y[decided].sum() / (decided.sum() + y.sum()))


def roc_auc(score: np.ndarray, y: np.ndarray) -> float:
    """For labels between 0 and 1 too: chance that a positive outranks a negative."""
    y = y[np.argsort(score)]
    negatives = np.cumsum(1.0 - y)
    return float(y @ (negatives - (1.0 - y)) / (y.sum() * negatives[-1]))


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    np.random.seed(0)  # noqa: NPY002 (the library knows no other source of randomness)
    missing = np.isnan(label)
    y, s, s_missing = label[~missing], score[~missing], score[missing]
    d, d_missing = s >= THRESHOLD, s_missing >= THRESHOLD
    found = {
        "precision": mean(y[d], s[d], s_missing[d_missing]),
        "accuracy": mean((y == d) * 1.0, np.where(d, s, 1.0 - s), np.where(d_missing, s_missing, 1.0 - s_missing)),
    }
    for metric in (recall, f1, roc_auc):
        low, high = ppboot(metric, y, s, s_missing, X=s, X_unlabeled=s_missing, n_resamples=resamples, alpha=ALPHA)
        found[metric.__name__] = ((low + high) / 2.0, float(low), float(high))
    return found


if __name__ == "__main__":
    main("ppi-python", estimate)
