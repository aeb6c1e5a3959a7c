"""Moments and law of ROC-AUC against all labelings, the paper's fourfold sums and sampled scenarios."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import pytest

import darkmetrics as dm
import oracle
from darkmetrics._kernels.auc.ranks import auc_moments

TIES: list[Literal["half", "full"]] = ["half", "full"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with partly missing labels (nan), a chance and a weight each."""

    y: np.ndarray
    s: np.ndarray
    p: np.ndarray
    w: np.ndarray
    ties: Literal["half", "full"] = "half"

    def bound(self):
        """The kernel's view of the problem, and the chances in its order."""
        weight = None if np.all(self.w == 1.0) else self.w
        data = dm.EvaluationSet(self.y, self.s, missingness=dm.missing.Fixed(self.p), sample_weight=weight)
        chances = data.cells.probability
        assert chances is not None
        return self.functional().data, chances[data.missing_cells]

    def functional(self):
        """The library's view of the metric."""
        weight = None if np.all(self.w == 1.0) else self.w
        data = dm.EvaluationSet(self.y, self.s, missingness=dm.missing.Fixed(self.p), sample_weight=weight)
        return dm.metrics.roc_auc(ties=self.ties).bind(data, np.nan)

    def distribution(self, method):
        """The public law of ROC-AUC, conditional on both classes being there."""
        metric = dm.metrics.roc_auc(ties=self.ties)
        result = dm.evaluate(
            self.y, self.s, missingness=dm.missing.Fixed(self.p), metrics=metric, method=method, zero_division=np.nan
        )
        return result[metric.name]


# ------------------------------------------------------------------------------------------- small problems


def small_problem(seed, ties, weighted):
    """Up to nine rows with tied scores, some labels missing, some chances 0 or 1."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    y = rng.integers(0, 2, n).astype(float)
    y[rng.permutation(n)[: rng.integers(1, n + 1)]] = np.nan
    p = np.where(rng.random(n) < 0.1, np.round(rng.random(n)), rng.random(n))
    s = rng.choice([0.1, 0.3, 0.35, 0.8], n) if seed % 2 else rng.permutation(n) / n
    w = rng.choice([0.5, 1.0, 1.7, 3.0], n) if weighted else np.ones(n)
    return Problem(y, s, p, w, ties)


def pair_wins(problem):
    """xi[i, j]: what the pair of positive i and negative j counts."""
    higher, equal = problem.s[:, None] > problem.s, problem.s[:, None] == problem.s
    return higher + (1.0 if problem.ties == "full" else 0.5) * equal


def all_labelings(problem):
    """Every complete labeling and its probability."""
    missing = np.flatnonzero(np.isnan(problem.y))
    labels = np.tile(problem.y, (2**missing.size, 1))
    labels[:, missing] = np.array(list(product([0.0, 1.0], repeat=missing.size)))
    chance = np.where(labels[:, missing] == 1.0, problem.p[missing], 1.0 - problem.p[missing]).prod(axis=1)
    return labels, chance


def brute_force_sums(problem):
    """Numerator and denominator of ROC-AUC of every labeling, pair by pair, and the probabilities."""
    labels, chance = all_labelings(problem)
    positive, negative = labels * problem.w, (1.0 - labels) * problem.w
    numerator = np.einsum("li,ij,lj->l", positive, pair_wins(problem), negative)
    return numerator, positive.sum(axis=1) * negative.sum(axis=1), chance


def brute_force_moments(problem):
    a, d, chance = brute_force_sums(problem)
    mean_a, mean_d = float(chance @ a), float(chance @ d)
    return np.array(
        [
            mean_a,
            mean_d,
            float(chance @ (a - mean_a) ** 2),
            float(chance @ (d - mean_d) ** 2),
            float(chance @ ((a - mean_a) * (d - mean_d))),
        ]
    )


def joint_mean(q, indices):
    """E of a product of labels: a label times itself is itself."""
    return float(np.prod([q[i] for i in set(indices)]))


def paper_moments(problem):
    """The paper's lemma on mean and covariance of sums of xi_ij Y_i (1 - Y_j), with its fourfold sum."""
    q = np.where(np.isnan(problem.y), problem.p, problem.y)
    # A known label is a Bernoulli variable with chance 0 or 1, which covers the paper's separate cases.
    n = q.size
    xi, one = pair_wins(problem), np.ones((n, n))
    omega = np.array([[q[i] * (1.0 - q[j]) if i != j else 0.0 for j in range(n)] for i in range(n)])

    def covariance(left, right):
        total = 0.0
        for i, j, k, m in product(range(n), repeat=4):
            nu = joint_mean(q, (i, k)) - q[i] * q[k]
            gamma_ijk = joint_mean(q, (i, j, k)) - joint_mean(q, (i, j)) * q[k]
            gamma_kmi = joint_mean(q, (k, m, i)) - joint_mean(q, (k, m)) * q[i]
            eta = joint_mean(q, (i, j, k, m)) - joint_mean(q, (i, j)) * joint_mean(q, (k, m))
            total += left[i, j] * right[k, m] * (nu - gamma_ijk - gamma_kmi + eta)
        return total

    return np.array([(xi * omega).sum(), omega.sum(), covariance(xi, xi), covariance(one, one), covariance(xi, one)])


