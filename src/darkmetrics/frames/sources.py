"""Whatever holds rows, as a frame that can be queried: native frames of any engine, and files."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics.exceptions import InputError
from darkmetrics.files import DataFile
from darkmetrics.files.text import csv_separator

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv")


def lazy_frame(frame: Any) -> Any:
    """A narwhals frame of any DataFrame, table or relation, or of Parquet and CSV files, which are not read yet.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import lazy_frame
    >>> lazy_frame(pl.LazyFrame({"p": [0.2, 0.7]})).collect_schema().names()
    ['p']
    """
    paths = _paths(frame)
    if paths:
        return _scan(_files(paths))
    # Frames of narwhals itself may be of another of its stable versions.
    native = getattr(frame, "to_native", lambda: frame)() if type(frame).__module__.startswith("narwhals") else frame
    try:
        found = nw.from_native(native, pass_through=True)
        if isinstance(found, (nw.DataFrame, nw.LazyFrame)):
            found.collect_schema()
            return found
    except nw.exceptions.DuplicateError as error:
        said = " ".join(str(error).split())
        raise InputError(f"frame: column names must differ. {said}") from None
    raise InputError(
        f"frame: expected a DataFrame (pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis) or the path of Parquet or "
        f"CSV files, got type {type(frame).__name__}."
    )


@contextmanager
def reading(frame: Any) -> Iterator[None]:
    """What an engine says against files, as one line that names them; what it says of a user's frame is left alone."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # engines have errors of their own
        paths = _paths(frame)
        if not paths:
            raise
        said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        shown = f"{paths[0]}" + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")
        raise InputError(f"{shown}: cannot be read; damaged, or rows of different columns? ({said})") from error


def _paths(frame: Any) -> Sequence[Any]:
    """The paths, if that is what was given instead of a frame."""
    if isinstance(frame, (str, os.PathLike)):
        return [frame]
    if isinstance(frame, (list, tuple)) and all(isinstance(item, (str, os.PathLike)) for item in frame):
        return frame
    return []


def _files(paths: Sequence[Any]) -> list[str]:
    """Single files, of which each is there; a name that exists is that file, whatever signs are in it."""
    found: list[str] = []
    for path in map(os.fspath, paths):
        if "://" in path:
            found.append(path)  # in a bucket of a cloud, where only the engine can look
        elif Path(path).is_dir():
            # Files that are named otherwise (_SUCCESS, .part-0.parquet.crc) are notes of the program that wrote them.
            inside = [
                p for p in sorted(Path(path).rglob("*")) if p.suffix.lower() in _PARQUET and p.name[0] not in "._"
            ]
            if not inside:
                raise InputError(f"{path}: no Parquet file in this folder.")
            found.extend(map(str, inside))
        elif glob.has_magic(path) and not Path(path).exists():
            matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207  # a pattern may begin anywhere
            if not matches:
                raise InputError(f"{path}: no file matches this pattern.")
            found.extend(_files(matches))
        else:
            DataFile.of_path(Path(path))  # says it in words when it is not there
            if not Path(path).stat().st_size:
                raise InputError(f"{path}: is empty.")
            found.append(path)
    return found


def _scan(files: list[str]) -> Any:
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise InputError(f"{files[0]}: is Parquet or CSV, and other files are not the same. Give files of one format.")
    engine = next((name for name in ("polars", "duckdb") if _importable(name)), None)
    if engine is None:
        raise InputError(
            f"{files[0]}: reading files takes Polars or DuckDB, and neither is there (pip install polars)."
        )
    kind = kinds.pop()
    with reading(files):
        found = nw.from_native((_polars if engine == "polars" else _duckdb)(files, kind))
        found.collect_schema()
    return found


def _kind(file: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(file).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _PARQUET:
        return "Parquet"
    if last in _CSV:
        return "CSV"
    known = ", ".join((*_PARQUET, *_CSV))
    raise InputError(f"{file}: its name does not say Parquet or CSV ({known}). Rename it, or read it into a DataFrame.")


def _polars(files: list[str], kind: str) -> Any:
    import polars as pl

    remote = any("://" in file for file in files)
    if kind == "Parquet":
        return pl.scan_parquet(files, glob=remote, hive_partitioning=_partitioned(files))
    # All rows are looked at before types are chosen: a score of 1 may be followed by 0.5 a million rows later.
    return pl.scan_csv(
        files,
        separator="," if remote else csv_separator(Path(files[0])),
        glob=remote,
        infer_schema_length=None,
        try_parse_dates=True,
    )


def _duckdb(files: list[str], kind: str) -> Any:
    import duckdb

    # A connection of its own: settings and tables of the user's default connection are none of our business.
    connection: Any = duckdb.connect()
    names = [file if "://" in file else glob.escape(file) for file in files]
    if kind == "Parquet":
        return connection.read_parquet(names, hive_partitioning=_partitioned(files))
    remote = any("://" in file for file in files)
    table = connection.read_csv(
        names,
        header=True,
        sep="," if remote else csv_separator(Path(files[0])),
        sample_size=-1,  # all rows, as above
        auto_type_candidates=["BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR"],
    )
    # DuckDB takes "yes" and "no" for booleans too, and then nobody would find the label "yes".
    words = [name for name, kind in zip(table.columns, table.types, strict=True) if str(kind) == "VARCHAR"]
    if not words:
        return table
    quoted = ['"' + name.replace('"', '""') + '"' for name in words]
    found = table.aggregate(", ".join(f"bool_and(lower({name}) in ('true', 'false'))" for name in quoted)).fetchall()[0]
    truth = [name for name, only in zip(quoted, found, strict=True) if only]
    return table.project(f"* replace ({', '.join(f'{n}::boolean as {n}' for n in truth)})") if truth else table


def _partitioned(files: list[str]) -> bool:
    """Whether folders are named after values of a column: month=2024-01/part-0.parquet."""
    return any("=" in part for file in files for part in Path(file).parts[:-1])


def _importable(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
