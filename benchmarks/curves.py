"""Curves with bands against scikit-learn's precision-recall curve, which has no missing labels and no bands."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve

import darkmetrics as dm
from benchmarks.core import problem, row, seconds


def evaluation(n: int) -> tuple[np.ndarray, np.ndarray, dm.Evaluation]:
    """Complete labels, scores, and the evaluation of the same rows with 30% of the labels missing."""
    complete, partly, score, _ = problem(n)
    return complete, score, dm.evaluate(partly, score)


def against_scikit_learn() -> Iterator[dict[str, Any]]:
    n = 1_000_000
    complete, score, result = evaluation(n)
    _, partly, _, _ = problem(n)
    # Taken in turns, so that a slow spell of the machine hits both.
    pairs = [
        (seconds(lambda: precision_recall_curve(complete, score), 1), seconds(lambda: dm.threshold_curves(result), 1))
        for _ in range(9)
    ]
    sklearn_time, own_time = (min(times) for times in zip(*pairs, strict=True))
    first = seconds(lambda: dm.evaluate(partly, score), 2)
    curves = dm.threshold_curves(result)
    yield row(
        "curves of 4 metrics, n = 1e6 / precision_recall_curve",
        own_time / sklearn_time,
        5.0,
        f"{own_time:.3f} s against {sklearn_time:.3f} s, best of 9 each; {curves.thresholds.size} thresholds, "
        f"{len(result.posterior)} nodes, {curves.method}; the evaluation before it took {first:.2f} s",
    )


def growth() -> Iterator[dict[str, Any]]:
    sizes = (100_000, 1_000_000, 10_000_000)
    times = []
    for n in sizes:
        _, _, result = evaluation(n)
        times.append(seconds(lambda result=result: dm.threshold_curves(result), 5 if n < sizes[-1] else 2))
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    shown = ", ".join(f"{t:.3f} s at {n:,}" for n, t in zip(sizes, times, strict=True))
    yield row("exponent of n in the time of curves, 1e5 to 1e7", slope, 1.1, shown)


def every_threshold() -> Iterator[dict[str, Any]]:
    sizes = (10_000, 100_000)
    times = []
    for n in sizes:
        _, partly, score, p = problem(n)
        result = dm.evaluate(partly, score, missingness=dm.missing.Fixed(p))
        times.append(seconds(lambda result=result: dm.threshold_curves(result, thresholds="all", method="gaussian"), 3))
    slope = float(np.log10(times[1] / times[0]))
    shown = ", ".join(f"{t:.3f} s at {n:,}" for n, t in zip(sizes, times, strict=True))
    yield row("exponent of n with every score a threshold, 1e4 to 1e5", slope, 1.2, shown)


BENCHMARKS = (against_scikit_learn, growth, every_threshold)
