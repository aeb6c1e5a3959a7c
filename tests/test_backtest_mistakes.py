"""Mistakes in the arguments of a backtest, or in the use of its result, are named, and early."""

import importlib
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics.missing import Fixed


def rows(n):
    rng = np.random.default_rng(0)
    score = rng.random(n) ** 2
    return (rng.random(n) < score), score


@pytest.fixture(scope="module")
def two_setups():
    return dm.backtest(
        *rows(100),
        metrics=["recall", "f1"],
        n_repeats=2,
        rng=0,
        missingness=[dm.missing.TrainingPrevalence(), dm.missing.Fixed(0.5)],
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            "recall",
            r"key: 'recall', with 2 setups\. Write .*; setups are 'TrainingPrevalence', 'Fixed', met",
        ),
        ("Fixed", r"Write result\[setup, metric\]"),
        (("Fixed", "recal"), "metric: unknown metric 'recal'. Did you mean 'recall'"),
        (("Fixd", "recall"), "setup: unknown setup 'Fixd'. Did you mean 'Fixed'"),
        (("Fixed", "recall", "more"), r"Write result\[setup, metric\]"),
    ],
)
def test_a_wrong_key_names_the_right_ones(two_setups, key, message):
    with pytest.raises(dm.exceptions.UnknownNameError, match=message):
        two_setups[key]


def test_a_result_is_not_run_through(two_setups):
    with pytest.raises(TypeError):
        list(two_setups)
    with pytest.raises(TypeError):
        "recall" in two_setups  # noqa: B015


class Own(dm.masks.Mask):
    """Hides the first rows, or does something wrong."""

    missingness = "random"

    def __init__(self, answer):
        self.label = "mine"
        self.answer = answer

    def mask(self, y, score, rng):
        return self.answer(np.arange(y.size) < 5)


def test_a_mechanism_of_ones_own_can_be_used():
    y, score = rows(40)
    result = dm.backtest(y, score, mask=Own(dm.masks.Masked), metrics="f1", n_repeats=2, missingness="stated")
    assert result.mechanism.startswith("Own(label='mine', answer=")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda mask: mask, r"mask: Own\.mask returned ndarray\. It must return Masked"),
        (
            lambda mask: dm.masks.Masked(mask[1:]),
            r"Own\.mask must return an array with True or False for each row",
        ),
        (lambda mask: dm.masks.Masked(mask.astype(int)), "with True or False for each row"),
    ],
)
def test_what_a_mechanism_returns_is_checked(answer, message):
    y, score = rows(40)
    with pytest.raises(dm.InputError, match=message):
        dm.backtest(y, score, mask=Own(answer), n_repeats=2, missingness=dm.missing.Fixed(0.5))


class Nameless(Own):
    missingness = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": "random"}, r"mask: expected a fraction, or one of masks\.MCAR"),
        ({"mask": 1.5}, r"mask: 1\.5"),
        ({"mask": Nameless(None), "missingness": "stated"}, "'stated' needs to know what Nameless is called"),
        ({"n_repeats": 0}, "n_repeats: 0"),
        ({"n_jobs": 1.5}, r"n_jobs: 1\.5"),
        ({"n_jobs": -2}, "n_jobs: -2"),
        ({"missingness": ["random", "random"]}, "missingness: 2 choices are called 'random'. Give a dictionary"),
        ({"missingness": [0.1, 0.2, 0.3, 0.4]}, r"missingness: a list of 4 numbers; .* dm\.missing\.Fixed\("),
        ({"missingness": {}}, "missingness: none given"),
        ({"methods": {}}, "methods: none given"),
        ({"methods": []}, "methods: none given"),
        ({"missingness": ["random", "by_scor"]}, "missingness: unknown mechanism 'by_scor'. Did you mean 'by_score'"),
        ({"missingness": "by_labels"}, "missingness: unknown mechanism 'by_labels'"),
        ({"missingness": "randum"}, "missingness: unknown mechanism 'randum'"),
        ({"methods": "exakt"}, "methods: unknown method 'exakt'. Did you mean 'exact'"),
        ({"metrics": "recal"}, "Did you mean 'recall'"),
        ({"missingness": {"mine": Fixed(np.full(39, 0.5))}}, "missingness: 39 probabilities, but y_true has 40 rows"),
        ({"missingness": {"mine": Fixed(np.full(40, 1.5))}}, "missingness: 1.5 at row 0. Probabilities must lie in"),
        (
            {"missingness": dm.missing.Reference([1, 0, 2], [0.1, 0.2, 0.3])},
            "reference: y_true: a third value 2 at row 2",
        ),
        ({"missingness": dm.missing.Reference([1, None], [0.1, 0.2])}, "reference: 1 of 2 rows have no label"),
        ({"rng": "seed"}, "rng: expected None, a seed"),
        ({"y_true": [1] * 40}, "y_true: 40 positives and 0 negatives are labeled"),
        ({"y_true": [1, 0]}, "y_true: 2 values, but y_score has 40"),
        ({"y_score": [0.1] * 39 + [math.nan]}, "y_score: 1 of 40 values is NaN .first at row 39"),
    ],
)
def test_mistakes_are_named_before_the_first_repeat(arguments, message, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a repeat was run")

    # By its name, because darkmetrics.backtest is the function.
    monkeypatch.setattr(importlib.import_module("darkmetrics.backtesting.run"), "_answer", refuse)
    y, score = rows(40)
    settings = {"y_true": y, "y_score": score, "n_repeats": 2, "missingness": Fixed(0.5)} | arguments
    with pytest.raises(dm.InputError, match=message):
        dm.backtest(**settings)


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (Fixed(np.full(300, 0.5)), "probabilities"),
        (dm.missing.Covariates(LogisticRegression(), np.zeros((300, 2))), "rows of features"),
        (
            dm.missing.ExponentialTilt(dm.missing.Covariates(LogisticRegression(), [[0.0]] * 300), delta=0.1),
            "rows of features",
        ),
    ],
)
def test_columns_that_count_rows_without_a_label_are_told_the_cause(model, what):
    y, score = rows(300)
    labels = np.where(np.arange(300) < 200, y, math.nan)
    message = f"missingness: 300 {what}, but only 200 of 300 rows have a label, and a backtest leaves out the others"
    with pytest.raises(dm.InputError, match=message):
        dm.backtest(labels, score, n_repeats=2, missingness={"mine": model})
