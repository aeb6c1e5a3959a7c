"""Laws over several posterior nodes are the mixtures of the laws at each node."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

import darkmetrics as dm
import oracle
from believed import Believed
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import choice
from darkmetrics.methods import Auto
from darkmetrics.posterior import Posterior
from oracle import Problem

REGISTERED = [
    r.example.name if isinstance(r, dm.metrics.Family) else r.name
    for r in (dm.metrics.registered(name) for name in dm.metrics.registered_names())
]
NAMES = [*REGISTERED, "roc_auc(ties='full')", "recall_at_k(0.4)", "precision_at_k(3)"]
COUNTS = [
    n for n in NAMES if isinstance(dm.metrics.metrics_from(n)[0], (dm.metrics.ConfusionMetric, dm.metrics.TopMetric))
]
# Sums of up to 3 x 2^8 products of at most 8 chances, each rounded to 1e-16.
TOLERANCE = 1e-12


# ------------------------------------------------------------------------------------------- all labelings of few rows


def small_problem(seed, missing=8, weighted=False):
    """Few rows, some tied, with labels missing."""
    rng = np.random.default_rng(seed)
    n = missing + int(rng.integers(1, 10))
    score = rng.integers(0, 6, n) / 6 if seed % 2 else rng.random(n).round(3)
    y = np.concatenate([(rng.random(n - missing) < 0.5).astype(float), np.full(missing, math.nan)])
    weight = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    return Problem(y, score, (score >= 0.4).astype(int), weight, None)


def data_of(problem):
    return dm.EvaluationSet(
        problem.y,
        problem.score,
        y_pred=problem.decision,
        sample_weight=None if np.all(problem.weight == 1.0) else problem.weight,
    )


def cell_of_rows(problem, data):
    """For each missing row its place among the set's missing cells."""
    cells, rows = data.cells, data.missing_cells
    weight = np.ones(rows.size) if cells.weight is None else cells.weight[rows]
    key = list(zip(cells.score[rows], cells.decision[rows], weight, strict=True))
    return [key.index((problem.score[i], bool(problem.decision[i]), problem.weight[i])) for i in problem.missing]


def random_nodes(data, seed, k=3):
    """Nodes far apart, some probabilities exactly 0 or 1."""
    rng = np.random.default_rng([seed, 1])
    p = rng.random((k, data.missing_cells.size))
    p[rng.random(p.shape) < 0.15] = 1.0
    p[rng.random(p.shape) < 0.15] = 0.0
    return Posterior(rng.dirichlet(np.ones(k)), p)


