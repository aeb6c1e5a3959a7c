"""plot_change, plot_trend and plot_disparity: what moved, where it is going, and how far groups are apart."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.changes import Disparity, EvaluationChange, Trend
from darkmetrics.plotting import style
from darkmetrics.plotting.over_time import name_periods
from darkmetrics.plotting.shape import density_curve, few_atoms
from darkmetrics.plotting.summaries import plain_text
from darkmetrics.tables import chance_text, level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches that a line of text takes, and all that is not lines; groups that are drawn.
_LINE, _REST, _MOST = 0.24, 1.9, 20
# Letters of a name under a picture, and of a group beside it; inches of a letter there.
_LETTERS, _NAME, _LETTER = 44, 20, 0.075
# A change is none where it is but rounding; less of no change than this is not worth a number.
_ROUNDING, _SHOWS = 5e-13, 1e-3


def plot_change(change: EvaluationChange, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """How far did a metric move between two sets of rows, and how likely did it fall?

    The law of the difference, after less before. The dashed line is no change, with its probability where it has one;
    what lies left of it is hatched, and is the probability that the metric fell.

    Parameters
    ----------
    change : Change
        The result of `compare_evaluations`.
    metric : str, optional
        One of its metrics; the one that is surest to have got worse, or to have moved, unless given.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

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
    style.checked("change", change, EvaluationChange, "what change returns")
    name = change.surest if metric is None else metric
    distribution = change[name]
    ax = style.axes(ax)
    after, before = (plain_text(one, 20).strip() for one in change.names)
    ax.set_xlabel(style.folded(f"change in {style.plain(name).strip()}, {before} to {after}", _LETTERS))
    if np.isnan(distribution.mean()):
        both = all(np.isnan(one[name].mean()) for one in (change.after, change.before))
        style.message(ax, f"undefined (0/0) in {'both' if both else 'one of the two'}")
        return ax
    low, high = distribution.interval(change.confidence_level)
    sides: tuple[dict[str, Any], ...] = (
        {"color": style.LABELED, "label": f"fell: {chance_text(change.probability_decreased(name))}"},
        {"color": style.ESTIMATE, "label": f"rose: {chance_text(change.probability_increased(name))}"},
    )
    stems = few_atoms(distribution)
    x, y = density_curve(distribution) if stems is None else stems
    same = 1.0 - change.probability_decreased(name) - change.probability_increased(name)
    unmoved = "no change" if same < _SHOWS else f"no change: {chance_text(min(1.0, same))}"
    if stems is not None:
        x = np.where(np.abs(x) < _ROUNDING, 0.0, x)
    for left, look in zip((True, False), sides, strict=True):
        own = x < 0.0 if left else x > 0.0 if stems is not None else x >= 0.0
        if stems is not None:
            ax.vlines(x[own], 0.0, y[own], linewidth=2.2, **look)
            ax.plot(x[own], y[own], color=look["color"], marker="v" if left else "^", markersize=5, linestyle="none")
        else:
            # Each side has its part up to zero, and no gap is left between the two.
            at = np.append(x[own], 0.0) if left else np.insert(x[own], 0, 0.0)
            at = at[(at >= x[0]) & (at <= x[-1])]
            fill = {"alpha": style.depth(ax, 0.4), "hatch": "////"} if left else {"alpha": style.depth(ax, 0.25)}
            ax.fill_between(at, np.interp(at, x, y), linewidth=0.0, **fill, **look)
    if stems is None:
        ax.plot(x, y, color=style.ink(ax), linewidth=1.0)
    elif np.any(x == 0.0):
        ax.plot([0.0], y[x == 0.0], color=style.grey(ax), marker="o", markersize=5, linestyle="none")
        ax.vlines([0.0], 0.0, y[x == 0.0], color=style.grey(ax), linewidth=2.2)
    ax.axvline(0.0, color=style.ink(ax), linestyle=style.LINES[1], linewidth=1.2, label=unmoved)
    width = high - low
    inside = f"{level_text(change.confidence_level)}: {style.number(low, width)} to {style.number(high, width)}"
    ax.axvline(
        distribution.mean(),
        color=style.ink(ax),
        linewidth=1.2,
        label=f"mean {style.number(distribution.mean(), width)}",
    )
    ax.hlines([0.0], low, high, color=style.ink(ax), linewidth=4.0, label=inside, clip_on=False, zorder=4)
    ax.set(ylabel="density" if stems is None else "probability", ylim=(0.0, 1.08 * float(y.max())))
    first, last = min(float(x[0]), 0.0, low), max(float(x[-1]), 0.0, high)
    margin = 0.05 * (last - first) or 0.05
    ax.set_xlim(first - margin, last + margin)
    ax.locator_params(axis="x", nbins=6)  # small numbers are long
    style.legend_above(ax, [style.scope_note(change.scope)])
    return ax


