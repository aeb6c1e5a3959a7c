"""Fit of a model of delayed labels, and the label probabilities of its draws."""

import copy
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used
from scipy.special import chdtrc

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.log_odds import chance
from darkmetrics.missingness.age_cells import (
    AgeGrid,
    AgeTable,
)
from darkmetrics.missingness.delay_model import (
    CERTAIN,
    DelayData,
    DelayModel,
    Setting,
    build_rate_columns,
    declare,
    guess_hazards,
)
from darkmetrics.posterior.fit import fit_model
from darkmetrics.posterior.likelihood import LOG_2PI, Expansion, Likelihood, Prior
from darkmetrics.posterior.mode import Mode, find_mode

_SEED = 7
# The search for a mode ends with a step that raises the log posterior by less.
_MIN_GAIN = 1e-4
_TINY = np.finfo(np.float64).tiny
# Rows with and without a label that each count of a test needs.
_MIN_ROWS = 5.0


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
    rate : array (n_draws, 2, n_rate_bins)
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

    def widen(self, factor: float) -> "DelayDraws":
        """Return draws that are this many times as far from their mean."""
        arrays = []
        for values in self:
            center = np.broadcast_to(values.mean(axis=0), values.shape)
            is_finite = np.isfinite(center)  # log odds of what never happens are not
            wide = values.copy()
            wide[is_finite] = center[is_finite] + factor * (values[is_finite] - center[is_finite])
            arrays.append(wide)
        return DelayDraws(*arrays)

    @property
    def log_waits(self) -> FloatArray:
        """Log probability that the label of a reviewed row has not arrived before each age bin, and by the end."""
        log_stay = -np.logaddexp(0.0, self.hazard)
        return np.concatenate([np.zeros((*log_stay.shape[:-1], 1)), np.cumsum(log_stay, axis=-1)], axis=-1)

    def log_missing(
        self, zone: IntArray, rate_bin: IntArray, age: IntArray, log_passed: FloatArray | None = None
    ) -> FloatArray:
        """Return log P(no label) of rows in these bins, by class (n_draws x 2 x n).

        Pass `log_passed` for rows that have passed another fraction of their age bin than rows do now.
        """
        if log_passed is None:
            log_waits = self.log_waits[..., :-1] - np.logaddexp(0.0, self.hazard + self.passed[:, :, None])
            waits = np.exp(log_waits)[:, :, zone, age]
        else:
            waits = np.exp(
                self.log_waits[:, :, zone, age] - np.logaddexp(0.0, self.hazard[:, :, zone, age] + log_passed)
            )
        missing = chance(-self.rate)[:, :, rate_bin] + chance(self.rate)[:, :, rate_bin] * waits
        return np.asarray(np.log(np.maximum(missing, _TINY)))


def compute_label_probability(grid: AgeGrid, draws: DelayDraws, table: AgeTable) -> FloatArray:
    """Return P(positive | no label) for rows of a table (n_draws x n)."""
    log_odds = compute_log_odds(grid, draws, table)
    return chance(log_odds[0] + log_odds[1])


