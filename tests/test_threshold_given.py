"""A threshold is never mistaken for one that was not given, nor the other way round."""

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.exceptions import InputError

Y = [1, 0, None, 1, 0, 1, 0, None]
SCORE = [0.9, 0.2, 0.45, 0.4, 0.35, 0.6, 0.1, 0.7]
PRED = [1, 0, 1, 1, 0, 1, 0, 1]
FRAME = pd.DataFrame({"y": Y, "p": SCORE, "d": PRED, "k": ["a", "b"] * 4})

# Every way to ask about a set that was decided at 0.3.
OF_A_SET = {
    "evaluate": lambda data, **said: dm.evaluate(data, missingness=dm.missing.Fixed(0.5), **said),
    "diagnose": dm.diagnose,
}
# Every way to give decisions beside a threshold.
DECIDED = {
    "evaluate": lambda **said: dm.evaluate(Y, SCORE, y_pred=PRED, missingness=dm.missing.Fixed(0.5), **said),
    "diagnose": lambda **said: dm.diagnose(Y, SCORE, y_pred=PRED, **said),
    "EvaluationSet": lambda **said: dm.EvaluationSet(Y, SCORE, y_pred=PRED, **said),
    "EvaluationSet of a table": lambda **said: dm.EvaluationSet("y", "p", data=FRAME, y_pred="d", **said),
    "evaluate a table": lambda **said: dm.evaluate(
        "y", "p", data=FRAME, y_pred="d", missingness=dm.missing.Fixed(0.5), **said
    ),
    "evaluate_by": lambda **said: dm.evaluate_by(
        "y", "p", data=FRAME, by="k", y_pred="d", missingness=dm.missing.Fixed(0.5), **said
    ),
}


@pytest.mark.parametrize("ask", OF_A_SET.values(), ids=OF_A_SET)
@pytest.mark.parametrize("threshold", [0.5, 0.4, 0, np.float64(0.5)])
def test_a_threshold_other_than_that_of_the_set_is_refused(ask, threshold):
    data = dm.EvaluationSet(Y, SCORE, threshold=0.3)
    with pytest.raises(InputError) as caught:
        ask(data, threshold=threshold)
    assert str(caught.value) == (
        f"threshold: {float(threshold)!r}, but the EvaluationSet has 0.3. Leave threshold out, or "
        f"pass data.with_threshold({float(threshold)!r})."
    )


@pytest.mark.parametrize("ask", OF_A_SET.values(), ids=OF_A_SET)
@pytest.mark.parametrize("own", [0.3, 0.5])
def test_the_threshold_of_the_set_may_be_said_again(ask, own):
    data = dm.EvaluationSet(Y, SCORE, threshold=own)
    assert ask(data, threshold=own).to_dict() == ask(data).to_dict()


@pytest.mark.parametrize("ask", OF_A_SET.values(), ids=OF_A_SET)
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_a_threshold_beside_a_set_with_given_decisions_is_refused(ask, threshold):
    with pytest.raises(InputError, match=rf"^threshold: {threshold}, but the EvaluationSet was built with predictions"):
        ask(dm.EvaluationSet(Y, SCORE, y_pred=PRED), threshold=threshold)


def test_a_threshold_that_is_no_number_is_refused_beside_a_set():
    with pytest.raises(InputError, match="threshold: nan"):
        dm.evaluate(dm.EvaluationSet(Y, SCORE), threshold=np.nan)


@pytest.mark.parametrize("decide", DECIDED.values(), ids=DECIDED)
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_a_threshold_beside_given_decisions_is_refused(decide, threshold):
    with pytest.raises(InputError, match=rf"^threshold: {threshold}, but y_pred already has the"):
        decide(threshold=threshold)


@pytest.mark.parametrize("decide", DECIDED.values(), ids=DECIDED)
def test_given_decisions_need_no_threshold(decide):
    decide()


@pytest.mark.parametrize(
    "function",
    [
        dm.evaluate,
        dm.evaluate_by,
        dm.diagnose,
        dm.backtest,
        dm.EvaluationSet,
    ],
)
def test_no_number_stands_for_a_threshold_that_was_not_given(function):
    assert inspect.signature(function).parameters["threshold"].default is None


def test_without_a_threshold_rows_are_decided_at_one_half():
    assert dm.EvaluationSet(Y, SCORE).threshold == 0.5
    assert dm.EvaluationSet("y", "p", data=FRAME).threshold == 0.5
    assert dm.evaluate_by("y", "p", data=FRAME, by="k", missingness=dm.missing.Fixed(0.5)).total.data.threshold == 0.5


def test_a_backtest_decides_at_one_half_unless_told():
    rng = np.random.default_rng(0)
    score = rng.random(80)
    y = (rng.random(80) < score).astype(float)
    told: Any = {"missingness": dm.missing.Fixed(0.5), "metrics": "recall", "n_repeats": 3, "rng": 1}
    plain = dm.backtest(y, score, **told).to_dict()
    assert plain == dm.backtest(y, score, threshold=0.5, **told).to_dict()
    assert plain != dm.backtest(y, score, threshold=0.3, **told).to_dict()


def test_the_code_in_a_report_has_the_threshold_that_was_said():
    assert "threshold" not in dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(0.5)).arguments
    assert dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(0.5), threshold=0.5).arguments["threshold"] == "0.5"


def test_the_label_that_is_positive_in_the_set_may_be_said_again():
    data = dm.EvaluationSet(["y", "n", None], [0.9, 0.1, 0.6], pos_label="y")
    assert dm.evaluate(data, missingness=dm.missing.Fixed(0.5), pos_label="y").data is data


def test_scores_that_are_no_probabilities_are_told_of_the_threshold_that_was_made_for_these():
    percent = [100 * p for p in SCORE]
    told = "Rows with a score of at least 0.5 are predicted positive: 8 of 8 rows. Scores range from 10 to 90"
    with pytest.warns(UserWarning, match="no threshold was passed"):
        assert told in str(dm.evaluate(Y, percent, missingness=dm.missing.Fixed(0.5), metrics="recall"))
    for other in (
        dm.evaluate(Y, percent, missingness=dm.missing.Fixed(0.5), metrics="recall", threshold=40),
        dm.evaluate(Y, percent, missingness=dm.missing.Fixed(0.5), metrics="recall", y_pred=PRED),
        dm.evaluate(Y, percent, missingness=dm.missing.Fixed(0.5), metrics="roc_auc"),
        dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(0.5), metrics="recall"),
    ):
        assert "are predicted positive" not in str(other)
