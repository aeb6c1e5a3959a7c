"""Pages that a command writes besides its result."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.output import check_writable

_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class PageOptions:
    """A page to be written besides the result."""

    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the --report.")] = None
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write a page as well: verdict, tables, pictures of each difference, what was assumed, in one .html.",
        ),
    ] = None


def check_report(report: str | None, others: list[str | None], inputs: list[str | None]) -> None:
    """Refuse a page that could not be made or written before the work and not after it."""
    from importlib.util import find_spec

    if report is None:
        return
    check_writable(report, *inputs, option="--report")
    if Path(report).suffix.lower() not in _PAGES:
        raise WordedError(f"--report: {report} must end in {' or '.join(_PAGES)}.")
    if any(other is not None and Path(report).resolve() == Path(other).resolve() for other in others):
        raise WordedError(f"--report: {report} is another output as well. Name another file.")
    if find_spec("jinja2") is None:
        raise WordedError("--report: needs jinja2; pip install 'darkmetrics[report]'.")
