"""Plots of results: functions that take a result and return matplotlib Axes, which is imported when one is drawn."""

from typing import Any

import numpy as np

from darkmetrics.backtest import Backtest
from darkmetrics.exceptions import MethodError

# Okabe and Ito's colours, told apart by colour-blind readers; the markers tell them apart in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_pit(result: Backtest, metric: str, *, ax: Any = None) -> Any:
    """Are the predicted laws right? The PIT values of a metric, sorted, against what uniform ones would be.

    A line along the diagonal means that laws are right, one above it that truths are larger than predicted, one that
    starts below and ends above that laws are too narrow. Of perfect laws the grey band holds each point in 90% of
    backtests.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(y_true, y_score, label_models="prevalence", metrics="accuracy", n_repeats=10, rng=0)
    >>> ax = dm.plotting.plot_pit(result, "accuracy")  # doctest: +SKIP
    """
    from scipy.stats import beta

    ax = _axes(ax)
    most = 0
    for (way, of_way), colour, marker in zip(result.scores.items(), _cycle(_COLOURS), _cycle(_MARKERS), strict=False):
        pit = np.sort(of_way[metric].pit)
        most = max(most, pit.size)
        level = (np.arange(pit.size) + 0.5) / max(pit.size, 1)
        ax.plot(level, pit, color=colour, marker=marker, markersize=3, linewidth=1, label=way)
    if most:
        place = np.arange(1, most + 1)
        low, high = (beta.ppf(q, place, most - place + 1) for q in (0.05, 0.95))
        ax.fill_between((place - 0.5) / most, low, high, color="0.85", zorder=0, linewidth=0)
    ax.plot([0, 1], [0, 1], color="0.4", linewidth=0.8, zorder=1)
    ax.set(
        xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="share of repeats", ylabel=f"{metric}: law at the truth (PIT)"
    )
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_coverage(result: Backtest, *, ax: Any = None) -> Any:
    """Do the intervals hold? The share of repeats whose interval held the truth, per metric and way.

    Bars are 90% bootstrap intervals over the repeats, the line is what the intervals promise.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> result = dm.backtest(y_true, y_score, label_models="prevalence", metrics="accuracy", n_repeats=10, rng=0)
    >>> ax = dm.plotting.plot_coverage(result)  # doctest: +SKIP
    """
    ax = _axes(ax)
    names = list(next(iter(result.scores.values())))
    ways = len(result.scores)
    for number, (way, of_way) in enumerate(result.scores.items()):
        figures = np.array([of_way[name].coverage for name in names])
        place = np.arange(len(names)) + (number - 0.5 * (ways - 1)) * 0.6 / ways
        reach = np.abs(figures[:, 1:] - figures[:, :1]).T
        colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        ax.errorbar(place, figures[:, 0], yerr=reach, fmt=marker, color=colour, capsize=2, label=way)
    ax.axhline(result.confidence_level, color="0.4", linewidth=0.8, zorder=0)
    ax.set(ylim=(-0.03, 1.03), ylabel=f"share of {result.confidence_level:.0%} intervals that hold the truth")
    ax.set_xticks(range(len(names)), names, rotation=20 if len(names) > 4 else 0)
    ax.legend(frameon=False)
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MethodError("plot: needs matplotlib; pip install 'darkmetrics[plot]'.") from None
    return plt.subplots(layout="constrained")[1]


def _cycle(items: tuple[str, ...]) -> tuple[str, ...]:
    return items * 20
