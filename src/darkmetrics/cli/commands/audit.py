"""darkmetrics audit."""

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

EXAMPLE = "Example: darkmetrics audit may.parquet since-may.csv --label fraud --score p --missingness by_score"


@dataclass(frozen=True)
class BeforeArgument:
    """The earlier rows."""

    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="Cells of the earlier rows, as EvaluationSet.to_parquet stores them.",
            show_default=False,
        ),
    ]


@dataclass(frozen=True)
class ArrivalOptions:
    """When labels came."""

    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COL",
            help="When each label came: a date, or (for late labels) time since BEFORE. Without it all are one batch.",
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
class AuditOptions(
    ArrivalOptions, ZeroDivisionOption, ReferenceOption, ModelOptions, MetricOptions, DataOptions, BeforeArgument
):
    """The earlier cells, the labels that came since, and what was assumed then."""


def main(
    options: AuditOptions,
    common: CommonOptions,
    alpha: Annotated[
        float,
        typer.Option(metavar="P", help="Largest chance of an alarm, ever, if the probabilities are right."),
    ] = 0.05,
    arrival: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Which labels come first: alike (at one score it is not the label that decides), late (as learnt from "
            "ages) or any.",
        ),
    ] = None,
    elapsed: Annotated[
        float | None, typer.Option(metavar="T", help="For late labels without --time: time since BEFORE.")
    ] = None,
) -> int:
    """Were the probabilities of an earlier evaluation right, by the labels that have come since?

    BEFORE holds its cells, as EvaluationSet.to_parquet stores them; options say what was assumed then. FILE has the
    rows whose labels have come since, or all of them again; or cells too. A stake of 1 is bet against the
    probabilities; when it becomes 1 / --alpha they are refuted, and the exit code is 1.
    """
    check_writable(common.output, options.before, *paths_of(options.file), options.reference)
    with progress("reading", "auditing") as begin:
        begin()
        with worded():
            before = dm.EvaluationSet.from_parquet(options.before)
        after, rows = _after(options, before)
        names = {"label": "label", "score": "score"} if rows is None else rows.names
        begin()
        with in_words(names):
            found = dm.audit(
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
    refuted = "are refuted" if found.refuted else "are not refuted"
    result = Result(
        found.to_dict(),
        found.records(),
        [Table(*found.table())] if found.known else [],
        above=[for_the_command_line(line) for line in found.words()],
        below=[for_the_command_line(line) for line in found.notes()],
        checks=[Check("probabilities hold", not found.refuted, f"the probabilities {refuted} (--alpha {alpha:g}).")],
    )
    return publish(result, common.result_format, common.output)


def _after(options: AuditOptions, before: dm.EvaluationSet) -> tuple[Any, Rows | None]:
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
