"""The numbers of all groups as rows of a table: one per group and metric."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation


def rows_of(result: "GroupedEvaluation") -> list[dict[str, Any]]:
    """One row per group and metric, with NaN where there is no number."""
    alerts = {(alert.key, alert.metric): alert for alert in result.alerts}
    rows = []
    for key, group in result.groups.items():
        for name, one in group.metrics.items():
            numbers = {
                "metric": name,
                "scope": result.total.scope,
                **group.counts,
                **asdict(one),
                "target": result.targets.get(name, np.nan),
                "chance_missed": group.chance_missed.get(name, np.nan),
                "q_value": result.q_values.get((key, name), np.nan),
                "alert": (key, name) in alerts,
                "new": (key, name) in alerts and alerts[key, name].new,
                "too_small": group.too_small,
                "warnings": ", ".join(dict.fromkeys(warned.category for warned in group.warnings)),
            }
            row = dict(zip(result.names, key, strict=True))
            rows.append(row | {part + "_" * (part in row): number for part, number in numbers.items()})
    return rows
