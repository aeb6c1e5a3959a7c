"""The grid of ages and delays, and the number of a cell that holds both: the same for arrays and for every engine.

The grid has 32 steps to a doubling, so that sets of different days merge. Whole days stay apart up to 64, and bins are
at most 3% wide in every unit. All of its edges are multiples of powers of two, so that all engines find the same bins.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray

# Ages are in days (otherwise in a unit of the user's own), and are whole numbers; the row is older than the maturity.
DAYS, WHOLE, MATURE = 1 << 26, 1 << 25, 1 << 24
# The bin of an age is counted from here, that of a delay below it.
AGE = 1 << 12
# A delay is a bin plus one; this means that none is known.
NO_DELAY = 0
# All numbers of ages are smaller.
AGE_CODES = 1 << 27
# Powers of two at which the first steps begin and the last ones end, and steps between two powers.
LOWEST, HIGHEST, STEPS = -63, 64, 32
# The lower ends of all bins but the first, which begins at 0.
EDGES: FloatArray = np.ldexp(1.0 + np.arange(STEPS) / STEPS, np.arange(LOWEST, HIGHEST)[:, None]).ravel()
# What the low bits of a number hold.
_LOW_BITS = AGE - 1
# The same of numbers that were stored until November 2026, with four steps to a doubling.
_COARSE_AGE, _COARSE_FLAGS = 1 << 8, 1 << 16
_COARSE_EDGES: FloatArray = np.append(0.0, np.ldexp(1.0 + np.arange(4) / 4.0, np.arange(-10, 40)[:, None]).ravel())


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


def refine(code: IntArray) -> IntArray:
    """Return the numbers of cells that were stored on a coarser grid: each bin becomes the first step in it."""
    if code.max(initial=0) >= _COARSE_FLAGS << 3:
        return code
    age, delay = (code // _COARSE_AGE) % _COARSE_AGE, code % _COARSE_AGE
    late = np.where(delay == NO_DELAY, NO_DELAY, age_bin(_COARSE_EDGES[np.maximum(delay - 1, 0)]) + 1)
    return np.asarray(code // _COARSE_FLAGS * MATURE + age_bin(_COARSE_EDGES[age]) * AGE + late, dtype=np.int64)