def solve(names, data, posterior, zero_division=math.nan, method: Any = "auto", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate(
            data,
            metrics=names,
            missingness=Believed(posterior),
            method=method,
            zero_division=zero_division,
            **options,
        )


def brute_force(name, problem, posterior, cells, fill):
    """The law over all labelings, each with its probability averaged over the nodes; and the law at each node."""
    labelings = [oracle.labelings(problem._replace(p=row[cells])) for row in posterior.probability]
    each = [probability for _, probability in labelings]
    values = oracle.definition_of(name)(labelings[0][0], problem.score, problem.decision, problem.weight)
    mixture = oracle.law_of_values(values, posterior.weight @ np.array(each), fill)
    return mixture, [oracle.law_of_values(values, probability, fill) for probability in each]


def assert_same_law(name, found, truth):
    assert found.undefined == pytest.approx(truth.undefined, abs=TOLERANCE), name
    if len(truth.values) == 0:
        assert math.isnan(found.mean()), name
        return
    scale = max(1.0, float(np.abs(truth.values).max()))
    between = 0.5 * (truth.values[1:] + truth.values[:-1])
    points = np.concatenate([truth.values + oracle.ATOM * scale, between, [truth.values[0] - 1.0]])
    np.testing.assert_allclose(found.cdf(points), truth.cdf(points), 0, TOLERANCE, err_msg=name)
    assert found.mean() == pytest.approx(truth.mean(), abs=TOLERANCE * scale), name
    assert found.var() == pytest.approx(truth.std() ** 2, abs=TOLERANCE * scale**2), name
    steps = np.flatnonzero(truth.masses > 100 * TOLERANCE)
    middle = (np.cumsum(truth.masses) - 0.5 * truth.masses)[steps]
    np.testing.assert_allclose(found.ppf(middle), truth.values[steps], TOLERANCE, 10 * oracle.ATOM, err_msg=name)


def assert_moments_by_node(name, found, posterior, each, fill):
    """Weights, means and variances of the nodes, and that they add up to those of the law."""
    if math.isnan(found.mean()):
        return
    weight = posterior.weight * np.array(
        [1.0 - distribution.undefined if math.isnan(fill) else 1.0 for distribution in each]
    )
    weight = weight / weight.sum()
    found_weight, mean, var = found.by_draw
    np.testing.assert_allclose(found_weight, weight, 0, TOLERANCE, err_msg=name)
    for i in np.flatnonzero(weight > 1e-9):
        # Conditional on being defined: what is left of a node's mass carries the rounding of all of it.
        rounding = TOLERANCE * max(1.0, abs(each[i].high)) ** 2 / (weight[i] if math.isnan(fill) else 1.0)
        assert mean[i] == pytest.approx(each[i].mean(), abs=rounding), name
        assert var[i] == pytest.approx(each[i].std() ** 2, abs=rounding), name
    total = found_weight @ mean
    assert total == pytest.approx(found.mean(), rel=1e-12), name
    assert found_weight @ (var + (mean - total) ** 2) == pytest.approx(found.var(), rel=1e-9, abs=1e-15), name


def check(names, seed, zero_division=math.nan, weighted=False, missing=8):
    problem = small_problem(seed, missing, weighted)
    data = data_of(problem)
    posterior = random_nodes(data, seed)
    cells = cell_of_rows(problem, data)
    found = solve(names, data, posterior, zero_division)
    for name in names:
        fill = oracle.undefined_as(name) if isinstance(zero_division, str) else zero_division
        truth, each = brute_force(name, problem, posterior, cells, fill)
        assert_same_law(name, found[name], truth)
        assert_moments_by_node(name, found[name], posterior, each, fill)
        assert found[name].support() == pytest.approx((truth.low, truth.high), abs=TOLERANCE, nan_ok=True), name
    return found


@pytest.mark.parametrize("zero_division", [math.nan, 0.0, "warn"])
@pytest.mark.parametrize("seed", range(6))
def test_mixture_equals_brute_force(seed, zero_division):
    found = check(NAMES, seed, zero_division)
    assert {distribution.method for distribution in found.values()} == {"exact"}


@pytest.mark.parametrize("seed", range(4))
def test_weighted_mixture_equals_brute_force(seed):
    check(NAMES, seed, weighted=True)


@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_mixture_of_few_missing_rows_equals_brute_force(seed, missing):
    check(NAMES, seed, missing=missing)


@pytest.mark.parametrize("zero_division", [math.nan, 0.0])
@pytest.mark.parametrize("seed", range(4))
def test_counted_mixture_equals_brute_force(seed, zero_division, monkeypatch):
    monkeypatch.setattr(choice, "enumerate_assignments", lambda *_: None)
    check(COUNTS, seed, zero_division)


def test_certain_nodes_that_disagree_are_a_mixture_of_points():
    data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.7, 0.4])
    posterior = Posterior(np.array([0.25, 0.75]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    for method in ("exact", "gaussian", dm.methods.MonteCarlo(4)):
        distribution = solve("accuracy", data, posterior, method=method)["accuracy"]
        # Either the row at 0.4 is positive and the one at 0.7 is not (two of four right), or the other way round.
        assert distribution.cdf([0.4, 0.6, 1.0]).tolist() == pytest.approx(
            [0.0, 0.75, 1.0]
        ) or distribution.mean() == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)


def test_certain_nodes_that_agree_are_a_point():
    data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.7, 0.4])
    posterior = Posterior(np.array([0.25, 0.75]), np.array([[0.0, 1.0], [0.0, 1.0]]), column=np.array([0, 1]))
    distribution = solve("accuracy", data, posterior)["accuracy"]
    assert distribution.std() == 0.0
    assert distribution.mean() == 1.0


# -------------------------------------------------------------------------------------------------------- many rows


def large_problem(n, k=3, seed=0, spread=0.3, decimals=None):
    """Scores that are probabilities, 30% of labels missing, and nodes that move their log odds."""
    rng = np.random.default_rng([n, seed])
    score = scipy.special.expit(rng.normal(-1.5, 1.7, n))
    score = score if decimals is None else score.round(decimals)
    y = (rng.random(n) < score).astype(float)
    y[rng.random(n) < 0.3] = math.nan
    data = dm.EvaluationSet(y, score)
    chance = scipy.special.logit(np.clip(data.cells.score[data.missing_cells], 1e-4, 1.0 - 1e-4))
    shift = spread * np.linspace(-1.0, 1.0, k)[:, None]
    return data, Posterior(rng.dirichlet(np.full(k, 5.0)), scipy.special.expit(shift + (1.0 + 0.3 * shift) * chance))


