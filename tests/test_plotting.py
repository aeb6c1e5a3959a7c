"""Plots draw the numbers of the result, for any result, so that they can be read small, in grey and in any names."""

import pickle
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from scipy.stats import beta

import darkmetrics as dm
import oracle
from darkmetrics.distributions import Interval, Normal, mix
from darkmetrics.plotting import style
from darkmetrics.plotting.shape import density_curve
from darkmetrics.posterior import Posterior
from plot_checks import areas_seen, check_readable, labels_of, lay_out, signed, signs

Y = np.array([1, 0, np.nan, 1, np.nan, 0, 1, 0, np.nan])
SCORE = np.array([0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1, 0.55])
P = np.array([0.7, 0.2, 0.5])
NAMES = ["precision", "recall", "accuracy"]


def brute_force(name, threshold=0.5, y=Y, p=P):
    problem = oracle.Problem(y, SCORE, (threshold <= SCORE).astype(int), np.ones(SCORE.size), p)
    return oracle.distribution(oracle.definition_of(name), problem)


def quantile(distribution, q):
    # Cumulated probabilities may miss a level by rounding.
    return distribution.values[np.searchsorted(np.cumsum(distribution.masses), q - 1e-12)]


@pytest.fixture(scope="module")
def few():
    """Nine rows, three of them missing: every law can be listed."""
    return dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics=NAMES)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    y = (rng.random(n) < score).astype(float)
    return np.where(rng.random(n) < 0.4, np.nan, y), score


@pytest.fixture(scope="module")
def many():
    y, score = rows()
    return dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics=[*NAMES, "mcc", "log_loss"])


@pytest.fixture(scope="module")
def curves(few):
    return dm.threshold_curves(few, metrics=NAMES, thresholds=[0.2, 0.45, 0.5, 0.65])


@pytest.fixture(scope="module")
def backtest():
    y, score = rows(60)
    y = np.where(np.isnan(y), 0.0, y)
    return dm.backtest(
        y,
        score,
        metrics=["recall", "accuracy"],
        n_repeats=4,
        rng=0,
        missingness=[dm.missing.Fixed(0.5), dm.missing.TrainingPrevalence()],
    )


def drawn(ax, gid="law"):
    return next(line for line in ax.lines if line.get_gid() == gid).get_xydata().T


# ------------------------------------------------------------------------------------------------- distribution


@pytest.mark.parametrize("name", NAMES)
def test_stems_are_the_law_by_brute_force(few, name):
    expected = brute_force(name)
    x, y = drawn(dm.plotting.plot_distribution(few, name))
    assert x == pytest.approx(expected.values, abs=1e-12)
    assert y == pytest.approx(expected.masses, abs=1e-12)


def test_the_legend_of_a_distribution_has_the_numbers_of_brute_force(few):
    distribution = brute_force("recall")
    ax = dm.plotting.plot_distribution(few, "recall", target=0.6)
    below = distribution.masses[distribution.values < 0.6 - 1e-9].sum()  # 3 of 5 is an atom, and has reached the target
    labeled = 2 / 3
    assert 0.6 in distribution.values.round(12)
    assert labels_of(ax) == [
        f"90%: {quantile(distribution, 0.05):.3f} to {quantile(distribution, 0.95):.3f}",
        f"mean {distribution.mean():.3f}",
        f"bounds {distribution.low:.3f} to {distribution.high:.3f}",
        f"labeled only {labeled:.3f}",
        f"P(recall < 0.6) = {below:.3g}",
        "for these rows",
    ]
    assert signed(ax, f"mean {distribution.mean():.3f}").get_xdata()[0] == pytest.approx(distribution.mean())
    assert signed(ax, f"P(recall < 0.6) = {below:.3g}").get_xdata()[0] == 0.6
    assert signed(ax, f"labeled only {labeled:.3f}").get_xdata()[0] == pytest.approx(labeled)


def test_the_area_under_the_curve_is_the_probability(many):
    y, score = rows()
    right = np.sum((score >= 0.5) == (y == 1), where=~np.isnan(y))
    chance = np.where(score >= 0.5, score, 1.0 - score)[np.isnan(y)]  # that the decision of a missing row is right
    pmf = oracle.count_pmf(chance)
    values = (right + np.arange(pmf.size)) / y.size
    x, density = drawn(dm.plotting.plot_distribution(many, "accuracy"))
    step = x[1] - x[0]
    assert density.sum() * step == pytest.approx(1.0, abs=1e-3)
    for level in (0.1, 0.5, 0.9):
        cut = values[np.searchsorted(np.cumsum(pmf), level)]
        exact = pmf[values < cut - 1e-9].sum() + 0.5 * pmf[np.abs(values - cut) < 1e-9].sum()
        # The kernel moves 15% of a standard deviation either way, which is symmetric and adds 1% to the variance.
        assert density[x < cut].sum() * step == pytest.approx(exact, abs=0.02)


