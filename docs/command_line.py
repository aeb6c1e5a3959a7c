"""Writes reference/command-line.md from the help of the commands: `python docs/command_line.py`."""

from enum import Enum
from pathlib import Path
from typing import Any

from typer.main import get_command

from darkmetrics.cli import app
from darkmetrics.cli.app import EXIT_CODES

PAGE = Path(__file__).parent / "reference/command-line.md"
BEFORE = """# Command line

<!-- Made by docs/command_line.py from the help of the commands; a test compares. -->

`darkmetrics COMMAND --help` says the same. Install it with `pip install 'darkmetrics[cli]'` (reports need
`darkmetrics[report]`, everything, with Polars for files, is in `darkmetrics[all]`); `python -m darkmetrics` works
as well, and `darkmetrics --install-completion` teaches your shell.

**Input.** CSV (comma, semicolon, tab or bar; also compressed), JSON lines, Parquet and Arrow/Feather, by suffix or by
content; `-` is standard input. Only the columns that are needed are read. Parquet and Arrow take Polars, PyArrow or
pandas, whichever is installed; text needs none of them. A column of text is numbers if every value in it is one:
digits from 0 to 9, a dot, an exponent. `1_000`, `0x10` and digits of other scripts are text, here and as options.
Blank lines of a CSV file are skipped, unless it has one column only, where they are missing values; a line with more
or fewer values than the header is refused by its number. Parquet files over 64 MB, several of them, and all that
`monitor` is given, are not read but counted where they lie, by Polars or DuckDB, so that they may be larger than
memory; more than a million different scores are then taken together in bins, and a note says how far that can have
moved a metric.

**Many files.** FILE may be several files, as a shell lists them for `lake/*.parquet`; a pattern in quotes, such as
`'2026-*.parquet'`; or a folder of Parquet files, which may be partitioned (`days/month=2026-01/part-0.parquet`). What
begins with `_` or `.` is no data there, unless the pattern has that sign itself; [the
rule](../how-to/engines.md#files) is the same for the library.

**Missing labels.** Null and NaN in any format. In a CSV file, where all is text, a label is missing if it is empty or
one of `NaN`, `nan`, `null`, `NULL`, `None`, `NA`, `N/A` and `<NA>`, written like this, unless it is the `--pos-label`;
`--missing-label` adds one more value, again for more. This holds for labels only: a score must be a number.

**Columns.** `--label` and `--score` name them. If you leave one out, it is guessed from the names of the columns.
Exactly one must be usual (such as label, y_true, target, fraud; score, p, prob, y_pred_proba) or, failing that,
contain such a word. Case, spaces, dashes and underscores do not count. The guess and the full command are printed to
standard error: `darkmetrics june.csv` is `darkmetrics evaluate june.csv --label fraud --score p` if these are the
columns.

**Output.** Results go to standard output or to `--output`, which is written under another name and renamed when it is
complete, and must not be one of the files that are read. A table and Markdown have what was assumed above the numbers
and `PASS` or `FAIL` below them, so that nothing is lost in a pipe (`>> $GITHUB_STEP_SUMMARY`); a table is at most 80
columns wide where that can be, or as wide as the terminal. Beside the other formats, and beside a file, these words go
to standard error. `--format json` is `to_dict()` of the library's result, at full precision; the columns of
`--format csv` are listed with each command, and what is undefined is empty there. Without `--format` the suffix of
`--output` says it: `.json`, `.csv` or `.md`, `.prom` (prometheus) and `.xml` (junit); one of another kind
of file, such as `.html` or `.parquet`, is refused. `check`, `monitor`, `compare` and `change` also write
`--format prometheus`, gauges for [dashboards](../how-to/dashboards.md), and `--format junit`, a test case for each
target, gate or group that pipelines show beside their other tests; known alerts and groups that are too small are
skipped ones.

**Settings.** Options that a pipeline always gives may stand in `darkmetrics.toml` of the folder that the command is run
in, or in the file that `darkmetrics --config FILE COMMAND` names. Keys at the top are for every command that has such
an option, those of a table for one command; what is typed goes first, and a key that nobody knows is an error:

```toml
label = "fraud"
score = "p"
missingness = "by_score"

[check]
fail-under = "recall=0.8"
fail-over = "fpr=0.01"

[monitor]
time = "booked"
period = "month"
```

**Exit codes.** What could not be said on a standard error that is closed or full, the code still says.

| code | meaning |
|:--|:--|
{exit_codes}

A pipeline that must not go on unless recall is at least 0.8 with probability 90%:

```
darkmetrics check june.parquet --label fraud --score p --missingness by_label --fail-under recall=0.8 && ./deploy
```

The last lines begin with `PASS` or `FAIL`. Where nothing is stated about why labels are missing, the probability allows
for every mechanism, and a target that fails names the mechanisms under which it would be met and those under which not.
With `--confidence 0.1` it stops only when it is 90% sure that the target is missed. The probabilities are printed, and
in JSON they are in `targets`, each with its `verdict` and the probability `by_mechanism`. Warnings are part of the
result in every format: lines above the table, `warnings` in JSON, a column in CSV.

Every night, all months of this year by country, and a mail when one of the three newest begins to miss its target; an
alert is rarely false, however many groups there are:

```
darkmetrics monitor '2026-*.parquet' --label fraud --score p --missingness by_label --by country --time booked \\
    --period month --target recall=0.8 --last-periods 3 \\
    --known-alerts alerts.json -o alerts.json --report alerts.html || ./mail alerts.html
```

Alerts that `--known-alerts` has, an earlier `--output` in JSON, are not new: they are shown with the day since when
they are known, and the exit code is 0. Without `--known-alerts` it is 1 as long as there is an alert. A run that fails
(exit codes 2 and 3) leaves the file as it was ([every night](../how-to/monitor.md#every-night)).
"""

