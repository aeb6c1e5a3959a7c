"""The evaluation of a file, its targets, and both as a result."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.inputs import Rows, load, read_reference
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import EstimateOptions, MethodOptions
from darkmetrics.cli.output import in_words
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.exceptions import InputError


def targets_from(passed: Sequence[str] | None, option: str = "--target", only: str = "") -> dict[str, float]:
    """Return the targets by metric; `only` is the kind of metric ("higher" or "lower" is better) an option is for."""
    targets: dict[str, float] = {}
    for text in passed or ():
        from darkmetrics.metrics.targets import check_target

        name, sign, value = _parts(text)
        target = number_from(value)
        if not sign or not name or target is None or not math.isfinite(target):
            raise InputError(option, f"cannot read {text!r}", "", "Write it like recall=0.8.")
        with in_words({}, metrics=option):
            metric = dm.metrics.metrics_from(name)[0]
            check_target(metric, target, option, f"{value} for {name!r}")
        if only not in ("", metric.better):
            other = "--fail-over" if only == "higher" else "--fail-under"
            raise InputError(
                option,
                f"{text!r}, but {metric.better} is better",
                "",
                f"Write {other} {metric.name}={target:g}.",
            )
        better, wanted = ("lower", "<=") if metric.better == "lower" else ("higher", ">=")
        if sign not in ("=", wanted):
            raise InputError(
                option,
                f"{text!r}, but {better} is better",
                "",
                f"Write {metric.name}{wanted}{target:g}.",
            )
        if metric.name in targets:
            raise InputError(option, f"{metric.name!r} has two targets", "", "Pass one.")
        targets[metric.name] = target
    return targets


def _parts(text: str) -> tuple[str, str, str]:
    """Return metric, sign (=, >= or <=) and value of a target."""
    name, sign, value = text.rpartition("=")
    if sign and name[-1:] in (">", "<"):
        name, sign = name[:-1], name[-1] + sign
    elif name.endswith("="):
        sign = ""
    return name.strip(), sign, value.strip()


def add_metrics(metrics: Sequence[str] | None, targets: Iterable[str]) -> Sequence[str]:
    """Return the metrics, or the default ones, and those that have a target."""
    names = metrics or dm.metrics.DEFAULT_METRICS
    if not targets:
        return names
    known = [metric.name for metric in dm.metrics.metrics_from(names)]
    return [*names, *(name for name in targets if name not in known)]


def settings_of(options: MethodOptions) -> dict[str, Any]:
    """Return the arguments of the library for how to estimate."""
    number = number_from(options.zero_division)
    return {
        "method": options.method,
        "zero_division": options.zero_division if number is None else number,
        "confidence_level": options.confidence_level,
        "scope": getattr(options, "scope", "rows"),
    }


def evaluate_rows(rows: Rows, metrics: Sequence[str], options: EstimateOptions, seed: int | None) -> dm.Evaluation:
    """Return the evaluation of rows."""
    reference = read_reference(options.reference, rows.names, rows.pos_label, rows.scores)
    missingness, settings = mechanism_from(options, reference), settings_of(options)
    with rows.counting():
        return dm.evaluate(
            **rows.arguments,
            threshold=options.threshold,
            metrics=metrics,
            missingness=missingness,
            rng=seed,
            **settings,
        )


def evaluate_file(
    options: EstimateOptions, targets: Mapping[str, float], seed: int | None, begin: Callable[[], None]
) -> tuple[Rows, dm.Evaluation]:
    """Return the rows of a file and their evaluation, which has the warnings; `begin` is called before both steps."""
    begin()
    rows = load(options)
    begin()
    with in_words(rows.names, quiet=True):
        return rows, evaluate_rows(rows, add_metrics(options.metric, targets), options, seed)


def verdicts_of(result: dm.Evaluation, targets: Mapping[str, float], confidence: float) -> list[dict[str, Any]]:
    """Return for each target the probability that it is met, by mechanism too, and whether that is enough."""
    from darkmetrics.tables import finite, plain_numbers

    verdicts = []
    for name, target in targets.items():
        probability = result.target_probability(name, target)
        met = bool(probability >= confidence)
        verdicts.append(
            {
                "metric": name,
                "target": target,
                "side": "at most" if result.metrics[name].better == "lower" else "at least",
                "probability": finite(probability),
                "confidence": confidence,
                "met": met,
                "verdict": "PASS" if met else "FAIL",
                "by_mechanism": plain_numbers(result.target_by_mechanism(name, target)),
            }
        )
    return verdicts


def _check_of(verdict: Mapping[str, Any]) -> Check:
    from darkmetrics.footnotes import met_in_words

    probability, required = verdict["probability"], verdict["confidence"]
    finding = "is never defined" if probability is None else f"has probability {probability:.4g}"
    compared = "enough" if verdict["met"] else f"less than the {required:g} asked for"
    name = f"{verdict['metric']} {verdict['side']} {verdict['target']:g}"
    by_mechanism = {mechanism: value for mechanism, value in verdict["by_mechanism"].items() if value is not None}
    why = "" if verdict["met"] else met_in_words(by_mechanism, required)
    return Check(name, verdict["met"], f"{name} {finding}, {compared}{': ' * bool(why)}{why}.")


def words_above(result: dm.Evaluation, names: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines above the table."""
    first, *lines = result._words()
    return [first, *(worded(line, names) for line in lines)]


def as_result(
    result: dm.Evaluation, names: Mapping[str, str] | None = None, verdicts: Sequence[Mapping[str, Any]] = ()
) -> Result:
    """Return an evaluation as a result; each target is a check."""
    document = result.to_dict()
    warned = [one._replace(message=worded(one.message, names)) for one in result.warnings]
    document["warnings"] = [one._asdict() for one in warned]
    records = result.to_records()
    if verdicts:
        document["targets"] = list(verdicts)
        by_metric = {verdict["metric"]: verdict for verdict in verdicts}
        for record in records:
            verdict = by_metric.get(record["metric"], {})
            record |= {"target": verdict.get("target")}
            record |= {f"target_{key}": verdict.get(key) for key in ("probability", "met")}
    for record in records:
        record["warnings"] = " ".join(f"{one.category}: {one.message}" for one in warned)
    return Result(
        document,
        records,
        [Table(*result._table())],
        above=words_above(result, names),
        below=result._notes(),
        warnings=[f"Warning: {one.message}" for one in warned],
        checks=[_check_of(verdict) for verdict in verdicts],
        about=("metric", "scope"),
    )
