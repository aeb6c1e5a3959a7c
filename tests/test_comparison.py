"""compare(): differences under shared labels against brute force, and what a comparison says of itself."""

import json
import pickle
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from scipy.special import expit

import darkmetrics as dm
import oracle
from darkmetrics.comparison.joint_score import JointScore
from darkmetrics.comparison.rows import shared_rows
from darkmetrics.distributions import Discrete
from darkmetrics.frames import collecting, counting
from darkmetrics.tables import chance_text

CONFUSION = ["accuracy", "precision", "recall", "f1", "specificity", "mcc", "balanced_accuracy", "expected_cost(1, 5)"]
OTHERS = ["roc_auc", "gini", "brier", "average_precision", "precision_at_k(5)"]


def problem(seed, n=30, m=10, apart=1.0, ties=False):
    """Labels of which m are missing, two scores that agree more or less, and the chances of the missing labels."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * log_odds))).astype(float)
    y_true = np.where(np.isin(np.arange(n), rng.choice(n, m, replace=False)), np.nan, y)
    scores = {name: 1 / (1 + np.exp(-log_odds - apart * rng.normal(size=n))) for name in ("a", "b")}
    if ties:
        scores = {name: np.round(score, 1) for name, score in scores.items()}
    return y_true, scores, rng.random(m), rng


def brute_force(metric, y_true, scores, thresholds, weight, p, fill):
    """The law of b - a over all labelings, each metric from its definition on the rows."""
    values, probability = {}, np.ones(1)
    for name in ("a", "b"):
        decision = (scores[name] >= thresholds[name]).astype(float)
        rows = oracle.Problem(y_true, scores[name], decision, weight, p)
        y, probability = oracle.labelings(rows)
        found = oracle.definition_of(metric)(y, scores[name], decision, weight)
        values[name] = np.where(np.isnan(found), fill, found)
    return oracle.law_of_values(values["b"] - values["a"], probability)


def assert_same(distribution, expected, tolerance=1e-12):
    between = np.concatenate([expected.values, 0.5 * (expected.values[1:] + expected.values[:-1])])
    assert np.abs(distribution.cdf(between + 1e-10) - expected.cdf(between + 1e-10)).max() < tolerance
    assert abs(distribution.mean() - expected.mean()) < 1e-12
    assert abs(distribution.std() - expected.std()) < 1e-9


@pytest.mark.parametrize("metric", CONFUSION + OTHERS)
@pytest.mark.parametrize("kind", ["independent", "nested", "tied", "weighted"])
def test_difference_equals_brute_force(metric, kind):
    y_true, scores, p, rng = problem(CONFUSION.index(metric) if metric in CONFUSION else 50, ties=kind == "tied")
    thresholds = {"a": 0.5, "b": 0.35}
    if kind == "nested":  # one score, two thresholds: what a flags, b flags
        scores["b"] = scores["a"]
    weight = rng.choice([0.5, 1.0, 2.5], size=30) if kind == "weighted" else np.ones(30)
    if kind == "weighted" and metric == "precision_at_k(5)":
        weight = np.ones(30)
    found = dm.compare(
        y_true,
        scores,
        metrics=metric,
        threshold=thresholds,
        missingness=dm.missing.Fixed(p),
        sample_weight=None if kind != "weighted" else weight,
        zero_division=0,
    )
    expected = brute_force(metric, y_true, scores, thresholds, weight, p, 0.0)
    distribution = found.difference(metric, "b", "a")
    assert distribution.method == "exact"
    assert_same(distribution, expected)
    low, high = distribution.support()
    assert low <= expected.low + 1e-12
    assert high >= expected.high - 1e-12


@pytest.mark.parametrize("metric", ["f1", "recall", "precision", "accuracy"])
def test_difference_of_counts_equals_brute_force_by_groups(metric):
    """With more rows than labelings can be listed for: counts of the four groups are independent, their law a table."""
    y_true, scores, p, _ = problem(3, n=120, m=44)
    found = dm.compare(y_true, scores, metrics=metric, missingness=dm.missing.Fixed(p))
    missing = np.isnan(y_true)
    decided = {name: score >= 0.5 for name, score in scores.items()}
    pmfs, known = [], {name: [np.sum((y_true == 1) & d), np.sum((y_true == 1) & ~d)] for name, d in decided.items()}
    pairs = list(product((True, False), repeat=2))
    for a, b in pairs:
        pmfs.append(oracle.count_pmf(p[((decided["a"] == a) & (decided["b"] == b))[missing]]))
    grid = np.meshgrid(*(np.arange(len(pmf)) for pmf in pmfs), indexing="ij")
    mass = np.einsum("i,j,k,l->ijkl", *pmfs).ravel()
    values = {}
    for name, side in (("a", 0), ("b", 1)):
        tp = known[name][0] + sum(g for g, pair in zip(grid, pairs, strict=True) if pair[side])
        fn = known[name][1] + sum(g for g, pair in zip(grid, pairs, strict=True) if not pair[side])
        fp, tn = decided[name].sum() - tp, (~decided[name]).sum() - fn
        formulas = {
            "f1": 2 * tp / (2 * tp + fp + fn),
            "recall": tp / (tp + fn),
            "precision": tp / (tp + fp),
            "accuracy": (tp + tn) / 120,
        }
        values[name] = formulas[metric].ravel()
    distribution = found.difference(metric, "b", "a")
    assert distribution.method == "exact"
    assert_same(distribution, oracle.law_of_values(values["b"] - values["a"], mass), 1e-11)


@pytest.mark.parametrize("metric", [*CONFUSION, "roc_auc", "brier"])
def test_models_that_are_the_same_differ_by_nothing(metric):
    y_true, scores, p, _ = problem(4, n=400, m=200)
    found = dm.compare(y_true, {"a": scores["a"], "b": scores["a"]}, metrics=metric, missingness=dm.missing.Fixed(p))
    distribution = found.difference(metric, "b", "a")
    assert distribution.std() == 0.0
    assert distribution.support() == (0.0, 0.0)
    assert found.probability_better(metric, "b", "a") == 0.0
    assert found.probability_best(metric).ties == {("a", "b"): 1.0}


@pytest.mark.parametrize("told", [{"missingness": dm.missing.Fixed(0.5)}, {"missingness": "random"}])
@pytest.mark.parametrize("metric", ["accuracy", "f1", "roc_auc", "brier"])
def test_models_that_are_the_same_tie_in_the_population_too(metric, told):
    y_true, scores, _, _ = problem(4, n=100, m=50)
    given: Any = {"metrics": metric, **told}
    found = dm.compare(y_true, {"a": scores["a"], "b": scores["a"]}, **given)
    distribution = found.difference(metric, "b", "a", scope="population")
    assert distribution.std() == 0.0
    assert distribution.mean() == 0.0
    assert distribution.interval(0.9) == (0.0, 0.0)
    for pair in (("a", "b"), ("b", "a")):
        assert found.probability_better(metric, *pair, scope="population") == 0.0


@pytest.mark.parametrize("metric", ["f1", "accuracy", "roc_auc", "brier"])
@pytest.mark.parametrize("m", [10, 60])
def test_difference_turned_around_is_its_mirror(metric, m):
    y_true, scores, p, _ = problem(5, n=100, m=m)
    found = dm.compare(y_true, scores, metrics=metric, missingness=dm.missing.Fixed(p), rng=0)
    there, back = found.difference(metric, "b", "a"), found.difference(metric, "a", "b")
    t = np.linspace(-0.3, 0.3, 97)
    # What is drawn (ROC-AUC of 60 rows) is not drawn twice alike.
    tolerance = 1e-12 if there.method != "monte carlo" else 0.01
    assert np.abs(there.cdf(t) - (1.0 - (2.0 * back.pit(-t) - back.cdf(-t)))).max() < tolerance
    assert abs(there.mean() + back.mean()) < max(tolerance**2, 1e-12)


def test_no_label_missing_is_the_difference_of_scikit_learn():
    y_true, scores, _, rng = problem(6, n=200, m=0)
    y, weight = y_true.astype(int), rng.random(200)
    metrics = ["f1", "recall", "mcc", "roc_auc", "brier", "average_precision"]
    found = dm.compare(y, scores, metrics=metrics, threshold=0.4, sample_weight=weight)
    functions = {
        "f1": sklearn.metrics.f1_score,
        "recall": sklearn.metrics.recall_score,
        "mcc": sklearn.metrics.matthews_corrcoef,
        "roc_auc": sklearn.metrics.roc_auc_score,
        "brier": sklearn.metrics.brier_score_loss,
        "average_precision": sklearn.metrics.average_precision_score,
    }
    for metric in metrics:
        of_scores = metric in ("roc_auc", "brier", "average_precision")
        values = {
            name: functions[metric](y, score if of_scores else score >= 0.4, sample_weight=weight)
            for name, score in scores.items()
        }
        distribution = found.difference(metric, "b", "a")
        assert distribution.std() == 0.0
        assert abs(distribution.mean() - (values["b"] - values["a"])) < 1e-13


def auc_difference_by_table(y_true, scores, p):
    """The exact law of the difference of ROC-AUC: number of positives and sum of rank differences on a lattice."""
    n, missing = y_true.size, np.isnan(y_true)
    rank = {name: np.argsort(np.argsort(score)) for name, score in scores.items()}
    step = rank["b"] - rank["a"]
    least = np.minimum(step[missing], 0)
    # Steps from the lowest one up are whole numbers that are not negative, as the table has them; two for each row.
    shift = int(-least.min(initial=0))
    table = oracle.count_and_sum_pmf(step[missing] + shift, p)
    count, total = np.nonzero(table)
    known = y_true == 1
    positives = count + known.sum()
    sums = total - shift * count + step[known].sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sums / (positives * (n - positives))
    value[(positives == 0) | (positives == n)] = np.nan
    return oracle.law_of_values(value, table[count, total])


@pytest.mark.parametrize(("n", "m", "apart"), [(60, 30, 0.2), (60, 30, 1.0), (300, 45, 1.0), (150, 90, 0.4)])
def test_difference_of_roc_auc_is_within_five_in_a_thousand(n, m, apart):
    y_true, scores, p, _ = problem(n + m, n=n, m=m, apart=apart)
    distribution = dm.compare(y_true, scores, metrics="roc_auc", missingness=dm.missing.Fixed(p), rng=0).difference(
        "roc_auc", "b", "a"
    )
    expected = auc_difference_by_table(y_true, scores, p)
    assert np.abs(distribution.cdf(expected.values + 1e-9) - expected.cdf(expected.values + 1e-9)).max() < 0.005


def test_difference_of_roc_auc_of_two_graded_models_is_close_to_drawn_labelings():
    """Five even grades each, so that ranks differ by few whole steps: an expansion has an error of 0.036."""
    rng, n, grades, draws = np.random.default_rng([5, 5, 400, 0]), 400, 5, 100_000
    latent = rng.normal(size=n)
    a, b = (np.argsort(np.argsort(latent + 0.7 * rng.normal(size=n))) * grades // n for _ in range(2))
    _, cell = np.unique(grades * a + b, return_inverse=True)
    p = (np.bincount(cell, 1.0 / (1.0 + np.exp(2.4 - 0.6 * latent))) / np.bincount(cell))[cell]
    y_true = np.where(rng.random(n) < 0.75, np.nan, (rng.random(n) < p).astype(float))
    distribution = dm.compare(
        y_true, {"a": a / grades, "b": b / grades}, metrics="roc_auc", missingness=dm.missing.Fixed(p), rng=0
    ).difference("roc_auc", "b", "a")
    missing, known = np.bincount(cell[np.isnan(y_true)], minlength=cell.max() + 1), np.bincount(cell[y_true == 1.0])
    first = np.unique(cell, return_index=True)[1]
    positives = rng.binomial(missing, p[first], (draws, missing.size))
    positives[:, : known.size] += known
    total = positives.sum(axis=1)
    drawn = np.sort(positives @ (b - a)[first] * (n // grades) / (total * (n - total)))
    assert oracle.kolmogorov(distribution.cdf, drawn) <= 0.005 + np.sqrt(np.log(2e4) / (2 * draws))


def test_difference_agrees_with_draws_where_every_group_is_large():
    y_true, scores, p, rng = problem(8, n=3000, m=2500)
    found = dm.compare(y_true, scores, metrics=["f1", "recall", "roc_auc"], missingness=dm.missing.Fixed(p), rng=0)
    missing = np.isnan(y_true)
    labels = np.where(missing, 0.0, y_true)
    y = np.tile(labels, (8000, 1))
    y[:, missing] = rng.random((8000, 2500)) < p
    rank = {name: np.argsort(np.argsort(score)) + 0.5 for name, score in scores.items()}
    positives = y.sum(axis=1)
    for metric in found.metrics:
        values = {}
        for name, score in scores.items():
            yes = score >= 0.5
            tp = y @ yes
            values[name] = {
                "f1": 2 * tp / (positives + yes.sum()),
                "recall": tp / positives,
                "roc_auc": (y @ rank[name] - positives**2 / 2) / (positives * (3000 - positives)),
            }[metric]
        drawn = np.sort(values["b"] - values["a"])
        distribution = found.difference(metric, "b", "a")
        # Eight thousand draws have an error of 0.02 once in a thousand times.
        assert np.abs(distribution.cdf(drawn) - (np.arange(8000) + 0.5) / 8000).max() < 0.02


def three_models(seed, n=40, m=8):
    y_true, scores, p, rng = problem(seed, n=n, m=m)
    return y_true, {**scores, "c": np.round(rng.random(n), 1)}, p


@pytest.mark.parametrize("metric", ["f1", "roc_auc", "fpr"])
def test_best_and_ranks_equal_brute_force(metric):
    y_true, scores, p = three_models(9)
    found = dm.compare(y_true, scores, metrics=metric, missingness=dm.missing.Fixed(p))
    values, probability = [], np.ones(1)
    for score in scores.values():
        decision = (score >= 0.5).astype(float)
        y, probability = oracle.labelings(oracle.Problem(y_true, score, decision, np.ones(40), p))
        values.append(oracle.definition_of(metric)(y, score, decision, np.ones(40)))
    table = np.round(np.stack(values, axis=1) * (-1 if metric == "fpr" else 1), 11)
    first = table == table.max(axis=1, keepdims=True)
    best = found.probability_best(metric)
    for i, name in enumerate(scores):
        alone = first[:, i] & (first.sum(axis=1) == 1)
        assert abs(best[name] - probability @ alone) < 1e-12
        places = (table > table[:, [i]]).sum(axis=1)
        expected = [probability @ (places == k) for k in range(3)]
        assert np.abs(np.array(found.rank_probabilities(metric).chances[name]) - expected).max() < 1e-12
    assert abs(best.tie - probability @ (first.sum(axis=1) > 1)) < 1e-12


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_a_metric_that_is_never_defined_has_no_best_model(names):
    scores = {name: [0.1, 0.2, 0.1 * place] for place, name in enumerate(names)}
    found = dm.compare([0, 0, 0], scores, metrics="recall", zero_division=np.nan)
    best, ranks = found.probability_best("recall"), found.rank_probabilities("recall")
    assert np.isnan(list(best.chances.values())).all()
    assert np.isnan(list(ranks.chances.values())).all()
    assert best.tie == 0.0
    assert str(best) == f"Best recall: {', '.join(f'{name} undefined' for name in names)}."
    assert "0%" not in str(found).replace("90%", "").replace("0.0%", "")
    assert "nan" not in str(ranks)
    for told in (found, best, ranks):
        assert "null" in json.dumps(told.to_dict(), allow_nan=False)
    assert np.isnan(found.to_frame("polars")["best"].to_list()).all()


def test_chances_of_two_models_and_of_a_tie_add_up():
    y_true, scores, p, _ = problem(10, n=60, m=12)
    found = dm.compare(y_true, scores, metrics=["accuracy", "fpr"], missingness=dm.missing.Fixed(p))
    for metric in found.metrics:
        best = found.probability_best(metric)
        assert abs(sum(best.chances.values()) + best.tie - 1.0) < 1e-12
        assert best["b"] == found.probability_better(metric, "b", "a")
    assert found.probability_better("accuracy", "b", "a", by=0.05) <= found.probability_better("accuracy", "b", "a")


@pytest.mark.parametrize("metric", ["f1", "roc_auc"])
def test_ranks_of_three_models_agree_with_their_differences(metric):
    y_true, scores, p = three_models(11, n=6000, m=5000)
    found = dm.compare(y_true, scores, metrics=metric, missingness=dm.missing.Fixed(0.5 + 0.3 * (p - 0.5)), rng=0)
    mean_rank = found.rank_probabilities(metric).mean()
    for model in "abc":
        others = [other for other in "abc" if other != model]
        ahead = sum(found.probability_better(metric, other, model) for other in others)
        # The draws are of a probability with this error.
        assert abs(mean_rank[model] - 1.0 - ahead) < 5 * 2 * 0.5 / np.sqrt(1 << 14)


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "brier"])
def test_models_that_are_the_same_tie_in_every_draw(metric):
    y_true, scores, p, _ = problem(15, n=1500, m=1200)
    found = dm.compare(
        y_true, {**scores, "copy": scores["b"].copy()}, metrics=metric, missingness=dm.missing.Fixed(p), rng=0
    )
    best, ranks = found.probability_best(metric), found.rank_probabilities(metric)
    assert best.method == "monte carlo"
    assert best["b"] == best["copy"] == 0.0
    # The draws are of a chance with this error.
    assert abs(best.ties["b", "copy"] - found.probability_better(metric, "b", "a")) < 5 * 0.5 / np.sqrt(1 << 14)
    assert ranks.chances["b"] == ranks.chances["copy"]


@pytest.mark.parametrize("metric", ["accuracy", "f1", "precision"])
@pytest.mark.parametrize("odd", [0, 1])
def test_models_of_several_tie_as_often_as_the_law_of_their_difference_says(metric, odd):
    """A label moves a difference in accuracy by two rows or none: where they disagree about odd many, it is never 0."""
    rng = np.random.default_rng(16)
    truth = rng.normal(size=1600 + odd)
    a = 1 / (1 + np.exp(-truth))
    b = np.where(np.arange(a.size) < 60 + odd, 1.0 - a, a)  # they disagree about a few rows
    scores = {"a": a, "b": b, "worse": rng.random(a.size)}
    found = dm.compare(
        np.full(a.size, np.nan), scores, metrics=metric, missingness=dm.missing.Fixed(np.where(b == a, a, 0.5)), rng=0
    )
    best = found.probability_best(metric)
    assert best.method == "monte carlo"
    tie = 1.0 - found.probability_better(metric, "a", "b") - found.probability_better(metric, "b", "a")
    if metric == "accuracy":
        assert (tie > 0.05) == (odd == 0)
    # The draws are of a chance with this error.
    assert abs(best.ties.get(("a", "b"), 0.0) - tie) < 5 * np.sqrt(0.1 * 0.9 / (1 << 14))


def test_a_model_that_is_never_defined_stands_aside():
    scores = {"a": [0.9, 0.2, 0.7, 0.6], "b": [0.8, 0.6, 0.3, 0.7], "none": [0.1, 0.2, 0.1, 0.2]}
    asked: Any = {"metrics": "precision", "zero_division": np.nan, "missingness": dm.missing.Fixed([0.6])}
    three = dm.compare([1, 0, None, 1], scores, **asked)
    two = dm.compare([1, 0, None, 1], {name: scores[name] for name in "ab"}, **asked)
    best, ranks = three.probability_best("precision"), three.rank_probabilities("precision")
    assert np.isnan(best["none"])
    assert {name: best[name] for name in "ab"} == pytest.approx(
        dict(two.probability_best("precision").chances), abs=1e-12
    )
    assert best.model == two.probability_best("precision").model
    assert str(best).endswith("none undefined.") or "none undefined;" in str(best)
    assert ranks.chances["a"][:2] == pytest.approx(two.rank_probabilities("precision").chances["a"], abs=1e-12)
    alone = dm.compare([1, 0, None, 1], {name: scores[name] for name in ("a", "none")}, **asked)
    assert alone.probability_best("precision")["a"] == 1.0


def test_best_and_places_say_what_they_are_about():
    y_true, scores, p = three_models(5, n=60, m=20)
    for scope, where in (("rows", "Best f1:"), ("population", "Best f1 in the population:")):
        for asked in (scores, dict(list(scores.items())[:2])):
            found = dm.compare(y_true, asked, metrics="f1", missingness=dm.missing.Fixed(p), rng=0)
            best, ranks = found.probability_best("f1", scope=scope), found.rank_probabilities("f1", scope=scope)
            assert str(best).startswith(where)
            assert best.to_dict()["scope"] == ranks.to_dict()["scope"] == scope
            assert ("in the population" in str(ranks)) == (scope == "population")


def learned(n=1500, share=0.8, seed=12, models=2):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * truth))).astype(float)
    y_true = np.where(rng.random(n) < share, np.nan, y)
    noise = np.linspace(0.9, 0.3, models)
    names = [chr(ord("a") + i) for i in range(models)]
    scores = {
        name: 1 / (1 + np.exp(-1.5 * truth - s * rng.normal(size=n))) for name, s in zip(names, noise, strict=True)
    }
    return y, y_true, scores


def test_each_model_has_its_evaluation_under_the_shared_probabilities():
    _, y_true, scores = learned()
    found = dm.compare(y_true, scores, missingness="random", metrics=["accuracy", "roc_auc"])
    assert isinstance(found["a"], dm.Evaluation)
    for metric in found.metrics:
        apart = found["b"][metric].mean() - found["a"][metric].mean()
        distribution = found.difference(metric, "b", "a")
        assert abs(distribution.mean() - apart) < 0.02 * distribution.std()
        # Labels are shared: far narrower than two laws that know nothing of each other.
        assert distribution.std() < 0.9 * np.hypot(found["a"][metric].std(), found["b"][metric].std())


def test_cells_that_share_probabilities_change_next_to_nothing():
    _, y_true, scores = learned(n=12_000)
    found = dm.compare(y_true, scores, missingness="random", metrics=["f1", "roc_auc"])
    assert found.beliefs.posterior.column is not None
    few = {name: score[:8000] for name, score in scores.items()}
    own = dm.compare(y_true[:8000], few, missingness="random", metrics=["f1", "roc_auc"])
    assert own.beliefs.posterior.column is None
    # The same curve: the chances of the rows that both have, by their ranks among all.
    p = found.beliefs.posterior.on_all_cells
    mean = (p.weight @ p.probability)[: np.isnan(y_true[:8000]).sum()]
    other = own.beliefs.posterior.weight @ own.beliefs.posterior.probability
    assert np.abs(mean - other).mean() < 0.03


@pytest.mark.parametrize("digits", [None, 1], ids=["continuous", "many at the threshold"])
def test_rows_that_are_decided_differently_share_no_probabilities(digits):
    _, y_true, scores = learned(n=12_000)
    if digits is not None:  # the mean of many numbers 0.7 is less than 0.7
        scores["a"] = np.round(scores["a"], digits)
    rows = dm.compare(y_true, scores, missingness="random", threshold={"a": 0.7, "b": 0.55}).rows
    assert rows.by_kind.missing.size < 8000
    for model, cut in enumerate((0.7, 0.55)):
        assert np.array_equal((rows.by_kind.score[model] >= cut)[rows.by_kind.number], rows.decision[model])


def test_rows_of_many_models_are_of_many_kinds():
    """Where ranks of all models made too many kinds, all rows were of one, and had one probability."""
    rng = np.random.default_rng(0)
    n, models = 100_000, 14
    truth = rng.normal(size=n)
    y = np.where(rng.random(n) < 0.5, np.nan, rng.random(n) < expit(2.0 * truth))
    scores = {f"m{i}": expit(0.8 * rng.normal() + 1.2 * truth + rng.normal(size=n)) for i in range(models)}
    rows = shared_rows(y, scores, threshold=0.5, pos_label=1, missing_label=None, sample_weight=None, probability=None)
    kinds = rows.by_kind
    assert 10_000 < kinds.missing.size <= 1 << 15
    assert kinds.missing.sum() == np.isnan(y).sum()
    flagged = np.stack([np.bincount(kinds.number, one) for one in rows.decision])
    alike = (flagged == 0) | (flagged == kinds.total)
    assert alike.mean() > 0.8
    assert np.array_equal((kinds.score >= 0.5)[alike], (flagged == kinds.total)[alike])


def test_thresholds_far_apart_leave_the_level_open_once():
    """Decisions that had a share in the level made every row's log odds open a second time, by a third."""
    _, y_true, scores = learned(n=1000, share=0.85)
    rows = np.ones(1000)
    known = ~np.isnan(y_true)
    score = np.round(list(scores.values()), 1)
    labeled = score[:, known], y_true[known], 1.0 - y_true[known]
    joint = JointScore.fit(score, rows, labeled, np.array([0.1, 0.95]))
    assert np.abs(joint.deviations(score).mean(axis=0)).max() < 1e-9


