"""Alerts: which groups miss their target, with few false ones among them."""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.metrics.metric import Metric, metric_from_text
from darkmetrics.monitoring.group_names import plain
from darkmetrics.monitoring.summary import Key
from darkmetrics.monitoring.tasks import Found
from darkmetrics.tables import html_lines, html_table

Correction = Literal["bh", "by"]


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
        Whether no earlier result knew of it (`evaluate_by(known=...)`); without an earlier result every alert is new.
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
            f"{chance_text(self.probability)}, q-value {self.q_value:.2g}{'' if self.new else f', {self.age}'}>"
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


class Alerts(tuple[Alert, ...]):
    """Alerts, the surest first: a tuple that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return html_lines(["No alert."])
        rows = [
            [one.group, f"{one.metric} {one.side} {one.target:g}", chance_text(one.probability), f"{one.q_value:.2g}"]
            for one in self
        ]
        ages = [[*row, one.age] for row, one in zip(rows, self, strict=True)]
        return html_table(["group", "misses", "probability", "q-value", "since"], ages)


def chance_text(chance: float) -> str:
    """A probability in print; only what is certain is 1.

    Examples
    --------
    >>> from darkmetrics.monitoring.alerts import chance_text
    >>> chance_text(0.98765), chance_text(0.9999999), chance_text(1.0)
    ('0.988', '>0.999', '1')
    """
    if math.isnan(chance):
        return "not known"
    if chance in (0.0, 1.0):
        return f"{chance:.0f}"
    return ">0.999" if chance > 0.9995 else "<0.001" if chance < 0.0005 else f"{chance:.3f}"


def q_values_of(found: Sequence[Found], correction: Correction) -> dict[tuple[Key, str], float]:
    """The q-value of each target of each group that takes part: is not too small, and has a law of the metric.

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

    p_values = {
        (one.summary.key, name): p
        for one in found
        if not one.summary.too_small
        for name, p in one.p_values.items()
        if not math.isnan(p)
    }
    guesses = {case: p for case, p in p_values.items() if 0.0 < p < 1.0}
    if guesses:
        corrected = false_discovery_control(list(guesses.values()), method=correction)
        p_values |= dict(zip(guesses, map(float, corrected), strict=True))
    return p_values


def side_of(metric: Metric) -> str:
    """The side of the target that is wanted."""
    return "<=" if metric.better == "lower" else ">="


def targets_from(targets: Any, metrics: Sequence[Metric]) -> tuple[list[Metric], dict[str, float]]:
    """The metrics with those that only have a target, and the targets by name."""
    if targets is None:
        return list(metrics), {}
    if not isinstance(targets, Mapping):
        raise InputError(f"targets: expected a mapping such as {{'recall': 0.8}}, got {targets!r}.")
    chosen, numbers = {metric.name: metric for metric in metrics}, {}
    for given, target in targets.items():
        name = str(given)
        if name not in chosen:
            try:
                metric = metric_from_text(name)
            except InputError as error:
                raise error.renamed({"metrics": "targets"}) from None
            name = chosen.setdefault(metric.name, metric).name
        number = _number(target)
        if not math.isfinite(number):
            raise InputError(f"targets: {target!r} for {given!r}. A target must be a finite number.")
        check_target(chosen[name], number, f"targets: {target!r} for {given!r}")
        if name in numbers:
            raise InputError(f"targets: {name!r} has two targets. Give one.")
        numbers[name] = number
    return list(chosen.values()), numbers


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


def _number(target: Any) -> float:
    try:
        return math.nan if isinstance(target, (str, bytes)) else float(target)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_rate(rate: Any) -> float:
    """A false-discovery rate, checked."""
    number = _number(rate)
    if not 0.0 < number < 1.0:
        raise InputError(f"false_discovery_rate: {rate!r}. It must lie strictly between 0 and 1.")
    return number


def check_correction(correction: Any) -> Correction:
    """The word for how many p-values are looked at together."""
    known: dict[str, Correction] = {word: word for word in get_args(Correction)}
    if not isinstance(correction, str) or correction not in known:
        raise unknown_name("correction", "correction", str(correction), known)
    return known[correction]
