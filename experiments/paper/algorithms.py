"""The algorithms compared: the bootstrap, the paper's PEMI and PEMI-Gauss with three kinds of p, and ours."""

from collections.abc import Callable, Mapping

import numpy as np

import darkmetrics as dm
from darkmetrics.distributions import MetricDistribution
from experiments.paper.config import Config
from experiments.paper.problems import Problem

Laws = Mapping[str, MetricDistribution]
Algorithm = Callable[[Config, Problem], Laws]


def bootstrap(config: Config, problem: Problem) -> Laws:
    """Today's practice: drop what has no label, bootstrap the rest."""
    return _bootstrapped(config, problem, problem.fold.score)


def bootstrap_of_decisions(config: Config, problem: Problem) -> Laws:
    """The same with decisions for scores, a slip that would explain the paper's ROC-AUC row."""
    return _bootstrapped(config, problem, (problem.fold.score >= 0.5).astype(float))


def _bootstrapped(config: Config, problem: Problem, score: np.ndarray) -> Laws:
    data = dm.EvaluationSet(problem.labels, score)
    return dm.paper.bootstrap(
        data, config.metrics, n_resamples=config.bootstrap_resamples, rng=np.random.default_rng((*problem.seed, 1))
    )


def calibrated_chances(config: Config, problem: Problem) -> np.ndarray:
    """The paper's calibrated p: scaling-binning on the rows kept for calibration."""
    labels, scores = problem.fold.calibration
    calibrator = dm.calibrators.ScalingBinning(n_bins=config.bins).fit(scores, labels)
    return np.asarray(calibrator.predict(problem.fold.score))


def pemi(probabilities: str, method: object) -> Algorithm:
    """The paper's algorithms: p taken as known, labelings drawn or a Gaussian."""

    def run(config: Config, problem: Problem) -> Laws:
        if probabilities == "prevalence":
            return _evaluated(config, problem, missingness=dm.missing.TrainingPrevalence(), method=method)
        p = calibrated_chances(config, problem) if probabilities == "calibrated" else 0.5
        return _evaluated(config, problem, missingness=dm.missing.Fixed(p), method=method)

    return run


# The mechanisms of ours by the name in tables: right under MCAR, right if labels are missing by label, and not stated.
MECHANISMS = {"calibrated": dm.missing.ByScore, "label_shift": dm.missing.ByLabel, "auto": dm.missing.Unknown}


def ours(name: str) -> Algorithm:
    """Return ours, with the rows kept for calibration as reference rows."""

    def run(config: Config, problem: Problem) -> Laws:
        reference = dm.missing.Reference(*problem.fold.calibration)
        return _evaluated(config, problem, missingness=MECHANISMS[name](reference=reference))

    return run


def algorithms(config: Config) -> dict[str, Algorithm]:
    """All that are wanted, by the name under which they appear in tables."""
    found: dict[str, Algorithm] = {"bootstrap": bootstrap, "bootstrap,decisions": bootstrap_of_decisions}
    for kind in ("half", "prevalence", "calibrated"):
        for b in config.resamples:
            found[f"pemi_{b},{kind}"] = pemi(kind, dm.methods.MonteCarlo(b))
        found[f"pemi_gauss,{kind}"] = pemi(kind, "gaussian")
    found |= {f"ours,{model}": ours(model) for model in MECHANISMS}
    return {name: found[name] for name in config.algorithms or found}


def _evaluated(config: Config, problem: Problem, **settings: object) -> Laws:
    rng = np.random.default_rng((*problem.seed, 2))
    return dm.evaluate(problem.labels, problem.fold.score, metrics=config.metrics, rng=rng, **settings)  # type: ignore[arg-type]
