"""plot_per_class and plot_confusion: metrics of each class, and the confusion matrix with intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.class_results import FEW_LABELS, ConfusionMatrix, PerClass
from darkmetrics.plotting import style
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a line of a forest plot, and of a cell of a matrix.
_LINE, _CELL, _REST = 0.27, 0.85, 1.3


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
    style.checked("result", result, PerClass, "what per_class() returns")
    name = result.metrics[0] if metric is None else metric
    classes = list(result.distributions)
    distributions = [result.distributions[label][name] for label in classes]
    ax = style.axes(ax, _REST + _LINE * len(classes))
    position = np.arange(len(classes), dtype=np.float64)
    intervals = np.array([distribution.interval(result.confidence_level) for distribution in distributions])
    level = f"{level_text(result.confidence_level)} interval"
    ax.hlines(position, intervals[:, 0], intervals[:, 1], color=style.ESTIMATE, linewidth=3.5, label=level)
    few = np.array([result.n_labeled[label] < FEW_LABELS for label in classes])
    mean = np.array([distribution.mean() for distribution in distributions])
    for chosen, face, text in (
        (~few, style.ESTIMATE, "mean"),
        (few, style.paper(ax), f"mean, fewer than {FEW_LABELS} labels"),
    ):
        if chosen.any():
            marks: dict[str, Any] = {"color": style.ESTIMATE, "markerfacecolor": face, "markersize": 6, "zorder": 4}
            ax.plot(mean[chosen], position[chosen], "o", label=text, **marks)
    labeled = [result.labeled_only[label][name] for label in classes]
    ax.plot(labeled, position + 0.2, "s", markersize=4, color=style.LABELED, label="labeled only")
    ax.set_yticks(position, [style.plain(label) for label in classes])
    ax.set_ylim(len(classes) - 0.5, -0.5)
    ax.set_xlabel(name)
    style.grid(ax, "x")
    style.legend_above(ax, [])
    return ax


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
    style.checked("result", result, ConfusionMatrix, "what confusion_matrix() returns")
    k = len(result.classes)
    ax = style.axes(ax, 0.6 + _CELL * k, 0.9 + _CELL * k)
    mean = result.mean
    fraction = mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-300)
    ax.imshow(fraction, cmap="Blues", vmin=0.0, vmax=1.3)
    for i in range(k):
        for j in range(k):
            estimate, interval = result.entry_text(i, j)
            color = "white" if fraction[i, j] > 0.75 else "0.1"
            ax.text(j, i - 0.12, estimate, ha="center", va="center", color=color)
            ax.text(j, i + 0.2, interval, ha="center", va="center", color=color, fontsize="x-small")
    names = [style.plain(name) for name in result.classes]
    ax.set_xticks(range(k), names)
    ax.set_yticks(range(k), names)
    ax.set_xlabel("prediction")
    ax.set_ylabel("label")
    return ax
