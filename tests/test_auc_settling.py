"""Rows of ROC-AUC that lead are settled both ways: what the cases share is what each would find for itself."""

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics._kernels.auc.expansion import expansions, label_sums, settle_leading_rows
from darkmetrics.methods import rank_laws


def problem(rows, heavy=(), seed=0):
    """ROC-AUC of rows of unequal weight, some of them as heavy as many others, half of the labels missing."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    label = (rng.random(rows) < score).astype(float)
    weight = rng.lognormal(sigma=0.5, size=rows)
    label[rng.random(rows) < 0.5] = np.nan
    label[: len(heavy)], weight[: len(heavy)] = np.nan, heavy
    return dm.metrics.roc_auc().bind(dm.EvaluationSet(label, score, sample_weight=weight), np.nan)


def chances(cells, nodes, seed=1):
    rng = np.random.default_rng(seed)
    return 1.0 / (1.0 + np.exp(-(rng.normal(-1.0, 1.0, cells) + rng.normal(size=(nodes, 1)))))


def test_largest_share_is_that_of_every_row():
    """More rows than are looked at together, some of which are nearly sure at a node."""
    data = problem(12_000).data
    p = chances(data.weight.size, 5)
    p[3] = 1e-6 * p[3]
    found = expansions(data, p)
    mean_p = (data.known_p + p @ (data.counts * data.weight)) / data.total
    level = mean_p + found.mean * (1.0 - 2.0 * mean_p)
    line = (data.weight * (data.rho / data.total - level[:, None])) ** 2 * p * (1.0 - p)
    assert found.largest == pytest.approx(line.max(axis=1) / (line @ data.counts), rel=1e-9)


def test_cases_of_leading_rows_share_their_sums():
    data = problem(2_000, [200.0] * 3).data
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


def test_cases_of_other_rows_have_sums_of_their_own(monkeypatch):
    """Once a very heavy row is settled, others lead in some cases and not in others."""
    functional = problem(600, [3000.0, 300.0, 90.0, 40.0])
    p = chances(functional.data.weight.size, 5, seed=0)
    made = []

    def expanded(case, own, column=None, given=None):
        found = expansions(case, own, column, given)
        made.append((own, found, expansions(case, own, column)))
        return found

    monkeypatch.setattr(rank_laws, "expansions", expanded)
    rank_laws._settled(functional, functional.data, p, np.full(5, 0.2))
    assert len({id(own) for own, _, _ in made}) > 1
    for _, found, alone in made:
        for one, other in zip(found[1:], alone[1:], strict=True):
            np.testing.assert_array_equal(one, other)
