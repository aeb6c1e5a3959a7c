"""darkmetrics report."""

from dataclasses import dataclass
from pathlib import Path

from darkmetrics.cli.evaluation import as_result, evaluate_file, targets_from, verdicts_of
from darkmetrics.cli.inputs import paths_of
from darkmetrics.cli.options import ConfidenceOption, EvaluationOptions, PageOptions, TargetOption, Title
from darkmetrics.cli.output import check_writable, in_words, progress, publish, say
from darkmetrics.cli.settings import command_line
from darkmetrics.exceptions import InputError

EXAMPLE = "Example: darkmetrics report june.parquet --label fraud --score p --target recall=0.8 -o june.html"


@dataclass(frozen=True)
class ReportedOptions(ConfidenceOption, TargetOption, EvaluationOptions):
    """Options of an evaluation with targets."""


def main(options: ReportedOptions, common: PageOptions, title: Title = None) -> int:
    """Write metrics, curves, sensitivity, diagnosis and assumptions to one HTML file that can be mailed.

    --output is required; its suffix (.html, .md, .json or .pdf) sets the format. Standard output gets the table of
    evaluate.
    """
    output = page_output(common.output, *paths_of(options.file), options.reference)
    targets = targets_from(options.target)
    with progress("reading", "evaluating", "drawing the report") as begin:
        rows, result = evaluate_file(options, targets, common.seed, begin)
        begin()
        with in_words(rows.names):
            source = rows.described | {"command": command_line()}
            result.report(output, targets=targets, title=title, source=source, confidence=options.confidence)
    verdicts = verdicts_of(result, targets, options.confidence)
    code = publish(as_result(result, rows.names, verdicts), common.result_format, None)
    say(f"\nReport: {Path(output).resolve()}")
    return code


def page_output(output: str | None, *inputs: str | None) -> str:
    """Return where the report goes, after validation."""
    from darkmetrics.report.render import SUFFIXES, describe_suffixes

    if output is None:
        raise InputError("--output", "missing", "", "Pass where the report goes, such as -o report.html.")
    check_writable(output, *inputs)
    if Path(output).suffix.lower() not in SUFFIXES:
        raise InputError("--output", f"{output} {describe_suffixes()}")
    return output
