"""The gallery shows every picture with the code that draws it. The code itself is run as that of every page."""

import ast
import importlib.util
import re
from pathlib import Path

import darkmetrics as dm

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")
# What a result's own method stands for.
METHODS = {
    "result.plot()": "plot_metrics",
    "by_age.plot_arrival()": "plot_arrival",
    'by_country.alerts({"recall": 0.45}).plot()': "plot_groups",
    'august.alerts({"recall": 0.45}).plot_over_time(': "plot_over_time",
    'august.compare("2026-06", "2026-02").plot(': "plot_change",
    'august.trend("recall").plot()': "plot_trend",
    '.disparity("recall").plot()': "plot_disparity",
}


def gallery_steps():
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    return list(gallery.steps(PAGE)), gallery.PHOTOGRAPHS


def test_every_picture_is_shown_once_and_every_shown_one_is_there():
    shown = re.findall(r"\]\(gallery/([a-z-]+\.png)\)", PAGE)
    assert sorted(shown) == sorted(path.name for path in (DOCS / "gallery").glob("*.png"))


def test_every_picture_follows_code_that_makes_its_axes():
    steps, photographs = gallery_steps()
    for code, name in steps:
        if name not in photographs:
            last = ast.parse(code).body[-1]
            assert isinstance(last, ast.Assign), name
            assert [ast.unparse(target) for target in last.targets] == ["ax"], name


def test_every_plot_of_the_library_is_in_the_gallery():
    drawn = set(re.findall(r"dm\.plotting\.(plot_[a-z_]+)", PAGE)) | {
        name for call, name in METHODS.items() if call in PAGE
    }
    assert drawn == {name for name in dm.plotting.__all__ if name.startswith("plot_")}
