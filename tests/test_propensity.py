"""Propensity: the probability of each row to get its label is known, and the label may depend on it."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics.missing import Covariates, Propensity
from darkmetrics.missingness.choice import stated_mechanism
from darkmetrics.missingness.curve import Columns
from darkmetrics.missingness.propensity import build_propensity_columns


def rows(n=2000, seed=0, overrides=0.1):
    """An old scorecard lets in low risks, and some of the others at random; the new score does not know what it saw."""
    rng = np.random.default_rng(seed)
    old, new = rng.normal(size=(2, n))
    y = (rng.random(n) < expit(old + new - 1.0)).astype(float)
    propensity = np.where(old < 0.0, 1.0, overrides)
    y_true = np.where(rng.random(n) < propensity, y, np.nan)
    return y, y_true, expit(new - 1.2), propensity


def test_one_propensity_for_all_is_calibration_of_rows_missing_at_random():
    rng = np.random.default_rng(3)
    score = rng.random(3000)
    y = np.where(rng.random(3000) < 0.4, np.nan, rng.random(3000) < score**1.5)
    same = dm.evaluate(y, score, missingness=dm.missing.Propensity(np.full(3000, 0.6)))
    random = dm.evaluate(y, score, missingness="random")
    for name in same:
        assert same[name].mean() == pytest.approx(random[name].mean(), abs=0.1 * random[name].std())
        assert same[name].std() == pytest.approx(random[name].std(), rel=0.1)


def test_intervals_hold_where_an_old_scorecard_decided_and_those_by_score_do_not():
    hits = {"propensity": 0, "by_score": 0}
    for seed in range(60):
        y, y_true, score, propensity = rows(seed=seed)
        truth = y[score >= 0.5].mean()
        for told, how in (
            ("propensity", {"missingness": dm.missing.Propensity(propensity)}),
            ("by_score", {"missingness": "by_score"}),
        ):
            low, high = dm.evaluate(y_true, score, metrics="precision", **how)["precision"].interval(0.9)
            hits[told] += low <= truth <= high
    assert hits["propensity"] >= 48  # of 60: at 90% fewer than that come once in two hundred times
    assert hits["by_score"] <= 15


@pytest.mark.parametrize(
    "propensities", [[0.1], [0.1, 1.0], [0.1, 0.3, 0.6, 1.0], [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9]]
)
def test_propensity_columns_represent_any_level_of_each_propensity(propensities):
    propensity = np.repeat(propensities, 5)
    constant = Columns(np.ones((propensity.size, 1)), np.zeros(1), np.ones(1))
    columns = build_propensity_columns(propensity, [constant], np.zeros(propensity.size), np.ones(propensity.size))
    assert np.linalg.matrix_rank(np.hstack([constant.columns, columns.columns])) == len(propensities)
    assert columns.columns.shape[1] == columns.sd.size == columns.mean.size


def test_propensity_covers_when_positives_depend_on_it_in_steps():
    """Rates of positives alternate between four propensities; by score alone is the control."""
    hits = {"propensity": 0, "by_score": 0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kind, new = rng.integers(0, 4, 2000), rng.normal(size=2000)
        y = (rng.random(2000) < expit(np.array([-2.0, 0.0, -2.0, 0.0])[kind] + new)).astype(float)
        propensity = np.array([0.1, 0.3, 0.6, 1.0])[kind]
        y_true, score = np.where(rng.random(2000) < propensity, y, np.nan), expit(new - 1.2)
        truth = ((score >= 0.5) == y).mean()
        arguments: dict[str, Any] = {
            "propensity": {"missingness": dm.missing.Propensity(propensity)},
            "by_score": {"missingness": "by_score"},
        }
        for mechanism, stated in arguments.items():
            low, high = dm.evaluate(y_true, score, metrics="accuracy", **stated)["accuracy"].interval(0.9)
            hits[mechanism] += low <= truth <= high
    assert hits["propensity"] >= 31  # of 40: at 90% fewer come once in seventy times
    assert hits["by_score"] <= 20


def test_tables_and_sets_say_the_same_as_arrays(tmp_path):
    pd = pytest.importorskip("pandas")
    _, y_true, score, propensity = rows()
    few: dict[str, Any] = {"metrics": ("recall", "roc_auc")}
    expected = dm.evaluate(y_true, score, missingness=dm.missing.Propensity(propensity), **few).to_dict()["metrics"]
    table = pd.DataFrame({"y": y_true, "s": score, "pi": propensity})
    found = dm.evaluate("y", "s", data=table, missingness=dm.missing.Propensity("pi"), **few)
    assert found.to_dict()["metrics"] == expected
    data = dm.EvaluationSet(y_true, score, missingness=dm.missing.Propensity(propensity))
    half = np.arange(y_true.size) % 2 == 0
    parts = [
        dm.EvaluationSet(y_true[own], score[own], missingness=dm.missing.Propensity(propensity[own]))
        for own in (half, ~half)
    ]
    stored = dm.EvaluationSet.from_parquet(data.to_parquet(tmp_path / "cells.parquet"))
    for ready in (data, parts[0] + parts[1], stored):
        assert dm.evaluate(ready, **few).to_dict()["metrics"] == expected
        assert dm.evaluate(ready, missingness=dm.missing.Propensity(), **few).to_dict()["metrics"] == expected
        assert dm.evaluate(ready, missingness=dm.missing.Propensity(True), **few).to_dict()["metrics"] == expected
    one = dm.evaluate_by("y", "s", data=table.assign(g=1), by="g", missingness=dm.missing.Propensity("pi"), **few)
    assert one[1].to_dict()["metrics"] == expected


def test_what_was_said_is_kept():
    _, y_true, score, propensity = rows()
    result = dm.evaluate(y_true, score, missingness=dm.missing.Propensity(propensity))
    assert result.stated == "propensity"
    assert stated_mechanism(Propensity(), None) == "propensity"
    assert "the chance given" in result.assumption
    # What scores say comes after what was stated, and is not the answer: it must not read as if it were.
    assert result.diagnosis.verdict.startswith(
        "The chances given say why labels are missing, and the answer uses them."
    )
    assert all("had no chances been given" in title for title, *_ in result.diagnosis.tables()[:1])
    assert result.arguments["missingness"] == "dm.missing.Propensity(propensity=propensity)"


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("labeled", 0.0, "propensity: 0 at row 0, with a label"),
        ("labeled", np.nan, "propensity: NaN at row 0, with a label"),
        ("missing", 1.0, "propensity: 1 at row 1, without a label"),
        ("missing", 1.2, "propensity: 1.2 at row 1, without a label"),
        ("missing", -0.1, "propensity: -0.1 at row 1, without a label"),
    ],
)
def test_wrong_propensities_are_refused(place, value, said):
    y_true, score, propensity = [1, None, 0, 1], [0.9, 0.2, 0.3, 0.6], [0.5, 0.5, 0.5, 0.5]
    propensity[0 if place == "labeled" else 1] = value
    with pytest.raises(dm.InputError, match=said):
        dm.evaluate(y_true, score, missingness=dm.missing.Propensity(propensity))
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"y": y_true, "s": score, "pi": propensity})
    with pytest.raises(dm.InputError, match="propensity column 'pi': 1 of 4 values is"):
        dm.evaluate("y", "s", data=table, missingness=dm.missing.Propensity("pi"))


def test_what_cannot_be_done_is_said():
    _, y_true, score, propensity = rows(200)
    sure = np.where(np.isnan(y_true), 0.5, 1.0)
    with pytest.raises(dm.InputError, match="propensity: 1 for every row with a label"):
        dm.evaluate(y_true, score, missingness=dm.missing.Propensity(sure))
    plain = dm.EvaluationSet(y_true, score)
    with pytest.raises(dm.InputError, match="propensity: True, but the EvaluationSet has none"):
        dm.evaluate(plain, missingness=dm.missing.Propensity(True))
    with pytest.raises(dm.InputError, match="propensity: none with these rows"):
        dm.evaluate(plain, missingness=dm.missing.Propensity())
    with pytest.raises(dm.InputError, match="an EvaluationSet already fixes it"):
        dm.evaluate(plain, missingness=dm.missing.Propensity(propensity))
    with pytest.raises(dm.InputError, match="propensity: True stands for"):
        dm.evaluate(y_true, score, missingness=dm.missing.Propensity(True))
    with pytest.raises(dm.InputError, match="propensity: one set has them"):
        plain + dm.EvaluationSet(y_true, score, missingness=dm.missing.Propensity(propensity))


def test_features_and_propensity_together_are_right_where_either_alone_is_not():
    hits = {"both": 0, "features": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seen, unseen, new = rng.normal(size=(3, 2000))
        y = (rng.random(2000) < expit(seen + unseen + new - 1.0)).astype(float)
        propensity = np.where(unseen < 0.0, 0.9, 0.15)  # by what the features do not have
        y_true = np.where(rng.random(2000) < propensity, y, np.nan)
        score = expit(new - 1.0)
        X = np.column_stack([seen, new])
        truth = y[score >= 0.5].mean()
        for told, given in (("both", propensity), ("features", None)):
            model = Covariates(LogisticRegression(), X, propensity=given)
            distribution = dm.evaluate(y_true, score, metrics="precision", missingness=model)["precision"]
            low, high = distribution.interval()
            hits[told] += low <= truth <= high
    assert hits["both"] >= 14
    assert hits["features"] <= 4
