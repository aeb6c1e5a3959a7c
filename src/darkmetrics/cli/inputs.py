"""From a file and the names of its columns to the arguments of the library."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.output import say
from darkmetrics.cli.words import WordedError, worded
from darkmetrics.files import DataFile

# Names that can hardly mean anything else, compared without case, spaces, dashes and underscores.
_LIKELY = {
    "label": ("label", "labels", "target", "y", "ytrue", "truelabel", "truth", "groundtruth", "actual", "outcome"),
    "score": ("score", "scores", "yscore", "prob", "proba", "probability", "yprob", "yproba", "predproba", "phat"),
}
# Labels in a CSV file that mean missing, besides an empty one: what pandas, R and databases write for it.
_MISSING = frozenset({"NaN", "nan", "null", "NULL", "None", "NA", "N/A", "<NA>"})


@dataclass(frozen=True)
class Rows:
    """Columns of a file, by role, and what they are called there."""

    source: str
    columns: Mapping[str, Any]
    names: Mapping[str, str]
    pos_label: Any
    missing_label: Any

    @property
    def data(self) -> dict[str, Any]:
        """The arguments that hold the rows and say how to read them."""
        arguments = {"label": "y_true", "score": "y_score", "weight": "sample_weight", "pred": "y_pred"}
        columns = {arguments[role]: column for role, column in self.columns.items() if role in arguments}
        return columns | {"pos_label": self.pos_label, "missing_label": self.missing_label}


def load(options: DataOptions, **more: str | None) -> Rows:
    """The columns that the options name, or that can be guessed; `more` are further columns by role."""
    named = {"label": options.label, "score": options.score, "weight": options.weight, **more}
    names = {role: name for role, name in named.items() if name is not None}
    with worded():
        file = _file(options.file, options.input_format)
        for role in ("label", "score"):
            if role not in names:
                names[role] = _guess(file, role, names)
        columns = file.read(list(names.values()), {names["label"]: _MISSING - {options.pos_label}})
        by_role = {role: columns[name] for role, name in names.items()}
        read_as_text = _is_text(by_role["label"], f"column {names['label']!r} (--label)")
    return Rows(
        file.name,
        by_role,
        names,
        _value(options.pos_label, as_text=read_as_text),
        None if options.missing_label is None else _value(options.missing_label, as_text=read_as_text),
    )


def load_reference(path: str | None, rows: Rows) -> tuple[Any, Any] | None:
    """Labels and scores of the reference rows, which have the same columns."""
    if path is None:
        return None
    if path == "-":
        raise WordedError("--reference: standard input cannot be the reference rows. Name a file.")
    with worded():
        label, score = rows.names["label"], rows.names["score"]
        columns = _file(path, None).read([label, score], {label: _MISSING - {str(rows.pos_label)}})
    return columns[label], columns[score]


def _file(path: str, stated_format: str | None) -> DataFile:
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


def _is_text(column: Any, name: str) -> bool:
    """Whether a column of labels holds text, so that a label given on the command line is text as well."""
    from darkmetrics import frames

    labels, missing = frames.label_column(column, name)
    present = labels[~missing]
    return bool(present.size) and isinstance(present[0], (str, bytes))


def _value(text: str, *, as_text: bool) -> Any:
    """A label as the file has it: text among text, else a number or a truth value if it can be one."""
    if as_text:
        return text
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
