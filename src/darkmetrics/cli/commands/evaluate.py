"""darkmetrics evaluate."""

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
from darkmetrics.cli.output import check_writable, emit, in_words, progress, rendered, say
from darkmetrics.cli.targets import metrics_wanted, targets_from, tell, verdicts

EXAMPLE = "Example: darkmetrics evaluate june.parquet --label fraud --score p --missingness by_label"


def main(
    data: DataOptions,
    asked: MetricOptions,
    goals: TargetOptions,
    decision: DecisionOptions,
    model: ModelOptions,
    reference: ReferenceOption,
    zero_division: ZeroDivisionOption,
    common: CommonOptions,
) -> int:
    """How good is the classifier on the rows of FILE? Estimate, interval, and worst and best case of each metric."""
    check_writable(common.output)
    targets = targets_from(goals.target)
    with progress("reading", "evaluating") as begin:
        begin()
        rows = load_rows(data, decision, model)
        begin()
        with in_words(rows.names):
            metrics = metrics_wanted(asked.metric, targets)
            result = evaluated(rows, metrics, decision, model, reference, zero_division, common.seed)
    found = verdicts(result, targets, goals.confidence)
    say_words(result)
    emit(rendered(as_result(result, found), common.format), common.output)
    say("\n".join(["", *result.notes()]))
    return tell(found)
