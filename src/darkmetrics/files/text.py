"""CSV and JSON lines: rows of text, and columns with the types that all of their values allow."""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from darkmetrics.exceptions import InputError
from darkmetrics.files import engines

Source = Path | bytes
GZIP = b"\x1f\x8b"
_SEPARATORS = (",", ";", "\t", "|")
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
    """The names in the first line."""
    with _lines(source) as lines:
        return next(iter(csv.reader(lines, delimiter=_separator(source), strict=True)), [])


def csv_columns(source: Source, names: Sequence[str]) -> dict[str, Any]:
    """The named columns: numbers if all of a column is numbers, 0 and 1 for false and true, else text."""
    header = csv_header(source)
    places = [header.index(name) for name in names]
    quickly = engines.csv_columns(source, _separator(source), places)
    found = _csv_values(source, places, len(header)) if quickly is None else quickly
    return {name: _typed(values) for name, values in zip(names, found, strict=True)}


def _separator(source: Source) -> str:
    """What the header has most of, outside quotes."""
    with _lines(source) as lines:
        header = "".join(lines.readline().split('"')[::2])
    return max(_SEPARATORS, key=header.count)


def _csv_values(source: Source, places: Sequence[int], width: int) -> list[list[str | None]]:
    columns: list[list[str | None]] = [[] for _ in places]
    with _lines(source) as lines:
        rows = csv.reader(lines, delimiter=_separator(source), strict=True)
        next(rows, None)
        for row in rows:
            if len(row) != width and row:
                raise InputError(f"line {rows.line_num} has {len(row)} values, but the header has {width}.")
            for column, place in zip(columns, places, strict=True):
                column.append(row[place] if row else None)
    return columns


def _typed(values: Any) -> Any:
    if not isinstance(values, list):
        return values  # numbers already
    items = [None if item is None or not item.strip() else item.strip() for item in values]
    try:
        return [None if item is None else float(item) for item in items]
    except ValueError:
        pass
    lower = [item and item.lower() for item in items]
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
                raise InputError(f"line {number} is not a JSON object; JSON lines have one per line.")
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
