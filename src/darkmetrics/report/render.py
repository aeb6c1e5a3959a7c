"""render(): views of the summary, and write_report(), which puts one into a file or shows it in a notebook."""

import base64
import hashlib
import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from darkmetrics._text import a_kind_of, visible
from darkmetrics.argument_types import PathLike
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.files import write_whole
from darkmetrics.report.markdown import markdown
from darkmetrics.report.page import page
from darkmetrics.report.summarize import SCHEMA, summarize

# What a report is, by the suffix of its file.
SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


@dataclass(frozen=True)
class ReportPage:
    """A report that was made without a file: a notebook shows it, and `html` is the page as text.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> page = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6])).report(
    ...     title="Four rows"
    ... )
    >>> page
    <ReportPage 'Four rows': a notebook shows it, report("report.html") writes it>
    >>> page.html[:15]
    '<!doctype html>'
    """

    title: str
    html: str = field(repr=False)

    def __repr__(self) -> str:
        return f'<ReportPage {self.title!r}: a notebook shows it, report("report.html") writes it>'

    def _repr_html_(self) -> str:
        # In a frame of its own: styles and scripts of the page and of the notebook do not meet.
        page = html.escape(self.html)
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="800" srcdoc="{page}"></iframe>'
        )


def render(summary: object, format: str = "html") -> str:  # noqa: A002
    """The report as a page, as Markdown or as JSON.

    The page is one file that opens offline: styles, script and pictures are inside, and its content security policy
    forbids it to load anything or to run anything else.

    Parameters
    ----------
    summary : dict
        What `summarize` returned, or the same read back from JSON.
    format : {"html", "markdown", "json"}
        "html" needs jinja2: pip install 'darkmetrics[report]'.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), metrics="recall"
    ... )
    >>> summary = dm.report.summarize(result, title="Four rows")
    >>> dm.report.render(summary, "markdown").splitlines()[:3]
    ['# Four rows', '', '4 rows: 3 labeled, 1 missing (25.0%)']
    """
    views: dict[str, Callable[[Mapping[str, Any]], str]] = {"html": _html, "markdown": markdown, "json": _json}
    if format not in views:
        raise unknown_name("format", "format", str(format), views)
    if not isinstance(summary, Mapping) or summary.get("schema") != SCHEMA:
        raise InputError(f"summary: expected what summarize returns, with schema {SCHEMA!r}.")
    return views[format](summary)


def write_report(evaluation: Evaluation, path: PathLike | None = None, **about: Any) -> Path | ReportPage:
    """Writes the report of an evaluation; the suffix of the path says in which format. See `Evaluation.report`."""
    if path is None:
        jinja2_package()  # before the work, which may take a while
        summary = summarize(evaluation, **about)
        return ReportPage(visible(summary["title"]), render(summary))
    target, suffix = _target(path)
    if suffix not in SUFFIXES:
        raise InputError(f"path: {target.name!r} {no_such_suffix(suffix)}.")
    if SUFFIXES[suffix] == "html":
        jinja2_package()
    return write_page(target, render(summarize(evaluation, **about), SUFFIXES[suffix]))


def write_or_show(path: PathLike | None, title: str, make: Callable[[], str]) -> Path | ReportPage:
    """A page that there is as HTML alone: in its file, or, without a path, as something that a notebook shows."""
    jinja2_package()  # before the work
    if path is None:
        return ReportPage(visible(title), make())
    target, suffix = _target(path)
    if suffix not in (".html", ".htm"):
        why = no_such_suffix(suffix, (".html",))
        raise InputError(f"path: {target.name!r} {why}; to_dict() and to_frame() have the numbers.")
    return write_page(target, make())


def _target(path: PathLike) -> tuple[Path, str]:
    """The file to write, and the suffix that says its format."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path: got {a_kind_of(path)}. Give the file to write as a text or a path.")
    return Path(path), Path(path).suffix.lower()


def no_such_suffix(suffix: str, known: Sequence[str] = (".html", ".md", ".json")) -> str:
    """Why a file with that suffix cannot be written and what to do about it, as the end of a sentence."""
    *others, last = known
    ends = f"{', '.join(others)} or {last}" if others else last
    if suffix == ".pdf":
        why = "cannot be written here: a page is HTML. Open it in a browser and print it to PDF; pages are numbered."
        return f"{why} End it in {ends}"
    return f"must end in {ends}"


def write_page(target: Path, text: str) -> Path:
    """The text in the file, which appears when it is complete."""
    try:
        write_whole(target, text)
    except OSError as error:
        raise InputError(f"path: cannot write {str(target)!r}: {error.strerror or error}.") from None
    return target


def _json(summary: Mapping[str, Any]) -> str:
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def _html(summary: Mapping[str, Any]) -> str:
    return filled("report.html.j2", page(summary))


def filled(template: str, context: Mapping[str, Any]) -> str:
    """A page from its template, everything in it escaped, with a policy that lets nothing else in."""
    environment = _environment(jinja2_package())

    def source(name: str) -> str:
        # Browsers read every end of line as a newline before they hash; a checkout may have written others.
        return str(environment.loader.get_source(environment, name)[0]).replace("\r\n", "\n")

    own = {"style": source("report.css"), "script": source("report.js")}
    # Of all styles and scripts the page may use these two: whatever else came in would not run.
    policy = f"default-src 'none'; style-src {_hash(own['style'])}; script-src {_hash(own['script'])}; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'"
    text: str = environment.get_template(template).render({**context, **own}, policy=policy)
    return text


@cache
def _environment(jinja2: Any) -> Any:
    """What knows the templates; kept, as it takes a while to read them."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("darkmetrics.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def jinja2_package() -> Any:
    """What fills templates, or an error that says how to install it."""
    try:
        import jinja2
    except ImportError:
        raise MethodError("report: an HTML page needs jinja2; pip install 'darkmetrics[report]'.") from None
    return jinja2
