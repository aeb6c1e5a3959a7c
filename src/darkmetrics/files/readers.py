"""Parquet, Arrow, and CSV quickly, by the first DataFrame package that is installed: Polars, PyArrow, pandas."""

import io
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from darkmetrics.exceptions import InputError

# An Arrow stream has a length in front, and no name as Arrow files have.
ARROW_STREAM = b"\xff\xff\xff\xff"
ENGINES = ("polars", "pyarrow", "pandas")
_NONE = f"{', '.join(ENGINES)} are not"
_REMEDY = "pip install 'darkmetrics[files]'."
# Polars is quick, but some damaged files make it end the process; what PyArrow says of them can be caught.
CAREFUL = ("pyarrow", "polars", "pandas")
# Names of columns that Polars takes for patterns of names.
POLARS_PATTERN = re.compile(r"\*|\^.*\$", re.DOTALL)
# Fewer rows of a CSV file are read by the standard library in half the time that it takes to load Polars.
_FEW_ROWS = 20_000


def column_names(source: Path | bytes, kind: str, order: Sequence[str] = ENGINES) -> list[str]:
    """The columns of a Parquet file, an Arrow file or an Arrow stream (the `kind`); the first engine there reads it."""
    return _readers(kind, order)[0](source, kind)  # type: ignore[no-any-return]  # each of them returns a list


def columns(source: Path | bytes, kind: str, names: Sequence[str], order: Sequence[str] = ENGINES) -> dict[str, Any]:
    """The named columns."""
    table = _readers(kind, order)[1](source, kind, list(names))
    return {name: table[name] for name in names}


def csv_columns(
    source: Path | bytes, separator: str, places: Sequence[int], rows: int, as_text: Collection[int] = ()
) -> list[Any] | None:
    """Columns of a CSV file: numbers where all values are and it is not to be kept `as_text`, else lists of text.

    None without Polars, where loading it takes longer than it saves, and where it finds fewer than the `rows` that
    there are.
    """
    if (rows < _FEW_ROWS and "polars" not in sys.modules) or not _installed("polars"):
        return None
    import polars as pl

    order = sorted(places)
    with _opened(source) as stream:
        frame = pl.read_csv(stream, separator=separator, columns=order, infer_schema_length=0, raise_if_empty=False)
    if frame.height < rows:
        return None  # lines that end as they did on the first Macintosh
    frame = frame.head(rows)  # blank lines at the end are no rows
    found = []
    for place in places:
        column = frame.to_series(order.index(place))
        numbers = column.cast(pl.Float64, strict=False)
        plain = place not in as_text and numbers.null_count() == column.null_count()
        found.append(numbers if plain else column.to_list())
    return found


def joined(parts: Sequence[Any]) -> Any:
    """Columns of text files one after the other: as one of Polars if all of them are, else as a list."""
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, list) for part in parts):
        return [value for part in parts for value in part]
    import polars as pl

    return pl.concat(parts)


def parquet_bytes(constants: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """A Parquet file: constants in every row, then arrays; NaN becomes null, and nothing else changes."""
    for engine, writer in _WRITERS.items():
        if _installed(engine):
            return writer(constants, columns, len(next(iter(columns.values()))))
    raise InputError("", f"{_NONE} installed", "Writing Parquet needs one of them.", _REMEDY)


def _installed(engine: str) -> bool:
    try:
        import_module(engine)
    except ImportError:
        return False
    return True


def _readers(kind: str, order: Sequence[str]) -> Any:
    for engine in order:
        if _installed(engine):
            return _READERS[engine]
    raise InputError("", f"{_NONE} installed", f"Reading {kind} needs one of them.", _REMEDY)


def _opened(source: Path | bytes) -> IO[bytes]:
    """The content; never a name, in which an engine may see a pattern ([ ] * ?), a home folder (~) or an address."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _polars_names(source: Path | bytes, kind: str) -> list[str]:
    import polars as pl

    with _opened(source) as stream:
        if kind == "arrow stream":
            return pl.read_ipc_stream(stream, n_rows=0).columns
        return list((pl.read_parquet_schema if kind == "parquet" else pl.read_ipc_schema)(stream))


def _polars_table(source: Path | bytes, kind: str, names: list[str]) -> Any:
    import polars as pl

    wanted = None if any(map(POLARS_PATTERN.fullmatch, names)) else names  # None: all columns
    with _opened(source) as stream:
        if kind == "arrow stream":
            return pl.read_ipc_stream(stream, columns=wanted)
        return (pl.read_parquet if kind == "parquet" else pl.read_ipc)(stream, columns=wanted)


def _pyarrow_names(source: Path | bytes, kind: str) -> list[str]:
    return list(_pyarrow_file(source, kind).schema.names)


def _pyarrow_table(source: Path | bytes, kind: str, names: list[str]) -> Any:
    if kind == "parquet":
        return _pyarrow_file(source, kind).read(columns=names)
    return _pyarrow_file(source, kind).read_all().select(names)


def _pyarrow_file(source: Path | bytes, kind: str) -> Any:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    stream = pa.BufferReader(source) if isinstance(source, bytes) else pa.memory_map(str(source))
    if kind == "parquet":
        return pa.parquet.ParquetFile(stream)
    return pa.ipc.open_stream(stream) if kind == "arrow stream" else pa.ipc.open_file(stream)


def _pandas_names(source: Path | bytes, kind: str) -> list[str]:
    return [str(name) for name in _pandas_table(source, kind, None).columns]


def _pandas_table(source: Path | bytes, kind: str, names: list[str] | None) -> Any:
    import pandas as pd

    with _opened(source) as stream:
        return (pd.read_parquet if kind == "parquet" else pd.read_feather)(stream, columns=names)


def _polars_bytes(constants: Mapping[str, Any], columns: Mapping[str, Any], rows: int) -> bytes:
    import polars as pl

    kinds: dict[type, Any] = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}
    series = [pl.repeat(v, rows, dtype=kinds[type(v)], eager=True).alias(name) for name, v in constants.items()]
    frame = pl.DataFrame([*series, *(pl.Series(name, values) for name, values in columns.items())])
    stream = io.BytesIO()
    frame.fill_nan(None).write_parquet(stream)
    return stream.getvalue()


def _pyarrow_bytes(constants: Mapping[str, Any], columns: Mapping[str, Any], rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    found = {name: pa.repeat(None if v != v else v, rows) for name, v in constants.items()}
    # A null has no type of its own.
    found = {name: array.cast(pa.float64()) if pa.types.is_null(array.type) else array for name, array in found.items()}
    found |= {name: pa.array(values, mask=values != values) for name, values in columns.items()}
    stream = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(found), stream)
    return bytes(stream.getvalue().to_pybytes())


def _pandas_bytes(constants: Mapping[str, Any], columns: Mapping[str, Any], rows: int) -> bytes:
    import pandas as pd

    stream = io.BytesIO()
    frame = pd.DataFrame(dict(columns), index=range(rows)).assign(**constants)
    frame[[*constants, *columns]].to_parquet(stream, index=False)
    return stream.getvalue()


_WRITERS = {"polars": _polars_bytes, "pyarrow": _pyarrow_bytes, "pandas": _pandas_bytes}
_READERS = {
    "polars": (_polars_names, _polars_table),
    "pyarrow": (_pyarrow_names, _pyarrow_table),
    "pandas": (_pandas_names, _pandas_table),
}
