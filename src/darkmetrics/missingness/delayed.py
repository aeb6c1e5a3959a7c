"""Delayed labels: the age of a row says why its label is missing.

Histories of a row with age bin a, class y and score s (`r` = reviewed, arrival by hazards per class and age bin):

    label in age bin j        label y, r, waits before j, arrives in j
    label at an unknown time  label y, r, waits before j, arrives in j, for each j up to a
    no label                  label y, not r; or label y, r, waits up to a, for each class y

Rows have passed a fraction of their own age bin, by which the odds of an arrival in it are multiplied.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used
from scipy.special import chdtrc, softmax

from darkmetrics._kernels.age_grid import EDGES, Ages, bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import normal_points, representatives
from darkmetrics._kernels.posterior.logistic import chance
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.missingness.age_cells import (
    AgeGrid,
    AgeTable,
    ArrivalCounts,
    ages_of,
    count_arrivals,
    find_days,
    without_calendar,
)
from darkmetrics.missingness.base import LabelModel, missing_prevalence, of_weight
from darkmetrics.missingness.fit_data import N_NODES, FitData, check_n_nodes
from darkmetrics.missingness.sampling import draws_for
from darkmetrics.posterior import Model, Posterior
from darkmetrics.posterior.fit import MAX_PARETO_K, estimate_pareto_k, fit_model
from darkmetrics.posterior.likelihood import LOG_2PI, Likelihood, Prior
from darkmetrics.posterior.mode import Mode, find_mode

# Prior of the log odds of a hazard: labels arrive evenly in time, on average after this fraction of the oldest age; sd
# of the level, and of the difference between age bins.
_MEAN_DELAY, _LEVEL_SD, _STEP_SDS = 1.0, 2.5, (0.3, 1.0)
# Prior sd of the slope of hazards along the rank of the score (-1 to 1): common, and difference between classes.
_SLOPE_SD = (1.0, 0.5)
# Prior sd of the drift of the prevalence over all ages: trend, and random walk. From ages alone a drift can hardly be
# told from delays that depend on the score, and the prior is narrower. A quick change has the last walk.
_TREND_SD, _WALK_SD, _QUICK_SD = {True: 0.5, False: 0.3}, 0.3, 3.0
# Prior of the log odds that a label of a class ever arrives, where all rows are reviewed.
_EVER_MEAN, _EVER_SD = 3.0, 2.0
# Prior of the log odds that a row is reviewed: mean and sd of the level, sd of a step at the threshold, and scale of
# steps between other score bins, which are Cauchy: most are small, and any may be large.
_RATE_MEAN, _RATE_LEVEL_SD, _RATE_STEP_SD, _RATE_SCALE = 3.0, 3.0, 3.0, 0.1
# What Laplace's approximation misses of the integral of a Cauchy density, as a logarithm.
_CAUCHY_VOLUME = 0.4 * np.log(np.pi)
# Log odds of a hazard before the maturity are at most this before labels are seen.
_MAX_PRIOR = 6.0
# Log odds that a label arrives by the maturity.
_CERTAIN = 12.0


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


class Setting(NamedTuple):
    """Assumptions of one model: who is reviewed, and the sd of steps of hazards and of the walk of the prevalence."""

    reviewed: str
    step_sd: float
    walk_sd: float = _WALK_SD


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


def declare(data: DelayData, setting: Setting, *, rate_sd: FloatArray | None = None) -> DelayModel:
    """Declare the model of delayed labels.

    Parameters
    ----------
    data : DelayData
        What was observed.
    setting : Setting
        Assumptions.
    rate_sd : array, optional
        Prior sd of the steps of the review rate between score bins, which are Gaussian then instead of Cauchy.
    """
    reviewed = setting.reviewed
    grid, table, counts, model = data.grid, data.table, data.counts, Model()
    n_ages, n_zones, n_bins = grid.n_ages, counts.full.shape[1], grid.position.size
    curve = model.add_parameters(grid.calibrator.prior_mean_, grid.calibrator.prior_scale_)
    drift = model.add_parameters(precision=build_drift_precision(data, setting.walk_sd))
    slope = model.add_parameters(np.zeros(2), np.array(_SLOPE_SD))
    label = model.add_decisions((curve, table.columns), (drift, grid.drift[table.age]))
    cohort = None if data.is_late is None else model.add_parameters(np.zeros(2), _COHORT_SD)
    days = model.add_parameters(np.zeros(len(data.days)), _DAY_SD) if data.days else np.zeros(0, dtype=np.int64)
    arrives: dict[int, tuple[IntArray, IntArray]] = {}
    hazards: dict[int, IntArray] = {}
    zones, bins = np.repeat(np.arange(n_zones), n_ages), np.tile(np.arange(n_ages), n_zones)
    for y in (0, 1):
        if y == 0 and grid.maturity is not None and not (counts.full + counts.partial)[0].any():
            continue  # only positives arrive
        mean, precision, is_certain = build_hazard_prior(grid, y, setting.step_sd)
        hazard = model.add_parameters(mean, precision=precision)
        hazards[y] = hazard
        position = grid.zone_position[zones % grid.zone_position.size][:, None] * np.array([1.0, y - 0.5])
        is_free = ~is_certain[bins][:, None]
        terms = [(hazard, np.eye(n_ages)[bins] * is_free), (slope, position * is_free)]
        if cohort is not None:
            terms.append((cohort[y : y + 1], (zones >= grid.zone_position.size)[:, None] * is_free))
        offset = np.where(is_certain, _CERTAIN, 0.0)[bins]
        shape = n_zones, n_ages, 2
        full = model.add_decisions(*terms, offset=offset).reshape(shape)
        own_days = [(day, k) for day, (label_, k) in zip(days, data.days, strict=True) if label_ == y]
        terms += [(np.array([day]), (bins == k)[:, None] * 1.0) for day, k in own_days]
        arrives[y] = full, model.add_decisions(*terms, offset=offset + np.log(grid.passed[bins])).reshape(shape)
    if reviewed == "by_score":
        columns = build_rate_columns(grid)
        rates = model.add_parameters(np.array([_RATE_MEAN, 0.0]), np.array([_RATE_LEVEL_SD, _RATE_STEP_SD]))
        steps = np.zeros(columns.shape[1] - 2)
        sd = _RATE_SCALE if rate_sd is None else rate_sd
        rates = np.append(rates, model.add_parameters(steps, sd, cauchy=rate_sd is None))
        model.log_constant += _CAUCHY_VOLUME * steps.size
    else:
        columns = np.eye(2)
        # By definition, positives that never arrive by the maturity are none.
        mean = np.array([_EVER_MEAN, _EVER_MEAN if grid.maturity is None else _CERTAIN])
        rates = model.add_parameters(mean, _EVER_SD)
    outcomes = model.add_decisions((rates, columns))
    review = np.stack([outcomes, outcomes]) if reviewed == "by_score" else np.repeat(outcomes[:, None], n_bins, axis=1)

    for y, count in ((0, table.negatives), (1, table.positives)):
        model.add_cells(count, [(y, [label[:, y], review[y, table.score_bin, 1]])])
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
    full, own = (np.concatenate([arrives[y][k] for y in classes]) for k in (0, 1))  # class and zone x n_ages x 2
    n_ages = full.shape[1]
    age = np.tile(np.arange(n_ages), len(full))
    waits = _list_waits(np.repeat(full, n_ages, axis=0), age)
    for timed, outcomes in ((counts.full, full), (counts.partial, own)):
        model.add_cells(timed[classes].ravel(), [(0, [*waits, outcomes[:, :, 1].ravel()])])
    for j in range(n_ages):
        count = counts.untimed[classes][:, :, j].ravel()
        if count.any():
            bins = [(full, i) for i in range(j)] + [(own, j)]
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
    age, score_bin, histories = table.age[cells], table.score_bin[cells], []
    for y in (0, 1):
        histories.append((y, [label[cells, y], review[y, score_bin, 0]]))
        outcomes = [label[cells, y], review[y, score_bin, 1]]
        if y in arrives:
            full, own = (outcome[zone[cells]] for outcome in arrives[y])
            outcomes += [*_list_waits(full, age), own[np.arange(cells.size), age, 0]]
        histories.append((y, outcomes))
    if cells.size:
        model.add_cells(table.missing[cells], histories)


def build_drift_precision(data: DelayData, walk_sd: float) -> FloatArray:
    """Return the prior precision of the drift at the knots after the oldest one: a random walk plus a trend."""
    times, is_timed = data.grid.knot_times, bool((data.counts.full + data.counts.partial).any())
    covariance = walk_sd**2 * np.minimum.outer(times, times) + _TREND_SD[is_timed] ** 2 * np.outer(times, times)
    return np.asarray(np.linalg.inv(covariance)) if times.size else np.zeros((0, 0))


def build_rate_columns(grid: AgeGrid) -> FloatArray:
    """Return columns of the log odds of review rates: a level, a step at the threshold, steps between score bins."""
    n = grid.position.size
    has_step = grid.threshold is not None and grid.threshold in grid.cuts
    flagged = np.append(-np.inf, grid.cuts) >= grid.threshold if has_step else np.zeros(n)
    return np.column_stack([np.ones(n), flagged, np.tril(np.ones((n, n)))[:, 1:]])


def build_hazard_prior(grid: AgeGrid, y: int, step_sd: float) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return mean and precision of the hazards' log odds, and in which age bins every label left arrives."""
    mean = np.log(np.expm1(np.diff(grid.edges) / (_MEAN_DELAY * grid.oldest)))
    is_certain = np.zeros(grid.n_ages, dtype=np.bool_)
    if grid.maturity is not None and y == 1:
        is_certain[-1] = True
        left = np.exp(-grid.edges[:-1] / (_MEAN_DELAY * grid.oldest))
        left -= np.exp(-grid.maturity / (_MEAN_DELAY * grid.oldest))
        odds = left[:-1] / np.maximum(left[1:], 1e-300) - 1.0
        mean = np.append(np.log(np.clip(odds, np.exp(-_MAX_PRIOR), np.exp(_MAX_PRIOR))), 0.0)
    steps = np.append(_LEVEL_SD, np.full(grid.n_ages - 1, step_sd))
    differences = np.eye(grid.n_ages) - np.eye(grid.n_ages, k=-1)
    return mean, np.asarray((differences.T * steps**-2.0) @ differences), is_certain


