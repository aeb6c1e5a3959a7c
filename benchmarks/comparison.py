"""Two models on the same rows against scikit-learn's ROC-AUC of one of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import darkmetrics as dm
from benchmarks.core import row, seconds


def two_models() -> Iterator[dict[str, Any]]:
    rng, n = np.random.default_rng(0), 1_000_000
    truth = rng.normal(size=n) - 1.0
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * truth))).astype(np.float64)
    partly = np.where(rng.random(n) < 0.5, np.nan, y)
    scores = {
        name: 1.0 / (1.0 + np.exp(-2.0 * (truth + noise * rng.normal(size=n))))
        for name, noise in {"champion": 0.8, "challenger": 0.7}.items()
    }

    def compared() -> None:
        found = dm.compare(partly, scores, missingness="unknown")
        for metric in found.metrics:
            found.difference(metric, "challenger", "champion").interval(0.9)
            found.probability_better(metric, "challenger", "champion")

    # Taken in turns, so that a slow spell of the machine hits both.
    pairs = [(seconds(lambda: roc_auc_score(y, scores["champion"]), 1), seconds(compared, 1)) for _ in range(5)]
    peer, own = (min(times) for times in zip(*pairs, strict=True))
    yield row(
        "two models compared in five metrics, n = 1e6, half missing / one roc_auc_score",
        own / peer,
        6.0,
        f"{own:.3f} s against {peer:.3f} s, best of 5 each",
    )


BENCHMARKS = [two_models]
