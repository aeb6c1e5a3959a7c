"""Metrics at many thresholds, with intervals for the missing labels.

Import rule: it may import evaluations and their parts; nothing that they import may import curves.
"""

from darkmetrics.curves.bands import Band, RateCurve
from darkmetrics.curves.choosing import BestThreshold
from darkmetrics.curves.result import ThresholdCurves
from darkmetrics.curves.run import threshold_curves

__all__ = ["Band", "BestThreshold", "RateCurve", "ThresholdCurves", "threshold_curves"]
