"""Alerts: which groups miss their target, with few false ones among them; which are new, known, or gone."""

import datetime as dt
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args, overload

from darkmetrics import frames
from darkmetrics._text import counted, prints_plainly
from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.metrics.metric import Metric
from darkmetrics.metrics.targets import number_or_nan, targets_from
from darkmetrics.monitoring.groups import MIN_LABELS, Key, group_text, key_text, listed, plain
from darkmetrics.monitoring.p_values import NOTHING, Verdict
from darkmetrics.monitoring.periods import check_asked, watched_from
from darkmetrics.monitoring.wording import GroupTexts, probability_text, side_of, target_text, with_key
from darkmetrics.processes import run_each
from darkmetrics.tables import plain_numbers

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation

Correction = Literal["bh", "by"]
# What a record of an alert has besides the values of grouping columns.
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
        What it misses: "recall", ">=", 0.8.
    probability : float
        Probability that the target is missed, given the data of this group alone.
    q_value : float
        The smallest false-discovery rate at which this alert is raised.
    group : str
        The group in words.
    new : bool
        Whether no earlier result had it (`known_alerts=`); without one, every alert is new.
    known_since : date or None
        When it was first an alert, without a break since: the day of this evaluation if it is new.
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
        """Whether the target is missed whatever the missing labels are, as in a month that lacks none: a fact."""
        return self.probability == 1.0

    @property
    def age(self) -> str:
        """Whether it is new, or since when it is known, in words."""
        return "new" if self.new else f"known since {self.known_since}" if self.known_since else "known"

    def __repr__(self) -> str:
        return (
            f"<Alert: {self.group} misses {self.metric} {self.side} {self.target:g} with probability "
            f"{probability_text(self.probability)}, q-value {self.q_value:.2g}{'' if self.new else f', {self.age}'}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text."""
        return {
            "key": list(map(plain, self.key)),
            "metric": self.metric,
            "side": self.side,
            "target": self.target,
            "probability": self.probability,
            "q_value": self.q_value,
            "certain": self.certain,
            "new": self.new,
            "known_since": None if self.known_since is None else self.known_since.isoformat(),
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alerts(GroupTexts, Sequence[Alert]):
    """Groups that miss a target, the surest first: a sequence of `Alert` that prints all groups as one table.

    Attributes
    ----------
    grouped : GroupedEvaluation
        What alerts were asked of.
    targets : mapping from metric name to float
        What was to be reached.
    q_values : mapping from (key, metric name) to float
        The smallest false-discovery rate at which there is an alert, for each target of each group that takes part.
    chance_missed : mapping from key to mapping from metric name to float
        Probability that a target is missed; NaN where the metric is never defined or the group has no distribution.
    false_discovery_rate : float
        Largest expected fraction of false alerts among all alerts.
    correction : str
        "bh" or "by": how it is kept.
    min_labels : int
        A group with fewer labels of a class is too small.
    since : optional
        The first period that alerts look at; None if they look at all groups.
    gone : tuple of Alert, or None
        Alerts of the earlier result (`known_alerts=`) that are none now; None where there was no earlier result.
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
    chance_missed: Mapping[Key, Mapping[str, float]] = field(default_factory=dict)
    false_discovery_rate: float = 0.05
    correction: str = "bh"
    min_labels: int = MIN_LABELS
    since: object = None
    gone: tuple[Alert, ...] | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    _raised: tuple[Alert, ...] = ()

    @overload
    def __getitem__(self, place: int) -> Alert: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Alert, ...]: ...
    def __getitem__(self, place: int | slice) -> Alert | tuple[Alert, ...]:
        return self._raised[place]

    def __len__(self) -> int:
        return len(self._raised)

    @property
    def _view(self) -> "Alerts":
        return self

    @cached_property
    def too_small(self) -> Mapping[Key, str]:
        """The groups that are too small to judge, and why."""
        shortages = {key: group.shortage(self.min_labels) for key, group in self.grouped.groups.items()}
        return {key: text for key, text in shortages.items() if text}

    @cached_property
    def _total_missed(self) -> Mapping[str, float]:
        """Probability that all rows together miss each target."""
        found = self.grouped.task.verdicts(self.grouped.total, self.targets)
        return {name: one.missed for name, one in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Everything of the groups and the alerts as plain numbers and text (`docs/reference/monitoring.md`)."""
        found = self.grouped.to_dict()
        for key, group in zip(self.grouped.groups, found["groups"], strict=True):
            group["too_small"] = self.too_small.get(key, "")
            group["chance_missed"] = plain_numbers(self.chance_missed.get(key, {}))
        return found | {
            "targets": dict(self.targets),
            "false_discovery_rate": self.false_discovery_rate,
            "correction": self.correction,
            "min_labels": self.min_labels,
            "notes": self._notes(),
            "since": plain(self.since),
            "alerts": [alert.to_dict() for alert in self],
            "gone": None if self.gone is None else [alert.to_dict() for alert in self.gone],
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One record per alert: the value of each grouping column, and the numbers of `Alert`."""
        return [{name: plain(value) for name, value in row.items()} for row in self._rows()]

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per alert, as a pandas, Polars or PyArrow frame (the first one installed, unless named)."""
        rows, names = self._rows(), self.grouped.names
        columns = with_key(names, names, dict.fromkeys(_COLUMNS))
        return frames.to_native_frame({name: [row[name] for row in rows] for name in columns}, backend)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            with_key(self.grouped.names, alert.key, {name: getattr(alert, name) for name in _COLUMNS}) for alert in self
        ]

    def __repr__(self) -> str:
        names = listed([key_text(name) for name in self.grouped.names])
        asked = listed([target_text(self, name) for name in self.targets])
        groups = counted(len({key for key, _ in self.q_values}), "group")
        number = len({alert.key for alert in self})
        return f"<Alerts: {number or 'none'} of {groups} by {names} miss{'es' if number < 2 else ''} {asked}>"


def q_values_of(p_values: Mapping[Case, float], correction: Correction) -> dict[Case, float]:
    """The q-value of each target of each group that takes part, from the p-values.

    What is certain whatever the missing labels are (a p-value of 0 or 1), as in a month that lacks none, is a fact and
    no guess that could be false. It is not counted: a dozen old months that are known to miss their target would make
    room for false alerts among the new ones, a dozen that are known to meet it would take away true ones.

    The p-value of "this group meets its target" is the probability that it does, given the data, or a little more
    (`p_values.verdict`). If the target is truly met by these rows and the law is right, it is at most u with
    probability at most u: the law's mass at or above the target is no less than its mass at or above the true value,
    which is one minus the PIT of the truth.

    "bh" (Benjamini and Hochberg) then keeps the expected share of false alerts among all alerts at or below the level
    if the p-values are independent, as those of groups with rows and label models of their own are when there is one
    target. Several targets of a group are not independent, nor are groups that share reference rows; where they lean in
    the same direction "bh" still holds (positive regression dependence), and "by" (Benjamini and Yekutieli) holds in
    any case, at the price of fewer alerts.
    """
    from scipy.stats import false_discovery_control

    guesses = {case: p for case, p in p_values.items() if 0.0 < p < 1.0}
    if guesses:
        corrected = false_discovery_control(list(guesses.values()), method=correction)
        guesses = dict(zip(guesses, map(float, corrected), strict=True))
    return {**p_values, **guesses}


class Asked(NamedTuple):
    """What is asked of alerts, checked."""

    targets: Mapping[str, float]
    false_discovery_rate: float
    correction: Correction
    min_labels: int
    since: Any
    last_periods: int | None
    earlier: list[Alert] | None


def asked_from(
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
) -> Asked:
    """Check what can be checked before the table is read: the command line does."""
    chosen, numbers = targets_from(targets, metrics)
    more = [metric.name for metric in chosen[len(metrics) :]]
    if more:
        raise InputError(f"targets: {more[0]!r} was not evaluated. Name it in evaluate_by(..., metrics=[{more[0]!r}]).")
    rate = number_or_nan(false_discovery_rate)
    if not 0.0 < rate < 1.0:
        raise InputError(f"false_discovery_rate: {false_discovery_rate!r}. It must lie strictly between 0 and 1.")
    known: dict[str, Correction] = {word: word for word in get_args(Correction)}
    if not isinstance(correction, str) or correction not in known:
        raise unknown_name("correction", "correction", str(correction), known)
    if not is_whole(min_labels) or min_labels < 0:
        raise InputError(f"min_labels: {min_labels!r}. It must be a whole number of at least 0.")
    check_asked(since, last_periods)
    earlier = earlier_alerts(known_alerts, names, period)
    return Asked(numbers, rate, known[correction], int(min_labels), since, last_periods, earlier)


def alerts_of(grouped: "GroupedEvaluation", asked: Asked, arguments: Mapping[str, str]) -> Alerts:
    """Return the alerts of groups that were evaluated."""
    names, time, period, groups = grouped.names, grouped.time, grouped.period, grouped.groups
    watched = watched_from(asked.since, asked.last_periods, names, time, period, groups)
    verdicts = _verdicts(grouped, asked.targets)
    p_values = {
        (key, name): one.p_value
        for key, found in verdicts.items()
        if (watched is None or watched.has(key)) and not groups[key].shortage(asked.min_labels)
        for name, one in found.items()
        if not math.isnan(one.p_value)
    }
    q_values = q_values_of(p_values, asked.correction)
    alerts = [
        Alert(
            key=key,
            metric=name,
            side=side_of(grouped.metrics[name]),
            target=asked.targets[name],
            probability=verdicts[key][name].missed,
            q_value=q_value,
            group=grouped.label(key),
            known_since=grouped.evaluated_on,
        )
        for (key, name), q_value in q_values.items()
        if q_value <= asked.false_discovery_rate
    ]
    gone = None
    if asked.earlier is not None:
        group_of = {tuple(map(plain, key)): (key, grouped.label(key)) for key in groups}
        alerts, gone = compared(alerts, asked.earlier, group_of)
    return Alerts(
        grouped=grouped,
        targets=asked.targets,
        q_values=q_values,
        chance_missed={key: {name: one.missed for name, one in found.items()} for key, found in verdicts.items()},
        false_discovery_rate=asked.false_discovery_rate,
        correction=asked.correction,
        min_labels=asked.min_labels,
        since=None if watched is None else watched.first,
        gone=gone,
        arguments=arguments,
        _raised=tuple(sorted(alerts, key=lambda alert: (alert.q_value, -alert.probability))),
    )


def _verdicts(grouped: "GroupedEvaluation", targets: Mapping[str, float]) -> dict[Key, dict[str, Verdict]]:
    """Return what each group says about each target; those with an evaluation that was not kept are evaluated again."""
    task, kept = grouped.task, grouped.evaluations
    if not targets:
        return {key: {} for key in grouped.groups}
    # Answers about one metric do not depend on which others are asked for.
    asked = tuple(metric for metric in task.question.metrics if metric.name in targets)
    task = replace(task, question=replace(task.question, metrics=asked))
    pieces = [grouped.pieces[key] for key, group in grouped.groups.items() if not group.lacking and key not in kept]
    again = run_each(partial(task.verdicts_again, targets), pieces, grouped.n_jobs, None, "Groups")
    found = dict(zip((piece.key for piece in pieces), again, strict=True))
    found |= {key: task.verdicts(evaluation, targets) for key, evaluation in kept.items()}
    return {key: found.get(key) or dict.fromkeys(targets, NOTHING) for key in grouped.groups}


SCHEMA = "darkmetrics.groups/1"
_HOW = "Give what .alerts() returned, its to_dict(), or a file with that as JSON"


def earlier_alerts(known: Any, names: Sequence[str], period: str | None) -> list[Alert] | None:
    """The alerts of an earlier result, of its dictionary or of a file with its JSON; keys are as JSON has them.

    None where there is no earlier result. It must be of the same groups.
    """
    if known is None:
        return None
    if hasattr(known, "to_dict"):
        known = known.to_dict()
    found = known if isinstance(known, Mapping) else _read(known)
    if found.get("schema") != SCHEMA:
        raise InputError(f"known_alerts: it is no result of .alerts() (its schema is not {SCHEMA!r}). {_HOW}.")
    there, here = _told(found.get("names"), found.get("period")), _told(list(names), period)
    if there != here:
        raise InputError(
            f"known_alerts: its groups are by {there}, those of now by {here}. {_HOW}, for the same groups."
        )
    if "alerts" not in found:
        raise InputError(f"known_alerts: it has no alerts. {_HOW}.")
    try:
        return [_alert(one, names, found.get("evaluated_on")) for one in found["alerts"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"known_alerts: its alerts cannot be read. {_HOW}.") from None


def compared(
    alerts: Iterable[Alert], earlier: Sequence[Alert], group_of: Mapping[Key, tuple[Key, str]]
) -> tuple[list[Alert], tuple[Alert, ...]]:
    """The alerts, those that were there earlier as known; and the earlier ones that are none now.

    `group_of` has the key and the words of each group by its key in JSON.
    """
    then = {_case(alert): alert for alert in earlier}
    now = {_case(alert): alert for alert in alerts}
    marked = [
        replace(alert, new=False, known_since=then[case].known_since) if case in then else alert
        for case, alert in now.items()
    ]
    gone = [alert for case, alert in then.items() if case not in now]
    named = (group_of.get(alert.key, (alert.key, alert.group)) for alert in gone)
    return marked, tuple(replace(one, key=key, group=group) for one, (key, group) in zip(gone, named, strict=True))


def _read(path: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except TypeError:
        raise InputError(f"known_alerts: got {type(path).__name__}. {_HOW}.") from None
    except OSError as error:
        raise InputError(f"known_alerts: cannot read {str(path)!r}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or a path that no file can have
        raise InputError(f"known_alerts: {str(path)!r} is no JSON. {_HOW}.") from None
    if not isinstance(found, Mapping):
        raise InputError(f"known_alerts: {str(path)!r} is JSON, but no result of .alerts(). {_HOW}.")
    return found


def _alert(one: Mapping[str, Any], names: Sequence[str], evaluated_on: str | None) -> Alert:
    key, since = tuple(map(plain, one["key"])), one.get("known_since") or evaluated_on
    return Alert(
        key=key,
        metric=str(one["metric"]),
        side=str(one["side"]),
        target=float(one["target"]),
        probability=float(one["probability"]),
        q_value=float(one["q_value"]),
        group=group_text(names, key, None, None),
        new=False,
        known_since=None if since is None else dt.date.fromisoformat(since),
    )


def _case(alert: Alert) -> tuple[Key, str, float]:
    """What makes two alerts the same one."""
    return tuple(map(plain, alert.key)), alert.metric, alert.target


def _told(names: Any, period: Any) -> str:
    columns = listed([repr(name) for name in names]) if isinstance(names, (list, tuple)) and names else repr(names)
    return columns if period is None else f"{columns} every {period}"
