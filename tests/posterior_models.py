"""Models of every shape for tests of the engine, an oracle of their likelihood written out plainly, and a sampler."""

import math

import numpy as np
from scipy.special import logsumexp

from darkmetrics.posterior import Model
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.mode import find_mode


def curve_columns(n):
    return np.column_stack([np.ones(n), np.linspace(-1.5, 1.5, n)])


def build_binary(rng):
    """Labeled rows only."""
    model = Model()
    label = model.add_decisions((model.add_parameters([0.0, 1.0], [1.5, 1.0]), curve_columns(5)))
    for y in (0, 1):
        model.add_cells(rng.integers(0, 9, 5), [(y, [label[:, y]])])
    return model


def build_by_label(rng, *, cauchy=True, n=5):
    model = Model()
    label = model.add_decisions((model.add_parameters([0.0, 1.0], [1.5, 1.0]), curve_columns(n)))
    rates = model.add_parameters([0.0, 0.5], 2.0, cauchy=cauchy)
    is_missing = model.add_decisions((rates, np.array([[1.0, -0.5], [1.0, 0.5]])))
    for y in (0, 1):
        model.add_cells(rng.integers(1, 9, n), [(y, [label[:, y], is_missing[y, 0]])])
    model.add_cells(rng.integers(1, 9, n), [(y, [label[:, y], is_missing[y, 1]]) for y in (0, 1)])
    return model


def build_three_classes(rng):
    """Three labels; decisions with three outcomes from two terms that have a parameter in common, and an offset."""
    model, n = Model(), 4
    slope, level = model.add_parameters([1.0], 1.0), model.add_parameters(np.zeros(3), 2.0)
    scores = rng.normal(size=(n, 3))
    levels = np.concatenate([np.broadcast_to(np.eye(3), (n, 3, 3)), 0.3 * scores[:, :, None]], axis=2)
    label = model.add_decisions(
        (slope, scores[:, :, None]), (np.append(level, slope), levels), offset=rng.normal(size=(n, 3))
    )
    is_missing = model.add_decisions((model.add_parameters(np.zeros(3), 1.5, cauchy=True), np.eye(3)))
    for y in range(3):
        model.add_cells(rng.integers(0, 6, n), [(y, [label[:, y], is_missing[y, 0]])])
    model.add_cells(rng.integers(1, 6, n), [(y, [label[:, y], is_missing[y, 1]]) for y in range(3)])
    return model


def build_several_histories(rng, *, nuisance=False, fixed=False):
    """Reviewed or not, arrived or not: four histories of a row without a label, and a random walk as a prior."""
    model, n, n_ages = Model(), 4, 3
    label = model.add_decisions((model.add_parameters([0.0, 1.0], [1.5, 1.0]), curve_columns(n)))
    rate = model.add_parameters(np.zeros(n), 2.0, nuisance=nuisance)
    is_reviewed = model.add_decisions((rate, np.eye(n)))
    differences = np.eye(n_ages) - np.eye(n_ages, k=-1)
    hazards = [model.add_parameters(np.full(n_ages, -1.0), precision=differences.T @ differences) for _ in (0, 1)]
    arrives = [model.add_decisions((hazard, np.eye(n_ages))) for hazard in hazards]
    known = model.add_decisions(offset=np.array([[0.3, 0.7, -0.2]]))
    for y in (0, 1):
        model.add_cells(rng.integers(0, 9, n), [(y, [label[:, y], is_reviewed[:, 1]])])
        waits = [(y, [arrives[y][0, 0], arrives[y][1, 1]]), (y, [arrives[y][0, 1]])]
        model.add_cells(float(rng.integers(1, 9)), waits)  # a label of unknown arrival time
    histories = [(y, [label[:, y], is_reviewed[:, 0]]) for y in (0, 1)]
    histories += [(y, [label[:, y], is_reviewed[:, 1], arrives[y][0, 0], known[0, y]]) for y in (0, 1)]
    model.add_cells(rng.integers(1, 9, n), histories)
    return model


