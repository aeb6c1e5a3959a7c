"""Covariates: cross-fitted predictions from any table of features, calibrated like scores."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.calibrators import Isotonic
from darkmetrics.missing import ByScore, Covariates, ExponentialTilt

NAN = float("nan")


def rows(seed=0, n=600):
    """A feature that the score does not know decides who gets a label, and the label too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - 1.5 * X[:, 1]))).astype(float)
    score = 1 / (1 + np.exp(-X[:, 0]))
    missing = rng.random(n) < 1 / (1 + np.exp(-2.0 * X[:, 1]))
    return X, y, score, missing


class Spy:
    """Remembers, by an identifier in the first column, whom it has seen and whom it is asked about."""

    seen: list[set[int]]
    asked: list[tuple[set[int], set[int]]]

    def __init__(self):
        self.own: set[int] = set()

    def fit(self, X, y):
        assert set(np.unique(y)) == {0, 1}
        self.own = set(np.asarray(X)[:, 0].astype(int).tolist())
        Spy.seen.append(self.own)
        return self

    def predict_proba(self, X):
        Spy.asked.append((self.own, set(np.asarray(X)[:, 0].astype(int).tolist())))
        chance = 0.2 + 0.6 * np.linspace(0.0, 1.0, len(X))
        return np.column_stack([1.0 - chance, chance])


class Answer:
    """Answers what a test wants."""

    def __init__(self, answer: Any):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return self.answer(len(X))


@pytest.mark.parametrize("n_folds", [2, 5])
def test_no_row_is_predicted_by_a_model_that_has_seen_it(n_folds):
    _, y, score, missing = rows()
    Spy.seen, Spy.asked = [], []
    identifier = np.arange(y.size)[:, None]
    dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(Spy(), identifier, n_folds=n_folds))
    labeled, gaps = set(np.flatnonzero(~missing).tolist()), set(np.flatnonzero(missing).tolist())
    assert len(Spy.seen) == n_folds
    out: list[int] = []
    for own, asked in Spy.asked:
        assert own <= labeled
        if asked == gaps:
            continue
        assert not own & asked
        assert own | asked == labeled
        out.extend(asked)
    # Every labeled row is predicted once, and the missing ones by every model.
    assert sorted(out) == sorted(labeled)
    assert sum(asked == gaps for _, asked in Spy.asked) == n_folds


def test_predictions_equal_cross_fitting_by_hand():
    X, y, _, missing = rows()
    model = LogisticRegression()
    found = Covariates(model, X, n_folds=3).predictions((y == 1) & ~missing, missing)
    fold = np.full(y.size, -1)
    for label in (0, 1):
        own = np.flatnonzero((y == label) & ~missing)
        fold[own] = np.arange(own.size) % 3
    expected = np.zeros(y.size)
    for k in range(3):
        fit = LogisticRegression().fit(X[(fold >= 0) & (fold != k)], y[(fold >= 0) & (fold != k)])
        expected[fold == k] = fit.predict_proba(X[fold == k])[:, 1]
        expected[missing] += fit.predict_proba(X[missing])[:, 1] / 3
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_estimator_of_the_caller_is_unchanged():
    X, y, score, missing = rows()
    model = LogisticRegression()
    before = copy.deepcopy(vars(model))
    dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(model, X))
    assert vars(model) == before


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=list("abc"), index=np.arange(len(X))[::-1]),
        lambda X: pl.DataFrame(X, schema=list("abc")),
        lambda X: pa.table({name: X[:, j] for j, name in enumerate("abc")}),
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_matrix,
    ],
    ids=["numpy", "list", "pandas", "polars", "pyarrow", "csr_matrix", "csr_array", "csc_matrix", "coo_matrix"],
)
def test_features_come_in_every_container(make):
    X, y, score, missing = rows(n=200)
    y_true = np.where(missing, NAN, y)
    found, expected = (
        dm.evaluate(
            y_true,
            score,
            missingness=Covariates(DecisionTreeClassifier(random_state=0), features),
            metrics="f1",
        )
        for features in (make(X), X)
    )
    assert found.to_dict() == expected.to_dict()


