"""Nuisance parameters: conditional modes at many draws, and their integral by a Laplace approximation.

Nuisance parameters that no cell and no decision has in common are conditionally independent. They form components of m
parameters, usually one. Newton steps for all components and all draws are taken at once.
"""

from typing import NamedTuple

import numpy as np
import scipy  # its modules are loaded when they are first used

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.posterior.likelihood import LOG_2PI, Likelihood
from darkmetrics.posterior.tables import SparseMatrix, log_sum_exp

_MAX_STEPS = 12
# A step below this length, in standard deviations, is the last. The value is corrected for it to second order.
_MIN_STEP = 0.5
# Parameters move by at most this much in one step (log odds).
_MAX_MOVE = 3.0
# The curvature is at least this fraction of the curvature with known histories.
_MIN_CURVATURE = 0.05
_SEED = 5


class Marginal(NamedTuple):
    """The log posterior of the main parameters, with nuisance parameters integrated out."""

    log_posterior: FloatArray  # n_draws
    theta: FloatArray  # n_parameters x n_draws, nuisance parameters at their conditional modes
    precision: FloatArray  # m x m x n_components x n_draws, of the nuisance parameters


class NuisanceIntegral:
    """Integrates the nuisance parameters of a likelihood out."""

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        nuisance = likelihood.nuisance
        if not nuisance.size:
            return
        forms, histories = likelihood.forms, likelihood.histories
        self.first = forms.first_nuisance_form
        self.blocks = forms.blocks[forms.first_nuisance_block :]
        columns = likelihood.compute_linear_columns()[self.first :, nuisance]
        touches = scipy.sparse.csr_matrix((columns != 0.0).astype(np.float64))  # n_forms x n_nuisance
        self.main_matrix = histories.matrix[:, : self.first]
        self.matrix = scipy.sparse.csr_matrix(histories.matrix[:, self.first :])
        self.transposed = self.matrix.T.tocsr()
        self.common = histories.common[self.first :]
        # Norms depend on all parameters of their decision.
        by_norm = self._spread_to_norms(touches)
        by_history = (abs(self.matrix) @ by_norm).tocsr()
        index, self.slot = _find_components(by_norm, by_history, self._cell_of_history())
        self.n_components, self.m = int(index.max()) + 1, int(self.slot.max()) + 1
        self.position = np.full((self.m, self.n_components), -1, dtype=np.int64)
        self.position[self.slot, index] = nuisance
        # Padding of smaller components: parameters without data, prior N(0, 1), which leave the integral as it is.
        self.is_padding = self.position < 0
        prior = likelihood.prior
        self.prior_mean = np.where(self.is_padding, 0.0, prior.mean[self.position])[:, :, None]
        diagonal = np.diag(prior.precision)[self.position]
        self.prior_precision = np.where(self.is_padding, 1.0, diagonal)[:, :, None]
        self.columns = np.zeros((self.m, columns.shape[0]))
        rows, parameters = np.nonzero(columns)
        self.columns[self.slot[parameters], rows] = columns[rows, parameters]
        self.component = _last_component(by_norm, index)
        self.by_form = _sum_by_component(self.component, self.n_components)
        self.by_history = _sum_by_component(_last_component(by_history, index), self.n_components)

    def _spread_to_norms(self, touches: SparseMatrix) -> SparseMatrix:
        rows = np.arange(touches.shape[0])
        target, source = [rows], [rows]
        for block in self.blocks:
            norm = np.arange(block.norm.start, block.norm.stop) - self.first
            eta = np.arange(block.eta.start, block.eta.stop) - self.first
            target += [np.tile(norm, block.shape[0])]
            source += [eta]
        index = np.concatenate(target), np.concatenate(source)
        spread = scipy.sparse.csr_matrix((np.ones(index[0].size), index), (rows.size, rows.size))
        return (spread @ touches).tocsr()

    def _cell_of_history(self) -> IntArray:
        groups, start, cells = self.likelihood.histories.groups, 0, []
        for group in groups:
            cells.append(np.tile(start + np.arange(group.count.size), group.n_histories))
            start += group.count.size
        return np.concatenate([np.zeros(0, dtype=np.int64), *cells])

    def integrate(self, theta: FloatArray, min_step: float = _MIN_STEP) -> Marginal:
        """Integrate at each column of `theta`, which has starting values of the nuisance parameters.

        Newton steps end below `min_step` standard deviations.
        """
        likelihood = self.likelihood
        if not likelihood.nuisance.size:
            return Marginal(likelihood.log_posterior(theta), theta, np.ones((0, 0, 0, theta.shape[1])))
        size = likelihood.batch_size
        batches = [self._integrate_batch(theta[:, i : i + size], min_step) for i in range(0, theta.shape[1], size)]
        return Marginal(*(np.concatenate(values, axis=-1) for values in zip(*batches, strict=True)))

    def _integrate_batch(self, theta: FloatArray, min_step: float) -> Marginal:
        likelihood, theta = self.likelihood, theta.copy()
        is_main = np.zeros(len(theta), dtype=np.bool_)
        is_main[likelihood.main] = True
        fixed = np.where(is_main[:, None], theta, 0.0)
        forms = likelihood.forms.evaluate(fixed)
        eta = forms[self.first :]
        value = likelihood.histories.common[: self.first] @ forms[: self.first]
        log_weight = self.main_matrix @ forms[: self.first]
        u = np.where(self.is_padding[:, :, None], 0.0, theta[self.position])
        conditional, gradient, precision = self._expand(u, eta, log_weight)
        step = _solve(precision, gradient)
        for _ in range(_MAX_STEPS):
            if float(np.abs(step * np.sqrt(precision[range(self.m), range(self.m)])).max()) < min_step:
                break
            u = u + np.clip(step, -_MAX_MOVE, _MAX_MOVE)
            conditional, gradient, precision = self._expand(u, eta, log_weight)
            step = _solve(precision, gradient)
        value = value + conditional + 0.5 * (gradient * step).sum(axis=(0, 1))
        u = u + np.clip(step, -_MAX_MOVE, _MAX_MOVE)
        value -= 0.5 * _log_determinant(precision).sum(axis=0)
        value += 0.5 * likelihood.nuisance.size * LOG_2PI
        theta[self.position[~self.is_padding]] = u[~self.is_padding]
        theta_prior = likelihood.prior.log_density(np.where(is_main[:, None], theta, likelihood.prior.mean[:, None]))
        return Marginal(value + theta_prior, theta, precision)

    def _expand(
        self, u: FloatArray, eta: FloatArray, log_weight: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log likelihood and prior of the nuisance parameters `u`, the gradient, and minus the Hessian."""
        deviation = u - self.prior_mean
        gradient = -self.prior_precision * deviation
        value = -0.5 * (self.prior_precision * deviation**2).sum(axis=(0, 1))
        forms, slopes = eta.copy(), np.repeat(self.columns[:, :, None], eta.shape[1], axis=2)
        for j in range(self.m):
            forms += self.columns[j][:, None] * u[j][self.component]
        spreads = []
        for block in self.blocks:
            norm, linear = _shift(block.norm, self.first), _shift(block.eta, self.first)
            log_odds = forms[linear].reshape(*block.shape, -1)
            block.compute_norm(log_odds, forms[norm])
            p = np.exp(log_odds - forms[norm])
            mean = (p * slopes[:, linear].reshape(self.m, *p.shape)).sum(axis=1)
            slopes[:, norm] = mean
            spreads.append((norm, linear, p, mean))
        values = log_weight + self.matrix @ forms
        weight, centered = np.empty_like(values), np.stack([self.matrix @ slope for slope in slopes])
        for group in self.likelihood.histories.groups:
            log_terms = group.split(values)
            log_sum = log_sum_exp(log_terms)
            w = np.exp(log_terms - log_sum)
            value = value + group.count @ log_sum
            weight[group.rows] = (group.count[:, None] * w).reshape(-1, w.shape[2])
            for slope in centered:
                terms = group.split(slope)
                slope[group.rows] = (terms - (w * terms).sum(axis=0)).reshape(-1, w.shape[2])
        value = value + self.common @ forms
        coefficient = self.common[:, None] + self.transposed @ weight
        complete = np.empty((self.m, self.m, self.n_components, u.shape[2]))
        curvature = complete.copy()
        for j in range(self.m):
            gradient[j] += self.by_form @ (coefficient * slopes[j])
            for i in range(j + 1):
                terms = np.zeros_like(forms)
                for norm, linear, p, mean in spreads:
                    pair = (p * (slopes[j, linear] * slopes[i, linear]).reshape(p.shape)).sum(axis=0)
                    terms[norm] = -coefficient[norm] * (pair - mean[j] * mean[i])
                complete[j, i] = complete[i, j] = self.by_form @ terms
                curvature[j, i] = complete[j, i] - self.by_history @ (weight * centered[j] * centered[i])
                curvature[i, j] = curvature[j, i]
        for j in range(self.m):
            complete[j, j] += self.prior_precision[j]
            curvature[j, j] += self.prior_precision[j]
        return value, gradient, _make_positive(curvature, complete)

    def draw(self, marginal: Marginal) -> FloatArray:
        """Return `theta` with nuisance parameters drawn from their conditional Gaussians."""
        theta = marginal.theta
        if not self.likelihood.nuisance.size:
            return theta
        shape = self.m, self.n_components, theta.shape[1]
        z = np.moveaxis(np.random.default_rng(_SEED).standard_normal(shape), 0, -1)
        root = np.linalg.cholesky(np.moveaxis(marginal.precision, (0, 1), (-2, -1)))
        deviation = np.moveaxis(np.linalg.solve(np.swapaxes(root, -1, -2), z[..., None])[..., 0], -1, 0)
        theta = theta.copy()
        theta[self.position[~self.is_padding]] += deviation[~self.is_padding]
        return theta


def _shift(rows: slice, start: int) -> slice:
    return slice(rows.start - start, rows.stop - start)


def _find_components(by_form: SparseMatrix, by_history: SparseMatrix, cell: IntArray) -> tuple[IntArray, IntArray]:
    """Return the component of each nuisance parameter, and its number within the component."""
    histories = np.arange(cell.size)
    cells = scipy.sparse.csr_matrix((np.ones(cell.size), (cell, histories)), (int(cell.max(initial=-1)) + 1, cell.size))
    linked = scipy.sparse.vstack([by_form, cells @ by_history]).tocsr()
    _, index = scipy.sparse.csgraph.connected_components(linked.T @ linked, directed=False)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(int(index.max()) + 1))
    slot = np.empty(index.size, dtype=np.int64)
    slot[order] = np.arange(index.size) - starts[index[order]]
    return index.astype(np.int64), slot


def _last_component(touches: SparseMatrix, index: IntArray) -> IntArray:
    """Return the component that each row touches; 0 if none, where all coefficients are 0."""
    component = np.zeros(touches.shape[0], dtype=np.int64)
    row, parameter = touches.nonzero()
    component[row] = index[parameter]
    return component


def _sum_by_component(component: IntArray, n: int) -> SparseMatrix:
    rows = np.arange(component.size)
    return scipy.sparse.csr_matrix((np.ones(component.size), (component, rows)), (n, component.size))


def _solve(precision: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return Newton steps of all components."""
    if len(precision) == 1:
        return np.asarray(gradient / precision[0])
    blocks = np.moveaxis(precision, (0, 1), (-2, -1))
    step = np.linalg.solve(blocks, np.moveaxis(gradient, 0, -1)[..., None])
    return np.asarray(np.moveaxis(step[..., 0], -1, 0))


def _log_determinant(precision: FloatArray) -> FloatArray:
    if len(precision) == 1:
        return np.asarray(np.log(precision[0, 0]))
    return np.asarray(np.linalg.slogdet(np.moveaxis(precision, (0, 1), (-2, -1)))[1])


def _make_positive(curvature: FloatArray, complete: FloatArray) -> FloatArray:
    """Return curvatures that are at least a fraction of the curvature with known histories."""
    if len(curvature) == 1:
        return np.asarray(np.maximum(curvature, _MIN_CURVATURE * complete))
    root = np.linalg.cholesky(np.moveaxis(complete, (0, 1), (-2, -1)))
    inverse = np.linalg.inv(root)
    scaled = inverse @ np.moveaxis(curvature, (0, 1), (-2, -1)) @ np.swapaxes(inverse, -1, -2)
    values, vectors = np.linalg.eigh(scaled)
    half: FloatArray = root @ vectors * np.sqrt(np.maximum(values, _MIN_CURVATURE))[..., None, :]
    return np.asarray(np.moveaxis(half @ np.swapaxes(half, -1, -2), (-2, -1), (0, 1)))
