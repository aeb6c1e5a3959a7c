"""Text of the user on the command line: plain in Markdown, and a number only if it is one."""

import inspect
from typing import Annotated, get_args, get_origin

import pytest

from darkmetrics._text import markdown_text
from darkmetrics.cli import app

HOSTILE = ["<img src=x>", "[a](http://b)", "a|b", "https://evil.example"]


@pytest.mark.parametrize("value", HOSTILE)
def test_groups_and_columns_are_plain_text_in_markdown(run, tmp_path, value):
    rows = [f'{i % 2},{i % 10 / 10},"{value}"' for i in range(40)]
    (tmp_path / "x.csv").write_text(f'label,score,"{value}"\n' + "\n".join(rows) + "\n")
    told = ("--by", value, "--prob", "0.5", "-m", "recall", "-f", "markdown")
    done = run("monitor", tmp_path / "x.csv", *told)
    assert done.code == 0
    assert done.out.count(markdown_text(value)) >= 2  # the name of the column and the value of the group
    assert value not in done.out


@pytest.mark.parametrize("command", ["evaluate", "bounds", "curves", "diagnose"])
def test_names_of_metrics_are_plain_text_in_markdown(run, csv_file, command):
    told = ["--prob", "0.5"] if command in ("evaluate", "curves") else []
    done = run(command, csv_file, *told, "-m", "balanced_accuracy", "-f", "markdown")
    assert r"balanced\_accuracy" in done.out
    assert "balanced_accuracy" not in done.out


@pytest.mark.parametrize(
    "options",
    [
        ["evaluate", "--threshold", "{}"],
        ["evaluate", "--confidence-level", "{}"],
        ["check", "--fail-under", "recall=0.5", "--confidence", "{}"],
        ["evaluate", "--seed", "{}"],
        ["evaluate", "--zero-division", "{}"],
        ["check", "--fail-under", "recall={}"],
        ["evaluate", "-m", "fbeta({})"],
        ["curves", "--thresholds", "{}"],
        ["curves", "--thresholds", "0.1,{}"],
        ["curves", "--best", "recall", "--risk", "{}"],
        ["monitor", "--by", "id", "--fdr", "{}"],
        ["monitor", "--by", "id", "--min-labels", "{}"],
        ["monitor", "--by", "id", "--score-bins", "{}"],
        ["monitor", "--by", "id", "--jobs", "{}"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("number", ["1_0", "0_0.5", "\u0661", "0x10"])
def test_an_option_that_is_no_number_is_refused(refused, csv_file, options, number):
    command, *rest = (option.replace("{}", number) for option in options)
    said = refused(command, csv_file, *rest)
    assert number in said


def test_every_option_that_is_a_number_keeps_the_rule():
    """Of itself typer takes 1_000 for a number."""
    annotations = [
        get_args(parameter.annotation)
        for command in app.registered_commands
        for parameter in inspect.signature(command.callback or print).parameters.values()
        if get_origin(parameter.annotation) is Annotated
    ]
    numbers = [option for kind, option in annotations if {int, float} & {kind, *get_args(kind)}]
    assert len(numbers) > 10
    assert all(option.parser is not None for option in numbers)
