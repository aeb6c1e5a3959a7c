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
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.checks import warn_if_extrapolated, warn_if_misfit
from darkmetrics.missingness.classes import by_score, class_fit_data, describe_by_score
from darkmetrics.missingness.curve import Columns, add_labeled
from darkmetrics.missingness.fit_data import (
    N_DRAWS,
    FitData,
    check_labeled,
    warn_if_few_labels,
)
from darkmetrics.missingness.level import add_level, describe_few_labels
from darkmetrics.missingness.reference import ReferenceLike, check_reference
from darkmetrics.missingness.rows import Rows, build_rows
from darkmetrics.missingness.sampling import fit_mechanism, sample_posterior
from darkmetrics.missingness.score_table import ScoreTable
from darkmetrics.posterior import Cells, Model, Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.wording import named

_SOURCES = ("all", "labeled", "reference")


@dataclass(frozen=True, eq=False)
class ByScore(Mechanism):
    """Probabilities learned from the labeled rows: right when labels are missing at random, or because of the score.

    Then a missing row is positive as often as a labeled row with the same score. The uncertainty of the calibration is
    common to all rows and enters the distribution of every metric.

    Parameters
    ----------
    calibrator : {"flexible", "beta", "platt", "scaling_binning", "isotonic"}, Calibrator, or object with predict_proba
        The curve from scores to probabilities. "beta" is Platt scaling of the standardized score if scores are not
        probabilities. A fitted object is not fitted again.
    reference : Reference or EvaluationSet, optional
        Held-out, fully labeled rows to learn from as well. Using them assumes that nothing has drifted since.
    data : {"all", "labeled", "reference"}
        Rows to learn from: all, the labeled rows of the evaluation set, or the held-out rows only.
    uncertainty : bool
        False treats the fitted probabilities as known, as the paper does: intervals are then too narrow.
    n_draws : int
        Number of posterior draws.
    strata : array-like of int or text, or str, optional
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
        super().__post_init__()
        check_reference(self.reference)
        if self.data == "reference" and self.reference is None:
            raise InputError(
                "reference",
                "missing",
                "data='reference' learns from held-out rows alone:",
                "pass reference=dm.missing.Reference(labels, scores).",
            )

    def posterior(self, data: EvaluationSet) -> Posterior:
        fit_data = FitData.of(data, self.reference, by_stratum=self.strata is not None)
        settings: Any = {"sources": self.data, "uncertainty": self.uncertainty, "n_draws": self.n_draws}
        return fit_by_score(fit_data, type(self).__name__, self.calibrator, **settings)

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
        certainty = "" if self.uncertainty else ", taken as known"
        caution = describe_few_labels(FitData.of(data, self.reference).tables, data.threshold)
        return (
            f"Assumed: labels are missing at random or by score{' within strata' if self.strata is not None else ''}. "
            f"Probabilities are calibrated on {sources[self.data]}{certainty}.{caution}"
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


def add_by_score(model: Model, label: IntArray, rows: Rows) -> tuple[Cells, None]:
    """Add rows with labels missing at random or by score (MCAR, MAR): missing rows say nothing about the curve."""
    add_labeled(model, label, rows)
    return model.add_cells(0.0, [(y, [label[:, y]]) for y in (0, 1)]), None


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
    missing, _ = add_by_score(model, model.add_decisions((model.add_parameters(mean, sd), rows.columns)), rows)
    return sample_posterior(model, rows, missing, n_draws, likelihood_power).posterior


def fit_by_score(
    fit_data: FitData,
    mechanism: str,
    calibrator: CalibratorLike = "flexible",
    *,
    sources: str = "all",
    uncertainty: bool = True,
    n_draws: int = N_DRAWS,
) -> Posterior:
    """Return the posterior of the missing labels under a calibration curve; settings are those of `ByScore`."""
    if sources == "labeled":
        fit_data = replace(fit_data, reference=None)
    elif sources == "reference":
        none = np.zeros(fit_data.table.score.size)
        fit_data = replace(fit_data, table=replace(fit_data.table, positives=none, negatives=none))
    curve = fit_data.calibrator(calibrator)
    if not isinstance(curve, Fitted):
        check_labeled(fit_data, mechanism)
        warn_if_few_labels(fit_data, mechanism)
        warn_if_extrapolated(fit_data, mechanism)
        # A few groups of correlated labels look like a misfit.
        if isinstance(curve, Flexible) and not fit_data.n_strata and fit_data.data.groups is None:
            warn_if_misfit(fit_data, mechanism)
    if isinstance(curve, LogisticCalibrator) and curve.prior_sd is not None and uncertainty:
        power = fit_data.credit if isinstance(curve, Flexible) else 1.0
        posterior = fit_mechanism(fit_data, calibrator, add_by_score, n_draws, power).posterior
        is_default = isinstance(calibrator, str) and calibrator == "flexible"
        return add_level(posterior, fit_data.tables, fit_data.data.threshold) if is_default else posterior
    if fit_data.n_strata:
        raise InputError(
            "strata",
            f"{calibrator!r} with uncertainty={uncertainty} does not fit within them",
            "",
            f"Take a logistic curve with its prior on ('flexible', 'beta', 'platt'), or leave {named('strata')} out.",
        )
    is_single = not uncertainty or isinstance(curve, Fitted)
    return _predict(fit_data, curve, is_single=is_single, n_draws=n_draws, uses_labels=sources != "reference")


def _predict(
    fit_data: FitData, calibrator: Calibrator, *, is_single: bool, n_draws: int, uses_labels: bool
) -> Posterior:
    """Return draws of any calibrator, fitted to every label and not to bins, because its curve may have steps."""
    data, table = fit_data.data, fit_data.table
    labels: list[Any] = [(fit_data.value, data.cells.positives, data.cells.negatives)] if uses_labels else []
    if fit_data.reference is not None:
        reference = fit_data.reference.cells
        labels.append((reference.score, reference.positives, reference.negatives))
    calibrator.fit_counts(*(np.concatenate(column).astype(np.float64) for column in zip(*labels, strict=True)))
    scores = fit_data.value[data.missing_cells]
    curves = calibrator.predict(scores)[None, :] if is_single else calibrator.draws(scores, n_draws)
    weight = np.full(len(curves), 1.0 / len(curves))
    rows = np.bincount(table.column, weights=data.missing_counts, minlength=table.score.size)
    if np.all(rows <= 0.0) or scores.size <= table.score.size:
        return Posterior(weight, curves)
    means = [np.bincount(table.column, weights=data.missing_counts * p, minlength=rows.size) for p in curves]
    return Posterior(weight, np.array(means) / np.maximum(rows, 1.0), column=table.column)
