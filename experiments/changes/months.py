"""Two months of rows: the first is as ever, in the second the classifier may be worse by three points."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import darkmetrics as dm
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.missing import Delayed
from darkmetrics.missingness.delay_groups import fit_groups
from darkmetrics.question import Question

METRICS = ("precision", "recall", "roc_auc")
ROWS, THRESHOLD, SHARE, APART = 2000, 0.3, 0.2, 1.6
# How far positives and negatives are moved so that recall, and precision, of the population fall by three points.
DROPS = {"none": (0.0, 0.0), "recall": (-0.0826, 0.0), "precision": (0.0, 0.0762)}
# Months of late labels that come before the two, and days of a month.
_EARLIER, _DAYS = 4, 28


@dataclass(frozen=True)
class Month:
    """Rows with all their labels, and which of these are missing."""

    y: np.ndarray
    score: np.ndarray
    missing: np.ndarray

    @property
    def truth(self) -> EvaluationSet:
        return EvaluationSet(self.y.astype(float), self.score, threshold=THRESHOLD)

    @property
    def seen(self) -> EvaluationSet:
        return EvaluationSet(np.where(self.missing, np.nan, self.y), self.score, threshold=THRESHOLD)


def rows(rng: np.random.Generator, drop: str = "none") -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of a month: scores that were calibrated once."""
    y = rng.random(ROWS) < SHARE
    up, down = DROPS[drop]
    x = rng.normal(size=ROWS) + np.where(y, APART + up, down)
    return y, 1.0 / (1.0 + np.exp(-(np.log(SHARE / (1.0 - SHARE)) - APART**2 / 2.0 + APART * x)))


def _chance(how: str, which: int, y: np.ndarray, score: np.ndarray) -> Any:
    """The chance of each row to be without its label, in the earlier (0) and the later (1) month."""
    if how == "random, 30%":
        return 0.3
    if how == "random, 70%":
        return 0.7
    if how == "by score":
        return 0.1 + 0.6 * (score < THRESHOLD)
    if how == "by label":
        return np.where(y, 0.5, 0.2)
    if how == "by label, more each month":
        return np.where(y, (0.25, 0.6)[which], (0.1, 0.35)[which])
    raise ValueError(how)


# What is told in each problem besides nothing.
TOLD = {
    "random, 30%": "random",
    "random, 70%": "random",
    "by score": "by_score",
    "by label": "by_label",
    "by label, more each month": "by_label",
}
LATE = "late"


def answers(how: str, drop: str, seed: int) -> Iterator[tuple[str, Month, Month, Evaluation, Evaluation]]:
    """What was told, the earlier and the later month, and their evaluations."""
    rng = np.random.default_rng([31, seed, list(DROPS).index(drop), [*TOLD, LATE].index(how)])
    if how == LATE:
        yield _late(rng, drop)
        return
    months = []
    for which, worse in enumerate(("none", drop)):
        y, score = rows(rng, worse)
        months.append(Month(y, score, rng.random(ROWS) < _chance(how, which, y, score)))
    # Those who are told nothing are asked in every second pair: it takes longer.
    for told in (TOLD[how], None) if seed % 2 == 0 else (TOLD[how],):
        question = Question.of(metrics=METRICS, missingness=told, zero_division=0)
        yield told or "nothing", *months, *(question.answer(month.seen, rng) for month in months)


def _late(rng: np.random.Generator, drop: str) -> tuple[str, Month, Month, Evaluation, Evaluation]:
    """The two newest months of several, with labels of positives that come later than those of negatives."""
    months, sets = [], []
    for back in range(_EARLIER + 2):
        y, score = rows(rng, drop if back == 0 else "none")
        age = _DAYS * back + rng.integers(0, _DAYS, ROWS)
        missing = np.floor(rng.gamma(1.5, np.where(y, 50.0, 20.0) / 1.5)) > age
        months.append(Month(y, score, missing))
        sets.append(
            EvaluationSet(
                np.where(missing, np.nan, y),
                score,
                threshold=THRESHOLD,
                missingness=dm.missing.Delayed(age=age.astype(float)),
            )
        )
    models = fit_groups(Delayed(), sets)
    found = []
    for which in (1, 0):
        question = Question.of(metrics=METRICS, missingness=models[which], zero_division=0)
        found.append(question.answer(sets[which], rng))
    return "ages", months[1], months[0], found[0], found[1]
