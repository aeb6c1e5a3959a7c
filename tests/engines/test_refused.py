"""What cannot be counted is refused in the same words on every engine."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from darkmetrics import InputError
from darkmetrics.frames import ColumnNames, count_cells, counting

NAN, INF = float("nan"), float("inf")
TABLE = {
    "y": [1, 0, None, 1],
    "p": [0.1, 0.2, 0.3, 0.4],
    "words": ["a", "b", "c", "d"],
    "null": [0.1, None, 0.3, None],
    "nan": [0.1, 0.2, NAN, 0.4],
    "infinite": [0.1, INF, 0.3, 0.4],
    "negative": [1.0, -2.0, 1.0, 1.0],
    "zero": [0.0, 0.0, 0.0, 0.0],
    "wide": [1.0, 1.0, 1e10, 1.0],
    "beyond": [0.1, 0.2, 0.3, 1.5],
    "gap": [0.1, 0.2, None, 0.4],
    "three": [1, 0, 1, 2],
    "letters": ["u", "v", "u", "v"],
    "days": [dt.date(2024, 1, 1)] * 4,
}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown label": ({"label": "Yy"}, r"y_true: data has no column 'Yy'\. Did you mean 'y'\?"),
    "unknown score": ({"score": "negativ"}, r"y_score: data has no column 'negativ'\. Did you mean 'negative'\?"),
    "nothing near": (
        {"weight": "qqqqq"},
        r"sample_weight: data has no column 'qqqqq'\. It has 'y', 'p', .* and 2 more\.",
    ),
    "dates as labels": (
        {"label": "days"},
        r"y_true column 'days': (has type Date|found .* at row 0)\. Dates and times are not labels\. Pass two classes",
    ),
    "dates as decisions": (
        {"decision": "days"},
        r"y_pred column 'days': (has type Date|found .* at row 0)\. Dates and times are not labels\.",
    ),
    "two parts": ({"score": "y"}, r"y_score: column 'y' is also y_true\. Each needs a column of its own\."),
    "text scores": ({"score": "words"}, r"y_score column 'words': .*(xpected numbers)"),
    "null scores": (
        {"score": "null"},
        r"y_score column 'null': 2 of 4 values are missing \(null or NaN\)\. Scores must be fin",
    ),
    "NaN scores": ({"score": "nan"}, r"y_score column 'nan': 1 of 4 values is missing \(null or NaN\)\."),
    "infinite scores": (
        {"score": "infinite"},
        r"y_score column 'infinite': 1 of 4 values is not finite \(such as inf\)",
    ),
    "null weights": (
        {"weight": "null"},
        r"sample_weight column 'null': 2 of 4 values are missing \(null or NaN\)\. Weights must",
    ),
    "infinite weights": ({"weight": "infinite"}, r"sample_weight column 'infinite': 1 of 4 values is not finite"),
    "negative weights": (
        {"weight": "negative"},
        r"sample_weight column 'negative': 1 of 4 values is negative \(such as -2\)",
    ),
    "weights of zero": ({"weight": "zero"}, r"sample_weight column 'zero': the weights sum to zero"),
    "weights that differ": ({"weight": "wide"}, r"sample_weight column 'wide': weights from 1 to 1e\+10"),
    "text weights": ({"weight": "words"}, r"sample_weight column 'words': .*(xpected numbers)"),
    "probability above 1": (
        {"probability": "beyond"},
        r"probability column 'beyond': 1 of 4 values is wrong \(such as 1\.5",
    ),
    "no probability": (
        {"probability": "gap"},
        r"probability column 'gap': 1 of 4 values is missing where the label is",
    ),
    "null decisions": ({"decision": "null"}, r"y_pred column 'null': 2 of 4 values are missing\. Every row needs"),
    "three decisions": ({"decision": "three"}, r"y_pred column 'three': a third value 2 in addition to 0 and 1\."),
    "strange decisions": (
        {"decision": "letters"},
        r"y_pred column 'letters': pos_label=1 is not among the predictions \('u",
    ),
}


@pytest.mark.parametrize("score_bins", ["exact", 16])
@pytest.mark.parametrize("case", CASES)
def test_columns_that_break_a_rule_are_refused_by_name(engine, case, score_bins):
    names, message = CASES[case]
    threshold = None if "decision" in names else 0.5
    with pytest.raises(InputError, match="^" + message):
        count_cells(engine(TABLE), ColumnNames(**({"label": "y", "score": "p"} | names)), threshold=threshold,
                    score_bins=score_bins)  # fmt: skip


GROUPS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"by": ["day"]}, r"by: data has no column 'day'\. Did you mean 'days'\?"),
    "key twice": ({"by": ["days", "days"]}, r"by: column 'days' is named twice"),
    "key and time": ({"by": ["days"], "time": "days", "period": "day"}, r"by: column 'days' is named twice"),
    "unknown time": ({"time": "dayz", "period": "day"}, r"time: data has no column 'dayz'"),
    "text as time": (
        {"time": "words", "period": "day"},
        r"time column 'words': has text, and periods need dates\. Cast it",
    ),
    "numbers as time": ({"time": "p", "period": "day"}, r"time column 'p': has type .*\. Periods need dates"),
    "hours of dates": ({"time": "days", "period": "hour"}, r"time column 'days': has dates without a time"),
    "no period": ({"time": "days"}, r"period: missing\. Pass how to cut 'days'"),
    "no time": ({"period": "day"}, r"period: 'day', but no time column is named"),
}


@pytest.mark.parametrize("case", GROUPS)
def test_keys_that_make_no_groups_are_refused_by_name(engine, case):
    settings, message = GROUPS[case]
    with pytest.raises(InputError, match="^" + message):
        count_cells(engine(TABLE), ColumnNames("y", "p"), threshold=0.5, **settings)


def test_a_frame_without_rows_is_refused(engine):
    empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    for score_bins in ("auto", "exact", 64):
        with pytest.raises(InputError, match=r"^data: no rows"):
            count_cells(engine(empty), ColumnNames("y", "p"), threshold=0.5, score_bins=score_bins)


def test_labels_that_are_no_labels_are_refused(engine):
    lists = pa.table({"y": pa.array([[1], [0]]), "p": [0.1, 0.2]})
    if engine.name == "dask":
        lists = pa.table({"y": pa.array([dt.timedelta(1), dt.timedelta(2)]), "p": [0.1, 0.2]})
    with pytest.raises(InputError, match=r"^y_true column 'y': "):
        count_cells(engine(lists), ColumnNames("y", "p"), threshold=0.5)


@pytest.mark.parametrize("score_bins", ["automatic", 15, 2**25, True, 64.0, None])
def test_bins_are_a_word_or_a_number_of_bins(score_bins):
    frame = pa.table({"y": [1, 0], "p": [0.1, 0.2]})
    with pytest.raises(InputError, match=r"^score_bins: "):
        count_cells(frame, ColumnNames("y", "p"), threshold=0.5, score_bins=score_bins)


LIMITS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "weights": (
        "_MOST_WEIGHTED",
        {"weight": "w"},
        {},
        r"sample_weight column 'w': more than 20 cells .* Round the weights",
    ),
    "groups": ("_MOST_GROUPED", {}, {"by": ["k"]}, r"by: more than 20 cells of 64 score bins per group\. Use fewer"),
    "scores": (
        "_MOST_DEMANDED",
        {},
        {"score_bins": "exact"},
        r"score_bins: 'exact', but there are more than 20 cells\.",
    ),
    "decisions": (
        "_MOST_WEIGHTED",
        {"decision": "w"},
        {},
        r"y_pred column 'w': 40 values in 1,000 rows\. Predictions take",
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_more_cells_than_this_process_should_hold_are_refused(engine, monkeypatch, limit):
    constant, names, settings, message = LIMITS[limit]
    monkeypatch.setattr(counting, constant, 20)
    many = [i / 40 for i in range(40)]
    frame = engine({"y": [1, 0] * 20, "p": many, "w": [1.0 + u for u in many], "k": list(range(40))})
    threshold = None if "decision" in names else 0.5
    with pytest.raises(InputError, match="^" + message):
        count_cells(frame, ColumnNames("y", "p", **names), threshold=threshold, **({"score_bins": 64} | settings))
