"""PEMI-Gauss, Algorithm 2 of the paper: a Gaussian with the mean and variance of a ratio of sums."""

from dataclasses import dataclass
from functools import partial, singledispatch
from typing import ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc.ranks import auc_moments
from darkmetrics.distributions import MetricDistribution, Normal, Undefined, mix
from darkmetrics.distributions.choice import certain_distribution, describe_result, exact_atoms
from darkmetrics.distributions.expansion import compute_derivatives, compute_sum_cumulants
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.functionals import CountFunctional, LinearFunctional
from darkmetrics.distributions.problem import Cells, Problem
from darkmetrics.distributions.rank_functionals import RankFunctional
from darkmetrics.exceptions import MethodError
from darkmetrics.methods.base import Method
from darkmetrics.methods.proofs import Prover
from darkmetrics.wording import setting

# Rounding error of a difference of nearly equal terms, as a fraction of the terms.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Gaussian(Method):
    """The paper's Gaussian approximation (PEMI-Gauss): fast and smooth, with error O(n^-1/2).

    Ratios and linear metrics have the paper's mean and variance; ROC-AUC has the paper's moments in O(n log n). Other
    formulas of the confusion matrix and average precision have first-order moments (delta method), which equal the
    paper's for ratios; callables are not supported. Probability beyond the attainable bounds is moved onto them, which
    `dm.paper.pemi_gauss` does not do. The distribution is conditional on the metric being defined:
    `zero_division` has no effect, and `undefined` is the probability of 0/0. The `certificate` bounds the error on
    these data, and `interval(certified=True)` includes it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), method=dm.methods.Gaussian())[
    ...     "precision"
    ... ]
    <Normal: mean 0.9, 90% interval 0.571 to 1, gaussian>
    """

    name: ClassVar[str] = "gaussian"

    def distribution(self, functional: Functional, problem: Problem) -> MetricDistribution:
        certain = certain_distribution(functional, problem)
        if certain is not None:
            return certain
        problem.posterior.check_independent("'gaussian' needs", " Use 'auto' or 'monte_carlo'.")
        facts = describe_result(functional, "gaussian")
        undefined = _undefined_mass(functional, problem)
        mean, variance = moments_at_draws(functional, problem)
        defined = undefined < 1.0
        if not np.isfinite(mean[defined]).all() or not np.isfinite(variance[defined]).all():
            raise MethodError(
                "method",
                "'gaussian' for a metric that is 0/0 next to its mean",
                "It needs a metric that has a derivative there.",
                f"Use {setting('method', 'auto')}.",
            )
        prover = Prover(functional, problem.posterior)
        normals: list[MetricDistribution] = []
        for draw, (m, sd, u) in enumerate(zip(mean, np.sqrt(variance), undefined, strict=True)):
            draw_facts = {**facts, "certify": partial(prover, draw=draw)}
            is_defined = u < 1.0
            normals.append(
                Normal(loc=float(m), scale=float(sd), undefined=float(u), **draw_facts)
                if is_defined
                else Undefined(undefined=1.0, **draw_facts)
            )
        return normals[0] if len(normals) == 1 else mix(normals, problem.weight, given_defined=True, **facts)


def _undefined_mass(functional: Functional, problem: Problem) -> FloatArray:
    """Return the probability of 0/0 at every draw; only formulas of counts can be 0/0 with both classes present."""
    if not functional.can_be_undefined():
        return np.zeros(problem.weight.size)
    if isinstance(functional, CountFunctional):
        atoms = exact_atoms(functional, problem)
        if atoms is not None:
            undefined = np.isnan(atoms.values).ravel()
            mass, defined = (atoms.at_draws() @ event for event in (undefined, ~undefined))
            return np.asarray(mass / (mass + defined))  # exactly 1 if no defined value is possible
    return functional.undefined_mass(problem.posterior.on_all_cells.probability)


def moments_at_draws(functional: Functional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the Gaussian at every posterior draw."""
    merged, cells = problem.cells(functional)
    mean, variance = gaussian_moments(merged, cells)
    return np.asarray(mean), np.maximum(variance, 0.0)


@singledispatch
def gaussian_moments(functional: Functional, cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the paper's Gaussian at every draw; other metrics use the delta method."""
    if not functional.is_smooth:
        raise MethodError(
            "method",
            "'gaussian' for a metric without derivatives",
            "It needs a metric that has derivatives.",
            f"Use {setting('method', 'auto', 'monte_carlo')}.",
        )
    mean, k2, _, _ = compute_sum_cumulants(functional, cells, orders=(2,))
    slopes, _ = compute_derivatives(functional, mean, np.sqrt(np.einsum("aak->ak", k2)), hessian=False)
    return functional.at(mean), np.einsum("ak,abk,bk->k", slopes, k2, slopes)


@gaussian_moments.register
def _(functional: LinearFunctional, cells: Cells) -> tuple[FloatArray, FloatArray]:
    mean, k2, _, _ = compute_sum_cumulants(functional, cells, orders=(2,))
    return mean[0], k2[0, 0]


@gaussian_moments.register
def _(functional: CountFunctional, cells: Cells) -> tuple[FloatArray, FloatArray]:
    weight = np.ones(functional.missing.size) if functional.split.weight is None else functional.split.weight
    mean, variance = np.zeros((2, len(functional.split.groups), cells.n_draws))
    for i, rows in enumerate(functional.split.groups):
        mass = np.zeros(functional.missing.size)
        mass[rows] = functional.missing[rows] * weight[rows]
        mean[i], variance[i] = cells.p @ cells.add_up(mass), cells.cumulants[1] @ cells.add_up(mass * weight)
    # A group without random labels adds no variance and may have no slope.
    slopes = np.where(variance > 0.0, functional.slopes(mean), 0.0)
    total = (slopes**2 * variance).sum(axis=0)
    return functional.at_groups(mean), np.where(np.isfinite(total), total, np.nan)


@gaussian_moments.register
def _(functional: RankFunctional, cells: Cells) -> tuple[FloatArray, FloatArray]:
    a, d, var_a, var_d, cov = auc_moments(functional.data, cells.probability)
    d = np.where(d > 0.0, d, np.nan)
    # The paper's variances of numerator and denominator include second-order terms.
    terms = a**2 * var_d + d**2 * var_a
    variance = (terms - 2.0 * cov * a * d) / d**4
    cancels = np.abs(variance) * d**4 <= _ROUNDING * terms  # the ratio is constant
    return functional.shift + functional.scale * a / d, functional.scale**2 * np.where(cancels, 0.0, variance)