def test_both_peaks_of_a_mixture_are_drawn():
    """Two reasons far apart, each narrow: a bandwidth from the whole spread would blur them into one hill."""
    mean, sd = np.array([0.3, 0.7]), 0.01
    normal = [Normal(loc=loc, scale=sd, bounds=Interval(0.0, 1.0)) for loc in mean]
    distribution = mix(normal, np.array([0.5, 0.5]), given_defined=False, bounds=normal[0].bounds)
    x, density = density_curve(distribution)
    peak = 0.5 / (sd * np.sqrt(2.0 * np.pi))
    # The kernel is at most 60% of the width of a peak, which lowers it by 1 / sqrt(1 + 0.36) at most.
    assert density.max() > 0.85 * peak
    assert density[np.argmin(np.abs(x - 0.5))] < 1e-6 * peak


def test_a_target_beyond_what_is_possible_is_certain_and_others_are_not(many):
    ax = dm.plotting.plot_distribution(many, "accuracy", target=1.5)
    assert labels_of(ax)[-2] == "P(accuracy < 1.5) = 1"
    high = float(many["accuracy"].support().high)
    ax = dm.plotting.plot_distribution(many, "accuracy", target=high)
    assert labels_of(ax)[-2].endswith("> 0.999")


def test_a_target_that_is_no_number_is_refused(few):
    with pytest.raises(dm.InputError, match="target: nan"):
        dm.plotting.plot_distribution(few, "recall", target=np.nan)


def test_the_mass_of_0_over_0_is_named():
    result = dm.evaluate(
        [0, np.nan], [0.2, 0.7], missingness=dm.missing.Fixed([0.25]), metrics="recall", zero_division=0
    )
    assert labels_of(dm.plotting.plot_distribution(result, "recall"))[-1] == "0/0 (P = 0.75) counts as 0"


# ------------------------------------------------------------------------------------------------ all metrics


def test_the_forest_draws_brute_force(few):
    distributions = [brute_force(name) for name in NAMES]
    ax = dm.plotting.plot_metrics(few)
    lines = np.array(signed(ax, "90% interval").get_segments())[:, :, 0]
    expected = [[quantile(distribution, tail) for tail in (0.05, 0.95)] for distribution in distributions]
    assert lines == pytest.approx(np.array(expected))
    assert [text.get_text() for text in ax.texts] == [*(f"{one.mean():.3f}" for one in distributions), "mean"]
    bounds = np.array(signed(ax, "bounds").get_segments())[:, :, 0]
    assert bounds == pytest.approx(np.array([[distribution.low, distribution.high] for distribution in distributions]))
    assert signed(ax, "mean").get_xdata() == pytest.approx([distribution.mean() for distribution in distributions])
    assert signed(ax, "labeled only").get_xdata() == pytest.approx([2 / 3, 2 / 3, 4 / 6])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == NAMES
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first metric is at the top


def test_metrics_of_other_units_are_named_and_drawn_on_request(many):
    ax = dm.plotting.plot_metrics(many)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [*NAMES, "mcc"]
    assert ax.get_xlabel() == "value of the metric\nother units, not drawn: log_loss"
    alone = dm.plotting.plot_metrics(many, "log_loss")
    assert signed(alone, "mean").get_xdata() == pytest.approx([many["log_loss"].mean()])
    with pytest.raises(KeyError, match="Did you mean 'log_loss'"):
        dm.plotting.plot_metrics(many, ["logloss"])


def test_the_shortcut_of_a_result_is_the_forest(few):
    _, ax = plt.subplots()
    assert few.plot(ax=ax) is ax
    assert labels_of(ax) == labels_of(dm.plotting.plot_metrics(few))


def test_bars_of_the_variance_are_stacked_shares(few):
    """Two nodes with equal weight: the variance of the mean over them is calibration, the rest labels."""
    posterior = np.array([[0.2, 0.2, 0.2], [0.8, 0.8, 0.8]])
    given = dm.evaluate(Y, SCORE, missingness=_Fixed(Posterior(np.full(2, 0.5), posterior)), metrics=["accuracy"])
    within = np.mean([3 * 0.2 * 0.8 / 81, 3 * 0.8 * 0.2 / 81])
    # Decided positive at 0.8 and 0.55, negative at 0.3: a label of 1 is right twice and wrong once.
    between = np.var([(2 * p + (1 - p)) / 9 for p in (0.2, 0.8)])
    ax = dm.plotting.plot_variance(given)
    widths = [bars[0].get_width() for bars in ax.containers]
    assert widths == pytest.approx([within / (within + between), between / (within + between), 0.0])
    assert [bars[0].get_x() for bars in ax.containers] == pytest.approx([0.0, widths[0], widths[0] + widths[1]])
    assert [text.get_text() for text in ax.texts] == [f"{np.sqrt(within + between):.2g}", "sd"]


