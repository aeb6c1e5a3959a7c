"""Overlap: how many of the missing rows are where there are hardly any labels."""

import warnings

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.missingness.checks import AbsentError, overlap_check
from darkmetrics.missingness.fit_data import FitData


def labels(missing, score, seed=0):
    y = np.random.default_rng(seed).random(score.size) < score
    return np.where(missing, np.nan, y)


def check(missing, score, reference=None, **settings):
    return overlap_check(FitData.of(dm.EvaluationSet(labels(missing, score), score, **settings), reference))


SCORE = np.random.default_rng(5).random(4000)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95, 0.99])
def test_labels_missing_at_random_are_nowhere_far_from_others(share):
    for seed in range(20):
        gone = np.random.default_rng(100 + seed).random(SCORE.size) < share
        found = check(gone, SCORE)
        assert found.share == 0.0
        assert np.isnan(found.low)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8])
def test_rows_below_a_cut_are_extrapolated(cut):
    # Of the missing rows those above the cut have company; a stretch of a twentieth may hold both kinds.
    gone = (cut > SCORE) | (np.random.default_rng(1).random(SCORE.size) < 0.3)
    found = check(gone, SCORE)
    alone = float((cut > SCORE)[gone].mean())
    assert found.share == pytest.approx(alone, abs=0.06)
    assert found.rows == round(found.share * gone.sum())
    assert found.high < cut + 0.06
    assert not found.is_wide


def test_the_share_is_that_of_a_count_by_hand():
    gone = np.random.default_rng(2).random(SCORE.size) < np.where(SCORE < 0.4, 0.998, 0.4)
    missing, labeled = np.sort(SCORE[gone]), SCORE[~gone]
    far = 0
    for stretch in np.array_split(missing, 20):
        here = labeled[(labeled >= stretch[0]) & (labeled <= stretch[-1])].size
        far += stretch.size if here < labeled.size / 20 / 20 else 0
    assert check(gone, SCORE).rows == pytest.approx(far, abs=missing.size / 20)
    assert far > 0.3 * missing.size


def test_reference_rows_are_company_too():
    gone = SCORE < 0.5
    assert check(gone, SCORE).share > 0.9
    labels, scores = np.random.default_rng(3).integers(0, 2, 2000), np.random.default_rng(4).random(2000)
    assert check(gone, SCORE, dm.missing.Reference(labels, scores)).share == 0.0


def test_nobody_with_so_low_a_propensity_was_looked_at():
    rng = np.random.default_rng(6)
    propensity = np.where(rng.random(SCORE.size) < 0.5, 0.5, 0.0)
    gone = rng.random(SCORE.size) >= propensity
    found = check(gone, SCORE, missingness=dm.missing.Propensity(propensity))
    assert found.rows == int((propensity == 0.0).sum())


def test_a_stratum_without_labels_is_extrapolated():
    rng = np.random.default_rng(7)
    strata = rng.integers(0, 4, SCORE.size)
    gone = (strata == 3) | (rng.random(SCORE.size) < 0.3)
    data = dm.EvaluationSet(labels(gone, SCORE), SCORE, missingness=dm.missing.Unknown(strata=strata))
    assert overlap_check(FitData.of(data)).share == 0.0  # the scores alone do not show it
    assert overlap_check(FitData.of(data, by_stratum=True)).rows == int((strata == 3).sum())


def test_evaluate_warns_and_the_diagnosis_says_it():
    y_true = labels((SCORE < 0.4) | (np.random.default_rng(1).random(SCORE.size) < 0.2), SCORE)
    for reason in ("by_score", "unknown"):
        with pytest.warns(dm.CalibrationWarning, match="are where there are hardly any labels"):
            result = dm.evaluate(y_true, SCORE, metrics="precision", missingness=reason)
        assert result.diagnosis.overlap is not None
        assert "hardly any labels" in result.diagnosis.verdict
        assert not result.diagnosis.overlap.is_wide
        assert result.diagnosis.to_dict()["overlap"]["share"] == result.diagnosis.overlap.share
    random = labels(np.random.default_rng(1).random(SCORE.size) < 0.3, SCORE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dm.CalibrationWarning)
        result = dm.evaluate(random, SCORE, missingness="by_score", metrics="precision")
    assert "hardly any labels" not in result.diagnosis.verdict


def test_too_little_says_nothing():
    with pytest.raises(AbsentError, match="no label is missing"):
        check(np.zeros(SCORE.size, dtype=bool), SCORE)
    with pytest.raises(AbsentError, match="19 labels are too few"):
        check(np.arange(SCORE.size) >= 19, SCORE)


@pytest.mark.parametrize("gone", [1, 2, 5, 12])
def test_few_missing_rows_among_many_labels_have_company(gone):
    rng = np.random.default_rng(gone)
    score = rng.random(1000)
    y = (rng.random(1000) < score).astype(float)
    y[rng.choice(1000, gone, replace=False)] = np.nan
    assert overlap_check(FitData.of(dm.EvaluationSet(y, score))).share == 0.0


def test_scores_of_missing_rows_alone_have_company_on_both_sides():
    score = np.repeat(np.linspace(0.1, 0.9, 9), 30)
    y = np.tile([1.0, 0.0], 135)
    y[np.isin(np.repeat(np.arange(9), 30), [2, 6])] = np.nan
    assert overlap_check(FitData.of(dm.EvaluationSet(y, score))).share == 0.0
