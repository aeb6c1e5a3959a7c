"""darkmetrics curves."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import darkmetrics as dm
from darkmetrics._text import number_from, whole_number_from
from darkmetrics.cli.evaluation import add_metrics, evaluate_rows, words_above
from darkmetrics.cli.inputs import load, paths_of
from darkmetrics.cli.options import THRESHOLDS, CommonOptions, EstimateOptions, option
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import FOR_PEOPLE, Result, Table
from darkmetrics.exceptions import InputError

if TYPE_CHECKING:
    from darkmetrics.curves import BestThreshold

EXAMPLE = "Example: darkmetrics curves june.parquet --label fraud --score p --best f1 --risk 0.1"

_METRICS = ["precision", "recall", "f1", "accuracy"]
# In a table for people; programs get the library's default.
_FEW = 10


def main(
    options: EstimateOptions,
    common: CommonOptions,
    thresholds: Annotated[
        str | None,
        option(
            THRESHOLDS,
            "N|all|LIST",
            "Number of thresholds, all, or a list: 0.1,0.2. [default: 10 in a table, else 200]",
        ),
    ] = None,
    best: Annotated[str | None, option(THRESHOLDS, "METRIC", "Print only the best threshold for a metric.")] = None,
    risk: Annotated[
        str | None, option(THRESHOLDS, "mean|Q", "With --best: maximize the mean, or a quantile such as 0.1.")
    ] = None,
) -> None:
    """Show how metrics change with the threshold, and which threshold is best."""
    check_writable(common.output, *paths_of(options.file), options.reference)
    if risk is not None and best is None:
        raise InputError("--risk", "passed without --best", "", "Pass both, or neither.")
    grid = (
        _FEW if thresholds is None and common.result_format in FOR_PEOPLE and best is None else _thresholds(thresholds)
    )
    metrics: Sequence[str] = options.metric or _METRICS
    if best is not None:
        with in_words({}, metrics="--best"):
            best = dm.metrics.metrics_from(best)[0].name
        with in_words({}):
            metrics = add_metrics(options.metric or [best], [best])
    named_by = "--metric" if best is None or options.metric else "--best"
    with progress("reading", "evaluating", "moving the threshold") as begin:
        begin()
        rows = load(options)
        begin()
        with in_words(rows.names, metrics=named_by):
            result = evaluate_rows(rows, metrics, options, common.seed)
            begin()
            level = (options.confidence_level,)
            curves = dm.threshold_curves(
                result, metrics=metrics, thresholds=grid, method=options.method, confidence_levels=level
            )
            best_threshold = None
            if best is not None:
                best_threshold = curves.best_threshold(best, risk=_risk(risk or "mean"), rng=common.seed)
    shown = _as_result(curves) if best_threshold is None else _best_as_result(best_threshold)
    below = [_note(curves) if best_threshold is None else str(best_threshold)]
    publish(replace(shown, above=words_above(result, rows.names), below=below), common.result_format, common.output)


def _thresholds(text: str | None) -> Any:
    """Return the thresholds as the library reads them."""
    if text is None or text.strip() == "all":
        return text and "all"
    count = whole_number_from(text)
    if count is not None:
        return count
    listed = [number_from(part) for part in text.split(",")]
    if None in listed:
        raise InputError("--thresholds", f"cannot read {text!r}", "", "Write a number, all, or a list like 0.1,0.2.")
    return listed


def _risk(text: str) -> str | float:
    number = number_from(text)
    return text if number is None else number


def _note(curves: dm.ThresholdCurves) -> str:
    from darkmetrics.tables import level_text

    level = f"{level_text(max(curves.confidence_levels))} intervals, each for its threshold by itself"
    return f"In brackets: {level}. Method: {curves.method}. The current threshold is {curves.current:g}."


def _as_result(curves: dm.ThresholdCurves) -> Result:
    document = curves.to_dict()
    thresholds, flagged, metrics = document["thresholds"], document["flagged"], document["metrics"]
    records = [
        {
            "threshold": thresholds[place],
            "flagged": flagged[place],
            "metric": name,
            **{key: column[place] for key, column in _columns(entry).items()},
        }
        for place in range(len(thresholds))
        for name, entry in metrics.items()
    ]
    cells = [_cell(record) for record in records]
    width = len(metrics)
    rows = [
        [f"{thresholds[place]:.4g}", f"{flagged[place]:.1%}", *cells[width * place : width * (place + 1)]]
        for place in range(len(thresholds))
    ]
    return Result(document, records, [Table(["threshold", "flagged", *metrics], rows, words=0)])


def _columns(entry: dict[str, Any]) -> dict[str, list[float | None]]:
    """Return the numbers of a metric per threshold."""
    (interval,) = entry["intervals"]
    bands = {key: column for key, column in entry.items() if isinstance(column, list) and key != "intervals"}
    return bands | {key: column for key, column in interval.items() if isinstance(column, list)}


def _cell(record: dict[str, Any]) -> str:
    from darkmetrics.tables import number_text

    if record["mean"] is None:
        return "undefined"
    mean, low, high = (number_text(record[key], 3) for key in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})"


def _best_as_result(best: BestThreshold) -> Result:
    from darkmetrics.tables import plain_numbers

    record = plain_numbers(asdict(best))
    header = ["metric", "best by", "threshold", "value", "current threshold", "value there", "probability better"]
    by = best.risk if isinstance(best.risk, str) else f"{best.risk:g} quantile"
    numbers = [best.threshold, best.value, best.current, best.current_value, best.probability_better]
    row = [best.metric, by, *(f"{number:.4g}" for number in numbers)]
    return Result({"schema": "darkmetrics.best_threshold/1", **record}, [record], [Table(header, [row])])
