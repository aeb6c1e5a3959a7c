"""Files as queries of Polars or DuckDB that have read nothing yet."""

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics.exceptions import InputError
from darkmetrics.files.text import csv_separator
from darkmetrics.frames.collecting import collected

# Words that mean a missing label where a file has no nulls; the same as on the command line.
MISSING_WORDS = frozenset({"NaN", "nan", "null", "NULL", "None", "NA", "N/A", "<NA>"})
# More different labels than this are no classes, and are not worth a look at each.
_MOST_LABELS = 1000


def scanned(files: list[str], kind: str, engine: str, needed: Sequence[str]) -> Any:
    """The rows of all files, with the columns that all of them have; each must have those that are `needed`."""
    if kind == "CSV":
        return (_csv_of_polars if engine == "polars" else _csv_of_duckdb)(files)
    return (_parquet_of_polars if engine == "polars" else _parquet_of_duckdb)(files, needed)


def with_missing_words(frame: Any, label: str, pos_label: Any, missing_label: Any) -> Any:
    """A CSV file with its words for "no label" as nulls; when numbers or truth values remain, they are that."""
    schema = frame.collect_schema()
    if schema.get(label) != nw.String:
        return frame
    words, column = MISSING_WORDS - {str(pos_label)}, nw.col(label)
    found = collected(frame.select(label).unique().head(_MOST_LABELS + 1))[label].to_list()
    present = [value for value in found if value is not None and value not in words]
    if len(found) > _MOST_LABELS or len(present) == len(found) - found.count(None):
        return frame
    known = nw.when(~column.is_in(sorted(words))).then(column)
    if isinstance(pos_label, str) or isinstance(missing_label, str):
        return frame.with_columns(known.alias(label))  # the user speaks of the labels as text
    if all(value.lower() in ("true", "false") for value in present):
        return frame.with_columns(known.str.to_lowercase().alias(label)).with_columns(column == "true")
    if all(_is_number(value) for value in present):
        return frame.with_columns(known.alias(label)).with_columns(column.cast(nw.Float64))
    return frame.with_columns(known.alias(label))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # 1_000 is one in Python alone


def _parquet_of_polars(files: list[str], needed: Sequence[str]) -> Any:
    import polars as pl

    remote, partitioned = _is_remote(files), _partitioned(files)
    alike: dict[Any, list[str]] = {}  # files by their columns: seldom more than a few kinds
    for file in files if len(files) > 1 and not remote else ():
        with _naming(file):
            alike.setdefault(tuple(pl.read_parquet_schema(file).items()), []).append(file)
    if len(alike) < 2:
        return pl.scan_parquet(files, glob=remote, hive_partitioning=partitioned)
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
    whole = [pl.col(name).cast(pl.String) for name in shared if any(name in names for names in text.values())]
    return pl.concat([scan.select(shared).with_columns(whole) for scan in scans.values()], how="vertical_relaxed")


def _parquet_of_duckdb(files: list[str], needed: Sequence[str]) -> Any:
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
    return both.project(", ".join(map(_quoted, shared)))


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Of many files, the one that is damaged."""
    try:
        yield
    except Exception as error:  # engines have errors of their own
        said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise InputError(f"{file}: cannot be read; damaged? ({said})") from error


def _shared(schemas: dict[str, Any], text: dict[str, Any], typed: dict[str, Any], needed: Sequence[str]) -> list[str]:
    """The columns that all files have; a needed one that some lack, or that is text in some only, is refused."""
    first = next(iter(schemas))
    # Values of folders have the types that they look like, which may well differ: part=1, part=rest.
    folders = {part.partition("=")[0] for file in schemas for part in Path(file).parts[:-1] if "=" in part}
    for name in needed:
        have = [file for file, schema in schemas.items() if name in schema]
        lack = next((file for file in schemas if file not in have), None)
        if have and lack is not None:
            raise InputError(f"{lack}: has no column {name!r}, and {have[0]} has. Each file needs it.")
        words = next((file for file in schemas if name in text[file]), None)
        other = next((file for file in schemas if name in typed[file]), None)
        if words is not None and other is not None and name not in folders:
            kind = schemas[other][name]
            raise InputError(
                f"{words}: column {name!r} has text, and {kind} in {other}. Give it one type in all files."
            )
    shared = [name for name in schemas[first] if all(name in schema for schema in schemas.values())]
    return [name for name in shared if not needed or name in needed]


def _csv_of_polars(files: list[str]) -> Any:
    import polars as pl

    # All rows are looked at before types are chosen: a score of 1 may be followed by 0.5 a million rows later.
    return pl.scan_csv(
        files,
        separator=_separator(files),
        glob=_is_remote(files),
        infer_schema_length=None,
        try_parse_dates=True,
    )


def _csv_of_duckdb(files: list[str]) -> Any:
    table = _connection().read_csv(
        [file if "://" in file else glob.escape(file) for file in files],
        header=True,
        sep=_separator(files),
        sample_size=-1,  # all rows, as above
        auto_type_candidates=["BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR"],
    )
    # DuckDB takes "yes" and "no" for booleans too, and then nobody would find the label "yes".
    words = [_quoted(name) for name, kind in zip(table.columns, table.types, strict=True) if str(kind) == "VARCHAR"]
    if not words:
        return table
    found = table.aggregate(", ".join(f"bool_and(lower({name}) in ('true', 'false'))" for name in words)).fetchall()[0]
    truth = [name for name, only in zip(words, found, strict=True) if only]
    return table.project(f"* replace ({', '.join(f'{n}::boolean as {n}' for n in truth)})") if truth else table


def _connection() -> Any:
    import duckdb

    # A connection of its own: settings and tables of the user's default connection are none of our business.
    return duckdb.connect()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _separator(files: list[str]) -> str:
    return "," if _is_remote(files) else csv_separator(Path(files[0]))


def _is_remote(files: list[str]) -> bool:
    return any("://" in file for file in files)


def _partitioned(files: list[str]) -> bool:
    """Whether folders are named after values of a column: month=2024-01/part-0.parquet."""
    return any("=" in part for file in files for part in Path(file).parts[:-1])
