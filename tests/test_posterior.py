"""From a log posterior to nodes: its mode, and representative draws."""

import numpy as np
import pytest
from scipy.special import expit

from darkmetrics.posterior.likelihood import Expansion
from darkmetrics.posterior.mode import find_mode
from darkmetrics.posterior.representatives import representatives


def test_mode_of_a_gaussian_is_found_in_one_step():
    mean, precision = np.array([2.0, -300.0]), np.array([[4.0, 1.0], [1.0, 0.5]])
    calls = []

    def expand(x):
        calls.append(x)
        error = x - mean
        return Expansion(-0.5 * error @ precision @ error, -precision @ error, precision)

    mode = find_mode(expand, np.zeros(2))
    np.testing.assert_allclose(mode.theta, mean, rtol=1e-12)
    np.testing.assert_array_equal(mode.precision, precision)
    assert len(calls) == 2


def test_mode_is_reached_from_where_the_curvature_has_the_wrong_sign():
    def expand(x):
        """A Cauchy density: beyond its scale it is curved upwards."""
        t = float(x[0])
        precision = np.array([[2.0 * (1.0 - t * t) / (1.0 + t * t) ** 2]])
        return Expansion(-float(np.log1p(t * t)), np.array([-2.0 * t / (1.0 + t * t)]), precision)

    # A gain below 1e-8 is left: at curvature 2 that is a distance of 1e-4.
    assert abs(find_mode(expand, np.array([50.0])).theta[0]) < 2e-4


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
