"""No positive label below the threshold: nearly all rows above it are labeled, and few rows below it."""

from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

import darkmetrics as dm
from experiments.coverage.cases import Case, Problem

_THRESHOLD = 0.5
# Range of the positive rate below the threshold, log-uniform, and of the number of labels there.
_RATES, _LABELS = (0.001, 0.05), (20, 200)
# Fractions of rows with a label, above and below the threshold.
_LABELED_ABOVE, _LABELED_BELOW = 0.98, 0.05


def make_problem(shape: str, n: int, labeled_below: float, stated: str, seed: int) -> Problem:
    """Return simulated rows with 20 to 200 labels below the threshold, none of them positive.

    `shape` says how the positive rate below the threshold depends on the score: not at all ("flat"), or in proportion
    to its odds ("rising"). Above the threshold scores are calibrated.
    """
    rng = np.random.default_rng((seed, n, 41))
    while True:
        score = rng.beta(1.0, 4.0, n)
        below = score < _THRESHOLD
        rate = np.exp(rng.uniform(*np.log(_RATES)))
        probability = np.where(below, _rates_below(shape, score, rate, score[below]), score)
        y = (rng.random(n) < probability).astype(float)
        is_labeled = rng.random(n) < np.where(below, labeled_below, _LABELED_ABOVE)
        labels = y[is_labeled & below]
        if _LABELS[0] <= labels.size <= _LABELS[1] and not labels.any() and y[~below].sum() >= 5.0:
            arguments = {"missingness": stated} if stated else {}
            return Problem(y, score, np.where(is_labeled, y, np.nan), arguments)


def _rates_below(shape: str, score: Any, rate: float, below: Any) -> Any:
    """Return positive rates by score that average about `rate` over the scores below the threshold."""
    if shape == "flat":
        return np.full(score.size, rate)
    shift = logit(rate) - logit(np.mean(below))
    return expit(logit(score) + shift)


def evaluate_extrapolated(observed: Any, score: Any, *, metrics: list[str], missingness: str) -> Any:
    """Evaluate with a curve that is extrapolated from the labels above the threshold: it gets no level below it."""
    model = dm.missing.ByScore(dm.calibrators.Flexible(threshold=_THRESHOLD))
    return dm.evaluate(observed, score, metrics=metrics, missingness=model)


_NAMES = {"by_score": "by score", "": "not stated"}
CASES = [
    Case(
        f"{shape} rate below, {n:,} rows, {_NAMES[stated]}",
        partial(make_problem, shape, n, labeled_below, stated),
        n_seeds=200,
        metrics=("recall", "f1"),
        min_coverage=0.85,
    )
    for stated in _NAMES
    for n, labeled_below in ((500, _LABELED_BELOW), (2000, _LABELED_BELOW))
    for shape in ("flat", "rising")
]
CASES.append(
    Case(
        "control: extrapolated curve without level, 500 rows",
        partial(make_problem, "flat", 500, _LABELED_BELOW, "by_score"),
        n_seeds=200,
        metrics=("recall", "f1"),
        min_coverage=0.85,
        is_control=True,
        evaluate=evaluate_extrapolated,
    )
)
