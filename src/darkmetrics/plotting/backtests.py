"""plot_pit and plot_coverage: would the intervals have held where labels were hidden?"""

from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics.backtesting import Backtest
from darkmetrics.plotting import style
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_pit(result: Backtest, metric: str, *, ax: "Axes | None" = None) -> "Axes":
    """Are the predicted laws right? The PIT values of a metric, sorted, against what uniform ones would be.

    A line along the diagonal means that laws are right, one above it that truths are larger than predicted, one that
    starts below and ends above that laws are too narrow.

    The grey band would hold each point of right laws in 90% of backtests if every repeat had rows of its own. Repeats
    share their rows, so that lines of right laws leave it more often. It is the band of the setup with fewest repeats.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(y_true, y_score, label_models="prevalence", metrics="accuracy", n_repeats=10, rng=0)
    >>> ax = dm.plotting.plot_pit(result, "accuracy")
    >>> ax.get_xlabel()
    'share of repeats'
    """
    from scipy.stats import beta

    style.checked("result", result, Backtest, "what backtest returns")
    of_setups = {setup: np.sort(result[setup, metric].pit) for setup in result.scores}
    ax = style.axes(ax)
    for number, (setup, pit) in enumerate(of_setups.items()):
        level = (np.arange(pit.size) + 0.5) / max(pit.size, 1)
        ax.plot(level, pit, **style.style_of(number), markersize=3, linewidth=1, alpha=0.8, label=style.plain(setup))
    fewest = min((pit.size for pit in of_setups.values() if pit.size), default=0)
    if fewest:
        place = np.arange(1, fewest + 1)
        low, high = (beta.ppf(q, place, fewest - place + 1) for q in (0.05, 0.95))
        ax.fill_between((place - 0.5) / fewest, low, high, color="0.85", zorder=0, linewidth=0)
    ax.plot([0, 1], [0, 1], color="0.4", linewidth=0.8, zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="share of repeats")
    ax.set_ylabel(style.wrapped(metric, 30) + "\nlaw at the truth (PIT)")
    style.legend_above(ax)
    return ax


def plot_coverage(result: Backtest, *, ax: "Axes | None" = None) -> "Axes":
    """Do the intervals hold? The share of repeats whose interval held the truth, per metric and setup.

    Bars are 90% intervals (Wilson's) over the repeats, the line is what the intervals promise.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(y_true, y_score, label_models="prevalence", metrics="accuracy", n_repeats=10, rng=0)
    >>> ax = dm.plotting.plot_coverage(result)
    >>> ax.get_xlabel()
    'metric'
    """
    style.checked("result", result, Backtest, "what backtest returns")
    names = list(next(iter(result.scores.values())))
    ax = style.axes(ax)
    setups = len(result.scores)
    for number, (setup, of_setup) in enumerate(result.scores.items()):
        figures = np.array([of_setup[name].coverage for name in names])
        place = np.arange(len(names)) + (number - 0.5 * (setups - 1)) * 0.6 / setups
        reach = np.abs(figures[:, 1:] - figures[:, :1]).T
        signs = {**style.style_of(number), "linestyle": "none"}
        ax.errorbar(place, figures[:, 0], yerr=reach, **signs, capsize=2, label=style.plain(setup))
    ax.axhline(result.confidence_level, color="0.4", linewidth=0.8, zorder=0)
    ax.set(ylim=(-0.03, 1.03), ylabel=f"share of {level_text(result.confidence_level)} intervals that hold the truth")
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len(names) > 3 else {}
    ax.set_xticks(range(len(names)), [style.wrapped(name) for name in names], **turned)
    ax.set_xlabel("metric")
    style.legend_above(ax)
    return ax
