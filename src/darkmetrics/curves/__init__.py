"""Curves: every metric at every threshold, with what the missing labels leave open.

Import rule: curves know evaluations and what these are made of; nothing below knows curves.
"""

from darkmetrics.curves.bands import Band, RateCurve
from darkmetrics.curves.best import BestThreshold
from darkmetrics.curves.result import Curves
from darkmetrics.curves.sweep import curves

__all__ = ["Band", "BestThreshold", "Curves", "RateCurve", "curves"]
