"""Rows with scores of several classes: every way to pass them, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import InputError
from darkmetrics.data.class_building import class_set_from, find_score_columns

NAMES = ("cat", "dog", "fish")
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5], [0.4, 0.35, 0.25], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]])
Y = ["cat", "dog", "fish", None, None, "dog"]
Q = np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
# Three of four labeled rows are predicted right; the others with the probabilities of their prediction.
ACCURACY = (3 + 0.5 + 0.6) / 6


def evaluate(y=Y, p=P, **settings):
    settings = {"missingness": dm.missing.Fixed(Q), "metrics": "accuracy", **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dm.evaluate(y, p, **settings)


def table_of(engine):
    columns = {"species": Y, **{f"p_{name}": P[:, k].tolist() for k, name in enumerate(NAMES)}}
    full = np.full((6, 3), np.nan)
    full[3:5] = Q
    columns |= {f"q_{k}": full[:, k].tolist() for k in range(3)}
    if engine == "dict":
        return columns
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        source = pa.table(columns)
        return duckdb.from_arrow(source)
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "arrow": pa.table}[engine](columns)


@pytest.mark.parametrize(
    "scores",
    [
        P,
        P.tolist(),
        pd.DataFrame(P, columns=NAMES),
        pl.DataFrame(P, schema=list(NAMES)),
        dict(zip(NAMES, P.T, strict=True)),
        pd.DataFrame(P[:, ::-1], columns=NAMES[::-1]),
        pd.DataFrame(P, columns=[f"proba_{name}" for name in NAMES]),
    ],
    ids=["matrix", "lists", "pandas", "polars", "mapping", "other order", "prefix"],
)
def test_scores_in_memory_are_one_and_the_same_input(scores):
    is_reversed = isinstance(scores, pd.DataFrame) and list(scores.columns) == [*NAMES[::-1]]
    fixed = dm.missing.Fixed(Q[:, ::-1] if is_reversed else Q)
    result = evaluate(p=scores, missingness=fixed)
    assert result["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)
    assert set(result.data.classes) == set(NAMES)


@pytest.mark.parametrize("engine", ["pandas", "polars", "lazy", "arrow", "duckdb", "dict"])
@pytest.mark.parametrize(
    "scores", [dict(zip(NAMES, ("p_cat", "p_dog", "p_fish"), strict=True)), ["p_cat", "p_dog", "p_fish"]]
)
def test_columns_of_every_engine_are_one_and_the_same_input(engine, scores):
    fixed = dm.missing.Fixed(["q_0", "q_1", "q_2"])
    result = evaluate("species", scores, data=table_of(engine), missingness=fixed)
    assert result["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)
    assert result.data.classes == NAMES


def test_files_are_read(tmp_path):
    table = table_of("polars")
    table.write_parquet(tmp_path / "a.parquet")
    table.write_csv(tmp_path / "a.csv")
    for name in ("a.parquet", "a.csv"):
        result = evaluate(
            "species",
            ["p_cat", "p_dog", "p_fish"],
            data=str(tmp_path / name),
            missingness=dm.missing.Fixed(["q_0", "q_1", "q_2"]),
        )
        assert result["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)


def test_labels_name_the_columns_of_a_matrix():
    assert evaluate(labels=NAMES).data.classes == NAMES
    swapped = evaluate(p=P[:, [1, 0, 2]], labels=["dog", "cat", "fish"], missingness=dm.missing.Fixed(Q[:, [1, 0, 2]]))
    assert swapped["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)


def test_labels_may_be_numbers_of_any_type():
    code = [0, 1, 2, None, None, 1]
    for y in (code, np.array([0, 1, 2, np.nan, np.nan, 1]), pd.Series(code, dtype="Int64"), [0, 1, 2, -1, -1, 1]):
        result = evaluate(y, missing_label=-1)
        assert result.data.classes == (0, 1, 2)
        assert result["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)


def test_predictions_and_costs_decide_in_place_of_the_highest_score():
    assert evaluate(y_pred=["dog"] * 6)["accuracy"].mean() == pytest.approx((2 + 0.25 + 0.2) / 6, abs=1e-12)
    cost = 1.0 - np.eye(3)
    assert evaluate(threshold=cost)["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)
    cost[2] *= 100.0  # a fish that is not recognized is expensive, so that every row is predicted to be one
    assert evaluate(threshold=cost)["accuracy"].mean() == pytest.approx((1 + 0.25 + 0.6) / 6, abs=1e-12)


def test_identical_rows_are_one_cell():
    def class_set(p, y, **settings):
        columns = find_score_columns(p)
        assert columns is not None
        return class_set_from(columns, y, **settings)

    several = class_set(np.repeat(P, 3, axis=0), Y * 3, labels=NAMES, sample_weight=[1.0] * 18)
    assert several.n_rows == 18
    assert len(several.cells.decision) == 6
    weighted = class_set(np.repeat(P, 2, axis=0), [y for y in Y for _ in range(2)], sample_weight=[1, 2] * 6)
    assert len(weighted.cells.decision) == 12
    assert weighted.cells.weight is not None
    assert weighted.cells.weight.sum() == 18.0


def test_two_columns_are_two_classes():
    y, s = [1, 0, None, 1, 0], np.array([0.9, 0.2, 0.7, 0.4, 0.6])
    expected = dm.evaluate(y, s, missingness=dm.missing.Fixed([0.6]))
    words = np.array(["ham", "spam"], dtype=object)
    text = [None if label is None else words[label] for label in y]
    pairs = np.column_stack([1.0 - s, s])
    for labels, scores in (
        (y, pairs),
        (y, pd.DataFrame(pairs, columns=[0, 1])),
        (text, pairs),
        (text, {"ham": pairs[:, 0], "spam": s}),
    ):
        result = dm.evaluate(labels, scores, missingness=dm.missing.Fixed([0.6]))
        assert {name: d.mean() for name, d in result.items()} == {name: d.mean() for name, d in expected.items()}
    fixed = dm.missing.Fixed([0.4])
    ham = dm.evaluate(text, {"ham": pairs[:, 0], "spam": s}, pos_label="ham", missingness=fixed)
    assert ham["recall"].mean() == dm.evaluate(text, 1 - s, pos_label="ham", missingness=fixed)["recall"].mean()


NAN = float("nan")
REFUSED = {
    "a negative score": (lambda: evaluate(p=P - 0.15), r"^y_score\[:, 0\]: -0.05 at row 1\. .* softmax"),
    "a negative score of a column": (
        lambda: evaluate(p=pd.DataFrame(P - 0.15, columns=NAMES)),
        r"^y_score column 'cat': -0.05 at row 1",
    ),
    "NaN in the matrix": (
        lambda: evaluate(p=np.where(P == 0.35, NAN, P)),
        r"^y_score\[:, 1\]: 1 of 6 values is NaN \(first at row 3\)",
    ),
    "a row of zeros": (lambda: evaluate(p=P * [[1], [1], [0], [1], [1], [1]]), r"^y_score: row 2 has no score above 0"),
    "a label that is no column": (
        lambda: evaluate(["cat", "dog", "bird", None, None, "dog"], dict(zip(NAMES, P.T, strict=True))),
        r"^y_true: label 'bird' at row 2 is none of the classes \('cat', 'dog', 'fish'\)",
    ),
    "more labels than columns": (
        lambda: evaluate(["cat", "dog", "bird", None, "fish", "dog"]),
        r"^labels: y_true has 4 labels \('bird', .* but y_score has 3 columns\. Pass the class of each column",
    ),
    "fewer labels than columns": (
        lambda: evaluate(["cat", "dog", None, None, None, "dog"], missingness="by_score"),
        r"^labels: y_true has 2 labels .* but y_score has 3 columns",
    ),
    "one class": (lambda: evaluate(p={"cat": P[:, 0]}), r"^y_score: one column of scores for one class"),
    "names that do not match": (
        lambda: evaluate(p=pd.DataFrame(P, columns=NAMES), labels=["cat", "dog", "bird"]),
        r"^labels: 'cat', 'dog', 'bird', but the columns of y_score are 'cat', 'dog', 'fish'",
    ),
    "labels of another number": (lambda: evaluate(labels=["cat", "dog"]), r"^labels: 2 labels, but y_score has 3"),
    "labels that are equal": (lambda: evaluate(labels=["cat", "dog", "dog"]), r"^labels: .*Classes must differ"),
    "labels of two classes": (
        lambda: dm.evaluate([0, 1, None], [0.1, 0.9, 0.2], labels=[0, 1]),
        r"^labels: for scores of several classes",
    ),
    "another length": (lambda: evaluate(Y[:5]), r"^y_true: 5 values, but y_score has 6"),
    "a prediction of no class": (
        lambda: evaluate(y_pred=["cat"] * 5 + ["bird"]),
        r"^y_pred: 'bird' at row 5 is none of the classes",
    ),
    "a prediction that is missing": (lambda: evaluate(y_pred=["cat"] * 5 + [None]), r"^y_pred: missing at row 5"),
    "a threshold": (lambda: evaluate(threshold=0.5), r"^threshold: .* With several classes it is a 3 x 3 table"),
    "clusters": (lambda: evaluate(clusters=[1, 1, 2, 2, 3, 3]), r"^clusters: not with several classes"),
    "strata": (
        lambda: evaluate(missingness=dm.missing.ByScore(strata=[1, 1, 2, 2, 3, 3])),
        r"^strata: not with several classes",
    ),
    "a calibrator": (
        lambda: evaluate(missingness=dm.missing.ByScore(calibrator="platt")),
        r"^calibrator: 'platt' is for two classes \(ByScore\)",
    ),
    "one probability": (lambda: evaluate(missingness=dm.missing.Fixed(0.5)), r"^probability: one number"),
    "probabilities of another length": (
        lambda: evaluate(missingness=dm.missing.Fixed(Q[:1])),
        r"^probability: 1 row for 6 rows of which 2 are missing",
    ),
    "probabilities that do not sum to one": (
        lambda: evaluate(missingness=dm.missing.Fixed(Q * 0.5)),
        r"^probability: row 3 is .* Rows must be probabilities that sum to 1",
    ),
    "probabilities of other classes": (
        lambda: evaluate(missingness=dm.missing.Fixed(np.ones((2, 4)) / 4)),
        r"^probability: 4 columns for 3 classes",
    ),
    "names without a table": (lambda: evaluate(p=["a", "b", "c"]), r"^y_score: 'a' is the name of a column"),
    "a name that is no column": (
        lambda: evaluate("species", ["p_cat", "p_dog", "p_fsh"], data=table_of("pandas")),
        r"^y_score: data has no column 'p_fsh'\. Did you mean 'p_fish'",
    ),
    "no labels": (lambda: evaluate([None] * 6, labels=NAMES, missingness="by_score"), r"^y_true: no labeled row"),
    "a population": (lambda: evaluate(scope="population"), r"^scope: 'population' is for two classes so far"),
    "a mechanism of two classes": (
        lambda: evaluate(missingness=dm.missing.ExponentialTilt("by_score", prevalence=0.3)),
        r"^missingness: ExponentialTilt is for two classes",
    ),
    "covariates": (
        lambda: evaluate(missingness=dm.missing.Covariates(LogisticRegression(), np.zeros((6, 2)))),
        r"^missingness: covariates are for two classes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_gets_one_error(case):
    call, words = REFUSED[case]
    with pytest.raises(InputError, match=words):
        call()


def test_rows_that_do_not_sum_to_one_are_reported_once():
    with pytest.warns(UserWarning, match=r"^y_score: 6 of 6 rows do not sum to 1 \(row 0: 2\)") as found:
        result = dm.evaluate(Y, 2.0 * P, missingness=dm.missing.Fixed(Q), metrics="accuracy")
    assert len(found) == 1
    assert result["accuracy"].mean() == pytest.approx(ACCURACY, abs=1e-12)
    assert [warned.category for warned in result.warnings] == ["UserWarning"]


def test_a_class_without_a_label_is_reported():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    y = (p.cumsum(axis=1) > rng.random((200, 1))).argmax(axis=1).astype(float)
    y[(y == 2) | (rng.random(200) < 0.3)] = np.nan
    with pytest.warns(dm.CalibrationWarning, match=r"^y_true: no label of fish\.") as found:
        dm.evaluate(y, p, labels=[0, 1, "fish"], missingness="by_score", metrics="accuracy")
    assert len(found) == 1


def test_probabilities_of_zero_are_allowed():
    p = np.eye(3)[[0, 1, 2, 0, 1, 2] * 20]
    y = np.tile([0.0, 1.0, 2.0, np.nan, np.nan, 1.0], 20)
    result = dm.evaluate(y, p, missingness="by_score", metrics="accuracy")
    low, high = result["accuracy"].interval()
    assert 0.5 < low < high < 1.0
