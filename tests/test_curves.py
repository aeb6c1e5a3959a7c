"""Curves: at every threshold the law over all labelings, and what the result says of itself."""

import json
import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_curve

import darkmetrics as dm
import oracle

NAMES = ["precision", "recall", "f1", "accuracy", "expected_cost(1, 10)", "mcc", "cohen_kappa", "specificity"]
NAMES += ["predicted_to_actual"]  # highest next to its 0/0
LEVELS = (0.5, 0.9)


def small_problem(seed, *, missing=7, weighted=False, n=16):
    rng = np.random.default_rng(seed)
    score = rng.integers(1, 9, n) / 8  # ties
    y = (rng.random(n) < score).astype(float)
    y[rng.permutation(n)[:missing]] = np.nan
    weight = rng.integers(1, 5, n) / 2 if weighted else np.ones(n)
    return y, score, weight, rng.uniform(0.05, 0.95, missing)


def brute_force(name, problem, threshold, zero_division):
    y, score, weight, p = problem
    rows = oracle.Problem(y, score, (score >= threshold).astype(int), weight, p)
    return oracle.distribution(oracle.definition_of(name), rows, zero_division)


def quantile(distribution, q):
    if not len(distribution.values):
        return math.nan
    # Sums of up to 2^7 probabilities are off by some 1e-15, and that must not decide.
    return distribution.values[
        min(np.searchsorted(np.cumsum(distribution.masses), q - 1e-12), len(distribution.values) - 1)
    ]


def evaluated(problem, **settings):
    y, score, weight, p = problem
    weight = None if np.all(weight == 1.0) else weight
    return dm.evaluate(y, score, missingness=dm.missing.Fixed(p), sample_weight=weight, metrics=NAMES, **settings)


