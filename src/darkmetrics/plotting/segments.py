"""plot_segments: one metric over the periods of every segment, side by side."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.monitoring import Alerts, GroupedEvaluation
from darkmetrics.monitoring.groups import key_text
from darkmetrics.plotting import style
from darkmetrics.plotting.over_time import draw_periods, lines_of, name_periods, places_of
from darkmetrics.plotting.summaries import metric_of, plain_text, view_of
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of one small picture, and of the legend above all; pictures side by side.
_WIDTH, _HEIGHT, _TOP, _ACROSS = 2.4, 1.7, 0.7, 3
# Letters of the name of a segment, and of periods side by side under a small picture.
_NAME, _LETTERS = 26, 20


def plot_segments(result: GroupedEvaluation | Alerts, metric: str | None = None, *, most: int = 12) -> "list[Axes]":
    """How does a metric move from period to period in every segment?

    A small picture per segment, all on the same scales: intervals (bars), means (dots on a line) and what dropping the
    unlabeled rows would have said (open squares). A diamond marks an alert; periods with too few labels are grey, with
    an open dot. Segments with alerts come first. `plot_over_time(result, segment=...)` draws one of them large.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        The result of `evaluate_by`, or its alerts, with segments and periods.
    metric : str, optional
        Which metric to draw; by default the first one that has a target, else the first one.
    most : int, default 12
        At most so many segments are drawn, and a note says how many are not.

    Returns
    -------
    list of Axes
        One for each segment, of a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> rows = [
    ...     (shop, month, label, score) for shop in "ab" for month in (5, 6) for label, score in ((1, 0.9), (0, 0.4))
    ... ]
    >>> table = pd.DataFrame(rows, columns=["shop", "month", "y", "p"])
    >>> result = dm.evaluate_by("y", "p", data=table, by="shop", time="month", metrics="accuracy")
    >>> [ax.get_title("left") for ax in dm.plotting.plot_segments(result)]
    ['a', 'b']
    """
    view = view_of("result", result)
    result, name = view.grouped, metric_of(view, metric)
    count: Any = most
    if not is_whole(count) or count < 1:
        raise InputError(f"most: {most!r}. It must be a whole number of at least 1.")
    lines = lines_of(view, name)
    order = sorted(lines, key=lambda key: not lines[key].column.alert.any())  # a stable sort
    drawn, left_out = order[:most], len(order) - most
    figure, head, axes = _figure(len(drawn))
    target = view.targets.get(name)
    periods = sorted({period for key in drawn for period in lines[key].periods}, key=_sorted_last)
    places = dict(zip(periods, places_of(periods), strict=True))
    _set_view(axes, [lines[key].column for key in drawn], target)
    for ax, key in zip(axes, drawn, strict=True):
        x = np.array([places[period] for period in lines[key].periods])
        level, floor = level_text(result.confidence_level), ax.get_ylim()[0]
        draw_periods(ax, x, lines[key].column, level, floor, small_signs=True)
        if target is not None:
            ax.axhline(target, color=style.ink(ax), linestyle=style.LINES[1], linewidth=1.0, label=f"target {target:g}")
        ax.set_title(plain_text(", ".join(map(key_text, key)), _NAME), fontsize="small", loc="left")
        ax.tick_params(labelsize="x-small")
        name_periods(ax, np.array(list(places.values())), [key_text(p, result.period) for p in periods], _LETTERS)
        ax.set_xlim(-0.6, max(places.values()) + 0.6)
        style.grid(ax, "y")
    figure.supylabel(style.wrapped(name, 30), fontsize="medium")
    figure.supxlabel(style.wrapped(next(iter(lines.values())).name, 40), fontsize="medium")
    notes = [style.scope_note(result.total.scope)]
    notes += [f"{left_out:,} {'segment' if left_out == 1 else 'segments'} not drawn"] if left_out > 0 else []
    style.legend_of_all(head, axes, notes)
    return axes


def _figure(count: int) -> "tuple[Any, Axes, list[Axes]]":
    """A figure, its head for a legend, and so many small axes on the same scales.

    The head is axes of no height: what stands on them has a place in the layout, a title of the figure stands above it.
    A legend of the figure itself would lie under its title.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MethodError("plot: needs matplotlib; pip install 'darkmetrics[plot]'.") from None
    across = min(_ACROSS, count)
    down = -(-count // across)
    size = (_WIDTH * max(across, 2), _TOP + _HEIGHT * down)
    about: dict[str, Any] = {"figsize": size, "layout": "constrained", "height_ratios": [1e-3, *[1.0] * down]}
    figure, grid = plt.subplots(1 + down, across, sharex=True, sharey=True, squeeze=False, **about)
    axes = list(grid[1:].ravel())
    for empty in (*grid[0], *axes[count:]):
        empty.remove()
    head = figure.add_subplot(axes[0].get_subplotspec().get_gridspec()[0, :])
    head.set_axis_off()
    if count % across and down > 1:  # axes with none below them have their names all the same
        for ax in axes[count - across : count]:
            ax.tick_params(labelbottom=True)
    return figure, head, axes[:count]


def _set_view(axes: "list[Axes]", columns: list[Any], target: float | None) -> None:
    """The same scale for all, with room for every mean and every interval that says something."""
    numbers = [np.array([np.nan if target is None else target])]
    for column in columns:
        sure = ~column.small if not column.small.all() else column.small
        numbers += [column.mean, column.labeled_only, column.low[sure], column.high[sure]]
    drawn = np.concatenate(numbers)
    drawn = drawn[np.isfinite(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
    margin = 0.06 * (high - low) or 0.05 * max(abs(low), 1.0)
    axes[0].set_ylim(low - margin, high + margin)


def _sorted_last(period: Any) -> tuple[bool, Any]:
    """Rows without a period come last."""
    return (period is None, period if period is not None else 0)