def test_a_frame_reaches_the_estimator_as_a_frame():
    X, y, score, missing = rows(n=200)
    kinds = set()

    class Watch(Answer):
        def fit(self, X, y):
            kinds.add(type(X))
            return self

    model = Covariates(Watch(lambda n: np.full((n, 2), 0.5)), pd.DataFrame(X, columns=list("abc")))
    dm.evaluate(np.where(missing, NAN, y), score, missingness=model, metrics="f1")
    assert kinds == {pd.DataFrame}


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (np.zeros((7, 2)), "X: 7 rows, but y_true has 200. Pass the features of every row."),
        (np.zeros(200), r"X: expected a table with one row per label, got shape \(200,\)"),
        (pd.Series(np.zeros(200)), "X: None. It must be a table"),
        ([[1.0, 2.0], [1.0]], "X: rows of different lengths. Pass a table"),
        (None, "X: None. It must be a table"),
        ("features.csv", "X: None. It must be a table"),
    ],
)
def test_features_of_another_shape_are_refused(X, text):
    _, y, score, missing = rows(n=200)
    with pytest.raises(InputError, match=text):
        dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(LogisticRegression(), X))


@pytest.mark.parametrize("estimator", [None, "logistic", object(), LogisticRegression, lambda X: X])
def test_what_cannot_fit_and_predict_chances_is_refused(estimator):
    with pytest.raises(InputError, match=r"estimator: .* It must be an object with fit and predict_proba"):
        Covariates(estimator, np.zeros((5, 2)))


@pytest.mark.parametrize("n_folds", [1, 0, -2, 2.0, True, "5", None])
def test_a_bad_number_of_folds_is_refused(n_folds):
    with pytest.raises(InputError, match=r"n_folds: .* It must be a whole number of at least 2\."):
        Covariates(LogisticRegression(), np.zeros((5, 2)), n_folds=n_folds)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda n: np.full(n, 0.5), "of shape"),
        (lambda n: np.full((n, 3), 1 / 3), "of shape"),
        (lambda n: np.full((n, 2), np.nan), "with values that are not finite"),
    ],
)
def test_answers_that_are_no_chances_of_two_classes_are_refused(answer, text):
    X, y, score, missing = rows(n=200)
    with pytest.raises(InputError, match=rf"estimator: Answer\.predict_proba returned an array .*{text}"):
        dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(Answer(answer), X))


def test_fewer_labels_of_a_class_than_folds_are_refused():
    X = np.zeros((12, 1))
    y = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, None, None]
    with pytest.raises(
        InputError, match=r"y_true: 3 positive labels, fewer than the 5 folds of Covariates\. Lower n_folds"
    ):
        dm.evaluate(y, np.linspace(0, 1, 12), missingness=Covariates(LogisticRegression(), X))


def test_labels_are_read_as_the_set_reads_them():
    X, y, score, missing = rows(n=300)
    plain = dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(LogisticRegression(), X))
    coded = dm.evaluate(
        np.where(missing, -1, y).astype(int),
        score,
        missingness=Covariates(LogisticRegression(), X),
        missing_label=-1,
    )
    words = dm.evaluate(
        [None if gap else "bad" if label else "good" for gap, label in zip(missing, y, strict=True)],
        score,
        missingness=Covariates(LogisticRegression(), X),
        pos_label="bad",
    )
    assert plain.to_dict()["metrics"] == coded.to_dict()["metrics"] == words.to_dict()["metrics"]


