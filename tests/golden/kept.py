"""The file of answers: one line of JSON per problem, after a line that says what it was written with."""

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from golden.problems import answer

ANSWERS = Path(__file__).with_name("answers.jsonl")
API = Path(__file__).with_name("public_api.txt")
# Constants of a metric that say nothing of the numbers.
_LEFT_OUT = frozenset({"meaning", "better"})


def versions() -> dict[str, str]:
    """What the last digits depend on."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def now(number: int) -> Any:
    """What is said to a problem now, as JSON has it."""
    return json.loads(json.dumps(_plain(answer(number))))


@cache
def _lines() -> tuple[str, ...]:
    return tuple(ANSWERS.read_text().splitlines())


def written_with() -> Any:
    return json.loads(_lines()[0])


def kept() -> list[Any]:
    """What was said to each problem when the file was written."""
    return [json.loads(line) for line in _lines()[1:]]


def write(answers: list[Any]) -> None:
    lines = [json.dumps(one, separators=(",", ":")) for one in [versions(), *answers]]
    ANSWERS.write_text("\n".join(lines) + "\n")


# How far numbers of a metric may move without a change of the file, in standard deviations, by method. Exact answers
# are equal to rounding; approximate ones promise a cdf within 0.01.
_TOLERANCE = {"near exact": 0.02, "monte carlo": 0.05}
_MOVABLE = frozenset({"mean", "std", "median", "low", "high"})
# Rounding decides which of nearly equal posterior draws are selected, and with them how the variance is split.
_VARIANCE_TOLERANCE = 0.005


def differences(old: Any, new: Any, path: str = "", slack: float = 0.0) -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ by more than their method allows: the path of keys, and both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        slack = max(slack, _TOLERANCE.get(str(old.get("method")), 0.0) * (old.get("std") or 0.0))
        for key in old.keys() | new.keys():
            own = slack if key in _MOVABLE or key == "sensitivity" else 0.0
            if key.startswith("variance_from_"):
                own = _VARIANCE_TOLERANCE
            yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), f"{path}.{key}", own)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{path}.{place}", slack)
    elif old != new and not (_are_numbers(old, new) and abs(old - new) <= slack):
        yield path, old, new


def _are_numbers(old: object, new: object) -> bool:
    return isinstance(old, (int, float)) and isinstance(new, (int, float))


def rounding(old: object, new: object) -> bool:
    """Whether two values are the same but for the last digits, which other processors round otherwise."""
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12)
    return False


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items() if key not in _LEFT_OUT}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
