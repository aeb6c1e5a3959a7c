"""change(): did a metric fall or rise between two sets of rows; slopes over many sets, and gaps between them.

Import rule: it knows evaluations and what they are made of. Groups (`monitoring`) ask it, not the other way round.
"""

from darkmetrics.changes.gap import Gap
from darkmetrics.changes.result import Change
from darkmetrics.changes.run import change
from darkmetrics.changes.trend import Trend

__all__ = ["Change", "Gap", "Trend", "change"]
