"""Audit: labels that have come since check what an earlier evaluation said of them.

Import rule: knows `evaluate` and label models; results know nothing of how they came about.
"""

from darkmetrics.auditing.result import Audit, KnownMetric
from darkmetrics.auditing.run import audit

__all__ = ["Audit", "KnownMetric", "audit"]