@pytest.mark.parametrize("zero_division", [math.nan, 0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_exact_bands_equal_brute_force_at_every_threshold(seed, weighted, zero_division):
    problem = small_problem(seed, weighted=weighted)
    thresholds = [-1.0, *np.unique(problem[1]), 2.0]  # below all scores and above all
    result = evaluated(problem, zero_division=zero_division)
    curves = dm.threshold_curves(result, metrics=NAMES, thresholds=thresholds, method="exact")
    assert curves.method == "exact"
    for name, band in curves.items():
        for i, threshold in enumerate(thresholds):
            distribution = brute_force(name, problem, threshold, zero_division)
            found = [band.mean[i], band.lowest_possible[i], band.highest_possible[i], band.undefined[i]]
            expected = [distribution.mean(), distribution.low, distribution.high, distribution.undefined]
            for level in LEVELS:
                found += [end[i] for end in band.intervals[level]]
                expected += [quantile(distribution, 0.5 - level / 2), quantile(distribution, 0.5 + level / 2)]
            # Sums of 2^7 products, each rounded to 1e-16.
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=f"{name} at {threshold}")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_bounds_and_chances_of_0_by_0_equal_brute_force(seed, weighted):
    y, score, weight, p = small_problem(seed, weighted=weighted)
    y[y == 1.0] = 0.0  # no labeled positive: recall and F1 are 0/0 with some probability
    problem = y, score, weight, p
    thresholds = [-1.0, *np.unique(score), 2.0]
    curves = dm.threshold_curves(
        evaluated(problem, zero_division=math.nan), metrics=NAMES, thresholds=thresholds, method="gaussian"
    )
    for name, band in curves.items():
        for i, threshold in enumerate(thresholds):
            distribution = brute_force(name, problem, threshold, math.nan)
            found = [band.lowest_possible[i], band.highest_possible[i], band.undefined[i]]
            # Products of at most 7 chances and sums of half weights: a few roundings.
            np.testing.assert_allclose(
                found, [distribution.low, distribution.high, distribution.undefined], rtol=0, atol=1e-12
            )


def test_gaussian_bands_have_the_mean_and_variance_of_the_paper():
    y, score, _, p = small_problem(5, missing=9, n=24)
    curves = dm.threshold_curves(evaluated((y, score, np.ones(24), p)), metrics=["recall", "f1"], method="gaussian")
    missing = np.isnan(y)
    for i, threshold in enumerate(curves.thresholds):
        d = (score >= threshold).astype(float)
        known = np.where(missing, 0.0, y)
        chance = np.zeros(24)
        chance[missing] = p
        v = chance * (1 - chance)
        for name, a, b, fixed in (("recall", d, np.ones(24), 0.0), ("f1", 2 * d, np.ones(24), d.sum())):
            mu_z, mu_w = a @ (known + chance), fixed + b @ (known + chance)
            var_z, var_w, cov = a**2 @ v, b**2 @ v, (a * b) @ v
            sd = math.sqrt((mu_z**2 * var_w + mu_w**2 * var_z - 2 * cov * mu_z * mu_w) / mu_w**4)
            low, high = curves[name].intervals[0.9]
            # 1.6448536 standard deviations hold 90% of a Gaussian; sums of 24 rows.
            ends = mu_z / mu_w + np.array([-1, 1]) * 1.6448536269514722 * sd
            # They are cut where the metric cannot be: here by hand, with all missing rows wrong and all right.
            values = [a @ (known + x) / (fixed + b @ (known + x)) for x in (missing * (1 - d), missing * d)]
            np.testing.assert_allclose(
                [curves[name].mean[i], low[i], high[i]], [mu_z / mu_w, *np.clip(ends, *values)], rtol=0, atol=1e-12
            )


def test_labeled_only_and_flagged_are_those_of_the_rows():
    y, score, _, _ = problem = small_problem(1)
    curves = dm.threshold_curves(evaluated(problem), thresholds="all")
    kept = ~np.isnan(y)
    for i, threshold in enumerate(curves.thresholds):
        assert curves.flagged[i] == pytest.approx(np.mean(score >= threshold), abs=1e-15)
        expected = oracle.sklearn_value("f1", y[kept], score[kept], score[kept] >= threshold, np.ones(kept.sum()))
        assert curves["f1"].labeled_only[i] == pytest.approx(expected, abs=1e-14)


def test_a_cost_and_a_formula_of_ones_own_have_bands():
    problem = small_problem(2)
    own = dm.metrics.ConfusionMetric(name="alarms per hit", formula=lambda tp, fp, fn, tn: (tp + fp) / (tp + 1))
    cost = dm.metrics.expected_cost(1, 10)
    for method in ("exact", "gaussian"):
        curves = dm.threshold_curves(evaluated(problem), metrics=[own, cost, "g_mean"], method=method)
        assert list(curves) == ["alarms per hit", "expected_cost(1, 10)", "g_mean"]
        assert np.isfinite(curves["alarms per hit"].mean).all()


def test_names_mean_what_they_mean_in_the_evaluation():
    result = dm.evaluate(
        [1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), metrics={"cost": "expected_cost(1, 10)"}
    )
    assert dm.threshold_curves(result, metrics="cost").at(0.5)["cost"]["mean"] == pytest.approx(
        result["cost"].mean(), abs=1e-12
    )


def test_the_value_of_0_by_0_is_that_of_the_evaluation():
    result = dm.evaluate(
        [1, 0, None],
        [0.9, 0.4, 0.7],
        missingness=dm.missing.Fixed([0.8]),
        metrics=["accuracy", "recall"],
        zero_division=1,
    )
    assert dm.threshold_curves(result, metrics="precision", thresholds=[2.0])["precision"].mean.tolist() == [1.0]
    told = dm.evaluate(
        [1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), metrics="recall", zero_division="warn"
    )
    assert dm.threshold_curves(told, metrics="precision", thresholds=[2.0])["precision"].mean.tolist() == [0.0]


# ------------------------------------------------------------------------------------------------- thresholds


def test_the_default_grid_has_the_ends_of_the_scores_and_the_current_threshold():
    rng = np.random.default_rng(0)
    score = rng.random(5000)
    result = dm.evaluate(
        np.where(rng.random(5000) < 0.1, np.nan, 1.0), score, missingness=dm.missing.Fixed(0.5), threshold=0.3
    )
    grid = dm.threshold_curves(result, method="gaussian").thresholds
    assert grid.size == 201
    assert {float(score.min()), float(score.max()), 0.3} <= set(grid.tolist())
    assert np.all(np.diff(grid) > 0)
    assert dm.threshold_curves(result, thresholds=10, method="gaussian").thresholds.size == 11


def test_the_default_grid_is_dense_where_few_rows_are_flagged():
    # Evenly spaced ranks would leave two thresholds in a hundred to those who flag two rows in a hundred.
    score = np.random.default_rng(0).random(20_000)
    result = dm.evaluate(np.where(np.arange(20_000) % 10 == 0, np.nan, 1.0), score, missingness=dm.missing.Fixed(0.5))
    curves = dm.threshold_curves(result, thresholds=100, method="gaussian")
    assert np.sum(curves.flagged <= 0.02) >= 20
    assert np.sum(curves.flagged > 0.5) >= 20


def test_all_thresholds_are_the_different_scores_and_the_current_one():
    problem = small_problem(0)
    curves = dm.threshold_curves(evaluated(problem, threshold=0.3), thresholds="all")
    assert curves.thresholds.tolist() == sorted({*problem[1].tolist(), 0.3})


def test_thresholds_given_are_sorted_and_kept_once():
    curves = dm.threshold_curves(evaluated(small_problem(0)), thresholds=[0.7, 0.2, 0.7])
    assert curves.thresholds.tolist() == [0.2, 0.7]
    assert curves.at(0.6)["recall"]["threshold"] == 0.7


@pytest.mark.parametrize(("wanted", "found"), [(-9.0, 0.2), (0.4, 0.2), (0.46, 0.7), (9.0, 0.7)])
def test_the_nearest_threshold_is_found_for_every_number(wanted, found):
    curves = dm.threshold_curves(evaluated(small_problem(0)), thresholds=[0.2, 0.7])
    assert curves.at(wanted)["recall"]["threshold"] == found


def test_more_thresholds_than_scores_are_all_scores():
    result = evaluated(small_problem(0))
    every = dm.threshold_curves(result, metrics="recall", thresholds="all").thresholds
    # An array of that many numbers would not fit into memory.
    np.testing.assert_array_equal(dm.threshold_curves(result, metrics="recall", thresholds=10**15).thresholds, every)


def test_confidence_levels_are_printed_with_the_digits_they_have():
    result = evaluated(small_problem(0), confidence_level=0.995)
    curves = dm.threshold_curves(result, confidence_levels=[0.5, 0.975])
    assert "In brackets: 97.5% intervals" in str(curves)
    assert "mean, 50%, 97.5%, bounds" in repr(curves["recall"])
    assert "99.5% interval" in str(result)
    assert "with probability 97.5% it is" in str(
        dm.threshold_curves(result, thresholds=[0.3]).best_threshold("recall", risk=0.025)
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thresholds": "every"}, "thresholds: expected None, a number, 'all' or an array, got 'every'"),
        ({"thresholds": 0}, "thresholds: 0. At least one"),
        ({"thresholds": []}, "thresholds: expected a one-dimensional array"),
        ({"thresholds": 0.5}, "thresholds: 0.5. Give [0.5] for one threshold"),
        ({"thresholds": [0.1, math.nan]}, "thresholds: nan at position 1"),
        ({"thresholds": [0.1, math.inf]}, "thresholds: inf at position 1"),
        ({"thresholds": ["a"]}, "thresholds: expected"),
        ({"metrics": "roc_auc"}, "metrics: 'roc_auc' does not depend on the threshold"),
        ({"metrics": "precison"}, "Did you mean 'precision'"),
        ({"metrics": []}, "metrics: none"),
        ({"method": "bootstrap"}, "method: unknown method 'bootstrap'"),
        ({"confidence_levels": [0.9, 90]}, "confidence_levels: [0.9, 90]. They must be different numbers"),
        ({"confidence_levels": [0.9, 0.9]}, "confidence_levels: [0.9, 0.9]. They must be different numbers"),
        ({"confidence_levels": []}, "confidence_levels: []. They must be"),
    ],
)
def test_bad_arguments_say_what_is_wrong(settings, message):
    with pytest.raises(dm.InputError, match=re.escape(message)):
        dm.threshold_curves(evaluated(small_problem(0)), **settings)


