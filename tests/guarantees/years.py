"""Simulated years of monitoring: 12 months, 3 segments, and what is known of them when they are evaluated.

Labels are missing at random: 30% of them, and in November and December, where most have not arrived yet, 60% and 85%.
An alert is false if the rows of its group, with all their labels, meet the target.
"""

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import expit

from darkmetrics import CalibrationWarning
from darkmetrics.monitoring import evaluate_by
from guarantees.pieces import Family, Row, files

SEGMENTS = ("a", "b", "c")
MISSING = [0.3] * 10 + [0.6, 0.85]  # from January to December
RATE = 0.05
# Of all positives in the population 81.7% score above the threshold: little room.
THRESHOLD, TARGET = 0.33, 0.8
# Log odds that a segment's scores lose when its recall drops by 5 points: to 76.7%.
DROP, DROPS_IN = 0.228, 7
SEED = 20_26


def score_of(x):
    """Scores that rank as the log odds x do but are no probabilities, with three digits, as many systems keep them."""
    return expit(0.8 * x + 0.3).round(3)


def population(rng, n, lost=0.0):
    """Scores and labels, 27% positive; scores may have lost some log odds."""
    x = rng.normal(-1.5, 1.7, n)
    return score_of(x - lost), rng.random(n) < expit(x)


def at_the_target(rng, segment, month, n=600):
    """A quarter of the rows is positive and exactly four fifths of these are found: the target is just met."""
    score, y = population(rng, 10 * n)
    found, lost, negative = (np.flatnonzero(rows) for rows in (y & (score >= THRESHOLD), y & (score < THRESHOLD), ~y))
    rows = np.concatenate([found[: n // 5], lost[: n // 20], negative[: n - n // 4]])
    assert rows.size == n
    return score[rows], y[rows]


def one_segment_drops(rng, segment, month, n=2_000):
    """The recall of one segment drops by 5 points from July on; others stay, and miss the target by chance at times."""
    return population(rng, n, lost=DROP if segment == "b" and month >= DROPS_IN else 0.0)


GROUPS = {"at the target": at_the_target, "one segment drops": one_segment_drops}


def misses_target(score, y) -> bool:
    # Counts are whole and the target is four fifths: five times the found is exact.
    return bool(5 * y[score >= THRESHOLD].sum() < 4 * y.sum())


def _year(group: str, number: int, missingness: str) -> Iterator[Row]:
    """Labels go missing, the year is evaluated, and its alerts are held against what is true."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number,)))
    parts, missed = [], {}
    for segment in SEGMENTS:
        for month, share in enumerate(MISSING, start=1):
            score, y = GROUPS[group](rng, segment, month)
            missed[segment, month] = misses_target(score, y)
            label = np.where(rng.random(y.size) < share, np.nan, y)
            parts.append(pd.DataFrame({"segment": segment, "month": month, "label": label, "score": score}))
    with warnings.catch_warnings():
        # Some Decembers have few labels, and say so; alerts are looked at all the same.
        warnings.simplefilter("ignore", CalibrationWarning)
        result = evaluate_by(
            "label",
            "score",
            data=pd.concat(parts),
            by="segment",
            time="month",
            threshold=THRESHOLD,
            metrics="recall",
            missingness=missingness,
        )
    found = result.alerts({"recall": TARGET}, false_discovery_rate=RATE)
    alerts = {alert.key for alert in found}
    for (segment, month), missed_here in found.probability_missed.items():
        figures = {"p_value": 1.0 - missed_here["recall"], "alert": (segment, month) in alerts}
        yield {"year": number, "segment": segment, "month": month, **figures, "missed": missed[segment, month]}


def _years(group: str, missingness: str, start: int, stop: int) -> Iterator[Row]:
    if missingness != "labeled rows at their word":
        for number in range(start, stop):
            yield from _year(group, number, missingness)
        return
    # What many do today: take the metric of the labeled rows for that of all.
    rng = np.random.default_rng(start)
    for number in range(start, stop):
        for segment in SEGMENTS:
            for month, share in enumerate(MISSING, start=1):
                score, y = GROUPS[group](rng, segment, month)
                known = rng.random(y.size) >= share
                figures = {"alert": misses_target(score[known], y[known]), "missed": misses_target(score, y)}
                yield {"year": number, "segment": segment, "month": month, **figures}


FAMILY = Family("monitoring", _years, files(__file__))
