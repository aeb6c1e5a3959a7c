"""Output of commands: results to standard output or a file, messages to standard error, errors as one line."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from darkmetrics._text import printable
from darkmetrics.cli.messages import one_line, option_words, worded
from darkmetrics.cli.rendering import FOR_PEOPLE, WIDTH, Result, rendered, terminal_width
from darkmetrics.cli.streams import no_standard_output, to_standard_error
from darkmetrics.exceptions import InputError
from darkmetrics.files import write_whole
from darkmetrics.wording import Message

_SUFFIXES = (".html", ".md", ".json", ".pdf")
DONE, TARGET_MISSED, BAD_INPUT, OWN_ERROR, INTERRUPTED = 0, 1, 2, 3, 130


def publish(result: Result, format_: str, output: str | None) -> int:
    """Write the result, and its words to standard error unless it has them; return the exit code.

    A table and Markdown on standard output have assumptions, warnings and verdicts. Next to a format for programs, or a
    file, these go to standard error.
    """
    has_words = format_ in FOR_PEOPLE and output is None
    if not has_words:
        say("\n".join([*result.above, *result.warnings, ""]) if result.above else "")
    emit(rendered(result, format_, terminal_width() if output is None else WIDTH), output)
    if not has_words:
        say("\n".join(["", *result.below, *result.verdicts]) if result.below or result.verdicts else "")
    return TARGET_MISSED if result.missed else DONE


def emit(text: str, output: str | None) -> None:
    """Write text to a file, or to standard output."""
    if output is not None:
        write_output(output, text)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise no_standard_output(error) from error


def check_writable(output: str | None, *inputs: str | None, option: str = "--output") -> None:
    """Refuse, before the work, a path that cannot be written or that is one of the inputs."""
    if output is None:
        return
    if not output:
        raise InputError(option, "is empty", "", "Pass a file.")
    try:
        path = Path(output)
        if path.is_dir():
            raise InputError(option, f"{output} is a directory", "", "Pass a file.")
        folder = (path.resolve() if path.is_symlink() else path).parent
        if not path.exists() and not folder.is_dir():
            raise InputError(option, f"there is no directory {folder}")
        # A file is replaced by a new one beside it; a pipe or device is not.
        needed = ([path] if path.exists() else []) + ([folder] if path.is_file() or not path.exists() else [])
        if not all(os.access(place, os.W_OK) for place in needed):
            raise InputError(option, f"{output} cannot be written: no permission")
        if path.is_file() and any(_is_read(path.stat(), given) for given in inputs if given is not None):
            raise InputError(option, f"{output} is also read, and would be overwritten", "", "Pass another file.")
    except OSError as error:
        raise _cannot_write(output, error, option) from error


def _is_read(there: os.stat_result, given: str) -> bool:
    """Return whether an input (- is standard input) is this file, under any name."""
    try:
        return os.path.samestat(there, os.fstat(sys.stdin.fileno()) if given == "-" else Path(given).stat())
    except (OSError, ValueError):  # not there, or not a file
        return False


def write_output(output: str, content: str | bytes, option: str = "--output") -> None:
    """Write the file that an option names."""
    try:
        write_whole(Path(output), content)
    except BrokenPipeError:  # as on standard output
        return
    except OSError as error:
        raise _cannot_write(output, error, option) from error


def _cannot_write(output: str, error: OSError, option: str) -> InputError:
    return InputError(option, f"{output} cannot be written: {error.strerror or error}")


def check_format(format_: str, checks: object, option: str) -> None:
    """Refuse, before the work, a file of test cases without any."""
    if format_ == "junit" and not checks:
        raise InputError(
            "--format",
            "junit without checks",
            "A junit file has a test case for each check.",
            f"Pass {option}.",
        )


def say(text: str) -> None:
    """Write a message to standard error: wrapped on a terminal, and never read as markup."""
    if not text:
        return
    if sys.stderr is None or not sys.stderr.isatty():
        to_standard_error(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text(printable(text, keep="\n")), highlight=False)


def fail(message: str, code: int) -> int:
    """Write one line about an error, and return the exit code."""
    to_standard_error(f"darkmetrics: {one_line(message)}")
    return code


@contextlib.contextmanager
def progress(*steps: str) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal; each call begins the next step."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(steps[0], total=len(steps))
        left = iter(enumerate(steps))

        def begin() -> None:
            done, step = next(left)
            shown.update(task, description=step, completed=done)

        yield begin


@contextlib.contextmanager
def in_words(names: Mapping[str, str], metrics: str = "--metric", *, quiet: bool = False) -> Iterator[None]:
    """Word errors and warnings of the library with options and columns (`names`, by option) for its arguments.

    `metrics` is the option that the metrics came from. Each warning is written once to standard error when the work is
    done, unless the result has the warnings (`quiet`).
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except InputError as error:
            raise error.worded_for(option_words(names, metrics)) from error
    for text in dict.fromkeys(_text_of(warning.message) for warning in caught) if not quiet else ():
        say(f"Warning: {worded(text, names)}")


def _text_of(warning: Warning | str) -> str:
    """Return the text of a warning, with its references if it has any."""
    text = warning.args[0] if isinstance(warning, Warning) and warning.args else warning
    return text if isinstance(text, Message) else str(warning)


@contextlib.contextmanager
def _log() -> Iterator[None]:
    """Write the log of the library to standard error."""
    import logging

    from darkmetrics.logs import LOGGER

    handler, level = logging.StreamHandler(sys.stderr), LOGGER.level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


def guarded(work: Callable[[], int | None], *, debug: bool) -> int:
    """Run a command; an error becomes one line and an exit code, below the traceback with --debug."""
    try:
        with _log() if debug else contextlib.nullcontext():
            return work() or DONE
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # users get a line, not a traceback
        if debug:
            to_standard_error(traceback.format_exc().rstrip())
        if isinstance(error, InputError):
            return fail(str(error.worded_for(option_words())), BAD_INPUT)
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        return fail(f"an error in darkmetrics itself ({said}); --debug shows where", OWN_ERROR)


def check_report(report: str | None, others: list[str | None], inputs: list[str | None]) -> None:
    """Refuse, before the work, a report that could not be made or written."""
    from importlib.util import find_spec

    if report is None:
        return
    check_writable(report, *inputs, option="--report")
    if Path(report).suffix.lower() not in _SUFFIXES:
        raise InputError("--report", f"{report} must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}")
    if any(other is not None and Path(report).resolve() == Path(other).resolve() for other in others):
        raise InputError("--report", f"{report} is another output as well", "", "Pass another file.")
    if find_spec("jinja2") is None:
        raise InputError("--report", "jinja2 is not installed", "", "pip install 'darkmetrics[report]'.")
