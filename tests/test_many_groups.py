"""Many groups: equal to evaluations of single groups, in any number of processes; computations that groups share."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import darkmetrics as dm
from darkmetrics.distributions.expansion import compute_lattice_errors
from darkmetrics.monitoring.borrowing import _find_shift

METRICS = ["precision", "recall", "accuracy", "f1", "roc_auc"]


@pytest.fixture(autouse=True)
def ignore_warnings_about_small_groups():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def simulate_groups(n_groups, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(1.2, 2.5, n_groups * n_rows)
    label = (rng.random(score.size) < score).astype(float)
    label[rng.random(score.size) < 0.3 + 0.3 * score] = np.nan
    return pd.DataFrame({"group": np.repeat(np.arange(n_groups), n_rows), "label": label, "score": score})


def list_numbers(summary):
    return [
        [number.mean, number.low, number.high, number.lowest_possible, number.highest_possible, number.undefined]
        for number in summary.metrics.values()
    ]


@pytest.mark.parametrize("missingness", [None, "by_score", "by_label"])
@pytest.mark.parametrize(("n_groups", "n_rows"), [(12, 10), (3, 400)])
def test_evaluate_by_equals_evaluate_of_each_group(missingness, n_groups, n_rows):
    table = simulate_groups(n_groups, n_rows)
    result = dm.evaluate_by(
        "label", "score", data=table, by="group", metrics=METRICS, missingness=missingness, score_bins="exact"
    )
    n_compared = 0
    for (group,), summary in result.groups.items():
        rows = table[table["group"] == group]
        if summary.metrics["recall"].method == "bounds":  # too few labels for a distribution
            continue
        single = dm.evaluate(rows["label"], rows["score"], metrics=METRICS, missingness=missingness)
        expected = [[d.mean(), *d.interval(0.9), *d.support(), d.undefined] for d in (single[name] for name in METRICS)]
        np.testing.assert_allclose(list_numbers(summary), expected, rtol=0.0, atol=1e-12)
        assert [warning.message for warning in single.warnings] == [warning.message for warning in summary.warnings]
        n_compared += 1
    assert n_compared >= 3


@pytest.mark.parametrize("n_rows", [40, 300])
def test_lattice_errors_equal_the_integral_of_the_characteristic_function(n_rows):
    rng = np.random.default_rng(0)
    # Influences that are multiples of one number, and influences of any size.
    z = np.stack([rng.integers(1, 4, n_rows) * 0.25, rng.normal(size=n_rows), np.zeros(n_rows)])
    v = rng.uniform(0.01, 0.25, z.shape)
    sd = np.sqrt((v * z * z).sum(axis=1))
    errors = compute_lattice_errors(z, v, sd)
    frequency = np.arange(4.0, 512.0)
    for draw in range(2):
        exponent = v[draw] @ (np.cos(np.outer(z[draw] / sd[draw], frequency)) - 1.0)
        expected = (np.exp(exponent) / (np.pi * frequency)).sum()
        # More than 64 rows are represented by 64 quantiles.
        assert errors[draw] == pytest.approx(expected, rel=1e-3 if n_rows <= 64 else 0.5, abs=1e-4)
    assert errors[0] > 5.0 * errors[1]  # only the first has a lattice
    assert errors[2] == 1.0  # no row decides


@pytest.mark.parametrize("spread", [0.1, 2.0, 15.0])
def test_borrowed_shift_gives_the_expected_number_of_positives(spread):
    rng = np.random.default_rng(0)
    log_odds, rows = rng.normal(-2.0, spread, 30), np.full(30, 7.0)
    positives = np.linspace(0.0, rows.sum(), 9)
    target = (positives + 0.5) / (rows.sum() + 1.0) * rows.sum()
    expected = [brentq(lambda s, t=t: expit(log_odds + s) @ rows - t, -90.0, 90.0, xtol=1e-12) for t in target]
    np.testing.assert_allclose(_find_shift(log_odds, rows, positives), expected, rtol=0.0, atol=1e-6)
