"""darkmetrics bounds."""

from dataclasses import dataclass

import darkmetrics as dm
from darkmetrics.cli.inputs import load, paths_of
from darkmetrics.cli.options import CommonOptions, DataOptions, MetricOptions, PredictionOptions
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import Result, Table

EXAMPLE = "Example: darkmetrics bounds june.csv --label fraud --score p -m recall -m roc_auc"


@dataclass(frozen=True)
class BoundsOptions(MetricOptions, PredictionOptions, DataOptions):
    """Rows and metrics."""


def main(options: BoundsOptions, common: CommonOptions) -> None:
    """Compute the smallest and largest value of each metric over all possible missing labels. Nothing is assumed.

    The oracle's values are the metric if every missing row is predicted wrongly, and if every one is predicted rightly.
    """
    check_writable(common.output, *paths_of(options.file))
    with progress("reading", "bounding") as begin:
        begin()
        rows = load(options)
        begin()
        with in_words(rows.names), rows.counting():
            metrics = options.metric or dm.metrics.DEFAULT_METRICS
            bounds = dm.bounds(**rows.arguments, threshold=options.threshold, metrics=metrics)
    document = bounds.to_dict()
    records = [{"metric": name, **entry} for name, entry in document["metrics"].items()]
    lines = str(bounds.data).splitlines()
    result = Result(document, records, [Table(*bounds._table())], above=lines, below=bounds._notes())
    publish(result, common.result_format, common.output)
