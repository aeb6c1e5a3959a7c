"""Parquet files that an engine counts where they lie, so that their rows never are in memory all at once."""

import glob
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.rows import Rows, label_values
from darkmetrics.cli.words import WordedError
from darkmetrics.files import DataFile

# Engines that count files, and the names of files that they know.
_ENGINES, _SUFFIXES = ("polars", "duckdb"), (".parquet", ".pq")
_TEXT = ("String", "Categorical", "Enum")


def files_of(pattern: str) -> list[str]:
    """The files that a name or a pattern stands for; a file that has such a name is that file."""
    try:
        folder = pattern != "-" and Path(pattern).is_dir()
        if pattern == "-" or not (folder or glob.has_magic(pattern)) or Path(pattern).is_file():
            return [pattern]
    except (OSError, ValueError):  # a name that no file can have, which is said when it is opened
        return [pattern]
    if folder:
        inside = _inside(pattern)
        if not inside:
            raise WordedError(f"{pattern}: no Parquet file in this folder.")
        return inside
    # Path.glob takes no pattern that begins at the root.
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    # '**' matches folders and the files in them; files that begin like this are notes of the program that wrote others.
    files = [name for name in found if Path(name).is_file()]
    files = [name for name in files if Path(name).name[0] not in "._"] or files
    files = files or [file for name in found for file in _inside(name)]
    if not files:
        raise WordedError(f"{pattern}: no file has a name like this.")
    return list(dict.fromkeys(files))


def _inside(folder: str) -> list[str]:
    """The Parquet files of a folder and the folders in it."""
    there = sorted(Path(folder).rglob("*"))
    return [str(path) for path in there if path.suffix.lower() in _SUFFIXES and path.name[0] not in "._"]


def can_be_scanned(file: DataFile, paths: Sequence[Path]) -> bool:
    """Whether an engine is there that counts these files, of which `file` is the first."""
    named = all(path.suffix.lower() in _SUFFIXES for path in paths)
    return named and file.format == "parquet" and any(find_spec(engine) is not None for engine in _ENGINES)


def scanned(
    file: DataFile, paths: Sequence[Path], names: Mapping[str, str], options: DataOptions, others: Sequence[str] = ()
) -> Rows:
    """The files as a table, of which nothing is read yet; columns by role and `others` must be there."""
    from darkmetrics import frames

    # Folders may be named after the values of a column that no file has: month=2026-01/part-0.parquet.
    folders = {part.partition("=")[0] for path in paths for part in path.parts[:-1] if "=" in part}
    file.check_columns([name for name in (*names.values(), *others) if name not in folders])
    frame = frames.lazy_frame(list(paths), [*names.values(), *others])
    schema = frame.collect_schema()
    file.check_columns([name for name in (*names.values(), *others) if name not in schema.names()])
    kind = str(schema[names["label"]])
    labels = label_values(options, as_text=kind.startswith(_TEXT))
    return Rows(file.name if len(paths) == 1 else options.file, {}, names, *labels, frame)
