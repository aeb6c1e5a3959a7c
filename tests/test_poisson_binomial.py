"""The Poisson-binomial pmf against convolutions that are written out here, in more digits than the library has."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmf, poisson_binomial_pmfs, tail_reach

# Bits of the fixed-point reference: 48 decimal digits, so its own rounding cannot be seen in a double.
BITS = 160


def fixed_point_pmf(p):
    """The pmf by convolution in fixed-point integers: every chance enters exactly."""
    one = 1 << BITS
    pmf = np.array([one], dtype=object)
    for chance in p:
        success = int(Fraction(float(chance)) * one)
        pmf = (np.append(pmf * (one - success), 0) + np.append(0, pmf * success)) >> BITS
    return np.array([float(Fraction(int(mass), one)) for mass in pmf])


def long_double_pmf(p):
    """The pmf by convolution in long doubles, on the window where it exceeds 1e-40."""
    chances = np.asarray(p, dtype=np.longdouble)
    pmf = np.zeros(chances.size + 1, dtype=np.longdouble)
    pmf[0] = 1.0
    low = high = 0
    for chance in chances:
        window = pmf[low : high + 2]
        success = window * chance
        window *= 1.0 - chance
        window[1:] += success[:-1]
        high += 1
        while high > low and pmf[high] < 1e-40:
            pmf[high] = 0.0
            high -= 1
        while low < high and pmf[low] < 1e-40:
            pmf[low] = 0.0
            low += 1
    return pmf


def total_variation(reference, offset, pmf):
    """Half the summed distance of a full pmf and one that starts at `offset`."""
    assert offset >= 0
    assert offset + pmf.size <= reference.size
    difference = np.array(reference)
    difference[offset : offset + pmf.size] -= pmf
    return 0.5 * float(np.abs(difference).sum())


def chances(name, m):
    """`m` chances of the kind that the name says, the same ones at every call."""
    rng = np.random.default_rng([m, len(name)])
    u, i = rng.random(m), np.arange(m)
    return {
        "uniform": u,
        "near 0": 1e-3 * u,
        "very near 0": 1e-6 * u,
        "near 1": 1.0 - 1e-3 * u,
        "very near 1": 1.0 - 1e-6 * u,
        "all 0.3": np.full(m, 0.3),
        "all 1/2": np.full(m, 0.5),
        "mixed with 0 and 1": np.where(rng.random(m) < 0.4, np.round(u), rng.random(m)),
        "u-shaped": rng.beta(0.2, 0.2, m),
        "few 1/2 among 1e-6": np.where(i < min(5, m // 2), 0.5, 1e-6),
        "few 1/2 among 1 - 1e-6": np.where(i < min(5, m // 2), 0.5, 1.0 - 1e-6),
        "half near 0, half near 1": np.where(i < m // 2, 1e-4 * u, 1.0 - 1e-4 * u),
        "half 1e-9, half 1 - 1e-9, few 1/2": np.where(i < 7, 0.5, np.where(i % 2 == 0, 1e-9, 1.0 - 1e-9)),
        "half 1e-12, half 0.9999": np.where(i < m // 2, 1e-12, 0.9999),
    }[name]


KINDS = [
    "uniform",
    "near 0",
    "very near 0",
    "near 1",
    "very near 1",
    "all 0.3",
    "all 1/2",
    "mixed with 0 and 1",
    "u-shaped",
    "few 1/2 among 1e-6",
    "few 1/2 among 1 - 1e-6",
    "half near 0, half near 1",
    "half 1e-9, half 1 - 1e-9, few 1/2",
    "half 1e-12, half 0.9999",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [10, 1_000])
def test_pmf_equals_convolution_in_fixed_point(m, kind):
    p = chances(kind, m)
    # The promise made to users; rounding alone is near 1e-15.
    assert total_variation(fixed_point_pmf(p), *poisson_binomial_pmf(p)) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
# 1,001 is the first size that takes the characteristic function instead of a convolution.
@pytest.mark.parametrize("m", [1_001, 10_000])
def test_pmf_equals_convolution_in_long_doubles(m, kind):
    p = chances(kind, m)
    assert total_variation(long_double_pmf(p), *poisson_binomial_pmf(p)) <= 1e-12


def test_long_double_reference_equals_fixed_point_reference():
    p = chances("uniform", 1_000)
    # Where long double is no wider than double, 1,000 roundings of 1e-16 still stay far below the 1e-12 under test.
    assert 0.5 * float(np.abs(long_double_pmf(p) - fixed_point_pmf(p)).sum()) < 1e-13


def test_reference_sees_a_chance_that_is_off_by_a_millionth():
    p = chances("uniform", 1_000)
    moved = np.append(p[:-1], p[-1] * (1.0 - 1e-6))
    assert total_variation(fixed_point_pmf(p), *poisson_binomial_pmf(moved)) > 1e-12


@pytest.mark.parametrize("m", [10, 1_000])
@pytest.mark.parametrize("kind", ["uniform", "near 0", "near 1", "all 0.3"])
def test_pmf_equals_scipy(kind, m):
    if not hasattr(scipy.stats, "poisson_binom"):
        pytest.skip("scipy before 1.15 has no Poisson-binomial")
    p = chances(kind, m)
    reference = scipy.stats.poisson_binom.pmf(np.arange(m + 1), p)
    # scipy inverts a discrete Fourier transform of m + 1 points; its own error is about 1e-15 per point.
    assert total_variation(reference, *poisson_binomial_pmf(p)) <= 1e-11


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("cells", [3, 30, 300])
def test_cells_of_several_trials_equal_the_trials_one_by_one(cells, scale):
    rng = np.random.default_rng(cells)
    p, counts = scale * rng.random(cells), rng.integers(0, 60, cells)
    reference = long_double_pmf(np.repeat(p, counts))
    assert total_variation(reference, *poisson_binomial_pmf(p, counts)) <= 1e-12


def test_one_cell_of_many_trials_is_binomial():
    offset, pmf = poisson_binomial_pmf(np.array([0.2]), np.array([50_000]))
    # Compared where both exist; scipy's binomial pmf has a relative error of about 1e-12 from its log-gamma terms.
    reference = scipy.stats.binom.pmf(np.arange(offset, offset + pmf.size), 50_000, 0.2)
    assert 0.5 * float(np.abs(reference - pmf).sum()) < 1e-11


@pytest.mark.parametrize("m", [0, 1, 5, 5_000])
@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_certain_trials_are_a_point_mass(m, certain):
    offset, pmf = poisson_binomial_pmf(np.full(m, certain))
    assert (offset, pmf.tolist()) == (int(m * certain), [1.0])


def test_cells_without_trials_count_nothing():
    offset, pmf = poisson_binomial_pmf(np.array([0.2, 1.0]), np.array([0, 0]))
    assert (offset, pmf.tolist()) == (0, [1.0])


@pytest.mark.parametrize("kind", ["uniform", "near 0", "near 1", "very near 0", "all 0.3", "u-shaped"])
def test_a_million_trials_have_the_right_total_and_moments(kind):
    p = chances(kind, 1_000_000)
    offset, pmf = poisson_binomial_pmf(p)
    p, pmf = p.astype(np.longdouble), pmf.astype(np.longdouble)
    v = p * (1.0 - p)
    mean, variance, third = p.sum(), v.sum(), (v * (1.0 - 2.0 * p)).sum()
    centred = np.arange(offset, offset + pmf.size).astype(np.longdouble) - mean
    assert abs(float(pmf.sum()) - 1.0) <= 1e-10
    assert abs(float(centred @ pmf)) <= 1e-10 * float(mean)
    assert abs(float(centred**2 @ pmf / variance) - 1.0) <= 1e-10
    # The third moment of a symmetric law is zero, so the yardstick is sd^3. A phase error e of the characteristic
    # function shifts the mean by e, which the third moment sees as 3 e / sd: 1e-8 is a mean right to 1e-11 relative.
    assert abs(float(centred**3 @ pmf) - float(third)) <= 1e-8 * float(variance) ** 1.5


def test_length_grows_like_the_standard_deviation():
    lengths = [poisson_binomial_pmf(np.full(m, 0.3))[1].size for m in (10_000, 1_000_000)]
    # 100 times the trials have 10 times the standard deviation; the cut at 1e-18 adds a constant.
    assert 8 < lengths[1] / lengths[0] < 12


@pytest.mark.parametrize(("m", "p"), [(50, 0.5), (2_000, 0.001), (100_000, 0.3)])
def test_no_mass_above_1e18th_lies_beyond_the_reach(m, p):
    distribution = scipy.stats.binom(m, p)
    reach = tail_reach(m * p * (1.0 - p))
    assert distribution.sf(np.ceil(m * p + reach)) < 1e-18
    assert distribution.cdf(np.floor(m * p - reach)) < 1e-18


@pytest.mark.parametrize("shift", [-3.0, 0.0, 2.5])
def test_many_rows_of_many_trials_are_binomials_joined(shift):
    """Two kinds of trials: the law is a convolution of two binomials, whose tails scipy knows."""
    rng = np.random.default_rng(3)
    p = 1.0 / (1.0 + np.exp(-shift - 0.4 * rng.normal(size=(20, 2))))
    counts = np.array([1500, 2600])
    first, pmfs = poisson_binomial_pmfs(p, counts)
    for row, pmf in zip(p, pmfs, strict=True):
        one, two = (scipy.stats.binom.pmf(np.arange(n + 1), n, q) for n, q in zip(counts, row, strict=True))
        expected = np.convolve(one, two)[first : first + pmf.size]
        np.testing.assert_allclose(pmf, expected, rtol=0.0, atol=1e-15)
        assert expected.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("m", [3, 40, 210, 700])
def test_tails_keep_their_digits_however_sure_some_trials_are(m):
    rng = np.random.default_rng(m)
    p = rng.random((6, m))
    # Sure at one row, nearly sure at the next: those are added by chances, all others by odds.
    p[0, ::3], p[1, ::3], p[2, 1::4], p[3, ::5] = 1.0, 1.0 - 2.0**-40, 1e-12, 0.0
    first, pmfs = poisson_binomial_pmfs(p, np.ones(m, dtype=np.int64))
    for row, pmf in zip(p, pmfs, strict=True):
        reference = fixed_point_pmf(row)[first : first + pmf.size]
        told = reference > 1e-28  # of 48 digits the last are rounding
        np.testing.assert_allclose(pmf[told], reference[told], rtol=1e-12)
        assert pmf[~told].max(initial=0.0) < 2e-28
