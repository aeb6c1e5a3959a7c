"""The grid of ages and delays, and the number of a cell that holds both: the same for arrays and for every engine.

The grid has four steps to a doubling (1, 1.25, 1.5, 1.75, 2, 2.5, ...), so that whole days stay apart up to eight and
sets of different days merge. In microseconds every edge is a whole number: engines find bins by comparisons alone, and
all find the same bins.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray

# Ages are in days (otherwise in a unit of the user's own), and are whole numbers; the row is older than the maturity.
DAYS, WHOLE, MATURE = 1 << 18, 1 << 17, 1 << 16
# The bin of an age is counted from here, that of a delay below it.
AGE = 1 << 8
# A delay is a bin plus one; this means that none is known.
NO_DELAY = 0
# All numbers of ages are smaller.
AGE_CODES = 1 << 19
# Powers of two at which the first steps begin and the last ones end.
LOWEST, HIGHEST = -10, 40
# The lower ends of all bins but the first, which begins at 0.
EDGES: FloatArray = np.array(
    [2.0**octave * (1.0 + quarter / 4.0) for octave in range(LOWEST, HIGHEST) for quarter in range(4)]
)
# What the low bits of a number hold.
_LOW_BITS = AGE - 1


class Ages(NamedTuple):
    """Bins of ages and of delays (-1 where none is known) for each cell, with maturity and unit."""

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
        """Return the same ages as if it were not known when labels came."""
        return self._replace(delay=np.full_like(self.delay, -1))


def age_bin(age: FloatArray) -> IntArray:
    """The bin of each age or delay, from 0 on."""
    return np.searchsorted(EDGES, age, side="right")


def bin_start(number: IntArray) -> FloatArray:
    """The lower end of bins."""
    return np.asarray(np.append(0.0, EDGES)[number], dtype=np.float64)


def age_code(age: IntArray, delay: IntArray, mature: BoolArray, *, days: bool, whole: bool) -> IntArray:
    """The number of rows with these bins; `delay` is a bin plus one, or `NO_DELAY`."""
    code = days * DAYS + whole * WHOLE + mature * MATURE + age * AGE + delay
    return np.asarray(code, dtype=np.int64)


def read_ages(code: IntArray) -> Ages:
    """Return what the numbers of cells hold."""
    delay = code & _LOW_BITS
    return Ages(
        age=(code // AGE) & _LOW_BITS,
        delay=delay - 1,
        mature=(code & MATURE) > 0,
        days=bool(np.any(code & DAYS)),
        # Of sets that were merged, one with fractions makes the ages fractions.
        whole=bool(np.all(code & WHOLE)),
    )


def without_delays(code: IntArray) -> IntArray:
    """Return the numbers of the same ages without delays, maturity and unit."""
    return code & (_LOW_BITS * AGE)
