"""darkmetrics diagnose."""

from __future__ import annotations  # names of the library in annotations must not import it

import darkmetrics as dm
from darkmetrics.cli.evaluation import times_of
from darkmetrics.cli.inputs import load, load_reference, paths_of
from darkmetrics.cli.messages import for_the_command_line
from darkmetrics.cli.options import (
    CommonOptions,
    DataOptions,
    DecisionOptions,
    LateOptions,
    MetricOptions,
    ReferenceOption,
)
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import Result, Table

EXAMPLE = "Example: darkmetrics diagnose june.parquet --label fraud --score p --reference test-set.parquet"


def main(
    data: DataOptions,
    asked: MetricOptions,
    decision: DecisionOptions,
    late: LateOptions,
    reference: ReferenceOption,
    common: CommonOptions,
) -> None:
    """What do the data say about why labels are missing, and does it matter for the metrics?"""
    check_writable(common.output, *paths_of(data.file), reference.reference)
    with progress("reading", "diagnosing") as begin:
        begin()
        rows = load(data, pred=decision.pred, **times_of(late))
        begin()
        with in_words(rows.names):
            given = rows.data(decision.threshold, late)
            given.pop("age", None)  # what the data show of other reasons than time
            found = dm.diagnose(
                **given,
                reference=load_reference(reference.reference, rows.names, rows.pos_label),
                metrics=asked.metric or dm.metrics.DEFAULT_METRICS,
            )
    publish(_as_result(found), common.result_format, common.output)


def _as_result(found: dm.Diagnosis) -> Result:
    document = found.to_dict()
    records = [
        {"missing": reason, "metric": name, **numbers}
        for reason, entry in document["reasons"].items()
        for name, numbers in {"positive": entry["prevalence"], **entry["metrics"]}.items()
    ]
    tables = [Table(header, rows, title) for title, header, rows in found.tables()]
    return Result(document, records, tables, above=[for_the_command_line(line) for line in found.sentences()])
