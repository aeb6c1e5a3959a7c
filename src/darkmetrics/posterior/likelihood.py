"""Log posterior of a model: its values at many points, and its exact gradient and Hessian at one point.

With w_h the probability of a history given the observation, the derivatives are the same for every mechanism:

    gradient = mean of the gradients of l_h over the histories, with weights w_h
    Hessian  = mean of the Hessians of l_h  +  covariance of the gradients of l_h
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.posterior.model import Model
from darkmetrics.posterior.tables import HistoryGroup, Matrix, compile_cells, log_sum_exp

LOG_2PI = float(np.log(2.0 * np.pi))
# Draws are evaluated in batches of about this many forms, which fit into the processor's cache.
_BATCH = 1 << 16


class Prior:
    """Independent Cauchy priors and a joint Gaussian prior of all other parameters."""

    def __init__(self, model: Model) -> None:
        self.mean = np.concatenate(model.means)
        self.precision, stop = np.zeros((self.mean.size, self.mean.size)), 0
        for block in model.precisions:
            start, stop = stop, stop + len(block)
            self.precision[start:stop, start:stop] = block
        self.cauchy = np.flatnonzero(model.is_cauchy)
        # A flat prior (precision 0) has no constant.
        gaussian = np.flatnonzero(~np.array(model.is_cauchy, dtype=np.bool_) & (self.precision.diagonal() > 0.0))
        self.scale = np.diag(self.precision)[self.cauchy] ** -0.5
        self._gaussian_precision = self.precision.copy()
        self._gaussian_precision[self.cauchy, self.cauchy] = 0.0
        block = self.precision[gaussian[:, None], gaussian]
        self._log_constant = 0.5 * float(np.linalg.slogdet(block)[1]) - 0.5 * gaussian.size * LOG_2PI
        self._log_constant -= float(np.log(np.pi * self.scale).sum())

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Return the log density of each column of `theta`."""
        deviation = theta - self.mean[:, None]
        return self._log_density(deviation, self._gaussian_precision @ deviation)

    def _log_density(self, deviation: FloatArray, scaled: FloatArray) -> FloatArray:
        value = self._log_constant - 0.5 * np.einsum("ij,ij->j", deviation, scaled)
        if self.cauchy.size:
            value -= np.log1p((deviation[self.cauchy] / self.scale[:, None]) ** 2).sum(axis=0)
        return np.asarray(value)

    def expand(self, theta: FloatArray) -> "Expansions":
        """Return the log density at each column of `theta` with its derivatives."""
        deviation = theta - self.mean[:, None]
        scaled = self._gaussian_precision @ deviation
        gradient, precision = -scaled.T, np.empty((theta.shape[1], *self.precision.shape))
        precision[:] = self._gaussian_precision
        if self.cauchy.size:
            u = (deviation[self.cauchy] / self.scale[:, None]).T
            denominator = self.scale * (1.0 + u**2)
            gradient[:, self.cauchy] = -2.0 * u / denominator
            precision[:, self.cauchy, self.cauchy] = 2.0 * (1.0 - u**2) / denominator**2
        return Expansions(self._log_density(deviation, scaled), gradient, precision)


class Expansion(NamedTuple):
    """A log posterior at one point to second order; `precision` is minus its Hessian."""

    value: float
    gradient: FloatArray
    precision: FloatArray


class Expansions(NamedTuple):
    """A log posterior at several points to second order; `precision` is minus its Hessian."""

    value: FloatArray  # n_points
    gradient: FloatArray  # n_points x n_parameters
    precision: FloatArray  # n_points x n_parameters x n_parameters


