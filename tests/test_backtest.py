"""Backtests: labels are hidden as stated, figures are what they say they are, and wrong label models are found out."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

import darkmetrics as dm
from darkmetrics._kernels.uniformity import floors, ks_to_uniform, w1_to_uniform
from darkmetrics.backtest import Scores

# ----------------------------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_distances_to_uniform_are_those_of_scipy(n):
    pit = np.sort(np.random.default_rng(n).beta(2.0, 0.7, n))
    assert float(ks_to_uniform(pit)) == pytest.approx(stats.kstest(pit, "uniform").statistic, rel=1e-12)
    # The uniform law as a million points: its own error is a millionth.
    grid = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert float(w1_to_uniform(pit)) == pytest.approx(stats.wasserstein_distance(pit, grid), abs=2e-6)


def test_floors_are_what_perfect_laws_show():
    values = np.sort(np.random.default_rng(0).random((20_000, 120)), axis=1)
    w1, ks = floors(120)
    # The limits for many repeats; KS comes in from below, 3% at 120 (its correction is of the order of n^-1/2 / 6).
    assert w1_to_uniform(values).mean() == pytest.approx(w1, rel=0.01)
    assert ks_to_uniform(values).mean() == pytest.approx(ks, rel=0.04)
    assert (round(w1, 4), round(ks, 4)) == (0.0286, 0.0793)


def test_figures_of_a_backtest_by_hand():
    truth, centre = np.full(4, 0.5), np.array([0.4, 0.5, 0.7, 0.5])
    scores = Scores(truth, centre, centre - 0.1, centre + 0.1, np.array([0.9, 0.5, 0.1, 0.5]))
    assert scores.coverage.value == 0.75
    assert scores.width.value == pytest.approx(0.2, rel=1e-12)
    assert scores.mae.value == pytest.approx(0.075, rel=1e-12)
    assert scores.rmse.value == pytest.approx(math.sqrt(0.05 / 4), rel=1e-12)
    assert scores.coverage.low <= 0.75 <= scores.coverage.high


def test_bootstrap_intervals_hold_what_they_estimate():
    """Of 200 made-up backtests of 60 repeats, 90% intervals for a coverage of 80% hold it in about 90%."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        hit = rng.random(60) < 0.8
        ends = np.where(hit, 1.0, -1.0)
        scores = Scores(np.zeros(60), np.zeros(60), np.full(60, -1.0), ends - 0.5, rng.random(60))
        held += scores.coverage.low <= 0.8 <= scores.coverage.high
    # A percentile interval of a share of 60 is a little short; 82% is four standard errors below 90%.
    assert held >= 0.82 * 200


# -------------------------------------------------------------------------------------------------------- mechanisms


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n) ** 2
    return (rng.random(n) < score), score


def test_mcar_hides_exactly_the_fraction_and_no_class_more_than_another():
    y, score = rows(20_000)
    missing = dm.mechanisms.MCAR(0.3).mask(y, score, np.random.default_rng(1)).missing
    assert missing.sum() == 6000
    table = [[(missing & y).sum(), (missing & ~y).sum()], [(~missing & y).sum(), (~missing & ~y).sum()]]
    assert stats.chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("slope", [-1.0, 0.5])
def test_by_score_hides_by_score_alone(slope):
    y, score = rows(40_000)
    missing = dm.mechanisms.ByScore(0.3, slope=slope).mask(y, score, np.random.default_rng(1)).missing
    assert missing.mean() == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / 40_000))
    tenth = np.argsort(np.argsort(score)) // 4000
    shares = np.bincount(tenth, missing) / 4000
    assert np.all(np.sign(np.diff(shares)) == np.sign(slope))
    # Within a tenth of the scores the label makes no difference, up to what scores differ within it.
    middle = (tenth == 5) | (tenth == 6)
    assert abs(missing[middle & y].mean() - missing[middle & ~y].mean()) < 0.05


