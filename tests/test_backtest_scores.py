"""Figures of a backtest are what they say they are, as numbers, as words and as pictures."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import darkmetrics as dm
from darkmetrics._kernels.hypothesis_tests import floors, ks_to_uniform, w1_to_uniform
from darkmetrics.backtesting import Backtest, Estimate, Scores

# The uniform law as a million points: its own error is a millionth.
GRID = (np.arange(1_000_000) + 0.5) / 1_000_000


def made_up(n=40, seed=0, held=0.8):
    """Scores whose truth is 0, with errors, widths and hits drawn independently."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.05, 0.1, n)
    reach = rng.uniform(0.01, 0.2, n)
    hit = rng.random(n) < held
    low = np.where(hit, -reach, reach)
    return Scores(np.zeros(n), centre, low, low + 3 * reach, rng.beta(2.0, 0.7, n), n_failed=3)


def no_law():
    none = np.zeros(0)
    return Scores(none, none, none, none, none, n_failed=40)


# ----------------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_distances_to_uniform_are_those_of_scipy(n):
    pit = np.sort(np.random.default_rng(n).beta(2.0, 0.7, n))
    assert float(ks_to_uniform(pit)) == pytest.approx(stats.kstest(pit, "uniform").statistic, rel=1e-12)
    assert float(w1_to_uniform(pit)) == pytest.approx(stats.wasserstein_distance(pit, GRID), abs=2e-6)


@pytest.mark.parametrize("n", [2, 5, 20, 120])
def test_floors_are_the_mean_distances_of_uniform_values(n):
    values = np.sort(np.random.default_rng(0).random((40_000, n)), axis=1)
    w1, ks = floors(n)
    # The mean of 40,000 is good to 0.3%; the formulas to 1%, that of W1 from 10 repeats on.
    assert w1_to_uniform(values).mean() == pytest.approx(w1, rel=0.01 if n > 5 else 0.04)
    assert ks_to_uniform(values).mean() == pytest.approx(ks, rel=0.01)
    assert ks_to_uniform(values).mean() == pytest.approx(stats.kstwo(n).mean(), rel=0.01)


def test_floors_of_120_repeats_are_those_of_the_page():
    assert [round(floor, 4) for floor in floors(120)] == [0.0286, 0.0779]


# ------------------------------------------------------------------------------------------------------------- figures


def test_figures_of_a_backtest_by_hand():
    truth, centre = np.full(4, 0.5), np.array([0.4, 0.5, 0.7, 0.5])
    pit = np.array([0.9, 0.5, 0.1, 0.4])  # not in order
    scores = Scores(truth, centre, centre - 0.1, centre + 0.1, pit)
    assert scores.coverage.value == 0.75
    assert scores.width.value == pytest.approx(0.2, rel=1e-12)
    assert scores.mae.value == pytest.approx(0.075, rel=1e-12)
    assert scores.rmse.value == pytest.approx(math.sqrt(0.05 / 4), rel=1e-12)
    assert scores.ks.value == pytest.approx(stats.kstest(pit, "uniform").statistic, rel=1e-12)
    assert scores.w1.value == pytest.approx(stats.wasserstein_distance(pit, GRID), abs=2e-6)
    assert (scores.w1_floor, scores.ks_floor) == floors(4)


@pytest.mark.parametrize(("held", "n"), [(30, 30), (0, 30), (1, 1), (24, 30)])
def test_the_interval_of_a_coverage_is_wilsons(held, n):
    high = np.where(np.arange(n) < held, 1.0, -0.5)
    found = Scores(np.zeros(n), np.zeros(n), np.full(n, -1.0), high, np.full(n, 0.5)).coverage
    z, share = stats.norm.ppf(0.95), held / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    assert found == pytest.approx((share, middle - reach, middle + reach), abs=1e-12)
    assert found.high - found.low > 0.05  # never certain


def test_intervals_hold_what_they_estimate():
    """Of 200 made-up backtests of 60 repeats, 90% intervals hold the true figure in about 90%, not more."""
    true = {"coverage": 0.8, "width": 3 * 0.105}
    # Mean absolute value of a normal variable of mean 0.05 and standard deviation 0.1.
    true["mae"] = 0.1 * math.sqrt(2 / math.pi) * math.exp(-0.125) + 0.05 * (1 - 2 * stats.norm.cdf(-0.5))
    true["rmse"] = math.sqrt(0.05**2 + 0.1**2)
    held = dict.fromkeys(true, 0)
    for seed in range(200):
        scores = made_up(60, seed)
        for name, value in true.items():
            found = getattr(scores, name)
            held[name] += found.low <= value <= found.high
    # Intervals from 60 values are a little short; 82% is four standard errors below 90%, 97% three above.
    assert all(0.82 * 200 <= count <= 0.97 * 200 for count in held.values()), held


def test_bootstrap_intervals_are_as_wide_as_the_mean_is_uncertain():
    scores = made_up(400)
    for found, values in ((scores.mae, np.abs(scores.centre)), (scores.width, scores.high - scores.low)):
        reach = 1.645 * values.std() / 20
        # A thousand resamples know their quantiles to 5%.
        assert (found.value - found.low, found.high - found.value) == pytest.approx((reach, reach), rel=0.15)


