"""darkmetrics check."""

from dataclasses import dataclass
from typing import Annotated

from darkmetrics.cli.evaluation import as_result, evaluate_file, targets_from, verdicts_of
from darkmetrics.cli.inputs import paths_of
from darkmetrics.cli.options import TARGETS, CheckedOptions, ConfidenceOption, EvaluationOptions, option
from darkmetrics.cli.output import check_writable, progress, publish
from darkmetrics.exceptions import InputError

EXAMPLE = "Example: darkmetrics check june.parquet --label fraud --score p --fail-under recall=0.8"


@dataclass(frozen=True)
class LimitOptions(ConfidenceOption):
    """Limits of metrics."""

    fail_under: Annotated[
        list[str] | None, option(TARGETS, "METRIC=MIN", "Smallest value of a metric, higher is better. Repeatable.")
    ] = None
    fail_over: Annotated[
        list[str] | None, option(TARGETS, "METRIC=MAX", "Largest value of a metric, lower is better. Repeatable.")
    ] = None


def main(options: EvaluationOptions, limits: LimitOptions, common: CheckedOptions) -> int:
    """Evaluate, and exit with code 1 unless every target is met with probability --confidence.

    For pipelines: a target is --fail-under, or --fail-over for a metric that should be low, such as fpr.
    """
    targets = targets_from(limits.fail_under, "--fail-under", "higher")
    targets |= targets_from(limits.fail_over, "--fail-over", "lower")
    if not targets:
        raise InputError(
            "--fail-under",
            "no target",
            "",
            "Pass one, such as --fail-under recall=0.8 or --fail-over fpr=0.1.",
        )
    check_writable(common.output, *paths_of(options.file), options.reference)
    with progress("reading", "evaluating") as begin:
        rows, result = evaluate_file(options, targets, common.seed, begin)
    verdicts = verdicts_of(result, targets, limits.confidence)
    return publish(as_result(result, rows.names, verdicts), common.result_format, common.output)
