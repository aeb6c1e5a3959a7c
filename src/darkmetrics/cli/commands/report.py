"""darkmetrics report."""

from pathlib import Path
from typing import Annotated

import typer

import darkmetrics as dm
from darkmetrics.cli.evaluation import as_result, evaluated, load_rows, say_words
from darkmetrics.cli.options import (
    CommonOptions,
    DataOptions,
    DecisionOptions,
    MetricOptions,
    ModelOptions,
    ReferenceOption,
    TargetOptions,
    ZeroDivisionOption,
)
from darkmetrics.cli.output import check_writable, emit, in_words, progress, rendered, say, write_atomically
from darkmetrics.cli.targets import metrics_wanted, targets_from, tell, verdicts
from darkmetrics.exceptions import InputError

EXAMPLE = "Example: darkmetrics report june.parquet --label fraud --score p --target recall=0.8 -o june.html"

_VIEWS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


def main(
    data: DataOptions,
    asked: MetricOptions,
    goals: TargetOptions,
    decision: DecisionOptions,
    model: ModelOptions,
    reference: ReferenceOption,
    zero_division: ZeroDivisionOption,
    common: CommonOptions,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the report.")] = None,
) -> int:
    """One page that can be mailed: metrics, curves, what if, diagnosis and assumptions, in one HTML file.

    --output names the page, and must be given; its suffix, .html, .md or .json, says what it is. Standard output gets
    what the evaluate command prints.
    """
    view = page_view(common.output)
    check_writable(common.output)
    targets = targets_from(goals.target)
    with progress("reading", "evaluating", "drawing the report") as begin:
        begin()
        rows = load_rows(data, decision, model)
        begin()
        with in_words(rows.names):
            metrics = metrics_wanted(asked.metric, targets)
            result = evaluated(rows, metrics, decision, model, reference, zero_division, common.seed)
            begin()
            source = {"file": rows.source, **{f"{role} column": name for role, name in rows.names.items()}}
            summary = dm.report.summarize(result, targets=targets, title=title, source=source)
            page = dm.report.render(summary, view)
    write_atomically(Path(common.output or ""), page)
    found = verdicts(result, targets, goals.confidence)
    say_words(result)
    emit(rendered(as_result(result, found), common.format), None)
    say(f"\nReport: {Path(common.output or '').resolve()}")
    return tell(found)


def page_view(output: str | None) -> str:
    """Which view of the report the name of the file asks for."""
    if output is None:
        raise InputError("--output: say where the report goes, such as -o report.html.")
    view = _VIEWS.get(Path(output).suffix.lower())
    if view is None:
        raise InputError(f"--output: {output} must end in {', '.join(_VIEWS)}, which says what to write.")
    return view
