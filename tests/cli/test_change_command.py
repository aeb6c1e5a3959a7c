"""darkmetrics change: two files of rows, or of cells, and what counts as worse."""

import html
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm


@pytest.fixture
def two(tmp_path):
    """June, whose scores have become too low, and May: as rows and as cells."""
    rng = np.random.default_rng(0)
    for name, power in (("may", 1.0), ("june", 1.4)):
        p = rng.random(800)
        y = np.where(rng.random(800) < 0.3, np.nan, rng.random(800) < p)
        pd.DataFrame({"fraud": y, "p": p**power}).to_csv(tmp_path / f"{name}.csv", index=False)
        dm.EvaluationSet(y, p**power).to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


ROWS = ("--label", "fraud", "--score", "p")
HOW = ("--missingness", "random", "-m", "recall", "-m", "accuracy")


def test_a_file_against_itself_is_refused(run, two):
    (two / "link.csv").symlink_to(two / "may.csv")
    for before in ("may.csv", "link.csv", "./may.csv", "*.csv"):
        done = run("change", two / "may.csv", f"{two}/{before}", *ROWS, *HOW)
        assert done.code == 2
        assert "is also FILE. A change is one between different rows" in done.err


def test_a_copy_of_a_file_gets_a_note(run, two):
    (two / "copy.csv").write_bytes((two / "may.csv").read_bytes())
    done = run("change", two / "may.csv", two / "copy.csv", *ROWS, *HOW)
    assert "look identical" in done.err + done.out


def test_rows_and_cells_have_the_same_answer(run, two):
    rows = run("change", two / "june.csv", two / "may.csv", *ROWS, *HOW, "-f", "json")
    cells = run("change", two / "june.parquet", two / "may.parquet", *HOW, "-f", "json")
    assert rows.code == cells.code == 0
    found, same = json.loads(rows.out), json.loads(cells.out)
    assert found["metrics"] == same["metrics"]
    assert (found["names"], same["names"]) == (["june.csv", "may.csv"], ["june.parquet", "may.parquet"])
    assert found["metrics"]["recall"]["probability_decreased"] > 0.999
    assert "recall fell from" in rows.err
    assert "no row in common" in rows.err


def test_the_answer_is_that_of_the_library(run, two):
    june, may = (pd.read_csv(two / f"{name}.csv") for name in ("june", "may"))
    settings: dict[str, Any] = {"missingness": "random", "metrics": ["recall", "accuracy"]}
    wanted = dm.compare_evaluations(*(dm.evaluate(one["fraud"], one["p"], **settings) for one in (june, may)))
    found = json.loads(run("change", two / "june.csv", two / "may.csv", *ROWS, *HOW, "-f", "json").out)
    assert found["metrics"] == json.loads(json.dumps(wanted.to_dict()["metrics"]))


@pytest.mark.parametrize(("worse", "code"), [("recall=0.02", 1), ("recall", 1), ("recall=0.5", 0), ("precision", 0)])
def test_worse_is_exit_code_1(run, two, worse, code):
    done = run("change", two / "june.csv", two / "may.csv", *ROWS, *HOW, "--max-decline", worse)
    assert done.code == code
    assert ("PASS: " in done.out) == (code == 0)
    assert ("FAIL: " in done.out) == (code == 1)
    assert worse.partition("=")[0] in done.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--max-decline", "recal"), "--max-decline: unknown metric 'recal'. Did you mean 'recall'?"),
        (("--max-decline", "recall=much"), "--max-decline: cannot read 'recall=much'. Write it like recall=0.02."),
        (("--max-decline", "prevalence"), "--max-decline: neither more nor less of prevalence is better."),
        (
            ("--max-decline", "recall", "--max-decline", "recall=0.1"),
            "--max-decline: 'recall' is passed twice. Pass it once.",
        ),
        (
            ("--max-decline", "recall=2"),
            "--max-decline: 2 for 'recall', which lies between 0 and 1 and never moves by more than that.",
        ),
        (
            ("--max-decline", "mcc=2"),
            "between -1 and 1 and never moves by more than that. Give an amount below 2.",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, two, more, message):
    done = run("change", two / "june.csv", two / "may.csv", *ROWS, *HOW, *more)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_cells_are_already_decided(run, two):
    done = run("change", two / "june.parquet", two / "may.parquet", *HOW, "--threshold", "0.4")
    assert done.code == 2
    assert "--threshold: the counts of " in done.err


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_page_is_written_besides_the_result(run, two, suffix):
    files = (two / f"june.{suffix}", two / f"may.{suffix}")
    asked = ("change", *files, *(ROWS if suffix == "csv" else ()), *HOW)
    plain, done = run(*asked), run(*asked, "--report", "page.html")
    assert (done.out, done.code) == (plain.out, plain.code)
    page = html.unescape(Path("page.html").read_text(encoding="utf-8"))
    assert f"Change from may.{suffix} to june.{suffix}" in page
    assert "recall fell from" in page
    assert "darkmetrics change" in page
    assert ("label column" in page) == (suffix == "csv")


def test_a_page_over_its_own_rows_is_refused(refused, two):
    message = refused("change", two / "june.csv", two / "may.csv", *ROWS, "--report", two / "may.csv")
    assert message.startswith("--report: ")
    assert "is also read" in message


def test_files_of_one_name_are_called_by_their_folders(run, two):
    for name in ("june", "may"):
        (two / name).mkdir()
        (two / f"{name}.csv").rename(two / name / "rows.csv")
    done = run("change", two / "june/rows.csv", two / "may/rows.csv", *ROWS, *HOW, "-f", "json")
    assert json.loads(done.out)["names"] == [f"{two}/june/rows.csv", f"{two}/may/rows.csv"]


@pytest.fixture
def refuted(two):
    """June again, whose missing labels all have scores near one half: they are not missing by label."""
    june = pd.read_csv(two / "june.csv").fillna(0.0)
    june.loc[(june["p"] - 0.5).abs() < 0.1, "fraud"] = np.nan
    june.to_csv(two / "june.csv", index=False)
    return two


@pytest.mark.parametrize("format_", ["table", "markdown", "json", "csv"])
def test_what_was_assumed_and_warned_of_is_in_every_format(run, refuted, format_):
    asked = ("--missingness", "by_label", "-m", "recall", "-f", format_)
    done = run("change", refuted / "june.csv", refuted / "may.csv", *ROWS, *asked)
    said = " ".join(done.out.replace("\\", "").split())  # on lines of any length, with nothing escaped
    assert "scores of missing rows are not a mixture" in said
    assert "`darkmetrics diagnose` says more" in said
    if format_ != "csv":
        assert "Assumed: labels are missing by label, whatever the score." in said
    if format_ == "json":
        assert {side: len(said) for side, said in json.loads(done.out)["warnings"].items()} == {"after": 1, "before": 0}
    if format_ == "table":
        assert "Warning: june.csv: The rows contradict" in done.out
        assert "Warning for" not in done.out


def test_the_columns_of_csv_are_those_that_the_page_explains(run, two):
    explained = runpy.run_path(str(Path(__file__).parents[2] / "docs/command_line.py"))["CSV"]["change"]
    done = run("change", two / "june.csv", two / "may.csv", *ROWS, *HOW, "-f", "csv")
    assert done.out.splitlines()[0].split(",") == list(explained)
