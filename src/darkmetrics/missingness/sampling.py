"""From a fitted mechanism to the posterior of the missing labels: equally weighted draws of their probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import IntArray
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.missingness.curve import add_curve, add_reference
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.missingness.rows import Rows
from darkmetrics.posterior import Cells, FittedModel, Model, Posterior, fit_model
from darkmetrics.posterior.model import Term
from darkmetrics.posterior.representatives import representatives

# Adds the rows of a mechanism to a model with the outcomes of the labels; returns the cells of missing rows, and the
# effect of the label if there is one.
Declaration: TypeAlias = Callable[[Model, IntArray, Rows], tuple[Cells, Term | None]]

# With effects of the label in several strata, importance weights vary more: this many times the draws are needed.
_DRAWS_IN_STRATA = 4


@dataclass(frozen=True, eq=False)
class MechanismPosterior:
    """The posterior of the missing labels under one mechanism, and the log evidence of the mechanism."""

    posterior: Posterior
    log_evidence: float
    fitted: FittedModel


def fit_mechanism(
    fit_data: FitData, calibrator: CalibratorLike, declare: Declaration, n_draws: int, likelihood_power: float = 1.0
) -> MechanismPosterior:
    """Fit a mechanism: a calibration curve, what `declare` adds to it, and reference rows."""
    curve = fit_data.logistic_calibrator(calibrator)
    rows, model = fit_data.rows(curve), Model()
    missing, effect = declare(model, add_curve(model, curve, rows), rows)
    add_reference(model, curve, fit_data.reference)
    return sample_posterior(model, rows, missing, n_draws, likelihood_power, effect)


def sample_posterior(
    model: Model,
    rows: Rows,
    missing: Cells,
    n_draws: int,
    likelihood_power: float = 1.0,
    effect: Term | None = None,
) -> MechanismPosterior:
    """Fit a model and return equally weighted posterior draws of the probabilities of missing labels.

    Parameters
    ----------
    model : Model
        Model of the labels and of their absence.
    rows : Rows
        Rows of the model.
    missing : Cells
        Cells of missing rows, in the order of `rows`.
    n_draws : int
        Number of draws to return.
    likelihood_power : float
        Exponent of the likelihood.
    effect : pair (indices, columns), optional
        Parameters and columns of the label effect: the log odds ratio between being missing and being positive.
    """
    n_points = draws_for(n_draws) * (_DRAWS_IN_STRATA if effect is not None and rows.n_strata > 1 else 1)
    fitted = fit_model(model, n_points, likelihood_power=likelihood_power)
    p = fitted.label_probability(missing.select(slice(0, rows.n_bins)))
    in_bins = rows.missing[: rows.n_bins]
    selected = representatives(p @ rows.decided, p @ (in_bins - rows.decided), fitted.weight, n_draws)
    p = np.ascontiguousarray(fitted.label_probability(missing.select(slice(rows.n_bins, None)), draws=selected))
    shift = None
    if effect is not None:
        indices, columns = effect
        shift = fitted.theta[np.ix_(selected, indices)] @ (rows.fraction_missing @ columns)
    posterior = Posterior(np.full(n_draws, 1.0 / n_draws), p, column=rows.predicted_column, shift=shift)
    return MechanismPosterior(posterior, fitted.log_evidence, fitted)


def draws_for(n_draws: int) -> int:
    """Return the number of draws from which `n_draws` are selected: about four times as many, a power of 2."""
    return 1 << max(8, (4 * n_draws - 1).bit_length())
