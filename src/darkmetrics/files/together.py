"""Several text files as one table."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.files import readers
from darkmetrics.files.datafile import DataFile

TEXT_FORMATS = ("csv", "jsonl")


def check_one_format(files: Mapping[str, str]) -> None:
    """Several files are of one format; `files` has one name by format."""
    if len(files) > 1:
        (first, one), (second, other), *_ = files.items()
        raise InputError(f"{one}: is {first}, and {other} is {second}. Give files of one format.")


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
                f"{kinds['text']}: column {name!r} has text, and numbers in {kinds['numbers']}. Give it one type in "
                "all files."
            )
    return {name: readers.joined([part[name] for part in parts]) for name in names}


def _kind(column: Any) -> str:
    """Text, numbers, or nothing at all, which goes with both."""
    if not isinstance(column, list):
        return "numbers" if column.null_count() < len(column) else "nothing"
    return next(("text" if isinstance(value, str) else "numbers" for value in column if value is not None), "nothing")
