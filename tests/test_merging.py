"""Sets that are added, taken from each other, put into bins, told of late labels: against the rows themselves."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics._kernels.bin_grid import bin_index
from darkmetrics.data.cells import Cells
from darkmetrics.exceptions import InputError
from row_values import build_set


def rows(n, rng, *, distinct=500):
    """Labels, a third of them missing, and scores that often repeat, down to 1e-7 and up to 1."""
    score = np.concatenate([10.0 ** rng.uniform(-7, 0, distinct // 2), 1.0 - 10.0 ** rng.uniform(-7, 0, distinct // 2)])
    score = rng.choice(np.append(score, [0.0, 0.5, 1.0]), n)
    y = (rng.random(n) < score).astype(float)
    return np.where(rng.random(n) < 0.3, np.nan, y), score


def assert_same(a, b, *, mean_to=0.0):
    """Every array equal bit for bit, with its type; means of bins to `mean_to` of their size."""
    assert (a.threshold, a.pos_label, a.score_bins) == (b.threshold, b.pos_label, b.score_bins)
    for name, array in a.cells.arrays().items():
        other = getattr(b.cells, name)
        if array is None or other is None:
            assert array is None, name
            assert other is None, name
        elif name in ("score", "probability") and mean_to:
            np.testing.assert_allclose(array, other, rtol=mean_to, atol=0.0)
        else:
            assert array.dtype == other.dtype, name
            np.testing.assert_array_equal(array, other, err_msg=name)


def more_columns(kind, n, rng):
    """Nothing, or further columns that tell rows of one score apart."""
    return {
        "plain": {},
        "weight": {"sample_weight": rng.choice([0.5, 1.0, 2.0, 0.1], n)},
        "probability": {"probability": rng.choice([0.1, 0.25, 1 / 3], n)},
        "y_pred": {"y_pred": rng.integers(0, 2, n)},
    }[kind]


KINDS = ("plain", "weight", "probability", "y_pred")


@pytest.mark.parametrize("kind", KINDS)
def test_thirty_days_added_up_are_the_rows_of_all_days(kind):
    rng = np.random.default_rng(1)
    y, score = rows(6000, rng)
    more = more_columns(kind, y.size, rng)
    day = rng.integers(0, 30, y.size)
    days = [
        build_set(y[day == d], score[day == d], **{name: column[day == d] for name, column in more.items()})
        for d in range(30)
    ]
    union = build_set(y, score, **more)
    assert_same(sum(days), union)
    assert_same(EvaluationSet.concat(days[::-1]), union)


@pytest.mark.parametrize("kind", KINDS)
def test_thirty_days_in_bins_added_up_are_the_bins_of_all_days(kind):
    rng = np.random.default_rng(2)
    y, score = rows(6000, rng)
    more = more_columns(kind, y.size, rng)
    day = rng.integers(0, 30, y.size)
    days = [
        build_set(y[day == d], score[day == d], **{name: column[day == d] for name, column in more.items()})
        for d in range(30)
    ]
    union = build_set(y, score, **more).binned(256)
    assert union.score_bins == 256
    # Some days finer than others: the coarsest counts, because bins are nested.
    mixed = [one.binned(256 << (i % 3)) for i, one in enumerate(days)]
    # Means of a few hundred numbers, added up in another order.
    assert_same(EvaluationSet.concat(mixed), union, mean_to=1e-12)
    assert_same(sum(mixed[1:], mixed[0]), union, mean_to=1e-12)
    assert_same(days[0] + sum(mixed[2:], mixed[1]), union, mean_to=1e-12)  # an exact day beside binned ones


def test_a_bin_holds_the_rows_of_its_grid_cell_on_one_side_of_the_threshold():
    rng = np.random.default_rng(3)
    y, score = rows(3000, rng)
    threshold = float(np.quantile(score, 0.6))
    data = EvaluationSet(y, score, threshold=threshold).binned(64)
    expected: dict[Any, list[Any]] = {}
    for label, s in zip(y.tolist(), score.tolist(), strict=True):
        key = int(bin_index(np.array([s]), 64)[0]), s >= threshold
        expected.setdefault(key, []).append((s, label))
    cells: Any = data.cells
    assert cells.score.size == len(expected)
    for i, ((_, decided), held) in enumerate(sorted(expected.items())):
        scores, labels = [s for s, _ in held], [label for _, label in held]
        assert (cells.low[i], cells.high[i], cells.decision[i]) == (min(scores), max(scores), decided)
        counts = (labels.count(1.0), labels.count(0.0), sum(np.isnan(labels)))
        assert (cells.positives[i], cells.negatives[i], cells.missing[i]) == counts
        mean = float(sum(map(Fraction, scores)) / len(scores))
        assert cells.score[i] == pytest.approx(mean, rel=1e-14)  # one rounding per distinct score


def test_coarsening_in_two_steps_is_coarsening_at_once():
    rng = np.random.default_rng(4)
    y, score = rows(4000, rng)
    data = EvaluationSet(y, score, sample_weight=rng.choice([1.0, 3.0], y.size))
    assert_same(data.binned(1024).binned(64), data.binned(64), mean_to=1e-13)
    assert_same(data.binned(100), data.binned(64))  # rounded down to a power of two


def test_a_set_whose_bins_hold_one_score_each_stays_exact():
    data = EvaluationSet([1, 0, None], [0.1, 0.5, 0.9])
    assert data.binned(65536) is data
    binned = EvaluationSet([1, 0, None], [0.1, 0.1000001, 0.9]).binned(64)
    assert binned.binned(128) is binned  # finer than it is, it cannot become


@pytest.mark.parametrize("bad", [15, 0, -1, 64.0, True, "64", None])
def test_a_number_of_bins_is_a_whole_number_of_at_least_16(bad):
    with pytest.raises(InputError, match=r"^score_bins: expected a whole number of at least 16, got"):
        EvaluationSet([1, 0], [0.1, 0.9]).binned(bad)


# ------------------------------------------------------------------------------------------ taking away


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_added_can_be_taken_away(kind):
    rng = np.random.default_rng(5)
    y, score = rows(2000, rng)
    more = more_columns(kind, y.size, rng)
    first = np.arange(y.size) < 1200
    a, b = (build_set(y[own], score[own], **{k: v[own] for k, v in more.items()}) for own in (first, ~first))
    assert_same((a + b) - b, a)
    assert ((a + b) - (a + b)).n_rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_added_in_bins_can_be_taken_away_but_for_the_ends_of_bins(kind):
    rng = np.random.default_rng(6)
    y, score = rows(2000, rng)
    more = more_columns(kind, y.size, rng)
    first = np.arange(y.size) < 1200
    a, b = (build_set(y[own], score[own], **{k: v[own] for k, v in more.items()}) for own in (first, ~first))
    left, expected = (a + b).binned(128) - b, a.binned(128)
    assert left.score_bins == 128
    for name in ("decision", "positives", "negatives", "missing"):
        np.testing.assert_array_equal(getattr(left.cells, name), getattr(expected.cells, name))
    # Differences of sums of at most 2,000 scores, of which a few rows may be left.
    found, wanted = left.cells.arrays(), expected.cells.arrays()
    np.testing.assert_allclose(found["score"], wanted["score"], rtol=1e-10)
    if kind == "probability":
        np.testing.assert_allclose(found["probability"], wanted["probability"], rtol=1e-10)
    assert np.all(found["low"] <= wanted["low"])
    assert np.all(found["high"] >= wanted["high"])


def test_taking_away_rows_that_are_not_there_names_score_and_counts():
    data = EvaluationSet([1, 0, None], [0.9, 0.2, 0.7])
    for y, s, text in (
        ([1, 1], [0.9, 0.9], r"2 positive rows to take away at score 0\.9, where the set has 1"),
        ([0], [0.9], r"1 negative row to take away at score 0\.9, where the set has 0"),
        ([None], [0.3], r"1 unlabeled row to take away at score 0\.3, where the set has 0"),
    ):
        with pytest.raises(InputError, match=rf"^cells: {text}\. Only rows that are in a set"):
            data - EvaluationSet(y, s)
    binned = EvaluationSet([1, 0], [0.9, 0.9001]).binned(16)
    with pytest.raises(InputError, match=r"1 unlabeled row to take away at score 0\.90005, where the set has 0"):
        binned - EvaluationSet([None], [0.90005])


def test_only_sets_of_one_threshold_and_class_go_together():
    data = EvaluationSet([1, 0, None], [0.9, 0.2, 0.7])
    for operation in (lambda a, b: a - b, lambda a, b: a + b, lambda a, b: a.with_labels(b)):
        with pytest.raises(InputError, match=r"^threshold: one set has predictions"):
            operation(data, EvaluationSet([1], [0.9], threshold=0.3))
        with pytest.raises(InputError, match=r"^pos_label: 1 is positive in one set"):
            operation(data, EvaluationSet(["a"], [0.9], pos_label="a"))
    with pytest.raises(TypeError):
        data - 1
    with pytest.raises(InputError, match=r"^late: a list\. It must be an EvaluationSet"):
        data.with_labels([1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^sets: none given"):
        EvaluationSet.concat([])


# ------------------------------------------------------------------------------------------ late labels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("score_bins", [None, 128])
def test_a_set_that_is_told_of_late_labels_is_the_set_of_the_rows_with_their_labels(kind, score_bins):
    rng = np.random.default_rng(7)
    y, score = rows(2000, rng)
    more = more_columns(kind, y.size, rng)
    truth = (rng.random(y.size) < 0.4).astype(float)
    missing = np.isnan(y)
    came = missing & (rng.random(y.size) < 0.5)
    later = np.where(came, truth, y)
    early = build_set(y, score, **more)
    # The rows that are still open come along, and are ignored.
    late = build_set(later[missing], score[missing], **{k: v[missing] for k, v in more.items()})
    expected = build_set(later, score, **more)
    if score_bins is None:
        assert_same(early.with_labels(late), expected)
        return
    coarse, expected = early.binned(score_bins), expected.binned(score_bins)
    if kind != "probability":
        assert_same(coarse.with_labels(late), expected, mean_to=1e-12)
        assert_same(early.with_labels(late.binned(score_bins)), expected, mean_to=1e-12)
        return
    # Which of a bin's probabilities are left is not known; old rows away and new ones in their place is right.
    with pytest.raises(InputError, match=r"^late: the set has probabilities, and its scores are in bins"):
        coarse.with_labels(late)
    before = EvaluationSet(y[missing], score[missing], missingness=dm.missing.Fixed(more["probability"][missing]))
    assert_same(coarse - before + late, expected, mean_to=1e-9)


def test_rows_taken_out_of_bins_of_the_largest_scores_leave_finite_means():
    data = EvaluationSet([1, 0, 1, 0], [1.7e308, 1.75e308, 1.79e308, -1.0]).binned(16)
    left = (data + data) - data
    np.testing.assert_allclose(left.cells.score, data.cells.score, rtol=1e-12)


def test_more_late_labels_than_are_missing_name_score_and_counts():
    data = EvaluationSet([1, None, None], [0.9, 0.7, 0.7])
    for y, s, text in (
        ([1, 0, 1], [0.7, 0.7, 0.7], r"3 labels for score 0\.7, where 2 are missing"),
        ([1], [0.9], r"1 label for score 0\.9, where 0 are missing"),
        ([1], [0.8], r"1 label for score 0\.8, where 0 are missing"),
    ):
        with pytest.raises(InputError, match=rf"^late: {text}\. Labels that arrive belong to rows"):
            data.with_labels(EvaluationSet(y, s))
    weighted = EvaluationSet([1, None], [0.9, 0.7], sample_weight=[1, 2])
    with pytest.raises(InputError, match=r"^late: 1 label for score 0\.7 and weight 3, where 0 are missing"):
        weighted.with_labels(EvaluationSet([1], [0.7], sample_weight=[3]))


def test_late_labels_need_the_probability_by_which_rows_are_matched():
    data = EvaluationSet([1, None], [0.9, 0.7], missingness=dm.missing.Fixed([0.4]))
    with pytest.raises(InputError, match=r"^late: no probabilities, but the set has some"):
        data.with_labels(EvaluationSet([1], [0.7]))


def test_labels_that_did_not_come_change_nothing():
    data = EvaluationSet([1, None], [0.9, 0.7])
    assert_same(data.with_labels(EvaluationSet([None, None], [0.7, 0.1])), data)


# ------------------------------------------------------------------------------------------ what bins keep


def test_every_view_of_a_bined_set_keeps_its_bins():
    rng = np.random.default_rng(8)
    y, score = rows(1000, rng)
    data = EvaluationSet(y, score).binned(64)
    lowest = float(data.cells.arrays()["low"][10])
    for view in (data.labeled(), data.unlabeled(), data.with_threshold(lowest)):
        assert view.score_bins == 64
        columns = view.cells.arrays()
        assert np.all(columns["low"] <= columns["score"])
        assert np.all(columns["score"] <= columns["high"])
    assert (
        repr(data)
        == f"EvaluationSet(1,000 rows, {data.n_missing} missing, {data.cells.score.size} cells in 64 score bins)"
    )


def test_a_threshold_inside_a_bin_is_refused_and_at_its_lowest_score_is_exact():
    rng = np.random.default_rng(9)
    y, score = rows(3000, rng)
    exact, data = EvaluationSet(y, score), EvaluationSet(y, score).binned(64)
    for low, high in zip(*(data.cells.arrays()[end].tolist()[::7] for end in ("low", "high")), strict=True):
        assert data.with_threshold(low).by_decision == exact.with_threshold(low).by_decision
        above = float(np.nextafter(high, 2.0))
        assert data.with_threshold(above).by_decision == exact.with_threshold(above).by_decision
        if low < high:
            inside = float(np.nextafter(low, 2.0))
            with pytest.raises(
                InputError, match=r"^threshold: \S+ lies inside a bin of scores from \S+ to \S+\. The rows"
            ):
                data.with_threshold(inside)
            with pytest.raises(InputError, match=r"Build the set with that threshold, or pass"):
                data.with_threshold(high)
    data.with_threshold(-5.0)
    data.with_threshold(5.0)


def test_counts_beyond_32_bits_are_added_and_taken_away_exactly():
    million = np.array([10**9, 10**6], dtype=np.int32)
    score = np.array([0.9, 0.9001])
    one = EvaluationSet.from_cells(Cells(score, score >= 0.5, million, million[::-1], 0 * million), threshold=0.5)
    for data in (one, one.binned(16)):
        many = EvaluationSet.concat([data] * 5)
        counts = many.cells.arrays()
        assert counts["positives"].sum() == counts["negatives"].sum() == 5 * (10**9 + 10**6)
        assert (many - data - data).n_rows == 6 * (10**9 + 10**6)
