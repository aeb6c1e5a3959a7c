"""The grid of ages and delays, and the parts of the number that holds both: one for arrays and for every engine.

Four steps to a doubling (1, 1.25, 1.5, 1.75, 2, 2.5, ...), the same for all data. In microseconds every edge of it is a
whole number, so that engines find bins by comparing alone, and all find the same ones.
"""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray

# From here on a stratum is the number of an age; strata of users' own are smaller.
FIRST_AGE_CODE = 1 << 52
# Ages are in days (else in a unit of the user's), and are whole numbers; the row is older than the maturity.
DAYS, WHOLE, MATURE = 1 << 18, 1 << 17, 1 << 16
# The bin of an age is counted from here, that of a delay below it.
AGE = 1 << 8
# A delay is a bin plus one; this means that none is known.
NO_DELAY = 0
# Powers of two at which the first steps begin and the last ones end.
LOWEST, HIGHEST = -10, 40
# The lower ends of all bins but the first, which begins at 0.
EDGES: FloatArray = np.array(
    [2.0**octave * (1.0 + quarter / 4.0) for octave in range(LOWEST, HIGHEST) for quarter in range(4)]
)


def age_bin(age: FloatArray) -> IntArray:
    """The bin of each age or delay, from 0 on."""
    return np.searchsorted(EDGES, age, side="right")
