"""The options of the commands, in groups that several commands share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from darkmetrics._vocabulary import MECHANISMS, METHODS, PLAIN_MODELS
from darkmetrics.cli.messages import WordedError
from darkmetrics.files import FORMATS


class OutputFormat(StrEnum):
    """How a result is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


class CheckedFormat(StrEnum):
    """How a result is written that numbers may be watched of, and that may fail."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    prometheus = "prometheus"
    junit = "junit"


_FORMAT_OF_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}
_FORMAT_OF_SUFFIX |= {".prom": "prometheus", ".xml": "junit"}
# What a file of such a name is not, whatever a command writes.
_OTHER_FILES = (".htm", ".html", ".pdf", ".xls", ".xlsx", ".parquet", ".yaml", ".yml")
InputFormat = StrEnum("InputFormat", list(FORMATS))  # type: ignore[misc]  # the members are those of one list

COLUMNS, OUTPUT = "Columns and labels", "Output"
ASSUMED = "What is assumed, and how it is computed"
LATE = "Labels that come with time"

# What every command that reads rows is told of them.
WeightColumn = Annotated[
    str | None, typer.Option(metavar="COL", help="Column of row weights.", rich_help_panel=COLUMNS)
]
PositiveLabel = Annotated[
    str, typer.Option(metavar="VALUE", help="The label that counts as positive.", rich_help_panel=COLUMNS)
]
_ALSO_MISSING = "A label that also means missing, such as -1; again for more."
MissingLabel = Annotated[list[str] | None, typer.Option(metavar="VALUE", help=_ALSO_MISSING, rich_help_panel=COLUMNS)]
_FORMAT = "Format of FILE, if its name does not say it."
FormatOfFile = Annotated[
    InputFormat | None, typer.Option(metavar="|".join(FORMATS), help=_FORMAT, rich_help_panel=COLUMNS)
]


def either(words: Iterable[str]) -> str:
    """Words to choose among, in a sentence."""
    *others, last = words
    return f"{', '.join(others)} or {last}"


def completing(*choices: str) -> Callable[[str], list[str]]:
    """What a shell offers when the tab key is pressed: those of a few words that fit."""

    def matching(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return matching


def _metric_names(incomplete: str) -> list[str]:
    import darkmetrics as dm

    return completing(*dm.list_metrics())(incomplete)


@dataclass(frozen=True)
class DataOptions:
    """Where the rows are, and what their columns mean."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV (also .gz), Parquet, Arrow/Feather or JSON lines; - is standard input. A folder or a pattern "
            "such as '*.parquet' stands for many files.",
            show_default=False,
        ),
    ]
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of the labels; empty, null, NaN or NA where missing. Guessed if just one name is likely.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of the scores; higher means more likely positive. Guessed in the same way.",
            rich_help_panel=COLUMNS,
        ),
    ] = None
    weight: WeightColumn = None
    pos_label: PositiveLabel = "1"
    missing_label: MissingLabel = None
    input_format: FormatOfFile = None


@dataclass(frozen=True)
class ThresholdOption:
    """The score from which on rows are decided positive."""

    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="T", help="Decided positive from this score on; 0.5 unless given.", rich_help_panel=COLUMNS
        ),
    ] = None


@dataclass(frozen=True)
class DecisionOptions(ThresholdOption):
    """Which rows are decided positive."""

    pred: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of decisions that do not follow from a threshold.", rich_help_panel=COLUMNS
        ),
    ] = None


@dataclass(frozen=True)
class MetricOptions:
    """What is asked."""

    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="A metric, such as recall or 'fbeta(2)'; again for more. The metrics command lists them; all "
            "stands for those that need no parameter.",
            autocompletion=_metric_names,
        ),
    ] = None


@dataclass(frozen=True)
class ZeroDivisionOption:
    """What a 0/0 counts as."""

    zero_division: Annotated[
        str,
        typer.Option(
            metavar="warn|0|1|nan",
            help="What a metric that is 0/0 counts as; warn takes scikit-learn's value and says so.",
            autocompletion=completing("warn", "0", "1", "nan"),
            rich_help_panel=ASSUMED,
        ),
    ] = "warn"


@dataclass(frozen=True)
class ReferenceOption:
    """Reference rows."""

    reference: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Fully labelled rows with the same columns, such as the test set of the model.",
            rich_help_panel=ASSUMED,
        ),
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """What is assumed about the missing labels, and how the laws are found."""

    missingness: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help=f"Why labels are missing: {either(MECHANISMS)}.",
            autocompletion=completing(*MECHANISMS),
            rich_help_panel=ASSUMED,
        ),
    ] = None
    label_model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="auto, calibrated, label_shift, selection, late, half, prevalence, or one probability for all missing "
            "rows.",
            autocompletion=completing(*PLAIN_MODELS),
            rich_help_panel=ASSUMED,
        ),
    ] = "auto"
    prob: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of your own probabilities of the missing labels.", rich_help_panel=ASSUMED
        ),
    ] = None
    propensity: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with the chance of each row to get its label: of a policy, a sampling design or overrides.",
            rich_help_panel=ASSUMED,
        ),
    ] = None
    strata: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with whole numbers for rows of one kind, within which label models fit.",
            rich_help_panel=ASSUMED,
        ),
    ] = None
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="auto (exact where possible), exact, gaussian or monte_carlo.",
            autocompletion=completing(*METHODS),
            rich_help_panel=ASSUMED,
        ),
    ] = "auto"
    confidence_level: Annotated[
        float, typer.Option(metavar="P", help="Probability that an interval holds.", rich_help_panel=ASSUMED)
    ] = 0.9


