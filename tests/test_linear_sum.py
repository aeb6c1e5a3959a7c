"""The law of a weighted sum of labels against enumeration, exact convolution, moments and sampled sums."""

from itertools import pairwise

import numpy as np
import pytest

from darkmetrics._kernels.sums.linear_sum import linear_sum_law
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant, sum_cumulants

SAMPLES = 20_000
# Dvoretzky-Kiefer-Wolfowitz: a right law strays further from its sample with probability 1e-4 at most.
DKW = float(np.sqrt(np.log(2.0 / 1e-4) / (2.0 * SAMPLES)))


def enumerated(weights, p, counts):
    """Every value of the sum and its probability, one row after the other."""
    values, masses = np.zeros(1), np.ones(1)
    for weight, chance in zip(np.repeat(weights, counts), np.repeat(p, counts), strict=True):
        values = np.concatenate([values, values + weight])
        masses = np.concatenate([masses * (1.0 - chance), masses * chance])
    order = np.argsort(values)
    return values[order], masses[order]


def cdf(values, masses, t, side):
    """P(X <= t) for side "right", P(X < t) for side "left", of a discrete law with sorted values."""
    return np.concatenate(([0.0], np.cumsum(masses)))[np.searchsorted(values, t, side=side)]


def distance(law, values, masses, slack):
    """Largest difference of the two cdfs, where an atom may be up to `slack` away from its place."""
    places = law.values()
    above = cdf(values, masses, values, "right") - cdf(places, law.pmf, values + slack, "right")
    below = cdf(places, law.pmf, values - slack, "left") - cdf(values, masses, values, "left")
    return float(max(above.max(), below.max()))


def moments(weights, p, counts):
    """Mean and standard deviation of the sum."""
    return float(counts @ (weights * p)), float(np.sqrt(counts @ (weights**2 * p * (1.0 - p))))


def sampled(weights, p, rng):
    """Sums over sampled labels, in chunks to keep memory small."""
    if p.max() > 0.01:
        # Chances to seven digits, of which so many samples tell three.
        chance = p.astype(np.float32)
        drawn = (rng.random((500, p.size), dtype=np.float32) < chance for _ in range(SAMPLES // 500))
        # A product of a matrix of truth values takes three times as long.
        return np.concatenate([np.einsum("ij,j->i", labels, weights) for labels in drawn])
    # Rare positives: from one candidate at the largest chance to the next, thinned to each row's own.
    most = p.max()
    number = SAMPLES * p.size * most
    places = np.cumsum(rng.geometric(most, int(number + 10.0 * np.sqrt(number) + 100.0))) - 1
    assert places[-1] >= SAMPLES * p.size
    sample, row = np.divmod(places[places < SAMPLES * p.size], p.size)
    kept = rng.random(row.size) < p[row] / most
    return np.bincount(sample[kept], weights[row[kept]], minlength=SAMPLES)


WEIGHTS = {
    "normal": lambda rng, m: rng.normal(size=m),
    "log": lambda rng, m: np.log(rng.random(m)),
    "brier": lambda rng, m: 1.0 - 2.0 * rng.random(m),
    "lognormal": lambda rng, m: rng.lognormal(0.0, 1.0, m),
    "few levels": lambda rng, m: rng.choice([-0.31, 0.1, 0.27], m),
    "equal": lambda rng, m: np.full(m, -0.37),
}
CHANCES = {
    "uniform": lambda rng, m: rng.random(m),
    "near 0": lambda rng, m: 0.02 * rng.random(m),
    "near 1": lambda rng, m: 1.0 - 0.02 * rng.random(m),
    "with 0 and 1": lambda rng, m: np.where(rng.random(m) < 0.3, np.round(rng.random(m)), rng.random(m)),
}


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("m", [1, 2, 5, 8, 12, 16])
def test_law_equals_enumeration(m, kind, chance):
    rng = np.random.default_rng([m, len(kind), len(chance)])
    weights, p, counts = WEIGHTS[kind](rng, m), CHANCES[chance](rng, m), np.ones(m, dtype=np.int64)
    law = linear_sum_law(weights, p, counts)
    # On its fine lattice a sum of m weights may be rounded by one step per weight; an exact lattice rounds nothing.
    slack = 1e-9 if law.exact else (m + 1) * law.step
    values, masses = enumerated(weights, p, counts)
    assert distance(law, values, masses, slack) < 1e-12


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("m", [1, 2, 5, 8, 12, 16])
def test_mean_of_few_unequal_weights_is_exact(m, chance):
    rng = np.random.default_rng([m, len(chance)])
    weights, p, counts = rng.normal(size=m), CHANCES[chance](rng, m), np.ones(m, dtype=np.int64)
    mean, sd = moments(weights, p, counts)
    law = linear_sum_law(weights, p, counts)
    # Mass is shared between neighbours so that the mean stays: only rounding is left.
    assert abs(float(law.pmf @ law.values()) - mean) <= 1e-12 * max(sd, 1.0)


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-6])
@pytest.mark.parametrize("m", [5, 60, 400])
def test_integer_weights_equal_exact_convolution(m, scale):
    rng = np.random.default_rng(m)
    whole, p, counts = rng.integers(-9, 10, m), rng.random(m), rng.integers(1, 4, m)
    reach = int(counts @ np.abs(whole))
    reference = np.zeros(2 * reach + 1, dtype=np.longdouble)
    reference[reach] = 1.0
    for weight, chance in zip(np.repeat(whole, counts), np.repeat(p, counts), strict=True):
        reference = (1.0 - chance) * reference + chance * np.roll(reference, weight)
    law = linear_sum_law(scale * whole, p, counts)
    assert law.exact
    place = np.rint(law.values() / scale).astype(int)
    found = np.zeros(reference.size)
    inside = np.abs(place) <= reach
    found[place[inside] + reach] = law.pmf[inside]
    assert float(law.pmf[~inside].sum()) == 0.0
    # 1e-12 in total variation: the sum of a few thousand rounding errors.
    assert 0.5 * float(np.abs(found - reference).sum()) <= 1e-12