def singles(names, data, posterior, **options):
    """The laws at each node alone."""
    return [solve(names, data, Posterior.single(row), **options) for row in posterior.probability]


def places_of(distribution):
    return np.linspace(distribution.ppf(1e-4), distribution.ppf(1.0 - 1e-4), 41)


@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        # The same sums in another order; with 20,000 rows, expansions next to exact counts.
        ("precision", 1e-10),
        ("recall", 0.002),
        ("accuracy", 0.002),
        ("f1", 0.002),
        ("mcc", 0.002),
        ("predicted_to_actual", 0.002),
        ("recall_at_k(0.2)", 0.002),
        ("brier", 0.005),
        ("roc_auc", 0.005),
    ],
)
def test_cdf_is_the_weighted_sum_of_the_cdfs_at_the_nodes(name, tolerance, n):
    data, posterior = large_problem(n)
    distribution, each = solve(name, data, posterior)[name], singles(name, data, posterior)
    t = places_of(distribution)
    expected = sum(w * one[name].cdf(t) for w, one in zip(posterior.weight, each, strict=True))
    exact = distribution.method == "exact"
    np.testing.assert_allclose(distribution.cdf(t), expected, rtol=0.0, atol=1e-10 if exact else tolerance)
    means, variances = np.array([(one[name].mean(), one[name].var()) for one in each]).T
    mean = float(posterior.weight @ means)
    loose = 1e-9 if exact else 1e-3
    assert distribution.mean() == pytest.approx(mean, rel=loose)
    assert distribution.var() == pytest.approx(posterior.weight @ (variances + (means - mean) ** 2), rel=50 * loose)
    np.testing.assert_allclose(distribution.by_draw.mean, means, rtol=loose)
    np.testing.assert_allclose(distribution.by_draw.var, variances, rtol=50 * loose)


def test_a_wrong_weight_fails_the_test_of_the_weighted_sum():
    """The control."""
    data, posterior = large_problem(20_000)
    distribution, each = solve("recall", data, posterior)["recall"], singles("recall", data, posterior)
    t = places_of(distribution)
    expected = sum(one["recall"].cdf(t) / 3.0 for one in each)
    assert np.abs(distribution.cdf(t) - expected).max() > 1e-3


@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "roc_auc", "brier"])
def test_quantile_is_the_first_place_where_the_cdf_reaches_the_level(name, n):
    # Three nodes whose laws do not overlap: between them the cdf is flat.
    data, posterior = large_problem(n, spread=1.5)
    distribution = solve(name, data, posterior)[name]
    between = np.cumsum(posterior.weight)[:-1]
    levels = np.concatenate([between - 1e-3, between + 1e-3, [0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999]])
    quantile = distribution.ppf(levels)
    scale = float(np.abs(quantile).max())
    assert np.all(distribution.cdf(quantile) >= levels - 1e-12)
    # A place lower by 1e-11 of the scale has less: no atom of these laws is nearer to another one.
    assert np.all(distribution.cdf(quantile - 1e-11 * scale) < levels + 1e-12)


def test_one_node_gives_the_same_numbers_as_known_probabilities():
    data, posterior = large_problem(2_000, k=1)
    names = ["precision", "recall", "f1", "roc_auc", "brier", "average_precision"]
    chance = np.zeros(data.cells.score.size)
    chance[data.missing_cells] = posterior.probability[0]
    given = dm.EvaluationSet.from_cells(replace(data.cells, probability=chance), threshold=0.5)
    for method in ("auto", "monte_carlo"):
        one = solve(names, data, posterior, method=method, rng=3)
        known = dm.evaluate(given, metrics=names, method=method, rng=3, zero_division=math.nan)
        for name in names:
            assert one[name].ppf([0.05, 0.5, 0.95]).tolist() == known[name].ppf([0.05, 0.5, 0.95]).tolist()
            assert one[name].mean() == known[name].mean()
            assert one[name].by_draw is None


