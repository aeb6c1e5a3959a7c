"""Every engine gives the same evaluation: the one of the arrays."""

import math
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.evaluating import evaluate

# With the reason stated: what is found under three at once takes thrice as long and comes from the same cells. A ratio
# of counts, a ranking and a loss: other metrics are found from the same counts. Scores have one digit: losses of more
# take twenty times as long.
SETTINGS: dict[str, Any] = {
    "metrics": ("recall", "roc_auc", "brier"),
    "missingness": "by_score",
    "rng": 0,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    score = (rng.random(300) ** 2).round(1)
    label = [None if u < 0.3 else int(v < s) for u, v, s in zip(rng.random(300), rng.random(300), score, strict=True)]
    return label, score.tolist(), rng.integers(1, 4, 300).astype(float).tolist()


@pytest.fixture(scope="module")
def by_arrays(rows):
    label, score, weight = rows
    return {
        weighted: numbers(dm.evaluate(label, score, sample_weight=weight if weighted else None, **SETTINGS))
        for weighted in (False, True)
    }


def numbers(evaluation: dm.Evaluation) -> dict[str, float]:
    """All numbers of an evaluation by their path."""
    found: dict[str, float] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{path}/{key}")
        elif isinstance(value, (list, tuple)):
            for place, item in enumerate(value):
                walk(item, f"{path}/{place}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[path] = float(value)

    walk(evaluation.to_dict(), "")
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_every_engine_equal_those_of_arrays(engine, rows, by_arrays, weighted):
    label, score, weight = rows
    frame = engine({"y": label, "p": score, "w": weight})
    found = numbers(evaluate("y", "p", data=frame, sample_weight="w" if weighted else None, **SETTINGS))
    expected = by_arrays[weighted]
    assert found.keys() == expected.keys()
    assert any("roc_auc" in path for path in found)
    for path, value in expected.items():
        # The cells are identical, so the numbers should be; 1e-9 is what is promised.
        assert math.isclose(found[path], value, rel_tol=1e-9, abs_tol=1e-12), path


def test_bined_counts_by_decision_are_those_of_the_rows(engine, rows):
    """Counts on both sides of the threshold are exact in any bins, and so are worst and best confusion metrics."""
    label, score, _ = rows
    names = ("precision", "recall", "accuracy")
    coarse = evaluate(
        dm.EvaluationSet("y", "p", data=engine({"y": label, "p": score}), score_bins=16), metrics=names, rng=0
    )
    fine = dm.evaluate(label, score, metrics=names, rng=0)
    assert coarse.data.score_bins == 16
    assert coarse.data.by_decision == fine.data.by_decision
    for name in names:
        assert coarse.oracle_bounds(name) == fine.oracle_bounds(name)


@pytest.mark.parametrize("named", [True, False])
def test_rows_that_share_their_fate_are_told_by_a_column_of_every_engine(engine, rows, named):
    label, score, _ = rows
    number = np.repeat(np.arange(100), 3)
    customer = [f"c{place:03d}" for place in number] if named else number.tolist()
    settings = {**SETTINGS, "metrics": "recall", "method": dm.methods.Auto(500)}
    found = evaluate("y", "p", data=engine({"y": label, "p": score, "c": customer}), clusters="c", **settings)
    expected = dm.evaluate(label, score, clusters=customer, **settings)
    assert found.intervals == expected.intervals
    # The control: groups have a say in the answer.
    assert found.intervals != dm.evaluate(label, score, **settings).intervals
