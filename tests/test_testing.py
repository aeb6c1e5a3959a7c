"""The checks for metrics, mechanisms and methods of users pass for those of the library, and fail where they must."""

from dataclasses import replace

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.metrics import Family, registered
from darkmetrics.testing import check_mechanism, check_method, check_metric


@pytest.mark.parametrize("name", dm.metrics.registered_names())
def test_check_metric_passes_for_registered_metrics(name):
    record = registered(name)
    check_metric(record.example if isinstance(record, Family) else record)


@pytest.mark.parametrize("word", ["random", "by_score", "by_label", "unknown"])
def test_check_mechanism_passes_for_words(word):
    check_mechanism(word)


@pytest.mark.parametrize("name", ["exact", "auto", "monte_carlo"])
def test_check_method_passes_for_methods_without_approximation(name):
    check_method(name)


def test_check_metric_fails_for_a_value_outside_the_range():
    wrong = dm.metrics.ConfusionMetric(
        name="wrong", formula=lambda tp, fp, fn, tn: 2 * tp / (tp + fn), meaning="twice the recall", range=(0, 1)
    )
    with pytest.raises(AssertionError, match=r"wrong: a value of .* is outside its range"):
        check_metric(wrong)


def test_check_metric_fails_for_a_wrong_direction():
    wrong = dm.metrics.ConfusionMetric(
        name="wrong", formula=lambda tp, fp, fn, tn: fp / (tp + fp), meaning="false alerts", direction=(0, 0)
    )
    with pytest.raises(AssertionError, match=r"the direction is wrong"):
        check_metric(wrong)


class Overweight(dm.missing.ByScore):
    """`ByScore` with weights that sum to 2."""

    def posterior(self, data):
        posterior = super().posterior(data)
        return replace(posterior, weight=2.0 * posterior.weight)


class Undescribed(dm.missing.ByScore):
    """`ByScore` without a description."""

    def describe(self, data, posterior):
        return ""


class Unseeded(dm.missing.ByScore):
    """`ByScore` with random noise."""

    def posterior(self, data):
        posterior = super().posterior(data)
        noise = np.random.default_rng().uniform(0.9, 1.0, posterior.probability.shape)
        return replace(posterior, probability=noise * posterior.probability)


@pytest.mark.parametrize(
    ("mechanism", "rule"),
    [
        (Overweight(), "Overweight: weights sum to 2. They must sum to 1."),
        (Undescribed(), "Undescribed: describe() returned no text."),
        (Unseeded(), "Unseeded: two fits of the same rows differ."),
    ],
    ids=["weights", "description", "seed"],
)
def test_check_mechanism_fails_and_names_the_rule(mechanism, rule):
    with pytest.raises(AssertionError) as caught:
        check_mechanism(mechanism)
    assert rule in str(caught.value)


def test_check_method_fails_for_an_approximation():
    with pytest.raises(AssertionError, match=r"gaussian: the cdf of precision differs from brute force"):
        check_method("gaussian")
