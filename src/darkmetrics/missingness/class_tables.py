"""Probabilities of missing labels by class and bin of the rows: by label, by score and label, and by age."""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.age_grid import bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data.class_set import ClassSet
from darkmetrics.posterior.class_curve import ClassCurve
from darkmetrics.posterior.class_fit import MissingTable

# Prior of the log odds that a label arrives: common level, and difference of a class (Cauchy). The difference of two
# classes is then Cauchy with scale 2, as it is for two classes.
_LEVEL, _DIFFERENCE = 3.0, 1.0
# Prior standard deviations: of a bin of rows, if a rate depends on score and label; of the step from one age to the
# next, and of the slope of a class in the age: of rates and of hazards, which differ less.
_BIN, _WALK, _SLOPE, _HAZARD_SLOPE = 2.0, 0.7, 3.0, 1.0
# Bins of predicted scores for each predicted class; bins of ages, and of delays.
_LEVELS, _MAX_AGES, _MAX_DELAYS = 3, 32, 16
# Fraction of a bin of delays that has passed, at least; shorter ones tell nothing.
_MIN_FRACTION = 0.02


class BinnedTable(NamedTuple):
    """Probabilities of missing labels, and the bin of each cell of the set."""

    table: MissingTable
    bins: IntArray


def build_by_label(data: ClassSet, curve: ClassCurve) -> BinnedTable:
    """Return the table of labels that are missing by label: a rate for each group of classes."""
    none = np.zeros(len(data.cells.decision), dtype=np.int64)
    return _build_rates(data, curve, none, np.zeros((1, 0)), np.zeros(0), np.zeros((1, 0)))


