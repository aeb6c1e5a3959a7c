"""Curves: every metric at every threshold, with what the missing labels leave open.

Import rule: curves know evaluations and what these are made of; nothing below knows curves.
"""

from darkmetrics.threshold_curves.bands import Band, RateCurve
from darkmetrics.threshold_curves.choosing import BestThreshold
from darkmetrics.threshold_curves.result import Curves
from darkmetrics.threshold_curves.run import curves

__all__ = ["Band", "BestThreshold", "Curves", "RateCurve", "curves"]
