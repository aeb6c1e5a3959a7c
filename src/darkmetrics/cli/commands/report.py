"""darkmetrics report."""

from pathlib import Path
from typing import Annotated

import typer

import darkmetrics as dm
from darkmetrics.cli.evaluation import as_result, evaluated_file, verdicts
from darkmetrics.cli.inputs import paths_of
from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.options import EvaluationOptions, PageOptions
from darkmetrics.cli.output import (
    check_writable,
    in_words,
    progress,
    publish,
    say,
    seen_by_a_person,
    write_output,
)
from darkmetrics.cli.settings import command_line

EXAMPLE = "Example: darkmetrics report june.parquet --label fraud --score p --target recall=0.8 -o june.html"


def main(
    options: EvaluationOptions,
    common: PageOptions,
    context: typer.Context,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the report.")] = None,
) -> int:
    """One page that can be mailed: metrics, curves, what if, diagnosis and assumptions, in one HTML file.

    --output names the page, and must be given; its suffix, .html, .md or .json, says what it is. Standard output gets
    what the evaluate command prints.
    """
    output, view = page_output(common.output, *paths_of(options.file), options.reference)
    with progress("reading", "evaluating", "drawing the report") as begin:
        said = not seen_by_a_person(common.result_format)
        rows, result, targets = evaluated_file(options, common.seed, begin, said=said)
        begin()
        with in_words(rows.names):
            source = {"file": rows.source, **{f"{role} column": name for role, name in rows.names.items()}}
            source["command"] = command_line(context)
            summary = dm.report.summarize(
                result, targets=targets, title=title, source=source, confidence=options.confidence
            )
            page = dm.report.render(summary, view)
    write_output(output, page)
    found = verdicts(result, targets, options.confidence)
    code = publish(as_result(result, found, rows.names), common.result_format, None)
    say(f"\nReport: {Path(output).resolve()}")
    return code


def page_output(output: str | None, *inputs: str | None) -> tuple[str, str]:
    """Where the report goes, checked, and which view of it the name of the file asks for."""
    from darkmetrics.report.render import SUFFIXES, no_such_suffix

    if output is None:
        raise WordedError("--output: say where the report goes, such as -o report.html.")
    check_writable(output, *inputs)
    view = SUFFIXES.get(Path(output).suffix.lower())
    if view is None:
        raise WordedError(f"--output: {output} {no_such_suffix(Path(output).suffix.lower())}.")
    return output, view
