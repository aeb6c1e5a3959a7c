"""Logistic regression on counts, as a model of one decision."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.posterior.likelihood import LOG_2PI, Likelihood
from darkmetrics.posterior.mode import Mode, find_mode
from darkmetrics.posterior.model import Model

# Steps of the search end where they raise the log posterior by less than this, per row.
_MIN_GAIN = 1e-14


def find_logistic_mode(
    columns: FloatArray, positives: FloatArray, negatives: FloatArray, mean: FloatArray, precision: FloatArray
) -> Mode:
    """Find the posterior mode of logistic regression coefficients; minus the Hessian comes with it.

    Parameters
    ----------
    columns : array (n, width)
        Columns of the regression.
    positives, negatives : array (n,)
        Numbers of rows, not necessarily integers.
    mean, precision : array (width,)
        Independent Gaussian priors; precision 0 is a flat prior. If no mode exists (separated classes, flat prior),
        the coefficients are large.
    """
    rows = np.flatnonzero(positives + negatives)
    if not rows.size:
        return Mode(mean, 0.0, np.diag(precision))
    model = Model()
    label = model.add_decisions((model.add_parameters(mean, precision=np.diag(precision)), columns[rows]))
    for y, count in enumerate((negatives[rows], positives[rows])):
        model.add_cells(count, [(y, [label[:, y]])])
    likelihood = Likelihood(model)
    # A prior mean that is certain of wrong labels leaves no curvature to find the way back.
    starts = np.stack([mean, np.zeros_like(mean)])
    start = starts[int(np.argmax(likelihood.log_posterior(np.ascontiguousarray(starts.T))))]
    return find_mode(likelihood.expand, start, min_gain=_MIN_GAIN * float(positives.sum() + negatives.sum()))


def approximate_log_integral(mode: Mode) -> float:
    """Return the log of the integral of likelihood times prior by a Laplace approximation."""
    return mode.value + 0.5 * mode.theta.size * LOG_2PI - 0.5 * float(np.linalg.slogdet(mode.precision)[1])
