"""What a result over groups says: its rows as a table, and the sentences above and below it."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._text import counted
from darkmetrics.monitoring.alerts import Alert, probability_text, side_of
from darkmetrics.monitoring.groups import group_text, key_text, listed
from darkmetrics.tables import chance_text, level_text

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation


# Alerts that are named; more are not read.
_NAMED = 5


def verdict_text(result: "GroupedEvaluation", name: str) -> str:
    """How many groups miss a target, and which; where no alert is raised, which one comes nearest to it."""
    missed = [alert for alert in result.alerts if alert.metric == name]
    judged = [key for key, metric in result.q_values if metric == name]
    target = f"{name} {side_of(result.metrics[name])} {result.targets[name]:g}"
    rate = f"(false-discovery rate {level_text(result.false_discovery_rate)})"
    if not missed:
        text = f"No alert for {target} in {counted(len(judged), 'group')} {rate}."
        if not judged:
            return text
        nearest = max(judged, key=lambda key: result.groups[key].chance_missed[name])
        group = group_text(result.names, nearest, result.period, result.every)
        return f"{text} Most likely to miss: {group} ({chance_text(result.groups[nearest].chance_missed[name])})."
    text = f"{len(missed):,} of {counted(len(judged), 'group')} miss{'es' if len(missed) < 2 else ''} {target} {rate}"
    if result.gone is not None:
        text += f", {sum(alert.new for alert in missed) or 'none'} of them new"
        missed.sort(key=lambda alert: not alert.new)  # a stable sort
    age = [f", {alert.age}" if result.gone is not None else "" for alert in missed]
    which = [
        f"{alert.group} ({probability_text(alert.probability)}{since})"
        for alert, since in zip(missed[:_NAMED], age, strict=False)
    ]
    which += [f"and {len(missed) - _NAMED:,} more"] if len(missed) > _NAMED else []
    return f"{text}: {'; '.join(which)}."


def window_text(result: "GroupedEvaluation") -> list[str]:
    """Which groups alerts look at, where these are not all."""
    if result.since is None or not result.targets:
        return []
    judged = len({key for key, _ in result.q_values})
    first = key_text(result.since, result.every)
    return [f"Alerts look at {first} and later: {judged:,} of {counted(len(result.groups), 'group')} are judged."]


def gone_texts(result: "GroupedEvaluation") -> list[str]:
    """Which earlier alerts are none any more, and what has become of them."""
    if not result.gone:
        return []
    which = [f"{one.group} ({one.metric} {one.side} {one.target:g}; {_became(result, one)})" for one in result.gone]
    more = [f"and {len(which) - _NAMED:,} more"] if len(which) > _NAMED else []
    return [f"No longer an alert: {'; '.join([*which[:_NAMED], *more])}."]


def _became(result: "GroupedEvaluation", alert: Alert) -> str:
    group = result.groups.get(alert.key)
    if group is None:
        return "not in the table"
    if result.targets.get(alert.metric) != alert.target:
        return "not asked for now"
    if (alert.key, alert.metric) in result.q_values:
        return f"probability of a miss now {probability_text(group.chance_missed[alert.metric])}"
    return "too small to judge" if group.too_small else "not looked at now"


def bucket_texts(result: "GroupedEvaluation") -> list[str]:
    """What counting scores in buckets can have done to the metrics; nothing where scores are exact."""
    if result.total.data.buckets is None:
        return []
    effects = {name: [group.metrics[name].bucket_effect for group in result.groups.values()] for name in result.metrics}
    moved = [f"{name} by at most {max(found):.1g}" for name, found in effects.items() if max(found) > 0.0]
    unknown = [name for name, found in effects.items() if any(math.isnan(effect) for effect in found)]
    text = f"Scores are in {result.total.data.buckets:,} buckets per group"
    text += f", which can move {listed(moved)} in a group; alerts allow for it." if moved else "."
    return [text + (f" What they do to {listed(unknown)} is not known: no alerts." if unknown else "")]


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
