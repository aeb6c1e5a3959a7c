"""darkmetrics compare."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.evaluation import settings_of
from darkmetrics.cli.inputs import files_of, paths_of, read_reference_columns, read_rows
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import (
    DATA,
    FILES_HELP,
    TARGETS,
    CheckedOptions,
    DataOptions,
    FormatOfFile,
    MechanismOptions,
    MethodOptions,
    MetricOptions,
    MissingLabel,
    PositiveLabel,
    ReportOptions,
    ScopeOption,
    WeightColumn,
    argument,
    option,
)
from darkmetrics.cli.output import (
    check_format,
    check_report,
    check_writable,
    in_words,
    progress,
    publish,
)
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.cli.settings import command_line
from darkmetrics.exceptions import InputError

EXAMPLE = (
    "Example: darkmetrics compare june.parquet --label fraud --score champion=p1 --score challenger=p2 "
    "-m f1 --gate better=0.9"
)


@dataclass(frozen=True)
class ScoresOptions:
    """Rows, and the columns with the scores of the models."""

    file: Annotated[list[str], argument("FILE", FILES_HELP)]
    score: Annotated[
        list[str],
        option(DATA, "MODEL=COL", "Model and column of its scores, or a column named like its model. Repeatable."),
    ]
    label: Annotated[str, option(DATA, "COL", "Column of labels; empty or null if missing.")]
    threshold: Annotated[
        list[str] | None,
        option(DATA, "T|MODEL=T", "Predict positive from this score on, for all models or one. [default: 0.5]"),
    ] = None
    weight: WeightColumn = None
    pos_label: PositiveLabel = "1"
    missing_label: MissingLabel = None
    input_format: FormatOfFile = None

    def as_data(self) -> DataOptions:
        """Return the options of one model."""
        return DataOptions(**{one.name: getattr(self, one.name) for one in fields(DataOptions) if one.name != "score"})


@dataclass(frozen=True)
class CompareOptions(ScopeOption, MethodOptions, MechanismOptions, MetricOptions, ScoresOptions):
    """Rows, models and mechanism of a comparison."""


def main(
    options: CompareOptions,
    common: CheckedOptions,
    page: ReportOptions,
    gate: Annotated[
        str | None,
        option(
            TARGETS,
            "better=P",
            "Fail unless the last model is better than the first with probability P, in every --metric.",
        ),
    ] = None,
) -> int:
    """Compare models on the same rows: the last with the first, and the probability of each to be the best.

    Models share their labels, known or not; a tie is not better.
    """
    check_format(common.result_format, gate, "--gate")
    inputs = [*paths_of(options.file), options.reference]
    check_writable(common.output, *inputs)
    check_report(page.report, [common.output], inputs)
    required, columns = _gate(gate), _columns(options.score)
    if gate is not None and not options.metric:
        raise InputError("--gate", "no metric", "", "Pass --metric, in which the model must be better.")
    with progress("reading", "comparing") as begin:
        begin()
        column = options.prob if number_from(options.prob or "") is None else None
        passed = {"label": options.label, "weight": options.weight, "prob": column}
        names = {name: column for name, column in passed.items() if column is not None}
        rows = read_rows(files_of(options.as_data()), names, options.as_data(), list(columns.values()))
        reference = None
        if options.reference is not None:
            scores = list(columns.values())
            read = read_reference_columns(options.reference, options.label, scores, rows.pos_label)
            scores_by_name = {name: read[column] for name, column in columns.items()}
            reference = dm.missing.Reference(read[options.label], scores_by_name)
        begin()
        with in_words({**names, "scores": ""}, quiet=True):
            missingness: Any = mechanism_from(options, reference)
            if "prob" in names:
                missingness = dm.missing.Fixed(rows.data[names["prob"]])
            comparison = dm.compare(
                rows.data[options.label],
                {name: rows.data[column] for name, column in columns.items()},
                sample_weight=None if options.weight is None else rows.data[options.weight],
                pos_label=rows.pos_label,
                missing_label=rows.missing_label,
                metrics=options.metric or dm.metrics.DEFAULT_METRICS,
                threshold=_thresholds(options.threshold),
                missingness=missingness,
                rng=common.seed,
                **settings_of(options),
            )
            verdicts = _verdicts(comparison, required)
            result = _as_result(comparison, verdicts)
            if page.report is not None:
                source = {"file": rows.source, "label column": options.label}
                source |= {f"scores of {name}": column for name, column in columns.items()}
                source["command"] = command_line()
                comparison.report(page.report, title=page.title, source=source)
    return publish(result, common.result_format, common.output)


def _columns(passed: Sequence[str]) -> dict[str, str]:
    """Return the column of each model."""
    columns: dict[str, str] = {}
    for text in passed:
        name, sign, column = text.partition("=")
        name, column = name.strip(), column.strip() if sign else text.strip()
        if not name or not column:
            raise InputError("--score", f"cannot read {text!r}", "", "Write it like champion=p1.")
        if name in columns:
            raise InputError("--score", f"{name!r} is the name of two models", "Models need different names.")
        columns[name] = column
    if len(columns) < 2:
        rule = "A comparison needs at least two models."
        raise InputError("--score", "one model", rule, "For one model, run darkmetrics evaluate.")
    return columns


def _thresholds(given: Sequence[str] | None) -> float | dict[str, float] | None:
    """Return one threshold for all models, or those of models by name."""
    if not given:
        return None
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        number = number_from(value)
        if number is None:
            raise InputError("--threshold", f"cannot read {text!r}", "", "Write a number, or champion=0.4.")
        if name.strip() in found:
            raise InputError("--threshold", f"{name.strip() or 'one for all'} is passed twice", "", "Pass one.")
        found[name.strip()] = number
    if "" not in found:
        return found
    if len(found) > 1:
        raise InputError(
            "--threshold",
            "one for all and one for a model",
            "",
            "Pass one for each model, or one for all.",
        )
    return found[""]


def _gate(text: str | None) -> float | None:
    if text is None:
        return None
    word, _, value = text.partition("=")
    number = number_from(value)
    if word.strip() != "better" or number is None or not 0.0 < number <= 1.0:
        raise InputError("--gate", f"cannot read {text!r}", "", "Write it like better=0.9.")
    return number


def _verdicts(found: dm.Comparison, wanted: float | None) -> list[dict[str, Any]]:
    """Return for each metric whether the last model is better than the first with the required probability."""
    if wanted is None:
        return []
    neither = next((metric for metric, record in found.metrics.items() if record.better == "neither"), None)
    if neither is not None:
        raise InputError("--gate", f"{neither!r} is neither better when higher nor when lower", "", "Leave it out.")
    first, last = found.models[0], found.models[-1]
    chances = {metric: found.probability_better(metric, last, first) for metric in found.metrics}
    return [
        {
            "metric": metric,
            "model": last,
            "other": first,
            "scope": found.scope,
            "better": chance,
            "wanted": wanted,
            "met": chance >= wanted,
        }
        for metric, chance in chances.items()
    ]


def _as_result(found: dm.Comparison, verdicts: list[dict[str, Any]]) -> Result:
    document, records = found.to_dict(), found.to_records()
    said = [one._replace(message=worded(one.message)) for one in found.warnings]
    document["warnings"] = [one._asdict() for one in said]
    if verdicts:
        from darkmetrics.tables import plain_numbers  # with numpy, which --help does without

        document["gate"] = [plain_numbers(one) for one in verdicts]
    header, rows = found._table()
    return Result(
        document,
        records,
        [Table(header, rows, words=found._text_columns)],
        above=[worded(text) for text in found._words()],
        below=found._notes(),
        warnings=[f"Warning: {one.message}" for one in said],
        checks=[_check(one) for one in verdicts],
        about=("metric", "model", "scope"),
    )


def _check(one: Mapping[str, Any]) -> Check:
    enough = "enough" if one["met"] else f"less than the {one['wanted']:g} asked for"
    where = " in the population" if one["scope"] == "population" else ""
    name = f"{one['model']} is better than {one['other']} in {one['metric']}{where}"
    return Check(name, one["met"], f"{name} with probability {one['better']:.4g}, {enough}.")
