"""evaluate() for several classes: from rows with scores of each class to the distribution of every metric."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics.class_evaluation import ClassEvaluation
from darkmetrics.data.class_building import ScoreColumns, class_set_from, find_score_columns
from darkmetrics.data.class_set import ClassSet
from darkmetrics.exceptions import (
    InputError,
    MissingnessWarning,
    RecordedWarning,
    UndefinedMetricWarning,
    record_warnings,
    warn,
)
from darkmetrics.methods.classes import class_distributions
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.class_names import DEFAULT_CLASS_METRICS, class_metrics_from
from darkmetrics.missingness.choice import stated_mechanism
from darkmetrics.missingness.reference import Reference
from darkmetrics.posterior.classes import ClassPosterior, FixedClassPosterior
from darkmetrics.question import WARN_FROM, Question, undefined_message
from darkmetrics.wording import Message, code, setting

_UNTOLD = (
    "No missingness mechanism was stated, and the data do not show which one is right. The intervals allow for labels "
    "that are missing by score, by label, or both. "
)
_REQUEST = (
    f"Set {setting('missingness', 'by_score', 'by_label')}, or pass "
    f"{code('missingness=dm.missing.Reference(labels, scores)')} of fully labeled rows. Set "
    f"{setting('missingness', 'unknown')} to silence this warning."
)
# What evaluate takes with several classes besides metrics and rows.
_ASKED = ("missingness", "method", "zero_division", "confidence_level", "rng", "scope")
# A difference between mechanisms of less than this fraction of the interval's width is not worth a warning.
_DIFFERS = 0.25


def evaluate_classes(
    scores: ScoreColumns, given: Mapping[str, Any], arguments: Mapping[str, str], warned: list[RecordedWarning]
) -> ClassEvaluation:
    """Return the evaluation of rows with scores of several classes; `given` are all arguments of `evaluate`."""
    question = Question.of(metrics="accuracy", **{name: given[name] for name in _ASKED})
    with record_warnings() as said:
        data = class_set_from(scores, **{**given, "missingness": question.model, "y_score": None})
        model = _read_reference(question.model, data, given["missing_label"])
    question = replace(question, model=model.without_rows())
    return answer_classes(question, data, given["metrics"], arguments, [*warned, *said])


def _read_reference(model: Any, data: ClassSet, missing_label: Any) -> Any:
    """Return the mechanism with its reference rows as a ClassSet."""
    reference = getattr(model, "reference", None)
    if not isinstance(reference, Reference):
        return model
    columns = find_score_columns(reference.y_score)
    if columns is None or len(columns.columns) != data.n_classes:
        raise InputError("reference", f"not scores of {data.n_classes} classes", "", "Pass a column for each class.")
    settings = {"labels": data.classes, "data": reference.data, "missing_label": missing_label}
    try:
        rows = class_set_from(columns, reference.y_true, **settings)
    except InputError as error:
        raise error.replace(argument="reference", finding=f"{error.argument}: {error.finding}") from None
    if rows.n_missing:
        raise InputError("reference", f"{rows.n_missing:,} rows have no label", "Reference rows need one each.")
    return replace(model, reference=rows)


def answer_classes(
    question: Question,
    data: ClassSet,
    metrics: Any,
    arguments: Mapping[str, str],
    warned: list[RecordedWarning],
) -> ClassEvaluation:
    """Return the distribution of each metric on a set of several classes."""
    if question.scope == "population":
        fix = f"With several classes, use {setting('scope', 'rows')}."
        raise InputError("scope", "'population' is for two classes so far", "", fix)
    asked = class_metrics_from(DEFAULT_CLASS_METRICS if metrics is DEFAULT_METRICS else metrics, data.classes)
    with record_warnings() as said:
        posterior = _posterior(question, data)
        fills = {metric.name: metric.undefined_as if question.fill is None else question.fill for metric in asked}
        functionals = [metric.bind(data, fills[metric.name]) for metric in asked]
        laws = class_distributions(question.method, functionals, posterior, data.missing_counts, question.rng)
        distributions = {metric.name: law for metric, law in zip(asked, laws, strict=True)}
        for metric in asked:
            law = distributions[metric.name]
            if question.fill is None and law.undefined > WARN_FROM:
                warn(undefined_message(metric, law, "rows", ""), UndefinedMetricWarning)
        mechanism = stated_mechanism(question.model, question.missingness) if data.n_missing else None
        if posterior.mechanisms and mechanism is None:
            _warn_if_mechanisms_differ(posterior, distributions, said)
    labeled_only = {
        metric.name: metric.value(data, fills[metric.name]) if data.n_labeled else np.nan for metric in asked
    }
    # Records and posteriors of several classes have the attributes that an evaluation uses of those of two.
    records: dict[str, Any] = {metric.name: metric for metric in asked}
    known: Any = posterior
    return ClassEvaluation(
        data=data,
        metrics=records,
        distributions=distributions,
        labeled_only=labeled_only,
        fills=fills,
        assumption=posterior.assumption,
        posterior=known,
        stated=mechanism,
        confidence_level=question.confidence_level,
        method=question.method,
        arguments=arguments,
        model=question.model,
        warnings=tuple(dict.fromkeys([*warned, *said])),
    )


def _posterior(question: Question, data: ClassSet) -> ClassPosterior:
    if not data.missing_cells.size:
        return FixedClassPosterior(np.zeros((0, data.n_classes)))
    if question.believes and data.cells.probability is not None:
        from darkmetrics.missing import Fixed

        return Fixed().class_posterior(data)
    return question.model.class_posterior(data)


def _warn_if_mechanisms_differ(
    posterior: ClassPosterior, distributions: Mapping[str, Any], said: list[RecordedWarning]
) -> None:
    """Warn if the estimates depend on the mechanism; else record that none was stated."""
    answers = []
    for name, law in distributions.items():
        if law.by_draw is None:
            continue
        means = []
        for mechanism in (0, 1):
            weight = law.by_draw.weight * (posterior.mechanism == mechanism)
            means.append(float(weight @ law.by_draw.mean / weight.sum()) if weight.sum() > 0.0 else np.nan)
        low, high = law.interval(0.9)
        if abs(means[0] - means[1]) > _DIFFERS * (high - low):
            answers.append(f"{name} {means[0]:.3f} by score or {means[1]:.3f} by label")
    if answers:
        warn(f"{_UNTOLD}The estimates depend on it: {', '.join(answers[:5])}. {_REQUEST}", MissingnessWarning)
    else:
        text = Message(f"{_UNTOLD}Set {setting('missingness')} to narrow them if you know the mechanism.")
        said.append(RecordedWarning(MissingnessWarning.__name__, text))
