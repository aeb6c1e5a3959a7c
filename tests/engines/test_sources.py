"""Files and frames of every make are sources of rows; what is none is refused in words."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import narwhals.stable.v1 as nw_v1
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkmetrics import InputError
from darkmetrics.frames import ColumnNames, count_cells, lazy_frame, sources

Y_P = ColumnNames("y", "p")
TABLE = pa.table({"y": [1, 0, None, 1], "p": [0.1, 0.2, 0.3, 0.4]})


def scores(source: Any) -> list[float]:
    return list(count_cells(source, Y_P, threshold=0.5).score)


@pytest.fixture(params=["polars", "duckdb"])
def reader(request, monkeypatch):
    """Files are read with Polars, or with DuckDB where there is no Polars."""
    if request.param == "duckdb":
        real = sources._importable
        monkeypatch.setattr(sources, "_importable", lambda name: name != "polars" and real(name))
    return request.param


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_parquet_file(here, reader):
    pq.write_table(TABLE, "a.parquet")
    assert scores("a.parquet") == scores(Path("a.parquet")) == [0.1, 0.2, 0.3, 0.4]
    assert count_cells("a.parquet", Y_P, threshold=0.5).missing.tolist() == [0, 0, 1, 0]


def test_patterns_folders_and_lists_of_files(here, reader):
    days = here / "days"
    days.mkdir()
    for day in range(3):
        pq.write_table(TABLE, days / f"part-{day}.parquet")
    (days / "_SUCCESS").write_text("")
    (days / ".part-0.parquet.crc").write_text("x")
    for source in (
        "days/*.parquet",
        "days",
        days,
        sorted(days.glob("*.parquet")),
        ["days/part-0.parquet", "days/part-[12]*"],
    ):
        counted = count_cells(source, Y_P, threshold=0.5)
        assert (counted.positives + counted.negatives + counted.missing).tolist() == [3, 3, 3, 3]


def test_folders_that_are_partitioned_have_the_partition_as_a_column(here, reader):
    for month in ("2024-01", "2024-02"):
        (here / f"data/month={month}").mkdir(parents=True)
        pq.write_table(TABLE, here / f"data/month={month}/part-0.parquet")
    counted = count_cells("data", Y_P, threshold=0.5, by=["month"])
    assert [str(value)[:7] for value in counted.keys["month"]] == ["2024-01", "2024-02"]


def test_names_with_brackets_that_exist_are_files(here, reader):
    pq.write_table(TABLE, "run[1].parquet")
    pq.write_table(TABLE.slice(0, 2), "run1.parquet")
    assert scores("run[1].parquet") == [0.1, 0.2, 0.3, 0.4]
    Path("run[1].parquet").unlink()
    assert scores("run[1].parquet") == [0.1, 0.2]


def test_csv_files_have_empty_labels_for_missing_ones(here, reader):
    Path("a.csv").write_text("y,p,when\n1,0.1,2024-01-01\n0,1,2024-01-02\n,0.3,2024-02-01\n")
    counted = count_cells("a.csv", Y_P, threshold=0.5, time="when", period="month")
    assert counted.missing.sum() == 1
    assert [str(key) for key in counted.keys["when"]] == ["2024-01-01", "2024-02-01"]
    Path("b.tsv").write_text("y\tp\nyes\t0.1\nno\t0.2\n\t0.3\n")
    counted = count_cells("b.tsv", Y_P, threshold=0.5, pos_label="yes")
    assert (counted.positives.sum(), counted.negatives.sum(), counted.missing.sum()) == (1, 1, 1)
    Path("c.csv").write_text("y;p\ntrue;0.1\nfalse;0.2\n;0.3\n")
    counted = count_cells("c.csv", Y_P, threshold=0.5)
    assert (counted.positives.sum(), counted.negatives.sum(), counted.missing.sum()) == (1, 1, 1)


def test_csv_types_are_those_of_all_rows(here, reader):
    """Whole numbers for 30,000 rows, and then half a one."""
    Path("late.csv").write_text("y,p\n" + "1,1\n" * 30_000 + "0,0.5\n")
    assert scores("late.csv") == [0.5, 1.0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("scored.parquett", r"scored\.parquett: no such file\. Did you mean 'scored\.parquet'\?"),
        ("nothing-*.parquet", r"nothing-\*\.parquet: no file matches this pattern\."),
        ("empty", r"empty: no Parquet file in this folder\."),
        ("notes.txt", r"notes\.txt: its name does not say Parquet or CSV"),
        ("damaged.parquet", r"damaged\.parquet: cannot be read; damaged"),
        ("ragged.csv", r"ragged\.csv: line 3 has 4 values, but the header has 2\."),
        ("nothing.csv", r"nothing\.csv: is empty\."),
        (
            ["scored.parquet", "table.csv"],
            r"scored\.parquet: is Parquet, and table\.csv is CSV\. Pass files of one format\.",
        ),
        ({"y": [1]}, r"data: type dict\. It must be a DataFrame .* or the path of"),
        (np.zeros((2, 2)), r"data: type ndarray\. It must be a DataFrame .* or the path of"),
        (None, r"data: type NoneType\. It must be a DataFrame .* or the path of"),
        ([], r"data: an empty list\. Pass at least one file\."),
        (pl.Series([1]), r"data: type Series\. It must be a DataFrame .* or the path of"),
    ],
)
def test_what_holds_no_rows_is_refused_in_words(here, reader, source, message):
    pq.write_table(TABLE, "scored.parquet")
    Path("empty").mkdir()
    Path("notes.txt").write_text("hello")
    Path("table.csv").write_text("y,p\n1,0.5\n")
    Path("damaged.parquet").write_bytes(b"PAR1 and so on")
    Path("ragged.csv").write_text("y,p\n1,0.5\n,0.25,7,8\n0,1\n")
    Path("nothing.csv").write_text("")
    with pytest.raises(InputError, match=r"^" + message):
        count_cells(source, Y_P, threshold=0.5)


def test_without_polars_and_duckdb_it_says_what_to_install(here, monkeypatch):
    pq.write_table(TABLE, "scored.parquet")
    monkeypatch.setattr(sources, "_importable", lambda name: False)
    with pytest.raises(
        InputError, match=r"^scored\.parquet: Polars and DuckDB are not installed\. .* pip install polars\."
    ):
        lazy_frame("scored.parquet")


def test_frames_of_narwhals_of_any_version(here):
    for frame in (nw.from_native(TABLE), nw_v1.from_native(TABLE), nw.from_native(pl.DataFrame(TABLE)).lazy()):
        assert scores(frame) == [0.1, 0.2, 0.3, 0.4]


def test_relations_stay_with_their_connection():
    connection = duckdb.connect()
    connection.execute("create temp table scored as select 1 as y, 0.5 as p union all select null, 0.25")
    assert scores(connection.table("scored")) == [0.25, 0.5]
    assert scores(connection.sql("select y, p / 2 as p from scored")) == [0.125, 0.25]


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 0.5, 0.5]], columns=["y", "p", "p"])
    with pytest.raises(InputError, match=r"^data: column names must differ"):
        lazy_frame(frame)


PANDAS_LABELS = {
    "objects": pd.Series([True, False, None, True], dtype=object),
    "every gap": pd.Series([1, 0, pd.NA, 1.0], dtype=object),
    "nullable integers": pd.Series([1, 0, None, 1], dtype="Int64"),
    "nullable booleans": pd.Series([True, False, None, True], dtype="boolean"),
    "categories of numbers": pd.Series([1, 0, None, 1], dtype="category"),
    "sparse": pd.Series(pd.arrays.SparseArray([1, 0, np.nan, 1])),
}


@pytest.mark.parametrize("kind", PANDAS_LABELS)
def test_pandas_columns_of_every_kind(kind):
    frame = pd.DataFrame({"y": PANDAS_LABELS[kind], "p": [0.1, 0.2, 0.3, 0.4]})
    frame.index = [3, 3, 1, 0]
    counted = count_cells(frame, Y_P, threshold=0.5)
    assert counted.positives.tolist() == [1, 0, 0, 1]
    assert counted.negatives.tolist() == [0, 1, 0, 0]
    assert counted.missing.tolist() == [0, 0, 1, 0]


def test_pandas_objects_of_several_types_are_told_apart():
    frame = pd.DataFrame({"y": pd.Series(["1", 1, None, 2.5], dtype=object), "p": [0.1, 0.2, 0.3, 0.4]})
    counted = count_cells(frame, Y_P, threshold=0.5)
    assert counted.positives.tolist() == [0, 1, 0, 0]
    assert set(counted.labels) == {"1", 2.5, 1}


def test_pandas_categories_of_numbers_are_keys():
    frame = pd.DataFrame({"y": [1, 0, 1], "p": [0.1, 0.2, 0.3], "k": pd.Series([10, 9, None], dtype="category")})
    assert count_cells(frame, Y_P, threshold=0.5, by="k").keys == {"k": [9, 10, None]}


def test_a_column_without_a_type_has_only_missing_labels():
    for frame in (pl.DataFrame({"y": [None, None], "p": [0.1, 0.2]}), pa.table({"y": pa.nulls(2), "p": [0.1, 0.2]}),
                  pd.DataFrame({"y": [None, None], "p": [0.1, 0.2]})):  # fmt: skip
        assert count_cells(frame, Y_P, threshold=0.5).missing.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("kind", "last"),
    [
        *((kind, 2**60) for kind in ("int64", "uint64", "Int64", "int64[pyarrow]", "object")),
        *((kind, None) for kind in ("Int64", "int64[pyarrow]", "object")),
    ],
)
def test_pandas_labels_beyond_floats_are_told_apart(kind, last):
    frame = pd.DataFrame({"y": pd.Series([2**60, 2**60 + 1, last], dtype=kind), "p": [0.1, 0.2, 0.3]})
    counted = count_cells(frame, Y_P, threshold=0.5, pos_label=2**60 + 1)
    assert counted.positives.tolist() == [0, 1, 0]
    assert counted.missing.tolist() == [0, 0, int(last is None)]
    assert counted.labels == [2**60, 2**60 + 1]


@pytest.mark.parametrize("zone", ["America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC", "+02:00"])
def test_pandas_times_are_cut_by_the_clocks_of_their_zone(zone):
    """An hour before and an hour after midnight there."""
    times = pd.Series(pd.to_datetime(["2024-01-31 23:00", "2024-02-01 01:00", None])).dt.tz_localize(zone)
    frame = pd.DataFrame({"y": [1, 0, 1], "p": [0.1, 0.2, 0.3], "t": times})
    counted = count_cells(frame, Y_P, threshold=0.5, time="t", period="month")
    assert [str(key) for key in counted.keys["t"]] == ["2024-01-01", "2024-02-01", "None"]


def test_pandas_types_that_are_no_times_are_called_by_their_name():
    frame = pd.DataFrame({"y": [1, 0], "p": [0.1, 0.2], "t": pd.period_range("2024-01", periods=2, freq="D")})
    with pytest.raises(InputError, match=r"^time column 't': has type period\[D\]\. Periods need dates or datetimes"):
        count_cells(frame, Y_P, threshold=0.5, time="t", period="month")


def test_pandas_names_of_several_levels_are_refused():
    frame = pd.DataFrame([[1, 0.5]], columns=pd.MultiIndex.from_tuples([("a", "y"), ("a", "p")]))
    with pytest.raises(InputError, match=r"^data: its columns have names of several levels\. Flatten them first"):
        count_cells(frame, Y_P, threshold=0.5)


ODD_NAMES = ["*", "^p.*$", 'a"b', '"', "a.b", "COLUMNS(*)", "COLUMNS('p.*')", "* EXCLUDE p2", "a`b", "by 0", "score"]
ODD_TABLE = {"p2": [0.9, 0.8, 0.7, 0.6], "y": [1, 0, None, 1]}
FOUR = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_columns_are_names(engine, name):
    score = count_cells(engine({**ODD_TABLE, name: FOUR}), ColumnNames("y", name), threshold=0.5)
    assert score.score.tolist() == FOUR
    assert score.missing.tolist() == [0, 0, 1, 0]
    key = count_cells(engine({**ODD_TABLE, name: FOUR}), ColumnNames("y", "p2"), threshold=0.5, by=[name])
    assert key.keys == {name: FOUR}
    label = count_cells(engine({"p2": FOUR, name: ODD_TABLE["y"]}), ColumnNames(name, "p2"), threshold=0.5)
    assert label.missing.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_columns_are_names_in_files_of_different_columns(here, reader, name):
    table = pa.table({**ODD_TABLE, name: FOUR})
    pq.write_table(table.slice(0, 2), "a.parquet")
    pq.write_table(table.slice(2).append_column("more", pa.array([1, 2])), "b.parquet")
    cells = count_cells("*.parquet", ColumnNames("y", name), threshold=0.5)
    assert cells.score.tolist() == FOUR
    assert cells.missing.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("name", ["*", "^p.*$", 'a"b'])
def test_odd_names_of_columns_are_names_where_text_has_several_types(here, reader, name):
    pq.write_table(pa.table({"y": [1, 0], "p": [0.1, 0.2], name: ["a", "b"]}), "a.parquet")
    kinds = pa.array(["a", "b"]).dictionary_encode()
    pq.write_table(pa.table({"y": [1, 0], "p": [0.3, 0.4], name: kinds}), "b.parquet")
    assert count_cells("*.parquet", Y_P, threshold=0.5, by=[name]).keys == {name: ["a", "b"]}


def test_keys_that_hold_lists_are_refused():
    lists = {"y": [1, 0], "p": [0.1, 0.2], "k": [[1], [2]]}
    for frame in (pd.DataFrame(lists), pl.DataFrame(lists), pa.table(lists), pl.LazyFrame(lists)):
        with pytest.raises(InputError, match=r"^by column 'k': has .*\. A key needs one value per row\."):
            count_cells(frame, Y_P, threshold=0.5, by="k")


@pytest.mark.heavy_engines
def test_dask_groups_by_floats_of_arrow(named_engine):
    named_engine("dask")
    import dask.dataframe as dask

    values = pa.array([1.5, None, float("nan"), 0.0, -0.0, 2.0] * 100)
    table = pa.table({"y": [1, 0] * 300, "p": [0.5, 0.25, 0.125] * 200, "k": values})
    frame = dask.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)
    counted = count_cells(frame, Y_P, threshold=0.5, by="k")
    rows = counted.positives + counted.negatives
    assert counted.keys == {"k": [0.0, 1.5, 2.0, None]}
    assert np.add.reduceat(rows, counted.starts[:-1]).tolist() == [200, 100, 100, 200]


@pytest.mark.heavy_engines
def test_dask_times_are_cut_by_the_clocks_of_their_zone(named_engine):
    named_engine("dask")
    import dask.dataframe as dask

    times = pd.to_datetime(["2024-01-31 23:00", "2024-02-01 01:00"]).tz_localize("America/New_York")
    frame = dask.from_pandas(pd.DataFrame({"y": [1, 0], "p": [0.1, 0.2], "t": times}), npartitions=2)
    counted = count_cells(frame, Y_P, threshold=0.5, time="t", period="month")
    assert [str(key) for key in counted.keys["t"]] == ["2024-01-01", "2024-02-01"]


def test_importing_frames_imports_no_engine():
    code = "import sys, darkmetrics.frames; print({'polars', 'pandas', 'duckdb', 'pyarrow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("pattern", ["**", "*", "**/*.parquet"])
def test_a_file_that_a_pattern_matches_twice_counts_once(tmp_path, pattern):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pl.DataFrame({"y": [1, 0, None], "p": [0.9, 0.2, 0.7]}).write_parquet(tmp_path / name / "x.parquet")
    cells = count_cells(str(tmp_path / pattern), ColumnNames("y", "p"), threshold=0.5)
    assert (cells.positives + cells.negatives + cells.missing).sum() == 6
