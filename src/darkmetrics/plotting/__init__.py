"""Plots of results: functions that take a result and return matplotlib Axes.

Import rule: matplotlib is imported when a plot is drawn, and pyplot only where no axes are given.
"""

from darkmetrics.plotting.arrivals import plot_arrival
from darkmetrics.plotting.backtests import plot_coverage, plot_history, plot_pit, plot_verification
from darkmetrics.plotting.by_group import plot_groups
from darkmetrics.plotting.classes import plot_confusion, plot_per_class
from darkmetrics.plotting.differences import plot_change, plot_difference
from darkmetrics.plotting.distribution import plot_distribution
from darkmetrics.plotting.forests import plot_disparity, plot_metrics, plot_models, plot_variance
from darkmetrics.plotting.labels import plot_reliability, plot_scores
from darkmetrics.plotting.over_time import plot_over_time, plot_trend
from darkmetrics.plotting.segments import plot_segments
from darkmetrics.plotting.thresholds import plot_curves, plot_precision_recall, plot_roc

__all__ = [
    "plot_arrival",
    "plot_change",
    "plot_confusion",
    "plot_coverage",
    "plot_curves",
    "plot_difference",
    "plot_disparity",
    "plot_distribution",
    "plot_groups",
    "plot_history",
    "plot_metrics",
    "plot_models",
    "plot_over_time",
    "plot_per_class",
    "plot_pit",
    "plot_precision_recall",
    "plot_reliability",
    "plot_roc",
    "plot_scores",
    "plot_segments",
    "plot_trend",
    "plot_variance",
    "plot_verification",
]
