"""The options of the commands, in groups that several commands share; a field has the name of the Python argument."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from darkmetrics._text import number_from, whole_number_from
from darkmetrics._vocabulary import CALIBRATORS, MECHANISMS, METHODS, SCOPES
from darkmetrics.exceptions import InputError
from darkmetrics.files import FORMATS

_FORMATS = ("table", "json", "csv", "markdown")
OutputFormat = StrEnum("OutputFormat", _FORMATS)  # type: ignore[misc]  # the members are those of one list
# Formats of results with numbers to watch and with checks that may fail.
CheckedFormat = StrEnum("CheckedFormat", (*_FORMATS, "prometheus", "junit"))  # type: ignore[misc]
InputFormat = StrEnum("InputFormat", list(FORMATS))  # type: ignore[misc]

_FORMAT_OF_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}
_FORMAT_OF_SUFFIX |= {".prom": "prometheus", ".xml": "junit"}
# Files that no format writes.
_OTHER_FILES = (".htm", ".html", ".pdf", ".xls", ".xlsx", ".parquet", ".yaml", ".yml")

FILES, DATA, MISSINGNESS, DELAYS = "Files", "Data", "Missingness", "Delayed labels"
ESTIMATION, TARGETS, THRESHOLDS = "Estimation", "Targets", "Thresholds"
GROUPS, ALERTS, OUTPUT = "Groups", "Alerts", "Output"


def either(words: Iterable[str]) -> str:
    """Return words to choose among, for a sentence."""
    *others, last = words
    return f"{', '.join(others)} or {last}"


def complete(*choices: str) -> Callable[[str], list[str]]:
    """Return what offers choices when a shell completes a value."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _metric_names(incomplete: str) -> list[str]:
    import darkmetrics as dm

    return complete(*dm.metrics.registered_names())(incomplete)


def option(
    panel: str, metavar: str | None, text: str, *names: str, choices: Iterable[str] = (), **settings: Any
) -> Any:
    """Return an option of a panel of the help; a shell completes its choices."""
    if choices:
        settings["autocompletion"] = complete(*choices)
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, **settings)


def number(panel: str, metavar: str, text: str, *, whole: bool = False, low: float = -inf, high: float = inf) -> Any:
    """Return an option for a number by the library's rule of what a number is: click also accepts 1_000."""
    read: Callable[[str], float | None] = whole_number_from if whole else number_from

    def parse(value: Any) -> Any:
        parsed: Any = read(value) if isinstance(value, str) else value
        if parsed is None:
            raise typer.BadParameter(f"{value!r} is not a {'whole ' * whole}number.")
        if (low, high) != (-inf, inf) and not low <= parsed <= high:  # refuses NaN too
            rule = f"at least {low:g}" if high == inf else f"from {low:g} to {high:g}"
            raise typer.BadParameter(f"{value} is not {rule}.")
        return parsed

    return option(panel, metavar, text, parser=parse)


