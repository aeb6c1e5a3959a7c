"""Fit of a model: weighted posterior draws, the log evidence, and diagnostics of the importance weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import sobol_points
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.mode import find_mode
from darkmetrics.posterior.model import Cells, Model
from darkmetrics.posterior.nuisance import NuisanceIntegral
from darkmetrics.posterior.proposal import Proposal
from darkmetrics.posterior.tables import compile_cells

# Importance weights are unreliable above this tail shape (Vehtari et al. 2024).
MAX_PARETO_K = 0.7
_SEED = 7
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
        False if the importance weights failed (`pareto_k` above 0.7). The draws are then those of the Gaussian
        approximation, equally weighted, and the evidence is that of the approximation.
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

    def label_probability(self, cells: Cells, draws: IntArray | slice = slice(None)) -> FloatArray:
        """Return P(label | observation) at each draw, of shape (n_draws, n_cells, n_labels).

        Parameters
        ----------
        cells : Cells
            Cells of the model, in the likelihood or not.
        draws : array of int or slice
            Draws to predict for; all if not passed.
        """
        theta = np.ascontiguousarray(self.theta[draws].T)
        forms, histories = compile_cells(self.model, [cells])
        n_draws, n_cells, n_labels = theta.shape[1], cells.count.size, max(cells.labels) + 1
        result = np.zeros((n_draws, n_cells, n_labels))
        if not histories.groups:
            result[:, :, cells.labels[0]] = 1.0
            return result
        group, size = histories.groups[0], max(1, _BATCH // max(1, forms.size))
        for start in range(0, n_draws, size):
            batch = slice(start, start + size)
            log_weight = group.split(histories.matrix @ forms.evaluate(theta[:, batch]))
            probability = _softmax(log_weight)
            for h, label in enumerate(cells.labels):
                result[batch, :, label] += probability[h].T
        return result


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
    nuisance = NuisanceIntegral(likelihood)
    mode = find_mode(likelihood.expand, likelihood.prior.mean if start is None else start)
    proposal = Proposal(likelihood, mode, lambda theta: nuisance.integrate(theta).log_posterior)
    u = np.clip(sobol_points(n_draws, proposal.n_axes, _SEED), 1e-9, 1.0 - 1e-9)
    proposed = proposal.propose(u)
    marginal = nuisance.integrate(proposed.theta)
    log_weight = marginal.log_posterior - proposed.log_density
    log_total = float(logsumexp(log_weight))
    weight = np.exp(log_weight - log_total)
    effective_size, k = 1.0 / float(weight @ weight), estimate_pareto_k(weight)
    is_weighted = bool(np.isfinite(log_total)) and k <= MAX_PARETO_K
    log_evidence = log_total - float(np.log(n_draws))
    if is_weighted:
        weight = np.minimum(weight, n_draws**-0.5)  # truncated importance sampling
    else:
        marginal = nuisance.integrate(proposal.propose(u, inflate=False).theta)
        weight, log_evidence = np.full(n_draws, 1.0), proposal.log_evidence
    return FittedModel(
        model,
        np.ascontiguousarray(nuisance.draw(marginal).T),
        weight / weight.sum(),
        log_evidence + model.log_constant,
        effective_size,
        k,
        is_weighted,
        mode.theta,
        proposal.grid_parameter,
    )


def compute_mechanism_weights(log_evidences: Sequence[float], min_weight: float | Sequence[float] = 0.0) -> FloatArray:
    """Return the posterior probabilities of several mechanisms, each at least `min_weight`."""
    log_evidence = np.asarray(log_evidences, dtype=np.float64)
    floor = np.broadcast_to(np.asarray(min_weight, dtype=np.float64), log_evidence.size)
    weight = np.maximum(np.exp(log_evidence - logsumexp(log_evidence)), floor)
    is_above = weight > floor
    weight[is_above] *= (1.0 - weight[~is_above].sum()) / weight[is_above].sum()
    return np.asarray(weight)


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
    center = float(b @ np.exp(profile - logsumexp(profile)))
    # The prior shrinks k toward 0.5 like ten observations.
    return float((np.log1p(-center * x).sum() + 5.0) / (x.size + 10.0))


def _softmax(log_weight: FloatArray) -> FloatArray:
    """Return probabilities over the first axis."""
    if len(log_weight) == 2:
        with np.errstate(over="ignore"):  # a probability below 1e-308 is 0
            first = 1.0 / (1.0 + np.exp(log_weight[1] - log_weight[0]))
            return np.stack([first, 1.0 / (1.0 + np.exp(log_weight[0] - log_weight[1]))])
    weight = np.exp(log_weight - log_weight.max(axis=0))
    return np.asarray(weight / weight.sum(axis=0))