class _Fixed(dm.missing.Mechanism):
    def __init__(self, fixed):
        self.fixed = fixed

    def posterior(self, data):
        return self.fixed

    def describe(self, data, posterior):
        return ""


# ------------------------------------------------------------------------------------------------ labels, scores


def test_reliability_compares_the_model_with_the_labels_in_each_bin(many):
    """Three nodes; recounted from rows, one bin after the other."""
    y, score = rows()
    missing = np.isnan(y)
    weight, factors = np.array([0.3, 0.4, 0.3]), np.array([0.5, 0.9, 1.0])
    order = np.argsort(score)
    on_cells = score[order][missing[order]]
    result = replace(many, posterior=Posterior(weight, factors[:, None] * on_cells), confidence_level=0.5)
    ax = dm.plotting.plot_reliability(result)
    dots = np.asarray(ax.collections[-1].get_offsets())
    bars: Any = ax.containers[0]
    # Ten bins of equal weight, where both kinds of rows weigh as much as each other.
    share = np.where(missing, 1 / missing.sum(), 1 / (~missing).sum()) / 2
    middle = np.empty(y.size)
    middle[order] = np.cumsum(share[order]) - 0.5 * share[order]
    assert len(dots) == 10
    for k, (x, height) in enumerate(dots):
        inside = (middle * 10).astype(int) == k
        believed = score[inside & missing].mean()
        positive, count = y[inside & ~missing].sum(), np.sum(inside & ~missing)
        assert x == pytest.approx(believed * (weight @ factors))
        assert height == pytest.approx(positive / count)
        across, upwards = (np.array(lines.get_segments()[k]) for lines in bars.lines[2])
        assert across[:, 0] == pytest.approx([believed * 0.5, believed])  # quartiles over the nodes
        ends = np.array(beta.ppf([0.25, 0.75], positive + 0.5, count - positive + 0.5))
        assert upwards[:, 1] == pytest.approx([min(ends[0], positive / count), max(ends[1], positive / count)])


def test_histograms_count_the_rows_of_each_kind(many):
    y, score = rows()
    ax = dm.plotting.plot_scores(many)
    missing = np.isnan(y)
    for label, inside in (
        (f"labeled ({np.sum(~missing)} rows)", ~missing),
        (f"missing ({missing.sum()} rows)", missing),
    ):
        height, edges, _ = signed(ax, label).get_data()
        assert edges[[0, -1]].tolist() == [0.0, 1.0]
        assert height == pytest.approx(np.histogram(score[inside], edges)[0] / inside.sum())
    assert signed(ax, "threshold 0.5").get_xdata()[0] == 0.5


def test_given_decisions_have_no_threshold_line():
    result = dm.evaluate(Y, SCORE, y_pred=(SCORE > 0.3).astype(int), missingness=dm.missing.Fixed(P), metrics="recall")
    assert labels_of(dm.plotting.plot_scores(result)) == ["labeled (6 rows)", "missing (3 rows)"]


# ---------------------------------------------------------------------------------------------------- thresholds


def test_curves_draw_brute_force_at_every_threshold(curves):
    ax = dm.plotting.plot_curves(curves, ["accuracy", "recall"])
    for name in ("accuracy", "recall"):
        distributions = [brute_force(name, threshold) for threshold in curves.thresholds]
        line = signed(ax, name)
        assert line.get_xdata() == pytest.approx([0.2, 0.45, 0.5, 0.65])
        assert line.get_ydata() == pytest.approx([distribution.mean() for distribution in distributions])
    assert signed(ax, "threshold 0.5").get_xdata()[0] == 0.5


def test_a_single_curve_comes_with_all_that_is_known_of_it(curves):
    ax = dm.plotting.plot_curves(curves, "recall")
    distributions = [brute_force("recall", threshold) for threshold in curves.thresholds]
    for label, tail in (("90% interval", 0.05), ("50% interval", 0.25)):
        corners = signed(ax, label).get_paths()[0].vertices
        for x, distribution in zip(curves.thresholds, distributions, strict=True):
            heights = corners[np.isclose(corners[:, 0], x), 1]
            assert [heights.min(), heights.max()] == pytest.approx(
                [quantile(distribution, tail), quantile(distribution, 1.0 - tail)]
            )
    assert signed(ax, "bounds").get_ydata() == pytest.approx([distribution.low for distribution in distributions])
    labeled = [sklearn.metrics.recall_score(Y[~np.isnan(Y)], SCORE[~np.isnan(Y)] >= t) for t in curves.thresholds]
    assert signed(ax, "labeled only").get_ydata() == pytest.approx(labeled)
    with pytest.raises(dm.InputError, match="Did you mean 'recall'"):
        dm.plotting.plot_curves(curves, "recal")


