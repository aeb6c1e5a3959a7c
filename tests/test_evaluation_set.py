"""EvaluationSet: the same rows make the same cells whatever they come in, and bad input is refused in words."""

import copy
import math
import pickle
from collections import defaultdict
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.data.cells import Cells
from row_values import build_set

NAN = float("nan")
Y = [1, 0, None, 1, None, 0]
SCORE = [0.9, 0.2, 0.7, 0.6, 0.3, 0.7]


def table(data: EvaluationSet) -> list[tuple[Any, ...]]:
    """The cells as plain rows in their order; an absent weight or probability is None."""
    c = data.cells
    columns = [c.score, c.decision, c.positives, c.negatives, c.missing]
    columns += [np.full(c.score.size, NAN) if x is None else x for x in (c.weight, c.probability)]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [tuple(None if value != value else value for value in row) for row in rows]


def counted(y, score, decision, weight=None, probability=None) -> list[tuple[Any, ...]]:
    """The same table from rows by a dictionary: the definition of a cell."""
    counts: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    for i in range(len(y)):
        p = None if probability is None else probability[i]
        key = (score[i] + 0.0, decision[i], None if weight is None else weight[i], p)
        counts[key][2 if y[i] is None else 1 - y[i]] += 1

    return in_order([(*key[:2], *count, *key[2:]) for key, count in counts.items()])