@pytest.mark.parametrize("probability", [None, "given"])
@pytest.mark.parametrize("tilted", [False, True])
def test_an_evaluation_set_has_no_rows_to_match_features_to(probability, tilted):
    X, y, score, missing = rows(n=200)
    y_true = np.where(missing, NAN, y)
    # Even where the set brings probabilities of its own: these are not what the features say.
    data = EvaluationSet(y_true, score, missingness=None if probability is None else dm.missing.Fixed(score))
    model: Any = Covariates(LogisticRegression(), X)
    model = ExponentialTilt(model, delta=0.5) if tilted else model
    message = "missingness: Covariates belong to rows, and an EvaluationSet has counts"
    with pytest.raises(InputError, match=message):
        dm.evaluate(data, missingness=model)
    # Predictions in a set would be taken for probabilities that are known.
    with pytest.raises(InputError, match=message):
        EvaluationSet(y_true, score, missingness=model)


COLUMNS = ["a", "b", "c"]
TABLES: dict[str, Any] = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas with an index": lambda columns: pd.DataFrame(columns, index=np.arange(300)[::-1]),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def table_of(n=300):
    X, y, score, missing = rows(n=n)
    y_true = np.where(missing, NAN, y)
    columns = {"y": y_true, "p": score} | {name: X[:, j] for j, name in enumerate(COLUMNS)}
    return X, y_true, score, columns


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("tilted", [False, True])
def test_features_may_be_columns_of_the_table(make, tilted):
    X, y_true, score, columns = table_of()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)

    def mechanism(X):
        model = Covariates(tree, X)
        return ExponentialTilt(model, delta=0.5) if tilted else model

    found = dm.evaluate("y", "p", data=make(columns), missingness=mechanism(COLUMNS), metrics="f1")
    assert found.to_dict() == dm.evaluate(y_true, score, missingness=mechanism(X), metrics="f1").to_dict()
    # The order of the columns is that of the list: the control has other features.
    other = dm.evaluate("y", "p", data=make(columns), missingness=mechanism(["c"]), metrics="f1")
    assert found.to_dict() != other.to_dict()
    # Arrays of features go with columns of labels and scores, and columns of features with arrays of labels.
    for labels, scores, features in (("y", "p", X), (columns["y"], "p", COLUMNS)):
        mixed = dm.evaluate(labels, scores, data=make(columns), missingness=mechanism(features), metrics="f1")
        assert mixed.to_dict() == found.to_dict()


def test_columns_of_features_need_a_table_in_memory_that_has_them():
    _, y_true, score, columns = table_of()
    model = Covariates(LogisticRegression(), ["a", "bb"])
    with pytest.raises(InputError, match=r"^X: 'a' is the name of a column\. Pass its table as data=\.$"):
        dm.evaluate(y_true, score, missingness=model)
    with pytest.raises(InputError, match=r"^X: data has no column 'bb'\. Did you mean 'b'\?$"):
        dm.evaluate("y", "p", data=pd.DataFrame(columns), missingness=model)
    for remote in (pl.LazyFrame(columns), "nowhere.parquet"):
        with pytest.raises(InputError, match=r"^data: not in memory, but the mechanism needs rows in memory\."):
            dm.evaluate("y", "p", data=remote, missingness=model)


def test_features_help_where_missingness_depends_on_them():
    off: list[float] = []
    off_without: list[float] = []
    for seed in range(5):
        X, y, score, missing = rows(seed, 2000)
        y_true = np.where(missing, NAN, y)
        truth = y[score >= 0.5].mean()
        for found, model in [(off, Covariates(LogisticRegression(), X)), (off_without, ByScore())]:
            distribution = dm.evaluate(y_true, score, missingness=model, metrics="precision")["precision"]
            found.append((truth - distribution.mean()) / distribution.std())
    # Right within its own spread; the score alone is many standard deviations off (the control).
    assert np.abs(off).max() < 4.0
    assert np.min(np.abs(off_without)) > 5.0


def test_the_predictions_are_calibrated_and_not_the_scores():
    """A calibrator with steps takes another way than the logistic ones; both must look at the predictions."""
    X, y, score, missing = rows(1, 2000)
    y_true = np.where(missing, NAN, y)
    truth = y[score >= 0.5].mean()
    for calibrator in ("isotonic", Isotonic(), "scaling_binning", "platt"):
        model = Covariates(LogisticRegression(), X, calibrator=calibrator)
        distribution = dm.evaluate(y_true, score, missingness=model, metrics="precision")["precision"]
        assert distribution.mean() == pytest.approx(truth, abs=4.0 * distribution.std())


