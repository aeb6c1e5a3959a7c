"""Fit of the curve of several classes, and of the probabilities of missing labels by class.

A labeled row contributes eta_iy - lse(eta_i), with lse the log of the sum of exponentials. A missing row contributes
lse(eta_i + o_i) - lse(eta_i), with o_ik the log probability that a row of class k has no label: nothing if it is the
same for all classes. `MissingTable` declares these probabilities, by class and bin of the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sobol import sobol_points
from darkmetrics.posterior.class_curve import ClassCurve, evaluate_curve
from darkmetrics.posterior.fit import FittedModel, draw_around_mode
from darkmetrics.posterior.likelihood import Expansion, Expansions, Likelihood, Prior
from darkmetrics.posterior.mode import find_mode
from darkmetrics.posterior.model import Model
from darkmetrics.posterior.proposal import ConditionalGaussian, Proposal
from darkmetrics.posterior.tables import softplus

# Larger sets start from the mode of a sample, and their draws are those of the Gaussian at the mode: with so many rows
# importance weights would change nothing, and take longest.
_MAX_NUMBERS = 1 << 17
# Numbers that are computed at once.
_BATCH = 1 << 17
_N_POINTS, _SEED = 256, 9
# The search for a mode ends where a step raises the log posterior by less: of large sets, and of small ones.
_ROUGH_GAIN, _FINE_GAIN = 1e-2, 1e-6


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows that a curve is fitted to.

    Attributes
    ----------
    line : array (n, K)
        Log scores.
    decision : array of int (n,)
        Predicted classes.
    labeled : array (n, K)
        Numbers of labeled rows.
    missing : array (n,)
        Numbers of missing rows; zeros if these do not tell anything about the curve.
    bins : array of int (n,)
        Bin of the missing rows.
    more : array (n, n_more), optional
        Further columns of the curve.
    """

    line: FloatArray
    decision: IntArray
    labeled: FloatArray
    missing: FloatArray
    bins: IntArray
    more: FloatArray | None = None

    def select(self, rows: IntArray | slice) -> "ClassRows":
        """Return some of the rows."""
        more = None if self.more is None else self.more[rows]
        return ClassRows(
            self.line[rows], self.decision[rows], self.labeled[rows], self.missing[rows], self.bins[rows], more
        )


@dataclass(frozen=True, eq=False)
class MissingTable:
    """Probabilities of missing labels, from binary decisions with the log odds `columns @ psi`.

    Attributes
    ----------
    columns : array (n_decisions, n_parameters)
        Columns of the decisions "the label arrives".
    arrived, waited : array (n_decisions,)
        How often labeled rows decided yes, and no.
    steps : array (K, n_bins, n_decisions)
        1 for the decisions with the answer no that a missing row of a class and bin stands for.
    mean, sd : array (n_parameters,)
        Prior of the parameters.
    cauchy : array of bool (n_parameters,)
        Whether a prior is Cauchy.
    """

    columns: FloatArray
    arrived: FloatArray
    waited: FloatArray
    steps: FloatArray
    mean: FloatArray
    sd: FloatArray
    cauchy: IntArray

    def log_missing(self, psi: FloatArray) -> FloatArray:
        """Return log P(no label | class, bin) for columns of parameters (K, n_bins, n_draws)."""
        return np.asarray(-(self.steps @ softplus(self.columns @ psi)))

    def log_likelihood(self, psi: FloatArray) -> FloatArray:
        """Return the log likelihood of the decisions of labeled rows, for columns of parameters."""
        log_odds = self.columns @ psi
        return np.asarray(self.arrived @ log_odds - (self.arrived + self.waited) @ softplus(log_odds))


