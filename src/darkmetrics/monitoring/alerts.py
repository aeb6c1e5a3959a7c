"""Alerts: groups that miss a target, with few false alerts among them; which of them are new, known or resolved."""

import datetime as dt
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

from darkmetrics import frames
from darkmetrics._text import counted, join_words, prints_plainly
from darkmetrics.constraints import check_value
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import Metric
from darkmetrics.metrics.targets import targets_from
from darkmetrics.monitoring.groups import MIN_LABELS, Key, group_text, key_text, plain_value
from darkmetrics.monitoring.p_values import NO_VERDICT, Judged, Verdict
from darkmetrics.monitoring.periods import check_window, window_from
from darkmetrics.monitoring.wording import GroupTexts, probability_text, side_of, target_text, with_key
from darkmetrics.processes import run_each
from darkmetrics.tables import plain_numbers
from darkmetrics.wording import code

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation

Correction = Literal["bh", "by"]
# Columns of a record of an alert, after the grouping columns.
_COLUMNS = ("metric", "side", "target", "probability", "q_value", "certain", "new", "known_since")
# A group and the metric of its target.
Case: TypeAlias = tuple[Key, str]


@prints_plainly
@dataclass(frozen=True, slots=True, repr=False)
class Alert:
    """A group that misses its target.

    Attributes
    ----------
    key : tuple
        The group.
    metric, side, target : str, str, float
        The target: "recall", ">=", 0.8.
    probability : float
        Probability that the target is missed, given the data of this group only.
    q_value : float
        The smallest false-discovery rate at which this alert is raised.
    group : str
        The group as text.
    new : bool
        Whether no earlier result had this alert (`known_alerts=`); without an earlier result every alert is new.
    known_since : date or None
        Day of the first of the results without a break that have this alert; the day of this evaluation if it is new.
    """

    key: Key
    metric: str
    side: str
    target: float
    probability: float
    q_value: float
    group: str
    new: bool = True
    known_since: dt.date | None = None

    @property
    def certain(self) -> bool:
        """Whether the target is missed for every label assignment, as in a month without missing labels."""
        return self.probability == 1.0

    @property
    def age(self) -> str:
        """Whether the alert is new or since when it is known, as text."""
        return "new" if self.new else f"known since {self.known_since}" if self.known_since else "known"

    def __repr__(self) -> str:
        return (
            f"<Alert: {self.group} misses {self.metric} {self.side} {self.target:g} with probability "
            f"{probability_text(self.probability)}, q-value {self.q_value:.2g}{'' if self.new else f', {self.age}'}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text."""
        return {
            "key": list(map(plain_value, self.key)),
            "metric": self.metric,
            "side": self.side,
            "target": self.target,
            "probability": self.probability,
            "q_value": self.q_value,
            "certain": self.certain,
            "new": self.new,
            "known_since": None if self.known_since is None else self.known_since.isoformat(),
        }

    @property
    def identity(self) -> tuple[Key, str, float]:
        """Key as in JSON, metric and target: equal for the same alert in two results."""
        return tuple(map(plain_value, self.key)), self.metric, self.target


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alerts(GroupTexts, Sequence[Alert]):
    """Groups that miss a target, by increasing q-value: a sequence of `Alert` that prints all groups as one table.

    Attributes
    ----------
    grouped : GroupedEvaluation
        The evaluation of the groups.
    targets : mapping from metric name to float
        The targets.
    q_values : mapping from (key, metric name) to float
        For each target of each group that is judged, the smallest false-discovery rate at which there is an alert.
    probability_missed : mapping from key to mapping from metric name to float
        Probability that a target is missed; NaN where the metric is never defined or the group has no distribution.
    false_discovery_rate : float
        Largest expected fraction of false alerts among all alerts.
    correction : str
        Procedure that controls this rate: "bh" or "by".
    min_labels : int
        A group with fewer labels of a class is too small.
    since : optional
        The first period that is judged; None if all groups are.
    resolved : tuple of Alert, or None
        Alerts of the earlier result (`known_alerts=`) that are none now; None without an earlier result.
    arguments : mapping from argument to code
        The call that made it, without arguments that are defaults.

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> table = pd.DataFrame(
    ...     {"shop": ["app"] * 60 + ["web"] * 60, "fraud": [1, 0, None] * 40, "p": [0.9, 0.2, 0.7] * 40}
    ... )
    >>> table.loc[table["shop"] == "app", "p"] = 0.4
    >>> result = dm.evaluate_by(
    ...     "fraud", "p", data=table, by="shop", missingness=dm.missing.Fixed(0.5), metrics="accuracy"
    ... )
    >>> alerts = result.alerts({"accuracy": 0.7})
    >>> alerts
    <Alerts: 1 of 2 groups by shop misses accuracy >= 0.7>
    >>> alerts[0].group, alerts[0].certain
    ('app', True)
    """

    grouped: "GroupedEvaluation"
    targets: Mapping[str, float] = field(default_factory=dict)
    q_values: Mapping[tuple[Key, str], float] = field(default_factory=dict)
    probability_missed: Mapping[Key, Mapping[str, float]] = field(default_factory=dict)
    false_discovery_rate: float = 0.05
    correction: str = "bh"
    min_labels: int = MIN_LABELS
    since: object = None
    resolved: tuple[Alert, ...] | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    _raised: tuple[Alert, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Alert: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Alert, ...]: ...
    def __getitem__(self, index: int | slice) -> Alert | tuple[Alert, ...]:
        return self._raised[index]

    def __len__(self) -> int:
        return len(self._raised)

    @property
    def _view(self) -> "Alerts":
        return self

    @cached_property
    def too_small(self) -> Mapping[Key, str]:
        """The groups that are too small to judge, with the reason."""
        shortages = {key: group.shortage(self.min_labels) for key, group in self.grouped.groups.items()}
        return {key: text for key, text in shortages.items() if text}

    @cached_property
    def _total_missed(self) -> Mapping[str, float]:
        """Probability that all rows together miss each target."""
        task, total = self.grouped.task, self.grouped.total
        verdicts = task.judge(Judged.of(total), task.summarize_total(total).metrics, self.targets)
        return {name: verdict.missed for name, verdict in verdicts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text (`docs/reference/monitoring.md`)."""
        result = self.grouped.to_dict()
        for key, group in zip(self.grouped.groups, result["groups"], strict=True):
            group["too_small"] = self.too_small.get(key, "")
            group["probability_missed"] = plain_numbers(self.probability_missed.get(key, {}))
        return result | {
            "targets": dict(self.targets),
            "false_discovery_rate": self.false_discovery_rate,
            "correction": self.correction,
            "min_labels": self.min_labels,
            "notes": self._notes(),
            "since": plain_value(self.since),
            "alerts": [alert.to_dict() for alert in self],
            "resolved": None if self.resolved is None else [alert.to_dict() for alert in self.resolved],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return one record per alert: the value of each grouping column, and the numbers of `Alert`."""
        return [{name: plain_value(value) for name, value in row.items()} for row in self._rows()]

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row per alert, as a pandas, Polars or PyArrow frame (the first one installed, unless named)."""
        rows, names = self._rows(), self.grouped.names
        columns = with_key(names, names, dict.fromkeys(_COLUMNS))
        return frames.to_native_frame({name: [row[name] for row in rows] for name in columns}, backend)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            with_key(self.grouped.names, alert.key, {name: getattr(alert, name) for name in _COLUMNS}) for alert in self
        ]

    def __repr__(self) -> str:
        names = join_words([key_text(name) for name in self.grouped.names])
        targets = join_words([target_text(self, name) for name in self.targets])
        groups = counted(len({key for key, _ in self.q_values}), "group")
        number = len({alert.key for alert in self})
        return f"<Alerts: {number or 'none'} of {groups} by {names} miss{'es' if number < 2 else ''} {targets}>"


def compute_q_values(p_values: Mapping[Case, float], correction: Correction) -> dict[Case, float]:
    """Return the q-value of each target of each group that is judged.

    The p-value of "this group meets its target" is the probability that it does, given the data, or a little more
    (`p_values.verdict`). If these rows meet the target and the distribution is right, the p-value is at most u with
    probability at most u, because it is at least one minus the PIT of the true value.

    "bh" (Benjamini and Hochberg) bounds the expected fraction of false alerts if the p-values are independent. Those
    of groups with their own rows and label models are, with one target. Several targets of a group and groups that
    share reference rows are dependent. "bh" holds under positive regression dependence, and "by" (Benjamini and
    Yekutieli) holds under any dependence, with fewer alerts.

    A p-value of 0 or 1 is certain and cannot be a false alert, so it is not corrected. Otherwise a dozen old months
    that certainly miss their target would allow false alerts among the new months.
    """
    from scipy.stats import false_discovery_control

    uncertain = {case: p for case, p in p_values.items() if 0.0 < p < 1.0}
    if uncertain:
        corrected = false_discovery_control(list(uncertain.values()), method=correction)
        uncertain = dict(zip(uncertain, map(float, corrected), strict=True))
    return {**p_values, **uncertain}


class AlertSettings(NamedTuple):
    """The checked arguments of `GroupedEvaluation.alerts`."""

    targets: Mapping[str, float]
    false_discovery_rate: float
    correction: Correction
    min_labels: int
    since: Any
    last_periods: int | None
    earlier: list[Alert] | None


def check_settings(
    targets: Any,
    metrics: Collection[Metric],
    names: Sequence[str],
    period: str | None,
    *,
    false_discovery_rate: Any = 0.05,
    correction: Any = "bh",
    min_labels: Any = MIN_LABELS,
    since: Any = None,
    last_periods: Any = None,
    known_alerts: Any = None,
) -> AlertSettings:
    """Check the arguments of alerts; the command line does so before it reads the table."""
    chosen, numbers = targets_from(targets, metrics)
    more = [metric.name for metric in chosen[len(metrics) :]]
    if more:
        call = code(f"evaluate_by(..., metrics=[{more[0]!r}])", "metrics")
        raise InputError("targets", f"{more[0]!r} was not evaluated", "", f"Name it in {call}.")
    check_value("false_discovery_rate", false_discovery_rate)
    check_value("correction", correction)
    check_value("min_labels", min_labels)
    check_window(since, last_periods)
    earlier = read_known_alerts(known_alerts, names, period)
    return AlertSettings(
        numbers, float(false_discovery_rate), correction, int(min_labels), since, last_periods, earlier
    )


def alerts_of(grouped: "GroupedEvaluation", settings: AlertSettings, arguments: Mapping[str, str]) -> Alerts:
    """Return the alerts of groups that were evaluated."""
    groups, targets = grouped.groups, settings.targets
    window = window_from(settings.since, settings.last_periods, grouped.names, grouped.time, grouped.period, groups)
    verdicts = _judge_groups(grouped, targets)
    p_values = {
        (key, name): verdict.p_value
        for key, of_group in verdicts.items()
        if (window is None or window.contains(key)) and not groups[key].shortage(settings.min_labels)
        for name, verdict in of_group.items()
        if not math.isnan(verdict.p_value)
    }
    q_values = compute_q_values(p_values, settings.correction)
    alerts = [
        Alert(
            key=key,
            metric=name,
            side=side_of(grouped.metrics[name]),
            target=targets[name],
            probability=verdicts[key][name].missed,
            q_value=q_value,
            group=grouped.label(key),
            known_since=grouped.evaluated_on,
        )
        for (key, name), q_value in q_values.items()
        if q_value <= settings.false_discovery_rate
    ]
    resolved = None
    if settings.earlier is not None:
        alerts, resolved = _compare_with_earlier(alerts, settings.earlier, grouped)
    return Alerts(
        grouped=grouped,
        targets=targets,
        q_values=q_values,
        probability_missed={
            key: {name: verdict.missed for name, verdict in of_group.items()} for key, of_group in verdicts.items()
        },
        false_discovery_rate=settings.false_discovery_rate,
        correction=settings.correction,
        min_labels=settings.min_labels,
        since=None if window is None else window.first,
        resolved=resolved,
        arguments=arguments,
        _raised=tuple(sorted(alerts, key=lambda alert: (alert.q_value, -alert.probability))),
    )


def _judge_groups(grouped: "GroupedEvaluation", targets: Mapping[str, float]) -> dict[Key, dict[str, Verdict]]:
    """Return the verdicts of each group; groups are evaluated again if a distribution was not kept."""
    if not targets:
        return {key: {} for key in grouped.groups}
    judged = dict(grouped.judged)
    lacking = [key for key, kept in judged.items() if not targets.keys() <= kept.distributions.keys()]
    if lacking:
        # The result of a metric does not depend on the other metrics.
        question, task = grouped.task.question, grouped.task
        metrics = tuple(metric for metric in question.metrics if metric.name in targets)
        task = replace(task, question=replace(question, metrics=metrics))
        pieces = [grouped.pieces[key] for key in lacking]
        judged |= zip(lacking, run_each(task.evaluate_again, pieces, grouped.n_jobs, None, "Groups"), strict=True)
    return {
        key: grouped.task.judge(judged[key], group.metrics, targets)
        if key in judged
        else dict.fromkeys(targets, NO_VERDICT)
        for key, group in grouped.groups.items()
    }


SCHEMA = "darkmetrics.groups/1"
_HOW = f"Pass {code('what .alerts() returned, its to_dict(), or a file with that as JSON', 'alerts')}."
_RESULT = code("no result of .alerts()", "result of alerts")


def read_known_alerts(known: Any, names: Sequence[str], period: str | None) -> list[Alert] | None:
    """Return the alerts of an earlier result, of its dictionary or of a file with its JSON, with keys as in JSON.

    None if there is no earlier result. Its groups must have the same columns and periods.
    """
    if known is None:
        return None
    if hasattr(known, "to_dict"):
        known = known.to_dict()
    result = known if isinstance(known, Mapping) else _read_json(known)
    if result.get("schema") != SCHEMA:
        raise InputError("known_alerts", f"{_RESULT} (its schema is not {SCHEMA!r})", "", _HOW)
    earlier, now = _describe_grouping(result.get("names"), result.get("period")), _describe_grouping(names, period)
    if earlier != now:
        rule = "Both results must have the same groups."
        raise InputError("known_alerts", f"its groups are by {earlier}, those of now by {now}", rule, _HOW)
    if "alerts" not in result:
        raise InputError("known_alerts", "it has no alerts", "", _HOW)
    try:
        return [_parse_alert(alert, names, result.get("evaluated_on")) for alert in result["alerts"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("known_alerts", "its alerts cannot be read", "", _HOW) from None


def _compare_with_earlier(
    alerts: Iterable[Alert], earlier: Iterable[Alert], grouped: "GroupedEvaluation"
) -> tuple[list[Alert], tuple[Alert, ...]]:
    """Return the alerts, with those of the earlier result as known, and the earlier alerts that are none now."""
    before = {alert.identity: alert for alert in earlier}
    now = {alert.identity: alert for alert in alerts}
    keys = {tuple(map(plain_value, key)): key for key in grouped.groups}
    marked = [
        replace(alert, new=False, known_since=before[identity].known_since) if identity in before else alert
        for identity, alert in now.items()
    ]
    resolved = [
        replace(alert, key=keys[alert.key], group=grouped.label(keys[alert.key])) if alert.key in keys else alert
        for identity, alert in before.items()
        if identity not in now
    ]
    return marked, tuple(resolved)


def _read_json(path: Any) -> Mapping[str, Any]:
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except TypeError:
        raise InputError("known_alerts", f"got {type(path).__name__}", "", _HOW) from None
    except OSError as error:
        raise InputError("known_alerts", f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or a path that no file can have
        raise InputError("known_alerts", f"{str(path)!r} is no JSON", "", _HOW) from None
    if not isinstance(result, Mapping):
        raise InputError("known_alerts", f"{str(path)!r} is JSON, but {_RESULT}", "", _HOW)
    return result


def _parse_alert(entry: Mapping[str, Any], names: Sequence[str], evaluated_on: str | None) -> Alert:
    key, since = tuple(map(plain_value, entry["key"])), entry.get("known_since") or evaluated_on
    return Alert(
        key=key,
        metric=str(entry["metric"]),
        side=str(entry["side"]),
        target=float(entry["target"]),
        probability=float(entry["probability"]),
        q_value=float(entry["q_value"]),
        group=group_text(names, key, None, None),
        new=False,
        known_since=None if since is None else dt.date.fromisoformat(since),
    )


def _describe_grouping(names: Any, period: Any) -> str:
    columns = join_words([repr(name) for name in names]) if isinstance(names, (list, tuple)) and names else repr(names)
    return columns if period is None else f"{columns} every {period}"
