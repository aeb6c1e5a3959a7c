"""darkmetrics monitor."""

from __future__ import annotations  # names of the library in annotations must not import it

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import darkmetrics as dm
from darkmetrics._text import counted, whole_number_from
from darkmetrics._vocabulary import PERIODS
from darkmetrics.cli.evaluation import columns_assumed, label_model_of, metrics_wanted, targets_from, zero_division_of
from darkmetrics.cli.inputs import (
    Rows,
    can_be_scanned,
    files_of,
    load_reference,
    names_of,
    paths_of,
    read_rows,
    scanned,
)
from darkmetrics.cli.messages import WordedError, for_the_command_line, worded
from darkmetrics.cli.options import (
    CheckedOptions,
    CommonOptions,
    DecisionOptions,
    EstimateOptions,
    ScopeOption,
    TargetOption,
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
    say,
    write_output,
)
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.cli.settings import command_line

EXAMPLE = (
    "Example: darkmetrics monitor 2026.parquet --label fraud --score p --time booked --every month --target recall=0.8"
)

_PICTURES = (".png", ".svg", ".pdf")
# Rows of a table that a person reads; CSV and JSON have all groups.
_SHOWN = 40


@dataclass(frozen=True)
class GroupOptions:
    """Which rows belong together."""

    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COL", help="A column whose values tell groups apart; again for more."),
    ] = None
    time: Annotated[
        str | None, typer.Option("--time", metavar="COL", help="A column of dates, which --every cuts into periods.")
    ] = None
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="PERIOD",
            help=f"With --time: how long a period is: {either(PERIODS)}.",
            autocompletion=completing(*PERIODS),
        ),
    ] = None


@dataclass(frozen=True)
class MonitorOptions(ScopeOption, GroupOptions, TargetOption, DecisionOptions, EstimateOptions):
    """What an evaluation of many groups takes."""


def main(
    options: MonitorOptions,
    common: CheckedOptions,
    context: typer.Context,
    fdr: Annotated[
        float,
        typer.Option("--fdr", metavar="Q", help="Expected share of false ones among the alerts, at most."),
    ] = 0.05,
    correction: Annotated[
        str,
        typer.Option(metavar="bh|by", help="How --fdr is kept: bh for independent groups, by for any."),
    ] = "bh",
    min_labels: Annotated[
        int,
        typer.Option(metavar="N", help="A group with fewer positive or negative labels is marked as too small."),
    ] = 5,
    buckets: Annotated[
        str,
        typer.Option(
            metavar="auto|exact|N",
            help="Scores exactly as they are, or in N buckets per group; auto: exact up to a million rows.",
        ),
    ] = "auto",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD", help="Alerts look at this period, such as 2026-05, and later ones; others are shown."
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", help="Alerts look at the N newest periods; others are shown.")
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Alerts that are known: what --format json wrote before. Only new ones make exit code 1. May be the "
            "--output, which is then read first and need not exist yet.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Processes; -1 for one per core.")] = 1,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Draw the first target, or metric, over time or over groups: .png, .svg, .pdf."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the --report.")] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a page as well: alerts, periods, groups and the total, in one .html."),
    ] = None,
) -> int:
    """How good is the classifier in each segment and period, and which of them miss a target?

    Groups are told apart by --by, --time or both. An alert is a group that misses its --target; among all alerts at
    most the share --fdr is false, on average. With an alert the exit code is 1; with --known, with a new alert.
    """
    check_format(common.result_format, options.target, "--target")
    inputs = [*paths_of(options.file), options.reference]
    check_writable(common.output, *inputs)
    known = _known_file(known, common)
    _check_plot(plot, common.output, [*inputs, known])
    check_report(report, [common.output, plot], [*inputs, known])
    if not options.by and options.time is None:
        raise WordedError("--by: no column that tells groups apart. Name one, or a column of dates as --time.")
    targets = targets_from(options.target)
    with progress("reading") as begin:
        begin()
        table = _load_table(options)
    with in_words(table.names), table.counting(), warnings.catch_warnings():
        for kind in (dm.MissingnessWarning, dm.CalibrationWarning, dm.UndefinedMetricWarning):
            warnings.simplefilter("ignore", kind)  # the notes below the table say it
        result = dm.evaluate_by(
            table.frame,
            options.by,
            time=options.time,
            every=options.every,
            targets=targets,
            metrics=metrics_wanted(options.metric, targets),
            false_discovery_rate=fdr,
            correction=correction,
            min_labels=min_labels,
            since=since,
            last=last,
            known=known,
            buckets=_buckets(buckets),
            rng=common.seed,
            n_jobs=jobs,
            **_settings(table, options),
        )
    if plot is not None:
        with in_words({}):
            picture = _picture(result, plot)
        write_output(plot, picture, option="--plot")
    if report is not None:
        from darkmetrics.report.groups import groups_page

        source = {"file": table.source, **{f"{role} column": name for role, name in table.names.items()}}
        write_output(
            report, groups_page(result, title=title, source=source | {"command": command_line(context)}), "--report"
        )
    return publish(_as_result(result), common.result_format, common.output)


def _load_table(options: MonitorOptions) -> Rows:
    """The table that the options name."""
    groups = list(dict.fromkeys([*(options.by or []), *([] if options.time is None else [options.time])]))
    with worded():
        files = files_of(options)
        names = names_of(files[0], options, {"pred": options.pred, **columns_assumed(options)})
        if can_be_scanned(files):
            return scanned(files, names, options, groups)
        rows = read_rows(files, names, options, groups)
    with in_words(names):
        # Text and Arrow are checked as the other commands check them: errors name rows.
        dm.EvaluationSet(**rows.data(options.threshold))
        frame = rows.table(options.by or [], options.time)
    return replace(rows, columns={}, read={}, frame=frame)


