"""ByScoreAndLabel: labels missing by score and by label, with a reference set to tell them apart."""

from dataclasses import dataclass, field

import numpy as np

from darkmetrics._kernels.arrays import IntArray
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.class_tables import build_by_score_and_label
from darkmetrics.missingness.classes import by_table, class_fit_data
from darkmetrics.missingness.curve import add_missing_by_class
from darkmetrics.missingness.fit_data import (
    N_DRAWS,
    FitData,
    check_both_classes,
    warn_if_few_reference_labels,
)
from darkmetrics.missingness.reference import ReferenceLike, check_reference
from darkmetrics.missingness.rows import Rows
from darkmetrics.missingness.sampling import fit_mechanism
from darkmetrics.posterior import Cells, Model, Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.posterior.model import Term
from darkmetrics.wording import code

# Prior standard deviations of the log odds of the missing rate: its level, and the deviation of each rank bin.
_LEVEL, _RATE = 5.0, 3.0
_MAX_RATES, _ROWS_PER_RATE = 40, 25.0
# Scales of the Cauchy priors of the effect of the label: on average, and its slope from the lowest to the middle rank.
# Data with little information leave the effect near 0; a large effect, such as "only positives get a label", does not
# shrink.
_DIFFERENCE = (1.0, 0.75)


@dataclass(frozen=True, eq=False)
class ByScoreAndLabel(Mechanism):
    """Labels are missing by score and by label, in any combination that reference rows determine.

    "random", "by score" and "by label" are special cases, so nothing has to be known about the mechanism. It needs
    fully labeled reference rows and assumes that the relation between score and label has not drifted since.

    Parameters
    ----------
    reference : Reference or EvaluationSet
        Fully labeled rows from the same population: the test set of the model, an earlier month.
    calibrator : {"beta", "platt"}, Beta or Platt
        The curve from scores to probabilities.
    n_draws : int
        Number of posterior draws.

    Notes
    -----
    The missing rate is free in each of up to 40 rank bins (Gaussian priors of its log odds: sd 5 for the level, 3 for
    each bin) and integrated out. The effect of the label on the log odds of being missing is linear in the rank. Cauchy
    priors of scale 1 (average) and 0.75 (slope) shrink it towards 0, where the label plays no part.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = (rng.random(3000) < y_score).astype(float)
    >>> is_labeled = (y == 1) & (rng.random(3000) < 0.4)  # only positives ever get a label
    >>> y_true = np.where(is_labeled, y, np.nan)[1000:]
    >>> earlier = dm.missing.Reference(y[:1000], y_score[:1000])
    >>> precision = dm.evaluate(y_true, y_score[1000:], missingness=earlier)["precision"]
    >>> print(f"{precision.mean():.2f}, in truth {y[1000:][y_score[1000:] >= 0.5].mean():.2f}")
    0.72, in truth 0.74
    """

    reference: ReferenceLike | None = field(default=None, repr=False)
    calibrator: CalibratorLike = "flexible"
    n_draws: int = N_DRAWS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reference(self.reference)
        if self.reference is None:
            raise InputError(
                "reference",
                "missing",
                "Effects of score and label can only be separated by reference rows without drift:",
                f"pass {code('reference=dm.missing.Reference(labels, scores)')}, fully labeled.",
            )

    def posterior(self, data: EvaluationSet) -> Posterior:
        return fit_by_score_and_label(FitData.of(data, self.reference), self.calibrator, self.n_draws)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        fit_data = class_fit_data(self, data)
        posterior, _ = by_table(fit_data, build_by_score_and_label(data, fit_data.curve), self.n_draws)
        posterior.assumption = (
            "Assumed: nothing about why labels are missing (by score, by label, both or neither), but that scores and "
            "labels are related as in the reference rows: no drift since."
        )
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return (
            "Assumed: nothing about why labels are missing (by score, by label, both or neither), but that score and "
            "label are related as in the reference rows: no drift since."
        )


def add_by_score_and_label(model: Model, label: IntArray, rows: Rows) -> tuple[Cells, Term]:
    """Add rows with labels missing by score and label (MNAR); return the missing rows, and the effect of the label.

    The missing rate is free in each rank bin. Reference rows must identify the effect, which is linear in the rank.
    """
    n_rows = float((rows.positives + rows.negatives + rows.missing).sum())
    n_rates = int(np.clip(n_rows / _ROWS_PER_RATE, 1, _MAX_RATES))
    code = 2 * np.minimum((rows.rank * n_rates).astype(np.int64), n_rates - 1) + (rows.is_above > 0.5)
    distinct, rate = np.unique(code, return_inverse=True)
    z = np.bincount(rate, rows.rank) / np.bincount(rate)
    level = model.add_parameters(0.0, _LEVEL), np.ones((distinct.size, 1))
    rates = model.add_parameters(np.zeros(distinct.size), _RATE, nuisance=True), np.eye(distinct.size)
    indices = model.add_parameters(np.zeros(2), np.array(_DIFFERENCE), cauchy=True)
    columns = np.column_stack([np.ones(z.size), 2.0 * z - 1.0])
    is_missing = [model.add_decisions(level, rates, (indices, (y - 0.5) * columns))[rate] for y in (0, 1)]
    return add_missing_by_class(model, label, rows, is_missing), (indices, columns[rate])


def fit_by_score_and_label(
    fit_data: FitData, calibrator: CalibratorLike = "flexible", n_draws: int = N_DRAWS
) -> Posterior:
    """Return the posterior of the missing labels, with a warning if there are few reference labels."""
    check_both_classes(fit_data, "ByScoreAndLabel")
    posterior = fit_mechanism(fit_data, calibrator, add_by_score_and_label, n_draws).posterior
    warn_if_few_reference_labels(fit_data, "ByScoreAndLabel")
    return posterior
