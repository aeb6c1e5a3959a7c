"""How far bins can move a metric: never further than it says, whatever the labels and wherever the scores lie."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics._kernels.bin_grid import bin_index
from darkmetrics.metrics import LossMetric, metrics_from, registered, registered_names

K = 16
MOVED = (
    "roc_auc",
    "roc_auc(ties='full')",
    "gini",
    "average_precision",
    "precision_at_k(3)",
    "recall_at_k(3)",
    "lift_at_k(0.4)",
    "brier",
    "log_loss",
)


def problem(rng):
    """A few rows in a few bins: labels, the labels with gaps, scores, weights or none, a threshold."""
    n = int(rng.integers(4, 12))
    centres = rng.choice([0.03, 0.2, 0.35, 0.45, 0.62, 0.9], size=int(rng.integers(1, 4)), replace=False)
    score = np.clip(rng.choice(centres, n) + rng.uniform(-0.01, 0.01, n) * rng.choice([0, 1, 1], n), 0, 1)
    y = rng.integers(0, 2, n).astype(float)
    gaps = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.3, 0.6]))[:4]
    weight = rng.choice([0.5, 1.0, 2.0], n) if rng.random() < 0.4 else None
    return y, gaps, score, weight, float(rng.choice([0.5, 0.2, 0.0355]))


def placements(y, score, threshold):
    """The scores as they are, and within each bin in the order of the labels, rising or falling."""
    place = 2 * bin_index(score, K) + (score >= threshold)
    yield score
    for sign in (1.0, -1.0):
        sorted_by_label = score.copy()
        for own in (np.flatnonzero(place == p) for p in np.unique(place)):
            sorted_by_label[own[np.argsort(sign * y[own], kind="stable")]] = np.sort(score[own])
        yield sorted_by_label


def test_no_labeling_and_no_place_of_the_scores_moves_a_metric_further_than_its_bound():
    rng = np.random.default_rng(0)
    metrics = metrics_from(list(MOVED))
    slack: dict[str, list[float]] = {metric.name: [] for metric in metrics}
    for _ in range(150):
        y, gaps, score, weight, threshold = problem(rng)
        settings = {"threshold": threshold, "sample_weight": weight}
        known = y.copy()
        known[gaps] = np.nan
        data = EvaluationSet(known, score, **settings).binned(K)
        if data.score_bins is None:
            continue
        worst = dict.fromkeys(slack, 0.0)
        for labels in product([0.0, 1.0], repeat=gaps.size):
            y[gaps] = labels
            for moved in placements(y, score, threshold):
                exact = EvaluationSet(y, moved, **settings)
                binned = exact.binned(K)
                for metric in metrics:
                    a, b = metric.value(exact), metric.value(binned)
                    assert np.isnan(a) == np.isnan(b)
                    worst[metric.name] = np.fmax(worst[metric.name], abs(a - b))
        for metric in metrics:
            bound = metric.binning_error(data)
            assert worst[metric.name] <= bound + 1e-12, metric.name  # rounding of sums
            if worst[metric.name] > 0.0:
                slack[metric.name].append(bound / worst[metric.name])
    # Not only true but useful: the typical ratio of bound to what was attained. A loss of labeled rows of one class is
    # much nearer, because the mean of a bin is kept; with labels missing it can be half of the bound.
    for name, ratios in slack.items():
        assert len(ratios) > 50, name
        assert np.median(ratios) < (3.0 if name in ("brier", "log_loss") else 1.3), name


def test_metrics_of_decisions_are_exact_in_bins():
    rng = np.random.default_rng(1)
    score = rng.beta(0.5, 3.0, 5000)
    y = np.where(rng.random(5000) < 0.3, np.nan, rng.random(5000) < score)
    names = [name for name in registered_names() if isinstance(_example(name), dm.metrics.ConfusionMetric)]
    assert len(names) > 10
    for more in (
        {"threshold": 0.2},
        {"y_pred": rng.random(5000) < 0.3},
        {"sample_weight": rng.choice([1.0, 2.5], 5000)},
    ):
        exact = EvaluationSet(y, score, **more)
        data = exact.binned(64)
        for name in names:
            metric = _example(name)
            assert metric.binning_error(data) == 0.0
            a, b = (metric.bind(one, np.nan).extremes for one in (exact, data))
            assert a == pytest.approx(b, rel=1e-12)  # weights are added up in another order
            assert metric.value(exact) == pytest.approx(metric.value(data), rel=1e-12)


def _example(name):
    record = registered(name)
    return record.example if isinstance(record, dm.metrics.Family) else record


def test_exact_scores_move_nothing_and_of_the_unknown_nothing_is_claimed():
    exact = EvaluationSet([1, 0, None, 1], [0.9, 0.1, 0.35, 0.36])
    data = exact.binned(K)
    own = [
        LossMetric(name="off", loss=lambda y, s: abs(y - s)),
        dm.metrics.CallableMetric(name="own", function=lambda y, s: 0.0),
    ]
    for metric in [*own, *(_example(name) for name in registered_names() if "at_k" not in name)]:
        assert metric.binning_error(exact) == 0.0
    for metric in own:
        assert np.isnan(metric.binning_error(data))
    # It is known as soon as the user says that the loss is monotone: 0.36 may be 0.35, and so on.
    stated = LossMetric(name="off", loss=lambda y, s: abs(y - s), monotone=True)
    assert stated.binning_error(data) == pytest.approx(2 * 0.005 / 4)


def test_tied_scores_are_no_bins():
    # Many rows at one score are ties in truth too; only the bin of 0.35 and 0.36 counts.
    y, score = [1, 0] * 50 + [1, 0], [0.9] * 100 + [0.35, 0.36]
    data = EvaluationSet(y, score).binned(K)
    (auc,) = metrics_from("roc_auc")
    assert auc.binning_error(data) == pytest.approx(0.5 / 51**2)


def test_a_metric_that_is_never_defined_is_moved_by_nothing():
    data = EvaluationSet([1, 1, 1], [0.35, 0.36, 0.9]).binned(K)
    (auc,) = metrics_from("roc_auc")
    assert auc.binning_error(data) == 0.0


def test_auc_bound_equals_the_largest_ratio_over_all_labelings_of_two_bins():
    # Brute force over the positives among the missing rows of each bin; all rows lie in wide bins.
    rng = np.random.default_rng(2)
    (auc,) = metrics_from("roc_auc")
    for _ in range(20):
        known, open_ = rng.integers(0, 40, 2), rng.integers(0, 60, 2)
        other = rng.integers(1, 40, 2)
        total = known + open_ + other
        y, score = [], []
        for b, centre in enumerate((0.2, 0.9)):
            y += [1] * known[b] + [None] * open_[b] + [0] * other[b]
            score += [centre + 1e-4 * i for i in range(total[b])]
        data = EvaluationSet(y, score, threshold=0.5).binned(K)
        assert data.cells.score.size == 2
        p = np.stack(np.meshgrid(*(np.arange(k, k + m + 1) for k, m in zip(known, open_, strict=True))), axis=-1)
        positives = p.sum(axis=-1)
        pairs = positives * (total.sum() - positives)
        attained = np.max(0.5 * (p * (total - p)).sum(axis=-1)[pairs > 0] / pairs[pairs > 0])
        bound = auc.binning_error(data)
        # The bound lets rows be split; with some hundred rows that and the tangents leave a few per cent.
        assert attained <= bound * (1.0 + 1e-12)
        assert bound <= attained * 1.1


def scores_of_fraud(n, rng):
    """Mostly tiny scores, none below 1e-7, and labels that follow a Beta mixture."""
    y = rng.random(n) < 0.01
    score = np.where(y, rng.beta(2.0, 3.0, n), rng.beta(0.3, 8.0, n))
    return y.astype(float), np.where(score < 1e-7, 10.0 ** rng.uniform(-7, -5, n), score)


def log_uniform(n, rng):
    score = 10.0 ** rng.uniform(-7, 0, n)
    return (rng.random(n) < score).astype(float), score


@pytest.mark.parametrize("make", [scores_of_fraud, log_uniform])
def test_sixty_five_thousand_bins_move_roc_auc_by_less_than_one_in_ten_thousand(make):
    # Ten times as many rows have the same bound: it depends on how many rows share a bin, as a part of all.
    rng = np.random.default_rng(3)
    y, score = make(500_000, rng)
    y = np.where(rng.random(y.size) < 0.3, np.nan, y)
    exact = EvaluationSet(y, score, threshold=0.2)
    data = exact.binned(2**16)
    auc, recall = metrics_from(["roc_auc", "recall"])
    bound = auc.binning_error(data)
    assert bound <= 1e-4
    assert abs(auc.value(data) - auc.value(exact)) <= bound
    assert recall.value(data) == recall.value(exact)


def test_an_evaluation_says_how_far_bins_move_its_metrics():
    rng = np.random.default_rng(4)
    score = rng.beta(0.5, 2.0, 4000)
    y = np.where(rng.random(4000) < 0.3, np.nan, rng.random(4000) < score)
    own = dm.metrics.CallableMetric(name="own", function=lambda y, s: float(np.mean(y)), range=(0, 1))
    exact = EvaluationSet(y, score)
    settings: dict[str, Any] = {"rng": 0, "missingness": "by_score"}
    result = dm.evaluate(exact.binned(256), metrics=["precision", "recall", "roc_auc", own], **settings)
    assert list(result.binning_error) == list(result)
    assert result.binning_error["recall"] == 0.0
    assert np.isnan(result.binning_error["own"])
    bound = result.binning_error["roc_auc"]
    low, high = dm.evaluate(exact, metrics="roc_auc", **settings)["roc_auc"].support()
    assert 0.0 < bound < 0.01
    assert np.allclose(result["roc_auc"].support(), (low, high), rtol=0.0, atol=bound)
    note = result._notes()[-1]
    assert note.startswith("Scores are in 256 bins: that moves roc_auc by at most 0.00")
    assert note.endswith("; precision, recall are exact. How far it moves own is not known.")
    assert bound <= float(note.split("at most ")[1].split(";")[0]) <= 1.1 * bound
    effects = {"precision": 0.0, "recall": 0.0, "roc_auc": bound, "own": None}
    assert result.to_dict()["binning_error"] == effects
    assert result.to_dict()["bins"] == 256
    plain = dm.evaluate(exact, metrics="roc_auc", **settings)
    assert dict(plain.binning_error) == {"roc_auc": 0.0}
    assert not {"bins", "binning_error"} & plain.to_dict().keys()
    assert "bins" not in str(plain)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_report_says_how_far_bins_move_its_metrics(missing):
    rng = np.random.default_rng(6)
    score = rng.random(300)
    y = np.where(rng.random(300) < missing, np.nan, rng.random(300) < score)
    result = dm.evaluate(
        EvaluationSet(y, score).binned(64), metrics=["recall", "roc_auc"], missingness=dm.missing.Fixed(0.5)
    )
    assert dm.report.summarize(result)["assumptions"][-1].startswith("Scores are in 64 bins: that moves roc_auc by")


def test_curves_of_bins_are_exact_at_every_threshold_they_have():
    rng = np.random.default_rng(5)
    score = rng.beta(0.5, 2.0, 3000)
    y = np.where(rng.random(3000) < 0.3, np.nan, rng.random(3000) < score)
    exact = EvaluationSet(y, score, threshold=0.2)
    data = exact.binned(64)
    half: dict[str, Any] = {"metrics": ["precision", "recall"], "missingness": dm.missing.Fixed(0.5)}
    of_exact, of_data = dm.evaluate(exact, **half), dm.evaluate(data, **half)
    curves = dm.threshold_curves(of_data, thresholds="all")
    columns = data.cells.arrays()
    assert set(curves.thresholds) == {*columns["low"].tolist(), 0.2}
    expected = dm.threshold_curves(of_exact, thresholds=curves.thresholds, method=curves.method)
    np.testing.assert_allclose(curves.flagged, expected.flagged)
    for name, band in curves.items():
        np.testing.assert_allclose(band.mean, expected[name].mean, rtol=1e-9)
        np.testing.assert_allclose(band.lowest_possible, expected[name].lowest_possible, rtol=1e-9)
    np.testing.assert_allclose(curves.roc().y.mean, expected.roc().y.mean, rtol=1e-9)
    np.testing.assert_array_equal(curves.precision_recall().thresholds, expected.precision_recall().thresholds)
    assert curves.best_threshold("precision").threshold in curves.thresholds
    wide = int(np.argmax(columns["high"] - columns["low"]))
    inside = 0.5 * float(columns["low"][wide] + columns["high"][wide])
    with pytest.raises(dm.InputError, match=r"^thresholds: \S+ lies inside a bin of scores"):
        dm.threshold_curves(of_data, thresholds=[0.2, inside])
