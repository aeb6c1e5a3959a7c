"""Logistic regression on counts with a Gaussian prior: its mode and its curvature there, by Newton's method."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray

_MAX_STEPS = 200
_MAX_HALVINGS = 40


def logistic_mode(
    X: FloatArray, positives: FloatArray, negatives: FloatArray, centre: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mode and Hessian of the negative log posterior of `beta`, where row `i` is positive with chance expit(X_i beta).

    Row `i` was seen `positives[i]` and `negatives[i]` times; the prior of `beta[j]` is Gaussian around `centre[j]` with
    `precision[j]`, and flat where that is 0. Where no mode exists (separated classes, flat prior) the coefficients
    come back large.
    """
    XT, beta = np.ascontiguousarray(X.T), centre
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
    hessian = np.einsum("ji,ki->jk", XT, XT * curvature) + np.diag(precision)
    return loss, gradient, hessian


def _solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """The Newton step; the shortest one where the data say nothing about a direction."""
    scale = np.sqrt(np.diag(hessian))
    scale[scale == 0.0] = 1.0
    step: FloatArray = np.linalg.lstsq(hessian / np.outer(scale, scale), gradient / scale, rcond=None)[0] / scale
    return step
