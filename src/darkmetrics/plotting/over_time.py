"""plot_over_time and plot_trend: one metric over the periods, next to what the labeled rows alone report."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.changes import Trend
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring import Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import Key, key_text
from darkmetrics.monitoring.periods import time_name
from darkmetrics.plotting import style
from darkmetrics.plotting.forests import draw_labeled_only, draw_ticks
from darkmetrics.plotting.summaries import (
    Column,
    column_of,
    draw_means,
    draw_target,
    judged_ends,
    metric_of,
    plain_text,
    view_of,
    view_values,
)
from darkmetrics.tables import chance_text, level_text
from darkmetrics.wording import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths of the bars, of which periods are one apart; the earlier ones look out from behind.
_NOW, _EARLIER = 0.5, 0.84
# The part of the picture, at its foot, that the shares of missing labels get.
_FOOT = 0.17
# More periods than these are drawn without space between them, and with small signs.
_CROWD = 30
# More than these are drawn as one band, since single bars would be hair.
_BAND = 60
# What segment= is if it is left out; None is the segment of rows that have none.
_ANY: Any = object()
# Letters that fit side by side under the axis.
_LETTERS = 44


def plot_over_time(
    result: GroupedEvaluation | Alerts,
    metric: str | None = None,
    *,
    segment: GroupLike = _ANY,
    before: GroupedEvaluation | Alerts | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot one metric over the periods, with the fraction of labels that are missing.

    Each period has the interval (bar), the mean (dot) and what the labeled rows alone report (hollow square). The foot
    shows the fraction of labels that are missing: recent periods have many, and wide intervals. A diamond marks an
    alert; periods with too few labels are hollow.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        The result of `evaluate_by`, or its alerts: with `time`, or by a single column of dates, which may be text
        ("2026-04").
    metric : str, optional
        Which metric to draw; by default the first one that has a target, else the first one.
    segment : optional
        Which segment to draw, if there are several: its value (None for rows that have none), or a tuple of values if
        segments have several columns.
    before : GroupedEvaluation or Alerts, optional
        The same periods as evaluated earlier, when fewer labels had arrived: hatched bars behind, which show what late
        labels have changed and whether they changed it within the intervals.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.monitoring import evaluate_by
    >>> columns = {"month": [], "label": [], "score": []}
    >>> for number in range(400):
    ...     month, score = number // 100 + 1, number * 7 % 100 / 100
    ...     columns["month"].append(f"2026-{month:02}")
    ...     columns["label"].append(None if number % 5 < month else int(number * 13 % 100 < 100 * score))
    ...     columns["score"].append(score)
    >>> import pandas as pd
    >>> result = evaluate_by("label", "score", data=pd.DataFrame(columns), by="month", metrics="recall")
    >>> ax = dm.plotting.plot_over_time(result)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('month', 'recall')
    """
    view = view_of("result", result)
    result, name = view.grouped, metric_of(view, metric)
    key, line = _select_segment(view, segment, name)
    earlier = None if before is None else _earlier(result, before, key, name, line.periods)
    ax = style.new_axes(ax)
    x = places_of(line.periods)
    target = view.targets.get(name)
    shown = [view_values([line.column], target), *([] if earlier is None else judged_ends(earlier))]
    floor = _set_view(ax, np.concatenate(shown))
    if earlier is not None:
        width = 1.0 if x.size > _CROWD else _EARLIER
        _draw_bars(ax, x, earlier, floor, width, "as evaluated before", hatch="////", band=x.size > _BAND)
    draw_periods(ax, x, line.column, level_text(result.confidence_level), floor)
    draw_target(ax, target)
    _draw_missing(ax, x, line.column, earlier)
    name_periods(ax, x, [key_text(period, result.period) for period in line.periods])
    of_segment = f"\n{plain_text(', '.join(map(key_text, key)), 30).strip()}" if key else ""
    if np.isnan(line.column.mean).all() and not line.column.small.any():
        style.draw_message(ax, "undefined (0/0) in every period")
    return style.finish_plot(
        ax,
        x=style.wrap_name(line.name, 40),
        y=style.wrap_name(name, 30) + of_segment,
        title="" if key else style.describe_rows(result.total.data.counts()),
        notes=[style.describe_scope(result.total.scope)],
        grid="y",
    )


