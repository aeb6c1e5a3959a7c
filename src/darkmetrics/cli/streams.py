"""Standard input, output and error as they may be: closed, full, or with nobody at the other end."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from darkmetrics._text import printable
from darkmetrics.cli.messages import WordedError


class _Patient:
    """Standard output whose reader may have seen enough, such as head: what is left goes nowhere, and is no error.

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
    """What Python has no stream for, because it was closed when the process began (`>&-`)."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


@contextlib.contextmanager
def patient_output() -> Iterator[None]:
    """Standard output that says nothing of a reader who is gone; when the block ends, all of it is written."""
    before = sys.stdout
    _hold_standard_places()
    sys.stdout = _Patient(_Closed() if before is None else before)
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = before


def standard_input() -> bytes:
    """All that comes through it."""
    if sys.stdin is None:
        raise WordedError("standard input: is closed. Name a file, or send something through a pipe.")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise WordedError(f"standard input: cannot be read: {error.strerror or error}.") from error


def no_standard_output(error: OSError) -> WordedError:
    """The error for a full disk and the like; nothing more is written there."""
    _give_up(sys.__stdout__)
    return WordedError(f"standard output: cannot be written: {error.strerror or error}.")


def to_standard_error(text: str) -> None:
    """A line for a person; if nobody can see it, the exit code still says what is to be said."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(printable(text, keep="\n\t") + "\n")
        sys.stderr.flush()
    except OSError:
        _give_up(sys.__stderr__)


def _give_up(stream: Any) -> None:
    """Lets what is left of a stream go nowhere: Python would try again at exit, and complain."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # no stream, or one without a place
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _hold_standard_places() -> None:
    """Fills the places of closed streams, so that no file that is opened later gets what is written to one of them."""
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest place that is free, which is this one
