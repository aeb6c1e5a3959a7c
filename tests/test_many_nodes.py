"""ROC-AUC at many posterior nodes at once, against the same law node by node; and what it is made of."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from scipy.special import expit, log_expit

import darkmetrics as dm
import oracle
from darkmetrics._kernels.auc.clusters import auc_law_by_clusters, auc_law_of_alike_nodes
from darkmetrics._kernels.auc.expansion import expansions, mixed_cdf
from darkmetrics._kernels.auc.labelings import spread_labelings
from darkmetrics._kernels.auc.lattice import auc_law_on_lattice
from darkmetrics._kernels.auc.plan import Plan, combinations, rank_clusters, tie_clusters
from darkmetrics._kernels.auc.ranks import RankData, auc_moments, linear_parts
from darkmetrics._kernels.posterior.logistic import chance, log_chance
from darkmetrics.methods import Problem
from darkmetrics.methods.exact import Exact
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


# ------------------------------------------------------------------------------------------------------- problems


def problem(rows, missing, nodes=20, seed=0, spread=0.5, sure=1.0, ties=None):
    """Ranks of a set with missing labels, and nodes that move and bend the log odds of its scores."""
    rng = np.random.default_rng([rows, missing, seed])
    score = rng.random(rows) if ties is None else np.round(rng.random(rows), ties)
    y = (rng.random(rows) < score).astype(float)
    y[rng.permutation(rows)[:missing]] = math.nan
    data = dm.EvaluationSet(y, score)
    x = np.clip(data.cells.score[data.missing_cells], 0.01, 0.99)
    x = sure * np.log(x / (1.0 - x))
    move, slope, bend = spread * rng.normal(size=(3, nodes, 1))
    p = expit(x + move + 0.4 * slope * x + 0.1 * bend * x**2)
    return dm.metrics.roc_auc().bind(data, math.nan).data, p, rng.dirichlet(np.full(nodes, 3.0))


def of_all_counts(data, p, weight, fill=math.nan):
    """The law of the mixture from all combinations of the counts of tied rows."""
    clusters = tie_clusters(data, math.inf)
    assert clusters is not None
    return auc_law_by_clusters(data, p, weight, Plan(clusters), fill)


def of_clusters(data, p, weight, most=1 << 13):
    """The law of the mixture from clusters of neighbouring ranks, for groups of alike nodes."""
    plan = rank_clusters(data, p, weight, most)
    return auc_law_of_alike_nodes(data, data, p, weight, plan, math.nan)


def law_of_node(data, p):
    """Exact while combinations are few or the lattice is small, else from many clusters."""
    if combinations(data, p[None], tie_clusters(data, math.inf) or []) <= 1 << 12:
        return of_all_counts(data, p[None], np.ones(1))[:2]
    return auc_law_on_lattice(data, p) or of_clusters(data, p[None], np.ones(1), 1 << 16)[:2]


def node_by_node(data: RankData, p, weight):
    """Atoms and masses of the mixture, from the law at each node alone."""
    laws = [law_of_node(data, row) for row in p]
    masses = [w * mass for w, (_, mass) in zip(weight, laws, strict=True)]
    return np.concatenate([x for x, _ in laws]), np.concatenate(masses)


def moments_by_node(data, p):
    found = []
    for row in p:
        x, mass = law_of_node(data, row)
        known = ~np.isnan(x)
        mean = mass[known] @ x[known] / mass[known].sum()
        found.append((mass[known].sum() / mass.sum(), mean, mass[known] @ (x[known] - mean) ** 2 / mass[known].sum()))
    return np.array(found).T


def cdf(values, masses, t):
    known = ~np.isnan(values)
    order = np.argsort(values[known])
    level = np.append(0.0, np.cumsum(masses[known][order]))
    return level[np.searchsorted(values[known][order], t, side="right")] / level[-1]


def distance(found, expected):
    """Kolmogorov's, looked for between the atoms of both."""
    t = np.unique(np.concatenate([found[0], expected[0]]).round(9))
    t = t[~np.isnan(t)] + 5e-9
    return float(np.abs(cdf(found[0], found[1], t) - cdf(expected[0], expected[1], t)).max())


# ------------------------------------------------------------------------------------------------------ all counts


