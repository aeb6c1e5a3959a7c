"""Counts the modules that one call walks through and draws them: `make walk`.

A module is on the walk when one of its functions runs; importing it does not count. Writes `explanation/walk-*.svg` and
the counts in `explanation/architecture.md`.
"""

import io
import multiprocessing
import pkgutil
import re
import sys
import tempfile
import threading
import tomllib
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from html import escape
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import darkmetrics as dm

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "explanation"
PAGE = FOLDER / "architecture.md"
TITLES = {
    "evaluate": "dm.evaluate(y_true, y_score)",
    "monitor": "darkmetrics monitor ... --by shop --target ...",
}

# Sizes of the picture, in its own units.
_WIDTH, _LEFT, _LINE, _BOX, _LETTER = 1000, 150, 30, 22, 6.7


def evaluate() -> None:
    """One evaluation of 300 rows, 30% of them without a label, and its table."""
    rng = np.random.default_rng(0)
    score = rng.random(300)
    label = (rng.random(300) < score).astype(float)
    label[rng.random(300) < 0.3] = np.nan
    str(dm.evaluate(label, score))


def monitor() -> None:
    """One run of the command on a CSV file with two groups, against a target."""
    from darkmetrics.cli import run

    rng = np.random.default_rng(0)
    lines = ["shop,label,score"]
    for score in rng.random(600).round(3):
        label = "" if rng.random() < 0.3 else int(rng.random() < score)
        lines.append(f"{rng.choice(['app', 'web'])},{label},{score}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("\n".join(lines) + "\n")
        output = ["--output", str(Path(folder) / "groups.txt")]
        columns = ["--label", "label", "--score", "score", "--by", "shop"]
        run(["monitor", str(path), *columns, "--target", "recall=0.7", *output])


def walk(call: Callable[[], Any]) -> list[str]:
    """The modules of darkmetrics whose functions run during a call, in the order of their first function.

    Everything is imported beforehand, so that what an import runs is not taken for a part of the walk. What a function
    has kept from an earlier call hides modules: ask in a fresh process.
    """
    for module in pkgutil.walk_packages(dm.__path__, "darkmetrics."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = str(frame.f_globals.get("__name__"))
            if name.startswith("darkmetrics.") and frame.f_code.co_filename != "<string>":  # no generated __init__
                entered.setdefault(name.removeprefix("darkmetrics."))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered)


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top to the bottom, as `make test` enforces them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip(" ()") for room in line.split("|")] for line in found]


def picture(title: str, modules: list[str]) -> str:
    """An SVG: a line for each room from the top layer to the bottom one, a numbered box for each module."""
    parts, y = [], 50
    for room in (room for layer in layers() for room in layer):
        inside = [(i, name) for i, name in enumerate(modules, 1) if name.split(".")[0] == room]
        if not inside:
            continue
        parts.append(f'<path d="M0 {y - 4}H{_WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="10" y="{y + 15}" font-weight="bold">{escape(room)}</text>')
        x = float(_LEFT)
        for i, name in inside:
            text = f"{i} {name.partition('.')[2] or name}"
            width = _LETTER * len(text) + 12
            if x + width > _WIDTH - 10:
                x, y = float(_LEFT), y + _LINE
            parts.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{_BOX}" rx="4" fill="#dbe9f6"/>')
            parts.append(f'<text x="{x + 6:.0f}" y="{y + 15}">{escape(text)}</text>')
            x += width + 8
        y += _LINE
    words = f"{title}: {len(modules)} modules, numbered by their first call"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 6}" width="{_WIDTH}" role="img">'
    style = '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11" fill="#222">'
    parts = [f"<title>{escape(words)}</title>", '<rect width="100%" height="100%" fill="#fff"/>', style, *parts]
    parts.insert(3, f'<text x="10" y="26" font-size="14">{escape(words)}</text>')
    return "\n".join([head, *parts, "</g>", "</svg>", ""])


def main() -> None:
    """Write both pictures, and the counts into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for call in (evaluate, monitor):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
            modules = fresh.submit(walk, call).result()
        (FOLDER / f"walk-{call.__name__}.svg").write_text(picture(TITLES[call.__name__], modules), encoding="utf-8")
        mark = f"<!-- walk: {call.__name__} -->"
        page = re.sub(rf"{mark}\d+", f"{mark}{len(modules)}", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