class DelayDraws(NamedTuple):
    """Equally weighted draws of the parameters of delayed labels.

    Attributes
    ----------
    curve : array (n_draws, width)
        Coefficients of calibration curve and drift.
    slope : array (n_draws, 2)
        Difference of the log odds of arrivals between the highest and the middle score, by class.
    hazard : array (n_draws, 2, n_zones, n_ages)
        Log odds that a label arrives in an age bin, given that it has not arrived before.
    passed : array (n_draws, 2, n_ages)
        Logarithm of the factor of these odds for rows that are in the age bin.
    rate : array (n_draws, 2, n_score_bins)
        Log odds that the label of a row ever arrives.
    """

    curve: FloatArray
    slope: FloatArray
    hazard: FloatArray
    passed: FloatArray
    rate: FloatArray

    def select(self, draws: IntArray | slice) -> "DelayDraws":
        """Return a selection of the draws."""
        return DelayDraws(*(values[draws] for values in self))

    @property
    def log_waits(self) -> FloatArray:
        """Log probability that the label of a reviewed row has not arrived before each age bin, and by the end."""
        log_stay = -np.logaddexp(0.0, self.hazard)
        return np.concatenate([np.zeros((*log_stay.shape[:-1], 1)), np.cumsum(log_stay, axis=-1)], axis=-1)

    def log_missing(
        self, zone: IntArray, score_bin: IntArray, age: IntArray, log_passed: FloatArray | None = None
    ) -> FloatArray:
        """Return log P(no label) of rows in these bins, by class (n_draws x 2 x n).

        Pass `log_passed` for rows that have passed another fraction of their age bin than rows do now.
        """
        waits = self.log_waits[:, :, zone, age]
        log_passed = self.passed[:, :, age] if log_passed is None else log_passed
        waits = waits - np.logaddexp(0.0, self.hazard[:, :, zone, age] + log_passed)
        rate = self.rate[:, :, score_bin]
        return np.asarray(np.logaddexp(-np.logaddexp(0.0, rate), waits - np.logaddexp(0.0, -rate)))