def test_given_decisions_have_no_threshold_to_move():
    result = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], y_pred=[1, 0, 1], missingness=dm.missing.Fixed([0.8]))
    with pytest.raises(dm.InputError, match=r"evaluation: its decisions were given \(y_pred\)"):
        dm.threshold_curves(result)
    with pytest.raises(dm.InputError, match="No threshold changes such predictions"):
        result.data.with_threshold(0.3)


def test_only_an_evaluation_has_curves():
    rows: Any = dm.EvaluationSet([1, 0], [0.9, 0.1])
    with pytest.raises(dm.InputError, match="evaluation: expected what evaluate"):
        dm.threshold_curves(rows)


def test_laws_one_by_one_have_a_limit_on_thresholds_and_sums_have_none():
    rng = np.random.default_rng(0)
    score = rng.random(2500)
    result = dm.evaluate(
        np.where(rng.random(2500) < 0.2, np.nan, score > 0.5), score, missingness=dm.missing.Fixed(score)
    )
    assert dm.threshold_curves(result, thresholds="all", metrics=["f1", "mcc"]).thresholds.size == 2501
    with pytest.raises(dm.InputError, match="at most 2,000 are possible"):
        dm.threshold_curves(result, thresholds="all", method="exact")


def test_a_set_at_another_threshold_is_the_set_built_with_it():
    y, score, _, p = small_problem(3)
    moved = dm.EvaluationSet(y, score, missingness=dm.missing.Fixed(p)).with_threshold(0.25)
    built = dm.EvaluationSet(y, score, missingness=dm.missing.Fixed(p), threshold=0.25)
    assert moved.threshold == 0.25
    assert moved.cells.decision.tolist() == built.cells.decision.tolist()
    assert str(moved) == str(built)