class _Line(NamedTuple):
    """The periods of one segment."""

    name: str  # of the column of time
    periods: list[Any]
    column: Column


def _select_segment(view: Alerts, segment: GroupLike, metric: str) -> tuple[Key, _Line]:
    """The segment to draw and its periods."""
    lines = lines_of(view, metric)
    chosen = _segment(lines, segment, [name for name in view.grouped.names if name != lines[next(iter(lines))].name])
    return chosen, lines[chosen]


def lines_of(view: Alerts, metric: str) -> dict[Key, _Line]:
    """The periods of each segment."""
    result = view.grouped
    time = time_name(result.names, result.time, result.groups)
    if time is None:
        raise InputError(
            "result",
            f"has no periods, only {' and '.join(map(repr, result.names))}",
            "",
            f"Pass dates to evaluate_by, such as {setting('time', 'booked')}, {setting('period', 'month')}, or an "
            f"ordered column as {setting('time')}.",
        )
    place = result.names.index(time)
    lines: dict[Key, list[GroupSummary]] = {}
    for key, group in result.groups.items():
        lines.setdefault(key[:place] + key[place + 1 :], []).append(group)
    found = {}
    for key, own in lines.items():
        groups = [group for group in own if group.key[place] is not None] or own
        found[key] = _Line(time, [group.key[place] for group in groups], column_of(view, metric, groups))
    return found


def _segment(lines: dict[Key, _Line], segment: GroupLike, names: list[str]) -> Key:
    if segment is _ANY and len(lines) == 1:
        return next(iter(lines))
    if not names:
        raise InputError("segment", f"{segment!r}, but there are periods only", "", "Leave it out.")
    key = segment if isinstance(segment, tuple) else (segment,)
    if key in lines:
        return key
    known = [repr(one[0] if len(one) == 1 else one) for one in lines]
    there = f"{', '.join(known[:5])}{f' and {len(known) - 5:,} more' if len(known) > 5 else ''}"
    found = f"there are {len(lines):,} of {', '.join(names)}" if segment is _ANY else f"there is none {segment!r}"
    all_of_them = ", or draw all with plot_segments" if segment is _ANY else ""
    raise InputError("segment", found, "", f"Pass the one to draw{all_of_them}: {there}.")


def _earlier(result: GroupedEvaluation, before: Any, chosen: Key, metric: str, periods: list[Any]) -> Column:
    """What was known of the same periods earlier; nan where nothing was."""
    view = view_of("before", before)
    before = view.grouped
    if before.names != result.names or before.time != result.time:
        there, here = (", ".join(map(repr, one.names)) for one in (before, result))
        raise InputError("before", f"is by {there}, but result is by {here}", "", "Evaluate both by the same columns.")
    if metric not in before.metrics:
        raise InputError("before", f"has no {metric!r}", "", "Evaluate it with the same metrics.")
    place = len(chosen) if result.time is not None else 0
    keys = [(*chosen[:place], period, *chosen[place:]) for period in periods]
    groups = [before.groups.get(key) for key in keys]
    known = column_of(view, metric, [group for group in groups if group is not None])
    filled = [np.full(len(keys), np.nan if numbers.dtype.kind == "f" else False) for numbers in known]
    for numbers, values in zip(filled, known, strict=True):
        numbers[[group is not None for group in groups]] = values
    return Column(*filled)


def places_of(periods: Sequence[Any]) -> FloatArray:
    """Where periods stand: one apart, and dates as far apart as they are, so that gaps are seen."""
    if len(periods) < 2 or not all(isinstance(period, dt.date) for period in periods):
        return np.arange(len(periods), dtype=np.float64)
    first = periods[0]
    days = np.array([(period - first) / dt.timedelta(days=1) for period in periods])
    # Months differ in length, which no reader wants to see.
    return np.concatenate([[0.0], np.cumsum(np.maximum(1.0, np.rint(np.diff(days) / np.median(np.diff(days)))))])