def compute_label_probability(grid: AgeGrid, draws: DelayDraws, table: AgeTable) -> FloatArray:
    """Return P(positive | no label) for rows of a table (n_draws x n)."""
    log_odds = compute_log_odds(grid, draws, table)
    return chance(log_odds[0] + log_odds[1])


def compute_log_odds(grid: AgeGrid, draws: DelayDraws, table: AgeTable) -> tuple[FloatArray, FloatArray]:
    """Return the log odds of a positive for rows of a table, and what having no label adds (n_draws x n each)."""
    columns = np.hstack([table.columns, grid.drift[table.age]])
    key, index = np.unique(table.score_bin * grid.n_ages + table.age, return_inverse=True)
    score_bin, age = np.divmod(key, grid.n_ages)
    log_missing = draws.log_missing(grid.zone[score_bin], score_bin, age)
    return draws.curve @ columns.T, (log_missing[:, 1] - log_missing[:, 0])[:, index]


@dataclass(frozen=True, eq=False)
class FittedSetting:
    """A fit under one setting.

    Attributes
    ----------
    data : DelayData
        What was observed.
    setting : Setting
        Assumptions.
    declared : DelayModel
        The model.
    likelihood : Likelihood
        Its likelihood and prior.
    mode : Mode
        Its posterior mode.
    log_evidence : float
        Log evidence, by Laplace's approximation.
    """

    data: DelayData
    setting: Setting
    declared: DelayModel
    likelihood: Likelihood
    mode: Mode
    log_evidence: float

    @classmethod
    def of(cls, data: DelayData, setting: Setting, known: "FittedSetting | None" = None) -> "FittedSetting":
        """Find the mode, starting from that of another setting if it is known."""
        declared = declare(data, setting)
        if known is not None and known.setting.reviewed == setting.reviewed:
            likelihood = copy.copy(known.likelihood)  # the same but for the prior
            likelihood.prior = Prior(declared.model)
        else:
            likelihood = Likelihood(declared.model, data.credit)
        start = likelihood.prior.mean.copy()
        if setting.reviewed == "by_score":
            start[declared.rates[:2]] = _guess_rates(data)
        if known is not None:
            n_shared = start.size if known.setting.reviewed == setting.reviewed else int(declared.rates[0])
            start[:n_shared] = known.mode.theta[:n_shared]
        mode = find_mode(likelihood.expand, start)
        root = _cholesky(mode.precision)
        log_volume = 0.5 * len(root) * LOG_2PI - float(np.log(np.diag(root)).sum())
        return cls(data, setting, declared, likelihood, mode, mode.value + log_volume + declared.model.log_constant)

    def draw(self, n_draws: int) -> tuple[DelayDraws, FloatArray]:
        """Return weighted posterior draws."""
        declared = self.declared
        if self.setting.reviewed == "by_score":
            # A Cauchy prior is a mixture of Gaussian ones: the sd of each step is fixed at its most likely value.
            step = self.mode.theta[declared.rates[2:]]
            declared = declare(self.data, self.setting, rate_sd=np.sqrt(0.5 * (_RATE_SCALE**2 + step**2)))
        else:
            root, n_weighted = _cholesky(self.mode.precision), 2 * n_draws
            z = normal_points(n_weighted, len(root), _SEED).T
            theta = self.mode.theta[:, None] + scipy.linalg.solve_triangular(root, z, trans="T", lower=True)
            weight = np.asarray(softmax(self.likelihood.log_posterior(theta) + 0.5 * (z * z).sum(axis=0)))
            if estimate_pareto_k(weight) <= MAX_PARETO_K:
                weight = np.minimum(weight, n_weighted**-0.5)
                return self.to_draws(theta.T), weight / weight.sum()
        fitted = fit_model(declared.model, n_draws, likelihood_power=self.data.credit, start=self.mode.theta)
        return self.to_draws(fitted.theta), fitted.weight

    def to_draws(self, theta: FloatArray) -> DelayDraws:
        """Return draws of the parameters by name."""
        declared, grid, n_draws = self.declared, self.data.grid, len(theta)
        n_zones = grid.zone_position.size
        hazard = np.full((n_draws, 2, n_zones, grid.n_ages), -np.inf)
        slope = theta[:, declared.slope] @ np.array([[1.0, 1.0], [-0.5, 0.5]])
        for y, indices in declared.hazards.items():
            hazard[:, y] = theta[:, None, indices] + (slope[:, y, None] * grid.zone_position)[:, :, None]
            if y == 1 and grid.maturity is not None:
                hazard[:, y, :, -1] = _CERTAIN
        passed = np.tile(np.log(grid.passed), (n_draws, 2, 1))
        for day, (y, k) in zip(declared.days, self.data.days, strict=True):
            passed[:, y, k] += theta[:, day]
        rate = theta[:, declared.rates]
        if self.setting.reviewed == "by_score":
            rate = np.repeat((rate @ build_rate_columns(grid).T)[:, None], 2, axis=1)
        else:
            rate = np.repeat(rate[:, :, None], grid.position.size, axis=2)
        return DelayDraws(theta[:, declared.curve], slope, hazard, passed, rate)


