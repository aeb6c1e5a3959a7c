"""compare(): joint distributions of models next to brute force over label assignments and next to plain draws."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import darkmetrics as dm
import oracle

METRICS = [
    *("accuracy", "precision", "recall", "specificity", "npv", "fpr", "fnr", "f1", "fbeta(2)", "balanced_accuracy"),
    *("mcc", "cohen_kappa", "jaccard", "g_mean", "youden_j", "markedness", "prevalence", "expected_cost(1, 5)"),
    *("predicted_to_actual", "roc_auc", "gini", "average_precision", "precision_at_k(5)", "recall_at_k(5)"),
    *("lift_at_k(5)", "brier", "log_loss"),
]
WEIGHTED = [metric for metric in METRICS if "_at_k" not in metric]


def simulate(seed, n, m, models=3, rate=0.5, ties=False, weighted=False):
    """Simulate labels with m missing ones, scores by model, probabilities of the missing labels and weights."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(size=n) + np.log(rate / (1.0 - rate))
    y_true = (rng.random(n) < expit(1.5 * log_odds)).astype(float)
    y_true[rng.choice(n, m, replace=False)] = np.nan
    scores = {name: expit(log_odds + 0.7 * rng.normal(size=n)) for name in "abc"[:models]}
    if ties:
        scores = {name: np.clip(np.round(score, 1), 0.05, 0.95) for name, score in scores.items()}
    p = expit(log_odds[np.isnan(y_true)] + 0.5 * rng.normal(size=m))
    weight = np.round(rng.lognormal(0.0, 0.8, size=n), 2) if weighted else np.ones(n)
    return y_true, scores, p, weight


def enumerate_values(metric, y_true, scores, p, weight):
    """Compute a metric for every model (rows) and label assignment, and the probabilities of the assignments."""
    values, probability = [], np.ones(1)
    for score in scores.values():
        decision = (score >= 0.5).astype(float)
        y, probability = oracle.labelings(oracle.Problem(y_true, score, decision, weight, p))
        with np.errstate(all="ignore"):
            value = np.asarray(oracle.definition_of(metric)(y, score, decision, weight), dtype=float)
        values.append(np.where(np.isfinite(value), value, np.nan))
    return np.array(values), probability


def compare(metric, y_true, scores, p, weight, zero_division: Any = math.nan, **settings: Any):
    weights = None if np.all(weight == 1.0) else weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.compare(
            *(y_true, scores),
            metrics=metric,
            missingness=dm.missing.Fixed(p),
            sample_weight=weights,
            zero_division=zero_division,
            **settings,
        )


def assert_equal_distributions(result, values, probability, tolerance=1e-12):
    """Compare cdf, mean, probability of 0/0 and bounds with those of all values."""
    expected = oracle.law_of_values(values, probability)
    middle = 0.5 * (expected.values[1:] + expected.values[:-1])
    at = np.concatenate([expected.values + 1e-10, middle])
    assert np.abs(result.cdf(at) - expected.cdf(at)).max() < tolerance
    assert abs(result.mean() - expected.mean()) < tolerance * max(1.0, np.abs(expected.values).max())
    undefined = probability[np.isnan(values)].sum() / probability.sum()
    assert abs(result.undefined - undefined) < tolerance
    low, high = result.support()
    assert low <= expected.low + 1e-12
    assert high >= expected.high - 1e-12


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["plain", "tied", "weighted", "rare"])
def test_compare_equals_brute_force(metric, kind):
    if kind == "weighted" and metric not in WEIGHTED:
        pytest.skip("the top k rows have no meaning with weights")
    seed = 100 * METRICS.index(metric) + len(kind)
    y_true, scores, p, weight = simulate(
        *(seed, 12, 8), rate=0.15 if kind == "rare" else 0.5, ties=kind == "tied", weighted=kind == "weighted"
    )
    if kind == "rare":
        y_true[y_true == 1.0] = 0.0  # some assignments are 0/0
    values, probability = enumerate_values(metric, y_true, scores, p, weight)
    result = compare(metric, y_true, scores, p, weight)
    for b, a in (("b", "a"), ("a", "c")):
        difference = values["abc".index(b)] - values["abc".index(a)]
        if np.isnan(difference).all():
            assert result.difference(metric, b, a).undefined == 1.0
            continue
        distribution = result.difference(metric, b, a)
        assert distribution.method == "exact"
        assert_equal_distributions(distribution, difference, probability)
    if result.metrics[metric].better == "neither":
        return
    ever = ~np.isnan(values).all(axis=1)
    selected = ~np.isnan(values[ever]).any(axis=0)
    sign = -1.0 if result.metrics[metric].better == "lower" else 1.0
    table, share = np.round(sign * values[:, selected], 10), probability[selected] / probability[selected].sum()
    best, ranks = result.probability_best(metric), result.rank_probabilities(metric)
    for i, name in enumerate("abc"):
        if not ever[i]:
            assert np.isnan(best[name])
            continue
        n_better = (table[ever] > table[i]).sum(axis=0)
        alone = (n_better == 0) & ((table[ever] == table[i]).sum(axis=0) == 1)
        assert abs(best[name] - share @ alone) < 1e-12
        for rank in range(int(ever.sum())):
            assert abs(ranks.chances[name][rank] - share @ (n_better == rank)) < 1e-12


