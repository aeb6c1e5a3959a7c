"""The first page that anybody sees: short, in plain words, and what it shows is what one gets."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from darkmetrics.cli import run

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
PYTHON = [code for language, code in BLOCKS if language == "python"]


def rows():
    scores = [0.9] * 200 + [0.1] * 800
    return pd.DataFrame({"fraud": [1] * 145 + [0] * 55 + [1] * 10 + [0] * 90 + [None] * 700, "p": scores})


def test_it_is_short_and_says_on_the_fifth_line_how_to_install():
    lines = TEXT.splitlines()
    assert len(lines) < 120
    assert lines[4].startswith("`pip install ")


def test_the_example_is_three_lines_and_prints_what_is_shown(capsys):
    shown = [text for language, text in BLOCKS if language == "text"]
    assert len([line for line in PYTHON[0].splitlines() if line]) == 3
    assert ">>>" not in PYTHON[0]
    exec(PYTHON[0], {})
    assert [capsys.readouterr().out] == shown


def test_the_numbers_in_the_text_are_those_of_the_example():
    from darkmetrics import evaluate

    rows_of_it = rows()
    result = evaluate(rows_of_it["fraud"], rows_of_it["p"], missingness="by_score", metrics="recall")
    distribution = result["recall"]
    (low, high), worst = distribution.interval(0.9), distribution.support().low
    said = " ".join(TEXT.split())
    assert f"Dropping the rows without a label says {result.labeled_only['recall']:.0%}." in said
    assert f"{distribution.mean():.0%}, and between {100 * low:.0f} and {high:.0%} nine times in ten" in said
    assert f"no less than {worst:.0%}" in said
    found, dropped = distribution.mean(), result.labeled_only["recall"]
    first = f"finds about {found:.0%} of the fraud can look as if it found {dropped:.0%} "
    assert first in TEXT.splitlines()[2]


def test_the_lines_for_own_rows_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(PYTHON) == 2
    exec(PYTHON[1], {"dm": pytest.importorskip("darkmetrics"), "df": rows().iloc[::10]})
    assert (tmp_path / "june.html").exists()


@pytest.mark.parametrize(("target", "code"), [("recall=0.6", 1), ("recall=0.5", 0)])
def test_the_exit_code_of_the_command_tells_whether_the_target_is_met(target, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows().to_csv("june.csv", index=False)
    command = next(text for _, text in BLOCKS if text.startswith("darkmetrics "))
    words = [target if word == "recall=0.6" else word for word in shlex.split(command)[1:]]
    assert target in words
    assert run(words) == code
    assert "recall" in capsys.readouterr().out


def test_the_commands_of_make_are_targets():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"^`?make ([a-z]+)|`make ([a-z]+)`", TEXT, flags=re.MULTILINE))
    named = {first or second for first, second in named}
    assert named == {"demo", "test", "docs"}
    assert named <= targets


def test_words_of_the_trade_are_left_to_the_glossary():
    for word in (r"\blaws?\b", r"\blabelings?\b", r"\breadings?\b", r"\bnodes?\b", r"\bcells?\b"):
        assert not re.search(word, TEXT, flags=re.IGNORECASE), word
    for word in ("MCAR", "MAR", "MNAR"):
        assert re.search(rf"\b{word}\b", TEXT)


def test_links_and_pictures_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)", TEXT)
    assert len(targets) > 15
    for target in targets:
        assert (ROOT / target).exists(), target
    assert len(re.findall(r"!\[[^\]]+\]\(", TEXT)) == 1
