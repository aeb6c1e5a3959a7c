"""The paper's algorithms, bounds, theorems and baselines by their names.

Import rule: it may use everything that evaluates; nothing but the command line and reports uses it.
"""

from darkmetrics.paper.algorithms import OracleBounds, oracle_bounds, pemi, pemi_gauss
from darkmetrics.paper.baselines import bootstrap, complete_case, confidence_based
from darkmetrics.paper.moments import (
    AccuracyEstimator,
    ConfusionMoments,
    RocAucMoments,
    confusion_moments,
    probabilistic_query,
    proposition_5,
    roc_auc_moments,
)
from darkmetrics.paper.noise import Robustness, beta_parameters, theorem_4
from darkmetrics.paper.probabilities import CalibratedScores, maximum_entropy, scaling_binning, training_prevalence
from darkmetrics.paper.scores import kolmogorov_smirnov, mcar_mask, mnar_mask, pit, wasserstein_1
from darkmetrics.paper.theorems import (
    CorollaryRate,
    Hypothesis,
    PaperBound,
    corollary_rate,
    lemma_1,
    paper_bound,
    remark_9,
    theorem_2,
    theorem_3,
)

__all__ = [
    "AccuracyEstimator",
    "CalibratedScores",
    "ConfusionMoments",
    "CorollaryRate",
    "Hypothesis",
    "OracleBounds",
    "PaperBound",
    "Robustness",
    "RocAucMoments",
    "beta_parameters",
    "bootstrap",
    "complete_case",
    "confidence_based",
    "confusion_moments",
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
    "probabilistic_query",
    "proposition_5",
    "remark_9",
    "roc_auc_moments",
    "scaling_binning",
    "theorem_2",
    "theorem_3",
    "theorem_4",
    "training_prevalence",
    "wasserstein_1",
]
