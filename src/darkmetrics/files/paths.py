"""Which files a path, a folder, a pattern or a list of these stands for, and how one is written: whole or not."""

import fnmatch
import glob
import os
import reprlib
import secrets
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from darkmetrics.exceptions import InputError
from darkmetrics.wording import verbatim

PARQUET = (".parquet", ".pq")


def files_named(given: Any, argument: str = "path") -> list[str]:
    """The files that are meant, each of them once; a plain name need not be there, which is said when it is opened.

    - A name that exists is that file or folder, whatever signs are in it. `~` is the home folder.
    - A folder is all Parquet files in it and in the folders below it.
    - A pattern (`*`, `?`, `[...]`, and `**` for any number of folders) is all files that it matches, and all folders.
    - What begins with `_` or `.` is no data when it is found in a folder or through a pattern: `_SUCCESS`,
      `.part-0.parquet.crc`, `_temporary/...` are notes of the program that wrote the others. A pattern that has the
      sign itself (`d/_*.parquet`) means it, and so does a plain name; a folder such as `_day=1` holds a column.
    - A list is everything in it. A file that is named twice, or also through a link, counts once.
    - An address (`s3://...`) is left as it is: only an engine can look there.
    """
    parts = [given] if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(parts, Sequence) or not all(isinstance(part, (str, os.PathLike)) for part in parts):
        found = type(given).__name__
        if isinstance(parts, Sequence):
            other = next(i for i, part in enumerate(parts) if not isinstance(part, (str, os.PathLike)))
            found += f" with {reprlib.repr(parts[other])} at position {other}"
        raise InputError(argument, found, "It must be a path, a folder, a pattern or a list of these.")
    if not parts:
        raise InputError(argument, "an empty list", "", "Pass at least one file.")
    if "" in parts:
        raise InputError(argument, "an empty name", "", "Pass a file.")
    once: dict[str, str] = {}
    for part in parts:
        for file in _meant(os.fsdecode(part)):
            once.setdefault(_identity(file), file)
    return list(once.values())


def _identity(file: str) -> str:
    """What two names of one file have in common."""
    try:
        return file if "://" in file else os.path.realpath(file)
    except (OSError, ValueError):  # a name that no file can have, which is said when it is opened
        return file


def _meant(name: str) -> list[str]:
    if "://" in name:
        return [name]
    path = Path(name)
    try:
        if not path.exists():
            name = os.path.expanduser(name)  # noqa: PTH111  # a pattern is no Path
            path = Path(name)
        if path.is_dir():
            inside = _inside(name)
            if not inside:
                text = next((one for one in ("*.csv", "*.csv.gz") if any(path.glob(one))), None)
                offer = "" if text is None else f"For its CSV files pass the pattern '{path / text}'."
                raise InputError(verbatim(name), "no Parquet file in this folder", "", offer)
            return inside
        if not glob.has_magic(name) or path.exists():
            return [name]
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        if isinstance(error, InputError):
            raise
        return [name]
    return _matches(name)


def _matches(pattern: str) -> list[str]:
    """What a pattern matches: files, and the files in folders."""
    # Path.glob takes no pattern that begins at the root.
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not found:
        raise InputError(verbatim(pattern), "no file matches this pattern")
    signs = [part for part in Path(pattern).parts if part[0] in "._"]
    data = [name for name in found if not _has_note(name, signs)]
    if not data:
        raise InputError(
            verbatim(pattern),
            "no file of data matches this pattern",
            f"Names that begin with _ or . are left out, such as {found[0]}.",
            "Pass a pattern that begins with that sign.",
        )
    files = [file for name in data for file in (_inside(name) if Path(name).is_dir() else [name])]
    if not files:
        raise InputError(verbatim(pattern), "no Parquet file in the folders that match this pattern")
    return files


def _has_note(name: str, signs: Sequence[str]) -> bool:
    """Whether a part of the path is a note; `signs` are the parts of the pattern that have such a sign as well."""
    *folders, last = Path(name).parts
    notes = [part for part in folders if _is_note(part, folder=True)]
    notes += [last] if _is_note(last, folder=Path(name).is_dir()) else []
    return not all(any(fnmatch.fnmatch(note, sign) for sign in signs if sign[0] == note[0]) for note in notes)


def _is_note(part: str, *, folder: bool) -> bool:
    return part[0] in "._" and not (folder and part[0] == "_" and "=" in part)


def _inside(folder: str) -> list[str]:
    """The Parquet files of a folder and of the folders in it, also through links."""
    seen: set[str] = set()
    files: list[str] = []
    for place, folders, names in os.walk(folder, onerror=_refuse, followlinks=True):
        where = os.path.realpath(place)
        if where in seen:  # a link to a folder around it
            folders.clear()
            continue
        seen.add(where)
        folders[:] = [name for name in folders if not _is_note(name, folder=True)]
        data = [name for name in names if Path(name).suffix.lower() in PARQUET and not _is_note(name, folder=False)]
        files += [str(Path(place, name)) for name in data]
    return sorted(files)


def _refuse(error: OSError) -> None:
    raise InputError(error.filename, f"cannot be looked into: {error.strerror or error}") from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file, text as UTF-8, so that readers see the old one or the new one, and never half of it.

    A link is written through, and a file keeps its rights. Pipes, devices and what standard output goes to are written
    to as they are, since nothing could take their place. Raises OSError.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        there = path.stat()
    except FileNotFoundError:
        there = None
    if there is not None and (not stat.S_ISREG(there.st_mode) or _is_open_for_us(there)):
        # At the end: also where standard output was told to append to a file.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
            stream.write(data)
        return
    target = path.resolve()
    # A name that nobody can guess, and a file that is nobody's yet: the mode is that of any new file.
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(data)
        if there is not None:
            unfinished.chmod(stat.S_IMODE(there.st_mode))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _is_open_for_us(there: os.stat_result) -> bool:
    """Whether standard output or standard error goes to this file, under whatever name."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and os.path.samestat(there, os.fstat(stream.fileno())):
                return True
        except (OSError, ValueError):  # closed
            continue
    return False
