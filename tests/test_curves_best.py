"""The best threshold, and the probability that it beats the current one, against all labelings."""

import math
import re

import numpy as np
import pytest

import darkmetrics as dm
import oracle
from believed import Believed
from darkmetrics.curves import choosing
from darkmetrics.curves.bands import Swept
from darkmetrics.curves.choosing import probability_better
from darkmetrics.posterior import Posterior


def problem(seed, *, n=18, missing=9, weighted=False):
    rng = np.random.default_rng(seed)
    score = rng.integers(1, 11, n) / 10  # ties
    y = (rng.random(n) < score).astype(float)
    y[rng.permutation(n)[:missing]] = np.nan
    weight = rng.uniform(0.5, 3.0, n) if weighted else np.ones(n)
    return oracle.Problem(y, score, None, weight, rng.uniform(0.1, 0.9, missing))


def evaluated(rows, **settings):
    weight = None if np.all(rows.weight == 1.0) else rows.weight
    return dm.evaluate(rows.y, rows.score, missingness=dm.missing.Fixed(rows.p), sample_weight=weight, **settings)


def metric_of(result, name):
    return result.metrics[name]


def values_at(name, rows, threshold, zero_division=math.nan):
    """The metric under every labeling, and the probability of each."""
    y, chance = oracle.labelings(rows)
    value = oracle.definition_of(name)(y, rows.score, (rows.score >= threshold).astype(int), rows.weight)
    return np.where(np.isnan(value), zero_division, value), chance


def chance_of_better(name, rows, new, old, sign=1.0, zero_division=math.nan):
    (first, chance), (second, _) = (values_at(name, rows, t, zero_division) for t in (new, old))
    gain = sign * (first - second)
    # Values that differ by rounding (1e-16) are equal; others differ by 1e-4 or more with 18 rows.
    return chance[gain > 1e-11].sum() / chance[~np.isnan(gain)].sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "accuracy", "mcc", "expected_cost(1, 5)"])
@pytest.mark.parametrize(("new", "old"), [(0.3, 0.7), (0.7, 0.3), (0.1, 0.6), (5.0, 0.5)])
def test_probability_of_being_better_equals_enumeration(name, new, old, weighted):
    rows = problem(0, weighted=weighted)
    result = evaluated(rows, metrics=name, zero_division=0)
    metric = metric_of(result, name)
    found = probability_better(result, metric, new, old, n_resamples=10, rng=0)
    sign = -1.0 if metric.better == "lower" else 1.0
    # Sums of 2^9 products, each rounded to 1e-16.
    assert found == pytest.approx(chance_of_better(name, rows, new, old, sign, 0.0), abs=1e-12)


def test_probability_is_given_that_both_are_defined_where_0_by_0_is_left_out():
    rows = problem(1)
    rows = rows._replace(y=np.where(rows.y == 1.0, 0.0, rows.y))  # recall is 0/0 if no missing row is positive
    result = evaluated(rows, metrics="recall", zero_division=math.nan)
    found = probability_better(result, metric_of(result, "recall"), 0.4, 0.8, n_resamples=10, rng=0)
    assert found == pytest.approx(chance_of_better("recall", rows, 0.4, 0.8), abs=1e-12)


@pytest.mark.parametrize("name", ["f1", "precision"])
def test_drawn_probability_is_near_the_enumerated_one(name):
    rows = problem(2, n=24, missing=16, weighted=True)  # 2^16 assignments of labels are too many to enumerate
    result = evaluated(rows, metrics=name)
    found = probability_better(result, metric_of(result, name), 0.3, 0.6, n_resamples=40_000, rng=0)
    # Four standard errors of 40,000 draws.
    assert found == pytest.approx(chance_of_better(name, rows, 0.3, 0.6), abs=4 * 0.5 / 200)


def test_labels_are_the_same_at_both_thresholds():
    # Control: drawing the labels anew for the second threshold would say something else.
    rows = problem(3)
    result = evaluated(rows, metrics="f1")
    found = probability_better(result, metric_of(result, "f1"), 0.4, 0.6, n_resamples=10, rng=0)
    (first, chance), (second, _) = (values_at("f1", rows, t) for t in (0.4, 0.6))
    apart = sum(c * chance[first > v + 1e-11].sum() for v, c in zip(second.tolist(), chance.tolist(), strict=True))
    assert found == pytest.approx(chance_of_better("f1", rows, 0.4, 0.6), abs=1e-12)
    assert abs(found - apart) > 0.05


