"""A certificate as a thing to hold: what laws carry one, what survives storing, and what its words say."""

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
import oracle
from darkmetrics._kernels.auc.cdf_bounds import auc_line, auc_sums
from darkmetrics.distributions import Discrete, Mixture
from darkmetrics.distributions.functionals import BentForm
from oracle import Problem

METHODS = ("exact", "auto", "monte_carlo", "gaussian")
METRICS = ["recall", "accuracy", "mcc", "roc_auc", "brier"]


def evaluated(method, metrics=METRICS, n=80, **options):
    rng = np.random.default_rng(0)
    y_score = rng.random(n)
    y_true = np.where(rng.random(n) < 0.5, np.nan, rng.random(n) < y_score)
    settings: dict[str, Any] = {"rng": 0, "missingness": dm.missing.Fixed(y_score)} | options
    return dm.evaluate(y_true, y_score, metrics=metrics, method=method, **settings)


@pytest.mark.parametrize("method", METHODS)
def test_laws_are_stored_and_keep_their_bound(method):
    result = evaluated(method, n=800)
    for asked in (False, True):  # what was computed before must not matter
        if asked:
            result.to_dict(), str(result)
        for name, distribution in result.items():
            again = pickle.loads(pickle.dumps(distribution))
            assert again.mean() == distribution.mean(), name
            assert again.certificate.ks_bound == distribution.certificate.ks_bound, name
            assert again.certificate.theorem == distribution.certificate.theorem, name
            low, high = again.interval(0.9, certified=True)
            assert low <= distribution.interval(0.9).low + 1e-9, name
            assert high >= distribution.interval(0.9).high - 1e-9, name


@pytest.mark.parametrize("method", METHODS)
def test_a_metric_that_is_always_undefined_has_no_certificate(method):
    distribution = dm.evaluate(
        [0, None],
        [0.1, 0.2],
        missingness=dm.missing.Fixed(0.0),
        metrics="recall",
        method=method,
        zero_division=math.nan,
    )
    assert distribution["recall"].certificate is None
    assert np.isnan(distribution["recall"].interval(0.9, certified=True)).all()
    assert distribution.to_dict()["metrics"]["recall"]["ks_bound"] is None


def test_draws_that_are_all_undefined_break_nothing():
    few = dm.methods.MonteCarlo(5)
    distribution = dm.evaluate(
        [0, 0, None],
        [0.1, 0.2, 0.9],
        missingness=dm.missing.Fixed(1e-9),
        metrics="recall",
        method=few,
        rng=0,
        zero_division=math.nan,
    )
    assert distribution["recall"].certificate is None
    assert distribution.to_dict()["metrics"]["recall"]["mean"] is None


def test_a_certified_interval_of_draws_ends_at_atoms_and_holds_its_mass():
    """Precision is (1 + k) / 21 with k of 20 fair coins; the ends are values that it has, and in order."""
    y_true, y_score = [1, 0] + [None] * 40, np.concatenate(([0.9, 0.2], np.linspace(0.05, 0.95, 40)))
    distribution = dm.evaluate(
        y_true, y_score, missingness=dm.missing.Fixed(0.5), metrics="precision", method="monte_carlo", rng=0
    )["precision"]
    values = (1 + np.arange(21)) / 21
    masses = np.array([math.comb(20, k) for k in range(21)]) / 2**20
    for level in (0.1, 0.5, 0.9, 0.99):
        low, high = distribution.interval(level, certified=True)
        assert low <= high
        assert np.abs(values - low).min() < 1e-15
        assert np.abs(values - high).min() < 1e-15
        # To the last bit, and not up to rounding: an end next to an atom would lose it.
        assert masses[(values >= low) & (values <= high)].sum() >= level


def test_a_function_without_known_range_has_a_finite_certified_interval():
    distribution = evaluated("monte_carlo", {"mean": lambda y, s: float(np.mean(y))})["mean"]
    assert distribution.bounds == (-math.inf, math.inf)
    low, high = distribution.interval(0.9, certified=True)
    assert low <= distribution.interval(0.9).low <= distribution.interval(0.9).high <= high
    assert math.isfinite(low)
    assert math.isfinite(high)


