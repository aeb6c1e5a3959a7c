"""What is said of late rows by someone who knows their ages, and by others who do not."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata

import darkmetrics as dm
from experiments.late.problems import LateRows

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
_RESAMPLES = 100


def values(y: Any, score: Any, threshold: float) -> dict[str, float]:
    """The metrics of rows with all labels, from their definitions: scikit-learn's checks would take the time."""
    decided, positive = score >= threshold, y == 1
    tp, flagged, there = float((decided & positive).sum()), float(decided.sum()), float(positive.sum())
    found = {
        "precision": tp / flagged if flagged else 0.0,
        "recall": tp / there if there else 0.0,
        "accuracy": float((decided == positive).mean()),
        "f1": 2.0 * tp / (flagged + there) if flagged + there else 0.0,
    }
    rank = rankdata(score)
    pairs = there * (y.size - there)
    above = float(rank[positive].sum()) - there * (there + 1.0) / 2.0
    return found | {"roc_auc": above / pairs if pairs else np.nan}


def answers(rows: LateRows, *, seed: int, others: bool) -> Iterator[dict[str, Any]]:
    """Interval and truth of each metric, as told; `others`: also by those who do not know the ages."""
    truth = values(rows.y, rows.score, rows.threshold)
    known = rows.known
    labels = np.where(known, rows.y, np.nan)
    delay = np.where(known, rows.delay, np.nan)
    told: dict[str, dict[str, Any]] = {
        "ages": {"missingness": dm.missing.Delayed(age=rows.age, maturity=rows.maturity)},
        "ages and arrivals": {"missingness": dm.missing.Delayed(age=rows.age, delay=delay, maturity=rows.maturity)},
    }
    if others:
        if rows.maturity is not None:  # what is known without ages
            labels = np.where((rows.age >= rows.maturity) & ~known, 0.0, labels)
        told |= {"by_label": {"missingness": "by_label"}, "nothing": {}}
    for name, how in told.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = dm.evaluate(labels, rows.score, threshold=rows.threshold, metrics=METRICS, **how)
        for metric, distribution in result.items():
            low, high = distribution.interval(0.9)
            yield {
                "told": name,
                "metric": metric,
                "truth": truth[metric],
                "low": low,
                "high": high,
                "mean": distribution.mean(),
            }
    if others:
        yield from _dropped("labeled rows alone", rows, ~np.isnan(labels), truth, seed)
        window = rows.maturity or float(np.quantile(rows.age, 0.5))
        yield from _dropped("rows older than a window", rows, (rows.age >= window) & ~np.isnan(labels), truth, seed)


def _dropped(name: str, rows: LateRows, kept: Any, truth: dict[str, float], seed: int) -> Iterator[dict[str, Any]]:
    """Rows that are not kept are dropped: a bootstrap interval."""
    own = np.flatnonzero(kept)
    if len(set(rows.y[own])) < 2:
        return
    rng = np.random.default_rng((seed, 23))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = [rng.choice(own, own.size) for _ in range(_RESAMPLES)]
        found = [values(rows.y[at], rows.score[at], rows.threshold) for at in drawn]
        mean = values(rows.y[own], rows.score[own], rows.threshold)
    for metric in METRICS:
        low, high = np.nanquantile([one[metric] for one in found], [0.05, 0.95])
        yield {"told": name, "metric": metric, "truth": truth[metric], "low": low, "high": high, "mean": mean[metric]}
