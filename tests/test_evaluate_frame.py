"""Sets and evaluations of frames against those of arrays; what every engine counts is tested in tests/engines."""

import inspect
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics.data.evaluation_set import sets_from_counted
from darkmetrics.evaluating import evaluate_frame
from darkmetrics.exceptions import InputError, MissingnessWarning
from darkmetrics.report import summarize


def rows(n=2000, seed=0, distinct=400):
    rng = np.random.default_rng(seed)
    score = rng.choice(rng.beta(0.5, 2.0, distinct), n)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score)
    return y, score


def frame(y, score, **more):
    return pl.DataFrame({"fraud": y, "p": score, **more})


def assert_same(a, b):
    assert (a.threshold, a.pos_label, a.buckets) == (b.threshold, b.pos_label, b.buckets)
    for name, array in a.cells.arrays().items():
        other = getattr(b.cells, name)
        assert (array is None) == (other is None), name
        if array is not None:
            assert array.dtype == other.dtype, name
            np.testing.assert_array_equal(array, other, err_msg=name)


NAMES: dict[str, Any] = {"label": "fraud", "score": "p"}


# ------------------------------------------------------------------------------------------ what was counted


def counted(**columns) -> Any:
    """What an engine hands over, by hand: two groups."""
    whole = {
        "score": np.array([0.1, 0.7, 0.7, 0.2]),
        "decision": np.array([False, True, True, False]),
        "positives": np.array([0, 1, 2, 3]),
        "negatives": np.array([1, 0, 0, 1]),
        "missing": np.array([0, 2, 0, 1]),
        "weight": None,
        "probability": None,
        "stratum": None,
        "age": None,
        "propensity": None,
        "low": None,
        "high": None,
        "buckets": None,
        "labels": [0, 1],
        "keys": {"month": ["may", "june"]},
        "starts": np.array([0, 3, 4]),
        "settled": False,
    }
    return SimpleNamespace(**(whole | columns))


def test_each_group_becomes_a_set_with_ties_in_the_order_of_arrays():
    table = counted(weight=np.array([1.0, 2.0, 0.5, 1.0]))
    first, second = sets_from_counted(table, threshold=0.5)
    assert first.cells.arrays()["weight"].tolist() == [1.0, 0.5, 2.0]
    assert first.cells.positives.tolist() == [0, 2, 1]
    assert first.cells.missing.tolist() == [0, 0, 2]
    assert second.counts() == {"rows": 5, "labelled": 4, "positive": 3, "negative": 1, "missing": 1}
    assert second.threshold == 0.5
    assert second.cells.positives.dtype == np.int32


def test_counted_weights_of_one_are_none():
    (first, _) = sets_from_counted(counted(weight=np.ones(4)), threshold=0.5)
    assert first.cells.weight is None


def test_counted_buckets_keep_their_ends():
    low, high = np.array([0.1, 0.69, 0.69, 0.2]), np.array([0.1, 0.71, 0.71, 0.2])
    (first, second) = sets_from_counted(counted(low=low, high=high, buckets=64), threshold=0.5)
    assert first.buckets == second.buckets == 64
    assert first.cells.arrays()["low"].tolist() == [0.1, 0.69, 0.69]
    assert second.cells.arrays()["high"].tolist() == [0.2]


@pytest.mark.parametrize(
    ("labels", "pos_label", "text"),
    [
        (
            [0, 2, 1],
            1,
            r"fraud: a third value 2 besides 0 and 1\. Labels take two values; the rest must be missing\. If 2",
        ),
        ([-1, 0, 1], 1, r"fraud: a third value -1 besides 0 and 1\. .* say missing_label=-1"),
        (["no", "unknown", "yes"], "yes", r"fraud: a third value 'unknown' besides 'no' and 'yes'\. .*='unknown'"),
        (["NO", "no", "yes"], "yes", r"fraud: a third value 'no' .* 'NO' and 'no' differ in case or spaces alone"),
        (
            ["later", "no", "yes"],
            "yes",
            r"fraud: a third value 'no' besides .* If one of them means missing, say missing",
        ),
        ([0.5, 0.7, 1.0], 1, r"fraud: a third value 0\.7 besides 0\.5 and 1\. Labels take two values; the rest"),
        (["a", "b"], 1, r"fraud: pos_label=1 is not among the labels \('a' and 'b'\)\. Say which one is positive"),
        (["a"], 1, r"fraud: pos_label=1 is not among the labels \('a'\)"),
        ([Decimal(3)], 1, r"fraud: pos_label=1 is not among the labels \(3\)"),
        (["a", "b"], "c", r"fraud: pos_label='c' is not among the labels"),
    ],
)
def test_counted_labels_obey_the_rules_of_arrays(labels, pos_label, text):
    with pytest.raises(InputError, match=f"^{text}"):
        sets_from_counted(counted(labels=labels), threshold=0.5, pos_label=pos_label, label="fraud")


