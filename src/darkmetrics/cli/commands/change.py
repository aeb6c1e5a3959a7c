"""darkmetrics change."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.evaluation import add_metrics, evaluate_rows, settings_of
from darkmetrics.cli.inputs import load, paths_of, read_reference, stored_counts
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import TARGETS, CheckedOptions, EvaluationOptions, ReportOptions, argument, number, option
from darkmetrics.cli.output import (
    check_format,
    check_report,
    check_writable,
    in_words,
    progress,
    publish,
)
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.cli.settings import command_line
from darkmetrics.exceptions import InputError

EXAMPLE = (
    "Example: darkmetrics change june.csv may.csv --label y --score p --missingness random --max-decline recall=0.02"
)
# Columns of stored counts.
_OF_COUNTS = {"label": "label", "score": "score"}
# Numbers of the change, which on a dashboard must not pass for those of the metric.
_GAUGES = {
    name: f"change_{name}" for name in ("mean", "low", "high", "lowest_possible", "highest_possible", "undefined")
}


def main(
    options: EvaluationOptions,
    before: Annotated[str, argument("BEFORE", "Earlier rows, in the same columns; or stored counts (.parquet).")],
    common: CheckedOptions,
    page: ReportOptions,
    max_decline: Annotated[
        list[str] | None,
        option(TARGETS, "METRIC=BY", "Fail if a metric got worse by more than BY; without =BY, at all. Repeatable."),
    ] = None,
    confidence: Annotated[
        float, number(TARGETS, "P", "Fail if the probability of that is at least P.", low=0.0, high=1.0)
    ] = 0.95,
) -> int:
    """Compare metrics on different rows: the distribution of the change from BEFORE to FILE.

    Both are files of rows in the same columns, or counts as EvaluationSet.to_parquet stores them (without --label and
    --score), with no row in common. The missingness options hold for both.
    """
    check_format(common.result_format, max_decline, "--max-decline")
    limits = _limits(max_decline)
    files, files_before = paths_of(options.file), paths_of(before)
    _check_different(files, files_before)
    inputs = [*files, *files_before, options.reference]
    check_writable(common.output, *inputs)
    check_report(page.report, [common.output], inputs)
    with progress("reading", "evaluating", "comparing") as begin:
        begin()
        counts = [stored_counts(options, paths) for paths in (options.file, [before])]
        begin()
        after, columns = _evaluate(options, counts[0], list(limits), common.seed)
        options_before = replace(options, file=[before])
        if columns is not None:  # also where they were guessed
            options_before = replace(options_before, label=columns["label"], score=[columns["score"]])
        earlier, columns_before = _evaluate(options_before, counts[1], list(limits), common.seed)
        names = columns or columns_before or _OF_COUNTS
        begin()
        with in_words(names):
            change = dm.compare_evaluations(after, earlier, names=_names(options.file, before))
            if page.report is not None:
                called = dict(zip(("file", "before"), change.names, strict=True))
                source = called | {
                    f"{name} column": column for name, column in names.items() if names is not _OF_COUNTS
                }
                change.report(page.report, title=page.title, source=source | {"command": command_line()})
    verdicts = [_verdict(change, name, by, confidence) for name, by in limits.items()]
    return publish(_as_result(change, verdicts, names), common.result_format, common.output)


def _as_result(change: dm.EvaluationChange, verdicts: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Result:
    """Return a change as a result."""
    from darkmetrics.changes.wording import name_differences  # with numpy, which --help does without

    warned = {
        side: [one._replace(message=worded(one.message, names)) for one in evaluation.warnings]
        for side, evaluation in (("after", change.after), ("before", change.before))
    }
    document = change.to_dict() | ({"max_decline": verdicts} if verdicts else {})
    document["warnings"] = {side: [one._asdict() for one in found] for side, found in warned.items()}
    of_kinds = name_differences(
        change.names, [[f"{one.category}: {one.message}" for one in found] for found in warned.values()]
    )
    shortened = change.warned()  # they stand above in full
    return Result(
        document,
        [record | {"warnings": " ".join(of_kinds)} for record in change.to_records()],
        [Table(*change._table())],
        above=[worded(text, names) for text in change._words()],
        below=[worded(note, names) for note in change._notes() if note not in shortened],
        warnings=[
            f"Warning: {text}" for text in name_differences(change.names, [[*map(str, one)] for one in warned.values()])
        ],
        checks=[_check(verdict) for verdict in verdicts],
        about=("metric", "scope"),
        gauges=_GAUGES,
    )


def _check_different(files: Sequence[str], before: Sequence[str]) -> None:
    """Refuse files that are on both sides, because their rows would be."""
    known = {os.path.realpath(path) for path in files}
    same = next((path for path in before if os.path.realpath(path) in known), None)
    if same is not None:
        raise InputError(
            "BEFORE",
            f"{same} is also FILE",
            "A change is between different rows.",
            "Pass other files.",
        )


def _limits(passed: Sequence[str] | None) -> dict[str, float]:
    """Return by how much each metric may get worse."""
    from darkmetrics.metrics.targets import check_amount_of

    limits: dict[str, float] = {}
    for text in passed or ():
        name, _, value = text.partition("=") if "=" in text else (text, "", "0")
        by = number_from(value)
        if not name.strip() or by is None or not math.isfinite(by) or by < 0.0:
            raise InputError("--max-decline", f"cannot read {text!r}", "", "Write it like recall=0.02.")
        with in_words({}, metrics="--max-decline"):
            metric = dm.metrics.metrics_from(name.strip())[0]
            check_amount_of(metric, by, "--max-decline", f"{by:g} for {metric.name!r}")
        if metric.better == "neither":
            raise InputError("--max-decline", f"neither more nor less of {metric.name} is better")
        if metric.name in limits:
            raise InputError("--max-decline", f"{metric.name!r} is passed twice", "", "Pass it once.")
        limits[metric.name] = by
    return limits


def _evaluate(
    options: EvaluationOptions, counts: dm.EvaluationSet | None, limited: Sequence[str], seed: int | None
) -> tuple[dm.Evaluation, Mapping[str, str] | None]:
    """Return the evaluation of a file, and its columns by option; stored counts have none."""
    metrics = add_metrics(options.metric, limited)
    if counts is None:
        rows = load(options)
        with in_words(rows.names, quiet=True):
            return evaluate_rows(rows, metrics, options, seed), rows.names
    if options.clusters is not None:
        raise InputError(
            "--clusters",
            f"{options.file[0]} contains aggregated counts, which do not store cluster IDs",
            "",
            "Pass row-level data.",
        )
    if options.threshold is not None and options.threshold != counts.threshold:
        raise InputError(
            "--threshold",
            f"the counts of {options.file[0]} are of another threshold",
            "",
            "Leave it out.",
        )
    with in_words(_OF_COUNTS, quiet=True):
        reference = read_reference(options.reference, _OF_COUNTS, counts.pos_label)
        evaluation = dm.evaluate(
            counts,
            metrics=metrics,
            missingness=mechanism_from(options, reference),
            rng=seed,
            **settings_of(options),
        )
    return evaluation, None


def _names(after: Sequence[str], before: str) -> tuple[str, str]:
    """Return what to call the files in print: their names, or their paths if the names are the same."""
    names = " ".join(map(_name, after)), _name(before)
    return names if names[0] != names[1] else (" ".join(after), before)


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


def _verdict(change: dm.EvaluationChange, metric: str, by: float, confidence: float) -> dict[str, Any]:
    probability = change.probability_worse(metric, by)
    return {
        "metric": metric,
        "by": by,
        "probability": probability,
        "confidence": confidence,
        "worse": probability >= confidence,
    }
