"""Gaps where a metric is 0/0 or equal in groups: words follow the law, and chances go to groups that have a value."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm


@pytest.fixture(autouse=True)
def few_labels_are_enough(monkeypatch):
    """Groups of a few rows, of which every answer can be listed, are compared as well."""
    monkeypatch.setattr("darkmetrics.monitoring.groups.MIN_LABELS", 0)


def shops(zero_division="warn", scope="rows", power=1.0, **other):
    """Three groups of which the last, w, has no positive; of every other label none is missing."""
    rng = np.random.default_rng(0)
    group, p = np.repeat(["x", "y", "w"], [90, 90, 20]), rng.random(200)
    y = (rng.random(200) < p) * 1.0
    y[group == "w"] = 0.0
    table = pd.DataFrame({"g": group, "y": y, "p": power * p})
    if "probability" in other:
        table.loc[180, "y"], table["q"] = np.nan, other.pop("probability")
        other |= {"missingness": dm.missing.Fixed("q")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate_by(
            "y", "p", data=table, by="g", metrics=["recall", "fpr"], zero_division=zero_division, scope=scope, **other
        )


@pytest.mark.parametrize("zero_division", ["warn", 0, 1])
@pytest.mark.parametrize("kind", ["difference", "ratio", "equalized_odds"])
def test_a_group_of_0_by_0_that_counts_has_a_gap_in_words(kind, zero_division):
    found = shops(zero_division).disparity(None if kind == "equalized_odds" else "recall", kind)
    counted = 0 if zero_division == "warn" else zero_division
    assert f"{found.distribution.mean():.3f}" in found._words()[0]
    assert f"In w recall is undefined (0/0) and counts as {counted}." in str(found)


@pytest.mark.parametrize(("zero_division", "scope"), [(np.nan, "rows"), ("warn", "population")])
def test_a_group_without_a_value_leaves_chances_to_the_others(zero_division, scope):
    found = shops(zero_division, scope).disparity("recall")
    assert math.isnan(found.distribution.mean())
    assert "(0/0 in w)" in found._words()[0]
    assert "of the others is most likely highest in x" in found._words()[1]
    for chances in (found.probability_highest, found.probability_lowest):
        assert math.isnan(chances["w"])
        assert chances["x"] + chances["y"] == pytest.approx(1.0, abs=1e-5)  # draws are never called certain
    assert next(one for one in found.to_dict()["groups"] if one["group"] == "w")["probability_highest"] is None


def test_equalized_odds_name_the_group_that_has_no_false_positive_rate():
    table = pd.DataFrame({"g": ["a"] * 4 + ["b"] * 4, "y": [1, 0, 1, 0, 1, 1, 1, 1], "p": [0.9, 0.2] * 4})
    result = dm.evaluate_by("y", "p", data=table, by="g", metrics="recall", zero_division=np.nan)
    found = result.disparity(kind="equalized_odds")
    assert found._words()[0].endswith("over 2 groups is undefined (0/0 in a group).")
    assert "In b fpr is undefined (0/0)." in found._notes()


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_groups_that_are_all_zero_share_both_ends_and_are_said_to_be_level(kind):
    result = shops(power=0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = result.disparity("fpr", kind)
    assert (
        list(found.probability_highest.values())
        == list(found.probability_lowest.values())
        == pytest.approx([1 / 3] * 3)
    )
    assert found.probability_tie == 1.0
    assert found._words()[1] == "Fpr is the same in all of them."
    if kind == "ratio":
        assert found._words()[0].endswith("is undefined (fpr is 0 in all of them).")


def test_no_group_with_a_value_is_no_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        table = pd.DataFrame({"g": ["a"] * 9 + ["b"] * 9, "y": [1] * 18, "p": np.linspace(0.1, 0.9, 18)})
        result = dm.evaluate_by("y", "p", data=table, by="g", metrics=["roc_auc", "fpr"], zero_division=np.nan)
        found = result.disparity("roc_auc")
    assert found._words() == ["Largest minus smallest roc_auc over 2 groups is undefined (0/0 in a and b)."]
    assert str(found)


def test_a_0_by_0_that_is_only_likely_is_said_with_its_chance():
    result = shops(probability=0.5)
    assert "Recall may be undefined (0/0) in w (50%); that is counted as 0." in result.disparity("recall")._notes()
    left_out = shops(np.nan, probability=0.5).disparity("recall")
    assert "Recall may be undefined (0/0) in w (50%); that is left out." in left_out._notes()
    assert left_out.undefined == {"w": pytest.approx(0.5), "x": 0.0, "y": 0.0}


def test_a_ratio_that_may_be_one_of_zeros_says_how_likely_that_is():
    # One missing label in each group: positive, it is a miss, and there are no others (fnr 1); negative, none is.
    table = pd.DataFrame({"g": ["a", "a", "b", "b"], "y": [1, None, 1, None], "p": [0.9, 0.2, 0.9, 0.2], "q": 0.5})
    result = dm.evaluate_by("y", "p", data=table, by="g", missingness=dm.missing.Fixed("q"), metrics="fnr")
    found = result.disparity("fnr", "ratio")
    assert found.distribution.undefined == pytest.approx(0.25)
    assert "The ratio is 0/0 where fnr is 0 in all groups (25%); that is left out." in found._notes()


def test_a_gap_in_the_population_says_so():
    assert (
        shops(scope="population")
        .disparity("fpr")
        ._words()[0]
        .startswith("Largest minus smallest fpr over 3 groups in the population")
    )


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_gap_is_a_frame_of_its_groups(backend):
    pytest.importorskip(backend)
    found = shops(np.nan).disparity("recall")
    frame = found.to_frame(backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == [
        "metric",
        "scope",
        "group",
        "mean",
        "low",
        "high",
        "probability_highest",
        "probability_lowest",
        "undefined",
    ]
    assert len(frame) == 3
    assert frame["mean"].to_numpy()[1] == pytest.approx(found.means[found.groups[1]])


def test_a_trend_through_a_0_by_0_that_counts_has_a_slope_in_words():
    table = pd.DataFrame({"m": ["2026-05"] * 4 + ["2026-06"] * 4, "y": [1, 0, 1, 0, 0, 0, 0, 0], "p": [0.9, 0.2] * 4})
    result = dm.evaluate_by("y", "p", data=table, by="m", metrics="recall", zero_division=0)
    words = result.trend("recall")._words()
    assert words[0].startswith("recall falls by 1.0000 per period")
    assert "In 2026-06 recall is undefined (0/0) and counts as 0." in words
