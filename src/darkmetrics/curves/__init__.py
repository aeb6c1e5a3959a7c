"""Curves: every metric at every threshold, with what the missing labels leave open.

Import rule: curves know evaluations and what these are made of; nothing below knows curves.
"""

from darkmetrics.curves.bands import Band, RateCurve
from darkmetrics.curves.choosing import BestThreshold
from darkmetrics.curves.result import ThresholdCurves
from darkmetrics.curves.run import threshold_curves

__all__ = ["Band", "BestThreshold", "RateCurve", "ThresholdCurves", "threshold_curves"]
