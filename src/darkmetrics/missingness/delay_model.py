"""The model of delayed labels: parameters, decisions and histories.

Histories of a row with age bin a, class y and score s (`r` = reviewed, arrival by hazards per class and age bin):

    label in age bin j        label y, r, waits before j, arrives in j
    label at an unknown time  label y, r, waits before j, arrives in j, for each j up to a
    no label                  label y, not r; or label y, r, waits up to a, for each class y

Rows have passed a fraction of their own age bin, by which the odds of an arrival in it are multiplied.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.age_cells import AgeGrid, AgeTable, ArrivalCounts, count_arrivals, find_days
from darkmetrics.posterior import Model

# Prior of the log odds of a hazard: labels arrive evenly in time, on average after this fraction of the oldest age; sd
# of the level, and scale of steps between age bins, which are Cauchy: most are small, and any may be large.
_MEAN_DELAY, _LEVEL_SD, STEP_SCALE = 1.0, 2.5, 0.4
# Prior sd of the slope of hazards along the rank of the score (-1 to 1): common, and difference between classes.
_SLOPE_SD = (1.0, 0.5)
# Prior sd of the drift of the prevalence over all ages: trend, and random walk. A quick change has the last walk.
_TREND_SD, WALK_SD, QUICK_SD = 0.7, 0.3, 3.0
# Prior of the log odds that a label of a class ever arrives, where all rows are reviewed.
_EVER_MEAN, _EVER_SD = 3.0, 2.0
# Prior of the log odds that a row is reviewed: mean and sd of the level, sd of a step at the threshold, and scale of
# steps between other score bins, which are Cauchy: most are small, and any may be large.
_RATE_MEAN, _RATE_LEVEL_SD, _RATE_STEP_SD, RATE_SCALE = 3.0, 3.0, 3.0, 0.1
# What Laplace's approximation misses of the integral of a Cauchy density, as a logarithm.
_CAUCHY_VOLUME = 0.4 * np.log(np.pi)
# Prior sd of the effect of a propensity on the log odds of a positive, per unit of its column.
_PROPENSITY_SD = 1.0
# Log odds of a hazard before the maturity are at most this before labels are seen.
_MAX_PRIOR = 6.0
# Log odds that a label arrives by the maturity.
CERTAIN = 12.0
# Prior sd of what a day on which labels of a class arrive adds to the log odds in its age bin.
_DAY_SD = 3.0
# Prior sd of a difference between early and late rows in the log odds of arrivals: hardly any.
COHORT_SD = 10.0


@dataclass(frozen=True, eq=False)
class DelayData:
    """What was observed of a set: rows by score and age, and labels by arrival.

    Attributes
    ----------
    grid : AgeGrid
        Bins of scores and ages.
    table : AgeTable
        Rows by score and age.
    counts : ArrivalCounts
        Labels by arrival.
    credit : float
        Exponent of the likelihood: few labels are discounted.
    days : list of (int, int)
        Classes and age bins in which labels may arrive on one day.
    is_late : array of bool (n_ages,), optional
        Age bins whose rows may have delays of their own. `counts` then has zones of other rows, followed by theirs.
    """

    grid: AgeGrid
    table: AgeTable
    counts: ArrivalCounts
    credit: float
    days: list[tuple[int, int]]
    is_late: BoolArray | None = None

    @classmethod
    def of(cls, grid: AgeGrid, data: EvaluationSet, credit: float) -> "DelayData":
        """Return what was observed of a set."""
        zone, table = grid.zone[grid.score_bin(data.cells.score)], grid.table(data)
        counts = count_arrivals(grid, data, zone, grid.zone_position.size)
        return cls(grid, table, counts, credit, find_days(table, grid))


class Setting(NamedTuple):
    """Assumptions of one model: who is reviewed, and the sd of the walk of the prevalence."""

    reviewed: str
    walk_sd: float = WALK_SD


class DelayModel(NamedTuple):
    """A model of delayed labels and the indices of its parameters."""

    model: Model
    curve: IntArray
    drift: IntArray
    slope: IntArray
    days: IntArray
    cohort: IntArray | None
    hazards: dict[int, IntArray]
    rates: IntArray


def declare(data: DelayData, setting: Setting, *, known: FloatArray | None = None) -> DelayModel:
    """Declare the model of delayed labels.

    Parameters
    ----------
    data : DelayData
        What was observed.
    setting : Setting
        Assumptions.
    known : array, optional
        Parameters. Priors that are Cauchy become Gaussian: a Cauchy prior is a mixture of Gaussian ones, of which the
        most likely one at these parameters is taken.
    """

    def add_steps(n: int, scale: float) -> IntArray:
        model.log_constant += _CAUCHY_VOLUME * n
        if known is None:
            return model.add_parameters(np.zeros(n), scale, cauchy=True)
        steps = known[model.n_parameters : model.n_parameters + n]
        return model.add_parameters(np.zeros(n), np.sqrt(0.5 * (scale**2 + steps**2)))

    reviewed = setting.reviewed
    grid, table, counts, model = data.grid, data.table, data.counts, Model()
    n_ages, n_zones, n_bins = grid.n_ages, counts.full.shape[1], grid.position.size
    prior = grid.calibrator.prior_mean_, grid.calibrator.prior_scale_
    if grid.propensity is not None:
        prior = np.append(prior[0], 0.0), np.append(prior[1], _PROPENSITY_SD)
    curve = model.add_parameters(*prior)
    drift = model.add_parameters(precision=build_drift_precision(data, setting.walk_sd))
    slope = model.add_parameters(np.zeros(2), np.array(_SLOPE_SD))
    label = model.add_decisions((curve, table.columns), (drift, grid.drift[table.age]))
    cohort = None if data.is_late is None else model.add_parameters(np.zeros(2), COHORT_SD)
    days = model.add_parameters(np.zeros(len(data.days)), _DAY_SD) if data.days else np.zeros(0, dtype=np.int64)
    arrives: dict[int, tuple[IntArray, IntArray]] = {}
    hazards: dict[int, IntArray] = {}
    zones, bins = np.repeat(np.arange(n_zones), n_ages), np.tile(np.arange(n_ages), n_zones)
    for y in (0, 1):
        if y == 0 and grid.maturity is not None and not (counts.full + counts.partial)[0].any():
            continue  # only positives arrive
        mean, is_certain = guess_hazards(grid, y)
        hazard = model.add_parameters(0.0, _LEVEL_SD)
        hazard = np.append(hazard, add_steps(n_ages - 1, STEP_SCALE))
        hazards[y] = hazard
        position = grid.zone_position[zones % grid.zone_position.size][:, None] * np.array([1.0, y - 0.5])
        is_free = ~is_certain[bins][:, None]
        terms = [(hazard, np.tril(np.ones((n_ages, n_ages)))[bins] * is_free), (slope, position * is_free)]
        if cohort is not None:
            terms.append((cohort[y : y + 1], (zones >= grid.zone_position.size)[:, None] * is_free))
        offset = np.where(is_certain, CERTAIN, mean)[bins]
        shape = n_zones, n_ages, 2
        full = model.add_decisions(*terms, offset=offset).reshape(shape)
        days_of_class = [(day, k) for day, (label_, k) in zip(days, data.days, strict=True) if label_ == y]
        terms += [(np.array([day]), (bins == k)[:, None] * 1.0) for day, k in days_of_class]
        arrives[y] = full, model.add_decisions(*terms, offset=offset + np.log(grid.passed[bins])).reshape(shape)
    if reviewed == "by_score":
        columns = build_rate_columns(grid)
        rates = model.add_parameters(np.array([_RATE_MEAN, 0.0]), np.array([_RATE_LEVEL_SD, _RATE_STEP_SD]))
        rates = np.append(rates, add_steps(columns.shape[1] - 2, RATE_SCALE))
        outcomes = model.add_decisions((rates, columns))
        review = np.stack([outcomes, outcomes])
    elif reviewed == "propensity":
        rates = np.zeros(0, dtype=np.int64)
        outcomes = model.add_decisions(offset=grid.review_log_odds)
        review = np.stack([outcomes, outcomes])
    else:
        # By definition, positives that never arrive by the maturity are none.
        mean = np.array([_EVER_MEAN, _EVER_MEAN if grid.maturity is None else CERTAIN])
        rates = model.add_parameters(mean, _EVER_SD)
        review = np.repeat(model.add_decisions((rates, np.eye(2)))[:, None], n_bins, axis=1)

    for y, count in ((0, table.negatives), (1, table.positives)):
        model.add_cells(count, [(y, [label[:, y], review[y, table.rate_bin, 1]])])
    _add_arrivals(model, arrives, counts)
    _add_missing(model, data, label, review, arrives)
    return DelayModel(model, np.append(curve, drift), drift, slope, days, cohort, hazards, rates)


def _list_waits(outcomes: IntArray, before: IntArray | int) -> list[IntArray]:
    """Return the outcomes "does not arrive" in each age bin below `before`; outcomes are (..., n_ages, 2)."""
    if isinstance(before, int):
        return [outcomes[..., j, 0] for j in range(before)]
    return [np.where(j < before, outcomes[..., j, 0], -1) for j in range(int(before.max(initial=0)))]


def _add_arrivals(model: Model, arrives: dict[int, tuple[IntArray, IntArray]], counts: ArrivalCounts) -> None:
    """Add the arrivals of labels, by class, zone and age bin: they are the same for all scores of a zone."""
    classes = list(arrives)
    full, partial = (np.concatenate([arrives[y][k] for y in classes]) for k in (0, 1))  # class and zone x n_ages x 2
    n_ages = full.shape[1]
    age = np.tile(np.arange(n_ages), len(full))
    waits = _list_waits(np.repeat(full, n_ages, axis=0), age)
    for timed, outcomes in ((counts.full, full), (counts.partial, partial)):
        model.add_cells(timed[classes].ravel(), [(0, [*waits, outcomes[:, :, 1].ravel()])])
    for j in range(n_ages):
        count = counts.untimed[classes][:, :, j].ravel()
        if count.any():
            bins = [(full, i) for i in range(j)] + [(partial, j)]
            histories = [(0, [*_list_waits(full, i), outcomes[:, i, 1]]) for outcomes, i in bins]
            model.add_cells(count, histories)
    if 0 in arrives and counts.declared.any():
        model.add_cells(counts.declared, [(0, _list_waits(arrives[0][0], n_ages))])


def _add_missing(
    model: Model, data: DelayData, label: IntArray, review: IntArray, arrives: dict[int, tuple[IntArray, IntArray]]
) -> None:
    """Add rows without a label."""
    table, zone = data.table, data.grid.zone[data.table.score_bin]
    if data.is_late is not None:
        zone = zone + data.grid.zone_position.size * data.is_late[table.age]
    cells = np.flatnonzero(table.missing > 0.0)
    age, rate_bin, histories = table.age[cells], table.rate_bin[cells], []
    for y in (0, 1):
        histories.append((y, [label[cells, y], review[y, rate_bin, 0]]))
        outcomes = [label[cells, y], review[y, rate_bin, 1]]
        if y in arrives:
            full, partial = (outcome[zone[cells]] for outcome in arrives[y])
            outcomes += [*_list_waits(full, age), partial[np.arange(cells.size), age, 0]]
        histories.append((y, outcomes))
    if cells.size:
        model.add_cells(table.missing[cells], histories)


def build_drift_precision(data: DelayData, walk_sd: float) -> FloatArray:
    """Return the prior precision of the drift at the knots after the oldest one: a random walk plus a trend."""
    times = data.grid.knot_times
    covariance = walk_sd**2 * np.minimum.outer(times, times) + _TREND_SD**2 * np.outer(times, times)
    return np.asarray(np.linalg.inv(covariance)) if times.size else np.zeros((0, 0))


def build_rate_columns(grid: AgeGrid) -> FloatArray:
    """Return columns of the log odds of review rates: a level, a step at the threshold, steps between score bins."""
    n = grid.position.size
    has_step = grid.threshold is not None and grid.threshold in grid.cuts
    flagged = np.append(-np.inf, grid.cuts) >= grid.threshold if has_step else np.zeros(n)
    return np.column_stack([np.ones(n), flagged, np.tril(np.ones((n, n)))[:, 1:]])


def guess_hazards(grid: AgeGrid, y: int) -> tuple[FloatArray, BoolArray]:
    """Return the log odds of hazards before labels are seen, and in which age bins every label left arrives."""
    mean = np.log(np.expm1(np.diff(grid.edges) / (_MEAN_DELAY * grid.oldest)))
    is_certain = np.zeros(grid.n_ages, dtype=np.bool_)
    if grid.maturity is not None and y == 1:
        is_certain[-1] = True
        left = np.exp(-grid.edges[:-1] / (_MEAN_DELAY * grid.oldest))
        left -= np.exp(-grid.maturity / (_MEAN_DELAY * grid.oldest))
        odds = left[:-1] / np.maximum(left[1:], 1e-300) - 1.0
        mean = np.append(np.log(np.clip(odds, np.exp(-_MAX_PRIOR), np.exp(_MAX_PRIOR))), 0.0)
    return mean, is_certain
