"""Bands equal separate calls of `evaluate` at each threshold with the same probabilities of the missing labels."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import darkmetrics as dm
from believed import Believed
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics.curves import sums
from darkmetrics.distributions import Mixture, Normal
from darkmetrics.posterior import Posterior

NAMES = ["precision", "recall", "f1", "accuracy", "expected_cost(1, 10)", "specificity", "npv", "cohen_kappa"]
# What the issue asks for; both sides add up the same numbers in another order and search quantiles to 1e-13.
TOLERANCE = 1e-9


def rows(seed, n, *, missing=0.3, ties=False):
    rng = np.random.default_rng(seed)
    score = rng.random(n) ** 2
    if ties:
        score = np.round(score, 2)
    y = np.where(rng.random(n) < missing, np.nan, rng.random(n) < score)
    return y, score, rng


def assert_equal_evaluate(result, curves, fill):
    """Every figure of every band, against `evaluate` with the nodes fixed; these belong to cells, which stay."""
    for i, threshold in enumerate(curves.thresholds.tolist()):
        data = result.data.with_threshold(threshold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
            there = dm.evaluate(
                data,
                missingness=Believed(result.posterior),
                metrics=list(curves.metrics.values()),
                method=curves.method,
                zero_division=fill,
            )
        for name, band in curves.items():
            distribution = there[name]
            expected = [distribution.mean(), *distribution.support(), there.labeled_only[name], distribution.undefined]
            found = [
                band.mean[i],
                band.lowest_possible[i],
                band.highest_possible[i],
                band.labeled_only[i],
                band.undefined[i],
            ]
            for level, (low, high) in band.intervals.items():
                # A band stays within the bounds, which a Gaussian may leave.
                expected += [*np.clip(distribution.interval(level), *distribution.support())]
                found += [low[i], high[i]]
            np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE, err_msg=f"{name} at {threshold}")


def thresholds_of(score):
    """Twenty, among them below all scores, above all, the ends themselves and in between."""
    return np.unique([-1.0, score.min(), score.max(), 2.0, *np.quantile(score, np.linspace(0.02, 0.999, 16))])


@pytest.mark.parametrize("fill", ["warn", np.nan, 0, 1])
@pytest.mark.parametrize("method", ["exact", "gaussian"])
@pytest.mark.parametrize("ties", [False, True])
def test_bands_equal_evaluate_with_known_probabilities(method, ties, fill):
    y, score, _ = rows(0, 400, ties=ties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), zero_division=fill)
    curves = dm.threshold_curves(result, metrics=[*NAMES, "mcc"], thresholds=thresholds_of(score), method=method)
    assert_equal_evaluate(result, curves, fill)


@pytest.mark.parametrize(("method", "n"), [("exact", 150), ("gaussian", 150), ("gaussian", 4000)])
def test_bands_equal_evaluate_with_the_default_label_model(method, n):
    y, score, _ = rows(1, n)
    # A few nodes of each reason do, and take less time than the 64 there are by default.
    result = dm.evaluate(y, score, missingness=dm.missing.Unknown(n_draws=6), metrics="recall")
    assert len(result.posterior) == 12
    curves = dm.threshold_curves(result, metrics=NAMES[:5], thresholds=thresholds_of(score), method=method)
    assert curves.thresholds.size == 20
    assert_equal_evaluate(result, curves, "warn")


def test_bands_of_all_default_nodes_equal_evaluate():
    y, score, _ = rows(1, 1000)
    result = dm.evaluate(y, score, metrics="recall")
    assert len(result.posterior) == 128
    assert_equal_evaluate(
        result, dm.threshold_curves(result, metrics="f1", thresholds=[0.1, 0.4], method="gaussian"), "warn"
    )


def test_gaussian_bands_equal_evaluate_with_weights():
    y, score, rng = rows(2, 300, ties=True)
    weight = rng.uniform(0.0, 3.0, 300).round(1)
    result = dm.evaluate(y, score, missingness=dm.missing.Unknown(n_draws=6), sample_weight=weight, metrics="recall")
    curves = dm.threshold_curves(result, metrics=NAMES, thresholds=thresholds_of(score)[::3], method="gaussian")
    assert_equal_evaluate(result, curves, "warn")


def test_exact_bands_equal_evaluate_with_weights():
    y, score, rng = rows(3, 30)
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), sample_weight=rng.uniform(0.5, 3.0, 30))
    curves = dm.threshold_curves(result, metrics=NAMES, thresholds=thresholds_of(score), method="exact")
    assert_equal_evaluate(result, curves, "warn")


@pytest.mark.parametrize("method", ["exact", "gaussian"])
@pytest.mark.parametrize("missing", [0.0, 1.0])
@pytest.mark.parametrize("fill", [np.nan, 0, 1])
def test_bands_equal_evaluate_with_all_labels_and_with_none(missing, method, fill):
    y, score, _ = rows(4, 60, missing=missing)
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), zero_division=fill)
    curves = dm.threshold_curves(result, metrics=NAMES, thresholds=thresholds_of(score), method=method)
    assert_equal_evaluate(result, curves, fill)


@pytest.mark.parametrize("fill", [np.nan, 0, 1])
def test_gaussian_bands_equal_evaluate_where_nodes_are_sure_of_some_or_all_rows(fill):
    y, score, rng = rows(5, 40)
    missing = int(np.isnan(y).sum())
    y[y == 1.0] = 0.0
    p = rng.random((6, missing)) * (rng.random((6, missing)) < 0.5)
    p[0] = 0.0  # this node is sure, and recall is 0/0 there
    p[1] = rng.integers(0, 2, missing)
    for chosen in (slice(None), [0, 1], [1], [0]):
        weight = np.full(len(p[chosen]), 1.0 / len(p[chosen]))
        result = dm.evaluate(y, score, missingness=Believed(Posterior(weight, p[chosen])), zero_division=fill)
        curves = dm.threshold_curves(result, metrics=NAMES, thresholds=thresholds_of(score), method="gaussian")
        assert_equal_evaluate(result, curves, fill)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learned", [False, True])
def test_drawn_bands_are_near_evaluate(learned, weighted):
    y, score, rng = rows(9, 3000)
    weight = rng.lognormal(size=3000) if weighted else None
    settings: dict[str, Any] = {} if learned else {"missingness": dm.missing.Fixed(score)}
    result = dm.evaluate(y, score, sample_weight=weight, metrics="recall", **settings)
    thresholds = np.quantile(score, [0.0, 0.02, 0.1, 0.5, 0.9, 0.99, 0.999])
    names = ["precision", "recall", "f1", "accuracy", "mcc", "balanced_accuracy", "npv"]
    curves = dm.threshold_curves(result, metrics=names, thresholds=thresholds, method="monte_carlo")
    for i, threshold in enumerate(thresholds.tolist()):
        single = dm.evaluate(
            result.data.with_threshold(threshold),
            missingness=Believed(result.posterior),
            metrics=names,
            zero_division=0,
        )
        for name, band in curves.items():
            distribution = single[name]
            assert band.undefined[i] == pytest.approx(distribution.undefined, abs=0.005)
            if distribution.std() < 1e-9:
                assert band.mean[i] == pytest.approx(distribution.mean(), abs=1e-9)
                continue
            assert band.mean[i] == pytest.approx(distribution.mean(), abs=0.03 * distribution.std())
            for level, ends in band.intervals.items():
                for end, q in zip((end[i] for end in ends), (0.5 - level / 2, 0.5 + level / 2), strict=True):
                    # The cdf jumps over q within rounding of the value; both sides are drawn where few rows decide.
                    room = 1e-9 * max(1.0, abs(end))
                    assert distribution.cdf(end - room) - 0.02 <= q <= distribution.cdf(end + room) + 0.02, (
                        name,
                        threshold,
                        level,
                    )


def test_a_denominator_that_changes_its_sign_takes_each_threshold_by_itself():
    y, score, _ = rows(6, 60)
    odd = dm.metrics.ConfusionMetric(
        name="odd", formula=(dm.metrics.TP + dm.metrics.FN) / (dm.metrics.TP + -1.0 * dm.metrics.FP)
    )
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics=odd, zero_division=np.nan)
    curves = dm.threshold_curves(result, metrics=odd, thresholds=[0.05, 0.3, 0.9], method="gaussian")
    assert_equal_evaluate(result, curves, np.nan)


def test_bands_do_not_depend_on_how_thresholds_are_split_into_ranges(monkeypatch):
    y, score, rng = rows(7, 300)
    weight = rng.uniform(0.5, 2.0, 300)
    result = dm.evaluate(y, score, missingness=dm.missing.Unknown(n_draws=6), sample_weight=weight, metrics="recall")
    whole = dm.threshold_curves(result, thresholds="all", method="gaussian").to_dict()["metrics"]
    monkeypatch.setattr(sums, "_MAX_NUMBERS", 5 * len(result.posterior))
    parts = dm.threshold_curves(result, thresholds="all", method="gaussian").to_dict()["metrics"]
    for name in whole:
        for column in ("mean", "lowest_possible", "highest_possible"):
            np.testing.assert_allclose(
                np.array(parts[name][column], float), np.array(whole[name][column], float), rtol=0, atol=1e-12
            )  # sums of 300 numbers in another order


def test_far_above_most_rows_sums_keep_their_digits():
    # Three missing rows above a threshold, 100,000 below: a difference of totals would be off by 1e-11 and more.
    rng = np.random.default_rng(8)
    p = rng.random(100_003)
    score = np.append(np.linspace(0.0, 0.8, 100_000), [0.9, 0.91, 0.92])
    result = dm.evaluate(
        np.append(np.full(100_003, np.nan), 1.0),
        np.append(score, 0.95),
        missingness=dm.missing.Fixed(p),
        threshold=0.85,
    )
    band = dm.threshold_curves(result, metrics="precision", thresholds=[0.85], method="gaussian")["precision"]
    assert band.mean[0] == pytest.approx((1.0 + p[-3:].sum()) / 4.0, abs=1e-15)


@settings(max_examples=60)
@given(data=st.data())
def test_quantiles_of_many_mixtures_equal_those_of_one(data):
    k, size = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weight = rng.dirichlet(np.ones(k), size).T
    mean = rng.normal(size=(k, size)) * data.draw(st.sampled_from([0.0, 1e-3, 1.0, 50.0]))
    sd = rng.exponential(size=(k, size)) * (rng.random((k, size)) < data.draw(st.sampled_from([0.0, 0.6, 1.0])))
    q = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    found = normal_mixture_quantiles(q, weight, mean, sd)
    for j in range(size):
        distributions = [Normal(loc=float(m), scale=float(s)) for m, s in zip(mean[:, j], sd[:, j], strict=True)]
        expected = Mixture(components=distributions, weight=weight[:, j]).ppf(q)
        # Between far-apart components the cdf is flat, and where it is below 1e-9 a quantile is not determined better.
        np.testing.assert_allclose(found[:, j], expected, rtol=0, atol=1e-9 * max(1.0, np.abs(mean).max()))


@pytest.mark.parametrize("wide", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("found_by", ["law", "curves"])
def test_a_component_of_any_width_leaves_quantiles_their_digits(found_by, wide):
    # Fuzz 5000763: one node of little weight is 1e10 times as wide, and levels were off by 0.004.
    weight, mean, sd = np.array([0.8, 0.2 - 1e-5, 1e-5]), np.array([1.2, 1.7, wide]), np.array([0.004, 0.0003, wide])
    q = np.array([0.05, 0.5, 0.9, 0.95])
    if found_by == "curves":
        found = normal_mixture_quantiles(q, *(part[:, None] for part in (weight, mean, sd)))[:, 0]
    else:
        distributions = [Normal(loc=float(m), scale=float(s)) for m, s in zip(mean, sd, strict=True)]
        found = Mixture(components=distributions, weight=weight).ppf(q)
    # A value is known to 1e-13, of which the narrowest spread makes 1e-9 of a level.
    np.testing.assert_allclose(scipy.stats.norm.cdf(found[:, None], mean, sd) @ weight, q, rtol=0.0, atol=1e-9)
