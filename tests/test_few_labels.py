"""Few labels below the threshold: intervals of recall cover although no positive was seen; many labels: no effect."""

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.calibrators import Flexible
from darkmetrics.missing import ByScore

# A curve that is passed keeps its step prior and gets no level: it is extrapolated to the rows below the threshold.
WITHOUT_LEVEL = ByScore(Flexible(threshold=0.5))


def simulate_unseen_positives(seed, n):
    """Return labels, scores and observed labels: 20 to 200 labels below the threshold, none of them positive.

    The positive rate below the threshold is log-uniform from 0.1% to 5%, and the scores there overstate it.
    """
    rng = np.random.default_rng((seed, n))
    while True:
        score = rng.beta(1.0, 4.0, n)
        below = score < 0.5
        probability = np.where(below, np.exp(rng.uniform(np.log(0.001), np.log(0.05))), score)
        y = (rng.random(n) < probability).astype(float)
        observed = rng.random(n) < np.where(below, np.exp(rng.uniform(np.log(20.0), np.log(200.0))) / below.sum(), 0.98)
        seen = y[observed & below]
        if 20 <= seen.size <= 200 and seen.sum() == 0 and y[~below].sum() >= 5:
            return y, score, np.where(observed, y, np.nan)


def recall_coverage(n, n_sets, **mechanism):
    hits = 0
    for seed in range(n_sets):
        y, score, observed = simulate_unseen_positives(seed, n)
        low, high = dm.evaluate(observed, score, metrics="recall", **mechanism)["recall"].interval(0.9)
        hits += low <= dm.evaluate(y, score, metrics="recall")["recall"].mean() <= high
    return hits / n_sets


@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning", "ignore::darkmetrics.MissingnessWarning")
@pytest.mark.parametrize("mechanism", [{"missingness": "by_score"}, {"missingness": "unknown"}], ids=lambda m: str(m))
def test_recall_interval_covers_without_positive_labels_below_threshold(mechanism):
    assert recall_coverage(1000, 40, **mechanism) >= 0.85


@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning", "ignore::darkmetrics.MissingnessWarning")
def test_recall_interval_misses_without_level_below_threshold():
    assert recall_coverage(1000, 40, missingness=WITHOUT_LEVEL) < 0.7


@pytest.mark.parametrize("seed", range(3))
def test_level_below_threshold_moves_nothing_with_many_labels(seed):
    rng = np.random.default_rng(seed)
    score = rng.random(2000)
    observed = np.where(rng.random(2000) < 0.5, (rng.random(2000) < score).astype(float), np.nan)
    metrics, levels = ["precision", "recall", "accuracy", "roc_auc"], np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    result = dm.evaluate(observed, score, metrics=metrics, missingness="by_score")
    without = dm.evaluate(observed, score, metrics=metrics, missingness=WITHOUT_LEVEL)
    for metric in metrics:
        q, expected = (np.array([e[metric].ppf(level) for level in levels]) for e in (result, without))
        assert np.abs(q - expected).max() <= 0.02 * (expected[-1] - expected[0])


@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning", "ignore::darkmetrics.MissingnessWarning")
@pytest.mark.parametrize("mechanism", [{"missingness": "by_score"}, {}], ids=["by score", "not stated"])
def test_assumption_names_few_labels_below_threshold(mechanism):
    _, score, observed = simulate_unseen_positives(0, 1000)
    n = int(np.sum(~np.isnan(observed) & (score < 0.5)))
    sentence = f"Recall depends on {n} labels below the threshold, none positive."
    assert sentence in dm.evaluate(observed, score, metrics="recall", **mechanism).assumption


@pytest.mark.filterwarnings("ignore::darkmetrics.CalibrationWarning")
def test_assumption_names_few_labels_above_threshold():
    score = np.concatenate([np.linspace(0.01, 0.49, 400), np.linspace(0.51, 0.99, 200)])
    observed = np.append(np.tile([0.0, 0.0, 0.0, 1.0], 100), np.where(np.arange(200) % 20 == 0, 1.0, np.nan))
    result = dm.evaluate(observed, score, metrics="precision", missingness="by_score")
    assert "Precision depends on 10 labels at or above the threshold, none negative." in result.assumption


def test_assumption_does_not_name_many_labels():
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    observed = np.where(rng.random(2000) < 0.5, (rng.random(2000) < score).astype(float), np.nan)
    assert "depends on" not in dm.evaluate(observed, score, metrics="recall", missingness="by_score").assumption
