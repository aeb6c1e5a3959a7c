"""Parquet files as queries of Polars or DuckDB that have read nothing yet."""

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.frames.engines import quoted


def scanned(files: Sequence[str], engine: str, needed: Sequence[str]) -> Any:
    """The rows of all files, with the columns that all of them have; each must have those that are `needed`."""
    return (_parquet_of_polars if engine == "polars" else _parquet_of_duckdb)(files, needed)


def _parquet_of_polars(files: Sequence[str], needed: Sequence[str]) -> Any:
    import polars as pl
    from polars.selectors import by_name  # takes every name as it is, and none for a pattern

    remote, partitioned = _is_remote(files), _partitioned(files)
    alike: dict[Any, list[str]] = {}  # files by their columns: seldom more than a few kinds
    for file in files if len(files) > 1 and not remote else ():
        with _naming(file), Path(file).open("rb") as stream:  # in a name Polars would see a pattern
            alike.setdefault(tuple(pl.read_parquet_schema(stream).items()), []).append(file)
    if len(alike) < 2:
        return pl.scan_parquet(list(files), glob=remote, hive_partitioning=partitioned)
    scans = {some[0]: pl.scan_parquet(some, glob=False, hive_partitioning=partitioned) for some in alike.values()}
    schemas = {file: dict(scan.collect_schema()) for file, scan in scans.items()}
    text = {
        file: {name for name, kind in schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)}
        for file, schema in schemas.items()
    }
    typed = {
        file: {name for name, kind in schema.items() if kind != pl.Null and name not in text[file]}
        for file, schema in schemas.items()
    }
    shared = _shared(schemas, text, typed, needed)
    whole = by_name(*(name for name in shared if any(name in names for names in text.values()))).cast(pl.String)
    columns = by_name(*shared)
    return pl.concat([scan.select(columns).with_columns(whole) for scan in scans.values()], how="vertical_relaxed")


def _parquet_of_duckdb(files: Sequence[str], needed: Sequence[str]) -> Any:
    connection, partitioned = _connection(), _partitioned(files)
    names = [file if "://" in file else glob.escape(file) for file in files]
    if len(files) < 2 or _is_remote(files):
        return connection.read_parquet(names, hive_partitioning=partitioned)
    schemas = {}
    for file, name in zip(files, names, strict=True):
        with _naming(file):
            one = connection.read_parquet(name, hive_partitioning=partitioned)
        schemas[file] = {column: str(kind) for column, kind in zip(one.columns, one.types, strict=True)}
    if len({tuple(schema.items()) for schema in schemas.values()}) < 2:
        return connection.read_parquet(names, hive_partitioning=partitioned)
    text = {file: {name for name, kind in schema.items() if kind == "VARCHAR"} for file, schema in schemas.items()}
    typed = {
        file: {name for name, kind in schema.items() if kind not in ("VARCHAR", '"NULL"', "NULL")}
        for file, schema in schemas.items()
    }
    shared = _shared(schemas, text, typed, needed)
    both = connection.read_parquet(names, hive_partitioning=partitioned, union_by_name=True)
    return both.project(", ".join(map(quoted, shared)))


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Of many files, the one that is damaged."""
    try:
        yield
    except Exception as error:  # engines have errors of their own
        said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise InputError(file, f"cannot be read; damaged? ({said})") from error


def _shared(schemas: dict[str, Any], text: dict[str, Any], typed: dict[str, Any], needed: Sequence[str]) -> list[str]:
    """The columns that all files have; a needed one that some lack, or that is text in some only, is refused."""
    first = next(iter(schemas))
    # Values of folders have the types that they look like, which may well differ: part=1, part=rest.
    folders = {part.partition("=")[0] for file in schemas for part in Path(file).parts[:-1] if "=" in part}
    for name in needed:
        have = [file for file, schema in schemas.items() if name in schema]
        lack = next((file for file in schemas if file not in have), None)
        if have and lack is not None:
            raise InputError(lack, f"has no column {name!r}, and {have[0]} has", "Each file needs it.")
        words = next((file for file in schemas if name in text[file]), None)
        other = next((file for file in schemas if name in typed[file]), None)
        if words is not None and other is not None and name not in folders:
            kind = schemas[other][name]
            raise InputError(
                words,
                f"column {name!r} has text, but {kind} in {other}",
                "A column must have one type in all files.",
            )
    shared = [name for name in schemas[first] if all(name in schema for schema in schemas.values())]
    return [name for name in shared if not needed or name in needed]


def _connection() -> Any:
    import duckdb

    # A connection of its own: settings and tables of the user's default connection are none of our business.
    return duckdb.connect()


def _is_remote(files: Sequence[str]) -> bool:
    return any("://" in file for file in files)


def _partitioned(files: Sequence[str]) -> bool:
    """Whether folders are named after values of a column: month=2024-01/part-0.parquet."""
    return any("=" in part for file in files for part in Path(file).parts[:-1])
