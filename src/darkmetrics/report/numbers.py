"""Numbers of a report: as plain values for the dictionary, and as the words a reader sees."""

from darkmetrics.tables import decimals_for, number_text

# What stands where there is no number.
NOTHING = "undefined"


def shown(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A value in print, with the decimals that its interval deserves."""
    return NOTHING if value is None else number_text(value, _decimals(low, high))


def interval_shown(low: float | None, high: float | None, joined: str = " to ") -> str:
    """Both ends of an interval in print.

    Examples
    --------
    >>> from darkmetrics.report.numbers import interval_shown
    >>> interval_shown(0.7712, 0.8533)
    '0.771 to 0.853'
    >>> interval_shown(0.70001, 0.70004)
    '0.700010 to 0.700040'
    """
    if low is None or high is None:
        return NOTHING
    return f"{shown(low, low, high)}{joined}{shown(high, low, high)}"


def percent(share: float | None, decimals: int = 1) -> str:
    """A share in print; one that is nearly 0 or 1 is not called 0% or 100%."""
    if share is None:
        return NOTHING
    smallest = 10.0 ** -(decimals + 2)
    if 0.0 < share < smallest:
        return f"<{smallest:.{decimals}%}"
    if 1.0 - smallest < share < 1.0:
        return f">{1.0 - smallest:.{decimals}%}"
    return f"{share:.{decimals}%}"


def _decimals(low: float | None, high: float | None) -> int:
    return 3 if low is None or high is None else decimals_for(high - low)
