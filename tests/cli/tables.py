"""Rows for the commands to read."""

from types import SimpleNamespace

import numpy as np


def rows(n=400, seed=0):
    """Labels with gaps (more among positives), scores and weights."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(1, 2, n), 4)
    truth = (rng.random(n) < score).astype(int)
    gone = rng.random(n) < np.where(truth == 1, 0.6, 0.1)
    return SimpleNamespace(
        label=[None if hidden else int(y) for hidden, y in zip(gone, truth, strict=True)],
        score=score.tolist(),
        truth=truth.tolist(),
        weight=rng.integers(1, 4, n).tolist(),
    )


def csv_text(columns):
    names = list(columns)
    lines = zip(*columns.values(), strict=True)
    return "\n".join([",".join(names), *(",".join("" if x is None else str(x) for x in line) for line in lines)]) + "\n"
