"""What an earlier result knew: which alerts are new, since when the others are known, and which are gone."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.monitoring.alerts import Alert
from darkmetrics.monitoring.group_names import group_text, listed, plain
from darkmetrics.monitoring.summary import Key

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
