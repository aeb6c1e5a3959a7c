"""Standard input, output and error, which may be closed, full, or without a reader."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from darkmetrics._text import printable
from darkmetrics.exceptions import InputError


class _Patient:
    """Standard output that drops the remainder if its reader, such as head, has stopped.

    click and rich would each end the process in their own way, with the exit code of a target that is missed.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except BrokenPipeError:
            _give_up(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            _give_up(self._stream)


class _Closed(io.TextIOBase):
    """Stand-in for a stream that was closed when the process began (`>&-`)."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


@contextlib.contextmanager
def patient_output() -> Iterator[None]:
    """Use a standard output that needs no reader; it is flushed at the end of the block."""
    before = sys.stdout
    _hold_standard_places()
    sys.stdout = _Patient(_Closed() if before is None else before)
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = before


def standard_input() -> bytes:
    """Return all of standard input."""
    if sys.stdin is None:
        raise InputError("standard input", "is closed", "", "Pass a file, or pipe rows into the command.")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise InputError("standard input", f"cannot be read: {error.strerror or error}") from error


def no_standard_output(error: OSError) -> InputError:
    """Return the error for a full disk and the like; nothing more is written to standard output."""
    _give_up(sys.__stdout__)
    return InputError("standard output", f"cannot be written: {error.strerror or error}")


def to_standard_error(text: str) -> None:
    """Write a line to standard error, if possible."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(printable(text, keep="\n\t") + "\n")
        sys.stderr.flush()
    except OSError:
        _give_up(sys.__stderr__)


def _give_up(stream: Any) -> None:
    """Redirect a stream to nowhere: Python would otherwise write again at exit, and complain."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # no stream, or one without a place
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _hold_standard_places() -> None:
    """Open the descriptors of closed streams, so that no file opened later receives what is written to them."""
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest place that is free, which is this one