@pytest.mark.parametrize("m", [16, 200, 2_000, 20_000, 200_000])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_mean_and_standard_deviation_are_right_for_all_sizes(kind, m):
    rng = np.random.default_rng([m, len(kind)])
    weights, p, counts = WEIGHTS[kind](rng, m) / m, rng.random(m), np.ones(m, dtype=np.int64)
    mean, sd = moments(weights, p, counts)
    law = linear_sum_law(weights, p, counts)
    found = float(law.pmf @ law.values())
    spread = float(np.sqrt(law.pmf @ (law.values() - found) ** 2))
    assert abs(float(law.pmf.sum()) - 1.0) < 1e-12
    assert abs(found - mean) <= 1e-9 * sd
    # Sharing mass between neighbours adds at most a quarter of a squared step per weight: with 2,048 steps per
    # standard deviation and at most 1,024 different weights, 6e-5 of the variance.
    assert abs(spread / sd - 1.0) <= 6e-5


# 2,000 rows of comparable weight are the first to take the characteristic function.
@pytest.mark.parametrize(("m", "chance"), [(40, "near 0"), (400, "uniform"), (400, "near 1"), (2_000, "uniform")])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_law_is_within_dkw_of_sampled_sums(m, kind, chance):
    rng = np.random.default_rng([m, len(kind), len(chance)])
    weights, p, counts = WEIGHTS[kind](rng, m), CHANCES[chance](rng, m), np.ones(m, dtype=np.int64)
    law = linear_sum_law(weights, p, counts)
    sums = np.sort(sampled(weights, p, rng))
    # Half of a percent of a standard deviation, or rounding where the lattice is exact: sampled atoms are off by
    # the last bits of their sum.
    slack = 1e-9 if law.exact else 0.005 * moments(weights, p, counts)[1]
    assert distance(law, sums, np.full(SAMPLES, 1.0 / SAMPLES), slack) <= DKW


@pytest.mark.parametrize("error", ["mean", "variance", "skewness"])
def test_a_wrong_law_is_not_within_dkw_of_sampled_sums(error):
    rng = np.random.default_rng(0)
    m = 400
    weights, p, counts = rng.lognormal(0.0, 1.0, m), 0.02 * rng.random(m), np.ones(m, dtype=np.int64)
    sums = np.sort(sampled(weights, p, rng))
    law = linear_sum_law(weights, p, counts)
    mean, sd = moments(weights, p, counts)
    wrong = {
        "mean": law._replace(origin=law.origin + 0.1 * sd),
        "variance": law._replace(origin=mean + 1.15 * (law.origin - mean), step=1.15 * law.step),
        "skewness": law._replace(origin=2.0 * mean - law.values()[-1], pmf=law.pmf[::-1]),
    }[error]
    assert distance(wrong, sums, np.full(SAMPLES, 1.0 / SAMPLES), 0.005 * sd) > DKW


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("near", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["brier", "log"])
def test_rare_events_keep_the_atom_of_no_event(kind, near, sign):
    rng = np.random.default_rng(7)
    m = 20_000
    weights = sign * WEIGHTS[kind](rng, m) / m
    rare = 2e-4 * rng.random(m)
    p = rare if near == 0.0 else 1.0 - rare
    law = linear_sum_law(weights, p, np.ones(m, dtype=np.int64))
    no_event = 0.0 if near == 0.0 else float(weights.sum())
    sd = moments(weights, p, np.ones(m))[1]
    atom = int(np.argmin(np.abs(law.values() - no_event)))
    assert abs(law.values()[atom] - no_event) < 1e-9 * sd
    chance = float(np.exp(np.log1p(-rare).sum()))
    # An event that weighs next to nothing, less than two steps or two thousandths of the range, may join the atom.
    crowd = float(rare[np.abs(weights) <= 2.0 * max(law.step, float(np.ptp(weights)) / 1024.0)].sum())
    assert chance * (1.0 - 1e-9) <= law.pmf[atom] <= chance * (1.0 + 1e-9 + crowd)
    assert crowd < 0.1  # else the claim would be empty


