"""The documentation as a built site: nothing is warned of, every link leads somewhere, all of it works offline."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

pytestmark = [pytest.mark.site, pytest.mark.browser]

ROOT = Path(__file__).parents[2]
MAIN_PAGES = [
    "index.html",
    "tutorial.html",
    "how-to/gate-in-ci.html",
    "reference/metrics.html",
    "reference/api/evaluate.html",
]


class Page(HTMLParser):
    """The anchors of a page and what it points to, as (tag, address)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.targets += [(tag, found[key]) for key in ("href", "src") if found.get(key)]


def broken(pages, site):
    """Each address of a page that leads to no file, or to no anchor of that file."""
    for path, page in pages.items():
        for _, address in page.targets:
            url = urlparse(address)
            if url.scheme or address == "#__skip":  # the theme's own: past the header
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.exists() and site in target.parents
            if there and url.fragment and target in pages:
                there = unquote(url.fragment) in pages[target].anchors
            if not there:
                yield f"{path.relative_to(site)}: {address}"


@pytest.fixture(scope="session")
def built():
    """The folder of the site, and what the builder said."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (ROOT / "build" / "site").resolve(), done.stdout + done.stderr


@pytest.fixture(scope="session")
def pages(built):
    # The page for what is not found is served from any address, and its links start at the root of a server. The live
    # page is no page of the documentation: it has tests of its own, and fetches Python.
    others = {built[0] / "404.html", built[0] / "live" / "page.html"}
    found = [path for path in sorted(built[0].rglob("*.html")) if path not in others]
    return {path: Page(path.read_text(encoding="utf-8")) for path in found}


def test_the_build_says_nothing_but_that_it_is_done(built):
    assert "No issues found" in built[1]


def test_every_page_is_built(built, pages):
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(built[0]) for path in pages} == written


def test_links_and_anchors_resolve(built, pages):
    assert sum(len(page.targets) for page in pages.values()) > 1000
    assert list(broken(pages, built[0])) == []


def test_a_broken_link_and_a_broken_anchor_would_be_found(built, pages):
    path = built[0] / "index.html"
    bad = Page('<a href="gone.html"></a><a href="tutorial.html#gone"></a><a href="tutorial.html"></a>')
    assert list(broken({**pages, path: bad}, built[0])) == ["index.html: gone.html", "index.html: tutorial.html#gone"]


def test_no_page_loads_anything_from_the_network(pages):
    loaded = {(tag, url) for page in pages.values() for tag, url in page.targets if tag != "a" and urlparse(url).scheme}
    assert loaded == set()


def test_style_sheets_and_scripts_fetch_nothing_from_the_network(built):
    for path in built[0].rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", path.read_text(encoding="utf-8")), path


def test_the_reference_shows_every_name_that_it_asks_for(built):
    for path in (ROOT / "docs" / "reference" / "api").glob("*.md"):
        asked = set(re.findall(r"^::: (\S+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
        page = built[0] / path.relative_to(ROOT / "docs").with_suffix(".html")
        assert asked
        assert asked - Page(page.read_text(encoding="utf-8")).anchors == set()


@pytest.mark.parametrize("layout", ["light", "dark", "narrow"])
@pytest.mark.parametrize("name", MAIN_PAGES)
def test_axe_finds_nothing(open_page, built, axe, name, layout):
    page = open_page(built[0] / name, width=400 if layout == "narrow" else 1200, dark=layout == "dark")
    page.wait_for_function("document.documentElement.classList.contains('js')")
    page.wait_for_timeout(300)  # the theme adds buttons to code that is in sight
    assert page.complaints == []
    assert all(address.startswith("file:") for address in page.asked_for)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {preload: false}).then(result => result.violations)")
    assert [(problem["id"], problem["nodes"][0]["html"]) for problem in found] == []
    # No page is wider than the screen, so that nobody scrolls sideways to read.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_search_finds_pages_without_a_server(open_page, built):
    page = open_page(built[0] / "index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("reject inference")
    page.get_by_text("Reject inference: a policy decided who got a label").first.wait_for()
    assert page.complaints == []


def test_the_copy_button_copies_input_without_prompts(open_page, built):
    page = open_page(built[0] / "tutorial.html")
    button = page.locator("[data-clipboard-text]").first
    button.wait_for(state="attached")
    copied = button.get_attribute("data-clipboard-text")
    assert copied.startswith("import numpy as np\nimport darkmetrics as dm\n")
    assert ">>>" not in copied
