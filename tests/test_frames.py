"""Columns of every engine come in the same, and what is no column is refused in words."""

import datetime as dt
import re
import subprocess
import sys
from array import array
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from darkmetrics import InputError
from darkmetrics.frames import label_column, number_column, to_native_frame, value_column

NAN = float("nan")
ODD_INDEX = [7, 7, 3, -1, 0]  # duplicates, and not in order: positions count, labels of the index do not

GAPS = [False, False, True, False, True]

# Five rows each: positive, negative, missing, positive, missing.
LABELS_WITH_GAPS = {
    "list of None": [1, 0, None, 1, None],
    "list of NaN": [1, 0, NAN, 1, NAN],
    "tuple": (1, 0, None, 1, None),
    "deque": deque([1, 0, None, 1, None]),
    "list of bools": [True, False, None, True, None],
    "list of every gap": [1, 0, pd.NA, 1.0, pd.NaT],
    "list with masked": [1, 0, np.ma.masked, True, None],
    "list with numpy NaT": [1, 0, np.datetime64("NaT", "s"), 1, None],
    "Decimal": [Decimal(1), Decimal(0), Decimal("nan"), Decimal(1), Decimal("sNaN")],
    "Fraction": [Fraction(1), Fraction(0), None, Fraction(1), None],
    "float16": np.array([1, 0, NAN, 1, NAN], np.float16),
    "float32": np.array([1, 0, NAN, 1, NAN], np.float32),
    "float64": np.array([1, 0, NAN, 1, NAN]),
    "longdouble": np.array([1, 0, NAN, 1, NAN], np.longdouble),
    "other byte order": np.array([1, 0, NAN, 1, NAN], ">f8"),
    "strided": np.array([1, 5, 0, 5, NAN, 5, 1, 5, NAN, 5])[::2],
    "object array": np.array([1, 0, None, 1, NAN], dtype=object),
    "masked int": np.ma.masked_array([1, 0, 7, 1, 7], mask=GAPS),
    "masked float with NaN": np.ma.masked_array([1, 0, NAN, 1, 7.0], mask=[False, False, False, False, True]),
    "masked object": np.ma.masked_array(
        np.array([1, 0, [1, 2], 1, None], dtype=object), mask=[False, False, True, False, False]
    ),
    "pandas float": pd.Series([1, 0, NAN, 1, NAN], index=ODD_INDEX),
    "pandas Int64": pd.Series([1, 0, None, 1, None], dtype="Int64", index=ODD_INDEX),
    "pandas Float64": pd.Series([1, 0, None, 1, None], dtype="Float64", index=ODD_INDEX),
    "pandas boolean": pd.Series([True, False, None, True, None], dtype="boolean", index=ODD_INDEX),
    "pandas object": pd.Series([1, 0, None, 1, pd.NA], dtype=object, index=ODD_INDEX),
    "pandas category": pd.Series([1, 0, None, 1, None], dtype="category", index=ODD_INDEX),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1, 0, NAN, 1, NAN])),
    "pandas Arrow int": pd.Series([1, 0, None, 1, None], dtype="int8[pyarrow]", index=ODD_INDEX),
    "pandas Arrow double": pd.Series([1, 0, None, 1, None], dtype="double[pyarrow]", index=ODD_INDEX),
    "pandas Arrow NaN and null": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1, 0, NAN, 1, None]))),
    "pandas Arrow bool": pd.Series([True, False, None, True, None], dtype="bool[pyarrow]", index=ODD_INDEX),
    "pandas array": pd.array([1, 0, None, 1, None], dtype="Int64"),
    "pandas Index": pd.Index([1, 0, NAN, 1, NAN]),
    "polars int": pl.Series([1, 0, None, 1, None]),
    "polars int8": pl.Series([1, 0, None, 1, None], dtype=pl.Int8),
    "polars uint64": pl.Series([1, 0, None, 1, None], dtype=pl.UInt64),
    "polars int128": pl.Series([1, 0, None, 1, None], dtype=pl.Int128),
    "polars NaN and null": pl.Series([1.0, 0.0, NAN, 1.0, None]),
    "polars float32": pl.Series([1.0, 0.0, NAN, 1.0, None], dtype=pl.Float32),
    "polars bool": pl.Series([True, False, None, True, None]),
    "polars name of a pattern": pl.Series("^x.*$", [1, 0, None, 1, None]),
    "polars decimal": pl.Series([1, 0, None, 1, None], dtype=pl.Decimal(5, 2)),
    "polars object": pl.Series([1, 0, None, 1, None], dtype=pl.Object),
    "arrow int": pa.array([1, 0, None, 1, None]),
    "arrow bool": pa.array([True, False, None, True, None]),
    "arrow NaN and null": pa.array([1, 0, NAN, 1, None], pa.float32()),
    "arrow decimal": pa.array([Decimal(1), Decimal(0), None, Decimal(1), None]),
    "arrow chunks": pa.chunked_array([[1, 0, None], [], [1, None]], pa.int64()),
}

