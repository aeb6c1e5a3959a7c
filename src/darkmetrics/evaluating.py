"""evaluate(): from labels and scores to the distribution of every metric."""

from __future__ import annotations  # help() shows the names of types, not all that they stand for

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue, RngLike, Scope, ZeroDivision
from darkmetrics.call_as_code import arguments_given
from darkmetrics.calls import suggest_call
from darkmetrics.class_question import evaluate_classes
from darkmetrics.data.arguments import evaluation_set_from
from darkmetrics.data.class_building import binary_scores, find_score_columns
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, record_warnings
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.frames import AsOf
from darkmetrics.methods.base import MethodLike
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.reference import Reference
from darkmetrics.multilabel import evaluate_labels, has_several_labels
from darkmetrics.question import Question
from darkmetrics.wording import named


@suggest_call()
def evaluate(
    y_true: ArrayLike | str | EvaluationSet,
    y_score: ArrayLike | Mapping[Any, ArrayLike | str] | str | None = None,
    *,
    data: FrameLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: MissingnessLike | Reference = None,
    threshold: float | ArrayLike | None = None,
    y_pred: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    pos_label: LabelValue = 1,
    labels: Sequence[LabelValue] | None = None,
    missing_label: LabelValue = None,
    scope: Scope = "rows",
    method: MethodLike = "auto",
    zero_division: ZeroDivision = "warn",
    confidence_level: float = 0.9,
    rng: RngLike = None,
) -> Evaluation:
    """Estimate classifier metrics on a test set with missing labels.

    Returns, for each metric, the distribution of the value it would have if all labels were known. The spread is about
    these rows and shrinks to zero as labels arrive, unless `scope="population"`.

    Parameters
    ----------
    y_true : array-like, str or EvaluationSet
        Labels, missing ones NaN, None or null; the name of a column of `data`; or an EvaluationSet as the only data.
        A table with a column per label means several labels per row; `y_score` is then a table of the same shape.
    y_score : array-like of float or str; or matrix, DataFrame, mapping or list of columns
        Scores of the positive class: finite, higher means more likely positive. For several classes pass a matrix with
        a column for each class, a DataFrame, a mapping from classes to columns, or a list of columns of `data`.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table whose columns the other arguments name: pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis (and through
        it SQL databases); Parquet and CSV files by name. The table's own engine counts rows by score, prediction and
        label; only the counts reach this process.
    metrics : str, Metric, callable, or a sequence or mapping of these
        What to evaluate; `list_metrics()` shows all names, and "fbeta(2)" or "precision_at_k(100)" take a parameter.
    missingness : {"random", "by_score", "by_label", "unknown"}, object of `dm.missing`, or None
        Why labels are missing: at random (MCAR), because of the score (MAR) or because of the label (MNAR).
        `dm.missing` has objects for reference rows, delayed labels, known propensities, covariates and given
        probabilities. None averages over mechanisms; "unknown" does so without asking to state one.
    threshold : float or matrix, optional
        Rows with score >= threshold are predicted positive; 0.5 if not passed. With several classes the highest score
        decides, or the least expected cost if a matrix with `cost[label][prediction]` is passed.
    y_pred : array-like or str, optional
        Predictions that do not follow from a threshold.
    sample_weight : array-like of float or str, optional
        Weight of each row in the metrics. What is learned about labels counts rows, so weights that depend on the label
        itself need probabilities of your own (`dm.missing.Fixed`).
    clusters : array-like or str, optional
        Cluster of each row, such as its customer. How much labels of one cluster depend on each other is learned from
        the labeled rows.
    pos_label : object
        Label that counts as positive.
    labels : sequence, optional
        With several classes, the class of each column of `y_score`. If not passed, these are the names of the columns,
        or the sorted labels.
    missing_label : object, or list, tuple or set of these, optional
        Value that also means "missing", for example -1.
    scope : {"rows", "population"}
        Whether results are for these rows or for the population that they are a random sample of. Results for the
        population include the variance of sampling, which remains when all labels have arrived. They are wider, unless
        probabilities are passed: a population averages over the labels that these probabilities leave open. The result
        has both, as `.rows` and `.population`.
    method : str or Method
        "auto" (exact where possible), "exact", "monte_carlo", "gaussian", or a settings object such as
        `methods.MonteCarlo(n_resamples=100_000)`.
    zero_division : {"warn", 0, 1, nan}
        Value of a metric that is 0/0. "warn" uses scikit-learn's value and warns; with NaN the distribution is
        conditional on the metric being defined.
    confidence_level : float
        Probability of the intervals in the printed table and in `to_dict()`.
    rng : None, int or numpy Generator
        Source of randomness for Monte Carlo; a seed makes the result repeatable.

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`; a `MultilabelEvaluation` if `y_true` has a column per label.

    Notes
    -----
    Missing labels are independent given their probabilities, except within `clusters`. How finely scores of a table are
    distinguished is set by `EvaluationSet(..., score_bins=...)`. The mathematics, with proofs, is
    in `docs/explanation/mathematics.md`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true = [1, 0, None, 1, None, 0, 1, 0]
    >>> y_score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> fixed = dm.missing.Fixed([0.7, 0.2])
    >>> result = dm.evaluate(y_true, y_score, missingness=fixed, metrics=["precision", "recall"])
    >>> print(result)
    8 rows: 6 labeled, 2 missing (25.0%)
    Assumed: missing labels are independent, with the probabilities given.
    <BLANKLINE>
                estimate     90% interval   labeled only           bounds
    precision      0.675   0.500 to 0.750          0.667   0.500 to 0.750
    recall         0.694   0.500 to 0.750          0.667   0.500 to 0.750
    <BLANKLINE>
    Intervals are for these 8 rows, not for the population they came from.
    >>> import polars as pl
    >>> table = pl.LazyFrame({"fraud": y_true, "p": y_score, "own": [None, None, 0.7, None, 0.2, None, None, None]})
    >>> dm.evaluate("fraud", "p", data=table, missingness=dm.missing.Fixed("own"), metrics="recall")["recall"]
    <Discrete: mean 0.694, 90% interval 0.5 to 0.75, exact>
    >>> y_score = {"cat": [0.7, 0.2, 0.1, 0.5], "dog": [0.2, 0.7, 0.3, 0.3], "fish": [0.1, 0.1, 0.6, 0.2]}
    >>> fixed = dm.missing.Fixed([[0.5, 0.25, 0.25]])
    >>> dm.evaluate(["cat", "dog", "fish", None], y_score, missingness=fixed, metrics="accuracy")["accuracy"]
    <Discrete: mean 0.875, 90% interval 0.75 to 1, exact>
    """
    given = dict(locals())
    if has_several_labels(y_true):
        result: Evaluation = evaluate_labels(question_of, given)
        return result
    scores = find_score_columns(y_score)
    if scores is not None:
        if len(scores.columns) > 2:
            return evaluate_classes(scores, given, arguments_given(evaluate, given), [])
        given |= binary_scores(scores, y_true, labels, pos_label, missing_label)
    elif labels is not None:
        fix = f"Pass a matrix or columns as {named('y_score')}, or leave {named('labels')} out."
        raise InputError("labels", "for scores of several classes", "", fix)
    question = question_of(given)
    with record_warnings() as said:
        rows = rows_of(question, given)
        warn_of_default_threshold([rows], question.metrics)
    as_of = getattr(question.model, "as_of", None)
    return replace(question, model=question.model.without_rows()).answer(
        rows,
        arguments=arguments_given(evaluate, given),
        as_of=None if as_of is None else AsOf.of(as_of).given,
        warned=said,
    )


def question_of(given: Mapping[str, Any]) -> Question:
    """Return what is asked, checked before any row is read; `given` are all arguments of a public function."""
    question, y_true = Question.among(given), given["y_true"]
    pos_label = y_true.pos_label if isinstance(y_true, EvaluationSet) else given["pos_label"]
    return replace(question, model=question.model.with_reference_set(pos_label, given.get("missing_label")))


# Arguments of `evaluate` that an EvaluationSet is built with.
_OF_ROWS = (
    *("data", "threshold", "y_pred", "sample_weight", "clusters"),
    *("pos_label", "missing_label"),
)


def rows_of(question: Question, given: Mapping[str, Any]) -> EvaluationSet:
    """Return the rows that the arguments of a public function stand for, with what the mechanism needs of them."""
    settings = {name: given[name] for name in _OF_ROWS if name in given}
    return evaluation_set_from(given["y_true"], given["y_score"], missingness=question.model, **settings)
