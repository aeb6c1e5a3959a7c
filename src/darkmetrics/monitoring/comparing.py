"""Groups against each other: changes, trends and gaps, with keys as users write them."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from darkmetrics._text import counted
from darkmetrics.argument_types import GroupLike
from darkmetrics.call_as_code import as_code
from darkmetrics.changes.gap import KINDS, Disparity, disparity_between
from darkmetrics.changes.result import EvaluationChange, OfGroups
from darkmetrics.changes.run import compare_evaluations
from darkmetrics.changes.trend import Trend, trend_over
from darkmetrics.distributions import MetricDistribution
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.metrics import Metric, metrics_from
from darkmetrics.metrics.targets import name_in
from darkmetrics.monitoring.groups import Key, in_order, key_text, listed, told_apart
from darkmetrics.monitoring.periods import time_name

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation

# Groups that are compared at once.
_MOST_GROUPS = 256
# The two rates of which equalized odds are made.
_ODDS = ("recall", "fpr")


def change_of_groups(
    result: "GroupedEvaluation", after: GroupLike, before: GroupLike, confidence_level: float | None
) -> EvaluationChange:
    """The change from one group to another."""
    keys = _known(result, after, "after"), _known(result, before, "before")
    if keys[0] == keys[1]:
        raise InputError(f"before: {result.label(keys[1])}, the same group as after. Name two different ones.")
    names = told_apart([result.label(key) for key in keys])
    found = compare_evaluations(
        result[keys[0]], result[keys[1]], names=(names[0], names[1]), confidence_level=confidence_level
    )
    return replace(found, of_groups=OfGroups(result.arguments, *(_key_code(result, key) for key in keys)))


def _key_code(result: "GroupedEvaluation", key: Key) -> str:
    """A key as it would be typed."""
    parts = [
        as_code(value) or repr(key_text(value, result.period if name == result.time else None))
        for name, value in zip(result.names, key, strict=True)
    ]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _known(result: "GroupedEvaluation", key: GroupLike, argument: str) -> Key:
    """The key of a group; one that is not there is an error about the argument."""
    try:
        return result.key_of(key)
    except KeyError as error:
        raise InputError(str(error).replace("key:", f"{argument}:", 1)) from None


def _metric(result: "GroupedEvaluation", metric: Any) -> Metric:
    return result.metrics[name_in(result.metrics, metric)]


def _told(result: "GroupedEvaluation", keys: Sequence[Key]) -> tuple[list[Key], list[str]]:
    """The groups that say enough, and the names of the others."""
    small = [
        key
        for key in keys
        if result.groups[key].too_small
        and (result.groups[key].counts["missing"] or not result.pieces[key].data.counts_at_all)
    ]
    return [key for key in keys if key not in small], [result.label(key) for key in small]


def trend_of_groups(result: "GroupedEvaluation", metric: str, segment: GroupLike) -> Trend:
    """The trend of a metric over the periods of a segment."""
    name = _metric(result, metric).name
    time = time_name(result.names, result.time, result.groups)
    if time is None:
        raise InputError(
            f"trend: no time among the grouping columns ({listed([repr(name) for name in result.names])}). Give time= "
            "and period= to evaluate_by."
        )
    place = result.names.index(time)
    found = {key: (*key[:place], *key[place + 1 :]) for key in result.groups if key[place] is not None}
    wanted = () if segment is None else segment if isinstance(segment, tuple) else (segment,)
    others = [repr(name) for name in result.names if name != time]
    if wanted not in found.values():
        first = next(iter(found.values()), ())
        such = repr(first[0] if len(first) == 1 else first) if others else ""
        rule = f"Give the value of {listed(others)}, such as {such}." if others else "There is none: leave it out."
        raise InputError(f"segment: {segment!r}. {rule}")
    keys, left_out = _told(result, [key for key, rest in found.items() if rest == wanted])
    if len(keys) < 2:
        raise InputError(f"trend: {counted(len(keys), 'period')} with enough labels. A trend needs at least two.")
    keys = [keys[i] for i in in_order([(key[place],) for key in keys])]
    places = [_place(key[place], result.period) for key in keys]
    known = [float(x) for x in places if x is not None]
    even = len(known) == len(keys)
    return trend_over(
        name,
        [result[key] for key in keys],
        [key_text(key[place], result.period) for key in keys],
        [x - known[0] for x in known] if even else list(map(float, range(len(keys)))),
        unit=result.period if even and result.period is not None else "period",
        left_out=left_out,
    )


def _place(value: Any, period: str | None) -> float | None:
    """Where a period lies, counted in periods; None if it is no date, or nobody said how long a period is."""
    if not isinstance(value, dt.date):
        return None
    months = 12 * value.year + value.month - 1
    by_month = {"month": 1, "quarter": 3, "year": 12}
    if period in by_month:
        return float(months // by_month[period])
    hours = 24.0 * value.toordinal() + (value.hour if isinstance(value, dt.datetime) else 0)
    by_hour = {"hour": 1.0, "day": 24.0, "week": 168.0}
    return hours / by_hour[period] if period in by_hour else None


def disparity_of_groups(
    result: "GroupedEvaluation", metric: str | None, kind: str, groups: Sequence[Any] | None
) -> Disparity:
    """The gap between groups in a metric."""
    if kind not in KINDS:
        raise unknown_name("kind", "kind of gap", str(kind), KINDS)
    if kind == "equalized_odds":
        if metric is not None and metric not in _ODDS:
            raise InputError(
                f"metric: {metric!r}. Equalized odds are those of {listed(list(map(repr, _ODDS)))}: leave it out."
            )
        metrics = metrics_from(list(_ODDS))
    elif metric is None:
        raise InputError(f"metric: missing. Name one of {', '.join(map(repr, result.metrics))}.")
    else:
        metrics = [_metric(result, metric)]
    if kind == "ratio" and not metrics[0].range[0] >= 0.0:
        raise InputError(
            f"kind: 'ratio', but {metric} can be negative, and ratios then mean nothing. Use 'difference'."
        )
    keys, left_out = _told(result, list(result.groups) if groups is None else _listed(result, groups))
    if len(keys) < 2:
        raise InputError(f"groups: {counted(len(keys), 'group')} with enough labels. A gap needs two different ones.")
    if len(keys) > _MOST_GROUPS:
        raise InputError(f"groups: {len(keys):,} of them. {_MOST_GROUPS} at most are compared at once: name them.")
    return disparity_between(
        metrics,
        [result.task.question.fill_of(one) for one in metrics],
        kind,
        [result[key] for key in keys],
        # What is said of a group stands under its name.
        told_apart([result.label(key) for key in keys]),
        left_out=left_out,
        pair_of=partial(_pair, result, metrics[0].name),
    )


def _listed(result: "GroupedEvaluation", groups: Any) -> list[Key]:
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__iter__"):
        raise InputError(f"groups: {groups!r}. Give a list of keys.")
    return list(dict.fromkeys(_known(result, key, "groups") for key in groups))


def _pair(result: "GroupedEvaluation", metric: str, one: GroupLike, other: GroupLike) -> MetricDistribution:
    """The law of the difference between two groups."""
    keys = _known(result, one, "one"), _known(result, other, "other")
    if keys[0] == keys[1]:
        raise InputError(f"other: {result.label(keys[1])}, the same group as one. Name two different ones.")
    return change_of_groups(result, *keys, None)[metric]
