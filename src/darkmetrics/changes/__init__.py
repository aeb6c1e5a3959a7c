"""Metrics of different rows compared: changes between two sets, slopes over periods, disparities between groups.

Import rule: it may import evaluations and their parts, but no groups (`monitoring`).
"""

from darkmetrics.changes.change import EvaluationChange, compare_evaluations
from darkmetrics.changes.disparity import Disparity
from darkmetrics.changes.trend import Trend

__all__ = ["Disparity", "EvaluationChange", "Trend", "compare_evaluations"]
