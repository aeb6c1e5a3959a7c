"""Sets and evaluations of columns of a table (data=) against those of arrays; engines are tested in tests/engines."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics.data import building
from darkmetrics.data.evaluation_set import sets_from_counted
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
    assert (a.threshold, a.pos_label, a.score_bins) == (b.threshold, b.pos_label, b.score_bins)
    for name, array in a.cells.arrays().items():
        other = getattr(b.cells, name)
        assert (array is None) == (other is None), name
        if array is not None:
            assert array.dtype == other.dtype, name
            np.testing.assert_array_equal(array, other, err_msg=name)


NAMES: dict[str, Any] = {"y_true": "fraud", "y_score": "p"}


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
        "score_bins": None,
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
    assert second.counts() == {"rows": 5, "labeled": 4, "positive": 3, "negative": 1, "missing": 1}
    assert second.threshold == 0.5
    assert second.cells.positives.dtype == np.int32


def test_counted_weights_of_one_are_none():
    (first, _) = sets_from_counted(counted(weight=np.ones(4)), threshold=0.5)
    assert first.cells.weight is None


def test_counted_bins_keep_their_ends():
    low, high = np.array([0.1, 0.69, 0.69, 0.2]), np.array([0.1, 0.71, 0.71, 0.2])
    (first, second) = sets_from_counted(counted(low=low, high=high, score_bins=64), threshold=0.5)
    assert first.score_bins == second.score_bins == 64
    assert first.cells.arrays()["low"].tolist() == [0.1, 0.69, 0.69]
    assert second.cells.arrays()["high"].tolist() == [0.2]


@pytest.mark.parametrize(
    ("labels", "pos_label", "text"),
    [
        (
            [0, 2, 1],
            1,
            r"fraud: a third value 2 in addition to 0 and 1\. .* To evaluate 1 against",
        ),
        ([-1, 0, 1], 1, r"fraud: a third value -1 in addition to 0 and 1\. .* pass missing_label=-1"),
        (
            ["no", "unknown", "yes"],
            "yes",
            r"fraud: a third value 'unknown' .* 'no' and 'yes'\. .*='unknown'",
        ),
        (
            ["NO", "no", "yes"],
            "yes",
            r"fraud: a third value 'no' .* Spell 'NO' and 'no' alike",
        ),
        (
            ["later", "no", "yes"],
            "yes",
            r"fraud: a third value 'no' in addition to .* If a value means missing, pass missing",
        ),
        (
            [0.5, 0.7, 1.0],
            1,
            r"fraud: a third value 0\.7 in addition to 0\.5 and 1\. Labels take two",
        ),
        (
            ["a", "b"],
            1,
            r"fraud: pos_label=1 is not among the labels \('a' and 'b'\)\. Set pos_label=",
        ),
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
        (["no", "?", "yes", "n/a"], "yes", "If '?' and 'n/a' mean missing, pass missing_label=['?', 'n/a']."),
        (["no", "?", "yes", "n/a"], 1, "pos_label=1 is none of them: set it to the positive label."),
        (["no", "later", "yes", "n/a"], "yes", "a third value 'n/a' in addition to 'later' and 'yes', and more: 'no'."),
        ([0, 1, 7, 99, -1], 1, "a third value -1 in addition to 0 and 1, and more: 7, 99. "),
    ],
)
def test_odd_labels_of_a_table_are_told_at_once(engine, labels, pos_label, hint):
    table = engine({"y": labels * 3, "p": np.linspace(0.1, 0.9, 3 * len(labels))})
    with pytest.raises(InputError, match=r"^y_true column 'y': a third value") as error:
        dm.evaluate("y", "p", data=table, pos_label=pos_label)
    assert hint in str(error.value)
    # Arrays know the row, and else say the same; the order is that of the rows there, and of the labels here.
    with pytest.raises(InputError) as error:
        dm.evaluate(sorted(labels) * 3, np.linspace(0.1, 0.9, 3 * len(labels)), pos_label=pos_label)
    assert hint.split(" in addition to ")[0] in str(error.value)


@pytest.mark.parametrize(
    ("labels", "pos_label"), [([0, 1], 1), ([0], 1), ([-1], 1), ([], 1), (["b"], "a"), ([True], 1)]
)
def test_counted_labels_that_arrays_may_have_are_taken(labels, pos_label):
    assert len(sets_from_counted(counted(labels=labels), threshold=0.5, pos_label=pos_label)) == 2


# ------------------------------------------------------------------------------------------ sets of a table


def test_a_set_of_a_frame_is_the_set_of_its_columns():
    y, score = rows()
    weight = np.random.default_rng(1).choice([1.0, 2.0], y.size)
    decision = np.random.default_rng(2).integers(0, 2, y.size)
    chance = np.random.default_rng(3).choice([0.2, 0.4], y.size)
    table = frame(y, score, w=weight, d=decision, c=chance)
    assert_same(EvaluationSet(data=table, **NAMES), EvaluationSet(y, score))
    assert_same(EvaluationSet(data=table.lazy(), threshold=0.2, **NAMES), EvaluationSet(y, score, threshold=0.2))
    assert_same(EvaluationSet(data=table, sample_weight="w", **NAMES), EvaluationSet(y, score, sample_weight=weight))
    assert_same(EvaluationSet(data=table, y_pred="d", **NAMES), EvaluationSet(y, score, y_pred=decision))
    assert_same(
        EvaluationSet(data=table, missingness=dm.missing.Fixed("c"), **NAMES),
        EvaluationSet(y, score, missingness=dm.missing.Fixed(chance)),
    )


def test_a_set_of_bins_is_the_exact_one_coarsened():
    y, score = rows(20_000, distinct=20_000)
    found = EvaluationSet(data=frame(y, score), score_bins=256, **NAMES)
    expected = EvaluationSet(y, score).binned(256)
    assert found.score_bins == expected.score_bins == 256
    for name in ("decision", "positives", "negatives", "missing", "low", "high"):
        np.testing.assert_array_equal(getattr(found.cells, name), getattr(expected.cells, name))
    # Means of some hundred scores, added up in another order.
    np.testing.assert_allclose(found.cells.score, expected.cells.score, rtol=1e-12)


def test_a_frame_has_a_threshold_or_decisions():
    y, score = rows(20)
    with pytest.raises(InputError, match=r"^threshold: 0\.3, but y_pred already has the predictions"):
        EvaluationSet(data=frame(y, score, d=y > 0), y_pred="d", threshold=0.3, **NAMES)


# ------------------------------------------------------------------------------------------ evaluations of a table


def test_an_evaluation_of_a_frame_is_that_of_its_columns():
    y, score = rows()
    settings: dict[str, Any] = {
        "metrics": ["precision", "recall", "roc_auc", "log_loss"],
        "threshold": 0.3,
        "missingness": "by_score",
    }
    by_frame, by_arrays = dm.evaluate(data=frame(y, score), **NAMES, **settings), dm.evaluate(y, score, **settings)
    assert by_frame.to_dict() == by_arrays.to_dict()
    assert str(by_frame) == str(by_arrays)


def test_a_column_of_probabilities_is_believed():
    y, score = rows()
    table = frame(y, score, own=np.where(np.isnan(y), 0.25, np.nan))
    found = dm.evaluate(data=table, missingness=dm.missing.Fixed("own"), metrics="recall", **NAMES)
    assert (
        found["recall"].mean()
        == dm.evaluate(y, score, missingness=dm.missing.Fixed(0.25), metrics="recall")["recall"].mean()
    )


@pytest.mark.filterwarnings("ignore::darkmetrics.MissingnessWarning")
def test_reference_rows_may_be_a_frame_or_a_file(tmp_path):
    def tilted(reference):
        return dm.missing.ExponentialTilt(dm.missing.ByScore(reference=reference), delta=0.3)

    y, score = rows()
    reference = rows(1500, seed=9)
    labels = (np.random.default_rng(8).random(1500) < reference[1]).astype(float)
    table = frame(labels, reference[1])
    path = tmp_path / "reference.parquet"
    table.write_parquet(path)
    pair = dm.missing.Reference(labels, reference[1])
    expected = {
        type(missingness): dm.evaluate(y, score, missingness=missingness, metrics="recall")["recall"].mean()
        for missingness in (pair, dm.missing.ByScoreAndLabel(reference=pair), tilted(pair))
    }
    columns = {"fraud": labels, "p": reference[1]}
    for data in (table, table.lazy(), str(path), path, [path], columns):
        earlier = dm.missing.Reference("fraud", "p", data=data)
        for missingness in (earlier, dm.missing.ByScoreAndLabel(reference=earlier), tilted(earlier)):
            for rows_evaluated in ({**NAMES, "data": frame(y, score)}, {"y_true": y, "y_score": score}):
                found = dm.evaluate(missingness=missingness, metrics="recall", **rows_evaluated)
                wanted = expected[type(missingness)]
                assert found["recall"].mean() == pytest.approx(wanted, abs=1e-12)
    with pytest.raises(InputError, match=r"^reference: y_score: data has no column 'p'"):
        dm.evaluate(data=frame(y, score), missingness=dm.missing.Reference("fraud", "p", data=table.drop("p")), **NAMES)


def test_wrong_settings_are_refused_before_the_table_is_counted(monkeypatch):
    def counts(*args, **settings):
        raise AssertionError("the table was counted")

    monkeypatch.setattr(building, "count_table", counts)
    for wrong in (
        {"metrics": "recal"},
        {"method": "exactly"},
        {"missingness": "calibratd"},
        {"missingness": "by_scor"},
        {"confidence_level": 90},
        {"zero_division": 2},
        {"rng": "seed"},
    ):
        with pytest.raises(InputError, match=f"^{next(iter(wrong))}: "):
            dm.evaluate(data="nowhere.parquet", **NAMES, **wrong)


def test_warnings_point_to_the_call():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    y = (rng.random(3000) < score).astype(float)
    y[(rng.random(3000) < 0.8) & (y == 1.0)] = np.nan
    for call in (lambda: dm.evaluate(data=frame(y, score), **NAMES), lambda: dm.evaluate(y, score)):
        with pytest.warns(MissingnessWarning) as found:
            call()
        assert found[0].filename == __file__


def test_a_report_says_how_to_make_the_evaluation_of_a_frame_again(tmp_path):
    y, score = rows(300)
    path = tmp_path / "june.parquet"
    frame(y, score).write_parquet(path)
    settings: dict[str, Any] = {
        "metrics": "recall",
        "threshold": 0.25,
        "missingness": dm.missing.Fixed(0.5),
    }
    for source, shown in ((frame(y, score), "data"), (str(path), repr(str(path)))):
        result = dm.evaluate(data=source, **NAMES, **settings)
        code = summarize(result)["reproduce"]["code"]
        call = code.splitlines()[-2]
        assert call.startswith("result = dm.evaluate('fraud', 'p', ")
        assert f"data={shown}" in call
        assert ("# data: as you gave it" in code) == (shown == "data")
        names: dict[str, Any] = {"dm": dm, "data": source}
        exec(call, names)
        assert names["result"].to_dict() == result.to_dict()


VALUES = {
    "y_true": lambda values: {"y_true": values},
    "y_score": lambda values: {"y_score": values},
    "y_pred": lambda values: {"y_pred": values},
    "sample_weight": lambda values: {"sample_weight": values},
    "clusters": lambda values: {"clusters": values},
    "probability": lambda values: {"missingness": dm.missing.Fixed(values)},
    "propensity": lambda values: {"missingness": dm.missing.Propensity(values)},
    "strata": lambda values: {"missingness": dm.missing.ByScore(strata=values)},
    "age": lambda values: {"missingness": dm.missing.Delayed(age=values)},
}
IN_MEMORY: dict[str, Any] = {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def columns_of_all_kinds(n=400):
    y, score = rows(n)
    rng = np.random.default_rng(5)
    labeled = ~np.isnan(y)
    return {
        "y_true": y,
        "y_score": score,
        "y_pred": rng.integers(0, 2, n),
        "sample_weight": rng.choice([1.0, 2.0], n),
        "clusters": rng.integers(0, 40, n),
        "probability": rng.choice([0.2, 0.4], n),
        "propensity": np.where(labeled, rng.choice([0.5, 1.0], n), 0.5),
        "strata": rng.integers(0, 3, n),
        "age": rng.integers(0, 60, n).astype(float),
    }


@pytest.mark.parametrize("make", IN_MEMORY.values(), ids=IN_MEMORY)
@pytest.mark.parametrize("argument", VALUES)
def test_arrays_and_columns_of_a_table_in_memory_mix(argument, make):
    columns = columns_of_all_kinds()
    table = make(columns)
    plain = {"y_true": columns["y_true"], "y_score": columns["y_score"]}
    expected = EvaluationSet(**plain | VALUES[argument](columns[argument]))
    named = {"y_true": "y_true", "y_score": "y_score"}
    # The column among names, the array among names, and the column next to arrays.
    assert_same(EvaluationSet(data=table, **named | VALUES[argument](argument)), expected)
    assert_same(EvaluationSet(data=table, **named | VALUES[argument](columns[argument])), expected)
    assert_same(EvaluationSet(data=table, **plain | VALUES[argument](argument)), expected)
    if argument == "clusters":
        found = EvaluationSet(data=table, **named | VALUES[argument](columns[argument]))
        np.testing.assert_array_equal(found.groups, expected.groups)


@pytest.mark.parametrize("argument", VALUES)
def test_arrays_next_to_columns_that_are_not_in_memory_are_refused(argument, tmp_path):
    columns = columns_of_all_kinds()
    path = tmp_path / "rows.parquet"
    pl.DataFrame(columns).write_parquet(path)
    given: Any = {"y_true": "y_true", "y_score": "y_score", **VALUES[argument](columns[argument])}
    for data in (str(path), [path], pl.scan_parquet(path)):
        for call in (EvaluationSet, dm.evaluate):
            with pytest.raises(InputError, match=rf"^{argument}: values, but data is not in memory"):
                call(data=data, **given)


def test_names_of_columns_need_a_table_that_has_them():
    columns = columns_of_all_kinds()
    call: Any
    for call in (EvaluationSet, dm.evaluate):
        with pytest.raises(InputError, match=r"^y_true: 'y' is the name of a column\. Pass its table as data=\.$"):
            call("y", "p")
        with pytest.raises(InputError, match=r"^sample_weight: 'w' is the name of a column\. Pass its table"):
            call(columns["y_true"], columns["y_score"], sample_weight="w")
        for data in (columns, pd.DataFrame(columns), pl.LazyFrame(columns)):
            with pytest.raises(InputError, match=r"^y_score: data has no column 'score'\. Did you mean 'y_score'\?$"):
                call("y_true", "score", data=data)
            with pytest.raises(InputError, match=r"^strata: data has no column 'stratum'\. Did you mean 'strata'\?$"):
                call("y_true", "y_score", data=data, missingness=dm.missing.ByScore(strata="stratum"))
            with pytest.raises(InputError, match=r"^y_score: missing\. Pass the name of a column of data\.$"):
                call("y_true", None, data=data)
            with pytest.raises(InputError, match=r"^y_true: missing\. Pass the name of a column of data\.$"):
                call(None, "y_score", data=data)
    with pytest.raises(InputError, match=r"^y_score: missing\. Pass the scores, or an EvaluationSet"):
        dm.evaluate(columns["y_true"])


def test_a_set_takes_no_further_columns():
    columns = columns_of_all_kinds()
    data = EvaluationSet("y_true", "y_score", data=columns)
    for name, more in (
        ("data", {"data": columns}),
        ("y_score", {"y_score": "y_score", "data": columns}),
        ("sample_weight", {"sample_weight": columns["sample_weight"]}),
        ("strata", {"missingness": dm.missing.ByScore(strata="strata")}),
    ):
        with pytest.raises(InputError, match=rf"^{name}: passed with an EvaluationSet, which already fixes it"):
            dm.evaluate(data, **more)


def test_scores_of_arrays_have_no_bins():
    y, score = rows(50)
    for given in ({"y_true": y, "y_score": score}, {**NAMES, "data": {"fraud": y, "p": score}}):
        with pytest.raises(InputError, match=r"^score_bins: 64 with arrays"):
            EvaluationSet(score_bins=64, **given)
        assert EvaluationSet(score_bins="exact", **given).score_bins is None


def test_an_evaluation_set_needs_values_per_row():
    y, score = rows(50)
    nothing: Any
    for nothing in (
        "by_score",
        dm.missing.ByScore(),
        dm.missing.Fixed(0.5),
        dm.missing.Fixed(),
        dm.missing.Reference([1], [1]),
    ):
        with pytest.raises(InputError, match=r"^missingness: .* has no values per row\. An Eval"):
            EvaluationSet(y, score, missingness=nothing)


@pytest.mark.parametrize(
    ("strata", "said"),
    [
        ("s", r"^strata column 's': 1 of 4 values is no whole numbers \(such as 0\.5\)"),
        ("z", r"^strata: data has no column 'z'\."),
        ("p", r"^strata: column 'p' is also y_score\."),
    ],
)
def test_errors_about_strata_have_the_name_of_the_argument(strata, said):
    table = pd.DataFrame({"y": [1, 0, None, 1], "p": [0.9, 0.2, 0.7, 0.4], "s": [1, 2, 0.5, 1], "k": list("abab")})
    for more in ({}, {"by": "k"}):
        call: Any = dm.evaluate_by if more else dm.evaluate
        with pytest.raises(InputError, match=said):
            call("y", "p", data=table, missingness=dm.missing.ByScore(strata=strata), **more)
