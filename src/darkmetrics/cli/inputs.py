"""From a file and the names of its columns to the arguments of the library."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.output import say
from darkmetrics.cli.rows import Rows
from darkmetrics.cli.scanning import can_be_scanned, scanned
from darkmetrics.cli.words import WordedError, worded
from darkmetrics.files import DataFile

# Names that can hardly mean anything else, compared without case, spaces, dashes and underscores.
_LIKELY = {
    "label": ("label", "labels", "target", "y", "ytrue", "truelabel", "truth", "groundtruth", "actual", "outcome"),
    "score": ("score", "scores", "yscore", "prob", "proba", "probability", "yprob", "yproba", "predproba", "phat"),
}
# Bytes: Parquet files beyond this are counted where they lie, since their rows may not fit into memory.
_LARGE = 1 << 26
# Labels in a CSV file that mean missing, besides an empty one: what pandas, R and databases write for it.
MISSING_WORDS = frozenset({"NaN", "nan", "null", "NULL", "None", "NA", "N/A", "<NA>"})


def load(options: DataOptions, **more: str | None) -> Rows:
    """The columns that the options name, or that can be guessed; `more` are further columns by role."""
    with worded():
        file = file_of(options.file, options.input_format)
        names = names_of(file, options, more)
        path = file.source
        if isinstance(path, Path) and path.stat().st_size > _LARGE and can_be_scanned(file, [path]):
            return scanned(file, [path], names, options)
        columns = file.read(list(names.values()), {names["label"]: MISSING_WORDS - {options.pos_label}})
        return Rows.of_columns(file.name, columns, names, options)


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
        return DataFile("standard input", sys.stdin.buffer.read(), stated_format)
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
