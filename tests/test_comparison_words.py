"""What a comparison says: whose metric is 0/0, and that in a population nothing is certain."""

import html
import re
import warnings
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm


def models(number, seed=0, n=2000, **settings):
    """One model that knows, and others that guess."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < p)
    scores = {"good": p} | {f"guess {i}": rng.random(n) for i in range(1, number)}
    return dm.compare(y, scores, metrics="accuracy", missingness="random", **settings)


@pytest.mark.parametrize("number", [2, 3])
def test_in_the_population_no_model_is_best_for_certain(number):
    found = models(number, scope="population")
    best = found.probability_best("accuracy")
    assert 0.999 < best["good"] < 1.0
    assert 0.0 < best["guess 1"] < 0.001
    assert "good >99.9%" in str(best)
    assert "guess 1 <0.1%" in str(best)
    assert "100%" not in str(found.rank_probabilities("accuracy"))
    assert 0.999 < found.probability_better("accuracy", "good", "guess 1") < 1.0


def test_what_no_rows_can_exceed_stays_impossible():
    assert models(2, scope="population").probability_better("accuracy", "good", "guess 1", by=1.5) == 0.0


@pytest.mark.parametrize("number", [2, 3])
def test_models_that_no_row_tells_apart_tie_for_certain(number):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < 0.3, np.nan, rng.random(300) < p)
    scores = {f"model {i}": p for i in range(number)}
    best = dm.compare(y, scores, metrics="accuracy", missingness="random", scope="population").probability_best(
        "accuracy"
    )
    assert set(best.chances.values()) == {0.0}
    assert best.tie == pytest.approx(1.0)


def test_a_warning_of_a_0_by_0_names_the_model_and_comes_once_each():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p) * 1.0
    found = dm.compare(y, {"shy": 0.3 * p, "mute": 0.2 * p, "bold": p}, metrics="precision")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        str(found)
    texts = [str(one.message) for one in said if issubclass(one.category, dm.UndefinedMetricWarning)]
    assert [text.partition(" is undefined")[0] for text in texts] == ["precision of shy", "precision of mute"]


def test_the_description_of_a_picture_ends_with_one_dot():
    settings: Any = {"missingness": "random", "metrics": "recall"}
    rng = np.random.default_rng(0)
    p = rng.random((2, 200))
    y = np.where(rng.random((2, 200)) < 0.3, np.nan, rng.random((2, 200)) < p)
    one, other = (dm.evaluate(*pair, **settings) for pair in zip(y, p, strict=True))
    for page in (dm.compare_evaluations(one, other).report(), one.report(), models(2, n=200).report()):
        found = re.findall(r"<desc[^>]*>(.*?)</desc>", html.unescape(page.html))
        assert found
        assert all(text.endswith(".") and not text.endswith("..") for text in found)
