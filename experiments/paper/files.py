"""Files that are whole or not there: a run that is killed leaves nothing half-written behind."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write to a temporary name beside the file, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    unfinished.replace(path)
    return path


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table."""
    with path.open() as file:
        yield from csv.DictReader(file)