@pytest.mark.parametrize(("rows", "missing", "ties"), [(12, 6, None), (20, 11, 1), (60, 15, None), (300, 60, 1)])
def test_law_of_all_counts_is_the_mixture_of_exact_laws(rows, missing, ties):
    data, p, weight = problem(rows, missing, ties=ties)
    if ties is not None and rows > 100:  # groups of many rows: too many combinations for a test
        data = data._replace(counts=np.minimum(data.counts, 2.0))
    law = of_all_counts(data, p, weight)
    expected = node_by_node(data, p, weight)
    assert distance(law[:2], expected) < 1e-12  # the same sums in another order
    assert law.masses.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(np.array(law[2:]), moments_by_node(data, p), rtol=1e-8, atol=1e-12)


def test_law_of_all_counts_takes_the_value_given_for_what_is_undefined():
    # No label is known, so that a class may be absent.
    y, score = np.full(5, math.nan), np.arange(5) / 5.0
    data = dm.metrics.roc_auc().bind(dm.EvaluationSet(y, score), math.nan).data
    p = np.full((9, 5), 0.1)
    absent = 0.9**5 + 0.1**5
    law, filled = (of_all_counts(data, p, np.full(9, 1 / 9), fill) for fill in (math.nan, 0.25))
    np.testing.assert_allclose(law.defined, 1.0 - absent)
    np.testing.assert_allclose(filled.defined, 1.0)
    np.testing.assert_allclose(filled.mean, absent * 0.25 + (1.0 - absent) * law.mean)


def test_combinations_are_counted_before_they_are_made():
    data, p, _ = problem(100, 40)
    assert tie_clusters(data, 18.0) is None
    assert combinations(data, p, tie_clusters(data, math.inf) or []) == 2.0**40
    data, p, _ = problem(3000, 900, ties=1)
    assert combinations(data, p, tie_clusters(data, math.inf) or []) > 1 << 20


# -------------------------------------------------------------------------------------------------------- clusters


@pytest.mark.parametrize(
    ("rows", "missing", "sure", "seed"),
    [
        *(
            (rows, missing, sure, seed)
            for rows, missing, sure in [(60, 20, 3.0), (100, 25, 2.0), (200, 30, 1.5)]
            for seed in (0, 1)
        ),
        (400, 120, 4.0, 0),
        pytest.param(400, 120, 4.0, 1, marks=pytest.mark.guarantees),
    ],
)
def test_law_by_clusters_is_close_to_the_mixture_of_the_laws_of_each(rows, missing, sure, seed):
    data, p, weight = problem(rows, missing, seed=seed, sure=sure)
    law = of_clusters(data, p, weight)
    # 0.01 is what is promised of ROC-AUC with few missing rows.
    assert distance(law[:2], node_by_node(data, p, weight)) < 0.01
    defined, mean, var = moments_by_node(data, p)
    sd = math.sqrt(float(weight @ (var + (mean - weight @ mean) ** 2)))
    np.testing.assert_allclose(law.mean, mean, rtol=0.0, atol=0.01 * sd)
    np.testing.assert_allclose(np.sqrt(law.var), np.sqrt(var), rtol=0.0, atol=0.1 * sd)
    np.testing.assert_allclose(law.defined, defined, rtol=0.0, atol=1e-6)


def test_one_cluster_without_what_it_leaves_open_fails():
    """The control: all rows as one tie."""
    data, p, weight = problem(100, 25, sure=2.0)
    tied = data._replace(rho=np.full(data.rho.size, float(data.rho.mean())))
    assert distance(of_clusters(tied, p, weight)[:2], node_by_node(data, p, weight)) > 0.05


def test_equal_nodes_have_the_law_of_one():
    data, p, _ = problem(100, 30, nodes=1, sure=2.0)
    law, one = of_clusters(data, np.repeat(p, 9, axis=0), np.full(9, 1 / 9)), of_clusters(data, p, np.ones(1))
    # Points lie at the same quantiles; rounding may put a combination on either side of the least mass, about 1e-7.
    assert distance(law[:2], one[:2]) < 1e-6


