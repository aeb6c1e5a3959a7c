"""plot_pit, plot_coverage, plot_history and plot_verification: predictions and labels that arrived later."""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.backtesting import Backtest
from darkmetrics.exceptions import InputError
from darkmetrics.plotting import style
from darkmetrics.tables import level_text
from darkmetrics.verification import Verification
from darkmetrics.wording import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_pit(result: Backtest, metric: str, *, ax: "Axes | None" = None) -> "Axes":
    """Are the predicted laws right? The PIT values of a metric, sorted, against what uniform ones would be.

    A line along the diagonal means that laws are right, one above it that truths are larger than predicted, one that
    starts below and ends above that laws are too narrow.

    The gray band would hold each point of right laws in 90% of backtests if every repeat had rows of its own. Repeats
    share their rows, so that lines of right laws leave it more often. It is the band of the setup with fewest repeats.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(
    ...     y_true, y_score, metrics="accuracy", n_repeats=10, rng=0, missingness=dm.missing.TrainingPrevalence()
    ... )
    >>> ax = dm.plotting.plot_pit(result, "accuracy")
    >>> ax.get_xlabel()
    'share of repeats'
    """
    from scipy.stats import beta

    style.validate_result("result", result, Backtest, "what backtest returns")
    of_setups = {setup: np.sort(result[setup, metric].pit) for setup in result.scores}
    ax = style.new_axes(ax)
    for number, (setup, pit) in enumerate(of_setups.items()):
        level = (np.arange(pit.size) + 0.5) / max(pit.size, 1)
        ax.plot(
            level,
            pit,
            **style.series_style(number),
            markersize=3,
            linewidth=1,
            alpha=0.8,
            label=style.escape_text(setup),
        )
    fewest = min((pit.size for pit in of_setups.values() if pit.size), default=0)
    if fewest:
        place = np.arange(1, fewest + 1)
        low, high = (beta.ppf(q, place, fewest - place + 1) for q in (0.05, 0.95))
        ax.fill_between((place - 0.5) / fewest, low, high, color=style.grid_color(ax), zorder=0, linewidth=0)
    ax.plot([0, 1], [0, 1], color=style.muted_color(ax), linewidth=0.8, zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="share of repeats")
    ax.set_ylabel(style.wrap_name(metric, 30) + "\nlaw at the truth (PIT)")
    return style.finish_plot(ax)


def plot_coverage(result: Backtest, *, ax: "Axes | None" = None) -> "Axes":
    """Do the intervals hold? The share of repeats whose interval held the truth, per metric and setup.

    Bars are 90% intervals (Wilson's) over the repeats, the line is what the intervals promise.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(
    ...     y_true, y_score, metrics="accuracy", n_repeats=10, rng=0, missingness=dm.missing.TrainingPrevalence()
    ... )
    >>> ax = dm.plotting.plot_coverage(result)
    >>> ax.get_xlabel()
    'metric'
    """
    style.validate_result("result", result, Backtest, "what backtest returns")
    names = list(next(iter(result.scores.values())))
    ax = style.new_axes(ax)
    setups = len(result.scores)
    for number, (setup, of_setup) in enumerate(result.scores.items()):
        figures = np.array([of_setup[name].coverage for name in names])
        place = np.arange(len(names)) + (number - 0.5 * (setups - 1)) * 0.6 / setups
        reach = np.abs(figures[:, 1:] - figures[:, :1]).T
        signs = {**style.series_style(number), "linestyle": "none"}
        ax.errorbar(place, figures[:, 0], yerr=reach, **signs, capsize=2, label=style.escape_text(setup))
    ax.axhline(result.confidence_level, color=style.muted_color(ax), linewidth=0.8, zorder=0)
    ax.set(ylim=(-0.03, 1.03), ylabel=f"share of {level_text(result.confidence_level)} intervals\nthat hold the truth")
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len(names) > 3 else {}
    ax.set_xticks(range(len(names)), [style.wrap_name(name) for name in names], **turned)
    ax.set_xlabel("metric")
    return style.finish_plot(ax)