def test_models_that_say_nothing_leave_open_that_one_of_them_does():
    """The prior of how much models differ is as wide as if the average had some slope, though labels give it none."""
    rng = np.random.default_rng(7)
    score, y = rng.normal(size=(2, 400)), rng.integers(0, 2, 400).astype(float)
    joint = JointScore.fit(score, np.ones(400), (score[:, :20], y[:20], 1.0 - y[:20]), np.zeros(2))
    spread = (joint.draws(256) @ joint.deviations(score).T).std(axis=0)
    assert np.median(spread) > 0.15


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["scores rise", "scores fall"])
def test_differences_of_models_far_apart_are_not_drawn_towards_none(sign):
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, noise = 1000, rng.normal(size=(3, 1000))
        truth = np.where(rng.random(n) < 1 / 3, 3.0, -3.0) + 1.5 * noise[0]
        y = (rng.random(n) < expit(truth)).astype(float)
        scores = {"good": sign * (truth + 0.3 * noise[1]), "poor": sign * (0.5 * truth + 2.0 * noise[2] - 0.5)}
        y_true = np.full(n, np.nan)
        known = rng.choice(n, 50, replace=False)
        y_true[known] = y[known]
        found = dm.compare(y_true, scores, missingness="random", metrics="accuracy", threshold=0.0)
        low, high = found.difference("accuracy", "good", "poor").interval(0.9)
        right = {name: ((score >= 0.0) == y).mean() for name, score in scores.items()}
        held.append(low <= right["good"] - right["poor"] <= high)
    # Of these intervals 48 hold; 29 where models start from counting the same by their ranks alone.
    assert np.mean(held) >= 0.7