# ------------------------------------------------------------------------------------------------------ expansions


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [200, 3000])
def test_expansions_of_many_nodes_are_those_of_each(rows, weighted):
    data, p, _ = problem(rows, rows // 3)
    if weighted:
        data = data._replace(weight=np.random.default_rng(1).uniform(0.5, 2.0, data.counts.size))
    nodes = expansions(data, p)
    for i in range(0, len(p), 5):
        t = nodes.mean[i] + nodes.sd[i] * np.linspace(-5.0, 5.0, 41)
        one = nodes.of(np.arange(len(p)) == i)
        law = mixed_cdf(one, np.ones(1), 0.0, 1.0)
        # Cubics between a seventh of a standard deviation, then straight lines a 31st apart.
        np.testing.assert_allclose(
            np.interp(t, law.grid, law.levels), expansions(data, p[i : i + 1]).cdf(t)[0], rtol=0.0, atol=5e-5
        )
        parts = linear_parts(data, p[i])
        moments = auc_moments(data, p[i], parts)
        influence = parts.variance * (parts.a - moments.mean_a / moments.mean_d * parts.d) ** 2
        positive = data.known_p + p[i] @ (data.counts * data.weight)
        auc = moments.mean_a / moments.mean_d
        slope = data.weight * (data.rho - positive - auc * (data.total - 2.0 * positive))
        first_order = p[i] * (1.0 - p[i]) * slope**2
        assert nodes.largest[i] == pytest.approx(first_order.max() / (first_order @ data.counts), rel=1e-8)
        # To second order the coefficients of a row leave out its own label.
        assert nodes.largest[i] == pytest.approx(influence.max() / (influence @ data.counts), rel=0.05)
        assert nodes.mean[i] == pytest.approx(moments.mean_a / moments.mean_d, rel=1e-10)


@pytest.mark.parametrize("spread", [0.1, 3.0])
def test_mixed_expansions_have_the_moments_of_a_fine_grid(spread):
    data, p, weight = problem(2000, 800, spread=spread)
    nodes = expansions(data, p)
    law = mixed_cdf(nodes, weight, 0.0, 1.0)
    for i in range(0, len(p), 7):
        t = nodes.mean[i] + nodes.sd[i] * np.linspace(-9.0, 9.0, 20_001)
        mass, middle = np.diff(expansions(data, p[i : i + 1]).cdf(t)[0]), 0.5 * (t[1:] + t[:-1])
        mean = mass @ middle
        assert law.mean[i] == pytest.approx(mean, abs=0.003 * nodes.sd[i])
        assert law.var[i] == pytest.approx(mass @ (middle - mean) ** 2, rel=0.02)
    t = np.linspace(law.grid[0], law.grid[-1], 301)
    expected = sum(w * expansions(data, row[None]).cdf(t)[0] for w, row in zip(weight, p, strict=True))
    # Where nodes hardly overlap a node has points of its own, a third of a standard deviation apart.
    np.testing.assert_allclose(np.interp(t, law.grid, law.levels), expected, rtol=0.0, atol=1e-3)


# -------------------------------------------------------------------------------------------------- the whole law


# gini is an affine function of ROC-AUC.
@pytest.mark.parametrize(
    ("name", "rows"), [*(("roc_auc", rows) for rows in (40, 60, 100, 250, 800)), ("gini", 40), ("gini", 800)]
)
def test_law_of_many_nodes_is_close_to_the_laws_of_each(rows, name):
    rng = np.random.default_rng(rows)
    score = rng.random(rows)
    y = np.where(rng.random(rows) < 0.35, math.nan, rng.random(rows) < score)
    data = dm.EvaluationSet(y, score)
    x = data.cells.score[data.missing_cells]
    x = np.log(x / (1.0 - x))
    move = rng.normal(0.0, 1.5, (32, 1))
    nodes = Posterior(np.full(32, 1 / 32), expit(x + move + 0.1 * rng.normal(size=(32, 1)) * x**2))
    functional = dm.metrics.metrics_from(name)[0].bind(data, math.nan)

    def law_of(some):
        return Exact().law(functional, Problem(some), rng=rng)

    law, each = law_of(nodes), [law_of(Posterior.single(row)) for row in nodes.probability]
    t = np.linspace(law.ppf(1e-3), law.ppf(1.0 - 1e-3), 101)
    expected = np.mean([one.cdf(t) for one in each], axis=0)
    np.testing.assert_allclose(law.cdf(t), expected, rtol=0.0, atol=0.01)
    np.testing.assert_allclose(law.by_node.mean, [one.mean() for one in each], rtol=0.0, atol=0.02 * law.std())
    assert law.mean() == pytest.approx(float(law.by_node.weight @ law.by_node.mean), abs=1e-3 * law.std())
    inside = law.ppf([0.05, 0.5, 0.95])
    assert np.all(law.cdf(inside) >= np.array([0.05, 0.5, 0.95]) - 1e-9)


@pytest.mark.parametrize("move", [-5.5, -5.0, -4.0, -3.5, -3.0, 7.0, 8.0])
def test_an_expansion_of_little_variance_is_off_by_less_than_it_is_said_to_be(move):
    rng = np.random.default_rng(5)
    score = rng.beta(1.0, 4.0, 600)
    data = dm.EvaluationSet(np.where(rng.random(600) < 0.35, math.nan, rng.random(600) < score), score)
    x = data.cells.score[data.missing_cells]
    p = expit(np.log(x / (1.0 - x)) + move)[None]
    functional = dm.metrics.roc_auc().bind(data, math.nan)
    found = expansions(functional.data, p)
    assert 0.2 < found.variance[0] < 8.0
    law = mixed_cdf(found, np.ones(1), 0.0, 1.0)
    t = found.mean[0] + found.sd[0] * np.linspace(-4.0, 4.0, 201)
    exact = Exact().law(functional, Problem(Posterior.single(p[0])), rng=rng)
    assert np.abs(np.interp(t, law.grid, law.levels) - exact.cdf(t)).max() < 2.0 * np.exp(-found.variance[0])


def test_a_node_of_little_variance_and_weight_moves_the_law_by_little():
    rng = np.random.default_rng(6)
    score = rng.beta(1.0, 4.0, 600)
    data = dm.EvaluationSet(np.where(rng.random(600) < 0.35, math.nan, rng.random(600) < score), score)
    x = data.cells.score[data.missing_cells]
    log_odds = np.log(x / (1.0 - x))
    moves = np.append(rng.uniform(-0.5, 1.5, 127), -3.2)
    nodes = Posterior(np.full(128, 1 / 128), expit(log_odds + moves[:, None]))
    functional = dm.metrics.roc_auc().bind(data, math.nan)
    variance = expansions(functional.data, nodes.probability).variance
    assert variance[-1] < 4.0 < variance[:-1].min()

    def law_of(some):
        return Exact().law(functional, Problem(some), rng=rng)

    law, others = law_of(nodes), law_of(Posterior(np.full(127, 1 / 127), nodes.probability[:-1]))
    assert type(law) is type(others)  # no part of it goes by clusters
    t = np.linspace(law.ppf(1e-4), law.ppf(1.0 - 1e-4), 301)
    expected = (127 * others.cdf(t) + law_of(Posterior.single(nodes.probability[-1])).cdf(t)) / 128
    # What is allowed for, and the straight lines of two tables.
    np.testing.assert_allclose(law.cdf(t), expected, rtol=0.0, atol=0.002 + 2e-4)


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
@pytest.mark.parametrize("nodes", [2, 5, 12])
def test_nodes_that_are_sure_of_labelings_of_their_own_have_the_law_of_brute_force(nodes, weighted, ties):
    for seed in range(2):
        rng = np.random.default_rng([nodes, weighted, seed])
        m = int(rng.integers(24, 36))
        # Tied rows have weights of their own, which keep them apart.
        score = rng.integers(0, 257, m) / 256 if weighted else rng.permutation(1025)[:m] / 1024
        weight = rng.lognormal(0.0, 1.0, m) if weighted else np.ones(m)
        order = np.lexsort((weight, score))
        score, weight = score[order], weight[order]
        p = rng.choice([1e-12, 1e-6, 1e-3, 1.0 - 1e-3, 1.0 - 1e-6], (nodes, m))
        share = rng.dirichlet(np.full(nodes, 2.0))
        data = dm.EvaluationSet(np.full(m, math.nan), score, sample_weight=weight)
        np.testing.assert_array_equal(data.cells.mass(data.cells.missing), weight)  # columns are in the order of rows
        functional = dm.metrics.roc_auc(ties=ties).bind(data, 0.0)
        law = Exact().law(functional, Problem(Posterior(share, p)), rng=rng)
        values, level = of_nearly_sure_nodes(score, weight, p, share, ties)
        # Clusters may move what is rare; a labeling that a node is sure of stays where it is, up to rounding.
        heavy = np.flatnonzero(np.diff(level, prepend=0.0) > 0.02)
        edges = np.concatenate([values[heavy] - 1e-9, values[heavy] + 1e-9])
        expected = np.concatenate([[0.0], level])[np.searchsorted(values, edges, side="right")]
        np.testing.assert_allclose(law.cdf(edges), expected, rtol=0.0, atol=0.003, err_msg=str(seed))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("missing", "sure"), [(250, 4.0), (70, 1.0), (40, 1.0)])