def build_by_score_and_label(rng, *, nuisance=True):
    model, n = Model(), 6
    label = model.add_decisions((model.add_parameters([0.0, 1.0], [1.5, 1.0]), curve_columns(n)))
    rates = model.add_parameters(np.zeros(3), 2.0, nuisance=nuisance), np.eye(3)
    effect = model.add_parameters(np.zeros(1), 1.0, cauchy=True)
    is_missing = [model.add_decisions(rates, (effect, np.full((3, 1), y - 0.5)))[np.arange(n) // 2] for y in (0, 1)]
    for y in (0, 1):
        model.add_cells(rng.integers(1, 12, n), [(y, [label[:, y], is_missing[y][:, 0]])])
        model.add_cells(rng.integers(5, 30, n), [(y, [label[:, y]])])
    model.add_cells(rng.integers(1, 12, n), [(y, [label[:, y], is_missing[y][:, 1]]) for y in (0, 1)])
    return model


SHAPES = {
    "binary": build_binary,
    "by label": build_by_label,
    "three classes": build_three_classes,
    "several histories": build_several_histories,
    "nuisance rates": build_by_score_and_label,
    "several histories, nuisance": lambda rng: build_several_histories(rng, nuisance=True),
}


def log_posterior_by_rows(model, theta, power=1.0):
    """Log posterior from the statement alone: cell by cell, history by history, outcome by outcome."""
    log_p = np.full(model.n_outcomes, np.nan)
    for block in model.decisions:
        for i, outcomes in enumerate(block.outcomes):
            k = range(len(outcomes) - 1)
            log_weight = [0.0, *(block.offset[j, i] + block.columns[j, i] @ theta[block.indices] for j in k)]
            log_p[outcomes] = np.array(log_weight) - logsumexp(log_weight)
    total = 0.0
    for cells in model.cells:
        for i, count in enumerate(cells.count):
            histories = [[log_p[o] for o in history if o >= 0] for history in cells.outcomes[:, :, i].T]
            total += power * count * logsumexp([sum(history) for history in histories])
    start = 0
    for mean, precision in zip(model.means, model.precisions, strict=True):
        block = slice(start, start + mean.size)
        deviation = theta[block] - mean
        if model.is_cauchy[start]:
            scale = np.diag(precision) ** -0.5
            total -= float(np.sum(np.log(np.pi * scale * (1.0 + (deviation / scale) ** 2))))
        else:
            total += 0.5 * float(np.linalg.slogdet(precision / (2.0 * math.pi))[1])
            total -= 0.5 * float(deviation @ precision @ deviation)
        start += mean.size
    return total


def sample_posterior_by_metropolis(model, *, power=1.0, n_chains=128, n_steps=2000, seed=0):
    """Return draws (n_draws x n_parameters) of a model by a random walk."""
    return sample_by_random_walk(Likelihood(model, power), n_chains=n_chains, n_steps=n_steps, seed=seed)


def sample_by_random_walk(likelihood, *, n_chains=128, n_steps=2000, seed=0):
    """Return draws (n_draws x n_parameters) by random-walk Metropolis in many chains, started at the mode.

    The first quarter of the steps is dropped; its second half sets the covariance of the steps that follow.
    """
    rng = np.random.default_rng(seed)
    mode = find_mode(likelihood.expand, likelihood.prior.mean)
    root = np.linalg.cholesky(np.linalg.inv(mode.precision))
    size = mode.theta.size
    theta = mode.theta[:, None] + root @ rng.standard_normal((size, n_chains))
    draws: list[np.ndarray] = []
    value, n_dropped = likelihood.log_posterior(theta), n_steps // 4
    for step in range(n_steps):
        if step == n_dropped:
            root, draws = np.linalg.cholesky(np.cov(np.concatenate(draws, axis=1))), []
        length = np.where(rng.random(n_chains) < 0.1, 6.0, 2.2) / np.sqrt(size)  # long steps reach heavy tails
        candidate = theta + root @ rng.standard_normal((size, n_chains)) * length
        new = likelihood.log_posterior(candidate)
        accepted = np.log(rng.random(n_chains)) < new - value
        theta, value = np.where(accepted, candidate, theta), np.where(accepted, new, value)
        if step >= n_dropped // 2 and step % 10 == 0:
            draws.append(theta)
    return np.concatenate(draws, axis=1).T
