"""evaluate(): from labels and scores to the law of every metric."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from darkmetrics import columns, frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calls import arguments_given
from darkmetrics.distribution import MetricDistribution, check_level
from darkmetrics.evaluation import Evaluation
from darkmetrics.evaluation_set import EvaluationSet, evaluation_set_from
from darkmetrics.exceptions import (
    InputError,
    MethodError,
    MissingnessWarning,
    RefutedWarning,
    UndefinedMetricWarning,
)
from darkmetrics.label_models import Features, Given, Half, LabelModel, LabelShift, Prevalence, Tilted, label_model_from
from darkmetrics.label_models.auto import REFUTED, mixture_p_value, readings_differ, readings_in_words, weight_by_label
from darkmetrics.label_models.choice import stated_reason
from darkmetrics.label_models.score_table import score_table
from darkmetrics.methods import Memo, Method, method_from
from darkmetrics.metrics import DEFAULT_METRICS, Metric, metrics_from
from darkmetrics.nodes import Nodes

# A chance of 0/0 below this moves no printed digit and is not worth a warning.
_WARN_FROM = 1e-6
# A stated reason is called into question below this p-value: once in a thousand times without cause.
_CLEARLY = 1e-3
_REFUTED_MESSAGE = (
    "It was stated that labels are missing by label, but the scores of the missing rows are no mixture of those of "
    "labelled positives and negatives: the label alone does not decide, and this answer may be far off. If the scores "
    "do, it is missingness='by_score'; if both do, give calibration=(labels, scores) of fully labelled rows. See "
    ".diagnosis."
)
# A warning that lists more metrics is not read.
_METRICS_NAMED = 5


def evaluate(
    y_true: Any,
    y_score: Any = None,
    *,
    metrics: Any = DEFAULT_METRICS,
    threshold: float | None = None,
    y_pred: Any = None,
    label_model: Any = "auto",
    missingness: Any = None,
    calibration: Any = None,
    method: Any = "auto",
    pos_label: Any = 1,
    missing_label: Any = None,
    sample_weight: Any = None,
    zero_division: Any = "warn",
    rng: Any = None,
    confidence_level: float = 0.9,
) -> Evaluation:
    """How good is this classifier on these rows, when part of their labels is missing?

    Returns, for each metric, the whole distribution of the value it would have if all labels were known, given
    probabilities for the missing ones. The spread is about these rows: it shrinks to nothing as labels arrive.

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
        otherwise. Weights count in the metrics; what is learnt about labels counts rows, so weights that depend on the
        label itself (ten for every fraud) call for probabilities of your own.
    label_model : str, LabelModel, float or array-like
        Where the probabilities of the missing labels come from. "auto", the default, learns them from the labelled
        rows, the scores of the missing ones and `calibration`, and says what it assumed (`label_models.Auto`). Others:
        "calibrated", "label_shift", "selection", "half", "prevalence", a model from `label_models`, one probability
        for all rows, or an array with one per row or per missing row. A set built with `probability=` uses these.
    missingness : {"random", "by_score", "by_label", "by_score_and_label", "unknown"}, optional
        Why labels are missing, if you know: the scores decide who gets a label ("by_score"), or the label itself does
        (frauds take longer to confirm: "by_label"), or both, which needs `calibration`.
    calibration : (labels, scores) or EvaluationSet, optional
        Fully labelled reference rows, such as the test set of the model; they make it unnecessary to know why labels
        are missing, as long as the relation of score and label has not drifted since.
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

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`.

    Notes
    -----
    Missing labels are taken as independent given their probabilities. How the laws are computed, with proofs, is in
    `docs/explanation/mathematics.md`.

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
                estimate     90% interval   labelled only   worst to best   method   undefined
    precision      0.675   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    recall         0.694   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    <BLANKLINE>
    Intervals are for these 8 rows, not for the population they came from.
    >>> round(result["recall"].cdf(0.7), 3)
    0.44
    """
    settings = {
        "threshold": threshold,
        "y_pred": y_pred,
        "pos_label": pos_label,
        "missing_label": missing_label,
        "sample_weight": sample_weight,
    }
    stated = {"missingness": missingness, "calibration": calibration}
    asked = _Asked.of(metrics, method, zero_division, rng, confidence_level)
    given = {"y_true": y_true, "y_score": y_score, "metrics": metrics, "label_model": label_model, **settings, **stated}
    data, model = _data_and_model(y_true, y_score, settings, label_model, stated)
    return asked.evaluation(data, model, stated, arguments_given(evaluate, {**given, **asked.given}))


def evaluate_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    threshold: float | None = None,
    decision: str | None = None,
    probability: str | None = None,
    weight: str | None = None,
    resolution: str | int = "auto",
    metrics: Any = DEFAULT_METRICS,
    label_model: Any = "auto",
    missingness: Any = None,
    calibration: Any = None,
    method: Any = "auto",
    pos_label: Any = 1,
    missing_label: Any = None,
    zero_division: Any = "warn",
    rng: Any = None,
    confidence_level: float = 0.9,
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
    resolution : {"auto", "exact"} or int
        How finely scores are told apart, as in `EvaluationSet.from_frame`. Where that is in buckets, the result's
        `resolution` says how far that can have moved each metric; metrics of the decisions it does not move.
    calibration : frame, path, (labels, scores) or EvaluationSet, optional
        Fully labelled reference rows; a frame or file has the same label and score columns.
    metrics, label_model, missingness, method, pos_label, missing_label, zero_division, rng, confidence_level
        As in `evaluate`; probabilities of rows are a column, `probability`.

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.evaluate import evaluate_frame
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
    columns_named: dict[str, Any] = {"decision": decision, "probability": probability, "weight": weight}
    settings: dict[str, Any] = {"threshold": threshold, "pos_label": pos_label, "missing_label": missing_label}
    asked = _Asked.of(metrics, method, zero_division, rng, confidence_level)
    given = {"frame": frame, "label": label, "score": score, **columns_named, "resolution": resolution, **settings}
    given |= {"label_model": label_model, "missingness": missingness, "calibration": calibration, "metrics": metrics}
    given |= asked.given
    # Whatever is wrong with the rest is said before a table is read that may take minutes.
    reference: dict[str, Any] = {"pos_label": pos_label, "missing_label": missing_label, "resolution": resolution}
    stated = stated_for_frame(label_model, missingness, calibration, label=label, score=score, **reference)
    data = EvaluationSet.from_frame(frame, label=label, score=score, **columns_named, **settings, resolution=resolution)
    data, model = _data_and_model(data, None, {}, label_model, stated)
    return asked.evaluation(data, model, stated, arguments_given(evaluate_frame, given))


def stated_for_frame(
    label_model: Any, missingness: Any, calibration: Any, *, label: str, score: str, **settings: Any
) -> dict[str, Any]:
    """What is said about the missing labels of a table, checked; reference rows that are a table become a set."""
    if label_model is not None and not isinstance(label_model, (str, LabelModel)) and not _is_number(label_model):
        raise InputError(
            "label_model: a table is counted where it is, so probabilities per row must be one of its columns. "
            "Name it with probability=."
        )
    if _features_of(_model(label_model, {"missingness": missingness, "calibration": calibration})) is not None:
        raise InputError(
            "label_model: Features belong to rows, and a table is counted where it is. Give evaluate the labels and "
            "scores themselves."
        )
    if _is_table(calibration):
        try:
            calibration = EvaluationSet.from_frame(calibration, label=label, score=score, **settings)
        except InputError as error:
            raise InputError(f"calibration: {error}") from None
    return {"missingness": missingness, "calibration": calibration}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _is_table(calibration: Any) -> bool:
    """Whether reference rows are a table of some engine or files, and not columns or a ready set."""
    if calibration is None or isinstance(calibration, (EvaluationSet, tuple)):
        return False
    return not isinstance(calibration, list) or all(isinstance(part, (str, Path)) for part in calibration)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is wanted of the rows, checked before they are read."""

    metrics: list[Metric]
    method: Method
    fill: float | None
    rng: np.random.Generator
    confidence_level: float
    given: dict[str, Any]

    @classmethod
    def of(cls, metrics: Any, method: Any, zero_division: Any, rng: Any, confidence_level: float) -> "_Asked":
        chosen = metrics_from(metrics)
        how = method_from(method)
        check_level(confidence_level)
        given = {"method": method, "zero_division": zero_division, "rng": rng, "confidence_level": confidence_level}
        return cls(chosen, how, fill_value(zero_division), generator_from(rng), confidence_level, given)

    def evaluation(
        self, data: EvaluationSet, model: LabelModel, stated: dict[str, Any], arguments: dict[str, str]
    ) -> Evaluation:
        """The law of each metric; warnings point to the caller of whoever calls this."""
        nodes = model.nodes(data)
        memo = Memo()
        laws: dict[str, MetricDistribution] = {}
        fills = {metric.name: metric.undefined_as if self.fill is None else self.fill for metric in self.metrics}
        labelled_only: dict[str, float] = {}
        for metric in self.metrics:
            try:
                functional = metric.bind(data, fills[metric.name])
                law = self.method.law(functional, nodes, rng=self.rng, memo=memo)
            except MethodError as error:
                raise MethodError(f"{error} (metric: {metric.name!r})") from None
            except Exception as error:
                error.add_note(f"darkmetrics was computing the metric {metric.name!r}.")
                raise
            if self.fill is None and law.undefined > _WARN_FROM:
                warnings.warn(_undefined_message(metric, law), UndefinedMetricWarning, stacklevel=3)
            laws[metric.name] = law
            labelled_only[metric.name] = metric.value(data, fills[metric.name]) if data.n_labelled else np.nan
        reason = stated_reason(model, stated["missingness"])
        if reason is None and readings_differ(nodes):
            warnings.warn(_readings_message(data, nodes, laws), MissingnessWarning, stacklevel=3)
        elif isinstance(model, LabelShift) and mixture_p_value(score_table(data)) < _CLEARLY:
            warnings.warn(_REFUTED_MESSAGE, RefutedWarning, stacklevel=3)
        calibration = stated["calibration"]
        return Evaluation(
            data=data,
            metrics={metric.name: metric for metric in self.metrics},
            laws=laws,
            labelled_only=labelled_only,
            fills=fills,
            assumption=model.describe(data, nodes) if data.n_missing else "",
            nodes=nodes,
            stated=reason,
            calibration=calibration if calibration is not None else getattr(model, "calibration", None),
            confidence_level=self.confidence_level,
            method=self.method,
            arguments=arguments,
        )


def _data_and_model(
    y_true: Any, y_score: Any, settings: dict[str, Any], label_model: Any, stated: dict[str, Any]
) -> tuple[EvaluationSet, LabelModel]:
    """The evaluation set and the label model that the arguments of `evaluate` stand for."""
    if label_model is None:
        label_model = "auto"
    named = isinstance(label_model, (str, LabelModel)) or _is_number(label_model)
    # Checked before the data, which may be large.
    model = _model(label_model, stated) if named else _given(label_model, stated)
    features = _features_of(model)
    if isinstance(y_true, EvaluationSet):
        data = evaluation_set_from(y_true, y_score, **settings)
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
        nothing_said = label_model == "auto" and all(x is None for x in stated.values())
        if nothing_said and data.cells.probability is not None:
            model = Given()
    else:
        probability = None if named else label_model
        if features is not None:
            names = frames.row_names(y_true=y_true, y_score=y_score)
            if names is not None:
                names.check("X", features.X)
            probability = _feature_predictions(features, y_true, settings)
        try:
            data = evaluation_set_from(y_true, y_score, probability=probability, **settings)
        except InputError as error:  # name the argument that the caller used
            raise InputError(re.sub(r"^probability:", "label_model:", str(error))) from None
    # With nothing missing nothing depends on the model, and it may have nothing to learn from.
    return data, model if data.n_missing else Half()


def _model(label_model: Any, stated: dict[str, Any]) -> LabelModel:
    """The model that a word, a record or one probability for all rows stands for."""
    if _is_number(label_model):
        label_model = Prevalence(float(label_model))
    return label_model_from("auto" if label_model is None else label_model, **stated)


def _given(label_model: Any, stated: dict[str, Any]) -> LabelModel:
    """The model for probabilities per row, beside which nothing else can be said."""
    for name, value in stated.items():
        if value is not None:
            raise InputError(
                f"{name}: label_model already gives the probabilities of the missing labels. Give one of them."
            )
    return Given()


def _features_of(model: LabelModel) -> Features | None:
    """The features that a model learns from, itself or through the model that it tilts."""
    while isinstance(model, Tilted):
        model = label_model_from(model.base)
    return model if isinstance(model, Features) else None


def _feature_predictions(model: Features, y_true: Any, settings: dict[str, Any]) -> FloatArray | None:
    """What the features say about every row, with labels read as the evaluation set reads them."""
    labels, missing = frames.label_column(y_true, "y_true")
    columns.check_label_values(settings["pos_label"], settings["missing_label"])
    if settings["missing_label"] is not None:
        missing = missing | columns.equals(labels, missing, settings["missing_label"])
    positive, _ = columns.positive_labels(labels, missing, settings["pos_label"], "y_true")
    return model.predictions(positive, missing) if missing.any() else None


def fill_value(zero_division: Any) -> float | None:
    """None for "warn" (each metric's own value), else the number that stands for 0/0."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return None
    if isinstance(zero_division, (int, float, np.number)) and (
        zero_division in (0, 1) or zero_division != zero_division
    ):
        return float(zero_division)
    raise InputError(f"zero_division: expected 'warn', 0, 1 or nan, got {zero_division!r}.")


def generator_from(rng: Any) -> np.random.Generator:
    """The generator that a seed or a generator stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng: expected None, a seed or a numpy Generator, got {rng!r}.") from None


def _undefined_message(metric: Metric, law: MetricDistribution) -> str:
    chance = "always" if law.undefined > 1.0 - 1e-12 else f"with probability {law.undefined:.3g}"
    left_out = np.isnan(metric.undefined_as) or law.given_defined
    value = "left out of its law" if left_out else f"counted as {metric.undefined_as:g}"
    return (
        f"{metric.name} is undefined (0/0) {chance}; there it is {value}. "
        "Set zero_division to 0, 1 or nan to choose, and to silence this."
    )


def _readings_message(data: EvaluationSet, nodes: Nodes, laws: dict[str, MetricDistribution]) -> str:
    """Both answers, and how to choose between them."""
    answers = []
    for name, law in list(laws.items())[:_METRICS_NAMED]:
        if law.by_node is not None:
            means = [f"{_mean_of(law, nodes.reading == k):.3f}" for k in range(len(nodes.readings))]
            answers.append(f"{name} {means[0]} either way" if len(set(means)) == 1 else f"{name} {' or '.join(means)}")
    text = (
        "Missing rows look different from labelled ones, and why they do changes the answer. Of the missing rows "
        f"{readings_in_words(data, nodes)} are positive; in that order {', '.join(answers)}. "
    )
    give = "give calibration=(labels, scores) of fully labelled rows"
    if weight_by_label(nodes) < REFUTED:
        return text + (
            "The scores do not fit 'by label' alone, and the answer is the one by score. If score and label both play "
            f"a part it is wrong: {give}; else say missingness='by_score', which silences this. See .diagnosis."
        )
    return text + (
        f"Say which it is with missingness='by_score' or 'by_label', or {give}; missingness='unknown' keeps both and "
        "silences this. See .diagnosis."
    )


def _mean_of(law: MetricDistribution, own: Any) -> float:
    assert law.by_node is not None
    weight = law.by_node.weight[own]
    if not weight.sum() > 0.0:
        weight = np.ones(weight.size)
    return float(weight @ law.by_node.mean[own] / weight.sum())
