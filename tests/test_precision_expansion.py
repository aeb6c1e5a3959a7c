"""The law of average precision of very many rows, found without draws, against all labelings and random ones."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, ks_1samp
from sklearn.metrics import average_precision_score

import darkmetrics as dm
from darkmetrics._kernels.sums.precision_draws import Ranking
from darkmetrics._kernels.sums.precision_expansion import PrecisionExpansion
from darkmetrics._kernels.sums.smooth import edgeworth_cdf
from darkmetrics.exceptions import MethodError
from darkmetrics.methods import rank_laws

DRAWS = 40_000


def by_all_labelings(ranking, p):
    """Where the mean of Q - t P is zero, and the cumulants of orders two to four of it there, over all labelings."""
    values, masses = [], []
    for labels in product((0, 1), repeat=p.size):
        y = np.array(labels)
        a = ranking.known + np.bincount(ranking.group, y * ranking.weight, ranking.known.size)
        values.append((float((a * np.cumsum(a) / np.cumsum(ranking.total)).sum()), float(a.sum())))
        masses.append(np.where(y == 1, p, 1.0 - p).prod())
    (q, positive), mass = np.array(values).T, np.array(masses)
    t = (mass @ q) / (mass @ positive)
    second, third, fourth = (float(mass @ (q - t * positive) ** order) for order in (2, 3, 4))
    return t, second, third, fourth - 3.0 * second**2


def few_rows(seed, labelled, spread=1.0):
    """Nine rows in five groups, with about so many labelled ones in each, and their chances."""
    rng = np.random.default_rng(seed)
    groups, rows = 5, 9
    group = np.sort(rng.integers(0, groups, rows))
    weight = rng.lognormal(sigma=spread, size=rows) if seed % 2 else np.ones(rows)
    known = labelled * rng.integers(0, 3, groups).astype(np.float64)
    total = known + max(1.0, labelled) * rng.random(groups) + np.bincount(group, weight, groups)
    p = rng.random(rows)
    return Ranking(known, total, np.ones(rows, dtype=np.int64), weight, group), p


def expansion_of(ranking, p):
    found = PrecisionExpansion(ranking).at(p[None], np.arange(p.size), np.ones(1))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(8))
def test_mean_and_variance_of_the_numerator_equal_brute_force(seed):
    ranking, p = few_rows(seed, 0.7)
    found = expansion_of(ranking, p)
    mean, variance, _, _ = by_all_labelings(ranking, p)
    assert found.expansions.mean[0] == pytest.approx(mean, rel=1e-12)
    # The polynomial of the variance at the mean; five places settle it to rounding.
    assert found.expansions.polynomials[1][0, 0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("weight", [1.0, 0.7, 1.1, 1.9, 3.3])
@pytest.mark.parametrize("chance", [0.5, 0.5 - 1e-9, 0.5 + 1e-9])
def test_a_single_row_of_chance_one_half_has_no_pairs_and_warns_of_nothing(weight, chance):
    """Its square never varies; what rounding leaves of that was below zero, and its power not a number."""
    known = np.array([3.0, 2.0])
    ranking = Ranking(
        known,
        known + np.array([1.5, 2.0 + weight]),
        np.ones(1, dtype=np.int64),
        np.full(1, weight),
        np.ones(1, dtype=np.int64),
    )
    found = expansion_of(ranking, np.array([chance]))
    assert np.isfinite(found.off).all()
    _, variance, _, _ = by_all_labelings(ranking, np.array([chance]))
    assert found.expansions.polynomials[1][0, 0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_third_and_fourth_cumulant_of_the_numerator_are_near_brute_force(seed):
    """Both leave out terms of pairs: next to nothing where labelled rows are hundreds of times the missing ones."""
    ranking, p = few_rows(seed, 2_000.0, spread=0.3)
    found = expansion_of(ranking, p).expansions.polynomials
    _, variance, third, fourth = by_all_labelings(ranking, p)
    assert found[2][0, 0] / variance**1.5 == pytest.approx(third / variance**1.5, abs=1e-4)
    assert found[3][0, 0] / variance**2 == pytest.approx(fourth / variance**2, abs=0.01)


def test_steps_of_one_group_of_ties_are_seen_among_very_many_cells():
    """Of 300,001 cells one has 20,000 missing rows, and nothing else varies; the largest atom has a chance of 0.09."""
    single, labelled, giant, chance = 300_000, 20_000, 20_000, 1e-3
    missing = np.ones(single + 1, dtype=np.int64)
    missing[0] = giant
    known = np.zeros(single + 1)
    known[-labelled:] = 1.0
    total = missing + 2.0 * known
    ranking = Ranking(known, total, missing, np.ones(single + 1), np.arange(single + 1))
    found = expansion_of(ranking, np.append(chance, np.full(single, 1e-9)))
    # No law without atoms is nearer than half an atom; 0.008 are the most that is let pass.
    assert 0.5 * binom.pmf(giant * chance, giant, chance) > 0.04
    assert found.off[0] > 0.04


def test_pairs_that_spread_the_law_by_themselves_are_seen():
    """Rows at the end of the ranking, where a single one moves average precision neither up nor down."""
    rng, n = np.random.default_rng(0), 600
    weight, known = rng.uniform(0.5, 1.5, n), np.append(4_000.0, np.zeros(n))
    total = np.append(36_000.0, weight)
    total[1] += 2_592.0
    ranking = Ranking(known, total, np.ones(n, dtype=np.int64), weight, np.arange(1, n + 1))
    p = np.full(n, 0.5)
    found = expansion_of(ranking, p)
    polynomials, seen = found.expansions.polynomials, np.cumsum(total)
    t, variance = found.expansions.mean[0], polynomials[1][0, 0]
    a = np.empty((100_000, n + 1))
    a[:, 0], a[:, 1:] = known[0], (rng.random((100_000, n)) < p) * weight
    z = np.sort(((a * np.cumsum(a, axis=1)) @ (1.0 / seen) - t * a.sum(axis=1)) / np.sqrt(variance))
    levels = edgeworth_cdf(z, polynomials[2][0, 0] / variance**1.5, polynomials[3][0, 0] / variance**2)
    gap = np.abs(levels - (np.arange(z.size) + 0.5) / z.size).max()
    # What 100,000 draws are off by with a chance of 1e-4, and 0.002 that a single expansion may be.
    assert gap > 0.007 + 0.002
    assert found.off[0] > gap


def rows(n, kind):
    rng = np.random.default_rng(n)
    score = np.round(rng.random(n), 2) if kind == "ties" else rng.random(n)
    chance = np.clip(score**2, 1e-6, 1.0 - 1e-6)
    label = np.where(rng.random(n) < 0.8, np.nan, rng.random(n) < chance)
    weight = rng.lognormal(size=n) if kind == "weights" else None
    return label, score, chance, weight


def law_of(n, kind, method="auto"):
    label, score, chance, weight = rows(n, kind)
    settings: dict[str, Any] = {
        "label_model": chance,
        "sample_weight": weight,
        "metrics": "average_precision",
        "rng": 0,
    }
    return dm.evaluate(label, score, method=method, **settings)["average_precision"]


@pytest.mark.parametrize("kind", ["plain", "ties", "weights"])
def test_law_of_many_rows_is_that_of_random_labelings(kind):
    law = law_of(30_000, kind)
    assert law.method == "near exact"
    drawn = law_of(30_000, kind, dm.methods.MonteCarlo(DRAWS))
    # What an expansion may be off by, beside what draws are off by with a chance of 1e-4.
    most = 2e-3 + np.sqrt(np.log(2.0 / 1e-4) / (2.0 * DRAWS))
    gap = np.abs(law.cdf(drawn.atoms) - np.cumsum(drawn.masses)).max()
    assert gap <= most
    # A law that is moved by a twentieth of its spread is told apart.
    assert np.abs(law.cdf(drawn.atoms - 0.05 * law.std()) - np.cumsum(drawn.masses)).max() > most


def test_law_of_many_rows_agrees_with_scikit_learn_on_random_labelings():
    label, score, chance, _ = rows(12_000, "plain")
    law, rng, missing = law_of(12_000, "plain"), np.random.default_rng(5), np.isnan(label)
    assert law.method == "near exact"
    values = []
    for _ in range(400):
        y = np.where(missing, rng.random(label.size) < chance, label)
        values.append(average_precision_score(y, score))
    assert ks_1samp(values, law.cdf).pvalue > 1e-3
    assert ks_1samp(np.array(values) + 0.3 * law.std(), law.cdf).pvalue < 1e-3


def test_certificate_of_a_law_that_was_not_drawn_comes_of_draws():
    certificate = law_of(12_000, "plain").certificate
    assert certificate is not None
    assert certificate.theorem == "Dvoretzky-Kiefer-Wolfowitz"
    assert 0.0195 < certificate.ks_bound < 0.035  # the radius of 10,000 draws, and how far they are from the law
    assert certificate.confidence < 1.0
    assert "the bound comes of 10,000 random labelings, drawn beside the law, independently" in str(certificate)
    assert "the law is that of" not in str(certificate)


@pytest.mark.parametrize("heavy", [True, False])
def test_where_few_rows_decide_average_precision_is_drawn(heavy):
    rng = np.random.default_rng(3)
    score = rng.random(20_000)
    chance = np.clip(score**2, 1e-6, 1.0 - 1e-6) if heavy else np.full(score.size, 2e-4)
    label = np.where(rng.random(score.size) < 0.8, np.nan, rng.random(score.size) < chance)
    weight = np.where(rng.random(score.size) < 1e-3, 1e4, 1.0) if heavy else None
    settings: dict[str, Any] = {
        "label_model": chance,
        "sample_weight": weight,
        "metrics": "average_precision",
        "rng": 0,
    }
    assert dm.evaluate(label, score, **settings)["average_precision"].method == "monte carlo"
    with pytest.raises(MethodError, match=r"few of 1[56],[0-9]{3} missing rows decide"):
        dm.evaluate(label, score, method="exact", **settings)


def weighted(n, missing=0.7):
    rng = np.random.default_rng(n)
    score = rng.random(n)
    label = np.where(rng.random(n) < missing, np.nan, rng.random(n) < score)
    return {"y_true": label, "y_score": score, "sample_weight": rng.lognormal(size=n)}


@pytest.mark.parametrize("n", [120, 8_000])
def test_gini_beside_roc_auc_is_what_it_is_alone(n):
    data, q = weighted(n), np.linspace(0.01, 0.99, 9)
    beside = dm.evaluate(**data, metrics=["roc_auc", "gini"], rng=0)["gini"]
    alone = dm.evaluate(**data, metrics="gini", rng=0)["gini"]
    assert (beside.method, type(beside), beside.bounds) == (alone.method, type(alone), alone.bounds)
    assert beside.ppf(q) == pytest.approx(alone.ppf(q), abs=1e-12)
    assert (beside.mean(), beside.std()) == pytest.approx((alone.mean(), alone.std()), rel=1e-9)
    assert beside.certificate is not None
    assert alone.certificate is not None
    assert beside.certificate.ks_bound == pytest.approx(alone.certificate.ks_bound, rel=1e-6)


def test_roc_auc_of_many_weights_is_the_same_added_up_by_chance(monkeypatch):
    data, q = weighted(8_000), np.linspace(0.01, 0.99, 9)
    found, seen = [], []
    added_up = rank_laws.law_of_many_ranks

    def spy(functional, nodes):
        seen.append(added_up(functional, nodes))
        return seen[-1]

    monkeypatch.setattr(rank_laws, "law_of_many_ranks", spy)
    for many in (1 << 12, 1 << 30):
        monkeypatch.setattr(rank_laws, "_MANY_CELLS", many)
        found.append(dm.evaluate(**data, metrics="roc_auc")["roc_auc"])
    assert [law is not None for law in seen] == [True, False]
    assert found[0].ppf(q) == pytest.approx(found[1].ppf(q), abs=1e-10)
    assert found[0].by_node is not None
    assert found[1].by_node is not None
    assert found[0].by_node.var == pytest.approx(found[1].by_node.var, rel=1e-8)
