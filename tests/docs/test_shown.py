"""What README and pages show below a command is what it prints."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load():
    spec = importlib.util.spec_from_file_location("shown", DOCS / "shown.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


shown = load()


def test_the_readme_shows_what_its_example_prints():
    assert (DOCS.parent / "README.md").read_text(encoding="utf-8") == shown.readme(), "run: python docs/shown.py"


@pytest.mark.parametrize("path", shown.pages(), ids=lambda path: path.stem)
def test_consoles_show_what_their_commands_print(path):
    assert path.read_text(encoding="utf-8") == shown.page(path), "run: python docs/shown.py"


def test_another_output_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ darkmetrics metrics --format nothing\nall is well\n$ echo $?\n0\n```\n")
    assert shown.page(page) != page.read_text()
    assert shown.page(page).endswith("\n$ echo $?\n2\n```\n")


def test_standard_error_can_be_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ darkmetrics metrics --format nothing 2>/dev/null\n$ echo $?\n2\n```\n")
    assert shown.page(page) == page.read_text()


def test_a_console_runs_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ rm june.csv\n```\n")
    with pytest.raises(ValueError, match="not 'rm'"):
        shown.page(page)
