"""Coefficients of a logistic regression as a Gaussian: at the mode, or as weighted rows have it (the sandwich)."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.logistic import logistic_mode
from darkmetrics._kernels.posterior.sobol import normal_points

_SEED = 17


class WeightedLabels(NamedTuple):
    """Sums over the labelled rows of each row of a table: of their weights, and of the squares of these."""

    positives: FloatArray
    negatives: FloatArray
    positive_squares: FloatArray
    negative_squares: FloatArray

    @classmethod
    def normalised(cls, *sums: FloatArray) -> "WeightedLabels":
        """Weights that sum to the number of equally weighted rows that these are worth, `(sum w)^2 / sum w^2`.

        So does the sum of their squares, and a prior means what it means beside so many rows.
        """
        positives, negatives, positive_squares, negative_squares = sums
        scale = float(positives.sum() + negatives.sum()) / float(positive_squares.sum() + negative_squares.sum())
        return cls(scale * positives, scale * negatives, scale**2 * positive_squares, scale**2 * negative_squares)


def sandwich(
    X: FloatArray, labels: WeightedLabels, centre: FloatArray, prior_scale: FloatArray, credit: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Mode of the weighted log posterior and the covariance that goes with weights, `H^-1 J H^-1`.

    `H` is the curvature, `J` what the gradient varies by: the squares of what each row adds to it, and the prior. Rows
    of one weight make both the same. `credit` is the power that the likelihood is raised to.
    """
    precision = prior_scale**-2.0
    mode, hessian = logistic_mode(X, credit * labels.positives, credit * labels.negatives, centre, precision)
    p = expit(X @ mode)
    square = labels.positive_squares * (1.0 - p) ** 2 + labels.negative_squares * p**2
    varies = credit * (X.T * square) @ X + np.diag(precision)
    half = np.linalg.solve(hessian, np.linalg.cholesky(varies))
    covariance: FloatArray = half @ half.T
    return mode, covariance


def gaussian_draws(mode: FloatArray, covariance: FloatArray, n_draws: int) -> FloatArray:
    """Draws that fill a Gaussian evenly: the same in every run."""
    sd = np.sqrt(np.diag(covariance))
    # Where one combination is known far better than the rest, rounding may leave less than nothing of its variance.
    root = sd[:, None] * np.linalg.cholesky(covariance / np.outer(sd, sd) + 1e-12 * np.eye(sd.size))
    draws: FloatArray = mode + normal_points(n_draws, mode.size, _SEED) @ root.T
    return draws
