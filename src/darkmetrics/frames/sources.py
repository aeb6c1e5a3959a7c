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
from darkmetrics.frames.native import check_levels
from darkmetrics.frames.scans import scanned

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv")


def lazy_frame(frame: Any, needed: Sequence[str] = ()) -> Any:
    """A narwhals frame of any DataFrame, table or relation, or of Parquet and CSV files, which are not read yet.

    Of files, each must have the columns that are `needed`; others only count if all files have them.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import lazy_frame
    >>> lazy_frame(pl.LazyFrame({"p": [0.2, 0.7]})).collect_schema().names()
    ['p']
    """
    paths = _paths(frame)
    if paths:
        return _scan(_files(paths), needed)
    if isinstance(frame, (list, tuple)) and not frame:
        raise InputError(f"frame: the {type(frame).__name__} is empty. Name at least one file.")
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
        if any("://" in os.fspath(path) for path in paths):
            raise InputError(
                f"{shown}: cannot be read; is the address right, and is access granted? ({said})"
            ) from error
        raise InputError(f"{shown}: cannot be read; damaged, or rows of different columns? ({said})") from error


def is_csv(frame: Any) -> bool:
    """Whether CSV files were given, which have no types of their own."""
    paths = _paths(frame)
    return bool(paths) and all(_kind(file) == "CSV" for file in _files(paths))


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
    for given in paths:
        path = os.fspath(given)
        if "://" not in path:
            path = os.path.expanduser(path)  # noqa: PTH111  # a pattern is no Path
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
            # "**" matches folders and the files in them: each file counts once.
            found.extend(dict.fromkeys(os.path.normpath(file) for file in _files(matches)))
        else:
            DataFile.of_path(Path(path))  # says it in words when it is not there
            if not Path(path).stat().st_size:
                raise InputError(f"{path}: is empty.")
            found.append(path)
    return found


def _scan(files: list[str], needed: Sequence[str]) -> Any:
    kinds = {_kind(file): file for file in files}
    if len(kinds) > 1:
        (first, one), (second, other) = kinds.items()
        raise InputError(f"{one}: is {first}, and {other} is {second}. Give files of one format.")
    engine = next((name for name in ("polars", "duckdb") if _importable(name)), None)
    if engine is None:
        raise InputError(
            f"{files[0]}: reading files takes Polars or DuckDB, and neither is there (pip install polars)."
        )
    with reading(files):
        found = nw.from_native(scanned(files, next(iter(kinds)), engine, needed))
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


def _importable(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