def test_probability_mixes_the_nodes():
    rows = problem(4)
    other = rows._replace(p=1.0 - rows.p)
    given = evaluated(rows, metrics="f1")
    # The order of missing cells is that of scores; probabilities given with the set are in that order.
    own = given.posterior.probability[0]
    result = dm.evaluate(
        given.data,
        metrics="f1",
        missingness=Believed(Posterior(np.array([0.25, 0.75]), np.stack([own, 1.0 - own]))),
    )
    expected = 0.25 * chance_of_better("f1", rows, 0.3, 0.6) + 0.75 * chance_of_better("f1", other, 0.3, 0.6)
    found = probability_better(result, metric_of(result, "f1"), 0.3, 0.6, n_resamples=10, rng=0)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["f1", "expected_cost(1, 5)"])
@pytest.mark.parametrize("risk", ["mean", 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_threshold_is_that_of_brute_force(name, risk, seed):
    rows = problem(seed)
    found = dm.threshold_curves(evaluated(rows, metrics=name), metrics=name, thresholds="all").best_threshold(
        name, risk
    )
    sign = -1.0 if name.startswith("expected_cost") else 1.0
    grid, figures = sorted({*rows.score.tolist(), 0.5}), []
    for threshold in grid:
        value, chance = values_at(name, rows, threshold)
        distribution = oracle.law_of_values(sign * value, chance)  # larger is better
        figures.append(
            distribution.mean()
            if risk == "mean"
            else distribution.values[np.searchsorted(np.cumsum(distribution.masses), risk - 1e-12)]
        )
    assert found.value == pytest.approx(sign * max(figures), abs=1e-12)
    assert found.current_value == pytest.approx(sign * figures[grid.index(0.5)], abs=1e-12)
    assert figures[grid.index(found.threshold)] == pytest.approx(max(figures), abs=1e-12)
    expected = 0.0 if found.threshold == 0.5 else chance_of_better(name, rows, found.threshold, 0.5, sign)
    assert found.probability_better == pytest.approx(expected, abs=1e-12)


def test_a_current_threshold_outside_the_grid_is_compared_all_the_same():
    rows = problem(5)
    curves = dm.threshold_curves(evaluated(rows, threshold=0.95), metrics="recall", thresholds=[0.2, 0.4])
    found = curves.best_threshold("recall")
    assert (found.threshold, found.current) == (0.2, 0.95)
    assert found.current_value == pytest.approx(evaluated(rows, threshold=0.95)["recall"].mean(), abs=1e-12)


def test_nothing_beats_the_current_threshold_where_it_is_as_good_as_any():
    found = dm.threshold_curves(dm.evaluate([1, 0], [0.9, 0.1]), metrics="f1").best_threshold("f1")
    assert (found.threshold, found.probability_better) == (0.5, 0.0)
    assert "the current threshold 0.5 is the best" in str(found)


def test_a_seed_repeats_the_draws_and_words_name_the_numbers():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    y = np.where(rng.random(3000) < 0.3, np.nan, rng.random(3000) < score)
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), threshold=0.9, metrics="f1")
    curves = dm.threshold_curves(result, metrics="f1", thresholds=50, method="gaussian")
    first, second = (curves.best_threshold("f1", n_resamples=500, rng=1) for _ in range(2))
    assert first == second
    assert first.probability_better > 0.99
    assert str(first).startswith(
        f"f1: best at {first.threshold:g}, where its mean is {first.value:.3f} (at the current"
    )
    assert "with probability 90% it is" in str(curves.best_threshold("f1", risk=0.1, n_resamples=100, rng=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("roc_auc",), "metric: unknown metric 'roc_auc'"),
        (("prevalence",), "metric: 'prevalence' is neither better high nor low"),
        (("f1", "median"), "risk: 'median'"),
        (("f1", 0.0), "risk: 0.0"),
        (("f1", True), "risk: True"),
    ],
)
def test_bad_questions_say_what_is_wrong(arguments, message):
    curves = dm.threshold_curves(evaluated(problem(0)), metrics=["f1", "prevalence"])
    with pytest.raises(dm.InputError, match=re.escape(message)):
        curves.best_threshold(*arguments)


