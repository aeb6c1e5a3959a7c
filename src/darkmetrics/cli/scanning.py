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
        if pattern == "-" or not glob.has_magic(pattern) or Path(pattern).exists():
            return [pattern]
    except (OSError, ValueError):  # a name that no file can have, which is said when it is opened
        return [pattern]
    # Path.glob takes no pattern that begins at the root.
    found = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())  # noqa: PTH207
    if not found:
        raise WordedError(f"{pattern}: no file has a name like this.")
    return found


def can_be_scanned(file: DataFile, paths: Sequence[Path]) -> bool:
    """Whether an engine is there that counts these files, of which `file` is the first."""
    named = all(path.suffix.lower() in _SUFFIXES for path in paths)
    return named and file.format == "parquet" and any(find_spec(engine) is not None for engine in _ENGINES)


def scanned(
    file: DataFile, paths: Sequence[Path], names: Mapping[str, str], options: DataOptions, others: Sequence[str] = ()
) -> Rows:
    """The files as a table, of which nothing is read yet; columns by role and `others` must be there."""
    from darkmetrics import frames

    file.check_columns([*names.values(), *others])
    frame = frames.lazy_frame(list(paths))
    kind = str(frame.collect_schema()[names["label"]])
    labels = label_values(options, as_text=kind.startswith(_TEXT))
    return Rows(file.name if len(paths) == 1 else options.file, {}, names, *labels, frame)
