"""Columns of pandas that name their rows differently are never paired by position in silence."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import frames
from darkmetrics.exceptions import InputError
from darkmetrics.missing import ByScore, Covariates, ExponentialTilt

N = 60
RNG = np.random.default_rng(0)
SCORE = RNG.random(N).round(3)
TRUTH = (RNG.random(N) < SCORE).astype(float)
Y = np.where(RNG.random(N) < 0.3, np.nan, TRUTH)
PRED = (SCORE > 0.4).astype(float)
GAPS = np.isnan(Y)
ROWS = np.arange(100, 100 + N)
SHUFFLED = np.append(ROWS[:3], ROWS[:2:-1])  # the same names, in another order from row 3 on


def named(values: Any, index: Any = ROWS) -> pd.Series:
    return pd.Series(np.asarray(values), index=index)


# Every call that takes two columns or more: the arguments in the order in which they are compared.
CALLS: dict[str, Any] = {
    "EvaluationSet": lambda y_true, y_score: dm.EvaluationSet(y_true, y_score),
    "EvaluationSet y_pred": lambda y_true, y_pred: dm.EvaluationSet(y_true, SCORE, y_pred=y_pred),
    "EvaluationSet score and y_pred": lambda y_score, y_pred: dm.EvaluationSet(Y, y_score, y_pred=y_pred),
    "EvaluationSet weight": lambda y_true, sample_weight: dm.EvaluationSet(y_true, SCORE, sample_weight=sample_weight),
    "EvaluationSet probability": lambda y_score, probability: dm.EvaluationSet(
        Y, y_score, missingness=dm.missing.Fixed(probability)
    ),
    "evaluate": lambda y_true, y_score: dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(0.5)),
    "evaluate y_pred": lambda y_true, y_pred: dm.evaluate(
        y_true, SCORE, y_pred=y_pred, missingness=dm.missing.Fixed(0.5)
    ),
    "evaluate weight": lambda y_score, sample_weight: dm.evaluate(
        Y, y_score, sample_weight=sample_weight, missingness=dm.missing.Fixed(0.5)
    ),
    "evaluate probability": lambda y_true, probability: dm.evaluate(
        y_true, SCORE, missingness=dm.missing.Fixed(probability)
    ),
    "evaluate features": lambda y_true, X: dm.evaluate(
        y_true,
        SCORE,
        missingness=Covariates(LogisticRegression(), X.to_frame() if hasattr(X, "index") else X[:, None]),
    ),
    "evaluate reference": lambda y_true, y_score: dm.evaluate(
        Y, SCORE, missingness=dm.missing.Reference(y_true, y_score)
    ),
    "ByScore": lambda y_true, y_score: dm.evaluate(
        Y, SCORE, missingness=ExponentialTilt(ByScore(reference=dm.missing.Reference(y_true, y_score)), delta=0.1)
    ),
    "diagnose": lambda y_true, y_score: dm.diagnose(y_true, y_score),
    "diagnose reference": lambda y_true, y_score: dm.diagnose(
        Y, SCORE, missingness=dm.missing.Reference(y_true, y_score)
    ),
    "backtest": lambda y_true, y_score: dm.backtest(y_true, y_score, n_repeats=2, missingness=dm.missing.Fixed(0.5)),
    "backtest reference": lambda y_true, y_score: dm.backtest(
        TRUTH, SCORE, n_repeats=2, missingness=ByScore(reference=dm.missing.Reference(y_true, y_score))
    ),
    "backtest probability": lambda y_true, missingness: dm.backtest(
        y_true, SCORE, n_repeats=2, missingness={"own": dm.missing.Fixed(missingness)}
    ),
    "calibrator": lambda scores, labels: dm.calibrators.Beta().fit(scores, labels),
    "paper bound": lambda a, p: dm.paper.lemma_1(a, p),
}
COLUMNS = {"y_true": TRUTH, "labels": TRUTH, "y_pred": PRED}


def columns_of(call: Any) -> tuple[list[str], list[Any]]:
    names = list(call.__code__.co_varnames[: call.__code__.co_argcount])
    return names, [COLUMNS.get(name, SCORE) for name in names]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("index", "place"),
    [(np.arange(N), "0 and 100 at row 0"), (SHUFFLED, "159 and 103 at row 3")],
    ids=["other names", "another order"],
)
@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning", "ignore::darkmetrics.MissingnessWarning")
def test_columns_with_different_indexes_are_refused(name, index, place):
    (first, second), (one, two) = columns_of(CALLS[name])
    with pytest.raises(InputError) as caught:
        CALLS[name](named(one), named(two, index))
    text = str(caught.value)
    assert f"{second}: its index differs from that of {first}, {place}." in text
    assert text.endswith("Sort them into one order with .loc[...], or pass .to_numpy() of both if they have one.")
    assert "\n" not in text


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning", "ignore::darkmetrics.MissingnessWarning")
@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
def test_columns_with_one_index_pass_and_so_do_columns_without(name):
    _, (one, two) = columns_of(CALLS[name])
    # A copy of the index, a range in place of its numbers, and arrays beside a Series.
    for first, second in (
        (named(one), named(two, ROWS.copy())),
        (named(one), named(two, pd.RangeIndex(100, 100 + N))),
        (named(one), two),
        (one, named(two)),
    ):
        CALLS[name](first, second)


def test_probabilities_of_missing_rows_are_named_as_these_rows():
    y, chance = named(Y), named(SCORE)[GAPS]
    assert dm.EvaluationSet(y, SCORE, missingness=dm.missing.Fixed(chance)).n_missing == GAPS.sum()
    assert dm.EvaluationSet(y, SCORE, missingness=dm.missing.Fixed(chance.to_numpy())).n_missing == GAPS.sum()
    first = int(np.flatnonzero(GAPS)[0])
    for wrong, found in ((chance[::-1], ROWS[GAPS][-1]), (chance.reset_index(drop=True), 0)):
        with pytest.raises(InputError) as caught:
            dm.evaluate(y, SCORE, missingness=dm.missing.Fixed(wrong))
        assert f"probability: its index differs from that of y_true, {found} and {ROWS[first]} at row 0." in str(
            caught.value
        )


def test_probabilities_of_a_backtest_are_named_as_the_labeled_rows():
    y, chance = named(Y), named(SCORE)[~GAPS]
    told: Any = {"n_repeats": 2, "metrics": "recall", "rng": 0}
    dm.backtest(y, SCORE, missingness={"own": dm.missing.Fixed(chance)}, **told)
    with pytest.raises(InputError, match="missingness: its index differs from that of y_true"):
        dm.backtest(y, SCORE, missingness={"own": dm.missing.Fixed(chance.reset_index(drop=True))}, **told)


@pytest.mark.parametrize(
    ("index", "other"),
    [
        (list("abc"), list("abd")),
        (pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]), pd.RangeIndex(3)),
        (pd.MultiIndex.from_tuples([(1, 1), (1, 2), (2, 1)]), pd.MultiIndex.from_tuples([(1, 1), (2, 1), (1, 2)])),
        (pd.CategoricalIndex(list("abc")), pd.CategoricalIndex(list("acb"))),
        ([1, 1, 2], [1, 2, 1]),
        ([1.0, np.nan, 2.0], [1.0, 2.0, np.nan]),
        (pd.array([1, None, 2], dtype="Int64"), pd.array([1, 2, None], dtype="Int64")),
        ([("x" * 100), "b", "c"], ["y", "b", "c"]),
    ],
)  # fmt: skip
def test_any_kind_of_index_is_compared(index, other):
    y, score = pd.Series([1, 0, 1], index=index), pd.Series([0.9, 0.1, 0.5], index=other)
    with pytest.raises(InputError, match=r"y_score: its index differs from that of y_true, .* at row"):
        dm.EvaluationSet(y, score)
    assert dm.EvaluationSet(y, pd.Series([0.9, 0.1, 0.5], index=index)).n_rows == 3


def test_lengths_that_differ_are_said_first():
    with pytest.raises(InputError, match=r"y_true: 3 values, but y_score has 2\."):
        dm.EvaluationSet(pd.Series([1, 0, 1]), pd.Series([0.9, 0.1], index=[5, 6]))


def test_columns_of_one_table_pass_after_rows_were_taken_and_sorted():
    table = pd.DataFrame({"y": Y, "p": SCORE}).sort_values("p").iloc[5:40]
    assert dm.EvaluationSet(table["y"], table["p"]).n_rows == 35


def test_engines_without_an_index_have_no_names():
    for column in (pl.Series([1, 2]), np.ones(2), [1, 2], (1, 2), None, pd.Index([1, 2]), "ab"):
        assert frames.row_names(one=column) is None
