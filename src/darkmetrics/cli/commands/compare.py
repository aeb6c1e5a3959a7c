"""darkmetrics compare."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics._vocabulary import MECHANISMS, PLAIN_MODELS
from darkmetrics.cli.evaluation import zero_division_of
from darkmetrics.cli.inputs import files_of, paths_of, read_rows
from darkmetrics.cli.messages import WordedError, for_the_command_line, worded
from darkmetrics.cli.options import (
    ASSUMED,
    COLUMNS,
    CheckedOptions,
    DataOptions,
    FormatOfFile,
    MetricOptions,
    MissingLabel,
    PositiveLabel,
    ReferenceOption,
    ReportOptions,
    ScopeOption,
    WeightColumn,
    ZeroDivisionOption,
    completing,
    either,
)
from darkmetrics.cli.output import (
    check_format,
    check_report,
    check_writable,
    in_words,
    progress,
    publish,
    seen_by_a_person,
    write_output,
)
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.cli.settings import command_line
from darkmetrics.files import MISSING_WORDS

EXAMPLE = (
    "Example: darkmetrics compare june.parquet --label fraud --score champion=p1 --score challenger=p2 "
    "-m f1 --gate better=0.9"
)
# Rows that are compared have no ages.
_MECHANISMS, _MODELS = (tuple(word for word in words if word != "late") for words in (MECHANISMS, PLAIN_MODELS))


@dataclass(frozen=True)
class ScoresOptions:
    """Where the rows are, and which columns have the scores of the models."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV (also .gz), Parquet, Arrow/Feather or JSON lines; - is standard input. A pattern such as "
            "'*.csv' stands for many files.",
            show_default=False,
        ),
    ]
    score: Annotated[
        list[str],
        typer.Option(
            "--score",
            metavar="MODEL=COL",
            help="A model and the column of its scores, or a column that is called like its model; twice or more.",
            rich_help_panel=COLUMNS,
        ),
    ]
    label: Annotated[
        str,
        typer.Option(
            metavar="COL",
            help="Column of the labels; empty, null, NaN or NA where missing.",
            rich_help_panel=COLUMNS,
        ),
    ]
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="T|MODEL=T",
            help="Decided positive from this score on, for all models or for one; again for more. 0.5 unless given.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    weight: WeightColumn = None
    pos_label: PositiveLabel = "1"
    missing_label: MissingLabel = None
    input_format: FormatOfFile = None

    def as_data(self) -> DataOptions:
        """The same for one that reads a single score."""
        known = {one.name for one in fields(DataOptions)} - {"score"}
        return DataOptions(**{name: getattr(self, name) for name in known})


@dataclass(frozen=True)
class AssumedOptions(ScopeOption, ZeroDivisionOption, ReferenceOption):
    """What is assumed about the missing labels, and how the laws are found."""

    missingness: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help=f"Why labels are missing: {either(_MECHANISMS)}.",
            autocompletion=completing(*_MECHANISMS),
            rich_help_panel=ASSUMED,
        ),
    ] = None
    label_model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="auto, calibrated, label_shift, selection, half, prevalence, or one probability for all missing rows.",
            autocompletion=completing(*_MODELS),
            rich_help_panel=ASSUMED,
        ),
    ] = "auto"
    confidence_level: Annotated[
        float, typer.Option(metavar="P", help="Probability that an interval holds.", rich_help_panel=ASSUMED)
    ] = 0.9


def main(
    data: ScoresOptions,
    asked: MetricOptions,
    assumed: AssumedOptions,
    common: CheckedOptions,
    page: ReportOptions,
    context: typer.Context,
    gate: Annotated[
        str | None,
        typer.Option(
            "--gate",
            metavar="better=P",
            help="Exit with 1 unless the last model is better than the first with at least this probability, in every "
            "metric asked for.",
        ),
    ] = None,
) -> int:
    """Which model is better on the rows of FILE? The last against the first, and the chance of each to be best.

    Models share their labels, known or not; a tie is not better.
    """
    check_format(common.result_format, gate, "--gate")
    inputs = [*paths_of(data.file), assumed.reference]
    check_writable(common.output, *inputs)
    check_report(page.report, [common.output], inputs)
    wanted, columns = _gate(gate), _columns(data.score)
    if gate is not None and not asked.metric:
        raise WordedError("--gate: say with --metric in what the model must be better.")
    with progress("reading", "comparing") as begin:
        begin()
        with worded():
            options = data.as_data()
            names = {"label": data.label, **({} if data.weight is None else {"weight": data.weight})}
            rows = read_rows(files_of(options), names, options, list(columns.values()))
            reference = _reference(assumed.reference, data, columns)
        begin()
        said = not seen_by_a_person(common.result_format, common.output)
        with in_words({**names, "scores": ""}, said=said):
            scope: Any = assumed.scope  # checked there
            probability = number_from(assumed.label_model)
            found = dm.compare(
                rows.columns["label"],
                {name: rows.read[column] for name, column in columns.items()},
                metrics=asked.metric or dm.metrics.DEFAULT_METRICS,
                threshold=_thresholds(data.threshold),
                label_model=assumed.label_model if probability is None else probability,
                missingness=assumed.missingness,
                reference=reference,
                pos_label=rows.pos_label,
                missing_label=rows.missing_label,
                sample_weight=rows.columns.get("weight"),
                zero_division=zero_division_of(assumed),
                rng=common.seed,
                confidence_level=assumed.confidence_level,
                scope=scope,
            )
            verdicts = _verdicts(found, wanted)
            result = _as_result(found, verdicts)
            if page.report is not None:
                from darkmetrics.report.models import comparison_page

                named = {"label column": data.label, **{f"scores of {name}": one for name, one in columns.items()}}
                source = {"file": rows.source, **named, "command": command_line(context)}
                write_output(page.report, comparison_page(found, title=page.title, source=source), "--report")
    return publish(result, common.result_format, common.output)