TEXT_WITH_GAPS = {
    "list": ["yes", "no", None, "yes", NAN],
    "object array": np.array(["yes", "no", None, "yes", pd.NA], dtype=object),
    "masked": np.ma.masked_array(["yes", "no", "a", "yes", "b"], mask=GAPS),
    "numpy string": np.array(["yes", "no", None, "yes", None], dtype=np.dtypes.StringDType(na_object=None)),
    "numpy string NaN": np.array(["yes", "no", NAN, "yes", NAN], dtype=np.dtypes.StringDType(na_object=NAN)),
    "pandas object": pd.Series(["yes", "no", None, "yes", None], dtype=object, index=ODD_INDEX),
    "pandas str": pd.Series(["yes", "no", None, "yes", None], dtype="str", index=ODD_INDEX),
    "pandas string": pd.Series(["yes", "no", None, "yes", None], dtype="string", index=ODD_INDEX),
    "pandas python string": pd.Series(["yes", "no", None, "yes", None], dtype="string[python]", index=ODD_INDEX),
    "pandas Arrow string": pd.Series(["yes", "no", None, "yes", None], dtype=pd.ArrowDtype(pa.string())),
    "pandas category": pd.Series(["yes", "no", None, "yes", None], dtype="category", index=ODD_INDEX),
    "pandas Categorical": pd.Categorical(["yes", "no", None, "yes", None]),
    "polars String": pl.Series(["yes", "no", None, "yes", None]),
    "polars Enum": pl.Series(["yes", "no", None, "yes", None], dtype=pl.Enum(["no", "yes"])),
    "polars Categorical": pl.Series(["yes", "no", None, "yes", None], dtype=pl.Categorical),
    "arrow string": pa.array(["yes", "no", None, "yes", None]),
    "arrow large string": pa.array(["yes", "no", None, "yes", None], pa.large_string()),
    "arrow string view": pa.array(["yes", "no", None, "yes", None], pa.string_view()),
    "arrow dictionary": pa.array(["yes", "no", None, "yes", None]).dictionary_encode(),
    "arrow chunks": pa.chunked_array([["yes"], ["no", None], ["yes", None]]),
}

DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(2020, 1, 1), None]
DATES_WITH_GAPS = {
    "list": DAYS,
    "numpy": np.array(["2020-01-01", "2020-01-02", "NaT", "2020-01-01", "NaT"], "M8[D]"),
    "polars": pl.Series(DAYS),
    "arrow": pa.array(DAYS),
}


@pytest.mark.parametrize("values", LABELS_WITH_GAPS.values(), ids=LABELS_WITH_GAPS.keys())
def test_labels_and_gaps_are_the_same_in_every_container(values):
    labels, missing = label_column(values, "y_true")
    assert missing.tolist() == GAPS
    assert [bool(label == 1) for label in labels[~missing]] == [True, False, True]
    assert [bool(label == 0) for label in labels[~missing]] == [False, True, False]


@pytest.mark.parametrize("values", TEXT_WITH_GAPS.values(), ids=TEXT_WITH_GAPS.keys())
def test_text_and_gaps_are_the_same_in_every_container(values):
    labels, missing = label_column(values, "y_true")
    assert missing.tolist() == GAPS
    assert labels[~missing].tolist() == ["yes", "no", "yes"]


@pytest.mark.parametrize("values", DATES_WITH_GAPS.values(), ids=DATES_WITH_GAPS.keys())
def test_dates_stay_dates_beside_gaps(values):
    days, missing = value_column(values, "time")
    assert missing.tolist() == GAPS
    assert days[~missing].tolist() == [DAYS[0], DAYS[1], DAYS[0]]


