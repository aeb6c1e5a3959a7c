"""darkmetrics change."""

from __future__ import annotations  # names of the library in annotations must not import it

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.evaluation import columns_assumed, evaluated, label_model_of, metrics_wanted, zero_division_of
from darkmetrics.cli.inputs import load, load_reference, paths_of
from darkmetrics.cli.messages import WordedError, for_the_command_line
from darkmetrics.cli.options import (
    CheckedOptions,
    ClustersOption,
    DecisionOptions,
    EstimateOptions,
    ReportOptions,
    ScopeOption,
)
from darkmetrics.cli.output import (
    check_format,
    check_report,
    check_writable,
    in_words,
    progress,
    publish,
    seen_by_a_person,
    write_output,
)
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.cli.settings import command_line

EXAMPLE = "Example: darkmetrics change june.csv may.csv --label y --score p --missingness random --worse recall=0.02"
# Columns by role where there are none: cells have no names for them.
_OF_CELLS = {"label": "label", "score": "score"}
# Numbers of the change, which on a dashboard must not pass for those of the metric.
_GAUGES = {
    name: f"change_{name}" for name in ("mean", "low", "high", "lowest_possible", "highest_possible", "undefined")
}


@dataclass(frozen=True)
class ChangeOptions(ClustersOption, ScopeOption, DecisionOptions, EstimateOptions):
    """What both evaluations take."""


def main(
    options: ChangeOptions,
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="The earlier rows, in the same columns; or cells, as EvaluationSet.to_parquet stores them.",
            show_default=False,
        ),
    ],
    common: CheckedOptions,
    page: ReportOptions,
    context: typer.Context,
    worse: Annotated[
        list[str] | None,
        typer.Option(
            "--worse",
            metavar="METRIC=BY",
            help="Exit with 1 when this metric got worse by more than BY with probability --confidence; again for "
            "more. Alone, as recall, any worsening counts.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="P", min=0.0, max=1.0, help="How sure --worse has to be."),
    ] = 0.95,
) -> int:
    """Did it get worse from BEFORE to FILE? The law of each metric's difference, and the probability that it fell.

    Both are files of rows in the same columns, or stored cells (Parquet, without --label and --score). They must have
    no row in common. What is assumed about missing labels holds for both.
    """
    check_format(common.result_format, worse, "--worse")
    limits = _limits(worse)
    own, earlier_ones = paths_of(options.file), paths_of(before)
    _check_different(own, earlier_ones)
    inputs = [*own, *earlier_ones, options.reference]
    check_writable(common.output, *inputs)
    check_report(page.report, [common.output], inputs)
    said = not seen_by_a_person(common.result_format, common.output)
    with progress("reading", "evaluating", "comparing") as begin:
        begin()
        names, (after, earlier) = _OF_CELLS, (_cells(options, path) for path in (options.file, before))
        begin()
        found = []
        for path, cells in ((options.file, after), (before, earlier)):
            one, called = _evaluated(replace(options, file=path), cells, list(limits), common.seed, said=said)
            found.append(one)
            names = called or names
        begin()
        with in_words(names):
            change = dm.change(*found, names=_names(options.file, before))
            if page.report is not None:
                from darkmetrics.report.changed import change_page

                files = dict(zip(("file", "before"), change.names, strict=True))
                source = files | {f"{role} column": name for role, name in names.items() if names is not _OF_CELLS}
                text = change_page(change, title=page.title, source=source | {"command": command_line(context)})
                write_output(page.report, text, "--report")
    verdicts = [_verdict(change, name, by, confidence) for name, by in limits.items()]
    return publish(_as_result(change, verdicts, names), common.result_format, common.output)


