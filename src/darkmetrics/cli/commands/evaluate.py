"""darkmetrics evaluate."""

from darkmetrics.cli.evaluation import as_result, evaluated_file, verdicts
from darkmetrics.cli.inputs import paths_of
from darkmetrics.cli.options import CheckedOptions, EvaluationOptions
from darkmetrics.cli.output import check_format, check_writable, progress, publish, seen_by_a_person

EXAMPLE = "Example: darkmetrics evaluate june.parquet --label fraud --score p --missingness by_label"


def main(options: EvaluationOptions, common: CheckedOptions) -> int:
    """How good is the classifier on the rows of FILE? Estimate, interval, and worst and best case of each metric."""
    check_format(common.result_format, options.target, "--target")
    check_writable(common.output, *paths_of(options.file), options.reference)
    with progress("reading", "evaluating") as begin:
        said = not seen_by_a_person(common.result_format, common.output)
        rows, result, targets = evaluated_file(options, common.seed, begin, said=said)
    found = verdicts(result, targets, options.confidence)
    return publish(as_result(result, found, rows.names), common.result_format, common.output)
