"""Diagnosis: what the data say about why labels are missing, and what they cannot say.

Import rule: a diagnosis knows label models, metrics and methods; evaluations know it, not the other way round.
"""

from darkmetrics.diagnosis.mechanisms import MechanismEstimate
from darkmetrics.diagnosis.result import Diagnosis
from darkmetrics.diagnosis.run import diagnose, diagnosis_of
from darkmetrics.diagnosis.scores import MixtureCheck, ScoreDifference
from darkmetrics.missingness.base import Estimate
from darkmetrics.missingness.checks import CalibrationCheck, ReferenceCheck, ReliabilityBin

__all__ = [
    "CalibrationCheck",
    "Diagnosis",
    "Estimate",
    "MechanismEstimate",
    "MixtureCheck",
    "ReferenceCheck",
    "ReliabilityBin",
    "ScoreDifference",
    "diagnose",
    "diagnosis_of",
]
