"""Ages of rows and delays of labels as whole numbers: what the `stratum` of a cell is where rows have ages.

An age is put on a grid that is the same for all data, four steps to a doubling (1, 1.25, 1.5, 1.75, 2, 2.5, ...), so
that whole days stay apart up to eight, sets of different days merge, and every engine finds the same bins. The number
of a row holds the bin of its age, the bin of its label's delay, and what is known of both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.age_grid import AGE, DAYS, EDGES, FIRST_AGE_CODE, MATURE, NO_DELAY, WHOLE, age_bin
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.rules import check_finite, check_length
from darkmetrics.exceptions import InputError

# What the low bits of a number hold.
_LOW_BITS = AGE - 1
# What cannot be said of a table whose rows have ages, and why.
_BESIDE = {
    "strata": "for ages are the strata of such rows",
    "stratum": "for ages are the strata of such rows",
    "probability": "from which the probabilities of missing labels are learnt",
}


def bin_start(number: IntArray) -> FloatArray:
    """The lower end of bins."""
    return np.asarray(np.append(0.0, EDGES)[number], dtype=np.float64)


class Ages(NamedTuple):
    """What the numbers of cells say: bins of ages and of delays (-1 where none is known), and maturity."""

    age: IntArray
    delay: IntArray
    mature: BoolArray
    days: bool
    whole: bool

    @property
    def timed(self) -> BoolArray:
        """Whether it is known when the label came."""
        return self.delay >= 0

    def untimed(self) -> "Ages":
        """The same where it is not known when labels came."""
        return self._replace(delay=np.full_like(self.delay, -1))


def age_code(age: IntArray, delay: IntArray, mature: BoolArray, *, days: bool, whole: bool) -> IntArray:
    """The number of rows with these bins; `delay` is a bin plus one, or `NO_DELAY`."""
    code = FIRST_AGE_CODE + days * DAYS + whole * WHOLE + mature * MATURE + age * AGE + delay
    return np.asarray(code, dtype=np.int64)


def are_ages(stratum: IntArray | None) -> bool:
    """Whether the strata of cells are the numbers of ages."""
    return stratum is not None and stratum.size > 0 and bool(stratum[0] >= FIRST_AGE_CODE)


def read_ages(stratum: IntArray) -> Ages:
    """What the numbers of cells say."""
    code = stratum - FIRST_AGE_CODE
    delay = code & _LOW_BITS
    return Ages(
        age=(code // AGE) & _LOW_BITS,
        delay=delay - 1,
        mature=(code & MATURE) > 0,
        days=bool(np.any(code & DAYS)),
        # Of sets that were merged, one with fractions makes the ages fractions.
        whole=bool(np.all(code & WHOLE)),
    )


def in_words(stratum: IntArray, cell: int) -> str:
    """What tells the rows of a cell apart from others of the same score."""
    if not are_ages(stratum):
        return f"in stratum {int(stratum[cell])}"
    ages = read_ages(stratum[cell : cell + 1])
    unit = " days" if ages.days else ""
    first, last = (float(bin_start(ages.age + step)[0]) for step in (0, 1))
    text = f"and an age of {first:g} to {last:g}{unit}"
    if not ages.timed[0]:
        return text
    first, last = (float(bin_start(ages.delay + step)[0]) for step in (0, 1))
    return f"{text} with a label after {first:g} to {last:g}{unit}"


def check_same_ages(one: IntArray | None, other: IntArray | None) -> None:
    """Of two sets that are put together, both have ages in one unit, or none has."""
    if one is None or other is None or not (one.size and other.size):
        return
    if are_ages(one) != are_ages(other):
        raise InputError("age: one set has ages, the other has strata. Give the same to both.")
    if are_ages(one) and read_ages(one).days != read_ages(other).days:
        raise InputError(
            "age: one set has ages in days, of dates or timedeltas, the other in numbers of a unit that is not known. "
            "Give both in one way."
        )


def ages_alone(stratum: IntArray) -> IntArray:
    """The numbers of the same ages, whatever is known of labels and units."""
    return np.asarray(FIRST_AGE_CODE + read_ages(stratum).age * AGE, dtype=np.int64)


def settled(cells: Cells) -> Cells:
    """Cells with ages where only positives arrive, and the rest become negative at the maturity.

    Rows that are older and have no label are negative. A negative that is younger is known only if it has a time of
    arrival: a column of labels often has 0 for "not confirmed so far".
    """
    assert cells.stratum is not None
    ages = read_ages(cells.stratum)
    declared = np.where(ages.mature, cells.missing, 0)
    withdrawn = np.where(~ages.mature & ~ages.timed, cells.negatives, 0)
    moved = declared - withdrawn
    return replace(cells, negatives=cells.negatives + moved, missing=cells.missing - moved)


def row_ages(age: Any, delay: Any, maturity: Any, missing: BoolArray, positive: BoolArray) -> IntArray | None:
    """The number of each row's age and delay, if ages were given."""
    if age is None:
        for name, value in (("delay", delay), ("maturity", maturity)):
            if value is not None:
                raise InputError(f"{name}: needs age=, the time since each row was scored.")
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
            raise InputError(f"delay: {_unit(in_days)}, but age is {_unit(days)}. Give both in one unit.")
        _check_delays(took, timed, old, missing, positive, limit)
        late = np.where(timed, age_bin(np.where(timed, took, 0.0)) + 1, NO_DELAY)
        whole = whole and bool(np.all(took[timed] == np.floor(took[timed])))
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
            f"delay: none at row {int(np.argmax(untimed))}, which has a label, while other labelled rows have one. "
            "Give it for every labelled row, or leave it out."
        )


def table_times(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a table is asked about times, checked: `as_of`, and `maturity` in days; `given` are arguments by name."""
    if given["scored_at"] is None:
        for name in ("labelled_at", "as_of", "maturity"):
            if given[name] is not None:
                raise InputError(f"{name}: needs scored_at=, the column with the time when each row was scored.")
    else:
        for name, why in _BESIDE.items():
            if given.get(name) is not None:
                raise InputError(f"{name}: cannot be given beside scored_at, {why}.")
    return {
        "as_of": given["as_of"],
        "maturity": None if given["maturity"] is None else positive_span("maturity", given["maturity"], days=True),
    }


def positive_span(name: str, given: Any, *, days: bool) -> float:
    """A span of time in the unit of ages, which are in days or numbers of the user's own."""
    value, in_days = np.array([np.nan]), False
    if not isinstance(given, (str, bytes, bool, np.bool_)) and not frames.is_container(type(given)):
        value, in_days = frames.duration_column([given], name)
    if not (np.isfinite(value[0]) and value[0] > 0.0):
        raise InputError(f"{name}: {given!r}. It must be a positive number or a timedelta.")
    if in_days and not days:
        raise InputError(f"{name}: a timedelta, but ages are numbers. Give both in one unit.")
    return float(value[0])


def _unit(days: bool) -> str:
    return "a timedelta" if days else "a number"


def _refuse(name: str, values: FloatArray, bad: AnyArray, rule: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(f"{name}: {values[first]:g} at row {first}. {rule}")
