"""p-values of targets: never below the probability that the target is met, and not much too small in the tails."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

import darkmetrics as dm
from darkmetrics.metrics import metrics_from
from darkmetrics.monitoring.p_values import verdict

RECALL = metrics_from("recall")[0]


def rows(n, missing, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(-1.5, 1.7, n)
    y = (rng.random(n) < expit(x)).astype(float)
    y[rng.random(n) < missing] = np.nan
    return dm.EvaluationSet(y, expit(0.8 * x + 0.3).round(3), threshold=0.33)


def p_value(evaluation, target):
    distribution = evaluation["recall"]
    return verdict(distribution, evaluation.posterior.mechanism, RECALL, target, fill=None, n_draws=1).p_value


def evaluated(data, missingness) -> dm.Evaluation:
    return dm.evaluate(data, metrics="recall", missingness=missingness)


def test_with_known_probabilities_the_p_value_is_the_probability_that_the_target_is_met():
    evaluation = evaluated(rows(300, 0.5, 0), dm.missing.Fixed(0.5))
    distribution = evaluation["recall"]
    for target in distribution.ppf([0.01, 0.3, 0.7, 0.99]):
        assert p_value(evaluation, target) == pytest.approx(evaluation.target_probability("recall", target), abs=1e-15)


@pytest.mark.parametrize("model", [dm.missing.ByScore, dm.missing.ByLabel])
def test_it_is_never_smaller_than_that(model):
    evaluation = evaluated(rows(300, 0.5, 0), model())
    distribution = evaluation["recall"]
    low, high = distribution.support()
    for target in np.linspace(low, high, 50):
        met = evaluation.target_probability("recall", target)
        # Half a unit in the last place of 1 is what 1 - (1 - met) can lose.
        assert p_value(evaluation, target) >= met - 1e-15


def test_what_no_labeling_can_change_is_certain():
    evaluation = evaluated(rows(300, 0.5, 0), dm.missing.ByScore())
    low, high = evaluation["recall"].support()
    assert p_value(evaluation, high + 0.01) == 0.0
    assert p_value(evaluation, low - 0.01) == 1.0
    assert p_value(evaluation, high - 1e-6) > 0.0


# Sets that played no part in choosing the allowance.
SETS = [(n, missing, seed) for n, missing in ((600, 0.3), (600, 0.85), (1_500, 0.6)) for seed in (100, 101, 102)]


@cache
def in_the_tail(n, missing, seed):
    """Targets 2 to 4 standard deviations above the mean: the p-value from 64 nodes, and what 64 and 1,024 say."""
    data = rows(n, missing, seed)
    few, many = (evaluated(data, dm.missing.ByScore(n_draws=posterior)) for posterior in (64, 1_024))
    distribution = many["recall"]
    found = []
    targets = distribution.mean() + distribution.std() * np.array([2.0, 2.5, 3.0, 3.5, 4.0])
    for target in targets[targets <= 1.0]:  # no recall is beyond
        met, better = (one.target_probability("recall", target) for one in (few, many))
        if better > 1e-9:  # below that no list of alerts is so long that it would matter
            found.append((p_value(few, target), met, better))
    return found


@pytest.mark.parametrize("case", SETS)
def test_tails_of_64_nodes_are_too_thin_by_less_than_half(case):
    for p, _, better in in_the_tail(*case):
        # The least over 24 sets was 0.59, with this model; 1.1 with the default one.
        assert p >= 0.5 * better


def test_control_without_the_allowance_they_are_thinner_than_that():
    assert min(met / better for case in SETS for _, met, better in in_the_tail(*case)) < 0.5
