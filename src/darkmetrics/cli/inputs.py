"""From files and names of columns to the arguments of the library: read, or left to an engine that counts them."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import darkmetrics as dm
from darkmetrics._text import counted, number_from
from darkmetrics.cli.messages import COLUMNS, ROWS
from darkmetrics.cli.options import DataOptions
from darkmetrics.cli.output import in_words, say
from darkmetrics.cli.settings import command_line
from darkmetrics.cli.streams import standard_input
from darkmetrics.exceptions import InputError
from darkmetrics.files import (
    MISSING_WORDS,
    PARQUET,
    TEXT_FORMATS,
    DataFile,
    check_one_format,
    files_named,
    read_together,
)

# Packages that raise errors of their own for files that cannot be read.
_READERS = ("polars", "duckdb", "narwhals")
# Engines that count files.
_ENGINES = ("polars", "duckdb")
_TEXT = ("String", "Categorical", "Enum")
# Bytes: larger Parquet files are counted by an engine, since their rows may not fit into memory.
_LARGE = 1 << 26
# Options that name columns of dates, which only tables have.
_TIMES = ("scored_at", "labeled_at")


@dataclass(frozen=True)
class Rows:
    """Columns in memory, or a table that an engine counts, and which column plays which part."""

    source: str
    data: Any
    names: Mapping[str, str]  # by option
    pos_label: Any
    missing_label: Any
    scores: Mapping[str, str] | None = None  # column of each class, if there are several

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the library that name the columns and tell how to read labels."""
        columns: dict[str, Any] = {
            argument: self.names[option] for argument, option in ROWS.items() if option in self.names
        }
        if self.scores is not None:
            columns["y_score"] = self.scores
        return {**columns, "data": self.data, "pos_label": self.pos_label, "missing_label": self.missing_label}

    @property
    def described(self) -> dict[str, str]:
        """The file and the columns by option, for a report."""
        return {"file": self.source, **{f"{option} column": name for option, name in self.names.items()}}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Word what an engine raises for a file while it counts as one line that names the file."""
        try:
            yield
        except BaseException as error:
            engine = type(error).__module__.partition(".")[0].lstrip("_")
            # What panics in Rust is not even an Exception.
            if engine not in _READERS and type(error).__name__ != "PanicException":
                raise
            reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            raise InputError(self.source, f"cannot be read; damaged or incomplete? ({reason})") from error


def load(options: DataOptions, *, by: Sequence[str] = (), time: str | None = None, others: Sequence[str] = ()) -> Rows:
    """Return the rows of the files, with the columns that the options name or that can be guessed.

    `by` and `time` are further columns, for groups: the rows are then a table. So are `others`, to be read only.
    """
    files = files_of(options)
    scores = class_columns(files[0], options)
    if scores is not None:
        names = names_of(files[0], replace(options, score=None), guess=("label",))
        is_scanned = (len(files) > 1 or _is_large(files[0])) and _can_be_scanned(files)
        rows = (_scanned if is_scanned else read_rows)(files, names, options, [*scores.values(), *others])
        return replace(rows, scores=scores)
    given: Any = options.score
    if isinstance(given, list):
        options = replace(options, score=given[0] if given else None)
    names = names_of(files[0], options)
    groups = list(dict.fromkeys([*by, *([] if time is None else [time])]))
    is_large = len(files) > 1 or _is_large(files[0])
    if (groups or is_large) and _can_be_scanned(files):
        return _scanned(files, names, options, [*groups, *others])
    rows = read_rows(files, names, options, [*groups, *others])
    if not groups and not any(option in names for option in _TIMES):
        return rows
    with in_words(names):
        return _as_table(rows, by, time)


def paths_of(given: str | Sequence[str]) -> list[str]:
    """Return the files that FILE stands for; - is standard input."""
    given = [given] if isinstance(given, str) else given
    if "-" in given and len(given) > 1:
        raise InputError("FILE", "standard input (-) with files", "", "Pass standard input alone, or files.")
    return list(given) if list(given) == ["-"] else files_named(given, "FILE")


def files_of(options: DataOptions) -> list[DataFile]:
    """Return the files that FILE stands for, of one format that can be read from several files."""
    files = [file_of(path, options.input_format) for path in paths_of(options.file)]
    if len(files) > 1 and not _can_be_scanned(files):
        check_one_format({file.format_name: file.name for file in files})
        if files[0].format not in TEXT_FORMATS:
            raise InputError(
                _source(options),
                f"{len(files):,} files",
                "Several files must be text, or Parquet that Polars or DuckDB counts.",
            )
    return files


def file_of(path: str, stated_format: str | None = None) -> DataFile:
    """Return the file of a name, or standard input."""
    if path == "-":
        return DataFile("standard input", standard_input(), stated_format)
    return DataFile.of_path(Path(path), stated_format)


def read_rows(
    files: Sequence[DataFile], names: Mapping[str, str], options: DataOptions, others: Sequence[str] = ()
) -> Rows:
    """Return the columns of the options, and `others`, in memory."""
    from darkmetrics import frames

    classes = {names["label"]: MISSING_WORDS - {options.pos_label}}
    if "pred" in names:
        classes[names["pred"]] = frozenset()
    columns = read_together(files, list(dict.fromkeys([*names.values(), *others])), classes)
    labels, missing = frames.label_column(columns[names["label"]], f"column {names['label']!r} (--label)")
    present = labels[~missing]
    as_text = bool(present.size) and isinstance(present[0], (str, bytes))
    return Rows(_source(options, files), columns, names, *_label_values(options, as_text=as_text))


def stored_counts(options: DataOptions, paths: Sequence[str]) -> dm.EvaluationSet | None:
    """Return the counts that files have stored; None where they have rows."""
    if options.label is None and options.score is None and all(path.endswith(".parquet") for path in paths):
        # A table of rows has no counts, and its columns are then guessed.
        with suppress(dm.InputError):
            return dm.EvaluationSet.from_parquet(paths)
    return None


def read_reference(
    path: str | None, names: Mapping[str, str], pos_label: Any, scores: Mapping[str, str] | None = None
) -> dm.missing.Reference | None:
    """Return the reference rows of a file, which have the same columns; `scores` has those of several classes."""
    if path is None:
        return None
    if scores is not None:
        columns = read_reference_columns(path, names["label"], list(scores.values()), pos_label)
        return dm.missing.Reference(columns[names["label"]], {name: columns[column] for name, column in scores.items()})
    columns = read_reference_columns(path, names["label"], [names["score"]], pos_label)
    return dm.missing.Reference(columns[names["label"]], columns[names["score"]])


def read_reference_columns(path: str, label: str, scores: Sequence[str], pos_label: Any) -> dict[str, Any]:
    """Return the columns of reference rows by name."""
    if path == "-":
        raise InputError("--reference", "standard input cannot be the reference rows", "", "Pass a file.")
    return file_of(path).read([label, *scores], {label: MISSING_WORDS - {str(pos_label)}})


def class_columns(file: DataFile, options: DataOptions) -> dict[str, str] | None:
    """Return the column of scores of each class; None if there is a single column."""
    prefix = getattr(options, "scores_prefix", None)
    passed: Any = options.score
    if prefix is not None:
        if passed:
            raise InputError("--scores-prefix", "cannot be combined with --score", "", "Leave one of the two out.")
        columns = {name.removeprefix(prefix): name for name in file.column_names if name.startswith(prefix)}
        if len(columns) < 2:
            raise InputError(
                "--scores-prefix",
                f"{counted(len(columns), 'column')} {'begins' if len(columns) == 1 else 'begin'} with {prefix!r}",
                f"Two classes or more need one each. The columns are {file.columns_in_words()}.",
            )
        return columns
    if not isinstance(passed, list) or not passed or (len(passed) == 1 and not _is_pair(file, passed[0])):
        return None
    pairs = [text.partition("=")[::2] if _is_pair(file, text) else (text, text) for text in passed]
    if len({name for name, _ in pairs}) < len(pairs) or len(pairs) < 2:
        fix = "Pass each class once, such as --score cat=p_cat --score dog=p_dog."
        raise InputError("--score", "a single class, or one that is passed twice", "", fix)
    return dict(pairs)


def _is_pair(file: DataFile, text: str) -> bool:
    return "=" in text and text not in file.column_names


def names_of(file: DataFile, options: DataOptions, guess: Sequence[str] = ("label", "score")) -> dict[str, str]:
    """Return the columns by option; label and score are guessed if they are not passed."""
    passed = {option: getattr(options, option, None) for option in COLUMNS.values()}
    if number_from(passed["prob"] or "") is not None:
        del passed["prob"]
    names = {option: name for option, name in passed.items() if name is not None}
    guessed = {option: _guess(file, option, names) for option in guess if option not in names}
    if guessed:
        columns = " and ".join(f"{name!r} as --{option}" for option, name in guessed.items())
        say(f"Guessed {columns}. Full command: {command_line(guessed)}")
    return guessed | names


def _guess(file: DataFile, option: str, taken: Mapping[str, str]) -> str:
    from darkmetrics.frames import likely_columns

    likely = likely_columns(file.column_names, option)
    # A column that has another part is the score only if there is no other: scores may be the probabilities as well.
    likely = [name for name in likely if name not in taken.values()] or [
        name for name in likely if name == taken.get("prob")
    ]
    if len(likely) == 1:
        return likely[0]
    if len(set(likely)) == 1:
        raise file.repeated_column(likely[0])
    if likely:
        raise InputError(file.name, f"--{option} could be {' or '.join(map(repr, likely))}", "", f"Pass --{option}.")
    raise InputError(
        file.name,
        f"cannot tell which column is the {option}",
        "",
        f"Pass --{option}. The columns are {file.columns_in_words()}.",
    )


def _as_table(rows: Rows, by: Sequence[str], time: str | None) -> Rows:
    """Return columns in memory as a table, for groups and columns of times."""
    from darkmetrics import frames

    if not any(option in rows.names for option in _TIMES):
        # Checked as arrays are: errors name rows.
        dm.EvaluationSet(**rows.arguments)
    parts = {frames.part_of(argument): rows.names[o] for argument, o in COLUMNS.items() if o in rows.names}
    clusters = [parts.pop("clusters")] if "clusters" in parts else []
    table = frames.table_of(rows.data, parts, [*by, *clusters], time)
    return Rows(rows.source, table, rows.names, rows.pos_label, rows.missing_label)


def _scanned(files: Sequence[DataFile], names: Mapping[str, str], options: DataOptions, others: Sequence[str]) -> Rows:
    """Return the files as a table that is not read yet; the columns must exist."""
    from darkmetrics import frames

    first, paths, wanted = files[0], [Path(file.name) for file in files], [*names.values(), *others]
    # Folders may be named after the values of a column that no file has: month=2026-01/part-0.parquet.
    folders = {part.partition("=")[0] for path in paths for part in path.parts[:-1] if "=" in part}
    first.check_columns([name for name in wanted if name not in folders])
    table = frames.lazy_frame(paths, wanted)
    schema = table.collect_schema()
    first.check_columns([name for name in wanted if name not in schema.names()])
    labels = _label_values(options, as_text=str(schema[names["label"]]).startswith(_TEXT))
    return Rows(_source(options, files), table, names, *labels)


def _source(options: DataOptions, files: Sequence[DataFile] = ()) -> str:
    """Return what to call the rows: their file, or what was passed for several."""
    return files[0].name if len(files) == 1 else " ".join(options.file)


def _is_large(file: DataFile) -> bool:
    return isinstance(file.source, Path) and file.source.stat().st_size > _LARGE


def _can_be_scanned(files: Sequence[DataFile]) -> bool:
    """Return whether an engine is installed that counts these files."""
    named = all(isinstance(file.source, Path) and file.source.suffix.lower() in PARQUET for file in files)
    return named and files[0].format == "parquet" and any(find_spec(engine) is not None for engine in _ENGINES)


def _label_values(options: DataOptions, *, as_text: bool) -> tuple[Any, Any]:
    """Return the positive label and those that mean missing (None: none does), as the file has them."""
    missing = [_label_value(text, as_text=as_text) for text in options.missing_label or []]
    return _label_value(options.pos_label, as_text=as_text), missing or None


def _label_value(text: str, *, as_text: bool) -> Any:
    """Return a label as the file has it: text among text, else a number or a truth value if it can be one."""
    if as_text:
        return text
    truth_values = {"true": True, "false": False}
    if text.lower() in truth_values:
        return truth_values[text.lower()]
    number = number_from(text)
    if number is None:
        return text
    return int(number) if number.is_integer() else number
