"""darkmetrics metrics."""

import darkmetrics as dm
from darkmetrics.cli.options import CommonOptions
from darkmetrics.cli.output import check_writable, publish
from darkmetrics.cli.rendering import Result, Table

EXAMPLE = "Example: darkmetrics metrics --format json"


def main(common: CommonOptions) -> None:
    """List the metrics and their meaning."""
    check_writable(common.output)
    entries = []
    for name in dm.metrics.registered_names():
        record = dm.metrics.registered(name)
        metric = record.example if isinstance(record, dm.metrics.Family) else record
        entries.append({"metric": metric.name, "better": metric.better, "meaning": metric.meaning})
    table = Table(["metric", "better", "meaning"], [list(entry.values()) for entry in entries], words=3)
    document = {"schema": "darkmetrics.metrics/1", "metrics": entries}
    publish(Result(document, entries, [table]), common.result_format, common.output)
