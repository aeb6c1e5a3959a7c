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

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.posterior import Posterior

# Nodes of a group that borrows, spread over those it borrows from.
_NODES = 128
# Log odds at which a shape is kept, on each side of the threshold: enough for a sum over rows to a thousandth.
_LEVELS = 64
# Halvings of the interval that holds a shift; log odds beyond 40 are certainties.
_HALVINGS, _WIDEST = 48, 40.0


class Lender(NamedTuple):
    """A group with a label model of its own: its nodes, and its positives at each of them, as completed by it.

    `positives` has two columns, for the missing rows that are flagged and for those that are not.
    """

    data: EvaluationSet
    weight: FloatArray
    positives: FloatArray
    reason: IntArray


class Shape(NamedTuple):
    """Log odds of a positive by score, as a fit over all rows has them."""

    score: FloatArray
    log_odds: FloatArray

    @classmethod
    def of(cls, data: EvaluationSet, nodes: Posterior) -> "Shape":
        cells = nodes.on_all_cells
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
    """Nodes of the missing rows of groups that have too few labels for nodes of their own.

    What a lender has to say is found once for all who ask: many small groups borrow from as many others.
    """
    each = -(-_NODES // len(lenders))
    start = rng.random((len(sets), len(lenders)))
    shift, reason = np.empty((len(sets), len(lenders), each, 2)), np.empty((len(sets), len(lenders), each), np.int64)
    for i, lender in enumerate(lenders):
        reached = np.cumsum(lender.weight)
        chosen = np.searchsorted(reached / reached[-1], (np.arange(each) + start[:, i, None]) / each)
        some, place = np.unique(chosen, return_inverse=True)
        shift[:, i] = _shifts(lender, shape, some)[place.reshape(chosen.shape)]
        reason[:, i] = lender.reason[chosen]
    size = len(lenders) * each
    return [
        _moved(data, shape, own.reshape(size, 2), why.reshape(size), len(lenders))
        for data, own, why in zip(sets, shift, reason, strict=True)
    ]


def _moved(data: EvaluationSet, shape: Shape, shift: FloatArray, reason: IntArray, lenders: int) -> Posterior:
    """The shape at the missing rows of a group, moved as so many others say."""
    if lenders > 1:
        # The others are a sample of what a group can be: their spread is that of one more group once it is widened.
        centre = shift.mean(axis=0)
        shift = centre + np.sqrt((lenders + 1.0) / (lenders - 1.0)) * (shift - centre)
    cells = data.missing_cells
    side = np.where(data.cells.decision[cells], 0, 1)
    probability = expit(shape.at(data.cells.score[cells]) + shift[:, side])
    return Posterior(np.full(len(shift), 1.0 / len(shift)), probability, reason=reason)


def _shifts(lender: Lender, shape: Shape, chosen: IntArray) -> FloatArray:
    """How far the shape is moved on each side so that it gives a group as many positives as it has at some nodes."""
    cells = lender.data.cells
    total, odds = cells.total.astype(np.float64), shape.at(cells.score)
    sides = (cells.decision, ~cells.decision)
    positives = np.column_stack(
        [cells.positives[side].sum() + lender.positives[chosen, i] for i, side in enumerate(sides)]
    )
    everywhere = _shift(odds, total, positives.sum(axis=1))
    found = [
        _shift(odds[side], total[side], positives[:, i]) if total[side].sum() else everywhere
        for i, side in enumerate(sides)
    ]
    return np.column_stack(found)


def _shift(log_odds: FloatArray, rows: FloatArray, positives: FloatArray) -> FloatArray:
    """The shift at which log odds expect so many positives; half a row of each class keeps it finite."""
    log_odds, rows = _few_levels(log_odds, rows)
    aim = (positives + 0.5) / (rows.sum() + 1.0) * rows.sum()
    low: FloatArray = np.full(positives.size, -_WIDEST)
    high: FloatArray = np.full(positives.size, _WIDEST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        more: BoolArray = expit(middle[:, None] + log_odds) @ rows < aim
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return 0.5 * low + 0.5 * high


def _few_levels(log_odds: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same rows at few log odds, each the mean of an equal share of them."""
    order = np.argsort(log_odds, kind="stable")
    reached = np.cumsum(rows[order]) - 0.5 * rows[order]
    level = np.minimum((_LEVELS * reached / rows.sum()).astype(np.int64), _LEVELS - 1)
    mass: FloatArray = np.asarray(np.bincount(level, rows[order], _LEVELS), dtype=np.float64)
    mean = np.bincount(level, rows[order] * log_odds[order], _LEVELS)
    kept = mass > 0.0
    return mean[kept] / mass[kept], mass[kept]