def test_the_picture_of_gaussian_curves_ends_where_the_metric_does():
    y, score = rows()
    given = dm.threshold_curves(
        dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), metrics="precision"),
        metrics="precision",
        method="gaussian",
    )
    assert given["precision"].intervals[0.9][1].max() == 1.0
    assert dm.plotting.plot_curves(given).get_ylim()[1] < 1.05


def test_the_roc_legend_has_the_area_of_brute_force(curves):
    distribution = brute_force("roc_auc")
    ends = " to ".join(f"{quantile(distribution, tail):.3f}" for tail in (0.05, 0.95))
    result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics=["roc_auc", "recall"])
    assert f"AUC {distribution.mean():.3f} ({ends})" in labels_of(dm.plotting.plot_roc(result))
    assert not [label for label in labels_of(dm.plotting.plot_roc(curves)) if "AUC" in label]


def test_precision_of_labeled_rows_ends_where_none_is_flagged():
    y, score = np.array([1, 0, 1, np.nan, np.nan]), np.array([0.2, 0.3, 0.6, 0.7, 0.9])
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), metrics=["precision", "recall"], zero_division=0)
    curves = dm.threshold_curves(result, metrics=["precision", "recall"], thresholds="all")
    line = signed(dm.plotting.plot_curves(curves, "precision"), "labeled only")
    assert np.isfinite(line.get_ydata()).tolist() == (curves.thresholds <= 0.6).tolist()
    recall = signed(dm.plotting.plot_curves(curves, "recall"), "labeled only")  # zero flagged is a recall of 0
    assert recall.get_ydata()[-1] == 0.0


def test_with_all_labels_the_roc_curve_is_that_of_scikit_learn():
    y = np.where(np.isnan(Y), 1.0, Y)
    full = dm.threshold_curves(dm.evaluate(y, SCORE, metrics="recall"), thresholds="all")
    x, height = signed(dm.plotting.plot_roc(full), "mean").get_data()
    fpr, tpr, _ = sklearn.metrics.roc_curve(y, SCORE, drop_intermediate=False)
    # The threshold in use lies between two scores and repeats a point.
    assert np.unique(np.column_stack([x, height]), axis=0) == pytest.approx(
        np.unique(np.column_stack([fpr, tpr]), axis=0)
    )
    recall, precision = signed(dm.plotting.plot_precision_recall(full), "mean").get_data()
    for value, found in zip(precision, recall, strict=True):
        assert any(
            (value, found)
            == pytest.approx(
                (sklearn.metrics.precision_score(y, t <= SCORE), sklearn.metrics.recall_score(y, t <= SCORE))
            )
            for t in SCORE
        )


def test_a_dot_that_is_not_at_the_threshold_in_use_says_where_it_is():
    result = dm.evaluate(
        [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), threshold=1e9, zero_division=0
    )
    ax = dm.plotting.plot_precision_recall(
        dm.threshold_curves(result)
    )  # nothing is flagged, so that there is no precision
    _, labels = ax.get_legend_handles_labels()
    assert "threshold 0.9" in labels


def test_the_dot_of_a_rate_curve_is_at_the_threshold_in_use(curves):
    ax = dm.plotting.plot_roc(curves)
    dot = signed(ax, "threshold 0.5")
    assert dot.get_xdata() == pytest.approx([brute_force("fpr").mean()])
    assert dot.get_ydata() == pytest.approx([brute_force("recall").mean()])


# ----------------------------------------------------------------------------------------- what all have in common


@cache
def late_rows() -> dm.Evaluation:
    rng = np.random.default_rng(0)
    age, score = rng.integers(0, 90, 800), rng.random(800)
    y = rng.random(800) < score
    return dm.evaluate(
        np.where(rng.integers(0, 40, 800) <= age, y, np.nan),
        score,
        missingness=dm.missing.Delayed(age=age),
        metrics="recall",
    )


@cache
def make_verification() -> dm.Verification:
    may = dm.evaluate([1, 0, None, None], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed(0.5), metrics="accuracy")
    return dm.verify(may, [1, 0], [0.7, 0.4], arrival="alike")


@cache
def replayed() -> dm.Backtest:
    rng = np.random.default_rng(0)
    day, score = rng.integers(0, 300, 1000), rng.random(1000)
    y, delay = rng.random(1000) < score, rng.integers(0, 60, 1000)
    when: dict[str, Any] = {"as_of": [120, 180, 240], "scored_at": day, "labeled_at": day + delay}
    return dm.backtest(y, score, metrics="recall", missingness="by_score", **when)


