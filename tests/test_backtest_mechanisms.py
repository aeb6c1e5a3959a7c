"""Mechanisms: labels are hidden as stated, and where that cannot be the note says so."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n) ** 2
    return (rng.random(n) < score), score


def hidden_by_label(fraction, prevalence, n, positives):
    """Rows hidden, positives among them, and the note."""
    y = np.arange(n) < positives
    masked = dm.masks.ByLabel(fraction, prevalence=prevalence).mask(y, np.zeros(n), np.random.default_rng(0))
    return int(masked.missing.sum()), int(y[masked.missing].sum()), masked.note


def test_mcar_hides_exactly_the_fraction_and_no_class_more_than_another():
    y, score = rows(20_000)
    missing = dm.masks.MCAR(0.3).mask(y, score, np.random.default_rng(1)).missing
    assert missing.sum() == 6000
    table = [[(missing & y).sum(), (missing & ~y).sum()], [(~missing & y).sum(), (~missing & ~y).sum()]]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def effect_of_label(missing, y, score):
    """The log odds ratio of going missing by label given the log odds of the rank, and its standard error."""
    steep = logit(stats.rankdata(score) / (score.size + 1))
    X = np.column_stack([steep, y])
    fit = LogisticRegression(C=np.inf, tol=1e-8).fit(X, missing)
    chance = fit.predict_proba(X)[:, 1]
    design = np.column_stack([np.ones(y.size), X])
    information = design.T @ (design * (chance * (1 - chance))[:, None])
    return fit.coef_[0], math.sqrt(np.linalg.inv(information)[2, 2])


@pytest.mark.parametrize("slope", [-1.0, 0.5])
def test_by_score_hides_by_score_alone(slope):
    y, score = rows(40_000)
    missing = dm.masks.ByScore(0.3, slope=slope).mask(y, score, np.random.default_rng(1)).missing
    assert missing.mean() == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / 40_000))
    (by_rank, by_label), error = effect_of_label(missing, y, score)
    assert by_rank == pytest.approx(slope, abs=0.05)  # four of its standard errors of 0.01
    assert abs(by_label) < 4 * error
    # The control: four points more for positives are found out.
    leaky = missing | (y & (np.random.default_rng(2).random(y.size) < 0.04))
    (_, by_label), error = effect_of_label(leaky, y, score)
    assert by_label > 4 * error


def test_tied_scores_have_the_same_chance_to_go_missing():
    score = np.repeat([0.2, 0.8], 20_000)
    missing = dm.masks.ByScore(0.4).mask(score > 0.5, score, np.random.default_rng(0)).missing
    first, second = missing[:10_000].mean(), missing[10_000:20_000].mean()
    assert first == pytest.approx(second, abs=5 * math.sqrt(0.5 / 10_000))


@pytest.mark.parametrize("slope", [1e5, -1e6, 300.0])
def test_a_very_steep_slope_is_a_cut(slope):
    y, score = rows(1000)
    missing = dm.masks.ByScore(0.3, slope=slope).mask(y, score, np.random.default_rng(0)).missing
    order = np.argsort(score)
    cut = missing[order][::-1] if slope > 0 else missing[order]
    # All of the first 29% and none of the last 69%; the row or two at the cut are left to chance.
    assert cut[:290].all()
    assert not cut[310:].any()


@pytest.mark.parametrize("score", [np.full(50, 0.5), np.arange(50) / 50])
def test_tiny_fractions_and_equal_scores_can_be_hidden_by_score(score):
    missing = dm.masks.ByScore(1e-9).mask(score > 0.5, score, np.random.default_rng(0)).missing
    assert missing.sum() == 0


@pytest.mark.parametrize("eta", [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.05, 1 / 3, 0.25])
def test_by_label_hides_exactly_the_prevalence(eta):
    y, score = rows()
    masked = dm.masks.ByLabel(0.3, prevalence=eta).mask(y, score, np.random.default_rng(0))
    hidden = int(masked.missing.sum())
    assert int(y[masked.missing].sum()) == pytest.approx(eta * hidden, abs=1e-9)
    feasible = min(600, int(y.sum() / eta), int((~y).sum() / (1 - eta)))
    # Whole batches of at most 20 rows: no more than one of them is left out.
    assert feasible - 20 < hidden <= feasible
    assert bool(masked.note) == (feasible < 600)


def test_rows_are_not_given_up_for_an_exact_prevalence_without_a_word():
    # 199 rows asked for; 37% of them is 73.63, and only 100 rows would make it exact.
    hidden, positives, note = hidden_by_label(0.2, 0.37, 995, 450)
    assert (hidden, positives) == (199, 74)
    assert note.startswith(
        "199 rows are hidden at a prevalence of 0.371859 instead of 0.37: no number of rows a little"
    )
    # Positives run out at 297 rows (110 / 0.37), of which 109.89 would be positive.
    hidden, positives, note = hidden_by_label(0.5, 0.37, 995, 110)
    assert (hidden, positives) == (297, 110)
    assert note.startswith("297 instead of 498 rows are hidden at a prevalence of 0.37037 instead of 0.37: of 110 pos")
    # 4 rows of 204 are worth it, and 99 of 5,099; the second is told.
    assert hidden_by_label(0.204, 0.37, 1000, 500) == (200, 74, "")
    hidden, positives, note = hidden_by_label(0.5099, 0.37, 10_000, 5000)
    assert (hidden, positives) == (5000, 1850)
    assert note.startswith("5,000 instead of 5,099 rows are hidden: of 5,000 positives and 5,000 negatives no more")


def test_a_prevalence_of_many_digits_is_met_to_the_nearest_row_and_told():
    hidden, positives, note = hidden_by_label(0.3, 0.3141, 1000, 500)
    assert (hidden, positives) == (300, 94)
    assert "at a prevalence of 0.313333 instead of 0.3141" in note


@pytest.mark.parametrize(("eta", "positives"), [(0.001, 0), (0.004, 1), (0.999, 250), (0.996, 249), (1e-300, 0)])
def test_extreme_prevalences_are_met_to_the_nearest_row(eta, positives):
    hidden, found, note = hidden_by_label(0.25, eta, 1000, 500)
    assert (hidden, found) == (250, positives)
    assert bool(note) == (positives / 250 != eta)


def test_few_rows_are_hidden_at_the_nearest_prevalence_and_that_is_told():
    hidden, positives, note = hidden_by_label(8 / 38, 0.9, 38, 13)
    assert (hidden, positives) == (8, 7)
    assert note.startswith("8 rows are hidden at a prevalence of 0.875 instead of 0.9")
    assert hidden_by_label(0.1, 0.9, 10, 5)[2].startswith("1 row is hidden at a prevalence of 1 instead of 0.9")


def test_a_class_that_just_suffices_costs_no_row():
    # 3 / (1 - 0.7) is 9.999999999999998 in floating point.
    assert hidden_by_label(0.5, 0.7, 20, 17) == (10, 7, "")


def test_a_prevalence_that_cannot_be_had_is_refused():
    y = np.array([False, False, False, False])
    with pytest.raises(dm.InputError, match=r"a prevalence of 0\.9 is impossible if 2 of 0 positives and 4 neg"):
        dm.masks.ByLabel(0.5, prevalence=0.9).mask(y, np.zeros(4), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dm.masks.MCAR(1.0), r"fraction: 1\.0\. It must lie strictly between 0 and 1"),
        (lambda: dm.masks.MCAR(True), "fraction: True"),
        (lambda: dm.masks.ByLabel(0.3, prevalence=0), "prevalence: 0"),
        (lambda: dm.masks.ByScore(0.3, slope=math.inf), "slope: inf"),
        (lambda: dm.masks.ByScore(0.3, slope=math.nan), "slope: nan"),
        (lambda: dm.masks.ByScore(0.3, slope=1e7), r"slope: 10000000\.0\. It must be a number from -1e6 to 1e6"),
    ],
)
def test_settings_of_mechanisms_are_checked(make, message):
    with pytest.raises(dm.InputError, match=message):
        make()


def test_numbers_of_numpy_are_numbers():
    y, score = rows(100)
    share: Any = np.float32(0.3)
    falling: Any = np.int64(-1)
    for mechanism in (
        dm.masks.MCAR(share),
        dm.masks.ByScore(share, slope=falling),
        dm.masks.ByLabel(share, prevalence=share),
    ):
        assert mechanism.mask(y, score, np.random.default_rng(0)).missing.any()
    assert str(dm.masks.MCAR(share)) == "MCAR(fraction=0.3)"


def test_the_word_for_a_mechanism_is_that_of_evaluate():
    words = [cls.missingness for cls in (dm.masks.MCAR, dm.masks.ByScore, dm.masks.ByLabel)]
    assert words == ["random", "by_score", "by_label"]
