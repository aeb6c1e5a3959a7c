"""darkmetrics monitor."""

from __future__ import annotations  # names of the library in annotations must not import it

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import darkmetrics as dm
from darkmetrics._text import counted, whole_number_from
from darkmetrics._vocabulary import PERIODS
from darkmetrics.cli.evaluation import add_metrics, settings_of, targets_from
from darkmetrics.cli.inputs import load, paths_of, read_reference
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import (
    ALERTS,
    GROUPS,
    OUTPUT,
    CheckedOptions,
    CommonOptions,
    EstimateOptions,
    PredictionOptions,
    ReportOptions,
    ScopeOption,
    TargetOption,
    either,
    number,
    option,
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
from darkmetrics.exceptions import InputError

if TYPE_CHECKING:
    from darkmetrics.monitoring.alerts import Alerts

EXAMPLE = (
    "Example: darkmetrics monitor 2026.parquet --label fraud --score p --time booked --period month --target recall=0.8"
)

_PICTURES = (".png", ".svg", ".pdf")
# Rows of a table that a person reads; CSV and JSON have all groups.
_SHOWN = 40


@dataclass(frozen=True)
class GroupOptions:
    """Columns of groups and periods."""

    by: Annotated[list[str] | None, option(GROUPS, "COL", "Column of segments; each value is a group. Repeatable.")] = (
        None
    )
    time: Annotated[str | None, option(GROUPS, "COL", "Column of dates.")] = None
    period: Annotated[str | None, option(GROUPS, "PERIOD", f"With --time: {either(PERIODS)}.", choices=PERIODS)] = None
    min_labels: Annotated[
        int,
        number(GROUPS, "N", "A group with fewer positive or negative labels is too small to be judged.", whole=True),
    ] = 5
    score_bins: Annotated[
        str,
        option(GROUPS, "auto|exact|N", "Scores as they are, or in N bins per group; auto: exact to a million rows."),
    ] = "auto"
    jobs: Annotated[int, number(GROUPS, "N", "Processes; -1 for one per core.", whole=True)] = 1


@dataclass(frozen=True)
class AlertOptions(TargetOption):
    """Targets and alerts."""

    fdr: Annotated[float, number(ALERTS, "Q", "Largest expected fraction of false alerts among all alerts.")] = 0.05
    correction: Annotated[
        str, option(ALERTS, "bh|by", "Control of --fdr: bh for independent groups, by for any.", choices=("bh", "by"))
    ] = "bh"
    since: Annotated[str | None, option(ALERTS, "PERIOD", "Only this period, such as 2026-05, and later alert.")] = None
    last_periods: Annotated[int | None, number(ALERTS, "N", "Only the N newest periods alert.", whole=True)] = None
    known_alerts: Annotated[
        str | None, option(ALERTS, "FILE", "Earlier --output in JSON: alerts in it are not new. May be the --output.")
    ] = None


@dataclass(frozen=True)
class MonitorOptions(AlertOptions, GroupOptions, ScopeOption, PredictionOptions, EstimateOptions):
    """Options of an evaluation of many groups."""


def main(
    options: MonitorOptions,
    common: CheckedOptions,
    page: ReportOptions,
    plot: Annotated[
        str | None, option(OUTPUT, "FILE", "Draw the first target, or metric, by time or group: .png, .svg, .pdf.")
    ] = None,
) -> int:
    """Evaluate every segment and period, and alert on those that miss a target.

    Groups are the values of --by, the periods of --time, or both. An alert is a group that misses its --target; --fdr
    bounds the expected fraction of false alerts. With an alert the exit code is 1; with --known-alerts, with a new one.
    """
    check_format(common.result_format, options.target, "--target")
    inputs = [*paths_of(options.file), options.reference]
    check_writable(common.output, *inputs)
    known = _known_file(options.known_alerts, common)
    _check_plot(plot, common.output, [*inputs, known])
    check_report(page.report, [common.output, plot], [*inputs, known])
    if not options.by and options.time is None:
        raise InputError("--by", "no column of groups", "", "Pass one, or a column of dates as --time.")
    targets = targets_from(options.target)
    from darkmetrics.monitoring.alerts import alerts_of, check_settings

    with progress("reading") as begin:
        begin()
        rows = load(options, by=options.by or [], time=options.time)
    with in_words(rows.names), rows.counting(), warnings.catch_warnings():
        for kind in (dm.MissingnessWarning, dm.CalibrationWarning, dm.UndefinedMetricWarning):
            warnings.simplefilter("ignore", kind)  # the notes below the table have them
        n_bins = whole_number_from(options.score_bins)
        metrics = add_metrics(options.metric, targets)
        names = [*(options.by or []), *([] if options.time is None else [options.time])]
        settings = check_settings(
            targets,
            dm.metrics.metrics_from(metrics),
            names,
            options.period,
            false_discovery_rate=options.fdr,
            correction=options.correction,
            min_labels=options.min_labels,
            since=options.since,
            last_periods=options.last_periods,
            known_alerts=known,
        )
        grouped = dm.evaluate_by(
            **rows.arguments,
            by=options.by,
            time=options.time,
            period=options.period,
            threshold=options.threshold,
            metrics=metrics,
            missingness=mechanism_from(options, read_reference(options.reference, rows.names, rows.pos_label)),
            score_bins=options.score_bins if n_bins is None else n_bins,
            rng=common.seed,
            n_jobs=options.jobs,
            **settings_of(options),
        )
        result = alerts_of(grouped, settings, {})
    if plot is not None:
        with in_words({}):
            picture = _picture(result, plot)
        write_output(plot, picture, option="--plot")
    if page.report is not None:
        result.report(page.report, title=page.title, source=rows.described | {"command": command_line()})
    return publish(_as_result(result), common.result_format, common.output)


def _check_plot(plot: str | None, output: str | None, inputs: list[str | None]) -> None:
    """Refuse, before the work, a picture that could not be drawn or written."""
    from importlib.util import find_spec

    if plot is None:
        return
    check_writable(plot, *inputs, option="--plot")
    if Path(plot).suffix.lower() not in _PICTURES:
        raise InputError("--plot", str(plot), f"It must end in {', '.join(_PICTURES)}, which sets what to draw.")
    if output is not None and Path(plot).resolve() == Path(output).resolve():
        raise InputError("--plot", f"{plot} is the --output as well", "", "Pass another file.")
    if find_spec("matplotlib") is None:
        raise InputError("--plot", "matplotlib is not installed", "", "pip install 'darkmetrics[plot]'.")


def _known_file(known: str | None, common: CommonOptions) -> str | None:
    """Return the file of known alerts; None if it is the output of this run, which does not exist yet."""
    if known is None or common.output is None or Path(known).resolve() != Path(common.output).resolve():
        return known
    if common.result_format != "json":
        raise InputError(
            "--known-alerts",
            f"{known} is the --output as well",
            "The output must then be JSON.",
            "Pass --format json.",
        )
    if Path(known).exists():
        return known
    say(f"--known-alerts: {known} is not there yet, so that every alert is new.")
    return None


def _picture(result: Alerts, plot: str) -> bytes:
    """Return a picture over time if periods are the only groups, else one of the groups."""
    import io

    import matplotlib as mpl

    mpl.use("Agg")  # a picture in a file needs no screen
    from darkmetrics.monitoring.periods import time_name

    grouped = result.grouped
    over_time = len(grouped.names) == 1 and time_name(grouped.names, grouped.time, grouped.groups) is not None
    ax = result.plot_over_time() if over_time else result.plot()
    stream = io.BytesIO()
    ax.figure.savefig(stream, format=Path(plot).suffix[1:].lower(), dpi=150)
    return stream.getvalue()


def _as_result(result: Alerts) -> Result:
    from darkmetrics.monitoring.wording import records_of

    header, rows = result._table(most=_SHOWN)
    names, left_out = result.grouped.names, len(result.grouped) - _SHOWN
    above = result._words()
    if left_out > 0:
        first = ", those with an alert first" if result else ""
        above.append(f"{_SHOWN} of {len(result.grouped):,} groups{first}; --format csv has all.")
    return Result(
        result.to_dict(),
        records_of(result),
        [Table(header, rows, words=result._text_columns)],
        above=above,
        below=[worded(note) for note in result._notes()],
        checks=_checks(result),
        closing=_closing(result) if result.targets else "",
        about=(*names, "metric" + "_" * ("metric" in names), "scope" + "_" * ("scope" in names)),
    )


def _closing(result: Alerts) -> str:
    """Return a line on whether an alert makes the exit code 1."""
    new = sum(alert.new for alert in result)
    known = f", {len(result) - new:,} known" if len(result) > new else ""
    what = "alert" if result.resolved is None else "new alert"
    return f"FAIL: {counted(new, what)}{known}." if new else f"PASS: no {what}{known}."


def _checks(result: Alerts) -> list[Check]:
    """Return a check per target and group: it fails with a new alert, and is skipped if known or not judged."""
    from darkmetrics.monitoring.wording import probability_text, target_text

    alerts = {(alert.key, alert.metric): alert for alert in result}
    checks = []
    for key, missed in result.probability_missed.items():
        for name in result.targets:
            alert, where = alerts.get((key, name)), result.grouped.label(key)
            wanted = target_text(result, name)
            words = f"{where} misses {wanted} with probability {probability_text(missed[name])}"
            if alert is not None:
                passed: bool | None = False if alert.new else None
                words += "" if result.resolved is None else f", {alert.age}"
            elif (key, name) in result.q_values:
                passed = True
            else:
                passed, words = None, f"{where}: {result.too_small.get(key, 'not looked at')}"
            checks.append(Check(wanted, passed, f"{words}.", group=where))
    return checks
