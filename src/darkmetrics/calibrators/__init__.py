"""Calibrators: from scores to probabilities, with the uncertainty that is left after fitting.

Import rule: a calibrator knows kernels, frames, columns and exceptions; it knows no evaluation set and no label model.
"""

from darkmetrics.calibrators.base import Calibrator
from darkmetrics.calibrators.binning import ScalingBinning
from darkmetrics.calibrators.choice import Fitted, calibrator_from
from darkmetrics.calibrators.isotonic import Isotonic
from darkmetrics.calibrators.logistic import Beta, Flexible, Platt

__all__ = ["Beta", "Calibrator", "Fitted", "Flexible", "Isotonic", "Platt", "ScalingBinning", "calibrator_from"]