def test_a_metric_that_is_undefined_everywhere_has_no_best_threshold():
    result = dm.evaluate([0, 0], [0.9, 0.1], metrics="recall", zero_division=math.nan)
    with pytest.raises(dm.InputError, match=r"is undefined \(0/0\) at every threshold"):
        dm.threshold_curves(result, metrics="recall").best_threshold("recall")


def lattice_problem(seed):
    """Weights whose sums are rounded differently in another order: 0.1 + 0.3 + 0.3 is not 0.3 + 0.3 + 0.1."""
    rng = np.random.default_rng(seed)
    return problem(seed)._replace(weight=rng.choice([0.1, 0.3], 18))


@pytest.mark.parametrize("name", ["fpr", "specificity", "accuracy", "f1"])
@pytest.mark.parametrize("seed", [1, 3, 7, 12, 15, 19])  # with rows between 0.4, 0.5 and 0.6 that change no such metric
def test_sums_that_differ_by_rounding_are_not_better(seed, name):
    rows = lattice_problem(seed)
    result = evaluated(rows, metrics=name, zero_division=0)
    sign = -1.0 if name == "fpr" else 1.0
    for new, old in ((0.3, 0.7), (0.8, 0.4), (0.4, 0.5), (0.6, 0.5)):
        found = probability_better(result, metric_of(result, name), new, old, n_resamples=10, rng=0)
        assert found == pytest.approx(chance_of_better(name, rows, new, old, sign, 0.0), abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "chosen"),
    [
        ([0.7, 0.7, 0.7, 0.7 + 1e-15], 0.5),  # all are as good, and 0.5 is in use
        ([0.7, 0.7, 0.6, 0.7 + 1e-15], 0.2),  # all others are as good, and 0.2 is the lowest
        ([0.7, 0.7, 0.7, 0.7 + 1e-9], 0.8),  # no order of a sum makes such a difference
    ],
)
def test_a_threshold_that_is_better_by_rounding_alone_is_not_chosen(monkeypatch, mean, chosen):
    curves = dm.threshold_curves(evaluated(problem(0), metrics="f1"), metrics="f1", thresholds=[0.2, 0.4, 0.5, 0.8])
    column = np.array(mean)
    swept = Swept(column, column[None], column, column, column, column)
    monkeypatch.setattr(choosing, "sweep", lambda *_: ("exact", [swept]))
    assert curves.best_threshold("f1").threshold == chosen


@pytest.mark.parametrize("unit", [0.1, 3.7, 1 / 3, 2.0**-66])
def test_a_target_that_is_just_met_is_met_in_every_unit_of_weight(unit):
    """Seed 0: recall is 0.5 from a score of 0.7 on, which with weights of 1/3 was not enough by its last digit."""
    # A target of 0 has no size of its own that rounding could be a part of.
    targets = (0, "recall", 0.5), (6, "accuracy", 0.75), (10, "recall", 0.5), (15, "markedness", 0.0)
    for seed, metric, target in targets:
        rng = np.random.default_rng(seed)
        score = np.rint(10.0 * rng.random(60)) / 10.0
        y = (rng.random(60) < (score if target else 0.5)).astype(float)
        y[rng.permutation(60)[:12]] = np.nan
        one, other = (
            dm.threshold_curves(
                dm.evaluate(y, score, sample_weight=weight, missingness=dm.missing.Fixed(0.5), metrics=metric),
                metrics=metric,
            )
            for weight in (None, np.full(60, unit))
        )
        assert other.threshold_for({metric: target}).threshold == one.threshold_for({metric: target}).threshold


def test_the_best_threshold_of_a_sum_of_weights_is_the_same_in_every_unit():
    """Sums below 1e-12 were all level, so that the threshold stayed where it was."""
    rng = np.random.default_rng(2)
    score = rng.random(60)
    y = (rng.random(60) < score**3).astype(float)
    y[rng.permutation(60)[:6]] = np.nan
    cost = dm.metrics.ConfusionMetric(name="cost", formula=lambda tp, fp, fn, tn: fp + fn, better="lower")
    found = []
    for unit in (1.0, 2.0**-66):
        result = dm.evaluate(y, score, sample_weight=np.full(60, unit), missingness=dm.missing.Fixed(0.5), metrics=cost)
        found.append(dm.threshold_curves(result, metrics=cost).best_threshold("cost"))
    assert found[0].threshold != 0.5
    assert found[1].threshold == found[0].threshold
    assert found[1].probability_better == pytest.approx(found[0].probability_better)
