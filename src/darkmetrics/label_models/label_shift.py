"""Label shift: labels missing because of what they are."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel, takes_calibration
from darkmetrics.label_models.fitting import (
    N_NODES,
    Material,
    Posterior,
    check_both_classes,
    check_n_nodes,
    posterior_nodes,
    warn_if_few_labels,
)
from darkmetrics.label_models.score_table import ReferenceLike
from darkmetrics.nodes import Nodes

# Prior of the chance to be missing, on the log odds scale: anything for the level common to both classes (Gaussian);
# the difference between them is Cauchy, which leaves it near 0 where the scores say little and lets it be large where
# they do.
_COMMON, _DIFFERENCE = 3.0, 2.0
_HEAVY = (False, True)


@takes_calibration
@dataclass(frozen=True, eq=False)
class LabelShift(LabelModel):
    """Labels are missing because of what they are (frauds take longer to confirm), whatever the score.

    Scores are then distributed alike among labelled and missing positives, and among labelled and missing negatives, so
    the scores of the missing rows tell how many of them are positive. How well they tell it is part of the answer.

    Parameters
    ----------
    calibrator : {"beta", "platt"}, Beta or Platt
        The curve from scores to probabilities.
    reference : (labels, scores) or EvaluationSet, optional
        Held-out, fully labelled rows. They say how many positives there should be in all, and so how many are left over
        for the missing rows; this assumes that nothing has drifted since.
    prior_scale : float
        Scale of the Cauchy prior of the log odds ratio between being missing and being positive: before seeing data,
        it is as likely as not that this is larger, in either direction.
    n_nodes : int
        How many cases stand for the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(2000)
    >>> y = rng.random(2000) < y_score**2
    >>> y_true = np.where(rng.random(2000) < np.where(y, 0.5, 0.1), np.nan, y)  # positives are missing more often
    >>> by_label, by_score = (dm.evaluate(y_true, y_score, label_model=m) for m in ("label_shift", "calibrated"))
    >>> print(f"{by_label['precision'].mean():.2f} {by_score['precision'].mean():.2f}")
    0.58 0.48
    >>> print(f"in truth {y[y_score >= 0.5].mean():.2f}")
    in truth 0.58
    """

    calibrator: CalibratorLike = "beta"
    reference: ReferenceLike | None = field(default=None, repr=False)
    prior_scale: float = _DIFFERENCE
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)
        given: Any = self.prior_scale
        if not (is_number(given) and 0.0 < given < np.inf):
            raise InputError(f"prior_scale: {self.prior_scale!r}. It must be a positive number.")

    def nodes(self, data: EvaluationSet) -> Nodes:
        material = Material.of(data, self.reference)
        nodes = shifted_nodes(self, material).nodes
        warn_if_few_labels(material, "LabelShift")
        return nodes

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        held_out = "" if self.reference is None else " and the held-out rows (assumed: no drift since)"
        return (
            "Assumed: labels are missing by label, whatever the score. "
            f"How many missing rows are positive is read off their scores{held_out}."
        )


def shifted_nodes(settings: LabelShift, material: Material) -> Posterior:
    """The joint posterior of the calibration and of the chances to be missing."""
    check_both_classes(material, "LabelShift")
    calibrator = material.logistic_calibrator(settings.calibrator)
    constant = np.ones((material.table.score.size, 1))
    likelihood = material.likelihood(calibrator, constant, (_COMMON, float(settings.prior_scale)), _HEAVY)
    return posterior_nodes(likelihood, material.table, settings.n_nodes)
