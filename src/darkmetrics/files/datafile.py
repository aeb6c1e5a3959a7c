"""Tables in files: which format one has, which columns, and the few that are wanted; several text files as one."""

import difflib
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.files import readers, text
from darkmetrics.files.text import GZIP, Source
from darkmetrics.wording import code, verbatim

FORMATS = ("csv", "jsonl", "parquet", "arrow")
_NAMES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet", "arrow": "Arrow"}
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_BINARY = ("parquet", "arrow")
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", readers.ARROW_STREAM: "arrow"}
_HEAD = 1 << 16
# Columns named in a message about one that is not there.
_SHOWN = 12
# Rows of JSON lines whose names are taken for those of all rows.
_NAMING_ROWS = 100


@dataclass(frozen=True, eq=False)
class DataFile:
    r"""A table in a file, or in bytes that came through a pipe.

    Examples
    --------
    >>> from darkmetrics.files import DataFile
    >>> table = DataFile("standard input", b"y,p\n1,0.9\n,0.4\n")
    >>> table.format, table.column_names
    ('csv', ['y', 'p'])
    >>> list(table.read(["y"])["y"])
    [1.0, None]
    """

    name: str
    source: Source
    stated_format: str | None = None
    engine_order: Sequence[str] = readers.ENGINES

    @classmethod
    def of_path(cls, path: Path, stated_format: str | None = None) -> "DataFile":
        """A file, which must be there and be readable; a pipe or device is read to its end."""
        try:
            kind = path.stat().st_mode
            if stat.S_ISDIR(kind):
                raise InputError(str(path), "is a directory", "", "Pass a file in it.")
            if not stat.S_ISREG(kind):
                return cls(str(path), path.read_bytes(), stated_format)
            with path.open("rb"):
                return cls(str(path), path, stated_format)
        except FileNotFoundError:
            raise InputError(str(path), "no such file", "", _neighbour(path)) from None
        except OSError as error:
            raise InputError(str(path), f"cannot be opened: {error.strerror or error}") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(repr(str(path)), "no file can have this name") from None  # a null byte

    @cached_property
    def format(self) -> str:
        """One of FORMATS: the one stated, or by suffix, or by content; and the content must agree."""
        if not self._head:
            raise InputError(self._title, "is empty")
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes] if isinstance(self.source, Path) else []
        if suffixes[-1:] == [".gz"]:
            suffixes.pop()
            if not self._head.startswith(GZIP):
                raise InputError(self._title, "ends in .gz but is not compressed", "", "Rename it.")
        found = self._format_of_content
        expected = self.stated_format or _SUFFIXES.get(suffixes[-1] if suffixes else "")
        if found == "json array":
            if expected in (None, "jsonl"):
                raise InputError(self._title, "is a JSON array", "JSON lines have one object per line.")
            found = None
        if expected is None:
            return found or "csv"
        if found != expected and (found in _BINARY or expected in _BINARY):
            says = "--input-format says" if self.stated_format else "its name says"
            but = f"it is {_NAMES[found]}" if found else "it is not"
            raise InputError(
                self._title,
                f"{says} {_NAMES[expected]}, but {but}",
                "",
                f"Rename it{code('', 'input format')}.",
            )
        return expected

    @property
    def format_name(self) -> str:
        """What the format is called in messages."""
        return _NAMES[self.format]

    @cached_property
    def column_names(self) -> list[str]:
        """The columns of the table; of JSON lines those of the first hundred rows."""
        with self.reading():
            if self.format == "csv":
                return text.csv_header(self.source)
            if self.format == "jsonl":
                rows = islice(text.json_rows(self.source), _NAMING_ROWS)
                return list(dict.fromkeys(name for row in rows for name in row))
            return readers.column_names(self.source, self._kind, self.engine_order)

    def read(
        self,
        names: Sequence[str],
        missing: Mapping[str, Collection[str]] | None = None,
        as_text: Collection[str] = (),
    ) -> dict[str, Any]:
        """The named columns, each as something that the library takes for a column.

        `missing` has, by column of classes, words that mean a missing value if they stand in a CSV file, where all is
        text; spaces around such a class do not count there. Columns in `as_text` stay text.
        """
        wanted = list(dict.fromkeys(names))
        self.check_columns(wanted)
        with self.reading():
            columns: dict[str, Any]
            if self.format == "csv":
                columns = text.csv_columns(self.source, wanted, missing or {}, as_text)
            elif self.format == "jsonl":
                columns = text.json_columns(self.source, wanted)
            else:
                columns = readers.columns(self.source, self._kind, wanted, self.engine_order)
        for name in wanted:
            if name not in columns:
                raise self.missing_column(name)
            if not len(columns[name]):
                raise InputError(self._title, "has no rows")
        return columns

    def check_columns(self, names: Sequence[str]) -> None:
        """Each column is there, and once; in JSON lines one may turn up far down."""
        for name in names:
            if self.column_names.count(name) > 1:
                raise self.repeated_column(name)
            if name not in self.column_names and self.format != "jsonl":
                raise self.missing_column(name)

    def repeated_column(self, name: str) -> InputError:
        """The error for a column that is there more than once."""
        count = self.column_names.count(name)
        times = "twice" if count == 2 else f"{count} times"
        return InputError(self._title, f"the column name {name!r} occurs {times}", "", "Rename all but one.")

    def missing_column(self, name: str) -> InputError:
        """The error for a column that is not there, with the nearest one suggested."""
        lower = {column.lower(): column for column in self.column_names}
        near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
        hint = f"Did you mean {lower[near[0]]!r}?" if near else f"It has {self.columns_in_words()}."
        return InputError(self._title, f"no column {name!r}", "", hint)

    def columns_in_words(self) -> str:
        """The names of the columns, or of the first dozen."""
        more = len(self.column_names) - _SHOWN
        shown = ", ".join(map(repr, self.column_names[:_SHOWN]))
        return shown + (f" and {more:,} more" if more > 0 else "") if shown else "no columns"

    @cached_property
    def _head(self) -> bytes:
        with text.opened(self.source) as stream:
            return stream.read(_HEAD)

    @cached_property
    def _format_of_content(self) -> str | None:
        """The format that the first bytes show, or "json array"; None for text that is not JSON."""
        for magic, kind in _MAGIC.items():
            if self._head.startswith(magic):
                return kind
        with self.reading("text"), text.decompressed(self.source) as stream:
            start = stream.read(_HEAD)
        if not start:
            raise InputError(self._title, "is empty")
        if b"\x00" in start:
            raise InputError(self._title, "is neither text nor Parquet nor Arrow")
        shown = start.lstrip(b"\xef\xbb\xbf \t\r\n")
        if shown.startswith(b"{"):
            return "jsonl"
        # A name in a header may be in brackets, but not in two kinds of them.
        return "json array" if shown[:1] == b"[" and shown[1:].lstrip()[:1] in (b"{", b"[", b"]", b"") else None

    @property
    def _kind(self) -> str:
        return "arrow stream" if self._head.startswith(readers.ARROW_STREAM) else self.format

    @property
    def _title(self) -> str:
        return verbatim(self.name)

    @contextmanager
    def reading(self, what: str | None = None) -> Iterator[None]:
        """Whatever a reader says against a file, as one line that names the file."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise InputError(self._title, "is not UTF-8 text", "", "Save it as UTF-8.") from error
        except (InputError, MemoryError, KeyboardInterrupt) as error:
            if isinstance(error, InputError) and error.argument != self.name:
                argument, finding = error.args[:2]
                raise error.replace(
                    argument=self._title, finding=f"{argument}: {finding}" if argument else finding
                ) from error
            raise
        except BaseException as error:
            # Engines have errors of their own, and what panics in Rust is not even an Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            shown = _NAMES[self.format] if what is None else what
            raise InputError(self._title, f"cannot be read as {shown}; damaged or incomplete? ({said})") from error


def _neighbour(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    except OSError:
        return ""
    return f"Did you mean {str(path.with_name(near[0]))!r}?" if near else ""


TEXT_FORMATS = ("csv", "jsonl")


def check_one_format(files: Mapping[str, str]) -> None:
    """Several files are of one format; `files` has one name by format."""
    if len(files) > 1:
        (first, one), (second, other), *_ = files.items()
        raise InputError(one, f"is {first}, and {other} is {second}", "", "Pass files of one format.")


def read_together(
    files: Sequence[DataFile],
    names: Sequence[str],
    missing: Mapping[str, Collection[str]] | None = None,
    as_text: Collection[str] = (),
) -> dict[str, Any]:
    r"""The named columns of all files, one file after the other, of one type in all of them; see `DataFile.read`.

    Examples
    --------
    >>> from darkmetrics.files import DataFile, read_together
    >>> days = [DataFile("monday.csv", b"y,p\n1,0.9\n"), DataFile("tuesday.csv", b"p,y\n0.4,\n")]
    >>> list(read_together(days, ["y"])["y"])
    [1.0, None]
    """
    parts = [file.read(names, missing, as_text) for file in files]
    for name in names if len(files) > 1 else ():
        kinds = {_kind(part[name]): file.name for file, part in zip(files, parts, strict=True)}
        if {"text", "numbers"} <= kinds.keys():
            raise InputError(
                kinds["text"],
                f"column {name!r} has text, but numbers in {kinds['numbers']}",
                "A column must have one type in all files.",
            )
    return {name: readers.joined([part[name] for part in parts]) for name in names}


def _kind(column: Any) -> str:
    """Text, numbers, or nothing at all, which goes with both."""
    if not isinstance(column, list):
        return "numbers" if column.null_count() < len(column) else "nothing"
    return next(("text" if isinstance(value, str) else "numbers" for value in column if value is not None), "nothing")
