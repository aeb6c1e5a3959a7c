"""plot_groups: one metric in many groups, one line each."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring import Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import key_text
from darkmetrics.monitoring.wording import probability_text
from darkmetrics.plotting import style
from darkmetrics.plotting.forests import (
    BELOW,
    GROUP_ROW,
    draw_bounds,
    draw_column,
    draw_intervals,
    draw_labeled_only,
    forest_axes,
    set_forest_view,
)
from darkmetrics.plotting.summaries import (
    Column,
    column_of,
    draw_means,
    draw_target,
    metric_of,
    plain_text,
    validate_count,
    view_of,
    view_values,
)
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters of a name that stand on one line.
_LETTERS = 20


def plot_groups(
    result: GroupedEvaluation | Alerts,
    metric: str | None = None,
    *,
    period: GroupLike = None,
    most: int = 20,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot one metric in many groups, one row each.

    Each row has the mean (dot), the interval (bar), what the labeled rows alone report (hollow square, a little lower)
    and the bounds over all label assignments (faint whiskers). A diamond marks an alert; groups with too few labels are
    hollow. A target is a dashed line, and the probability that a group misses it is at the right.

    The group that most likely misses the target is at the top; without a target, the group with the worst mean.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        The result of `evaluate_by`, or its alerts.
    metric : str, optional
        Which metric to draw; by default the first one that has a target, else the first one.
    period : optional
        Which period to draw, if there are segments and periods; the newest one by default.
    most : int, default 20
        Maximum number of groups; a note says how many are not drawn: those furthest down.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as high as the groups need.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.monitoring import evaluate_by
    >>> columns = {"country": [], "label": [], "score": []}
    >>> for number in range(300):
    ...     score = number * 7 % 100 / 100
    ...     columns["country"].append(("DE", "FR", "IT")[number % 3])
    ...     columns["label"].append(None if number % 4 == 0 else int(number * 13 % 100 < 100 * score))
    ...     columns["score"].append(score)
    >>> import pandas as pd
    >>> result = evaluate_by("label", "score", data=pd.DataFrame(columns), by="country", metrics="recall")
    >>> ax = dm.plotting.plot_groups(result)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('recall', 'country')
    """
    view = view_of("result", result)
    result, name = view.grouped, metric_of(view, metric)
    max_groups = validate_count("most", most)
    groups, names, notes = _groups_of(result, period)
    column = column_of(view, name, groups)
    order = _order(column, result.metrics[name].better)
    left_out = order.size - max_groups
    order = order[:max_groups]
    if left_out > 0:
        notes.append(f"{left_out:,} {'group' if left_out == 1 else 'groups'} not drawn")
    shown = column.take(order)
    labels = [_label(result, groups[i], names) for i in order]
    for row in np.flatnonzero(np.isnan(shown.mean)).tolist():
        # Next to the name: among the data it would be on top of a line or a square.
        labels[row] += "\n(too few labels)" if shown.small[row] else "\n(undefined, 0/0)"
    ax = forest_axes(ax, labels, style.wrap_name(", ".join(names), 30), row=GROUP_ROW, extra=0.3)
    rows = np.arange(order.size, dtype=np.float64)
    _draw_groups(ax, rows, shown, result.confidence_level)
    target = view.targets.get(name)
    draw_target(ax, target, is_vertical=True)
    if target is not None:
        judged = [row for row in range(order.size) if np.isfinite(shown.below[row])]
        colors = [style.muted_color(ax) if small else style.ink_color(ax) for small in shown.small]
        draw_column(ax, "P(missed)", {row: probability_text(float(shown.below[row])) for row in judged}, colors=colors)
    set_forest_view(ax, view_values([shown], target), [shown.lowest, shown.highest])
    notes = [style.describe_scope(result.total.scope), *notes]
    title = style.describe_rows(result.total.data.counts())
    return style.finish_plot(ax, x=style.wrap_name(name, 44), title=title, notes=notes, side="right")


def _groups_of(result: GroupedEvaluation, period: GroupLike) -> tuple[list[GroupSummary], list[str], list[str]]:
    """The groups to draw, the columns that tell them apart, and what is to be said about the choice."""
    groups = list(result.groups.values())
    segments = [name for name in result.names if name != result.time]
    if result.time is None or not segments:
        if period is not None:
            raise InputError("period", "there are no segments to draw at one period", "", "Leave it out.")
        return groups, list(result.names), []
    place = result.names.index(result.time)
    chosen = _newest(groups, place) if period is None else period
    found = [group for group in groups if chosen in (group.key[place], key_text(group.key[place], result.period))]
    if not found:
        known = list(dict.fromkeys(key_text(group.key[place], result.period) for group in groups))
        raise InputError("period", f"no group of {period!r}", f"There are {', '.join(map(repr, known[:12]))}.")
    when = key_text(found[0].key[place], result.period)
    return found, segments, [plain_text(f"{key_text(result.time)} {when}", 40)]


def _newest(groups: list[GroupSummary], place: int) -> Any:
    """The latest period; groups come sorted, and rows without a period have none."""
    periods = [group.key[place] for group in groups if group.key[place] is not None]
    return max(periods, default=None)


def _order(column: Column, better: str) -> Any:
    """Places of the groups: alerts, those likeliest to miss the target, the worst, too small ones, undefined ones."""
    rank = -column.mean if better == "lower" else column.mean
    below = np.where(np.isnan(column.below), 0.0, column.below)
    return np.lexsort([rank, -below, column.small, ~column.alert, np.isnan(column.mean)])


def _label(result: GroupedEvaluation, group: GroupSummary, names: list[str]) -> str:
    """The values that tell a group apart, on two lines if they are long."""
    parts = [
        key_text(value, result.period if name == result.time else None) or "''"  # a name that is empty
        for name, value in zip(result.names, group.key, strict=True)
        if name in names
    ]
    return style.wrap_text(plain_text(", ".join(parts), 60), _LETTERS, lines=2)


def _draw_groups(ax: "Axes", rows: FloatArray, shown: Column, level: float) -> None:
    """Draw bounds, intervals (hollow with too few labels), means and labeled-only values."""
    draw_bounds(ax, rows, np.stack([shown.lowest, shown.highest], axis=1))
    label = f"{level_text(level)} interval"
    judged = ~shown.small
    draw_intervals(ax, rows[judged], np.stack([shown.low, shown.high], axis=1)[judged], label)
    # A group of which nothing is known has no interval that could be drawn.
    hollow = shown.small & (shown.high > shown.low)
    if hollow.any():
        look: dict[str, Any] = {"facecolor": style.background_color(ax), "edgecolor": style.muted_color(ax)}
        width = (shown.high - shown.low)[hollow]
        name = f"{label}, too few labels"
        ax.barh(rows[hollow], width, 0.3, left=shown.low[hollow], linewidth=1.0, zorder=2, label=name, **look)
    draw_means(ax, shown.mean, rows, shown, 5.0)
    draw_labeled_only(ax, shown.labeled_only, rows + BELOW, size=4.0)
