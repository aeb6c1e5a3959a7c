"""What a group without labels of a class may be like: one of the others, nobody knows which.

A fit over all rows knows how the chance of a positive rises with the score, but takes all groups for one. Groups
differ, and a group that says nothing may differ from the rest as any of them does. So it takes the shape of that fit
and, at each of its nodes, the level of another group at one of that group's nodes: flagged and other rows are shifted
until the other group, completed by what its own label model says, has as many positives as the shape gives it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.posterior import Posterior

# Posterior draws of a group that borrows, spread over its lenders.
_N_DRAWS = 128
# Log odds at which a shape is kept, on each side of the threshold: enough for a sum over rows to a thousandth.
_LEVELS = 64
# Steps of the search for a shift; it ends with a step that is smaller than this.
_MAX_STEPS, _MIN_STEP = 50, 1e-9


class Lender(NamedTuple):
    """A group with a label model of its own: its nodes, and its positives at each of them, as completed by it.

    `positives` has two columns, for the missing rows that are flagged and for those that are not.
    """

    data: EvaluationSet
    weight: FloatArray
    positives: FloatArray
    mechanism: IntArray


class Shape(NamedTuple):
    """Log odds of a positive by score, as a fit over all rows has them."""

    score: FloatArray
    log_odds: FloatArray

    @classmethod
    def of(cls, data: EvaluationSet, posterior: Posterior) -> "Shape":
        cells = posterior.on_all_cells
        mean = np.clip(cells.weight @ cells.probability, 1e-9, 1.0 - 1e-9)
        score, place = np.unique(data.cells.score[data.missing_cells], return_inverse=True)
        rows = data.missing_counts.astype(np.float64)
        odds = np.bincount(place, rows * logit(mean)) / np.bincount(place, rows)
        return cls(score, odds)

    def at(self, score: FloatArray) -> FloatArray:
        result: FloatArray = np.interp(score, self.score, self.log_odds)
        return result


def borrowed(
    sets: Sequence[EvaluationSet], lenders: Sequence[Lender], shape: Shape, rng: np.random.Generator
) -> list[Posterior]:
    """Return posteriors of the missing rows of groups that have too few labels for their own.

    Draws go evenly through the lenders, or through a systematic sample of them for each group if they are many. Shifts
    are computed once for each draw of a lender.
    """
    n_used = min(len(lenders), _N_DRAWS)
    n_each = -(-_N_DRAWS // n_used)
    lender = np.tile(np.arange(n_used), (len(sets), 1))
    if len(lenders) > n_used:
        lender = ((lender + rng.random((len(sets), 1))) * (len(lenders) / n_used)).astype(np.int64)
    level = (np.arange(n_each) + rng.random((len(sets) * n_used, 1))) / n_each
    shift, mechanism = np.empty((*level.shape, 2)), np.empty(level.shape, np.int64)
    order = np.argsort(lender, axis=None)
    for members in np.split(order, np.flatnonzero(np.diff(lender.ravel()[order])) + 1):
        lending = lenders[lender.ravel()[members[0]]]
        reached = np.cumsum(lending.weight)
        chosen = np.searchsorted(reached / reached[-1], level[members])
        draws, index = np.unique(chosen, return_inverse=True)
        shift[members] = _shifts(lending, shape, draws)[index.reshape(chosen.shape)]
        mechanism[members] = lending.mechanism[chosen]
    size = n_used * n_each
    return [
        _moved(data, shape, of_group, mechanisms, n_used)
        for data, of_group, mechanisms in zip(
            sets, shift.reshape(-1, size, 2), mechanism.reshape(-1, size), strict=True
        )
    ]


def _moved(data: EvaluationSet, shape: Shape, shift: FloatArray, mechanism: IntArray, n_lenders: int) -> Posterior:
    """Return the shape at the missing rows of a group, moved as the lenders are."""
    if n_lenders > 1:
        # The lenders are a sample of what a group can be: their spread is that of another group once it is widened.
        center = shift.mean(axis=0)
        shift = center + np.sqrt((n_lenders + 1.0) / (n_lenders - 1.0)) * (shift - center)
    cells = data.missing_cells
    side = np.where(data.cells.decision[cells], 0, 1)
    probability = expit(shape.at(data.cells.score[cells]) + shift[:, side])
    return Posterior(np.full(len(shift), 1.0 / len(shift)), probability, mechanism=mechanism)


def _shifts(lender: Lender, shape: Shape, chosen: IntArray) -> FloatArray:
    """How far the shape is moved on each side so that it gives a group as many positives as it has at some nodes."""
    cells = lender.data.cells
    total, odds = cells.total.astype(np.float64), shape.at(cells.score)
    sides = (cells.decision, ~cells.decision)
    positives = np.column_stack(
        [cells.positives[side].sum() + lender.positives[chosen, i] for i, side in enumerate(sides)]
    )
    if not all(total[side].sum() for side in sides):  # the side without rows moves as the other does
        return np.repeat(_shift(odds, total, positives.sum(axis=1))[:, None], 2, axis=1)
    shifts = [_shift(odds[side], total[side], positives[:, i]) for i, side in enumerate(sides)]
    return np.column_stack(shifts)


def _shift(log_odds: FloatArray, rows: FloatArray, positives: FloatArray) -> FloatArray:
    """The shift at which log odds expect so many positives; half a row of each class keeps it finite."""
    log_odds, rows = _few_levels(log_odds, rows)
    aim = (positives + 0.5) / (rows.sum() + 1.0) * rows.sum()
    if log_odds.size == 1:
        return np.asarray(logit(aim / rows.sum()) - log_odds[0])
    # Newton's method on the log odds of the mean probability, which are nearly linear in the shift; bisection where it
    # leaves the interval that contains the shift.
    share, target = rows / rows.sum(), logit(aim / rows.sum())
    low, high = target - log_odds.max(), target - log_odds.min()
    shift = np.clip(target - share @ log_odds, low, high)
    for _ in range(_MAX_STEPS):
        p = expit(shift[:, None] + log_odds)
        mean, slope = p @ share, (p * (1.0 - p)) @ share
        is_low = mean * rows.sum() < aim
        low, high = np.where(is_low, shift, low), np.where(is_low, high, shift)
        with np.errstate(invalid="ignore", divide="ignore"):
            new = shift + (target - logit(mean)) * mean * (1.0 - mean) / slope
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        is_last = np.abs(new - shift).max(initial=0.0) < _MIN_STEP
        shift = new
        if is_last:
            break
    return np.asarray(shift)


def _few_levels(log_odds: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same rows at few log odds, each the mean of an equal share of them."""
    order = np.argsort(log_odds, kind="stable")
    reached = np.cumsum(rows[order]) - 0.5 * rows[order]
    level = np.minimum((_LEVELS * reached / rows.sum()).astype(np.int64), _LEVELS - 1)
    mass: FloatArray = np.asarray(np.bincount(level, rows[order], _LEVELS), dtype=np.float64)
    mean = np.bincount(level, rows[order] * log_odds[order], _LEVELS)
    kept = mass > 0.0
    return mean[kept] / mass[kept], mass[kept]
