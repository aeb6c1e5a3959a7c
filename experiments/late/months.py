"""The newest month alone, with hardly a label: does its interval hold when delays are learned from all months?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import darkmetrics as dm
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missing import Delayed
from darkmetrics.missingness.delay_groups import fit_groups
from darkmetrics.question import Question

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
MONTHS, DAYS, THRESHOLD = 12, 28, 0.3
# Mean delays of positives and negatives, in days.
_DELAYS = {"slower": (100.0, 30.0), "equal": (60.0, 60.0), "faster": (60.0, 100.0)}


@dataclass(frozen=True)
class Year:
    """Rows of a year: month 0 is the newest; a label comes `delay` days after its row was scored."""

    y: np.ndarray
    score: np.ndarray
    age: np.ndarray
    delay: np.ndarray

    @property
    def month(self) -> np.ndarray:
        return self.age // DAYS

    @property
    def known(self) -> np.ndarray:
        return self.delay <= self.age

    def sets(self, *, timed: bool = False, age: np.ndarray | None = None) -> list[EvaluationSet]:
        """The rows of each month with the labels that have come, the newest first; `age`: other ages are told."""
        told = self.age if age is None else age
        labels = np.where(self.known, self.y, np.nan)
        delay = np.where(self.known, self.delay, np.nan)
        return [
            EvaluationSet(
                labels[own],
                self.score[own],
                threshold=THRESHOLD,
                missingness=dm.missing.Delayed(age=told[own], delay=delay[own] if timed else None),
            )
            for own in (self.month == month for month in range(MONTHS))
        ]


def simulated(
    rng: np.random.Generator,
    n: int = 3000,
    kind: str = "slower",
    drift: float = 0.0,
    apart: float = 0.0,
    level: float = 0.0,
) -> Year:
    """A year in which the share of positives drifts by this much, and months differ by this much in log odds.

    `level` is added to the log odds of all rows, as of a segment.
    """
    age = rng.integers(0, MONTHS * DAYS, n)
    share = 0.2 * (1.0 + drift * (1.0 - 2.0 * age / (MONTHS * DAYS)))
    odds = share / (1.0 - share) * np.exp(level + apart * rng.normal(size=MONTHS)[age // DAYS])
    y = rng.random(n) < odds / (1.0 + odds)
    x = rng.normal(size=n) + 1.6 * y
    score = 1.0 / (1.0 + np.exp(-(np.log(0.25) - 1.28 + 1.6 * x)))
    positives, negatives = _DELAYS[kind]
    delay = np.floor(rng.gamma(1.5, np.where(y, positives, negatives) / 1.5))
    return Year(y, score, age, delay)


@dataclass(frozen=True)
class Held:
    """For each set (rows) and metric whether its interval held the truth, how wide it was; labels of the month."""

    held: np.ndarray
    width: np.ndarray
    labeled: np.ndarray

    @property
    def coverage(self) -> dict[str, float]:
        return dict(zip(METRICS, self.held.mean(axis=0).tolist(), strict=True))


def newest_month(seeds: Any, *, timed: bool = False, permuted: bool = False, levels: bool = True, **how: Any) -> Held:
    """90% intervals of the newest month over simulated years, one per seed.

    `permuted`: ages are told in another order, the negative control. `levels=False`: months are taken to differ by the
    drift alone, as if they were one set.
    """
    question = Question.of(metrics=METRICS, zero_division=0)
    held, width, labeled = [], [], []
    for seed in seeds:
        rng = np.random.default_rng([17, seed])
        year = simulated(rng, **how)
        sets = year.sets(timed=timed and not permuted, age=rng.permutation(year.age) if permuted else None)
        model = fit_groups(Delayed(), sets)[0] if levels else Delayed().fit(EvaluationSet.concat(sets))
        answer = replace(question, model=model, believes=False).answer(sets[0], rng)
        own = year.month == 0
        complete = EvaluationSet(year.y[own].astype(float), year.score[own], threshold=THRESHOLD)
        ends = np.array([answer[metric.name].interval(0.9) for metric in question.metrics])
        truth = np.array([metric.value(complete, 0.0) for metric in question.metrics])
        held.append((ends[:, 0] <= truth + 1e-12) & (truth <= ends[:, 1] + 1e-12))
        width.append(ends[:, 1] - ends[:, 0])
        labeled.append(float(year.known[own & year.y].mean()))
    return Held(np.array(held), np.array(width), np.array(labeled))
