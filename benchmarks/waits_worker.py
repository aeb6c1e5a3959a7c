"""One call of `evaluate` in a process of its own: `python -m benchmarks.waits_worker '{"metrics": ["mcc"], ...}'`.

The library is whichever comes first on PYTHONPATH. Prints one line of JSON: the CPU time of the call and of the table
that it prints, once everything is imported.
"""

import json
import math
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

import darkmetrics as dm
from darkmetrics.distributions.functionals import CountFunctional, Split
from darkmetrics.metrics import Metric, metric_from_text, registered

# Wherever the library measured, which may be older, keeps it.
Cells: Any = type(dm.EvaluationSet([1], [0.5]).cells)
# Bytes that a call may take.
MEMORY = 6 << 30


def problem(n: int, missing: float, weights: bool | list[float], heavy: int = 0) -> dict[str, Any]:
    """Scores U^2, labels drawn from them and missing a little more often where they are positive.

    Weights are lognormal, or those given, each half as frequent as the one before it; `heavy` rows weigh 3,000 times
    as much.
    """
    rng = np.random.default_rng(0)
    score = rng.random(n) ** 2
    label = (rng.random(n) < score).astype(np.float64)
    odds = missing / (1.0 - missing) * np.exp(0.5 * (label - label.mean()))
    label[rng.random(n) < odds / (1.0 + odds)] = np.nan
    if not weights:
        return {"y_true": label, "y_score": score}
    if isinstance(weights, list):
        share = 0.5 ** np.arange(len(weights))
        weight = rng.choice(weights, n, p=share / share.sum())
    else:
        weight = rng.lognormal(size=n)
    weight[rng.permutation(n)[:heavy]] *= 3_000.0
    return {"y_true": label, "y_score": score, "sample_weight": weight}


def counted_problem(missing: int, scores: int) -> dict[str, Any]:
    """Missing rows on that many of 101 scores, beside a million labeled ones: a set that an engine has counted."""
    score = np.arange(101) / 100.0
    positives = np.rint(1e4 * score).astype(np.int64)
    counts = np.zeros(101, dtype=np.int64)
    counts[np.linspace(20, 80, scores).astype(np.int64)] = missing // scores
    cells = Cells(score, score >= 0.5, positives, 10_000 - positives, counts)
    return {"y_true": dm.EvaluationSet.from_cells(cells, threshold=0.5)}


class FourGroups(Metric):
    """A formula of the positives in four bands of scores, of which nothing else is known."""

    def bind(self, data: dm.EvaluationSet, fill: float) -> CountFunctional:
        size = data.missing_counts.size
        return CountFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            split=Split(tuple(np.array_split(np.arange(size), 4)), data.missing_weight),
            offset=(1.0,) * 4,
            formula=lambda a, b, c, d: a * b / (c + d),
            direction=(None,) * 4,
        )

    def of_counts(self, cells: Any, counts: Any) -> Any:
        return np.full(counts.shape[1], np.nan)


def metrics_of(names: list[str]) -> list[Metric]:
    """The metrics of these names; "all" are those registered, families by their example."""
    if names == ["four undirected groups"]:
        return [FourGroups(name="four undirected groups")]
    every = dm.metrics.registered_names() if names == ["all"] else names
    records = [registered(name) for name in every]
    return [
        r if isinstance(r, Metric) else r.example if r.needs_argument else metric_from_text(r.name) for r in records
    ]


def main() -> None:
    case = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    str(dm.evaluate(**problem(60, 0.3, False)))  # what is imported on first use is not counted
    # A signal ends the process when it has used up its time. Memory is kept so that the machine stays usable.
    start = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (start + case["limit"], start + case["limit"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    data = problem(*case["arrays"]) if "arrays" in case else counted_problem(*case["counted"])
    settings = {name: case[name] for name in ("missingness", "method") if name in case}
    metrics = metrics_of(case["metrics"])
    start = time.process_time()
    str(dm.evaluate(**data, metrics=metrics, rng=0, **settings))
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main()
