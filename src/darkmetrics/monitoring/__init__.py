"""Monitoring: evaluations of segments and periods, and alerts that are rarely false.

Import rule: it may import `evaluate` and frames that count, but no plots, reports or command line.
"""

from darkmetrics.monitoring.alerts import Alert, Alerts
from darkmetrics.monitoring.groups import GroupSummary, MetricSummary
from darkmetrics.monitoring.result import GroupedEvaluation
from darkmetrics.monitoring.run import evaluate_by

__all__ = ["Alert", "Alerts", "GroupSummary", "GroupedEvaluation", "MetricSummary", "evaluate_by"]
