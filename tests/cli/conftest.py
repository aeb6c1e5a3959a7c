"""Files with gaps in their labels, and commands run in this process or in one of their own."""

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cli.tables import csv_text, rows
from darkmetrics.cli import run as run_command


@pytest.fixture(scope="session")
def data():
    return rows()


@pytest.fixture
def csv_file(tmp_path, data):
    path = tmp_path / "june.csv"
    path.write_text(csv_text({"id": range(400), "label": data.label, "score": data.score}), encoding="utf-8")
    return path


@pytest.fixture
def small_file(tmp_path):
    """Sixty rows, for claims about words, formats and pages, which do not depend on how many rows there are."""
    path, few = tmp_path / "few.csv", rows(60)
    path.write_text(csv_text({"id": range(60), "label": few.label, "score": few.score}), encoding="utf-8")
    return path


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process: exit code, standard output and standard error."""

    def go(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    return go


@pytest.fixture
def refused(run):
    """Run a command that must fail: one line on standard error, exit code 2, nothing on standard output."""

    def go(*arguments, stdin=b""):
        done = run(*arguments, stdin=stdin)
        assert (done.code, done.out) == (2, "")
        *before, line = done.err.splitlines()
        assert all(text.startswith(("Guessed ", "Settings of")) for text in before)
        assert line.startswith("darkmetrics: ")
        return line.removeprefix("darkmetrics: ")

    return go


@pytest.fixture
def start():
    """Start a command in a process of its own."""

    def go(*arguments, **settings):
        command = [sys.executable, "-m", "darkmetrics", *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": "80", **settings.pop("env", {})}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **settings
        )

    return go
