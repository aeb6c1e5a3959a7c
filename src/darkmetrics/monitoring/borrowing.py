"""Posteriors of groups without labels of a class, borrowed from the other groups.

A fit to all rows gives the curve from score to probability, but it treats all groups as one. A group without labels may
differ from the others as they differ from each other. Its posterior has the curve of that fit, and each of its draws
has the level of another group at one of that group's draws. The level consists of two shifts of the log odds, for rows
predicted positive and negative. With these shifts the curve expects as many positives in the other group as that
group's own label model.
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
# Bins of log odds on each side of the threshold: enough for a sum over rows with a relative error of a thousandth.
_LEVELS = 64
# Steps of the search for a shift; it ends with a step that is smaller than this.
_MAX_STEPS, _MIN_STEP = 50, 1e-9


class Lender(NamedTuple):
    """A group with its own label model: weight, mechanism and expected positives of its posterior draws.

    `positives` has two columns, for the missing rows that are predicted positive and negative.
    """

    data: EvaluationSet
    weight: FloatArray
    positives: FloatArray
    mechanism: IntArray


class ScoreCurve(NamedTuple):
    """Log odds of a positive by score, in a fit to all rows."""

    score: FloatArray
    log_odds: FloatArray

    @classmethod
    def of(cls, data: EvaluationSet, posterior: Posterior) -> "ScoreCurve":
        """Return the curve of a fit."""
        cells = posterior.on_all_cells
        mean = np.clip(cells.weight @ cells.probability, 1e-9, 1.0 - 1e-9)
        score, index = np.unique(data.cells.score[data.missing_cells], return_inverse=True)
        rows = data.missing_counts.astype(np.float64)
        odds = np.bincount(index, rows * logit(mean)) / np.bincount(index, rows)
        return cls(score, odds)

    def at(self, score: FloatArray) -> FloatArray:
        """Return the log odds at scores."""
        result: FloatArray = np.interp(score, self.score, self.log_odds)
        return result


def borrow_posteriors(
    sets: Sequence[EvaluationSet], lenders: Sequence[Lender], curve: ScoreCurve, rng: np.random.Generator
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
        cumulative = np.cumsum(lending.weight)
        chosen = np.searchsorted(cumulative / cumulative[-1], level[members])
        draws, index = np.unique(chosen, return_inverse=True)
        shift[members] = _find_shifts(lending, curve, draws)[index.reshape(chosen.shape)]
        mechanism[members] = lending.mechanism[chosen]
    size = n_used * n_each
    return [
        _shift_curve(data, curve, shifts, mechanisms, n_used)
        for data, shifts, mechanisms in zip(sets, shift.reshape(-1, size, 2), mechanism.reshape(-1, size), strict=True)
    ]


def _shift_curve(
    data: EvaluationSet, curve: ScoreCurve, shift: FloatArray, mechanism: IntArray, n_lenders: int
) -> Posterior:
    """Return the posterior of a group: the curve at its missing rows, shifted as in the lenders."""
    if n_lenders > 1:
        # The lenders are a sample of groups: another group varies by more than their spread.
        center = shift.mean(axis=0)
        shift = center + np.sqrt((n_lenders + 1.0) / (n_lenders - 1.0)) * (shift - center)
    cells = data.missing_cells
    side = np.where(data.cells.decision[cells], 0, 1)
    probability = expit(curve.at(data.cells.score[cells]) + shift[:, side])
    return Posterior(np.full(len(shift), 1.0 / len(shift)), probability, mechanism=mechanism)


def _find_shifts(lender: Lender, curve: ScoreCurve, draws: IntArray) -> FloatArray:
    """Return the shift on each side at which the curve expects the positives of a lender at some of its draws."""
    cells = lender.data.cells
    total, odds = cells.total.astype(np.float64), curve.at(cells.score)
    sides = (cells.decision, ~cells.decision)
    positives = np.column_stack(
        [cells.positives[side].sum() + lender.positives[draws, i] for i, side in enumerate(sides)]
    )
    if not all(total[side].sum() for side in sides):  # a side without rows gets the shift of the other side
        return np.repeat(_find_shift(odds, total, positives.sum(axis=1))[:, None], 2, axis=1)
    shifts = [_find_shift(odds[side], total[side], positives[:, i]) for i, side in enumerate(sides)]
    return np.column_stack(shifts)


def _find_shift(log_odds: FloatArray, rows: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the shift at which log odds expect this number of positives; half a row of each class keeps it finite."""
    log_odds, rows = _merge_levels(log_odds, rows)
    aim = (positives + 0.5) / (rows.sum() + 1.0) * rows.sum()
    if log_odds.size == 1:
        return np.asarray(logit(aim / rows.sum()) - log_odds[0])
    # Newton's method on the log odds of the mean probability, which are nearly linear in the shift; bisection where it
    # leaves the interval that contains the shift.
    fraction, target = rows / rows.sum(), logit(aim / rows.sum())
    low, high = target - log_odds.max(), target - log_odds.min()
    shift = np.clip(target - fraction @ log_odds, low, high)
    for _ in range(_MAX_STEPS):
        p = expit(shift[:, None] + log_odds)
        mean, slope = p @ fraction, (p * (1.0 - p)) @ fraction
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


def _merge_levels(log_odds: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Merge rows into bins of equally many rows; return the mean log odds and the rows of each bin."""
    order = np.argsort(log_odds, kind="stable")
    middle = np.cumsum(rows[order]) - 0.5 * rows[order]
    level = np.minimum((_LEVELS * middle / rows.sum()).astype(np.int64), _LEVELS - 1)
    mass: FloatArray = np.asarray(np.bincount(level, rows[order], _LEVELS), dtype=np.float64)
    mean = np.bincount(level, rows[order] * log_odds[order], _LEVELS)
    occupied = mass > 0.0
    return mean[occupied] / mass[occupied], mass[occupied]
