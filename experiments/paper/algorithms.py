"""The algorithms compared: the bootstrap, PEMI and PEMI-Gauss with three kinds of p, and the library's default."""

from collections.abc import Callable, Mapping

import numpy as np

import darkmetrics as dm
from darkmetrics.distributions import MetricDistribution
from experiments.paper.config import Config
from experiments.paper.problems import Problem

Distributions = Mapping[str, MetricDistribution]
Algorithm = Callable[[Config, Problem], Distributions]


def bootstrap(config: Config, problem: Problem) -> Distributions:
    """Return the paper's baseline: the bootstrap of the labeled rows."""
    return _bootstrapped(config, problem, problem.fold.score)


def bootstrap_of_predictions(config: Config, problem: Problem) -> Distributions:
    """Return the same with predicted classes for scores, a slip that would explain the paper's ROC-AUC row."""
    return _bootstrapped(config, problem, (problem.fold.score >= 0.5).astype(float))


def _bootstrapped(config: Config, problem: Problem, score: np.ndarray) -> Distributions:
    data = dm.EvaluationSet(problem.labels, score)
    return dm.paper.bootstrap(
        data, config.metrics, n_resamples=config.bootstrap_resamples, rng=np.random.default_rng((*problem.seed, 1))
    )


def probabilities_of(kind: str, config: Config, problem: Problem) -> dm.missing.Mechanism:
    """Return the probabilities of the missing labels: maximum entropy, N+/N of the training set, or calibrated."""
    if kind == "half":
        return dm.paper.maximum_entropy()
    if kind == "prevalence":
        return dm.paper.maximum_entropy(mean=problem.fold.training_prevalence)
    return dm.paper.scaling_binning(*problem.fold.calibration, n_bins=config.bins)


def pemi(kind: str, n_resamples: int) -> Algorithm:
    """Return Algorithm 1 with a kind of probabilities and a number of imputations."""

    def run(config: Config, problem: Problem) -> Distributions:
        data = dm.EvaluationSet(problem.labels, problem.fold.score)
        p, rng = probabilities_of(kind, config, problem), np.random.default_rng((*problem.seed, 2))
        return dm.paper.pemi(data, config.metrics, p, n_resamples=n_resamples, rng=rng)

    return run


def pemi_gauss(kind: str) -> Algorithm:
    """Return Algorithm 2 with a kind of probabilities."""

    def run(config: Config, problem: Problem) -> Distributions:
        data = dm.EvaluationSet(problem.labels, problem.fold.score)
        return dm.paper.pemi_gauss(data, config.metrics, probabilities_of(kind, config, problem))

    return run


# The library's mechanisms by the name in tables: right under MCAR, right under MNAR, and not stated.
MECHANISMS = {"calibrated": dm.missing.ByScore, "label_shift": dm.missing.ByLabel, "auto": dm.missing.Unknown}


def ours(name: str) -> Algorithm:
    """Return the library's exact distributions, with the rows for calibration as reference rows."""

    def run(config: Config, problem: Problem) -> Distributions:
        reference = dm.missing.Reference(*problem.fold.calibration)
        return dm.evaluate(
            problem.labels,
            problem.fold.score,
            metrics=config.metrics,
            missingness=MECHANISMS[name](reference=reference),
            rng=np.random.default_rng((*problem.seed, 2)),
        )

    return run


def algorithms(config: Config) -> dict[str, Algorithm]:
    """Return the algorithms to run, by the name under which they appear in tables."""
    available: dict[str, Algorithm] = {"bootstrap": bootstrap, "bootstrap,decisions": bootstrap_of_predictions}
    for kind in ("half", "prevalence", "calibrated"):
        for b in config.resamples:
            available[f"pemi_{b},{kind}"] = pemi(kind, b)
        available[f"pemi_gauss,{kind}"] = pemi_gauss(kind)
    available |= {f"ours,{mechanism}": ours(mechanism) for mechanism in MECHANISMS}
    return {name: available[name] for name in config.algorithms or available}