def test_seven_models_and_twenty_labels_stay_near_their_average():
    y, y_true, scores = learned(n=600, share=0.0, models=7)
    y_true = np.where(np.arange(600) < 20, y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.CalibrationWarning)  # which of seven leads, twenty labels do not settle
        found = dm.compare(y_true, scores, missingness="random", metrics="accuracy")
    posterior = found.beliefs.posterior
    chance = posterior.weight @ posterior.probability
    average = 1 / (1 + np.exp(-np.mean([np.log(s / (1 - s)) for s in scores.values()], axis=0)))[20:]
    assert np.corrcoef(chance, average)[0, 1] > 0.95
    assert "Learned from 20 labels: below 300 the chance that a model is best is often too sure." in str(found)


@pytest.mark.parametrize(("models", "known", "said"), [(3, 299, True), (3, 300, False), (2, 20, False)])
def test_few_labels_are_named_where_several_models_share_them(models, known, said):
    y, _, scores = learned(n=600, share=0.0, models=models)
    y_true = np.where(np.arange(600) < known, y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.CalibrationWarning)
        found = dm.compare(y_true, scores, missingness="random", metrics="accuracy")
    assert any("too sure" in note for note in found._notes()) == said
    assert ("too sure" in found.report().html) == said


def test_reference_rows_take_part():
    apart = []
    for seed in (12, 20, 21):  # told nothing, how much is open differs from set to set
        y, y_true, scores = learned(seed=seed)
        held_out = (y[:700], {name: score[:700] for name, score in scores.items()})
        rest = {name: score[700:] for name, score in scores.items()}
        found = dm.compare(
            y_true[700:],
            rest,
            missingness=dm.missing.Unknown(reference=dm.missing.Reference(*held_out)),
            metrics="accuracy",
        )
        alone = dm.compare(y_true[700:], rest, metrics="accuracy", missingness="unknown")
        apart.append([one.difference("accuracy", "b", "a").std() for one in (found, alone)])
    with_reference, without = np.mean(apart, axis=0)
    assert with_reference < 0.9 * without


