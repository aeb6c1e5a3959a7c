"""What a case of the coverage study is, and what is measured of it."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import darkmetrics as dm
from experiments.pieces import ROOT
from experiments.reasons.problems import rows_of

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
LEVEL = 0.9


class Problem(NamedTuple):
    """Rows with all labels, the labels that are observed (NaN where missing), and arguments of `evaluate`."""

    y_true: Any
    y_score: Any
    observed: Any
    arguments: Mapping[str, Any] = {}


class Case(NamedTuple):
    """A design of the study.

    `min_coverage` and `max_coverage` are what every metric must reach over all seeds; of a control, at least one metric
    must be outside. `pool` names the cases that are also judged together, from `min_pooled` to `max_pooled`.
    """

    name: str
    make: Callable[[int], Problem]
    n_seeds: int = 60
    metrics: tuple[str, ...] = METRICS
    min_coverage: float = 0.75
    max_coverage: float = 1.0
    pool: str = ""
    min_pooled: float = 0.85
    max_pooled: float = 1.0
    is_control: bool = False
    # Answers to measure in place of those of `evaluate`: yields a name and an interval (low, high) and mean per metric.
    evaluate: Callable[..., Any] | None = None


def measure(case: Case, seed: int) -> Iterator[dict[str, Any]]:
    """Yield interval, mean and truth of each metric for one seed, with the warnings that were given."""
    problem = case.make(seed)
    arguments = {"metrics": list(case.metrics), **problem.arguments}
    evaluate = case.evaluate or dm.evaluate
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        result = evaluate(problem.observed, problem.y_score, **arguments)
        distributions = {metric: result[metric] for metric in case.metrics}
        seconds = time.process_time() - start
    warned = "+".join(sorted({warning.category.__name__ for warning in caught}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {name: arguments[name] for name in ("threshold", "y_pred", "sample_weight") if name in arguments}
        truth = dm.evaluate(problem.y_true, problem.y_score, metrics=list(case.metrics), **known)
    for metric, distribution in distributions.items():
        low, high = distribution.interval(LEVEL)
        yield {
            "seed": seed,
            "metric": metric,
            "truth": truth[metric].mean(),
            "low": low,
            "high": high,
            "mean": distribution.mean(),
            "warned": warned,
            "seconds": round(seconds, 4),
        }


@cache
def load_scored_rows(name: str, classifier: str, split: int, n: int) -> tuple[Any, Any]:
    """Return labels and scores of a real test set (see `rows_of`); training is done once, and kept on file."""
    path = ROOT / "build" / "coverage-rows" / f"{name}-{classifier}-{split}-{n}.npz"
    if not path.exists():
        rows = rows_of(name, classifier, split, n)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.stem}.{os.getpid()}.npz")
        np.savez(fresh, y=rows.y, score=rows.score)
        Path(fresh).replace(path)
    with np.load(path) as stored:
        return stored["y"], stored["score"]
