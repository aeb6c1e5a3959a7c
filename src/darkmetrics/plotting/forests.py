"""plot_metrics, plot_variance, plot_models and plot_disparity: a row per metric, model or group, with its interval."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.changes import Disparity
from darkmetrics.comparison.result import Comparison
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.plotting import style
from darkmetrics.tables import chance_text, level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a row, of a row of many groups, and of everything else.
_ROW, GROUP_ROW, _OTHER = 0.36, 0.25, 1.55
# Distance of the labeled-only value below its row, in rows; on the row it would hide the interval.
BELOW = 0.3
# Bounds are shown completely if the intervals take up at least this fraction of the picture.
_MIN_FRACTION = 0.5
# Groups of a disparity that are drawn; letters of their names, inches of a letter.
_MAX_GROUPS, _NAME, _LETTER = 20, 20, 0.075
_SOURCES = {
    "labels": "missing labels",
    "calibration": "calibration",
    "prevalence": "prevalence",
    "sampling": "sampling of rows",
}


def forest_axes(
    ax: "Axes | None", labels: Sequence[str], name: str, *, row: float = _ROW, extra: float = 0.0, width: float = 0.0
) -> "Axes":
    """Return axes with a row for each label, from the top."""
    height = _OTHER + extra + row * sum(1.0 + 0.6 * label.count("\n") for label in labels)
    ax = style.new_axes(ax, height=height, width=style.WIDTH + width)
    ax.set_yticks(range(len(labels)), labels, fontsize="small" if row < _ROW or len(labels) > 12 else None)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_ylabel(name)
    return ax


def draw_intervals(ax: "Axes", rows: Any, ends: Any, label: str, **look: Any) -> None:
    """Draw the intervals of rows as thick bars."""
    low, high = np.asarray(ends, dtype=np.float64).reshape(-1, 2).T
    ax.hlines(rows, low, high, label=label, **{"color": style.ESTIMATE, "linewidth": 6.0, **look})


def draw_bounds(ax: "Axes", rows: FloatArray, ends: Any) -> None:
    """Draw bounds as faint whiskers."""
    low, high = np.asarray(ends, dtype=np.float64).reshape(-1, 2).T
    color = "0.5" if style.is_dark(ax) else "0.65"
    ax.hlines(rows, low, high, color=color, linewidth=0.8, label="bounds", zorder=1)
    ax.plot([*low, *high], [*rows, *rows], "|", color=color, markersize=5, markeredgewidth=0.8, zorder=1)


def draw_ticks(ax: "Axes", x: Any, y: Any, marker: str = "|") -> None:
    """Draw means as ticks, which leave narrow intervals visible."""
    look: dict[str, Any] = {"color": style.ink_color(ax), "linestyle": "none", "markersize": 13}
    ax.plot(x, y, marker=marker, markeredgewidth=1.2, zorder=4, label="mean", **look)


def draw_labeled_only(ax: "Axes", x: FloatArray, y: FloatArray, size: float = 4.5) -> None:
    """Draw the metric on the labeled rows alone as hollow squares."""
    seen = np.isfinite(x) & np.isfinite(y)
    if seen.any():
        look: dict[str, Any] = {"markerfacecolor": style.background_color(ax), "markeredgewidth": 0.28 * size}
        ax.plot(
            x[seen], y[seen], "s", color=style.LABELED_ONLY, markersize=size, **look, zorder=3.5, label="labeled only"
        )


def draw_column(ax: "Axes", title: str, texts: dict[int, str], offset: float = 0.7, colors: Any = None) -> None:
    """Write a text at the right of rows, and a title above; the offset is in letters, which long names leave alone."""
    look: dict[str, Any] = {"fontsize": "small", "textcoords": "offset fontsize", "annotation_clip": False}
    for row, text in texts.items():
        color = style.ink_color(ax) if colors is None else colors[row]
        ax.annotate(text, (1.0, row), (offset, 0.0), ax.get_yaxis_transform(), va="center", color=color, **look)
    ax.annotate(title, (1.0, 1.0), (offset, 0.4), "axes fraction", va="bottom", **look)


def set_forest_view(ax: "Axes", drawn: Any, bounds: Any) -> None:
    """Show everything drawn, and the bounds unless that would make the rest small."""
    values = [np.ravel(np.asarray(numbers, dtype=np.float64)) for numbers in (drawn, bounds)]
    finite = [numbers[np.isfinite(numbers)] for numbers in values]
    inner, everything = finite[0], np.concatenate(finite)
    is_wide = not inner.size or np.ptp(inner) >= _MIN_FRACTION * np.ptp(everything)
    style.set_view(ax, "x", everything if is_wide else inner, 0.04)
    ax.locator_params(axis="x", nbins=5)  # there is little space between names and numbers
    style.draw_grid(ax, "x")


def _draw_distributions(ax: "Axes", distributions: Sequence[MetricDistribution], level: float, only: Any) -> Any:
    """Draw interval, mean and labeled-only value of each row; return the ends of the intervals, NaN if undefined."""
    rows = np.arange(len(distributions), dtype=np.float64)
    ends = np.array([distribution.interval(level) for distribution in distributions]).reshape(-1, 2)
    defined = np.isfinite(ends).all(axis=1)
    means = np.array([distribution.mean() for distribution in distributions])
    draw_intervals(ax, rows[defined], ends[defined], f"{level_text(level)} interval")
    draw_ticks(ax, means[defined], rows[defined])
    draw_labeled_only(ax, np.asarray(only, dtype=np.float64), rows + BELOW)
    for row in np.flatnonzero(~defined).tolist():
        look: dict[str, Any] = {"color": style.muted_color(ax), "va": "center", "transform": ax.get_yaxis_transform()}
        ax.text(0.02, row, "undefined (0/0)", **look)
    return ends


def plot_metrics(
    evaluation: Evaluation,
    metrics: str | Sequence[str] | None = None,
    *,
    bounds: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot all metrics of an evaluation with their intervals, one row each.

    Each row has the interval (bar), the mean (tick, with its value at the right), what the labeled rows alone report
    (hollow square, a little lower) and the bounds over all label assignments (faint whiskers).

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.
    metrics : str or sequence of str, optional
        Metrics to draw on a common axis. By default those that lie between -1 and 1; others, such as log loss or lift,
        have other units, and a note under the axis names them.
    bounds : bool
        Whether to draw the bounds. They run out of the picture if showing them would make the intervals small.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as high as the metrics need.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_metrics(result)
    >>> ax.get_xlabel()
    'value of the metric'
    >>> ax = result.plot()  # the same
    """
    style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    names = list(evaluation) if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        evaluation[name]  # raises the error for an unknown name
    left_out = [] if metrics is not None else [name for name in names if not _is_on_common_scale(evaluation, name)]
    if len(left_out) == len(names):
        left_out = []
    names = [name for name in names if name not in left_out]
    note = f"other units, not drawn: {', '.join(style.escape_text(name).strip() for name in left_out)}"
    note = f"\n{style.wrap_text(note, 44, lines=6)}" if left_out else ""
    ax = forest_axes(ax, [style.wrap_name(name) for name in names], "metric", extra=0.2 * note.count("\n"))
    distributions = [evaluation[name] for name in names]
    limits = [distribution.support() for distribution in distributions]
    with_bounds = bounds and evaluation.scope == "rows"
    if with_bounds:
        draw_bounds(ax, np.arange(len(names), dtype=np.float64), limits)
    only = [evaluation.labeled_only[name] for name in names]
    ends = _draw_distributions(ax, distributions, evaluation.confidence_level, only)
    means = [distribution.mean() for distribution in distributions]
    shown = {
        row: style.format_value(means[row], np.ptp(ends[row])) for row in range(len(names)) if np.isfinite(means[row])
    }
    draw_column(ax, "mean", shown)
    set_forest_view(ax, [*ends.ravel(), *only], limits if with_bounds else [])
    notes = [style.describe_scope(evaluation.scope)]
    title = f"Estimates for {style.describe_rows(evaluation.data.counts())}"
    return style.finish_plot(ax, x="value of the metric" + note, title=title, notes=notes)