@dataclass(frozen=True)
class LateOptions:
    """When rows were scored and when their labels came."""

    scored_at: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of dates or times when rows were scored: labels come with time, and ages tell which are to "
            "come. Needs --as-of.",
            rich_help_panel=LATE,
        ),
    ] = None
    labelled_at: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of the times when labels came; empty without a label.", rich_help_panel=LATE
        ),
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="With --scored-at: the day (2026-03-09) or time that ages are counted up to. Rows scored later are "
            "left out, and labels that came later hidden (by --labelled-at).",
            rich_help_panel=LATE,
        ),
    ] = None
    maturity: Annotated[
        float | None,
        typer.Option(
            metavar="DAYS",
            help="Only positives arrive: rows of that age without a label are negative, younger ones unknown.",
            rich_help_panel=LATE,
        ),
    ] = None


@dataclass(frozen=True)
class TargetOption:
    """What is to be reached."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="METRIC=VALUE",
            help="A value that a metric shall reach, or not exceed if lower is better; again for more.",
        ),
    ] = None


@dataclass(frozen=True)
class TargetOptions(TargetOption):
    """What must hold for exit code 0."""

    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            metavar="P",
            min=0.0,
            max=1.0,
            help="Exit with 1 when a target is met with a smaller probability. 0.9: unless nearly sure that it is met; "
            "0.1: only when nearly sure that it is missed.",
        ),
    ] = 0.9


@dataclass(frozen=True)
class ScopeOption:
    """What intervals and targets are about."""

    scope: Annotated[
        str,
        typer.Option(
            metavar="rows|population",
            help="Intervals and targets are about these rows, or about the population that they are a sample of.",
            autocompletion=completing("rows", "population"),
            rich_help_panel=ASSUMED,
        ),
    ] = "rows"


@dataclass(frozen=True)
class ClustersOption:
    """Which rows share their fate."""

    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column that says which rows share their fate, such as the customer: their labels may depend on each "
            "other.",
            rich_help_panel=ASSUMED,
        ),
    ] = None


# Fields come in the order of the bases from the last to the first.
@dataclass(frozen=True)
class EstimateOptions(
    ZeroDivisionOption, ReferenceOption, ModelOptions, LateOptions, ThresholdOption, MetricOptions, DataOptions
):
    """What an estimate of metrics takes."""


@dataclass(frozen=True)
class EvaluationOptions(ClustersOption, ScopeOption, TargetOptions, DecisionOptions, EstimateOptions):
    """What a whole evaluation takes: decisions of any kind, targets, and what they are about."""


@dataclass(frozen=True)
class CommonOptions:
    """What every command takes."""

    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(OutputFormat),
            help="How the result is written. By default the suffix of --output (.json, .csv, .md) says, else a table.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the result there instead of to standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Makes random draws, where there are any, repeatable.", rich_help_panel=OUTPUT
        ),
    ] = None
    debug: Annotated[
        bool, typer.Option("--debug", help="Show what is done, and the traceback of an error.", rich_help_panel=OUTPUT)
    ] = False

    formats: ClassVar[type[StrEnum]] = OutputFormat

    def __post_init__(self) -> None:
        _ = self.result_format  # a name that says another format is refused before the work

    @property
    def result_format(self) -> str:
        """The format that is asked for, or that the name of the output says."""
        if self.format or self.output is None:
            return self.format or "table"
        suffix = Path(self.output).suffix.lower()
        meant = _FORMAT_OF_SUFFIX.get(suffix, "table")
        if suffix in _OTHER_FILES or meant not in list(self.formats):
            page = " For a page there is the report command." if suffix in (".htm", ".html") else ""
            raise WordedError(
                f"--output: {self.output} ends in {suffix}, which is not written here. Formats are "
                f"{', '.join(self.formats)}: end it in that of one, or say --format.{page}"
            )
        return meant


@dataclass(frozen=True)
class CheckedOptions(CommonOptions):
    """What a command takes whose result has numbers to watch and checks that may fail."""

    format: Annotated[
        CheckedFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(CheckedFormat),
            help="How the result is written. By default the suffix of --output (.json, .csv, .md, .prom, .xml) says, "
            "else a table. prometheus: numbers for its textfile collector; junit: a test case per check.",
            rich_help_panel=OUTPUT,
        ),
    ] = None  # type: ignore[assignment]  # more formats than the others have
    formats: ClassVar[type[StrEnum]] = CheckedFormat


@dataclass(frozen=True)
class PageOptions(CommonOptions):
    """What a command takes that writes a page to --output, and its result to standard output."""

    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(OutputFormat),
            help="How the result on standard output is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = OutputFormat.table
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the report there: .html, .md or .json.",
            rich_help_panel=OUTPUT,
        ),
    ] = None


@dataclass(frozen=True)
class ReportOptions:
    """A page to be written besides the result."""

    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the --report.")] = None
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write a page as well: verdict, tables, pictures of each difference, what was assumed, in one .html.",
        ),
    ] = None