def test_nodes_of_weight_zero_do_not_count():
    data, posterior = large_problem(500)
    more = Posterior(
        np.append(posterior.weight, 0.0),
        np.vstack([posterior.probability, np.full(posterior.probability.shape[1], 0.9)]),
    )
    for name in ("recall", "roc_auc", "brier"):
        distribution, same = solve(name, data, posterior)[name], solve(name, data, more)[name]
        t = places_of(distribution)
        # ROC-AUC of few missing rows shares its work over the nodes.
        np.testing.assert_allclose(
            same.cdf(t), distribution.cdf(t), rtol=0.0, atol=0.005 if name == "roc_auc" else 1e-12
        )
        assert same.by_draw.weight[-1] == 0.0


# ------------------------------------------------------------------------------------------------------ coarse cells


def in_buckets(posterior, bucket):
    """The probabilities of one cell of each bucket, for all its cells."""
    first = np.array([np.flatnonzero(bucket == b)[0] for b in range(bucket.max() + 1)])
    return Posterior(posterior.weight, posterior.probability[:, first], bucket)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("average_precision", "roc_auc", "gini", "brier", "log_loss")]
)
def test_counts_of_merged_cells_have_the_same_law(name):
    data, posterior = large_problem(2_000)
    coarse = in_buckets(posterior, np.arange(data.missing_cells.size) // 9)
    distribution = solve(name, data, coarse, method="auto")[name]
    full = solve(name, data, coarse.on_all_cells, method="auto")[name]
    t = places_of(full)
    if name.startswith("roc_auc"):
        assert distribution.method == full.method
    # The same trials in another order.
    np.testing.assert_allclose(distribution.cdf(t), full.cdf(t), rtol=0.0, atol=1e-12)
    assert distribution.support() == full.support()
    assert distribution.undefined == pytest.approx(full.undefined, abs=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["roc_auc", "gini", "brier", "log_loss", "recall"])
def test_merged_cells_have_nearly_the_same_law(name, weighted):
    data, posterior = large_problem(6_000)
    if weighted:
        weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], data.cells.score.size)
        data = dm.EvaluationSet.from_cells(replace(data.cells, weight=weight), threshold=0.5)
    coarse = in_buckets(posterior, np.arange(data.missing_cells.size) // 9)
    distribution, full = solve(name, data, coarse)[name], solve(name, data, coarse.on_all_cells)[name]
    assert distribution.support() == full.support()
    # Rows of one group and weight are alike; ranks and losses are not.
    # About 200 buckets by rank: replacing ranks by their mean takes away a share 1/200^2 of the variance, twelve
    # times less for even ranks, and moves the mean by rounding alone.
    drawn = distribution.method == "monte carlo"
    assert distribution.mean() == pytest.approx(full.mean(), abs=(0.02 if drawn else 1e-4) * full.std())
    assert distribution.std() == pytest.approx(full.std(), rel=0.02 if drawn else 1e-4)
    t = places_of(full)
    np.testing.assert_allclose(distribution.cdf(t), full.cdf(t), rtol=0.0, atol=0.01 if drawn else 1e-3)


def test_buckets_that_mix_far_ranks_fail_the_test_of_merged_cells():
    """The control: three buckets for all ranks lose a tenth of their variance."""
    data, posterior = large_problem(6_000)
    coarse = in_buckets(posterior, np.arange(data.missing_cells.size) * 3 // data.missing_cells.size)
    distribution, full = (
        solve("roc_auc", data, coarse)["roc_auc"],
        solve("roc_auc", data, coarse.on_all_cells)["roc_auc"],
    )
    assert abs(distribution.std() / full.std() - 1.0) > 1e-3


def test_merging_keeps_rows_weights_and_groups_apart():
    data, _ = large_problem(3_000, decimals=2)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], data.cells.score.size)
    data = dm.EvaluationSet.from_cells(replace(data.cells, weight=weight), threshold=0.5)
    bucket = np.arange(data.missing_cells.size) // 7
    for name in ("recall", "recall_at_k(0.1)", "roc_auc", "brier"):
        functional = dm.metrics.metrics_from(name)[0].bind(data, math.nan)
        coarse, merged = functional.merge(bucket)
        assert merged.size < bucket.size
        np.testing.assert_array_equal(
            np.bincount(merged, coarse.missing, bucket.max() + 1), np.bincount(bucket, functional.missing)
        )
        assert coarse.extremes == functional.extremes
        # All rows of a bucket positive: the same labeling for both.
        for b in (0, 5, bucket.max()):
            fine = functional.values((functional.missing * (bucket == b))[None, :])
            assert coarse.values((coarse.missing * (merged == b))[None, :]) == pytest.approx(fine, rel=1e-12)


