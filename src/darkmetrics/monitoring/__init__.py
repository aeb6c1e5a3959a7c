"""Monitoring: segments and periods evaluated one by one, and alerts that are rarely false.

Import rule: knows `evaluate`, frames that count, and nothing that draws or prints.
"""

from darkmetrics.monitoring.alerts import Alert, Alerts
from darkmetrics.monitoring.groups import GroupSummary, MetricSummary
from darkmetrics.monitoring.result import GroupedEvaluation
from darkmetrics.monitoring.run import evaluate_by

__all__ = ["Alert", "Alerts", "GroupSummary", "GroupedEvaluation", "MetricSummary", "evaluate_by"]
