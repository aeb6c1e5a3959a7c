"""No mechanism stated: real sets, labels missing by score, by label, by both, by a feature, or delayed."""

from functools import partial

import numpy as np

from experiments.coverage.cases import Case, Problem, load_scored_rows
from experiments.reasons.problems import CLASSIFIERS, REASONS, SETS, Rows, hidden, rows_of

_SIZES = (2000, 500)
_FEATURE = "by a feature"


def make_problem(name: str, reason: str, n: int, seed: int) -> Problem:
    """Return a real test set with labels missing for this reason; seeds alternate between two classifiers."""
    classifier, split = CLASSIFIERS[seed % 2], seed // 2
    if reason == _FEATURE:
        rows = rows_of(name, classifier, split, n)
    else:
        y, score = load_scored_rows(name, classifier, split, n)
        rows = Rows(y, score, None, None, (SETS.index(name), split, n))
    return Problem(rows.y, rows.score, hidden(rows, reason))


def make_flipped(seed: int) -> Problem:
    """Return simulated rows where nearly all positives below the threshold are hidden, beyond what is allowed for."""
    rng = np.random.default_rng((seed, 23))
    y_score = rng.beta(1.0, 2.0, 2000)
    y_true = (rng.random(2000) < y_score).astype(float)
    is_hidden = rng.random(2000) < np.where(y_true == 1, 0.99, 0.02)
    return Problem(y_true, y_score, np.where(is_hidden & (y_score < 0.5), np.nan, y_true))


CASES = [
    Case(
        f"{reason}, {name}, {n:,} rows",
        partial(make_problem, name, reason, n),
        n_seeds=20,
        min_coverage=0.7,
        pool=f"{reason}, {n:,} rows",
        min_pooled=0.87,
    )
    for n in _SIZES
    for reason in REASONS
    for name in SETS
    if (name, reason) != ("civil_comments_scores", _FEATURE)
]
CASES.append(Case("control: an effect of the label of 10 in the log odds", make_flipped, n_seeds=20, is_control=True))
