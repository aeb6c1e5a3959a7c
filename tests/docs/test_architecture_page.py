"""The page on the architecture names the tree and the layers as they are, and its pictures show the rooms there are."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "darkmetrics"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")


def block(name):
    """The lines of a fenced block of the page, by the word behind its fence."""
    found = re.search(rf"^```{name}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert found
    return found[1].splitlines()


def test_the_tree_names_every_room_of_the_source_and_no_other():
    named = [line.split()[0] for line in block("tree")[1:]]
    there = [f"{path.name}/" if path.is_dir() else path.name for path in SOURCE.iterdir()]
    kept = {name for name in there if name.endswith(("/", ".py")) and name != "__pycache__/"}
    assert sorted(named) == sorted(kept)


def test_the_layers_are_those_that_are_enforced():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    enforced = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    assert block("layers") == [re.sub(r"[()]", "", line) for line in enforced]


def test_every_path_on_the_page_exists():
    named = set(re.findall(r"`([\w./]+(?:/|\.py|\.toml))`", TEXT))
    missing = [name for name in named if not any((place / name).exists() for place in (ROOT, SOURCE, ROOT / "tests"))]
    assert not missing


@pytest.mark.parametrize("idea", ["First", "Second", "Third"])
def test_the_ideas_that_modules_cite_are_on_the_page(idea):
    cited = {
        found for path in SOURCE.rglob("*.py") for found in re.findall(r"architecture, (\w+) idea", path.read_text())
    }
    assert cited <= {"first", "second", "third"}
    assert f"**{idea}: " in TEXT


@pytest.mark.parametrize("call", ["evaluate", "monitor"])
def test_pictures_and_page_say_the_same_number_of_modules(call):
    picture = (PAGE.parent / f"walk-{call}.svg").read_text(encoding="utf-8")
    [said] = re.findall(rf"<!-- walk: {call} -->(\d+)", TEXT)
    boxes = re.findall(r"<text [^>]*>(\d+) [\w.]+</text>", picture)
    assert sorted(map(int, boxes)) == list(range(1, int(said) + 1))
    assert f"{said} modules" in picture


def test_the_walk_notes_functions_that_run_and_not_imports(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from walk import walk  # type: ignore[import-not-found]  # a script beside the pages

    def call():
        from darkmetrics.metrics import list_metrics

        list_metrics()

    assert walk(call) == ["metrics.metric"]
    assert sys.getprofile() is None