def _is_on_common_scale(evaluation: Evaluation, name: str) -> bool:
    """Return whether a metric lies between -1 and 1: by its record, or by its values if the record has no range."""
    low, high = evaluation.metrics[name].range
    if np.isinf(low) and np.isinf(high):
        low, high = evaluation[name].support()
    return bool(low >= -1.0 and high <= 1.0)


def plot_variance(evaluation: Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """Plot where the variance of each metric comes from.

    Bars divide the variance of each metric: missing labels (if their probabilities were known), calibration (learned
    from few labels), prevalence (how missing rows differ from labeled ones), and in the population the sampling of
    rows. The standard deviation (sd) is at the right: a large fraction of a small variance is small.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`; the fractions are those of its `variance_decomposition`.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as high as the metrics need.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_variance(result)
    >>> ax.get_xlabel()
    'fraction of the variance'
    """
    style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    names = list(evaluation)
    ax = forest_axes(ax, [style.wrap_name(name) for name in names], "metric")
    sd = np.array([evaluation[name].std() for name in names])
    rows = np.flatnonzero(sd > 0.0)
    decompositions = [evaluation.variance_decomposition(names[i]) for i in rows]
    start = np.zeros(rows.size)
    sources = evaluation.variance_decomposition(names[0])
    for number, (source, label) in enumerate(_SOURCES.items()):
        if source not in sources:
            continue
        width = np.array([decomposition[source] for decomposition in decompositions])
        look: dict[str, Any] = {"color": style.COLORS[(0, 4, 2, 1)[number]], "hatch": style.HATCHES[number]}
        look |= {"edgecolor": style.background_color(ax), "linewidth": 0.0}
        ax.barh(rows, width, left=start, height=0.6, label=label, **look)
        start = start + width
    for i in np.flatnonzero(~(sd > 0.0)).tolist():
        text = "undefined (0/0)" if np.isnan(sd[i]) else "known exactly"
        ax.text(0.02, i, text, va="center", color=style.muted_color(ax), transform=ax.get_yaxis_transform())
    ax.set_xlim(0.0, 1.0)
    if rows.size:
        draw_column(ax, "sd", {i: f"{sd[i]:.2g}" for i in rows.tolist()})
    title = style.describe_rows(evaluation.data.counts())
    return style.finish_plot(ax, x="fraction of the variance", title=title)


def plot_models(comparison: Comparison, metric: str, *, ax: "Axes | None" = None) -> "Axes":
    """Plot one metric of every model, with the probability that each model is best.

    Each row has the interval (bar), the mean (tick), what the labeled rows alone report (hollow square, a little
    lower), and at the right the probability that the model is best. Intervals may overlap although one model is surely
    better, because the models share their labels: see `plot_difference`.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    metric : str
        One of its metrics.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as high as the models need.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
    >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
    >>> ax = dm.plotting.plot_models(found, "accuracy")
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['champion', 'challenger']
    """
    style.validate_result("comparison", comparison, Comparison, "what compare returns")
    evaluations = [comparison[model] for model in comparison.models]
    distributions = [evaluation[metric] for evaluation in evaluations]
    only = [evaluation.labeled_only[metric] for evaluation in evaluations]
    ax = forest_axes(ax, [style.wrap_name(model) for model in comparison.models], "model", extra=_ROW)
    ends = _draw_distributions(ax, distributions, comparison.confidence_level, only)
    notes = [style.describe_scope(comparison.scope)]
    if comparison.metrics[metric].better != "neither":
        best = comparison.probability_best(metric)
        draw_column(ax, "P(best)", {row: best.text(model) for row, model in enumerate(comparison.models)})
        notes += [f"tie: {chance_text(best.tie)}"] if best.tie >= 0.005 else []
    set_forest_view(ax, [*ends.ravel(), *only], [])
    title = style.describe_rows(comparison.rows.counts)
    return style.finish_plot(ax, x=style.wrap_name(metric, 44), title=title, notes=notes)


def plot_disparity(disparity: Disparity, *, ax: "Axes | None" = None) -> "Axes":
    """Plot how much a metric differs between groups, and which groups are highest and lowest.

    Each row has the interval and the mean of a group, the highest first; at the right are the probabilities that it is
    the highest and the lowest of all. Of more than 20 groups those at both ends are drawn.

    Parameters
    ----------
    disparity : Disparity
        The result of `GroupedEvaluation.disparity`.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as high as the groups need.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> rows = [("app", 1, 0.9), ("app", 1, 0.8), ("web", 1, 0.9), ("web", 1, 0.2), ("web", 0, 0.6)]
    >>> table = pd.DataFrame(rows, columns=["shop", "y", "p"])
    >>> result = dm.evaluate_by("y", "p", data=table, by="shop", metrics="recall")
    >>> dm.plotting.plot_disparity(result.disparity("recall")).get_xlabel()
    'recall'
    """
    style.validate_result("disparity", disparity, Disparity, "what disparity returns")
    groups = sorted(disparity.groups, key=lambda group: -np.nan_to_num(disparity.means[group], nan=-np.inf))
    low, high = disparity.distribution.interval(disparity.confidence_level)
    value = style.format_value(disparity.distribution.mean(), high - low)
    if low != high and np.isfinite(low):
        value += f" ({style.format_value(low, high - low)} to {style.format_value(high, high - low)})"
    kinds = {"difference": "highest minus lowest", "ratio": "lowest over highest"}
    notes = [f"{kinds.get(disparity.kind, 'equalized odds')} {value}", style.describe_scope(disparity.scope)]
    if len(groups) > _MAX_GROUPS:
        notes.append(f"{len(groups) - _MAX_GROUPS:,} groups in the middle not drawn")
        groups = [*groups[: _MAX_GROUPS // 2], *groups[-_MAX_GROUPS // 2 :]]
    names = style.shorten_distinct(groups, _NAME)
    wider = _LETTER * max(0, max(map(len, names)) - _NAME)
    ax = forest_axes(ax, [style.escape_text(name) for name in names], "group", row=GROUP_ROW, extra=0.3, width=wider)
    rows = np.arange(len(groups), dtype=np.float64)
    ends = [disparity.intervals[group] for group in groups]
    draw_intervals(ax, rows, ends, f"{level_text(disparity.confidence_level)} interval", linewidth=4.0)
    draw_ticks(ax, [disparity.means[group] for group in groups], rows)
    columns = ("highest", disparity.probability_highest), ("lowest", disparity.probability_lowest)
    for column, (title, probabilities) in enumerate(columns):
        texts = ["0/0" if np.isnan(probabilities[group]) else chance_text(probabilities[group]) for group in groups]
        draw_column(ax, title, dict(enumerate(texts)), 0.7 + 5.3 * column)
    set_forest_view(ax, ends, [])
    name = "true positive rate" if disparity.kind == "equalized_odds" else disparity.metric
    return style.finish_plot(ax, x=style.wrap_name(name, 44), notes=notes, side="right")
