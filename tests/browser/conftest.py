"""A real browser for the tests of the report: Debian's chromium, driven by Playwright."""

import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
# As a container needs it, and without the calls home that a fresh profile makes.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Milliseconds: the machine that runs the tests may be busy with others.
PATIENCE = 120_000


def missing(what: str) -> NoReturn:
    """Skips the test, or fails it where everything is said to be there."""
    reason = f"{what}; `make system` installs it"
    if os.environ.get("DARKMETRICS_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        missing("no chromium on this machine")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe():
    if not AXE.exists():
        missing("axe-core is not there")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def window(browser):
    """A page that is there for one test after the other: a new one costs more than most of what is asked of it."""
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    return page


@pytest.fixture
def open_page(browser, window):
    """Opens a file; the page remembers what it asked for and what it complained about.

    The first file of a test is opened in the window that was there, all else (more files, or what comes from a server
    and may keep something) in a new one.
    """
    opened: list[Any] = []
    record_warnings: list[Any] = []

    def open_one(path, *, width=1200, height=900, dark=False, media="screen"):
        address, page = path.as_uri(), window
        if opened or not address.startswith("file:"):
            page = browser.new_context().new_page()
            page.set_default_timeout(PATIENCE)
        opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media=media, color_scheme="dark" if dark else "light")
        asked_for, complaints = page.asked_for, page.complaints = [], []
        hears = (
            (page.context, "request", lambda request: asked_for.append(request.url)),
            (page, "console", lambda message: complaints.append(message.text)),
            (page, "pageerror", lambda error: complaints.append(str(error))),
        )
        for speaker, event, hear in hears:
            speaker.on(event, hear)
        record_warnings.extend(hears)
        page.goto(address)
        return page

    yield open_one
    for speaker, event, hear in record_warnings:
        speaker.remove_listener(event, hear)
    for page in opened:
        if page is window:
            page.goto("about:blank")  # nothing of this test goes on in the next
        else:
            page.context.close()
