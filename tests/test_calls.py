"""Calls as code: that behind a result, and the one to make in place of one that a function does not take."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import darkmetrics as dm
from darkmetrics.call_as_code import arguments_given, as_code

Y_TRUE, Y_SCORE = [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4]


@pytest.mark.parametrize(
    "value",
    [
        None,
        0.25,
        np.float64(0.25),
        np.int64(3),
        'say "recall"',
        ["precision", "recall"],
        dm.methods.MonteCarlo(n_resamples=100),
        dm.missing.ExponentialTilt("by_label", prevalence=0.4),
        dm.missing.ExponentialTilt(dm.missing.ByScore(calibrator="platt"), delta=0.7),
    ],
    ids=repr,
)
def test_code_makes_the_value_again(value):
    code = as_code(value)
    assert code is not None
    # Some models are equal only to themselves; what they print tells them apart.
    assert repr(eval(code, {"dm": dm})) == repr(value.item() if isinstance(value, np.generic) else value)


def test_nan_is_code_too():
    assert np.isnan(eval(as_code(np.nan) or ""))


@pytest.mark.parametrize("value", [np.zeros(3), [0.1, 0.2], max, object(), "a" * 1000, dm.metrics.registered("recall")])
def test_data_and_functions_are_not_code(value):
    assert as_code(value) is None


def test_data_of_a_mechanism_stand_as_the_names_of_their_fields():
    mechanism = dm.missing.ByScore("beta", reference=([1, 0], [0.7, 0.2]), strata=np.zeros(3))
    assert as_code(mechanism) == "dm.missing.ByScore(calibrator='beta', reference=reference, strata=strata)"
    reference = dm.missing.Reference([1, 0], [0.7, 0.2])
    assert as_code(reference) == "dm.missing.Reference(y_true=reference_y_true, y_score=reference_y_score)"
    assert as_code(dm.missing.ExponentialTilt(mechanism, delta=0.5)) == (
        f"dm.missing.ExponentialTilt(base={as_code(mechanism)}, delta=0.5)"
    )


def test_an_evaluation_knows_what_was_said():
    result = dm.evaluate(
        Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed(np.array([0.6])), threshold=0.3, rng=1, zero_division=np.nan
    )
    assert result.arguments == {
        "y_true": "y_true",
        "y_score": "y_score",
        "threshold": "0.3",
        "zero_division": 'float("nan")',
        "rng": "1",
        "missingness": "dm.missing.Fixed(probability=probability)",
    }


def test_defaults_are_not_said():
    result = dm.evaluate(dm.EvaluationSet(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.6])))
    assert result.arguments == {"y_true": "y_true"}


@pytest.mark.parametrize("labels", [[-1, "unknown"], (-1, "unknown"), [-1], {"?"}])
def test_labels_that_mean_missing_are_code(labels):
    said = arguments_given(dm.evaluate, {"missing_label": labels})["missing_label"]
    assert eval(said) == list(labels)  # what is said makes the labels again


# What is typed in other words, by the names in code of the values, and the call that answers it ---------------------

Y, S, Q = np.array([1, 0, np.nan]), np.array([0.9, 0.2, 0.6]), np.full(3, 0.5)
TABLE = pd.DataFrame({"id": [1, 2, 3], "label": Y, "score": S})


def answer(function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(dm.InputError) as error:
        function(*args, **kwargs)
    assert isinstance(error.value, TypeError)
    return str(error.value)


WORDS = {
    "y_true": ["target", "label", "y"],
    "y_score": ["prediction", "predictions", "pred", "score", "scores", "y_prob", "y_proba", "y_pred_proba"],
    "y_pred": ["decision"],
    "sample_weight": ["weight", "weights"],
    "metrics": ["scoring", "metric"],
    "missingness": ["label_model"],
    "rng": ["random_state", "seed"],
    "pos_label": ["pos_label_", "poslabel"],
    "zero_division": ["zero_divison"],
}


@pytest.mark.parametrize(("word", "meant"), [(word, meant) for meant, words in WORDS.items() for word in words])
def test_another_word_is_answered_with_ours(word, meant):
    said = answer(dm.evaluate, data=TABLE, **{"y_true": "label", "y_score": "score"} | {word: "x"})
    assert said.startswith(f"{word}: no argument of evaluate. Did you mean {meant!r}? Write dm.evaluate(")
    assert ('dm.evaluate("x"' if meant == "y_true" else '"x"') in said


@pytest.mark.parametrize(("word", "meant"), [("timestamp", "time"), ("chunk_column", "time"), ("segment", "by")])
def test_words_of_monitoring_are_answered_with_ours(word, meant):
    assert f'data=data, {meant}="id")' in answer(dm.evaluate_by, "label", "score", data=TABLE, **{word: "id"})
    assert f'Write dm.evaluate_by("label", "score", data=data, {meant}="id")' in answer(
        dm.evaluate, "label", "score", data=TABLE, **{word: "id"}
    )


@pytest.mark.parametrize("word", ["chunk_period", "freq", "every"])
def test_words_for_a_period_are_answered_with_ours(word):
    said = answer(dm.evaluate_by, "label", "score", data=TABLE, time="id", **{word: "month"})
    assert 'time="id", period="month")' in said


COLUMNS = '{"y_true": y_true, "y_score": y_score, "by": by}'
CORRECTED = [
    (lambda: answer(dm.evaluate, TABLE, target="label", prediction="score"), 'dm.evaluate("label", "score", data=df)'),
    (lambda: answer(dm.evaluate, pl.from_pandas(TABLE).lazy()), 'dm.evaluate("label", "score", data=df)'),
    (lambda: answer(dm.evaluate, "label", "score", TABLE), 'dm.evaluate("label", "score", data=df)'),
    (
        lambda: answer(dm.evaluate, "june.csv", y_true="label", y_score="score"),
        'dm.evaluate("label", "score", data="june.csv")',
    ),
    (
        lambda: answer(dm.evaluate, TABLE, y_true="label", y_score="score", by="id"),
        'dm.evaluate_by("label", "score", data=df, by="id")',
    ),
    (
        lambda: answer(dm.evaluate, Y, S, by=Q),
        f'dm.evaluate_by("y_true", "y_score", data=pandas.DataFrame({COLUMNS}), by="by")',
    ),
    (
        lambda: answer(dm.evaluate, Y, S, alpha=0.05),
        "alpha=0.05 means confidence_level=0.95. Write dm.evaluate(y_true, y_score, confidence_level=0.95).",
    ),
    (lambda: answer(dm.evaluate, Y, S, groups="customer"), 'Pass clusters="customer" for rows that belong together'),
    (lambda: answer(dm.evaluate, Y, S, groups="customer"), 'Segments are evaluate_by(..., by="customer").'),
    (lambda: answer(dm.compare, Y, S, S), 'dm.compare(y, {"model_1": s, "model_2": s2})'),
    (lambda: answer(dm.compare, Y, prediction={"a": S}), "Did you mean 'scores'?"),
    (lambda: answer(dm.EvaluationSet, Y, S, weight=Q), "dm.EvaluationSet(y_true, y_score, sample_weight=weight)"),
    (
        lambda: answer(dm.evaluate, Y, S, reference=(Y, S)),
        "dm.evaluate(y_true, y_score, missingness=dm.missing.Reference(labels, scores))",
    ),
    (lambda: answer(dm.evaluate, Y, S, propensity=Q), "missingness=dm.missing.Propensity(propensity=propensity))"),
    (lambda: answer(dm.evaluate, Y, S, probability=Q), "missingness=dm.missing.Fixed(probability=probability))"),
    (
        lambda: answer(dm.evaluate, Y, S, missingness="by_label", strata="region"),
        'missingness=dm.missing.ByLabel(strata="region"))',
    ),
    (
        lambda: answer(dm.evaluate, "label", "score", data=TABLE, scored_at="day", as_of="2026-06-30"),
        'missingness=dm.missing.Delayed(scored_at="day", as_of="2026-06-30"))',
    ),
    (lambda: answer(dm.backtest, Y, S, mechanism=0.2), "dm.backtest(y_true, y_score, mask=0.2)"),
    *(
        (
            lambda word=word: answer(dm.evaluate_by, "label", "score", data=TABLE, by="id", **{word: 0.8}),
            f"{word}: no argument of evaluate_by. Alerts are asked of the result: evaluate_by(...).alerts(",
        )
        for word in ("targets", "known_alerts", "min_labels")
    ),
]


@pytest.mark.parametrize(("said", "call"), CORRECTED, ids=[call for _, call in CORRECTED])
def test_a_call_in_other_words_is_answered_with_the_call_to_make(said, call):
    assert call in said()


def test_the_calls_of_the_answers_work():
    """What the answers advise, run as it is written: none is refused."""
    environment = {"dm": dm, "pandas": pd, "df": TABLE, "y_true": Y, "y_score": S, "by": np.array(["a", "b", "b"])}
    more = 'metrics="accuracy", missingness=dm.missing.Fixed(0.5))'
    for said, call in CORRECTED[:3] + CORRECTED[4:6]:
        assert call in said()
        assert len(eval(f"{call[:-1]}, {more}", environment)) > 0
