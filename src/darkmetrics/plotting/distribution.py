"""plot_distribution: the law of one metric, with what people compare it with."""

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.plotting import style
from darkmetrics.plotting.shape import density_curve, few_atoms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The possible values are drawn whole while the law still takes up this share of the picture.
_SHARE = 0.25


def plot_distribution(
    evaluation: Evaluation, metric: str, *, target: float | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Plot the distribution of one metric.

    A curve (or a stem per value, if there are few) is the distribution given what is known about the missing labels.
    The interval is shaded, the mean a solid line, and the square on the axis is what the labeled rows alone report.
    Ticks on the axis are the bounds over all label assignments; an arrow points to a bound outside the picture.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.
    metric : str
        One of its metrics.
    target : float, optional
        A value to reach: a dashed line, and in the legend the probability that the metric is below it.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Notes
    -----
    A law of many atoms is drawn with a Gaussian kernel whose width is 15% of the law's (of its highest peak's, if it
    has several).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_distribution(result, "recall", target=0.7)
    >>> ax.get_ylabel()
    'probability'
    """
    style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    distribution = evaluation[metric]
    given: Any = target
    if given is not None and not (isinstance(given, Real) and math.isfinite(given)):
        raise InputError("target", repr(given), "It must be a finite number.")
    ax = style.new_axes(ax)
    notes = [style.describe_scope(evaluation.scope)]
    places = [x for x in (evaluation.labeled_only[metric], target) if x is not None and np.isfinite(x)]
    if np.isnan(distribution.mean()):
        style.draw_message(ax, "undefined (0/0) whatever the missing labels are")
        ax.set(ylabel="probability", ylim=(0.0, 1.05), yticks=[0.0, 1.0])
    else:
        _draw_law(ax, distribution, evaluation.confidence_level, places)
        if distribution.undefined > 0.0:
            filled = evaluation.fills[metric]
            what = "left out" if np.isnan(filled) or distribution.given_defined else f"counts as {filled:g}"
            notes.append(f"0/0 (P {style.format_probability(distribution.undefined)}) {what}")
    only = evaluation.labeled_only[metric]
    if np.isfinite(only):
        label = f"labeled only {style.format_value(only)}"
        style.draw_on_axis(ax, only, label, style.LABELED_ONLY, marker="s", markersize=6, linestyle="none")
    if target is not None:
        below = 2.0 * distribution.pit(target) - distribution.cdf(
            target
        )  # P(metric < target): an atom at the target has reached it
        worst, best = distribution.support()
        certain = best < target or worst >= target
        known = f" {style.format_probability(below, certain=certain)}" if np.isfinite(below) else " is undefined"
        name = style.shorten(style.escape_text(metric).strip(), 20)
        ax.axvline(target, color=style.ink_color(ax), linestyle=style.LINES[1], label=f"P({name} < {target:g}){known}")
    title = style.describe_rows(evaluation.data.counts())
    return style.finish_plot(ax, x=style.wrap_name(metric, 44), title=title, notes=notes)


def _draw_law(ax: "Axes", distribution: MetricDistribution, level: float, places: list[float]) -> None:
    """The law itself: curve or stems, interval, mean and possible values; `places` are to be in the picture too."""
    low, high = distribution.interval(level)
    mean, width = distribution.mean(), high - low
    interval: dict[str, Any] = {
        "color": style.ESTIMATE,
        "linewidth": 0.0,
        "label": style.interval_label(level, low, high),
    }
    stems = few_atoms(distribution)
    if stems is not None:
        x, y = stems
        inside = (x >= low) & (x <= high)
        ax.axvspan(low, high, alpha=style.area_alpha(ax, 0.2), **interval)
        ax.vlines(x, 0.0, y, color=style.ESTIMATE, linewidth=np.where(inside, 2.5, 1.0), zorder=3)
        ax.plot(x, y, color=style.ESTIMATE, marker="o", markersize=4, linestyle="none", zorder=3, gid="law")
        ax.set_ylabel("probability")
    else:
        x, y = density_curve(distribution)
        inside = (x >= low) & (x <= high)
        ax.fill_between(x, y, where=inside.tolist(), alpha=style.area_alpha(ax, 0.3), **interval)
        ax.plot(x, y, color=style.ESTIMATE, gid="law")
        ax.set_ylabel("density")
    ax.axvline(mean, color=style.ESTIMATE, linewidth=1.2, label=f"mean {style.format_value(mean, width)}")
    ax.set_ylim(0.0, 1.08 * float(y.max()))
    _set_view(ax, distribution, np.array([x[0], x[-1], low, high, *places]))


def _set_view(ax: "Axes", distribution: MetricDistribution, shown: FloatArray) -> None:
    """What part of the axis is shown, and the possible values as marks on it."""
    left, right = float(shown.min()), float(shown.max())
    ends = np.array(distribution.support())
    reach = np.append(ends[np.isfinite(ends)], [left, right])
    if (right - left) >= _SHARE * np.ptp(reach) or right == left:
        left, right = float(reach.min()), float(reach.max())
    margin = 0.05 * (right - left) if right > left else 0.05 * max(abs(left), 1.0)
    ax.set_xlim(left - margin, right + margin)
    words = " to ".join(style.format_value(end) for end in ends)
    label = f"bounds {words}" if distribution.bounds_sharp else f"bounds ({words})"
    for end, arrow in zip(ends, ("<", ">"), strict=True):
        outside = not left <= end <= right
        place = float(np.clip(end, left - margin, right + margin))
        look: dict[str, Any] = {"marker": arrow, "markersize": 6, "markeredgewidth": 0.0}
        if not outside:
            look = {"marker": "|", "markersize": 12, "markeredgewidth": 2.0}
        style.draw_on_axis(ax, place, label, style.ink_color(ax), linestyle="none", **look)
        label = "_"  # one entry for both