# -------------------------------------------------------------------------------------------------------- Monte Carlo

DRAWS = 10_000
# Dvoretzky-Kiefer-Wolfowitz at 99.9%; sharing draws out over nodes in proportion only takes randomness away.
BAND = math.sqrt(math.log(2.0 / 0.001) / (2.0 * DRAWS))


def distance(distribution, sampled):
    level = np.cumsum(sampled.masses)
    at = np.abs(distribution.cdf(sampled.atoms + 1e-9) - level).max()
    return float(max(at, np.abs(distribution.cdf(sampled.atoms - 1e-9) - np.append(0.0, level[:-1])).max()))


@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "roc_auc", "brier"])
def test_sampled_mixture_is_within_its_dkw_band(name, binned):
    data, posterior = large_problem(600)
    if binned:
        posterior = in_buckets(posterior, np.arange(data.missing_cells.size) // 4)
    distribution = solve(name, data, posterior)[name]
    sampled = solve(name, data, posterior, method=dm.methods.MonteCarlo(DRAWS), rng=1)[name]
    assert sampled.method == "monte carlo"
    assert distance(distribution, sampled) <= BAND + (0.005 if name == "roc_auc" else 0.0)
    weight, mean, var = sampled.by_draw
    np.testing.assert_allclose(weight, posterior.weight, rtol=0.0, atol=1.0 / DRAWS)
    # Five standard errors.
    np.testing.assert_allclose(
        mean, distribution.by_draw.mean, rtol=0.0, atol=5.0 * np.sqrt(distribution.by_draw.var / DRAWS / weight).max()
    )
    assert weight @ (var + (mean - weight @ mean) ** 2) == pytest.approx(sampled.var(), rel=1e-9)


@pytest.mark.parametrize("name", ["precision", "recall", "f1", "roc_auc"])
def test_sampled_mixture_is_not_within_its_dkw_band_of_the_mean_probabilities(name):
    """The control: what ignores the spread of the nodes."""
    data, posterior = large_problem(600, spread=0.8)
    sampled = solve(name, data, posterior, method=dm.methods.MonteCarlo(DRAWS), rng=1)[name]
    plug_in = solve(name, data, Posterior.single(posterior.weight @ posterior.probability))[name]
    assert distance(plug_in, sampled) > BAND


def test_fewer_draws_than_nodes_still_make_a_law():
    data, posterior = large_problem(300, k=9)
    distribution = solve("recall", data, posterior, method=dm.methods.MonteCarlo(4), rng=0)["recall"]
    assert distribution.by_draw.weight.sum() == pytest.approx(1.0)
    assert distribution.by_draw.weight.size == 9


# --------------------------------------------------------------------------------------------- the other methods, names


@pytest.mark.parametrize("name", ["precision", "recall", "f1", "roc_auc", "brier"])
def test_gaussian_is_the_mixture_of_gaussians(name):
    data, posterior = large_problem(600)
    distribution, each = (
        solve(name, data, posterior, method="gaussian")[name],
        singles(name, data, posterior, method="gaussian"),
    )
    assert distribution.method == "gaussian"
    t = places_of(distribution)
    expected = sum(
        w * scipy.stats.norm(one[name].mean(), one[name].std()).cdf(t)
        for w, one in zip(posterior.weight, each, strict=True)
    )
    np.testing.assert_allclose(distribution.cdf(t), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("n", "share"), [(60, 0.5), (120, 0.35), (300, 0.3), (300, 0.12)])
def test_roc_auc_of_many_nodes_is_close_to_sampled_scenarios(n, share):
    """Few missing rows and many nodes: each law is found with less work than it would be alone."""
    rng = np.random.default_rng(n)
    score = scipy.special.expit(rng.normal(-1.5, 1.7, n))
    y = (rng.random(n) < score).astype(float)
    y[rng.random(n) < share] = math.nan
    data = dm.EvaluationSet(y, score)
    chance = scipy.special.logit(data.cells.score[data.missing_cells])
    posterior = Posterior(np.full(16, 1 / 16), scipy.special.expit(chance + 0.3 * rng.normal(size=(16, 1))))
    distribution = solve("roc_auc", data, posterior)["roc_auc"]
    draws = 40_000
    order = np.argsort(score)
    missing = np.isnan(y[order])
    labels = np.tile(y[order] == 1.0, (draws, 1))
    labels[:, missing] = rng.random((draws, missing.sum())) < np.repeat(posterior.probability, draws // 16, axis=0)
    below = np.cumsum(~labels, axis=1)
    sample = np.sort((labels * below).sum(axis=1) / (labels.sum(axis=1) * (~labels).sum(axis=1)))
    # 0.01 is what is promised of ROC-AUC with few missing rows; the rest is the sample's own error (DKW, 1e-6).
    at = np.unique(sample.round(9))
    gap = np.abs(distribution.cdf(at + 1e-8) - np.searchsorted(sample, at + 1e-8, side="right") / draws).max()
    assert gap <= 0.01 + math.sqrt(math.log(2e6) / (2.0 * draws))


def test_a_formula_without_directions_has_the_mixture_law():
    formula = dm.metrics.ConfusionMetric(name="mine", formula=lambda tp, fp, fn, tn: np.abs(tp - 1.5 * fn) / (tp + 1.0))
    data, posterior = large_problem(3_000)
    distribution, each = solve(formula, data, posterior)["mine"], singles(formula, data, posterior)
    t = places_of(distribution)
    expected = sum(w * one["mine"].cdf(t) for w, one in zip(posterior.weight, each, strict=True))
    np.testing.assert_allclose(distribution.cdf(t), expected, rtol=0.0, atol=1e-10)


# ------------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("trials", [0, 1, 30, 600, 2_100])
def test_counts_at_all_nodes_have_the_law_of_each_node(trials):
    rng = np.random.default_rng(trials)
    cells = max(1, trials // 3) if trials else 0
    p, missing = rng.beta(1.0, 4.0, (5, cells)), np.full(cells, 3 if trials > 1 else 1)
    p[1, ::2], p[2, ::3] = 0.0, 1.0
    first, pmfs = poisson_binomial_pmfs(p, missing)
    for row, pmf in zip(p, pmfs, strict=True):
        expected = oracle.count_pmf(np.repeat(row, missing))
        # The characteristic function, above 1,000 trials, is good to 1e-14 of the whole.
        np.testing.assert_allclose(pmf, expected[first : first + pmf.size], rtol=0.0, atol=1e-14)
        assert expected[:first].sum() + expected[first + pmf.size :].sum() < 1e-16


@pytest.mark.parametrize("q", [1e-6, 0.05, 0.3, 0.5, 0.95])
def test_quantile_of_a_mixture_of_gaussians_is_where_its_cdf_reaches_the_level(q):
    weight, mean, sd = np.array([0.3, 0.5, 0.2]), np.array([0.0, 1.0, 9.0]), np.array([0.1, 1.0, 0.5])

    def cdf(t):
        return float(weight @ scipy.stats.norm.cdf(t, mean, sd))

    expected = scipy.optimize.brentq(lambda t: cdf(t) - q, -20.0, 20.0, xtol=1e-12)
    # Promised to a millionth of the smallest spread.
    assert normal_mixture_quantile(q, weight, mean, sd) == pytest.approx(expected, abs=1e-6 * 0.1)


@pytest.mark.parametrize("whole", [False, True], ids=["real weights", "whole weights"])
def test_weighted_mixture_is_the_weighted_sum_of_its_nodes(whole):
    rng = np.random.default_rng(5)
    n, k = 200, 3
    score, missing = rng.random(n), rng.random(n) < 0.3
    weight = rng.integers(1, 4, n).astype(float) if whole else rng.gamma(2.0, size=n)
    y = np.where(missing, np.nan, rng.random(n) < score)
    data = EvaluationSet(y, score, sample_weight=weight)
    p = scipy.special.expit(scipy.special.logit(data.cells.score[data.missing_cells]) + rng.normal(0.0, 0.3, (k, 1)))
    share = rng.dirichlet(np.ones(k))
    for metric in dm.metrics.metrics_from(["precision", "recall"]):
        functional = metric.bind(data, 0.0)
        mixture = next(Auto().distributions([functional], Posterior(share, p)))
        single = [next(Auto().distributions([functional], Posterior.single(row))) for row in p]
        t = mixture.ppf([0.02, 0.3, 0.6, 0.95]) + 1e-9
        expected = sum(w * distribution.cdf(t) for w, distribution in zip(share, single, strict=True))
        np.testing.assert_allclose(mixture.cdf(t), expected, atol=1e-10 if mixture.method == "exact" else 0.01)
        means = [distribution.mean() for distribution in single]
        assert mixture.mean() == pytest.approx(share @ means, abs=0.02 * mixture.std())
