"""`scipy.stats.bootstrap` of the labeled rows, all five metrics in one vectorised statistic."""

import numpy as np
import scipy.stats
from harness import LEVEL, METRICS, THRESHOLD, Answer, labeled_rows, main


def statistic(y: np.ndarray, score: np.ndarray, axis: int = -1) -> np.ndarray:
    positive, decided = y == 1, score >= THRESHOLD
    tp = (positive & decided).sum(axis)
    fp, fn = decided.sum(axis) - tp, positive.sum(axis) - tp
    n, positives = y.shape[axis], tp + fn
    ranks = scipy.stats.rankdata(score, axis=axis)
    auc = ((ranks * positive).sum(axis) - positives * (positives + 1) / 2) / (positives * (n - positives))
    return np.stack([tp / (tp + fp), tp / positives, (n - fp - fn) / n, 2 * tp / (2 * tp + fp + fn), auc])


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    y, s, _ = labeled_rows(label, score)
    found = scipy.stats.bootstrap(
        (y, s),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, 1_000_000 // y.size),  # all at once would need gigabytes and is slower
        confidence_level=LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    point = statistic(y, s)
    return {name: (point[i], found.low[i], found.high[i]) for i, name in enumerate(METRICS)}


if __name__ == "__main__":
    main("scipy", estimate)