@cache
def shops() -> dm.GroupedEvaluation:
    """Three months of 300 rows, the scores of the last of them too low."""
    rng = np.random.default_rng(0)
    month, p = np.repeat(["2026-04", "2026-05", "2026-06"], 300), rng.random(900)
    y = np.where(rng.random(900) < 0.3, np.nan, rng.random(900) < p)
    table = pd.DataFrame({"month": month, "y": y, "p": np.where(month == "2026-06", p**1.5, p)})
    return dm.evaluate_by("y", "p", data=table, by="month", metrics="recall", missingness="random")


@cache
def changed() -> dm.EvaluationChange:
    return shops().compare("2026-06", "2026-05")


@cache
def shop_gap() -> dm.changes.Disparity:
    return shops().disparity("recall")


@cache
def compared() -> dm.Comparison:
    scores = {"champion": [0.9, 0.2, 0.7, 0.4, 0.6], "challenger": [0.8, 0.6, 0.3, 0.7, 0.2]}
    return dm.compare([1, 0, None, 1, None], scores, missingness=dm.missing.Fixed([0.6, 0.3]), metrics="recall")


@cache
def pets() -> dm.Evaluation:
    scores = {"cat": [0.7, 0.2, 0.1, 0.5], "dog": [0.2, 0.7, 0.3, 0.3], "fish": [0.1, 0.1, 0.6, 0.2]}
    fixed = dm.missing.Fixed([[0.25, 0.25, 0.5], [0.5, 0.3, 0.2]])
    return dm.evaluate(["cat", "dog", None, None], scores, missingness=fixed, metrics="accuracy")


PLOTS = {
    "distribution": lambda f, c, b, **k: dm.plotting.plot_distribution(f, "recall", target=0.7, **k),
    "metrics": lambda f, c, b, **k: dm.plotting.plot_metrics(f, **k),
    "variance": lambda f, c, b, **k: dm.plotting.plot_variance(f, **k),
    "reliability": lambda f, c, b, **k: dm.plotting.plot_reliability(f, **k),
    "scores": lambda f, c, b, **k: dm.plotting.plot_scores(f, **k),
    "curves": lambda f, c, b, **k: dm.plotting.plot_curves(c, **k),
    "one curve": lambda f, c, b, **k: dm.plotting.plot_curves(c, "recall", **k),
    "roc": lambda f, c, b, **k: dm.plotting.plot_roc(c, **k),
    "precision recall": lambda f, c, b, **k: dm.plotting.plot_precision_recall(c, **k),
    "pit": lambda f, c, b, **k: dm.plotting.plot_pit(b, "recall", **k),
    "coverage": lambda f, c, b, **k: dm.plotting.plot_coverage(b, **k),
    "arrival": lambda f, c, b, **k: dm.plotting.plot_arrival(late_rows(), **k),
    "verification": lambda f, c, b, **k: dm.plotting.plot_verification(make_verification(), **k),
    "change": lambda f, c, b, **k: dm.plotting.plot_change(changed(), **k),
    "trend": lambda f, c, b, **k: dm.plotting.plot_trend(shops().trend("recall"), **k),
    "disparity": lambda f, c, b, **k: dm.plotting.plot_disparity(shop_gap(), **k),
    "history": lambda f, c, b, **k: dm.plotting.plot_history(replayed(), "recall", **k),
    "difference": lambda f, c, b, **k: dm.plotting.plot_difference(compared(), "recall", **k),
    "models": lambda f, c, b, **k: dm.plotting.plot_models(compared(), "recall", **k),
    "per class": lambda f, c, b, **k: dm.plotting.plot_per_class(pets().per_class("recall"), **k),
    "confusion": lambda f, c, b, **k: dm.plotting.plot_confusion(pets().confusion_matrix(), **k),
}
# A confusion matrix has cells with numbers, and so no legend: what moves and wraps titles comes with a legend.
WITH_SERIES = [plot for plot in PLOTS if plot != "confusion"]


def test_every_plot_function_is_among_those_tested():
    public = {name.removeprefix("plot_").replace("_", " ") for name in dm.plotting.__all__}
    elsewhere = {"groups", "over time", "segments"}  # test_plotting_groups
    assert public - elsewhere == set(PLOTS) - {"one curve"}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_plot_uses_the_axes_given_and_leaves_the_rest_alone(plot, few, curves, backtest, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot was shown"))
    _, other = plt.subplots()
    _, ax = plt.subplots()
    settings, figures = dict(mpl.rcParams), plt.get_fignums()
    assert plot(few, curves, backtest, ax=ax) is ax
    assert plt.get_fignums() == figures
    assert not other.has_data()
    assert dict(mpl.rcParams) == settings
    new = plot(few, curves, backtest)
    assert len(plt.get_fignums()) == len(figures) + 1
    assert new.figure.number not in figures
    assert dict(mpl.rcParams) == settings


@pytest.fixture(scope="module")
def seen(few, curves, backtest):
    """A plot on white or dark paper, drawn once for all tests that only look at it; closed, it can still be seen."""

    @cache
    def on_paper(plot, look="default"):
        with plt.style.context(look):
            return PLOTS[plot](few, curves, backtest)

    return on_paper


@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_is_readable_at_400_pixels(plot, seen):
    check_readable(seen(plot))


@pytest.mark.parametrize("plot", WITH_SERIES)
def test_series_differ_by_more_than_colour(plot, seen):
    ax = seen(plot)
    assert ax.get_legend() is not None
    # A legend may also have words that belong to no series.
    assert 0 < len(set(signs(ax))) == len(signs(ax)) <= len(labels_of(ax))


def test_thirty_series_have_different_signs_and_the_colours_are_okabe_and_itos():
    each = [style.series_style(number) for number in range(30)]
    assert len({(one["marker"], str(one["linestyle"])) for one in each}) == 30
    palette = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}
    assert {to_hex(colour) for colour in style.COLORS} <= palette


