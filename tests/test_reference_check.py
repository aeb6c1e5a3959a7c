"""Results that contradict the metrics on the reference rows are reported with both numbers."""

import warnings

import numpy as np
import pytest

import darkmetrics as dm

N_SETS = 25


def draw_rows(rng, n, drift=0.0):
    """Return labels and scores; `drift` is added to the log odds of a positive label."""
    score = rng.beta(1.5, 2.5, n)
    odds = np.exp(drift) * score / (1.0 - score)
    return (rng.random(n) < odds / (1.0 + odds)).astype(float), score


def messages_of(seed, drift=0.0, mechanism=dm.missing.ByScore, n_reference=400, **settings):
    """Return the warnings about the reference rows, where 40% of 1,000 labels are missing at random."""
    rng = np.random.default_rng(seed)
    label, score = draw_rows(rng, 1000)
    label[rng.random(1000) < 0.4] = np.nan
    reference = draw_rows(rng, n_reference, drift)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dm.evaluate(
            label, score, missingness=mechanism(reference=dm.missing.Reference(*reference)), **settings
        )
    return [warned.message for warned in result.warnings if warned.message.startswith("The results contradict")]


@pytest.mark.parametrize("mechanism", [dm.missing.ByScore, dm.missing.ByScoreAndLabel, dm.missing.Unknown])
def test_reference_of_the_same_population_is_not_reported(mechanism):
    assert not any(messages_of(seed, mechanism=mechanism) for seed in range(N_SETS))


@pytest.mark.parametrize("drift", [-1.5, 1.5])
def test_drifted_reference_is_reported(drift):
    """Positive control: the check has power."""
    reported = sum(bool(messages_of(seed, drift, n_reference=1000)) for seed in range(N_SETS))
    assert reported >= 0.9 * N_SETS


def test_message_has_both_values_and_the_causes():
    rng = np.random.default_rng(0)
    label, score = draw_rows(rng, 1000)
    label[rng.random(1000) < 0.4] = np.nan
    reference = draw_rows(rng, 400, 1.5)
    with pytest.warns(dm.MissingnessWarning, match="The results contradict the metrics on the 400 reference rows"):
        result = dm.evaluate(
            label,
            score,
            missingness=dm.missing.ByScore(reference=dm.missing.Reference(*reference)),
            metrics=["precision", "recall"],
        )
    (message,) = (str(warned) for warned in result.warnings if str(warned).startswith("The results contradict"))
    there = dm.evaluate(*reference, metrics=["precision"]).population["precision"].mean()
    assert f"precision is {result['precision'].mean():.3f} (90%: " in message
    assert f"here and {there:.3f} (90%: " in message
    assert "drifted" in message
    assert "another population" in message


def test_reference_is_predicted_at_the_threshold_of_the_rows():
    """At 0.3 precision is far from precision at the default threshold, which must not be compared with it."""
    assert not any(messages_of(seed, threshold=0.3, metrics=["precision", "recall"]) for seed in range(5))


@pytest.mark.parametrize(
    "settings",
    [{"sample_weight": np.linspace(1, 9, 1000)}, {"clusters": np.arange(1000) // 2}],
    ids=["weights", "clusters"],
)
def test_weighted_and_clustered_rows_are_not_compared(settings):
    assert not messages_of(0, 1.0, metrics="accuracy", **settings)
