"""summarize(): everything a report says, as a plain dictionary."""

import datetime as dt
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from darkmetrics.constraints import checked
from darkmetrics.curves import ThresholdCurves
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric, Linear
from darkmetrics.metrics.metric import UNIT
from darkmetrics.metrics.targets import targets_from
from darkmetrics.report import sentences
from darkmetrics.report.curves import check_curves, curve_numbers
from darkmetrics.report.density import shape
from darkmetrics.report.numbers import percent
from darkmetrics.report.reproduce import as_argument, audit_facts, code_of, date_of, reproduction, source_facts
from darkmetrics.report.what_if import what_if
from darkmetrics.tables import finite

SCHEMA = "darkmetrics.report/1"
# Metrics beyond these have their numbers, but no curves: a page of more pictures is not looked at.
MOST_CURVES = 30
# The probability with which a target must be met, unless another one is asked for.
CONFIDENCE = 0.9


@checked
def summarize(
    evaluation: Evaluation,
    *,
    targets: Mapping[str, float] | None = None,
    title: str | None = None,
    source: str | Mapping[str, Any] | None = None,
    curves: ThresholdCurves | None = None,
    confidence: float = CONFIDENCE,
    date: str | dt.date | None = None,
    audit: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What is there to say about this evaluation? All of it, as plain numbers and text.

    The dictionary holds what the report shows, at full precision and in words, for a program or a page of your own.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    targets : mapping from metric to number, optional
        Values to reach: for each the probability that it is met, and at which share of positives among the missing
        rows it is crossed.
    title : str, optional
        Heading of the report.
    source : str or mapping, optional
        Where the rows came from: a file name, or facts by name such as {"file": "june.csv", "label column": "fraud"}.
    curves : Curves, optional
        Curves to show, if they were made already; otherwise they are made here. They must be of this evaluation and
        have intervals of its confidence level.
    confidence : float
        A target passes when it is met with at least this probability.
    date : str or date, optional
        The date of the report, such as "2026-06-30": that of SOURCE_DATE_EPOCH, else today, unless given.
    audit : mapping, optional
        Facts for an audit file by name, such as {"model": "scorecard 3"}: a section with these, a hash of the rows and
        versions. An empty one gives the latter two.

    Returns
    -------
    dict
        Its keys are in `docs/reference/report.md`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), metrics="recall"
    ... )
    >>> summary = dm.report.summarize(result, targets={"recall": 0.6})
    >>> summary["metrics"]["recall"]["sentence"]
    'recall is 0.600, 90% between 0.500 and 0.667; dropping unlabeled rows would have said 0.500'
    >>> summary["metrics"]["recall"]["target"]["probability"]
    0.6
    """
    if not isinstance(evaluation, Evaluation):
        raise InputError("evaluation", f"expected what evaluate returns, got {type(evaluation).__name__}")
    if curves is not None:
        check_curves(evaluation, curves)
    source_facts(audit, "audit")  # before the work
    date = date_of(date)
    _, goals = targets_from(targets, evaluation.metrics.values(), more=False)
    numbers = evaluation.to_dict()
    counts = numbers["counts"]
    metrics = {}
    for name, entry in numbers["metrics"].items():
        target = _target(evaluation, name, goals[name], confidence) if name in goals else None
        metrics[name] = {
            **entry,
            "sentence": sentences.headline(name, entry, counts, evaluation.scope),
            "shape": shape(evaluation[name]),
            "target": target,
        }
    charted = dict(islice(evaluation.metrics.items(), MOST_CURVES))
    tilted = what_if(evaluation.rows, charted, {name: _references(evaluation, name, goals) for name in charted}, goals)
    for point in tilted.get("tipping_points", []):
        point["sentence"] = sentences.tipping_point(point, tilted)
    said = {
        "targets": goals or None,
        "title": title,
        "confidence": None if confidence == CONFIDENCE else confidence,
        "date": date,
        "audit": audit,
    }
    code = code_of(evaluation, "".join(as_argument(name, value) for name, value in said.items()))
    reproduce = reproduction(
        code, evaluation.arguments, {distribution.method for distribution in evaluation.distributions.values()}, source
    )
    return {
        "schema": SCHEMA,
        "title": str(title) if title is not None else _title(counts),
        "date": date,
        "assumption": sentences.assumed(evaluation),
        "source": source_facts(source),
        "counts": counts,
        "counts_sentence": evaluation._words()[0],
        "threshold": numbers["threshold"],
        "warnings": numbers["warnings"],
        "odds": evaluation.sensitivity().odds,
        "scope": evaluation.scope,
        "scope_sentence": evaluation._notes()[0],
        "confidence_level": evaluation.confidence_level,
        "metrics": metrics,
        "confusion": confusion(evaluation),
        "curves": curve_numbers(evaluation.rows, charted, curves),
        "what_if": tilted,
        "diagnosis": _diagnosis(evaluation),
        "arrival": _arrival(evaluation),
        "assumptions": sentences.assumptions(evaluation),
        "method": sentences.method(evaluation),
        "audit": audit_facts(evaluation.data, audit, reproduce["versions"]),
        "reproduce": reproduce,
    }


def _target(evaluation: Evaluation, name: str, value: float, confidence: float) -> dict[str, Any]:
    side = "at most" if evaluation.metrics[name].better == "lower" else "at least"
    chance = evaluation.target_probability(name, value)
    target = {"value": value, "side": side, "probability": finite(chance), "confidence": float(confidence)}
    target["verdict"] = "PASS" if chance >= confidence else "FAIL"
    return target | {"sentence": sentences.target_met(name, target)}


def _references(evaluation: Evaluation, name: str, goals: Mapping[str, float]) -> dict[str, float]:
    """Values of a metric whose crossing is of interest, with what they are."""
    values = {"the target": goals.get(name, np.nan), "the labeled-only value": evaluation.labeled_only[name]}
    return {what: value for what, value in values.items() if np.isfinite(value)}


def _title(counts: Mapping[str, int]) -> str:
    if not counts["missing"]:
        return "Classifier metrics"
    return f"Classifier metrics with {percent(counts['missing'] / counts['rows'], 0)} of the labels missing"


def _diagnosis(evaluation: Evaluation) -> dict[str, Any]:
    """The diagnosis, its tables, and where the spread of each metric comes from."""
    found = evaluation.diagnosis
    tables = [{"title": title, "header": header, "rows": rows} for title, header, rows in found.tables()]
    return {**found.to_dict(), "tables": tables}


def _arrival(evaluation: Evaluation) -> dict[str, Any] | None:
    """When labels come, with its table, where rows have ages."""
    found = evaluation.arrival
    if found is None:
        return None
    header, rows = found._table()
    return {**found.to_dict(), "table": {"header": header, "rows": rows}}


# Each count with the way it moves when a missing row decided positive, or negative, turns out positive.
_COUNTS: dict[str, tuple[Linear, tuple[int, int]]] = {
    "tp": (TP, (1, 0)),
    "fp": (FP, (-1, 0)),
    "fn": (FN, (0, 1)),
    "tn": (TN, (0, -1)),
}


def confusion(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return known rows, estimate and interval of each of the four counts; None if the method finds none.

    Counts are of these rows, whatever the scope of the evaluation is; weights count where rows have some.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.summarize import confusion
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    >>> confusion(result)["tp"]
    {'known': 1.0, 'mean': 1.6, 'low': 1.0, 'high': 2.0}
    """
    evaluation = evaluation.rows
    data, everything = evaluation.data, TP + FP + FN + TN
    sums = data.by_decision
    total = sum(sum(both) for both in sums.values())
    known = dict(zip(("tp", "fn"), sums["positives"], strict=True)) | dict(
        zip(("fp", "tn"), sums["negatives"], strict=True)
    )
    metrics = [
        ConfusionMetric(name=name, formula=count / everything, range=UNIT, direction=direction)
        for name, (count, direction) in _COUNTS.items()
    ]
    functionals = [metric.bind(data, 0.0) for metric in metrics]
    try:
        distributions = list(evaluation.method.distributions(functionals, evaluation.posterior, rng=0))
    except MethodError:
        return None
    counts: dict[str, Any] = {"weighted": data.cells.weight is not None}
    for metric, distribution in zip(metrics, distributions, strict=True):
        ends = distribution.interval(evaluation.confidence_level)
        mean, low, high = (finite(round(total * value, 9)) for value in (distribution.mean(), *ends))
        counts[metric.name] = {"known": known[metric.name], "mean": mean, "low": low, "high": high}
    return counts
