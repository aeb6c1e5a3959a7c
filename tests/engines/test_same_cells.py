"""Every engine finds the same cells: those that a loop over the rows finds."""

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics._kernels.bin_grid import bin_index
from darkmetrics.frames import ColumnNames, counting
from engines.reference import assert_same, bined_cells, exact_cells

count_cells: Any = counting.count_cells  # which arrays it has depends on the arguments, as a type checker cannot know
NAN = float("nan")
Y_P = ColumnNames(label="y", score="p")

SCORES = [0.0, 1.0, 0.5, 1e-300, 0.25, 0.25, 0.75, np.nextafter(0.5, 0.0)]
GAPS = [True, False, False, True, False, True, False, False]
TRUTH = [True, False, True, True, False, False, False, True]


def with_gaps(yes, no, gap=None):
    return [gap if missing else yes if true else no for true, missing in zip(TRUTH, GAPS, strict=True)]


# Each has the same positive, negative and missing rows.
LABELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "integers": (pa.array(with_gaps(1, 0), pa.int64()), {}),
    "small integers": (pa.array(with_gaps(1, 0), pa.int8()), {}),
    "unsigned integers": (pa.array(with_gaps(1, 0), pa.uint8()), {}),
    "floats with null": (pa.array(with_gaps(1.0, 0.0)), {}),
    "floats with NaN": (pa.array(with_gaps(1.0, 0.0, NAN)), {}),
    "floats with null and NaN": (pa.array([*with_gaps(1.0, 0.0)[:4], *with_gaps(1.0, 0.0, NAN)[4:]]), {}),
    "float32": (pa.array(with_gaps(1.0, 0.0, NAN), pa.float32()), {}),
    "booleans": (pa.array(with_gaps(True, False)), {}),
    "booleans, False is positive": (pa.array(with_gaps(False, True)), {"pos_label": False}),
    "strings": (pa.array(with_gaps("yes", "no")), {"pos_label": "yes"}),
    "strings that look like numbers": (pa.array(with_gaps("1", "0")), {"pos_label": "1"}),
    "large strings": (pa.array(with_gaps("yes", "no"), pa.large_string()), {"pos_label": "yes"}),
    "categories": (pa.array(with_gaps("yes", "no")).dictionary_encode(), {"pos_label": "yes"}),
    "decimals": (pa.array(with_gaps(Decimal(1), Decimal(0)), pa.decimal128(4, 1)), {}),
    "one and two": (pa.array(with_gaps(2, 1)), {"pos_label": 2}),
    "minus one is negative": (pa.array(with_gaps(1, -1)), {}),
    "minus one is missing": (pa.array(with_gaps(1, 0, -1)), {"missing_label": -1}),
    "minus one is missing, in floats": (pa.array(with_gaps(1.0, 0.0, -1.0)), {"missing_label": -1}),
    "a word is missing": (pa.array(with_gaps("yes", "no", "?")), {"pos_label": "yes", "missing_label": "?"}),
    "several numbers are missing": (
        pa.array([*with_gaps(1, 0, -1)[:4], *with_gaps(1, 0, -9)[4:]]),
        {"missing_label": {-1, -9}},
    ),
    "zero and two are missing": (
        pa.array([*with_gaps(1, 3, 0)[:4], *with_gaps(1, 3, 2)[4:]]),
        {"missing_label": [0, 2]},
    ),
    "several words are missing": (
        pa.array([*with_gaps("yes", "no", "?")[:4], *with_gaps("yes", "no", "open")[4:]]),
        {"pos_label": "yes", "missing_label": ("?", "open", -1)},
    ),
    "0.5 is positive": (pa.array(with_gaps(0.5, 0.25, NAN)), {"pos_label": 0.5}),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_type_are_counted_alike(engine, kind):
    labels, settings = LABELS[kind]
    counted = count_cells(engine(pa.table({"y": labels, "p": SCORES})), Y_P, threshold=0.5, **settings)
    plain = [None if gap else true for true, gap in zip(TRUTH, GAPS, strict=True)]
    assert_same(counted, exact_cells([(s, y, None, None, None) for s, y in zip(SCORES, plain, strict=True)]))
    by_arrays = EvaluationSet(labels.to_pylist(), SCORES, **settings).cells
    assert_same(counted, {k: v for k, v in by_arrays.arrays().items() if v is not None})
    positive = settings.get("pos_label", 1)
    negative = next(v for v, t, g in zip(labels.to_pylist(), TRUTH, GAPS, strict=True) if not t and not g)
    assert counted.labels == [negative, positive]