def argument(metavar: str, text: str) -> Any:
    """Return a required argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, rich_help_panel=FILES)


FILES_HELP = "CSV, JSON lines, Parquet or Arrow; - for standard input. Files, folders and patterns may be mixed."

WeightColumn = Annotated[str | None, option(DATA, "COL", "Column of row weights.")]
PositiveLabel = Annotated[str, option(DATA, "VALUE", "Label that counts as positive.")]
MissingLabel = Annotated[list[str] | None, option(DATA, "VALUE", "Label that also means missing. Repeatable.")]
FormatOfFile = Annotated[InputFormat | None, option(DATA, "FORMAT", f"Format of FILE: {either(FORMATS)}.")]
ReferenceFile = Annotated[
    str | None, option(MISSINGNESS, "FILE", "Fully labeled rows with the same columns, such as an earlier test set.")
]


@dataclass(frozen=True)
class DataOptions:
    """Rows and their columns."""

    file: Annotated[list[str], argument("FILE", FILES_HELP)]
    label: Annotated[
        str | None, option(DATA, "COL", "Column of labels; empty or null if missing. Guessed if not passed.")
    ] = None
    score: Annotated[
        str | None, option(DATA, "COL", "Column of scores; higher means more likely positive. Guessed if not passed.")
    ] = None
    weight: WeightColumn = None
    pos_label: PositiveLabel = "1"
    missing_label: MissingLabel = None
    input_format: FormatOfFile = None


@dataclass(frozen=True)
class ThresholdOption:
    """The threshold of predictions."""

    threshold: Annotated[float | None, number(DATA, "T", "Predict positive at or above this score. [default: 0.5]")] = (
        None
    )


@dataclass(frozen=True)
class PredictionOptions(ThresholdOption):
    """Predictions by a threshold or in a column."""

    pred: Annotated[str | None, option(DATA, "COL", "Column of predictions, without a threshold.")] = None


@dataclass(frozen=True)
class ClustersOption:
    """Clusters of rows."""

    clusters: Annotated[
        str | None, option(DATA, "COL", "Column of cluster IDs, such as customer: their labels may be correlated.")
    ] = None


@dataclass(frozen=True)
class MetricOptions:
    """Metrics."""

    metric: Annotated[
        list[str] | None,
        option(
            ESTIMATION,
            "NAME",
            "Metric, such as recall or 'fbeta(2)', or all. Repeatable; see darkmetrics metrics.",
            "--metric",
            "-m",
            autocompletion=_metric_names,
        ),
    ] = None


@dataclass(frozen=True)
class MechanismOptions:
    """Why labels are missing, for rows that are told apart by scores alone."""

    missingness: Annotated[
        str | None, option(MISSINGNESS, "WORD", f"Why labels are missing: {either(MECHANISMS)}.", choices=MECHANISMS)
    ] = None
    reference: ReferenceFile = None
    prob: Annotated[
        str | None,
        option(MISSINGNESS, "COL|P", "Probabilities of the missing labels: a column, or one number for all."),
    ] = None
    calibrator: Annotated[
        str | None,
        option(MISSINGNESS, "NAME", f"Curve from scores to probabilities: {either(CALIBRATORS)}.", choices=CALIBRATORS),
    ] = None


@dataclass(frozen=True)
class DelayOptions:
    """Labels that arrive with a delay."""

    scored_at: Annotated[str | None, option(DELAYS, "COL", "Column of times at which rows were scored.")] = None
    labeled_at: Annotated[str | None, option(DELAYS, "COL", "Column of times at which labels arrived.")] = None
    as_of: Annotated[
        str | None, option(DELAYS, "DATE", "Day (2026-03-09) or time of the data; later rows and labels are hidden.")
    ] = None
    maturity: Annotated[
        float | None, number(DELAYS, "DAYS", "Only positives arrive: older rows without a label are negative.")
    ] = None
    reviewed: Annotated[
        str | None, option(DELAYS, "WHO", "Rows that are reviewed: all or by_score.", choices=("all", "by_score"))
    ] = None


@dataclass(frozen=True)
class MissingnessOptions(DelayOptions, MechanismOptions):
    """Why labels are missing: the fields of the mechanisms in `dm.missing`."""

    strata: Annotated[
        str | None, option(MISSINGNESS, "COL", "Column of segments (whole numbers) with a level of their own.")
    ] = None
    propensity: Annotated[
        str | None, option(MISSINGNESS, "COL", "Column with the known probability of each row to get its label.")
    ] = None


@dataclass(frozen=True)
class ScopeOption:
    """Scope of the results."""

    scope: Annotated[
        str,
        option(ESTIMATION, "SCOPE", "Results are for these rows, or for their population.", choices=SCOPES),
    ] = "rows"


@dataclass(frozen=True)
class MethodOptions:
    """How distributions are computed and printed."""

    method: Annotated[str, option(ESTIMATION, "METHOD", f"Computation: {either(METHODS)}.", choices=METHODS)] = "auto"
    zero_division: Annotated[
        str, option(ESTIMATION, "VALUE", "Value of 0/0: warn, 0, 1 or nan.", choices=("warn", "0", "1", "nan"))
    ] = "warn"
    confidence_level: Annotated[float, number(ESTIMATION, "P", "Probability of the intervals.")] = 0.9


# Fields come in the order of the bases from the last to the first.
@dataclass(frozen=True)
class EstimateOptions(MethodOptions, MissingnessOptions, MetricOptions, ThresholdOption, DataOptions):
    """Options of an estimate of metrics."""


@dataclass(frozen=True)
class EvaluationOptions(ScopeOption, ClustersOption, PredictionOptions, EstimateOptions):
    """Options of an evaluation."""

    score: Annotated[
        list[str] | None,
        option(
            DATA,
            "COL|CLASS=COL",
            "Column of scores; higher means more likely positive. Guessed if not passed. For several classes, repeat "
            "it with each class and its column.",
        ),
    ] = None  # type: ignore[assignment]  # other commands take one column
    scores_prefix: Annotated[
        str | None, option(DATA, "PREFIX", "Several classes: columns that begin with it are scores of the rest.")
    ] = None


_SURE = "Required probability that a target is met; 0.1 fails only if it is almost surely missed."


@dataclass(frozen=True)
class TargetOption:
    """Targets of metrics."""

    target: Annotated[
        list[str] | None,
        option(TARGETS, "METRIC=VALUE", "Target: a minimum, or a maximum if lower is better. Repeatable."),
    ] = None


@dataclass(frozen=True)
class ConfidenceOption:
    """How sure targets have to be met."""

    confidence: Annotated[float, number(TARGETS, "P", _SURE, low=0.0, high=1.0)] = 0.9


@dataclass(frozen=True)
class CommonOptions:
    """Options of every command."""

    format: Annotated[
        OutputFormat | None,
        option(OUTPUT, "FORMAT", f"One of {either(_FORMATS)}; by default the suffix of --output.", "--format", "-f"),
    ] = None
    output: Annotated[
        str | None, option(OUTPUT, "FILE", "Write the result to a file, not to standard output.", "--output", "-o")
    ] = None
    seed: Annotated[int | None, number(OUTPUT, "N", "Make random draws repeatable.", whole=True, low=0)] = None
    debug: Annotated[bool, option(OUTPUT, None, "Show the log, and the traceback of an error.", "--debug")] = False

    formats: ClassVar[type[StrEnum]] = OutputFormat

    def __post_init__(self) -> None:
        _ = self.result_format  # refuses a name of another format before the work

    @property
    def result_format(self) -> str:
        """The format that was passed, or that the suffix of the output stands for."""
        if self.format or self.output is None:
            return self.format or "table"
        suffix = Path(self.output).suffix.lower()
        meant = _FORMAT_OF_SUFFIX.get(suffix, "table")
        if suffix in _OTHER_FILES or meant not in list(self.formats):
            page = " For a page there is the report command." if suffix in (".htm", ".html") else ""
            raise InputError(
                "--output",
                f"{self.output} ends in {suffix}, which is not written here",
                f"Formats are {', '.join(self.formats)}: end it in that of one, or pass --format.{page}",
            )
        return meant


@dataclass(frozen=True)
class CheckedOptions(CommonOptions):
    """Options of commands with numbers to watch and checks that may fail."""

    format: Annotated[
        CheckedFormat | None,
        option(
            OUTPUT,
            "FORMAT",
            f"One of {either(CheckedFormat)}; by default the suffix of --output (.json, .prom, .xml, ...).",
            "--format",
            "-f",
        ),
    ] = None  # type: ignore[assignment]  # more formats than the others have
    formats: ClassVar[type[StrEnum]] = CheckedFormat


@dataclass(frozen=True)
class PageOptions(CommonOptions):
    """Options of commands that write a page to --output, and their result to standard output."""

    format: Annotated[
        OutputFormat | None,
        option(OUTPUT, "FORMAT", f"Format on standard output: {either(_FORMATS)}.", "--format", "-f"),
    ] = None
    output: Annotated[
        str | None, option(OUTPUT, "FILE", "Write the report here: .html, .md or .json.", "--output", "-o")
    ] = None

    @property
    def result_format(self) -> str:
        """The format on standard output, whatever the report is."""
        return self.format or "table"


Title = Annotated[str | None, option(OUTPUT, "TEXT", "Heading of the report.")]


@dataclass(frozen=True)
class ReportOptions:
    """An HTML report next to the result."""

    report: Annotated[str | None, option(OUTPUT, "FILE", "Also write a report: .html, .md, .json or .pdf.")] = None
    title: Title = None
