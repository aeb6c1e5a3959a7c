"""What the commands that evaluate have in common: what is assumed, and --target: what it says and whether it is met."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics._vocabulary import PLAIN_MODELS
from darkmetrics.cli.inputs import Rows, load, load_reference
from darkmetrics.cli.messages import WordedError, for_the_command_line
from darkmetrics.cli.options import (
    ClustersOption,
    EstimateOptions,
    EvaluationOptions,
    LateOptions,
    ModelOptions,
    ScopeOption,
    ZeroDivisionOption,
)
from darkmetrics.cli.output import in_words
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.exceptions import heard, unknown_name


def targets_from(given: Sequence[str] | None) -> dict[str, float]:
    """The targets by name of the metric."""
    if not given:
        return {}
    from darkmetrics.metrics.targets import check_target

    targets: dict[str, float] = {}
    for text in given:
        name, sign, value = _parts(text)
        target = number_from(value)
        if not sign or not name or target is None or not math.isfinite(target):
            raise WordedError(f"--target: cannot read {text!r}. Write it like recall=0.8.")
        with in_words({}, metrics="--target"):
            metric = dm.metrics.metrics_from(name)[0]
            check_target(metric, target, f"targets: {value} for {name!r}")
            name = metric.name
        wanted = "<=" if metric.better == "lower" else ">="
        if sign not in ("=", wanted):
            side = "lower" if metric.better == "lower" else "higher"
            raise WordedError(f"--target: {text!r}, but {side} is better. Write {name}{wanted}{target:g}.")
        if name in targets:
            raise WordedError(f"--target: {name!r} has two targets. Give one.")
        targets[name] = target
    return targets


def _parts(text: str) -> tuple[str, str, str]:
    """Metric, sign and value of a target: =, or >= and <= as people write them."""
    name, sign, value = text.rpartition("=")
    if sign and name[-1:] in (">", "<"):
        name, sign = name[:-1], name[-1] + sign
    elif name.endswith("="):
        sign = ""  # two of them are a slip
    return name.strip(), sign, value.strip()


def metrics_wanted(asked: Sequence[str] | None, targets: Iterable[str]) -> Sequence[str]:
    """The metrics asked for, or the default ones, and those that have a target."""
    names = asked or dm.metrics.DEFAULT_METRICS
    known = [metric.name for metric in dm.metrics.metrics_from(names)]
    more = [name for name in targets if name not in known]
    return [*names, *more] if more else names


def verdicts(result: dm.Evaluation, targets: Mapping[str, float], confidence: float) -> list[dict[str, Any]]:
    """For each target the probability that it is met, whether that is enough, and the same for each reason mixed."""
    from darkmetrics.tables import finite, plain_numbers

    found = []
    for name, target in targets.items():
        chance = result.target_probability(name, target)
        found.append(
            {
                "metric": name,
                "target": target,
                "side": "at most" if result.metrics[name].better == "lower" else "at least",
                "probability": finite(chance),
                "confidence": confidence,
                "met": bool(chance >= confidence),
                "verdict": "PASS" if chance >= confidence else "FAIL",
                "by_reason": plain_numbers(result.target_by_reason(name, target)),
            }
        )
    return found


def checks_of(found: Sequence[Mapping[str, Any]]) -> list[Check]:
    """How each target stands, in words."""
    from darkmetrics.footnotes import met_in_words

    checks = []
    for verdict in found:
        chance, enough = verdict["probability"], verdict["confidence"]
        words = "is never defined" if chance is None else f"has probability {chance:.4g}"
        asked = "enough" if verdict["met"] else f"less than the {enough:g} asked for"
        name = f"{verdict['metric']} {verdict['side']} {verdict['target']:g}"
        known = {reason: one for reason, one in verdict["by_reason"].items() if one is not None}
        why = "" if verdict["met"] else met_in_words(known, enough)
        checks.append(Check(name, verdict["met"], f"{name} {words}, {asked}{': ' * bool(why)}{why}."))
    return checks


def evaluated_file(
    options: EvaluationOptions, seed: int | None, begin: Callable[[], None], *, said: bool
) -> tuple[Rows, dm.Evaluation, dict[str, float]]:
    """The rows of a file, their evaluation, and the targets; `begin` is called before each of the two steps.

    `said`: whether warnings are said on standard error, because no result that a person sees has them.
    """
    targets = targets_from(options.target)
    begin()
    rows = load(options, pred=options.pred, **columns_assumed(options))
    begin()
    with in_words(rows.names, said=said):
        return rows, evaluated(rows, metrics_wanted(options.metric, targets), options, seed), targets


def evaluated(rows: Rows, metrics: Sequence[str], options: EstimateOptions, seed: int | None) -> dm.Evaluation:
    """The evaluation that the options ask for."""
    model = label_model_of(options)
    scope: Any = options.scope if isinstance(options, ScopeOption) else "rows"  # curves are for the rows
    with heard() as said:
        data = rows.data(options.threshold, options)
    found = dm.evaluate(
        **data,
        metrics=metrics,
        label_model=rows.columns.get("prob", model),
        missingness=options.missingness,
        reference=load_reference(options.reference, rows.names, rows.pos_label),
        method=options.method,
        zero_division=zero_division_of(options),
        rng=seed,
        confidence_level=options.confidence_level,
        scope=scope,
    )
    if not said and (found.arrival is None or options.as_of is None):
        return found
    from darkmetrics import frames

    at = None if found.arrival is None else found.arrival.at(frames.AsOf.of(options.as_of).date)
    told = replace(found.rows, arrival=at, warnings=tuple(dict.fromkeys([*said, *found.warnings])))
    return told.population if found.scope == "population" else told


def columns_assumed(options: EstimateOptions) -> dict[str, str | None]:
    """The columns that say something about missing labels, by role."""
    assumed = {"prob": options.prob, "propensity": options.propensity, "strata": options.strata}
    together = {"groups": options.groups} if isinstance(options, ClustersOption) else {}
    return assumed | together | times_of(options)


def times_of(options: LateOptions) -> dict[str, str | None]:
    """The columns that say when rows were scored and labelled, by role."""
    return {"scored_at": options.scored_at, "labelled_at": options.labelled_at}


def label_model_of(options: ModelOptions) -> float | str:
    """The label model that the options name; beside a column of probabilities there is none."""
    if options.prob is not None and options.label_model != "auto":
        raise WordedError("--prob: --label-model already says where probabilities come from. Give one of them.")
    probability = number_from(options.label_model)
    if probability is None:
        if options.label_model not in PLAIN_MODELS:
            raise unknown_name("label_model", "label model", options.label_model, PLAIN_MODELS)
        return options.label_model
    if not 0 <= probability <= 1:
        raise WordedError(f"--label-model: {options.label_model}. A probability must lie in [0, 1].")
    return probability


def zero_division_of(options: ZeroDivisionOption) -> float | str:
    """What a 0/0 counts as, or a word about it."""
    number = number_from(options.zero_division)
    return options.zero_division if number is None else number


def words_above(result: dm.Evaluation, names: Mapping[str, str] | None = None) -> list[str]:
    """What stands above the table."""
    first, *words = result.words()
    # Of the assumption and what would narrow it, options are to be named as they are here.
    return [first, *(for_the_command_line(text, names) for text in words)]


def as_result(
    result: dm.Evaluation, targets: list[dict[str, object]], names: Mapping[str, str] | None = None
) -> Result:
    """An evaluation in the shapes that the formats want; targets have columns of their own."""
    document = result.to_dict()
    said = [one._replace(message=for_the_command_line(one.message, names)) for one in result.warnings]
    document["warnings"] = [one._asdict() for one in said]
    header, rows = result.table()
    if all(row[-1] == "0" for row in rows):  # no metric is ever 0/0
        header, rows = header[:-1], [row[:-1] for row in rows]
    records = result.records()
    if targets:
        document["targets"] = targets
        by_metric = {verdict["metric"]: verdict for verdict in targets}
        # Beside the interval, so that they are seen together also where a table is folded.
        header = [*header[:3], "target", "probability", *header[3:]]
        rows = [[*row[:3], *_target_cells(by_metric.get(row[0])), *row[3:]] for row in rows]
        wanted = ("target", "probability", "met")
        for record in records:
            verdict = by_metric.get(record["metric"], {})
            record.update({f"target_{key}" if key != "target" else key: verdict.get(key) for key in wanted})
    for record in records:
        record["warnings"] = " ".join(f"{one.category}: {one.message}" for one in said)
    return Result(
        document,
        records,
        [Table(header, rows)],
        above=words_above(result, names),
        below=result.notes(),
        warnings=[f"Warning: {one.message}" for one in said],
        checks=checks_of(targets),
        about=("metric", "scope"),
    )


def _target_cells(verdict: dict[str, object] | None) -> list[str]:
    if verdict is None:
        return ["", ""]
    chance = verdict["probability"]
    return [f"{verdict['side']} {verdict['target']:g}", "undefined" if chance is None else f"{chance:.4g}"]
