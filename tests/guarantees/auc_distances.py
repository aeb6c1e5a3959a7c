"""Distances of laws of ROC-AUC to a million sampled scenarios."""

from collections.abc import Iterator

import numpy as np

import test_auc_law
from guarantees.pieces import Family, Row, files
from test_auc_law import case, kolmogorov, sampled_auc

SCENARIOS = 1_000_000
# Each draws scenarios of its own: the law beside the Gaussian, a control that looks at the Gaussian, and one whose
# chances are slightly wrong.
KINDS = ("law", "gaussian", "wrong chances")


def _distance(kind: str, m: int, name: str) -> Iterator[Row]:
    problem = case(name, m)
    sample = sampled_auc(problem, SCENARIOS, np.random.default_rng([m, 1 + KINDS.index(kind)]))
    if kind == "wrong chances":
        p = np.clip(problem.p + 0.01, 0.0, 1.0)
        problem = type(problem)(problem.y, problem.s, p, problem.w, problem.ties)
    laws = {"law": problem.law("exact"), "gaussian": problem.law("gaussian")}
    yield {"method": laws["law"].method} | {of: kolmogorov(law.cdf, sample) for of, law in laws.items()}


FAMILY = Family("roc_auc", _distance, files(__file__, test_auc_law.__file__))
