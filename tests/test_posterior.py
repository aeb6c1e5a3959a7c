"""From a log posterior to nodes: its mode, weighted draws, and a fair choice of them, against scipy and dense grids."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit, logsumexp

from darkmetrics._kernels.posterior.draws import posterior_mode, representatives, weighted_draws
from darkmetrics._kernels.posterior.likelihood import LabelLikelihood

KINDS = ["usual", "positives only", "negatives only", "separable", "constant", "no labels", "few"]


def problem(seed, kind, columns):
    """Beta calibration of a random set with the priors of the label models."""
    rng = np.random.default_rng([seed, KINDS.index(kind), 0 if columns is None else columns])
    n = 12 if kind == "few" else 120
    s = np.clip(rng.beta(1.0, 2.0, n), 0.01, 0.99)
    y = rng.random(n) < s
    if kind == "separable":
        y = s > 0.4
    if kind == "constant":
        s = np.full(n, 0.3)
    missing = rng.random(n) < np.where(y, rng.uniform(0.1, 0.8), rng.uniform(0.1, 0.8))
    if kind == "positives only":
        missing |= ~y
    if kind == "negatives only":
        missing |= y
    if kind == "no labels":
        missing |= True
    x = np.asarray(logit(s))
    Z = None if columns is None else np.column_stack([np.ones(n), (x - x.mean()) / (x.std() + 1e-9)])[:, :columns]
    reference = np.clip(rng.beta(1.0, 2.0, 100 if seed % 2 else 0), 0.01, 0.99)
    reference_y = rng.random(reference.size) < reference
    scale: tuple[float, ...] = () if columns is None else (3.0, 2.0) if columns == 1 else (3.0, 3.0, 1.0, 0.5)
    return LabelLikelihood(
        X=np.column_stack([np.ones(n), np.log(s), -np.log1p(-s)]),
        Z=Z,
        positives=(y & ~missing).astype(float),
        negatives=(~y & ~missing).astype(float),
        missing=missing.astype(float),
        X_reference=np.column_stack([np.ones(reference.size), np.log(reference), -np.log1p(-reference)]),
        positives_reference=reference_y.astype(float),
        negatives_reference=(~reference_y).astype(float),
        prior_mean=np.append([0.0, 1.0, 1.0], np.zeros(len(scale))),
        prior_scale=np.append([3.0, 1.0, 1.0], scale),
        heavy=np.arange(7) >= 5 if columns == 2 else None,
    )


@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_mode_is_as_high_as_any_scipy_finds(kind, columns):
    # With slopes of missingness there are reference rows (odd seeds), as `Selection` asks for: without them one class
    # alone leaves several modes.
    for seed in (1, 3) if columns == 2 else (0, 1):
        likelihood = problem(seed, kind, columns)
        mode, precision = posterior_mode(likelihood.expand, likelihood.prior_mean)

        def loss(point, likelihood=likelihood):
            return -float(likelihood.log_posterior(point[None, :])[0])

        rng = np.random.default_rng(seed)
        starts = [likelihood.prior_mean, *(likelihood.prior_mean + rng.normal(size=(2, mode.size)))]
        found = [optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-7}) for start in starts]
        # scipy has no derivatives here and stops within 1e-6 of its best; a mode is sharper known than it is needed.
        assert loss(mode) <= min(float(result.fun) for result in found) + 1e-6
        expansion = likelihood.expand(mode)
        np.testing.assert_array_equal(precision, expansion.precision)
        # A top, not a saddle: curved downwards in every direction, and level to a small part of the posterior's width.
        assert np.linalg.eigvalsh(precision).min() > 0.0
        gap = np.linalg.solve(precision, expansion.gradient)
        assert float(expansion.gradient @ gap) < 1e-8


def test_mode_of_a_gaussian_is_found_in_one_step():
    mean, precision = np.array([2.0, -300.0]), np.array([[4.0, 1.0], [1.0, 0.5]])
    calls = []

    class At:
        def __init__(self, x):
            calls.append(x)
            off = x - mean
            self.value, self.gradient, self.precision = -0.5 * off @ precision @ off, -precision @ off, precision

    found, curvature = posterior_mode(At, np.zeros(2))
    np.testing.assert_allclose(found, mean, rtol=1e-12)
    np.testing.assert_array_equal(curvature, precision)
    assert len(calls) == 2


def test_mode_is_reached_from_where_the_curvature_has_the_wrong_sign():
    class At:
        """A Cauchy density: beyond its scale it is curved upwards."""

        def __init__(self, x):
            t = float(x[0])
            self.value = -np.log1p(t * t)
            self.gradient = np.array([-2.0 * t / (1.0 + t * t)])
            self.precision = np.array([[2.0 * (1.0 - t * t) / (1.0 + t * t) ** 2]])

    found, _ = posterior_mode(At, np.array([50.0]))
    # A gain below 1e-9 is left: at curvature 2 that is a distance of 3e-5.
    assert abs(found[0]) < 1e-4


# ----------------------------------------------------------------------------------------------------- weighted draws


def on_grid(log_density: Any, mode, precision, points=61, reach=8.0):
    """Log evidence, mean and covariance by the trapezium rule, on a grid along the axes of the Gaussian at the mode."""
    values, vectors = np.linalg.eigh(precision)
    axes = np.meshgrid(*[np.linspace(-reach, reach, points)] * mode.size, indexing="ij")
    z = np.stack([axis.ravel() for axis in axes], axis=1)
    x = mode + z @ (vectors / np.sqrt(values)).T
    log_weight = log_density(x)
    total = logsumexp(log_weight)
    weight = np.exp(log_weight - total)
    mean = weight @ x
    covariance = (weight[:, None] * (x - mean)).T @ (x - mean)
    cell = (2.0 * reach / (points - 1)) ** mode.size / np.sqrt(values.prod())
    return total + np.log(cell), mean, covariance


def small_problem(dimensions, kind="usual"):
    """A calibration with one to three coefficients; "few" has eight labels and is far from Gaussian."""
    rng = np.random.default_rng(dimensions)
    n = 8 if kind == "few" else 60
    s = rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < s
    none = np.zeros(0)
    return LabelLikelihood(
        X=np.column_stack([np.ones(n), np.log(s), -np.log1p(-s)])[:, :dimensions],
        Z=None,
        positives=y.astype(float),
        negatives=(~y).astype(float),
        missing=none,
        X_reference=np.zeros((0, dimensions)),
        positives_reference=none,
        negatives_reference=none,
        prior_mean=np.array([0.0, 1.0, 1.0])[:dimensions],
        prior_scale=np.array([3.0, 1.0, 1.0])[:dimensions],
    )


@pytest.mark.parametrize("kind", ["usual", "few"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_weighted_draws_have_evidence_mean_and_covariance_of_a_grid(dimensions, kind):
    likelihood = small_problem(dimensions, kind)
    mode, precision = posterior_mode(likelihood.expand, likelihood.prior_mean)
    evidence, mean, covariance = on_grid(likelihood.log_posterior, mode, precision)
    sd = np.sqrt(np.diag(covariance))
    # 256 points that fill space evenly; 4096 as where the Gaussian fits badly.
    for n_draws, tolerance in [(256, 0.05), (4096, 0.01)]:
        draws = weighted_draws(likelihood.log_posterior, mode, precision, n_draws)
        assert draws.weight.sum() == pytest.approx(1.0, abs=1e-12)
        assert draws.log_evidence == pytest.approx(evidence, abs=tolerance)
        found = draws.weight @ draws.parameters
        off = draws.parameters - found
        np.testing.assert_array_less(np.abs(found - mean), tolerance * sd)
        spread = (draws.weight[:, None] * off).T @ off
        # A covariance is an average of squares, which vary twice as much as the values.
        np.testing.assert_array_less(np.abs(spread - covariance), 3.0 * tolerance * np.outer(sd, sd))


def test_the_gaussian_at_the_mode_alone_would_miss_the_evidence():
    # The control of the test above: without weights, eight labels give an evidence that is off by more than allowed.
    likelihood = small_problem(3, "few")
    mode, precision = posterior_mode(likelihood.expand, likelihood.prior_mean)
    evidence, mean, covariance = on_grid(likelihood.log_posterior, mode, precision)
    laplace = float(likelihood.log_posterior(mode[None, :])[0]) + 1.5 * np.log(2.0 * np.pi)
    laplace -= 0.5 * float(np.linalg.slogdet(precision)[1])
    assert abs(laplace - evidence) > 0.02
    assert (np.abs(mode - mean) > 0.05 * np.sqrt(np.diag(covariance))).any()


@pytest.mark.parametrize("kind", ["usual", "positives only", "few"])
def test_evidence_of_label_shift_equals_adaptive_sampling(kind):
    """Five dimensions are too many for a grid: many draws from a wide Student proposal stand for the integral."""
    likelihood = problem(1, kind, 1)
    mode, precision = posterior_mode(likelihood.expand, likelihood.prior_mean)
    wide = stats.multivariate_t(mode, 1.5 * np.linalg.inv(precision), df=5, seed=np.random.default_rng(3))
    points = wide.rvs(20_000)
    log_weight = likelihood.log_posterior(points) - wide.logpdf(points)
    expected = logsumexp(log_weight) - np.log(len(points))
    weight = np.exp(log_weight - logsumexp(log_weight))
    error = np.sqrt(weight @ weight)  # relative standard error of the oracle, at most 1.5%
    assert error < 0.015
    draws = weighted_draws(likelihood.log_posterior, mode, precision, 4096)
    # 4096 even points are good for 0.02 in log evidence; reasons are told apart by differences of order one.
    assert draws.log_evidence == pytest.approx(expected, abs=0.02 + 3.0 * error)
    share, truth = (w @ likelihood.share(p) for w, p in [(draws.weight, draws.parameters), (weight, points)])
    np.testing.assert_allclose(share, truth, atol=0.01)


def test_draws_are_the_same_in_every_call():
    likelihood = small_problem(2)
    mode, precision = posterior_mode(likelihood.expand, likelihood.prior_mean)
    first, second = (weighted_draws(likelihood.log_posterior, mode, precision, 256) for _ in range(2))
    assert first.parameters.tolist() == second.parameters.tolist()
    assert first.weight.tolist() == second.weight.tolist()


# ---------------------------------------------------------------------------------------------------- representatives


def cloud(seed, n=256, correlation=0.6):
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    second = correlation * first + np.sqrt(1.0 - correlation**2) * rng.normal(size=n)
    return first, second, rng.dirichlet(np.ones(n))


def distance(values, weight, chosen):
    """Kolmogorov-Smirnov distance between the law of all and that of the chosen."""
    order = np.argsort(values)
    cdf = np.cumsum(weight[order])
    count = np.bincount(chosen, minlength=values.size)[order]
    return float(np.abs(np.cumsum(count) / chosen.size - cdf).max())


def distances(choose):
    found = []
    for seed in range(20):
        first, second, weight = cloud(seed)
        chosen = choose(seed, first, second, weight)
        found.append([distance(values, weight, chosen) for values in (first, second, first + second)])
    return np.array(found)


def test_representatives_keep_the_law_of_both_sums():
    even = distances(lambda seed, a, b, w: representatives(a, b, w, 64))
    # Eleven slabs cut the first sum into steps of 1/11, of which a part is misplaced within its slab, plus the steps of
    # 1/64 of the sample itself.
    assert even[:, 0].max() < 1 / 11 + 1 / 64
    assert even.mean() < 0.06


@pytest.mark.parametrize("size", [32, 64])
def test_representatives_keep_the_spread_of_both_sums(size):
    ratios = []
    for seed in range(100):
        first, second, weight = cloud(seed)
        chosen = representatives(first, second, weight, size)
        for values in (first, second, first + second):
            spread = np.sqrt(weight @ (values - weight @ values) ** 2)
            ratios.append(values[chosen].std() / spread)
    # On average; of 32 nodes a single choice is off by 5%.
    np.testing.assert_allclose(np.reshape(ratios, (100, 3)).mean(axis=0), 1.0, atol=0.02)


def test_a_random_choice_is_worse():
    even = distances(lambda seed, a, b, w: representatives(a, b, w, 64))
    random = distances(lambda seed, a, b, w: np.random.default_rng([seed, 1]).choice(w.size, 64, p=w))
    assert (random.mean(axis=0) > 1.5 * even.mean(axis=0)).all()


@pytest.mark.parametrize("size", [1, 2, 32, 64, 300])
def test_representatives_are_as_many_as_asked_and_always_the_same(size):
    first, second, weight = cloud(0)
    chosen = representatives(first, second, weight, size)
    assert chosen.shape == (size,)
    assert chosen.tolist() == representatives(first, second, weight, size).tolist()


def test_draws_of_weight_zero_are_not_chosen():
    first, second, weight = cloud(0)
    weight[::2] = 0.0
    weight /= weight.sum()
    assert (weight[representatives(first, second, weight, 64)] > 0.0).all()


def test_one_heavy_draw_is_chosen_as_often_as_it_weighs():
    weight = np.full(101, 0.005)
    weight[40] = 0.5
    values = expit(np.linspace(-3.0, 3.0, 101))
    chosen = representatives(values, values[::-1], weight, 64)
    # Rows of equal steps: half of them land in the draw that holds half of the weight, one more or less at its ends.
    assert abs(int((chosen == 40).sum()) - 32) <= 1


def test_equal_values_are_no_trouble():
    chosen = representatives(np.zeros(10), np.zeros(10), np.full(10, 0.1), 10)
    assert sorted(chosen.tolist()) == list(range(10))
