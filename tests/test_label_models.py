"""Label models: where the probabilities of the missing labels come from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.missing import (
    ByLabel,
    ByScore,
    Fixed,
    Mechanism,
    Posterior,
    Random,
    Reference,
    TrainingPrevalence,
    Unknown,
    mechanism_from,
)

Y = [1, 0, None, 1, None, 1]
SCORE = [0.9, 0.2, 0.7, 0.6, 0.3, 0.7]


def probabilities(model: Mechanism, data: EvaluationSet) -> list[float]:
    posterior = model.posterior(data)
    assert posterior.weight.tolist() == [1.0]
    assert posterior.probability.shape == (1, data.missing_cells.size)
    return [float(p) for p in posterior.probability[0]]


def described(model: Mechanism) -> str:
    data = EvaluationSet(Y, SCORE)
    return model.describe(data, model.posterior(data))


def test_half_gives_every_missing_row_the_chance_one_half():
    assert probabilities(Fixed(0.5), EvaluationSet(Y, SCORE)) == [0.5, 0.5]
    assert described(Fixed(0.5)) == "Assumed: every missing label is positive with probability 0.5."


def test_prevalence_is_the_share_of_positives_among_the_labeled_rows():
    assert probabilities(TrainingPrevalence(), EvaluationSet(Y, SCORE)) == [0.75, 0.75]
    assert described(TrainingPrevalence()) == (
        "Assumed: every missing label is positive with probability 0.75, the prevalence of the labeled rows."
    )


def test_prevalence_counts_labeled_rows_by_their_weight():
    data = EvaluationSet(Y, SCORE, sample_weight=[1, 5, 100, 1, 100, 3])
    assert probabilities(TrainingPrevalence(), data) == [0.5, 0.5]


def test_prevalence_can_be_stated():
    assert probabilities(Fixed(0.1), EvaluationSet(Y, SCORE)) == [0.1, 0.1]
    assert described(Fixed(0.1)).endswith("with probability 0.1.")
    assert probabilities(Fixed(0.1), EvaluationSet([None], [0.5])) == [0.1]


@pytest.mark.parametrize("labels", [[None, None], [1, None]])
def test_prevalence_without_labeled_weight_asks_to_be_stated(labels):
    data = EvaluationSet(labels, [0.1, 0.2], sample_weight=[0, 1])
    with pytest.raises(InputError, match=r"missingness: TrainingPrevalence takes .* there are none\. State it"):
        dm.evaluate(data, missingness=dm.missing.TrainingPrevalence(), metrics="accuracy")


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "0.5", [0.5], 1j])
def test_a_prevalence_that_is_no_probability_is_refused(value):
    with pytest.raises(InputError, match="probability: "):
        dm.evaluate(Y, SCORE, missingness=Fixed(value))


@pytest.mark.parametrize("value", [0, 1, 0.25, np.float64(0.25), np.float32(0.25), np.int64(1)])
def test_a_number_is_one_chance_for_all(value):
    stated = dm.evaluate(Y, SCORE, missingness=Fixed([float(value)] * 2))
    assert dm.evaluate(Y, SCORE, missingness=Fixed(value))["f1"].mean() == stated["f1"].mean()
    ready = dm.evaluate(EvaluationSet(Y, SCORE), missingness=Fixed(value))
    assert ready["f1"].mean() == stated["f1"].mean()


def test_the_mean_accuracy_follows_from_the_chances():
    # Rows 2 (decided positive, chance p) and 4 (decided negative, chance q); three of the four others are right.
    cases = [
        (Fixed(0.5), 0.5, 0.5),
        (TrainingPrevalence(), 0.75, 0.75),
        (Fixed(0.1), 0.1, 0.1),
        (Fixed([0.2, 0.9]), 0.2, 0.9),
    ]
    for model, p, q in cases:
        result = dm.evaluate(Y, SCORE, missingness=model, metrics="accuracy")
        assert result["accuracy"].mean() == pytest.approx((4 + p + (1 - q)) / 6, abs=1e-15)


def test_probabilities_per_row_and_per_missing_row_agree():
    per_row = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([0.9, 0.9, 0.2, 0.9, 0.6, 0.9]))
    per_missing_row = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([0.2, 0.6]))
    with_gaps = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([None, None, 0.2, None, 0.6, None]))
    assert per_row.to_dict() == per_missing_row.to_dict() == with_gaps.to_dict()


@pytest.mark.parametrize("make", [tuple, np.array, pd.Series, pl.Series, pa.array])
def test_probabilities_come_in_every_container(make):
    expected = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([0.2, 0.6]))
    assert dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(make([0.2, 0.6]))).to_dict() == expected.to_dict()


def test_probabilities_follow_their_rows_through_sorting_and_ties():
    data = EvaluationSet(
        [None, 1, None, None], [0.7, 0.7, 0.2, 0.7], missingness=dm.missing.Fixed([0.1, 0.5, 0.2, 0.3])
    )
    assert sorted(zip(data.cells.score[data.missing_cells], probabilities(Fixed(), data), strict=True)) == [
        (0.2, 0.2),
        (0.7, 0.1),
        (0.7, 0.3),
    ]


def test_no_missing_row_needs_no_probability():
    for model in (Fixed(0.5), TrainingPrevalence(), Fixed([])):
        result = dm.evaluate([1, 0], [0.9, 0.1], missingness=model, metrics="accuracy")
        assert result["accuracy"].mean() == 1.0


def test_a_mechanism_stands_for_itself():
    for model in (Fixed(0.2), TrainingPrevalence(), ByLabel()):
        assert mechanism_from(model) is model


@pytest.mark.parametrize("wrong", [1, 0.3, True, [0.2, 0.6], np.array([0.2, 0.6]), {"a": 1}])
def test_what_is_no_mechanism_is_refused(wrong):
    with pytest.raises(InputError, match=r"missingness: expected a word .* got .* as dm\.missing\.Fixed\(\.\.\.\)"):
        mechanism_from(wrong)


@pytest.mark.parametrize("kind", [Fixed, ByScore, Reference])
def test_a_class_is_refused_with_the_object_to_pass(kind):
    with pytest.raises(InputError, match=rf"missingness: .* is a class\. Pass dm\.missing\.{kind.__name__}\("):
        mechanism_from(kind)


def same(model: Mechanism, other: Mechanism) -> bool:
    """Models with arrays in them are not compared by ==, so their settings are."""
    return type(model) is type(other) and vars(model) == vars(other)


def test_reference_rows_alone_are_those_of_no_stated_mechanism():
    reference = Reference([1, 0], [0.6, 0.2])
    assert same(mechanism_from(None), Unknown())
    assert same(mechanism_from(reference), Unknown(reference=reference))


@pytest.mark.parametrize(
    ("missingness", "model"),
    [
        ("random", Random),
        ("by_score", ByScore),
        ("by_label", ByLabel),
        ("unknown", Unknown),
    ],
)
def test_a_stated_mechanism_names_its_model(missingness, model):
    assert same(mechanism_from(missingness), model())


def test_by_score_and_label_without_reference_rows_is_refused():
    with pytest.raises(InputError, match=r"reference: missing\. Effects of score and label can only be separated"):
        dm.evaluate(Y, SCORE, missingness="by_score_and_label")


def test_a_misspelt_mechanism_is_refused_with_the_nearest_one():
    with pytest.raises(InputError, match=r"missingness: unknown mechanism 'by_lable'\. Did you mean 'by_label'\?"):
        mechanism_from("by_lable")
    with pytest.raises(InputError, match=r"missingness: unknown mechanism 'NMAR'\. Choose from 'random', 'by_score'"):
        mechanism_from("NMAR")


def test_given_needs_given_probabilities():
    with pytest.raises(InputError, match=r"^probability: none with these rows"):
        Fixed().posterior(EvaluationSet(Y, SCORE))


def test_given_refuses_missing_rows_without_a_probability():
    blank = EvaluationSet(Y, SCORE, missingness=dm.missing.Fixed([0.2, 0.6])).unlabeled()
    with pytest.raises(InputError, match="probability"):
        Fixed().posterior(blank)


def test_a_label_model_of_the_user_works():
    class Score(Mechanism):
        def posterior(self, data):
            return Posterior.single(data.cells.score[data.missing_cells])

        def describe(self, data, posterior):
            return "Assumed: scores are probabilities."

    result = dm.evaluate(Y, SCORE, missingness=Score())
    assert result["f1"].mean() == dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([0.7, 0.3]))["f1"].mean()
    assert "Assumed: scores are probabilities." in str(result)