@pytest.mark.parametrize("kind", ["brier", "log", "normal"])
def test_rare_events_are_within_dkw_of_sampled_sums(kind):
    rng = np.random.default_rng(11)
    m = 20_000
    weights, p = WEIGHTS[kind](rng, m), 2e-4 * rng.random(m)
    law = linear_sum_law(weights, p, np.ones(m, dtype=np.int64))
    sums = np.sort(sampled(weights, p, rng))
    slack = 0.005 * moments(weights, p, np.ones(m))[1]
    assert distance(law, sums, np.full(SAMPLES, 1.0 / SAMPLES), slack) <= DKW


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_rare_events_of_heavy_tailed_cost_are_within_dkw_of_sampled_sums(sigma):
    # Amounts of money: a few rows weigh hundreds of times the typical one.
    rng = np.random.default_rng(13)
    m = 20_000
    weights, p = rng.lognormal(0.0, sigma, m), 2e-4 * rng.random(m)
    law = linear_sum_law(weights, p, np.ones(m, dtype=np.int64))
    sums = np.sort(sampled(weights, p, rng))
    # Two percent of a standard deviation: what a reader of an interval would not see.
    slack = 0.02 * moments(weights, p, np.ones(m))[1]
    assert distance(law, sums, np.full(SAMPLES, 1.0 / SAMPLES), slack) <= DKW


def test_cells_of_several_rows_equal_the_rows_one_by_one():
    rng = np.random.default_rng(3)
    weights, p, counts = rng.normal(size=40), rng.random(40), rng.integers(1, 5, 40)
    together = linear_sum_law(weights, p, counts)
    apart = linear_sum_law(np.repeat(weights, counts), np.repeat(p, counts), np.ones(counts.sum(), dtype=np.int64))
    sd = moments(weights, p, counts)[1]
    assert distance(together, apart.values(), apart.pmf, 0.005 * sd) < 1e-6


@pytest.mark.parametrize("m", [0, 1, 30])
def test_certain_labels_are_a_point_mass_at_their_sum(m):
    rng = np.random.default_rng(m)
    weights, p = rng.normal(size=m), np.round(rng.random(m))
    law = linear_sum_law(weights, p, np.ones(m, dtype=np.int64))
    assert law.pmf.tolist() == [1.0]
    assert law.values()[0] == pytest.approx(float(weights @ p), abs=1e-12)


def test_weights_of_zero_do_not_matter():
    weights, p = np.array([0.0, 0.3, 0.0, 0.3]), np.array([0.9, 0.2, 0.4, 0.7])
    with_zero = linear_sum_law(weights, p, np.ones(4, dtype=np.int64))
    without = linear_sum_law(weights[[1, 3]], p[[1, 3]], np.ones(2, dtype=np.int64))
    np.testing.assert_allclose(with_zero.values(), without.values(), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(with_zero.pmf, without.pmf, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("order", range(1, 9))
def test_bernoulli_cumulants_equal_those_from_raw_moments(order):
    p = np.array([0.0, 1e-6, 0.2, 0.5, 0.9, 1.0])
    # Every raw moment of a Bernoulli variable is p: the textbook recursion from moments to cumulants.
    cumulants: list[np.ndarray] = []
    for n in range(1, order + 1):
        binomial = np.ones(1)
        for _ in range(n - 1):
            binomial = np.array([1.0, *(a + b for a, b in pairwise(binomial)), 1.0])
        cumulants.append(p - sum((binomial[k] * cumulants[k] * p for k in range(n - 1)), np.zeros_like(p)))
    # Alternating sums of numbers up to order!: the rounding of the reference grows with them.
    np.testing.assert_allclose(bernoulli_cumulant(order, p), cumulants[-1], rtol=1e-9, atol=1e-13 * 4.0**order)


def test_cumulants_of_a_sum_equal_enumerated_central_moments():
    rng = np.random.default_rng(5)
    weights, p, counts = rng.normal(size=6), rng.random(6), np.array([1, 2, 1, 3, 1, 2])
    values, masses = enumerated(weights, p, counts)
    mean = float(masses @ values)
    central = [float(masses @ (values - mean) ** k) for k in range(5)]
    expected = [mean, central[2], central[3], central[4] - 3.0 * central[2] ** 2]
    np.testing.assert_allclose(sum_cumulants(weights, p, counts.astype(float), 4), expected, rtol=1e-10)
