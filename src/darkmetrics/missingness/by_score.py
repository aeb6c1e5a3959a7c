"""Labels missing at random, or by score: probabilities are calibrated on labeled rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.argument_types import RowValues
from darkmetrics.calibrators import Calibrator, Flexible
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.calibrators.choice import Fitted
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.checks import warn_if_extrapolated, warn_if_misfit
from darkmetrics.missingness.classes import by_score, class_fit_data, describe_by_score
from darkmetrics.missingness.curve import Columns, add_curve, add_labeled, add_reference
from darkmetrics.missingness.fit_data import (
    N_DRAWS,
    FitData,
    check_labeled,
    check_n_draws,
    warn_if_few_labels,
)
from darkmetrics.missingness.level import add_level, describe_few_labels
from darkmetrics.missingness.rows import Rows, build_rows
from darkmetrics.missingness.sampling import sample_posterior
from darkmetrics.missingness.score_table import ReferenceLike, ScoreTable
from darkmetrics.posterior import Cells, Model, Posterior
from darkmetrics.posterior.classes import ClassPosterior

_SOURCES = ("all", "labeled", "reference")


@dataclass(frozen=True, eq=False)
class ByScore(Mechanism):
    """Probabilities learned from the labeled rows: right when labels are missing at random, or because of the score.

    Then a missing row is positive as often as a labeled row with the same score. What the labels leave open about
    the calibration is shared by all rows and is carried into the law of every metric.

    Parameters
    ----------
    calibrator : {"flexible", "beta", "platt", "scaling_binning", "isotonic"}, Calibrator, or object with predict_proba
        The curve from scores to probabilities. "beta" turns into Platt scaling of the standardised score when scores
        are not probabilities. An object that is fitted already is taken as it is.
    reference : (labels, scores) or EvaluationSet, optional
        Held-out, fully labeled rows to learn from as well. Using them assumes that nothing has drifted since.
    data : {"all", "labeled", "reference"}
        What to learn from: all there is, the labeled rows of the evaluation set, or the held-out rows alone.
    uncertainty : bool
        False takes the fitted probabilities as known, as the paper does: intervals are then too narrow.
    n_draws : int
        How many curves stand for the posterior.
    strata : array-like of int or str, optional
        Segment of each row, or a column of `data`; True: that of an EvaluationSet. The curve has a level in each of at
        most 30 segments, shrunk toward a common one. Needs a logistic curve ("flexible", "beta", "platt").

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(1000)
    >>> y_true = np.where(rng.random(1000) < 0.3, np.nan, rng.random(1000) < y_score)
    >>> for uncertainty in (False, True):
    ...     model = dm.missing.ByScore(uncertainty=uncertainty)
    ...     print(f"{dm.evaluate(y_true, y_score, missingness=model)['recall'].std():.4f}")
    0.0078
    0.0095
    """

    row_fields: ClassVar[tuple[str, ...]] = ("strata",)

    calibrator: CalibratorLike = "flexible"
    reference: ReferenceLike | None = field(default=None, repr=False)
    data: str = "all"
    uncertainty: bool = True
    strata: RowValues = None
    n_draws: int = N_DRAWS

    def __post_init__(self) -> None:
        check_n_draws(self.n_draws)
        if self.data not in _SOURCES:
            raise unknown_name("data", "source of labels", str(self.data), _SOURCES)
        if self.data == "reference" and self.reference is None:
            raise InputError(
                "reference: missing. data='reference' learns from held-out rows alone: give (labels, scores)."
            )

    def posterior(self, data: EvaluationSet) -> Posterior:
        fit_data = FitData.of(data, self.reference, by_stratum=self.strata is not None)
        return fit_by_score(self, fit_data, type(self).__name__)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        fit_data = class_fit_data(self, data)
        posterior = by_score(fit_data, self.n_draws)
        posterior.assumption = describe_by_score(fit_data)
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        sources = {
            "labeled": f"the {data.n_labeled:,} labeled rows",
            "reference": "the held-out rows",
            "all": f"the {data.n_labeled:,} labeled rows"
            + ("" if self.reference is None else " and the held-out ones (assumed: no drift since)"),
        }
        known = "" if self.uncertainty else ", taken as known"
        few = describe_few_labels(FitData.of(data, self.reference).tables, data.threshold)
        return (
            f"Assumed: labels are missing at random or by score{' within strata' if self.strata is not None else ''}. "
            f"Probabilities are calibrated on {sources[self.data]}{known}.{few}"
        )


@dataclass(frozen=True, eq=False)
class Random(ByScore):
    """Labels are missing at random (MCAR): fitted like `ByScore`, which contains it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.missing.Random(calibrator="platt").calibrator
    'platt'
    """


def add_by_score(model: Model, label: IntArray, rows: Rows) -> Cells:
    """Add rows with labels missing at random or by score (MCAR, MAR): missing rows say nothing about the curve."""
    add_labeled(model, label, rows)
    return model.add_cells(0.0, [(y, [label[:, y]]) for y in (0, 1)])


def fit_columns(
    table: ScoreTable, blocks: Sequence[Columns], line: FloatArray, n_draws: int, likelihood_power: float
) -> Posterior:
    """Return the posterior of labels that are missing at random given the score and other values of the rows.

    Parameters
    ----------
    table : ScoreTable
        Joint table of the score and the other values.
    blocks : sequence of Columns
        Columns for the rows of the table.
    line : array (n,)
        Position of the rows on the score axis.
    n_draws : int
        Number of draws.
    likelihood_power : float
        Exponent of the likelihood.
    """
    columns, mean, sd = (np.concatenate(values, axis=-1) for values in zip(*blocks, strict=True))
    rows, model = build_rows(table, columns, line, None, max_bins=table.score.size), Model()
    missing = add_by_score(model, model.add_decisions((model.add_parameters(mean, sd), rows.columns)), rows)
    return sample_posterior(model, rows, missing, n_draws, likelihood_power).posterior


def fit_by_score(settings: ByScore, fit_data: FitData, what: str) -> Posterior:
    """Return the posterior of the missing labels under a calibration curve."""
    if settings.data == "labeled":
        fit_data = replace(fit_data, reference=None)
    elif settings.data == "reference":
        none = np.zeros(fit_data.table.score.size)
        fit_data = replace(fit_data, table=replace(fit_data.table, positives=none, negatives=none))
    calibrator = fit_data.calibrator(settings.calibrator)
    if not isinstance(calibrator, Fitted):
        check_labeled(fit_data, what)
        warn_if_few_labels(fit_data, what)
        warn_if_extrapolated(fit_data, what)
        # Of rows that share their fate a few groups look like a misfit.
        if isinstance(calibrator, Flexible) and not fit_data.n_strata and fit_data.data.groups is None:
            warn_if_misfit(fit_data, what)
    if isinstance(calibrator, LogisticCalibrator) and calibrator.prior_sd is not None and settings.uncertainty:
        curve = fit_data.logistic_calibrator(settings.calibrator)
        rows, model = fit_data.rows(curve), Model()
        missing = add_by_score(model, add_curve(model, curve, rows), rows)
        add_reference(model, curve, fit_data.reference)
        power = fit_data.credit if isinstance(calibrator, Flexible) else 1.0
        posterior = sample_posterior(model, rows, missing, settings.n_draws, power).posterior
        is_default = isinstance(settings.calibrator, str) and settings.calibrator == "flexible"
        return add_level(posterior, fit_data.tables, fit_data.data.threshold) if is_default else posterior
    if fit_data.n_strata:
        raise InputError(
            f"strata: {settings.calibrator!r} with uncertainty={settings.uncertainty} does not fit within them. Take a "
            "logistic curve with its prior on ('flexible', 'beta', 'platt'), or leave strata out."
        )
    return _fitted_nodes(settings, fit_data, calibrator)


def _fitted_nodes(settings: ByScore, fit_data: FitData, calibrator: Calibrator) -> Posterior:
    """Nodes of any calibrator: fitted on every label, not on buckets, because its curve may have steps."""
    cells = fit_data.data.cells
    learned: list[Any] = [(fit_data.value, cells.positives, cells.negatives)] if settings.data != "reference" else []
    if fit_data.reference is not None:
        held_out = fit_data.reference.cells
        learned.append((held_out.score, held_out.positives, held_out.negatives))
    calibrator.fit_counts(*(np.concatenate(column).astype(np.float64) for column in zip(*learned, strict=True)))
    scores = fit_data.value[fit_data.data.missing_cells]
    one = not settings.uncertainty or isinstance(calibrator, Fitted)
    curves = calibrator.predict(scores)[None, :] if one else calibrator.draws(scores, settings.n_draws)
    table = fit_data.table
    rows = np.bincount(table.column, weights=fit_data.data.missing_counts, minlength=table.score.size)
    if np.all(rows <= 0.0) or scores.size <= table.score.size:
        return Posterior(np.full(len(curves), 1.0 / len(curves)), curves)
    means = [np.bincount(table.column, weights=fit_data.data.missing_counts * p, minlength=rows.size) for p in curves]
    weight = np.full(len(curves), 1.0 / len(curves))
    return Posterior(weight, np.array(means) / np.maximum(rows, 1.0), bucket=table.column)
