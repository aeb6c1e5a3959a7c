"""Files that are whole or not there: a run that is killed leaves nothing half-written behind."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write to a temporary name next to the file, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    unfinished.replace(path)
    return path


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table."""
    with path.open() as file:
        yield from csv.DictReader(file)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table as CSV."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return write_whole(path, text.getvalue())
