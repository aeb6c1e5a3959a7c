"""Whatever holds rows, as a frame that can be queried: native frames of any engine, and files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics.exceptions import InputError
from darkmetrics.files import PARQUET, DataFile, check_one_format, files_named, read_together
from darkmetrics.frames.arrays import to_native_frame
from darkmetrics.frames.collecting import collected
from darkmetrics.frames.engines import check_levels
from darkmetrics.frames.roles import check_name, unknown_column
from darkmetrics.frames.scans import scanned

_CSV = (".csv", ".tsv")


def lazy_frame(frame: Any, needed: Sequence[str] = ()) -> Any:
    """A narwhals frame of any DataFrame, table or relation, or of files: Parquet is not read yet, CSV is.

    Of files, which `files_named` finds, each must have the columns that are `needed`; others only count if all files
    have them.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import lazy_frame
    >>> lazy_frame(pl.LazyFrame({"p": [0.2, 0.7]})).collect_schema().names()
    ['p']
    """
    files = files_given(frame)
    if files is not None:
        return _scan(files, needed)
    # Frames of narwhals itself may be of another of its stable versions.
    native = getattr(frame, "to_native", lambda: frame)() if type(frame).__module__.startswith("narwhals") else frame
    check_levels(native)
    try:
        found = nw.from_native(native, pass_through=True)
        if isinstance(found, (nw.DataFrame, nw.LazyFrame)):
            found.collect_schema()
            return found
    except nw.exceptions.DuplicateError as error:
        said = " ".join(str(error).split())
        raise InputError("data", "column names must differ", said) from None
    raise InputError(
        "data",
        f"type {type(frame).__name__}",
        "It must be a DataFrame (pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis), or the path of Parquet or CSV "
        "files.",
    )


def collect_columns(frame: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a frame of any engine, or of files, in memory.

    If the frame lacks one, return its columns as keys without values.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import collect_columns
    >>> collect_columns(pl.LazyFrame({"p": [0.2, 0.7], "q": [1, 2]}), ["p"])["p"].to_list()
    [0.2, 0.7]
    """
    table = lazy_frame(frame)
    known = table.collect_schema().names()
    selected = [name for name in names if name in known]
    if len(selected) < len(names):  # the caller names the first that is not there
        return dict.fromkeys(known)
    with reading(files_given(frame)):
        rows = collected(table.select(selected))
    return {name: rows[name].to_native() for name in selected}


def read_columns(data: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return columns of a table as they are in memory, by the arguments that name them.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import read_columns
    >>> read_columns(pl.LazyFrame({"p": [0.2, 0.7], "day": [1, 2]}), {"y_score": "p"})["y_score"].to_list()
    [0.2, 0.7]
    """
    if not names:
        return {}
    for argument, name in names.items():
        check_name(argument, name)
    wanted = list(dict.fromkeys(names.values()))
    files = files_given(data)
    with reading(files):
        frame = lazy_frame(data if files is None else files, wanted)
        known = frame.collect_schema().names()
        for argument, name in names.items():
            if name not in known:
                raise unknown_column(argument, name, known)
        table = collected(frame.select(*wanted))
    return {argument: table[name].to_native() for argument, name in names.items()}


@contextmanager
def reading(files: Sequence[str] | None) -> Iterator[None]:
    """What an engine says against files, as one line that names them; what it says of a user's frame is left alone."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except BaseException as error:
        # Engines have errors of their own, and what panics in Rust is not even an Exception.
        if files is None or not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        shown = files[0] + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")
        if any("://" in file for file in files):
            raise InputError(shown, f"cannot be read; is the address right, and is access granted? ({said})") from error
        raise InputError(shown, f"cannot be read; damaged? ({said})") from error


def files_given(frame: Any) -> list[str] | None:
    """The files, each of which is there, if paths were given instead of a frame; else None."""
    listed = isinstance(frame, (list, tuple)) and all(isinstance(item, (str, os.PathLike)) for item in frame)
    if not listed and not isinstance(frame, (str, os.PathLike)):
        return None
    files = files_named(frame, "data")
    for file in files:
        if "://" not in file:
            DataFile.of_path(Path(file))  # says it in words when it is not there
            if not Path(file).stat().st_size:
                raise InputError(file, "is empty")
    return files


def are_text(files: Sequence[str]) -> bool:
    """Whether they are CSV files, which have no types of their own; Parquet and CSV do not go together."""
    kinds = {_kind(file): file for file in files}
    check_one_format(kinds)
    return "CSV" in kinds


def _scan(files: Sequence[str], needed: Sequence[str]) -> Any:
    if are_text(files):
        first = DataFile.of_path(Path(files[0]))
        columns = read_together([DataFile.of_path(Path(file)) for file in files], needed or first.column_names)
        return nw.from_native(to_native_frame(columns))
    engine = next((name for name in ("polars", "duckdb") if _importable(name)), None)
    if engine is None:
        raise InputError(
            files[0], "Polars and DuckDB are not installed", "Reading files needs one of them.", "pip install polars."
        )
    with reading(files):
        found = nw.from_native(scanned(files, engine, needed))
        found.collect_schema()
    return found


def _kind(file: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(file).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in PARQUET:
        return "Parquet"
    if last in _CSV:
        if "://" in file:
            raise InputError(file, "CSV cannot be read from an address", "", "Read it into a DataFrame first.")
        return "CSV"
    known = ", ".join((*PARQUET, *_CSV))
    raise InputError(
        file, f"its name does not say Parquet or CSV ({known})", "", "Rename it, or read it into a DataFrame."
    )


def _importable(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
