"""Verification: a sequential test of an earlier evaluation against labels that arrived later.

Import rule: knows `evaluate` and label models; results know nothing of how they came about.
"""

from darkmetrics.verification.result import ResolvedMetric, Verification
from darkmetrics.verification.run import verify

__all__ = ["ResolvedMetric", "Verification", "verify"]
