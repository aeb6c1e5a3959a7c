"""summarize(): everything a report says, as a plain dictionary."""

import platform
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import scipy

from darkmetrics.calls import as_code
from darkmetrics.data.rules import is_number
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.methods import Gaussian
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.report import sentences
from darkmetrics.report.density import shape
from darkmetrics.report.numbers import percent
from darkmetrics.report.what_if import what_if
from darkmetrics.tables import finite, level_text
from darkmetrics.threshold_curves import Curves, RateCurve
from darkmetrics.threshold_curves import curves as curves_of
from darkmetrics.threshold_curves.sweep import quick

SCHEMA = "darkmetrics.report/1"
# Metrics beyond these have their numbers, but no curves: a page of more pictures is not looked at.
MOST_CURVES = 30
# Positions of the threshold slider, besides the threshold of the evaluation.
THRESHOLDS = 100
# A page is made once, and its curves should meet its table: it may take this many times as long as curves that someone
# waits for. Beyond, the Gaussian ones are not told apart from them.
_PATIENCE = 2.0


def summarize(
    evaluation: Evaluation,
    *,
    targets: Mapping[str, float] | None = None,
    title: str | None = None,
    source: str | Mapping[str, Any] | None = None,
    curves: Curves | None = None,
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

    Returns
    -------
    dict
        Its keys are in `docs/reference/report.md`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.6], metrics="recall")
    >>> summary = dm.report.summarize(result, targets={"recall": 0.6})
    >>> summary["metrics"]["recall"]["sentence"]
    'recall is 0.600, 90% between 0.500 and 0.667; dropping unlabelled rows would have said 0.500'
    >>> summary["metrics"]["recall"]["target"]["probability"]
    0.6
    """
    if not isinstance(evaluation, Evaluation):
        raise InputError(f"evaluation: expected what evaluate returns, got {type(evaluation).__name__}.")
    if curves is not None:
        _check_curves(evaluation, curves)
    goals = _targets(evaluation, targets)
    numbers = evaluation.to_dict()
    counts = numbers["counts"]
    metrics = {}
    for name, entry in numbers["metrics"].items():
        target = _target(evaluation, name, goals[name]) if name in goals else None
        metrics[name] = {
            **entry,
            "sentence": sentences.headline(name, entry, counts, evaluation.scope),
            "shape": shape(evaluation[name], counts["missing"]),
            "target": target,
        }
    charted = dict(islice(evaluation.metrics.items(), MOST_CURVES))
    tilted = what_if(evaluation.rows, charted, {name: _references(evaluation, name, goals) for name in charted}, goals)
    for point in tilted.get("tipping_points", []):
        point["sentence"] = sentences.tipping_point(point, tilted)
    return {
        "schema": SCHEMA,
        "title": str(title) if title is not None else _title(counts),
        "source": source_facts(source),
        "counts": counts,
        "counts_sentence": evaluation.words()[0],
        "threshold": numbers["threshold"],
        "warnings": numbers["warnings"],
        "odds": evaluation.sensitivity().odds,
        "scope": evaluation.scope,
        "scope_sentence": evaluation.notes()[0],
        "confidence_level": evaluation.confidence_level,
        "metrics": metrics,
        "curves": _curves(evaluation.rows, charted, curves),
        "what_if": tilted,
        "diagnosis": _diagnosis(evaluation),
        "arrival": _arrival(evaluation),
        "assumptions": sentences.assumptions(evaluation),
        "method": sentences.method(evaluation),
        "reproduce": _reproduce(evaluation, goals, title),
    }


def _targets(evaluation: Evaluation, targets: Mapping[str, Any] | None) -> dict[str, float]:
    goals = {}
    for name, value in (targets or {}).items():
        if name not in evaluation.laws:
            raise unknown_name("targets", "metric", str(name), evaluation.laws)
        if not is_number(value) or not np.isfinite(value):
            raise InputError(f"targets: {name} = {value!r}. A target must be a finite number.")
        goals[name] = float(value)
    return goals


def _check_curves(evaluation: Evaluation, curves: Any) -> None:
    """What the page says about curves is true only of those of this evaluation, at its confidence level."""
    if not isinstance(curves, Curves):
        raise InputError(f"curves: expected what curves(...) returns, got {type(curves).__name__}.")
    if curves.evaluation is not evaluation.rows:
        raise InputError("curves: they were made from another evaluation. Make them from this one.")
    level = evaluation.confidence_level
    if level not in curves.confidence_levels:
        others = " and ".join(map(level_text, curves.confidence_levels))
        raise InputError(
            f"curves: their intervals are of {others}, those of the evaluation of {level_text(level)}. "
            f"Make them with confidence_levels=[{level:.10g}]."
        )


def _target(evaluation: Evaluation, name: str, value: float) -> dict[str, Any]:
    side = "at most" if evaluation.metrics[name].better == "lower" else "at least"
    target = {"value": value, "side": side, "probability": finite(evaluation.target_probability(name, value))}
    return target | {"sentence": sentences.target_met(name, target)}


def _references(evaluation: Evaluation, name: str, goals: Mapping[str, float]) -> dict[str, float]:
    """Values of a metric whose crossing is of interest, with what they are."""
    values = {"the target": goals.get(name, np.nan), "the labelled-only value": evaluation.labelled_only[name]}
    return {what: value for what, value in values.items() if np.isfinite(value)}


def _title(counts: Mapping[str, int]) -> str:
    if not counts["missing"]:
        return "How good is this classifier?"
    return f"How good is this classifier, with {percent(counts['missing'] / counts['rows'], 0)} of its labels missing?"


def source_facts(source: str | Mapping[str, Any] | None) -> dict[str, str]:
    """Facts about the data by name, as text."""
    if source is None:
        return {}
    return {str(k): str(v) for k, v in source.items()} if isinstance(source, Mapping) else {"data": str(source)}


def _curves(evaluation: Evaluation, charted: Mapping[str, Metric], ready: Curves | None) -> dict[str, Any]:
    """The metrics of the confusion matrix at every threshold of a grid."""
    if evaluation.data.threshold is None:
        return {"absent": "Decisions were given with y_pred, not made by a threshold, so there is no other to try."}
    names = [name for name, metric in charted.items() if isinstance(metric, ConfusionMetric)]
    if ready is None:
        if not names:
            return {"absent": "None of these metrics depends on the threshold."}
        try:
            ready = _make_curves(evaluation, [charted[name] for name in names])
        except MethodError as error:
            return {"absent": str(error)}
    level = evaluation.confidence_level
    # Pictures without numbers to look up: as exact as the curves while that takes a second or two.
    drawn = (
        ready if quick(evaluation, ready.thresholds.size + 2, 2, patience=0.25) else replace(ready, method="gaussian")
    )
    return {
        "absent": None,
        "thresholds": _column(ready.thresholds),
        "flagged": _column(ready.flagged),
        "current": float(ready.current),
        "method": ready.method,
        "confidence_level": level,
        "metrics": {
            name: {
                "mean": _column(band.mean),
                "low": _column(band.intervals[level][0]),
                "high": _column(band.intervals[level][1]),
                "labelled_only": _column(band.labelled_only),
                "lowest_possible": _column(band.lowest_possible),
                "highest_possible": _column(band.highest_possible),
            }
            for name, band in ready.bands.items()
        },
        "roc": _rates(drawn.roc, drawn.method, level),
        "precision_recall": _rates(drawn.precision_recall, drawn.method, level),
    }


def _rates(make: Callable[[], RateCurve], method: str, level: float) -> dict[str, Any] | None:
    """Two rates against each other as the threshold rises."""
    try:
        rates = make()
    except InputError:  # a metric that does not depend on the threshold was given the name of a rate
        return None
    low, high = rates.y.intervals[level]
    return {
        "method": method,
        "thresholds": _column(rates.thresholds),
        "x": _column(rates.x.mean),
        "mean": _column(rates.y.mean),
        "low": _column(low),
        "high": _column(high),
        "labelled_only_x": _column(rates.x.labelled_only),
        "labelled_only": _column(rates.y.labelled_only),
    }


def _column(values: Any) -> list[float | None]:
    return [finite(value) for value in np.asarray(values, dtype=np.float64)]


def _make_curves(evaluation: Evaluation, metrics: list[Metric]) -> Curves:
    """Curves for the page: as exact as the evaluation itself, as long as that takes seconds."""
    about: dict[str, Any] = {"metrics": metrics, "confidence_levels": (evaluation.confidence_level,)}
    in_seconds = quick(evaluation, THRESHOLDS, len(metrics), patience=_PATIENCE)
    if in_seconds and not isinstance(evaluation.method, Gaussian):
        try:
            return curves_of(evaluation, thresholds=THRESHOLDS, method="exact", **about)
        except MethodError:  # a formula of the user's that has no exact law of this size
            pass
    return curves_of(evaluation, thresholds=THRESHOLDS, method="gaussian", **about)


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
    header, rows = found.table()
    return {**found.to_dict(), "table": {"header": header, "rows": rows}}


def _reproduce(evaluation: Evaluation, goals: Mapping[str, float], title: str | None) -> dict[str, Any]:
    arguments = dict(evaluation.arguments)
    function = "evaluate_by" if evaluation.groups else "evaluate_frame" if "frame" in arguments else "evaluate"
    if "frame" in arguments:
        data = [arguments.pop("frame")]
    else:
        data = [arguments.pop("y_true", "y_true")]
        # Without scores the rows came as an evaluation set.
        data = [*data, arguments.pop("y_score")] if "y_score" in arguments else ["data"]
    code = ["import darkmetrics as dm", ""]
    yours = sorted(name for name, value in arguments.items() if value == name)
    # A table in files is named in the call itself.
    names = [*(name for name in data if name.isidentifier()), *yours]
    if names:
        code.append(f"# {', '.join(names)}: as you gave {'it' if len(names) == 1 else 'them'}")
    if data == ["data"]:
        threshold = evaluation.data.threshold
        decided = "y_pred=..." if threshold is None else f"threshold={threshold!r}"
        code.append(f"# data = dm.EvaluationSet(y_true, y_score, {decided}, ...)")
    said = "".join(f", {name}={value}" for name, value in arguments.items())
    code.append(f"result = dm.{function}({', '.join(data)}{said}){'.total' if evaluation.groups else ''}")
    goals_as_code = repr(dict(goals))
    about = f", targets={goals_as_code if len(goals_as_code) <= 200 else 'targets'}" if goals else ""
    code.append(f'result.report("report.html"{about}{title_as_code(title)})')
    return reproduction(code, arguments, {law.method for law in evaluation.laws.values()})


def title_as_code(title: str | None) -> str:
    """The title as an argument."""
    return "" if title is None else f", title={as_code(title) or 'title'}"


def reproduction(code: list[str], arguments: Mapping[str, str], methods: Collection[str]) -> dict[str, Any]:
    """How to make a report again: the code, what there is to say about the seed, and versions."""
    # A method of the user's own may draw; only of these is it known that they do not.
    drawn = not set(methods) <= {"exact", "near exact", "gaussian", "first order", "bounds"}
    if "rng" in arguments:
        seed = f"The seed was rng={arguments['rng']}."
    elif drawn:
        seed = "No seed was given (rng=...), so that drawn numbers differ a little from run to run."
    else:
        seed = "Nothing was drawn at random, so that no seed is needed."
    from darkmetrics import __version__

    versions = {"darkmetrics": __version__, "Python": platform.python_version()}
    versions |= {package.__name__: package.__version__ for package in (np, scipy)}
    return {"code": "\n".join(code), "seed": seed, "versions": versions}
