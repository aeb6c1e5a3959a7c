"""Parquet files that an engine counts where they lie, so that their rows never are in memory all at once."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.rows import Rows, label_values
from darkmetrics.files import PARQUET, DataFile

# Engines that count files.
_ENGINES = ("polars", "duckdb")
_TEXT = ("String", "Categorical", "Enum")


def can_be_scanned(files: Sequence[DataFile]) -> bool:
    """Whether an engine is there that counts these files."""
    named = all(isinstance(file.source, Path) and file.source.suffix.lower() in PARQUET for file in files)
    return named and files[0].format == "parquet" and any(find_spec(engine) is not None for engine in _ENGINES)


def scanned(
    files: Sequence[DataFile], names: Mapping[str, str], options: DataOptions, others: Sequence[str] = ()
) -> Rows:
    """The files as a table, of which nothing is read yet; columns by role and `others` must be there."""
    from darkmetrics import frames

    first, paths = files[0], [Path(file.name) for file in files]
    # Folders may be named after the values of a column that no file has: month=2026-01/part-0.parquet.
    folders = {part.partition("=")[0] for path in paths for part in path.parts[:-1] if "=" in part}
    first.check_columns([name for name in (*names.values(), *others) if name not in folders])
    frame = frames.lazy_frame(paths, [*names.values(), *others])
    schema = frame.collect_schema()
    first.check_columns([name for name in (*names.values(), *others) if name not in schema.names()])
    kind = str(schema[names["label"]])
    labels = label_values(options, as_text=kind.startswith(_TEXT))
    return Rows(first.name if len(files) == 1 else options.file, {}, names, *labels, frame)