_METRIC = {"metric": "name of the metric", "meaning": "what it is", "better": "higher, lower or neither"}
_OF_METRIC = {"metric": _METRIC["metric"], "better": _METRIC["better"]}
_DROPPED = "value when rows without a label are dropped"
_UNDEFINED = "probability of 0/0"
# The columns of --format csv, by command.
CSV: dict[str, dict[str, str]] = {
    "evaluate": {
        "metric": _METRIC["metric"],
        "scope": "what the numbers are about: rows or population",
        **_METRIC,
        "labeled_only": _DROPPED,
        "method": "how its law was found",
        "mean": "the estimate",
        "std": "standard deviation of the law",
        "median": "median of the law",
        "low": "lower end of the interval",
        "high": "upper end of the interval",
        "lowest_possible": "worst case over all missing labels",
        "highest_possible": "best case over all missing labels",
        "confidence_level": "that of the interval",
        "bounds_sharp": "whether some labels attain the two cases",
        "undefined": _UNDEFINED,
        "ks_bound": "proven bound on the error of any probability of the law, if there is one",
        "variance_from_labels": "share of the variance due to the labels themselves",
        "variance_from_calibration": "share due to the curve from scores to probabilities",
        "variance_from_prevalence": "share due to how far missing rows differ from labeled ones",
        "variance_from_sampling": "with --scope population: share due to the choice of rows",
        "sensitivity_odds": "how many times off the odds of missing rows may be in the next two",
        "sensitivity_low": "lower end of the interval then",
        "sensitivity_high": "upper end of the interval then",
        "warnings": "the warnings; the same in every row",
    },
    "compare": {
        "metric": _METRIC["metric"],
        "model": "name of the model",
        "scope": "what the numbers are about: rows or population",
        "mean": "the estimate of its metric",
        "low": "lower end of the interval",
        "high": "upper end of the interval",
        "method": "how its law was found",
        "labeled_only": _DROPPED,
        "best": "probability that the model is better than all others",
        "better_than_first": "probability that it is better than the first model; empty for that one",
        "difference_mean": "the estimate of its metric less that of the first model",
        "difference_low": "lower end of the interval of that difference",
        "difference_high": "upper end of it",
    },
    "change": {
        "metric": _METRIC["metric"],
        "scope": "what the numbers are about: rows or population",
        "better": _METRIC["better"],
        "before": "the estimate on the earlier rows",
        "after": "the estimate on the later rows",
        "probability_decreased": "probability that the metric decreased",
        "probability_increased": "probability that it increased",
        "mix": "how much of the change is the mix of rows; empty if not known",
        "remainder": "how much of it other probabilities at the same score are",
        "method": "how the law of the change was found",
        "mean": "the estimate of the change, after less before",
        "std": "standard deviation of the change",
        "median": "median of it",
        "low": "lower end of its interval",
        "high": "upper end of its interval",
        "lowest_possible": "smallest change over all missing labels",
        "highest_possible": "largest change over all missing labels",
        "confidence_level": "that of the interval",
        "bounds_sharp": "whether some labels attain these two",
        "undefined": "probability of 0/0 on either side",
        "ks_bound": "proven bound on the error of any probability of the law, if there is one",
        "warnings": "what was warned of on either side; the same in every row",
    },
    "monitor": {
        "month": "with `--by month`: its value; one such column for each `--by`, and for `--time`",
        "metric": _METRIC["metric"],
        "scope": "what the numbers are about: rows or population",
        "rows": "rows of the group",
        "labeled": "rows with a label",
        "positive": "rows labeled positive",
        "negative": "rows labeled negative",
        "missing": "rows without a label",
        "mean": "the estimate",
        "low": "lower end of the interval",
        "high": "upper end of the interval",
        "labeled_only": _DROPPED,
        "lowest_possible": "smallest value over all missing labels",
        "highest_possible": "largest value over all missing labels",
        "undefined": _UNDEFINED,
        "method": "how its law was found",
        "binning_error": "how far score bins can have moved it; 0 for exact scores, empty if not known",
        "target": "with --target: the value to reach",
        "probability_missed": "with --target: the probability that it is missed",
        "q_value": "with --target: the smallest --fdr at which there is an alert",
        "alert": "whether there is one",
        "new": "whether it is one that --known-alerts does not have",
        "too_small": "why the group has too few labels to be judged; empty if it has enough",
        "warnings": "categories of what its evaluation warned of",
    },
    "bounds": {
        **_OF_METRIC,
        "lowest_possible": "smallest value over all missing labels",
        "highest_possible": "largest value over all missing labels",
        "oracle_pessimistic": "value with every missing row decided wrongly",
        "oracle_optimistic": "value with every missing row decided rightly",
        "labeled_only": _DROPPED,
        "bounds_sharp": "whether some labels attain the smallest and the largest value",
    },
    "curves": {
        "threshold": "decided positive from this score on",
        "flagged": "share of rows decided positive",
        "metric": _METRIC["metric"],
        "mean": "the estimate",
        "lowest_possible": "smallest value over all missing labels",
        "highest_possible": "largest value over all missing labels",
        "labeled_only": _DROPPED,
        "undefined": _UNDEFINED,
        "low": "lower end of the interval",
        "high": "upper end of the interval",
    },
    "curves --best": {
        "threshold": "the best one",
        "value": "what is best there: the mean, or the quantile that --risk names",
        "current": "the --threshold",
        "current_value": "the same there",
        "probability_better": "probability that the metric is better at the best threshold than at the current one",
        "metric": _METRIC["metric"],
        "risk": "mean, or the quantile",
    },
    "diagnose": {
        "missing": "the assumption: why labels are missing",
        "metric": "name of the metric; positive is the share of positives among the missing rows",
        "mean": "the estimate under this assumption",
        "low": "lower end of its interval",
        "high": "upper end of its interval",
    },
    "verify": {
        "time": "end of the batch of labels, as time since BEFORE, if known",
        "labels": "labels that had arrived by then",
        "positives": "positives among them",
        "e_value": "the e-value by then",
    },
    "metrics": {**_OF_METRIC, "meaning": _METRIC["meaning"]},
}
_TARGET = {
    "target": "limit of the metric",
    "target_probability": "probability that the limit is met",
    "target_met": "whether that is at least --confidence",
}
CSV["check"] = CSV["evaluate"] | _TARGET
CSV["check"]["warnings"] = CSV["check"].pop("warnings")


