"""Calls as code: that behind a result."""

import numpy as np
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
    reference = dm.missing.Reference([1, 0], [0.7, 0.2])
    assert as_code(reference) == "dm.missing.Reference(y_true=reference_y_true, y_score=reference_y_score)"
    mechanism = dm.missing.ByScore("beta", reference=reference, strata=np.zeros(3))
    expected = f"dm.missing.ByScore(calibrator='beta', reference={as_code(reference)}, strata=strata)"
    assert as_code(mechanism) == expected
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
