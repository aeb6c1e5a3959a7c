"""An old scorecard decides who gets a label, and one in ten of the others does at random (reject inference)."""

from functools import partial
from typing import Any

import numpy as np

import darkmetrics as dm
from experiments.coverage.cases import Case, Problem, load_scored_rows
from experiments.reasons.problems import CLASSIFIERS, SETS, looked_at

_SETS = tuple(name for name in SETS if name != "civil_comments_scores")
_N = 2000


def make_problem(name: str, side: str, stated: str, seed: int) -> Problem:
    """Return a real test set where an old scorecard labels the rows on one side of its median."""
    classifier, split = CLASSIFIERS[seed % 2], seed // 2
    y, score = load_scored_rows(name, classifier, split, _N)
    propensity = looked_at(name, split, _N, high=side == "high")
    is_labeled = np.random.default_rng((SETS.index(name), split, seed % 2, 9)).random(_N) < propensity
    arguments: dict[str, dict[str, Any]] = {
        "propensity": {"missingness": dm.missing.Propensity(propensity)},
        "not stated": {},
    }
    return Problem(y, score, np.where(is_labeled, y, np.nan), arguments[stated])


def make_unrelated(stated: str, seed: int) -> Problem:
    """Return simulated rows whose old score says about the label what the new score does not know."""
    rng = np.random.default_rng((seed, 31))
    old, new = rng.normal(size=(2, 4000))
    y_true = (rng.random(4000) < 1.0 / (1.0 + np.exp(1.0 - old - new))).astype(float)
    propensity = np.where(old < 0.0, 1.0, 0.1)
    observed = np.where(rng.random(4000) < propensity, y_true, np.nan)
    arguments = {
        "propensity": {"missingness": dm.missing.Propensity(propensity)},
        "by score": {"missingness": "by_score"},
    }[stated]
    return Problem(y_true, 1.0 / (1.0 + np.exp(1.2 - new)), observed, arguments)


CASES = [
    Case(
        f"{side} old scores labeled, {name}, {stated}",
        partial(make_problem, name, side, stated),
        n_seeds=20,
        pool=f"{side} old scores labeled, {stated}",
    )
    for side in ("high", "low")
    for stated in ("propensity", "not stated")
    for name in _SETS
]
CASES += [
    Case("unrelated old score, propensity", partial(make_unrelated, "propensity")),
    Case("control: unrelated old score, by score", partial(make_unrelated, "by score"), is_control=True),
]