def _guess_rates(data: DelayData) -> FloatArray:
    """Return log odds of a label among the older half of the rows: below the threshold, and how much higher above."""
    table, grid = data.table, data.grid
    labels = table.positives + table.negatives
    at_age = np.bincount(table.age, labels + table.missing, grid.n_ages)
    is_old = (np.cumsum(at_age) >= 0.5 * at_age.sum())[table.age]
    above = build_rate_columns(grid)[table.score_bin, 1] > 0.0
    odds = [(labels[is_old & s].sum() + 1.0) / (table.missing[is_old & s].sum() + 1.0) for s in (~above, above)]
    return np.array([np.log(odds[0]), np.log(odds[1] / odds[0])])


def _cholesky(precision: FloatArray) -> FloatArray:
    scale = np.sqrt(np.maximum(np.diag(precision), 1e-300))
    scaled = precision / np.outer(scale, scale)
    root, failed = scipy.linalg.lapack.dpotrf(scaled, lower=1, clean=1)
    if failed or root.diagonal().min() < 1e-5:
        values, vectors = np.linalg.eigh(scaled)
        root = np.linalg.cholesky((vectors * np.maximum(values, 1e-8 * values.max())) @ vectors.T)
    return np.asarray(scale[:, None] * root)


_SEED = 7
# Who may be reviewed.
REVIEWED = ("all", "by_score")
# Where the evidence is less clear than this ratio, data cannot tell the two, and each keeps the smallest weight.
_CLEAR_RATIO, _MIN_WEIGHT = 20.0, 0.25
# A smooth model that is so much worse, in log evidence, is not tried with rough hazards.
_CLEARLY_WORSE = 9.0
# Probability of a review by score from which on it is mentioned; differences between old rows that are.
_MIN_MENTIONED, _MIN_DIFFERENCE, _CLEAR_SQUARE = 0.02, 0.1, 9.0
# Prior sd of what a day on which labels of a class arrive adds to the log odds in its age bin.
_DAY_SD = 3.0
# Prior sd of a difference between early and late rows in the log odds of arrivals: hardly any.
_COHORT_SD = 10.0
# The oldest age is at least so many times the first step of the grid, as two months of whole days are.
_MIN_SPAN = 64.0


