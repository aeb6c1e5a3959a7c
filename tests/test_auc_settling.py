"""Rows of ROC-AUC that lead are settled both ways: what the cases share is what each would find for itself."""

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics._kernels.auc.expansion import expansions, label_sums, settle_leading_rows


def ranks(rows, heavy, seed=0):
    """Rows of unequal weight, some of them as heavy as many others, half of the labels missing."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    label = (rng.random(rows) < score).astype(float)
    weight = rng.lognormal(sigma=0.5, size=rows)
    label[rng.random(rows) < 0.5] = np.nan
    label[:heavy], weight[:heavy] = np.nan, 0.1 * rows
    data = dm.EvaluationSet(label, score, sample_weight=weight)
    return dm.metrics.roc_auc().bind(data, np.nan).data


def chances(cells, nodes, seed=1):
    rng = np.random.default_rng(seed)
    return 1.0 / (1.0 + np.exp(-(rng.normal(-1.0, 1.0, cells) + rng.normal(size=(nodes, 1)))))


def test_largest_share_is_that_of_every_row():
    """More rows than are looked at together, some of which are nearly sure at a node."""
    data = ranks(12_000, 0)
    p = chances(data.weight.size, 5)
    p[3] = 1e-6 * p[3]
    found = expansions(data, p)
    mean_p = (data.known_p + p @ (data.counts * data.weight)) / data.total
    level = mean_p + found.mean * (1.0 - 2.0 * mean_p)
    line = (data.weight * (data.rho / data.total - level[:, None])) ** 2 * p * (1.0 - p)
    assert found.largest == pytest.approx(line.max(axis=1) / (line @ data.counts), rel=1e-9)


def test_cases_of_leading_rows_share_their_sums():
    data = ranks(2_000, 3)
    p = chances(data.weight.size, 6)
    cases = settle_leading_rows(data, p, np.full(6, 1.0 / 6.0), 0.05)
    assert cases is not None
    assert len(cases) == 8
    assert sum(weight.sum() for _, _, weight in cases) == pytest.approx(1.0)
    sums = label_sums(*cases[0][:2])
    for case, own, _ in cases:
        assert own is cases[0][1]
        alone, shared = expansions(case, own), expansions(case, own, given=sums)
        np.testing.assert_array_equal(shared.mean, alone.mean)
        np.testing.assert_array_equal(shared.cdf(alone.mean[:, None]), alone.cdf(alone.mean[:, None]))
    light = data.weight != 200.0
    np.testing.assert_array_equal(cases[0][1], p[:, light])
    np.testing.assert_array_equal(cases[0][0].rho, data.rho[light])