def test_scores_need_not_be_probabilities():
    _, y_true, scores = learned()
    odds = {name: 10 * np.log(score / (1 - score)) + 3 for name, score in scores.items()}
    found = dm.compare(y_true, odds, missingness="random", metrics="roc_auc")
    plain = dm.compare(y_true, scores, missingness="random", metrics="roc_auc")
    distributions = [one.difference("roc_auc", "b", "a") for one in (found, plain)]
    assert abs(distributions[0].mean() - distributions[1].mean()) < 0.5 * distributions[1].std()


def test_a_model_that_exaggerates_is_judged_by_its_ranks():
    """ROC-AUC knows ranks alone, and so does what it is believed under: no model outvotes another by extreme scores."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=1500)
    y = rng.random(1500) < 1 / (1 + np.exp(-2 * truth))
    labels = np.where(rng.random(1500) < 0.8, np.nan, y)
    first, second = (truth + 0.7 * rng.normal(size=1500) for _ in range(2))
    distributions = [
        dm.compare(labels, {"a": first, "b": other}, threshold=0.0, missingness="random", metrics="roc_auc", rng=0)
        for other in (second, second**3, np.sinh(4.0 * second))
    ]
    found = [distribution.difference("roc_auc", "b", "a") for distribution in distributions]
    for distribution in found[1:]:
        assert distribution.mean() == pytest.approx(found[0].mean(), abs=1e-9)
        assert distribution.interval(0.9) == pytest.approx(found[0].interval(0.9), abs=1e-9)


def test_warns_when_another_model_leads_with_each_calibrated_by_itself():
    y, y_true, scores = learned(n=600, share=0.0, models=7, seed=13)
    y_true = np.where(np.arange(600) < 20, y, np.nan)
    with pytest.warns(dm.CalibrationWarning, match="which model leads in accuracy depends on the calibration") as said:
        found = dm.compare(y_true, scores, missingness="random", metrics="accuracy")
    together, own = found.estimates("accuracy"), found.own_estimates("accuracy")
    first, second = (max(one, key=one.__getitem__) for one in (together, own))
    assert first != second
    text = str(said[0].message)
    assert f"{first} leads ({together[first]:.3f} against {together[second]:.3f} of {second})" in text
    assert any(warned.message == text for warned in found.warnings)
    distributions = found.by_calibration("accuracy", first, second)
    assert set(distributions) == {"all scores together", first, second}
    # Each leans towards its own.
    assert distributions[first].mean() > distributions[second].mean()


def test_print_of_two_models_names_the_last_model_first():
    _, y_true, scores = learned(n=5000)
    found = dm.compare(y_true, scores, missingness="random", metrics=["f1", "roc_auc"])
    assert "a is better" not in str(found)
    for metric in found.metrics:
        assert found.probability_best(metric)["a"] == pytest.approx(
            found.probability_better(metric, "a", "b"), abs=1e-6
        )


def test_says_what_it_found_in_words_numbers_and_frames():
    y_true, scores, p, _ = problem(13)
    found = dm.compare(y_true, scores, metrics=["accuracy", "prevalence"], missingness=dm.missing.Fixed(p))
    text = str(found)
    better, worse = (found.probability_better("accuracy", *pair) for pair in (("b", "a"), ("a", "b")))
    side, probability = ("better", better) if better >= worse else ("worse", worse)
    assert f"b is {side} than a in accuracy with probability {chance_text(probability)}" in text
    assert "A tie is not better" in text
    assert "<table>" in found._repr_html_()
    numbers = found.to_dict()
    assert numbers["scope"] == found.scope == "rows"
    assert numbers["metrics"]["accuracy"]["differences"][0]["better"] == found.probability_better("accuracy", "b", "a")
    assert numbers["metrics"]["prevalence"]["best"] is None
    frame = found.to_frame("polars")
    assert frame["model"].to_list() == ["a", "b", "a", "b"]
    again = pickle.loads(pickle.dumps(found))
    assert again.to_dict() == numbers
    assert repr(found) == "<Comparison of a, b on 30 rows, 10 missing: accuracy, prevalence>"


@pytest.mark.parametrize(
    ("change", "argument", "words"),
    [
        ({"scores": {"a": [0.1, 0.9]}}, "scores", "one model, 'a'"),
        ({"scores": {}}, "scores", "no model"),
        ({"scores": np.array([[0.1, 0.9], [0.2, 0.8]])}, "scores", "expected a mapping"),
        ({"scores": {"a": [0.1, 0.9, 0.5], "b": [0.2, 0.8]}}, "scores['a']", "3 values, but y_true has 2"),
        ({"scores": {"a": [0.1, np.nan], "b": [0.2, 0.8]}}, "scores['a']", "NaN"),
        ({"threshold": {"z": 0.4}}, "threshold", "unknown model 'z'"),
        ({"threshold": {"a": "high"}}, "threshold", "expected a number"),
        ({"metrics": "f2"}, "metrics", "unknown metric 'f2'"),
        ({"missingness": dm.missing.Fixed([0.2, 0.3, 0.4])}, "probability", "3 values for 2 rows"),
        ({"missingness": "delayed"}, "missingness", "Delayed"),
        ({"missingness": dm.missing.Reference([1, 0], {"a": [1, 0], "z": [1, 0]})}, "reference", "no scores of 'b'"),
        ({"sample_weight": [1.0]}, "sample_weight", "1 value, but y_true has 2"),
    ],
)
def test_bad_input_is_one_clear_error(change, argument, words):
    given: Any = {"scores": {"a": [0.1, 0.9], "b": [0.2, 0.8]}, "missingness": dm.missing.Fixed([0.5]), **change}
    with pytest.raises(dm.InputError) as raised:
        dm.compare([1, None], **given)
    assert raised.value.argument == argument
    assert words in str(raised.value)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_scores_may_be_the_columns_of_a_table(engine):
    y, scores = [1, 0, None, 1, 0], {"a": [0.9, 0.2, 0.6, 0.4, 0.1], "b": [0.8, 0.6, 0.3, 0.7, 0.2]}
    table = pytest.importorskip(engine).DataFrame(scores)
    found, expected = (
        dm.compare(y, one, missingness=dm.missing.Fixed(0.5), metrics="accuracy") for one in (table, scores)
    )
    assert found.to_dict() == expected.to_dict()


def test_models_may_be_called_like_arguments():
    scores = {"y_true": [0.1, 0.9], "sample_weight": [0.2, 0.8]}
    assert dm.compare([1, None], scores, missingness=dm.missing.Fixed([0.5])).models == ("y_true", "sample_weight")


def test_rows_in_another_order_are_refused_by_the_name_of_the_model():
    pd = pytest.importorskip("pandas")
    y_true, turned = pd.Series([1.0, None]), pd.Series([0.9, 0.1], index=[1, 0])
    with pytest.raises(dm.InputError, match="its index differs from that of y_true") as raised:
        dm.compare(y_true, {"a": turned, "b": [0.2, 0.8]}, missingness=dm.missing.Fixed([0.5]))
    assert raised.value.argument == "scores['a']"
    with pytest.raises(dm.InputError, match=r"its index differs from that of scores\['a'\]"):
        dm.compare([1, None], {"a": turned, "b": y_true.fillna(0.0)}, missingness=dm.missing.Fixed([0.5]))


def test_unknown_names_and_pairs_are_refused():
    y_true, scores, p, _ = problem(14)
    found = dm.compare(y_true, scores, metrics=["accuracy", "prevalence"], missingness=dm.missing.Fixed(p))
    listed: Any = ["accuracy"]
    for call, argument in (
        (lambda: found.difference("accuracy", "c", "a"), "model"),
        (lambda: found.difference("accuracy", "b", "z"), "other"),
        (lambda: found.difference("accuracy", "b", "b"), "other"),
        (lambda: found.difference("f1", "b", "a"), "metric"),
        (lambda: found.probability_better("prevalence", "b", "a"), "metric"),
        (lambda: found.probability_better("accuracy", "b", "a", by=np.nan), "by"),
        (lambda: found.difference(listed, "b", "a"), "metric"),
        (lambda: found.probability_best(listed), "metric"),
        (lambda: found.estimates(listed), "metric"),
        (lambda: found["c"], "model"),
        (lambda: found[listed], "model"),
        (lambda: found.probability_best("accuracy")["c"], "model"),
        (lambda: found.probability_best("accuracy")[listed], "model"),
    ):
        with pytest.raises(dm.InputError) as raised:
            call()
        assert raised.value.argument == argument


def test_a_model_called_like_all_of_them_does_not_take_the_place_of_their_law():
    y_true, scores, p, _ = problem(14)
    told = {"a": scores["a"], "all scores together": scores["b"]}
    found = dm.compare(y_true, told, metrics="accuracy", missingness=dm.missing.Fixed(p))
    with pytest.raises(dm.InputError, match="'all scores together' is what the law of all is called"):
        found.by_calibration("accuracy", "a", "all scores together")


def test_a_model_that_is_not_there_is_missed_as_in_any_mapping():
    y_true, scores, p, _ = problem(14)
    found = dm.compare(y_true, scores, metrics="accuracy", missingness=dm.missing.Fixed(p))
    assert found.get("c") is None
    for mapping in (found, found.probability_best("accuracy")):
        with pytest.raises(KeyError) as raised:
            mapping["c"]
        assert str(raised.value) == "model: unknown model 'c'. Choose from 'a', 'b'."


def table_of_rows(n=400):
    _, y_true, scores = learned(n=n)
    label = [None if np.isnan(y) else int(y) for y in y_true]
    return {"y": label, "p1": scores["a"].round(3).tolist(), "p2": scores["b"].round(3).tolist()}


def test_a_table_says_what_its_columns_say():
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    columns = table_of_rows()
    told: Any = {"missingness": "random", "metrics": ["f1", "roc_auc"], "threshold": {"champion": 0.4}, "rng": 0}
    scores = {"champion": columns["p1"], "challenger": columns["p2"]}
    expected = dm.compare(columns["y"], scores, **told)
    frame = pl.DataFrame(columns)
    for table in (frame, frame.lazy(), frame.to_pandas(), duckdb.sql("select * from frame")):
        named = {"champion": "p1", "challenger": "p2"}
        found = dm.compare("y", named, data=table, **told)
        for metric in found.metrics:
            distribution, same = (one.difference(metric, "challenger", "champion") for one in (found, expected))
            assert abs(distribution.mean() - same.mean()) < 1e-9
            assert abs(distribution.std() / same.std() - 1.0) < 1e-6
        assert found.rows.counts == expected.rows.counts


def test_a_database_is_asked_for_one_group_by(monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    asked: list[str] = []

    def noted(query):
        asked.append(query.to_native().sql_query())
        return collecting.collected(query)

    monkeypatch.setattr(counting, "collected", noted)
    sql = "select i % 3 = 0 as y, (i % 97) / 97.0 as p1, (i % 89) / 89.0 as p2 from range(20000) as t(i)"
    found = dm.compare("y", ["p1", "p2"], data=duckdb.sql(sql), missingness=dm.missing.Fixed(0.3), metrics="accuracy")
    assert found.rows.counts["labeled"] == 20_000
    # Rows are counted beforehand: "GROUP BY ALL" of a count alone is no grouping.
    assert sum(query.upper().replace("GROUP BY ALL", "").count("GROUP BY") for query in asked) == 1
    assert len(asked) == 2
    assert found.rows.score_bins is None


def test_buckets_of_two_scores_move_decisions_nowhere():
    pl = pytest.importorskip("polars")
    columns = table_of_rows(2000)
    frame = pl.DataFrame(columns).lazy()
    told: Any = {
        "y_true": "y",
        "scores": ["p1", "p2"],
        "metrics": ["f1", "roc_auc"],
        "rng": 0,
        "missingness": dm.missing.Fixed(0.3),
    }
    exact, rough = (dm.compare(data=frame, score_bins=score_bins, **told) for score_bins in ("exact", 64))
    assert rough.rows.score_bins == 64
    assert rough.rows.missing.size < exact.rows.missing.size
    assert "64 buckets" in str(rough)
    distributions = [one.difference("f1", "p2", "p1") for one in (exact, rough)]
    assert abs(distributions[0].mean() - distributions[1].mean()) < 1e-12
    ranks = [one.difference("roc_auc", "p2", "p1") for one in (exact, rough)]
    assert abs(ranks[0].mean() - ranks[1].mean()) < 0.01


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"scores": "p1"}, "scores"),
        ({"scores": ["p1", "p1"]}, "scores"),
        ({"scores": {"a": "p1", "b": "p1"}}, "scores"),
        ({"scores": ["p1", "p9"]}, "scores"),
        ({"scores": ["p9", "p1"]}, "scores"),
        ({"scores": ["p1", "text"]}, "scores column 'text'"),
        ({"y_true": "z"}, "y_true"),
        ({"score_bins": 3}, "score_bins"),
        ({"missingness": dm.missing.Fixed([0.5])}, "missingness"),
    ],
)
def test_bad_tables_are_one_clear_error(change, argument):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({**table_of_rows(20), "text": ["x"] * 20})
    told: Any = {"y_true": "y", "scores": ["p1", "p2"], **change}
    with pytest.raises(dm.InputError) as raised:
        dm.compare(data=frame, **told)
    assert raised.value.argument == argument


def delong_variance(y, scores):
    """The variance of the difference of two areas as DeLong, DeLong and Clarke-Pearson (1988) have it."""
    above = {}
    for name, score in scores.items():
        pairs = (score[y == 1][:, None] > score[y == 0]) + 0.5 * (score[y == 1][:, None] == score[y == 0])
        above[name] = pairs.mean(axis=1), pairs.mean(axis=0)
    one, zero = (above["b"][i] - above["a"][i] for i in (0, 1))
    return one.var(ddof=1) / one.size + zero.var(ddof=1) / zero.size


@pytest.mark.parametrize("n", [300, 2000])
def test_with_no_label_missing_the_population_is_that_of_mcnemar_and_delong(n):
    y, _, scores = learned(n=n)
    found = dm.compare(y, scores, metrics=["accuracy", "roc_auc"])
    distribution = found.difference("accuracy", "b", "a", scope="population")
    right = {name: (score >= 0.5) == y for name, score in scores.items()}
    wins, losses = np.sum(right["b"] & ~right["a"]), np.sum(right["a"] & ~right["b"])
    mcnemar = np.sqrt(wins + losses - (wins - losses) ** 2 / n) / n
    assert abs(distribution.std() / mcnemar - 1.0) < 0.05
    # The mean of each model's accuracy has half a row more on either side.
    assert abs(distribution.mean() - (wins - losses) / (n + 1)) < 1e-5
    auc = found.difference("roc_auc", "b", "a", scope="population")
    assert abs(auc.std() / np.sqrt(delong_variance(y, scores)) - 1.0) < 0.05


@pytest.mark.parametrize("metric", ["recall", "accuracy", "f1", "roc_auc"])
def test_a_few_rows_that_agree_are_not_certain_of_the_population(metric):
    """Four positives of thirty rows, all found by one model and none by the other, were 100% and 1.000 to 1.000."""
    y = np.r_[np.ones(4), np.zeros(26)]
    base = np.linspace(0.05, 0.45, 26)
    scores = {"a": np.r_[np.full(4, 0.3), 1.1 * base], "b": np.r_[np.full(4, 0.8), base]}
    distribution = dm.compare(y, scores, metrics=metric, scope="population", zero_division=0).difference(
        metric, "b", "a"
    )
    low, high = distribution.interval(0.9)
    assert high - low > 0.05
    assert -1.0 < low < high < 1.0
    assert 0.5 < distribution.sf(0.0) < 0.9999


@pytest.mark.parametrize("metric", ["accuracy", "f1", "roc_auc"])
def test_models_that_agree_on_a_sample_may_differ_in_the_population(metric):
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, 0.0], 20)
    scores = {name: np.where(y == 1.0, 0.5, 0.0) + 0.4 * rng.random(40) for name in "ab"}
    distribution = dm.compare(y, scores, metrics=metric, scope="population").difference(metric, "b", "a")
    # None of 40 rows differs: by the rule of three up to three of 40 may, to either side.
    assert 0.02 < distribution.interval(0.9).high < 0.12
    assert distribution.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("metric", ["f1", "recall", "precision", "brier"])
def test_the_population_is_that_of_a_bootstrap_of_rows(metric):
    y, _, scores = learned(n=800)
    found = dm.compare(y, scores, metrics=metric)
    distribution = found.difference(metric, "b", "a", scope="population")
    rng = np.random.default_rng(0)
    values = []
    for _ in range(1500):
        at = rng.integers(0, 800, 800)
        one = oracle.definition_of(metric)
        sides = [one(y[at][None], s[at], (s[at] >= 0.5).astype(float), np.ones(800))[0] for s in scores.values()]
        values.append(sides[1] - sides[0])
    # The spread of 1,500 resamples is off by 2% typically.
    assert abs(distribution.std() / np.std(values) - 1.0) < 0.08


def of_resamples(metric, y, score, times):
    """Accuracy or ROC-AUC of many resamples, from how many times each has every row."""
    if metric == "accuracy":
        return times @ ((score >= 0.5) == y) / times.sum(axis=1)
    pairs = (score[y == 1][:, None] > score[y == 0]) + 0.5 * (score[y == 1][:, None] == score[y == 0])
    one, zero = times[:, y == 1], times[:, y == 0]
    return (one @ pairs * zero).sum(axis=1) / (one.sum(axis=1) * zero.sum(axis=1))


@pytest.mark.parametrize("metric", ["precision", "f1", "mcc", "accuracy", "roc_auc", "brier"])
def test_the_population_is_the_same_in_every_unit_of_weight(metric):
    """Steps along a formula were at least a thousandth of one row of weight 1: small weights lost the sampling part."""
    y, _, scores = learned(n=200)
    weight = np.random.default_rng(0).lognormal(0.0, 1.0, 200)
    one, *others = (
        dm.compare(y, scores, sample_weight=weight * unit, metrics=metric).difference(
            metric, "b", "a", scope="population"
        )
        for unit in (1.0, 2.0**-66, 2.0**66)
    )
    assert one.std() > 0.0
    for other in others:
        assert (other.mean(), other.std()) == pytest.approx((one.mean(), one.std()), rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 2.0**-66])
def test_models_that_agree_without_a_missing_positive_are_not_one(unit):
    """Whether two formulas are one was tried at whole numbers, of which small weights have none but 0."""
    y_true = [1, 0, 1, 0, 0, 0, np.nan]
    scores = {"a": [0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.9], "b": [0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.9]}
    found = dm.compare(
        y_true, scores, sample_weight=np.full(7, unit), missingness=dm.missing.Fixed(0.5), metrics="precision"
    )
    distribution = found.difference("precision", "a", "b")
    assert isinstance(distribution, Discrete)
    assert distribution.atoms == pytest.approx([0.0, 2 / 3 - 3 / 6])
    assert distribution.masses == pytest.approx([0.5, 0.5])


def level(seed=0, n=200):
    """Two models that swap their scores from one half of the rows to the other, and weights that are the same there."""
    rng = np.random.default_rng(seed)
    half = n // 2
    one, other = np.rint(8.0 * rng.random((2, half))) / 8.0
    scores = {"a": np.concatenate([one, other]), "b": np.concatenate([other, one])}
    y_true = np.tile(rng.integers(0, 2, half).astype(float), 2)
    y_true[[3, 3 + half, 7, 7 + half]] = np.nan
    return y_true, scores, np.tile(rng.integers(1, 4, half).astype(float), 2)


@pytest.mark.parametrize("unit", [3.7, 0.1, 1 / 3, 2.0**-66])
def test_a_tie_is_one_in_every_unit_of_weight(unit):
    """What two sums of weights in another order leave was the better model's: no tie in ROC-AUC, instead of 25%."""
    for seed in range(3):
        y_true, scores, weight = level(seed)
        settings: dict[str, Any] = {
            "metrics": ["accuracy", "specificity", "f1", "roc_auc"],
            "missingness": dm.missing.Fixed(0.5),
        }
        whole = dm.compare(y_true, scores, sample_weight=weight, **settings)
        found = dm.compare(y_true, scores, sample_weight=unit * weight, **settings)
        for metric in found.metrics:
            assert whole.probability_best(metric).tie > 0.0
            assert found.probability_best(metric).tie == pytest.approx(whole.probability_best(metric).tie, abs=1e-12)
            assert found.probability_better(metric, "a", "b") == pytest.approx(
                whole.probability_better(metric, "a", "b"), abs=1e-12
            )