def test_labels_are_reported_when_there_are_more_than_two(engine):
    frame = engine({"y": [1, 0, 7, 3, None, -2], "p": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    # All of them, so that what is odd can be told at once; the positive one last.
    assert count_cells(frame, Y_P, threshold=0.5).labels == [-2, 0, 3, 7, 1]
    assert count_cells(frame, Y_P, threshold=0.5, pos_label=7).labels == [-2, 0, 1, 3, 7]
    frame = engine({"y": ["b", "a", "c", None], "p": [0.1, 0.2, 0.3, 0.4]})
    assert count_cells(frame, Y_P, threshold=0.5, pos_label="b").labels == ["a", "c", "b"]


def test_text_never_equals_a_number_and_true_equals_one(engine):
    text = engine({"y": ["1", "0", None], "p": [0.1, 0.2, 0.3]})
    assert count_cells(text, Y_P, threshold=0.5).labels == ["0", "1"]
    assert count_cells(text, Y_P, threshold=0.5).positives.sum() == 0
    truth = engine({"y": [True, False, None], "p": [0.1, 0.2, 0.3]})
    assert count_cells(truth, Y_P, threshold=0.5, pos_label=1).positives.sum() == 1
    assert count_cells(truth, Y_P, threshold=0.5, pos_label="True").positives.sum() == 0
    numbers = engine({"y": [1, 0, None], "p": [0.1, 0.2, 0.3]})
    assert count_cells(numbers, Y_P, threshold=0.5, pos_label=True).positives.sum() == 1


def test_a_label_that_is_nearly_there_is_not_there(engine):
    frame = engine({"y": [1, 0, 2**60 + 1, 2**60, None], "p": [0.1, 0.2, 0.3, 0.4, 0.5]})
    # In pandas, integers with gaps become floats, which cannot tell the two apart.
    if engine.name not in ("pandas", "pandas-arrow", "dask"):
        counted = count_cells(frame, Y_P, threshold=0.5, pos_label=2**60 + 1)
        assert counted.positives.tolist() == [0, 0, 1, 0, 0]
    for near in (1.5, 0.999, 2**70):
        assert count_cells(frame, Y_P, threshold=0.5, pos_label=near).positives.sum() == 0


def test_all_labels_missing(engine):
    for labels in (pa.array([None, None], pa.int64()), pa.array([NAN, NAN]), pa.array([None, None], pa.string())):
        counted = count_cells(engine(pa.table({"y": labels, "p": [0.1, 0.9]})), Y_P, threshold=0.5)
        assert counted.missing.tolist() == [1, 1]
        assert counted.labels == []


AWKWARD = [0.0, -0.0, 5e-324, 1e-300, 1e-9, 0.3, 0.5, np.nextafter(0.5, 1), 0.7, 1 - 1e-16, 1.0]
AWKWARD += [np.nextafter(1, 2), 1.5, 3.0, 1e6, 1e300, -1e-300, -0.3, -1.0, -1.5, -1e300]


@pytest.mark.parametrize("score_bins", ["auto", "exact"])
def test_scores_of_every_size_stay_what_they_are(engine, score_bins):
    rows = [(s, y, None, None, None) for s in AWKWARD for y in (True, False, None)]
    frame = engine({"y": [y for _, y, *_ in rows], "p": [s for s, *_ in rows]})
    assert_same(count_cells(frame, Y_P, threshold=0.5, score_bins=score_bins), exact_cells(rows))


@pytest.mark.parametrize("score_bins", [16, 64, 2**16])
def test_scores_of_every_size_fall_into_the_same_bins(engine, score_bins):
    rng = np.random.default_rng(1)
    scores = [*AWKWARD, *rng.random(300), *rng.random(100) ** 20, *(1 - rng.random(100) ** 20), *rng.normal(size=100)]
    rows = [(float(s), [True, False, None][i % 3], None, None, None) for i, s in enumerate(scores)]
    frame = engine({"y": [y for _, y, *_ in rows], "p": [s for s, *_ in rows]})
    counted = count_cells(frame, Y_P, threshold=0.4, score_bins=score_bins)
    assert counted.score_bins == score_bins
    assert_same(counted, bined_cells(rows, score_bins, 0.4))


def test_the_threshold_cuts_bins_exactly(engine):
    """Scores a hair's breadth apart on both sides of the threshold are two cells, even in very wide bins."""
    cut = 0.3
    scores = [np.nextafter(cut, 0), cut, np.nextafter(cut, 1), 0.29, 0.31]
    counted = count_cells(engine({"y": [1, 0, None, 1, 0], "p": scores}), Y_P, threshold=cut, score_bins=16)
    assert counted.decision.tolist() == [False, True]
    assert (counted.positives + counted.negatives + counted.missing).tolist() == [2, 3]
    assert counted.high[0] < cut <= counted.low[1]


def test_bins_with_one_score_each_are_exact(engine):
    counted = count_cells(engine({"y": [1, 0, None], "p": [0.1, 0.1, 0.7]}), Y_P, threshold=0.5, score_bins=1000)
    assert counted.score_bins is None
    assert counted.low is None
    assert counted.score.tolist() == [0.1, 0.7]


def test_a_number_of_bins_is_rounded_down_to_a_power_of_two(engine):
    frame = engine({"y": [1, 0, None, 1], "p": [0.1, 0.11, 0.7, 0.1000001]})
    assert count_cells(frame, Y_P, threshold=0.5, score_bins=100).score_bins == 64


NUMBERS = {
    "float32": pa.array([0.1, 0.7, 0.3], pa.float32()),
    "integers": pa.array([0, 1, 3], pa.int32()),
    "booleans": pa.array([False, True, True]),
    "decimals": pa.array([Decimal("0.125"), Decimal("0.7"), Decimal("0.3")], pa.decimal128(10, 3)),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_scores_of_every_number_type_become_64_bit_floats(engine, kind):
    column = NUMBERS[kind]
    expected = sorted({float(value) for value in column.to_pylist()})
    counted = count_cells(engine(pa.table({"y": [1, 0, None], "p": column})), Y_P, threshold=0.5)
    assert counted.score.tolist() == expected


def drawn(seed, size=400):
    rng = np.random.default_rng(seed)
    rows = []
    for u in rng.random(size).round(2).tolist():
        label = None if rng.random() < 0.4 else bool(rng.random() < u)
        rows.append((u, label, bool(rng.random() < 0.5), float(rng.integers(0, 4)), round(float(rng.random()), 1)))
    return rows


@pytest.mark.parametrize("score_bins", ["exact", 32])
@pytest.mark.parametrize("parts", [("decision",), ("weight",), ("probability",), ("decision", "weight", "probability")])
def test_decisions_weights_and_probabilities_are_counted_alike(engine, parts, score_bins):
    places = {"decision": 2, "weight": 3, "probability": 4}
    rows = [
        tuple(v if i < 2 or i in [places[p] for p in parts] else None for i, v in enumerate(row)) for row in drawn(2)
    ]
    columns = {"y": [row[1] for row in rows], "p": [row[0] for row in rows]}
    columns |= {part: [row[places[part]] for row in rows] for part in parts}
    names = ColumnNames("y", "p", **{part: part for part in parts})
    threshold = None if "decision" in parts else 0.5
    counted = count_cells(engine(columns), names, threshold=threshold, score_bins=score_bins)
    expected = exact_cells(rows) if score_bins == "exact" else bined_cells(rows, 32)
    assert_same(counted, expected)


@pytest.mark.parametrize("score_bins", ["exact", 16])
def test_count_cells_counts_several_scores_together(engine, score_bins):
    rng = np.random.default_rng(5)
    scores = rng.choice([-0.0, 0.0, 0.01, 0.5, 0.51, 0.9], (3, 300))
    scores[1] = rng.random(300)
    label, weight = rng.choice([1.0, 0.0, NAN], 300), rng.choice([1.0, 2.0], 300)
    names = dict(zip("abc", scores.tolist(), strict=True))
    columns = ColumnNames("y", "a", weight="w", more_scores=("b", "c"))
    frame = engine({"y": [None if np.isnan(y) else y for y in label], "w": weight.tolist(), **names})
    cuts = (0.5, 0.25, 0.505)
    counted = count_cells(frame, columns, threshold=cuts, score_bins=score_bins)
    places, expected = scores + 0.0, np.empty((3, 300))
    above = scores >= np.array(cuts)[:, None]
    if score_bins == 16:
        places = np.stack([bin_index(score, 16) * 2 + side for score, side in zip(scores, above, strict=True)])
    for k in range(3):
        expected[k] = [scores[k][places[k] == place].mean() for place in places[k]]
    rows: Counter[Any] = Counter()
    for row, key in enumerate(zip(*expected.round(12).tolist(), *above.tolist(), weight.tolist(), strict=True)):
        rows[key, label[row] if label[row] in (0.0, 1.0) else None] += 1
    found: Counter[Any] = Counter()
    cells = zip(*counted.score.round(12).tolist(), *counted.decision.tolist(), counted.weight.tolist(), strict=True)
    for cell, key in enumerate(cells):
        for name, value in (("positives", 1.0), ("negatives", 0.0), ("missing", None)):
            found[key, value] += int(getattr(counted, name)[cell])
    assert +found == rows
    assert counted.score_bins == (16 if score_bins == 16 else None)
    order = np.lexsort([counted.weight, *counted.score[::-1]])
    np.testing.assert_array_equal(order, np.arange(order.size))


def test_cells_equal_those_of_arrays_bit_for_bit(engine):
    rows = drawn(3)
    score, label, decision, weight, chance = map(list, zip(*rows, strict=True))
    frame = engine({"y": label, "p": score, "d": decision, "w": weight, "c": chance})
    counted = count_cells(frame, ColumnNames("y", "p", "d", "c", "w"), threshold=None)
    arrays = EvaluationSet(
        label, score, y_pred=decision, sample_weight=weight, missingness=dm.missing.Fixed(chance)
    ).cells.arrays()
    assert_same(counted, {name: values for name, values in arrays.items() if values is not None})


def test_a_probability_may_be_missing_where_a_label_is_known(engine):
    frame = engine({"y": [1, 0, None], "p": [0.1, 0.2, 0.3], "c": [None, NAN, 0.5]})
    for score_bins in ("exact", 16):
        counted = count_cells(frame, ColumnNames("y", "p", probability="c"), threshold=0.5, score_bins=score_bins)
        known = counted.probability[~np.isnan(counted.probability)]
        assert known.tolist() == [0.5]


def test_the_score_may_also_be_the_probability(engine):
    frame = engine({"y": [1, 0, None], "p": [0.1, 0.2, 0.3]})
    counted = count_cells(frame, ColumnNames("y", "p", probability="p"), threshold=0.5)
    assert counted.probability.tolist() == counted.score.tolist() == [0.1, 0.2, 0.3]


DECISIONS: dict[str, Any] = {
    "booleans": ([True, False, True], [1, 0, None], 1),
    "integers": ([1, 0, 1], [1, 0, None], 1),
    "minus one for no": ([1, -1, 1], [1, 0, None], 1),
    "answers beside words": ([1, 0, 1], ["yes", "no", None], "yes"),
    "the classes": (["yes", "no", "yes"], ["yes", "no", None], "yes"),
    "booleans beside one and two": ([True, False, True], [2, 1, None], 2),
}


@pytest.mark.parametrize("kind", DECISIONS)
def test_decisions_may_be_classes_or_answers(engine, kind):
    decisions, labels, positive = DECISIONS[kind]
    frame = engine({"y": labels, "p": [0.1, 0.2, 0.3], "d": decisions})
    counted = count_cells(frame, ColumnNames("y", "p", decision="d"), threshold=None, pos_label=positive)
    expected = EvaluationSet(labels, [0.1, 0.2, 0.3], y_pred=decisions, pos_label=positive).cells.decision
    assert counted.decision.tolist() == expected.tolist() == [True, False, True]


# -------------------------------------------------------------------------------------------------- groups


def test_groups_are_counted_apart(engine):
    rows = drawn(5)
    keys = [[None, "a", "b"][i % 3] for i in range(len(rows))]
    other = [i % 2 for i in range(len(rows))]
    columns = {"y": [r[1] for r in rows], "p": [r[0] for r in rows], "region": keys, "shift": other}
    for score_bins in ("exact", 32):
        counted = count_cells(engine(columns), Y_P, threshold=0.5, by=["region", "shift"], score_bins=score_bins)
        found = list(zip(counted.keys["region"], counted.keys["shift"], strict=True))
        assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1), (None, 0), (None, 1)]
        assert counted.starts[0] == 0
        assert counted.starts[-1] == counted.score.size
        for place, (region, shift) in enumerate(found):
            part = slice(counted.starts[place], counted.starts[place + 1])
            chosen = [
                (*r[:2], None, None, None)
                for r, k, o in zip(rows, keys, other, strict=True)
                if (k, o) == (region, shift)
            ]
            expected = exact_cells(chosen) if score_bins == "exact" else bined_cells(chosen, 32)
            assert_same(_slice(counted, part), expected)


def _slice(counted, part):
    names = ("score", "decision", "positives", "negatives", "missing", "low", "high")
    return replace(counted, **{n: None if getattr(counted, n) is None else getattr(counted, n)[part] for n in names})


KEYS = {
    "floats, null and NaN are one": (pa.array([1.5, None, NAN, 0.5]), [0.5, 1.5, None], [1, 1, 2]),
    "integers": (pa.array([3, 1, 3, 2]), [1, 2, 3], [1, 1, 2]),
    "integers with null": (pa.array([3, 1, 3, None]), [1, 3, None], [1, 2, 1]),
    "booleans": (pa.array([True, False, True, True]), [False, True], [1, 3]),
    "strings, of which one is empty": (pa.array(["", "a", "a", "b"]), ["", "a", "b"], [1, 2, 1]),
    "categories": (pa.array(["u", "a", "a", None]).dictionary_encode(), ["a", "u", None], [2, 1, 1]),
    "dates": (
        pa.array([dt.date(2024, 1, 2), dt.date(2024, 1, 1), dt.date(2024, 1, 1), None]),
        [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None],
        [2, 1, 1],
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_come_back_as_they_were(engine, kind):
    column, keys, sizes = KEYS[kind]
    counted = count_cells(engine(pa.table({"y": [1, 0, None, 1], "p": [0.1, 0.2, 0.3, 0.4], "k": column})), Y_P,
                          threshold=0.5, by="k")  # fmt: skip
    assert counted.keys == {"k": keys}
    assert np.diff(counted.starts).tolist() == sizes


def test_a_category_without_rows_is_no_group(engine):
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2]), pa.array(["a", "nobody", "c"]))
    frame = engine(pa.table({"y": [1, 0, None], "p": [0.1, 0.2, 0.3], "k": column}))
    assert count_cells(frame, Y_P, threshold=0.5, by=["k"]).keys == {"k": ["a", "c"]}