MOMENTS = np.array(["NaT", "2020-01-01", "2020-01-02"], "M8[ns]")
NO_LABELS = {
    **DATES_WITH_GAPS,
    "nanoseconds": MOMENTS,
    "durations": MOMENTS - MOMENTS[1],
    "masked": np.ma.masked_array(MOMENTS, mask=[True, False, False]),
    "objects": np.array([None, *MOMENTS[1:]], dtype=object),
    "date among numbers": [1, 0, None, dt.date(2020, 1, 1)],
    "datetimes": [dt.datetime(2020, 1, 1), None],
    "times of day": pl.Series([dt.time(1), None]),
    "timedeltas": [dt.timedelta(days=1), None],
    "pandas": pd.Series(MOMENTS),
    "pandas with a zone": pd.Series(MOMENTS).dt.tz_localize("UTC"),
    "pandas index": pd.DatetimeIndex(MOMENTS),
    "pandas period": pd.Series(pd.PeriodIndex(["2020-01", "2020-02"], freq="M")),
    "pandas category": pd.Series(MOMENTS).astype("category"),
    "polars duration": pl.Series([dt.timedelta(days=1), None]),
}


@pytest.mark.parametrize("values", NO_LABELS.values(), ids=NO_LABELS.keys())
def test_label_column_refuses_dates_and_times(values):
    with pytest.raises(InputError) as error:
        label_column(values, "y_true")
    assert re.match(r"y_true: found .* of type \w+ at row [0-3]\. Dates and times are not labels\.", str(error.value))
    assert "1577" not in str(error.value)  # a date, and not its nanoseconds since 1970


def test_label_column_takes_nothing_but_nat_as_missing():
    labels, missing = label_column(np.array(["NaT", "NaT"], "M8[ns]"), "y_true")
    assert (labels.dtype.kind, missing.tolist()) == ("f", [True, True])


@pytest.mark.parametrize("empty", [pl.Series([None] * 3), pa.nulls(3), pd.Series([None] * 3), [pd.NA] * 3])
def test_a_column_of_nothing_but_gaps_is_all_missing(empty):
    assert label_column(empty, "y_true")[1].tolist() == [True] * 3


@pytest.mark.parametrize("text", ["nan", "", "None", "<NA>", "null", "?"])
def test_no_text_is_a_gap_by_itself(text):
    labels, missing = label_column(["a", text, "b"], "y_true")
    assert not missing.any()
    assert labels.tolist() == ["a", text, "b"]


def test_whole_numbers_beyond_every_float_are_labels():
    huge = 10**400
    labels, missing = label_column([huge, 0, None], "y_true")
    assert labels[~missing].tolist() == [huge, 0]


def test_text_beside_numbers_stays_text():
    labels, _ = label_column([1, "1", True, None], "y_true")
    assert labels.tolist()[:3] == [1, "1", True]
    assert isinstance(labels[1], str)


