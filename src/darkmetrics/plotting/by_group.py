"""plot_groups: one metric in many groups, one line each."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import GroupLike
from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import InputError
from darkmetrics.monitoring import Alerts, GroupedEvaluation, GroupSummary
from darkmetrics.monitoring.groups import key_text
from darkmetrics.monitoring.wording import probability_text
from darkmetrics.plotting import style
from darkmetrics.plotting.summaries import (
    Column,
    column_of,
    draw_labeled_only,
    draw_means,
    metric_of,
    plain_text,
    view_of,
)
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches that a line of text takes, and all that is not lines.
_LINE, _REST = 0.24, 1.75
# Letters of a name that stand on one line.
_LETTERS = 20
# How far under its line the labeled-only value stands, in lines; on the line it would hide the interval.
_BELOW = 0.27
# The possible values are drawn whole while the intervals still take up this share of the picture.
_SHARE = 0.5


def plot_groups(
    result: GroupedEvaluation | Alerts,
    metric: str | None = None,
    *,
    period: GroupLike = None,
    most: int = 20,
    ax: "Axes | None" = None,
) -> "Axes":
    """In which groups is the classifier good enough, in which not, and where can nobody tell yet?

    A forest plot: one line per group with its mean (dot), its interval, what dropping the unlabeled rows would have
    said (open square, a little lower) and the worst and best value that any labeling gives (hairline). A diamond marks
    an alert; groups with too few labels are grey, with an open dot and a dashed interval. A target is the dashed line
    across, and the probability that a group misses it stands at the right.

    The group that most likely misses the target is at the top; without a target, the one with the worst mean.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        The result of `evaluate_by`, or its alerts.
    metric : str, optional
        Which metric to draw; by default the first one that has a target, else the first one.
    period : optional
        Which period to draw, if there are segments and periods; the newest one by default.
    most : int, default 20
        At most so many groups are drawn, and a note says how many are not: those furthest down.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given, as high as the groups need.

    Returns
    -------
    Axes
        Those drawn on.

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
    count: Any = most
    if not is_whole(count) or count < 1:
        raise InputError(f"most: {most!r}. It must be a whole number of at least 1.")
    groups, names, notes = _groups_of(result, period)
    column = column_of(view, name, groups)
    order = _order(column, result.metrics[name].better)
    left_out = order.size - most
    order = order[:most]
    if left_out > 0:
        notes.append(f"{left_out:,} {'group' if left_out == 1 else 'groups'} not drawn")
    shown = column.take(order)
    labels = [_label(result, groups[i], names) for i in order]
    for line in np.flatnonzero(np.isnan(shown.mean)).tolist():
        # Beside the name: among the data it would stand on a line, or on a square.
        labels[line] += "\n(too few labels)" if shown.small[line] else "\n(undefined, 0/0)"
    ax = _lines_of(ax, labels, ", ".join(names))
    place = np.arange(order.size, dtype=np.float64)
    _draw_intervals(ax, place, shown, result.confidence_level)
    draw_means(ax, shown.mean, place, shown, 5.0)
    draw_labeled_only(ax, shown.labeled_only, place + _BELOW, size=4.0)
    target = view.targets.get(name)
    if target is not None:
        _draw_target(ax, place, shown, target)
    _set_view(ax, shown, target)
    ax.set_xlabel(style.wrapped(name, 44))
    style.legend_above(ax, [style.scope_note(result.total.scope), *notes], side="right")
    return ax


def _groups_of(result: GroupedEvaluation, period: GroupLike) -> tuple[list[GroupSummary], list[str], list[str]]:
    """The groups to draw, the columns that tell them apart, and what is to be said about the choice."""
    groups = list(result.groups.values())
    segments = [name for name in result.names if name != result.time]
    if result.time is None or not segments:
        if period is not None:
            raise InputError("period: there are no segments to draw at one period. Leave it out.")
        return groups, list(result.names), []
    place = result.names.index(result.time)
    chosen = _newest(groups, place) if period is None else period
    found = [group for group in groups if chosen in (group.key[place], key_text(group.key[place], result.period))]
    if not found:
        known = list(dict.fromkeys(key_text(group.key[place], result.period) for group in groups))
        raise InputError(f"period: no group of {period!r}. There are {', '.join(map(repr, known[:12]))}.")
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
    return style.folded(plain_text(", ".join(parts), 60), _LETTERS, lines=2)


def _lines_of(ax: "Axes | None", labels: list[str], name: str) -> "Axes":
    """Axes with a line for each group, from the top."""
    ax = style.axes(ax, height=_REST + _LINE * sum(1.0 + 0.6 * label.count("\n") for label in labels))
    ax.set_yticks(range(len(labels)), labels, fontsize="small")
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_ylabel(style.wrapped(name, 30))
    return ax


def _draw_intervals(ax: "Axes", place: FloatArray, shown: Column, level: float) -> None:
    ax.hlines(place, shown.lowest, shown.highest, color=style.grey(ax), linewidth=0.8, label="worst to best")
    label = f"{level_text(level)} interval"
    for chosen, colour, line in ((~shown.small, style.ESTIMATE, "solid"), (shown.small, style.grey(ax), "dashed")):
        if chosen.any():
            ends = shown.low[chosen], shown.high[chosen]
            ax.hlines(place[chosen], *ends, color=colour, linewidth=4.0, linestyle=line, label=label)
            label = "_"  # one entry for both


def _draw_target(ax: "Axes", place: FloatArray, shown: Column, target: float) -> None:
    """The value to reach, and how likely each group misses it; of groups that are too small nobody should say."""
    ax.axvline(
        target, color=style.ink(ax), linestyle=style.LINES[1], linewidth=1.2, zorder=1, label=f"target {target:g}"
    )
    right: dict[str, Any] = {"fontsize": "small", "transform": ax.get_yaxis_transform()}
    for line in place[np.isfinite(shown.below)].astype(int):
        colour = style.grey(ax) if shown.small[line] else style.ink(ax)
        ax.text(1.02, line, probability_text(float(shown.below[line])), va="center", color=colour, **right)
    ax.text(1.02, 1.01, "P(missed)", va="bottom", ha="left", fontsize="small", transform=ax.transAxes)


def _set_view(ax: "Axes", shown: Column, target: float | None) -> None:
    """As far as means, intervals and target go, and to the possible values where these are not much further apart."""
    sure = ~shown.small if not shown.small.all() else shown.small
    ends = [shown.mean, shown.low[sure], shown.high[sure], shown.labeled_only, [np.nan if target is None else target]]
    drawn = np.concatenate([np.asarray(numbers, dtype=np.float64) for numbers in ends])
    drawn, possible = drawn[np.isfinite(drawn)], np.concatenate([shown.lowest, shown.highest])
    possible = possible[np.isfinite(possible)]
    if not drawn.size:
        drawn = np.array([0.0, 1.0])
    everything = np.append(drawn, possible)
    if np.ptp(drawn) >= _SHARE * np.ptp(everything):
        drawn = everything
    low, high = float(drawn.min()), float(drawn.max())
    margin = 0.04 * (high - low) or 0.05 * max(abs(low), 1.0)
    ax.set_xlim(low - margin, high + margin)
    ax.locator_params(axis="x", nbins=5)  # between names and probabilities there is little room
    style.grid(ax, "x")