def draw_periods(
    ax: "Axes", x: FloatArray, column: Column, level: str, floor: float, *, small_signs: bool = False
) -> None:
    """Intervals, means and labeled-only values of the periods at these places, above the value `floor`."""
    crowd, band = x.size > _CROWD, x.size > _BAND
    small, label, width = column.small, f"{level} interval", 1.0 if crowd else _NOW
    _draw_bars(ax, x[~small], column.take(~small), floor, width, label, band=band)
    label = f"{label}, too few labels"
    _draw_bars(ax, x[small], column.take(small), floor, width, label, hatch=None, band=band)
    _draw_values(ax, x, column, (1.8, 2.4) if crowd else (3.0, 3.5) if small_signs else (4.5, 6.0))


def _draw_bars(
    ax: "Axes",
    x: FloatArray,
    column: Column,
    floor: float,
    width: float,
    label: str,
    hatch: str | None = "",
    *,
    band: bool = False,
) -> None:
    """Intervals; hatched and pale if they are earlier ones, without a filling if there are too few labels.

    A `band` has no edges, and is gray where there are too few labels.
    """
    # Where there is no law, as with no labels at all, what is possible takes its place.
    no_law = np.isnan(column.low) & column.small
    ends = np.where(no_law, column.lowest, column.low), np.where(no_law, column.highest, column.high)
    # A period with too few labels and an interval of no width has its hollow dot alone.
    seen = np.isfinite(ends[0]) & (ends[1] > floor) & ~(column.small & ~(ends[1] > ends[0]))
    if not seen.any():
        return
    look: dict[str, Any] = {"color": style.ESTIMATE, "alpha": style.area_alpha(ax, 0.35), "linewidth": 0.0}
    if hatch is None and band:
        look["color"] = style.muted_color(ax)
    elif hatch is None:
        look = {"facecolor": "none", "edgecolor": style.muted_color(ax), "linewidth": 1.0, "linestyle": style.LINES[3]}
    elif hatch:
        look = {**style.earlier_look(ax), "linewidth": 0.0 if band else 0.8}
    low, high = np.maximum(ends[0][seen], floor), ends[1][seen]
    if band:
        # Each period as two points, so that one alone is seen, and gaps stay gaps.
        places = (x[seen][:, None] + np.array([-0.5, 0.5])).ravel()
        apart = np.flatnonzero(np.diff(x[seen]) > 1.0) * 2 + 2
        places, low, high = (np.insert(v, apart, np.nan) for v in (places, np.repeat(low, 2), np.repeat(high, 2)))
        ax.fill_between(places, low, high, label=label, **look)
    else:
        ax.bar(x[seen], high - low, width, bottom=low, label=label, **look)


def _draw_values(ax: "Axes", x: FloatArray, column: Column, sizes: tuple[float, float]) -> None:
    """Means on a line, which stops where a period has no rows or no value, and labeled-only values."""
    apart = np.flatnonzero(np.diff(x) > 1.0) + 1
    places, mean = np.insert(x, apart, np.nan), np.insert(column.mean, apart, np.nan)
    ax.plot(places, mean, color=style.ESTIMATE, linewidth=1.2, zorder=3)
    draw_labeled_only(ax, x, column.labeled_only, sizes[0])
    draw_means(ax, x, column.mean, column, sizes[1])


def _set_view(ax: "Axes", values: FloatArray) -> float:
    """Show all values above the foot; return the value at which the foot ends."""
    low, high = style.set_view(ax, "y", values, 0.06)
    ax.set_ylim(low - (high - low) * _FOOT / (1.0 - _FOOT), high)
    # Ticks next to the foot would be read as fractions.
    ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])
    return low