def test_features_can_be_tilted():
    X, y, score, missing = rows(n=400)
    model = ExponentialTilt(Covariates(LogisticRegression(), X), prevalence=0.37)
    result = dm.evaluate(np.where(missing, NAN, y), score, missingness=model)
    counts = result.data.missing_counts
    share = result.posterior.on_all_cells.probability @ counts / counts.sum()
    assert float(result.posterior.weight @ share) == pytest.approx(0.37, abs=1e-10)


def test_nothing_missing_asks_nothing_of_the_features():
    y, score = [1, 0, 1], [0.9, 0.2, 0.7]
    result = dm.evaluate(y, score, missingness=Covariates(LogisticRegression(), np.zeros((3, 1))), metrics="accuracy")
    assert result["accuracy"].mean() == 1.0


def test_the_sentence_names_the_estimator():
    X, y, score, missing = rows(n=300)
    result = dm.evaluate(np.where(missing, NAN, y), score, missingness=Covariates(LogisticRegression(), X))
    assert "Probabilities come from LogisticRegression, cross-fitted and calibrated on" in result.assumption


def test_features_that_say_nothing_leave_what_the_score_says():
    rng = np.random.default_rng(11)
    score = rng.random(3000)
    y = (rng.random(3000) < score**2).astype(float)
    y_true = np.where(rng.random(3000) < 0.2 + 0.6 * score, np.nan, y)
    model = Covariates(LogisticRegression(), rng.normal(size=(3000, 2)))
    found = dm.evaluate(y_true, score, missingness=model)
    by_score = dm.evaluate(y_true, score, missingness="by_score")
    for name in found:
        assert found[name].mean() == pytest.approx(by_score[name].mean(), abs=1.0 * by_score[name].std())
    # By the predictions alone every row would be as likely to be positive as the next, whatever its score.
    alone = dm.evaluate(y_true, score, missingness=Covariates(LogisticRegression(), model.X, calibrator="isotonic"))
    assert abs(alone["roc_auc"].mean() - by_score["roc_auc"].mean()) > 10.0 * by_score["roc_auc"].std()


def test_scores_that_are_no_probabilities_are_standardised():
    rng = np.random.default_rng(12)
    score = rng.normal(size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-2.0 * score))).astype(float)
    y_true = np.where(rng.random(2000) < 0.4, np.nan, y)
    model = Covariates(LogisticRegression(), rng.normal(size=(2000, 1)))
    distribution = dm.evaluate(y_true, score, missingness=model, threshold=0.0, metrics="precision")["precision"]
    low, high = distribution.interval(0.99)
    assert low <= y[score >= 0.0].mean() <= high
    moved = dm.evaluate(y_true, 100.0 * score + 7.0, missingness=model, threshold=7.0, metrics="precision")["precision"]
    assert moved.mean() == pytest.approx(distribution.mean(), abs=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_the_estimator_refuses_are_an_input_error(value):
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels, score = np.where(np.arange(60) % 3, np.arange(60) % 2, np.nan), np.linspace(0.05, 0.95, 60)
    X[7, 1] = value
    model = dm.missing.Covariates(LogisticRegression(), X)
    with pytest.raises(dm.InputError, match=r"^X: LogisticRegression does not accept these features: Input X contains"):
        dm.evaluate(labels, score, missingness=model, metrics="precision")


def test_missing_features_are_used_by_an_estimator_that_accepts_them():
    """Negative control of the test above."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels, score = np.where(np.arange(60) % 3, np.arange(60) % 2, np.nan), np.linspace(0.05, 0.95, 60)
    X[7, 1] = np.nan
    model = dm.missing.Covariates(HistGradientBoostingClassifier(max_iter=5), X)
    result = dm.evaluate(labels, score, missingness=model, metrics="precision")
    assert np.isfinite(result["precision"].mean())