@pytest.mark.parametrize("metric", ["precision", "f1", "recall", "mcc", "roc_auc", "predicted_to_actual"])
def test_difference_counts_undefined_values_as_zero_division_says(metric):
    y_true, scores, p, weight = simulate(5, 10, 7, rate=0.1)
    y_true[y_true == 1.0] = 0.0
    values, probability = enumerate_values(metric, y_true, scores, p, weight)
    result = compare(metric, y_true, scores, p, weight, zero_division=0)
    filled = np.nan_to_num(values, nan=0.0)
    assert_equal_distributions(result.difference(metric, "b", "a"), filled[1] - filled[0], probability)


@pytest.mark.parametrize("metric", ["youden_j", "g_mean", "roc_auc", "lift_at_k(2)"])
def test_difference_is_defined_for_equal_predictions_without_labeled_positives(metric):
    y_true = [None, None, None, 0, 0, 0]
    score = [0.9, 0.8, 0.7, 0.6, 0.2, 0.1]
    result = compare(metric, y_true, {"a": score, "b": score}, np.full(3, 0.7), np.ones(6))
    difference = result.difference(metric, "b", "a")
    assert difference.undefined == pytest.approx(0.3**3)
    assert difference.support() == (0.0, 0.0)
    assert result.probability_best(metric).ties == {("a", "b"): 1.0}


def test_difference_of_prediction_ratios_is_defined_where_a_positive_exists():
    scores = {"a": [0.3, 0.2], "b": [0.9, 1.0]}
    result = dm.compare([None, 0], scores, metrics="predicted_to_actual", missingness=dm.missing.Fixed([0.5]))
    difference = result.difference("predicted_to_actual", "b", "a")
    assert difference.undefined == pytest.approx(0.5)
    assert difference.mean() == pytest.approx(2.0)
    assert difference.std() == 0.0


@pytest.mark.parametrize("models", [2, 3])
def test_difference_is_undefined_where_both_metrics_are_zero_over_zero(models):
    scores = {name: [0.1, 0.2, 0.3, 0.1 + 0.1 * i] for i, name in enumerate("abc"[:models])}
    result = compare("precision", [1, 0, None, None], scores, np.full(2, 0.5), np.ones(4))
    assert result.difference("precision", "b", "a").undefined == 1.0
    assert np.isnan(list(result.probability_best("precision").chances.values())).all()


def draw_values(metric, y_true, scores, p, weight, n, seed=1):
    """Values of a metric for every model in n plain draws of the missing labels."""
    rng, missing = np.random.default_rng(seed), np.isnan(y_true)
    parts = []
    for _ in range(max(1, n // 20_000)):
        y = np.tile(np.nan_to_num(y_true), (20_000, 1))
        y[:, missing] = rng.random((20_000, p.size)) < p
        by_model = [
            oracle.definition_of(metric)(y, score, (score >= 0.5).astype(float), weight) for score in scores.values()
        ]
        parts.append(np.array(by_model))
    return np.concatenate(parts, axis=1)


def largest_distance(distribution, values):
    """Largest distance between a cdf and the empirical cdf of drawn values; NaN values are left out."""
    at = np.sort(values[~np.isnan(values)])
    levels = np.linspace(0.0, 1.0, 801)[1:-1]
    points = np.unique(np.quantile(at, levels))
    slack = 1e-9 * max(1.0, np.abs(points).max())
    empirical = [np.searchsorted(at, points + sign * slack, side="right") / at.size for sign in (1.0, -1.0)]
    return max(
        np.abs(np.asarray(distribution.cdf(points + sign * slack)) - level).max()
        for sign, level in zip((1.0, -1.0), empirical, strict=True)
    )


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "f1", "brier"])
@pytest.mark.parametrize(
    ("m", "n", "kind"),
    [(60, 90, "plain"), (60, 200, "rare"), (100, 150, "weighted"), (100, 130, "tied"), (200, 260, "plain")],
)
def test_differences_agree_with_plain_draws(metric, m, n, kind):
    y_true, scores, p, weight = simulate(
        *(m + n, n, m), models=2, rate=0.05 if kind == "rare" else 0.4, ties=kind == "tied", weighted=kind == "weighted"
    )
    values = draw_values(metric, y_true, scores, p, weight, 100_000)
    distribution = compare(metric, y_true, scores, p, weight).difference(metric, "b", "a")
    # 0.01 is promised; 100,000 draws are off by more than 0.0044 once in 40 cases.
    assert largest_distance(distribution, values[1] - values[0]) < 0.01 + 0.0044


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "brier", "average_precision"])
@pytest.mark.parametrize(("m", "weighted"), [(80, False), (300, False), (80, True)])
def test_ranks_of_three_models_agree_with_plain_draws(metric, m, weighted):
    y_true, scores, p, weight = simulate(m, m + 40, m, weighted=weighted)
    values = draw_values(metric, y_true, scores, p, weight, 60_000)
    sign = -1.0 if metric == "brier" else 1.0
    first = np.bincount((sign * values).argmax(axis=0), minlength=3) / values.shape[1]
    ranks = compare(metric, y_true, scores, p, weight).rank_probabilities(metric)
    chances = [ranks.chances[name][0] for name in "abc"]
    ties = sum(chances) - 1.0
    assert np.abs(np.array(chances) - first).max() < 0.015 + ties