def test_labelings_of_nodes_of_little_weight_are_spread_as_drawn_ones_are(missing, sure, weighted):
    """Against labels drawn row by row, at nodes at which a flip or dozens of them are likely."""
    data, p, _ = problem(833, missing, nodes=2, sure=sure, seed=3)
    rng = np.random.default_rng(1)
    if weighted:
        w = rng.lognormal(0.0, 1.0, data.weight.size)
        data = data._replace(weight=w, rho=data.rho * w.mean(), total=data.total + float(w.sum()) - w.size)
    found = spread_labelings(data, p)
    assert found is not None
    for values, q in zip(found.values, p, strict=True):
        label = rng.random((20_000, q.size)) < q
        p_sum, r_sum = data.known_p + label @ data.weight, data.known_r + label @ (data.weight * data.rho)
        drawn = np.clip((r_sum - p_sum**2 / 2.0) / (p_sum * (data.total - p_sum)), 0.0, 1.0)
        t = np.quantile(drawn, np.linspace(0.005, 0.995, 199))
        off = np.searchsorted(np.sort(values), t, "right") / values.size - (drawn[:, None] <= t).mean(axis=0)
        # A thirty-second of it is 0.0013 at most. 4,096 labels of each row drawn freely are off by 0.027 once in 200
        # times, 20,000 by 0.012.
        assert np.abs(off).max() < 0.04
        # Sums of labels that are spread evenly have the mean of the chances, to one label in 4,096 for each row.
        assert abs(values.mean() - drawn.mean()) < 4.0 * drawn.std() / np.sqrt(20_000) + 1e-4
        assert values.std() == pytest.approx(drawn.std(), rel=0.06)