def test_the_interval_of_a_distance_is_that_of_a_bootstrap_by_hand():
    scores, rng = made_up(60), np.random.default_rng(9)
    draws = [rng.choice(scores.pit, 60) for _ in range(1000)]
    resampled = [float(stats.kstest(draw, "uniform", method="asymp").statistic) for draw in draws]
    # Two sets of a thousand draws: ends of 0.2 and 0.4 differ by a hundredth.
    assert scores.ks[1:] == pytest.approx(np.quantile(resampled, [0.05, 0.95]), abs=0.02)


def test_the_interval_of_a_distance_holds_the_distance_found():
    none = np.zeros(50)
    uniform = Scores(none, none, none, none, pit=(np.arange(50) + 0.5) / 50)
    for found in (uniform.w1, uniform.ks):
        # As the page says it leans upwards: the smallest distance there is lies at its lower end.
        assert found.low == found.value < found.high


def test_plain_numbers_are_the_figures():
    scores = made_up()
    plain = scores.to_dict()
    for name in ("w1", "ks", "mae", "rmse", "coverage", "width"):
        assert (plain[name], plain[f"{name}_low"], plain[f"{name}_high"]) == getattr(scores, name)
        assert plain[f"{name}_low"] < plain[f"{name}_high"]
    assert (plain["repeats"], plain["failed"]) == (40, 3)
    assert (plain["w1_floor"], plain["ks_floor"]) == floors(40)


def test_scores_say_what_they_are():
    assert repr(made_up()) == f"<Scores of 40 repeats, 3 failed: coverage 65%, W1 of PIT {made_up().w1.value:.3f}>"
    assert repr(Scores(*np.zeros((5, 1)))).startswith("<Scores of 1 repeat: coverage 100%")
    assert repr(no_law()) == "<Scores of 0 repeats, 40 failed>"
    assert isinstance(made_up().w1, Estimate)


# --------------------------------------------------------------------------------------------------------------- plots


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def a_backtest(setups=2, **sizes):
    scores = {f"setup {k}": {"recall": made_up(seed=k, **sizes), "f1": made_up(30, k + 50)} for k in range(setups)}
    return Backtest(scores, "MCAR(fraction=0.3)", 100, 40, 0.8)


def test_plot_of_pit_shows_every_setup_within_a_band(plt):
    result = a_backtest()
    ax: Any = dm.plotting.plot_pit(result, "recall")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["setup 0", "setup 1"]
    assert np.array_equal(ax.lines[1].get_ydata(), np.sort(result["setup 1", "recall"].pit))
    band = ax.collections[0].get_paths()[0].vertices
    # The tenth of 40 uniform values lies between these in 90% of cases.
    at = band[np.isclose(band[:, 0], 9.5 / 40), 1]
    draws = np.sort(np.random.default_rng(0).random((40_000, 40)), axis=1)[:, 9]
    assert (at.min(), at.max()) == pytest.approx(np.quantile(draws, [0.05, 0.95]), abs=0.004)


def test_plot_of_coverage_shows_coverage_with_its_interval(plt):
    given: Any = plt.subplots()[1]
    result = a_backtest()
    returned: Any = dm.plotting.plot_coverage(result, ax=given)
    assert returned is given
    assert [tick.get_text() for tick in given.get_xticklabels()] == ["recall", "f1"]
    drawings: Any = given.containers
    for setup, drawn in zip(result.scores, drawings, strict=True):
        line, _, (bars,) = drawn.lines
        expected = [result[setup, name].coverage for name in ("recall", "f1")]
        assert np.asarray(line.get_ydata()) == pytest.approx([found.value for found in expected])
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        assert ends == pytest.approx(np.array([(found.low, found.high) for found in expected]))
    assert np.asarray(given.lines[-1].get_ydata())[0] == 0.8  # what the intervals promise


def test_eight_setups_look_different_and_the_legend_hides_none(plt):
    ax: Any = dm.plotting.plot_pit(a_backtest(8), "recall")
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines[:8]}
    assert len(looks) == 8
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1
    # Of two setups that agree the second is dashed, so that the first shows.
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_plots_leave_out_what_has_no_law(plt):
    result = Backtest({"a": {"recall": no_law()}, "b": {"recall": made_up()}}, "", 100, 40, 0.9)
    assert len(dm.plotting.plot_pit(result, "recall").lines) == 3
    dm.plotting.plot_coverage(result).figure.canvas.draw()


def test_plots_of_something_else_are_refused():
    with pytest.raises(dm.exceptions.UnknownNameError, match=r"metric: unknown metric 'recal'\. Did you mean 'recall'"):
        dm.plotting.plot_pit(a_backtest(), "recal")
    for plot in (lambda: dm.plotting.plot_pit(made_up(), "recall"), lambda: dm.plotting.plot_coverage(made_up())):
        with pytest.raises(dm.InputError, match="result: expected what backtest returns, got Scores"):
            plot()
