"""darkmetrics verify: exit code 1 when an earlier evaluation is refuted."""

import csv
import json

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.cli import run


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    score = rng.random(2000).round(3)
    y = (rng.random(2000) < score).astype(int)
    missing = rng.random(2000) < np.where(y, 0.5, 0.2)
    before, after = tmp_path / "may.parquet", tmp_path / "june.parquet"
    dm.EvaluationSet(np.where(missing, np.nan, y), score).to_parquet(before)
    dm.EvaluationSet(y, score).to_parquet(after)
    since = tmp_path / "since.csv"
    with since.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["fraud", "p", "day"])
        days = [f"2026-06-{day:02d}" for day in rng.integers(1, 29, 2000)]
        table.writerows([row for row, gone in zip(zip(y, score, days, strict=True), missing, strict=True) if gone])
    return {"before": str(before), "after": str(after), "since": str(since)}


def test_cells_and_rows_say_the_same_and_refute_a_wrong_reason(files, capsys):
    words = ["--missingness", "by_score", "-f", "json", "-m", "recall"]
    assert run(["verify", files["before"], files["after"], *words]) == 1
    cells = json.loads(capsys.readouterr().out)
    assert run(["verify", files["before"], files["since"], "--label", "fraud", "--score", "p", *words]) == 1
    assert json.loads(capsys.readouterr().out) == cells
    assert cells["is_rejected"]
    assert list(cells["metrics"]) == ["recall"]


def test_a_right_reason_is_not_refuted(files, capsys):
    assert run(["verify", files["before"], files["after"], "--missingness", "by_label", "-m", "recall"]) == 0
    assert "The stated mechanism 'by_label' is not rejected" in capsys.readouterr().out


def test_csv_has_the_path_over_times(files, capsys):
    columns = ["--label", "fraud", "--score", "p", "--time", "day"]
    assert run(["verify", files["before"], files["since"], *columns, "--missingness", "by_score", "-f", "csv"]) == 1
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(lines[0]) == ["time", "labels", "positives", "e_value"]
    assert len(lines) == 28


def test_mistakes_are_one_line(files, capsys):
    assert run(["verify", files["since"], files["after"]]) == 2
    assert run(["verify", files["before"], files["after"], "--arrival", "soon"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 2
    assert said[1].startswith("darkmetrics: --arrival: unknown arrival 'soon'")
