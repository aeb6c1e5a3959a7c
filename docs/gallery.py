"""Draws the pictures of the documentation anew: `make gallery`. Look at them before they are committed.

The code is that of the page `gallery.md`, where each picture follows the lines that draw it.
"""

import argparse
import doctest
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

PAGE = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).parent / "gallery"
DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
PHOTOGRAPHS = {"report": ("light", ""), "report-dark": ("dark", "#thresholds")}


def steps(page: str) -> Iterator[tuple[str, str]]:
    """The code between one picture of a page and the next, with the name of the picture that it draws."""
    before = 0
    for picture in re.finditer(r"^!\[.+\]\(gallery/([a-z-]+)\.png\)$", page, re.MULTILINE):
        examples = doctest.DocTestParser().get_examples(page[before : picture.start()])
        before = picture.end()
        yield "".join(example.source for example in examples), picture[1]


def draw(folder: Path, names: list[str]) -> None:
    """Run the page and keep the pictures named, or all."""
    mpl.use("Agg")
    mpl.rcdefaults()
    seen: dict[str, object] = {}
    for code, name in steps(PAGE.read_text(encoding="utf-8")):
        exec(code, seen)
        if name not in PHOTOGRAPHS and (not names or name in names):
            seen["ax"].figure.savefig(folder / f"{name}.png", dpi=120)  # type: ignore[attr-defined]


def photograph_report(folder: Path) -> None:
    """The top of the demo's report in light, its thresholds in dark."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        subprocess.run([sys.executable, DEMO], cwd=made, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (scheme, place) in PHOTOGRAPHS.items():
            page = browser.new_page(viewport={"width": 1000, "height": 1290}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto((Path(made) / "demo-report.html").as_uri() + place)
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of pictures; all if none is named")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    draw(FOLDER, given.names)
    if not given.names or set(given.names) & PHOTOGRAPHS.keys():
        photograph_report(FOLDER)
