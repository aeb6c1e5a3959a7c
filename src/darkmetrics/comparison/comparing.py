"""compare(): which of several models is better on these rows, when part of their labels is missing?"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue, RngLike, Scope, ZeroDivision
from darkmetrics.call_as_code import arguments_given
from darkmetrics.calls import suggest_call
from darkmetrics.comparison.beliefs import joint_beliefs
from darkmetrics.comparison.result import Comparison
from darkmetrics.comparison.rows import SharedRows, reference_rows, shared_cells, shared_rows
from darkmetrics.data.building import check_bins_of_arrays
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import (
    CalibrationWarning,
    InputError,
    MissingnessWarning,
    RecordedWarning,
    record_warnings,
    warn,
)
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.methods.base import MethodLike
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missing import Covariates, Delayed, Fixed, Propensity, Reference
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.missingness.mixture import describe_prevalences, mechanisms_differ
from darkmetrics.question import Question
from darkmetrics.wording import code

# A model that is ahead with less probability is not called ahead.
_LEANS = 0.75
# Rows that are told apart by more than scores are not compared.
_OTHER_ROWS = (Covariates, Delayed, Propensity)


@suggest_call("It is one of evaluate, which takes one model at a time.")
def compare(
    y_true: ArrayLike | str,
    scores: Mapping[str, ArrayLike | str] | Sequence[ArrayLike | str] | FrameLike,
    *,
    data: FrameLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: MissingnessLike | Reference = None,
    threshold: float | Mapping[str, float] | None = None,
    sample_weight: ArrayLike | str | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    scope: Scope = "rows",
    method: MethodLike = "auto",
    zero_division: ZeroDivision = "warn",
    confidence_level: float = 0.9,
    rng: RngLike = None,
    score_bins: str | int = "auto",
) -> Comparison:
    """Compare models on the same rows when part of the labels is missing.

    Models are judged by the same labels, known or not: the result is the distribution of their difference, in which
    most of the uncertainty about missing labels cancels, and the probability that a model is better. Probabilities of
    the missing labels are learned from the scores of all models together.

    Parameters
    ----------
    y_true : array-like or str
        Labels, missing ones NaN, None or null, or the name of a column of `data`.
    scores : mapping from str to array-like of float or str, list of str or array-like, or DataFrame
        Scores of each model by its name: arrays, or columns of `data`. Columns in a list name their models, and arrays
        in a list are "model_1", "model_2" and so on. Or a table in memory with a column per model. At least two models.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table whose columns the other arguments name, as in `evaluate`. Its engine counts rows by label, predictions and
        scores in one GROUP BY.
    missingness : {"random", "by_score", "by_label", "by_score_and_label", "unknown"}, object of `dm.missing`, or None
        Why labels are missing, as in `evaluate`; mechanisms that learn do so from one joint score. Reference rows need
        the scores of every model: `dm.missing.Reference(labels, {"a": p1, "b": p2})`, or of a table with the columns of
        `scores`, `dm.missing.Reference("fraud", data=old)`.
    threshold : float or mapping from str to float, optional
        Rows with score >= threshold are predicted positive: one threshold for all models, or one per model; 0.5 if not
        passed.
    metrics, sample_weight, pos_label, missing_label, scope, method, zero_division, confidence_level, rng
        As in `evaluate`.
    score_bins : {"auto", "exact"} or int
        "exact" counts rows of a table by every combination of scores. A number counts each score in that many bins (a
        power of two); predictions stay exact. "auto" is exact up to 2^20 rows of any engine, and beyond if there are
        few combinations; else it takes 65,536 bins up to 2^22 rows, and of more rows as many as leave at most 2^22
        cells, but at least 8,192 for two models, 1,024 for three and 256 for more. `binning_error` bounds how far bins
        move a difference.

    Returns
    -------
    Comparison
        `difference`, `probability_better`, `probability_best`, `rank_probabilities`, and each model's `Evaluation` by
        its name.

    Notes
    -----
    The mathematics is in `docs/explanation/mathematics.md`; coverage is in `docs/how-to/champion-challenger.md`.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-2 * truth))
    >>> y_true = np.where(rng.random(2000) < 0.7, np.nan, y)  # 70% of the labels are missing
    >>> noisy = {"champion": 0.8, "challenger": 0.5}
    >>> scores = {k: 1 / (1 + np.exp(-2 * (truth + s * rng.normal(size=2000)))) for k, s in noisy.items()}
    >>> result = dm.compare(y_true, scores, missingness="random", metrics=["accuracy", "roc_auc"])
    >>> result.probability_better("accuracy", "challenger", "champion") > 0.95
    True
    >>> import polars as pl
    >>> table = pl.DataFrame({"y": [1, 0, None, 1], "p1": [0.9, 0.2, 0.7, 0.4], "p2": [0.8, 0.6, 0.3, 0.7]})
    >>> columns = {"champion": "p1", "challenger": "p2"}
    >>> result = dm.compare("y", columns, data=table, missingness=dm.missing.Fixed(0.6), metrics="accuracy")
    >>> round(result.probability_better("accuracy", "challenger", "champion"), 9)
    0.4
    """
    if isinstance(y_true, Evaluation):
        raise InputError(
            "y_true",
            "an evaluation",
            "compare takes labels, and the scores of models on the same rows.",
            "For two evaluations write dm.compare_evaluations(after, before), or after - before.",
        )
    given = dict(locals())
    question = _question(given)
    probability = getattr(question.model, "probability", None) if question.model.row_values() else None
    if data is None:
        check_bins_of_arrays(score_bins)
        settings = {name: given[name] for name in ("threshold", "pos_label", "missing_label", "sample_weight")}
        rows = shared_rows(y_true, scores, probability=probability, **settings)
    else:
        if probability is not None:
            raise InputError(
                "missingness",
                "Fixed with the name of a column",
                "Tables of several models take no such column.",
                "Pass arrays of labels, scores and probabilities.",
            )
        settings = {name: given[name] for name in ("threshold", "pos_label", "missing_label")}
        columns: dict[str, Any] = {"label": y_true, "scores": scores, "weight": sample_weight}
        rows = shared_cells(data, **columns, **settings, score_bins=score_bins)
    settings = {name: given[name] for name in ("threshold", "pos_label", "missing_label", "score_bins")}
    reference = reference_rows(getattr(question.model, "reference", None), scores, **settings)
    question = replace(question, model=question.model.without_rows())
    return compared(rows, question, reference, arguments_given(compare, given))


def _question(given: Mapping[str, Any]) -> Question:
    """Return what is asked, checked before rows are read."""
    question = Question.among(given)
    if isinstance(question.model, _OTHER_ROWS) or getattr(question.model, "strata", None) is not None:
        raise InputError(
            "missingness",
            f"{type(question.model).__name__} needs more of a row than its scores",
            "A comparison has the scores of its rows only.",
            f"Pass the probabilities that the mechanism leads to as {code('dm.missing.Fixed(...)')}, one per row.",
        )
    if isinstance(question.model, Fixed) and question.model.probability is None:
        fix = "Pass one probability per row, or one per row without a label."
        raise InputError("missingness", "Fixed() without probabilities", "", fix)
    return question


def compared(rows: SharedRows, question: Question, reference: Any, arguments: Mapping[str, str]) -> Comparison:
    """The comparison of rows."""
    with record_warnings() as said:
        for i, name in enumerate(rows.names):
            warn_of_default_threshold([rows.of(i).data], question.metrics, name)
        try:
            beliefs = joint_beliefs(rows, question, reference)
        except InputError as error:
            first = f"scores[{rows.names[0]!r}]"
            names = {"dm.missing.Fixed(y_score)": f"dm.missing.Fixed({first})", "y_score": first}
            raise error.worded_for(names) from None
        found = Comparison(rows, question, beliefs, reference, int(question.rng.integers(2**62)), arguments=arguments)
        if question.scope == "population":
            found[rows.names[0]]  # refuses metrics that cannot be evaluated in the population
        if question.missingness in (None, "unknown") and mechanisms_differ(beliefs.of_data):
            finding, request = _reasons_message(found)
            if question.missingness is None:
                warn(f"{finding} {request}", MissingnessWarning)
            else:
                said.append(RecordedWarning(MissingnessWarning.__name__, finding))
        if rows.open.size and not has_probabilities(question.model) and rows.counts["labeled"]:
            for metric in found.metrics:
                text = _calibration_message(found, metric)
                if text is not None:
                    warn(text, CalibrationWarning)
    return replace(found, warnings=tuple(dict.fromkeys(said)))


def _reasons_message(found: Comparison) -> tuple[str, str]:
    """Return how the fraction of positives depends on the mechanism, and the request to state it."""
    finding = (
        "Scores differ between labeled and missing rows, and the estimates may depend on why labels are missing. Of "
        f"the missing rows, {describe_prevalences(found.beliefs.data, found.beliefs.of_data)} are positive."
    )
    request = (
        "Set missingness='by_score' or 'by_label', or pass missingness=dm.missing.Reference(labels, scores) of fully "
        "labeled rows. Set "
        "missingness='unknown' to silence this warning."
    )
    return finding, request


def _calibration_message(found: Comparison, metric: str) -> str | None:
    """Whether another model leads when each is calibrated by itself, in words."""
    better = found.metrics[metric].better
    if better == "neither":
        return None
    with warnings.catch_warnings(), record_warnings():
        warnings.simplefilter("ignore")
        estimates, own = found.estimates(metric), found.own_estimates(metric)
    if not all(np.isfinite([*estimates.values(), *own.values()])):
        return None
    sign = -1.0 if better == "lower" else 1.0
    first, second = (max(values, key=lambda name: sign * values[name]) for values in (estimates, own))
    if first == second:
        return None
    ahead = sign * (found.by_draw(metric, first) - found.by_draw(metric, second)) > 0.0
    if not float(found.beliefs.posterior.weight @ ahead) > _LEANS:
        return None
    return (
        f"scores: which model leads in {metric} depends on the calibration. With one calibration from all scores, "
        f"{first} leads ({estimates[first]:.3f} against {estimates[second]:.3f} of {second}). With each model "
        f"calibrated by its own scores, {second} leads ({own[second]:.3f} against {own[first]:.3f}). See "
        f"by_calibration('{metric}', '{first}', '{second}')."
    )
