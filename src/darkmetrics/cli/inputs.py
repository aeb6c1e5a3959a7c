"""From a file and the names of its columns to the arguments of the library."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from darkmetrics.cli.messages import WordedError, worded
from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.output import say
from darkmetrics.cli.rows import Rows
from darkmetrics.cli.scanning import can_be_scanned, scanned
from darkmetrics.cli.streams import standard_input
from darkmetrics.files import (
    MISSING_WORDS,
    TEXT_FORMATS,
    DataFile,
    check_one_format,
    files_named,
    read_together,
)

# Names that can hardly mean anything else, compared without case, spaces, dashes and underscores.
_LIKELY = {
    "label": ("label", "labels", "target", "y", "ytrue", "truelabel", "truth", "groundtruth", "actual", "outcome"),
    "score": ("score", "scores", "yscore", "prob", "proba", "probability", "yprob", "yproba", "predproba", "phat"),
}
# Bytes: Parquet files beyond this are counted where they lie, since their rows may not fit into memory.
_LARGE = 1 << 26


def load(options: DataOptions, **more: str | None) -> Rows:
    """The columns that the options name, or that can be guessed; `more` are further columns by role."""
    with worded():
        files = files_of(options)
        names = names_of(files[0], options, more)
        if (len(files) > 1 or _is_large(files[0])) and can_be_scanned(files):
            return scanned(files, names, options)
        return read_rows(files, names, options)


def paths_of(given: str) -> list[str]:
    """The files that FILE stands for; - is standard input."""
    with worded():
        return [given] if given == "-" else files_named(given, "FILE")


def files_of(options: DataOptions) -> list[DataFile]:
    """The files that FILE stands for, opened: of one format, and of one that can be read from several files."""
    files = [file_of(path, options.input_format) for path in paths_of(options.file)]
    if len(files) > 1 and not can_be_scanned(files):
        check_one_format({file.format_name: file.name for file in files})
        if files[0].format not in TEXT_FORMATS:
            raise WordedError(
                f"{options.file}: {len(files):,} files. Several must be text, or Parquet for Polars or DuckDB to count."
            )
    return files


def read_rows(
    files: Sequence[DataFile], names: Mapping[str, str], options: DataOptions, others: Sequence[str] = ()
) -> Rows:
    """The columns by role, and `others` by their own names, in memory."""
    wanted = list(dict.fromkeys([*names.values(), *others]))
    columns = read_together(files, wanted, {names["label"]: MISSING_WORDS - {options.pos_label}})
    source = files[0].name if len(files) == 1 else options.file
    return Rows.of_columns(source, columns, names, options)


def _is_large(file: DataFile) -> bool:
    return isinstance(file.source, Path) and file.source.stat().st_size > _LARGE


def names_of(file: DataFile, options: DataOptions, more: Mapping[str, str | None]) -> dict[str, str]:
    """The columns by role: those that are named, and label and score, which are guessed if they are not."""
    named = {"label": options.label, "score": options.score, "weight": options.weight, **more}
    names = {role: name for role, name in named.items() if name is not None}
    for role in ("label", "score"):
        if role not in names:
            names[role] = _guess(file, role, names)
    return names


def load_reference(path: str | None, names: Mapping[str, str], pos_label: Any) -> tuple[Any, Any] | None:
    """Labels and scores of the reference rows, which have the same columns."""
    if path is None:
        return None
    if path == "-":
        raise WordedError("--reference: standard input cannot be the reference rows. Name a file.")
    with worded():
        label, score = names["label"], names["score"]
        columns = file_of(path, None).read([label, score], {label: MISSING_WORDS - {str(pos_label)}})
    return columns[label], columns[score]


def file_of(path: str, stated_format: str | None) -> DataFile:
    """The file of that name, or what comes through standard input."""
    if path == "-":
        return DataFile("standard input", standard_input(), stated_format)
    return DataFile.of_path(Path(path), stated_format)


def _guess(file: DataFile, role: str, taken: Mapping[str, str]) -> str:
    likely = [name for name in file.column_names if "".join(filter(str.isalnum, name.lower())) in _LIKELY[role]]
    # A column that has another role is the score only if there is no other: scores may be the probabilities as well.
    likely = [name for name in likely if name not in taken.values()] or [
        name for name in likely if name == taken.get("prob")
    ]
    if len(likely) == 1:
        say(f"Taking column {likely[0]!r} as --{role}.")
        return likely[0]
    if len(set(likely)) == 1:
        raise file.repeated_column(likely[0])
    if likely:
        raise WordedError(f"{file.name}: --{role} could be {' or '.join(map(repr, likely))}. Say which.")
    there = file.columns_in_words()
    raise WordedError(f"{file.name}: cannot tell which column is the {role}. Say --{role}; there are {there}.")
