"""Few rows in place of many: sums of smooth functions, and the likelihood of labels, against all rows one by one."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

import darkmetrics as dm
from darkmetrics._kernels.posterior import summary
from darkmetrics._kernels.posterior.draws import posterior_draws
from darkmetrics._kernels.posterior.summary import LEAST_ROWS, Along, bins_along, gauss_points
from darkmetrics.missingness import fit_data
from darkmetrics.missingness.fit_data import FitData

SPREADS = [0.5, 1.5, 3.0]


def rows_of(seed, spread, n=900):
    rng = np.random.default_rng([seed, int(10 * spread)])
    x = np.sort(spread * rng.normal(size=n) - 1.0)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < 1.0 / (1.0 + np.exp(-x)))
    return y, x


def likelihoods(seed, spread, *, by_label, odds=False):
    """That of all rows, and the few that stand for them."""
    y, x = rows_of(seed, spread)
    # Scores that are no probabilities are calibrated along another line.
    data = dm.EvaluationSet(y, x if odds else 1.0 / (1.0 + np.exp(-x)), threshold=0.0 if odds else 0.5)
    fit_data = FitData.of(data)
    curve = fit_data.logistic_calibrator("flexible")
    columns = np.ones((fit_data.table.score.size, 1)) if by_label else None
    full = fit_data.likelihood(curve, columns, (3.0, 1.0) if by_label else (), (False, True) if by_label else ())
    return full, full.short


@pytest.mark.parametrize("seed", range(3))
def test_two_points_have_the_number_mean_spread_and_skewness_of_the_rows_of_each_bin(seed):
    rng = np.random.default_rng(seed)
    line, count = np.sort(rng.normal(size=400)), rng.integers(0, 4, 400).astype(float)
    bins = bins_along(line, np.ones(400), np.array([-0.3, 0.4]))
    points = gauss_points(np.column_stack([np.ones(400), line, 3.0 - line]), line, bins, count)
    for b in range(int(bins[-1]) + 1):
        here, own = bins == b, points.bins == b
        for power in range(4):
            assert points.rows[own] @ points.columns[own, 1] ** power == pytest.approx(
                count[here] @ line[here] ** power, rel=1e-9, abs=1e-9
            )


def test_no_bin_reaches_across_a_break():
    line = np.sort(np.random.default_rng(0).normal(size=1000))
    breaks = np.array([-0.7, 0.1, line[600]])
    bins = bins_along(line, np.ones(1000), breaks)
    for b in range(int(bins[-1]) + 1):
        assert len(np.unique(line[bins == b][:, None] >= breaks, axis=0)) == 1


@pytest.mark.parametrize("end", [0, -1])
def test_most_rows_may_lie_at_one_end(end):
    line, rows = np.sort(np.random.default_rng(0).standard_cauchy(500)), np.ones(500)
    rows[end] = 5000.0
    bins = bins_along(line, rows, np.zeros(0))
    assert bins[0] == 0
    assert set(np.diff(bins)) == {0, 1}


def test_one_place_is_one_point():
    columns = np.ones((300, 1))
    points = gauss_points(columns, np.full(300, 0.2), np.zeros(300, dtype=np.int64), np.ones(300))
    assert points.columns.tolist() == [[1.0]]
    assert points.rows.tolist() == [300.0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("odds", [False, True])
def test_few_rows_have_the_posterior_of_all(seed, spread, by_label, odds):
    full, short = likelihoods(seed, spread, by_label=by_label, odds=odds)
    assert len(short.X) < 0.25 * len(full.X)
    draws = posterior_draws(full, heavy=by_label)
    off = short.log_posterior(draws.parameters) - full.log_posterior(draws.parameters)
    # Log posterior densities vary by about two over a posterior: a hundredth moves nothing that anybody can see.
    mean = draws.weight @ off
    assert np.sqrt(draws.weight @ (off - mean) ** 2) < 0.01
    assert abs(mean) < 0.02  # the evidence, of which a tenth would not matter


@pytest.mark.parametrize("tails", ["both", "one"])
def test_few_rows_have_the_posterior_of_very_many_with_heavy_tails(tails):
    """What few rows are off by adds up over the rows, and the more there are, the less of it a posterior bears."""
    rng = np.random.default_rng(0)
    n = 20_000
    score = rng.standard_cauchy(n) if tails == "both" else np.exp(2.0 * rng.normal(size=n))
    x = score if tails == "both" else np.log(score)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < expit(x))
    fit_data = FitData.of(dm.EvaluationSet(y, score, threshold=0.0 if tails == "both" else 1.0))
    full = fit_data.likelihood(fit_data.logistic_calibrator("flexible"), None)
    draws = posterior_draws(full)
    off = full.short.log_posterior(draws.parameters) - full.log_posterior(draws.parameters)
    assert len(full.short.X) < 250
    mean = draws.weight @ off
    assert np.sqrt(draws.weight @ (off - mean) ** 2) < 0.01
    assert abs(mean) < 0.02


def test_means_of_bins_alone_would_not_do():
    """The control: one point per bin of the same width has another posterior."""
    full, short = likelihoods(0, 3.0, by_label=False)
    few = full.along.few
    bins = few.table_bins
    total = np.bincount(bins, full.positives + full.negatives)
    held = np.flatnonzero(total)
    means = np.array([np.bincount(bins, (full.positives + full.negatives) * column) for column in full.X.T])[:, held]
    draws = posterior_draws(full).parameters
    log_p = log_expit(draws @ (means / total[held]))
    coarse = log_p @ total[held] - draws @ (full.X.T @ full.negatives)
    off = coarse + full._log_prior(draws) - full.log_posterior(draws)
    good = short.log_posterior(draws) - full.log_posterior(draws)
    assert off.std() > 20.0 * good.std()


@pytest.mark.parametrize("by_label", [False, True])
def test_derivatives_of_the_few_are_those_of_their_log_posterior(by_label):
    _, short = likelihoods(1, 1.5, by_label=by_label)
    at = short.prior_mean + 0.2 * np.random.default_rng(0).normal(size=short.prior_mean.size)
    found = short.expand(at)
    assert found.value == pytest.approx(float(short.log_posterior(at[None])[0]), rel=1e-12)
    step = 1e-5 * np.eye(at.size)
    slope = (short.log_posterior(at + step) - short.log_posterior(at - step)) / 2e-5
    np.testing.assert_allclose(found.gradient, slope, rtol=1e-5, atol=1e-4)
    bend = np.array([(short.expand(at + one).gradient - short.expand(at - one).gradient) / 2e-5 for one in step])
    np.testing.assert_allclose(-found.precision, bend, rtol=1e-4, atol=1e-3)


def test_a_small_table_stays_as_it_is():
    n = LEAST_ROWS - 1
    along = Along(np.ones((n, 1)), np.arange(float(n)), np.zeros(0), np.ones(n), np.zeros(n))
    assert along.few is None


@pytest.mark.parametrize("few", [True, False])
def test_a_curve_that_rises_within_a_bin_is_learnt_from_all_rows(few, monkeypatch):
    """Few rows alone would move ROC-AUC of a nearly perfect model by a twelfth of its interval: the control."""
    rng = np.random.default_rng(3)
    score = rng.random(40_000)
    y = np.where(rng.random(40_000) < 0.5, np.nan, rng.random(40_000) < expit(100.0 * (score - 0.5)))
    if few:
        monkeypatch.setattr(fit_data, "_stands_for", lambda *_: True)

    def interval():
        law = dm.evaluate(y, score, missingness="by_score", metrics="roc_auc", method="gaussian")["roc_auc"]
        return np.array(law.interval(0.9))

    found = interval()
    monkeypatch.setattr(summary, "LEAST_ROWS", 10**9)
    all_rows = interval()
    moved = np.abs(found - all_rows).max() / np.ptp(all_rows)
    assert (moved > 0.05) if few else (moved < 0.01)
