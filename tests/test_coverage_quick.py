"""A slice of the promise about coverage (all of it: tests/guarantees/test_coverage.py), and the simulations themselves.

Of 24 intervals that cover with probability 0.9, fewer than 17 do with probability 0.002; of 24 that cover with
probability one half, 17 do with probability 0.03. Seeds are fixed: a red test is red for everyone.
"""

import numpy as np
import pytest
from scipy import stats

import darkmetrics as dm
from guarantees.scenarios import (
    BY_BOTH,
    BY_LABEL,
    BY_LABEL_HALF,
    BY_SCORE,
    DRIFT,
    METRICS,
    N_REFERENCE,
    PU_BY_SCORE,
    PU_CONSTANT,
    RANDOM,
    SCENARIOS,
    ks_to_uniform,
    masked_counts,
    measure,
    w1_to_uniform,
)
from guarantees.ways import from_reference_alone, with_model, with_reference, with_true_chances

REPLICATIONS = 24
AT_LEAST = 17 / REPLICATIONS
# ROC-AUC takes longest, and the controls do without.
MATRIX = tuple(name for name in METRICS if name != "roc_auc")


def coverage(way, scenario, n=REPLICATIONS, metrics=METRICS):
    return {name: quality.coverage for name, quality in measure(way, scenario.samples(n), metrics).items()}


# -------------------------------------------------------------------------------------------------------- the slice


@pytest.mark.parametrize(
    ("scenario", "way"),
    [
        (RANDOM, with_model("calibrated")),
        (BY_SCORE, with_model("calibrated")),
        (BY_LABEL_HALF[1], with_model("label_shift")),
        (BY_LABEL_HALF[1], with_model("auto")),
        (BY_BOTH, with_reference("selection")),
        (BY_BOTH, with_reference("auto")),
    ],
    ids=["random", "by score", "by label", "by label, not told", "by score and label", "by score and label, not told"],
)
def test_intervals_cover_the_truth(scenario, way):
    assert min(coverage(way, scenario).values()) >= AT_LEAST


@pytest.mark.parametrize(
    ("scenario", "way"),
    [
        (RANDOM, with_model("half", MATRIX)),
        (BY_LABEL_HALF[1], with_model("calibrated", MATRIX)),
        (BY_SCORE, with_model("label_shift", MATRIX)),
        (DRIFT, from_reference_alone),
    ],
    ids=["half", "calibrated when by label", "label shift when by score", "confidence-based after drift"],
)
def test_wrong_assumptions_fail_to_cover(scenario, way):
    covered = coverage(way, scenario, 5, MATRIX)
    # Of five intervals that cover with probability 0.9, at most two do with probability 0.009: not in three metrics.
    assert sum(share <= 2 / 5 for share in covered.values()) >= 3, covered


@pytest.mark.parametrize("scenario", [PU_CONSTANT, PU_BY_SCORE], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("missingness", [None, "by_label", "by_score_and_label"])
def test_positive_unlabeled_data_without_a_reference_is_refused(scenario, missingness):
    (sample,) = scenario.samples(1)
    with pytest.raises(dm.InputError, match=r"dm\.missing\.Reference\(labels, scores\)|reference=\(labels, scores\)"):
        dm.evaluate(sample.y, sample.score, missingness=missingness)


# --------------------------------------------------------------------------------------- the simulations themselves


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_true_chances_are_the_chances_of_the_missing_labels(scenario):
    (sample,) = scenario.samples(1, n_rows=200_000)
    missing = np.isnan(sample.y)
    chance, label = sample.chance[missing], sample.complete[missing]
    for band in np.array_split(np.argsort(chance), 10):
        sd = np.sqrt(np.sum(chance[band] * (1 - chance[band])))
        # Ten bands of twelve scenarios: the largest of 120 normal deviates passes 4.5 once in a thousand.
        assert abs(np.sum(label[band] - chance[band])) < 4.5 * sd


@pytest.mark.parametrize("scenario", [RANDOM, BY_SCORE, BY_BOTH, DRIFT], ids=lambda scenario: scenario.name)
def test_three_in_ten_labels_are_missing(scenario):
    (sample,) = scenario.samples(1, n_rows=200_000)
    assert np.mean(np.isnan(sample.y)) == pytest.approx(0.3, abs=0.005)  # 5 standard errors


def test_a_fifth_is_positive_and_scores_are_miscalibrated():
    (sample,) = RANDOM.samples(1, n_rows=200_000)
    assert np.mean(sample.complete) == pytest.approx(0.2, abs=0.01)
    assert np.mean(sample.score) > 0.28


@pytest.mark.parametrize("scenario", BY_LABEL, ids=lambda scenario: scenario.name)
def test_masks_by_label_hold_their_share_of_positives_exactly(scenario):
    eta = float(scenario.name.split("%")[0].rpartition(" ")[2]) / 100
    for sample in scenario.samples(3):
        missing = np.isnan(sample.y)
        assert np.mean(sample.complete[missing]) == pytest.approx(eta, abs=1e-12)
        assert np.mean(missing) <= 0.3
        for y in (0, 1):
            assert np.mean(missing[sample.complete == y]) <= (0.9 if "most" in scenario.name else 0.5)


def test_masks_are_as_large_as_the_classes_allow():
    assert masked_counts(400, 1600, 600, 0.05, 0.5) == (30, 570)  # all 600
    assert masked_counts(400, 1600, 600, 0.4, 0.5) == (200, 300)  # half of the positives
    assert masked_counts(403, 1600, 600, 0.4, 0.5) == (200, 300)  # 201 positives would not make exactly 40%
    assert masked_counts(400, 1600, 600, 0.8, 0.9) == (360, 90)
    assert masked_counts(400, 100, 600, 0.1, 1.0) == (11, 99)  # all the negatives that go with whole positives


def test_samples_are_the_same_in_every_run_and_differ_from_each_other():
    first, second = RANDOM.samples(2, n_reference=0)
    again, _, _ = RANDOM.samples(3, n_reference=N_REFERENCE)
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_array_equal(first.score, again.score)
    assert not np.array_equal(first.score, second.score)


def test_distances_of_the_pit_equal_those_of_scipy():
    u = np.random.default_rng(0).beta(2, 1, size=50)
    assert ks_to_uniform(u) == pytest.approx(stats.kstest(u, "uniform").statistic, abs=1e-12)
    # The midpoints of 50,000 slices stand for the uniform law: each is off by at most half a slice.
    fine = (np.arange(50_000) + 0.5) / 50_000
    assert w1_to_uniform(u) == pytest.approx(stats.wasserstein_distance(u, fine), abs=1e-5)


def test_quality_of_a_right_law_is_at_its_floor():
    """The harness itself: with the true chances the PIT is as uniform as 100 replications allow."""
    quality = measure(with_true_chances, RANDOM.samples(100))
    assert list(quality) == list(METRICS)
    for name in METRICS:
        # 0.313 / sqrt(100) = 0.031 is the mean distance of a right law; one in a thousand is beyond 0.094.
        assert quality[name].w1 < 0.094
        assert 0.81 <= quality[name].coverage <= 0.99  # three standard errors about 0.9
        assert quality[name].rmse < quality[name].width / 2  # the width is 3.3 standard deviations
