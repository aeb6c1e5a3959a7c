"""What a command says: results to standard output or a file, words to standard error, errors as one line."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from darkmetrics._text import printable
from darkmetrics.cli.messages import WordedError, for_the_command_line, one_line
from darkmetrics.cli.rendering import FOR_PEOPLE, WIDTH, Result, rendered, terminal_width
from darkmetrics.cli.streams import no_standard_output, to_standard_error
from darkmetrics.exceptions import InputError
from darkmetrics.files import write_whole

_PAGES = (".html", ".htm")
DONE, TARGET_MISSED, BAD_INPUT, OWN_ERROR, INTERRUPTED = 0, 1, 2, 3, 130


def publish(result: Result, format_: str, output: str | None) -> int:
    """The result where it was asked for, and its words where it has none of them; the exit code.

    A table and Markdown have them: what was assumed and how a target stands must not get lost in a pipe. Beside a
    format for programs, or a file, they go to standard error.
    """
    told = format_ in FOR_PEOPLE and output is None
    if not told:
        say("\n".join([*result.above, ""]) if result.above else "")
    emit(rendered(result, format_, terminal_width() if output is None else WIDTH), output)
    if not told:
        say("\n".join(["", *result.below, *result.verdicts]) if result.below or result.verdicts else "")
    return TARGET_MISSED if result.missed else DONE


def emit(text: str, output: str | None) -> None:
    """The result where it was asked for."""
    if output is not None:
        write_output(output, text)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise no_standard_output(error) from error


def check_writable(output: str | None, *inputs: str | None, option: str = "--output") -> None:
    """Refuse the path that an option names before the work and not after it; it must not be one of the input files."""
    if output is None:
        return
    if not output:
        raise WordedError(f"{option}: is empty. Name a file.")
    try:
        path = Path(output)
        if path.is_dir():
            raise WordedError(f"{option}: {output} is a directory. Name a file.")
        folder = (path.resolve() if path.is_symlink() else path).parent
        if not path.exists() and not folder.is_dir():
            raise WordedError(f"{option}: there is no directory {folder}.")
        # A file is replaced by a new one beside it; a pipe or device is not.
        needed = ([path] if path.exists() else []) + ([folder] if path.is_file() or not path.exists() else [])
        if not all(os.access(place, os.W_OK) for place in needed):
            raise WordedError(f"{option}: {output} cannot be written: no permission.")
        if path.is_file() and any(_is_read(path.stat(), given) for given in inputs if given is not None):
            raise WordedError(f"{option}: {output} is also read, and would be overwritten. Name another file.")
    except OSError as error:
        raise _cannot_write(output, error, option) from error


def _is_read(there: os.stat_result, given: str) -> bool:
    """Whether an input, of which - is standard input, is this very file, under whatever name."""
    try:
        return os.path.samestat(there, os.fstat(sys.stdin.fileno()) if given == "-" else Path(given).stat())
    except (OSError, ValueError):  # not there, or not a file
        return False


def write_output(output: str, content: str | bytes, option: str = "--output") -> None:
    """The content into the file that the option names."""
    try:
        write_whole(Path(output), content)
    except BrokenPipeError:  # as on standard output
        return
    except OSError as error:
        raise _cannot_write(output, error, option) from error


def _cannot_write(output: str, error: OSError, option: str) -> WordedError:
    return WordedError(f"{option}: {output} cannot be written: {error.strerror or error}.")


def check_format(format_: str, checks: object, option: str) -> None:
    """Refuse a file of tests that would have none, before the work and not after it."""
    if format_ == "junit" and not checks:
        raise WordedError(f"--format: junit has a test case for each check, and there is none. Give {option}.")


def seen_by_a_person(format_: str, output: str | None = None) -> bool:
    """Whether a result goes to a terminal, as text that a person reads."""
    return output is None and format_ in FOR_PEOPLE and sys.stdout is not None and sys.stdout.isatty()


def say(text: str) -> None:
    """Words for a person: wrapped on a terminal, and never read as markup."""
    if not text:
        return
    if sys.stderr is None or not sys.stderr.isatty():
        to_standard_error(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text(printable(text, keep="\n")), highlight=False)


def fail(message: str, code: int) -> int:
    """One line about what went wrong; the exit code."""
    to_standard_error(f"darkmetrics: {one_line(message)}")
    return code


@contextlib.contextmanager
def progress(*steps: str) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, and nothing elsewhere; each call names and begins the next step."""
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
def in_words(names: Mapping[str, str], metrics: str = "--metric", *, said: bool = True) -> Iterator[None]:
    """Errors and warnings of the library with options and columns (`names`, by role) for its arguments.

    `metrics` is the option that the metrics came from. Warnings are said once each on standard error, when the work is
    done, unless the result has them (`said` is False).
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except WordedError:
            raise
        except InputError as error:
            raise WordedError(for_the_command_line(error, names, metrics)) from error
    for text in dict.fromkeys(str(warning.message) for warning in caught) if said else ():
        say(f"Warning: {for_the_command_line(text, names, metrics)}")


@contextlib.contextmanager
def _log() -> Iterator[None]:
    """The log of the library on standard error."""
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
    """Run a command; what goes wrong is one line and an exit code, below the traceback if that is asked for."""
    try:
        with _log() if debug else contextlib.nullcontext():
            return work() or DONE
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the last one to see it: a user gets a line, not a traceback
        if debug:
            to_standard_error(traceback.format_exc().rstrip())
        if isinstance(error, InputError):
            return fail(str(error) if isinstance(error, WordedError) else for_the_command_line(error), BAD_INPUT)
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        return fail(f"an error in darkmetrics itself ({said}); --debug shows where", OWN_ERROR)


def check_report(report: str | None, others: list[str | None], inputs: list[str | None]) -> None:
    """Refuse a page that could not be made or written before the work and not after it."""
    from importlib.util import find_spec

    if report is None:
        return
    check_writable(report, *inputs, option="--report")
    if Path(report).suffix.lower() not in _PAGES:
        from darkmetrics.report.render import no_such_suffix

        raise WordedError(f"--report: {report} {no_such_suffix(Path(report).suffix.lower(), _PAGES)}.")
    if any(other is not None and Path(report).resolve() == Path(other).resolve() for other in others):
        raise WordedError(f"--report: {report} is another output as well. Name another file.")
    if find_spec("jinja2") is None:
        raise WordedError("--report: needs jinja2; pip install 'darkmetrics[report]'.")