# ----------------------------------------------------------------------------------------------- rate curves


@pytest.mark.parametrize("method", ["exact", "gaussian"])
def test_roc_begins_and_ends_in_its_corners_and_never_turns_back(method):
    roc = dm.threshold_curves(evaluated(small_problem(4)), thresholds=[0.3, 0.5, 0.6], method=method).roc()
    assert (roc.x_name, roc.y_name) == ("fpr", "recall")
    for band in (roc.x, roc.y):
        # Rates of everything and of nothing; the sums of probabilities that both laws add up are rounded.
        assert band.mean[[0, -1]] == pytest.approx([1.0, 0.0], abs=1e-14)
        assert np.all(np.diff(band.mean) <= 1e-14)


def test_roc_without_missing_labels_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 20, 200) / 20
    y = (rng.random(200) < score).astype(int)
    roc = dm.threshold_curves(dm.evaluate(y, score), thresholds="all").roc()
    fpr, tpr, thresholds = roc_curve(y, score, drop_intermediate=False)
    at = np.searchsorted(roc.thresholds, thresholds)
    np.testing.assert_allclose(roc.x.mean[at], fpr, atol=1e-15)
    np.testing.assert_allclose(roc.y.mean[at], tpr, atol=1e-15)
    np.testing.assert_array_equal(roc.y.intervals[0.9][0], roc.y.intervals[0.9][1])


def test_precision_recall_has_no_point_where_nothing_is_flagged():
    problem = small_problem(4)
    curve = dm.threshold_curves(evaluated(problem), thresholds=[-1.0, 0.5, 5.0]).precision_recall()
    assert (curve.x_name, curve.y_name) == ("recall", "precision")
    assert curve.thresholds.tolist() == [-1.0, problem[1].min(), 0.5]
    assert curve.x.mean[0] == pytest.approx(1.0, abs=1e-14)
    assert np.isfinite(curve.y.mean).all()


def test_precision_recall_of_labeled_rows_is_scikit_learns_and_ends_where_none_of_them_is_flagged():
    rng = np.random.default_rng(5)
    score = rng.random(300)
    y = (rng.random(300) < score).astype(float)
    y[score > 0.8] = np.nan  # the highest scores have no label
    curve = dm.threshold_curves(
        dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics="recall"), thresholds="all"
    ).precision_recall()
    known = ~np.isnan(y)
    precision, recall, thresholds = precision_recall_curve(y[known], score[known])
    at = np.searchsorted(curve.thresholds, thresholds)
    # The last point of scikit-learn is that of no threshold.
    np.testing.assert_allclose(curve.y.labeled_only[at], precision[:-1], atol=1e-15)
    np.testing.assert_allclose(curve.x.labeled_only[at], recall[:-1], atol=1e-15)
    np.testing.assert_array_equal(np.isnan(curve.y.labeled_only), curve.thresholds > score[known].max())
    assert np.isfinite(curve.y.mean).all()