def test_tied_scores_have_the_same_chance_to_go_missing():
    score = np.repeat([0.2, 0.8], 20_000)
    missing = dm.mechanisms.ByScore(0.4).mask(score > 0.5, score, np.random.default_rng(0)).missing
    first, second = missing[:10_000].mean(), missing[10_000:20_000].mean()
    assert first == pytest.approx(second, abs=5 * math.sqrt(0.5 / 10_000))


@pytest.mark.parametrize("eta", [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.05])
def test_by_label_hides_exactly_the_prevalence(eta):
    y, score = rows()
    masked = dm.mechanisms.ByLabel(0.3, prevalence=eta).mask(y, score, np.random.default_rng(0))
    hidden = int(masked.missing.sum())
    assert int(y[masked.missing].sum()) == pytest.approx(eta * hidden, abs=1e-9)
    feasible = min(600, int(y.sum() / eta), int((~y).sum() / (1 - eta)))
    # Whole batches: no more than one of them is left out.
    assert feasible - 100 < hidden <= feasible
    assert bool(masked.note) == (hidden < 600 - 20)


def test_few_rows_are_hidden_at_the_nearest_prevalence_and_that_is_told():
    y = np.arange(38) < 13
    masked = dm.mechanisms.ByLabel(8 / 38, prevalence=0.9).mask(y, np.zeros(38), np.random.default_rng(0))
    assert (masked.missing.sum(), y[masked.missing].sum()) == (8, 7)
    assert masked.note.startswith("8 rows are hidden at a prevalence of 0.875 instead of 0.9")


def test_a_prevalence_that_cannot_be_had_is_refused():
    y = np.array([False, False, False, False])
    with pytest.raises(dm.InputError, match=r"a prevalence of 0\.9 cannot be had by hiding 2 of 0 positives and 4 neg"):
        dm.mechanisms.ByLabel(0.5, prevalence=0.9).mask(y, np.zeros(4), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dm.mechanisms.MCAR(1.0), r"fraction: 1\.0\. It must lie strictly between 0 and 1"),
        (lambda: dm.mechanisms.ByLabel(0.3, prevalence=0), "prevalence: 0"),
        (lambda: dm.mechanisms.ByScore(0.3, slope=math.inf), "slope: inf"),
    ],
)
def test_settings_of_mechanisms_are_checked(make, message):
    with pytest.raises(dm.InputError, match=message):
        make()


# --------------------------------------------------------------------------------------------------------- backtests


@pytest.fixture(scope="module")
def by_label():
    y, score = rows(1500)
    return dm.backtest(
        y.astype(int),
        score,
        mechanism=dm.mechanisms.ByLabel(0.2, prevalence=0.7),
        label_models=["stated", "calibrated"],
        n_repeats=30,
        rng=3,
    )


def test_the_truth_is_the_metric_with_all_labels(by_label):
    y, score = rows(1500)
    assert by_label["stated", "recall"].truth == pytest.approx(sk.recall_score(y, score >= 0.5), rel=1e-12)
    assert by_label["stated", "roc_auc"].truth == pytest.approx(sk.roc_auc_score(y, score), rel=1e-12)


def test_a_label_model_that_is_told_the_mechanism_holds_and_one_that_assumes_chance_does_not(by_label):
    # 30 repeats of 90%: fewer than 21 once in two thousand.
    assert all(by_label["stated", name].coverage.value >= 0.7 for name in ("precision", "recall", "accuracy", "f1"))
    # The control: told nothing, and the prevalence of the missing rows is three times that of the others.
    assert by_label["calibrated", "precision"].coverage.value < 0.3
    assert by_label["calibrated", "precision"].w1.low > by_label["calibrated", "precision"].w1_floor


def test_one_repeat_by_hand():
    y, score = rows(400)
    result = dm.backtest(y, score, mechanism=0.25, label_models="prevalence", metrics="recall", n_repeats=1, rng=5)
    (rng,) = np.random.default_rng(5).spawn(1)
    partly = y.astype(float)
    partly[rng.choice(400, 100, replace=False)] = math.nan
    law = dm.evaluate(partly, score, label_model="prevalence", metrics="recall")["recall"]
    found = result["recall"]
    assert (found.centre[0], found.low[0], found.high[0]) == (law.mean(), *law.interval(0.9))
    assert found.pit[0] == law.pit(sk.recall_score(y, score >= 0.5))


