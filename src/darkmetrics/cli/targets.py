"""--target: what it says, and whether it is met."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.output import in_words
from darkmetrics.cli.rendering import Check


def targets_from(given: Sequence[str] | None) -> dict[str, float]:
    """The targets by name of the metric."""
    if not given:
        return {}
    from darkmetrics.monitoring.alerts import check_target

    targets: dict[str, float] = {}
    for text in given:
        name, sign, value = _parts(text)
        target = number_from(value)
        if not sign or not name or target is None or not math.isfinite(target):
            raise WordedError(f"--target: cannot read {text!r}. Write it like recall=0.8.")
        with in_words({}, metrics="--target"):
            metric = dm.metrics.metrics_from(name)[0]
            check_target(metric, target, f"targets: {value} for {name!r}")
            name = metric.name
        wanted = "<=" if metric.better == "lower" else ">="
        if sign not in ("=", wanted):
            side = "lower" if metric.better == "lower" else "higher"
            raise WordedError(f"--target: {text!r}, but {side} is better. Write {name}{wanted}{target:g}.")
        if name in targets:
            raise WordedError(f"--target: {name!r} has two targets. Give one.")
        targets[name] = target
    return targets


def _parts(text: str) -> tuple[str, str, str]:
    """Metric, sign and value of a target: =, or >= and <= as people write them."""
    name, sign, value = text.rpartition("=")
    if sign and name[-1:] in (">", "<"):
        name, sign = name[:-1], name[-1] + sign
    elif name.endswith("="):
        sign = ""  # two of them are a slip
    return name.strip(), sign, value.strip()


def metrics_wanted(asked: Sequence[str] | None, targets: Iterable[str]) -> Sequence[str]:
    """The metrics asked for, or the default ones, and those that have a target."""
    names = asked or dm.metrics.DEFAULT_METRICS
    known = [metric.name for metric in dm.metrics.metrics_from(names)]
    more = [name for name in targets if name not in known]
    return [*names, *more] if more else names


def verdicts(result: dm.Evaluation, targets: Mapping[str, float], confidence: float) -> list[dict[str, Any]]:
    """For each target the probability that it is met, whether that is enough, and the same for each reason mixed."""
    from darkmetrics.tables import finite, plain_numbers

    found = []
    for name, target in targets.items():
        chance = result.target_probability(name, target)
        found.append(
            {
                "metric": name,
                "target": target,
                "side": "at most" if result.metrics[name].better == "lower" else "at least",
                "probability": finite(chance),
                "confidence": confidence,
                "met": bool(chance >= confidence),
                "verdict": "PASS" if chance >= confidence else "FAIL",
                "by_reason": plain_numbers(result.target_by_reason(name, target)),
            }
        )
    return found


def checks_of(found: Sequence[Mapping[str, Any]]) -> list[Check]:
    """How each target stands, in words."""
    from darkmetrics.footnotes import met_in_words

    checks = []
    for verdict in found:
        chance, enough = verdict["probability"], verdict["confidence"]
        words = "is never defined" if chance is None else f"has probability {chance:.4g}"
        asked = "enough" if verdict["met"] else f"less than the {enough:g} asked for"
        name = f"{verdict['metric']} {verdict['side']} {verdict['target']:g}"
        known = {reason: one for reason, one in verdict["by_reason"].items() if one is not None}
        why = "" if verdict["met"] else met_in_words(known, enough)
        checks.append(Check(name, verdict["met"], f"{name} {words}, {asked}{': ' * bool(why)}{why}."))
    return checks
