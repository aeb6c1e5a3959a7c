"""Posteriors with many draws: far apart, nearly certain, and in memory."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy.special import expit, log_expit

import darkmetrics as dm
import oracle
from darkmetrics._kernels.log_odds import chance, log_chance
from darkmetrics.methods import Auto
from darkmetrics.posterior import Posterior

FAR = np.array([-1e300, -1e4, -800.0, -700.0, -40.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 40.0, 700.0, 800.0, 1e4, 1e300])


def test_chances_and_their_logs_are_those_of_scipy():
    x = np.append(FAR, np.random.default_rng(0).normal(0.0, 20.0, 1000))
    # Numbers below 1e-308 are zero here, and have fewer digits there.
    np.testing.assert_allclose(chance(x), expit(x), rtol=1e-14, atol=1e-307)
    np.testing.assert_allclose(log_chance(x), log_expit(x), rtol=1e-14, atol=0.0)
    near = x[np.abs(x) < 1e3]
    np.testing.assert_allclose(log_chance(near), log_expit(near), rtol=1e-14, atol=0.0)


def test_log_of_a_chance_has_all_its_digits():
    for x in (-3.0, 0.5, 30.0, 300.0):
        exact = -mpmath.log1p(mpmath.exp(-mpmath.mpf(x)))
        assert float(log_chance(np.array([x]))[0]) == pytest.approx(float(exact), rel=1e-15)


def of_nearly_sure_nodes(score, weight, p, share, ties):
    """ROC-AUC of all labelings within two rows of what some node is sure of, in rising order, and their levels.

    The oracle's definition on rows. With chances within 0.001 of an end, the others have 4e-6 together.
    """
    m = score.size
    near = np.array([(np.arange(m) == i) ^ (np.arange(m) == j) for i in range(m) for j in range(i + 1)])
    near = np.vstack([near, np.eye(m, dtype=bool)])
    y = np.unique(np.vstack([((row > 0.5) ^ near).astype(int) for row in p]), axis=0)
    mass = share @ [np.prod(np.where(y == 1, row, 1.0 - row), axis=1) for row in p]
    values = oracle.definition_of(f"roc_auc(ties={ties!r})")(y, score, None, weight)
    order = np.argsort(values, kind="stable")
    return values[order], np.cumsum(mass[order])


@pytest.mark.parametrize("ties", ["half", "full"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("posterior", [2, 5, 12])
def test_nodes_that_are_sure_of_labelings_of_their_own_have_the_law_of_brute_force(posterior, weighted, ties):
    for seed in range(2):
        rng = np.random.default_rng([posterior, weighted, seed])
        m = int(rng.integers(24, 36))
        # Tied rows have weights of their own, which keep them apart.
        score = rng.integers(0, 257, m) / 256 if weighted else rng.permutation(1025)[:m] / 1024
        weight = rng.lognormal(0.0, 1.0, m) if weighted else np.ones(m)
        order = np.lexsort((weight, score))
        score, weight = score[order], weight[order]
        p = rng.choice([1e-12, 1e-6, 1e-3, 1.0 - 1e-3, 1.0 - 1e-6], (posterior, m))
        share = rng.dirichlet(np.full(posterior, 2.0))
        data = dm.EvaluationSet(np.full(m, math.nan), score, sample_weight=weight)
        np.testing.assert_array_equal(data.cells.mass(data.cells.missing), weight)  # columns are in the order of rows
        functional = dm.metrics.roc_auc(ties=ties).bind(data, 0.0)
        distribution = next(Auto().distributions([functional], Posterior(share, p)))
        values, level = of_nearly_sure_nodes(score, weight, p, share, ties)
        # An assignment that a draw is nearly certain of has its place and its mass.
        heavy = np.flatnonzero(np.diff(level, prepend=0.0) > 0.02)
        edges = np.concatenate([values[heavy] - 1e-9, values[heavy] + 1e-9])
        expected = np.concatenate([[0.0], level])[np.searchsorted(values, edges, side="right")]
        np.testing.assert_allclose(distribution.cdf(edges), expected, rtol=0.0, atol=0.01, err_msg=str(seed))


def drawn_of_ties(known, missing, p, share, draws=400_000):
    """ROC-AUC with ties in full where each group of ties has one chance at each node: a binomial for each group."""
    rng = np.random.default_rng(8)
    node = rng.choice(share.size, draws, p=share)
    positive = known[1] + rng.binomial(missing, p[node])
    negative = known.sum(axis=0) + missing - positive
    right = (positive * np.cumsum(negative, axis=1)).sum(axis=1)
    return np.sort(right / (positive.sum(axis=1) * negative.sum(axis=1)))


@pytest.mark.parametrize("posterior", [3, 12])
def test_ties_in_full_are_right_at_nodes_that_expect_different_shares_of_a_group(posterior):
    rng = np.random.default_rng([posterior, 4])
    score, missing, known = np.arange(5) / 4.0, np.full(5, 100), rng.integers(20, 40, (2, 5))  # negatives, positives
    p, share = rng.uniform(0.1, 0.95, (posterior, 5)), rng.dirichlet(np.full(posterior, 2.0))
    labels = np.repeat([0.0, 1.0, math.nan], 5)
    counts = np.concatenate([*known, missing])
    data = dm.EvaluationSet(np.repeat(labels, counts), np.repeat(np.tile(score, 3), counts))
    functional = dm.metrics.roc_auc(ties="full").bind(data, math.nan)
    distribution = next(Auto().distributions([functional], Posterior(share, p)))
    values = drawn_of_ties(known, missing, p, share)
    # What is promised of such a law, and how far so many draws stray once in a million (DKW).
    slack = 0.01 + math.sqrt(math.log(2.0 / 1e-6) / (2.0 * values.size))
    at = np.linspace(0, values.size - 1, 500).astype(int)
    assert (
        np.abs(distribution.cdf(values[at]) - np.searchsorted(values, values[at], side="right") / values.size).max()
        < slack
    )


def test_five_metrics_of_many_rows_take_less_than_100_bytes_per_row():
    """Twelve powers of the rank of every missing row would be 29 bytes per row at once."""
    n, rng = 400_000, np.random.default_rng(0)
    score = rng.random(n)
    y = np.where(rng.random(n) < 0.3, math.nan, (rng.random(n) < score).astype(float))
    tracemalloc.start()
    try:
        dm.evaluate(y, score, missingness=dm.missing.Fixed(score))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * n
