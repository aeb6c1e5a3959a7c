"""What the commands that evaluate have in common."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Callable, Mapping, Sequence
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
from darkmetrics.cli.rendering import Result, Table
from darkmetrics.cli.targets import checks_of, metrics_wanted, targets_from
from darkmetrics.exceptions import unknown_name


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
    found = dm.evaluate(
        **rows.data(options.threshold, options),
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
    if found.arrival is None or options.as_of is None:
        return found
    from darkmetrics import frames

    at = found.arrival.at(frames.AsOf.of(options.as_of).date)
    told = replace(found.rows, arrival=at)
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
