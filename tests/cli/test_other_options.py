"""Options in words of other tools are answered with the command to run, and that command works."""

import shlex

import pytest

ROWS = "fraud,score,country,day\n" + "".join(
    f"{'' if i % 5 == 0 else int(i % 3 > 0)},{(i * 37 % 100) / 100},{'DE' if i % 2 else 'FR'},2026-0{1 + i % 3}-01\n"
    for i in range(120)
)


@pytest.fixture
def june(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "june.csv").write_text(ROWS)
    return tmp_path / "june.csv"


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("june.csv --metrics recall", "darkmetrics june.csv --metric recall"),
        ("june.csv --target fraud --proba score", "darkmetrics june.csv --label fraud --score score"),
        (
            "evaluate june.csv --y-true fraud --y_score score",
            "darkmetrics evaluate june.csv --label fraud --score score",
        ),
        (
            "evaluate june.csv --random-state 3 --mechanism MAR",
            "darkmetrics evaluate june.csv --seed 3 --missingness MAR",
        ),
        ("monitor june.csv --segment country", "darkmetrics monitor june.csv --by country"),
        ("monitor june.csv", "darkmetrics monitor june.csv --time day --period month"),
    ],
)
def test_another_word_is_answered_with_a_command_that_works(typed, command, june, run):
    refused = run(*shlex.split(typed))
    assert refused.code == 2
    assert f"Run: {command}" in refused.err
    assert run(*shlex.split(command)[1:]).code == 0


@pytest.mark.parametrize("typed", ["june.csv --zzz 1", "june.csv --lable fraud"])
def test_a_word_that_stands_for_no_option_is_left_to_the_parser(typed, june, run):
    refused = run(*shlex.split(typed))
    assert refused.code == 2
    assert "No such option: --" in refused.err
    assert "Run:" not in refused.err
