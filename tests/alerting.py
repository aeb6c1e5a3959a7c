"""evaluate_by and its alerts in one call, for tests of alerts."""

from typing import Any

from darkmetrics.monitoring import Alerts, evaluate_by

_OF_ALERTS = ("false_discovery_rate", "correction", "min_labels", "since", "last_periods", "known_alerts")


def alerts_by(*arguments: Any, targets: Any, **settings: Any) -> Alerts:
    """Return the alerts of groups; settings of both calls are told apart by their names."""
    asked = {name: settings.pop(name) for name in _OF_ALERTS if name in settings}
    return evaluate_by(*arguments, **settings).alerts(targets, **asked)
