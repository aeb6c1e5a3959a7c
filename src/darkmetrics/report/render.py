"""Rendering: a report as HTML, Markdown, JSON or PDF, in a file or in a notebook."""

import base64
import hashlib
import html
import json
import os
import shutil
import subprocess
import tempfile
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
from darkmetrics.report.evaluations import evaluation_report
from darkmetrics.report.markdown import render_markdown
from darkmetrics.report.sections import Report
from darkmetrics.report.summarize import SCHEMA, summarize

# The format of a file by its suffix.
SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".json": "json",
    ".pdf": "pdf",
}
# Browsers that print a page to PDF.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_MAC_BROWSERS = ("Google Chrome", "Chromium", "Microsoft Edge")


@dataclass(frozen=True)
class ReportPage:
    """A report without a file: a notebook shows it, and `html` is the page as text.

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
    """Return the report of an evaluation as HTML, Markdown or JSON.

    The HTML page is one file that opens offline: styles, script and pictures are inside, and its content security
    policy forbids it to load anything or to run anything else.

    Parameters
    ----------
    summary : dict
        The result of `summarize`, or the same read back from JSON.
    format : {"html", "markdown", "json"}
        "html" needs jinja2: pip install 'darkmetrics[report]'.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), metrics="recall"
    ... )
    >>> summary = dm.report.summarize(result, title="Four rows")
    >>> dm.report.render(summary, "markdown").splitlines()[4]
    '4 rows: 3 labeled, 1 missing (25.0%)'
    """
    if format not in ("html", "markdown", "json"):
        raise unknown_name("format", "format", str(format), ["html", "markdown", "json"])
    if not isinstance(summary, Mapping) or summary.get("schema") != SCHEMA:
        raise InputError("summary", f"expected what summarize returns, with schema {SCHEMA!r}")
    if format == "json":
        return _json(summary)
    report = evaluation_report(summary)
    return render_html(report) if format == "html" else render_markdown(report)


def write_report(evaluation: Evaluation, path: PathLike | None = None, **about: Any) -> Path | ReportPage:
    """Write the report of an evaluation in the format of the suffix. See `Evaluation.report`."""
    summary = cache(lambda: summarize(evaluation, **about))
    return write_or_show(path, lambda: evaluation_report(summary()), summary)


def write_or_show(
    path: PathLike | None, make: Callable[[], Report], document: Callable[[], Mapping[str, Any]]
) -> Path | ReportPage:
    """Write a report in the format of the suffix; without a path return it for a notebook.

    `make` and `document` compute the report and its numbers. What can be refused is refused before that.
    """
    if path is None:
        jinja2_package()
        report = make()
        return ReportPage(visible(report.title), render_html(report))
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("path", f"got {a_kind_of(path)}", "", "Pass the file to write as a text or a path.")
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("path", f"{target.name!r} {describe_suffixes()}")
    kind = SUFFIXES[suffix]
    if kind in ("html", "pdf"):
        jinja2_package()
    if kind == "json":
        return _write(target, _json(document()))
    if kind == "pdf":
        browser = _find_browser(target)
        return _print_to_pdf(browser, render_html(make()), target)
    report = make()
    return _write(target, render_html(report) if kind == "html" else render_markdown(report))


def describe_suffixes(known: Sequence[str] = (".html", ".md", ".json", ".pdf")) -> str:
    """Return the rule for suffixes, as the end of a sentence."""
    *others, last = known
    return f"must end in {', '.join(others)} or {last}"


def _write(target: Path, text: str) -> Path:
    """Write text to a file, which appears when it is complete."""
    try:
        write_whole(target, text)
    except OSError as error:
        raise InputError("path", f"cannot write {str(target)!r}: {error.strerror or error}") from None
    return target


def _find_browser(target: Path) -> str:
    """Return the path of a browser, or raise an error that says how to get a PDF without one."""
    programs = _find_programs()
    if not programs:
        raise MethodError(
            "path",
            f"{target.name!r} needs Chromium, Chrome or Edge, and none is installed",
            "",
            f"Write {target.with_suffix('.html').name!r}, open it in a browser and print it to PDF.",
        )
    return programs[0]


def _find_programs() -> list[str]:
    """Return the browsers that are installed."""
    programs = [program for name in _BROWSERS if (program := shutil.which(name))]
    apps = (Path(f"/Applications/{name}.app/Contents/MacOS/{name}") for name in _MAC_BROWSERS)
    return [*programs, *(str(app) for app in apps if app.exists())]


def _print_to_pdf(browser: str, page: str, target: Path) -> Path:
    """Print a page to a PDF file with a browser that has no window."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, printed = folder / "report.html", folder / "report.pdf"
        source.write_text(page, encoding="utf-8")
        options = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        options += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        options += [f"--user-data-dir={folder / 'profile'}", "--no-pdf-header-footer", f"--print-to-pdf={printed}"]
        done = subprocess.run([browser, *options, source.as_uri()], capture_output=True, check=False, timeout=120)
        if not printed.exists():
            detail = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise MethodError("path", f"{Path(browser).name} did not print {target.name!r}: {' '.join(detail)}")
        try:
            shutil.move(printed, target)
        except OSError as error:
            raise InputError("path", f"cannot write {str(target)!r}: {error.strerror or error}") from None
    return target


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def render_html(report: Report) -> str:
    """Return a report as a page, everything in it escaped, with a policy that lets nothing else in."""
    environment = _environment(jinja2_package())

    def source(name: str) -> str:
        # Browsers read every end of line as a newline before they hash; a checkout may have written others.
        return str(environment.loader.get_source(environment, name)[0]).replace("\r\n", "\n")

    assets = {"style": source("report.css"), "script": source("report.js")}
    # The page may use these two alone: no other style or script would run.
    policy = f"default-src 'none'; style-src {_hash(assets['style'])}; script-src {_hash(assets['script'])}"
    policy += "; img-src data:; base-uri 'none'; form-action 'none'"
    text: str = environment.get_template("report.html.j2").render(report=report, policy=policy, **assets)
    return text


@cache
def _environment(jinja2: Any) -> Any:
    """Return the environment of the templates, which takes a while to read."""
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
    """Return the package that fills templates, or raise an error that says how to install it."""
    try:
        import jinja2
    except ImportError:
        raise MethodError("report", "jinja2 is not installed", "", "pip install 'darkmetrics[report]'.") from None
    return jinja2
