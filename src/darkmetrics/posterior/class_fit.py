"""Fit of the curve of several classes, and of the probabilities of missing labels by class.

A labeled row contributes eta_iy - lse(eta_i), with lse the log of the sum of exponentials. A missing row contributes
lse(eta_i + o_i) - lse(eta_i), with o_ik the log probability that a row of class k has no label: nothing if it is the
same for all classes. `MissingTable` declares these probabilities, by class and bin of the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.sobol import sobol_points
from darkmetrics.posterior.class_curve import ClassCurve, evaluate_curve
from darkmetrics.posterior.fit import FittedModel, draw_around_mode
from darkmetrics.posterior.likelihood import Expansion, Expansions, Likelihood, Prior
from darkmetrics.posterior.mode import find_mode
from darkmetrics.posterior.model import Model
from darkmetrics.posterior.proposal import ConditionalGaussian, Proposal
from darkmetrics.posterior.tables import log_sum_exp, softplus

# Larger sets start from the mode of a sample, and their draws are those of the Gaussian at the mode: with so many rows
# importance weights would change nothing, and take longest.
_MAX_NUMBERS = 1 << 17
# Numbers that are computed at once.
_BATCH = 1 << 18
_N_POINTS, _SEED = 256, 9
# Each sample of a large set has this many times the rows of the one before.
_GROWTH = 8
# The search for a mode ends where a step raises the log posterior by less: of large sets, and of small ones.
_ROUGH_GAIN, _FINE_GAIN = 0.5, 1e-6


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows that a curve is fitted to.

    Attributes
    ----------
    line : array (n, K)
        Log scores.
    decision : array of int (n,)
        Predicted classes.
    rank : array (n,)
        Ranks of the predicted scores, from -1 to 1.
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
    rank: FloatArray
    labeled: FloatArray
    missing: FloatArray
    bins: IntArray
    more: FloatArray | None = None

    def select(self, rows: IntArray | slice) -> "ClassRows":
        """Return some of the rows."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        selected: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return ClassRows(**selected)


