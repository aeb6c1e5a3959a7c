"""One test, every engine: `engine` turns a table of Python values into a native frame of each of them."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pytest

HEAVY = ("spark", "dask", "ibis")
LIGHT = ("pandas", "pandas-arrow", "polars", "polars-lazy", "pyarrow", "duckdb")
PACKAGES = {
    "pandas": "pandas",
    "pandas-arrow": "pandas",
    "polars": "polars",
    "polars-lazy": "polars",
    "pyarrow": "pyarrow",
    "duckdb": "duckdb",
    "spark": "pyspark",
    "dask": "dask.dataframe",
    "ibis": "ibis",
}


@dataclass(frozen=True)
class Engine:
    """An engine by name, and how a PyArrow table becomes one of its frames."""

    name: str
    convert: Callable[[pa.Table], Any]

    def __call__(self, columns: Mapping[str, Sequence[Any]] | pa.Table) -> Any:
        table = columns if isinstance(columns, pa.Table) else pa.table({k: pa.array(v) for k, v in columns.items()})
        return self.convert(table)


# Ibis calls DuckDB by a name that DuckDB has just deprecated; nothing that this library could change.
IBIS_AND_DUCKDB = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch):DeprecationWarning")
ENGINES = [*LIGHT, *(pytest.param(name, marks=[pytest.mark.heavy_engines, IBIS_AND_DUCKDB]) for name in HEAVY)]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return _engine(request, request.param)


@pytest.fixture
def named_engine(request: pytest.FixtureRequest) -> Callable[[str], Engine]:
    """An engine by its name."""
    return lambda name: _engine(request, name)


def _engine(request: pytest.FixtureRequest, name: str) -> Engine:
    needed(PACKAGES[name])
    if name == "spark":
        return Engine(name, _to_spark(request.getfixturevalue("spark")))
    return Engine(name, _CONVERT[name])


def needed(package: str) -> Any:
    """The package, or a skip that says which one is missing; with DARKMETRICS_NO_SKIP a failure."""
    try:
        __import__(package)
    except ImportError as error:
        missing(f"{package} is not installed ({error})")
    return sys.modules[package]


def missing(reason: str) -> NoReturn:
    if os.environ.get("DARKMETRICS_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in this process: two cores, few partitions, no web page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Spark thinks of the pandas it finds is no concern of these tests
        sql = needed("pyspark.sql")
        try:
            session = (
                sql.SparkSession.builder.master("local[2]")
                .config("spark.ui.enabled", "false")
                .config("spark.sql.shuffle.partitions", "2")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1")
                .getOrCreate()
            )
        except Exception as error:  # noqa: BLE001  # no Java, or one that is too old
            missing(f"Spark does not start: {error}")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _to_spark(session: Any) -> Callable[[pa.Table], Any]:
    def convert(table: pa.Table) -> Any:
        plain = pa.table({name: _for_spark(table[name]) for name in table.column_names})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above: this conversion is the test's, not the library's
            return session.createDataFrame(plain).repartition(2)

    return convert


def _for_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spark has neither categories nor unsigned integers."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.int64()) if pa.types.is_unsigned_integer(column.type) else column


def _to_pandas(table: pa.Table) -> Any:
    frame = table.to_pandas()
    frame.index = [7] * len(frame)  # labels of the index must not matter
    return frame


def _to_pandas_arrow(table: pa.Table) -> Any:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _to_polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def _to_polars_lazy(table: pa.Table) -> Any:
    return _to_polars(table).lazy()


def _duckdb_connection() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")  # calendar fields are those of the session's clock
    return connection


def _to_duckdb(table: pa.Table) -> Any:
    return _duckdb_connection().from_arrow(table)


def _to_dask(table: pa.Table) -> Any:
    import dask.dataframe as dd
    import pandas as pd

    def of(kind: pa.DataType) -> Any:
        # Dask takes columns of Python objects for text, so booleans with nulls, decimals and dates need types.
        if pa.types.is_boolean(kind):
            return pd.BooleanDtype()
        return pd.ArrowDtype(kind) if pa.types.is_decimal(kind) or pa.types.is_date(kind) else None

    return dd.from_pandas(table.to_pandas(types_mapper=of), npartitions=3)


def _to_ibis(table: pa.Table) -> Any:
    ibis = needed("ibis")  # not imported by name: it has no types, and need not be there

    connection = _duckdb_connection()
    connection.from_arrow(table).create("rows")
    return ibis.duckdb.from_connection(connection).table("rows")


_CONVERT = {
    "pandas": _to_pandas,
    "pandas-arrow": _to_pandas_arrow,
    "polars": _to_polars,
    "polars-lazy": _to_polars_lazy,
    "pyarrow": lambda table: table,
    "duckdb": _to_duckdb,
    "dask": _to_dask,
    "ibis": _to_ibis,
}
