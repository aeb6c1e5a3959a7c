"""Alerts: which groups miss their target, with few false ones among them; which are new, known, or gone."""

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from darkmetrics._text import prints_plainly
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.metrics.metric import Metric
from darkmetrics.metrics.targets import number_or_nan
from darkmetrics.monitoring.groups import Key, group_text, listed, plain
from darkmetrics.monitoring.tasks import GroupResult
from darkmetrics.tables import html_lines, html_table

Correction = Literal["bh", "by"]


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


class Alerts(tuple[Alert, ...]):
    """Alerts, the surest first: a tuple that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return html_lines(["No alert."])
        rows = [
            [
                one.group,
                f"{one.metric} {one.side} {one.target:g}",
                probability_text(one.probability),
                f"{one.q_value:.2g}",
            ]
            for one in self
        ]
        ages = [[*row, one.age] for row, one in zip(rows, self, strict=True)]
        return html_table(["group", "misses", "probability", "q-value", "since"], ages)


def probability_text(chance: float) -> str:
    """A probability in print; only what is certain is 1.

    Examples
    --------
    >>> from darkmetrics.monitoring.alerts import probability_text
    >>> probability_text(0.98765), probability_text(0.9999999), probability_text(1.0)
    ('0.988', '>0.999', '1')
    """
    if math.isnan(chance):
        return "not known"
    if chance in (0.0, 1.0):
        return f"{chance:.0f}"
    return ">0.999" if chance > 0.9995 else "<0.001" if chance < 0.0005 else f"{chance:.3f}"


def q_values_of(results: Sequence[GroupResult], correction: Correction) -> dict[tuple[Key, str], float]:
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
        (result.summary.key, name): p
        for result in results
        if not result.summary.too_small
        for name, p in result.p_values.items()
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


def check_rate(rate: Any) -> float:
    """A false-discovery rate, checked."""
    number = number_or_nan(rate)
    if not 0.0 < number < 1.0:
        raise InputError(f"false_discovery_rate: {rate!r}. It must lie strictly between 0 and 1.")
    return number


def check_correction(correction: Any) -> Correction:
    """The word for how many p-values are looked at together."""
    known: dict[str, Correction] = {word: word for word in get_args(Correction)}
    if not isinstance(correction, str) or correction not in known:
        raise unknown_name("correction", "correction", str(correction), known)
    return known[correction]


SCHEMA = "darkmetrics.groups/1"
_HOW = "Give what evaluate_by returned, its to_dict(), or a file with that as JSON"


def earlier_alerts(known: Any, names: Sequence[str], every: str | None) -> list[Alert] | None:
    """The alerts of an earlier result, of its dictionary or of a file with its JSON; keys are as JSON has them.

    None where there is no earlier result. It must be of the same groups.
    """
    if known is None:
        return None
    if hasattr(known, "to_dict"):
        known = known.to_dict()
    found = known if isinstance(known, Mapping) else _read(known)
    if found.get("schema") != SCHEMA:
        raise InputError(f"known: it is no result of evaluate_by (its schema is not {SCHEMA!r}). {_HOW}.")
    there, here = _told(found.get("names"), found.get("every")), _told(list(names), every)
    if there != here:
        raise InputError(f"known: its groups are by {there}, those of now by {here}. {_HOW}, for the same groups.")
    try:
        return [_alert(one, names, found.get("evaluated_on")) for one in found["alerts"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"known: its alerts cannot be read. {_HOW}.") from None


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
        raise InputError(f"known: got {type(path).__name__}. {_HOW}.") from None
    except OSError as error:
        raise InputError(f"known: cannot read {str(path)!r}: {error.strerror or error}.") from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or a path that no file can have
        raise InputError(f"known: {str(path)!r} is no JSON. {_HOW}.") from None
    if not isinstance(found, Mapping):
        raise InputError(f"known: {str(path)!r} is JSON, but no result of evaluate_by. {_HOW}.")
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


def _told(names: Any, every: Any) -> str:
    columns = listed([repr(name) for name in names]) if isinstance(names, (list, tuple)) and names else repr(names)
    return columns if every is None else f"{columns} every {every}"