@dataclass(frozen=True, eq=False)
class MissingTable:
    """Probabilities of missing labels, from binary decisions with the log odds `columns @ psi + offset`.

    Attributes
    ----------
    columns : array (n_decisions, n_parameters)
        Columns of the decisions "the label arrives".
    offset : array (n_decisions,)
        Constants of the log odds.
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
    offset: FloatArray
    arrived: FloatArray
    waited: FloatArray
    steps: FloatArray
    mean: FloatArray
    sd: FloatArray
    cauchy: BoolArray

    def log_odds(self, psi: FloatArray) -> FloatArray:
        """Return the log odds of the decisions for columns of parameters (n_decisions, n_draws)."""
        return self.columns @ psi + self.offset[:, None]

    def log_missing(self, psi: FloatArray) -> FloatArray:
        """Return log P(no label | class, bin) for columns of parameters (K, n_bins, n_draws)."""
        return np.asarray(-(self.steps @ softplus(self.log_odds(psi))))

    def log_likelihood(self, psi: FloatArray) -> FloatArray:
        """Return the log likelihood of the decisions of labeled rows, for columns of parameters."""
        log_odds = self.log_odds(psi)
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
            yield rows, self.curve.columns(rows.line, rows.decision, rows.rank, rows.more)

    def log_posterior(self, theta: FloatArray) -> FloatArray:
        curve = np.moveaxis(theta[: self.n_curve].reshape(*self.curve.shape, -1), 1, 2)
        value, psi = np.zeros(theta.shape[1]), theta[self.n_curve :]
        log_missing = None if self.table is None else np.swapaxes(self.table.log_missing(psi), 1, 2)
        for rows, columns in self._batches(theta.shape[1]):
            eta = evaluate_curve(self.curve, rows.line, columns, curve)
            total = rows.labeled.sum(axis=1) + rows.missing
            value += np.einsum("ik,ksi->s", rows.labeled, eta) - log_sum_exp(eta) @ total
            if log_missing is not None:
                value += log_sum_exp(eta + log_missing[:, :, rows.bins]) @ rows.missing
        if self.table is not None:
            value += self.table.log_likelihood(psi)
        return self.power * value + self.prior.log_density(theta)

    def expand_points(self, theta: FloatArray) -> Expansions:
        value, gradient, precision = zip(*(self.expand(point) for point in theta.T), strict=True)
        return Expansions(np.array(value), np.array(gradient), np.array(precision))

    def expand(self, theta: FloatArray) -> Expansion:
        n_groups, width = self.curve.shape
        n_curve, n_classes = self.n_curve, self.rows.line.shape[1]
        curve, value = theta[:n_curve].reshape(n_groups, 1, width), 0.0
        gradient, precision = np.zeros(theta.size), np.zeros((theta.size, theta.size))
        blocks, slopes = np.zeros((n_classes, width, width)), np.zeros((n_classes, width))
        missing = None if self.table is None else _MissingTerms(self.table, self.curve, theta[n_curve:])
        for rows, columns in self._batches():
            eta = evaluate_curve(self.curve, rows.line, columns, curve)[:, 0]
            total = rows.labeled.sum(axis=1) + rows.missing
            log_sum = log_sum_exp(eta)
            q = np.exp(eta - log_sum)
            value += float(np.einsum("ik,ki->", rows.labeled, eta) - total @ log_sum)
            coefficient = total * q
            residual = rows.labeled.T - coefficient
            z = _join(self.curve, q * np.sqrt(total), columns)
            precision[:n_curve, :n_curve] -= z @ z.T
            if missing is not None:
                expected = missing.add_rows(rows, eta, columns, precision)
                residual += expected
                coefficient -= expected
            blocks += (coefficient[:, None] * columns) @ np.swapaxes(columns, 1, 2)
            slopes += (columns @ residual[:, :, None])[:, :, 0]
        for k, g in enumerate(self.curve.group):
            own = slice(g * width, (g + 1) * width)
            precision[own, own] += blocks[k]
            gradient[own] += slopes[k]
        if missing is not None:
            value += missing.finish(gradient, precision)
        prior = self.prior.expand(theta[:, None])
        return Expansion(
            self.power * value + float(prior.value[0]),
            self.power * gradient + prior.gradient[0],
            self.power * precision + prior.precision[0],
        )

    def laplace(self, start: FloatArray) -> ConditionalGaussian:
        """Return the Gaussian at the mode, which is searched from `start`."""
        mode = find_mode(self.expand, start, min_gain=_ROUGH_GAIN)
        return ConditionalGaussian.from_mode(mode, self.main, self.nuisance, None)

    def sample(self, n: int) -> "ClassLikelihood":
        """Return the likelihood of a sample of the rows, raised to the power that makes up for the others."""
        step = max(1, len(self.rows.line) // n)
        rows, table = self.rows.select(slice(None, None, step)), self.table
        if table is not None:
            table = replace(table, arrived=table.arrived / step, waited=table.waited / step)
        return ClassLikelihood(self.curve, rows, table, self.power * step)


class _MissingTerms:
    """What rows without a label and decisions of a table add to the log likelihood at one point."""

    def __init__(self, table: MissingTable, curve: ClassCurve, psi: FloatArray) -> None:
        self.table, self.curve, self.psi = table, curve, psi[:, None]
        self.log_missing = table.log_missing(self.psi)[:, :, 0]
        self.hazard: FloatArray = expit(table.log_odds(self.psi))[:, 0]
        # Derivatives of the log probabilities of a missing label, K x bins x parameters.
        self.changes: FloatArray = -(table.steps * self.hazard) @ table.columns
        # Expected numbers of missing rows of each class and bin, and sums of their columns.
        self.members = np.zeros(self.log_missing.shape)
        self.sums = np.zeros((*self.log_missing.shape, curve.shape[1]))
        self.value = 0.0

    def add_rows(self, rows: ClassRows, eta: FloatArray, columns: FloatArray, precision: FloatArray) -> FloatArray:
        """Add a batch of rows; return how many of the missing ones are expected in each class (K x n)."""
        eta = eta + self.log_missing[:, rows.bins]
        log_sum = log_sum_exp(eta)
        w = np.exp(eta - log_sum)
        self.value += float(rows.missing @ log_sum)
        expected = np.asarray(rows.missing * w)
        w *= np.sqrt(rows.missing)
        if self.changes.shape[1] == 1:
            change = self.changes[:, 0].T @ w
        else:
            change = np.einsum("ki,kip->pi", w, self.changes[:, rows.bins])
        z = np.concatenate([_join(self.curve, w, columns), change])
        precision += z @ z.T
        in_bin = (rows.bins[:, None] == np.arange(self.log_missing.shape[1])).astype(np.float64)
        self.members += expected @ in_bin
        self.sums += np.swapaxes((expected[:, None] * columns) @ in_bin, 1, 2)
        return expected

    def finish(self, gradient: FloatArray, precision: FloatArray) -> float:
        """Add the derivatives by the parameters of the table; return the log likelihood."""
        table, width = self.table, self.curve.shape[1]
        n_curve = gradient.size - self.psi.size
        for k, g in enumerate(self.curve.group):
            own, cross = slice(g * width, (g + 1) * width), self.sums[k].T @ self.changes[k]
            precision[own, n_curve:] -= cross
            precision[n_curve:, own] -= cross.T
        flat, mass = self.changes.reshape(-1, self.psi.size), self.members.ravel()
        decided = table.arrived + table.waited
        curvature = decided + np.tensordot(self.members, table.steps, 2)
        curvature *= self.hazard * (1.0 - self.hazard)
        gradient[n_curve:] = mass @ flat + table.columns.T @ (table.arrived - decided * self.hazard)
        precision[n_curve:, n_curve:] += (table.columns.T * curvature) @ table.columns - (flat.T * mass) @ flat
        return self.value + float(table.log_likelihood(self.psi)[0])


def _join(curve: ClassCurve, weight: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the weighted columns of each row, summed over the classes of each group (parameters x n)."""
    product: FloatArray = weight[:, None] * columns
    if len(curve.members) < len(product):
        product = np.stack([product[members].sum(axis=0) for members in curve.members])
    return product.reshape(-1, product.shape[2])