def test_nodes_of_little_weight_do_not_go_by_clusters(monkeypatch):
    """One of 128 nodes at which hardly a row is open: its law is that of labels drawn at it, without any cluster."""
    from darkmetrics.methods import rank_laws

    monkeypatch.setattr(rank_laws, "rank_clusters", None)
    monkeypatch.setattr(rank_laws, "_MOVED", 0.0)
    rng = np.random.default_rng(6)
    score = rng.beta(1.0, 4.0, 600)
    data = dm.EvaluationSet(np.where(rng.random(600) < 0.35, math.nan, rng.random(600) < score), score)
    x = data.cells.score[data.missing_cells]
    log_odds = np.log(x / (1.0 - x))
    # The last ones are far from the others, so that what the law says beyond these is theirs.
    moves = np.concatenate([rng.uniform(1.5, 2.5, 126), [-3.2, -3.4]])
    nodes = Posterior(np.full(128, 1 / 128), expit(log_odds + moves[:, None]))
    functional = dm.metrics.roc_auc().bind(data, math.nan)
    law = Exact().law(functional, Problem(nodes), rng=rng)
    own = functional.data
    label = rng.random((2, 20_000, x.size)) < nodes.probability[126:, None]
    p_sum, r_sum = own.known_p + label @ own.weight, own.known_r + label @ (own.weight * own.rho)
    drawn = ((r_sum - p_sum**2 / 2.0) / (p_sum * (own.total - p_sum))).ravel()
    others = Exact().law(functional, Problem(Posterior(np.full(126, 1 / 126), nodes.probability[:126])), rng=rng)
    t = np.quantile(drawn, np.linspace(0.01, 0.99, 99))
    expected = (126 * others.cdf(t) + 2 * (drawn[:, None] <= t).mean(axis=0)) / 128
    np.testing.assert_allclose(law.cdf(t), expected, rtol=0.0, atol=0.04 * 2 / 128)
    assert law.by_node is not None
    np.testing.assert_allclose(law.by_node.mean[126:], drawn.reshape(2, -1).mean(axis=1), rtol=0.0, atol=2e-4)


