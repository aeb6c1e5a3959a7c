"""The paper's algorithms, bounds, theorems and baselines by their names.

Import rule: it may use everything that evaluates; nothing but the command line and reports uses it.
"""

from darkmetrics.paper.algorithms import OracleBounds, oracle_bounds, pemi, pemi_gauss
from darkmetrics.paper.baselines import bootstrap, complete_case, confidence_based
from darkmetrics.paper.noise import Robustness, beta_parameters, robustness
from darkmetrics.paper.probabilities import CalibratedScores, maximum_entropy, scaling_binning, training_prevalence
from darkmetrics.paper.scores import kolmogorov_smirnov, mcar_mask, mnar_mask, pit, wasserstein_1
from darkmetrics.paper.theorems import (
    CorollaryRate,
    Hypothesis,
    PaperBound,
    corollary_rate,
    lemma_1,
    paper_bound,
    theorem_2,
    theorem_3,
)

__all__ = [
    "CalibratedScores",
    "CorollaryRate",
    "Hypothesis",
    "OracleBounds",
    "PaperBound",
    "Robustness",
    "beta_parameters",
    "bootstrap",
    "complete_case",
    "confidence_based",
    "corollary_rate",
    "kolmogorov_smirnov",
    "lemma_1",
    "maximum_entropy",
    "mcar_mask",
    "mnar_mask",
    "oracle_bounds",
    "paper_bound",
    "pemi",
    "pemi_gauss",
    "pit",
    "robustness",
    "scaling_binning",
    "theorem_2",
    "theorem_3",
    "training_prevalence",
    "wasserstein_1",
]
