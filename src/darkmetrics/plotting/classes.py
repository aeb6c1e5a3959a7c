"""plot_per_class and plot_confusion: metrics of each class, and the confusion matrix with intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.class_results import FEW_LABELS, ConfusionMatrix, PerClass
from darkmetrics.metrics.targets import name_in
from darkmetrics.plotting import style
from darkmetrics.plotting.forests import (
    BELOW,
    GROUP_ROW,
    draw_column,
    draw_intervals,
    draw_labeled_only,
    draw_ticks,
    forest_axes,
    set_forest_view,
)
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a cell of a matrix with numbers, and of one without; classes of a matrix with numbers at most.
_CELL, _SMALL_CELL, _MAX_NUMBERS = 0.85, 0.22, 15
# Letters of a name.
_NAME = 20


def plot_per_class(result: PerClass, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw one metric of each class, with its interval and the value on the labeled rows.

    Parameters
    ----------
    result : PerClass
        What `per_class()` of an evaluation returns.
    metric : str, optional
        Which of its metrics to draw; the first one by default.
    ax : Axes, optional
        Axes to draw on; a new figure if none are passed.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"cat": [0.7, 0.2, 0.1], "dog": [0.2, 0.7, 0.3], "fish": [0.1, 0.1, 0.6]}
    >>> fixed = dm.missing.Fixed([[0.25, 0.25, 0.5]])
    >>> result = dm.evaluate(["cat", "dog", None], scores, missingness=fixed, metrics="accuracy")
    >>> dm.plotting.plot_per_class(result.per_class("recall")).get_xlabel()
    'recall'
    """
    style.validate_result("result", result, PerClass, "what per_class() returns")
    classes = list(result.distributions)
    name = result.metrics[0] if metric is None else name_in(result.distributions[classes[0]], metric)
    distributions = [result.distributions[label][name] for label in classes]
    names = [style.escape_text(label) for label in style.shorten_distinct(classes, _NAME)]
    few = np.array([result.n_labeled[label] < FEW_LABELS for label in classes])
    ax = forest_axes(ax, names, "class", row=GROUP_ROW, extra=0.1)
    rows = np.arange(len(classes), dtype=np.float64)
    level = result.confidence_level
    ends = np.array([distribution.interval(level) for distribution in distributions]).reshape(-1, 2)
    means = np.array([distribution.mean() for distribution in distributions])
    defined = np.isfinite(ends).all(axis=1)
    draw_intervals(ax, rows[defined], ends[defined], f"{level_text(level)} interval", linewidth=4.0)
    draw_ticks(ax, means[defined], rows[defined])
    only = np.array([result.labeled_only[label][name] for label in classes], dtype=np.float64)
    draw_labeled_only(ax, only, rows + BELOW, 3.5)
    for row in np.flatnonzero(~defined).tolist():
        look: dict[str, Any] = {"color": style.muted_color(ax), "va": "center", "transform": ax.get_yaxis_transform()}
        ax.text(0.02, row, "undefined (0/0)", fontsize="small", **look)
    shown = {row: f"{result.n_labeled[label]:,}{'*' * bool(few[row])}" for row, label in enumerate(classes)}
    draw_column(ax, "labels", shown)
    set_forest_view(ax, [*ends.ravel(), *only], [])
    notes = [f"* fewer than {FEW_LABELS} labels"] if few.any() else []
    return style.finish_plot(ax, x=style.wrap_name(name, 44), notes=notes)


def plot_confusion(result: ConfusionMatrix, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the confusion matrix: expected rows of each label and prediction, with intervals.

    The shade of a cell is its fraction of the rows with the label.

    Parameters
    ----------
    result : ConfusionMatrix
        What `confusion_matrix()` of an evaluation returns.
    ax : Axes, optional
        Axes to draw on; a new figure if none are passed.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    >>> dm.plotting.plot_confusion(result.confusion_matrix()).get_xlabel()
    'prediction'
    """
    style.validate_result("result", result, ConfusionMatrix, "what confusion_matrix() returns")
    k = len(result.classes)
    with_numbers = k <= _MAX_NUMBERS
    side = (_CELL if with_numbers else _SMALL_CELL) * k
    ax = style.new_axes(
        ax, height=1.0 + side, width=1.3 + side + 0.07 * max(0, min(_NAME, max(map(len, result.classes))) - 4)
    )
    mean = result.mean
    fraction = mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-300)
    ax.imshow(fraction, cmap="Blues", vmin=0.0, vmax=1.3)
    if with_numbers:
        _write_entries(ax, result, fraction)
    names = [style.escape_text(name) for name in style.shorten_distinct(result.classes, _NAME)]
    is_long = max(map(len, names)) > (9 if with_numbers else 2)
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
    size = None if with_numbers else "small"
    ax.set_xticks(range(k), names, fontsize=size, **turned)
    ax.set_yticks(range(k), names, fontsize=size)
    title = (
        f"Rows, with {level_text(result.confidence_level)} intervals" if with_numbers else "Shade: fraction of a label"
    )
    return style.finish_plot(ax, x="prediction", y="label", title=title)


def _write_entries(ax: "Axes", result: ConfusionMatrix, fraction: FloatArray) -> None:
    """Write mean and interval into each cell, in letters that fit into it."""
    k = len(result.classes)
    is_count = float(result.mean.sum()) >= 10.0  # less is a sum of small weights
    texts = [[result.entry_text(i, j) for j in range(k)] for i in range(k)]
    box = ax.get_window_extent()
    points = 72.0 / ax.figure.dpi * min(box.width, box.height) / k
    longest = max(len(interval) for row in texts for _, interval in row)
    small = float(np.clip(1.6 * points / longest, 3.5, 8.0))
    for i in range(k):
        for j in range(k):
            interval = texts[i][j][1]
            estimate = f"{result.entries[i][j].mean():,.1f}" if is_count else texts[i][j][0]
            look: dict[str, Any] = {"ha": "center", "va": "center"}
            look["color"] = "white" if fraction[i, j] > 0.75 else style.TARGET
            ax.text(j, i - 0.14, estimate, fontsize=1.25 * small, **look)
            ax.text(j, i + 0.2, interval, fontsize=small, **look)
