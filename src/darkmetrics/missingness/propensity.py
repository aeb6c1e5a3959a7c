"""Propensity: the probability of each row to get its label is known."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import RowValues
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.calibrators.logistic import mean_and_sd
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.by_score import fit_columns
from darkmetrics.missingness.checks import warn_if_extrapolated
from darkmetrics.missingness.classes import by_score, class_fit_data
from darkmetrics.missingness.curve import Columns
from darkmetrics.missingness.fit_data import N_DRAWS, FitData, check_labeled, credit_of, warn_if_few
from darkmetrics.missingness.score_table import joint_table
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.wording import code, setting

# Prior standard deviations: deviation of the curve of rows with propensity 1, relative to the prior of the curve; slope
# in the propensity; hinges; slope of the curve times propensity. The unit of a propensity is an sd of its log odds.
_SURE, _SLOPE, _HINGE, _INTERACTION = 0.7, 2.0, 1.5, 0.7
_KNOTS = 5
# Log odds of propensities are cut here for several classes.
_MIN_PROPENSITY = 1e-3


@dataclass(frozen=True, eq=False)
class Propensity(Mechanism):
    """Rows got their labels with probabilities that are known: a policy, a sampling design or random overrides.

    At one score and one propensity labels are missing at random. The propensity is therefore a second score: the level
    and the slope of the curve from scores to probabilities depend on it. The curve of rows that were certain to get a
    label (propensity 1) may differ in every coefficient.

    Parameters
    ----------
    propensity : array-like or str, optional
        Probability of each row to get its label, above 0 where there is one, or a column of `data`. None takes those of
        an EvaluationSet that was built with them.
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_draws : int
        Number of posterior draws.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(size=(2, 4000))  # what an old scorecard saw, and what the new one sees
    >>> y = rng.random(4000) < 1 / (1 + np.exp(1 - old - new))
    >>> pi = np.where(old < 0, 1.0, 0.1)  # low risks are let in, one in ten of the others at random
    >>> y_true = np.where(rng.random(4000) < pi, y, np.nan)
    >>> y_score = 1 / (1 + np.exp(1.2 - new))
    >>> for stated in ("by_score", dm.missing.Propensity(pi)):
    ...     low, high = dm.evaluate(y_true, y_score, metrics="precision", missingness=stated)["precision"].interval()
    ...     print(f"{low:.2f} to {high:.2f}, in truth {y[y_score >= 0.5].mean():.2f}")
    0.44 to 0.51, in truth 0.64
    0.49 to 0.65, in truth 0.64
    """

    row_fields: ClassVar[tuple[str, ...]] = ("propensity",)

    propensity: RowValues = field(default=None, repr=False)
    calibrator: CalibratorLike = "flexible"
    n_draws: int = N_DRAWS

    def posterior(self, data: EvaluationSet) -> Posterior:
        fit_data, propensity = FitData.of(data), need_propensity(data, "Propensity")
        check_labeled(fit_data, "Propensity")
        calibrator = fit_data.logistic_calibrator(self.calibrator)
        power = check_informative(data, propensity, "Propensity")
        table, (propensity,) = joint_table(data, propensity)
        line = calibrator.line(table.score)
        curve = Columns(calibrator.design(table.score), calibrator.prior_mean_, calibrator.prior_scale_)
        more = build_propensity_columns(propensity, [curve], line, table.labeled + table.missing)
        posterior = fit_columns(table, [curve, more], line, self.n_draws, power)
        warn_if_extrapolated(fit_data, "Propensity")
        return posterior

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        propensity = need_propensity(data, "Propensity")
        log_odds = logit(np.clip(propensity, _MIN_PROPENSITY, 1.0 - _MIN_PROPENSITY))
        mean, sd = mean_and_sd(log_odds, data.cells.total.astype(np.float64))
        z = (log_odds - mean) / sd
        more = np.column_stack([z, np.maximum(z, 0.0), propensity >= 1.0])
        posterior = by_score(class_fit_data(self, data, more), self.n_draws)
        posterior.assumption = (
            "Assumed: each row got its label with the probability passed. Probabilities of each class are calibrated "
            f"by score and propensity on the {data.n_labeled:,} labeled rows."
        )
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        cells = data.cells
        n_random = int((cells.total - cells.missing)[need_propensity(data, "Propensity") < 1.0].sum())
        return (
            "Assumed: each row got its label with the chance given. Probabilities are calibrated by score and chance "
            f"on the {data.n_labeled:,} labeled rows, of which {n_random:,} had a chance below 1."
        )


def need_propensity(data: EvaluationSet | ClassSet, mechanism: str) -> FloatArray:
    """Return the propensity of each cell."""
    if data.cells.propensity is None:
        raise InputError(
            "propensity",
            f"none with these rows ({mechanism})",
            "",
            f"Pass {code('dm.missing.Propensity(...)')} with the probability of each row to get its label, to evaluate "
            "or when building the EvaluationSet.",
        )
    return data.cells.propensity


def check_informative(data: EvaluationSet, propensity: FloatArray, mechanism: str) -> float:
    """Check that rows with a propensity below 1 have labels; return the power of the likelihood."""
    cells, can_miss = data.cells, propensity < 1.0
    counts = int(cells.positives[can_miss].sum()), int(cells.negatives[can_miss].sum())
    if not any(counts):
        raise InputError(
            "propensity",
            f"1 for every row with a label ({mechanism}), so no labeled row represents missing rows",
            "Rows with a probability below 1 must have labels, such as random overrides or a sample of the rejected.",
            f"Without them set {setting('missingness')} to another mechanism.",
        )
    warn_if_few("propensity", counts, mechanism, "Only labels of rows with a propensity below 1 count.")
    return credit_of(min(counts))


def build_propensity_columns(
    propensity: FloatArray, blocks: Sequence[Columns], line: FloatArray, rows: FloatArray
) -> Columns:
    """Return columns of a piecewise linear effect of the propensity, and of a different curve at propensity 1.

    Parameters
    ----------
    propensity : array (n,)
        Propensities.
    blocks : sequence of Columns
        Columns of the curve.
    line, rows : array (n,)
        Positions on the score axis, and numbers of rows.
    """
    is_sure = propensity >= 1.0
    x = np.zeros(propensity.size)
    can_miss = np.flatnonzero(~is_sure)
    log_odds = logit(np.clip(propensity[can_miss], 1e-6, 1.0))
    center, spread = mean_and_sd(log_odds, rows[can_miss])
    x[can_miss] = (log_odds - center) / spread
    distinct = np.unique(x[can_miss])
    knots = np.quantile(distinct, np.linspace(0.0, 1.0, min(distinct.size, _KNOTS + 2))[1:-1])
    hinges = np.where(is_sure[:, None], 0.0, np.maximum(x[:, None] - knots, 0.0))
    shapes = [is_sure[:, None] * block.columns for block in blocks]
    columns = np.column_stack([*shapes, x, hinges, x * line])
    sds = [_SURE * block.sd for block in blocks]
    scale = np.concatenate([*sds, [_SLOPE], np.full(knots.size, _HINGE), [_INTERACTION]])
    varies = np.ptp(columns, axis=0) > 0.0
    return Columns(columns[:, varies], np.zeros(int(varies.sum())), scale[varies])