@pytest.mark.parametrize("engine", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize(
    ("labels", "pos_label", "hint"),
    [
        (["no", "?", "yes", "n/a"], "yes", "If '?' and 'n/a' mean missing, say missing_label=['?', 'n/a']."),
        (["no", "?", "yes", "n/a"], 1, "pos_label=1 is none of them: say which one is positive with pos_label=."),
        (["no", "later", "yes", "n/a"], "yes", "a third value 'n/a' besides 'later' and 'yes', and more: 'no'."),
        ([0, 1, 7, 99, -1], 1, "a third value -1 besides 0 and 1, and more: 7, 99. "),
    ],
)
def test_odd_labels_of_a_table_are_told_at_once(engine, labels, pos_label, hint):
    table = engine({"y": labels * 3, "p": np.linspace(0.1, 0.9, 3 * len(labels))})
    with pytest.raises(InputError, match=r"^label column 'y': a third value") as error:
        dm.evaluate_frame(table, label="y", score="p", pos_label=pos_label)
    assert hint in str(error.value)
    # Arrays know the row, and else say the same; the order is that of the rows there, and of the labels here.
    with pytest.raises(InputError) as error:
        dm.evaluate(sorted(labels) * 3, np.linspace(0.1, 0.9, 3 * len(labels)), pos_label=pos_label)
    assert hint.split(" besides ")[0] in str(error.value)


@pytest.mark.parametrize(
    ("labels", "pos_label"), [([0, 1], 1), ([0], 1), ([-1], 1), ([], 1), (["b"], "a"), ([True], 1)]
)
def test_counted_labels_that_arrays_may_have_are_taken(labels, pos_label):
    assert len(sets_from_counted(counted(labels=labels), threshold=0.5, pos_label=pos_label)) == 2


# ------------------------------------------------------------------------------------------ from_frame


def test_a_set_of_a_frame_is_the_set_of_its_columns():
    y, score = rows()
    weight = np.random.default_rng(1).choice([1.0, 2.0], y.size)
    decision = np.random.default_rng(2).integers(0, 2, y.size)
    chance = np.random.default_rng(3).choice([0.2, 0.4], y.size)
    table = frame(y, score, w=weight, d=decision, c=chance)
    from_frame = EvaluationSet.from_frame
    assert_same(from_frame(table, **NAMES), EvaluationSet(y, score))
    assert_same(from_frame(table.lazy(), threshold=0.2, **NAMES), EvaluationSet(y, score, threshold=0.2))
    assert_same(from_frame(table, weight="w", **NAMES), EvaluationSet(y, score, sample_weight=weight))
    assert_same(from_frame(table, decision="d", **NAMES), EvaluationSet(y, score, y_pred=decision))
    assert_same(from_frame(table, probability="c", **NAMES), EvaluationSet(y, score, probability=chance))


def test_a_set_of_buckets_is_the_exact_one_coarsened():
    y, score = rows(20_000, distinct=20_000)
    found = EvaluationSet.from_frame(frame(y, score), **NAMES, buckets=256)
    expected = EvaluationSet(y, score).coarsened(256)
    assert found.buckets == expected.buckets == 256
    for name in ("decision", "positives", "negatives", "missing", "low", "high"):
        np.testing.assert_array_equal(getattr(found.cells, name), getattr(expected.cells, name))
    # Means of some hundred scores, added up in another order.
    np.testing.assert_allclose(found.cells.score, expected.cells.score, rtol=1e-12)


def test_a_frame_has_a_threshold_or_decisions():
    y, score = rows(20)
    with pytest.raises(InputError, match=r"^threshold: 0\.3, but decision already gives the decisions"):
        EvaluationSet.from_frame(frame(y, score, d=y > 0), decision="d", threshold=0.3, **NAMES)


# ------------------------------------------------------------------------------------------ evaluate_frame


def test_an_evaluation_of_a_frame_is_that_of_its_columns():
    y, score = rows()
    settings: dict[str, Any] = {
        "label_model": "calibrated",
        "metrics": ["precision", "recall", "roc_auc", "log_loss"],
        "threshold": 0.3,
    }
    by_frame, by_arrays = evaluate_frame(frame(y, score), **NAMES, **settings), dm.evaluate(y, score, **settings)
    assert by_frame.to_dict() == by_arrays.to_dict()
    assert str(by_frame) == str(by_arrays)


def test_a_column_of_probabilities_is_believed():
    y, score = rows()
    table = frame(y, score, own=np.where(np.isnan(y), 0.25, np.nan))
    found = evaluate_frame(table, **NAMES, probability="own", metrics="recall")
    assert found["recall"].mean() == dm.evaluate(y, score, label_model=0.25, metrics="recall")["recall"].mean()


def test_the_settings_of_evaluate_are_those_of_evaluate_frame():
    ours, theirs = (inspect.signature(function).parameters for function in (evaluate_frame, dm.evaluate))
    columns = {"y_true", "y_score", "y_pred", "sample_weight", "age", "delay", "groups", "label", "score"}
    assert {name: p.default for name, p in theirs.items() if name not in columns} == {
        name: ours[name].default for name in theirs if name not in columns
    }


def test_reference_rows_may_be_a_frame_or_a_file(tmp_path):
    y, score = rows()
    reference = rows(1500, seed=9)
    labels = np.nan_to_num(reference[0])
    table = frame(labels, reference[1])
    path = tmp_path / "reference.parquet"
    table.write_parquet(path)
    settings: dict[str, Any] = {"metrics": "recall", "missingness": "by_score_and_label"}
    expected = dm.evaluate(y, score, reference=(labels, reference[1]), **settings)
    for given in (table, table.lazy(), str(path), path, [path], (labels, reference[1])):
        found = evaluate_frame(frame(y, score), **NAMES, reference=given, **settings)
        assert found["recall"].mean() == pytest.approx(expected["recall"].mean(), abs=1e-12)
    with pytest.raises(InputError, match=r"^reference: "):
        evaluate_frame(frame(y, score), **NAMES, reference=table.drop("p"))


def test_probabilities_of_rows_are_a_column_of_the_frame():
    y, score = rows(50)
    for wrong in ([0.5] * 50, np.full(50, 0.5)):
        with pytest.raises(
            InputError, match=r"^label_model: a table is counted where it is.*Name it with probability="
        ):
            evaluate_frame(frame(y, score), **NAMES, label_model=wrong)
    features = dm.label_models.Features(LogisticRegression(), np.ones((50, 1)))
    with pytest.raises(InputError, match=r"^label_model: Features belong to rows, and a table is counted"):
        evaluate_frame(frame(y, score), **NAMES, label_model=features)


def test_wrong_settings_are_refused_before_the_table_is_counted(monkeypatch):
    def counts(*args, **settings):
        raise AssertionError("the table was counted")

    monkeypatch.setattr(EvaluationSet, "from_frame", counts)
    for wrong in (
        {"metrics": "recal"},
        {"method": "exactly"},
        {"label_model": "calibratd"},
        {"missingness": "by_scor"},
        {"confidence_level": 90},
        {"zero_division": 2},
        {"rng": "seed"},
    ):
        with pytest.raises(InputError, match=f"^{next(iter(wrong))}: "):
            evaluate_frame("nowhere.parquet", **NAMES, **wrong)


def test_warnings_point_to_the_call():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    y = (rng.random(3000) < score).astype(float)
    y[(rng.random(3000) < 0.8) & (y == 1.0)] = np.nan
    for call in (lambda: evaluate_frame(frame(y, score), **NAMES), lambda: dm.evaluate(y, score)):
        with pytest.warns(MissingnessWarning) as found:
            call()
        assert found[0].filename == __file__


def test_a_report_says_how_to_make_the_evaluation_of_a_frame_again(tmp_path):
    y, score = rows(300)
    path = tmp_path / "june.parquet"
    frame(y, score).write_parquet(path)
    settings: dict[str, Any] = {"label_model": "half", "metrics": "recall", "threshold": 0.25, "buckets": 64}
    for source, shown in ((frame(y, score), "frame"), (str(path), repr(str(path)))):
        result = evaluate_frame(source, **NAMES, **settings)
        code = summarize(result)["reproduce"]["code"]
        call = code.splitlines()[-2]
        assert call.startswith(f"result = dm.evaluate_frame({shown}, label='fraud', score='p', ")
        assert ("# frame: as you gave it" in code) == (shown == "frame")
        names: dict[str, Any] = {"dm": SimpleNamespace(evaluate_frame=evaluate_frame), "frame": source}
        exec(call, names)
        assert names["result"].to_dict() == result.to_dict()


@pytest.mark.parametrize("argument", ["label", "score", "decision", "probability", "weight", "propensity", "strata"])
def test_a_column_given_in_place_of_its_name_is_refused_by_argument(argument):
    table = pd.DataFrame({"y": [1, 0, None, 1], "p": [0.9, 0.2, 0.7, 0.4]})
    for values in (table["p"], table["p"].to_numpy(), [0.5, 0.5]):
        given: dict[str, Any] = {"label": "y", "score": "p", argument: values}
        said = rf"^{argument}: expected the name of a column of the frame, got values \({type(values).__name__}\)\.$"
        for call in (dm.evaluate_frame, lambda frame, **named: dm.evaluate_by(frame, "y", **named)):
            with pytest.raises(InputError, match=said):
                call(table, **given)


@pytest.mark.parametrize(
    ("strata", "said"),
    [
        ("s", r"^strata column 's': 1 of 4 values is no whole numbers \(such as 0\.5\)"),
        ("z", r"^strata: the frame has no column 'z'\."),
        ("p", r"^strata: column 'p' is also the score\."),
    ],
)
def test_errors_about_strata_have_the_name_of_the_argument(strata, said):
    table = pd.DataFrame({"y": [1, 0, None, 1], "p": [0.9, 0.2, 0.7, 0.4], "s": [1, 2, 0.5, 1]})
    for call in (dm.evaluate_frame, lambda frame, **named: dm.evaluate_by(frame, "y", **named)):
        with pytest.raises(InputError, match=said):
            call(table, label="y", score="p", strata=strata)
