"""Statements of docs/explanation/mathematics.md, checked on small problems by going through all labelings."""

from itertools import product

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics._kernels.auc import auc_moments
from darkmetrics.metrics.confusion import CONFUSION_METRICS, ConfusionMetric

DECLARED = [m for m in CONFUSION_METRICS if isinstance(m, ConfusionMetric) and None not in m.direction]


@pytest.mark.parametrize("metric", DECLARED, ids=lambda metric: metric.name)
@pytest.mark.parametrize(("yes", "no"), [(6, 6), (9, 2), (2, 9), (5, 1), (1, 5)])
def test_metrics_move_with_the_counts_as_the_page_says(metric, yes, no):
    a, b = np.meshgrid(np.arange(yes + 1.0), np.arange(no + 1.0), indexing="ij")
    with np.errstate(divide="ignore", invalid="ignore"):
        value = metric.formula(a, yes - a, b, no - b)
    value = np.where(np.isfinite(value), value, np.nan)
    for axis, direction in enumerate(metric.direction):
        change = np.diff(value, axis=axis)
        change = change[np.isfinite(change)]
        # Steps of the metric are above 1e-3 on so few rows; 1e-12 is rounding.
        if direction == 0:
            assert np.abs(change).max() <= 1e-12
        else:
            assert (direction * change).min() >= -1e-12
            assert (direction * change).max() > 1e-3


def pairs_of(y, score, weight, tie):
    """Numerator and denominator of ROC-AUC from their definition as sums over pairs."""
    above = np.where(score[:, None] > score, 1.0, np.where(score[:, None] == score, tie, 0.0))
    positive, negative = weight * y, weight * (1 - y)
    return positive @ above @ negative, positive.sum() * negative.sum()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("ties", "tie"), [("half", 0.5), ("full", 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_roc_auc_moments_equal_those_over_all_labelings(ties, tie, weighted, seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 6, 14) / 5
    weight = rng.uniform(0.5, 3.0, 14) if weighted else np.ones(14)
    y, chance = rng.integers(0, 2, 14).astype(float), rng.uniform(0.02, 0.98, 14)
    missing = np.arange(14) < 8
    pairs, chances = [], []
    for labels in product((0.0, 1.0), repeat=8):
        y[missing] = labels
        pairs.append(pairs_of(y, score, weight, tie))
        chances.append(np.prod(np.where(y == 1.0, chance, 1.0 - chance)[missing]))
    values, mass = np.array(pairs), np.array(chances)
    mean = mass @ values
    (var_a, cov), (_, var_d) = ((values - mean).T * mass) @ (values - mean)

    data = dm.EvaluationSet(np.where(missing, np.nan, y), score, sample_weight=weight, probability=chance)
    functional = dm.metrics.roc_auc(ties).bind(data, np.nan)
    assert data.cells.probability is not None
    found = auc_moments(functional.data, data.cells.probability[data.missing_cells])
    # 256 labelings are added up: some 1e-14 of rounding.
    assert found == pytest.approx((*mean, var_a, var_d, cov), rel=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_third_cumulant_of_the_quadratic_form_is_the_one_derived(seed):
    rng = np.random.default_rng(seed)
    w, p, coefficient, g = rng.uniform(0.5, 2.0, 8), rng.uniform(0.05, 0.95, 8), rng.normal(0.0, 3.0, 8), rng.normal()
    y = np.array(list(product((0.0, 1.0), repeat=8)))
    mass, x = np.prod(np.where(y == 1.0, p, 1.0 - p), axis=1), w * (y - p)
    q = x @ coefficient - g * (x.sum(axis=1) ** 2 - (x**2).sum(axis=1)) / 2
    v, m = w**2 * p * (1 - p), w**3 * p * (1 - p) * (1 - 2 * p)
    ll_u = (coefficient @ v) ** 2 - coefficient**2 @ v**2
    l_uu = (coefficient @ m) * v.sum() - coefficient @ (m * v)
    uuu = v.sum() ** 3 - 3 * v.sum() * (v**2).sum() + 2 * (v**3).sum() + (m.sum() ** 2 - (m**2).sum()) / 2
    derived = coefficient**3 @ m - 3 * g * ll_u + 3 * g**2 * l_uu - g**3 * uuu
    # Terms up to 1e3 cancel; what is left is good to 1e-12 of them.
    assert mass @ q**3 == pytest.approx(derived, rel=1e-9, abs=1e-9)