class ClassFit(NamedTuple):
    """Posterior draws of the parameters, with weights that sum to one."""

    theta: FloatArray  # n_draws x n_parameters
    weight: FloatArray
    log_evidence: float
    mode: FloatArray


def fit_classes(likelihood: ClassLikelihood, n_draws: int, start: FloatArray | None = None) -> ClassFit:
    """Fit the curve and the probabilities of missing labels.

    Parameters
    ----------
    likelihood : ClassLikelihood
        Likelihood and prior.
    n_draws : int
        Number of draws of a large set; small ones have 256 with importance weights.
    start : array, optional
        Parameters of a curve near the mode.
    """
    theta = likelihood.prior.mean.copy()
    if start is not None:
        theta[: start.size] = start
    if likelihood.n_numbers <= _MAX_NUMBERS:
        mode = find_mode(likelihood.expand, theta, min_gain=_FINE_GAIN)
        fitted: FittedModel = draw_around_mode(likelihood.model, likelihood, mode, _N_POINTS)
        return ClassFit(fitted.theta, fitted.weight, fitted.log_evidence, mode.theta)
    n_rows = len(likelihood.rows.line)
    sizes = [_MAX_NUMBERS // (4 * likelihood.rows.line.shape[1])]
    while _GROWTH * sizes[-1] < n_rows:
        sizes.append(_GROWTH * sizes[-1])
    for n in sizes if start is None else sizes[-1:]:
        theta = find_mode(likelihood.sample(n).expand, theta, min_gain=_ROUGH_GAIN * n_rows / n).theta
    gaussian = likelihood.laplace(theta)
    proposal = Proposal(likelihood.main, None, [gaussian], np.ones((2, likelihood.main.size)))
    u = np.clip(sobol_points(n_draws, proposal.n_axes, _SEED), 1e-9, 1.0 - 1e-9)
    return ClassFit(proposal.propose(u).theta.T, np.full(n_draws, 1.0 / n_draws), gaussian.log_integral, gaussian.mode)