NUMBERS = {
    "list": [0.5, -2, 3],
    "ints": np.array([5, -20, 30], np.int8),
    "float32": np.array([0.5, -2, 3], np.float32),
    "Decimal": [Decimal("0.5"), Decimal(-2), Decimal(3)],
    "Fraction": [Fraction(1, 2), -2, 3],
    "array.array": array("d", [0.5, -2, 3]),
    "pandas": pd.Series([0.5, -2, 3], index=[9, 9, 1]),
    "pandas Float64": pd.Series([0.5, -2, 3], dtype="Float64"),
    "pandas category": pd.Series([0.5, -2, 3], dtype="category"),
    "pandas Arrow": pd.Series([0.5, -2, 3], dtype="double[pyarrow]"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([0.5, -2, 3])),
    "polars": pl.Series([0.5, -2.0, 3.0]),
    "polars Decimal": pl.Series([0.5, -2.0, 3.0]).cast(pl.Decimal(5, 2)),
    "arrow": pa.array([0.5, -2, 3]),
    "arrow chunks": pa.chunked_array([[0.5], [-2, 3]], pa.float64()),
    "masked": np.ma.masked_array([0.5, -2, 3]),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_are_the_same_in_every_container(values):
    numbers = number_column(values, "y_score")
    assert numbers.dtype == np.float64
    assert (numbers if numbers[0] < 1 else numbers / 10).tolist() == [0.5, -2.0, 3.0]


@pytest.mark.parametrize(
    "values",
    [
        [0.5, None, 3],
        [0.5, pd.NA, 3],
        [0.5, np.ma.masked, 3],
        [Decimal("0.5"), Decimal("nan"), 3],
        np.ma.masked_array([0.5, 9.0, 3], mask=[False, True, False]),
        pd.Series([0.5, None, 3], dtype="Float64"),
        pl.Series([0.5, None, 3.0]),
        pl.Series([0.5, None, 3.0]).cast(pl.Decimal(5, 2)),
        pa.array([0.5, None, 3]),
    ],
)
def test_a_null_among_numbers_is_nan(values):
    np.testing.assert_array_equal(number_column(values, "y_score"), [0.5, NAN, 3.0])


def test_a_float64_array_is_not_copied():
    values = np.array([0.5, 1.0])
    assert number_column(values, "y_score") is values


NO_NUMBERS = {
    "text": (["0.1", "0.2"], "found '0.1' of type str at row 0"),
    "text beside numbers": ([0.1, "0.2"], "found '0.2' of type str at row 1"),
    "pandas string": (pd.Series(["0.1"], dtype="string"), "found '0.1' of type str at row 0"),
    "polars string": (pl.Series(["0.1"]), "found '0.1' of type str at row 0"),
    "numpy string": (np.array(["0.1"], dtype=np.dtypes.StringDType()), "found '0.1' of type str at row 0"),
    "bytes": (np.array([b"1"]), "found b'1' of type bytes at row 0"),
    "complex": ([0.1, 1j], "found (0.1+0j) of type complex at row 0"),
    "complex objects": (np.array([0.1, 1j], dtype=object), "found 1j of type complex at row 1"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "found datetime.date(2020, 1, 1) of type date at row 0"),
    "nanoseconds": (np.array(["2020-01-01"], "M8[ns]"), "found datetime.datetime(2020, 1, 1, 0, 0) of type datetime"),
    "pandas dates": (pd.Series(pd.to_datetime(["2020"])), "of type Timestamp at row 0"),
    "polars dates": (pl.Series([dt.date(2020, 1, 1)]), "of type date at row 0"),
    "durations": (np.array([1, 2], "m8[D]"), "of type timedelta at row 0"),
    "records": (np.zeros(1, dtype=[("a", "f4")]), "of type tuple at row 0"),
    "arrays inside": (np.array([1, np.array([1, 2])], dtype=object), "found array([1, 2]) of type ndarray at row 1"),
    "lists inside": (pl.Series([[0.5, 0.5]]), "found [0.5, 0.5] of type list at row 0"),
    "objects": ([object()], "of type object at row 0"),
    "huge": ([10**400], "the number at row 0 is too large for a 64-bit float"),
}


@pytest.mark.parametrize(("values", "message"), NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
def test_what_is_no_number_is_named_with_its_row(values, message):
    with pytest.raises(InputError) as error:
        number_column(values, "y_score")
    assert str(error.value).startswith("y_score: ")
    assert message in str(error.value)


NO_COLUMNS = {
    "None": (None, "got None"),
    "number": (1.5, "got 1.5"),
    "numpy number": (np.float64(1.5), "got np.float64(1.5)"),
    "text": ("abc", "got 'abc'"),
    "bytes": (b"abc", "got b'abc'"),
    "dict": ({"a": 1}, "got a dict. Pass one of its values"),
    "set": ({1, 0}, "got a set, which has no order"),
    "generator": ((i for i in (1, 0)), "got a generator, which can be read only once. Make it a list"),
    "map": (map(int, "10"), "got a map, which can be read only once"),
    "object": (object(), "got type object"),
    "arrow scalar": (pa.scalar(1), "got type Int64Scalar"),
    "pandas frame": (pd.DataFrame({"a": [1], "b": [0]}), "got a DataFrame ('a', 'b'). Pass one of its columns"),
    "polars frame": (pl.DataFrame({"a": [1]}), "got a DataFrame ('a'). Pass one of its columns"),
    "polars lazy frame": (pl.LazyFrame({"a": [1]}), "got a LazyFrame ('a'). Pass one of its columns"),
    "arrow table": (pa.table({"a": [1]}), "got a Table ('a'). Pass one of its columns"),
    "no axis": (np.array(1.0), "got the single value 1.0"),
    "two axes": (np.ones((3, 3)), "got an array of shape (3, 3)"),
    "one column": (np.ones((3, 1)), "got an array of shape (3, 1). Flatten it: y[:, 0]"),
    "nested list": ([[1], [0]], "got an array of shape (2, 1)"),
    "masked, two axes": (np.ma.masked_array([[1, 0], [1, 0], [1, 1]]), "got an array of shape (3, 2)"),
}


@pytest.mark.parametrize("read", [label_column, number_column])
@pytest.mark.parametrize("case", NO_COLUMNS)
def test_what_is_no_column_is_refused_in_words(read, case):
    values, message = NO_COLUMNS[case]
    with pytest.raises(InputError) as error:
        read(values, "y")
    assert str(error.value).startswith("y: expected ")
    assert "per row" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("values", [np.full((4, 2), 0.5), [[0.5, 0.5]] * 4])
def test_predict_proba_output_gets_the_hint_which_column_to_pass(values):
    with pytest.raises(
        InputError, match=r"y_score: .*shape \(4, 2\)\. For predict_proba output pass .*y_score\[:, 1\]"
    ):
        number_column(values, "y_score")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [0, 1], 1], "found [1] of type list at row 0"),
        ([1, 0, {1}], "found {1} of type set at row 2"),
        (np.array([None, np.array([1, 2])], dtype=object), "found array([1, 2]) of type ndarray at row 1"),
        (pl.Series([[1], [0]]), "found [1] of type list at row 0"),
        (pl.Series([{"a": 1}, None]), "found {'a': 1} of type dict at row 0"),
    ],
)
def test_a_label_that_holds_several_values_is_refused(values, message):
    with pytest.raises(InputError) as error:
        label_column(values, "y_true")
    assert str(error.value).startswith("y_true: expected one label per row, ")
    assert message in str(error.value)


