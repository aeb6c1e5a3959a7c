"""Delayed labels of rows that are reviewed with known probabilities."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Delayed, Propensity

METRICS = ("precision", "recall", "f1")


def simulate(seed: int, n: int = 2000) -> dict[str, Any]:
    """Simulate rows: 95% are reviewed from a score of 0.5 on, 25% below; positives take longer."""
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 1.8, n)
    y = (rng.random(n) < score).astype(float)
    age = rng.integers(5, 60, n).astype(float)
    propensity = np.where(score >= 0.5, 0.95, 0.25)
    delay = np.floor(rng.exponential(np.where(y == 1.0, 12.0, 4.0))) + 1.0
    known = (rng.random(n) < propensity) & (delay <= age)
    labels, times = (np.where(known, values, np.nan) for values in (y, delay))
    return {"labels": labels, "score": score, "age": age, "delay": times, "propensity": propensity, "y": y}


def evaluate(rows: dict[str, Any], **settings: Any) -> Any:
    reviewed = Propensity(rows["propensity"])
    model = Delayed(**{"age": rows["age"], "delay": rows["delay"], "reviewed": reviewed} | settings)
    return dm.evaluate(rows["labels"], rows["score"], metrics=METRICS, missingness=model)


def is_covered(rows: dict[str, Any], result: Any) -> list[bool]:
    truth = dm.evaluate(rows["y"], rows["score"], metrics=METRICS)
    ends = {name: result[name].interval(0.9) for name in METRICS}
    return [ends[name][0] <= truth[name].mean() <= ends[name][1] for name in METRICS]


def table_of(rows: dict[str, Any]) -> pd.DataFrame:
    now = pd.Timestamp("2026-04-20")
    scored = now - pd.to_timedelta(rows["age"], unit="D")
    return pd.DataFrame(
        {
            "y": rows["labels"],
            "p": rows["score"],
            "pi": rows["propensity"],
            "scored": scored,
            "labeled": scored + pd.to_timedelta(rows["delay"], unit="D"),
            "segment": np.arange(rows["y"].size) % 2,
        }
    )


TIMES: dict[str, Any] = {"scored_at": "scored", "labeled_at": "labeled", "as_of": "2026-04-20"}


def test_late_labels_cover_with_known_review_rates() -> None:
    covered = []
    for seed in range(6):
        rows = simulate(seed)
        covered += is_covered(rows, evaluate(rows))
    assert np.mean(covered) >= 0.7


@pytest.mark.filterwarnings("ignore::darkmetrics.exceptions.AssumptionWarning")
def test_late_labels_do_not_cover_with_propensities_of_other_rows() -> None:
    """Negative control: review rates in the reverse order of scores."""
    covered = []
    for seed in range(3):
        rows = simulate(seed)
        wrong = np.where(rows["score"] >= 0.5, 0.25, 0.95)
        covered += is_covered(rows, evaluate(rows, reviewed=Propensity(wrong)))
    assert np.mean(covered) < 0.5


def test_evaluate_uses_age_and_propensity_of_a_set_without_a_mechanism() -> None:
    rows = simulate(1, 800)
    model = Delayed(age=rows["age"], delay=rows["delay"], reviewed=Propensity(rows["propensity"]))
    data = dm.EvaluationSet(rows["labels"], rows["score"], missingness=model)
    stated, default = evaluate(rows), dm.evaluate(data, metrics=METRICS)
    assert stated["recall"].mean() == default["recall"].mean()
    assert "Each row is reviewed with the probability passed" in default.assumption


def test_evaluate_and_evaluate_by_use_propensity_next_to_times_of_a_table() -> None:
    rows = simulate(2, 800)
    model = Delayed(**TIMES, reviewed=Propensity("pi"))
    settings: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "recall", "missingness": model}
    table = table_of(rows)
    days = rows["age"].astype("timedelta64[D]"), rows["delay"].astype("timedelta64[D]")
    expected = evaluate(rows, age=days[0], delay=days[1])["recall"].mean()
    assert dm.evaluate(data=table, **settings)["recall"].mean() == pytest.approx(expected, rel=1e-9)
    groups = dm.evaluate_by(data=table, by="segment", **settings)
    assert all("with the probability passed" in groups[key].assumption for key in groups)
    assert "with the probability passed" in groups.total.assumption


def test_stored_set_keeps_propensity_of_late_row_without_label(tmp_path: Any) -> None:
    rows = simulate(3, 200)
    data = dm.EvaluationSet(
        rows["labels"],
        rows["score"],
        missingness=dm.missing.Delayed(age=rows["age"], reviewed=dm.missing.Propensity(np.ones(200))),
    )
    assert data.n_missing > 0
    stored = dm.EvaluationSet.from_parquet(data.to_parquet(tmp_path / "rows.parquet"))
    np.testing.assert_array_equal(stored.cells.propensity, data.cells.propensity)


def test_late_labels_with_propensity_need_propensities() -> None:
    rows = simulate(4, 200)
    with pytest.raises(InputError, match=r"^propensity: none with these rows \(Delayed\)\."):
        evaluate(rows, reviewed=Propensity())


def test_late_labels_accept_many_different_propensities() -> None:
    rows = simulate(6, 400)
    propensity = np.clip(rows["propensity"] * (0.9 + 0.1 * rows["score"]), 0.01, 0.99)
    result = evaluate(rows, reviewed=Propensity(propensity))
    assert 0.0 < result["recall"].mean() < 1.0