def _as_result(change: dm.Change, verdicts: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Result:
    """A change in the shapes that the formats want."""
    from darkmetrics.changes.assumed import told_apart  # with numpy, which --help does without

    said = {
        side: [one._replace(message=for_the_command_line(one.message, names)) for one in found.warnings]
        for side, found in (("after", change.after), ("before", change.before))
    }
    document = change.to_dict() | ({"worse": verdicts} if verdicts else {})
    document["warnings"] = {side: [one._asdict() for one in found] for side, found in said.items()}
    of_kinds = told_apart(
        change.names, [[f"{one.category}: {one.message}" for one in found] for found in said.values()]
    )
    shortened = change.warned()  # they stand above in full
    return Result(
        document,
        [record | {"warnings": " ".join(of_kinds)} for record in change.records()],
        [Table(*change.table())],
        above=[for_the_command_line(text, names) for text in change.words()],
        below=[for_the_command_line(note, names) for note in change.notes() if note not in shortened],
        warnings=[f"Warning: {text}" for text in told_apart(change.names, [[*map(str, one)] for one in said.values()])],
        checks=[_check(verdict) for verdict in verdicts],
        about=("metric", "scope"),
        gauges=_GAUGES,
    )


def _check_different(files: Sequence[str], before: Sequence[str]) -> None:
    """That no file is on both sides: its rows would be."""
    known = {os.path.realpath(path) for path in files}
    same = next((path for path in before if os.path.realpath(path) in known), None)
    if same is not None:
        raise WordedError(f"BEFORE: {same} is also FILE. A change is one between different rows; name other files.")


def _limits(given: Sequence[str] | None) -> dict[str, float]:
    """How far each metric may get worse."""
    from darkmetrics.metrics.targets import check_amount_of

    limits: dict[str, float] = {}
    for text in given or ():
        name, _, value = text.partition("=") if "=" in text else (text, "", "0")
        by = number_from(value)
        if not name.strip() or by is None or not math.isfinite(by) or by < 0.0:
            raise WordedError(f"--worse: cannot read {text!r}. Write it like recall=0.02.")
        with in_words({}, metrics="--worse"):
            metric = dm.metrics.metrics_from(name.strip())[0]
            check_amount_of(metric, by, f"--worse: {by:g} for {metric.name!r}")
        if metric.better == "neither":
            raise WordedError(f"--worse: neither more nor less of {metric.name} is better.")
        if metric.name in limits:
            raise WordedError(f"--worse: {metric.name!r} is named twice. Name it once.")
        limits[metric.name] = by
    return limits


def _cells(options: ChangeOptions, path: str) -> dm.EvaluationSet | None:
    """Cells that a file holds; None where it holds rows."""
    if options.label is None and options.score is None and path.endswith(".parquet"):
        # A table of rows is no cells, and its columns are then guessed.
        with contextlib.suppress(dm.InputError):
            return dm.EvaluationSet.from_parquet(path)
    return None


def _evaluated(
    options: ChangeOptions, cells: dm.EvaluationSet | None, wanted: Sequence[str], seed: int | None, *, said: bool
) -> tuple[dm.Evaluation, Any]:
    """The evaluation of a file, and its columns by role; None for cells, which have no columns.

    `said`: whether warnings are said on standard error, because no result that a person sees has them.
    """
    metrics = metrics_wanted(options.metric, wanted)
    if cells is None:
        rows = load(options, pred=options.pred, **columns_assumed(options))
        with in_words(rows.names, said=said):
            return evaluated(rows, metrics, options, seed), rows.names
    if options.groups is not None:
        raise WordedError(f"--groups: {options.file} has cells, which do not say whose rows they are. Give the rows.")
    if options.threshold is not None and options.threshold != cells.threshold:
        raise WordedError(f"--threshold: cells of {options.file} are already decided. Leave it out.")
    scope: Any = options.scope
    with in_words(_OF_CELLS, said=said):
        found = dm.evaluate(
            cells,
            None,
            metrics=metrics,
            label_model=label_model_of(options),
            missingness=options.missingness,
            reference=load_reference(options.reference, _OF_CELLS, cells.pos_label),
            method=options.method,
            zero_division=zero_division_of(options),
            rng=seed,
            confidence_level=options.confidence_level,
            scope=scope,
        )
    return found, None


def _names(after: str, before: str) -> tuple[str, str]:
    """What the two files are called in print: by their names, or with their folders where these are the same."""
    names = _name(after), _name(before)
    return names if names[0] != names[1] else (after, before)


def _name(path: str) -> str:
    return "standard input" if path == "-" else Path(path).name or path


def _check(verdict: Mapping[str, Any]) -> Check:
    by = f" by more than {verdict['by']:g}" if verdict["by"] else ""
    sure, asked = f"probability {verdict['probability']:.4g}", f"the {verdict['confidence']:g} asked for"
    if verdict["worse"]:
        words = f"{verdict['metric']} got worse{by} with {sure}, at least {asked}."
    else:
        words = f"that {verdict['metric']} got worse{by} has {sure}, less than {asked}."
    return Check(f"{verdict['metric']} not worse{by}", not verdict["worse"], words)


def _verdict(change: dm.Change, metric: str, by: float, confidence: float) -> dict[str, Any]:
    chance = change.worse(metric, by)
    return {"metric": metric, "by": by, "probability": chance, "confidence": confidence, "worse": chance >= confidence}
