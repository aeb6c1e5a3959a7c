"""plot_difference and plot_change: the distribution of a difference, around zero."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics.changes import EvaluationChange
from darkmetrics.comparison.ranking import range_text
from darkmetrics.comparison.result import Comparison
from darkmetrics.distributions import MetricDistribution
from darkmetrics.plotting import style
from darkmetrics.plotting.shape import density_curve, few_atoms
from darkmetrics.tables import chance_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Smaller differences are rounding errors; a smaller probability of no change is not shown.
_ROUNDING, _MIN_SHOWN = 5e-13, 1e-3


class _Side(NamedTuple):
    """One side of zero: below (-1) or above (1), with its line of the legend."""

    sign: float
    color: str
    hatch: str
    label: str


def _draw_difference(
    ax: "Axes", distribution: MetricDistribution, level: float, sides: Sequence[_Side], zero: str
) -> None:
    """Draw the distribution with a look for each side of zero, the line at zero, interval and mean."""
    low, high = distribution.interval(level)
    stems = few_atoms(distribution)
    x, y = density_curve(distribution) if stems is None else stems
    x = x if stems is None else np.where(np.abs(x) < _ROUNDING, 0.0, x)
    for side in sides:
        inside = side.sign * x > 0.0
        if stems is not None:
            ax.vlines(x[inside], 0.0, y[inside], color=side.color, linewidth=2.5)
            ax.plot(x[inside], y[inside], "v" if side.hatch else "o", color=side.color, markersize=5, label=side.label)
            continue
        # Each side ends at zero, without a gap between them.
        at = np.unique(np.append(x[inside], [0.0] if x[0] <= 0.0 <= x[-1] else []))
        alpha = style.area_alpha(ax, 0.4 if side.hatch else 0.3)
        look: dict[str, Any] = {"color": side.color, "hatch": side.hatch, "alpha": alpha, "linewidth": 0.0}
        ax.fill_between(at, np.interp(at, x, y), label=side.label, **look)
    if stems is None:
        ax.plot(x, y, color=style.ink_color(ax), linewidth=1.0)
    elif np.any(x == 0.0):
        ax.plot([0.0], y[x == 0.0], "s", color=style.muted_color(ax), markersize=5)
        ax.vlines([0.0], 0.0, y[x == 0.0], color=style.muted_color(ax), linewidth=2.5)
    ink = style.ink_color(ax)
    ax.axvline(0.0, color=ink, linestyle=style.LINES[1], linewidth=1.2, label=zero)
    bar = {"linewidth": 4.0, "solid_capstyle": "butt"}
    style.draw_on_axis(ax, [low, high], style.interval_label(level, low, high), ink, **bar)
    mean = f"mean {style.format_value(distribution.mean(), high - low)}"
    edge = style.background_color(ax)
    dot = {"marker": "D", "markersize": 6, "markeredgecolor": edge, "linestyle": "none", "zorder": 5}
    style.draw_on_axis(ax, distribution.mean(), mean, ink, **dot)
    ax.set(ylabel="density" if stems is None else "probability", ylim=(0.0, 1.08 * float(y.max())))
    style.set_view(ax, "x", [x[0], x[-1], 0.0, low, high], 0.05)
    ax.locator_params(axis="x", nbins=6)  # small numbers are long


def _draw_undefined(ax: "Axes", text: str, x: str) -> "Axes":
    style.draw_message(ax, text)
    ax.set(ylabel="probability", xlabel=x, ylim=(0.0, 1.05), yticks=[0.0, 1.0])
    return ax


def plot_difference(
    comparison: Comparison,
    metric: str,
    model: str | None = None,
    other: str | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the difference of two models in one metric, with the probability that the first is better.

    The distribution uses the same labels for both models. The part where the model is better is filled, the other part
    hatched; the dashed line at zero is a tie, and the bar on the axis is the interval.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    metric : str
        One of its metrics.
    model, other : str, optional
        Two of its models; by default the last minus the first.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
    >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
    >>> ax = dm.plotting.plot_difference(found, "accuracy")
    >>> ax.get_xlabel()
    'accuracy: challenger minus champion'
    """
    style.validate_result("comparison", comparison, Comparison, "what compare returns")
    model, other = model or comparison.models[-1], other or comparison.models[0]
    distribution = comparison.difference(metric, model, other)
    ax = style.new_axes(ax)
    names = [style.escape_text(style.shorten(name, 20)).strip() for name in (model, other)]
    x = style.wrap_text(f"{style.escape_text(metric).strip()}: {names[0]} minus {names[1]}", 52)
    if np.isnan(distribution.mean()):
        ax.axvline(0.0, color=style.ink_color(ax), linestyle=style.LINES[1], label="no difference")
        return _draw_undefined(ax, "undefined (0/0) for every label assignment", x)
    better = comparison.metrics[metric].better
    labels = ["above zero", "not above"]
    if better != "neither":
        probability = comparison.probability_better(metric, model, other)
        labels = [f"{names[0]} better: {chance_text(probability)}", f"not better: {chance_text(1.0 - probability)}"]
        exact_range = range_text(probability, comparison.better_range(metric, model, other))
        labels[0] += f" ({exact_range} with exact scores)" if exact_range else ""
    sign = -1.0 if better == "lower" else 1.0
    sides = [
        _Side(sign, style.COLORS[0], style.HATCHES[0], labels[0]),
        _Side(-sign, style.COLORS[1], style.HATCHES[1], labels[1]),
    ]
    _draw_difference(ax, distribution, comparison.confidence_level, sides, "no difference")
    title = style.describe_rows(comparison.rows.counts)
    return style.finish_plot(ax, x=x, title=title, notes=[style.describe_scope(comparison.scope)])


