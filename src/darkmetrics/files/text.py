"""CSV and JSON lines: rows of text, and columns with the types that all of their values allow."""

import csv
import gzip
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from darkmetrics._text import number_from
from darkmetrics.exceptions import InputError
from darkmetrics.files import readers

Source = Path | bytes
GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_SEPARATORS = (",", ";", "\t", "|")
# Labels in a CSV file that mean missing, besides an empty one: what pandas, R and databases write for it.
MISSING_WORDS = frozenset({"NaN", "nan", "null", "NULL", "None", "NA", "N/A", "<NA>"})
_WORDS = {None: None, "false": 0.0, "true": 1.0}


def opened(source: Source) -> IO[bytes]:
    """The content as it is."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


@contextmanager
def decompressed(source: Source) -> Iterator[IO[bytes]]:
    """The content, unzipped where it was zipped."""
    with opened(source) as stream:
        zipped = stream.read(len(GZIP)) == GZIP
        stream.seek(0)
        if not zipped:
            yield stream
            return
        with gzip.open(stream) as plain:
            yield plain  # type: ignore[misc]  # it reads bytes, which is all that is asked


@contextmanager
def _lines(source: Source) -> Iterator[IO[str]]:
    with decompressed(source) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
        yield lines


def csv_header(source: Source) -> list[str]:
    """The names in the first line that is not blank."""
    with _lines(source) as lines:
        return next(filter(None, csv.reader(lines, delimiter=csv_separator(source), strict=True)), [])


def csv_columns(
    source: Source, names: Sequence[str], missing: Mapping[str, Collection[str]], as_text: Collection[str] = ()
) -> dict[str, Any]:
    """The named columns: numbers if all of a column is numbers, 0 and 1 for false and true, else text.

    `missing` has, by column of classes, words that mean a missing value there, as an empty one does everywhere.
    Spaces around a class do not count; other text is kept as it is. Columns in `as_text` stay text.
    """
    header, separator = csv_header(source), csv_separator(source)
    places = [header.index(name) for name in names]
    rows = _count(source, separator, len(header))
    kept = [header.index(name) for name in as_text]
    quickly = None if rows is None else readers.csv_columns(source, separator, places, rows, kept)
    found = _csv_values(source, separator, places, len(header)) if quickly is None else quickly
    columns = {
        name: _typed(values, missing.get(name), as_text=name in as_text)
        for name, values in zip(names, found, strict=True)
    }
    _check_one_header(columns)
    return columns


def _check_one_header(columns: Mapping[str, Any]) -> None:
    """No row is the header again: of a single name among numbers nobody would think of that."""
    name, values = next(iter(columns.items()), ("", ()))
    if not isinstance(values, list) or not all(isinstance(column, list) for column in columns.values()):
        return  # numbers alone
    for row in (i for i, value in enumerate(values) if value == name):
        if all(column[row] == called for called, column in columns.items()):
            raise InputError("", f"row {row} is the header again", "A file has one header.", "Drop the row.")


def csv_separator(source: Source) -> str:
    """What the header has most of, outside quotes."""
    with _lines(source) as lines:
        first = next((line for line in lines if line.strip("\r\n")), "")
        header = "".join(first.split('"')[::2])
    return max(_SEPARATORS, key=header.count)


def _count(source: Source, separator: str, width: int) -> int | None:
    """How many rows there are, of which each has all of its values; None if blank lines lie above one of them.

    An engine does not ask: it takes what a short line lacks for missing values, and a blank line for a row of them.
    """
    count = _even_rows(source, separator, width)
    if count is not None:
        return count
    count, blank = 0, False
    for row in _csv_rows(source, separator, width):
        if row and blank:
            # The rest is counted by nobody, but looked at when it is read.
            return None
        count, blank = count + bool(row), blank or not row
    return count


def _even_rows(source: Source, separator: str, width: int) -> int | None:
    """The number of rows if it is plain to see that each has `width` values, else None.

    It is where there are no quotes, and separators and line ends follow each other in a fixed rhythm.
    """
    with decompressed(source) as stream:
        header = stream.readline()
        if header.count(b'"') % 2 or b"\r" in header.removesuffix(b"\r\n") or not header.strip(b"\xef\xbb\xbf\r\n"):
            return None  # its end, or all of it, is somewhere else
        end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
        rhythm = separator.encode() * (width - 1) + end
        silent = bytes(set(range(256)) - {*rhythm, *b'"\r\n'})
        rows, rest = 0, b""
        while chunk := stream.read(_CHUNK):
            head, found, tail = chunk.rpartition(b"\n")
            lines, rest = (rest + head + found, tail) if found else (b"", rest + tail)
            beats = lines.translate(None, silent)
            count = len(beats) // len(rhythm)
            if beats != rhythm * count:
                return None
            rows += count
    if not rest:
        return rows
    return rows + 1 if (rest + end).translate(None, silent) == rhythm else None


def _csv_rows(source: Source, separator: str, width: int) -> Iterator[list[str]]:
    """The rows from the header on, without it, of which each must have as many values; blank lines are empty rows.

    In a table of one column a blank line is a row like others, and its value is missing.
    """
    with _lines(source) as lines:
        rows = csv.reader(lines, delimiter=separator, strict=True)
        for row in rows:
            if row:
                break  # the header
            yield row
        for row in rows:
            values = row or [""] * (width == 1)
            if values and len(values) != width:
                found = "1 value" if len(values) == 1 else f"{len(values)} values"
                raise InputError("", f"line {rows.line_num} has {found}, but the header has {width}")
            yield values


def _csv_values(source: Source, separator: str, places: Sequence[int], width: int) -> list[list[str | None]]:
    columns: list[list[str | None]] = [[] for _ in places]
    for row in filter(None, _csv_rows(source, separator, width)):
        for column, place in zip(columns, places, strict=True):
            column.append(row[place])
    return columns


def _typed(values: Any, missing: Collection[str] | None, *, as_text: bool) -> Any:
    if not isinstance(values, list):
        return values  # numbers already
    if missing is None:
        items = [item if item and not item.isspace() else None for item in values]
    else:
        stripped = [item and item.strip() for item in values]
        items = [None if not item or item in missing else item for item in stripped]
    if as_text:
        return items
    numbers = [None if item is None else number_from(item) for item in items]
    if numbers.count(None) == items.count(None):
        return numbers
    lower = [item and item.strip().lower() for item in items]
    return [_WORDS[item] for item in lower] if set(lower) <= set(_WORDS) else items


def json_rows(source: Source) -> Iterator[dict[str, Any]]:
    """One object per line."""
    with _lines(source) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise InputError("", f"line {number} is not a JSON object", "JSON lines have one object per line.")
            yield row


def json_columns(source: Source, names: Sequence[str]) -> dict[str, Any]:
    """The named columns, null where a row has no such name; a column that no row has is left out."""
    columns: dict[str, list[Any]] = {name: [] for name in names}
    found: set[str] = set()
    for row in json_rows(source):
        found.update(row.keys() & columns.keys())
        for name, column in columns.items():
            column.append(row.get(name))
    return {name: column for name, column in columns.items() if name in found}