def page() -> str:
    """The whole page."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    commands = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    parts = [BEFORE.format(exit_codes=codes).rstrip()]
    for name, command in commands.items():
        parts.append("\n\n".join(section(name, command)))
    return "\n\n".join(parts) + "\n"


def section(name: str, command: Any) -> list[str]:
    """What the help of one command says."""
    parts = [f"## {name}", " ".join(command.help.split("\n\n")[0].split())]
    parts += [" ".join(paragraph.split()) for paragraph in command.help.split("\n\n")[1:]]
    parts.append(f"```\n{command.epilog.removeprefix('Example: ')}\n```")
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if "--help" in parameter.opts:
            continue
        panel = getattr(parameter, "rich_help_panel", None) or "Options"
        panels.setdefault(panel, []).append(line(parameter))
    for panel, lines in panels.items():
        parts.append("\n".join([f"| {panel} | what it does | default |", "|:--|:--|:--|", *lines]))
    for call, columns in CSV.items():
        if call.split()[0] == name:
            rows = [f"| `{column}` | {meaning} |" for column, meaning in columns.items()]
            parts.append("\n".join([f"| Columns of `{call} --format csv` | what it holds |", "|:--|:--|", *rows]))
    return parts


def line(parameter: Any) -> str:
    """One option, as a row of a table."""
    flag = parameter.default is False
    metavar = "" if flag or not parameter.metavar else f" {parameter.metavar}"
    if parameter.param_type_name == "argument":
        call = f"`{parameter.metavar}`"
    else:
        call = ", ".join(f"`{name}`" for name in parameter.opts[:-1]) + ", " * (len(parameter.opts) > 1)
        call += f"`{parameter.opts[-1]}{metavar}`"
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    shown = "" if flag or default is None or default == () else f"`{default}`"
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (call, parameter.help, shown)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