def test_rows_that_both_decide_alike_take_no_part_in_a_difference_of_weighted_sums():
    """Totals added up in two orders differ in their last digit, which counted as an effect of every row."""
    _, y_true, scores = learned(n=60, share=0.5)
    weight = 3.7 * np.random.default_rng(3).lognormal(size=60)
    alike = np.isnan(y_true) & ((scores["a"] >= 0.5) == (scores["b"] >= 0.5))
    found = dm.compare(y_true, scores, sample_weight=weight, missingness=dm.missing.Fixed(0.5), metrics="accuracy")
    distribution = found.difference("accuracy", "b", "a")
    with_them = y_true.copy()
    with_them[alike] = 1.0
    known = dm.compare(with_them, scores, sample_weight=weight, missingness=dm.missing.Fixed(0.5), metrics="accuracy")
    assert distribution.support() == pytest.approx(known.difference("accuracy", "b", "a").support(), abs=1e-12)
    assert distribution.bounds_sharp


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_the_best_in_the_population_is_that_of_a_bootstrap_of_rows(metric):
    y, _, scores = learned(n=600)
    rng = np.random.default_rng(1)
    scores = {**scores, "c": np.clip(scores["a"] + 0.05 * rng.normal(size=600), 0.0, 1.0)}
    found = dm.compare(y, scores, metrics=metric, scope="population")
    times = np.stack([np.bincount(rng.integers(0, 600, 600), minlength=600) for _ in range(2000)])
    values = np.stack([of_resamples(metric, y, score, times) for score in scores.values()])
    top = values == values.max(axis=0)
    wins = (top / top.sum(axis=0)).mean(axis=1)
    # Shares of 2,000 resamples are off by 0.011 typically, those of 2^14 draws by 0.004; the rest is first order.
    assert np.abs(np.array(list(found.probability_best(metric).chances.values())) - wins).max() < 0.05
    assert (
        max(found.probability_best(metric, scope="rows").chances.values()) == 1.0
    )  # where nothing is missing the rows are sure
    first_places = [row[0] for row in found.rank_probabilities(metric).chances.values()]
    assert first_places == pytest.approx(list(found.probability_best(metric).chances.values()))


