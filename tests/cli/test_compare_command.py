"""darkmetrics compare says what the library says, and its gate is an exit code."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from cli.tables import csv_text


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=300)
    y = rng.random(300) < 1 / (1 + np.exp(-2 * truth))
    label = [None if gap else int(one) for gap, one in zip(rng.random(300) < 0.5, y, strict=True)]
    scores = {
        name: (1 / (1 + np.exp(-truth - s * rng.normal(size=300)))).round(4) for name, s in (("p1", 2), ("p2", 0))
    }
    return {"fraud": label, **{name: score.tolist() for name, score in scores.items()}}


@pytest.fixture
def file(tmp_path, columns):
    path = tmp_path / "june.csv"
    path.write_text(csv_text(columns), encoding="utf-8")
    return path


def told(file, *more):
    named = ["--score", "champion=p1", "--score", "challenger=p2"]
    return ["compare", file, "--label", "fraud", *named, "--missingness", "random", *more]


def test_a_file_says_the_same_to_the_command_and_to_the_library(run, tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.02).astype(int)
    gains = dict(zip("ABCD", (1.2, 1.3, 1.1, 1.25), strict=True))
    scores = {name: 1.0 / (1.0 + np.exp(5.0 - rng.normal(size=400) - gain * y)) for name, gain in gains.items()}
    path = str(tmp_path / "small.parquet")
    pl.DataFrame({"y": y, **scores}).write_parquet(path)
    named = [text for name in gains for text in ("--score", name)]
    done = run("compare", path, "--label", "y", *named, "--threshold", "0.02", "-m", "roc_auc", "--format", "json")
    expected = dm.compare("y", list(gains), data=path, threshold=0.02, metrics="roc_auc")
    assert json.loads(done.out) == json.loads(json.dumps(expected.to_dict()))


def test_the_numbers_are_those_of_the_library(run, file, columns):
    done = run(*told(file, "-m", "f1", "--threshold", "champion=0.4", "--format", "json", "--seed", 1))
    assert done.code == 0
    found = json.loads(done.out)
    scores = {"champion": columns["p1"], "challenger": columns["p2"]}
    threshold = {"champion": 0.4}
    expected = dm.compare(columns["fraud"], scores, missingness="random", metrics="f1", threshold=threshold, rng=1)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert found["schema"] == "darkmetrics.comparison/1"


@pytest.mark.parametrize("format_", ["table", "csv", "markdown"])
def test_every_format_has_every_model(run, file, format_):
    done = run(*told(file, "-m", "accuracy", "--format", format_))
    assert done.code == 0
    assert "champion" in done.out
    assert "challenger" in done.out
    assert "challenger is better than champion in accuracy with probability" in (
        done.err if format_ == "csv" else " ".join(done.out.split())
    )


def test_the_gate_is_an_exit_code(run, file):
    there = run(*told(file, "-m", "accuracy", "--gate", "better=0.9"))
    assert there.code == 0
    assert "PASS: challenger is better than champion in accuracy" in there.out
    turned = ["--score", "challenger=p2", "--score", "champion=p1"]
    back = run(
        "compare", file, "--label", "fraud", *turned, "--missingness", "random", "-m", "f1", "--gate", "better=0.9"
    )
    assert back.code == 1
    assert "FAIL: champion is better than challenger in f1" in back.out


def test_a_gate_of_a_metric_that_is_never_defined_fails_and_is_json(run, tmp_path):
    path = tmp_path / "none.csv"
    path.write_text(csv_text({"fraud": [0, 0], "p1": [0.1, 0.2], "p2": [0.2, 0.1]}), encoding="utf-8")
    done = run(*told(path, "-m", "recall", "--zero-division", "nan", "--gate", "better=0.9", "--format", "json"))
    assert done.code == 1
    assert json.loads(done.out)["gate"][0]["better"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--score", "p1"], "--score: one model"),
        (["--score", "a=p1", "--score", "a=p2"], "--score: 'a' is named twice"),
        (["--score", "a=p1", "--score", "b="], "--score: cannot read 'b='"),
        (["--score", "a=p1", "--score", "b=p9"], "no column 'p9'"),
        (["--score", "p1", "--score", "p2", "--threshold", "z=0.4"], "--threshold: unknown model 'z'"),
        (["--score", "p1", "--score", "p2", "--threshold", "high"], "--threshold: cannot read 'high'"),
        (["--score", "p1", "--score", "p2", "-m", "f1", "--gate", "worse=1"], "--gate: cannot read 'worse=1'"),
        (["--score", "p1", "--score", "p2", "--gate", "better=0.9"], "--gate: pass with --metric"),
        (
            ["--score", "p1", "--score", "p2", "-m", "f1", "-m", "prevalence", "--gate", "better=.9"],
            "--gate: 'prevalence' is neither better when higher nor when lower",
        ),
    ],
)
def test_bad_input_is_one_line(refused, file, options, words):
    assert words in refused("compare", file, "--label", "fraud", *options)


@pytest.mark.parametrize("scope", ["rows", "population"])
def test_a_page_is_written_besides_the_result_also_where_the_gate_is_shut(run, file, columns, scope):
    asked = told(file, "-m", "accuracy", "--gate", "better=1", "--scope", scope)
    plain, done = run(*asked), run(*asked, "--report", "page.html", "--title", "June & July")
    assert (done.out, done.code) == (plain.out, plain.code)
    assert done.code == 1
    page = html.unescape(Path("page.html").read_text(encoding="utf-8"))
    assert "<h1><bdi>June & July</bdi></h1>" in page
    assert "darkmetrics compare" in page
    scores = {"champion": columns["p1"], "challenger": columns["p2"]}
    how: dict[str, Any] = {"missingness": "random", "metrics": "accuracy", "scope": scope}
    assert dm.compare(columns["fraud"], scores, **how).sentence("accuracy") in page


@pytest.mark.parametrize("name", ["page.txt", "june.csv", "no/page.html"])
def test_a_page_that_cannot_be_written_is_refused_before_the_work(refused, file, name):
    page = file if name == "june.csv" else name
    assert re.match(
        r"--report: .*(must end in|is also read|no directory)",
        refused(*told(file), "--report", page),
    )
