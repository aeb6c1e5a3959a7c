"""darkmetrics diagnose."""

from __future__ import annotations  # names of the library in annotations must not import it

from dataclasses import dataclass

import darkmetrics as dm
from darkmetrics.cli.inputs import load, paths_of, read_reference
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import (
    CommonOptions,
    DataOptions,
    DelayOptions,
    MetricOptions,
    PredictionOptions,
    ReferenceFile,
)
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import Result, Table

EXAMPLE = "Example: darkmetrics diagnose june.parquet --label fraud --score p --reference test-set.parquet"


@dataclass(frozen=True)
class DiagnosisOptions(DelayOptions, MetricOptions, PredictionOptions, DataOptions):
    """Rows, metrics, and reference rows or times of labels."""

    reference: ReferenceFile = None


def main(options: DiagnosisOptions, common: CommonOptions) -> None:
    """Show what the data tell about why labels are missing, and whether it matters for the metrics."""
    check_writable(common.output, *paths_of(options.file), options.reference)
    with progress("reading", "diagnosing") as begin:
        begin()
        rows = load(options)
        begin()
        with in_words(rows.names), rows.counting():
            diagnosis = dm.diagnose(
                **rows.arguments,
                threshold=options.threshold,
                missingness=mechanism_from(options, read_reference(options.reference, rows.names, rows.pos_label)),
                metrics=options.metric or dm.metrics.DEFAULT_METRICS,
            )
    publish(_as_result(diagnosis), common.result_format, common.output)


def _as_result(diagnosis: dm.diagnosis.Diagnosis) -> Result:
    document = diagnosis.to_dict()
    records = [
        {"missing": mechanism, "metric": name, **numbers}
        for mechanism, entry in document["mechanisms"].items()
        for name, numbers in {"positive": entry["prevalence"], **entry["metrics"]}.items()
    ]
    tables = [Table(header, rows, title) for title, header, rows in diagnosis.tables()]
    return Result(document, records, tables, above=[worded(line) for line in diagnosis.sentences()])
