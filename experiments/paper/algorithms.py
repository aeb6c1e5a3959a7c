"""The algorithms compared: the bootstrap, the paper's PEMI and PEMI-Gauss with three kinds of p, and ours."""

from collections.abc import Callable, Mapping

import numpy as np

import darkmetrics as dm
from darkmetrics.distribution import MetricDistribution
from experiments.paper.config import Config
from experiments.paper.problems import Problem

Laws = Mapping[str, MetricDistribution]
Algorithm = Callable[[Config, Problem], Laws]


def bootstrap(config: Config, problem: Problem) -> Laws:
    """Today's practice: drop what has no label, bootstrap the rest."""
    data = dm.EvaluationSet(problem.labels, problem.fold.score)
    return dm.baselines.bootstrap(
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
        p = calibrated_chances(config, problem) if probabilities == "calibrated" else probabilities
        return _evaluated(config, problem, label_model=p, method=method)

    return run


def stated(config: Config, problem: Problem) -> Laws:
    """Ours, told why labels are missing: Calibrated at random, LabelShift by label."""
    return _evaluated(config, problem, missingness=problem.missingness)


def auto(config: Config, problem: Problem) -> Laws:
    """Ours, told nothing, with the rows kept for calibration as a reference."""
    return _evaluated(config, problem, calibration=problem.fold.calibration)


def algorithms(config: Config) -> dict[str, Algorithm]:
    """All of them by the name under which they appear in tables."""
    found: dict[str, Algorithm] = {"bootstrap": bootstrap}
    for kind in ("half", "prevalence", "calibrated"):
        for b in config.resamples:
            found[f"pemi_{b},{kind}"] = pemi(kind, dm.methods.MonteCarlo(b))
        found[f"pemi_gauss,{kind}"] = pemi(kind, "gaussian")
    return found | {"ours,stated": stated, "ours,auto": auto}


def _evaluated(config: Config, problem: Problem, **settings: object) -> Laws:
    rng = np.random.default_rng((*problem.seed, 2))
    return dm.evaluate(problem.labels, problem.fold.score, metrics=config.metrics, rng=rng, **settings)  # type: ignore[arg-type]
