"""Reference rows: labels of real sets are missing by score, in eight shapes, and other rows are fully labeled."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

import darkmetrics as dm
from experiments.coverage.cases import Case, Problem, load_scored_rows
from experiments.reasons.problems import CLASSIFIERS, SETS, Rows, hidden, rows_of

_POOL, _SIZES = 4000, (2000, 500)
_THRESHOLD = 0.5
_WIDE, _NARROW = 0.1, 0.05
_IN_TIME = ("bank", "online_shoppers")
_DRIFT_REASONS = ("random", "by score", "by label, positives missing", "score and label, opposite")


def _near_threshold(rank: Any, score: Any) -> Any:
    threshold = np.clip(np.mean(score < _THRESHOLD), _WIDE, 1.0 - _WIDE)
    return np.where(np.abs(rank - threshold) < _WIDE, 0.9, 0.2)


# The probability of each row to get a label, from the rank of its score (0 to 1) and the score.
SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "smooth": lambda rank, score: 0.1 + 0.8 * rank,
    "step": lambda rank, score: np.where(rank >= 0.8, 0.9, 0.4),
    "near the threshold": _near_threshold,
    "top 5%": lambda rank, score: np.where(rank >= 0.95, 1.0, 0.3),
    "top 20%": lambda rank, score: np.where(rank >= 0.8, 1.0, 0.2),
    "two bumps": lambda rank, score: np.where(np.minimum(np.abs(rank - 0.3), np.abs(rank - 0.8)) < _NARROW, 0.95, 0.2),
    "alternating deciles": lambda rank, score: np.where((10.0 * rank).astype(int) % 2 == 0, 0.8, 0.2),
    "random": lambda rank, score: np.full(rank.size, 0.5),
}
STATEMENTS: dict[str, dict[str, Any]] = {
    "reference": {},
    "by score and label": {"missingness": "by_score_and_label"},
}


def make_problem(name: str, shape: str, stated: str, n: int, seed: int) -> Problem:
    """Return a real test set and as many reference rows, all drawn at random; seeds alternate between classifiers."""
    classifier, split = CLASSIFIERS[seed % 2], seed // 2
    y, score = load_scored_rows(name, classifier, split, _POOL)
    rng = np.random.default_rng((SETS.index(name), list(SHAPES).index(shape), n, seed))
    test, reference = rng.permutation(_POOL)[: 2 * n].reshape(2, n)
    rank = (pd.Series(score[test]).rank().to_numpy() - 0.5) / n
    is_labeled = rng.random(n) < SHAPES[shape](rank, score[test])
    arguments = {"reference": (y[reference], score[reference]), **STATEMENTS[stated]}
    return Problem(y[test], score[test], np.where(is_labeled, y[test], np.nan), arguments)


@cache
def _load_series(name: str, classifier: str, split: int) -> Rows:
    return rows_of(name, classifier, split, 2000, in_time=True)


def make_drifted(name: str, reason: str, seed: int) -> Problem:
    """Return 2,000 rows of a time series, and 1,000 reference rows from its first fifth."""
    classifier, split = CLASSIFIERS[seed % 2], seed // 2
    series = _load_series(name, classifier, 0)
    rng, size = np.random.default_rng((SETS.index(name), split, 5)), series.y.size
    span = max(size // 5, 3000)
    start = int(rng.uniform(0.3 * size, size - span))
    early = series.take(np.sort(rng.choice(size // 5, 1000, replace=False)))
    late = series.take(np.sort(start + rng.choice(span, 2000, replace=False)))
    late = late._replace(X=None, seed=(SETS.index(name), split, 5))
    return Problem(
        late.y, late.score, hidden(late, reason), {"missingness": dm.missing.Reference(early.y, early.score)}
    )


def make_shifted(seed: int) -> Problem:
    """Return simulated rows and reference rows with twice the odds of a positive, stated to be comparable."""
    rng = np.random.default_rng((seed, 17))
    score = rng.beta(1.0, 2.0, 4000)
    odds = score / (1.0 - score) * np.repeat([1.0, 2.0], 2000)
    y = (rng.random(4000) < odds / (1.0 + odds)).astype(float)
    observed = np.where(rng.random(2000) < 0.5, y[:2000], np.nan)
    arguments = {"missingness": dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(y[2000:], score[2000:]))}
    return Problem(y[:2000], score[:2000], observed, arguments)


CASES = [
    Case(
        f"{shape}, {stated}, {name}, {n:,} rows",
        partial(make_problem, name, shape, stated, n),
        n_seeds=100,
        pool=f"{shape}, {stated}, {n:,} rows",
    )
    for stated in STATEMENTS
    for n in _SIZES
    for shape in SHAPES
    for name in SETS
]
CASES += [
    Case(f"drift, {reason}, {name}", partial(make_drifted, name, reason), n_seeds=40, pool="drift", min_pooled=0.8)
    for reason in _DRIFT_REASONS
    for name in _IN_TIME
]
CASES.append(Case("control: drifted reference, by score and label", make_shifted, n_seeds=20, is_control=True))
