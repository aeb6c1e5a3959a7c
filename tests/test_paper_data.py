"""The data sets of the study: every route gives the documented rows, and a set that cannot be had is one clear line."""

import sys
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from experiments.paper import __main__ as command
from experiments.paper.config import Config, stand_ins
from experiments.paper.data_sets import SETS, NoDataError, available_sets, load

# Classes as OpenML has them, the positive one last.
CLASSES: dict[str, Any] = {
    "diabetes": ("tested_negative", "tested_positive"),
    "german_credit": ("good", "bad"),
    "bank": ("1", "2"),
    "adult": ("<=50K", ">50K"),
    "imdb_drama": ("0", "1"),
    "dota2": (-1, 1),
}
# Rows and positives of the page "From the paper".
DOCUMENTED = {
    "diabetes": (768, 268),
    "german_credit": (1_000, 300),
    "bank": (45_211, 5_289),
    "adult": (48_842, 11_687),
    "imdb_drama": (120_919, 43_779),
    "dota2": (102_944, 54_284),
}


def downloaded(name):
    """What `fetch_openml` returns for a set: the right numbers of rows, two columns of features."""
    rows, positives = DOCUMENTED[name]
    negative, positive = CLASSES[name]
    is_positive = np.arange(rows) % rows < positives
    target = pd.Series(np.where(is_positive, positive, negative), name="class")
    if name == "imdb_drama":  # a sparse set has a sparse matrix and an array of labels
        return SimpleNamespace(data=scipy.sparse.csr_matrix((rows, 2)), target=target.to_numpy())
    table = pd.DataFrame({"x": np.arange(rows) % 7, "z": is_positive.astype(float)})
    if name == "dota2":  # its label is a column like any other; that of a hero has the value 0 as well
        table = table.assign(hero_1=np.resize([-1, 0, 1], rows), won=target)
        return SimpleNamespace(data=table, target=None)
    return SimpleNamespace(data=table, target=target.astype("category"))


@pytest.fixture
def openml(monkeypatch):
    """Downloads without a network; the calls are recorded, and names in `broken` fail."""
    monkeypatch.delenv("DARKMETRICS_DATA", raising=False)
    names = {data_set.openml_name: name for name, data_set in SETS.items()}
    record = SimpleNamespace(calls=[], broken={})

    def fetch_openml(openml_name, *, version, as_frame):
        record.calls.append((openml_name, version, as_frame))
        name = names[openml_name]
        if name in record.broken:
            raise record.broken[name]
        return downloaded(name)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return record


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_download_has_the_documented_rows_and_positive_class(openml, name):
    x, y = load(name)
    assert (y.size, y.sum()) == DOCUMENTED[name]
    assert x.shape[0] == y.size
    assert set(np.unique(y)) == {0, 1}
    assert np.array_equal(np.flatnonzero(y), np.arange(DOCUMENTED[name][1]))
    if name == "dota2":
        assert list(x.columns) == ["x", "z", "hero_1"]  # the label is no feature
    assert openml.calls == [(SETS[name].openml_name, SETS[name].version, "auto")]


def test_the_page_and_the_code_have_the_same_sets():
    page = (command.PAGES / "from-the-paper.md").read_text()
    for name, data_set in SETS.items():
        counts = f"| {data_set.rows:,} | {data_set.positives:,} |"
        assert counts in page, name
        if data_set.openml_name:
            row = next(line for line in page.splitlines() if counts in line)
            assert f"`{data_set.openml_name}`" in row
            assert f"`{data_set.positive_class}`" in row


def test_another_positive_class_is_refused(openml, monkeypatch):
    swapped = CLASSES | {"dota2": (1, -1)}
    monkeypatch.setattr(f"{__name__}.CLASSES", swapped)
    with pytest.raises(NoDataError, match="dota2: 102,944 rows and 48,660 positives instead of 102,944 and 54,284"):
        load("dota2")


@pytest.mark.parametrize(
    "error", [URLError("no route to host"), TimeoutError("timed out"), ValueError("No dataset\nx")]
)
def test_a_failed_download_is_one_line_that_names_the_set_and_the_fix(openml, error):
    openml.broken["bank"] = error
    with pytest.raises(
        NoDataError, match=r"^bank: OpenML cannot be reached \(.*\)\. Try .* DARKMETRICS_DATA="
    ) as failure:
        load("bank")
    assert "\n" not in str(failure.value)