def test_without_matplotlib_a_plot_says_what_to_install(few, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(
        dm.exceptions.MethodError, match=r"plot: matplotlib is not installed\. pip install 'darkmetrics\[plot\]'"
    ):
        few.plot()


# -------------------------------------------------------------------------------------------------------- extremes

LONG = "the_share_of_customers_who_leave_within_ninety_days_of_a_call"
ODD = "_$cost$ of <b>this</b>\nand that, blanks and so on until sixty"


def own(name, **about):
    return dm.metrics.ConfusionMetric(name=name, formula=lambda tp, fp, fn, tn: tp / (tp + fn), **about)


def by_name(name):
    return {"fbeta": "fbeta(2)", "lift_at_k": "lift_at_k(5)"}.get(name, f"{name}(5)" if name.endswith("_k") else name)


EXTREMES = {
    "point mass": lambda: dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed([0.0, 1.0, 1.0]), metrics=NAMES),
    "no missing labels": lambda: dm.evaluate(np.where(np.isnan(Y), 1.0, Y), SCORE, metrics=NAMES),
    "all missing": lambda: dm.evaluate(
        [np.nan] * 9, SCORE, missingness=dm.missing.Fixed(SCORE), metrics=NAMES, zero_division=0
    ),
    "undefined": lambda: dm.evaluate(
        [0, 0, np.nan], [0.1, 0.2, 0.3], missingness=dm.missing.Fixed([0.0]), metrics=NAMES, zero_division=np.nan
    ),
    "one metric": lambda: dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics="recall"),
    "27 metrics": lambda: dm.evaluate(
        Y,
        SCORE,
        missingness=dm.missing.Fixed(P),
        metrics=[by_name(name) for name in dm.metrics.registered_names()],
        zero_division=np.nan,
    ),
    "long names": lambda: dm.evaluate(
        Y, SCORE, missingness=dm.missing.Fixed(P), metrics=[own(LONG, range=(0, 1)), own(ODD), own("x" * 5000)]
    ),
    "y_pred": lambda: dm.evaluate(
        Y, SCORE, y_pred=(SCORE > 0.3).astype(int), missingness=dm.missing.Fixed(P), metrics=NAMES
    ),
    "one row": lambda: dm.evaluate(
        [np.nan], [0.7], missingness=dm.missing.Fixed([0.3]), metrics=NAMES, zero_division=0
    ),
    "equal scores": lambda: dm.evaluate(
        [1, 0, np.nan], [3.0] * 3, missingness=dm.missing.Fixed(0.5), metrics=NAMES, threshold=0.5
    ),
    "large scores": lambda: dm.evaluate(
        Y, 1e12 * SCORE, threshold=5e11, missingness=dm.missing.Fixed(P), metrics=NAMES
    ),
    "apart": lambda: dm.evaluate(
        [1, 0, np.nan, np.nan], [0.1, 0.2, 0.6, 0.7], missingness=dm.missing.Fixed(0.5), metrics=NAMES
    ),
    "gaussian": lambda: dm.evaluate(*rows(), missingness=dm.missing.Fixed(0.5), method="gaussian", metrics=NAMES),
    "monte carlo": lambda: dm.evaluate(
        *rows(), missingness=dm.missing.Fixed(0.5), method="monte_carlo", rng=0, metrics=NAMES
    ),
}


@cache
def extreme(case) -> dm.Evaluation:
    return EXTREMES[case]()


@pytest.mark.parametrize("case", EXTREMES)
def test_extreme_results_are_drawn_and_readable(case):
    result = extreme(case)
    for plot in (
        dm.plotting.plot_variance,
        dm.plotting.plot_reliability,
        dm.plotting.plot_scores,
        dm.plotting.plot_metrics,
    ):
        check_readable(plot(result))
    for name in list(result)[:3]:
        check_readable(dm.plotting.plot_distribution(result, name, target=0.6))