def drawn_of_ties(known, missing, p, share, draws=400_000):
    """ROC-AUC with ties in full where each group of ties has one chance at each node: a binomial for each group."""
    rng = np.random.default_rng(8)
    node = rng.choice(share.size, draws, p=share)
    positive = known[1] + rng.binomial(missing, p[node])
    negative = known.sum(axis=0) + missing - positive
    right = (positive * np.cumsum(negative, axis=1)).sum(axis=1)
    return np.sort(right / (positive.sum(axis=1) * negative.sum(axis=1)))


@pytest.mark.parametrize("nodes", [3, 12])
def test_ties_in_full_are_right_at_nodes_that_expect_different_shares_of_a_group(nodes):
    rng = np.random.default_rng([nodes, 4])
    score, missing, known = np.arange(5) / 4.0, np.full(5, 100), rng.integers(20, 40, (2, 5))  # negatives, positives
    p, share = rng.uniform(0.1, 0.95, (nodes, 5)), rng.dirichlet(np.full(nodes, 2.0))
    labels = np.repeat([0.0, 1.0, math.nan], 5)
    counts = np.concatenate([*known, missing])
    data = dm.EvaluationSet(np.repeat(labels, counts), np.repeat(np.tile(score, 3), counts))
    functional = dm.metrics.roc_auc(ties="full").bind(data, math.nan)
    law = Exact().law(functional, Problem(Posterior(share, p)), rng=rng)
    values = drawn_of_ties(known, missing, p, share)
    # What is promised of such a law, and how far so many draws stray once in a million (DKW).
    slack = 0.005 + math.sqrt(math.log(2.0 / 1e-6) / (2.0 * values.size))
    at = np.linspace(0, values.size - 1, 500).astype(int)
    assert np.abs(law.cdf(values[at]) - np.searchsorted(values, values[at], side="right") / values.size).max() < slack


def test_more_combinations_than_can_be_gone_through_are_not_begun(monkeypatch):
    """A plan is made for few of the nodes; where others ask for far more, thousands of millions of masses were held."""
    data, p, weight = problem(60, 40, nodes=8)
    assert auc_law_by_clusters(data, p, weight, Plan([np.array([i]) for i in range(40)]), math.nan) is None
    few, *_ = rank_clusters(data, p, weight, 1 << 10)
    assert auc_law_by_clusters(data, p, weight, Plan(few), math.nan) is not None

    # Who asks for the metric then gets a law that is drawn, and it is the same law (of more ranks than are few).
    rng = np.random.default_rng(1)
    score = np.sort(rng.random(400))
    y = (rng.random(400) < score).astype(float)
    y[-72::2] = math.nan
    found = dm.evaluate(y, score, metrics="roc_auc", missingness="by_score")["roc_auc"]
    monkeypatch.setattr("darkmetrics._kernels.auc.clusters._MOST_MASSES", 100)
    drawn = dm.evaluate(y, score, metrics="roc_auc", missingness="by_score")["roc_auc"]
    assert (found.method, drawn.method) == ("near exact", "monte carlo")
    assert drawn.interval(0.9) == pytest.approx(found.interval(0.9), abs=0.1 * float(np.ptp(found.interval(0.9))))


def test_labelings_that_would_take_long_are_refused_before_rows_are_gone_through():
    """Three million missing rows in forty cells: what is asked of them first takes no room for a row."""
    data, p, _ = problem(833, 40, nodes=4, sure=1.0, seed=3)
    data, p = data._replace(counts=np.full(40, 75_000.0)), p[:, :40]
    tracemalloc.start()
    try:
        assert spread_labelings(data, p) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_five_metrics_of_many_rows_take_less_than_100_bytes_per_row():
    """Twelve powers of the rank of every missing row would be 29 bytes per row at once."""
    n, rng = 400_000, np.random.default_rng(0)
    score = rng.random(n)
    y = np.where(rng.random(n) < 0.3, math.nan, (rng.random(n) < score).astype(float))
    tracemalloc.start()
    try:
        dm.evaluate(y, score, label_model=score)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * n
