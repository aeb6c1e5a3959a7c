"""The one list of lines that are known to miss their bar: promise, case, metric and measure; figure; reason.

`make guarantees` stays green for a line that is listed here, as long as it does not get worse than its figure by more
than sampling noise; it says so when the line is met again, and then it belongs off the list. A control is never listed.
"""

from typing import NamedTuple


class Missed(NamedTuple):
    """A figure that was measured, and why it misses its bar."""

    figure: float
    reason: str


KNOWN_MISSED: dict[tuple[str, str, str, str], Missed] = {}