def test_draws_of_weighted_counts_come_from_the_true_law():
    """Two of 18 rows decide: a law on a lattice has its atoms elsewhere, and the band would be around the wrong law."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40) < 18, np.nan, rng.random(40) < 0.5)
    score, weight, p = rng.random(40), rng.uniform(0.5, 1.5, 40), np.concatenate(([0.5, 0.5], np.full(16, 0.003)))
    problem = Problem(y, score, (score >= 0.5).astype(int), weight, p)
    truth = oracle.distribution(oracle.definition_of("precision"), problem)
    drawn = dm.evaluate(
        y,
        score,
        sample_weight=weight,
        missingness=dm.missing.Fixed(p),
        metrics="precision",
        method="monte_carlo",
        rng=0,
    )
    distribution = drawn["precision"]
    assert distribution.certificate is not None
    assert distribution.certificate.ks_bound < 0.02
    # Sums in another order differ in the last bits, so the cdfs are compared next to the atoms and not at them.
    t = np.concatenate([truth.values - 1e-9, truth.values + 1e-9])
    true, (lower, upper) = truth.cdf(t), distribution.certificate.cdf_bounds(t)
    assert np.abs(distribution.cdf(t) - true).max() <= distribution.certificate.ks_bound
    assert np.all((lower - 1e-12 <= true) & (true <= upper + 1e-12))  # a sum of 2^18 masses


def test_laws_of_weighted_counts_turn_into_dictionaries_at_once():
    """Their bound takes a search over sums: it is left out, and no part of a dictionary, until it is asked for."""
    rng = np.random.default_rng(0)
    y_score, weight = rng.random(300), rng.uniform(0.5, 1.5, 300)
    y_true = np.where(rng.random(300) < 0.3, np.nan, rng.random(300) < y_score)
    result = dm.evaluate(
        y_true, y_score, sample_weight=weight, missingness=dm.missing.Fixed(y_score), metrics=["recall", "f1"]
    )
    assert result["recall"].method == "near exact"
    assert result.to_dict()["metrics"]["recall"]["ks_bound"] is None
    certificate = result["recall"].certificate
    assert certificate is not None
    assert 0.0 < certificate.ks_bound < 0.3


def test_what_is_proven_stands_below_the_table():
    text = str(evaluated("gaussian", ["recall", "g_mean"]))
    recall = evaluated("gaussian", ["recall"])["recall"].certificate
    assert f"Probabilities have an error of at most {recall.ks_bound:.2g} (recall)." in text
    assert "No error bound is proven for g_mean." in text
    assert "99.9% sure" in str(evaluated("monte_carlo", ["recall"]))
    assert "error of at most" not in str(evaluated("exact", ["recall"]))


def test_a_certificate_reads_as_words_and_as_numbers():
    certificate = evaluated("gaussian", ["recall"])["recall"].certificate
    assert str(certificate).count("\n") == len(certificate.assumptions)
    assert repr(certificate).startswith("<Certificate: within ")
    assert json.loads(json.dumps(certificate.to_dict()))["ks_bound"] == certificate.ks_bound
    nothing = evaluated("gaussian", ["g_mean"])["g_mean"].certificate
    assert nothing.vacuous
    assert repr(nothing) == "<Certificate: says nothing (none)>"


def test_an_interval_without_proof_is_refused():
    data = dm.EvaluationSet([1, 0, 1, 0, 1, None], [0.9, 0.2, 0.6, 0.4, 0.7, 0.5])
    distribution = dm.paper.bootstrap(data, metrics="accuracy", rng=0)
    with pytest.raises(dm.exceptions.MethodError, match=r"certified: nothing is proven .* law found by 'bootstrap'"):
        distribution["accuracy"].interval(0.9, certified=True)


def test_a_form_that_is_not_the_formula_is_refused():
    youden = dm.metrics.ConfusionMetric(
        name="mistaken",
        formula=lambda tp, fp, fn, tn: tp / (tp + fn) - fp / (fp + tn),
        form=lambda yes, no: BentForm(np.array([0.0, yes, -no]), factor=1.0, power=1.0, total=yes + no),
    )
    with pytest.raises(dm.InputError, match="form: 'mistaken' has the value"):
        evaluated("gaussian", youden)


def test_bound_of_a_law_with_very_many_atoms_asks_few_of_them():
    """Rows of different weights have a hundred thousand values: at each of them every node was asked, for 12 s."""
    rng = np.random.default_rng(1)
    score = rng.random(60)
    y = np.where(rng.random(60) < 0.5, np.nan, rng.random(60) < score)
    distribution = dm.evaluate(y, score, sample_weight=rng.lognormal(size=60), metrics="roc_auc", missingness="random")[
        "roc_auc"
    ]
    assert isinstance(distribution, Discrete)
    assert distribution.atoms.size > 40_000
    certificate = distribution.certificate
    assert certificate is not None
    asked = []

    def counted(t, enclosure=certificate.enclosure):
        asked.append(t.size)
        return enclosure(t)

    found = replace(certificate, enclosure=counted).ks_bound
    assert sum(asked) < 5_000
    # It is a bound at each of the atoms, those that were not asked too, and hardly above the largest of what they say.
    some = distribution.atoms[:: distribution.atoms.size // 5000]
    lower, upper = certificate.cdf_bounds(some)
    gap = max(float((upper - distribution.cdf(some)).max()), float((distribution.cdf(some) - lower).max()))
    assert gap - 1e-15 <= found <= gap + 0.01  # up to the rounding of a sum


@pytest.mark.parametrize("n", [300, 15_000])  # the sums below each cell are kept of few cells, of many below blocks
def test_the_third_moment_behind_the_bounds_of_roc_auc_is_the_sum_over_rows(n):
    rng = np.random.default_rng(0)
    score, p = np.sort(rng.random(n)), rng.random(n)
    y = np.where(rng.random(n) < 0.5, np.nan, (rng.random(n) < score).astype(float))
    gone = np.isnan(y)
    functional = dm.metrics.roc_auc().bind(dm.EvaluationSet(y, score), math.nan)
    line = auc_line(auc_sums(functional.data, p[gone], None), 1.0, 0.0)
    assert line is not None
    t = np.append(rng.random(50), [0.0, 1.0])
    v, rank, expected = (p * (1.0 - p))[gone], (np.arange(n) + 0.5)[gone], np.nansum(y) + p[gone].sum()
    off = rank - (expected + t[:, None] * (n - 2.0 * expected))
    np.testing.assert_allclose(line.variance(t), (v * off**2).sum(axis=1), rtol=1e-9)
    # The bound allows for rounding of 1e-13 of the largest possible sum.
    np.testing.assert_allclose(line.third(t), (v * (1.0 - 2.0 * v) * np.abs(off) ** 3).sum(axis=1), rtol=1e-8)


def test_nodes_at_once_have_the_weighted_bounds_of_each_node():
    rng = np.random.default_rng(0)
    y_score = rng.random(400)
    y_true = np.where(rng.random(400) < 0.5, np.nan, rng.random(400) < y_score)
    result = dm.evaluate(
        y_true, y_score, missingness="by_score", method="gaussian", metrics=["recall", "f1", "roc_auc"]
    )
    for name, distribution in result.items():
        assert isinstance(distribution, Mixture)
        whole, t = distribution.certificate, np.linspace(0.0, 1.0, 41)
        parts = [part.certificate for part in distribution.components]
        bounds = [np.array(part.enclosure(t)) for part in parts if part is not None]
        gaps = [part.between(t) for part in parts if part is not None and part.between is not None]
        assert whole is not None
        assert whole.between is not None
        assert len(gaps) == len(bounds) == distribution.weight.size
        expected = np.einsum("i,ijk->jk", distribution.weight, np.array(bounds))
        np.testing.assert_allclose(np.array(whole.enclosure(t)), expected, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(whole.between(t), distribution.weight @ gaps, atol=1e-9, err_msg=name)
