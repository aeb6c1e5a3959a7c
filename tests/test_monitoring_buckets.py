"""Scores counted in buckets must not make alerts: a target that is met by exact scores is met."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import darkmetrics as dm


def two_groups(rng, n=4000):
    group = np.repeat(["a", "b"], n // 2)
    score = rng.beta(40.0, 60.0, n)
    label = (rng.random(n) < 1.0 / (1.0 + np.exp(-12.0 * (score - 0.4)))).astype(int)
    return pl.DataFrame({"g": group, "s": score, "y": label})


def test_buckets_raise_no_alert_where_exact_scores_meet_the_target():
    frame = two_groups(np.random.default_rng(0))
    truth = min(roc_auc_score(part["y"], part["s"]) for part in frame.partition_by("g"))
    settings: dict[str, Any] = {"label": "y", "score": "s", "metrics": "roc_auc", "targets": {"roc_auc": truth - 1e-6}}
    coarse = dm.evaluate_by(frame, "g", buckets=16, **settings)
    # The control: buckets do push the metric below the target, so that only the allowance keeps the alert away.
    assert min(group.metrics["roc_auc"].mean for group in coarse.groups.values()) < truth - 1e-6
    assert not coarse.alerts
    assert all(group.chance_missed["roc_auc"] < 1.0 for group in coarse.groups.values())


def test_a_target_out_of_reach_of_buckets_is_still_an_alert():
    frame = two_groups(np.random.default_rng(1))
    settings: dict[str, Any] = {"label": "y", "score": "s", "metrics": "roc_auc", "targets": {"roc_auc": 0.99}}
    assert len(dm.evaluate_by(frame, "g", buckets=64, **settings).alerts) == 2


def test_the_effect_of_buckets_is_in_numbers_and_words():
    frame = two_groups(np.random.default_rng(2))
    result = dm.evaluate_by(frame, "g", label="y", score="s", buckets=64)
    effects = {name: one.bucket_effect for name, one in result.groups["a",].metrics.items()}
    assert effects.pop("roc_auc") == pytest.approx(result["a"].bucket_effect["roc_auc"])
    assert set(effects.values()) == {0.0}
    assert "64 buckets per group" in str(result)
    assert "buckets" not in str(dm.evaluate_by(frame, "g", label="y", score="s"))