def plot_trend(trend: Trend, *, ax: "Axes | None" = None) -> "Axes":
    """Is a metric falling from period to period? The periods, and the straight lines that may run through them.

    Ticks and bars are means and intervals of the periods; the line has the mean slope, the band the interval of it.

    Parameters
    ----------
    trend : Trend
        The result of `GroupedEvaluation.trend`.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> rows = [("2026-05", 1, 0.9), ("2026-05", 0, 0.1), ("2026-06", 1, 0.9), ("2026-06", 0, 0.7)]
    >>> table = pd.DataFrame(rows, columns=["month", "y", "p"])
    >>> result = dm.evaluate_by("y", "p", data=table, by="month", metrics="accuracy")
    >>> dm.plotting.plot_trend(result.trend("accuracy")).get_ylabel()
    'accuracy'
    """
    style.checked("trend", trend, Trend, "what trend returns")
    ax = style.axes(ax)
    x, mean = np.array(trend.positions), np.array(trend.means)
    low, high = np.array(trend.intervals).T
    level = level_text(trend.confidence_level)
    ax.vlines(x, low, high, color=style.ESTIMATE, linewidth=4.0, label=f"{level} interval")
    tick: dict[str, Any] = {"color": style.ink(ax), "linestyle": "none", "markersize": 11, "markeredgewidth": 1.2}
    ax.plot(x, mean, marker="_", **tick, label="mean")
    if np.isnan(trend.distribution.mean()):
        style.message(ax, "undefined (0/0) in one of the periods")
    else:
        ends = np.array([x.min(), x.max()])
        slopes = np.array([trend.distribution.mean(), *trend.distribution.interval(trend.confidence_level)])
        lines = mean.mean() + np.multiply.outer(slopes, ends - x.mean())
        width = float(slopes[2] - slopes[1])
        said = f"{style.number(float(slopes[0]), width)} per {trend.unit}"
        ax.plot(ends, lines[0], color=style.LABELED, linestyle=style.LINES[1], label=said)
        # Lines that are steeper and flatter cross where the mean period is.
        at = np.array([ends[0], x.mean(), ends[1]])
        fan = mean.mean() + np.multiply.outer(slopes[1:], at - x.mean())
        look: dict[str, Any] = {"color": style.LABELED, "alpha": style.depth(ax, 0.2), "linewidth": 0.0}
        ax.fill_between(at, fan.min(axis=0), fan.max(axis=0), **look)
    falling, rising = trend.probability_decreasing(), trend.probability_increasing()
    word, chance = ("falling", falling) if not falling < rising else ("rising", rising)
    name_periods(ax, x, list(trend.periods))
    ax.set(xlabel=trend.unit, ylabel=style.wrapped(trend.metric.name, 30))
    style.grid(ax, "y")
    style.legend_above(ax, [f"{word}: {chance_text(chance)}", style.scope_note(trend.scope)])
    return ax


def plot_disparity(gap: Disparity, *, ax: "Axes | None" = None) -> "Axes":
    """How far are groups apart, and which of them are at the ends?

    A line per group with its mean and interval, the highest first; at the right the probabilities that it is the
    highest and the lowest of all. The gap stands above. Of more than 20 groups those at both ends are drawn.

    Parameters
    ----------
    gap : Gap
        The result of `GroupedEvaluation.gap`.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given, as high as the groups need.

    Returns
    -------
    Axes
        Those drawn on.

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
    style.checked("gap", gap, Disparity, "what gap returns")
    groups = sorted(gap.groups, key=lambda group: -np.nan_to_num(gap.means[group], nan=-np.inf))
    notes = []
    if len(groups) > _MOST:
        notes.append(f"{len(groups) - _MOST:,} groups in the middle not drawn")
        groups = [*groups[: _MOST // 2], *groups[-_MOST // 2 :]]
    names = style.shortened_apart(groups, _NAME)
    wider = _LETTER * max(0, max(map(len, names)) - _NAME)
    ax = style.axes(ax, height=_REST + _LINE * len(groups), width=style.WIDTH + wider)
    place = np.arange(len(groups))
    low, high = np.array([gap.intervals[group] for group in groups]).T
    level = level_text(gap.confidence_level)
    ax.hlines(place, low, high, color=style.ESTIMATE, linewidth=4.0, label=f"{level} interval")
    means = [gap.means[group] for group in groups]
    tick: dict[str, Any] = {"color": style.ink(ax), "linestyle": "none", "markersize": 11, "markeredgewidth": 1.2}
    ax.plot(means, place, marker="|", **tick, label="mean")
    right: dict[str, Any] = {"fontsize": "small", "textcoords": "offset fontsize"}
    for column, (title, chances) in enumerate(
        (("highest", gap.probability_highest), ("lowest", gap.probability_lowest))
    ):
        # In letters: a share of axes that long names have made narrow would have columns run together.
        across = 0.7 + 5.3 * column
        for line, group in enumerate(groups):
            text = "0/0" if np.isnan(chances[group]) else chance_text(chances[group])
            at = (1.0, line)
            ax.annotate(text, at, (across, 0.0), ax.get_yaxis_transform(), va="center", **right)
        ax.annotate(title, (1.0, 1.0), (across, 0.4), "axes fraction", va="bottom", **right)
    ax.set_yticks(place, [style.plain(name) for name in names], fontsize="small")
    ax.set_ylim(len(groups) - 0.4, -0.6)
    name = "true positive rate" if gap.kind == "equalized_odds" else gap.metric
    ax.set(xlabel=style.wrapped(name, _LETTERS), ylabel="group")
    style.grid(ax, "x")
    first, last = gap.distribution.interval(gap.confidence_level)
    width = last - first
    short = {"difference": "largest minus smallest", "ratio": "smallest over largest"}.get(gap.kind, "equalized odds")
    value = style.number(gap.distribution.mean(), width)
    inside = (
        "" if first == last or np.isnan(first) else f" ({style.number(first, width)} to {style.number(last, width)})"
    )
    style.legend_above(ax, [f"{short} {value}{inside}", style.scope_note(gap.scope), *notes], side="right")
    return ax
