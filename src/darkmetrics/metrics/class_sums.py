"""What sums of labels a metric of several classes is about, for a set; metrics of one set share the sums."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.data.class_set import ClassSet
from darkmetrics.distributions.class_pairs import PairSums
from darkmetrics.distributions.class_sums import ClassSums, MatrixSums

T = TypeVar("T")


def _shared(data: ClassSet, key: str, build: Callable[[], T]) -> T:
    """Return what metrics of a set share; it is built once."""
    cache = data.__dict__.setdefault("_shared", {})
    if key not in cache:
        cache[key] = build()
    result: T = cache[key]
    return result


def total_weight(data: ClassSet) -> float:
    """Return the weight of all rows."""
    return _shared(data, "total", lambda: float(data.cells.mass(data.cells.total).sum()))


def predicted_weight(data: ClassSet) -> FloatArray:
    """Return the weight of the rows that are predicted as each class."""
    cells = data.cells
    return _shared(
        data,
        "predicted",
        lambda: np.bincount(cells.decision, cells.mass(cells.total), data.n_classes).astype(np.float64),
    )


def _missing_weight(data: ClassSet) -> FloatArray:
    weight = data.missing_weight
    return np.ones(data.missing_cells.size) if weight is None else np.asarray(weight)


def loss_sums(data: ClassSet, marks: FloatArray, key: str) -> ClassSums:
    """Return the sums of marks (n_cells x K) of a row with each label, for rows of weight 1."""

    def build() -> ClassSums:
        cells, missing = data.cells, data.missing_cells
        labeled, weight = cells.mass(cells.labeled), _missing_weight(data)
        return ClassSums(
            rows=data.missing_counts.astype(np.float64),
            weight=weight,
            marks=marks[missing] * weight[:, None],
            constant=np.concatenate([(marks * labeled).sum(axis=0), labeled.sum(axis=0)]),
        )

    return _shared(data, "sums " + key, build)


def correct_sums(data: ClassSet) -> ClassSums:
    """Return the sums of correct rows of each class."""

    def build() -> ClassSums:
        marks = (data.cells.decision[:, None] == np.arange(data.n_classes)).astype(np.float64)
        return loss_sums(data, marks, "correct")

    return _shared(data, "correct", build)


def matrix_sums(data: ClassSet) -> MatrixSums:
    """Return the sums of the confusion matrix."""

    def build() -> MatrixSums:
        cells, k, weight = data.cells, data.n_classes, _missing_weight(data)
        constant = np.zeros((k, k))
        np.add.at(constant, cells.decision, cells.mass(cells.labeled))
        return MatrixSums(
            rows=data.missing_counts.astype(np.float64),
            weight=weight,
            marks=np.broadcast_to(weight[:, None], (weight.size, k)),
            constant=constant.ravel(),
            decision=cells.decision[data.missing_cells],
        )

    return _shared(data, "matrix", build)


def rank_sums(data: ClassSet) -> ClassSums:
    """Return the sums of centered middle ranks of each class's score."""

    def build() -> ClassSums:
        cells = data.cells
        mass, half = cells.mass(cells.total), 0.5 * total_weight(data)
        ranks = np.empty(cells.score.shape)
        for k, score in enumerate(cells.score.T):
            order = np.argsort(score, kind="stable")
            ordered = score[order]
            starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
            in_group = np.add.reduceat(mass[order], starts)
            middle = np.cumsum(in_group) - 0.5 * in_group - half
            ranks[order, k] = np.repeat(middle, np.diff(starts, append=score.size))
        return loss_sums(data, ranks, "ranks")

    return _shared(data, "ranked", build)


def pair_sums(data: ClassSet, *, is_weighted: bool) -> PairSums:
    """Return the average ROC-AUC of pairs of classes."""

    def build() -> PairSums:
        cells, weight = data.cells, _missing_weight(data)
        labeled = np.flatnonzero(cells.n_labeled)
        mass = cells.mass(cells.labeled)[labeled]
        return PairSums(
            rows=data.missing_counts.astype(np.float64),
            weight=weight,
            marks=cells.score[data.missing_cells],
            constant=np.concatenate([np.zeros(data.n_classes), mass.sum(axis=0)]),
            labeled_score=cells.score[labeled],
            labeled_mass=mass,
            total=total_weight(data),
            is_weighted=is_weighted,
        )

    return _shared(data, f"pairs {is_weighted}", build)


def kappa_marks(n_classes: int, power: int) -> FloatArray:
    """Return the disagreement of each prediction (row) and label."""
    distance = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
    return (distance > 0).astype(np.float64) if power == 0 else distance.astype(np.float64) ** power


def top_classes(score: FloatArray, k: int) -> BoolArray:
    """Return which classes have the k highest scores of each cell; of tied classes the last, as in scikit-learn."""
    n_classes = score.shape[1]
    if k >= n_classes:
        return np.ones(score.shape, dtype=np.bool_)
    limit = np.partition(score, n_classes - k, axis=1)[:, n_classes - k, None]
    members, tied = score > limit, score == limit
    room = k - members.sum(axis=1, keepdims=True)
    n_tied = tied.sum(axis=1, keepdims=True)
    uneven = np.flatnonzero((n_tied > room)[:, 0])
    tied[uneven] &= np.cumsum(tied[uneven, ::-1], axis=1)[:, ::-1] <= room[uneven]
    return np.asarray(members | tied)
