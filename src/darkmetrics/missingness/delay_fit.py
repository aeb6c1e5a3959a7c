"""Fit of a model of delayed labels, and the label probabilities of its draws."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used
from scipy.special import softmax

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.log_odds import chance
from darkmetrics._kernels.sobol import normal_points
from darkmetrics.missingness.age_cells import (
    AgeGrid,
    AgeTable,
)
from darkmetrics.missingness.delay_model import (
    CERTAIN,
    RATE_SCALE,
    DelayData,
    DelayModel,
    Setting,
    build_rate_columns,
    declare,
)
from darkmetrics.posterior.fit import MAX_PARETO_K, estimate_pareto_k, fit_model
from darkmetrics.posterior.likelihood import LOG_2PI, Likelihood, Prior
from darkmetrics.posterior.mode import Mode, find_mode

_SEED = 7


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
            declared = declare(self.data, self.setting, rate_sd=np.sqrt(0.5 * (RATE_SCALE**2 + step**2)))
        elif (self.data.counts.full + self.data.counts.partial).any():
            # With arrival times the posterior is nearly Gaussian.
            root, n_weighted = _cholesky(self.mode.precision), 2 * n_draws
            z = normal_points(n_weighted, len(root), _SEED).T
            theta = self.mode.theta[:, None] + scipy.linalg.solve_triangular(root, z, trans="T", lower=True)
            weight = np.asarray(softmax(self.likelihood.log_posterior(theta) + 0.5 * (z * z).sum(axis=0)))
            if estimate_pareto_k(weight) <= MAX_PARETO_K:
                weight = np.minimum(weight, n_weighted**-0.5)
                return self.to_draws(theta.T), weight / weight.sum()
        fitted = fit_model(declared.model, 2 * n_draws, likelihood_power=self.data.credit, start=self.mode.theta)
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
                hazard[:, y, :, -1] = CERTAIN
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