@pytest.mark.parametrize(
    "case", ["point mass", "no missing labels", "all missing", "undefined", "one row", "long names"]
)
def test_curves_of_extreme_results_are_drawn_and_readable(case):
    result = extreme(case)
    curves = dm.threshold_curves(result, metrics=list(result.metrics.values()), thresholds=5)
    for plot in (dm.plotting.plot_curves, dm.plotting.plot_roc, dm.plotting.plot_precision_recall):
        check_readable(plot(curves))
    check_readable(dm.plotting.plot_curves(curves, next(iter(curves))))


def test_names_are_text_and_not_mathematics_or_hidden():
    result = extreme("long names")
    ax = dm.plotting.plot_metrics(result)
    lay_out(ax)
    texts = [tick.get_text() for tick in ax.get_yticklabels()]
    assert texts[0].replace("\n", "") == LONG
    assert "\\$cost\\$ of" in texts[1]
    assert len(texts[2]) < 100
    curves = dm.threshold_curves(result, metrics=list(result.metrics.values()), thresholds=3)
    assert labels_of(dm.plotting.plot_curves(curves))[1].strip().startswith("_\\$cost\\$ of <b>this</b>")


def test_plots_of_something_else_say_what_they_want():
    result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    wrong: Any = 3
    for plot in (dm.plotting.plot_curves, dm.plotting.plot_roc, dm.plotting.plot_precision_recall):
        with pytest.raises(
            dm.InputError, match=r"curves: expected what threshold_curves\(result\) or evaluate returns, got int"
        ):
            plot(wrong)
    for draw in (dm.plotting.plot_metrics, dm.plotting.plot_variance, dm.plotting.plot_scores):
        with pytest.raises(dm.InputError, match="evaluation: expected what evaluate returns, got int"):
            draw(wrong)
    target: Any = "x"
    with pytest.raises(dm.InputError, match="target: 'x'"):
        dm.plotting.plot_distribution(result, "recall", target=target)


def shade(colour):
    """How light a colour is, from 0 to 1."""
    return float(np.dot(mpl.colors.to_rgb(colour), (0.299, 0.587, 0.114)))


@pytest.mark.parametrize("plot", WITH_SERIES)
@pytest.mark.parametrize(("look", "paper"), [("default", 1.0), ("dark_background", 0.0)])
def test_every_line_and_mark_stands_out_from_the_paper(look, paper, plot, seen):
    ax = seen(plot, look)
    colours = [line.get_color() for line in ax.lines] + [
        colour for one in ax.collections if isinstance(one, LineCollection) for colour in one.get_colors()
    ]
    assert colours or plot == "variance"  # which has bars alone
    assert all(abs(shade(colour) - paper) > 0.25 for colour in colours)
    texts = [ax.xaxis.label, ax.yaxis.label, *ax.texts]
    assert all(abs(shade(text.get_color()) - paper) > 0.4 for text in texts)
    for line in ax.xaxis.get_gridlines() if ax.xaxis.get_gridlines()[0].get_visible() else []:
        assert abs(shade(line.get_color()) - paper) < 0.3


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_numbers_of_a_confusion_matrix_stand_out_from_their_cells(look, seen):
    ax = seen("confusion", look)
    (image,) = ax.images
    cells = image.to_rgba(image.get_array())
    assert len(ax.texts) == 2 * 3 * 3
    for text in ax.texts:
        column, row = (round(at) for at in text.get_position())
        assert abs(shade(text.get_color()) - shade(cells[row, column, :3])) > 0.4
    paper = 1.0 if look == "default" else 0.0
    assert all(abs(shade(text.get_color()) - paper) > 0.4 for text in (ax.xaxis.label, ax.yaxis.label))


@pytest.mark.parametrize("plot", PLOTS)
def test_areas_are_as_plain_to_see_on_dark_paper_as_on_white(plot, seen):
    on_white, on_black = areas_seen(seen(plot), 1.0), areas_seen(seen(plot, "dark_background"), 0.0)
    assert len(on_black) == len(on_white)
    # Blue, the darkest of the colours, has a little less on black than on white.
    assert all(dark > 0.9 * light and dark > 1.2 for dark, light in zip(on_black, on_white, strict=True))


@pytest.mark.parametrize("plot", WITH_SERIES)
def test_a_title_that_is_set_later_stands_above_the_legend(plot, few, curves, backtest):
    ax = PLOTS[plot](few, curves, backtest)
    title = ax.set_title("Frauds of June")
    lay_out(ax, times=2)  # it settles at the second
    legend = ax.get_legend()
    assert legend is not None
    assert title.get_window_extent().y0 >= legend.get_window_extent().y1 - 1.0
    assert title.get_window_extent().y1 <= ax.figure.bbox.y1 + 1.0


