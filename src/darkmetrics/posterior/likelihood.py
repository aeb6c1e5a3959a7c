"""Log posterior of a model: its values at many points, and its exact gradient and Hessian at one point.

With w_h the probability of a history given the observation, the derivatives are the same for every mechanism:

    gradient = mean of the gradients of l_h over the histories, with weights w_h
    Hessian  = mean of the Hessians of l_h  +  covariance of the gradients of l_h
"""

from functools import cached_property

import numpy as np
import scipy  # its modules are loaded when they are first used

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.draws import Expansion
from darkmetrics.posterior.model import Model
from darkmetrics.posterior.tables import HistoryGroup, compile_cells, log_sum_exp

LOG_2PI = float(np.log(2.0 * np.pi))
# Draws are evaluated in batches of about this many forms, which fit into the processor's cache.
_BATCH = 1 << 16


class Prior:
    """Independent Cauchy priors and a joint Gaussian prior of all other parameters."""

    def __init__(self, model: Model) -> None:
        self.mean = np.concatenate(model.means)
        self.precision = scipy.linalg.block_diag(*model.precisions)
        self.cauchy = np.flatnonzero(model.is_cauchy)
        self._gaussian = np.flatnonzero(~np.array(model.is_cauchy, dtype=np.bool_))
        self.scale = np.diag(self.precision)[self.cauchy] ** -0.5
        self._block = self.precision[np.ix_(self._gaussian, self._gaussian)]
        self._log_constant = 0.5 * float(np.linalg.slogdet(self._block)[1]) - 0.5 * self._gaussian.size * LOG_2PI
        self._log_constant -= float(np.log(np.pi * self.scale).sum())

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Return the log density of each column of `theta`."""
        deviation = theta - self.mean[:, None]
        gaussian = deviation[self._gaussian]
        u = deviation[self.cauchy] / self.scale[:, None]
        value = -0.5 * np.einsum("ij,ij->j", gaussian, self._block @ gaussian) - np.log1p(u**2).sum(axis=0)
        return np.asarray(value + self._log_constant)

    def expand(self, theta: FloatArray) -> Expansion:
        """Return the log density at one point with its derivatives."""
        deviation = theta - self.mean
        gradient, precision = -self.precision @ deviation, self.precision
        if self.cauchy.size:
            precision, u = precision.copy(), deviation[self.cauchy] / self.scale
            gradient[self.cauchy] = -2.0 * u / (self.scale * (1.0 + u**2))
            precision[self.cauchy, self.cauchy] = 2.0 * (1.0 - u**2) / (self.scale * (1.0 + u**2)) ** 2
        return Expansion(float(self.log_density(theta[:, None])[0]), gradient, precision)


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

    @cached_property
    def _slopes(self) -> FloatArray:
        return self.compute_linear_columns()

    def compute_linear_columns(self) -> FloatArray:
        """Return the derivatives of all linear forms (n_forms x n_parameters); rows of norms are 0."""
        slopes = np.zeros((self.forms.size, self.prior.mean.size))
        for block in self.forms.blocks:
            slopes[block.eta, block.indices] = block.flat_columns
        return slopes

    def expand(self, theta: FloatArray) -> Expansion:
        """Return the log posterior at one point with its derivatives."""
        table, (value, gradient, precision) = self.histories, self.prior.expand(theta)
        precision = precision.copy()
        forms, coefficient = self.forms.evaluate(theta), table.common
        value += float(coefficient @ forms)
        slopes = self._slopes if table.groups else None  # rows of norms are overwritten below
        curvatures = []
        for block in self.forms.blocks:
            p = np.exp(forms[block.eta].reshape(block.shape) - forms[block.norm])
            mean = (p[:, :, None] * block.columns).sum(axis=0) if len(p) > 1 else p[0][:, None] * block.columns[0]
            curvatures.append((block, p, mean))
            if slopes is not None:
                slopes[block.norm, block.indices] = mean
        if slopes is not None:
            log_weight, gradients = table.matrix @ forms, table.matrix @ slopes
            weight = np.empty(table.n_histories)
            for group in table.groups:
                value += self._expand_group(group, log_weight, gradients, weight, precision)
            coefficient = coefficient + table.transposed @ weight
        for block, p, mean in curvatures:
            count = -coefficient[block.norm]
            columns = block.flat_columns
            expected = count * p
            gradient[block.indices] += (coefficient[block.eta] - expected.ravel()) @ columns
            if len(p) == 1:
                curvature = (columns.T * (expected[0] * np.exp(-forms[block.norm]))) @ columns
            else:
                curvature = (columns.T * expected.ravel()) @ columns - (mean.T * count) @ mean
            precision[np.ix_(block.indices, block.indices)] += curvature
        return Expansion(value, gradient, precision)

    @staticmethod
    def _expand_group(
        group: HistoryGroup, log_weight: FloatArray, gradients: FloatArray, weight: FloatArray, precision: FloatArray
    ) -> float:
        """Return the log likelihood of a group; fill in `weight` and subtract its curvature from `precision`."""
        values, gradient = group.split(log_weight), group.split(gradients)
        log_sum = log_sum_exp(values)
        w = np.exp(values - log_sum)
        weight[group.rows] = (group.count * w).ravel()
        if group.n_histories == 2:
            difference = gradient[1] - gradient[0]
            precision -= (difference.T * (group.count * w[0] * w[1])) @ difference
        else:
            centered = gradient - (w[:, :, None] * gradient).sum(axis=0)
            flat = centered.reshape(-1, centered.shape[2])
            precision -= (flat.T * weight[group.rows]) @ flat
        return float(group.count @ log_sum)
