"""Told nothing, on real data: the quick slice of `python -m experiments.reasons`, with its negative control."""

import os
import warnings

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.missing import Unknown
from darkmetrics.missingness.mixture import BOTH, BY_SCORE, select_mechanism

pytestmark = pytest.mark.skipif("DARKMETRICS_DATA" not in os.environ, reason="DARKMETRICS_DATA is not set")
METRICS = ["precision", "recall", "accuracy", "f1", "roc_auc"]


@pytest.fixture(scope="module")
def problems():
    pytest.importorskip("experiments.reasons.problems")
    from experiments.reasons.problems import hidden, rows_of

    reason = "score and label, opposite"
    sets = ("adult", "credit_default", "online_shoppers", "civil_comments_scores")
    made = [rows_of(name, "logistic", split, 2000) for name in sets for split in range(2)]
    return [(hidden(rows, reason), rows) for rows in made]


def held(problems, **how):
    """Share of 90% intervals that hold the truth."""
    found = []
    for labels, rows in problems:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = dm.evaluate(labels, rows.score, metrics=METRICS, **how)
        truth = dm.evaluate(rows.y, rows.score, metrics=METRICS)
        for metric in METRICS:
            low, high = result[metric].interval(0.9)
            found.append(low - 1e-9 <= truth[metric].mean() <= high + 1e-9)
    return np.mean(found)


def test_looked_at_by_score_and_positives_late_is_covered(problems):
    assert held(problems) >= 0.8


def test_what_was_said_before_is_not(problems):
    """The control: "by score" is sure of itself and wrong."""
    assert held(problems, missingness="by_score") <= 0.4


class WithoutBoth(Unknown):
    """The default before it allowed for both."""

    def posterior(self, data):
        posterior = super().posterior(data)
        kept = posterior.mechanism != BOTH
        weight = posterior.weight[kept] / posterior.weight[kept].sum()
        return dm.missing.Posterior(weight, posterior.probability[kept], column=posterior.column)

    def describe(self, data, posterior):
        return ""


def test_without_both_it_would_not_be(problems):
    assert held(problems, missingness=WithoutBoth()) <= 0.5


def test_both_is_as_wide_as_its_prior_says(problems):
    labels, rows = problems[0]
    data = dm.EvaluationSet(labels, rows.score)
    posterior = Unknown().posterior(data)
    spread = [select_mechanism(posterior, reason).probability.std(axis=0).mean() for reason in (BY_SCORE, BOTH)]
    assert spread[1] > 2.0 * spread[0]
