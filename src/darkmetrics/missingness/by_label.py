"""Label shift: labels missing because of their value."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import IntArray
from darkmetrics.argument_types import RowValues
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.classes import by_label, class_fit_data
from darkmetrics.missingness.curve import STRATUM, add_missing_by_class
from darkmetrics.missingness.fit_data import (
    N_DRAWS,
    FitData,
    check_both_classes,
    warn_if_few_labels,
)
from darkmetrics.missingness.reference import REFERENCE_CODE, ReferenceLike, check_reference
from darkmetrics.missingness.rows import Rows
from darkmetrics.missingness.sampling import MechanismPosterior, fit_mechanism
from darkmetrics.posterior import Cells, Model, Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.posterior.model import Term
from darkmetrics.wording import named

# Prior of the log odds of being missing: Gaussian for the level common to both classes. The difference between the
# classes is Cauchy: near 0 if the scores have little information, large if they show it.
_COMMON, _DIFFERENCE = 3.0, 2.0
# How far the level of a stratum may be from the common one.
_LEVEL = 1.5


@dataclass(frozen=True, eq=False)
class ByLabel(Mechanism):
    """Labels are missing because of their value (frauds take longer to confirm), whatever the score.

    Scores then have the same distribution among labeled and missing positives, and among labeled and missing negatives.
    The scores of the missing rows therefore determine how many of them are positive, with an uncertainty that enters
    the intervals.

    Parameters
    ----------
    calibrator : {"beta", "platt"}, Beta or Platt
        The curve from scores to probabilities.
    reference : Reference or EvaluationSet, optional
        Held-out, fully labeled rows. They determine the total number of positives, and thus the number among the
        missing rows; this assumes that nothing has drifted since.
    prior_scale : float
        Scale of the Cauchy prior of the log odds ratio between being missing and being positive: before seeing data,
        it is as likely as not that this is larger, in either direction.
    n_draws : int
        Number of posterior draws.
    strata : array-like of int or text, or str, optional
        Segment of each row, or a column of `data`; True: that of an EvaluationSet. Curve, missing rate and its
        difference between the classes have a level in each of at most 30 segments, shrunk toward a common one.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(2000)
    >>> y = rng.random(2000) < y_score**2
    >>> y_true = np.where(rng.random(2000) < np.where(y, 0.5, 0.1), np.nan, y)  # positives are missing more often
    >>> by_label, by_score = (dm.evaluate(y_true, y_score, missingness=m) for m in ("by_label", "by_score"))
    >>> print(f"{by_label['precision'].mean():.2f} {by_score['precision'].mean():.2f}")
    0.58 0.48
    >>> print(f"in truth {y[y_score >= 0.5].mean():.2f}")
    in truth 0.58
    """

    row_fields: ClassVar[tuple[str, ...]] = ("strata",)

    calibrator: CalibratorLike = "flexible"
    reference: ReferenceLike | None = field(default=None, repr=False)
    prior_scale: float = _DIFFERENCE
    strata: RowValues = None
    n_draws: int = N_DRAWS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reference(self.reference)

    def posterior(self, data: EvaluationSet) -> Posterior:
        fit_data = FitData.of(data, self.reference, by_stratum=self.strata is not None)
        posterior = fit_by_label(fit_data, self.calibrator, float(self.prior_scale), self.n_draws).posterior
        warn_if_few_labels(fit_data, "ByLabel")
        return posterior

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        posterior, _ = by_label(class_fit_data(self, data), self.n_draws)
        posterior.assumption = (
            "Assumed: labels are missing by label, whatever the scores. How many missing rows belong to each class is "
            "learned from their scores."
        )
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        held_out = "" if self.reference is None else " and the held-out rows (assumed: no drift since)"
        within = "" if self.strata is None else ", in each stratum"
        return (
            f"Assumed: labels are missing by label{within}, whatever the score. "
            f"How many missing rows are positive is read off their scores{held_out}."
        )


def add_by_label(model: Model, label: IntArray, rows: Rows, scale: float = _DIFFERENCE) -> tuple[Cells, Term]:
    """Add rows with labels missing by label (MNAR); return the missing rows, and parameters and columns of the effect.

    The log odds of being missing are a level plus or minus half of the effect of the label, in every stratum.
    """
    n, strata = rows.n_strata, np.eye(rows.n_strata)
    level = [(model.add_parameters(0.0, _COMMON), np.ones((n, 1)))]
    effect = [(model.add_parameters(0.0, scale, cauchy=True), np.ones((n, 1)))]
    if n > 1:
        level.append((model.add_parameters(np.zeros(n), _LEVEL), strata))
        effect.append((model.add_parameters(np.zeros(n), STRATUM), strata))
    by_class = [[(indices, (y - 0.5) * columns) for indices, columns in effect] for y in (0, 1)]
    is_missing = [model.add_decisions(*level, *terms)[rows.stratum] for terms in by_class]
    indices, columns = (np.concatenate(values, axis=-1) for values in zip(*effect, strict=True))
    return add_missing_by_class(model, label, rows, is_missing), (indices, columns[rows.stratum])


def fit_by_label(
    fit_data: FitData, calibrator: CalibratorLike = "flexible", scale: float = _DIFFERENCE, n_draws: int = N_DRAWS
) -> MechanismPosterior:
    """Return the joint posterior of the curve and of the probabilities to be missing."""
    check_both_classes(fit_data, "ByLabel")
    check_strata(fit_data)
    return fit_mechanism(fit_data, calibrator, partial(add_by_label, scale=scale), n_draws)


def check_strata(fit_data: FitData) -> None:
    """Refuse a stratum with missing rows and labels of a single class."""
    table = fit_data.table
    if table.stratum is None or table.strata is None or fit_data.reference is not None:
        return
    size = table.strata.size
    missing = np.bincount(table.stratum, table.missing, size)
    for word, counts in (("positive", table.positives), ("negative", table.negatives)):
        without = np.flatnonzero((np.bincount(table.stratum, counts, size) == 0.0) & (missing > 0.0))
        if without.size:
            first = int(without[0])
            name = frames.stratum_name(int(table.strata[first]))
            raise InputError(
                "strata",
                f"stratum {name} has {int(missing[first]):,} missing rows and no {word} label (ByLabel)",
                f"Without it the number of missing {word} labels cannot be estimated.",
                f"Join the stratum with a neighbor, pass {REFERENCE_CODE}, or leave {named('strata')} out.",
            )