@pytest.mark.parametrize(
    ("plot", "place"), [*((plot, "center") for plot in WITH_SERIES), ("roc", "left"), ("roc", "right")]
)
def test_a_title_that_is_too_long_for_a_line_goes_on_in_the_next(plot, place, few, curves, backtest):
    ax = PLOTS[plot](few, curves, backtest)
    words = "Recall of the fraud model on card payments, June 2026 (second line of defence)"
    title = ax.set_title(words, loc=place)
    lay_out(ax, times=2)  # it settles at the second
    box, edge = title.get_window_extent(), ax.figure.bbox
    assert edge.x0 <= box.x0 < box.x1 <= edge.x1
    assert box.y1 <= edge.y1 + 1.0
    assert title.get_text().replace("\n", " ") == words
    assert 1 <= title.get_text().count("\n") <= 2
    legend = ax.get_legend()
    assert legend is not None
    assert box.y0 >= legend.get_window_extent().y1 - 1.0
    slide: Any = ax.figure
    slide.set_size_inches(14, 6)  # one line is enough
    lay_out(ax, times=2)
    assert title.get_text() == words
    ax.set_title("June", loc=place)
    lay_out(ax)
    assert ax.get_title(place) == "June"


def test_words_and_lines_of_a_title_stay_as_they_were_set(few):
    ax = few.plot()
    for words in ("Two\nlines", "one_name_of_" * 8, "a price of \\$5"):
        ax.set_title(words)
        lay_out(ax)
        assert ax.get_title() == words


def test_a_legend_that_is_made_anew_does_not_hold_the_title_up(few):
    ax = few.plot()
    title = ax.set_title("Frauds of June")
    ax.legend(loc="lower right")
    lay_out(ax)
    assert title.get_window_extent().y0 < ax.bbox.y1 + 12.0


def test_a_figure_with_a_legend_can_be_pickled(few):
    assert pickle.loads(pickle.dumps(few.plot().figure)).axes


def test_plot_of_a_metric_is_its_law_and_of_some_a_forest(few):
    ax = few.plot("recall", target=0.7)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("recall", "probability")
    assert [tick.get_text() for tick in few.plot(["recall", "precision"]).get_yticklabels()] == ["recall", "precision"]
    with pytest.raises(KeyError, match="Did you mean 'recall'"):
        few.plot("recal")


def test_curves_are_made_of_an_evaluation(few):
    for plot, names in ((dm.plotting.plot_roc, ("false positive rate", "recall")),):
        ax = plot(few)
        assert (ax.get_xlabel(), ax.get_ylabel()) == names
        assert signed(ax, "mean").get_xydata() == pytest.approx(
            signed(plot(dm.threshold_curves(few)), "mean").get_xydata()
        )


def test_the_mean_leaves_the_interval_to_be_seen(few):
    ax = dm.plotting.plot_metrics(few)
    mean, interval = signed(ax, "mean"), signed(ax, "90% interval")
    # A tick is as wide as its edge, in points; the bar is as high as its line.
    assert mean.get_marker() == "|"
    assert mean.get_markeredgewidth() < 1.5 < 3.0 <= interval.get_linewidths()[0]


def test_without_bounds_the_axis_goes_as_far_as_the_intervals(few):
    ax = dm.plotting.plot_metrics(few, ["recall", "precision"], bounds=False)
    assert "bounds" not in labels_of(ax)
    ends = [end for name in ("recall", "precision") for end in (*few[name].interval(0.9), few.labeled_only[name])]
    low, high = ax.get_xlim()
    assert low == pytest.approx(min(ends) - 0.04 * (max(ends) - min(ends)))
    assert high == pytest.approx(max(ends) + 0.04 * (max(ends) - min(ends)))


@pytest.mark.parametrize("slide", [False, True])
def test_long_names_of_groups_differ_in_a_gap_and_its_columns_do_not_run_together(slide):
    rng = np.random.default_rng(0)
    p = rng.random(900)
    names = [
        f"department of internal medicine, ward {i}, hospital {end}" for i in range(3) for end in ("north", "south")
    ]
    table = pd.DataFrame({"ward": np.repeat(names, 150), "y": rng.random(900) < p, "p": p})
    gap = dm.evaluate_by("y", "p", data=table, by="ward", metrics="recall").disparity("recall")
    with mpl.rc_context({"font.size": 20.0 if slide else 10.0}):
        ax = dm.plotting.plot_disparity(gap)
        figure: Any = ax.figure
        if slide:
            figure.set_size_inches(13.33, 7.5)
    assert len({tick.get_text() for tick in ax.get_yticklabels()}) == len(names)
    lay_out(ax)
    texts: list[Any] = list(ax.texts)
    columns = [[text for text in texts if text.xyann[0] == at] for at in sorted({text.xyann[0] for text in texts})]
    left, right = ([text.get_window_extent() for text in column] for column in columns)
    assert max(box.x1 for box in left) < min(box.x0 for box in right)
    assert max(box.x1 for box in right) <= ax.figure.bbox.x1
