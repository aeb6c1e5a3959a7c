"""The metrics of a result by the names that users write, and the values that these should reach."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from darkmetrics.exceptions import InputError, MissingKeyError, unknown_name
from darkmetrics.metrics.metric import Metric, metric_from_text


def name_in(known: Iterable[str], given: object) -> str:
    """The name by which a result has a metric: as it was given, or as `metrics=` reads it.

    Examples
    --------
    >>> from darkmetrics.metrics.targets import name_in
    >>> name_in(["recall", "expected_cost(1, 5)"], "expected_cost(1,5)")
    'expected_cost(1, 5)'
    """
    names, name = tuple(known), str(given)
    if name in names:
        return name
    try:
        read = metric_from_text(name).name
    except InputError:
        read = name
    if read not in names:
        raise unknown_name("metric", "metric", name, names, error=MissingKeyError)
    return read


def targets_from(
    targets: Any, metrics: Iterable[Metric], *, more: bool = True
) -> tuple[list[Metric], dict[str, float]]:
    """The metrics with those that only have a target, and the targets by name.

    Without `more`, only these metrics may have one.
    """
    chosen, numbers = {metric.name: metric for metric in metrics}, {}
    if targets is None:
        return list(chosen.values()), {}
    if not isinstance(targets, Mapping):
        raise InputError("targets", repr(targets), "It must be a mapping such as {'recall': 0.8}.")
    for given, target in targets.items():
        name = str(given)
        if name not in chosen:
            try:
                metric = metric_from_text(name) if more else chosen[name_in(chosen, name)]
            except InputError as error:
                raise error.replace(argument="targets") from None
            name = chosen.setdefault(metric.name, metric).name
        if name in numbers:
            raise InputError("targets", f"{name!r} has two targets", "", "Pass one.")
        numbers[name] = target_from(target, chosen[name], "targets", f"{target!r} for {given!r}")
    return list(chosen.values()), numbers


def target_from(target: Any, metric: Metric, argument: str, finding: str) -> float:
    """Return the number that a target is, checked; `finding` has the target as the caller wrote it."""
    number = number_or_nan(target)
    if not math.isfinite(number):
        raise InputError(argument, finding, "A target must be a finite number.")
    check_target(metric, number, argument, finding)
    return number


def check_target(metric: Metric, target: float, argument: str, finding: str) -> None:
    """Refuse a target that the metric cannot reach, or cannot miss."""
    low, high = metric.range
    if low <= target <= high:
        return
    inside = f"lies between {low:g} and {high:g}" if math.isfinite(high) else f"is at least {low:g}"
    inside = inside if math.isfinite(low) else f"is at most {high:g}"
    percent = high == 1.0 and 1.0 < target <= 100.0
    fix = f"Pass {target / 100.0:.6g} for {target:.6g}%." if percent else "Pass a target that the metric can reach."
    raise InputError(argument, finding, f"{metric.name} {inside}.", fix)


def check_amount_of(metric: Metric, by: float, argument: str, finding: str) -> None:
    """Refuse an amount by which the metric cannot change, because no change is ever larger."""
    low, high = metric.range
    if by < high - low:
        return
    percent = high - low == 1.0 and 1.0 < by <= 100.0
    fix = f"Pass {by / 100.0:.6g} for {by:.6g}%." if percent else f"Pass an amount below {high - low:g}."
    raise InputError(argument, finding, f"{metric.name} lies between {low:g} and {high:g}.", fix)


def number_or_nan(value: Any) -> float:
    """What a setting is as a float, also of a Decimal or a Fraction; NaN where it is no number, or too large."""
    try:
        return math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
