"""darkmetrics evaluate."""

from darkmetrics.cli.evaluation import as_result, evaluate_file
from darkmetrics.cli.inputs import paths_of
from darkmetrics.cli.options import CheckedOptions, EvaluationOptions
from darkmetrics.cli.output import check_format, check_writable, progress, publish

EXAMPLE = "Example: darkmetrics evaluate june.parquet --label fraud --score p --missingness by_label"


def main(options: EvaluationOptions, common: CheckedOptions) -> int:
    """Estimate classifier metrics on a test set with missing labels.

    For each metric: estimate, interval, and worst and best case. The command may be left out: darkmetrics june.csv.
    """
    check_format(common.result_format, None, "a target to darkmetrics check")
    check_writable(common.output, *paths_of(options.file), options.reference)
    with progress("reading", "evaluating") as begin:
        rows, result = evaluate_file(options, {}, common.seed, begin)
    return publish(as_result(result, rows.names), common.result_format, common.output)
