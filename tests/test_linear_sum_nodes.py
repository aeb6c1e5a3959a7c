"""The law of a weighted sum of labels, mixed over many nodes, against enumeration, convolution and inversion."""

import math
import time

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from scipy.special import expit

import darkmetrics as dm
from darkmetrics._kernels.sums import linear_sum_nodes
from darkmetrics._kernels.sums.linear_sum_nodes import mixed_linear_sum
from darkmetrics.functional import LinearFunctional
from darkmetrics.methods.smooth import law_of_many_losses
from darkmetrics.posterior import Posterior
from test_linear_sum import DKW, SAMPLES, cdf, distance, enumerated, moments


def problem(m, kind, nodes=9, seed=0, scale=1.0, counts=None):
    """Weights, counts, buckets, chances (nodes x buckets) and shares; `scale` makes events rarer."""
    rng = np.random.default_rng([m, len(kind), seed])
    weights = {
        "brier": lambda: 1.0 - 2.0 * rng.random(m),
        "log": lambda: np.log(rng.random(m)),
        "lognormal": lambda: rng.lognormal(0.0, 1.0, m),
        "whole": lambda: rng.integers(-9, 10, m).astype(float),
        "few levels": lambda: rng.choice([-0.31, 0.1, 0.27], m),
    }[kind]()
    buckets = max(1, m // 2)
    p = np.clip(scale * rng.random(buckets) + 0.05 * scale * rng.normal(size=(nodes, buckets)), 0.0, 1.0)
    number = np.ones(m, dtype=np.int64) if counts is None else rng.integers(1, counts, m)
    return weights, number, rng.integers(0, buckets, m), p, rng.dirichlet(np.full(nodes, 2.0))


def gap_to_enumeration(law, given, slack):
    """Distance to the law of every value of the sum with its probability over all nodes."""
    weights, counts, bucket, p, share = given
    laws = [enumerated(weights, row[bucket], counts) for row in p]
    return distance(law, laws[0][0], share @ np.array([masses for _, masses in laws]), slack)


@pytest.mark.parametrize("kind", ["brier", "log", "lognormal", "whole", "few levels"])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_mixture_equals_enumeration(kind, scale):
    given = problem(14, kind, scale=scale)
    found = mixed_linear_sum(*given)
    assert found is not None
    # A lattice that is not exact moves each row by up to one step.
    slack = 1e-9 if found.law.exact else 15 * found.law.step
    assert gap_to_enumeration(found.law, given, slack) < 1e-12


@pytest.mark.parametrize("kind", ["whole", "few levels"])
def test_commensurate_weights_are_an_exact_lattice(kind):
    found = mixed_linear_sum(*problem(14, kind))
    assert found is not None
    assert found.law.exact


def convolved(weights, counts, bucket, p):
    """Masses at every node of whole numbers from -reach to reach, row after row, and that reach."""
    reach = int(counts @ np.abs(weights))
    masses = np.zeros((p.shape[0], 2 * reach + 1), dtype=np.longdouble)
    masses[:, reach] = 1.0
    for weight, column in zip(np.repeat(weights, counts).astype(int), np.repeat(bucket, counts), strict=True):
        chance = p[:, column, None]
        masses = (1.0 - chance) * masses + chance * np.roll(masses, weight, axis=1)
    return masses, reach


@pytest.mark.parametrize("half", [0.5, 0.4999, 0.49, None])
@pytest.mark.parametrize("m", [60, 400])
def test_whole_weights_equal_exact_convolution(m, half):
    weights, counts, bucket, p, share = problem(m, "whole", nodes=3, counts=4)
    if half is not None:
        p[:, ::2] = half  # where the series in the odds converges slowly, or not at all
    reference, reach = convolved(weights, counts, bucket, p)
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    mass = np.zeros(2 * reach + 1)
    mass[np.rint(found.law.values()).astype(int) + reach] = found.law.pmf
    # 1e-12 in total variation: the sum of a few thousand rounding errors.
    assert 0.5 * float(np.abs(mass - share @ reference).sum()) <= 1e-12


def inverted(x, weights, counts, p):
    """P(sum <= x) by Gil-Pelaez's integral over the characteristic function, itself a product over the rows."""
    sd = moments(weights, p, counts)[1]

    def integrand(t):
        factors = 1.0 - p + p * np.exp(1j * t * weights)
        return float((np.exp(-1j * t * x) * np.prod(factors**counts)).imag / t)

    return 0.5 - quad(integrand, 1e-12 / sd, 12.0 / sd, epsabs=1e-12, epsrel=1e-12, limit=500)[0] / math.pi


# Sums of 500 rows are smooth; those of 6,000 have moves that are small enough for cumulants.
@pytest.mark.parametrize("kind", ["brier", "log", "lognormal"])
@pytest.mark.parametrize("m", [500, 6_000])
def test_smooth_mixture_equals_fourier_inversion(kind, m):
    weights, counts, bucket, p, share = problem(m, kind, nodes=3, counts=3)
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    assert found.law.smooth
    edges = found.law.values() + 0.5 * found.law.step
    levels = np.cumsum(found.law.pmf)
    for level in (0.01, 0.3, 0.5, 0.8, 0.999):
        place = int(np.searchsorted(levels, level))
        expected = sum(
            weight * inverted(edges[place], weights, counts, row[bucket]) for weight, row in zip(share, p, strict=True)
        )
        # The integral is good to about 1e-10; cut at twelve standard deviations it leaves 1e-10 more.
        assert abs(levels[place] - expected) < 1e-9


@pytest.mark.parametrize("kind", ["brier", "lognormal"])
@pytest.mark.parametrize("scale", [0.002, 0.02])
def test_rare_events_are_within_dkw_of_sampled_sums(kind, scale):
    weights, counts, bucket, p, share = problem(3_000, kind, scale=scale)
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    rng = np.random.default_rng(5)
    node = rng.choice(share.size, SAMPLES, p=share)
    small = p.astype(np.float32)  # seven digits, of which so many samples tell three
    chances = (small[chunk][:, bucket] for chunk in np.split(node, SAMPLES // 500))
    drawn = (rng.random(chance.shape, dtype=np.float32) < chance for chance in chances)
    parts = [np.einsum("ij,j->i", labels, weights) for labels in drawn]  # three times as fast as labels @ weights
    sd = math.sqrt(float(share @ (found.var + (found.mean - share @ found.mean) ** 2)))
    sums = np.sort(np.concatenate(parts))
    assert distance(found.law, sums, np.full(SAMPLES, 1.0 / SAMPLES), 0.005 * sd) <= DKW


def test_rare_events_keep_the_atom_of_no_event():
    weights, counts, bucket, p, share = problem(3_000, "log", scale=0.001)
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    chance = float(share @ np.exp(np.log1p(-p[:, bucket]).sum(axis=1)))
    values, step = found.law.values(), found.law.step
    at_zero = float(found.law.pmf[np.abs(values) < 0.5 * step].sum())
    # Events that weigh less than half a step join the atom.
    crowd = float((share @ p)[bucket][np.abs(weights) <= step].sum())
    assert chance * (1.0 - 1e-9) <= at_zero <= chance * (1.0 + 1e-9 + crowd)
    assert crowd < 0.05  # else the claim would be empty


@pytest.mark.parametrize("kind", ["brier", "log", "lognormal", "whole", "few levels"])
@pytest.mark.parametrize(("m", "scale"), [(20, 1.0), (400, 1.0), (400, 0.01), (20_000, 1.0), (20_000, 0.0005)])
def test_mean_and_variance_of_the_mixture_are_right(kind, m, scale):
    weights, counts, bucket, p, share = problem(m, kind, scale=scale)
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    each = np.array([moments(weights, row[bucket], counts) for row in p])
    np.testing.assert_allclose(found.mean, each[:, 0], rtol=0.0, atol=1e-10 * each[:, 1].max())
    np.testing.assert_allclose(found.var, each[:, 1] ** 2, rtol=1e-10, atol=0.0)
    mean = float(share @ each[:, 0])
    var = float(share @ (each[:, 1] ** 2 + (each[:, 0] - mean) ** 2))
    values = found.law.values()
    of_law = float(found.law.pmf @ values)
    # Steps are a five-hundredth of a standard deviation or less; rows rounded to them cancel in the mean, the better
    # the more there are.
    assert abs(of_law - mean) <= 1e-4 * math.sqrt(var)
    assert abs(float(found.law.pmf @ (values - of_law) ** 2) / var - 1.0) <= 2e-3


def test_nodes_may_lie_on_either_side_of_one_half():
    weights, counts, bucket, p, share = problem(14, "brier", nodes=4)
    p[:2, :3], p[2:, :3] = 0.9, 0.1
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    assert gap_to_enumeration(found.law, (weights, counts, bucket, p, share), 15 * found.law.step) < 1e-12


def test_labels_that_are_sure_only_move_the_sum():
    weights, counts, bucket, p, share = problem(14, "brier", nodes=4)
    p[:, 0], p[:, 1] = 0.0, 1.0
    p[3] = np.round(p[3])  # a node at which nothing is random
    found = mixed_linear_sum(weights, counts, bucket, p, share)
    assert found is not None
    assert gap_to_enumeration(found.law, (weights, counts, bucket, p, share), 15 * found.law.step) < 1e-12


def test_series_and_factors_agree(monkeypatch):
    given = problem(2_000, "brier", nodes=4)
    by_factors = mixed_linear_sum(*given)
    monkeypatch.setattr(linear_sum_nodes, "_MOST_FACTORS", -1.0)
    by_series = mixed_linear_sum(*given)
    assert by_factors is not None
    assert by_series is not None
    assert by_factors.law.smooth
    assert not by_series.law.smooth
    edges = by_factors.law.values() + 0.5 * by_factors.law.step
    levels = cdf(by_series.law.values(), by_series.law.pmf, edges, "right")
    # Rounding to a lattice moves the sum by about a thousandth of a standard deviation.
    assert float(np.abs(levels - np.cumsum(by_factors.law.pmf)).max()) < 2e-3


@pytest.mark.parametrize("low", [0, 1024])
def test_wide_and_narrow_nodes_equal_exact_convolution(low, monkeypatch):
    """Nothing is left of wide nodes but low frequencies, which are found row by row; narrow ones go by a series."""
    monkeypatch.setattr(linear_sum_nodes, "_MOST_FACTORS", -1.0)
    monkeypatch.setattr(linear_sum_nodes, "_LOW", low)
    weights, counts, bucket, p, _ = problem(300, "whole", nodes=6, counts=3)
    weights[:6] = 60.0  # moves beyond the reach of cumulants
    p[:2] *= 1e-4
    found, held = [], linear_sum_nodes._held_low

    def watched(*given):
        found.append(held(*given))
        return found[-1]

    monkeypatch.setattr(linear_sum_nodes, "_held_low", watched)
    law = mixed_linear_sum(weights, counts, bucket, p, np.full(6, 1.0 / 6.0))
    assert law is not None
    assert sum(nodes.size for nodes, _ in found[0]) == (4 if low else 0)
    masses, reach = convolved(weights, counts, bucket, p)
    places = np.rint(law.law.values()).astype(int) + reach
    # A few thousand roundings of numbers below one.
    np.testing.assert_allclose(law.law.pmf, masses.mean(axis=0)[places].astype(float), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("chance", [0.3, 0.4999, 0.5, 0.52])
def test_series_of_many_rows_in_a_cell_is_a_binomial_law(chance, monkeypatch):
    monkeypatch.setattr(linear_sum_nodes, "_MOST_FACTORS", -1.0)
    p, share = np.array([[chance], [0.5 * chance]]), np.array([0.7, 0.3])
    found = mixed_linear_sum(np.array([2.0]), np.array([5_000]), np.array([0]), p, share)
    assert found is not None
    expected = sum(
        w * scipy.stats.binom.pmf(found.law.values() / 2.0, 5_000, a) for w, a in zip(share, p[:, 0], strict=True)
    )
    np.testing.assert_allclose(found.law.pmf, expected, rtol=0.0, atol=1e-13)


def test_a_few_rows_of_huge_weight_are_left_to_each_node_alone():
    weights, counts, bucket, p, share = problem(300, "brier")
    weights[0] = 1e6
    p[:, bucket[0]] = 1e-9
    assert mixed_linear_sum(weights, counts, bucket, p, share) is None


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_of_many_rows_is_within_dkw_of_drawn_labels(metric, weighted):
    rng = np.random.default_rng(4)
    score = rng.random(1500) ** 2
    label = np.where(rng.random(1500) < 0.4, np.nan, rng.random(1500) < score)
    given = {
        "metrics": metric,
        "missingness": "unknown",
        "sample_weight": rng.lognormal(size=1500) if weighted else None,
    }
    law = dm.evaluate(label, score, **given)[metric]
    drawn = dm.evaluate(label, score, method=dm.methods.MonteCarlo(n_resamples=SAMPLES), rng=0, **given)[metric]
    # Two laws of the same label model; labelings are shared out over its nodes, which only brings them closer.
    assert np.abs(law.cdf(drawn.ppf(np.arange(1, 200) / 200)) - np.arange(1, 200) / 200).max() <= DKW


def test_certificate_of_a_mixed_loss_encloses_the_drawn_law():
    rng = np.random.default_rng(4)
    score = rng.random(600)
    label = np.where(rng.random(600) < 0.5, np.nan, rng.random(600) < score)
    law = dm.evaluate(label, score, metrics="brier", missingness="unknown")["brier"]
    assert law.certificate is not None
    assert 0.0 < law.certificate.ks_bound < 1.0


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_losses_of_2000_rows_take_less_than_two_seconds(metric):
    rng = np.random.default_rng(0)
    score = rng.random(2_000) ** 2
    label = np.where(rng.random(2_000) < 0.3, np.nan, rng.random(2_000) < score)
    start = time.process_time()
    dm.evaluate(label, score, metrics=metric, missingness="unknown")
    # It was 9 to 11 s, and is 0.3 s.
    assert time.process_time() - start < 2.0


def test_mean_of_few_rows_on_many_nodes_is_not_rounded():
    rng = np.random.default_rng(8)
    score = rng.random(60)
    label = np.where(np.arange(60) < 24, np.nan, rng.random(60) < score)
    found = dm.evaluate(label, score, metrics="brier", missingness="unknown")
    law, nodes = found["brier"], found.nodes
    chance = nodes.weight @ nodes.on_all_cells.probability
    known = ((score - label) ** 2)[24:].sum()
    missing = np.sort(score[:24])
    expected = (known + chance @ (1.0 - missing) ** 2 + (1.0 - chance) @ missing**2) / 60
    assert law.method == "near exact"
    assert law.mean() == pytest.approx(expected, rel=1e-12)


def many_losses(spread, rows=700, nodes=16, seed=0):
    """A sum of losses at nodes some of which are nearly sure of every row."""
    rng = np.random.default_rng(seed)
    loss = rng.normal(0.0, 1.0, rows) * spread + (1.0 - spread)
    chance = expit(np.linspace(-3.0, 1.0, nodes)[:, None] + rng.normal(size=rows))
    functional = LinearFunctional(
        missing=np.ones(rows, dtype=np.int64), fill=np.nan, range=(-np.inf, np.inf), weight=loss, constant=2.0
    )
    return functional, Posterior(rng.dirichlet(np.ones(nodes)), chance)


def test_expansion_of_many_losses_is_the_law_of_drawn_labels():
    functional, nodes = many_losses(1.0)
    law = law_of_many_losses(functional, nodes)
    assert law is not None
    rng, draws = np.random.default_rng(1), 100_000
    node = rng.choice(len(nodes), draws, p=nodes.weight)
    labels = rng.random((draws, functional.weight.size), dtype=np.float32) < nodes.probability[node].astype(np.float32)
    values = np.sort(2.0 + labels @ functional.weight)
    slack = np.sqrt(np.log(2.0 / 1e-6) / (2.0 * draws))  # by which draws stray (DKW)
    assert np.abs(law.cdf(values) - (np.arange(draws) + 0.5) / draws).max() <= slack + 0.002


def test_losses_that_are_nearly_alike_are_not_expanded():
    """The control: their sum has steps."""
    assert law_of_many_losses(*many_losses(1e-9)) is None


def test_cells_of_many_rows_are_the_convolution_of_their_rows():
    """Rounded scores: few weights on a lattice, many rows of each; a chance of one half has zeros of its own."""
    rng = np.random.default_rng(0)
    weights, counts = np.arange(1.0, 13.0), rng.integers(2, 40, 12)
    p = np.vstack([rng.uniform(0.05, 0.95, (8, 12)), np.full((1, 12), 0.5)])
    share = np.full(9, 1.0 / 9.0)
    expected = np.zeros(int(weights @ counts) + 1)
    for row, part in zip(p, share, strict=True):
        law = np.ones(1)
        for w, chance in zip(np.repeat(weights, counts).astype(int), np.repeat(row, counts), strict=True):
            step = np.zeros(w + 1)
            step[0], step[-1] = 1.0 - chance, chance
            law = np.convolve(law, step)
        expected += part * law
    found = mixed_linear_sum(weights, counts, np.arange(12), p, share)
    assert found is not None
    lattice = found.law
    places = np.rint(lattice.origin + lattice.step * np.arange(lattice.pmf.size)).astype(int)
    law = np.zeros(expected.size)
    np.add.at(law, places, lattice.pmf)
    np.testing.assert_allclose(law, expected, rtol=0.0, atol=1e-14)
