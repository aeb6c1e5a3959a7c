"""Relations that must hold between answers about several models, sets or groups: units of weight, orders, mirrors."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm

METRICS = ["precision", "f1", "mcc", "accuracy", "roc_auc", "brier"]
UNITS = [2.0**-66, 2.0**66, 3.7]


def problem(seed: int, n: int = 36) -> pd.DataFrame:
    """Rows with two scores, weights of one of three kinds and a group; a quarter of the labels is missing."""
    rng = np.random.default_rng(seed)
    weight = [rng.integers(1, 5, n), rng.lognormal(0.0, 1.0, n), np.full(n, 0.1)][seed % 3]
    p, q = (np.rint(16.0 * rng.random((2, n))) / 16.0).tolist()
    y = (rng.random(n) < np.array(p)).astype(float)
    y[rng.permutation(n)[: n // 4]] = np.nan
    return pd.DataFrame({"y": y, "p": p, "q": q, "w": weight, "g": np.arange(n) % 2, "chance": rng.random(n)})


def distribution(found: Any) -> tuple[float, ...]:
    return found.mean(), found.std(), *found.interval(0.9), found.undefined


def compared(rows: pd.DataFrame, scope: Any, unit: float = 1.0) -> Iterator[float]:
    scores = {"a": rows["p"].to_numpy(), "b": rows["q"].to_numpy()}
    settings: dict[str, Any] = {
        "metrics": METRICS,
        "scope": scope,
        "rng": 0,
        "missingness": dm.missing.Fixed(rows["chance"].to_numpy()),
    }
    found = dm.compare(rows["y"].to_numpy(), scores, sample_weight=unit * rows["w"].to_numpy(), **settings)
    for metric in METRICS:
        one, other = found.difference(metric, "a", "b"), found.difference(metric, "b", "a")
        assert other.mean() == pytest.approx(-one.mean(), abs=1e-12)
        best = found.probability_best(metric)
        assert best["a"] + best["b"] + best.tie == pytest.approx(1.0, abs=1e-9)
        yield from (
            *distribution(one),
            found.probability_better(metric, "a", "b"),
            found.probability_better(metric, "b", "a"),
            best.tie,
        )


def changed(rows: pd.DataFrame, scope: Any, unit: float = 1.0) -> Iterator[float]:
    sets = [
        dm.evaluate(
            own["y"],
            own["p"],
            sample_weight=unit * own["w"],
            missingness=dm.missing.Fixed(own["chance"].to_numpy()),
            metrics=METRICS,
            scope=scope,
        )
        for _, own in rows.reset_index(drop=True).groupby("g")
    ]
    found, back = dm.compare_evaluations(sets[0], sets[1]), dm.compare_evaluations(sets[1], sets[0])
    for metric in METRICS:
        assert back.probability_increased(metric) == pytest.approx(found.probability_decreased(metric), abs=1e-4)
        yield from (
            *distribution(found[metric]),
            found.probability_decreased(metric),
            found.probability_increased(metric),
        )


@pytest.fixture(autouse=True)
def few_labels_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a few rows, of which every answer can be listed, are compared as well."""
    monkeypatch.setattr("darkmetrics.monitoring.groups.MIN_LABELS", 1)


def grouped(rows: pd.DataFrame, scope: Any, unit: float = 1.0) -> Iterator[float]:
    table = rows.assign(w=unit * rows["w"])
    settings: dict[str, Any] = {
        "y_true": "y",
        "y_score": "p",
        "sample_weight": "w",
        "scope": scope,
        "missingness": dm.missing.Fixed(0.5),
    }
    found = dm.evaluate_by(data=table, by="g", metrics=METRICS, **settings)
    for metric in METRICS:
        for one in (*found.values(), found.total):
            yield from distribution(one[metric])
        gap = found.disparity(metric)
        yield from (*distribution(gap.distribution), *gap.probability_highest.values())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("answer", "scope"), [(compared, "rows"), (compared, "population"), (changed, "rows"), (grouped, "rows")]
)
def test_an_answer_depends_on_neither_the_unit_of_weight_nor_the_order_of_rows(answer, scope, seed):
    rows = problem(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        one = list(answer(rows, scope))
        others = [list(answer(rows, scope, unit)) for unit in UNITS]
        others.append(list(answer(rows.sample(frac=1.0, random_state=seed), scope)))
    for other in others:
        assert other == pytest.approx(one, rel=1e-6, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("unit", UNITS[:2])
def test_the_best_of_three_models_by_a_sum_of_weights_is_the_same_in_every_unit(unit):
    # Values were the same where they differed by less than 1e-12, which all do that are small: every model was best.
    rows = problem(0)
    scores = {"a": rows["p"], "b": rows["q"], "c": rows["chance"]}
    found = [
        dm.compare(
            rows["y"],
            scores,
            sample_weight=one * rows["w"],
            metrics=dm.metrics.ConfusionMetric(name="found", formula=lambda tp, fp, fn, tn: 1.0 * tp),
            missingness=dm.missing.Fixed(rows["chance"].to_numpy()),
            rng=0,
        )
        for one in (1.0, unit)
    ]
    best, ranks = (
        [one.probability_best("found").chances for one in found],
        [one.rank_probabilities("found").chances for one in found],
    )
    assert 0.0 < max(best[0].values()) <= 1.0
    assert best[1] == pytest.approx(best[0], abs=1e-12)
    assert ranks[1] == {name: pytest.approx(places, abs=1e-12) for name, places in ranks[0].items()}
