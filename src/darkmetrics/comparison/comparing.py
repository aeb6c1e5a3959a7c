"""compare(): which of several models is better on these rows, when part of their labels is missing?"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue, Missingness, RngLike, Scope, ZeroDivision
from darkmetrics.call_as_code import arguments_given
from darkmetrics.comparison.beliefs import joint_beliefs
from darkmetrics.comparison.result import Comparison
from darkmetrics.comparison.rows import ReferenceRows, SharedRows, shared_cells, shared_rows
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import CalibrationWarning, InputError, MissingnessWarning, Warned, heard, says_where, warn
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.label_models import Features, Given, LateLabels, Propensity
from darkmetrics.methods.base import MethodLike
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import LabelModelLike
from darkmetrics.missingness.mixture import reasons_differ, reasons_in_words
from darkmetrics.question import Question, is_named

# A model that is ahead with less probability is not called ahead.
_LEANS = 0.75
# Rows that are told apart by more than scores are not compared.
_OTHER_ROWS = (Features, LateLabels, Propensity)


@says_where("It is one of evaluate, which takes one model at a time.")
def compare(
    y_true: ArrayLike,
    scores: Mapping[str, ArrayLike] | FrameLike,
    *,
    metrics: MetricsLike = DEFAULT_METRICS,
    threshold: float | Mapping[str, float] | None = None,
    label_model: LabelModelLike = "auto",
    missingness: Missingness = None,
    reference: ReferenceRows | None = None,
    method: MethodLike = "auto",
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    sample_weight: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    rng: RngLike = None,
    confidence_level: float = 0.9,
    scope: Scope = "rows",
) -> Comparison:
    """Which of these models is better on these rows, when part of the labels is missing?

    Models are judged by the same labels, known or not: the answer is the law of their difference, in which most of
    what the missing labels leave open cancels, and the chance that one is better. Probabilities of the missing labels
    are learnt from the scores of all models together; how much more one model counts than another is shrunk towards
    not at all, and what the labels leave open about it is part of the answer.

    Parameters
    ----------
    y_true : array-like
        Labels, missing ones NaN, None or null.
    scores : mapping from str to array-like of float, or DataFrame
        The scores of each model by its name, or a table in memory with a column for each; two models at least.
    metrics : str, Metric, callable, or a sequence or mapping of these
        What to compare in, as in `evaluate`.
    threshold : float or mapping from str to float, optional
        Decisions are positive from this score on: one for all models, or by model; 0.5 where nothing is said.
    label_model : str, LabelModel, float or array-like
        Where the probabilities of the missing labels come from, as in `evaluate`. What learns them ("auto", and those
        that `missingness` stands for) does so from one joint score.
    missingness : {"random", "by_score", "by_label", "by_score_and_label", "unknown"}, optional
        Why labels are missing, if you know, as in `evaluate`.
    reference : (labels, scores), optional
        Fully labelled rows with the scores of every model, by name.
    method, pos_label, missing_label, sample_weight, zero_division, rng, confidence_level
        As in `evaluate`.
    scope : {"rows", "population"}
        Whether all that is said is about these rows, or about the population that they are a random sample of.

    Returns
    -------
    Comparison
        `difference`, `better`, `best`, `ranks`, and each model's `Evaluation` by its name.

    Notes
    -----
    The mathematics is in `docs/explanation/mathematics.md`; how often intervals hold is in
    `docs/how-to/champion-challenger.md`.

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
    >>> found = dm.compare(y_true, scores, missingness="random", metrics=["accuracy", "roc_auc"])
    >>> found.better("accuracy", "challenger", "champion") > 0.95
    True
    """
    if isinstance(y_true, Evaluation):
        raise InputError(
            "y_true: an evaluation. compare takes labels, and the scores of models on the same rows; for two "
            "evaluations there is change(after, before)."
        )
    given = dict(locals())
    question = _question(given)
    rows = shared_rows(
        y_true,
        scores,
        threshold=threshold,
        pos_label=pos_label,
        missing_label=missing_label,
        sample_weight=sample_weight,
        probability=None if is_named(label_model) else label_model,
    )
    return compared(rows, question, reference, arguments_given(compare, given))


@says_where("It is one of evaluate_frame, which takes one model at a time.")
def compare_frame(
    frame: FrameLike,
    *,
    label: str,
    scores: Sequence[str] | Mapping[str, str],
    threshold: float | Mapping[str, float] | None = None,
    weight: str | None = None,
    buckets: str | int = "auto",
    metrics: MetricsLike = DEFAULT_METRICS,
    label_model: LabelModelLike = "auto",
    missingness: Missingness = None,
    reference: ReferenceRows | None = None,
    method: MethodLike = "auto",
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    zero_division: ZeroDivision = "warn",
    rng: RngLike = None,
    confidence_level: float = 0.9,
    scope: Scope = "rows",
) -> Comparison:
    """Which of these models is better on the rows of this table, wherever the table is?

    What `compare` says of arrays, for a table of any engine and any size: its own engine counts rows by label,
    decisions and scores in one GROUP BY, and only these counts reach this process. Up to a million rows, or cells of
    distinct scores, all engines say the same.

    Parameters
    ----------
    frame : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths
        As in `evaluate_frame`.
    label : str
        Name of the column with labels, missing ones null or NaN.
    scores : sequence of str, or mapping from str to str
        The columns with the scores of each model, which is called like its column unless a mapping names it.
    threshold : float or mapping from str to float, optional
        As in `compare`.
    weight : str, optional
        A column with weights.
    buckets : {"auto", "exact"} or int
        "exact" counts rows by every combination of scores. A number counts each score in so many buckets (a power of
        two), of which the mean stands for all; decisions stay exact. "auto" is exact up to 2^20 rows of any engine, and
        beyond where so few combinations are found; else it takes 65,536 buckets up to 2^22 rows, and of more rows as
        many as leave 2^22 cells at most, from 8,192 of two models, 1,024 of three and 256 of more on. `bucket_effect`
        bounds how far buckets move a difference, and `best` says what they leave open.
    metrics, label_model, missingness, reference, method, pos_label, missing_label, zero_division, rng, \
    confidence_level, scope
        As in `compare`.

    Returns
    -------
    Comparison
        As `compare` gives it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> import polars as pl
    >>> table = pl.DataFrame({"y": [1, 0, None, 1], "p1": [0.9, 0.2, 0.7, 0.4], "p2": [0.8, 0.6, 0.3, 0.7]})
    >>> named = {"champion": "p1", "challenger": "p2"}
    >>> found = dm.compare_frame(table, label="y", scores=named, label_model=0.6, metrics="accuracy")
    >>> round(found.better("accuracy", "challenger", "champion"), 9)
    0.4
    """
    if not is_named(label_model):
        raise InputError("label_model: probabilities belong to rows, and a table is counted where it is. Use compare.")
    given = dict(locals())
    question = _question(given)
    settings = ("label", "scores", "threshold", "weight", "pos_label", "missing_label", "buckets")
    rows = shared_cells(frame, **{name: given[name] for name in settings})
    return compared(rows, question, reference, arguments_given(compare_frame, given))


def _question(given: Mapping[str, Any]) -> Question:
    """What is asked, checked before rows are read."""
    names = ("metrics", "label_model", "missingness", "reference", "method", "zero_division", "rng")
    question = Question.of(**{name: given[name] for name in (*names, "confidence_level", "scope")})
    if isinstance(question.model, _OTHER_ROWS):
        raise InputError(
            f"label_model: {type(question.model).__name__} tells rows apart by more than their scores, which a "
            "comparison does not. Give the probabilities that it leads to, one per row."
        )
    if isinstance(question.model, Given) and is_named(given["label_model"]):
        raise InputError("label_model: 'given' needs the probabilities themselves, one per row or per missing row.")
    return question


def compared(rows: SharedRows, question: Question, reference: Any, arguments: Mapping[str, str]) -> Comparison:
    """The comparison of rows."""
    with heard() as said:
        for i, name in enumerate(rows.names):
            warn_of_default_threshold([rows.of(i).data], question.metrics, name)
        try:
            beliefs = joint_beliefs(rows, question, reference)
        except InputError as error:
            first = f"scores[{rows.names[0]!r}]"
            raise error.renamed({"label_model=y_score": f"label_model={first}", "y_score": first}) from None
        found = Comparison(rows, question, beliefs, reference, int(question.rng.integers(2**62)), arguments=arguments)
        if question.scope == "population":
            found[rows.names[0]]  # refuses metrics that cannot be evaluated in the population
        if question.missingness in (None, "unknown") and reasons_differ(beliefs.of_data):
            finding, request = _reasons_message(found)
            if question.missingness is None:
                warn(f"{finding} {request}", MissingnessWarning)
            else:
                said.append(Warned(MissingnessWarning.__name__, finding))
        if rows.open.size and not isinstance(question.model, Given) and rows.counts["labelled"]:
            for metric in found.metrics:
                text = _calibration_message(found, metric)
                if text is not None:
                    warn(text, CalibrationWarning)
    return replace(found, warnings=tuple(dict.fromkeys(said)))


def _reasons_message(found: Comparison) -> tuple[str, str]:
    """Return how the fraction of positives depends on the mechanism, and the request to state it."""
    finding = (
        "Scores differ between labeled and missing rows, and the estimates may depend on why labels are missing. Of "
        f"the missing rows, {reasons_in_words(found.beliefs.data, found.beliefs.of_data)} are positive."
    )
    request = (
        "Set missingness='by_score' or 'by_label', or pass reference=(labels, scores) of fully labeled rows. Set "
        "missingness='unknown' to silence this warning."
    )
    return finding, request


def _calibration_message(found: Comparison, metric: str) -> str | None:
    """Whether another model leads when each is calibrated by itself, in words."""
    better = found.metrics[metric].better
    if better == "neither":
        return None
    with warnings.catch_warnings(), heard():
        warnings.simplefilter("ignore")
        estimates, own = found.estimates(metric), found.own_estimates(metric)
    if not all(np.isfinite([*estimates.values(), *own.values()])):
        return None
    sign = -1.0 if better == "lower" else 1.0
    first, second = (max(values, key=lambda name: sign * values[name]) for values in (estimates, own))
    if first == second:
        return None
    ahead = sign * (found.by_node(metric, first) - found.by_node(metric, second)) > 0.0
    if not float(found.beliefs.nodes.weight @ ahead) > _LEANS:
        return None
    return (
        f"scores: which model leads in {metric} depends on the calibration. With one calibration from all scores, "
        f"{first} leads ({estimates[first]:.3f} against {estimates[second]:.3f} of {second}). With each model "
        f"calibrated by its own scores, {second} leads ({own[second]:.3f} against {own[first]:.3f}). See "
        f"by_calibration('{metric}', '{first}', '{second}')."
    )