class Likelihood:
    """Likelihood of the cells of a model, raised to a power, and the prior."""

    def __init__(self, model: Model, power: float = 1.0) -> None:
        blocks = [cells.select(np.flatnonzero(cells.count > 0.0)) for cells in model.cells if (cells.count > 0.0).any()]
        self.prior = Prior(model)
        self.forms, self.histories = compile_cells(model, blocks, power)
        is_nuisance = np.array(model.is_nuisance, dtype=np.bool_)
        self.main, self.nuisance = np.flatnonzero(~is_nuisance), np.flatnonzero(is_nuisance)

    @property
    def batch_size(self) -> int:
        """Number of draws to evaluate at once."""
        return max(16, _BATCH // max(1, self.forms.size))

    def log_posterior(self, theta: FloatArray) -> FloatArray:
        """Return the log of likelihood times prior at each column of `theta` (n_parameters x n_draws)."""
        starts = range(0, theta.shape[1], self.batch_size)
        values = [self._log_likelihood(theta[:, i : i + self.batch_size]) for i in starts]
        return np.asarray(np.concatenate(values) + self.prior.log_density(theta))

    def _log_likelihood(self, theta: FloatArray) -> FloatArray:
        forms = self.forms.evaluate(theta)
        value = self.histories.common @ forms
        if self.histories.groups:
            log_weight = self.histories.matrix @ forms
            for group in self.histories.groups:
                value = value + group.count @ log_sum_exp(group.split(log_weight))
        return np.asarray(value)

    def compute_linear_columns(self) -> FloatArray:
        """Return the derivatives of all linear forms (n_forms x n_parameters); rows of norms are 0."""
        slopes = np.zeros((self.forms.size, self.prior.mean.size))
        for block in self.forms.blocks:
            slopes[block.eta, block.indices] = block.flat_columns
        return slopes

    def expand(self, theta: FloatArray) -> Expansion:
        """Return the log posterior at one point with its derivatives."""
        value, gradient, precision = self.expand_points(theta[:, None])
        return Expansion(float(value[0]), gradient[0], precision[0])

    def expand_points(self, theta: FloatArray) -> Expansions:
        """Return the log posterior at each column of `theta` with its derivatives."""
        table, (value, gradient, precision) = self.histories, self.prior.expand(theta)
        forms, coefficient = self.forms.evaluate(theta), table.common[:, None]
        value = value + table.common @ forms
        weights = [
            np.exp(forms[block.eta].reshape(*block.shape, -1) - forms[block.norm]) for block in self.forms.blocks
        ]
        if table.groups:
            log_weight, gradients = table.matrix @ forms, self._expand_histories(weights)
            weight = np.empty(log_weight.shape)
            for group in table.groups:
                value += self._expand_group(group, log_weight, gradients, weight, precision)
            coefficient = coefficient + table.transposed @ weight
        for block, p in zip(self.forms.blocks, weights, strict=True):
            count, columns = -coefficient[block.norm], block.flat_columns
            expected = count * p
            residual = coefficient[block.eta] - expected.reshape(len(columns), -1)
            gradient[:, block.indices] += residual.T @ columns
            if len(p) == 1:
                curvature = _weigh_products(columns, expected[0] * np.exp(-forms[block.norm]))
            else:
                curvature = _weigh_products(columns, expected.reshape(len(columns), -1))
                curvature -= _weigh_products(np.moveaxis(_average(block.columns, p), 2, 0), count)
            precision[:, block.indices[:, None], block.indices] += curvature
        return Expansions(value, gradient, precision)

    @cached_property
    def _history_slopes(self) -> tuple[FloatArray, Matrix, list[tuple[IntArray, IntArray]]]:
        """Derivatives of the linear forms of histories; columns of the history matrix that are norms; their decisions.

        The last result has the decisions with such norms, and their rows among these norms, for each block.
        """
        matrix, norms, decisions, n_norms = self.histories.matrix, [], [], 0
        used = np.asarray(abs(matrix).sum(axis=0)).ravel() > 0.0
        for block in self.forms.blocks:
            selected = np.flatnonzero(used[block.norm])
            norms.append(block.norm.start + selected)
            decisions.append((selected, n_norms + np.arange(selected.size)))
            n_norms += selected.size
        return np.asarray(matrix @ self.compute_linear_columns()), matrix[:, np.concatenate(norms)], decisions

    def _expand_histories(self, weights: list[FloatArray]) -> FloatArray:
        """Return the gradients of the log weights of histories (n_histories x n_points x n_parameters)."""
        slopes, columns, decisions = self._history_slopes
        norms = np.zeros((columns.shape[1], weights[0].shape[2], slopes.shape[1]))
        for block, p, (selected, rows) in zip(self.forms.blocks, weights, decisions, strict=True):
            if selected.size:
                norms[rows[:, None], :, block.indices] = _average(block.columns[:, selected], p[:, selected])
        product = columns @ norms.reshape(len(norms), norms.shape[1] * norms.shape[2])
        return np.asarray(slopes[:, None] + product.reshape(len(slopes), *norms.shape[1:]))

    @staticmethod
    def _expand_group(
        group: HistoryGroup, log_weight: FloatArray, gradients: FloatArray, weight: FloatArray, precision: FloatArray
    ) -> FloatArray:
        """Return the log likelihood of a group; fill in `weight` and subtract its curvature from `precision`."""
        values, gradient = group.split(log_weight), group.split(gradients)
        log_sum = log_sum_exp(values)
        w = np.exp(values - log_sum)
        count = group.count[:, None]
        weight[group.rows] = (count * w).reshape(-1, w.shape[2])
        if group.n_histories == 2:
            precision -= _weigh_products(np.moveaxis(gradient[1] - gradient[0], 1, 0), count * w[0] * w[1])
        else:
            centered = gradient - (w[:, :, :, None] * gradient).sum(axis=0)
            flat = centered.reshape(-1, *centered.shape[2:])
            precision -= _weigh_products(np.moveaxis(flat, 1, 0), weight[group.rows])
        return np.asarray(group.count @ log_sum)


def _average(columns: FloatArray, p: FloatArray) -> FloatArray:
    """Return the mean columns of decisions at each point (n_decisions x width x n_points)."""
    return np.asarray((p[:, :, None] * columns[:, :, :, None]).sum(axis=0))


def _weigh_products(columns: FloatArray, weight: FloatArray) -> FloatArray:
    """Return weighted sums over rows of the products of columns, at each point.

    Parameters
    ----------
    columns : array (n_rows, width) or (n_points, n_rows, width)
        Columns, common to all points or not.
    weight : array (n_rows, n_points)
        Weights.
    """
    return np.asarray(np.swapaxes(columns, -1, -2) * weight.T[:, None] @ columns)
