"""Rao's score test: would more columns improve a logistic regression?"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray


class ScoreTest(NamedTuple):
    """A statistic that is chi-square with `dof` degrees of freedom if the added columns do nothing."""

    statistic: float
    dof: int


def logistic_score_test(
    X: FloatArray, Z: FloatArray, positives: FloatArray, negatives: FloatArray, beta: FloatArray
) -> ScoreTest:
    """The test of columns `Z` added to a regression on `X` with coefficients near `beta`, from one fit without them.

    With bins for `Z` it is the goodness-of-fit test of Tsiatis (1980). The fit may have had a weak prior: what its
    residuals say about `X` is taken out of what they say about `Z`.
    """
    p = expit(X @ beta)
    rows = positives + negatives
    residual, weight = positives - rows * p, rows * p * (1.0 - p)
    XtW = X.T * weight
    # What of each added column the columns of X cannot do.
    own = Z - X @ np.linalg.lstsq(XtW @ X, XtW @ Z, rcond=None)[0]
    score, covariance = own.T @ residual, (own.T * weight) @ own
    scale = np.sqrt(np.maximum(np.diag((Z.T * weight) @ Z), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > 1e-6
    part = vectors[:, kept].T @ (score / scale)
    return ScoreTest(float(np.sum(part**2 / values[kept])), int(kept.sum()))
