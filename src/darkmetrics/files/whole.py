"""A text or bytes into a file: all of it or nothing."""

import os
import secrets
import stat
import sys
from pathlib import Path


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
