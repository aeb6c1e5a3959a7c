"""Bands stay inside what the metric can be at all, in every number that is read off them."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS

METRICS = [metric.name for metric in CONFUSION_METRICS if isinstance(metric, dm.metrics.ConfusionMetric)]
LEVELS = (0.5, 0.9, 0.999)
# No ratios of sums: with weights each threshold takes a second.
BENT = ["balanced_accuracy", "mcc", "g_mean", "youden_j"]


def evaluation(weighted: bool, missingness: Any = None) -> dm.Evaluation:
    """Scores of which few are high, so that high thresholds flag one row, two, three, ..."""
    rng = np.random.default_rng(3)
    n = 600
    score = rng.random(n) ** 4
    label = np.where(rng.random(n) < 0.4, np.nan, rng.random(n) < score)
    weight = rng.lognormal(size=n) if weighted else None
    model = dm.missing.Fixed(np.clip(score, 0.02, 0.98)) if missingness is None else missingness
    with warnings.catch_warnings():
        for kind in (dm.UndefinedMetricWarning, dm.MissingnessWarning):
            warnings.simplefilter("ignore", kind)
        return dm.evaluate(label, score, sample_weight=weight, missingness=model, metrics="accuracy")


def thresholds_of(result: dm.Evaluation) -> np.ndarray:
    """The highest scores one by one, the lowest, and some in between."""
    score = result.data.cells.score
    return np.unique(np.concatenate([score[-10:], score[:2], score[:: score.size // 4]]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missingness", [None, "by_score"])
def test_no_band_leaves_the_sharp_bounds(weighted, missingness):
    result = evaluation(weighted, missingness)
    ratios = [name for name in METRICS if name not in BENT]
    settings: dict[str, Any] = {"method": "gaussian", "confidence_levels": LEVELS}
    found = dict(dm.threshold_curves(result, metrics=ratios, thresholds=thresholds_of(result), **settings))
    if not weighted or missingness is None:
        # All thresholds at one node; at many those that flag one row, two, three, four and some, where bands are cut.
        places = result.data.cells.score[-2:] if weighted else thresholds_of(result)
        if missingness is not None:
            places = places[[0, -8, -4, -3, -2, -1]]
        found |= dm.threshold_curves(result, metrics=BENT, thresholds=places, **settings)
    for name, band in found.items():
        for low, high in band.intervals.values():
            known = np.isfinite(low)
            assert known.any(), name
            assert np.all(low[known] >= band.lowest_possible[known]), name
            assert np.all(high[known] <= band.highest_possible[known]), name


def test_a_gaussian_that_is_not_cut_leaves_them():
    """The control: there is something to cut."""
    result = evaluation(False)
    top = result.data.with_threshold(float(result.data.cells.score[-2]))
    distribution = dm.evaluate(top, method="gaussian", missingness=dm.missing.Fixed(0.5), metrics="precision")[
        "precision"
    ]
    assert distribution.mean() + 2.0 * distribution.std() > distribution.support()[1]


def test_tables_dicts_and_print_have_the_same_ends():
    result = evaluation(False)
    curves = dm.threshold_curves(result, metrics="precision", thresholds=thresholds_of(result), method="gaussian")
    frame = curves.to_frame("pandas")
    plain = curves.to_dict()["metrics"]["precision"]
    for i, level in enumerate(curves.confidence_levels):
        low, high = frame[f"low_{100 * level:g}"], frame[f"high_{100 * level:g}"]
        assert (low >= frame["lowest_possible"]).all()
        assert (high <= frame["highest_possible"]).all()
        assert [plain["intervals"][i]["low"], plain["intervals"][i]["high"]] == [low.tolist(), high.tolist()]
    printed = [float(number) for number in re.findall(r"to (\d+\.\d+)\)", str(curves))]
    assert len(printed) > 3
    assert max(printed) <= 1.0
    assert curves.best_threshold("precision", risk=0.01).value <= 1.0