def test_models_that_no_row_tells_apart_tie_in_the_population_too():
    _, y_true, scores = learned(n=400)
    scores = {"a": scores["a"], "b": scores["b"], "twin": scores["b"].copy()}
    found = dm.compare(y_true, scores, missingness="random", metrics="accuracy", scope="population")
    best = found.probability_best("accuracy")
    assert best["b"] == best["twin"] == 0.0
    assert best["a"] + best.tie == pytest.approx(1.0)
    assert list(best.ties) == [("b", "twin")]
    assert best["a"] == pytest.approx(found.probability_better("accuracy", "a", "b"), abs=0.02)


def test_a_comparison_in_the_population_says_so_in_all_it_says():
    _, y_true, scores = learned(n=400)
    settings: dict[str, Any] = {"missingness": "random", "metrics": ["accuracy", "roc_auc"]}
    rows, found = dm.compare(y_true, scores, **settings), dm.compare(y_true, scores, scope="population", **settings)
    for metric in rows.metrics:
        asked = rows.difference(metric, "b", "a", scope="population")
        assert found.difference(metric, "b", "a").interval() == pytest.approx(asked.interval())
        assert found.difference(metric, "b", "a", scope="rows").interval() == pytest.approx(
            rows.difference(metric, "b", "a").interval()
        )
        assert found.probability_better(metric, "b", "a") == rows.probability_better(
            metric, "b", "a", scope="population"
        )
        assert found.probability_best(metric)["b"] == found.probability_better(metric, "b", "a")
        assert found["a"].scope == "population"
        assert found["a"][metric].interval() == pytest.approx(rows["a"].population[metric].interval())
        own, on_rows = (one.by_calibration(metric, "b", "a") for one in (found, rows))
        assert all(own[name].std() > on_rows[name].std() for name in on_rows)
    assert "Intervals are for the population that these 400 rows came from" in str(found)
    numbers = found.to_dict()
    assert numbers["scope"] == "population"
    assert numbers["metrics"]["accuracy"]["differences"][0]["better"] == found.probability_better("accuracy", "b", "a")
    assert {row["scope"] for row in found.to_records()} == {"population"}
    assert {distribution.scope for distribution in pickle.loads(pickle.dumps(found)).values()} == {"population"}
    table = pd.DataFrame({"y": y_true, **scores})
    frame = dm.compare("y", ["a", "b"], data=table, scope="population", **settings)
    # Cells are in another order than rows, and so are their draws.
    assert frame.probability_better("accuracy", "b", "a") == pytest.approx(
        found.probability_better("accuracy", "b", "a"), abs=0.01
    )
    with pytest.raises(dm.InputError, match=r"^scope: unknown scope 'world'"):
        dm.compare(y_true, scores, scope="world")  # type: ignore[arg-type]


