"""What plots of many groups share: the numbers of one metric as columns, and how groups look."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.monitoring import Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import Key
from darkmetrics.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW = "what evaluate_by returns"


class Column(NamedTuple):
    """One metric of several groups, an entry each."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    lowest: FloatArray
    highest: FloatArray
    labeled_only: FloatArray
    # The share of labels that are missing, and the probability that the target is missed (NaN without one).
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
        raise InputError(f"{argument}: expected {HOW}, got {type(result).__name__}.")
    return result._view


def column_of(view: Alerts, metric: str, groups: Sequence[GroupSummary]) -> Column:
    """The numbers of a metric in these groups."""
    alerts = {alert.key for alert in view if alert.metric == metric}
    figures = [group.metrics[metric] for group in groups]
    numbers = [
        (one.mean, one.low, one.high, one.lowest_possible, one.highest_possible, one.labeled_only) for one in figures
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
    return style.plain(style.shortened(text, width))


def draw_means(ax: "Axes", x: FloatArray, y: FloatArray, column: Column, size: float = 6.0) -> None:
    """A dot per group; a diamond where there is an alert, an open and grey dot where there are too few labels."""
    usual: dict[str, Any] = {
        "color": style.ESTIMATE,
        "markeredgecolor": style.paper(ax),
        "markeredgewidth": 0.15 * size,
    }
    for chosen, marker, look, least, label in (
        (~column.small & ~column.alert, "o", usual, 0.0, "mean"),
        (column.small, "o", {"color": style.grey(ax), "markerfacecolor": style.paper(ax)}, 0.0, "mean, too few labels"),
        (column.alert, "D", {"color": style.ink(ax)}, 5.0, "mean, alert"),
    ):
        if (chosen & np.isfinite(x) & np.isfinite(y)).any():
            ax.plot(x[chosen], y[chosen], marker, markersize=max(size, least), **look, zorder=4, label=label)


def draw_labeled_only(ax: "Axes", x: FloatArray, y: FloatArray, size: float = 4.5) -> None:
    """An open square per group: what dropping the unlabeled rows would have said."""
    seen = np.isfinite(x) & np.isfinite(y)
    if seen.any():
        look: dict[str, Any] = {
            "markerfacecolor": style.paper(ax),
            "color": style.LABELED,
            "markeredgewidth": 0.28 * size,
        }
        ax.plot(x[seen], y[seen], "s", markersize=size, **look, zorder=3.5, label="labeled only")
