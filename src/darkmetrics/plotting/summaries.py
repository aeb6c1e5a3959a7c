"""What plots of many groups share: the numbers of one metric as columns, and how groups look."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.monitoring import Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import Key
from darkmetrics.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW = "what evaluate_by returns"


class Column(NamedTuple):
    """One metric of several groups, with an entry for each group."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    lowest: FloatArray
    highest: FloatArray
    labeled_only: FloatArray
    # The fraction of labels that are missing, and the probability that the target is missed (NaN without one).
    missing: FloatArray
    below: FloatArray
    small: BoolArray
    alert: BoolArray

    def take(self, places: Any) -> "Column":
        """The groups at these places."""
        return Column(*(numbers[places] for numbers in self))


def view_of(argument: str, result: GroupedEvaluation | Alerts) -> Alerts:
    """The alerts to draw; with no target where none was asked for."""
    if not isinstance(result, GroupedEvaluation | Alerts):
        raise InputError(argument, f"expected {HOW}, got {type(result).__name__}")
    return result._view


def column_of(view: Alerts, metric: str, groups: Sequence[GroupSummary]) -> Column:
    """The numbers of a metric in these groups."""
    alerts = {alert.key for alert in view if alert.metric == metric}
    figures = [group.metrics[metric] for group in groups]
    numbers = [
        (
            summary.mean,
            summary.low,
            summary.high,
            summary.lowest_possible,
            summary.highest_possible,
            summary.labeled_only,
        )
        for summary in figures
    ]
    shares = [
        (group.counts["missing"] / max(group.counts["rows"], 1), _missed(view, group.key).get(metric, np.nan))
        for group in groups
    ]
    small = np.array([bool(group.shortage(view.min_labels)) for group in groups], dtype=np.bool_)
    alert = np.array([group.key in alerts for group in groups], dtype=np.bool_)
    mean, low, high, lowest, highest, only = np.array(numbers, dtype=np.float64).reshape(-1, 6).T
    missing, below = np.array(shares, dtype=np.float64).reshape(-1, 2).T
    return Column(mean, low, high, lowest, highest, only, missing, below, small, alert)


def _missed(view: Alerts, key: Key) -> Mapping[str, float]:
    """The probability of missing each target, of a group or of all rows together."""
    return view.probability_missed.get(key, {}) if key else view._total_missed


def metric_of(view: Alerts, metric: str | None) -> str:
    """The metric to draw: the one asked for, else the first one that has a target, else the first one."""
    if metric is None:
        return next(iter(view.targets or view.grouped.metrics))
    if metric not in view.grouped.metrics:
        raise unknown_name("metric", "metric", str(metric), list(view.grouped.metrics))
    return metric


def plain_text(text: str, width: int) -> str:
    """A name of whatever signs as text that a plot shows as it is, cut off at that many letters."""
    # Cut first: a sign that is escaped must not lose what escapes it.
    return style.escape_text(style.shorten(text, width))


def draw_means(ax: "Axes", x: FloatArray, y: FloatArray, column: Column, size: float = 6.0) -> None:
    """Draw a dot per group: a diamond for an alert, a hollow gray dot for too few labels."""
    usual: dict[str, Any] = {
        "color": style.ESTIMATE,
        "markeredgecolor": style.background_color(ax),
        "markeredgewidth": 0.15 * size,
    }
    hollow: dict[str, Any] = {"color": style.muted_color(ax), "markerfacecolor": style.background_color(ax)}
    for chosen, marker, look, min_size, label in (
        (~column.small & ~column.alert, "o", usual, 0.0, "mean"),
        (column.small, "o", hollow, 0.0, "mean, too few labels"),
        (column.alert, "D", {"color": style.ink_color(ax)}, 5.0, "mean, alert"),
    ):
        if (chosen & np.isfinite(x) & np.isfinite(y)).any():
            ax.plot(x[chosen], y[chosen], marker, markersize=max(size, min_size), **look, zorder=4, label=label)


def validate_count(argument: str, value: Any) -> int:
    """Validate how many groups or segments are drawn at most."""
    if not is_whole(value) or value < 1:
        raise InputError(argument, repr(value), "It must be a whole number of at least 1.")
    return int(value)


def draw_target(ax: "Axes", target: float | None, *, is_vertical: bool = False) -> None:
    """Draw the line at a target, if there is one."""
    if target is not None:
        look: dict[str, Any] = {
            "color": style.ink_color(ax),
            "linestyle": style.LINES[1],
            "linewidth": 1.2,
            "zorder": 1,
        }
        (ax.axvline if is_vertical else ax.axhline)(target, label=f"target {target:g}", **look)


def judged_ends(column: Column) -> list[FloatArray]:
    """Return the ends of all intervals, except those of groups that are too small to judge if others are not."""
    judged = ~column.small if not column.small.all() else column.small
    return [column.low[judged], column.high[judged]]


def view_values(columns: Sequence[Column], target: float | None) -> FloatArray:
    """Return the values that a picture must show."""
    values = [np.array([np.nan if target is None else target])]
    for column in columns:
        values += [column.mean, column.labeled_only, *judged_ends(column)]
    return np.concatenate(values)