def compute_log_odds(grid: AgeGrid, draws: DelayDraws, table: AgeTable) -> tuple[FloatArray, FloatArray]:
    """Return the log odds of a positive for rows of a table, and what having no label adds (n_draws x n each)."""
    columns = np.hstack([table.columns, grid.drift[table.age]])
    n_zones = grid.zone_position.size
    key = (table.rate_bin * n_zones + grid.zone[table.score_bin]) * grid.n_ages + table.age
    key, index = np.unique(key, return_inverse=True)
    zones, age = np.divmod(key, grid.n_ages)
    log_missing = draws.log_missing(zones % n_zones, zones // n_zones, age)
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
        mode = find_mode(partial(expand_posterior, likelihood), start, min_gain=_MIN_GAIN)
        root = _cholesky(mode.precision)
        log_volume = 0.5 * len(root) * LOG_2PI - float(np.log(np.diag(root)).sum())
        return cls(data, setting, declared, likelihood, mode, mode.value + log_volume + declared.model.log_constant)

    def draw(self, n_draws: int) -> tuple[DelayDraws, FloatArray]:
        """Return weighted posterior draws, with Gaussian priors of steps in place of Cauchy priors.

        Importance weights of several thousand draws are worth a few dozen with Cauchy priors, and more than half of
        the draws with Gaussian ones. Moments then agree with MCMC under Cauchy priors within 0.1 sd (with times).
        """
        declared = declare(self.data, self.setting, known=self.mode.theta)
        fitted = fit_model(declared.model, 2 * n_draws, likelihood_power=self.data.credit, start=self.mode.theta)
        return self.to_draws(fitted.theta), fitted.weight

    def missing_probability(self) -> FloatArray:
        """Return P(no label) at the mode for rows of the table."""
        table, grid, draw = self.data.table, self.data.grid, self.to_draws(self.mode.theta[None])
        p = chance(draw.curve @ np.hstack([table.columns, grid.drift[table.age]]).T)
        missing = np.exp(draw.log_missing(grid.zone[table.score_bin], table.rate_bin, table.age))
        return np.asarray((p * missing[:, 1] + (1.0 - p) * missing[:, 0])[0])

    def to_draws(self, theta: FloatArray) -> DelayDraws:
        """Return draws of the parameters by name."""
        declared, grid, n_draws = self.declared, self.data.grid, len(theta)
        n_zones = grid.zone_position.size
        hazard = np.full((n_draws, 2, n_zones, grid.n_ages), -np.inf)
        slope = theta[:, declared.slope] @ np.array([[1.0, 1.0], [-0.5, 0.5]])
        for y, indices in declared.hazards.items():
            level = guess_hazards(grid, y)[0] + np.cumsum(theta[:, indices], axis=1)
            hazard[:, y] = level[:, None] + (slope[:, y, None] * grid.zone_position)[:, :, None]
            if y == 1 and grid.maturity is not None:
                hazard[:, y, :, -1] = CERTAIN
        passed = np.tile(np.log(grid.passed), (n_draws, 2, 1))
        for day, (y, k) in zip(declared.days, self.data.days, strict=True):
            passed[:, y, k] += theta[:, day]
        rate = theta[:, declared.rates]
        if self.setting.reviewed == "by_score":
            rate = np.repeat((rate @ build_rate_columns(grid).T)[:, None], 2, axis=1)
        elif self.setting.reviewed == "propensity":
            rate = np.tile(grid.review_log_odds, (n_draws, 2, 1))
        else:
            rate = np.repeat(rate[:, :, None], grid.position.size, axis=2)
        return DelayDraws(theta[:, declared.curve], slope, hazard, passed, rate)


class MissingCounts(NamedTuple):
    """Rows without a label by score group and age, next to the numbers that a fit expects.

    Attributes
    ----------
    seen, expected, variance, rows : array (n,)
        Rows without a label, their expected number and its variance, and all rows.
    score_group, first, last : array of int (n,)
        Group of scores, and the first and last age bin.
    """

    seen: FloatArray
    expected: FloatArray
    variance: FloatArray
    rows: FloatArray
    score_group: IntArray
    first: IntArray
    last: IntArray

    @property
    def statistic(self) -> float:
        """Pearson's statistic, on average below the number of counts: a fit has parameters for ages and scores."""
        return float(np.sum((self.seen - self.expected) ** 2 / np.maximum(self.variance, 1e-12)))

    @property
    def p_value(self) -> float:
        """P-value of the test that the fit is right."""
        return float(chdtrc(self.seen.size, self.statistic)) if self.seen.size else 1.0

    @property
    def excess(self) -> FloatArray:
        """Difference of the fractions of rows without a label."""
        return np.asarray((self.seen - self.expected) / self.rows)


def count_missing(fit: FittedSetting, n_score_groups: int) -> MissingCounts:
    """Compare the rows without a label with those that the mode of a fit expects, by score group and age."""
    grid, table, counts = fit.data.grid, fit.data.table, []
    expected = fit.missing_probability()
    rows = table.positives + table.negatives + table.missing
    last = grid.n_ages - (grid.maturity is not None)
    score_group = grid.zone[table.score_bin] * n_score_groups // grid.zone_position.size
    for group in range(n_score_groups):
        selected = score_group == group
        values = (table.missing, rows * expected, rows * expected * (1.0 - expected), rows)
        columns = np.array([np.bincount(table.age[selected], value[selected], grid.n_ages)[:last] for value in values])
        starts = _join_ages(columns[1], columns[3] - columns[1])
        if starts.size:
            sums = np.add.reduceat(columns, starts, axis=1)
            ends = np.append(starts[1:], last) - 1
            counts.append(np.vstack([sums, np.full(starts.size, group), starts, ends]))
    joined = np.hstack(counts) if counts else np.zeros((7, 0))
    return MissingCounts(*joined[:4], *joined[4:].astype(np.int64))


def _join_ages(first: FloatArray, second: FloatArray) -> IntArray:
    """Return the first of neighboring age bins in which both sums are large enough; the remainder joins the last."""
    starts, sums = [0], np.zeros(2)
    for k in range(first.size):
        sums += (first[k], second[k])
        if sums.min() >= _MIN_ROWS:
            starts.append(k + 1)
            sums = np.zeros(2)
    return np.array(starts[:-1], dtype=np.int64)


def _guess_rates(data: DelayData) -> FloatArray:
    """Return log odds of a label among the older half of the rows: below the threshold, and how much higher above."""
    table, grid = data.table, data.grid
    labels = table.positives + table.negatives
    at_age = np.bincount(table.age, labels + table.missing, grid.n_ages)
    is_old = (np.cumsum(at_age) >= 0.5 * at_age.sum())[table.age]
    above = build_rate_columns(grid)[table.score_bin, 1] > 0.0
    odds = [(labels[is_old & s].sum() + 1.0) / (table.missing[is_old & s].sum() + 1.0) for s in (~above, above)]
    return np.array([np.log(odds[0]), np.log(odds[1] / odds[0])])


def expand_posterior(likelihood: Likelihood, theta: FloatArray) -> Expansion:
    """Return the log posterior at a point with its derivatives, with Cauchy priors as those of `declare(known=theta)`.

    The gradient is the same, and the Gaussian priors have a positive curvature.
    """
    prior, expansion = likelihood.prior, likelihood.expand(theta)
    square = ((theta - prior.mean)[prior.cauchy] / prior.scale) ** 2
    expansion.precision[prior.cauchy, prior.cauchy] += 4.0 * square / (prior.scale * (1.0 + square)) ** 2
    return expansion


def _cholesky(precision: FloatArray) -> FloatArray:
    scale = np.sqrt(np.maximum(np.diag(precision), 1e-300))
    scaled = precision / np.outer(scale, scale)
    root, failed = scipy.linalg.lapack.dpotrf(scaled, lower=1, clean=1)
    if failed or root.diagonal().min() < 1e-5:
        values, vectors = np.linalg.eigh(scaled)
        root = np.linalg.cholesky((vectors * np.maximum(values, 1e-8 * values.max())) @ vectors.T)
    return np.asarray(scale[:, None] * root)
