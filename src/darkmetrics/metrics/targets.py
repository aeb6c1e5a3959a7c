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
        raise MissingKeyError(str(unknown_name("metric", "metric", name, names)))
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
        raise InputError(f"targets: expected a mapping such as {{'recall': 0.8}}, got {targets!r}.")
    for given, target in targets.items():
        name = str(given)
        if name not in chosen:
            try:
                metric = metric_from_text(name) if more else chosen[name_in(chosen, name)]
            except InputError as error:
                raise error.renamed({"metrics": "targets", "metric": "targets"}) from None
            name = chosen.setdefault(metric.name, metric).name
        if name in numbers:
            raise InputError(f"targets: {name!r} has two targets. Give one.")
        numbers[name] = target_from(target, chosen[name], f"targets: {target!r} for {given!r}")
    return list(chosen.values()), numbers


def target_from(target: Any, metric: Metric, found: str) -> float:
    """The number that a target is, checked; `found` begins the message."""
    number = number_or_nan(target)
    if not math.isfinite(number):
        raise InputError(f"{found}. A target must be a finite number.")
    check_target(metric, number, found)
    return number


def check_target(metric: Metric, target: float, found: str) -> None:
    """A target that the metric cannot reach, or cannot miss, is a slip; `found` begins the message."""
    low, high = metric.range
    if low <= target <= high:
        return
    inside = f"lies between {low:g} and {high:g}" if math.isfinite(high) else f"is at least {low:g}"
    inside = inside if math.isfinite(low) else f"is at most {high:g}"
    percent = high == 1.0 and 1.0 < target <= 100.0
    advice = f"Give {target / 100.0:.6g} for {target:.6g}%." if percent else "Give a target that it can reach."
    raise InputError(f"{found}, which {inside}. {advice}")


def check_amount_of(metric: Metric, by: float, found: str) -> None:
    """An amount by which the metric cannot move is a slip, since nothing is ever more; `found` begins the message."""
    low, high = metric.range
    if by < high - low:
        return
    percent = high - low == 1.0 and 1.0 < by <= 100.0
    advice = f"Give {by / 100.0:.6g} for {by:.6g}%." if percent else f"Give an amount below {high - low:g}."
    raise InputError(f"{found}, which lies between {low:g} and {high:g} and never moves by more than that. {advice}")


def number_or_nan(value: Any) -> float:
    """What a setting is as a float, also of a Decimal or a Fraction; NaN where it is no number, or too large."""
    try:
        return math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
