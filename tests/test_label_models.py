"""Label models: where the probabilities of the missing labels come from."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.label_models import (
    Auto,
    Calibrated,
    Given,
    Half,
    LabelModel,
    LabelShift,
    Posterior,
    Prevalence,
    Selection,
    label_model_from,
)

Y = [1, 0, None, 1, None, 1]
SCORE = [0.9, 0.2, 0.7, 0.6, 0.3, 0.7]


def probabilities(model: LabelModel, data: EvaluationSet) -> list[float]:
    nodes = model.nodes(data)
    assert nodes.weight.tolist() == [1.0]
    assert nodes.probability.shape == (1, data.missing_cells.size)
    return [float(p) for p in nodes.probability[0]]


def described(model: LabelModel) -> str:
    data = EvaluationSet(Y, SCORE)
    return model.describe(data, model.nodes(data))


def test_half_gives_every_missing_row_the_chance_one_half():
    assert probabilities(Half(), EvaluationSet(Y, SCORE)) == [0.5, 0.5]
    assert described(Half()) == "Assumed: every missing label is positive with chance 1/2."


def test_prevalence_is_the_share_of_positives_among_the_labelled_rows():
    assert probabilities(Prevalence(), EvaluationSet(Y, SCORE)) == [0.75, 0.75]
    assert described(Prevalence()) == (
        "Assumed: every missing label is positive with chance 0.75, as among the labelled rows."
    )


def test_prevalence_counts_labelled_rows_by_their_weight():
    data = EvaluationSet(Y, SCORE, sample_weight=[1, 5, 100, 1, 100, 3])
    assert probabilities(Prevalence(), data) == [0.5, 0.5]


def test_prevalence_can_be_stated():
    assert probabilities(Prevalence(0.1), EvaluationSet(Y, SCORE)) == [0.1, 0.1]
    assert described(Prevalence(0.1)).endswith("with chance 0.1, as stated.")
    assert probabilities(Prevalence(0.1), EvaluationSet([None], [0.5])) == [0.1]


@pytest.mark.parametrize("labels", [[None, None], [1, None]])
def test_prevalence_without_labelled_weight_asks_to_be_stated(labels):
    data = EvaluationSet(labels, [0.1, 0.2], sample_weight=[0, 1])
    with pytest.raises(InputError, match=r"label_model: 'prevalence' takes .* there are none\. State it"):
        dm.evaluate(data, label_model="prevalence", metrics="accuracy")


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "0.5", [0.5], 1j])
def test_a_prevalence_that_is_no_probability_is_refused(value):
    with pytest.raises(InputError, match="prevalence: "):
        Prevalence(value)


@pytest.mark.parametrize("value", [0, 1, 0.25, np.float64(0.25), np.float32(0.25), np.int64(1)])
def test_a_number_is_one_chance_for_all(value):
    stated = dm.evaluate(Y, SCORE, label_model=Prevalence(float(value)))
    assert dm.evaluate(Y, SCORE, label_model=value).to_dict() == stated.to_dict()
    ready = dm.evaluate(EvaluationSet(Y, SCORE), label_model=value)
    assert ready.to_dict() == stated.to_dict()


def test_the_mean_accuracy_follows_from_the_chances():
    # Rows 2 (decided positive, chance p) and 4 (decided negative, chance q); three of the four others are right.
    cases: list[Any] = [("half", 0.5, 0.5), ("prevalence", 0.75, 0.75), (0.1, 0.1, 0.1), ([0.2, 0.9], 0.2, 0.9)]
    for model, p, q in cases:
        result = dm.evaluate(Y, SCORE, label_model=model, metrics="accuracy")
        assert result["accuracy"].mean() == pytest.approx((4 + p + (1 - q)) / 6, abs=1e-15)


def test_probabilities_per_row_and_per_missing_row_agree():
    per_row = dm.evaluate(Y, SCORE, label_model=[0.9, 0.9, 0.2, 0.9, 0.6, 0.9])
    per_missing_row = dm.evaluate(Y, SCORE, label_model=[0.2, 0.6])
    with_gaps = dm.evaluate(Y, SCORE, label_model=[None, None, 0.2, None, 0.6, None])
    assert per_row.to_dict() == per_missing_row.to_dict() == with_gaps.to_dict()


@pytest.mark.parametrize("make", [tuple, np.array, pd.Series, pl.Series, pa.array])
def test_probabilities_come_in_every_container(make):
    expected = dm.evaluate(Y, SCORE, label_model=[0.2, 0.6])
    assert dm.evaluate(Y, SCORE, label_model=make([0.2, 0.6])).to_dict() == expected.to_dict()


def test_probabilities_follow_their_rows_through_sorting_and_ties():
    data = EvaluationSet([None, 1, None, None], [0.7, 0.7, 0.2, 0.7], probability=[0.1, 0.5, 0.2, 0.3])
    assert sorted(zip(data.cells.score[data.missing_cells], probabilities(Given(), data), strict=True)) == [
        (0.2, 0.2),
        (0.7, 0.1),
        (0.7, 0.3),
    ]


def test_no_missing_row_needs_no_probability():
    models: list[Any] = ["half", "prevalence", 0.3, []]
    for model in models:
        result = dm.evaluate([1, 0], [0.9, 0.1], label_model=model, metrics="accuracy")
        assert result["accuracy"].mean() == 1.0


def test_words_stand_for_label_models():
    assert label_model_from("half") == Half()
    assert label_model_from("prevalence") == Prevalence()
    assert label_model_from("given") == Given()
    assert label_model_from(Prevalence(0.2)) == Prevalence(0.2)


@pytest.mark.parametrize("wrong", [1, None, Half])
def test_what_is_no_label_model_is_refused(wrong):
    words = "'auto', 'calibrated', 'label_shift', 'selection', 'half', 'prevalence', 'given', 'propensity', 'late'"
    with pytest.raises(InputError, match=f"label_model: expected {words}, a label model or probabilities, got"):
        label_model_from(wrong)


def same(model: LabelModel, other: LabelModel) -> bool:
    """Models with arrays in them are not compared by ==, so their settings are."""
    return type(model) is type(other) and vars(model) == vars(other)


def test_words_that_learn_take_the_reference_rows():
    reference = ([1, 0], [0.6, 0.2])
    assert same(label_model_from("auto"), Auto())
    assert same(label_model_from("calibrated", reference=reference), Calibrated(reference=reference))
    assert same(label_model_from("label_shift", reference=reference), LabelShift(reference=reference))
    assert same(label_model_from("selection", reference=reference), Selection(reference))


@pytest.mark.parametrize(
    ("missingness", "model"),
    [
        ("random", Calibrated),
        ("by_score", Calibrated),
        ("by_label", LabelShift),
        ("by_score_and_label", Selection),
        ("unknown", Auto),
    ],
)
def test_a_stated_mechanism_names_its_model(missingness, model):
    reference = ([1, 0], [0.6, 0.2])
    named = label_model_from("auto", missingness=missingness, reference=reference)
    assert same(named, model(reference=reference))


def test_by_score_and_label_without_reference_rows_is_refused():
    with pytest.raises(
        InputError, match=r"reference: missing\. Labels missing by score and label can only be told from"
    ):
        label_model_from("auto", missingness="by_score_and_label")


def test_a_misspelt_mechanism_is_refused_with_the_nearest_one():
    with pytest.raises(InputError, match=r"missingness: unknown mechanism 'by_lable'\. Did you mean 'by_label'\?"):
        label_model_from("auto", missingness="by_lable")
    with pytest.raises(InputError, match=r"missingness: unknown mechanism 'NMAR'\. Choose from 'by_label', 'by_score'"):
        label_model_from("auto", missingness="NMAR")
    with pytest.raises(InputError, match="missingness: unknown mechanism 'True'"):
        label_model_from("auto", missingness=True)


@pytest.mark.parametrize("model", ["half", "calibrated", Prevalence(0.3), 0.3, [0.2, 0.6]])
def test_a_mechanism_beside_a_label_model_is_refused(model):
    with pytest.raises(InputError, match=r"^missingness: .*Give one of them\.$"):
        dm.evaluate(Y, SCORE, label_model=model, missingness="by_label")


@pytest.mark.parametrize("model", ["half", Prevalence(0.3), Calibrated(), 0.3, [0.2, 0.6]])
def test_reference_rows_beside_a_model_that_takes_none_are_refused(model):
    with pytest.raises(InputError, match=r"^reference: label_model"):
        dm.evaluate(Y, SCORE, label_model=model, reference=([1, 0], [0.6, 0.2]))


def test_given_needs_given_probabilities():
    with pytest.raises(InputError, match="label_model: 'given' needs an EvaluationSet built with probability="):
        Given().nodes(EvaluationSet(Y, SCORE))


def test_given_refuses_missing_rows_without_a_probability():
    blank = EvaluationSet(Y, SCORE, probability=[0.2, 0.6]).unlabelled()
    with pytest.raises(InputError, match="probability"):
        Given().nodes(blank)


def test_a_label_model_of_the_user_works():
    class Score(LabelModel):
        def nodes(self, data):
            return Posterior.single(data.cells.score[data.missing_cells])

        def describe(self, data, nodes):
            return "Assumed: scores are probabilities."

    result = dm.evaluate(Y, SCORE, label_model=Score())
    assert result["f1"].mean() == dm.evaluate(Y, SCORE, label_model=[0.7, 0.3])["f1"].mean()
    assert "Assumed: scores are probabilities." in str(result)
