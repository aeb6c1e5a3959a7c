"""The one list of lines that are known to miss their bar: promise, case, metric and measure; figure; reason.

`make guarantees` stays green for a line that is listed here, as long as it does not get worse than its figure by more
than sampling noise; it says so when the line is met again, and then it belongs off the list. A control is never listed.
"""

from typing import NamedTuple


class Missed(NamedTuple):
    """A figure that was measured, and why it misses its bar."""

    figure: float
    reason: str


_NARROW = (
    "most labels are missing, and four in five of the missing rows are positive: with a reference the intervals are "
    "somewhat too narrow there; the cause was not looked for yet"
)
_MOST_MASKED = ("auto covers with a reference", "by label, 80% of missing positive, most masked")

KNOWN_MISSED: dict[tuple[str, str, str, str], Missed] = {
    (*_MOST_MASKED, "recall", "coverage"): Missed(0.815, _NARROW),
    (*_MOST_MASKED, "accuracy", "coverage"): Missed(0.8425, _NARROW),
    (*_MOST_MASKED, "roc_auc", "coverage"): Missed(0.845, _NARROW),
}
