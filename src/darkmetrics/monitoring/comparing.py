"""Comparisons of groups: changes, trends and disparities, with keys as users write them."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from darkmetrics._text import counted, join_words
from darkmetrics.argument_types import GroupLike
from darkmetrics.call_as_code import as_code
from darkmetrics.changes import Disparity, EvaluationChange, Trend, compare_evaluations
from darkmetrics.changes.change import GroupCode
from darkmetrics.changes.disparity import disparity_between
from darkmetrics.changes.trend import trend_over
from darkmetrics.distributions import MetricDistribution
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric, metrics_from
from darkmetrics.metrics.targets import name_in
from darkmetrics.monitoring.groups import Key, MissingGroupError, key_text, number_duplicates, sort_keys
from darkmetrics.monitoring.periods import time_name
from darkmetrics.wording import named, setting

if TYPE_CHECKING:
    from darkmetrics.monitoring.result import GroupedEvaluation

# Maximum number of groups that are compared at once.
_MAX_GROUPS = 256
# The two rates of equalized odds.
_ODDS = ("recall", "fpr")


def change_of_groups(
    result: "GroupedEvaluation", after: GroupLike, before: GroupLike, confidence_level: float | None
) -> EvaluationChange:
    """Return the change from one group to another."""
    keys = _find_key(result, after, "after"), _find_key(result, before, "before")
    if keys[0] == keys[1]:
        raise _same_group("before", result.label(keys[1]), "after")
    names = number_duplicates([result.label(key) for key in keys])
    change = compare_evaluations(
        result[keys[0]], result[keys[1]], names=(names[0], names[1]), confidence_level=confidence_level
    )
    return replace(change, of_groups=GroupCode(result.arguments, *(_key_as_code(result, key) for key in keys)))


def _same_group(argument: str, group: str, other: str) -> InputError:
    return InputError(argument, f"{group}, the same group as {named(other)}", "", "Name two different groups.")


def _key_as_code(result: "GroupedEvaluation", key: Key) -> str:
    values = [
        as_code(value) or repr(key_text(value, result.period if name == result.time else None))
        for name, value in zip(result.names, key, strict=True)
    ]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _find_key(result: "GroupedEvaluation", key: GroupLike, argument: str) -> Key:
    """Return the key of a group; an unknown key is an error about the argument."""
    try:
        return result.key_of(key)
    except MissingGroupError as error:
        raise InputError(argument, *error.args) from None


def _find_metric(result: "GroupedEvaluation", metric: Any) -> Metric:
    return result.metrics[name_in(result.metrics, metric)]


def _separate_small(result: "GroupedEvaluation", keys: Sequence[Key]) -> tuple[list[Key], list[str]]:
    """Return the groups with enough labels, and the names of the others."""
    small = [
        key
        for key in keys
        if result.groups[key].too_small
        and (result.groups[key].counts["missing"] or not result.pieces[key].data.counts_at_all)
    ]
    return [key for key in keys if key not in small], [result.label(key) for key in small]


def trend_of_groups(result: "GroupedEvaluation", metric: str, segment: GroupLike) -> Trend:
    """Return the trend of a metric over the periods of a segment."""
    name = _find_metric(result, metric).name
    time = time_name(result.names, result.time, result.groups)
    if time is None:
        columns = join_words([repr(name) for name in result.names])
        fix = f"Pass {setting('time')} and {setting('period')} to evaluate_by."
        raise InputError("trend", f"no time among the grouping columns ({columns})", "", fix)
    column = result.names.index(time)
    segments = {key: (*key[:column], *key[column + 1 :]) for key in result.groups if key[column] is not None}
    wanted = () if segment is None else segment if isinstance(segment, tuple) else (segment,)
    others = [repr(name) for name in result.names if name != time]
    if wanted not in segments.values():
        first = next(iter(segments.values()), ())
        example = repr(first[0] if len(first) == 1 else first) if others else ""
        rule = (
            f"Give the value of {join_words(others)}, such as {example}." if others else "There is none: leave it out."
        )
        raise InputError("segment", repr(segment), rule)
    keys, left_out = _separate_small(result, [key for key, values in segments.items() if values == wanted])
    if len(keys) < 2:
        number = counted(len(keys), "period")
        raise InputError("trend", f"{number} with enough labels", "A trend needs at least two.")
    keys = [keys[i] for i in sort_keys([(key[column],) for key in keys])]
    positions = [_position(key[column], result.period) for key in keys]
    known = [float(x) for x in positions if x is not None]
    has_positions = len(known) == len(keys)
    return trend_over(
        name,
        [result[key] for key in keys],
        [key_text(key[column], result.period) for key in keys],
        [x - known[0] for x in known] if has_positions else list(map(float, range(len(keys)))),
        unit=result.period if has_positions and result.period is not None else "period",
        left_out=left_out,
    )


def _position(value: Any, period: str | None) -> float | None:
    """Return the position of a date in periods; None if it is no date or the length of a period is unknown."""
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
    """Return the disparity between groups in a metric."""
    if kind == "equalized_odds":
        if metric is not None and metric not in _ODDS:
            rates = join_words(list(map(repr, _ODDS)))
            raise InputError("metric", repr(metric), f"Equalized odds are those of {rates}.", "Leave it out.")
        metrics = metrics_from(list(_ODDS))
    elif metric is None:
        raise InputError("metric", "missing", "", f"Name one of {', '.join(map(repr, result.metrics))}.")
    else:
        metrics = [_find_metric(result, metric)]
    if kind == "ratio" and not metrics[0].range[0] >= 0.0:
        finding = f"'ratio', but {metric} can be negative, and ratios then mean nothing"
        raise InputError("kind", finding, "", "Use 'difference'.")
    keys, left_out = _separate_small(result, list(result.groups) if groups is None else _find_keys(result, groups))
    if len(keys) < 2:
        number = counted(len(keys), "group")
        raise InputError("groups", f"{number} with enough labels", "A disparity needs two different groups.")
    if len(keys) > _MAX_GROUPS:
        rule = f"{_MAX_GROUPS} at most are compared at once."
        raise InputError("groups", f"{len(keys):,} of them", rule, "Name the groups to compare.")
    return disparity_between(
        metrics,
        list(map(result.task.question.fill_of, metrics)),
        kind,
        [result[key] for key in keys],
        number_duplicates([result.label(key) for key in keys]),
        left_out=left_out,
        pair_of=partial(_difference_of_groups, result, metrics[0].name),
    )


def _find_keys(result: "GroupedEvaluation", groups: Any) -> list[Key]:
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__iter__"):
        raise InputError("groups", repr(groups), "", "Give a list of keys.")
    return list(dict.fromkeys(_find_key(result, key, "groups") for key in groups))


def _difference_of_groups(
    result: "GroupedEvaluation", metric: str, first: GroupLike, second: GroupLike
) -> MetricDistribution:
    keys = _find_key(result, first, "first"), _find_key(result, second, "second")
    if keys[0] == keys[1]:
        raise _same_group("second", result.label(keys[1]), "first")
    return change_of_groups(result, *keys, None)[metric]
