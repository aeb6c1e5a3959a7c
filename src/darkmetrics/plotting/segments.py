"""plot_segments: one metric over the periods of every segment, side by side."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.monitoring import Alerts, GroupedEvaluation
from darkmetrics.monitoring.groups import key_text
from darkmetrics.plotting import style
from darkmetrics.plotting.over_time import draw_periods, lines_of, name_periods, places_of
from darkmetrics.plotting.summaries import draw_target, metric_of, plain_text, validate_count, view_of, view_values
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of one small picture, and of the legend above all; pictures side by side.
_WIDTH, _HEIGHT, _TOP, _ACROSS = 2.4, 1.7, 0.7, 3
# Letters of the name of a segment, and of periods side by side under a small picture.
_NAME, _LETTERS = 26, 20


def plot_segments(result: GroupedEvaluation | Alerts, metric: str | None = None, *, most: int = 12) -> "list[Axes]":
    """Plot one metric over the periods of every segment, in small plots on the same scales.

    Each plot has intervals (bars), means (dots on a line) and what the labeled rows alone report (hollow squares). A
    diamond marks an alert; periods with too few labels are hollow. Segments with alerts come first.
    `plot_over_time(result, segment=...)` draws one segment in a large plot.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        The result of `evaluate_by`, or its alerts, with segments and periods.
    metric : str, optional
        Which metric to draw; by default the first one that has a target, else the first one.
    most : int, default 12
        Maximum number of segments; a note says how many are not drawn.

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
    max_segments = validate_count("most", most)
    lines = lines_of(view, name)
    order = sorted(lines, key=lambda key: not lines[key].column.alert.any())  # a stable sort
    drawn, left_out = order[:max_segments], len(order) - max_segments
    figure, head, axes = _figure(len(drawn))
    target = view.targets.get(name)
    periods = sorted({period for key in drawn for period in lines[key].periods}, key=_sorted_last)
    places = dict(zip(periods, places_of(periods), strict=True))
    style.set_view(axes[0], "y", view_values([lines[key].column for key in drawn], target), 0.06)
    for ax, key in zip(axes, drawn, strict=True):
        x = np.array([places[period] for period in lines[key].periods])
        level, floor = level_text(result.confidence_level), ax.get_ylim()[0]
        draw_periods(ax, x, lines[key].column, level, floor, small_signs=True)
        draw_target(ax, target)
        ax.set_title(plain_text(", ".join(map(key_text, key)), _NAME), fontsize="small", loc="left")
        ax.tick_params(labelsize="x-small")
        name_periods(ax, np.array(list(places.values())), [key_text(p, result.period) for p in periods], _LETTERS)
        ax.set_xlim(-0.6, max(places.values()) + 0.6)
        style.draw_grid(ax, "y")
    figure.supylabel(style.wrap_name(name, 30), fontsize="medium")
    figure.supxlabel(style.wrap_name(next(iter(lines.values())).name, 40), fontsize="medium")
    notes = [style.describe_scope(result.total.scope)]
    notes += [f"{left_out:,} {'segment' if left_out == 1 else 'segments'} not drawn"] if left_out > 0 else []
    style.add_figure_legend(head, axes, notes)
    return axes


def _figure(count: int) -> "tuple[Any, Axes, list[Axes]]":
    """A figure, its head for a legend, and so many small axes on the same scales.

    The head is axes of no height: what stands on them has a place in the layout, a title of the figure stands above it.
    A legend of the figure itself would lie under its title.
    """
    plt = style.load_pyplot()
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


def _sorted_last(period: Any) -> tuple[bool, Any]:
    """Rows without a period come last."""
    return (period is None, period if period is not None else 0)