def test_a_group_may_have_no_labels_at_all(engine):
    frame = engine({"y": [1, 0, None, None], "p": [0.1, 0.2, 0.3, 0.4], "k": ["a", "a", "b", "b"]})
    counted = count_cells(frame, Y_P, threshold=0.5, by=["k"])
    assert counted.missing.tolist() == [0, 0, 1, 1]


# ------------------------------------------------------------------------------------------------- periods

TIMES = [dt.datetime(2023, 12, 31, 23, 59), dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 29, 12, 30), None]
TIMES += [dt.datetime(2024, 12, 30, 5), dt.datetime(1969, 7, 20, 20, 17), dt.datetime(2000, 3, 1)]


def start_of(time, every):
    """From the standard library's calendar, as nobody computes in a query."""
    day = time.date() if isinstance(time, dt.datetime) else time
    return {
        "hour": lambda: time.replace(minute=0, second=0, microsecond=0),
        "day": lambda: day,
        "week": lambda: day - dt.timedelta(days=day.weekday()),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "year": lambda: day.replace(month=1, day=1),
    }[every]()


PERIODS = ["hour", "day", "week", "month", "quarter", "year"]
TIME_KINDS = ["dates", "datetimes", "nanoseconds", "with a time zone"]
# Dates have no hours, and asking for them is refused (test_refused).
CUTS = [(period, kind) for period in PERIODS for kind in TIME_KINDS if (period, kind) != ("hour", "dates")]