def plot_history(result: Backtest, metric: str, *, ax: "Axes | None" = None) -> "Axes":
    """What would have been said at each date, and what came true? Needs a backtest with `as_of`.

    Bars are the intervals of each setup with the labels known then, black marks the values with the labels known now.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> day, y_score = rng.integers(0, 300, 3000), rng.random(3000)
    >>> y_true, delay = rng.random(3000) < y_score, rng.integers(0, 60, 3000)
    >>> when = dict(as_of=[120, 180, 240], scored_at=day, labeled_at=day + delay)
    >>> result = dm.backtest(y_true, y_score, metrics="recall", window=30, rng=0, **when)
    >>> ax = dm.plotting.plot_history(result, "recall")
    >>> ax.get_xlabel()
    'as of'
    """
    style.validate_result("result", result, Backtest, "what backtest returns")
    if not result.history:
        raise InputError("result", "no dates were replayed", "", f"Pass {setting('as_of')} to backtest.")
    for setup in result.scores:
        result[setup, metric]  # has a message for a metric that is not there
    ax = style.new_axes(ax)
    dates = list(dict.fromkeys(one.as_of for one in result.history))
    setups = len(result.scores)
    for number, setup in enumerate(result.scores):
        own = [one for one in result.history if (one.setup, one.metric) == (setup, metric)]
        place = [dates.index(one.as_of) + (number - 0.5 * (setups - 1)) * 0.6 / setups for one in own]
        reach = np.array([[one.mean - one.low, one.high - one.mean] for one in own]).reshape(-1, 2).T
        signs = {**style.series_style(number), "linestyle": "none", "label": style.escape_text(setup)}
        ax.errorbar(place, [one.mean for one in own], yerr=np.maximum(reach, 0.0), **signs, capsize=2)
    truth = {one.as_of: one.truth for one in result.history if one.metric == metric}
    for at, date in enumerate(dates):
        if date in truth:
            label = "known now" if date == next(iter(truth)) else None
            ax.plot(
                [at - 0.4, at + 0.4], [truth[date]] * 2, color=style.ink_color(ax), linewidth=1.2, zorder=3, label=label
            )
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len(dates) > 3 else {}
    ax.set_xticks(range(len(dates)), dates, **turned)
    ax.set(xlabel="as of", ylabel=style.wrap_name(metric, 30))
    return style.finish_plot(ax)


def plot_verification(result: Verification, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the e-value of a verification over the labels that arrived, on a log scale.

    The horizontal line is at `1 / alpha`, which correct probabilities ever reach with probability at most alpha.
    Triangles at the upper edge are infinite e-values.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> may = dm.evaluate(
    ...     [1, 0, None, None], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed(0.5), metrics="accuracy"
    ... )
    >>> ax = dm.plotting.plot_verification(dm.verify(may, [1, 0], [0.7, 0.4], arrival="alike"))
    >>> ax.get_xlabel()
    'labels that arrived'
    """
    style.validate_result("result", result, Verification, "the result of verify")
    ax = style.new_axes(ax)
    labels, values = np.append(0, result.labels), np.append(1.0, result.e_values)
    infinite = np.isinf(values)
    ax.plot(labels[~infinite], values[~infinite], **style.series_style(0), markersize=3, linewidth=1, label="e-value")
    if infinite.any():
        marks: dict[str, Any] = {"marker": "^", "linestyle": "none", "markersize": 5, "label": "infinite e-value"}
        upper_edge: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        ones = np.ones(int(infinite.sum()))
        ax.plot(labels[infinite], ones, color=style.series_style(0)["color"], **marks, **upper_edge)
    ax.axhline(
        1.0 / result.alpha, color=style.muted_color(ax), linewidth=0.8, linestyle="--", label="rejected above", zorder=0
    )
    ax.set(yscale="log", xlabel="labels that arrived", ylabel="e-value")
    return style.finish_plot(ax)
