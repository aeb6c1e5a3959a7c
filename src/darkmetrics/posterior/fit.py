"""Fit of a model: weighted posterior draws, the log evidence, and diagnostics of the importance weights."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.log_odds import chance
from darkmetrics._kernels.sobol import sobol_points
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.mode import Mode, find_mode
from darkmetrics.posterior.model import Cells, Model
from darkmetrics.posterior.nuisance import Marginal, NuisanceIntegral
from darkmetrics.posterior.proposal import ConditionalGaussian, Proposal, iterate_proposals
from darkmetrics.posterior.tables import FormTable, log_total

# Importance weights fail above this tail shape (Vehtari et al. 2024), unless the effective size is at least this
# fraction of the number of draws: truncated weights are then more accurate than any further truncation.
MAX_PARETO_K, MIN_EFFICIENCY = 0.7, 0.1
# The next proposal, of a few, is tried below this fraction.
_GOOD_EFFICIENCY, _MAX_PROPOSALS = 0.4, 3
# Weights that fail are truncated so that the largest of them, this fraction of all, are equal.
TRUNCATED = 1.0 / 16.0
# Conditional modes of nuisance parameters need not be exact where only the proposal depends on them.
_ROUGH_STEP = 1.0
# The search for the mode of an approximate evidence ends where a step raises the log posterior by less.
_EVIDENCE_GAIN = 1e-3
# Of 10 seeds the one whose 256 points have the smallest errors of posterior means and standard deviations (by score, by
# label, and both with a reference; ten sets each).
_SEED = 9
# Predictions are computed for about this many numbers at once.
_BATCH = 1 << 18


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Posterior draws of the parameters of a model.

    Attributes
    ----------
    model : Model
        The model.
    theta : array (n_draws, n_parameters)
        Draws of the parameters.
    weight : array (n_draws,)
        Probability of each draw; sums to one.
    log_evidence : float
        Log of the integral of likelihood times prior.
    effective_size : float
        Number of equally weighted draws that the importance weights are worth.
    pareto_k : float
        Tail shape of the importance weights.
    is_weighted : bool
        False if the importance weights failed (`pareto_k` above 0.7 and a small `effective_size`). The largest
        sixteenth of the weights is then equal, and the evidence is that of the Gaussian approximation.
    mode : array (n_parameters,)
        Posterior mode.
    grid_parameter : int, optional
        Index of the parameter that got a grid because the posterior is bent along it.
    """

    model: Model
    theta: FloatArray
    weight: FloatArray
    log_evidence: float
    effective_size: float
    pareto_k: float
    is_weighted: bool
    mode: FloatArray
    grid_parameter: int | None

    def label_probability(self, cells: Cells, label: int = 1, draws: IntArray | slice = slice(None)) -> FloatArray:
        """Return P(label | observation) at each draw, of shape (n_draws, n_cells).

        Parameters
        ----------
        cells : Cells
            Cells of the model, in the likelihood or not.
        label : int
            The label.
        draws : array of int or slice
            Draws to predict for; all if not passed.
        """
        theta, k, n = np.ascontiguousarray(self.theta[draws].T), len(cells.labels), cells.count.size
        is_label = np.array(cells.labels) == label
        if is_label.all() or not is_label.any():
            return np.full((theta.shape[1], n), float(is_label[0]))
        used = np.zeros(self.model.n_outcomes + 1, dtype=np.bool_)
        used[cells.outcomes] = True
        forms = FormTable(self.model, used[:-1])
        terms, needed = forms.list_differences(cells.outcomes)
        batches, size = [], max(1, _BATCH // max(1, forms.size))
        for start in range(0, theta.shape[1], size):
            values = forms.evaluate(theta[:, start : start + size], needed)
            log_ratio = np.zeros((k - 1, n, values.shape[1]))  # of the weights of a history and of the first history
            for term in terms:
                if term.sign > 0.0:
                    log_ratio[term.history, term.cells] += values[term.forms]
                else:
                    log_ratio[term.history, term.cells] -= values[term.forms]
            if k == 2:
                batches.append(chance(log_ratio[0] if is_label[1] else -log_ratio[0]))
                continue
            peak = np.maximum(log_ratio.max(axis=0), 0.0)
            weight = np.exp(np.concatenate([-peak[None], log_ratio - peak]))
            batches.append(weight[is_label].sum(axis=0) / weight.sum(axis=0))
        return batches[0].T if len(batches) == 1 else np.concatenate(batches, axis=1).T


def fit_model(
    model: Model, n_draws: int = 256, *, likelihood_power: float = 1.0, start: FloatArray | None = None
) -> FittedModel:
    """Fit a model: Sobol points through a Gaussian proposal at the mode, corrected by importance weights.

    Parameters
    ----------
    model : Model
        The model.
    n_draws : int
        Number of draws; a power of 2 covers the posterior most evenly.
    likelihood_power : float
        Exponent of the likelihood; below 1 it discounts the data.
    start : array (n_parameters,), optional
        Where to start looking for the mode; the prior mean if not passed.
    """
    likelihood = Likelihood(model, likelihood_power)
    mode = find_mode(likelihood.expand, likelihood.prior.mean if start is None else start)
    return draw_around_mode(model, likelihood, mode, n_draws)


def draw_around_mode(model: Model, likelihood: Likelihood, mode: Mode, n_draws: int) -> FittedModel:
    """Draw from the posterior of a model with a known mode, from the best of several proposals."""
    nuisance = NuisanceIntegral(likelihood)
    proposals = iterate_proposals(likelihood, mode, lambda theta: nuisance.integrate(theta, _ROUGH_STEP).log_posterior)
    attempt = None
    for proposal in islice(proposals, _MAX_PROPOSALS):
        new = _weigh(proposal, nuisance, n_draws)
        if attempt is None or new.effective_size > attempt.effective_size:
            attempt = new
        if attempt.effective_size >= _GOOD_EFFICIENCY * n_draws:
            break
    assert attempt is not None
    if attempt.is_reliable:
        log_evidence, limit = attempt.log_evidence, n_draws**-0.5  # truncated importance sampling
    else:
        # The limit is 0 if fewer draws have any weight.
        limit = float(np.quantile(attempt.weight, 1.0 - TRUNCATED)) or n_draws**-0.5
        log_evidence = attempt.proposal.log_evidence
    weight = np.minimum(attempt.weight, limit)
    return FittedModel(
        model,
        np.ascontiguousarray(nuisance.draw(attempt.marginal).T),
        weight / weight.sum(),
        log_evidence + model.log_constant,
        attempt.effective_size,
        attempt.pareto_k,
        attempt.is_reliable,
        mode.theta,
        attempt.proposal.grid_parameter,
    )


def approximate_log_evidence(model: Model, start: FloatArray | None = None) -> float:
    """Return the log evidence of a model without nuisance parameters by a Laplace approximation, without any draws.

    Parameters
    ----------
    model : Model
        The model.
    start : array (n_parameters,), optional
        Where to start looking for the mode; the prior mean if not passed.
    """
    likelihood = Likelihood(model)
    mode = find_mode(likelihood.expand, likelihood.prior.mean if start is None else start, min_gain=_EVIDENCE_GAIN)
    gaussian = ConditionalGaussian.from_mode(mode, likelihood.main, likelihood.nuisance, None)
    return gaussian.log_integral + model.log_constant


class _WeightedProposal(NamedTuple):
    """Draws of a proposal with importance weights."""

    proposal: Proposal
    marginal: Marginal
    weight: FloatArray
    log_evidence: float
    effective_size: float
    pareto_k: float
    is_reliable: bool


def _weigh(proposal: Proposal, nuisance: NuisanceIntegral, n_draws: int) -> _WeightedProposal:
    proposed = proposal.propose(_uniform_points(n_draws, proposal.n_axes))
    marginal = nuisance.integrate(proposed.theta)
    log_weight = marginal.log_posterior - proposed.log_density
    total = log_total(log_weight)
    weight = np.exp(log_weight - total)
    size, k = 1.0 / float(weight @ weight), estimate_pareto_k(weight)
    is_reliable = bool(np.isfinite(total)) and (k <= MAX_PARETO_K or size >= MIN_EFFICIENCY * n_draws)
    return _WeightedProposal(proposal, marginal, weight, total - float(np.log(n_draws)), size, k, is_reliable)


@cache
def _uniform_points(n: int, dimensions: int) -> FloatArray:
    """Return Sobol points in the open unit cube; the same in every run."""
    return np.clip(sobol_points(n, dimensions, _SEED), 1e-9, 1.0 - 1e-9)


def estimate_pareto_k(weight: FloatArray) -> float:
    """Estimate the tail shape of importance weights, by the generalized Pareto fit of Zhang and Stephens (2009)."""
    n_tail = int(min(weight.size / 5.0, 3.0 * np.sqrt(weight.size)))
    if n_tail < 5:
        return 0.0
    ordered = np.sort(weight)[-n_tail - 1 :]
    x = ordered[1:] - ordered[0]
    if not np.isfinite(x).all() or x[x.size // 4] <= 1e-12 * ordered[-1]:
        return 0.0 if np.isfinite(x).all() and x[-1] <= 1e-12 * ordered[-1] else np.inf
    n_points = 30
    b = 1.0 / x[-1] + (1.0 - np.sqrt(n_points / (np.arange(n_points) + 0.5))) / (3.0 * x[x.size // 4])
    b = b[np.abs(b) > 1e-12 / x[-1]]
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = x.size * (np.log(-b / k) - k - 1.0)
    center = float(b @ np.exp(profile - log_total(profile)))
    # The prior shrinks k toward 0.5 like ten observations.
    return float((np.log1p(-center * x).sum() + 5.0) / (x.size + 10.0))
