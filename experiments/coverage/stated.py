"""Mechanism stated: labels of real sets are missing at random, by score or by label, and `missingness` says so."""

from functools import partial

from experiments.coverage.cases import Case, Problem, load_scored_rows
from experiments.reasons.problems import CLASSIFIERS, REASONS, SETS, Rows, hidden

_N = 2000


def make_problem(name: str, reason: str, stated: str, seed: int) -> Problem:
    """Return a real test set with labels missing for this reason; seeds alternate between two classifiers."""
    classifier, split = CLASSIFIERS[seed % 2], seed // 2
    y, score = load_scored_rows(name, classifier, split, _N)
    rows = Rows(y, score, None, None, (SETS.index(name), split, _N, 3))
    return Problem(y, score, hidden(rows, reason), {"missingness": stated})


def make_mismatched(seed: int) -> Problem:
    """Return a real test set with positives missing more often, stated as missing by score."""
    return make_problem("adult", "by label, positives missing", "by_score", seed)


CASES = [
    Case(
        f"{reason}, {name}",
        partial(make_problem, name, reason, stated),
        pool=reason,
        max_pooled=0.97,
    )
    for reason, (stated, _) in REASONS.items()
    if stated is not None
    for name in SETS
]
CASES.append(Case("control: by score stated, positives missing", make_mismatched, n_seeds=20, is_control=True))
