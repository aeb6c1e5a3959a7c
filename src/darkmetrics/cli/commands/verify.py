"""darkmetrics verify."""

from __future__ import annotations  # names of the library in annotations must not import it

import contextlib
from dataclasses import dataclass
from typing import Annotated, Any

import typer

import darkmetrics as dm
from darkmetrics.cli.evaluation import label_model_of, zero_division_of
from darkmetrics.cli.inputs import Rows, load, load_reference, paths_of
from darkmetrics.cli.messages import WordedError, for_the_command_line, worded
from darkmetrics.cli.options import (
    COLUMNS,
    CommonOptions,
    DataOptions,
    MetricOptions,
    ModelOptions,
    ReferenceOption,
    ZeroDivisionOption,
)
from darkmetrics.cli.output import (
    check_writable,
    in_words,
    progress,
    publish,
)
from darkmetrics.cli.rendering import Check, Result, Table

EXAMPLE = "Example: darkmetrics verify may.parquet since-may.csv --label fraud --score p --missingness by_score"


@dataclass(frozen=True)
class BeforeArgument:
    """The earlier rows."""

    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="Aggregated counts of the earlier rows, stored by EvaluationSet.to_parquet.",
            show_default=False,
        ),
    ]


@dataclass(frozen=True)
class ArrivalOptions:
    """When labels arrived."""

    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COL",
            help="When each label arrived: a date, or (delayed labels) time since BEFORE. [default: one batch]",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    age: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of the ages that rows had in BEFORE, if it has ages.", rich_help_panel=COLUMNS
        ),
    ] = None


@dataclass(frozen=True)
class VerifyOptions(
    ArrivalOptions, ZeroDivisionOption, ReferenceOption, ModelOptions, MetricOptions, DataOptions, BeforeArgument
):
    """The earlier counts, the labels that arrived since, and the assumptions of the earlier evaluation."""


def main(
    options: VerifyOptions,
    common: CommonOptions,
    alpha: Annotated[
        float,
        typer.Option(metavar="P", help="Largest probability of ever rejecting correct probabilities."),
    ] = 0.05,
    arrival: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Which labels arrive first: alike (independent of the label at a given score), late (as learned from "
            "ages) or any.",
        ),
    ] = None,
    elapsed: Annotated[
        float | None, typer.Option(metavar="T", help="For delayed labels without --time: time since BEFORE.")
    ] = None,
) -> int:
    """Test whether an earlier evaluation agrees with labels that arrived later.

    BEFORE contains the aggregated counts of the earlier rows, as EvaluationSet.to_parquet stores them; set the options
    of the earlier evaluation. FILE contains the rows whose labels have arrived since, or all rows again, or counts. The
    test is sequential; if it rejects the probabilities at level --alpha, the exit code is 1.
    """
    check_writable(common.output, options.before, *paths_of(options.file), options.reference)
    with progress("reading", "verification") as begin:
        begin()
        with worded():
            before = dm.EvaluationSet.from_parquet(options.before)
        after, rows = _after(options, before)
        names = {"label": "label", "score": "score"} if rows is None else rows.names
        begin()
        with in_words(names):
            found = dm.verify(
                before,
                after,
                elapsed=elapsed,
                arrival=arrival,
                alpha=alpha,
                metrics=options.metric or dm.metrics.DEFAULT_METRICS,
                label_model="auto" if options.prob is not None else label_model_of(options),
                missingness=options.missingness,
                reference=load_reference(options.reference, names, before.pos_label),
                method=options.method,
                zero_division=zero_division_of(options),
                confidence_level=options.confidence_level,
                rng=common.seed,
            )
    verdict = f"the probabilities are {'' if found.is_rejected else 'not '}rejected (--alpha {alpha:g})."
    result = Result(
        found.to_dict(),
        found.records(),
        [Table(*found.table())] if found.resolved_metrics else [],
        above=[for_the_command_line(line) for line in found.words()],
        below=[for_the_command_line(line) for line in found.notes()],
        checks=[
            Check("probabilities hold", not found.is_rejected, f"the probabilities are {verdict} (--alpha {alpha:g}).")
        ],
    )
    return publish(result, common.result_format, common.output)


def _after(options: VerifyOptions, before: dm.EvaluationSet) -> tuple[Any, Rows | None]:
    """The labels that came, as cells or as the rows of a file, by the time at which they came if that is a column."""
    if options.label is None and options.score is None and options.file.endswith(".parquet"):
        # A table of rows is no cells, and its columns are then guessed.
        with contextlib.suppress(dm.InputError):
            return dm.EvaluationSet.from_parquet(options.file), None
    kinds = {"prob": options.prob, "propensity": options.propensity, "strata": options.strata}
    rows = load(options, time=options.time, age=options.age, **kinds)
    if rows.frame is not None:
        raise WordedError(f"{options.file}: too large to be read as rows. Store its cells and name these.")
    data = rows.data(before.threshold) | {part: rows.columns[part] for part in ("age",) if part in rows.columns}
    if "prob" in rows.columns:
        data["probability"] = rows.columns["prob"]
    with in_words(rows.names):
        if options.time is None:
            return dm.EvaluationSet(**data), rows
        return _by_time(data, rows.columns["time"]), rows


def _by_time(data: dict[str, Any], time: Any) -> dict[Any, dm.EvaluationSet]:
    """The rows of each time; those without one had their label before."""
    from darkmetrics import frames

    values, missing = frames.value_column(time, "time")
    places: dict[Any, list[int]] = {}
    for at, (value, gap) in enumerate(zip(values.tolist(), missing.tolist(), strict=True)):
        if not gap:
            places.setdefault(value, []).append(at)
    columns = {name: column for name, column in data.items() if frames.is_container(type(column))}
    fixed = {name: value for name, value in data.items() if name not in columns}
    sets = {}
    for value, own in places.items():
        rows: dict[str, Any] = {name: [column[at] for at in own] for name, column in columns.items()}
        sets[value] = dm.EvaluationSet(**fixed, **rows)
    return sets
