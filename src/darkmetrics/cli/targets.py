"""--target: what it says, and whether it is met."""

from __future__ import annotations  # names of the library in annotations must not import it

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.output import DONE, TARGET_MISSED, in_words, say


def targets_from(given: Sequence[str] | None) -> dict[str, float]:
    """The targets by name of the metric."""
    if not given:
        return {}
    from darkmetrics.monitoring.alerts import check_target

    targets: dict[str, float] = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        target = number_from(value)
        if not sign or not name.strip() or target is None or not math.isfinite(target):
            raise WordedError(f"--target: cannot read {text!r}. Write it like recall=0.8.")
        with in_words({}, metrics="--target"):
            metric = dm.metrics.metrics_from(name.strip())[0]
            check_target(metric, target, f"targets: {value.strip()} for {name.strip()!r}")
            name = metric.name
        if name in targets:
            raise WordedError(f"--target: {name!r} has two targets. Give one.")
        targets[name] = target
    return targets


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


def tell(found: Sequence[Mapping[str, Any]]) -> int:
    """Say how each target stands; the exit code."""
    from darkmetrics.stating import met_in_words

    for verdict in found:
        chance, enough = verdict["probability"], verdict["confidence"]
        words = "is never defined" if chance is None else f"has probability {chance:.4g}"
        asked = "enough" if verdict["met"] else f"less than the {enough:g} asked for"
        text = f"{verdict['verdict']}: {verdict['metric']} {verdict['side']} {verdict['target']:g} {words}, {asked}"
        known = {reason: one for reason, one in verdict["by_reason"].items() if one is not None}
        why = "" if verdict["met"] else met_in_words(known, enough)
        say(f"{text}: {why}." if why else f"{text}.")
    return DONE if all(verdict["met"] for verdict in found) else TARGET_MISSED
