"""The page about the command line says what --help says."""

import importlib.util
import re
from pathlib import Path

from typer.main import get_command

from darkmetrics.cli import app, run

DOCS = Path(__file__).parents[2] / "docs"


def written_now():
    spec = importlib.util.spec_from_file_location("command_line", DOCS / "command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_the_page_is_made_from_the_help():
    page = (DOCS / "reference/command-line.md").read_text(encoding="utf-8")
    assert page == written_now(), "run: python docs/command_line.py"


def test_every_option_and_an_example_are_in_help_and_page(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    page = (DOCS / "reference/command-line.md").read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    assert set(commands) == set(re.findall(r"^## (\w+)$", page, flags=re.MULTILINE))
    for name, command in commands.items():
        assert run([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert f"Example: darkmetrics {name}" in shown
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert option in shown
                    assert f"`{option}" in section


def test_the_example_of_every_command_can_be_read():
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # it is a group
        words = command.epilog.removeprefix("Example: darkmetrics ").split()
        assert words[0] == name
        command.make_context(name, words[1:], resilient_parsing=False)