def assert_moments_close(found, expected):
    # 1e-9 relative is the promise; the yardstick of the covariance is the product of the standard deviations, and a
    # variance of zero is a difference of numbers of the size of the squared mean.
    scale = np.abs(expected)
    scale[4] = max(scale[4], np.sqrt(expected[2] * expected[3]))
    floor = 1e-14 * np.array([1.0, 1.0, *[max(1.0, expected[0] ** 2, expected[1] ** 2)] * 3])
    assert np.all(np.abs(found - expected) <= 1e-9 * scale + floor), (found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", range(30))
def test_moments_equal_brute_force(seed, ties, weighted):
    problem = small_problem(seed, ties, weighted)
    data, p = problem.bound()
    # Weights are divided by a power of two; numerator and denominator are sums over pairs of them.
    unit = (problem.w.sum() / data.total) ** 2
    expected = brute_force_moments(problem) / np.array([unit, unit, unit**2, unit**2, unit**2])
    assert_moments_close(np.array(auc_moments(data, p)), expected)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_moments_equal_the_fourfold_sums_of_the_paper(seed, ties):
    problem = small_problem(seed, ties, weighted=False)
    keep = slice(0, 6)
    tiny = Problem(problem.y[keep], problem.s[keep], problem.p[keep], problem.w[keep], ties)
    assert_moments_close(np.array(auc_moments(*tiny.bound())), paper_moments(tiny))


def test_moments_of_cells_of_several_rows_equal_brute_force():
    y, s, p = (
        np.array([np.nan] * 6 + [1.0, 0.0]),
        np.repeat([0.2, 0.5, 0.7, 0.5], 2),
        np.repeat([0.3, 0.6, 0.9, 0.0], 2),
    )
    for ties in TIES:
        problem = Problem(y, s, p, np.ones(8), ties)
        assert problem.bound()[0].counts.max() == 2
        assert_moments_close(np.array(auc_moments(*problem.bound())), brute_force_moments(problem))


def test_moments_of_a_large_problem_equal_those_of_samples():
    problem = case("ties", 300)
    for ties in TIES:
        own = Problem(problem.y, problem.s, problem.p, problem.w, ties)
        data, p = own.bound()
        rng = np.random.default_rng(0)
        positives = rng.binomial(data.counts.astype(np.int64), p, size=(20_000, p.size))
        a, d = sampled_sums(own.functional(), positives)
        moments = auc_moments(data, p)
        # Standard errors of a mean and of a variance over 20,000 draws, times four.
        assert abs(a.mean() - moments.mean_a) < 4.0 * np.sqrt(moments.var_a / 20_000)
        assert abs(d.mean() - moments.mean_d) < 4.0 * np.sqrt(moments.var_d / 20_000)
        assert abs(a.var() / moments.var_a - 1.0) < 4.0 * np.sqrt(2.0 / 20_000)
        assert abs(d.var() / moments.var_d - 1.0) < 4.0 * np.sqrt(2.0 / 20_000)


def sampled_sums(functional, positives):
    """Numerator and denominator from the value: the denominator is known, and the value is checked elsewhere."""
    data = functional.data
    p_sum = data.known_p + (positives * data.weight).sum(axis=1)
    d = p_sum * (data.total - p_sum)
    return functional.values(positives) * d, d


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", TIES)
def test_public_law_equals_brute_force(ties, weighted):
    for seed in range(10):
        problem = small_problem(seed, ties, weighted)
        a, d, chance = brute_force_sums(problem)
        defined = d > 0.0
        if not chance[defined].sum() > 0.0:
            continue
        metric = dm.metrics.roc_auc(ties=ties)
        distribution = dm.evaluate(
            problem.y,
            problem.s,
            missingness=dm.missing.Fixed(problem.p),
            metrics=metric,
            method="exact",
            sample_weight=problem.w,
            zero_division=np.nan,
        )[metric.name]
        value, share = a[defined] / d[defined], chance[defined] / chance[defined].sum()
        mean = float(share @ value)
        assert distribution.undefined == pytest.approx(float(chance[~defined].sum()), abs=1e-12)
        assert distribution.mean() == pytest.approx(mean, abs=1e-12)
        # Rounding in the mean of 1e-16 is 1e-8 in the standard deviation of a single point.
        assert distribution.var() == pytest.approx(float(share @ (value - mean) ** 2), abs=1e-12)
        for t in value:
            assert distribution.cdf(t) == pytest.approx(float(share[value <= t + 1e-12].sum()), abs=1e-12)


# ------------------------------------------------------------------------------------------- large problems


def rows(m, rng, n=None):
    """`m` missing labels among n rows whose scores are roughly calibrated."""
    n = 4 * m if n is None else n
    s = rng.random(n)
    y = (rng.random(n) < s).astype(float)
    p = np.clip(s + 0.1 * rng.normal(size=n), 0.02, 0.98)
    y[rng.permutation(n)[:m]] = np.nan
    return y, s, p


@cache
def case(name, m):
    """A problem of the kind that the name says with `m` missing labels, the same one at every call."""
    rng = np.random.default_rng([m, *name.encode()])
    y, s, p = rows(m, rng)
    missing = np.isnan(y)
    ties: Literal["half", "full"] = "full" if "full" in name else "half"
    match name.removesuffix(", full"):
        case "distinct scores":
            pass
        case "all 1/2":
            p = np.full(y.size, 0.5)
        case "near 0":
            p = 0.01 * rng.random(y.size)
        case "very near 0":
            p = 1e-4 * rng.random(y.size)
        case "near 1":
            p = 1.0 - 0.01 * rng.random(y.size)
        case "u-shaped":
            p = rng.beta(0.3, 0.3, y.size)
        case "ties":
            s = np.round(s, 1)
        case "heavy ties":
            s = np.round(2.0 * s) / 2.0
        case "few positives":
            y = np.where(missing, np.nan, 0.0)
            y[np.flatnonzero(~missing)[:2]] = 1.0
            p = 0.03 * rng.random(y.size)
        case "few labels":
            y, s, p = rows(m, rng, n=m + 4)
            y[~np.isnan(y)] = [1.0, 1.0, 0.0, 0.0]
        case _:
            raise ValueError(name)
    return Problem(y, s, p, np.ones(y.size), ties)


CASES = [
    "distinct scores",
    "distinct scores, full",
    "all 1/2",
    "near 0",
    "very near 0",
    "near 1",
    "u-shaped",
    "ties",
    "ties, full",
    "heavy ties",
    "heavy ties, full",
    "few positives",
    "few labels",
]


def sampled_auc(problem, size, rng):
    """ROC-AUC of sampled scenarios from the ranks of the positives; scenarios without both classes left out."""
    missing = np.isnan(problem.y)
    _, group, count = np.unique(problem.s, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - 0.5 * (count - 1.0))[group]
    known = np.where(missing, 0.0, problem.y)
    n = problem.y.size
    # Sorted by group, so that the positives of each group are sums of neighbours.
    order = np.flatnonzero(missing)[np.argsort(group[missing], kind="stable")]
    columns = np.stack([np.ones(order.size), rank[order]], axis=1)
    open_, starts = np.unique(group[order], return_index=True)
    known_in_group = np.bincount(group, known, count.size)
    settled = float((known_in_group * (count - known_in_group)).sum())
    settled -= float((known_in_group * (count - known_in_group))[open_].sum())
    values = []
    chunk = max(1, 4_000_000 // order.size)
    for start in range(0, size, chunk):
        labels = rng.random((min(chunk, size - start), order.size)) < problem.p[order]
        positives, rank_sum = (np.array([known.sum(), known @ rank]) + labels @ columns).T
        wins = rank_sum - 0.5 * positives * (positives + 1.0)
        if problem.ties == "full":
            in_group = known_in_group[open_] + np.add.reduceat(labels, starts, axis=1, dtype=np.int64)
            wins += 0.5 * (settled + (in_group * (count[open_] - in_group)).sum(axis=1))
        pairs = positives * (n - positives)
        values.append(wins[pairs > 0.0] / pairs[pairs > 0.0])
    return np.sort(np.concatenate(values))


def dkw(size):
    """What sampling alone may add to the distance, with a chance of one in ten thousand to be more."""
    return float(np.sqrt(np.log(2.0 / 1e-4) / (2.0 * size)))


# The largest distance that is promised.
PROMISED = 0.01


SCENARIOS = 100_000


# The guarantees try every kind at every size; here those beyond 60 are the ones that take another way to the law.
LARGE = ["distinct scores", "ties, full", "heavy ties", "near 0"]


@pytest.mark.parametrize(
    ("m", "name"), [(m, name) for m in (30, 60) for name in CASES] + [(120, name) for name in LARGE]
)
def test_law_is_close_to_sampled_scenarios(m, name):
    problem = case(name, m)
    sample = sampled_auc(problem, SCENARIOS, np.random.default_rng(m))
    assert oracle.kolmogorov(problem.distribution("auto").cdf, sample) <= PROMISED + dkw(SCENARIOS)


def test_sampled_scenarios_are_those_of_brute_force():
    # The ruler itself: sampled scenarios of a small problem against all its labelings.
    for ties in TIES:
        problem = small_problem(5, ties, weighted=False)
        a, d, chance = brute_force_sums(problem)
        value, share = a[d > 0.0] / d[d > 0.0], chance[d > 0.0] / chance[d > 0.0].sum()
        sample = sampled_auc(problem, SCENARIOS, np.random.default_rng(0))

        def cdf(t, value=value, share=share):
            return np.array([share[value <= x].sum() for x in t])

        assert oracle.kolmogorov(cdf, sample) <= dkw(SCENARIOS)


@pytest.mark.parametrize("name", ["distinct scores", "ties", "ties, full"])
def test_plain_gaussian_is_not_as_close_at_30_missing(name):
    problem = case(name, 30)
    sample = sampled_auc(problem, SCENARIOS, np.random.default_rng(30))
    gaussian = oracle.kolmogorov(problem.distribution("gaussian").cdf, sample)
    assert gaussian > PROMISED + dkw(SCENARIOS)
    assert gaussian > oracle.kolmogorov(problem.distribution("auto").cdf, sample)


@pytest.mark.parametrize("chance", [0.5, 0.48])
def test_rows_of_one_chance_are_close_to_brute_force(chance):
    y, n = np.append(np.full(16, np.nan), [1.0, 0.0]), 18
    rng = np.random.default_rng(0)
    problem = Problem(y, rng.permutation(n) / n, np.full(n, chance), 1.0 + np.arange(n) % 2, "full")
    a, d, mass = brute_force_sums(problem)
    order = np.argsort(a / d, kind="stable")
    name = "roc_auc(ties='full')"
    distribution = dm.evaluate(
        y, problem.s, missingness=dm.missing.Fixed(chance), sample_weight=problem.w, metrics=name
    )[name]
    at = np.linspace(0.0, 1.0, 301) + 1e-9
    true = np.append(0.0, np.cumsum(mass[order]))[np.searchsorted((a / d)[order], at, side="right")]
    assert np.abs(distribution.cdf(at) - true).max() <= 0.01


def test_probability_of_no_positive_row_is_exact_where_labels_are_drawn():
    rng = np.random.default_rng(0)
    weight = np.exp(rng.normal(0.0, 3.5, 40))
    y = np.append(np.full(20, np.nan), np.zeros(20))
    p = rng.uniform(0.01, 0.2, 20)
    distribution = dm.evaluate(
        y,
        rng.random(40),
        sample_weight=weight,
        missingness=dm.missing.Fixed(p),
        metrics="roc_auc(ties='full')",
        zero_division=np.nan,
    )["roc_auc(ties='full')"]
    assert distribution.undefined == pytest.approx(np.prod(1.0 - p), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_ranks_between_fractional_weights_are_close_to_draws(seed):
    rng = np.random.default_rng(seed)
    score, y, p = rng.random(44), (rng.random(44) < 0.5).astype(float), rng.uniform(0.05, 0.95, 44)
    y[rng.permutation(44)[:30]] = np.nan
    weight = np.where(np.isnan(y), 1.0, rng.choice([0.3, 0.55, 1.2], 44))
    distribution = dm.evaluate(y, score, sample_weight=weight, missingness=dm.missing.Fixed(p), metrics="roc_auc")[
        "roc_auc"
    ]
    labels = np.where(np.isnan(y), rng.random((50_000, 44)) < p, y)
    positive, negative = labels * weight, (1.0 - labels) * weight
    auc = ((positive @ (score[:, None] > score)) * negative).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1))
    assert oracle.kolmogorov(distribution.cdf, np.sort(auc)) < 0.01 + dkw(50_000)
