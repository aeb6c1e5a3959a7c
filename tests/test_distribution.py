"""One battery of checks that every kind of law passes, that scipy's normal passes too, and that broken laws fail."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats

import darkmetrics as dm
from darkmetrics.distributions import (
    Discrete,
    Interval,
    Mixture,
    Normal,
    Tabulated,
    Undefined,
)

# ------------------------------------------------------------------------------------------------ the laws


def mixture(*names, weight):
    """A mixture of laws of the battery."""
    return Mixture(
        components=[law_named(name) for name in names], weight=np.array(weight), bounds=Interval(-np.inf, np.inf)
    )


def skewed_table():
    """A continuous law on [0, 1] by its cdf on an uneven grid, with a stretch of no mass in the middle."""
    grid = np.concatenate([np.linspace(0.0, 0.4, 200), np.linspace(0.6, 1.0, 50)])
    levels = scipy.stats.beta(2.0, 5.0).cdf(np.where(grid <= 0.4, grid, 0.4 + 1.5 * (grid - 0.6)))
    return grid, levels


def evaluated(metric, method="exact", n=300, rng=1, **options):
    """A law as users get it."""
    source = np.random.default_rng(n)
    score = np.round(source.random(n), 3)
    y = (source.random(n) < score).astype(float)
    y[source.random(n) < 0.4] = np.nan
    chance = np.clip(score + 0.05 * source.normal(size=n), 0.0, 1.0)
    result = dm.evaluate(
        y, score, missingness=dm.missing.Fixed(chance), metrics=metric, method=method, rng=rng, **options
    )
    return next(iter(result.values()))


LAWS: dict[str, Callable[[], Any]] = {
    "scipy.stats.norm": lambda: scipy.stats.norm(0.3, 0.1),
    "Normal": lambda: Normal(loc=0.3, scale=0.1),
    "Normal, a point": lambda: Normal(loc=0.3, scale=0.0),
    "Discrete": lambda: Discrete(
        atoms=np.array([0.0, 0.25, 0.5, 1.0]), masses=np.array([0.1, 0.4, 0.3, 0.2]), bounds=Interval(0.0, 1.0)
    ),
    "Discrete, a point": lambda: Discrete(atoms=np.array([0.75]), masses=np.ones(1), bounds=Interval(0.75, 0.75)),
    "Discrete, ten equal": lambda: Discrete(
        atoms=np.arange(10.0) / 10.0, masses=np.full(10, 0.1), bounds=Interval(0.0, 1.0)
    ),
    "Discrete from atoms": lambda: Discrete.from_atoms(
        np.array([0.3, np.nan, 0.1, 0.3]), np.array([1.0, 2.0, 3.0, 4.0]), np.nan, bounds=Interval(0.0, 1.0)
    ),
    "Tabulated": lambda: Tabulated(
        grid=np.linspace(-1.0, 2.0, 301),
        levels=np.linspace(0.0, 1.0, 301) ** 2,
        bounds=Interval(-1.0, 2.0),
    ),
    "Tabulated with a gap": lambda: Tabulated(
        grid=skewed_table()[0], levels=skewed_table()[1], bounds=Interval(0.0, 1.0)
    ),
    "Mixture of Gaussians far apart": lambda: Mixture(
        components=[Normal(loc=0.1, scale=0.01), Normal(loc=0.8, scale=0.05)], weight=np.array([0.4, 0.6])
    ),
    "Mixture of a Gaussian and a point": lambda: mixture("Normal", "Discrete, a point", weight=[0.8, 0.2]),
    "Mixture of atoms, a table and a Gaussian": lambda: mixture(
        "Discrete", "Tabulated with a gap", "Normal", weight=[0.3, 0.5, 0.2]
    ),
    "Mixture of atoms": lambda: mixture("Discrete", "Discrete, ten equal", weight=[0.5, 0.5]),
    "exact recall": lambda: evaluated("recall"),
    "exact recall of many rows": lambda: evaluated("recall", n=20_000),
    "exact ROC-AUC of few rows": lambda: evaluated("roc_auc", n=30, zero_division=np.nan),
    "drawn ROC-AUC": lambda: evaluated("roc_auc", "auto", n=60),
    "expanded ROC-AUC": lambda: evaluated("roc_auc", n=2_000),
    "gini": lambda: evaluated("gini", n=2_000),
    "Brier score": lambda: evaluated("brier", n=2_000),
    "sampled F1": lambda: evaluated("f1", "monte_carlo"),
    "sampled average precision": lambda: evaluated("average_precision", "monte_carlo"),
    "Gaussian accuracy": lambda: evaluated("accuracy", "gaussian"),
    "no label missing": lambda: next(
        iter(dm.evaluate([1, 0, 1], [0.9, 0.2, 0.4], missingness=dm.missing.Fixed(0.5)).values())
    ),
}


@cache
def law_named(name):
    return LAWS[name]()


# ------------------------------------------------------------------------------------------------ the battery

LEVELS = np.array([1e-6, 0.001, 0.05, 0.1, 0.25, 1.0 / 3.0, 0.5, 0.7, 0.9, 0.95, 0.999, 1.0 - 1e-6])


def places(distribution, number=101):
    """An even grid over all but a millionth of the law and a little beyond, and some quantiles themselves."""
    low, high = float(distribution.ppf(1e-9)), float(distribution.ppf(1.0 - 1e-9))
    pad = 0.1 * (high - low) + 0.01
    return np.sort(np.concatenate([np.linspace(low - pad, high + pad, number), distribution.ppf(LEVELS)]))


def check_cdf_is_monotone_from_0_to_1(distribution):
    level = distribution.cdf(places(distribution))
    assert np.all(np.diff(level) >= -1e-15)
    assert np.all((level >= 0.0) & (level <= 1.0))
    assert level[0] <= 1e-9
    assert level[-1] >= 1.0 - 1e-9


def check_cdf_of_infinity_is_0_or_1(distribution):
    assert distribution.cdf(-np.inf) == 0.0
    assert distribution.cdf(np.inf) == pytest.approx(1.0, abs=1e-12)


def check_cdf_is_right_continuous(distribution):
    t = distribution.ppf(LEVELS)
    # A step of 1e-12 to the right crosses no atom of these laws and little density.
    np.testing.assert_allclose(distribution.cdf(t + 1e-12), distribution.cdf(t), rtol=0.0, atol=1e-9)


def check_sf_is_one_minus_cdf(distribution):
    t = places(distribution)
    np.testing.assert_allclose(distribution.sf(t), 1.0 - distribution.cdf(t), rtol=0.0, atol=1e-14)


def check_ppf_is_the_generalised_inverse_of_cdf(distribution):
    quantile = distribution.ppf(LEVELS)
    assert np.all(np.diff(quantile) >= 0.0)
    # At the quantile the cdf has reached the level; any amount below, here 1e-9, it has not.
    assert np.all(distribution.cdf(quantile) >= LEVELS - 1e-12)
    assert np.all(distribution.cdf(quantile - 1e-9) < LEVELS)


def check_ppf_of_cdf_goes_back_to_the_atom(distribution):
    quantile = distribution.ppf(LEVELS)
    level = distribution.cdf(quantile)
    inside = level < 1.0  # the quantile of 1 is the best case, which the last atom need not be
    assert np.all(distribution.ppf(level[inside]) <= quantile[inside] + 1e-9)


def check_quantiles_of_0_and_1_are_the_support(distribution):
    assert distribution.ppf([0.0, 1.0]).tolist() == list(distribution.support())


def check_median_is_the_half_quantile(distribution):
    assert distribution.median() == distribution.ppf(0.5)


def check_intervals_are_equal_tailed_and_nested(distribution):
    before = (distribution.median(), distribution.median())
    for confidence in (0.1, 0.5, 0.9, 0.99):
        low, high = distribution.interval(confidence)
        tail = 0.5 * (1.0 - confidence)
        np.testing.assert_allclose([low, high], distribution.ppf([tail, 1.0 - tail]), rtol=0.0, atol=1e-9)
        assert low <= before[0]
        assert high >= before[1]
        # What lies outside has at most the two tails; 1e-9 to be on either side of an atom at an end.
        assert distribution.cdf(high + 1e-9) - distribution.cdf(low - 1e-9) >= confidence - 1e-9
        before = (low, high)


def check_interval_is_90_percent_unless_told(distribution):
    if not isinstance(distribution, dm.MetricDistribution):
        return  # scipy wants the level
    assert distribution.interval() == distribution.interval(0.9)


def moment_bounds(distribution):
    """Bounds on mean and variance from sums below and above the integrals of the cdf."""
    # Each point of a product law is a sum over a window: fewer points, wider bounds.
    number = 301 if isinstance(distribution, Mixture) else 2_001
    low, high = float(distribution.ppf(1e-12)), float(distribution.ppf(1.0 - 1e-12))
    pad = 1e-6 * max(1.0, high - low)
    t = np.linspace(low - pad, high + pad, number)
    level, step = distribution.cdf(t), np.diff(t)
    # E X = t_0 + integral of 1 - F.
    mean = [t[0] + float(step @ (1.0 - level[1:])), t[0] + float(step @ (1.0 - level[:-1]))]
    centre = distribution.mean()
    # E (X - c)^2 = integral of 2 (t - c) (1 - F) above c plus integral of 2 (c - t) F below c.
    near, far = np.sort(np.abs(np.stack([t[1:], t[:-1]]) - centre), axis=0)
    near = np.where((t[1:] > centre) & (t[:-1] < centre), 0.0, near)
    above = t[1:] > centre
    outer_low, outer_high = np.where(above, 1.0 - level[1:], level[:-1]), np.where(above, 1.0 - level[:-1], level[1:])
    second = [2.0 * float(step @ (near * outer_low)), 2.0 * float(step @ (far * outer_high))]
    return mean, second


def check_mean_and_variance_are_those_of_the_cdf(distribution):
    (mean_low, mean_high), (var_low, var_high) = moment_bounds(distribution)
    # The bounds leave out tails of 1e-12 and are sums of 2,000 rounded terms.
    assert mean_low - 1e-9 <= distribution.mean() <= mean_high + 1e-9
    assert var_low - 1e-9 <= distribution.var() <= var_high + 1e-9


def check_std_is_the_root_of_the_variance(distribution):
    assert distribution.std() == pytest.approx(np.sqrt(distribution.var()), rel=1e-12)


def check_support_encloses_the_law(distribution):
    low, high = distribution.support()
    # A sum of many products is 0 or 1 up to rounding.
    assert distribution.cdf(low - 1e-9) <= 1e-12
    assert distribution.cdf(high + 1e-9) >= 1.0 - 1e-12
    assert np.all((distribution.ppf(LEVELS) >= low - 1e-12) & (distribution.ppf(LEVELS) <= high + 1e-12))


def check_rvs_repeat_with_the_seed(distribution):
    assert np.array_equal(distribution.rvs(7, 3), distribution.rvs(7, 3))
    assert np.array_equal(distribution.rvs(7, np.random.default_rng(3)), distribution.rvs(7, np.random.default_rng(3)))
    if distribution.std() > 0.0:
        assert not np.array_equal(distribution.rvs(15, 3), distribution.rvs(15, 4))


def check_rvs_have_the_shape_asked_for(distribution):
    assert isinstance(
        distribution.rvs(None, 0) if isinstance(distribution, dm.MetricDistribution) else distribution.rvs(), float
    )
    assert distribution.rvs(3, 0).shape == (3,)
    assert distribution.rvs((2, 3), 0).shape == (2, 3)


def check_rvs_follow_the_cdf(distribution):
    # Quantiles of a law of two lattice variables are searched for one by one, so these get a smaller sample.
    size = 200 if isinstance(distribution, Mixture) else 4_000
    draws = np.sort(distribution.rvs(size, 5))
    rank = np.arange(1, size + 1) / size
    last = np.append(np.diff(draws) > 1e-9, True)
    first = np.insert(np.diff(draws) > 1e-9, 0, True)
    at = np.abs(distribution.cdf(draws[last] + 1e-9) - rank[last]).max()
    before = np.abs(distribution.cdf(draws[first] - 1e-9) - (rank[first] - 1.0 / size)).max()
    # Dvoretzky-Kiefer-Wolfowitz: exceeded with a chance of one in a million.
    assert max(at, before) <= np.sqrt(np.log(2e6) / (2.0 * size))


def check_a_number_gives_a_float_and_an_array_its_own_shape(distribution):
    functions = [distribution.cdf, distribution.sf, distribution.ppf] + (
        [distribution.pit] if hasattr(distribution, "pit") else []
    )
    for function in functions:
        assert isinstance(function(0.4), float)
        assert isinstance(function(np.float32(0.5)), float)
        for shape in [(1,), (3,), (2, 3), (0,)]:
            result = function(np.full(shape, 0.4))
            assert isinstance(result, np.ndarray)
            assert result.shape == shape
            np.testing.assert_array_equal(result, function(0.4))
        np.testing.assert_array_equal(function([0.25, 0.5]), [function(0.25), function(0.5)])
    assert isinstance(distribution.mean(), float)
    assert isinstance(distribution.std(), float)
    assert isinstance(distribution.var(), float)
    assert isinstance(distribution.median(), float)


def check_nan_gives_nan(distribution):
    functions = [distribution.cdf, distribution.sf] + ([distribution.pit] if hasattr(distribution, "pit") else [])
    for function in functions:
        assert np.isnan(function(np.nan))
        assert np.isnan(function([0.4, np.nan])).tolist() == [False, True]


def check_pit_is_the_middle_of_the_jump(distribution):
    if not hasattr(distribution, "pit"):
        return
    t = distribution.ppf(LEVELS)
    # Both sides of the atom; 1e-9 crosses no other one and little density.
    middle = 0.5 * (distribution.cdf(t - 1e-9) + distribution.cdf(t))
    np.testing.assert_allclose(distribution.pit(t), middle, rtol=0.0, atol=1e-6)


BATTERY = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


@pytest.mark.parametrize("check", BATTERY)
@pytest.mark.parametrize("name", LAWS)
def test_law_passes_the_battery(name, check):
    BATTERY[check](law_named(name))


# --------------------------------------------------------------------------------- the battery can fail


class Broken:
    """A right law with one method replaced."""

    def __init__(self, name, **wrong):
        self._law = law_named(name)
        self._wrong = wrong

    def __getattr__(self, attribute):
        return self._wrong[attribute] if attribute in self._wrong else getattr(self._law, attribute)


def left_continuous(t):
    """P(X < t) of the law with four atoms, where P(X <= t) is asked for."""
    return law_named("Discrete").cdf(np.asarray(t) - 1e-13 - 1e-6 * np.isin(t, [0.0, 0.25, 0.5, 1.0]))


def broken_laws():
    """For every check a law that it must reject."""
    normal, discrete = law_named("Normal"), law_named("Discrete")
    return {
        "cdf_is_monotone_from_0_to_1": Broken("Normal", cdf=lambda t: 1.0 - normal.cdf(t)),
        "cdf_of_infinity_is_0_or_1": Broken(
            "Normal", cdf=lambda t: normal.cdf(np.nan_to_num(t, neginf=1.0, posinf=1.0))
        ),
        "cdf_is_right_continuous": Broken("Discrete", cdf=left_continuous),
        "sf_is_one_minus_cdf": Broken("Discrete", sf=lambda t: 1.0 - discrete.cdf(np.asarray(t) - 1e-6)),
        "ppf_is_the_generalised_inverse_of_cdf": Broken("Discrete", ppf=lambda q: discrete.ppf(np.sqrt(q))),
        "ppf_of_cdf_goes_back_to_the_atom": Broken("Normal", cdf=lambda t: normal.cdf(np.asarray(t) + 0.1)),
        "quantiles_of_0_and_1_are_the_support": Broken("Discrete", ppf=lambda q: discrete.ppf(np.clip(q, 0.3, 0.7))),
        "median_is_the_half_quantile": Broken("Discrete", median=lambda: 0.44),
        "intervals_are_equal_tailed_and_nested": Broken(
            "Normal", interval=lambda level: Interval(normal.ppf(0.0), normal.ppf(level))
        ),
        "interval_is_90_percent_unless_told": None,
        "mean_and_variance_are_those_of_the_cdf": Broken("Normal", var=lambda: 1.03 * normal.var()),
        "std_is_the_root_of_the_variance": Broken("Normal", std=normal.var),
        "support_encloses_the_law": Broken("Discrete", support=lambda: Interval(0.25, 1.0)),
        "rvs_repeat_with_the_seed": Broken("Normal", rvs=lambda size, rng: normal.rvs(size, None)),
        "rvs_have_the_shape_asked_for": Broken("Normal", rvs=lambda size=None, rng=None: normal.rvs(5, rng)),
        "rvs_follow_the_cdf": Broken("Normal", rvs=lambda size, rng: 1.15 * normal.rvs(size, rng)),
        "a_number_gives_a_float_and_an_array_its_own_shape": Broken("Normal", cdf=lambda t: normal.cdf([t])),
        "nan_gives_nan": Broken("Normal", cdf=lambda t: np.nan_to_num(normal.cdf(t))),
        "pit_is_the_middle_of_the_jump": Broken("Discrete", pit=discrete.cdf),
    }


@pytest.mark.parametrize("check", [name for name in BATTERY if name != "interval_is_90_percent_unless_told"])
def test_battery_rejects_a_broken_law(check):
    with pytest.raises(AssertionError):
        BATTERY[check](broken_laws()[check])


def test_every_check_has_a_law_that_it_rejects():
    assert set(broken_laws()) == set(BATTERY)


def test_mean_off_by_a_percent_of_a_standard_deviation_is_seen():
    normal = law_named("Normal")
    with pytest.raises(AssertionError):
        check_mean_and_variance_are_those_of_the_cdf(Broken("Normal", mean=lambda: normal.mean() + 0.01 * normal.std()))


# ------------------------------------------------------------------------------- beyond what scipy promises

OURS = ["Normal", "Discrete", "Tabulated", "Mixture of atoms", "Undefined"]


def our_law(name):
    return Undefined(undefined=1.0) if name == "Undefined" else law_named(name)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, np.inf, [0.5, 2.0], [[0.5], [np.nan]]])
@pytest.mark.parametrize("name", OURS)
def test_a_level_that_is_no_probability_is_an_error(name, q):
    with pytest.raises(dm.InputError, match=r"q: .*\[0, 1\]"):
        our_law(name).ppf(q)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 90, np.nan])
@pytest.mark.parametrize("name", OURS)
def test_a_confidence_level_outside_0_to_1_is_an_error(name, level):
    with pytest.raises(dm.InputError, match=r"confidence_level: .*between 0 and 1"):
        our_law(name).interval(level)


@pytest.mark.parametrize("name", ["Normal", "Discrete", "Tabulated", "Mixture of atoms"])
def test_levels_0_and_1_are_the_ends(name):
    distribution = law_named(name)
    assert distribution.ppf(0.0) <= distribution.ppf(1e-12)
    assert distribution.ppf(1.0) >= distribution.ppf(1.0 - 1e-12)


def test_undefined_law_has_no_numbers():
    distribution = Undefined(undefined=1.0, bounds=Interval(np.nan, np.nan))
    assert distribution.undefined == 1.0
    for number in [
        distribution.mean(),
        distribution.var(),
        distribution.std(),
        distribution.median(),
        distribution.cdf(0.5),
        distribution.sf(0.5),
        distribution.pit(0.5),
        distribution.ppf(0.5),
    ]:
        assert isinstance(number, float)
        assert np.isnan(number)
    assert np.isnan(distribution.interval()).all()
    assert distribution.rvs((2, 3), 0).shape == (2, 3)
    assert np.isnan(distribution.rvs((2, 3), 0)).all()
    assert "0/0" in repr(distribution)


def test_undefined_law_is_what_evaluate_returns_when_every_labeling_is_0_by_0():
    distribution = dm.evaluate(
        [0, 0, 0], [0.9, 0.2, 0.4], metrics="recall", missingness=dm.missing.Fixed(0.5), zero_division=np.nan
    )["recall"]
    assert isinstance(distribution, Undefined)
    assert distribution.undefined == 1.0


def test_undefined_mass_is_kept_and_left_out_of_the_law():
    distribution = Discrete.from_atoms(np.array([0.2, np.nan, 0.8]), np.array([1.0, 2.0, 1.0]), np.nan)
    assert distribution.undefined == 0.5
    assert distribution.cdf([0.2, 0.8]).tolist() == [0.5, 1.0]


def test_undefined_mass_is_filled_when_told():
    distribution = Discrete.from_atoms(np.array([0.2, np.nan, 0.8]), np.array([1.0, 2.0, 1.0]), 0.0)
    assert distribution.undefined == 0.5
    assert distribution.cdf([0.0, 0.2, 0.8]).tolist() == [0.5, 0.75, 1.0]


def test_values_that_differ_by_rounding_are_one_atom():
    distribution = Discrete.from_atoms(np.array([0.1 + 0.2, 0.3, 0.7]), np.ones(3), np.nan)
    assert isinstance(distribution, Discrete)
    assert distribution.atoms.size == 2
    assert distribution.cdf(0.3) == distribution.cdf(0.1 + 0.2) == pytest.approx(2.0 / 3.0, abs=1e-15)


def realised(distribution, size, rng):
    """Values drawn by the definition of the law, not by its own rvs."""
    return rng.choice(distribution.atoms, p=distribution.masses / distribution.masses.sum(), size=size)


def test_mid_pit_of_the_right_law_is_uniform_in_mean_and_nearly_so_in_spread():
    distribution = evaluated("recall")
    pit = distribution.pit(realised(distribution, 20_000, np.random.default_rng(8)))
    # A mid-PIT has mean 1/2 whatever the lattice, and variance (1 - sum of cubed masses) / 12.
    variance = (1.0 - float((distribution.masses**3).sum())) / 12.0
    assert abs(pit.mean() - 0.5) < 4.0 * np.sqrt(variance / 20_000)
    assert pit.var() == pytest.approx(variance, rel=0.03)
    # Atoms of recall here are far below one percent, so the whole distribution is uniform to that.
    distance = scipy.stats.kstest(pit, "uniform").statistic
    assert distance < float(distribution.masses.max()) + np.sqrt(np.log(2e4) / 40_000)


@pytest.mark.parametrize("wrong", ["shifted", "too narrow"])
def test_pit_of_a_wrong_law_is_not_uniform(wrong):
    distribution = evaluated("recall")
    shift, scale = {"shifted": (0.2 * distribution.std(), 1.0), "too narrow": (0.0, 1.3)}[wrong]
    truth = (
        distribution.mean()
        + shift
        + scale * (realised(distribution, 20_000, np.random.default_rng(8)) - distribution.mean())
    )
    distance = scipy.stats.kstest(distribution.pit(truth), "uniform").statistic
    assert distance > float(distribution.masses.max()) + np.sqrt(np.log(2e4) / 40_000)


def test_pit_of_a_coin_takes_the_middles():
    distribution = Discrete(atoms=np.array([0.0, 1.0]), masses=np.array([0.3, 0.7]))
    np.testing.assert_allclose(
        distribution.pit([-0.5, 0.0, 0.5, 1.0, 1.5]), [0.0, 0.15, 0.3, 0.65, 1.0], rtol=0.0, atol=1e-15
    )


@pytest.mark.parametrize("name", [name for name in LAWS if name != "scipy.stats.norm"])
def test_repr_is_one_line_with_the_mean(name):
    text = repr(law_named(name))
    assert "\n" not in text
    assert f"mean {law_named(name).mean():.4g}" in text


@pytest.mark.parametrize("value", ["a", None, [0.5, "b"], object()], ids=["text", "None", "mixed", "object"])
@pytest.mark.parametrize("method", ["ppf", "cdf", "sf", "pit"])
def test_what_is_no_number_is_named(method, value):
    distribution = dm.evaluate(
        [1, 0, None, None], [0.9, 0.1, 0.8, 0.3], missingness=dm.missing.Fixed(0.5), metrics="accuracy"
    )["accuracy"]
    with pytest.raises(dm.InputError, match=r"^[qt]: .* It must be a number or an array of numbers"):
        getattr(distribution, method)(value)


def test_a_level_in_percent_is_understood():
    distribution = dm.evaluate(
        [1, 0, None, None], [0.9, 0.1, 0.8, 0.3], missingness=dm.missing.Fixed(0.5), metrics="accuracy"
    )["accuracy"]
    with pytest.raises(dm.InputError, match=r"strictly between 0 and 1\. Pass 0\.9 for 90%\."):
        distribution.interval(90)


# ------------------------------------------------------------------------------- quantiles of laws summed on demand