def test_any_number_of_processes_gives_the_same_numbers():
    y, score = rows(300)
    one, two = (
        dm.backtest(y, score, metrics=["recall", "roc_auc"], methods="monte_carlo", n_repeats=6, rng=1, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.to_dict() == two.to_dict()
    other = dm.backtest(y, score, metrics=["recall", "roc_auc"], methods="monte_carlo", n_repeats=6, rng=2)
    assert other.to_dict() != one.to_dict()


def test_rows_without_a_label_take_no_part():
    y, score = rows(300)
    labels = [None if i % 3 == 0 else ("yes" if label else "no") for i, label in enumerate(y)]
    settings: dict[str, Any] = {"label_models": "prevalence", "metrics": "accuracy", "n_repeats": 3, "rng": 0}
    partly = dm.backtest(labels, score, pos_label="yes", **settings)
    known = np.arange(300) % 3 > 0
    complete = dm.backtest(y[known], score[known], **settings)
    assert partly.to_dict() == complete.to_dict()


def test_fewer_hidden_rows_than_asked_for_are_told(by_label):
    y, score = rows(300)
    result = dm.backtest(
        y, score, mechanism=dm.mechanisms.ByLabel(0.5, prevalence=0.9), label_models="half", n_repeats=2, rng=0
    )
    assert "instead of 150 rows are hidden" in str(result)
    assert by_label.notes == ()


def test_every_label_model_is_tried_with_every_method():
    y, score = rows(300)
    result = dm.backtest(
        y,
        score,
        label_models={"a half": "half", "mine": dm.label_models.Prevalence()},
        methods=["exact", "gaussian"],
        metrics="recall",
        n_repeats=2,
        rng=0,
    )
    assert list(result.scores) == ["a half, exact", "a half, gaussian", "mine, exact", "mine, gaussian"]


def test_results_read_as_words_and_as_numbers(by_label):
    text = str(by_label)
    assert "1,500 labelled rows, labels hidden 30 times: ByLabel(fraction=0.2, prevalence=0.7)" in text
    assert "\n" not in repr(by_label)
    assert by_label._repr_html_().count("<tr>") == 11
    plain = json.loads(json.dumps(by_label.to_dict(), allow_nan=False))
    assert plain["scores"]["stated"]["f1"]["coverage"] == by_label["stated", "f1"].coverage.value
    frame = by_label.to_frame("pandas")
    assert len(frame) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mechanism": "random"}, r"mechanism: expected a fraction, or one of mechanisms\.MCAR"),
        ({"mechanism": 1.5}, r"fraction: 1\.5"),
        ({"n_repeats": 0}, "n_repeats: 0"),
        ({"n_jobs": 1.5}, r"n_jobs: 1\.5"),
        ({"label_models": ["half", "half"]}, "label_models: 2 choices, 1 names"),
        ({"label_models": "hlaf"}, "label_models: 'hlaf' gave no law in any of 2 repeats. .* Did you mean 'half'"),
        ({"metrics": "recal"}, "Did you mean 'recall'"),
        ({"y_true": [1] * 40}, "y_true: 40 positives and 0 negatives are labelled"),
        ({"y_true": [1, 0]}, "y_true: 2 values, but y_score has 40"),
    ],
)
def test_input_that_breaks_a_rule_is_named(arguments, message):
    y, score = rows(40)
    settings = {"y_true": y, "y_score": score, "n_repeats": 2, "label_models": "half"} | arguments
    with pytest.raises(dm.InputError, match=message):
        dm.backtest(**settings)


def test_plots_show_every_way(by_label):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = dm.plotting.plot_pit(by_label, "recall")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stated", "calibrated"]
    assert np.array_equal(ax.lines[0].get_ydata(), np.sort(by_label["stated", "recall"].pit))
    _, given = plt.subplots()
    assert dm.plotting.plot_coverage(by_label, ax=given) is given
    assert [tick.get_text() for tick in given.get_xticklabels()] == ["precision", "recall", "accuracy", "f1", "roc_auc"]
    plt.close("all")