def _draw_missing(ax: "Axes", x: FloatArray, column: Column, earlier: Column | None) -> None:
    """Shares of missing labels at the foot, with a scale of their own at the right."""
    foot = ax.twinx()
    crowd = x.size > _CROWD
    if earlier is not None:
        share, width = np.nan_to_num(earlier.missing), 1.0 if crowd else _EARLIER
        foot.bar(x, share, width, **style.earlier_look(ax))
    foot.bar(x, column.missing, 1.0 if crowd else _NOW, color=style.muted_color(ax))
    foot.axhline(1.0, color=style.earlier_look(ax)["edgecolor"], linewidth=0.8)
    foot.set_ylim(0.0, 1.0 / _FOOT)
    foot.set_yticks([0.0, 0.5, 1.0], ["0%", "missing", "100%"], fontsize="x-small")
    foot.tick_params(axis="y", length=0.0)
    ax.set_xlim(float(x.min()) - 0.6, float(x.max()) + 0.6)


def name_periods(ax: "Axes", x: FloatArray, names: list[str], letters: int = _LETTERS) -> None:
    """As many names as fit, the last one among them."""
    shown = [plain_text(name, 20) for name in names]
    step = max(1, -(-len(names) * (max(map(len, shown)) + 2) // letters))
    places = list(range(len(names) - 1, -1, -step))
    ax.set_xticks(x[places].tolist(), [shown[place] for place in places])


def plot_trend(trend: Trend, *, ax: "Axes | None" = None) -> "Axes":
    """Plot a metric over the periods with the straight line of its trend.

    Bars and ticks are intervals and means of the periods; the line has the mean slope, the band its interval.

    Parameters
    ----------
    trend : Trend
        The result of `GroupedEvaluation.trend`.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> rows = [("2026-05", 1, 0.9), ("2026-05", 0, 0.1), ("2026-06", 1, 0.9), ("2026-06", 0, 0.7)]
    >>> table = pd.DataFrame(rows, columns=["month", "y", "p"])
    >>> result = dm.evaluate_by("y", "p", data=table, by="month", metrics="accuracy")
    >>> dm.plotting.plot_trend(result.trend("accuracy")).get_ylabel()
    'accuracy'
    """
    style.validate_result("trend", trend, Trend, "what trend returns")
    ax = style.new_axes(ax)
    x, mean = np.array(trend.positions), np.array(trend.means)
    low, high = np.array(trend.intervals).T
    ax.vlines(x, low, high, color=style.ESTIMATE, linewidth=4.0, label=f"{level_text(trend.confidence_level)} interval")
    draw_ticks(ax, x, mean, "_")
    if np.isnan(trend.distribution.mean()):
        style.draw_message(ax, "undefined (0/0) in one of the periods")
    else:
        slopes = np.array([trend.distribution.mean(), *trend.distribution.interval(trend.confidence_level)])
        # Steeper and flatter lines cross at the mean period.
        at = np.array([x.min(), x.mean(), x.max()])
        lines = mean.mean() + np.multiply.outer(slopes, at - x.mean())
        label = f"{style.format_value(float(slopes[0]), float(slopes[2] - slopes[1]))} per {trend.unit}"
        ax.plot(at, lines[0], color=style.LABELED_ONLY, linestyle=style.LINES[1], label=label)
        look: dict[str, Any] = {"color": style.LABELED_ONLY, "alpha": style.area_alpha(ax, 0.2), "linewidth": 0.0}
        ax.fill_between(at, lines[1:].min(axis=0), lines[1:].max(axis=0), **look)
    falling, rising = trend.probability_decreasing(), trend.probability_increasing()
    direction, probability = ("falling", falling) if not falling < rising else ("rising", rising)
    name_periods(ax, x, list(trend.periods))
    notes = [f"{direction}: {chance_text(probability)}", style.describe_scope(trend.scope)]
    return style.finish_plot(ax, x=trend.unit, y=style.wrap_name(trend.metric.name, 30), notes=notes, grid="y")