@dataclass(frozen=True, eq=False)
class LateLabels(LabelModel):
    """Labels arrive with a delay: the age of a row says why its label is missing.

    Old rows are nearly complete, young ones are not; which labels come first (frauds confirmed late, good customers
    declared good by day 90) is seen from how positives and negatives fill up with age. Delays are taken to be the same
    for all times of scoring, and may depend on the class and on the score; the share of positives at a score may
    drift. What never arrives is what is left at the oldest age.

    Needs rows with ages: `age=` (and `delay=`, `maturity=`) of `evaluate`, or `scored_at=` of tables.

    Parameters
    ----------
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_nodes : int
        How many cases stand for what the labels leave open.
    reviewed : {"all", "by_score"}, optional
        Who is reviewed, so that a label can arrive: every row, or a fraction of the rows that may depend on the score
        in any way. If not passed, both are weighed by how well they explain which rows have a label.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = rng.random(3000) < y_score
    >>> age, delay = rng.integers(0, 100, 3000), np.where(y, rng.exponential(40, 3000), rng.exponential(10, 3000))
    >>> y_true = np.where(delay <= age, y, np.nan)
    >>> result = dm.evaluate(y_true, y_score, age=age, metrics="precision")
    >>> print(f"{result['precision'].mean():.2f}, in truth {y[y_score >= 0.5].mean():.2f}")
    0.72, in truth 0.73
    """

    calibrator: CalibratorLike = "flexible"
    n_nodes: int = N_NODES
    reviewed: str | None = None

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)
        if self.reviewed is not None and self.reviewed not in REVIEWED:
            raise unknown_name("reviewed", "statement of who is reviewed", str(self.reviewed), REVIEWED)

    def nodes(self, data: EvaluationSet) -> Posterior:
        return self.learn(data)[1]

    def learn(self, data: EvaluationSet) -> tuple["FittedDelays", Posterior]:
        """Return what the rows of a set say about delays, and the posterior of the set."""
        fitted = self.fit(data)
        return fitted, fitted.nodes(data)

    def fit(self, data: EvaluationSet) -> "FittedDelays":
        """Return what the rows of a set say about delays, for the rows of this set or of a part of it."""
        ages = ages_of(data)
        _check_unit(ages)
        fit_data = FitData.of(data)
        _check_classes(fit_data, ages)
        grid = AgeGrid.of(data, fit_data.logistic_calibrator(self.calibrator))
        zone = grid.zone[grid.score_bin(data.cells.score)]
        counts = count_arrivals(grid, without_calendar(grid, data), data, zone, grid.zone_position.size)
        table = grid.table(data)
        delay_data = DelayData(grid, table, counts, fit_data.credit, find_days(table, grid))
        fits = _fit_settings(delay_data, REVIEWED if self.reviewed is None else (self.reviewed,))
        weight = _weigh(fits)
        table, _ = delay_data.table.with_missing()
        sides = np.stack([table.decided, table.missing - table.decided], axis=1)
        sizes = np.diff(np.rint(self.n_nodes * np.cumsum(weight)).astype(np.int64), prepend=0)
        parts = []
        for fit, size in zip(fits, sizes.tolist(), strict=True):
            if size:
                draws, w = fit.draw(draws_for(self.n_nodes))
                above, below = (compute_label_probability(grid, draws, table) @ sides).T
                parts.append(draws.select(representatives(above, below, w, size)))
        draws = DelayDraws(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        best = fits[int(np.argmax(weight))]
        reviewed = {name: _sum_weights(fits, weight, reviewed=name) for name in REVIEWED}
        turning = float(sum(w for fit, w in zip(fits, weight, strict=True) if fit.setting.walk_sd > _WALK_SD))
        return FittedDelays(self, delay_data, draws, (best.setting, best.mode.theta), reviewed, turning)

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return self.fit(data).describe(data, nodes)


def _fit_settings(data: DelayData, reviewed: tuple[str, ...]) -> list[FittedSetting]:
    """Fit the settings that may explain the data."""
    smooth, rough = _STEP_SDS
    fits: list[FittedSetting] = []
    for name in reviewed:
        fits.append(FittedSetting.of(data, Setting(name, smooth), fits[-1] if fits else None))
    best = max(fit.log_evidence for fit in fits)
    likely = [fit for fit in fits if fit.log_evidence > best - _CLEARLY_WORSE]
    fits += [FittedSetting.of(data, fit.setting._replace(step_sd=rough), fit) for fit in likely]
    winner = max(fits, key=lambda fit: fit.log_evidence)
    drift = winner.mode.theta[winner.declared.drift]
    precision = build_drift_precision(data, winner.setting.walk_sd)
    if drift @ precision @ drift > drift.size:  # as far from 0 as the prior expects draws, not modes, to be
        fits.append(FittedSetting.of(data, winner.setting._replace(walk_sd=_QUICK_SD), winner))
    return fits


def _sum_weights(fits: list[FittedSetting], weight: FloatArray, reviewed: str) -> float:
    return float(sum(w for fit, w in zip(fits, weight, strict=True) if fit.setting.reviewed == reviewed))


def _weigh(fits: list[FittedSetting]) -> FloatArray:
    """Return the posterior probabilities of settings; where data cannot tell who is reviewed, each keeps a minimum."""
    weight = np.asarray(softmax([fit.log_evidence for fit in fits]))
    share = {name: _sum_weights(fits, weight, name) for name in {fit.setting.reviewed for fit in fits}}
    least = min(share, key=lambda name: share[name])
    if len(share) == 1 or not 1.0 / _CLEAR_RATIO < share[least] < _MIN_WEIGHT:
        return weight
    kept = {name: _MIN_WEIGHT if name == least else 1.0 - _MIN_WEIGHT for name in share}
    return np.array(
        [w * kept[fit.setting.reviewed] / share[fit.setting.reviewed] for fit, w in zip(fits, weight, strict=True)]
    )


def _check_unit(ages: Ages) -> None:
    """Refuse ages that the grid of ages, which is the same for all data, cannot tell apart; whole numbers it can."""
    oldest = float(bin_start(ages.age.max() + 1))
    if ages.whole or oldest > _MIN_SPAN * EDGES[0]:
        return
    unit, factor, advice = "", 1.0, "Choose a smaller unit."
    if ages.days:
        unit, factor, advice = " seconds", 86_400.0, "Give age= (and delay=) as numbers, such as seconds."
    raise InputError(
        f"age: all are below {oldest * factor:.3g}{unit}, and ages are told apart from {EDGES[0] * factor:.2g}{unit} "
        f"on, which is too coarse for them (LateLabels). {advice}"
    )


def _check_classes(fit_data: FitData, ages: Ages) -> None:
    """Refuse labels of one class: nothing is known about when those of the other arrive."""
    positives, negatives = fit_data.label_counts()
    if positives and negatives:
        return
    if positives:
        raise InputError(
            f"y_true: all {positives:,} labels are positive, and when negatives come no age can tell (LateLabels). If "
            "only positives ever come, say maturity=: the age from which a row without a label is negative. If it was "
            f"given, no row is that old (all are below {bin_start(ages.age.max() + 1):.3g}): give older rows too."
        )
    found = f"all {negatives:,} labels are negative" if negatives else "no labelled row"
    raise InputError(
        f"y_true: {found}, so that ages cannot tell when labels come (LateLabels). Leave age and scored_at out, and "
        "give reference=(labels, scores) of fully labelled rows."
    )


@dataclass(frozen=True, eq=False)
class FittedDelays(LabelModel):
    """When labels arrive, as learned from the rows of one set: a label model for that set and for parts of it.

    Attributes
    ----------
    model : LateLabels
        The settings.
    data : DelayData
        What was observed.
    draws : DelayDraws
        Equally weighted posterior draws.
    best : tuple (Setting, array)
        The most likely setting, and the mode of its parameters.
    reviewed : dict of str to float
        Posterior probability of each statement of who is reviewed.
    turning : float
        Posterior probability that the share of positives at a score changes quickly with the time of scoring.
    """

    model: LateLabels
    data: DelayData
    draws: DelayDraws
    best: tuple[Setting, FloatArray]
    reviewed: dict[str, float]
    turning: float

    @property
    def grid(self) -> AgeGrid:
        """Bins of scores and ages."""
        return self.data.grid

    def nodes(self, data: EvaluationSet) -> Posterior:
        table, column = self.grid.table(data, fine=True).with_missing()
        p = compute_label_probability(self.grid, self.draws, table)
        return Posterior(np.full(len(p), 1.0 / len(p)), p, bucket=column[table.of_cell[data.missing_cells]])

    def arrival_log_odds(
        self, data: EvaluationSet, cells: IntArray, since: float, until: float
    ) -> tuple[FloatArray, BoolArray]:
        """Return log odds that labels of missing cells which arrive between two times from now are positive.

        The odds have shape (n_draws, n_cells). Also returns for which cells they are known: nothing is known about
        labels that take longer than any row is old.
        """
        grid, table = self.grid, self.grid.table(data, fine=True)
        rows = table.of_cell[cells]
        score_bin = table.score_bin[rows]
        first, passed, _ = grid.later(table.age[rows], since)
        last, passed_last, is_known = grid.later(table.age[rows], until)
        zone = grid.zone[score_bin]
        with np.errstate(divide="ignore"):
            log_passed, log_passed_last = np.log(passed), np.log(passed_last)
        left = self.draws.log_missing(zone, score_bin, first, log_passed)
        change = np.minimum(self.draws.log_missing(zone, score_bin, last, log_passed_last) - left, -1e-12)
        arrives = left + np.log(-np.expm1(change))
        columns = np.hstack([table.columns[rows], grid.drift[table.age[rows]]])
        return self.draws.curve @ columns.T + arrives[:, 1] - arrives[:, 0], is_known

    def missing_probability(self) -> FloatArray:
        """Return the posterior mean of P(no label) for rows of the table of the fitted set."""
        table, grid = self.data.table, self.grid
        p = chance(self.draws.curve @ np.hstack([table.columns, grid.drift[table.age]]).T)
        zone = grid.zone[table.score_bin]
        left = np.exp(self.draws.log_missing(zone, table.score_bin, table.age))
        return np.asarray((p * left[:, 1] + (1.0 - p) * left[:, 0]).mean(axis=0))

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        ages, count = ages_of(data), int(data.missing_counts.sum())
        known = "ages and arrival times" if ages.timed.any() else "ages"
        text = f"Assumed: labels come with time, and later rows get them as earlier ones did ({known} of rows)."
        text += _describe_review(self)
        if not count:
            return text
        share = missing_prevalence(data, nodes)
        return (
            f"{text} Of the {count:,} missing rows{of_weight(data)} {share.mean:.0%} ({share.low:.0%} to "
            f"{share.high:.0%}) are positive."
        )


def _describe_review(fitted: FittedDelays) -> str:
    """Return who is reviewed, in words, with the labels of old rows at low and high scores."""
    text, (low, high, age) = "", _compare_old_rows(fitted.data)
    by_score = fitted.reviewed["by_score"]
    if fitted.model.reviewed is None and by_score >= _MIN_MENTIONED:
        text += f" Not stated who is reviewed: all rows ({1.0 - by_score:.0%}) or chosen by score ({by_score:.0%})."
    elif fitted.model.reviewed == "by_score":
        text += " Rows are reviewed by score; rows that are not reviewed never get a label."
    if abs(low - high) >= _MIN_DIFFERENCE:
        text += (
            f" Of rows of age {age:.3g} and more, {low:.0%} at lower and {high:.0%} at higher scores have no label, so "
            "the score decides who is reviewed, or how long it takes."
        )
    return text


def _compare_old_rows(data: DelayData) -> tuple[float, float, float]:
    """Return the fractions of old rows without a label at lower and at higher scores, and from which age on.

    Old rows are those older than 19 of 20 observed delays; without arrival times the oldest quarter. Scores are
    separated at the threshold if there is one. The fractions are equal if they do not differ clearly.
    """
    table, grid = data.table, data.grid
    arrived = (data.counts.full + data.counts.partial).sum(axis=(0, 1))
    rows = np.bincount(table.age, table.positives + table.negatives + table.missing, grid.n_ages)
    weight, level = (arrived, 0.95) if arrived.any() else (rows, 0.75)
    first = min(int(np.searchsorted(np.cumsum(weight), level * weight.sum())) + 1, grid.n_ages - 1)
    above = build_rate_columns(grid)[:, 1] > 0.0
    above = grid.position > 0.0 if above.all() or not above.any() else above
    groups = [(table.age >= first) & (above[table.score_bin] == side) for side in (False, True)]
    missing, total = (
        np.array([values[g].sum() for g in groups])
        for values in (table.missing, table.positives + table.negatives + table.missing)
    )
    fraction = missing / np.maximum(total, 1.0)
    pooled = missing.sum() / max(1.0, total.sum())
    variance = pooled * (1.0 - pooled) * (1.0 / np.maximum(total, 1.0)).sum()
    if not total.all() or (fraction[1] - fraction[0]) ** 2 < _CLEAR_SQUARE * variance:
        fraction = np.full(2, pooled)
    return float(fraction[0]), float(fraction[1]), float(grid.edges[first])


def test_cohorts(
    fitted: FittedDelays, data: EvaluationSet, is_late: BoolArray, classes: Sequence[int]
) -> tuple[float, FloatArray]:
    """Test whether rows of some age bins get labels of these classes sooner or later than others.

    Returns the p-value of the likelihood ratio, and the difference of the log odds of arrivals by class.
    """
    grid, (setting, theta) = fitted.grid, fitted.best
    n_zones = grid.zone_position.size
    late = is_late[grid.age_bin(ages_of(data).age)]
    zone = grid.zone[grid.score_bin(data.cells.score)] + n_zones * late
    counts = count_arrivals(grid, without_calendar(grid, data), data, zone, 2 * n_zones)
    declared = declare(replace(fitted.data, counts=counts, is_late=is_late), setting)
    assert declared.cohort is not None
    likelihood = Likelihood(declared.model, fitted.data.credit)
    tested = declared.cohort[list(classes)]
    others = np.setdiff1d(np.arange(theta.size + 2), declared.cohort)
    start = np.zeros(theta.size + 2)
    start[others] = theta
    free = np.sort(np.append(others, tested))
    null = find_mode(likelihood.expand, start, others)
    mode = find_mode(likelihood.expand, null.theta, free)
    effect = mode.theta[tested]
    gain = mode.value - null.value + 0.5 * float(effect @ effect) / _COHORT_SD**2
    return float(chdtrc(tested.size, 2.0 * max(0.0, gain))), effect
