"""Pictures of differences say what they are about: these rows, or the population that they came from."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm

SETTINGS: dict[str, Any] = {"missingness": "random", "metrics": ["recall"]}


def rows(n=300, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < p), p**power


def by(names, scope):
    y, p = rows()
    table = pd.DataFrame({"g": np.resize(names, y.size), "y": y, "p": p})
    return dm.evaluate_by("y", "p", data=table, by="g", scope=scope, **SETTINGS)


def change(scope):
    one, other = (dm.evaluate(*rows(seed=seed), scope=scope, **SETTINGS) for seed in (1, 2))
    return dm.compare_evaluations(one, other)


def models(scope):
    y, p = rows()
    return dm.compare(y, {"a": p, "b": rows(seed=3)[1]}, scope=scope, **SETTINGS)


PLOTS = {
    "change": lambda scope: change(scope).plot("recall"),
    "gap": lambda scope: by(["app", "web"], scope).disparity("recall").plot(),
    "trend": lambda scope: by(["2026-05", "2026-06"], scope).trend("recall").plot(),
    "difference": lambda scope: dm.plotting.plot_difference(models(scope), "recall"),
    "models": lambda scope: dm.plotting.plot_models(models(scope), "recall"),
}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize(("scope", "words"), [("rows", "for these rows"), ("population", "for the population")])
@pytest.mark.parametrize("plot", PLOTS)
def test_the_legend_says_what_the_picture_is_about(plot, scope, words):
    assert words in legend(PLOTS[plot](scope))


def test_no_change_has_its_probability():
    # Four draws of one label each: both sides are level half of the time.
    one, other = (
        dm.evaluate([1, 0, None], [0.9, 0.2, p], missingness=dm.missing.Fixed([0.5]), metrics="accuracy")
        for p in (0.7, 0.8)
    )
    assert "no change: 50%" in legend(dm.compare_evaluations(one, other).plot("accuracy"))


def test_no_change_among_many_values_has_its_probability():
    y = [1, 0, None] * 40
    one, other = (
        dm.evaluate(y, np.random.default_rng(seed).random(120), missingness=dm.missing.Fixed(0.5), metrics="accuracy")
        for seed in (1, 2)
    )
    found = dm.compare_evaluations(one, other)
    same = 1.0 - found.probability_decreased("accuracy") - found.probability_increased("accuracy")
    assert same > 0.01  # 40 labels of either side are level now and then
    assert f"no change: {same:.1%}" in legend(found.plot("accuracy"))


def test_no_change_that_never_is_has_no_number():
    assert "no change" in legend(change("population").plot("recall"))


def test_a_gap_without_a_value_is_said_to_have_none():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pd.DataFrame({"g": ["a", "a", "b", "b", "c", "c"], "y": [1, 0, 1, 0, 0, 0], "p": [0.9, 0.2] * 3})
        result = dm.evaluate_by("y", "p", data=table, by="g", metrics="recall", zero_division=np.nan)
    ax = result.disparity("recall").plot()
    assert "highest minus lowest undefined" in legend(ax)
    assert [text.get_text() for text in ax.texts].count("0/0") == 2
