"""plot_difference and plot_models: which model is better, and how sure that is."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics.comparison.ranking import range_text
from darkmetrics.comparison.result import Comparison
from darkmetrics.plotting import style
from darkmetrics.plotting.shape import density_curve, few_atoms
from darkmetrics.tables import chance_text, level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches that a model takes in a forest plot, and all that is not models.
_LINE, _REST = 0.32, 1.25


def plot_difference(
    comparison: Comparison,
    metric: str,
    model: str | None = None,
    other: str | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """How much better is one model than another, and how likely is it better at all?

    The law of their difference, under labels that they share, on these rows or in the population. The part of it on
    which the model is better is filled, the rest is hatched; the line at zero is where both are equal, and the bar on
    the axis is the interval.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    metric : str
        One of its metrics.
    model, other : str, optional
        Two of its models; the last against the first unless named.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
    >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
    >>> ax = dm.plotting.plot_difference(found, "accuracy")
    >>> ax.get_xlabel()
    'accuracy: challenger less champion'
    """
    style.checked("comparison", comparison, Comparison, "what compare returns")
    model, other = model or comparison.models[-1], other or comparison.models[0]
    distribution = comparison.difference(metric, model, other)
    ax = style.axes(ax)
    names = [style.shortened(style.plain(name).strip(), 20) for name in (model, other)]
    ax.set_xlabel(style.folded(f"{style.plain(metric).strip()}: {names[0]} less {names[1]}", 52))
    ax.axvline(0.0, color=style.ink(ax), linestyle=style.LINES[1], label="no difference")
    if np.isnan(distribution.mean()):
        style.message(ax, "undefined (0/0) whatever the missing labels are")
        ax.set(ylabel="probability", ylim=(0.0, 1.05), yticks=[0.0, 1.0])
        return ax
    better = comparison.metrics[metric].better
    sign = -1.0 if better == "lower" else 1.0
    low, high = distribution.interval(comparison.confidence_level)
    words = ["above zero", "not above"]
    if better != "neither":
        chance = comparison.probability_better(metric, model, other)
        words = [f"{names[0]} better: {chance_text(chance)}", f"not better: {chance_text(1.0 - chance)}"]
        left_open = range_text(chance, comparison.better_range(metric, model, other))
        words[0] += f" ({left_open} with exact scores)" if left_open else ""
    stems = few_atoms(distribution)
    x, y = density_curve(distribution) if stems is None else stems
    for own, colour, hatch, depth, word in (
        (sign * x > 0.0, style.COLOURS[0], style.HATCHES[0], 0.45, words[0]),
        (sign * x <= 0.0, style.COLOURS[1], style.HATCHES[1], 0.25, words[1]),
    ):
        if stems is None:
            alpha, where = style.depth(ax, depth), _up_to(own).tolist()
            ax.fill_between(x, y, where=where, color=colour, alpha=alpha, hatch=hatch, linewidth=0.0, label=word)
        else:
            ax.vlines(x[own], 0.0, y[own], color=colour, linewidth=2.5)
            ax.plot(x[own], y[own], "s" if hatch else "o", color=colour, markersize=5, label=word)
    if stems is None:
        ax.plot(x, y, color=style.ink(ax), linewidth=1.0)
    ax.set_ylabel("density" if stems is None else "probability")
    ax.set_ylim(0.0, 1.08 * float(y.max()))
    ax.locator_params(axis="x", nbins=6)  # small numbers are long
    width = high - low
    interval = f"{level_text(comparison.confidence_level)}: {style.number(low, width)} to {style.number(high, width)}"
    # On the axis, half below it: over the law it would hide what is under it.
    ax.plot(
        [low, high],
        [0.0, 0.0],
        color=style.ink(ax),
        linewidth=4.0,
        solid_capstyle="butt",
        transform=ax.get_xaxis_transform(),
        clip_on=False,
        label=interval,
        zorder=4,
    )
    ax.plot(
        [distribution.mean()],
        [0.0],
        marker="D",
        markersize=6,
        markeredgecolor=style.paper(ax),
        color=style.ink(ax),
        linestyle="none",
        transform=ax.get_xaxis_transform(),
        clip_on=False,
        label=f"mean {style.number(distribution.mean(), width)}",
        zorder=5,
    )
    style.legend_above(ax, [style.scope_note(comparison.scope)])
    return ax


def _up_to(own: np.ndarray) -> np.ndarray:
    """The places of one side, and the next one over: else a gap is left at zero."""
    wider = own.copy()
    wider[1:] |= own[:-1]
    return wider


def plot_models(comparison: Comparison, metric: str, *, ax: "Axes | None" = None) -> "Axes":
    """How good is every model in a metric, and how likely is each the best?

    A forest plot: one line per model with its mean (tick), the interval that holds it with probability 50% (thick)
    and with that of the comparison (thinner), and what dropping the unlabeled rows would have said (open square, a
    little lower). On the right stands the chance that the model is the best. Intervals may overlap where one model is
    surely better: labels are shared, and `plot_difference` shows what that leaves.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    metric : str
        One of its metrics.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given, as high as the models need.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
    >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
    >>> ax = dm.plotting.plot_models(found, "accuracy")
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['champion', 'challenger']
    """
    style.checked("comparison", comparison, Comparison, "what compare returns")
    directed = comparison.metrics[metric].better != "neither" if metric in comparison.metrics else False
    distributions = [comparison[model][metric] for model in comparison.models]
    ax = style.axes(ax, _REST + _LINE * (len(distributions) + 1))
    place = np.arange(len(distributions), dtype=np.float64)
    defined = [i for i, distribution in enumerate(distributions) if np.isfinite(distribution.mean())]
    level = comparison.confidence_level
    for share, width in ((level, 3.5), (0.5, 7.0)):
        ends = np.array([distributions[i].interval(share) for i in defined]).reshape(-1, 2)
        label = f"{level_text(share)} interval"
        ax.hlines(place[defined], ends[:, 0], ends[:, 1], color=style.ESTIMATE, linewidth=width, label=label)
    means = [distributions[i].mean() for i in defined]
    ax.plot(means, place[defined], "|", color=style.ink(ax), markersize=13, markeredgewidth=1.2, label="mean", zorder=3)
    only = np.array([comparison[model].labeled_only[metric] for model in comparison.models])
    ax.plot(only, place + 0.27, "s", markersize=5, markerfacecolor="none", color=style.LABELED, label="labeled only")
    ax.set_yticks(place, [style.wrapped(model) for model in comparison.models])
    ax.set(ylim=(len(distributions) - 0.5, -0.5), ylabel="model")
    ax.set_xlabel(style.wrapped(metric, 44))
    if directed:
        best = comparison.probability_best(metric)
        right = ax.secondary_yaxis("right")
        right.set_yticks(place, [best.text(model) for model in comparison.models])
        right.tick_params(length=0)
        right.set_ylabel("chance\nto be best" if best.tie < 0.005 else f"best alone\n(tie {chance_text(best.tie)})")
    style.legend_above(ax, [style.scope_note(comparison.scope)])
    return ax