@pytest.mark.parametrize(("period", "kind"), CUTS)
def test_times_are_cut_into_the_periods_of_the_calendar(engine, period, kind):
    types = {
        "dates": pa.date32(),
        "datetimes": pa.timestamp("us"),
        "nanoseconds": pa.timestamp("ns"),
        "with a time zone": pa.timestamp("us", tz="UTC"),
    }
    values = [None if t is None else t.date() if kind == "dates" else t for t in TIMES]
    size = len(values)
    frame = engine(pa.table({"y": [1] * size, "p": [0.5] * size, "t": pa.array(values, types[kind])}))
    counted = count_cells(frame, Y_P, threshold=0.5, time="t", period=period)
    expected = sorted({start_of(t, period) for t in values if t is not None})
    assert counted.keys == {"t": [*expected, None]}
    assert all(type(found) is (dt.datetime if period == "hour" else dt.date) for found in counted.keys["t"][:-1])


def test_a_period_is_the_last_key(engine):
    frame = engine({"y": [1, 0, 1], "p": [0.1, 0.2, 0.3], "k": ["b", "a", "b"], "t": [dt.date(2024, 5, 6)] * 3})
    counted = count_cells(frame, Y_P, threshold=0.5, by=["k"], time="t", period="month")
    assert counted.keys == {"k": ["a", "b"], "t": [dt.date(2024, 5, 1)] * 2}