def plot_change(change: EvaluationChange, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Plot how much a metric changed between two sets of rows, with the probability that it fell.

    The distribution is that of after minus before. The part where the metric fell is hatched; the dashed line is no
    change, with its probability if it has one.

    Parameters
    ----------
    change : EvaluationChange
        The result of `compare_evaluations`.
    metric : str, optional
        One of its metrics; by default the one that most surely got worse, or moved.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> may = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.5]), metrics="accuracy"
    ... )
    >>> june = dm.evaluate(
    ...     [1, None, 1, 0], [0.9, 0.3, 0.4, 0.8], missingness=dm.missing.Fixed([0.5]), metrics="accuracy"
    ... )
    >>> dm.plotting.plot_change(dm.compare_evaluations(june, may)).get_xlabel()
    'change in accuracy, before to after'
    """
    style.validate_result("change", change, EvaluationChange, "what compare_evaluations returns")
    name = change.surest if metric is None else metric
    distribution = change[name]
    ax = style.new_axes(ax)
    after, before = (style.escape_text(style.shorten(text, 20)).strip() for text in change.names)
    x = style.wrap_text(f"change in {style.escape_text(name).strip()}, {before} to {after}", 44)
    if np.isnan(distribution.mean()):
        in_both = all(np.isnan(evaluation[name].mean()) for evaluation in (change.after, change.before))
        return _draw_undefined(ax, f"undefined (0/0) in {'both' if in_both else 'one of the two'}", x)
    fell, rose = change.probability_decreased(name), change.probability_increased(name)
    same = 1.0 - fell - rose
    sides = [
        _Side(-1.0, style.LABELED_ONLY, style.HATCHES[1], f"fell: {chance_text(fell)}"),
        _Side(1.0, style.ESTIMATE, style.HATCHES[0], f"rose: {chance_text(rose)}"),
    ]
    zero = "no change" if same < _MIN_SHOWN else f"no change: {chance_text(min(1.0, same))}"
    _draw_difference(ax, distribution, change.confidence_level, sides, zero)
    sizes = [f"{evaluation.data.n_rows:,}" for evaluation in (change.before, change.after)]
    title = f"{sizes[0]} rows before, {sizes[1]} rows after"
    return style.finish_plot(ax, x=x, title=title, notes=[style.describe_scope(change.scope)])
