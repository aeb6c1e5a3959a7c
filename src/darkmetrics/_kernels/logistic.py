"""Logistic regression on counts.

The mode of a regression with a Gaussian prior is found by Newton's method. Its coefficients are a Gaussian: that of
the curvature, or what weighted rows make of it (the sandwich).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sobol import normal_points

_MAX_STEPS = 200
_MAX_HALVINGS = 40
# Of a curvature with ones on its diagonal: where each direction adds this much to those before it, all are known.
_KNOWN = 1e-4


def logistic_mode(
    X: FloatArray,
    positives: FloatArray,
    negatives: FloatArray,
    centre: FloatArray,
    precision: FloatArray,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Mode and Hessian of the negative log posterior of `beta`, where row `i` is positive with chance expit(X_i beta).

    Row `i` was seen `positives[i]` and `negatives[i]` times; the prior of `beta[j]` is Gaussian around `centre[j]` with
    `precision[j]`, and flat where that is 0. Where no mode exists (separated classes, flat prior) the coefficients
    come back large. A `start` near the mode saves steps.
    """
    XT, beta = np.ascontiguousarray(X.T), centre if start is None else start
    loss, gradient, hessian = _expansion(XT, positives, negatives, centre, precision, beta)
    if loss > float(positives.sum() + negatives.sum()) * np.log(2.0) + 0.5 * (precision * centre) @ centre:
        # Worse than beta = 0: a centre that is sure of wrong labels leaves no curvature to find the way back.
        beta = np.zeros_like(centre)
        loss, gradient, hessian = _expansion(XT, positives, negatives, centre, precision, beta)
    last_gain = np.inf
    for _ in range(_MAX_STEPS):
        step = _solve(hessian, gradient)
        gain = float(gradient @ step)
        # Errors square with every step, so after a gain of 1e-14 nothing is left to gain. Gains fall to the end; a
        # small one that does not is rounding.
        if gain <= 1e-14 * loss or last_gain <= gain <= 1e-10 * loss:
            return beta - step, hessian
        for _ in range(_MAX_HALVINGS):
            new = _expansion(XT, positives, negatives, centre, precision, beta - step)
            # A good part of what was promised; near the mode that is less than the sum of the losses can show.
            if new[0] <= loss * (1.0 + 1e-13) - 0.1 * float(gradient @ step):
                break
            step = step / 2.0
        else:
            break
        beta, last_gain = beta - step, gain
        loss, gradient, hessian = new
    return beta, hessian


def _expansion(
    XT: FloatArray,
    positives: FloatArray,
    negatives: FloatArray,
    centre: FloatArray,
    precision: FloatArray,
    beta: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """Negative log posterior (up to a constant), its gradient and its Hessian; nothing overflows or cancels."""
    eta = beta @ XT
    tail = np.exp(-np.abs(eta))  # the odds of the less likely label
    less = tail / (1.0 + tail)
    up = eta >= 0.0
    against, in_favour = np.where(up, negatives, positives), np.where(up, positives, negatives)
    off = beta - centre
    loss = float(
        np.einsum("i,i->", against, np.abs(eta))
        + np.einsum("i,i->", against + in_favour, np.log1p(tail))
        + 0.5 * (precision * off) @ off
    )
    # With e the odds of the less likely label: its chance is less = e / (1 + e), that of the other 1 - less.
    pull = against * (1.0 - less) - in_favour * less
    gradient = np.einsum("ji,i->j", XT, np.where(up, pull, -pull)) + precision * off
    curvature = (against + in_favour) * less / (1.0 + tail)
    hessian = (XT * curvature) @ XT.T + np.diag(precision)
    return loss, gradient, hessian


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """The Newton step; the shortest one where the data say nothing about a direction."""
    scale = np.sqrt(np.diag(hessian))
    scale[scale == 0.0] = 1.0
    scaled = hessian / np.outer(scale, scale)
    try:
        known = bool(np.linalg.cholesky(scaled).diagonal().min() > _KNOWN)
    except np.linalg.LinAlgError:
        known = False
    if known:  # a fraction of the time
        return np.asarray(np.linalg.solve(scaled, gradient / scale) / scale)
    return np.asarray(np.linalg.lstsq(scaled, gradient / scale, rcond=None)[0] / scale)


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
