"""Laws of numbers of successes that are found from one another: of more and more trials, or with other odds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.poisson_binomial import (
    CONVOLUTION_LIMIT,
    FAINTEST,
    PART_OF_LEAST,
    add_trials,
    shared_pmfs,
)

# Trials up to which adding them one after the other beats laws from scratch, at one node or many.
LADDER_LIMIT = 4 * CONVOLUTION_LIMIT
# A law that is to be moved is known down to here, and the moved one down to what all others are.
_FAR = 1e-260
# Where it is not known the moved one has no more than this: less than is kept of it.
_OUTSIDE = 1e-34


def split_pmfs(
    p: FloatArray, counts: IntArray, cuts: IntArray
) -> Iterator[tuple[tuple[int, FloatArray], tuple[int, FloatArray]]]:
    """For each of the rising cuts, the laws of the successes among the cells before it, and from it on.

    Each law is a first number and pmfs (rows of `p` x window), made of the one before by adding the trials in between.
    Of the second ones, which shrink, the root of their number is kept at a time; each is found twice.
    """
    nothing = 0, np.ones((1, p.shape[0]))
    stretch = math.isqrt(cuts.size) + 1
    starts = range(0, cuts.size, stretch)
    after = {}  # the law from the end of each stretch on
    law, before = nothing, counts.size
    for start in reversed(starts):
        last = int(cuts[min(start + stretch, cuts.size) - 1])
        law = after[start] = _with_cells(law, p, counts, last, before)
        before = last
    below, seen = nothing, 0
    for start in starts:
        inside = cuts[start : start + stretch].tolist()
        above = [after.pop(start)]
        for first, last in pairwise(inside[::-1]):
            above.append(_with_cells(above[-1], p, counts, last, first))
        for cut in inside:
            below, seen = _with_cells(below, p, counts, seen, cut), cut
            yield _shown(below), _shown(above.pop())


def _with_cells(
    law: tuple[int, FloatArray], p: FloatArray, counts: IntArray, first: int, end: int
) -> tuple[int, FloatArray]:
    """The law with the trials of some more cells."""
    if first == end:
        return law
    return add_trials(law, np.repeat(p[:, first:end].T, counts[first:end], axis=0), FAINTEST * PART_OF_LEAST)


def _shown(law: tuple[int, FloatArray]) -> tuple[int, FloatArray]:
    """A law as it is used: row by row, without what is next to nothing."""
    first, columns = law
    pmfs = np.where(columns > FAINTEST, columns, 0.0)
    kept = np.flatnonzero(pmfs.any(axis=1))
    pmfs = np.ascontiguousarray(pmfs[kept[0] : kept[-1] + 1].T)
    return first + int(kept[0]), pmfs / pmfs.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class MovablePmfs:
    """Laws of a number of successes, from which those with other odds follow (mathematics, section 1).

    Where the log odds of every trial are greater by d, the mass of k successes is multiplied by e^(dk), up to a factor
    that makes the masses add up to one.
    """

    first: int
    log_pmfs: FloatArray
    trials: int

    @classmethod
    def of(cls, p: FloatArray, counts: IntArray) -> "MovablePmfs":
        """Those of trials with the chances in each row of `p`."""
        first, pmfs = shared_pmfs(np.repeat(p, counts, axis=1), _FAR * PART_OF_LEAST)
        with np.errstate(divide="ignore"):
            return cls(first, np.log(pmfs), int(counts.sum()))

    def moved(self, delta: float) -> tuple[int, FloatArray] | None:
        """The laws after a move, like `poisson_binomial_pmfs`; None where they lie where these are not known."""
        logs = self.log_pmfs + delta * np.arange(self.log_pmfs.shape[1])
        peak = logs.max(axis=1)
        known = self.log_pmfs > math.log(_FAR)
        first, last = known.argmax(axis=1), known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        # Masses of such sums fall ever faster away from their peak: one bound next to what is known holds beyond.
        for place, end in ((first - 1, 0), (last + 1, self.trials)):
            unknown = self.first + place + (1 if end == 0 else -1) != end
            if np.any((math.log(_FAR) + delta * place - peak)[unknown] > math.log(_OUTSIDE)):
                return None
        pmfs = np.exp(logs - peak[:, None])
        pmfs /= pmfs.sum(axis=1, keepdims=True)
        pmfs[pmfs <= FAINTEST] = 0.0
        kept = np.flatnonzero(pmfs.any(axis=0))
        pmfs = pmfs[:, kept[0] : kept[-1] + 1]
        return self.first + int(kept[0]), pmfs / pmfs.sum(axis=1, keepdims=True)
