"""A line of the guarantees: one figure, the bar it is held to, and what follows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

from guarantees.known_missed import KNOWN_MISSED, Missed

Key = tuple[str, str, str, str]


class Bar(NamedTuple):
    """Where a figure has to be; ends that are not given do not bind."""

    at_least: float = -inf
    at_most: float = inf
    above: float = -inf
    below: float = inf

    def side(self, value: float) -> int:
        """0 if the bar is met, -1 if the value is too low, 1 if it is too high."""
        if not (value >= self.at_least and value > self.above):
            return -1
        return 0 if value <= self.at_most and value < self.below else 1

    def miss(self, value: float) -> float:
        """By how much the value is beyond the nearest end."""
        return max(self.at_least - value, self.above - value, value - self.at_most, value - self.below, 0.0)


@dataclass(frozen=True)
class Line:
    """A measured figure. `bar` is None where nothing is promised and the figure is shown beside others."""

    promise: str
    case: str
    way: str
    metric: str
    measure: str
    n: int
    value: float
    bar: Bar | None = None
    noise: float = 0.0  # a standard error
    control: bool = False  # its bar says that something wrong is found out

    @property
    def key(self) -> Key:
        return (self.promise, self.case, self.metric, self.measure)

    @property
    def verdict(self) -> str:
        """Met or missed; nothing where there is no bar."""
        return "" if self.bar is None else "missed" if self.bar.side(self.value) else "met"

    def __str__(self) -> str:
        words = ", ".join(word for word in (self.promise, self.case, self.metric) if word)
        bounds = {} if self.bar is None else self.bar._asdict()
        bar = " and ".join(f"{end.replace('_', ' ')} {bound:.4g}" for end, bound in bounds.items() if abs(bound) < inf)
        return f"{words}: {self.measure} {self.value:.4g} (bar: {bar})"


def share(value: float, n: int) -> float:
    """The standard error of a share."""
    return sqrt(value * (1.0 - value) / n)


# How many standard errors are noise.
NOISE = 2.0


def alarms(lines: Iterable[Line], listed: Mapping[Key, Missed] = KNOWN_MISSED) -> Iterator[str]:
    """What makes a run red: lines that are missed and not listed, or listed and worse than their figure."""
    for line in lines:
        if line.bar is None or line.verdict == "met":
            continue
        known = listed.get(line.key)
        if line.control:
            yield f"{line}. This is a control: what it tries must be found out."
        elif known is None:
            yield f"{line} is missed. It is not in known_missed.py."
        elif line.bar.side(line.value) != line.bar.side(known.figure):
            yield f"{line} is missed. Listed in known_missed.py is {known.figure:.4g}, on another side of the bar."
        elif line.bar.miss(line.value) > line.bar.miss(known.figure) + NOISE * line.noise:
            worse = f"more than {NOISE:.0f} standard errors ({line.noise:.2g}) worse than {known.figure:.4g}"
            yield f"{line} is missed, and {worse}, which known_missed.py lists."


def news(lines: Iterable[Line], listed: Mapping[Key, Missed] = KNOWN_MISSED) -> Iterator[str]:
    """Listed lines that are met: they belong off the list."""
    for line in lines:
        if line.key in listed and line.verdict == "met":
            yield f"{line} is met again. Take it off the list in known_missed.py."