def _settings(table: Rows, options: MonitorOptions) -> dict[str, Any]:
    """The arguments that say how the rows are to be read, and what is assumed of them."""
    return {
        **{{"stratum": "strata"}.get(part, part): name for part, name in table.parts.items()},
        "threshold": options.threshold,
        "as_of": options.as_of,
        "maturity": options.maturity,
        "label_model": label_model_of(options),
        "missingness": options.missingness,
        "reference": load_reference(options.reference, table.names, table.pos_label),
        "method": options.method,
        "zero_division": zero_division_of(options),
        "confidence_level": options.confidence_level,
        "scope": options.scope,
    }


def _buckets(text: str) -> str | int:
    number = whole_number_from(text)
    return text if number is None else number


def _check_plot(plot: str | None, output: str | None, inputs: list[str | None]) -> None:
    """Refuse a picture that could not be drawn or written before the work and not after it."""
    from importlib.util import find_spec

    if plot is None:
        return
    check_writable(plot, *inputs, option="--plot")
    if Path(plot).suffix.lower() not in _PICTURES:
        raise WordedError(f"--plot: {plot} must end in {', '.join(_PICTURES)}, which says what to draw.")
    if output is not None and Path(plot).resolve() == Path(output).resolve():
        raise WordedError(f"--plot: {plot} is the --output as well. Name another file.")
    if find_spec("matplotlib") is None:
        raise WordedError("--plot: needs matplotlib; pip install 'darkmetrics[plot]'.")


def _known_file(known: str | None, common: CommonOptions) -> str | None:
    """The file of known alerts; None in the first night of a file that this very run will write."""
    if known is None or common.output is None or Path(known).resolve() != Path(common.output).resolve():
        return known
    if common.result_format != "json":
        raise WordedError(f"--known: {known} is the --output as well, which must then be JSON: add --format json.")
    if Path(known).exists():
        return known
    say(f"--known: {known} is not there yet, so that every alert is new.")
    return None


def _picture(result: dm.GroupedEvaluation, plot: str) -> bytes:
    """A picture over time where there is one line of periods, else one of the groups."""
    import io

    import matplotlib as mpl

    mpl.use("Agg")  # a picture in a file needs no screen
    from darkmetrics.monitoring.periods import period_name

    over_time = len(result.names) == 1 and period_name(result.names, result.period, result.groups) is not None
    ax = result.plot_over_time() if over_time else result.plot()
    stream = io.BytesIO()
    ax.figure.savefig(stream, format=Path(plot).suffix[1:].lower(), dpi=150)
    return stream.getvalue()


def _as_result(result: dm.GroupedEvaluation) -> Result:
    header, rows = result.table(most=_SHOWN)
    left_out = len(result) - _SHOWN
    tables = [Table(header, rows, words=len(result.names))]
    above = result.words()
    if left_out > 0:
        tables[:0] = [_alerts(result)] if result.alerts else []
        first = ", those with an alert first" if result.alerts else ""
        above.append(f"{_SHOWN} of {len(result):,} groups{first}; --format csv has all.")
    return Result(
        result.to_dict(),
        result.records(),
        tables,
        above=above,
        below=[for_the_command_line(note) for note in result.notes()],
        checks=_checks(result),
        closing=_closing(result) if result.targets else "",
        about=(*result.names, "metric" + "_" * ("metric" in result.names), "scope" + "_" * ("scope" in result.names)),
    )


def _closing(result: dm.GroupedEvaluation) -> str:
    """Whether there is an alert that makes exit code 1, in a line."""
    new = sum(alert.new for alert in result.alerts)
    known = f", {len(result.alerts) - new:,} known" if len(result.alerts) > new else ""
    what = "alert" if result.gone is None else "new alert"
    return f"FAIL: {counted(new, what)}{known}." if new else f"PASS: no {what}{known}."


def _checks(result: dm.GroupedEvaluation) -> list[Check]:
    """Each target of each group: it fails with a new alert; one that is known, or that nobody can judge, is skipped."""
    from darkmetrics.monitoring.alerts import probability_text, side_of

    alerts = {(alert.key, alert.metric): alert for alert in result.alerts}
    checks = []
    for key, group in result.groups.items():
        for name, target in result.targets.items():
            alert, where = alerts.get((key, name)), result.label(key)
            wanted = f"{name} {side_of(result.metrics[name])} {target:g}"
            words = f"{where} misses {wanted} with probability {probability_text(group.chance_missed[name])}"
            if alert is not None:
                passed: bool | None = False if alert.new else None
                words += "" if result.gone is None else f", {alert.age}"
            elif (key, name) in result.q_values:
                passed = True
            else:
                passed, words = None, f"{where}: {group.too_small or 'not looked at'}"
            checks.append(Check(wanted, passed, f"{words}.", group=where))
    return checks


def _alerts(result: dm.GroupedEvaluation) -> Table:
    from darkmetrics.monitoring.alerts import probability_text

    rows = [
        [
            alert.group,
            f"{alert.metric} {alert.side} {alert.target:g}",
            probability_text(alert.probability),
            f"{alert.q_value:.2g}",
            *([] if result.gone is None else [alert.age]),
        ]
        for alert in result.alerts
    ]
    header = ["alert", "target", "P(missed)", "q-value", *([] if result.gone is None else [""])]
    return Table(header, rows, words=2)
