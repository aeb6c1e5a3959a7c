"""From a file and the names of its columns to the arguments of the library: read, or counted where it lies."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.messages import WordedError, worded
from darkmetrics.cli.options import DataOptions, LateOptions
from darkmetrics.cli.output import say
from darkmetrics.cli.streams import standard_input
from darkmetrics.files import (
    MISSING_WORDS,
    PARQUET,
    TEXT_FORMATS,
    DataFile,
    check_one_format,
    files_named,
    read_together,
)

# Whose errors mean that a file cannot be read.
_READERS = ("polars", "duckdb", "narwhals")


@dataclass(frozen=True)
class Rows:
    """Columns of a file, by role, and what they are called there; or a table that an engine counts."""

    source: str
    columns: Mapping[str, Any]
    names: Mapping[str, str]
    pos_label: Any
    missing_label: Any
    frame: Any = None
    read: Mapping[str, Any] = field(default_factory=dict)  # columns by name, also those without a role

    @classmethod
    def of_columns(
        cls, source: str, columns: Mapping[str, Any], names: Mapping[str, str], options: DataOptions
    ) -> "Rows":
        """Columns that have been read, with labels of the options as the file has them."""
        read_as_text = _is_text(columns[names["label"]], f"column {names['label']!r} (--label)")
        by_role = {role: columns[name] for role, name in names.items()}
        return cls(source, by_role, names, *label_values(options, as_text=read_as_text), read=columns)

    def data(self, threshold: float | None, late: LateOptions | None = None) -> dict[str, Any]:
        """The arguments that hold the rows and say how to read them; a table is counted for that, and so are times."""
        late = late or LateOptions()
        if self.frame is not None or any(getattr(late, one.name) is not None for one in fields(LateOptions)):
            with self.counting():
                test_set = dm.EvaluationSet.from_frame(
                    self.table(), threshold=threshold, as_of=late.as_of, maturity=late.maturity, **self.parts
                )
            kinds = {"propensity": "propensity", "strata": "strata", "scored_at": "age"}
            given = {argument: True for role, argument in kinds.items() if role in self.names}
            return {"y_true": test_set, "y_score": None, **given}
        arguments = {"label": "y_true", "score": "y_score", "weight": "sample_weight", "pred": "y_pred"}
        arguments |= {role: role for role in ("propensity", "strata", "groups")}
        columns = {arguments[role]: column for role, column in self.columns.items() if role in arguments}
        return {**columns, "pos_label": self.pos_label, "missing_label": self.missing_label, "threshold": threshold}

    def table(self, by: Sequence[str] = (), time: str | None = None) -> Any:
        """The rows as a table: the one that an engine counts, or one of the columns that were read."""
        from darkmetrics import frames

        return frames.table_of(self.read, self.parts_named, by, time) if self.frame is None else self.frame

    @property
    def parts(self) -> dict[str, Any]:
        """The same for a table: names of columns."""
        return {**self.parts_named, "pos_label": self.pos_label, "missing_label": self.missing_label}

    @property
    def parts_named(self) -> dict[str, str]:
        """The names of the columns by the part that they play in a table."""
        parts = {"label": "label", "score": "score", "weight": "weight", "pred": "decision", "prob": "probability"}
        parts |= {"propensity": "propensity", "strata": "stratum", "scored_at": "scored_at"}
        parts |= {"labelled_at": "labelled_at", "groups": "groups"}
        return {parts[role]: name for role, name in self.names.items()}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Whatever an engine says against a file while it counts, as one line that names the file."""
        try:
            yield
        except BaseException as error:
            engine = type(error).__module__.partition(".")[0].lstrip("_")
            # What panics in Rust is not even an Exception.
            if engine not in _READERS and type(error).__name__ != "PanicException":
                raise
            said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            raise WordedError(f"{self.source}: cannot be read; damaged or incomplete? ({said})") from error


def label_values(options: DataOptions, *, as_text: bool) -> tuple[Any, Any]:
    """The label that is positive and those that mean missing (None: none does), as the file has them."""
    gaps = [_value(gap, as_text=as_text) for gap in options.missing_label or []]
    return _value(options.pos_label, as_text=as_text), gaps or None


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
    number = number_from(text)
    if number is None:
        return text
    return int(number) if number.is_integer() else number


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
    classes = {names["label"]: MISSING_WORDS - {options.pos_label}}
    if "pred" in names:
        classes[names["pred"]] = frozenset()
    columns = read_together(files, wanted, classes)
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