def test_models_that_differ_in_few_rows_tie_as_often_as_the_exact_difference_says():
    """Nearly normal sums would never tie."""
    rng = np.random.default_rng(3)
    a = rng.random(600)
    b = a.copy()
    b[:2] = b[1::-1]
    scores = {"a": a, "b": b, "c": rng.random(600)}
    y_true = np.full(600, np.nan)
    result = compare("roc_auc", y_true, scores, np.full(600, 0.4), np.ones(600))
    ranks = result.rank_probabilities("roc_auc")
    tie = 1.0 - result.probability_better("roc_auc", "a", "b") - result.probability_better("roc_auc", "b", "a")
    assert tie == pytest.approx(1.0 - 2 * 0.4 * 0.6, abs=0.01)
    assert ranks.chances["a"][0] + ranks.chances["b"][0] + ranks.chances["c"][0] - 1.0 == pytest.approx(
        tie * (1.0 - ranks.chances["c"][0]), abs=0.02
    )


def test_distributions_of_many_models_are_those_that_evaluate_computes():
    y_true, _, p, weight = simulate(7, 600, 300)
    rng = np.random.default_rng(0)
    base = rng.random(600)
    scores = {f"m{i}": np.clip(base + 0.2 * rng.normal(size=600), 0.01, 0.99) for i in range(9)}
    two_models = {name: scores[name] for name in ("m0", "m1")}
    metrics = ["f1", "roc_auc"]
    many, two = (compare(metrics, y_true, chosen, p, weight) for chosen in (scores, two_models))
    for metric in metrics:
        at = two["m0"][metric].ppf(np.linspace(0.05, 0.95, 19))
        assert np.abs(many["m0"][metric].cdf(at) - two["m0"][metric].cdf(at)).max() < 0.015
        assert many["m0"][metric].mean() == pytest.approx(two["m0"][metric].mean(), abs=0.05 * many["m0"][metric].std())


@pytest.mark.parametrize("metric", [*METRICS, "ks"])
@pytest.mark.parametrize("mechanism", [{"missingness": "random"}, {"missingness": dm.missing.Fixed(0.4)}])
def test_population_answers_every_metric_that_evaluate_answers(metric, mechanism):
    y_true, scores, _, _ = simulate(11, 80, 40, models=2)
    settings: dict[str, Any] = {"metrics": metric, "scope": "population", "rng": 0, **mechanism}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(mechanism["missingness"], dm.missing.Fixed) and metric == "ks":
            for call, score in ((dm.evaluate, scores["a"]), (dm.compare, scores)):
                with pytest.raises(
                    dm.InputError, match=r"^scope: 'population' for 'ks', which is known by its values only"
                ):
                    call(y_true, score, **settings)
            return
        alone = dm.evaluate(y_true, scores["a"], **settings)
        result = dm.compare(y_true, scores, **settings)
        difference = result.difference(metric, "b", "a")
    assert alone[metric].std() > 0.0
    moments = [result[name][metric] for name in "ba"]
    assert difference.mean() == pytest.approx(moments[0].mean() - moments[1].mean(), abs=0.02 * difference.std() + 1e-9)
    assert difference.std() <= moments[0].std() + moments[1].std() + 1e-9


@pytest.mark.parametrize("metric", ["average_precision", "precision_at_k(20)", "brier"])
def test_population_difference_has_the_spread_of_a_bootstrap_of_rows(metric):
    rng = np.random.default_rng(4)
    truth = rng.normal(size=500)
    y = (rng.random(500) < expit(1.5 * truth)).astype(float)
    scores = {name: expit(truth + s * rng.normal(size=500)) for name, s in (("a", 0.9), ("b", 0.5))}
    difference = dm.compare(y, scores, metrics=metric, scope="population").difference(metric, "b", "a")
    definition, values = oracle.definition_of(metric), []
    for _ in range(1000):
        rows = rng.integers(0, 500, 500)
        b, a = (
            definition(y[rows][None], scores[name][rows], scores[name][rows] >= 0.5, np.ones(500))[0] for name in "ba"
        )
        values.append(b - a)
    assert difference.std() / np.std(values) == pytest.approx(1.0, abs=0.15)