def test_a_set_that_openml_does_not_have_is_not_asked_for(openml):
    with pytest.raises(NoDataError, match=r"^ohsumed: OpenML does not have it\. A folder may: DARKMETRICS_DATA="):
        load("ohsumed")
    assert not openml.calls


def test_a_set_that_cannot_be_had_is_skipped_with_one_line(openml):
    openml.broken = {"bank": URLError("no network"), "imdb_drama": URLError("no network")}
    lines: list[str] = []
    sets = available_sets(Config.load().sets, stand_ins(), lines.append)
    assert sets == ["diabetes", "german_credit", "adult", "dota2"]
    assert [line.partition(":")[0] for line in lines] == ["bank", "imdb_drama"]
    assert all(line.endswith("Skipped.") and "\n" not in line for line in lines)


def test_a_folder_is_read_and_a_stand_in_used(tmp_path, monkeypatch):
    monkeypatch.setenv("DARKMETRICS_DATA", str(tmp_path))
    rows, positives = DOCUMENTED["diabetes"]
    pd.DataFrame({"x": np.arange(rows), "target": np.arange(rows) < positives}).astype(int).to_csv(
        tmp_path / "diabetes.csv.gz", index=False
    )
    (tmp_path / "ohsumed").mkdir()
    data_set = SETS["ohsumed"]
    scipy.sparse.save_npz(tmp_path / "ohsumed" / "X.npz", scipy.sparse.csr_matrix((data_set.rows, 3)))
    np.save(tmp_path / "ohsumed" / "y.npy", (np.arange(data_set.rows) < data_set.positives).astype(int))
    lines: list[str] = []
    assert available_sets(["diabetes", "imdb_drama", "adult"], stand_ins(), lines.append) == ["diabetes", "ohsumed"]
    assert lines[0].endswith("has no imdb_drama.csv.gz. Used instead: ohsumed.")
    assert lines[1] == "adult: the folder that DARKMETRICS_DATA names has no adult.csv.gz. Skipped."


def test_without_any_set_the_command_ends_with_a_clear_summary(openml, monkeypatch, capsys):
    openml.broken = dict.fromkeys(DOCUMENTED, URLError("no network"))
    before = {path: path.stat().st_mtime_ns for path in command.RESULTS.iterdir()}
    monkeypatch.setattr(sys, "argv", ["experiments.paper"])
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:6]] == list(DOCUMENTED)
    assert lines[6].startswith("No data set can be had, so nothing was computed.")
    assert "DARKMETRICS_DATA=" in lines[7]
    assert {path: path.stat().st_mtime_ns for path in command.RESULTS.iterdir()} == before


def test_a_run_with_some_of_the_sets_finishes_and_leaves_the_stored_results(openml, tmp_path, monkeypatch, capsys):
    pytest.importorskip("xgboost", reason="xgboost is not installed (pip install 'darkmetrics[study]')")
    openml.broken["german_credit"] = URLError("no network")
    monkeypatch.setattr("experiments.paper.run.ProcessPoolExecutor", InProcess)
    monkeypatch.setattr("experiments.paper.figures.DPI", 30)
    config = replace(Config.load(quick=True), sets=["diabetes", "german_credit"], folds=2, bootstrap_resamples=20)
    before = {path: path.read_bytes() for path in command.RESULTS.iterdir()}
    summary = command.study(config, tmp_path, command.STEPS, quick=False, n_jobs=1)
    assert summary.sets == ["diabetes"]
    assert str(summary).splitlines()[0] == "1 of 2 data sets: diabetes."
    assert "left as they are" in str(summary)
    names = {path.name for path in summary.written}
    assert {"summary.csv", "cells.csv", "codings.csv", "run.csv", "study-tables.md", "pit.png"} <= names
    assert all(path.is_relative_to(tmp_path) for path in summary.written)
    assert {path: path.read_bytes() for path in command.RESULTS.iterdir()} == before
    assert "german_credit: OpenML cannot be reached" in capsys.readouterr().out


class InProcess:
    """A pool that computes in this process, which has the downloads of the test."""

    def __init__(self, *arguments, **settings):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def submit(self, function, *arguments):
        future: Future = Future()
        future.set_result(function(*arguments))
        return future
