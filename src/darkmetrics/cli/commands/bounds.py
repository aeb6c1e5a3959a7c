"""darkmetrics bounds."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
from typing import Any

import darkmetrics as dm
from darkmetrics.cli.inputs import load, paths_of
from darkmetrics.cli.options import CommonOptions, DataOptions, DecisionOptions, MetricOptions
from darkmetrics.cli.output import Result, Table, check_writable, emit, in_words, progress, rendered, say

EXAMPLE = "Example: darkmetrics bounds june.csv --label fraud --score p -m recall -m roc_auc"

_COLUMNS = {
    "lowest_possible": "lowest possible",
    "highest_possible": "highest possible",
    "oracle_pessimistic": "oracle pessimistic",
    "oracle_optimistic": "oracle optimistic",
    "labelled_only": "labelled only",
}


def main(data: DataOptions, asked: MetricOptions, decision: DecisionOptions, common: CommonOptions) -> None:
    """Between which values must each metric lie, whatever the missing labels are? Nothing is assumed.

    The oracle's values are the metric with every missing row decided wrongly, and with every one decided rightly.
    """
    from darkmetrics.data.evaluation_set import evaluation_set_from

    check_writable(common.output, *paths_of(data.file))
    with progress("reading", "bounding") as begin:
        begin()
        rows = load(data, pred=decision.pred)
        begin()
        with in_words(rows.names):
            test_set = evaluation_set_from(**rows.data(decision.threshold))
            metrics = dm.metrics.metrics_from(asked.metric or dm.metrics.DEFAULT_METRICS)
            entries = {metric.name: _entry(metric, test_set) for metric in metrics}
    say(f"{test_set}\n")
    emit(rendered(_as_result(test_set, entries), common.result_format), common.output)
    if not all(entry["bounds_sharp"] for entry in entries.values()):
        say("\nBounds in brackets hold, but perhaps no labeling attains them.")


def _entry(metric: dm.Metric, test_set: dm.EvaluationSet) -> dict[str, Any]:
    from darkmetrics.evaluation import oracle_bounds

    extremes = metric.bind(test_set, metric.undefined_as).extremes
    pessimistic, optimistic = oracle_bounds(metric, test_set, metric.undefined_as)
    numbers = {
        "lowest_possible": extremes.low,
        "highest_possible": extremes.high,
        "oracle_pessimistic": pessimistic,
        "oracle_optimistic": optimistic,
        "labelled_only": metric.value(test_set, metric.undefined_as),
    }
    return {
        "better": metric.better,
        **{key: float(value) if math.isfinite(value) else None for key, value in numbers.items()},
        "bounds_sharp": extremes.sharp,
    }


def _as_result(test_set: dm.EvaluationSet, entries: dict[str, dict[str, Any]]) -> Result:
    document = {
        "schema": "darkmetrics.bounds/1",
        "census": test_set.census(),
        "threshold": test_set.threshold,
        "metrics": entries,
    }
    rows = [[name, *(_cell(entry, key) for key in _COLUMNS)] for name, entry in entries.items()]
    records = [{"metric": name, **entry} for name, entry in entries.items()]
    return Result(document, records, [Table(["", *_COLUMNS.values()], rows)])


def _cell(entry: dict[str, Any], key: str) -> str:
    from darkmetrics.tables import number_text

    text = "undefined" if entry[key] is None else number_text(entry[key], 3)
    return text if entry["bounds_sharp"] or not key.endswith("possible") else f"({text})"