class ClassLikelihood(Likelihood):
    """Likelihood of the rows of several classes, and the prior; parameters are those of the curve, then the table's."""

    def __init__(self, curve: ClassCurve, rows: ClassRows, table: MissingTable | None, power: float = 1.0) -> None:
        self.curve, self.rows, self.table, self.power = curve, rows, table, power
        self.model = Model()
        n_groups, width = curve.shape
        self.model.add_parameters(np.zeros(n_groups * width), precision=curve.prior_precision)
        for mean, sd, cauchy in () if table is None else zip(table.mean, table.sd, table.cauchy, strict=True):
            self.model.add_parameters(mean, sd, cauchy=bool(cauchy))
        self.prior, self.n_curve = Prior(self.model), n_groups * width
        self.main, self.nuisance = np.arange(self.model.n_parameters), np.zeros(0, dtype=np.int64)

    @property
    def n_numbers(self) -> int:
        """Numbers of classes times rows."""
        return self.rows.line.size

    def _batches(self, n_draws: int = 1) -> Iterator[tuple[ClassRows, FloatArray]]:
        n, n_classes = self.rows.line.shape
        size = max(1, _BATCH // (n_classes * max(n_draws, self.curve.shape[1])))
        for start in range(0, n, size):
            rows = self.rows.select(slice(start, start + size))
            yield rows, self.curve.columns(rows.line, rows.decision, rows.more)

    def log_posterior(self, theta: FloatArray) -> FloatArray:
        curve, n_draws = theta[: self.n_curve].reshape(*self.curve.shape, -1), theta.shape[1]
        value = np.zeros(n_draws)
        log_missing = None if self.table is None else self.table.log_missing(theta[self.n_curve :])
        for rows, columns in self._batches(n_draws):
            eta = evaluate_curve(self.curve, rows.line, columns, curve)
            total = rows.labeled.sum(axis=1) + rows.missing
            value += np.einsum("ik,kis->s", rows.labeled, eta) - total @ _log_sum_exp(eta)
            if log_missing is not None:
                value += rows.missing @ _log_sum_exp(eta + log_missing[:, rows.bins])
        if self.table is not None:
            value += self.table.log_likelihood(theta[self.n_curve :])
        return self.power * value + self.prior.log_density(theta)

    def expand_points(self, theta: FloatArray) -> Expansions:
        points = [self.expand(point) for point in theta.T]
        value, gradient, precision = zip(*points, strict=True)
        return Expansions(np.array(value), np.array(gradient), np.array(precision))

    def expand(self, theta: FloatArray) -> Expansion:
        n_groups, width = self.curve.shape
        n_curve, n_classes = self.n_curve, self.rows.line.shape[1]
        curve, psi = theta[:n_curve].reshape(n_groups, width, 1), theta[n_curve:, None]
        value, gradient, precision = 0.0, np.zeros(theta.size), np.zeros((theta.size, theta.size))
        blocks = np.zeros((n_classes, width, width))
        slopes = np.zeros((n_classes, width))
        table, log_missing = self.table, np.zeros((n_classes, 1))
        if table is not None:
            log_missing = table.log_missing(psi)[:, :, 0]
            hazard = expit(table.columns @ psi)[:, 0]
            changes = -(table.steps * hazard) @ table.columns  # K x bins x parameters
            members = np.zeros(log_missing.shape)
            sums = np.zeros((*log_missing.shape, width))
        for rows, columns in self._batches():
            eta = evaluate_curve(self.curve, rows.line, columns, curve)[:, :, 0]
            total = rows.labeled.sum(axis=1) + rows.missing
            log_sum = _log_sum_exp(eta)
            q = np.exp(eta - log_sum)
            value += float(np.einsum("ik,ki->", rows.labeled, eta) - total @ log_sum)
            coefficient, residual = total * q, rows.labeled.T - total * q
            z = self._join(q, columns) * np.sqrt(total)[:, None]
            precision[:n_curve, :n_curve] -= z.T @ z
            if table is not None:
                given = eta + log_missing[:, rows.bins]
                log_sum = _log_sum_exp(given)
                w = np.exp(given - log_sum)
                value += float(rows.missing @ log_sum)
                expected = rows.missing * w
                residual += expected
                coefficient -= expected
                v = np.einsum("ki,kip->ip", w, changes[:, rows.bins])
                z = np.concatenate([self._join(w, columns), v], axis=1) * np.sqrt(rows.missing)[:, None]
                precision += z.T @ z
                in_bin = (rows.bins == np.arange(log_missing.shape[1])[:, None]).astype(np.float64)
                members += expected @ in_bin.T
                sums += in_bin @ (expected[:, :, None] * columns)
            weighted = coefficient[:, :, None] * columns
            blocks += np.swapaxes(weighted, 1, 2) @ columns
            slopes += (residual[:, None, :] @ columns)[:, 0]
        for k, g in enumerate(self.curve.group):
            place = slice(g * width, (g + 1) * width)
            precision[place, place] += blocks[k]
            gradient[place] += slopes[k]
            if table is not None:
                cross = sums[k].T @ changes[k]
                precision[place, n_curve:] -= cross
                precision[n_curve:, place] -= cross.T
        if table is not None:
            flat, mass = changes.reshape(-1, changes.shape[2]), members.ravel()
            curvature = (table.arrived + table.waited + np.tensordot(members, table.steps, 2)) * hazard * (1.0 - hazard)
            gradient[n_curve:] = mass @ flat + table.columns.T @ (
                table.arrived - (table.arrived + table.waited) * hazard
            )
            precision[n_curve:, n_curve:] += (table.columns.T * curvature) @ table.columns - (flat.T * mass) @ flat
            value += float(table.log_likelihood(psi)[0])
        prior = self.prior.expand(theta[:, None])
        return Expansion(
            self.power * value + float(prior.value[0]),
            self.power * gradient + prior.gradient[0],
            self.power * precision + prior.precision[0],
        )

    def _join(self, weight: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the weighted columns (K x n x width) of each row, summed over the classes of each group."""
        product = weight[:, :, None] * columns
        if len(self.curve.members) < len(product):
            product = np.stack([product[members].sum(axis=0) for members in self.curve.members])
        return np.ascontiguousarray(np.moveaxis(product, 0, 1)).reshape(product.shape[1], -1)

    def laplace(self, start: FloatArray) -> ConditionalGaussian:
        """Return the Gaussian at the mode, which is searched from `start`."""
        mode = find_mode(self.expand, start, min_gain=_ROUGH_GAIN)
        return ConditionalGaussian.from_mode(mode, self.main, self.nuisance, None)

    def sample(self, n: int) -> "ClassLikelihood":
        """Return the likelihood of a sample of the rows, raised to the power that makes up for the others."""
        step = max(1, len(self.rows.line) // n)
        return ClassLikelihood(self.curve, self.rows.select(slice(None, None, step)), self.table, self.power * step)


class ClassFit(NamedTuple):
    """Posterior draws of the parameters, with weights that sum to one."""

    theta: FloatArray  # n_draws x n_parameters
    weight: FloatArray
    log_evidence: float
    mode: FloatArray


def fit_classes(likelihood: ClassLikelihood, n_draws: int) -> ClassFit:
    """Fit the curve and the probabilities of missing labels.

    Parameters
    ----------
    likelihood : ClassLikelihood
        Likelihood and prior.
    n_draws : int
        Number of draws of a large set; small ones have 256 with importance weights.
    """
    is_large, start = likelihood.n_numbers > _MAX_NUMBERS, likelihood.prior.mean
    if is_large:
        n = _MAX_NUMBERS // (4 * likelihood.rows.line.shape[1])
        start = find_mode(likelihood.sample(n).expand, start, min_gain=0.1).theta
    if not is_large:
        mode = find_mode(likelihood.expand, start, min_gain=_FINE_GAIN)
        fitted: FittedModel = draw_around_mode(likelihood.model, likelihood, mode, _N_POINTS)
        return ClassFit(fitted.theta, fitted.weight, fitted.log_evidence, mode.theta)
    gaussian = likelihood.laplace(start)
    proposal = Proposal(likelihood.main, None, [gaussian], np.ones((2, likelihood.main.size)))
    u = np.clip(sobol_points(n_draws, proposal.n_axes, _SEED), 1e-9, 1.0 - 1e-9)
    return ClassFit(proposal.propose(u).theta.T, np.full(n_draws, 1.0 / n_draws), gaussian.log_integral, gaussian.mode)


def _log_sum_exp(x: FloatArray) -> FloatArray:
    peak = x.max(axis=0)
    return np.asarray(peak + np.log(np.exp(x - peak).sum(axis=0)))
