"""darkmetrics bounds."""

import darkmetrics as dm
from darkmetrics.cli.inputs import load, paths_of
from darkmetrics.cli.options import CommonOptions, DataOptions, DecisionOptions, MetricOptions
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import Result, Table

EXAMPLE = "Example: darkmetrics bounds june.csv --label fraud --score p -m recall -m roc_auc"


def main(data: DataOptions, asked: MetricOptions, decision: DecisionOptions, common: CommonOptions) -> None:
    """Between which values must each metric lie, whatever the missing labels are? Nothing is assumed.

    The oracle's values are the metric with every missing row decided wrongly, and with every one decided rightly.
    """
    check_writable(common.output, *paths_of(data.file))
    with progress("reading", "bounding") as begin:
        begin()
        rows = load(data, pred=decision.pred)
        begin()
        with in_words(rows.names):
            metrics = asked.metric or dm.metrics.DEFAULT_METRICS
            found = dm.bounds(**rows.data(decision.threshold), metrics=metrics)
    document = found.to_dict()
    records = [{"metric": name, **entry} for name, entry in document["metrics"].items()]
    words = str(found.data).splitlines()
    result = Result(document, records, [Table(*found.table())], above=words, below=found.notes())
    publish(result, common.result_format, common.output)
