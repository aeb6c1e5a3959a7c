"""The paper's algorithms, bounds, theorems and baselines by their names.

Import rule: it may use everything that evaluates; nothing but the command line and reports uses it.
"""

from darkmetrics.paper.baselines import bootstrap, complete_case, confidence_based
from darkmetrics.paper.noise import Robustness, beta_parameters, robustness
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
    "CorollaryRate",
    "Hypothesis",
    "PaperBound",
    "Robustness",
    "beta_parameters",
    "bootstrap",
    "complete_case",
    "confidence_based",
    "corollary_rate",
    "lemma_1",
    "paper_bound",
    "robustness",
    "theorem_2",
    "theorem_3",
]
