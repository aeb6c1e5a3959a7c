"""Functions of metrics of several sets: brute force over all label assignments, and plain simulation."""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import darkmetrics as dm
import oracle
from darkmetrics.distributions.functional import Extremes
from darkmetrics.distributions.joint import Block, Joint, SetTerms
from darkmetrics.distributions.problem import Problem
from darkmetrics.metrics import metrics_from
from darkmetrics.posterior import Posterior

COMBINATIONS: dict[str, Callable[..., Any]] = {
    "difference": lambda a, b: a - b,
    "ratio": lambda a, b: np.divide(a, b, out=np.full(np.shape(a), np.nan), where=b != 0.0),
    "maximum": np.maximum,
    "slope": lambda a, b: (b - a) / 2.0,
}


def draw_set(rng: np.random.Generator, n_missing: int, n_draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores, and probabilities of the missing labels at every draw."""
    score = np.sort(rng.permutation(100)[: n_missing + 6] / 100.0)
    labels = (rng.random(score.size) < score).astype(float)
    labels[:2], labels[-2:] = [0.0, 1.0], [0.0, 1.0]
    labels[2 : 2 + n_missing] = np.nan
    return labels, score, rng.random((n_draws, n_missing))


def all_assignments(labels: np.ndarray, score: np.ndarray, p: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The metric of every label assignment, and its probability at every draw."""
    missing = np.flatnonzero(np.isnan(labels))
    assigned = np.array(list(product([0.0, 1.0], repeat=missing.size)))
    y = np.tile(labels, (len(assigned), 1))
    y[:, missing] = assigned
    values = oracle.definition_of(metric)(y, score, (score >= 0.5).astype(float), np.ones(score.size))
    return values, np.prod(np.where(assigned[None] == 1.0, p[:, None], 1.0 - p[:, None]), axis=2)


ALL_METRICS = [
    *(name for name in oracle.DEFINITIONS),
    *("fbeta(2)", "expected_cost(1, 5)", "roc_auc", "roc_auc(ties='full')", "gini"),
    *("precision_at_k(5)", "recall_at_k(5)", "lift_at_k(5)"),
]


def build_joint(
    sets: list[tuple[np.ndarray, np.ndarray, np.ndarray]], names: list[list[str]], rng: np.random.Generator
) -> tuple[Joint, np.ndarray]:
    """Build metrics of two sets, and the weight of each pair of their posterior draws.

    The draws are paired in two blocks: independent draws, and the same draw in both sets.
    """
    n_draws = len(sets[0][2])
    shares, weight = rng.dirichlet(np.ones(n_draws), 2), rng.dirichlet(np.ones(n_draws))
    blocks = [
        Block(np.array([0.4]), (shares[:1], shares[1:])),
        Block(0.6 * weight, (np.eye(n_draws), np.eye(n_draws))),
    ]
    terms = []
    for (labels, score, p), set_names in zip(sets, names, strict=True):
        data, posterior = dm.EvaluationSet(labels, score), Posterior(np.full(n_draws, 1.0 / n_draws), p)
        terms.append(SetTerms([metrics_from(name)[0].bind(data, np.nan) for name in set_names], Problem(posterior)))
    return Joint(terms, blocks), 0.4 * np.outer(*shares) + 0.6 * np.diag(weight)


def assert_equal_to_brute_force(
    distribution: dm.MetricDistribution, values: np.ndarray, mass: np.ndarray, name: str
) -> None:
    defined = ~np.isnan(values)
    assert distribution.method == "exact", name
    assert distribution.undefined == pytest.approx(mass[~defined].sum(), abs=1e-12)
    defined_mass = mass[defined] / mass[defined].sum()
    for t in np.quantile(values[defined], np.linspace(0.0, 1.0, 41)):
        tolerance = oracle.ATOM * max(1.0, abs(t))
        expected = defined_mass[values[defined] <= t + tolerance].sum()
        assert distribution.cdf(t + tolerance) == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("metric", ALL_METRICS)
@pytest.mark.parametrize(("n_draws", "missing"), [(1, (8, 3)), (3, (8, 5)), (3, (2, 8))])
def test_joint_equals_brute_force_for_two_sets_with_paired_draws(metric, n_draws, missing):
    rng = np.random.default_rng(n_draws)
    sets = [draw_set(rng, n, n_draws) for n in missing]
    joint, weight = build_joint(sets, [[metric], [metric]], rng)
    (first, p_first), (second, p_second) = (all_assignments(*arguments, metric) for arguments in sets)
    mass = (p_first.T @ weight @ p_second).ravel()
    for name, combine in COMBINATIONS.items():
        values = combine(np.repeat(first, second.size), np.tile(second, first.size))
        distribution = joint.distribution_of(joint.draw(), combine, bounds=Extremes(-np.inf, np.inf, sharp=False))
        assert_equal_to_brute_force(distribution, values, mass, name)


@pytest.mark.parametrize("metric", ALL_METRICS)
def test_joint_of_three_metrics_on_two_sets_equals_brute_force(metric):
    rng = np.random.default_rng(ALL_METRICS.index(metric))
    sets = [draw_set(rng, n, 2) for n in (6, 8)]
    joint, weight = build_joint(sets, [[metric, "recall"], [metric]], rng)
    (first, p_first), (second, p_second) = (all_assignments(*arguments, metric) for arguments in sets)
    recall, _ = all_assignments(*sets[0], "recall")
    mass = (p_first.T @ weight @ p_second).ravel()
    values = np.repeat(first, second.size), np.repeat(recall, second.size), np.tile(second, first.size)
    for name, combine in {
        "largest": lambda a, b, c: np.maximum(np.maximum(a, b), c),
        "contrast": lambda a, b, c: a - 0.5 * (b + c),
        "range of two, times the third": lambda a, b, c: np.abs(a - c) * b,
    }.items():
        distribution = joint.distribution_of(joint.draw(), combine, bounds=Extremes(-np.inf, np.inf, sharp=False))
        assert_equal_to_brute_force(distribution, combine(*values), mass, name)


def weighted_auc(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted ROC-AUC of label assignments (n x n_rows) of rows with different scores."""
    order = np.argsort(score)
    y, weight = y[:, order], weight[order]
    below = np.cumsum((1.0 - y) * weight, axis=1)
    return np.asarray((y * weight * below).sum(axis=1) / ((y @ weight) * ((1.0 - y) @ weight)))


def test_change_of_weighted_roc_auc_is_right_where_few_rows_decide():
    """With 40 and 3 missing rows of heavy-tailed weights, a Gaussian was off by 0.11."""
    rng = np.random.default_rng(5)
    draws, values, evaluations = 2**17, [], []
    for n_missing in (40, 3):
        n = n_missing + 12
        score, weight = rng.random(n), rng.lognormal(sigma=1.5, size=n)
        labels = (rng.random(n) < score).astype(float)
        labels[:2] = [0.0, 1.0]
        missing = np.arange(12, n)
        labels[missing], p = np.nan, rng.random(n_missing)
        evaluations.append(
            dm.evaluate(labels, score, sample_weight=weight, missingness=dm.missing.Fixed(p), metrics="roc_auc")
        )
        y = np.tile(labels, (draws, 1))
        y[:, missing] = rng.random((draws, n_missing)) < p
        values.append(weighted_auc(y, score, weight))
    change = dm.compare_evaluations(*evaluations)
    assert change.probability_decreased("roc_auc") == pytest.approx(np.mean(values[0] < values[1]), abs=0.01)
    difference = np.sort(values[0] - values[1])
    at = np.linspace(0.01, 0.99, 50)
    assert change["roc_auc"].cdf(np.quantile(difference, at)) == pytest.approx(at, abs=0.01)


class GivenDraws(dm.missing.Mechanism):
    """Three posterior draws with these probabilities."""

    def __init__(self, probability: np.ndarray) -> None:
        self.probability = probability

    def posterior(self, data: dm.EvaluationSet) -> Posterior:
        return Posterior(np.array([0.5, 0.3, 0.2]), self.probability)

    def describe(self, data: dm.EvaluationSet, posterior: Posterior) -> str:
        return "Given."


METRICS = {
    "precision": lambda y, s: (y * (s >= 0.5)).sum(axis=1) / (s >= 0.5).sum(),
    "f1": lambda y, s: 2.0 * (y * (s >= 0.5)).sum(axis=1) / ((s >= 0.5).sum() + y.sum(axis=1)),
    "brier": lambda y, s: ((y - s) ** 2).mean(axis=1),
    "roc_auc": lambda y, s: weighted_auc(y, s, np.ones(s.size)),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_missing", [(30, 60), (200, 12)])
def test_change_of_sets_with_several_draws_equals_plain_simulation(metric, n_missing):
    rng = np.random.default_rng(7)
    n_simulated, evaluations, values = 2**16, [], []
    for size in n_missing:
        n = 2 * size
        score = rng.random(n)
        labels = (rng.random(n) < score).astype(float)
        labels[:size] = np.nan
        p = expit(rng.normal(size=(3, 1)) + rng.normal(size=(3, size)))

        model = GivenDraws(p[:, np.argsort(score[:size])])
        evaluations.append(dm.evaluate(labels, score, metrics=metric, missingness=model))
        parts = []
        for draw in np.split(rng.choice(3, n_simulated, p=[0.5, 0.3, 0.2]), 16):
            y = np.tile(labels, (draw.size, 1))
            y[:, :size] = rng.random((draw.size, size)) < p[draw]
            parts.append(METRICS[metric](y, score))
        values.append(np.concatenate(parts))
    difference = np.sort(values[0] - values[1])
    change = dm.compare_evaluations(*evaluations)[metric]
    # Equal values may differ by their rounding.
    levels = np.searchsorted(difference, difference + 1e-11, side="right") / difference.size
    # 0.0064 is the distance that 65,536 simulated values exceed with probability 1%.
    assert np.abs(change.cdf(difference + 1e-11) - levels).max() < 0.01 + 0.0064


def grouped(scope: Any, metrics: Any) -> dm.GroupedEvaluation:
    rng = np.random.default_rng(8)
    n = 160
    score = rng.random(n)
    labels = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score)
    table = pd.DataFrame({"g": np.repeat(["a", "b"], n // 2), "y": labels, "p": score})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dm.evaluate_by("y", "p", data=table, by="g", missingness="random", metrics=metrics, scope=scope)


@pytest.mark.parametrize("scope", ["rows", "population"])
def test_changes_gaps_and_totals_answer_every_metric_that_evaluate_answers(scope):
    result = grouped(scope, "all")
    change = result.compare("b", "a")
    assert set(change) == set(result["a"]) == set(result.total)
    for metric in change:
        means = [result[group][metric].mean() for group in ("b", "a")]
        spread = max(float(np.hypot(result["b"][metric].std(), result["a"][metric].std())), 1e-9)
        assert change[metric].mean() == pytest.approx(means[0] - means[1], abs=0.05 * spread), metric
        gap = result.disparity(metric)
        assert gap.means["a"] == means[1]
        if np.isfinite(means).all():
            size = np.abs(change[metric].rvs(20_000, np.random.default_rng(0)))
            assert gap.distribution.mean() == pytest.approx(size.mean(), abs=0.05 * spread), metric
        assert np.isfinite(result.total[metric].mean())


@pytest.mark.parametrize("scope", ["rows", "population"])
def test_comparisons_answer_every_metric_that_evaluate_answers(scope):
    rng = np.random.default_rng(9)
    score = rng.random(120)
    labels = np.where(rng.random(120) < 0.3, np.nan, rng.random(120) < score)
    other = np.clip(score + 0.2 * rng.standard_normal(120), 0.0, 1.0)
    settings: dict[str, Any] = {"missingness": "random", "metrics": "all", "scope": scope}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        alone = dm.evaluate(labels, score, **settings)
        result = dm.compare(labels, {"a": score, "b": other}, **settings)
    for metric in alone:
        difference = result.difference(metric, "b", "a")
        means = [result[model][metric].mean() for model in "ba"]
        spread = max(float(difference.std()), 1e-9)
        assert difference.mean() == pytest.approx(means[0] - means[1], abs=0.1 * spread + 1e-6), metric


@pytest.mark.parametrize("metric", ["ks", {"mine": lambda y, s: float(y.mean())}], ids=["ks", "callable"])
def test_what_evaluate_refuses_is_refused_everywhere_by_the_same_sentence(metric):
    """Given probabilities replace the labels, so a metric that is no function of sums has no population value."""
    rng = np.random.default_rng(3)
    score = rng.random(40)
    labels = np.where(rng.random(40) < 0.4, np.nan, rng.random(40) < score)
    table = pd.DataFrame({"g": np.repeat(["a", "b"], 20), "y": labels, "p": score})
    settings: dict[str, Any] = {"metrics": metric, "scope": "population", "missingness": dm.missing.Fixed(0.4)}
    calls: list[Any] = [
        lambda: dm.evaluate(labels, score, **settings),
        lambda: dm.compare(labels, {"a": score, "b": score[::-1]}, **settings),
        lambda: dm.evaluate_by("y", "p", data=table, by="g", **settings),
    ]
    sentences = set()
    for call in calls:
        with pytest.raises(dm.InputError) as caught:
            call()
        sentences.add(str(caught.value).partition(" (")[0])
    assert len(sentences) == 1


def test_equalized_odds_are_answered_for_the_population():
    result = grouped("population", ["recall", "fpr"])
    odds = result.disparity(kind="equalized_odds")
    drawn = [
        np.abs(result["a"][rate].rvs(40_000, np.random.default_rng(i)) - result["b"][rate].rvs(40_000, 2 + i))
        for i, rate in enumerate(("recall", "fpr"))
    ]
    # Recall and false positive rate come from different rows, so their sampling errors are independent.
    assert odds.distribution.mean() == pytest.approx(np.maximum(drawn[0], drawn[1]).mean(), rel=0.1)