def test_the_population_leaves_more_open_than_the_rows():
    _, y_true, scores = learned(seed=20)  # one is better, and not as likely as not
    found = dm.compare(y_true, scores, missingness="random", metrics=["accuracy", "f1"])
    for metric in ("accuracy", "f1"):
        rows, population = (found.difference(metric, "b", "a", scope=scope) for scope in ("rows", "population"))
        assert population.std() > rows.std()
        assert abs(population.mean() - rows.mean()) < 0.05 * rows.std()
        sure = [abs(found.probability_better(metric, "b", "a", scope=scope) - 0.5) for scope in ("rows", "population")]
        assert sure[1] < sure[0]
    with pytest.raises(dm.InputError, match="scope"):
        found.difference("f1", "b", "a", scope="world")


def test_two_evaluations_are_sent_to_change():
    one = dm.evaluate([1, 0, None], [0.9, 0.2, 0.5], missingness=dm.missing.Fixed(0.5), metrics="recall")
    with pytest.raises(
        dm.InputError,
        match=r"^y_true: an evaluation\. .* write dm\.compare_evaluations\(after, before\), or after - before\.$",
    ):
        dm.compare(one, one)


def drawn_differences(found, b, a, size):
    """F1 of one model less that of another under labelings drawn from the nodes, row by row."""
    rng, rows, posterior = np.random.default_rng(9), found.rows, found.beliefs.posterior
    missing, chance = rows.missing[rows.open].astype(int), posterior.on_all_cells.probability
    values = []
    for node in rng.choice(len(posterior), size, p=posterior.weight):
        positive = rows.positives.astype(float)
        positive[rows.open] += rng.binomial(missing, chance[node])
        total = rows.positives + rows.negatives + rows.missing
        f1 = [
            2 * positive[yes].sum() / (total[yes].sum() + positive.sum())
            for yes in (rows.decision[b], rows.decision[a])
        ]
        values.append(f1[0] - f1[1])
    return np.sort(values)


