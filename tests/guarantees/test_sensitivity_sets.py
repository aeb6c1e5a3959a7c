"""Sensitivity on 500 random sets: equal to brute force over all tilts, and wider for larger factors."""

import numpy as np
import pytest

import darkmetrics as dm
from brute_force_over_tilts import BruteForce, random_rows

pytestmark = [pytest.mark.guarantees, pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")]

N_SETS, N_BLOCKS = 500, 20
BLOCKS = np.array_split(np.arange(N_SETS), N_BLOCKS)
PARAMETERS = {"fbeta": "fbeta(2)", "precision_at_k": "precision_at_k(4)", "recall_at_k": "recall_at_k(0.3)"}
PARAMETERS |= {"lift_at_k": "lift_at_k(3)", "expected_cost": "expected_cost(1, 5)"}
NAMES = [PARAMETERS.get(name, name) for name in dm.metrics.registered_names()]


def names_of(seed, n_others):
    """Return ROC-AUC and some of the other metrics, which take turns."""
    return ["roc_auc", *(NAMES[(n_others * seed + k) % len(NAMES)] for k in range(n_others))]


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: str(seeds[0]))
def test_sensitivity_equals_brute_force_over_all_tilts(seeds):
    for seed in seeds:
        label, score, p, odds = random_rows(int(seed))
        names = list(dict.fromkeys(names_of(seed, 5)))
        result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics=names).sensitivity(odds)
        expected = BruteForce(label, score, p, odds)
        for name in names:
            assert result[name] == pytest.approx(expected.ends(name), rel=1e-9, abs=1e-9, nan_ok=True), (seed, name)


def test_largest_factors_alone_miss_ends_of_roc_auc():
    """Negative control: an incomplete search must fail."""
    missed = 0
    for seed in range(200):
        rows = random_rows(seed)
        corners = BruteForce(*rows, corners_only=True)
        missed += corners.ends("roc_auc") != pytest.approx(BruteForce(*rows).ends("roc_auc"))
    assert missed >= 20


def rows_of_any_size(seed):
    """Return labels, scores and settings; every second set has 30 to 500 rows."""
    if seed % 2:
        label, score, p, _ = random_rows(seed)
        return label, score, {"missingness": dm.missing.Fixed(p)}
    rng = np.random.default_rng(seed)
    score = rng.random(int(rng.integers(30, 500))).round(int(rng.integers(2, 5)))
    label = np.where(rng.random(score.size) < rng.uniform(0.1, 0.6), np.nan, rng.random(score.size) < score)
    return label, score, {"missingness": dm.missing.Fixed(rng.uniform(0.05, 0.95, int(np.isnan(label).sum())))}


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: str(seeds[0]))
def test_larger_factor_contains_the_interval_of_a_smaller_one(seeds):
    for seed in seeds:
        label, score, settings = rows_of_any_size(int(seed))
        result = dm.evaluate(label, score, metrics=list(dict.fromkeys(names_of(seed, 2))), **settings)
        last = result.intervals
        for odds in (1.2, 2, 5, 20, 300):
            wider = result.sensitivity(odds)
            for name, (low, high) in last.items():
                assert not wider[name].low > low, (seed, name, odds)
                assert not wider[name].high < high, (seed, name, odds)
            last = wider
