"""Label models that fit within strata, against sums by hand and by simulation."""

import numpy as np
import pytest
from scipy.special import expit, logit

import darkmetrics as dm
from darkmetrics.missing import ByLabel, ByScore, Unknown
from darkmetrics.missingness.score_table import score_table


def slices(seed, n=2400, k=6):
    """Recent slices have fewer positives at equal scores, and positives there are still missing."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, k, n)
    score = rng.beta(2, 2, n)
    y = (rng.random(n) < expit(2.0 * logit(score) - 0.6 * (stratum - 2.5))).astype(float)
    late = stratum / (k - 1)
    gone = rng.random(n) < np.where(y == 1, 0.15 + 0.6 * late, 0.1 + 0.1 * late)
    return y, np.where(gone, np.nan, y), score, stratum


def test_the_table_counts_each_score_in_each_stratum():
    rng = np.random.default_rng(0)
    score, stratum = rng.integers(0, 9, 500) / 8.0, rng.integers(3, 6, 500)
    y = np.where(rng.random(500) < 0.4, np.nan, rng.integers(0, 2, 500))
    data = dm.EvaluationSet(y, score, missingness=dm.missing.Unknown(strata=stratum))
    table = score_table(data, by_stratum=True)
    assert table.strata is not None
    assert table.stratum is not None
    assert table.strata.tolist() == [3, 4, 5]
    assert np.all(np.diff(table.score) >= 0.0)
    for row in range(table.score.size):
        own = (score == table.score[row]) & (stratum == table.strata[table.stratum[row]])
        assert table.positives[row] == (y[own] == 1).sum()
        assert table.negatives[row] == (y[own] == 0).sum()
        assert table.missing[row] == np.isnan(y[own]).sum()
        assert table.decided[row] == (np.isnan(y[own]) * (score[own] >= 0.5)).sum()
    assert table.missing.sum() == np.isnan(y).sum()
    np.testing.assert_array_equal(table.row_of_cell[data.missing_cells], table.column)


def test_many_scores_share_rows_within_a_stratum_alone():
    rng = np.random.default_rng(0)
    score, stratum = rng.random(20_000), rng.integers(0, 3, 20_000)
    y = np.where(rng.random(20_000) < 0.4, np.nan, rng.integers(0, 2, 20_000))
    table = score_table(dm.EvaluationSet(y, score, missingness=dm.missing.Unknown(strata=stratum)), by_stratum=True)
    assert table.score.size < 3 * 2100
    for k in range(3):
        own = table.stratum == k
        assert table.positives[own].sum() == ((y == 1) & (stratum == k)).sum()
        np.testing.assert_allclose(
            table.score[own] @ (table.labeled + table.missing)[own], score[stratum == k].sum(), rtol=1e-9
        )


@pytest.mark.parametrize("model", [Unknown, ByScore, ByLabel])
def test_one_stratum_is_none(model):
    _, y_true, score, _ = slices(1, n=600)
    data = dm.EvaluationSet(y_true, score, missingness=dm.missing.Unknown(strata=np.zeros(600)))
    plain, within = (model(strata=s).posterior(data) for s in (False, True))
    np.testing.assert_array_equal(plain.weight, within.weight)
    np.testing.assert_array_equal(plain.on_all_cells.probability, within.on_all_cells.probability)


def test_a_level_in_each_stratum_is_found():
    rng = np.random.default_rng(2)
    score, stratum = rng.beta(2, 2, 30_000), rng.integers(0, 2, 30_000)
    y = rng.random(30_000) < expit(logit(score) + np.where(stratum == 0, -0.7, 0.7))
    gone = rng.random(30_000) < 0.3
    data = dm.EvaluationSet(np.where(gone, np.nan, y), score, missingness=dm.missing.Unknown(strata=stratum))
    posterior = ByScore(strata=True).posterior(data)
    mean = posterior.weight @ posterior.on_all_cells.probability
    assert data.cells.stratum is not None
    for k in range(2):
        own = data.cells.stratum[data.missing_cells] == k
        said = np.average(mean[own], weights=data.missing_counts[own])
        assert said == pytest.approx(y[gone & (stratum == k)].mean(), abs=0.02)


def test_by_label_within_slices_holds_where_pooled_it_does_not():
    names = ("accuracy", "recall")
    hits = {"pooled": 0, "within": 0}
    for seed in range(30):
        y, y_true, score, stratum = slices(seed)
        truth = dm.evaluate(y, score, metrics=names)
        for told, strata in (("pooled", None), ("within", stratum)):
            found = dm.evaluate(y_true, score, missingness=dm.missing.ByLabel(strata=strata), metrics=names)
            hits[told] += sum(found[m].interval()[0] <= truth[m].mean() <= found[m].interval()[1] for m in names)
    assert hits["within"] >= 48  # of 60
    assert hits["pooled"] <= 24


def test_by_score_within_strata_holds_where_pooled_it_does_not():
    hits = {"pooled": 0, "within": 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        stratum, score = rng.integers(0, 3, 2000), rng.beta(2, 2, 2000)
        y = (rng.random(2000) < expit(logit(score) + 1.2 * (stratum - 1))).astype(float)
        y_true = np.where(rng.random(2000) < np.array([0.1, 0.4, 0.8])[stratum], np.nan, y)
        truth = y[score >= 0.5].mean()
        for told, strata in (("pooled", None), ("within", stratum)):
            distribution = dm.evaluate(
                y_true, score, missingness=dm.missing.ByScore(strata=strata), metrics="precision"
            )["precision"]
            hits[told] += distribution.interval()[0] <= truth <= distribution.interval()[1]
    assert hits["within"] >= 24
    assert hits["pooled"] <= 6


def test_what_cannot_be_done_is_said():
    _, y_true, score, stratum = slices(3, n=600)
    alone = np.where((stratum == 4) & (y_true == 1), np.nan, y_true)
    with pytest.raises(dm.InputError, match=r"strata: stratum 4 has \d+ missing rows and no positive label"):
        dm.evaluate(alone, score, missingness=dm.missing.ByLabel(strata=stratum))
    dm.evaluate(alone, score, missingness=dm.missing.ByScore(strata=stratum), metrics="recall")
    with pytest.raises(dm.InputError, match="strata: 600 different strata"):
        dm.evaluate(y_true, score, missingness=dm.missing.ByScore(strata=np.arange(600)))
    data = dm.EvaluationSet(y_true, score, missingness=dm.missing.Unknown(strata=stratum))
    with pytest.raises(dm.InputError, match="strata: 'isotonic' with uncertainty=True does not fit"):
        dm.evaluate(data, missingness=ByScore("isotonic", strata=True))
    with pytest.raises(dm.InputError, match="strata: True stands for that of an EvaluationSet"):
        dm.evaluate(y_true, score, missingness=ByScore(strata=True))


def test_tables_and_sets_say_the_same_as_arrays():
    pd = pytest.importorskip("pandas")
    _, y_true, score, stratum = slices(4, n=600)
    expected = dm.evaluate(y_true, score, missingness=dm.missing.ByScore(strata=stratum)).to_dict()["metrics"]
    table = pd.DataFrame({"y": y_true, "s": score, "slice": stratum})
    found = dm.evaluate("y", "s", data=table, missingness=dm.missing.ByScore(strata="slice"))
    assert found.to_dict()["metrics"] == expected
    data = dm.EvaluationSet(y_true, score, missingness=dm.missing.Unknown(strata=stratum))
    assert dm.evaluate(data, missingness=dm.missing.ByScore(strata=True)).to_dict()["metrics"] == expected
