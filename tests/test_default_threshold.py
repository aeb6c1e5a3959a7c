"""Scores that are not probabilities and no threshold: every entry point warns, unless no metric needs a threshold."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm

RNG = np.random.default_rng(0)
P = RNG.beta(2, 3, 400)
Y = np.where(RNG.random(400) < 0.3, np.nan, RNG.random(400) < P)
SCALES = {"percent": 100 * P, "log odds": np.log(P / (1 - P)), "negative": -5 - P}
TABLE = pd.DataFrame({"y": Y, "p": 100 * P, "q": 100 * P[::-1], "d": P > 0.4, "k": ["a", "b"] * 200})
COLUMNS: dict[str, Any] = {"y_true": "y", "y_score": "p", "missingness": "random"}


def messages_of(call, *args, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **settings)
    return [str(warning.message) for warning in caught if "no threshold was passed" in str(warning.message)]


@pytest.mark.parametrize("name", SCALES)
def test_evaluate_warns_with_range_effect_and_fix_if_scores_are_no_probabilities(name):
    score = SCALES[name]
    (message,) = messages_of(dm.evaluate, Y, score, missingness="random")
    assert f"Scores range from {score.min():.4g} to {score.max():.4g}" in message
    n_positive = int((score >= 0.5).sum())
    assert f"{n_positive:,} of 400 rows ({n_positive / 400:.1%})" in message
    assert "Pass threshold= or the predictions" in message


def test_result_keeps_the_warning():
    with pytest.warns(UserWarning, match="no threshold was passed"):
        result = dm.evaluate(Y, 100 * P, missingness="random")
    assert any("no threshold was passed" in str(warned) for warned in result.warnings)


ENTRY_POINTS = {
    "evaluate a table": lambda **said: dm.evaluate(data=TABLE, **COLUMNS, **said),
    "evaluate_by": lambda **said: dm.evaluate_by(data=TABLE, by="k", **COLUMNS, **said),
    "compare": lambda **said: dm.compare(Y, {"p": 100 * P, "half": P}, missingness="random", **said),
    "compare a table": lambda **said: dm.compare("y", ["p", "q"], data=TABLE, missingness="random", **said),
    "bounds": lambda **said: dm.bounds(Y, 100 * P, **said),
    "evaluate a set": lambda threshold=None, **said: dm.evaluate(
        dm.EvaluationSet(Y, 100 * P, threshold=threshold), missingness="random", **said
    ),
}


@pytest.mark.parametrize("call", ENTRY_POINTS.values(), ids=ENTRY_POINTS)
def test_entry_points_warn_unless_a_threshold_is_passed_or_not_needed(call):
    name = "of p " if call is ENTRY_POINTS["compare"] else "range"
    assert all(name in message for message in messages_of(call))
    assert len(messages_of(call)) == (2 if call is ENTRY_POINTS["compare a table"] else 1)
    assert not messages_of(call, threshold=50)
    assert not messages_of(call, threshold=0.5)
    assert not messages_of(call, metrics="roc_auc")


def test_files_warn(tmp_path):
    path = tmp_path / "rows.csv"
    TABLE.to_csv(path, index=False)
    assert len(messages_of(dm.evaluate, data=path, **COLUMNS)) == 1


def test_predictions_need_no_threshold():
    assert not messages_of(dm.evaluate, Y, 100 * P, y_pred=P > 0.4, missingness="random")
    assert not messages_of(dm.evaluate, data=TABLE, y_pred="d", **COLUMNS)


@pytest.mark.parametrize("score", [P, np.where(np.arange(400) < 1, 1.0, P)], ids=["inside", "up to 1"])
def test_probabilities_do_not_warn(score):
    assert not messages_of(dm.evaluate, Y, score, missingness="random")


def test_a_negligible_fraction_outside_is_ignored_and_more_is_not():
    score = np.tile(P, 5)
    label = np.tile(Y, 5)
    score[:2] = 1.0 + 1e-9
    assert not messages_of(dm.evaluate, label, score, missingness="random")
    score[:3] = 1.0 + 1e-9
    assert len(messages_of(dm.evaluate, label, score, missingness="random")) == 1
