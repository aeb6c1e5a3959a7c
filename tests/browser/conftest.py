"""A real browser for the tests of the report: Debian's chromium, driven by Playwright."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

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


@pytest.fixture
def open_page(browser):
    """Opens a file; the page remembers what it asked for and what it complained about."""
    contexts = []

    def open_one(path, *, width=1200, height=900, dark=False, media="screen"):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.emulate_media(media=media, color_scheme="dark" if dark else "light")
        page.asked_for, page.complaints = [], []
        context.on("request", lambda request: page.asked_for.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