def _columns(given: Sequence[str]) -> dict[str, str]:
    """The column of each model."""
    columns: dict[str, str] = {}
    for text in given:
        name, sign, column = text.partition("=")
        name, column = name.strip(), column.strip() if sign else text.strip()
        if not name or not column:
            raise WordedError(f"--score: cannot read {text!r}. Write it like champion=p1.")
        if name in columns:
            raise WordedError(f"--score: {name!r} is named twice. Models need names of their own.")
        columns[name] = column
    if len(columns) < 2:
        raise WordedError("--score: one model. A comparison needs two at least; for one there is evaluate.")
    return columns


def _thresholds(given: Sequence[str] | None) -> float | dict[str, float] | None:
    """One threshold for all, or those of models by name."""
    if not given:
        return None
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        number = number_from(value)
        if number is None:
            raise WordedError(f"--threshold: cannot read {text!r}. Write a number, or champion=0.4.")
        if name.strip() in found:
            raise WordedError(f"--threshold: {name.strip() or 'one for all'} is given twice. Give one.")
        found[name.strip()] = number
    if "" not in found:
        return found
    if len(found) > 1:
        raise WordedError("--threshold: one for all and one for a model. Give one for each model, or one for all.")
    return found[""]


def _gate(text: str | None) -> float | None:
    if text is None:
        return None
    word, _, value = text.partition("=")
    number = number_from(value)
    if word.strip() != "better" or number is None or not 0.0 < number <= 1.0:
        raise WordedError(f"--gate: cannot read {text!r}. Write it like better=0.9.")
    return number


def _reference(path: str | None, data: ScoresOptions, columns: Mapping[str, str]) -> tuple[Any, Any] | None:
    """Labels and scores of the reference rows, which have the same columns."""
    if path is None:
        return None
    from darkmetrics.cli.inputs import file_of

    read = file_of(path, None).read([data.label, *columns.values()], {data.label: MISSING_WORDS - {data.pos_label}})
    return read[data.label], {name: read[column] for name, column in columns.items()}


def _verdicts(found: dm.Comparison, wanted: float | None) -> list[dict[str, Any]]:
    """For each metric whether the last model is better than the first with the probability wanted."""
    if wanted is None:
        return []
    neither = next((metric for metric, record in found.metrics.items() if record.better == "neither"), None)
    if neither is not None:
        raise WordedError(f"--gate: {neither!r} is neither better when higher nor when lower. Leave it out.")
    first, last = found.models[0], found.models[-1]
    chances = {metric: found.better(metric, last, first) for metric in found.metrics}
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
    document, records = found.to_dict(), found.records()
    said = [one._replace(message=for_the_command_line(one.message)) for one in found.warnings]
    document["warnings"] = [one._asdict() for one in said]
    if verdicts:
        from darkmetrics.tables import plain_numbers  # with numpy, which --help does without

        document["gate"] = [plain_numbers(one) for one in verdicts]
    header, rows = found.table()
    return Result(
        document,
        records,
        [Table(header, rows, words=2)],
        above=[for_the_command_line(text) for text in found.words()],
        below=found.notes(),
        warnings=[f"Warning: {one.message}" for one in said],
        checks=[_check(one) for one in verdicts],
        about=("metric", "model", "scope"),
    )


def _check(one: Mapping[str, Any]) -> Check:
    enough = "enough" if one["met"] else f"less than the {one['wanted']:g} asked for"
    where = " in the population" if one["scope"] == "population" else ""
    name = f"{one['model']} is better than {one['other']} in {one['metric']}{where}"
    return Check(name, one["met"], f"{name} with probability {one['better']:.4g}, {enough}.")
