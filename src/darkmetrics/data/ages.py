"""Validate ages of rows and delays of labels, and turn them into the `age` of cells (see `_kernels.age_grid`)."""

from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.age_grid import EDGES, NO_DELAY, Ages, age_bin, age_code, bin_start
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.rules import check_finite, check_length
from darkmetrics.exceptions import InputError
from darkmetrics.wording import named, setting


def describe_age(ages: Ages, cell: int) -> str:
    """Return the ages, and the delays if they are known, of the rows of a cell for a message."""
    unit = " days" if ages.days else ""

    def between(number: int) -> str:
        ends = bin_start(np.array([number, number + 1]))
        first, last = (np.ceil(ends) if ages.whole else ends).tolist()
        return f"{first:g} to {last:g}{unit}"

    text = f"and an age of {between(ages.age[cell])}"
    return f"{text} with a label after {between(ages.delay[cell])}" if ages.timed[cell] else text


def check_same_unit(first: Cells, second: Cells) -> None:
    """Refuse ages in different units; a set without cells has no unit."""
    if first.ages is None or second.ages is None or not (first.score.size and second.score.size):
        return
    if first.ages.days != second.ages.days:
        raise InputError(
            "age",
            "one set has ages in days, of dates or timedeltas, the other in numbers of a unit that is not known",
            "",
            "Pass both in days, or both as numbers in one unit.",
        )


def settled(cells: Cells) -> Cells:
    """Cells with ages where only positives arrive, and the rest become negative at the maturity.

    Rows that are older and have no label are negative. A negative that is younger is known only if it has a time of
    arrival: a column of labels often has 0 for "not confirmed so far".
    """
    ages = cells.ages
    assert ages is not None
    declared = np.where(ages.mature, cells.missing, 0)
    withdrawn = np.where(~ages.mature & ~ages.timed, cells.negatives, 0)
    moved = declared - withdrawn
    return replace(cells, negatives=cells.negatives + moved, missing=cells.missing - moved)


def row_ages(age: Any, delay: Any, maturity: Any, missing: BoolArray, positive: BoolArray) -> IntArray | None:
    """The number of each row's age and delay, if ages were given."""
    if age is None:
        for name, value in (("delay", delay), ("maturity", maturity)):
            if value is not None:
                raise InputError(name, "no ages", "", f"Pass {setting('age')}, the time since each row was scored.")
        return None
    old, days = frames.duration_column(age, "age")
    check_length(old, "age", missing.size)
    check_finite(old, "age", "Every row needs an age: the time since it was scored.")
    _refuse("age", old, old < 0.0, "Ages are the time since scoring, and not negative.")
    _refuse("age", old, old >= EDGES[-1], f"Ages are below {EDGES[-1]:.0e}; choose a larger unit.")
    limit = None if maturity is None else positive_span("maturity", maturity, days=days)
    mature = np.zeros(old.size, dtype=np.bool_) if limit is None else old >= limit
    late, whole = np.zeros(old.size, dtype=np.int64), bool(np.all(old == np.floor(old)))
    if delay is not None:
        took, in_days = frames.duration_column(delay, "delay")
        check_length(took, "delay", missing.size)
        timed = ~np.isnan(took)
        if timed.any() and in_days != days:
            finding = f"{_unit(in_days)}, but {named('age')} is {_unit(days)}"
            raise InputError("delay", finding, "Both must have one unit.", "Pass timedeltas or numbers for both.")
        _check_delays(took, timed, old, missing, positive, limit)
        if whole:  # an age of 4 has a label that took 3.2, and an age of 3 has not: it arrives at the age of 4
            took = np.ceil(took)
        late = np.where(timed, age_bin(np.where(timed, took, 0.0)) + 1, NO_DELAY)
    return age_code(age_bin(old), late, mature, days=days, whole=whole)


def _check_delays(
    took: FloatArray,
    timed: BoolArray,
    old: FloatArray,
    missing: BoolArray,
    positive: BoolArray,
    limit: float | None,
) -> None:
    _refuse("delay", took, timed & (took < 0.0), "A label cannot come before its row is scored.")
    _refuse("delay", took, timed & (took > old), "It is longer than the age of the row, whose label is yet to come.")
    _refuse("delay", took, timed & missing, "The row has no label, so that none can have come.")
    late = timed & (took > (np.inf if limit is None else limit))
    if limit is not None and late.any():
        where = f"first at row {int(np.argmax(late))}"
        raise frames.after_maturity(limit, "", int(late.sum()), int(timed.sum()), float(took[late].max()), where)
    # With a maturity, negatives need no time: the maturity declares them.
    untimed = ~timed & ~missing & (positive if limit is not None else True)
    if timed.any() and untimed.any():
        raise InputError(
            "delay",
            f"missing at row {int(np.argmax(untimed))}, which has a label, while other labeled rows have a delay",
            "Every labeled row needs a delay, or no row has one.",
            f"Pass the delay of every labeled row, or leave {named('delay')} out.",
        )


def table_times(scored_at: Any, labeled_at: Any, as_of: Any, maturity: Any) -> dict[str, Any]:
    """Check what is asked about times of a table; return `as_of`, and `maturity` in days."""
    if scored_at is None:
        for name, value in (("labeled_at", labeled_at), ("as_of", as_of), ("maturity", maturity)):
            if value is not None:
                fix = f"Pass {setting('scored_at')}, the column with the time when each row was scored."
                raise InputError(name, "no times of scoring", "", fix)
    return {"as_of": as_of, "maturity": None if maturity is None else positive_span("maturity", maturity, days=True)}


def positive_span(name: str, given: Any, *, days: bool) -> float:
    """A span of time in the unit of ages, which are in days or numbers of the user's own."""
    value, in_days = np.array([np.nan]), False
    if not isinstance(given, (str, bytes, bool, np.bool_)) and not frames.is_container(type(given)):
        value, in_days = frames.duration_column([given], name)
    if not (np.isfinite(value[0]) and value[0] > 0.0):
        raise InputError(name, f"{given!r}", "It must be a positive number or a timedelta.")
    if in_days and not days:
        raise InputError(name, "a timedelta, but ages are numbers", "Both must have one unit.", "Pass a number.")
    return float(value[0])


def _unit(days: bool) -> str:
    return "a timedelta" if days else "a number"


def _refuse(name: str, values: FloatArray, bad: AnyArray, rule: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(name, f"{values[first]:g} at row {first}", rule)
