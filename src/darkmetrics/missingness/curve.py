"""The calibration curve P(label = 1 | score) as decisions of a model.

The curve is a logistic regression on the columns of a calibrator: beta calibration (Platt scaling where scores are not
probabilities), five hinges and a step at the threshold, with the calibrator's prior. Strata add a level each.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.missingness.rows import Rows, build_rows
from darkmetrics.missingness.score_table import ScoreTable
from darkmetrics.posterior import Cells, Model

# Prior standard deviation of the log odds of a stratum, relative to those of all rows. With 0.7 intervals are as wide,
# but with six strata that differ by three in all, 90% intervals of accuracy cover 75% instead of 95%.
STRATUM = 1.0


class Columns(NamedTuple):
    """Columns of a logistic regression, with means and standard deviations of the priors of their coefficients."""

    columns: FloatArray
    mean: FloatArray
    sd: FloatArray


def add_curve(model: Model, calibrator: LogisticCalibrator, rows: Rows) -> IntArray:
    """Add the decisions "the label is 1" and return their outcomes; strata shift the curve by a level each."""
    terms = [(model.add_parameters(calibrator.prior_mean_, calibrator.prior_scale_), rows.columns)]
    if rows.n_strata > 1:
        terms.append((model.add_parameters(np.zeros(rows.n_strata), STRATUM), rows.strata))
    return model.add_decisions(*terms)


def add_reference(model: Model, calibrator: LogisticCalibrator, reference: ScoreTable | None) -> None:
    """Add reference rows, whose labels follow the curve; its parameters come first in the model."""
    if reference is None:
        return
    columns, line = calibrator.design(reference.score), calibrator.line(reference.score)
    rows = build_rows(reference, columns, line, None)
    add_labeled(model, model.add_decisions((np.arange(columns.shape[1]), rows.columns)), rows)


def add_labeled(model: Model, label: IntArray, rows: Rows, is_missing: Sequence[IntArray] | None = None) -> None:
    """Add rows with labels, by the decisions "the label is 1" and, for each class, "the label is missing"."""
    for y, count in enumerate((rows.negatives, rows.positives)):
        is_kept = [] if is_missing is None else [is_missing[y][:, 0]]
        model.add_cells(count, [(y, [label[:, y], *is_kept])])


def add_missing_by_class(model: Model, label: IntArray, rows: Rows, is_missing: Sequence[IntArray]) -> Cells:
    """Add rows with and without labels whose missing rate differs between the classes; return those without."""
    add_labeled(model, label, rows, is_missing)
    return model.add_cells(rows.missing, [(y, [label[:, y], is_missing[y][:, 1]]) for y in (0, 1)])
