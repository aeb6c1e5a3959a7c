"""Large Parquet files are counted where they lie, and every command says of them what it says of the same rows read."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from darkmetrics.cli import inputs

COMMANDS = {
    "evaluate": ["--missingness", "by_label", "-m", "recall"],
    "check": ["--missingness", "by_label", "-m", "recall", "--fail-under", "recall=0.1"],
    "bounds": ["-m", "recall"],
    "curves": ["--missingness", "by_label", "-m", "recall", "--thresholds", "5"],
    "diagnose": ["-m", "recall"],
    "report": ["--missingness", "by_label", "-m", "recall", "-o", "report.json", "-f", "json"],
}


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(inputs, "_LARGE", 0)


@pytest.fixture
def parquet_file(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"label": data.label, "score": data.score, "w": data.weight, "own": data.score})
    table = table.with_columns(
        yes=(pl.col("score") > 0.3).cast(int), word=pl.col("label").replace_strict({0: "n", 1: "y"})
    )
    table.write_parquet("june.parquet")
    return "june.parquet"


def numbers(document):
    """All numbers of a result, in order; a dictionary's by key."""
    if isinstance(document, dict):
        return [x for key in sorted(document) for x in numbers(document[key])]
    if isinstance(document, list):
        return [x for part in document for x in numbers(part)]
    return [document] if isinstance(document, (int, float)) else []


@pytest.mark.parametrize(
    ("command", "more"),
    [
        *((command, []) for command in COMMANDS),
        ("evaluate", ["--weight", "w"]),
        ("evaluate", ["--threshold", "0.3"]),
        ("bounds", ["--label", "word", "--pos-label", "y"]),
    ],
)
def test_numbers_are_those_of_the_rows_read(run, parquet_file, monkeypatch, command, more):
    told = [command, parquet_file, *more, *COMMANDS[command], "--seed", "1"]
    told += [] if command == "report" else ["-f", "json"]
    read = run(*told)
    monkeypatch.setattr(inputs, "_LARGE", 0)
    counted = run(*told)
    assert (counted.code, read.code) == (0, 0)
    assert counted.err.replace("june.parquet", "") == read.err.replace("june.parquet", "")
    # The same cells, but weights and sums may be added up in another order.
    expected = np.array(numbers(json.loads(read.out)))
    assert np.array(numbers(json.loads(counted.out))) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("more", [["--prob", "own"], ["--pred", "yes"]])
def test_probabilities_and_decisions_are_taken(run, parquet_file, monkeypatch, more):
    told = ["evaluate", parquet_file, *more, "-f", "json", "--seed", "1", "-m", "recall"]
    read = json.loads(run(*told).out)
    monkeypatch.setattr(inputs, "_LARGE", 0)
    counted = json.loads(run(*told).out)
    assert counted["metrics"]["recall"]["mean"] == pytest.approx(read["metrics"]["recall"]["mean"], abs=1e-9)
    assert counted["assumption"] == read["assumption"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_wrong_is_said_of_columns_and_options(refused, parquet_file, command):
    told = COMMANDS[command]
    table = pl.read_parquet(parquet_file)
    third = table.with_columns(label=pl.when(pl.int_range(pl.len()) == 7).then(-1).otherwise("label"))
    third.write_parquet(parquet_file)
    said = refused(command, parquet_file, *told)
    assert said.startswith("column 'label' (--label): a third value -1 in addition to 0 and 1.")
    assert said.endswith("pass --missing-label -1.")
    table.with_columns(score=pl.lit("high")).write_parquet(parquet_file)
    assert refused(command, parquet_file, *told).startswith("column 'score' (--score): ")
    assert "no column 'lable'. Did you mean 'label'?" in refused(command, parquet_file, "--label", "lable", *told)


@pytest.mark.usefixtures("large")
def test_damage_inside_is_a_line_about_the_file(refused, parquet_file):
    content = bytearray(Path(parquet_file).read_bytes())
    content[8:-2500] = bytes(len(content) - 2508)
    Path(parquet_file).write_bytes(content)
    assert refused("evaluate", parquet_file).startswith("june.parquet: ")
