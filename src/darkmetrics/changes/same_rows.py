"""Whether two evaluations look like those of the same rows, which no change is between."""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, FloatArray
from darkmetrics.data.cells import Cells
from darkmetrics.evaluation import Evaluation

_IDENTICAL = (
    "The two sets look identical: the same scores, decisions and labels. If they are the same rows, nothing changed, "
    "and the intervals mean nothing."
)
_OTHER_LABELS = (
    "The two sets look like the same rows with other labels or decisions: every score is in both, as often. If they "
    "are, what moved is what is known of them, and the intervals mean nothing; verify says whether labels that came "
    "since agree with what was said before."
)
_HOLDS = (
    "The two sets look as if they had rows in common: every score of the smaller one is in the other too. If they "
    "have, these count on both sides, and the intervals mean nothing."
)
# Different rows have the same scores by chance where there are few different ones: that takes so many at least.
_FEWEST_SCORES = 10
# A set is held by another one by chance where it has few rows, or where the other one has many rows to each score.
_FEWEST_ROWS, _MOST_TO_A_SCORE = 20, 2.0


class _Scores(NamedTuple):
    """The different scores of a set, by rising score, and how many rows and how much weight each has."""

    score: FloatArray
    rows: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, cells: Cells) -> "_Scores":
        starts = np.arange(cells.score.size) if cells.tie_starts is None else cells.tie_starts
        total = cells.total.astype(np.float64)
        rows, weight = (np.add.reduceat(one, starts) for one in (total, cells.mass(cells.total)))
        return cls(cells.score[starts], rows, weight)

    def is_within(self, other: "_Scores") -> bool:
        """Whether the other set has every score at least as often, and with as much weight."""
        if self.score.size > other.score.size:
            return False
        at = np.minimum(np.searchsorted(other.score, self.score), other.score.size - 1)
        return bool(
            np.array_equal(other.score[at], self.score)
            and np.all(self.rows <= other.rows[at])
            and np.all(self.weight <= other.weight[at] * (1.0 + 1e-12))
        )


def same_rows_in_words(after: Evaluation, before: Evaluation) -> str:
    """What two sets have in common that looks like the same rows; nothing where they look like different ones."""
    both = [one.data.cells for one in (after, before)]
    if all(np.array_equal(*columns) for columns in zip(*map(_columns, both), strict=True)):
        return _IDENTICAL
    small, large = sorted(map(_Scores.of, both), key=lambda one: float(one.rows.sum()))
    if not small.is_within(large):
        return ""
    if large.is_within(small):
        return _OTHER_LABELS if small.score.size >= _FEWEST_SCORES else ""
    telling = small.rows.sum() >= _FEWEST_ROWS and large.rows.sum() <= _MOST_TO_A_SCORE * large.score.size
    return _HOLDS if telling else ""


def _columns(cells: Cells) -> list[AnyArray]:
    return [cells.score, cells.decision, cells.positives, cells.negatives, cells.missing, cells.mass(cells.total)]