def test_told_nothing_the_law_of_a_difference_is_that_of_drawn_labelings_and_mirrors_exactly():
    """Points of each node are spread evenly: every so many-th one of a sequence is not."""
    _, y_true, scores = learned(n=3000, share=0.6, models=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dm.compare(y_true, scores, metrics="f1", rng=0)
    distribution, turned = found.difference("f1", "c", "b"), found.difference("f1", "b", "c")
    assert isinstance(distribution, Discrete)
    assert isinstance(turned, Discrete)
    assert distribution.method == "monte carlo"
    assert len(found.beliefs.posterior) > 1
    values = drawn_differences(found, 2, 1, 4000)
    levels = np.arange(1, 4001) / 4000
    # Dvoretzky, Kiefer and Wolfowitz: exceeded once in ten thousand times.
    assert np.abs(distribution.cdf(values) - levels).max() <= np.sqrt(np.log(2.0 / 1e-4) / 8000.0)
    assert turned.atoms.tolist() == (-distribution.atoms[::-1]).tolist()
    assert turned.masses.tolist() == distribution.masses[::-1].tolist()
    assert turned.interval() == pytest.approx([-end for end in distribution.interval()[::-1]])
    chances = found.probability_better("f1", "c", "b"), found.probability_better("f1", "b", "c")
    tie = distribution.cdf(0.0) - distribution.cdf(np.nextafter(-1e-9, -1.0))
    assert sum(chances) + tie == pytest.approx(1.0)


def test_a_metric_that_no_row_can_define_is_undefined_in_the_population():
    _, _, scores = learned(n=200, models=3)
    found = dm.compare(np.ones(200), scores, metrics=["accuracy", "roc_auc"], scope="population", zero_division=np.nan)
    assert "Best roc_auc in the population: a undefined, b undefined, c undefined." in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_model_without_a_metric_on_the_rows_has_no_difference_in_the_population():
    """Whatever stands for 0/0 on the rows: the table said undefined, the sentence that the other one is 100% better."""
    y = np.r_[np.ones(4), np.zeros(26)]
    none, some = np.full(30, 0.3), np.r_[np.full(5, 0.8), np.full(25, 0.2)]
    scores = {"none": none, "some": some, "other": np.roll(some, 2)}
    found = dm.compare(y, scores, metrics="precision", scope="population", zero_division=0)
    assert found["none"]["precision"].undefined == found.difference("precision", "some", "none").undefined == 1.0
    best = found.probability_best("precision")
    assert np.isnan(best["none"])
    assert best["some"] + best["other"] == pytest.approx(1.0)


def test_reference_rows_that_lack_a_model_name_it():
    y_true, scores, _, _ = problem(0)
    full = np.nan_to_num(y_true)
    for given in ({"a": scores["a"]}, {}):
        lacking = "b" if given else "a"
        with pytest.raises(dm.InputError, match=f"^reference: no scores of '{lacking}'. Reference rows need those of"):
            dm.compare(y_true, scores, missingness=dm.missing.Reference(full, given))


@pytest.mark.parametrize("argument", ["age", "delay", "maturity", "scored_at", "labeled_at", "as_of"])
def test_a_comparison_says_that_it_takes_no_ages(argument):
    call: Any = dm.compare
    with pytest.raises(TypeError, match=f"{argument}: .* It is one of evaluate, which takes one model at a time"):
        call([0, 1], {}, **{argument: [1, 2]})
    mechanism: Any = dm.missing.Delayed
    delayed = mechanism(**{argument: [1, 2]})
    with pytest.raises(dm.InputError, match=r"^missingness: Delayed needs more of a row than its scores"):
        call([0, 1], {"a": [0.1, 0.2], "b": [0.2, 0.3]}, missingness=delayed)


def test_callable_metric_is_called_once_per_model_and_imputation():
    y_true, scores, _, _ = problem(3, n=60, m=25)
    calls = []

    def mean_hit(y, s):
        calls.append(1)
        return float(np.mean(y * s))

    for method, n_calls in (("auto", 2 * 10_000), (dm.methods.Auto(n_resamples=20_000), 2 * 20_000)):
        found = dm.compare(y_true, scores, metrics=mean_hit, missingness="random", method=method, rng=0)
        calls.clear()
        distribution = found.difference("mean_hit", "b", "a")
        # The assignments of which all or none are positive come on top.
        assert n_calls <= len(calls) <= n_calls + 100
        assert distribution.certificate is not None


def test_the_difference_of_a_function_of_ones_own_is_that_of_the_metric_it_is():
    y_true, scores, _, _ = problem(4, n=80, m=30)
    own = {"own": lambda y, s: float(np.mean((y - s) ** 2))}
    distributions = [
        dm.compare(y_true, scores, metrics=metrics, missingness="random", rng=1).difference(name, "b", "a")
        for metrics, name in ((own, "own"), ("brier", "brier"))
    ]
    drawn, distribution = distributions
    assert isinstance(drawn, Discrete)
    # Dvoretzky-Kiefer-Wolfowitz for 10,000 draws, passed by chance once in 10,000.
    values = np.repeat(drawn.atoms, np.rint(drawn.masses * 10_000).astype(int))
    assert oracle.kolmogorov(distribution.cdf, values) < np.sqrt(np.log(2.0 / 1e-4) / 20_000)


def test_metrics_are_ranked_alike_alone_and_together():
    rng = np.random.default_rng(8)
    log_odds = rng.normal(size=4000)
    y_true = np.where(rng.random(4000) < 0.5, np.nan, rng.random(4000) < expit(log_odds))
    scores = {name: expit(log_odds + rng.normal(size=4000)) for name in "abc"}
    names = ["accuracy", "recall", "precision", "roc_auc"]
    together = dm.compare(y_true, scores, metrics=names, missingness="random", rng=0)
    for name in names:
        alone = dm.compare(y_true, scores, metrics=name, missingness="random", rng=0)
        for model in "abc":
            assert alone.rank_probabilities(name).chances[model] == pytest.approx(
                together.rank_probabilities(name).chances[model], abs=1e-12
            )
