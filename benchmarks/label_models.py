"""The default label model: fit and evaluation against one scikit-learn call, and what a posterior node costs."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import darkmetrics as dm
from benchmarks.core import problem, row, seconds


def five_metrics(partly: np.ndarray, score: np.ndarray, **settings: Any) -> None:
    """Fit, law, mean, standard deviation and 90% interval of the five default metrics."""
    for distribution in dm.evaluate(partly, score, **settings).values():
        distribution.mean(), distribution.std(), distribution.interval(0.9)


def default_model() -> Iterator[dict[str, Any]]:
    complete, partly, score, _ = problem(1_000_000)
    reference_labels, _, reference_scores, _ = problem(100_000, seed=1)
    ways: dict[str, dict[str, Any]] = {
        "default label model": {},
        "default, 100,000 reference rows": {"missingness": dm.missing.Reference(reference_labels, reference_scores)},
    }
    for name, settings in ways.items():
        # Taken in turns, so that a slow spell of the machine hits both.
        pairs = [
            (
                seconds(lambda: roc_auc_score(complete, score), 1),
                seconds(lambda settings=settings: five_metrics(partly, score, **settings), 1),
            )
            for _ in range(5)
        ]
        sklearn_time, own_time = (min(times) for times in zip(*pairs, strict=True))
        yield row(
            f"{name}, five metrics, n = 1e6 / one roc_auc_score",
            own_time / sklearn_time,
            4.0,
            f"{own_time:.3f} s against {sklearn_time:.3f} s, best of 5 each",
        )


def cost_of_a_node() -> Iterator[dict[str, Any]]:
    """A node works on at most 2,048 buckets of scores, so ten times the rows must not make it ten times as dear.

    What grows is the window of the counts, like the standard deviation: by a factor of sqrt(10) at most.
    """
    per_node = []
    for n in (100_000, 1_000_000):
        _, partly, score, _ = problem(n)
        data = dm.EvaluationSet(partly, score)
        few, many = (
            seconds(lambda k=k, data=data: _evaluate_set(data, k), 5)  # the set is ready: only models and laws count
            for k in (16, 144)
        )
        per_node.append((many - few) / 128)
    yield row(
        "cost of a node at n = 1e6 / at n = 1e5",
        per_node[1] / per_node[0],
        3.16,  # sqrt(10)
        f"{per_node[1] * 1e3:.2f} ms against {per_node[0] * 1e3:.2f} ms, all five metrics",
    )


def _evaluate_set(data: dm.EvaluationSet, n_draws: int) -> None:
    for distribution in dm.evaluate(data, missingness=dm.missing.ByScore(n_draws=n_draws)).values():
        distribution.mean(), distribution.std(), distribution.interval(0.9)


BENCHMARKS = (default_model, cost_of_a_node)

# That labels are missing at random in these problems is not in doubt; the warning is off once in twenty.
warnings.simplefilter("ignore", dm.MissingnessWarning)
