"""Scores counted in buckets must not make alerts: a target that is met by exact scores is met."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import darkmetrics as dm
from alerting import alerts_by


def two_groups(rng, n=4000):
    group = np.repeat(["a", "b"], n // 2)
    score = rng.beta(40.0, 60.0, n)
    label = (rng.random(n) < 1.0 / (1.0 + np.exp(-12.0 * (score - 0.4)))).astype(int)
    return pl.DataFrame({"g": group, "s": score, "y": label})


def test_buckets_raise_no_alert_where_exact_scores_meet_the_target():
    frame = two_groups(np.random.default_rng(0))
    truth = min(roc_auc_score(part["y"], part["s"]) for part in frame.partition_by("g"))
    settings: dict[str, Any] = {
        "y_true": "y",
        "y_score": "s",
        "metrics": "roc_auc",
        "targets": {"roc_auc": truth - 1e-6},
    }
    coarse = alerts_by(data=frame, by="g", score_bins=16, **settings)
    # The control: buckets do push the metric below the target, so that only the allowance keeps the alert away.
    assert min(group.metrics["roc_auc"].mean for group in coarse.grouped.groups.values()) < truth - 1e-6
    assert not coarse
    assert all(missed["roc_auc"] < 1.0 for missed in coarse.probability_missed.values())


def test_a_target_out_of_reach_of_buckets_is_still_an_alert():
    frame = two_groups(np.random.default_rng(1))
    settings: dict[str, Any] = {"y_true": "y", "y_score": "s", "metrics": "roc_auc", "targets": {"roc_auc": 0.99}}
    assert len(alerts_by(data=frame, by="g", score_bins=64, **settings)) == 2


def test_the_effect_of_buckets_is_in_numbers_and_words():
    frame = two_groups(np.random.default_rng(2))
    result = dm.evaluate_by("y", "s", data=frame, by="g", score_bins=64)
    effects = {name: one.binning_error for name, one in result.groups["a",].metrics.items()}
    assert effects.pop("roc_auc") == pytest.approx(result["a"].binning_error["roc_auc"])
    assert set(effects.values()) == {0.0}
    assert "64 bins per group" in str(result)
    assert "Scores are in" not in str(dm.evaluate_by("y", "s", data=frame, by="g"))