# -------------------------------------------------------------------------------------------------- the result


def test_the_result_is_a_mapping_with_tables_and_plain_numbers():
    curves = dm.threshold_curves(evaluated(small_problem(0), zero_division=math.nan), thresholds=[0.2, 0.5, 2.0])
    assert list(curves) == ["precision", "recall", "f1", "accuracy"]
    assert len(curves) == 4
    with pytest.raises(KeyError, match="unknown metric 'roc'"):
        curves["roc"]
    plain = curves.to_dict()
    assert plain["schema"] == "darkmetrics.curves/1"
    assert json.loads(json.dumps(plain)) == plain
    assert plain["metrics"]["precision"]["mean"][2] is None  # 0/0
    assert "undefined" in str(curves)
    assert "<table>" in curves._repr_html_()
    frame = curves.to_frame("pandas")
    assert frame.shape == (12, 12)
    assert frame["low_90"][3:6].tolist() == curves["recall"].intervals[0.9][0].tolist()


def test_a_table_shows_about_ten_thresholds():
    rng = np.random.default_rng(0)
    score = rng.random(500)
    result = dm.evaluate(
        np.where(rng.random(500) < 0.2, np.nan, score > 0.5), score, missingness=dm.missing.Fixed(score)
    )
    _, *tables, _ = str(dm.threshold_curves(result, method="gaussian")).split("\n\n")
    assert [len(table.splitlines()) for table in tables] == [1 + 10] * 2
    assert max(len(line) for table in tables for line in table.splitlines()) <= 80


def large_evaluation(n, *, weighted=False, **settings):
    rng = np.random.default_rng(0)
    score = rng.random(n) ** 2
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score)
    weight = rng.lognormal(size=n) if weighted else None
    return dm.evaluate(y, score, sample_weight=weight, metrics="f1", **settings)


def test_auto_is_exact_for_few_missing_rows_and_drawn_for_many():
    small, large = (large_evaluation(n, missingness=dm.missing.Fixed(0.5)) for n in (60, 20_000))
    assert dm.threshold_curves(small).method == "exact"
    assert dm.threshold_curves(large).method == "monte_carlo"
    assert dm.threshold_curves(large, thresholds=2000).method == "gaussian"


def test_auto_is_drawn_where_weights_leave_no_exact_distribution():
    assert (
        dm.threshold_curves(large_evaluation(60, weighted=True, missingness=dm.missing.Fixed(0.5))).method
        == "monte_carlo"
    )
    assert (
        dm.threshold_curves(large_evaluation(20, weighted=True, missingness=dm.missing.Fixed(0.5))).method == "exact"
    )  # all are enumerated


def test_a_metric_without_exact_distribution_is_drawn_or_refused():
    bumpy = dm.metrics.ConfusionMetric(name="bumpy", formula=lambda tp, fp, fn, tn: np.sin(tp) + np.sin(fn))
    result = large_evaluation(100_000, missingness=dm.missing.Fixed(0.5))
    assert dm.threshold_curves(result, metrics=bumpy, thresholds=[0.2]).method == "monte_carlo"
    with pytest.raises(dm.exceptions.MethodError, match=r"metric: 'bumpy', threshold: 0\.2"):
        dm.threshold_curves(result, metrics=bumpy, thresholds=[0.2], method="exact")


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_of_all_metrics_take_seconds(weighted):
    result = large_evaluation(9000, weighted=weighted)
    every = [metric for metric in dm.metrics.metrics_from("all") if isinstance(metric, dm.metrics.ConfusionMetric)]
    begin = time.process_time()
    curves = dm.threshold_curves(result, metrics=every)
    # 2 to 4 seconds on a quiet machine; mcc alone took 30 when each threshold was a distribution of its own.
    assert time.process_time() - begin < 15.0
    assert all(np.isfinite(band.mean).any() for band in curves.values())


def test_the_schema_page_names_every_key_of_to_dict():
    plain = dm.threshold_curves(evaluated(small_problem(0)), metrics="recall").to_dict()
    entry = plain["metrics"]["recall"]
    page = (Path(__file__).parents[1] / "docs/reference/curves.md").read_text(encoding="utf-8")
    section = page.partition("## to_dict\n")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == {*plain, *entry, *entry["intervals"][0]}