# ---------------------------------------------------------------------------------------------- bins


@pytest.mark.parametrize("distinct", [50, 2000])
def test_auto_is_exact_while_distinct_scores_fit(engine, monkeypatch, distinct):
    """With limits two thousand times smaller: 3,000 rows are too many, 50 distinct scores fit and 2,000 do not."""
    monkeypatch.setattr(counting, "MOST_EXACT", 500)
    monkeypatch.setattr(counting, "_BUCKETS", 32)
    rng = np.random.default_rng(0)
    scores = (rng.integers(0, distinct, 3000) / distinct).tolist()
    rows = [(s, [True, False, None][i % 3], None, None, None) for i, s in enumerate(scores)]
    counted = count_cells(engine({"y": [r[1] for r in rows], "p": scores}), Y_P, threshold=0.5)
    if distinct == 50:
        assert_same(counted, exact_cells(rows))
    else:
        assert counted.score_bins == 32
        assert_same(counted, bined_cells(rows, 32))


def test_groups_get_bins_when_rows_are_many(engine, monkeypatch):
    monkeypatch.setattr(counting, "MOST_EXACT", 100)
    rng = np.random.default_rng(0)
    frame = engine({"y": [1, 0] * 150, "p": rng.random(300).tolist(), "k": ["a", "b", "b"] * 100})
    assert count_cells(frame, Y_P, threshold=0.5, by=["k"]).score_bins == 2**16
    # The more groups, the fewer bins each, but not below 1,024.
    monkeypatch.setattr(counting, "_MOST_GROUPED", 2**15)
    assert count_cells(frame, Y_P, threshold=0.5, by=["k"]).score_bins == 2**14
    monkeypatch.setattr(counting, "_MOST_GROUPED", 2**10)
    assert count_cells(frame, Y_P, threshold=0.5, by=["k"]).score_bins == 2**10


def test_columns_may_have_any_name(engine):
    named = {"score": [1, 0, None], "bin": [0.1, 0.2, 0.3], "by 0": ["a", "a", "b"], "sum low": [1.0, 2.0, 1.0]}
    frame = engine(named | {"rows": [0.5] * 3, "decision": [True, False, True], "label": ["x", "y", "z"]})
    columns = ColumnNames("score", "bin", decision="decision", weight="sum low", probability="rows")
    counted = count_cells(frame, columns, threshold=None, by=["by 0", "label"], score_bins=16)
    assert counted.keys == {"by 0": ["a", "a", "b"], "label": ["x", "y", "z"]}
    assert counted.weight.tolist() == [1.0, 2.0, 1.0]