def in_order(cells: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Cells of one score have no order of their own; this gives them one."""
    return sorted(cells, key=lambda row: tuple(-1.0 if value is None else value for value in row))


def message(*args, **kwargs) -> str:
    with pytest.raises(InputError) as error:
        build_set(*args, **kwargs)
    return str(error.value)


# ------------------------------------------------------------------------------------------------------- cells


@st.composite
def rows(draw, *, weighted=False):
    """Labels, scores, decisions, and perhaps weights and probabilities, with ties in everything."""
    n = draw(st.integers(1, 25))

    def column(values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    return {
        "y": column([0, 1, None]),
        "score": column([-1e308, -2.5, -0.0, 0.0, 5e-324, 0.5, 0.7, 1e308]),
        "decision": column([False, True]),
        # Never all equal to one: a set whose rows all count once has no weights at all.
        "weight": [2.0, *column([0.0, 0.5, 1.0, 2.0])][:n] if weighted or draw(st.booleans()) else None,
        "probability": column([0.0, 0.25, 1.0]) if draw(st.booleans()) else None,
    }


def built(r, **changes) -> EvaluationSet:
    r = {**r, **changes}
    return build_set(
        r["y"],
        r["score"],
        y_pred=r["decision"],
        sample_weight=r["weight"],
        probability=r["probability"],
    )


@given(rows())
def test_cells_are_the_counted_rows(r):
    cells = table(built(r))
    assert in_order(cells) == counted(r["y"], r["score"], r["decision"], r["weight"], r["probability"])
    assert [row[0] for row in cells] == sorted(row[0] for row in cells)


@given(rows(), st.sampled_from([-1e308, -2.5, 0.0, 0.6, 1e308]))
def test_decisions_follow_the_threshold(r, threshold):
    data = EvaluationSet(r["y"], r["score"], threshold=threshold)
    assert table(data) == counted(r["y"], r["score"], [s >= threshold for s in r["score"]])


@pytest.mark.parametrize(("threshold", "advice"), [(math.inf, "above all scores"), (-math.inf, "below all scores")])
def test_an_infinite_threshold_is_refused_with_what_to_give_instead(threshold, advice):
    with pytest.raises(dm.InputError, match=rf"threshold: -?inf\..*{advice}"):
        EvaluationSet([1, 0], [0.9, 0.1], threshold=threshold)
    with pytest.raises(dm.InputError, match=rf"threshold: -?inf\..*{advice}"):
        EvaluationSet([1, 0], [0.9, 0.1]).with_threshold(threshold)


@given(rows(), st.randoms(use_true_random=False))
def test_row_order_never_matters(r, random):
    order = list(range(len(r["y"])))
    random.shuffle(order)
    shuffled = {name: None if column is None else [column[i] for i in order] for name, column in r.items()}
    assert table(built(shuffled)) == table(built(r))


@given(rows(weighted=True), rows(weighted=True))
def test_merged_sets_equal_the_set_of_all_rows(a, b):
    given_for_both = a["probability"] is not None and b["probability"] is not None
    if not given_for_both:
        a, b = {**a, "probability": None}, {**b, "probability": None}
    together = {name: None if a[name] is None else a[name] + b[name] for name in a}
    assert table(built(a) + built(b)) == table(built(together))


@given(rows(), rows(), rows())
def test_merging_is_commutative_and_associative(a, b, c):
    first, second, third = (built(r, probability=None) for r in (a, b, c))
    assert table(first + second) == table(second + first)
    assert table((first + second) + third) == table(first + (second + third))


def test_merging_weighted_with_unweighted_rows_counts_the_latter_once():
    both = EvaluationSet([1], [0.5], sample_weight=[3.0]) + EvaluationSet([0, 1], [0.5, 0.5])
    assert table(both) == [(0.5, True, 1, 1, 0, 1.0, None), (0.5, True, 1, 0, 0, 3.0, None)]


def test_merging_keeps_the_threshold():
    both = EvaluationSet([1], [0.4], threshold=0.3) + EvaluationSet([0], [0.2], threshold=0.3)
    assert both.threshold == 0.3
    assert both.cells.decision.tolist() == [False, True]


def test_a_set_without_missing_rows_merges_with_given_probabilities():
    both = EvaluationSet([1, 0], [0.9, 0.1]) + EvaluationSet([None], [0.5], missingness=dm.missing.Fixed([0.25]))
    assert both.cells.probability is not None
    assert dm.evaluate(both, metrics="accuracy")["accuracy"].mean() == pytest.approx((2 + 0.25) / 3)


def test_sets_that_do_not_belong_together_do_not_merge():
    data = EvaluationSet(Y, SCORE)
    with pytest.raises(InputError, match=r"threshold: one set has .* threshold 0\.5, the other .* threshold 0\.3"):
        data + EvaluationSet(Y, SCORE, threshold=0.3)
    with pytest.raises(InputError, match=r"threshold: .* threshold 0\.5, the other from y_pred"):
        data + EvaluationSet(Y, SCORE, y_pred=[1, 0, 1, 1, 0, 0])
    with pytest.raises(
        InputError, match="probability: one set has probabilities, the other has 2 missing labels without"
    ):
        data + EvaluationSet(Y, SCORE, missingness=dm.missing.Fixed([0.5, 0.5]))
    with pytest.raises(TypeError):
        data + 1


# --------------------------------------------------------------------------------- labels and what is missing

EXPECTED = counted(Y, SCORE, [s >= 0.5 for s in SCORE])
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "numpy object": lambda v: np.array(v, dtype=object),
    "pandas": lambda v: pd.Series(v, index=[5, 5, 1, 2, 0, -3]),
    "pandas Arrow": lambda v: pd.Series(pd.array(v, dtype=pd.ArrowDtype(pa.array(v).type)), index=[5, 5, 1, 2, 0, -3]),
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow chunks": lambda v: pa.chunked_array([pa.array(v)[:2], pa.array(v)[2:]]),
}
CLASSES = {"int": (1, 0), "float": (1.0, 0.0), "bool": (True, False), "text": ("yes", "no"), "other ints": (7, 3)}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("classes", CLASSES)
def test_the_same_rows_make_the_same_cells_in_every_container(container, classes):
    positive, negative = CLASSES[classes]
    labels = [None if y is None else positive if y else negative for y in Y]
    make = CONTAINERS[container]
    assert table(EvaluationSet(make(labels), make(SCORE), pos_label=positive)) == EXPECTED


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 0, NAN, 1, NAN, 0], np.float32),
        np.ma.masked_array([1, 0, 9, 1, 9, 0], mask=[False, False, True, False, True, False]),
        pd.Series(Y, dtype="Int64"),
        pd.Series(Y, dtype="boolean"),
        pd.Series(Y, dtype="category"),
        pl.Series(Y, dtype=pl.Int8),
        [Decimal(1), Decimal(0), None, Decimal(1), Decimal("nan"), Decimal(0)],
        [True, 0.0, pd.NA, 1, pd.NaT, False],
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_of_every_kind_make_the_same_cells(labels):
    assert table(EvaluationSet(labels, SCORE)) == EXPECTED


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(["y", "n", None, "y", None, "n"], dtype="category"),
        pd.Series(["y", "n", None, "y", None, "n"], dtype="string"),
        pl.Series(["y", "n", None, "y", None, "n"], dtype=pl.Enum(["n", "y"])),
        pl.Series(["y", "n", None, "y", None, "n"], dtype=pl.Categorical),
        pa.array(["y", "n", None, "y", None, "n"]).dictionary_encode(),
    ],
    ids=["pandas category", "pandas string", "polars Enum", "polars Categorical", "arrow dictionary"],
)
def test_text_classes_of_every_kind_make_the_same_cells(labels):
    assert table(EvaluationSet(labels, SCORE, pos_label="y")) == EXPECTED


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ([1, 0, -1, 1, -1, 0], -1),
        (np.array([1, 0, -1, 1, -1, 0], np.int8), -1),
        ([1.0, 0.0, -1.0, 1.0, None, 0.0], -1),
        ([1, 0, 99, 1, 99, 0], 99),
        (np.array([1, 0, 255, 1, 255, 0], np.uint8), 255),
        ([1, 0, "?", 1, "?", 0], "?"),
        ([1, 0, "", 1, None, 0], ""),
        (pl.Series([1, 0, -1, 1, None, 0]), -1),
        (pd.Series([1, 0, -1, 1, None, 0], dtype="Int64"), np.int64(-1)),
        (pa.array([1, 0, -1, 1, -1, 0]), -1.0),
    ],
)
def test_a_missing_label_value_counts_as_missing_only_when_said(labels, code):
    assert table(EvaluationSet(labels, SCORE, missing_label=code)) == EXPECTED
    assert "means missing, pass missing_label=" in message(labels, SCORE)


@pytest.mark.parametrize(
    "several", [[-1, -9], (-9, -1), {-1, -9}, frozenset({-1, -9, 7}), [-1, None, float("nan"), -9]]
)
def test_several_values_mean_missing(several):
    assert table(EvaluationSet([1, 0, -1, -9, 0, 1], SCORE, missing_label=several)) == table(
        EvaluationSet([1, 0, None, None, 0, 1], SCORE)
    )
    words = ["y", "n", "?", "open", "n", "y"]
    assert table(EvaluationSet(words, SCORE, pos_label="y", missing_label=["?", "open"])) == table(
        EvaluationSet([1, 0, None, None, 0, 1], SCORE)
    )


def test_no_value_that_means_missing_adds_nothing():
    assert table(EvaluationSet(Y, SCORE, missing_label=[])) == EXPECTED


def test_a_missing_label_value_among_text_classes():
    labels = ["y", "n", "?", "y", "?", "n"]
    assert table(EvaluationSet(labels, SCORE, pos_label="y", missing_label="?")) == EXPECTED
    assert "If '?' means missing, pass missing_label='?'" in message(labels, SCORE, pos_label="y")


@pytest.mark.parametrize("gap", [None, NAN, pd.NA, pd.NaT])
def test_a_gap_as_missing_label_adds_nothing(gap):
    assert table(EvaluationSet(Y, SCORE, missing_label=gap)) == EXPECTED


@pytest.mark.parametrize("code", [-1, 999, 10**30, 10**400, "1", "?"])
def test_a_missing_label_that_does_not_occur_changes_nothing(code):
    labels = np.array([1, 0, 0, 1, 1, 0], np.uint8)
    assert table(EvaluationSet(labels, SCORE, missing_label=code)) == table(EvaluationSet(labels, SCORE))


def test_minus_one_and_one_are_two_classes_unless_said_otherwise():
    assert EvaluationSet([1, -1, -1], [0.1, 0.2, 0.3]).counts()["negative"] == 2
    assert EvaluationSet([1, -1, -1], [0.1, 0.2, 0.3], missing_label=-1).counts()["missing"] == 2


def test_the_other_class_can_be_the_positive_one():
    swapped = EvaluationSet([1, 0, 0], [0.1, 0.2, 0.3], pos_label=0).counts()
    assert (swapped["positive"], swapped["negative"]) == (2, 1)


@pytest.mark.parametrize(
    ("labels", "pos_label", "positives"),
    [
        ([0, 0], 1, 0),
        ([1, 1], 1, 2),
        ([-1, -1], 1, 0),
        (["n", "n"], "y", 0),
        (["y", "y"], "y", 2),
        ([None, None], 1, 0),
    ],
)
def test_one_class_alone_is_positive_or_negative_as_pos_label_says(labels, pos_label, positives):
    assert EvaluationSet(labels, [0.1, 0.2], pos_label=pos_label).counts()["positive"] == positives


def test_huge_whole_numbers_are_labels():
    data = EvaluationSet([10**30, 0, None], [0.1, 0.2, 0.3], pos_label=10**30)
    assert data.counts() == {"rows": 3, "labeled": 2, "positive": 1, "negative": 1, "missing": 1}


# ------------------------------------------------------------------------------------------------------ scores


def test_scores_may_be_any_finite_reals():
    score = [1e308, -1e308, 0.0, -0.0, 5e-324, -3]
    data = EvaluationSet(Y, score, threshold=0)
    assert data.cells.score.tolist() == [-1e308, -3.0, 0.0, 5e-324, 1e308]
    assert data.cells.decision.tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.bool_, np.float16, np.float32, np.longdouble])
def test_scores_of_every_numeric_type_keep_their_value(kind):
    score = np.array([1, 0, 1, 1, 0, 1], kind)
    assert table(EvaluationSet(Y, score)) == table(EvaluationSet(Y, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))


def test_float32_scores_are_compared_at_their_own_value():
    # 0.7 as a 32-bit float is 0.699999988, which is below 0.7.
    assert not EvaluationSet([1], np.array([0.7], np.float32), threshold=0.7).cells.decision[0]


# --------------------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("labels", "pos_label", "y_pred", "expected"),
    [
        ([1, 0, None], 1, [1, 0, 1], [1, 0, 1]),
        ([1, 0, None], 1, [True, False, True], [1, 0, 1]),
        ([1, 0, None], 1, [1, -1, 1], [1, 0, 1]),
        ([1, -1, None], 1, [1, 0, 1], [1, 0, 1]),
        ([1, 0, None], 0, [1, 0, 1], [0, 1, 0]),
        ([True, False, None], False, [True, False, True], [0, 1, 0]),
        (["y", "n", None], "y", ["y", "n", "y"], [1, 0, 1]),
        (["y", "n", None], "y", ["n", "n", "n"], [0, 0, 0]),
        (["y", "n", None], "y", [1, 0, 1], [1, 0, 1]),
        (["y", "n", None], "y", [True, False, True], [1, 0, 1]),
        (["y", "n", None], "y", [1, 1, 1], [1, 1, 1]),
        ([2, 1, None], 2, [2, 1, 2], [1, 0, 1]),
        ([2, 1, None], 2, [1, 1, 1], [0, 0, 0]),
        ([2, 1, None], 2, [True, False, True], [1, 0, 1]),
        ([None, None, None], 1, [1, 0, 0], [1, 0, 0]),
        ([None, None, None], "y", ["y", "n", "n"], [1, 0, 0]),
    ],
)
def test_decisions_are_classes_of_the_labels_or_yes_and_no(labels, pos_label, y_pred, expected):
    data = EvaluationSet(labels, [0.1, 0.2, 0.3], y_pred=y_pred, pos_label=pos_label)
    assert data.cells.decision.astype(int).tolist() == expected
    assert data.threshold is None


def test_decisions_come_in_every_container():
    decision = [1, 0, 1, 1, 0, 0]
    expected = counted(Y, SCORE, [d == 1 for d in decision])
    for make in (list, np.array, pd.Series, pl.Series, pa.array):
        assert table(EvaluationSet(Y, SCORE, y_pred=make(decision))) == expected


# ---------------------------------------------------------------------------------------------- what is held


def test_nothing_of_a_set_can_be_changed():
    data = EvaluationSet(Y, SCORE, sample_weight=[1, 2, 1, 2, 1, 2], missingness=dm.missing.Fixed([0.5] * 6))
    for changed in (data, data.labeled(), data.unlabeled(), data + data, pickle.loads(pickle.dumps(data))):
        with pytest.raises(AttributeError, match="does not change"):
            changed.threshold = 0.1
        with pytest.raises(AttributeError, match="does not change"):
            del changed.cells
        with pytest.raises(AttributeError):
            changed.cells.score = np.zeros(1)  # type: ignore[misc]
        for array in filter(lambda a: a is not None, changed.cells.arrays().values()):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_copies_and_pickles_hold_the_same_cells():
    data = EvaluationSet(Y, SCORE, missingness=dm.missing.Fixed([0.5, 0.25]))
    for other in (copy.copy(data), copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        assert table(other) == table(data)
        assert (other.threshold, other.pos_label) == (0.5, 1)


def test_the_arrays_of_the_user_are_neither_changed_nor_locked():
    mine: dict[str, Any] = {
        "y_true": np.array([1, 0, NAN, 1]),
        "y_score": np.array([0.3, 0.2, 0.2, -0.0]),
        "sample_weight": np.array([2.0, 1.0, 3.0, 0.0]),
        "probability": np.array([0.5, 0.5, 0.5, 0.5]),
        "y_pred": np.array([True, False, True, False]),
    }
    before = {name: array.copy() for name, array in mine.items()}
    data = build_set(**mine)
    rows_before = table(data)
    for name, array in mine.items():
        np.testing.assert_array_equal(array, before[name])
        assert array.flags.writeable
        array[:] = 1 - array  # and the set does not look back at them
    assert table(data) == rows_before


def test_cells_given_by_hand_are_taken_as_they_are_and_left_writable():
    score, ones = np.array([0.2, 0.8]), np.array([1, 1])
    data = EvaluationSet.from_cells(Cells(score, score > 0.5, ones, 2 * ones, 3 * ones), threshold=0.5)
    assert data.counts() == {"rows": 12, "labeled": 6, "positive": 2, "negative": 4, "missing": 6}
    assert score.flags.writeable
    rows_ = EvaluationSet([1, 0, 0, None, None, None] * 2, [0.2] * 6 + [0.8] * 6)
    assert table(data) == table(rows_)
    assert (
        dm.evaluate(data, missingness=dm.missing.Fixed(0.5))["f1"].mean()
        == dm.evaluate(rows_, missingness=dm.missing.Fixed(0.5))["f1"].mean()
    )


@given(rows())
def test_labeled_rows_are_the_set_without_the_others(r):
    kept = [i for i, y in enumerate(r["y"]) if y is not None]
    part = {name: None if column is None else [column[i] for i in kept] for name, column in r.items()}
    data = built(r).labeled()
    expected = counted(part["y"], part["score"], part["decision"], part["weight"], part["probability"])
    assert in_order(table(data)) == expected
    assert len(data) == len(kept)


@given(rows())
def test_unlabeled_rows_are_all_rows_without_labels(r):
    blank = [None] * len(r["y"])
    expected = counted(blank, r["score"], r["decision"], r["weight"], r["probability"])
    assert in_order(table(built(r).unlabeled())) == expected


def test_probabilities_per_missing_row_go_to_the_missing_rows_in_order():
    data = EvaluationSet([1, None, 0, None], [0.1, 0.2, 0.3, 0.4], missingness=dm.missing.Fixed([0.25, 0.75]))
    assert [row[-1] for row in table(data)] == [None, 0.25, None, 0.75]


def test_probabilities_on_labeled_rows_may_be_missing():
    data = EvaluationSet([1, None], [0.1, 0.2], missingness=dm.missing.Fixed([NAN, 0.75]))
    assert [row[-1] for row in table(data)] == [None, 0.75]


def test_equal_weights_of_one_are_no_weights():
    assert EvaluationSet(Y, SCORE, sample_weight=np.ones(6)).cells.weight is None


# ------------------------------------------------------------------------------------------------------ counts


def test_rows_are_counted_by_label():
    data = EvaluationSet(Y, SCORE)
    assert data.counts() == {"rows": 6, "labeled": 4, "positive": 2, "negative": 2, "missing": 2}
    assert (len(data), data.n_rows, data.n_labeled, data.n_missing) == (6, 6, 4, 2)


def test_repr_is_one_line_with_rows_and_cells():
    assert repr(EvaluationSet(Y * 1000, SCORE * 1000)) == "EvaluationSet(6,000 rows, 2,000 missing, 5 cells)"


def test_str_is_the_counts_in_words():
    assert str(EvaluationSet(Y * 1000, SCORE * 1000)) == (
        "6,000 rows: 4,000 labeled (2,000 positive, 2,000 negative), 2,000 missing (33.3%)\n"
        "4,000 positive decisions (1,000 of them missing their label), 2,000 negative (1,000)"
    )


def test_a_set_of_no_rows_still_prints():
    assert str(EvaluationSet([None], [0.5]).labeled()).startswith("0 rows: 0 labeled")


# --------------------------------------------------------------------------------------------------- bad input


def test_lengths_that_differ_are_refused():
    assert message([1, 0], SCORE) == "y_true: 2 values, but y_score has 6. Both need one per row."
    assert message(Y, SCORE, sample_weight=[1.0]) == (
        "sample_weight: 1 value, but y_score has 6. Both need one per row."
    )
    assert message(Y, SCORE, y_pred=[1]) == "y_pred: 1 value, but y_score has 6. Both need one per row."


@pytest.mark.parametrize("empty", [[], (), np.array([]), pd.Series([], dtype=float), pl.Series([]), np.array([], "U1")])
def test_no_rows_are_refused(empty):
    assert message(empty, empty) == "y_true: no rows. An evaluation set needs at least one."


def test_scores_that_are_not_finite_are_refused_with_the_first_place():
    assert message([1, 0, 1], [0.5, NAN, NAN]) == (
        "y_score: 2 of 3 values are NaN (first at row 1). Scores must be finite. Drop or impute those rows."
    )
    assert "y_score: 1 of 3 values is NaN (first at row 2)." in message([1, 0, 1], [0.5, 0.1, None])
    assert "y_score: 2 of 3 values are not finite (first -inf at row 1)." in message([1, 0, 1], [0.5, -np.inf, NAN])
    assert "y_score: 1 of 3 values is not finite (first inf at row 0)." in message([1, 0, 1], [np.inf, 1, 0])


def test_a_number_beyond_float64_is_not_a_finite_score():
    huge = np.array([np.longdouble("1e400"), 0])
    if not np.isfinite(huge[0]):
        pytest.skip("long double is no wider than double here")
    assert "not finite (first inf at row 0)" in message([1, 0], huge)


def test_a_third_label_is_refused_with_its_row():
    assert message([1, 0, None, 2, 2], [0.5] * 5) == (
        "y_true: a third value 2 at row 3 in addition to 1 and 0. Labels take two values, or are missing. "
        "To evaluate 1 against all other classes, pass y_true == 1 as the labels. "
        "If a value means missing, pass missing_label=."
    )
    assert "a third value inf at row 2 in addition to 1 and 0." in message([1, 0, np.inf], [0.5] * 3)
    # A measured value is no code for missing, so there is no hint.
    assert message(np.array([0, 1, 0.25, 0.3]), [0.5] * 4).endswith(
        "a third value 0.25 at row 2 in addition to 0 and 1. Labels take two values, or are missing."
    )


def test_a_class_is_never_called_missing():
    labels = np.array([0, 1, 2, 1, 0])
    text = message(labels, [0.5] * 5, pos_label=2)
    assert text.endswith(
        "To evaluate 2 against all other classes, pass y_true == 2 as the labels. "
        "If a value means missing, pass missing_label=."
    )
    assert EvaluationSet(labels == 2, [0.5] * 5).counts()["positive"] == 1


@pytest.mark.parametrize(
    "labels", [[1, 0, -1], [-1, 0, 1], [0, -1, 1], np.array([0.0, -1.0, 1.0]), pl.Series([-1, 1, 0]), [1, 0, -1, 7]]
)
def test_minus_one_among_three_labels_gets_a_hint(labels):
    assert "If -1 means missing, pass missing_label=-1." in message(labels, [0.5] * len(labels))


@pytest.mark.parametrize(
    ("labels", "told", "said"),
    [
        (
            ["no", "NO", "yes"],
            None,
            "a third value 'NO' at row 1 .* 'no' and 'yes'. Labels .* Spell 'no' and 'NO' alike, which differ in case",
        ),
        (["no", "NO", "?", "yes"], None, r"Spell .* spaces alone\. If '\?' means missing, pass missing_label='\?'\."),
        (["yes ", "yes", "no"], None, "Spell 'yes ' and 'yes' alike, which differ in case or spaces alone."),
        (["no", "?", "yes", "n/a"], None, r"If '\?' and 'n/a' mean missing, pass missing_label=\['\?', 'n/a'\]."),
        (["no", "?", "yes", "n/a"], "?", r"If 'n/a' means missing, pass missing_label=\['\?', 'n/a'\]."),
        (["no", "maybe", "yes", "later"], None, "a third value 'maybe' at row 1 .* If a value means missing"),
    ],
)
def test_odd_words_among_labels_are_told_at_once(labels, told, said):
    with pytest.raises(InputError, match=said) as caught:
        EvaluationSet(labels, [0.5] * len(labels), pos_label="yes", missing_label=told)
    assert ("missing_label" in str(caught.value)) == ("Spell" not in str(caught.value) or "?" in labels)


@pytest.mark.parametrize("word", ["nan", "NA", "None", "", "unknown"])
def test_a_word_for_missing_among_three_labels_gets_a_hint(word):
    for labels in ([word, "a", "b"], ["a", word, "b"], ["a", "b", word]):
        assert f"If {word!r} means missing, pass missing_label={word!r}." in message(labels, [0.5] * 3, pos_label="a")


def test_a_pos_label_that_no_label_has_is_refused():
    expected = "y_true: pos_label={} is not among the labels ({}). Set pos_label= to the positive label."
    assert message(["y", "n"], [0.1, 0.2]) == expected.format(1, "'y' and 'n'")
    assert message([1, 0], [0.1, 0.2], pos_label="1") == expected.format("'1'", "1 and 0")
    assert message(["1", "0"], [0.1, 0.2]) == expected.format(1, "'1' and '0'")
    assert message([2, 2], [0.1, 0.2]) == expected.format(1, "2")
    assert message([1.0, None, 0], [0.1, 0.2, 0.3], pos_label=3) == expected.format(3, "1 and 0")


@pytest.mark.parametrize("value", [[1], (1,), np.array([1, 0]), {"a": 1}, pd.Series([1])])
def test_a_label_value_that_is_several_is_refused(value):
    assert message(Y, SCORE, pos_label=value).endswith(f"of type {type(value).__name__}. It must be a single label.")


@pytest.mark.parametrize("value", [np.array([-1, 0]), {"a": 1}, pd.Series([-1]), [-1, [-2]], (-1, (-2,)), [-1, {}]])
def test_what_cannot_be_a_missing_label_is_refused_by_its_value(value):
    odd = value[1] if isinstance(value, (list, tuple)) else value
    kind = type(odd).__name__
    assert message(Y, SCORE, missing_label=value) == (
        f"missing_label: {odd!r} of type {kind}. It must be a label, or a list of labels."
    )


@pytest.mark.parametrize("gap", [None, NAN, pd.NA, pd.NaT])
def test_a_gap_as_pos_label_is_refused(gap):
    assert message(Y, SCORE, pos_label=gap) == (
        f"pos_label: {gap!r} means a missing label. Set pos_label= to the positive label."
    )


def test_one_value_cannot_be_positive_and_missing():
    for several in (1, [-1, 1], {1}, (None, 1)):
        assert message(Y, SCORE, missing_label=several) == "missing_label: 1 is also pos_label. A label cannot be both."


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        ([0.5, 0.5, 1.5, 0.5, 0.5, 0.5], "probability: 1.5 at row 2. Probabilities must lie in [0, 1]."),
        ([0.5, -0.1, 0.5, 0.5, 0.5, 0.5], "probability: -0.1 at row 1. Probabilities must lie in [0, 1]."),
        ([0.5, 0.5, 0.5, 0.5, NAN, 0.5], "probability: NaN at row 4. Probabilities must lie in [0, 1]."),
        ([0.5, np.inf], "probability: inf at position 1 of the 2 missing rows. Probabilities must lie in [0, 1]."),
        ([None, 0.5], "probability: NaN at position 0 of the 2 missing rows. Probabilities must lie in [0, 1]."),
        ([-2, 0.5], "probability: -2 at position 0 of the 2 missing rows. Probabilities must lie in [0, 1]."),
    ],
)
def test_what_is_no_probability_is_refused_with_its_place(probability, expected):
    assert message(Y, SCORE, probability=probability) == expected


@pytest.mark.parametrize("size", [0, 1, 3, 7])
def test_a_wrong_number_of_probabilities_is_refused(size):
    assert message(Y, SCORE, probability=[0.5] * size) == (
        f"probability: {size} value{'s' * (size != 1)} for 6 rows, 2 of them without a label. "
        "Pass one per row, or one per row without a label."
    )


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ([1, 1, -2, 1, 1, -1], "sample_weight: -2 at row 2. Weights must not be negative."),
        ([0] * 6, "sample_weight: the weights sum to zero. At least one row must count."),
        ([1, NAN, 1, 1, 1, 1], "sample_weight: 1 of 6 values is NaN (first at row 1). Weights must be finite"),
        ([1, np.inf, 1, 1, 1, 1], "sample_weight: 1 of 6 values is not finite (first inf at row 1). Weights must be"),
        ([1e308] * 6, "sample_weight: weights from 1e+308 to 1e+308. They must lie between 1e-50 and 1e+50"),
        ([1e-7, 1e6, 1, 1, 1, 1], "sample_weight: weights from 1e-07 to 1e+06. They must lie between"),
        (["a"] * 6, "sample_weight: expected numbers, found 'a' of type str at row 0."),
        (2.0, "sample_weight: expected a list, array or Series with one value per row, got 2.0."),
    ],
)
def test_bad_weights_are_refused(weight, expected):
    assert message(Y, SCORE, sample_weight=weight).startswith(expected)


@pytest.mark.parametrize("threshold", ["0.5", [0.5], np.array([0.5, 0.6]), pd.Series([0.5]), 1j, pd.NA, {}])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    assert message(Y, SCORE, threshold=threshold) == f"threshold: {threshold!r}. It must be a number."


def test_a_threshold_of_nan_is_refused():
    assert message(Y, SCORE, threshold=NAN).startswith("threshold: NaN. Scores are compared with the threshold")


@pytest.mark.parametrize(
    ("y_pred", "expected"),
    [
        ([1, 0, None, 1, 0, 0], "y_pred: missing at row 2. Every row needs a prediction."),
        ([1, 0, 2, 1, 0, 0], "y_pred: a third value 2 at row 2 in addition to 1 and 0. Predictions take two values."),
        ([1, 7, 1, 1, 7, 7], "y_pred: 7 at row 1 is none of the labels (1 and 0)."),
        ([3, 7, 3, 3, 7, 7], "y_pred: pos_label=1 is not among the labels (3 and 7)."),
        ("101100", "y_pred: '101100' is the name of a column. Pass its table as data=."),
    ],
)
def test_bad_decisions_are_refused(y_pred, expected):
    assert message(Y, SCORE, y_pred=y_pred).startswith(expected)


def test_a_decision_for_an_unknown_class_is_refused():
    labels = ["y", "n", None, "y", None, "n"]
    assert message(labels, SCORE, pos_label="y", y_pred=["y", "maybe", "y", "y", "y", "y"]) == (
        "y_pred: 'maybe' at row 1 is none of the labels ('y' and 'n'). Predictions are labels, or 0 and 1."
    )


def test_threshold_and_decisions_together_are_refused():
    assert message(Y, SCORE, threshold=0.3, y_pred=[1, 0, 1, 1, 0, 0]) == (
        "threshold: 0.3, but y_pred already has the predictions. Pass one of the two."
    )


HOSTILE = {
    "None": None,
    "scalar": 0.5,
    "text": "101010",
    "dict": dict(enumerate(SCORE)),
    "set": set(range(6)),
    "generator": (x for x in SCORE),
    "frame": pd.DataFrame({"a": SCORE}),
    "polars frame": pl.DataFrame({"a": SCORE}),
    "no axis": np.array(0.5),
    "predict_proba": np.full((6, 2), 0.5),
    "three axes": np.zeros((6, 1, 1)),
    "complex": [1j, 2, 3, 4, 5, 6],
    "dates": pd.date_range("2020", periods=6),
    "text column": ["a", "b", "c", "d", "e", "f"],
    "arrays inside": np.array([np.zeros(2), None, 1, 0, 1, 0], dtype=object),
    "ragged": [[1], [1, 2], 3, 4, 5, 6],
    "structured": np.zeros(6, dtype=[("a", "f8")]),
    "records of a set": [EvaluationSet([1], [1])] * 6,
    "set itself": EvaluationSet([1], [1]),
    "class": dict,
    "empty": [],
}


@pytest.mark.parametrize(
    ("argument", "case"),
    [
        (argument, case)
        for argument in ("y_true", "y_score", "y_pred", "sample_weight", "probability")
        for case in HOSTILE
        if case != "None" or argument in ("y_true", "y_score")  # elsewhere None leaves the argument out
    ],
)
def test_hostile_columns_end_in_an_error_that_names_the_argument(argument, case):
    arguments: dict[str, Any] = {"y_true": Y, "y_score": SCORE} | {argument: HOSTILE[case]}
    text = message(**arguments)
    # An empty y_score is found out by the labels it does not match.
    assert text.startswith("y_true: " if (argument, case) == ("y_score", "empty") else f"{argument}: ")
    assert len(text) < 300


def test_sum_merges_a_list_of_sets():
    days = [EvaluationSet([1, None], [0.9, 0.2]), EvaluationSet([0], [0.4]), EvaluationSet([None], [0.2])]
    together = EvaluationSet([1, None, 0, None], [0.9, 0.2, 0.4, 0.2])
    merged = sum(days)
    assert isinstance(merged, EvaluationSet)
    for name, column in merged.cells.arrays().items():
        np.testing.assert_array_equal(column, together.cells.arrays()[name])


def test_a_set_is_not_added_to_a_number():
    with pytest.raises(TypeError):
        1 + EvaluationSet([1], [0.9])
