"""evaluate(): from labels and scores to the law of every metric."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import (
    ArrayLike,
    Duration,
    FrameLike,
    LabelValue,
    Missingness,
    PointInTime,
    RngLike,
    Scope,
    ZeroDivision,
)
from darkmetrics.call_as_code import arguments_given
from darkmetrics.data import rules
from darkmetrics.data.ages import table_times
from darkmetrics.data.arguments import evaluation_set_from
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, heard, reference_from, says_where
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.label_models import Features, LabelModel, Tilted, label_model_from
from darkmetrics.methods.base import MethodLike
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import LabelModelLike
from darkmetrics.missingness.score_table import ReferenceLike, reference_set
from darkmetrics.question import Question, is_named

# What rows of an EvaluationSet may come with; True asks for it.
_KINDS = ("propensity", "strata", "age")


@says_where()
def evaluate(
    y_true: ArrayLike | EvaluationSet,
    y_score: ArrayLike | None = None,
    *,
    metrics: MetricsLike = DEFAULT_METRICS,
    threshold: float | None = None,
    y_pred: ArrayLike | None = None,
    label_model: LabelModelLike = "auto",
    missingness: Missingness = None,
    reference: ReferenceLike | None = None,
    propensity: ArrayLike | Literal[True] | None = None,
    strata: ArrayLike | Literal[True] | None = None,
    age: ArrayLike | Literal[True] | None = None,
    delay: ArrayLike | None = None,
    maturity: Duration | None = None,
    groups: ArrayLike | None = None,
    method: MethodLike = "auto",
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    sample_weight: ArrayLike | None = None,
    zero_division: ZeroDivision = "warn",
    rng: RngLike = None,
    confidence_level: float = 0.9,
    scope: Scope = "rows",
    calibration: ReferenceLike | None = None,
    label: str | None = None,
    score: str | None = None,
) -> Evaluation:
    """How good is this classifier on these rows, when part of their labels is missing?

    Returns, for each metric, the whole distribution of the value it would have if all labels were known, given
    probabilities for the missing ones. The spread is about these rows: it shrinks to nothing as labels arrive, unless
    the population is asked for (`scope`).

    Parameters
    ----------
    y_true : array-like or EvaluationSet
        Labels, missing ones NaN, None or null; or a ready set, and then no `y_score`.
    y_score : array-like of float
        Scores of the positive class: finite, higher means more likely positive.
    metrics : str, Metric, callable, or a sequence or mapping of these
        What to evaluate; `list_metrics()` shows all names, and "fbeta(2)" or "precision_at_k(100)" take a parameter.
    threshold, y_pred, pos_label, missing_label, sample_weight
        As in `EvaluationSet`: decisions are positive from a score of 0.5 on, unless `threshold` or `y_pred` says
        otherwise. Score and threshold are both taken as 64-bit floats: a 32-bit score of 0.7 is a little below 0.7.
        Weights count in the metrics; what is learnt about labels counts rows, so weights that depend on the label
        itself (ten for every fraud) call for probabilities of your own.
    label_model : str, LabelModel, float or array-like
        Where the probabilities of the missing labels come from. "auto", the default, learns them from the labelled
        rows, the scores of the missing ones and `reference`, and says what it assumed (`label_models.Auto`). Others:
        "calibrated", "label_shift", "selection", "half", "prevalence", a model from `label_models`, one probability
        for all rows, or an array with one per row or per missing row. A set built with `probability=` uses these.
    missingness : {"random", "by_score", "by_label", "by_score_and_label", "late", "unknown"}, optional
        Why labels are missing, if you know: by chance ("random", MCAR), the scores decide who gets a label
        ("by_score", MAR), or the label itself does (frauds take longer to confirm: "by_label", MNAR), or both, which
        needs `reference`; or labels come with time ("late"), which needs `age`. "unknown" gives the results of the
        default without the request to state a mechanism; findings stay in `.warnings` and in the printed assumption.
    reference : (labels, scores) or EvaluationSet, optional
        Fully labelled reference rows, such as the test set of the model; they make it unnecessary to know why labels
        are missing, as long as the relation of score and label has not drifted since.
    propensity : array-like of float, optional
        The chance of each row to get its label, where it is known: logged by a policy, set by a sampling design, or
        that of random overrides. Above 0 where there is a label. Labelled rows are then weighted to look like the
        missing ones (`label_models.Propensity`), whatever decided who got a label. True: that of an EvaluationSet.
    strata : array-like of int, optional
        A number for rows of one kind (an age band, a segment), at most 30 different ones: label models then fit within
        them, shrunk towards each other. True: those of an EvaluationSet.
    age : array-like of float or timedelta, optional
        Time since each row was scored. Old rows have nearly all their labels and young ones have not, and that tells
        which labels are still to come (`label_models.LateLabels`): nothing has to be stated about why they are missing.
        True: that of an EvaluationSet.
    delay : array-like of float or timedelta, optional
        Time from scoring until the label came, for each labelled row, in the unit of `age`: narrows the answer.
    maturity : float or timedelta, optional
        Only positives arrive (chargebacks): rows of at least this age without a label are negative, and younger
        negatives are not known yet, unless they have a `delay`.
    groups : array-like, optional
        Which rows share their fate, such as the customer of each row: text, numbers or dates, one per row. How much
        labels of one group depend on each other is learnt from the labelled rows, and known labels tell of the missing
        ones beside them. Laws are then drawn.
    method : str or Method
        "auto" (exact where possible), "exact", "monte_carlo", "gaussian", or a settings object such as
        `methods.MonteCarlo(n_resamples=100_000)`.
    zero_division : {"warn", 0, 1, nan}
        Value of a metric that is 0/0. "warn" takes what scikit-learn would return, and warns; with NaN the law is
        conditional on the metric being defined.
    rng : None, int or numpy Generator
        Source of randomness for Monte Carlo; a seed makes the result repeatable.
    confidence_level : float
        Probability of the intervals in the printed table and in `to_dict()`.
    scope : {"rows", "population"}
        Whether results are for these rows or for the population that they are a random sample of. Results for the
        population include the variance of sampling, which remains when all labels have arrived. They are wider, unless
        probabilities are passed: a population averages over the labels that these probabilities leave open. The result
        has both, as `.rows` and `.population`.
    calibration
        An older word for `reference`, with a FutureWarning.
    label, score : str, optional
        For a table instead of columns: `evaluate(df, label="fraud", score="p")` is `evaluate_frame`, which takes more.

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`.

    Notes
    -----
    Missing labels are taken as independent given their probabilities, but for those of one of the `groups`. How the
    laws are computed, with proofs, is in `docs/explanation/mathematics.md`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true = [1, 0, None, 1, None, 0, 1, 0]
    >>> y_score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, label_model=[0.7, 0.2], metrics=["precision", "recall"])
    >>> print(result)
    8 rows: 6 labelled, 2 missing (25.0%)
    Assumed: missing labels are independent, with the probabilities given.
    <BLANKLINE>
                estimate     90% interval   if odds 3x off   labelled only   worst to best   method   undefined
    precision      0.675   0.500 to 0.750   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    recall         0.694   0.500 to 0.750   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    <BLANKLINE>
    Intervals are for these 8 rows, not for the population they came from.
    >>> round(result["recall"].cdf(0.7), 3)
    0.44
    """
    reference, calibration = reference_from(reference, calibration), None
    given = dict(locals())
    if label is not None or score is not None:
        return evaluate_frame(**_asked_of_table(given))
    if hasattr(y_true, "columns") and (y_score is None or isinstance(y_score, str)):
        raise InputError(
            "y_true: a table. Name its columns, as in evaluate(df, label='fraud', score='p'), or see evaluate_frame."
        )
    question = Question.among(given)
    settings = {name: given[name] for name in ("threshold", "y_pred", "pos_label", "missing_label", "sample_weight")}
    settings |= {name: given[name] for name in ("propensity", "strata", "age", "delay", "maturity", "groups")}
    if groups is not None and age is not None:
        raise InputError("groups: cannot be given beside age; rows with ages are counted by their bins. Leave one out.")
    data = rows_asked_of(question.model, label_model, y_true, y_score, **settings)
    with heard() as said:
        warn_of_default_threshold([data], question.metrics)
    return question.answer(data, arguments=arguments_given(evaluate, given), warned=said)


@says_where("Columns have names of their own in a table; see evaluate.")
def evaluate_frame(
    frame: FrameLike,
    *,
    label: str,
    score: str,
    threshold: float | None = None,
    decision: str | None = None,
    probability: str | None = None,
    weight: str | None = None,
    propensity: str | None = None,
    strata: str | None = None,
    scored_at: str | None = None,
    labelled_at: str | None = None,
    as_of: PointInTime | None = None,
    maturity: Duration | None = None,
    groups: str | None = None,
    buckets: str | int = "auto",
    metrics: MetricsLike = DEFAULT_METRICS,
    label_model: LabelModelLike = "auto",
    missingness: Missingness = None,
    reference: ReferenceLike | FrameLike | None = None,
    method: MethodLike = "auto",
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    zero_division: ZeroDivision = "warn",
    rng: RngLike = None,
    confidence_level: float = 0.9,
    scope: Scope = "rows",
    calibration: ReferenceLike | FrameLike | None = None,
) -> Evaluation:
    """How good is this classifier on the rows of this table, wherever the table is, when part of its labels is missing?

    What `evaluate` says of arrays, for a table of any engine and any size: its own engine counts rows by score,
    decision and label, and only these counts reach this process.

    Parameters
    ----------
    frame : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths
        pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis (and through it SQL databases); or Parquet and CSV files by
        name, which Polars or DuckDB then reads.
    label, score : str
        Names of the columns with labels (missing ones null or NaN) and scores.
    threshold : float, optional
        The decision is positive when score >= threshold; 0.5 unless given.
    decision, probability, weight : str, optional
        Columns with decisions that do not follow from a threshold, with the chance that a row is positive, which is
        then believed as it is (`label_models.Given`), and with weights.
    propensity, strata : str, optional
        Columns with the chance of each row to get its label, and with whole numbers for rows of one kind, as in
        `evaluate`.
    scored_at : str, optional
        A column with dates or datetimes: when each row was scored. Its age up to `as_of` tells which labels are still
        to come, as `age` does in `evaluate`: nothing has to be stated about why labels are missing. Where one of the
        two columns has dates alone, ages and delays are whole days.
    labelled_at : str, optional
        A column with the time when each label came, null where there is no label: narrows the answer. Times have a
        time zone in both columns or in neither.
    as_of : date, datetime or text like "2026-03-09"
        The day, up to its end, or the moment at which the table was taken; needed with `scored_at`. One in the past
        answers as of then: rows that were scored later are left out, and labels that came later are hidden, which needs
        `labelled_at`: without it they stay, and a `MissingnessWarning` says so.
    maturity : float or timedelta, optional
        Only positives arrive (chargebacks): rows of at least so many days without a label are negative, and younger
        negatives are not known yet, unless they have a time in `labelled_at`.
    groups : str, optional
        A column that says which rows share their fate, such as the customer of each row, as in `evaluate`. Rows are
        then counted by group and exact score and come here so, up to 2^20 (a million) cells; where each row is a group
        of its own, they are counted as ever.
    buckets : {"auto", "exact"} or int
        How finely scores are told apart, as in `EvaluationSet.from_frame`. Where that is in buckets, the result's
        `bucket_effect` says how far that can have moved each metric; metrics of the decisions it does not move.
    reference : frame, path, (labels, scores) or EvaluationSet, optional
        Fully labelled reference rows; a frame or file has the same label and score columns.
    metrics, label_model, missingness, method, pos_label, missing_label, zero_division, rng, confidence_level, scope
        As in `evaluate`; probabilities of rows are a column, `probability`.
    calibration
        An older word for `reference`, with a FutureWarning.

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.evaluating import evaluate_frame
    >>> table = pl.LazyFrame(
    ...     {
    ...         "fraud": [1, 0, None, 1, None, 0],
    ...         "p": [0.9, 0.2, 0.8, 0.6, 0.3, 0.7],
    ...         "own": [None, None, 0.7, None, 0.2, None],
    ...     }
    ... )
    >>> result = evaluate_frame(table, label="fraud", score="p", probability="own", metrics=["precision", "recall"])
    >>> result
    <Evaluation of 6 rows, 2 missing: precision, recall>
    >>> round(result["recall"].mean(), 3)
    0.945
    """
    reference, calibration = reference_from(reference, calibration), None
    given = dict(locals())
    # Whatever is wrong with the rest is said before a table is read that may take minutes.
    question = with_reference(question_of_table(given), given)
    columns = ("label", "score", "decision", "probability", "weight", "scored_at", "labelled_at")
    others = ("threshold", "pos_label", "missing_label", "buckets", "as_of", "maturity", "groups")
    settings = {name: given[name] for name in (*columns, *others)}
    settings |= {"propensity": propensity, "stratum": strata}
    with heard() as said, strata_by_name(strata):
        data = evaluation_set_from(EvaluationSet.from_frame(frame, **settings), None)
        warn_of_default_threshold([data], question.metrics)
    today = None if as_of is None else frames.AsOf.of(as_of).given
    return question.answer(data, arguments=arguments_given(evaluate_frame, given), as_of=today, warned=said)


def _asked_of_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `evaluate_frame` among those of `evaluate`, which was given a table and names of columns."""
    for name in ("label", "score"):
        if given[name] is None:
            raise InputError(f"{name}: missing. A table needs the names of its columns for label= and score=.")
    known, own = inspect.signature(evaluate_frame).parameters, inspect.signature(evaluate).parameters
    there = {"y_pred": "decision", "sample_weight": "weight", "age": "scored_at", "delay": "labelled_at"}
    asked: dict[str, Any] = {"frame": given["y_true"]}
    for name, value in given.items():
        if name in known:
            asked[name] = value
        elif name != "y_true" and value is not own[name].default:
            advice = f"evaluate_frame has {there[name]}=, the name of a column." if name in there else "Leave it out."
            raise InputError(f"{name}: not for a table with label= and score=. {advice}")
    return asked


@contextmanager
def strata_by_name(strata: str | None) -> Iterator[None]:
    """Errors about the column of strata, whose part in a table is "stratum", in the word of the caller."""
    try:
        yield
    except InputError as error:
        here, there = (frames.title(part, str(strata)) for part in ("strata", "stratum"))
        raise error.renamed({"stratum": "strata", there: here}) from None


def question_of_table(given: Mapping[str, Any]) -> Question:
    """What is asked of a table, checked before anything is read; `given` are all arguments of a public function."""
    if not is_named(given["label_model"]):
        raise InputError(
            "label_model: a table is counted where it is, so probabilities per row must be one of its columns. "
            "Name it with probability=."
        )
    table_times(given)
    try:
        question = Question.among(given)
    except InputError as error:
        raise error.renamed({"age": "scored_at"}) from None
    if _features_of(question.model) is not None:
        raise InputError(
            "label_model: Features belong to rows, and a table is counted where it is. Give evaluate the labels and "
            "scores themselves."
        )
    return question


def with_reference(question: Question, given: Mapping[str, Any]) -> Question:
    """The same question with its reference rows, a table or two columns, as a set: read once, whoever asks."""
    model: Any = question.model
    rows = getattr(model, "reference", None)
    # A model of the user's own knows itself what to do with its rows.
    if rows is None or isinstance(rows, EvaluationSet) or not hasattr(model, "__dataclass_fields__"):
        return question
    if _is_table(rows):
        settings = {name: given[name] for name in ("label", "score", "pos_label", "missing_label", "buckets")}
        try:
            held_out = EvaluationSet.from_frame(rows, **settings)
        except InputError as error:
            raise InputError.about("reference", str(error)) from None
    else:
        held_out = reference_set(rows, given["pos_label"])
    return replace(question, model=replace(model, reference=held_out))


def _is_table(reference: Any) -> bool:
    """Whether reference rows are a table of some engine or files, and not columns or a ready set."""
    if reference is None or isinstance(reference, (EvaluationSet, tuple)):
        return False
    return not isinstance(reference, list) or all(isinstance(part, (str, Path)) for part in reference)


def rows_asked_of(model: LabelModel, label_model: Any, y_true: Any, y_score: Any, **settings: Any) -> EvaluationSet:
    """The evaluation set that the arguments of `evaluate` stand for; `model` is what `label_model` means."""
    named, features = is_named(label_model), _features_of(model)
    if not isinstance(y_true, EvaluationSet):
        for name in _KINDS:
            if settings.get(name) is True:
                raise InputError(f"{name}: True stands for that of an EvaluationSet. Give one per row.")
        probability = None if named else label_model
        if features is not None:
            names = frames.row_names(y_true=y_true, y_score=y_score)
            if names is not None:
                names.check("X", features.X)
            probability = _feature_predictions(features, y_true, **settings)
        try:
            return evaluation_set_from(y_true, y_score, probability=probability, **settings)
        except InputError as error:  # name the argument that the caller used
            raise error.renamed({"probability": "label_model"}) from None
    kinds = {name: settings.pop(name) for name in _KINDS if settings.get(name) is True}
    data = evaluation_set_from(y_true, y_score, **settings)
    cells = data.cells
    there = (cells.propensity is not None, cells.stratum is not None, cells.age is not None)
    for name, is_there in zip(_KINDS, there, strict=True):
        if name in kinds and not is_there:
            raise InputError(f"{name}: True, but the EvaluationSet has none. Give them when building the set.")
    if not named:
        raise InputError(
            "label_model: an EvaluationSet has cells, not rows, so probabilities per row cannot be matched to it. "
            "Give them as EvaluationSet(..., probability=p)."
        )
    if features is not None:
        raise InputError(
            "label_model: Features belong to rows, and an EvaluationSet has cells. "
            "Give evaluate the labels and scores themselves."
        )
    return data


def _features_of(model: LabelModel) -> Features | None:
    """The features that a model learns from, itself or through the model that it tilts."""
    while isinstance(model, Tilted):
        model = label_model_from(model.base)
    return model if isinstance(model, Features) else None


def _feature_predictions(
    model: Features, y_true: Any, *, pos_label: Any = 1, missing_label: Any = None, **_: Any
) -> FloatArray | None:
    """What the features say about every row, with labels read as the evaluation set reads them."""
    labels, missing = frames.label_column(y_true, "y_true")
    positive, missing, _classes = rules.read_labels(labels, missing, pos_label, missing_label, "y_true")
    return model.predictions(positive, missing) if missing.any() else None
