"""compare_evaluations(): changes of metrics between two sets of rows, slopes over many, disparities between groups.

Import rule: it knows evaluations and what they are made of. Groups (`monitoring`) ask it, not the other way round.
"""

from darkmetrics.changes.gap import Disparity
from darkmetrics.changes.result import EvaluationChange
from darkmetrics.changes.run import compare_evaluations
from darkmetrics.changes.trend import Trend

__all__ = ["Disparity", "EvaluationChange", "Trend", "compare_evaluations"]