def test_records_are_refused_as_labels():
    with pytest.raises(InputError, match=r"^y_true: records of type .*'a', '<i4'.*one value per row\. Pass one field"):
        label_column(np.zeros(2, dtype=[("a", "i4")]), "y_true")


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(InputError) as error:
        label_column([["a" * 10_000], 1], "y_true")
    assert len(str(error.value)) < 200


def test_an_array_that_cannot_be_read_says_why():
    class OnAnotherDevice:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("copy it to the host first")

    with pytest.raises(InputError, match=r"y_true: .*OnAnotherDevice.*copy it to the host first"):
        label_column(OnAnotherDevice(), "y_true")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_the_engine_asked_for(backend):
    frame = to_native_frame({"a": [1.5, NAN], "b": ["x", "y"]}, backend)
    assert type(frame).__module__.split(".")[0] == backend
    columns = frame.to_pydict() if backend == "pyarrow" else frame.to_dict(**_as_lists(backend))
    assert columns["b"] == ["x", "y"]
    assert columns["a"][0] == 1.5
    assert columns["a"][1] != columns["a"][1]


def _as_lists(backend):
    return {"as_series": False} if backend == "polars" else {"orient": "list"}


def test_the_first_engine_installed_is_the_default(monkeypatch):
    assert isinstance(to_native_frame({"a": [1]}), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(to_native_frame({"a": [1]}), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(to_native_frame({"a": [1]}), pa.Table)


def test_no_engine_installed_is_an_error_that_names_the_way_out(monkeypatch):
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"to_frame: pandas, polars and pyarrow are not installed\. .* to_dict\(\)"):
        to_native_frame({"a": [1]})
    with pytest.raises(InputError, match="backend: 'polars' is not installed"):
        to_native_frame({"a": [1]}, "polars")


@pytest.mark.parametrize("backend", ["panda", "numpy", 1, ["pandas"]])
def test_an_unknown_engine_is_refused(backend):
    with pytest.raises(InputError, match=r"backend: .* It must be 'pandas', 'polars', 'pyarrow' or None"):
        to_native_frame({"a": [1]}, backend)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.float64()], ids=str)
def test_arrow_slices_and_chunks_come_in_as_their_own_lists_have_them(kind):
    rng = np.random.default_rng(0)
    for gaps in (0.0, 0.4, 1.0):
        items = [
            None if rng.random() < gaps else bool(one) if pa.types.is_boolean(kind) else one % 2 for one in range(40)
        ]
        whole = pa.array(items, kind)
        column = pa.chunked_array([whole[3:17], whole[:0], whole[8:9], whole[11:]], kind)
        expected = [NAN if one is None else float(one) for one in column.to_pylist()]
        np.testing.assert_array_equal(number_column(column, "column"), expected)
        labels, missing = label_column(column, "column")
        np.testing.assert_array_equal(missing, np.isnan(expected))
        np.testing.assert_array_equal(np.where(missing, NAN, labels), expected)


def test_counting_in_duckdb_does_not_wait_for_pandas():
    code = """
import sys
import duckdb
import darkmetrics as dm
columns = "i % 7 / 7 AS score, CASE WHEN i % 3 > 0 THEN i % 2 END AS label, i % 2 = 0 AS half"
rows = duckdb.sql(f"SELECT {columns} FROM range(90) t(i)")
data = dm.EvaluationSet("label", "score", data=rows, y_pred="half")
print(data.n_rows, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["90", "False"]
