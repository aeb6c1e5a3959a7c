"""The score table: every row counted once, at its score or in a bucket of neighbours; and the reference rows."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.missing import ByLabel, ByScore, ByScoreAndLabel, Reference, Unknown
from darkmetrics.missingness import score_table as module
from darkmetrics.missingness.score_table import joint_table, reference_table, score_table

NAN = float("nan")


def rows(seed, n, scores=None):
    rng = np.random.default_rng(seed)
    score = rng.random(n) if scores is None else rng.choice(scores, n)
    y = np.where(rng.random(n) < 0.3, NAN, (rng.random(n) < 0.4).astype(float))
    return y, score


def test_every_row_is_counted_at_its_score():
    y, score = rows(0, 200, scores=[0.0, 0.1, 0.5, 0.75, 1.0])
    y_pred = np.random.default_rng(1).integers(0, 2, 200)
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.5], 200)
    # Equal scores with other decisions and weights are cells of their own, and one row of the table.
    data = EvaluationSet(y, score, y_pred=y_pred, sample_weight=weight)
    table = score_table(data)
    assert table.score.tolist() == sorted(set(score.tolist()))
    for values, chosen in [
        (table.positives, y == 1),
        (table.negatives, y == 0),
        (table.missing, np.isnan(y)),
        (table.decided, np.isnan(y) & (y_pred == 1)),
        (table.labeled, ~np.isnan(y)),
    ]:
        counted = Counter(score[chosen].tolist())
        assert values.tolist() == [counted[s] for s in table.score.tolist()]
    np.testing.assert_array_equal(table.score[table.column], data.cells.score[data.missing_cells])


@pytest.mark.parametrize("kind", ["uniform", "skewed", "logits", "heavy", "huge"])
def test_many_scores_share_buckets_that_are_narrow_and_small(kind):
    rng = np.random.default_rng(0)
    n = 50_000
    score = {
        "uniform": rng.random(n),
        "skewed": rng.beta(0.05, 3.0, n),
        "logits": rng.normal(size=n) * 4.0,
        "heavy": rng.standard_cauchy(n),
        "huge": rng.normal(size=n) * 1e307,
    }[kind]
    y = np.where(rng.random(n) < 0.5, NAN, 1.0 * (rng.random(n) < 0.5))
    data = EvaluationSet(y, score)
    table = score_table(data)
    assert table.score.size <= 2 * module._BINS
    assert (np.diff(table.score) > 0.0).all()
    # No row is lost, and each missing cell is in the bucket of its neighbours.
    assert [table.positives.sum(), table.negatives.sum(), table.missing.sum()] == [
        np.sum(y == 1),
        np.sum(y == 0),
        np.sum(np.isnan(y)),
    ]
    assert (np.diff(table.column) >= 0).all()
    np.testing.assert_array_equal(
        np.bincount(table.column, weights=data.missing_counts, minlength=table.score.size), table.missing
    )
    x = np.sort(score)
    if kind in ("uniform", "skewed"):
        x = np.clip(x, 1e-12, 1.0 - 1e-12)
        x = np.log(x) - np.log1p(-x)
    x = x / 2.0  # because the range of huge scores is more than a float can hold
    bucket = score_table(data.unlabeled()).column
    for k in range(0, table.score.size, 37):
        inside = x[bucket == k]
        # At most 1/1024 of the range; the edges are found by rounded arithmetic.
        assert np.ptp(inside) <= np.ptp(x) / module._BINS + 1e-12 * np.abs(x).max()
    assert (table.labeled + table.missing).max() <= n / module._BINS + 1


def test_the_score_of_a_bucket_is_the_mean_of_its_rows():
    y, score = rows(3, 20_000)
    data = EvaluationSet(y, score)
    table = score_table(data)
    # Which cells share a bucket is read off the missing cells; with all rows missing these are all cells.
    blank = data.unlabeled()
    bucket = score_table(blank).column
    expected = [float(blank.cells.score[bucket == k].mean()) for k in range(table.score.size)]
    np.testing.assert_allclose(table.score, expected, rtol=1e-12)


def test_scores_of_exactly_zero_and_one_keep_their_own_bucket():
    y, score = rows(4, 20_000)
    score[:500], score[500:1000] = 0.0, 1.0
    table = score_table(EvaluationSet(y, score))
    assert table.score[0] == 0.0
    assert table.score[-1] == 1.0


def test_repeated_scores_are_not_split_over_buckets():
    rng = np.random.default_rng(5)
    score = np.append(np.full(30_000, 0.3), rng.random(10_000))
    y = np.where(rng.random(40_000) < 0.5, NAN, 1.0 * (rng.random(40_000) < score))
    data = EvaluationSet(y, score, sample_weight=rng.choice([1.0, 2.0], 40_000))
    table = score_table(data)
    own = table.column[data.cells.score[data.missing_cells] == 0.3]
    assert np.unique(own).size == 1
    assert table.score[own[0]] == pytest.approx(0.3, abs=1e-3)


def test_by_probability_counts_at_the_given_probabilities():
    y, score = rows(6, 300)
    chance = np.random.default_rng(7).choice([0.1, 0.2, 0.9], 300)
    data = EvaluationSet(y, score, missingness=dm.missing.Fixed(chance))
    table = score_table(data, by_probability=True)
    assert table.score.tolist() == [0.1, 0.2, 0.9]
    assert table.missing.tolist() == [np.sum(np.isnan(y) & (chance == p)) for p in (0.1, 0.2, 0.9)]
    assert table.decided.tolist() == [np.sum(np.isnan(y) & (chance == p) & (score >= 0.5)) for p in (0.1, 0.2, 0.9)]
    given = data.cells.probability
    assert given is not None
    np.testing.assert_array_equal(table.score[table.column], given[data.missing_cells])


def test_a_merged_set_has_the_table_of_all_its_rows():
    y, score = rows(8, 400, scores=np.linspace(0.0, 1.0, 11))
    whole = score_table(EvaluationSet(y, score))
    parts = score_table(EvaluationSet(y[:150], score[:150]) + EvaluationSet(y[150:], score[150:]))
    for name in ("score", "positives", "negatives", "missing", "decided"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


# ---------------------------------------------------------------------------------------------------- reference rows

DATA = EvaluationSet([1, 0, None], [0.9, 0.4, 0.7])


def test_reference_rows_are_arrays_or_a_set():
    assert reference_table(None, DATA) is None
    arrays = reference_table(Reference([1, 0, 1, 0], [0.3, 0.3, 0.8, 0.1]), DATA)
    ready = reference_table(EvaluationSet([1, 0, 1, 0], [0.3, 0.3, 0.8, 0.1]), DATA)
    for table in (arrays, ready):
        assert table is not None
        assert table.score.tolist() == [0.1, 0.3, 0.8]
        assert table.positives.tolist() == [0, 1, 1]
        assert table.negatives.tolist() == [1, 1, 0]
        assert table.missing.tolist() == [0, 0, 0]


def test_reference_labels_are_read_like_those_of_the_set():
    data = EvaluationSet(["yes", "no", None], [0.9, 0.4, 0.7], pos_label="yes")
    table = reference_table(Reference(["no", "yes"], [0.2, 0.6]), data)
    assert table is not None
    assert table.positives.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (Reference([1, 0, 1], [0.2, 0.4]), "reference: y_true: 3 values, but y_score has 2"),
        (
            Reference([1, 0, None], [0.2, 0.4, 0.5]),
            "reference: 1 of 3 rows have no label. Reference rows must all be labeled",
        ),
        (Reference([1, 0], [0.2, NAN]), "reference: y_score: 1 of 2"),
        (Reference([1, 0], [0.2, float("inf")]), "reference: y_score: "),
        (Reference([0, 1, 2], [0.2, 0.4, 0.5]), "reference: y_true: "),
        (Reference([], []), "reference: "),
        (DATA, "reference: 1 of 3 rows have no label"),
        (EvaluationSet([None], [0.5]).labeled(), "reference: the EvaluationSet has no rows."),
    ],
)
def test_bad_reference_rows_are_refused_by_name(reference, text):
    with pytest.raises(InputError) as error:
        reference_table(reference, DATA)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("mechanism", [ByScore, ByLabel, ByScoreAndLabel, Unknown])
@pytest.mark.parametrize("reference", [([1, 0], [0.2, 0.3]), "reference.csv", pd.DataFrame({"y": [1], "s": [0.2]})])
def test_other_forms_of_reference_rows_are_refused(mechanism, reference):
    expected = r"^reference: expected dm\.missing\.Reference\(labels, scores\) or an EvaluationSet, got a "
    with pytest.raises(InputError, match=expected):
        mechanism(reference=reference)


def test_the_joint_table_counts_scores_and_probabilities_together(monkeypatch):
    rng = np.random.default_rng(0)
    score, chance = rng.random(5000), rng.random(5000)
    y = np.where(rng.random(5000) < 0.4, np.nan, rng.integers(0, 2, 5000))
    data = EvaluationSet(y, score, missingness=dm.missing.Fixed(chance))
    table, (prediction,) = joint_table(data, chance[np.argsort(score)])
    assert table.score.size == 5000
    order = np.argsort(score)
    np.testing.assert_array_equal(prediction, chance[order])
    np.testing.assert_array_equal(table.missing, np.isnan(y[order]))
    monkeypatch.setattr(module, "_MAX_JOINT", 800)
    merged, (mean,) = joint_table(data, chance[np.argsort(score)])
    assert 300 < merged.score.size <= 2 * 400
    rows = merged.labeled + merged.missing
    np.testing.assert_allclose([rows @ merged.score, rows @ mean], [score.sum(), chance.sum()])
    own = merged.row_of_cell
    for row in rng.integers(0, merged.score.size, 20):
        inside = order[own == row]  # cells are rows by rising score
        assert np.ptp(score[inside]) < 0.08
        assert np.ptp(chance[inside]) < 0.08
        assert len(set(score[inside] >= 0.5)) == 1
        assert merged.positives[row] == (y[inside] == 1).sum()
        assert merged.decided[row] == (np.isnan(y[inside]) & (score[inside] >= 0.5)).sum()
