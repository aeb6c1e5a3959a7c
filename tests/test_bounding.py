"""bounds(): what each metric can be, over every labeling of the missing rows."""

import itertools
import json

import numpy as np
import pytest

import darkmetrics as dm

Y = [1, 0, None, 1, None, 0, 1, None]
SCORE = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.55]
METRICS = ["precision", "recall", "accuracy", "f1", "roc_auc", "brier", "fpr"]


@pytest.fixture(scope="module")
def found() -> dm.bounding.Bounds:
    return dm.bounds(Y, SCORE, metrics=METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_the_ends_are_those_over_all_labelings(found, name):
    values = []
    for labels in itertools.product([0, 1], repeat=3):
        rest = iter(labels)
        full = [next(rest) if y is None else y for y in Y]
        values.append(dm.evaluate(full, SCORE, metrics=name)[name].mean())
    assert found[name].lowest_possible == pytest.approx(min(values), abs=1e-12)
    assert found[name].highest_possible == pytest.approx(max(values), abs=1e-12)
    assert found[name].bounds_sharp


def test_the_worst_case_is_the_largest_where_lower_is_better(found):
    brier, recall = found["brier"], found["recall"]
    assert (brier.worst, brier.best) == (brier.highest_possible, brier.lowest_possible)
    assert (recall.worst, recall.best) == (recall.lowest_possible, recall.highest_possible)


def test_bounds_are_those_of_an_evaluation(found):
    result = dm.evaluate(Y, SCORE, metrics=METRICS, missingness=dm.missing.Fixed(0.5), zero_division=0)
    for name, distribution in result.items():
        assert (found[name].lowest_possible, found[name].highest_possible) == pytest.approx(
            distribution.support(), abs=1e-12
        )
        assert found[name].labeled_only == pytest.approx(result.labeled_only[name])
        ends = found[name].oracle_pessimistic, found[name].oracle_optimistic
        assert ends == pytest.approx(result.oracle_bounds(name))


def test_a_set_has_the_bounds_of_its_rows(found):
    of_set = dm.bounds(dm.EvaluationSet(Y, SCORE), metrics=METRICS)
    assert of_set.to_dict() == found.to_dict()


def test_every_form_has_the_same_numbers(found):
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["schema"] == "darkmetrics.bounds/1"
    assert list(document["metrics"]) == list(found) == METRICS
    assert len(found) == len(METRICS)
    frame = found.to_frame("pandas")
    assert frame["metric"].tolist() == METRICS
    for row in frame.to_dict("records"):
        assert {"metric": row["metric"], **document["metrics"][row["metric"]]} == row
    assert "oracle bounds" in str(found)
    assert found._repr_html_().count("<tr>") == 1 + len(METRICS)


def test_what_is_undefined_is_null_in_json():
    found = dm.bounds([1, 1, None], [0.9, 0.2, 0.4], metrics="roc_auc")
    assert np.isnan(found["roc_auc"].labeled_only)
    assert found.to_dict()["metrics"]["roc_auc"]["labeled_only"] is None


def test_bounds_that_are_perhaps_not_attained_stand_in_brackets():
    def odd(y_true, y_score):
        return float(np.mean(y_true) ** 2)

    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.7, np.nan, rng.random(60) < 0.5)
    found = dm.bounds(y, rng.random(60), metrics={"odd": odd})
    assert found["odd"].bounds_sharp == (not found._notes())
    assert ("(" in found._table()[1][0][1]) == (not found["odd"].bounds_sharp)


def test_errors_name_the_argument():
    with pytest.raises(dm.exceptions.UnknownNameError) as raised:
        dm.bounds(Y, SCORE, metrics="recal")
    assert raised.value.argument == "metrics"