def build_by_score_and_label(data: ClassSet, curve: ClassCurve) -> BinnedTable:
    """Return the table of labels that are missing by score and label: rates for each prediction and level of its score.

    Only reference rows tell the effect of the label apart from that of the score.
    """
    cells = data.cells
    top = np.take_along_axis(cells.score, cells.decision[:, None], axis=1)[:, 0]
    level = np.minimum((_LEVELS * np.argsort(np.argsort(top, kind="stable"))) // max(1, top.size), _LEVELS - 1)
    _, bins = np.unique(curve.group[cells.decision] * _LEVELS + level, return_inverse=True)
    n_bins = int(bins.max()) + 1
    return _build_rates(data, curve, bins, np.eye(n_bins), np.full(n_bins, _BIN), np.zeros((n_bins, 0)))


def build_by_age(data: ClassSet, curve: ClassCurve) -> BinnedTable:
    """Return the table of labels that arrive late: hazards of each class if delays are known, else rates by age."""
    ages = data.cells.ages
    assert ages is not None
    age = bin_start(ages.age)
    bins = _cut(age, data.cells.total.astype(np.float64), _MAX_AGES)
    if ages.timed.any():
        return _build_hazards(data, curve, bins, age, bin_start(np.maximum(ages.delay, 0)))
    mean = np.bincount(bins, age) / np.bincount(bins)
    n_bins = mean.size
    walk = np.tri(n_bins, n_bins - 1, -1)
    return _build_rates(data, curve, bins, walk, np.full(n_bins - 1, _WALK), _standardize(mean)[:, None])


def _build_rates(
    data: ClassSet, curve: ClassCurve, bins: IntArray, common: FloatArray, sd: FloatArray, by_class: FloatArray
) -> BinnedTable:
    """Return rates by class and bin: columns common to all classes, a level of each class, and its further columns."""
    n_bins, n_groups = len(common), curve.shape[0]
    columns, sds, cauchy = _class_columns(common, sd, by_class, n_groups, _SLOPE)
    counts = _count_labels(data, curve, bins, n_bins)
    steps = np.einsum("kg,ab->kagb", np.eye(n_groups)[curve.group], np.eye(n_bins))
    return BinnedTable(
        MissingTable(
            columns,
            np.zeros(len(columns)),
            counts.ravel(),
            np.zeros(counts.size),
            steps.reshape(data.n_classes, n_bins, -1),
            np.zeros(sds.size),
            sds,
            cauchy,
        ),
        bins,
    )


def _count_labels(data: ClassSet, curve: ClassCurve, bins: IntArray, n_bins: int) -> FloatArray:
    """Return the number of labels by group of classes and bin."""
    counts = np.zeros((curve.shape[0], n_bins))
    for group, labeled in zip(curve.group, data.cells.labeled.T, strict=True):
        counts[group] += np.bincount(bins, labeled, n_bins)
    return counts


def _class_columns(
    common: FloatArray, sd: FloatArray, by_class: FloatArray, n_groups: int, slope: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return columns for groups x bins, with the standard deviations of their priors and whether these are Cauchy."""
    n_bins = len(common)
    group: FloatArray = np.repeat(np.eye(n_groups), n_bins, axis=0)
    blocks: list[FloatArray] = [np.ones((n_groups * n_bins, 1)), np.tile(common, (n_groups, 1)), group]
    blocks += [group * np.tile(column, n_groups)[:, None] for column in by_class.T]
    sds: list[FloatArray] = [
        np.array([_LEVEL]),
        sd,
        np.full(n_groups, _DIFFERENCE),
        np.full(n_groups * by_class.shape[1], slope),
    ]
    cauchy = [np.zeros(1 + sd.size), np.ones(n_groups), np.zeros(n_groups * by_class.shape[1])]
    return np.concatenate(blocks, axis=1), np.concatenate(sds), np.concatenate(cauchy) > 0.0


def _build_hazards(
    data: ClassSet, curve: ClassCurve, bins: IntArray, age: FloatArray, delay: FloatArray
) -> BinnedTable:
    """Return hazards by class and bin of the delay; the last bin of a row's age may have passed in part."""
    cells, n_groups = data.cells, curve.shape[0]
    timed = np.flatnonzero(cells.n_labeled)
    weight = cells.n_labeled[timed].astype(np.float64)
    order = np.argsort(delay[timed])
    level = np.cumsum(weight[order]) / weight.sum()
    inner = np.unique(delay[timed][order][np.searchsorted(level, np.arange(1, _MAX_DELAYS) / _MAX_DELAYS)])
    edges = np.unique(np.concatenate([[0.0], inner[inner > 0.0], [max(float(age.max()), 1e-9) * (1 + 1e-9)]]))
    n_delays = edges.size - 1
    mean = np.bincount(bins, age) / np.bincount(bins)
    complete = np.clip(np.searchsorted(edges, mean, side="right") - 1, 0, n_delays - 1)
    fraction = np.clip((mean - edges[complete]) / np.diff(edges)[complete], _MIN_FRACTION, 1.0)
    walk, middle = np.tri(n_delays, n_delays - 1, -1), _standardize(edges[1:])[:, None]
    # Decisions of complete bins of delays, then of the bin that each age has reached.
    reached = np.concatenate([np.arange(n_delays), complete])
    walk_sd = np.full(n_delays - 1, _WALK)
    columns, sds, cauchy = _class_columns(walk[reached], walk_sd, middle[reached], n_groups, _HAZARD_SLOPE)
    n_decisions = reached.size
    offset = np.tile(np.concatenate([np.zeros(n_delays), np.log(fraction)]), n_groups)
    of_age = np.concatenate([np.arange(n_delays) < complete[:, None], np.eye(mean.size)], axis=1)
    steps = np.einsum("kg,ad->kagd", np.eye(n_groups)[curve.group], of_age)
    arrival = np.clip(np.searchsorted(edges, delay, side="right") - 1, 0, complete[bins])
    decision = np.where(arrival < complete[bins], arrival, n_delays + bins)
    arrived, waited = _count_labels(data, curve, decision, n_decisions), np.zeros((n_groups, n_decisions))
    by_arrival = _count_labels(data, curve, arrival, n_delays)
    waited[:, :n_delays] = by_arrival.sum(axis=1, keepdims=True) - np.cumsum(by_arrival, axis=1)
    return BinnedTable(
        MissingTable(
            columns,
            offset,
            arrived.ravel(),
            waited.ravel(),
            steps.reshape(data.n_classes, mean.size, -1),
            np.zeros(sds.size),
            sds,
            cauchy,
        ),
        bins,
    )


def _cut(values: FloatArray, weight: FloatArray, max_bins: int) -> IntArray:
    """Return the bin of each value: at most `max_bins` bins of about equal weight, sorted by value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weight, distinct.size)
    level = (np.cumsum(mass) - 0.5 * mass) / max(float(mass.sum()), 1e-300)
    return np.unique(np.minimum((level * max_bins).astype(np.int64), max_bins - 1), return_inverse=True)[1][inverse]


def _standardize(values: FloatArray) -> FloatArray:
    """Return the ranks of sorted values from -1 to 1."""
    return np.linspace(-1.0, 1.0, values.size) if values.size > 1 else np.zeros(values.size)
