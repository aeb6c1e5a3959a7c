"""Selection: labels missing by score and by label, with a reference set to tell them apart."""

from dataclasses import dataclass, field

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypothesis_tests import equal_bins
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import LabelModel, takes_calibration
from darkmetrics.missingness.fit_data import (
    N_NODES,
    CurvePosterior,
    FitData,
    check_both_classes,
    check_n_nodes,
    posterior_nodes,
    warn_if_few_reference_labels,
)
from darkmetrics.missingness.score_table import ReferenceLike
from darkmetrics.posterior import Posterior

# Prior of the chance to be missing, on the log odds scale and per standard deviation of the score. Common to both
# classes: level, slope, slope over the ranks, a step where the decision changes and a level of its own in each eighth
# of the rows (Gaussian: how many are missing at a score is in plain sight). Then the differences between the classes in
# level and slope, where 0 means that the label plays no part. These are Cauchy: data that say little leave them near 0,
# and data that insist on a large difference, such as "only positives get a label", are not held back.
_LEVEL, _SLOPE, _RANK, _STEP, _EIGHTHS = 3.0, 3.0, 3.0, 3.0, 1.5
_DIFFERENCE = (1.0, 0.5)
_N_EIGHTHS = 8


@takes_calibration
@dataclass(frozen=True, eq=False)
class Selection(LabelModel):
    """Labels are missing by score and by label, in any combination; a reference set tells how much of each.

    It contains "random", "by score" and "by label" as special cases, so that nothing has to be known about the
    mechanism. What it needs instead is a fully labelled reference set and the assumption that the relation between
    score and label has not drifted since.

    Parameters
    ----------
    reference : (labels, scores) or EvaluationSet
        Fully labelled rows from the same population: the test set of the model, an earlier month.
    calibrator : {"beta", "platt"}, Beta or Platt
        The curve from scores to probabilities.
    n_nodes : int
        How many cases stand for the posterior.

    Notes
    -----
    The chance to be missing may follow the score in any way that a line, a step at the threshold and a level for each
    eighth of the rows can describe; on the log odds scale it differs between the classes by a line. The differences
    between the classes are shrunk towards zero, where the label plays no part, by Cauchy priors of scale 1 (level) and
    0.5 (slope), on the log odds scale and per standard deviation of the score's log odds; level and slope common to
    both classes have wide Gaussian priors (standard deviation 3). Without this shrinkage small sets get erratic
    answers.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = (rng.random(3000) < y_score).astype(float)
    >>> found = (y == 1) & (rng.random(3000) < 0.4)  # only positives ever get a label
    >>> y_true = np.where(found, y, np.nan)[1000:]
    >>> law = dm.evaluate(y_true, y_score[1000:], reference=(y[:1000], y_score[:1000]))["precision"]
    >>> print(f"{law.mean():.2f}, in truth {y[1000:][y_score[1000:] >= 0.5].mean():.2f}")
    0.72, in truth 0.74
    """

    reference: ReferenceLike | None = field(default=None, repr=False)
    calibrator: CalibratorLike = "flexible"
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)
        if self.reference is None:
            raise InputError(
                "reference: missing. Labels missing by score and label can only be told from reference rows without "
                "drift: give reference=(labels, scores), fully labelled."
            )

    def nodes(self, data: EvaluationSet) -> Posterior:
        return warned_nodes(self, FitData.of(data, self.reference))

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return (
            "Assumed: nothing about why labels are missing (by score, by label, both or neither), but that score and "
            "label are related as in the reference rows: no drift since."
        )


def warned_nodes(settings: Selection, fit_data: FitData) -> Posterior:
    """The nodes, with a warning where there are few reference labels to lean on."""
    nodes = selected_nodes(settings, fit_data).nodes
    warn_if_few_reference_labels(fit_data, "Selection")
    return nodes


def selected_nodes(settings: Selection, fit_data: FitData) -> CurvePosterior:
    """The joint posterior of the calibration and of the two curves of missingness."""
    check_both_classes(fit_data, "Selection")
    calibrator = fit_data.logistic_calibrator(settings.calibrator)
    table = fit_data.table
    x = calibrator.line(table.score)
    rows = table.labelled + table.missing
    mean = np.average(x, weights=rows)
    sd = np.sqrt(np.average((x - mean) ** 2, weights=rows))
    z = (x - mean) / (sd if sd > 1e-9 * (1.0 + abs(mean)) else 1.0)
    difference = np.column_stack([np.ones(z.size), z])
    common, scale = _common_columns(fit_data, difference, rows)
    heavy = (False,) * len(scale) + (True,) * len(_DIFFERENCE)
    likelihood = fit_data.likelihood(calibrator, common, (*scale, *_DIFFERENCE), heavy, difference)
    return posterior_nodes(likelihood, table, settings.n_nodes)


def _common_columns(fit_data: FitData, line: FloatArray, rows: FloatArray) -> tuple[FloatArray, tuple[float, ...]]:
    """What both classes share of the chance to be missing, and the scale of its prior: a line, a step, and eighths.

    Selection that is not logistic in the score ("alerts are examined first") must find its shape here; what it cannot
    express would be taken for an effect of the label.
    """
    columns, scale = [*line.T, fit_data.table.rank], [_LEVEL, _SLOPE, _RANK]
    threshold = fit_data.data.threshold
    if threshold is not None:
        step = (fit_data.table.score >= threshold).astype(np.float64)
        if 0.0 < step @ rows < rows.sum():
            columns.append(step)
            scale.append(_STEP)
    eighth = equal_bins(rows, _N_EIGHTHS)
    for k in range(1, int(eighth[-1]) + 1):
        columns.append((eighth == k).astype(np.float64))
        scale.append(_EIGHTHS)
    return np.column_stack(columns), tuple(scale)
