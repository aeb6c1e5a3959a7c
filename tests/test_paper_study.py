"""The study's machinery: a run can be killed and taken up again, and its files are the same to the last byte."""

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from darkmetrics.backtesting import Scores

pytest.importorskip("xgboost", reason="xgboost is not installed (pip install 'darkmetrics[study]')")
if "DARKMETRICS_DATA" not in os.environ:
    pytest.skip("DARKMETRICS_DATA does not name the folder with the data sets", allow_module_level=True)

from experiments.paper.__main__ import STEPS, study
from experiments.paper.algorithms import algorithms
from experiments.paper.config import Config
from experiments.paper.problems import NoDataError, fold_of, load, problems_of
from experiments.paper.run import run
from experiments.paper.tables import scores_of, write_tables

# The quick study with fewer draws and folds, which none of its steps can tell.
SMALL = replace(Config.load(quick=True), bootstrap_resamples=20, folds=2)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def finished(work):
    """The folds of the study; its other runs are made with them, as a process that makes some starts for seconds."""
    study(SMALL, work, ("run",), quick=True, n_jobs=1)
    return sorted((work / SMALL.fingerprint).glob("*.csv"))


@pytest.mark.guarantees
def test_a_run_that_is_taken_up_again_gives_the_same_bytes(finished):
    before = [path.read_bytes() for path in finished]
    kept, lost = finished
    lost.unlink()
    (kept.parent / f"{lost.stem}.123.tmp").write_text("half a file of a run that was killed")
    stamp = kept.stat().st_mtime_ns
    assert run(SMALL, kept.parent, n_jobs=2) == finished
    assert kept.stat().st_mtime_ns == stamp  # a finished fold is not computed again
    assert [path.read_bytes() for path in finished] == before


def test_every_algorithm_predicts_every_metric_for_every_mask(finished):
    found = scores_of(finished)
    masks = len(SMALL.missing) * (1 + len(SMALL.prevalences))
    assert len(found) == masks * len(algorithms(SMALL)) * len(SMALL.metrics)
    assert {scores.n + scores.n_failed for scores in found.values()} == {SMALL.folds * 2}
    # A summary holds each with six measures; bounds come once per mask and metric.
    summary, widths, pit = write_tables(finished, finished[0].parent / "out")
    assert len(summary.read_text().splitlines()) == 1 + 6 * len(found)
    assert len(widths.read_text().splitlines()) == 1 + 2 * len(SMALL.missing) * SMALL.folds * 2 * len(SMALL.metrics)
    assert len(pit.read_text().splitlines()) == 1 + 5 * masks * len(SMALL.metrics)


def test_masks_are_those_of_the_protocol():
    fold = fold_of(SMALL, "diabetes", 0)
    seen: dict[int, Any] = {}
    for problem in problems_of(SMALL, "diabetes", 0, fold):
        masked = np.isnan(problem.labels)
        assert np.array_equal(problem.labels[~masked], fold.y[~masked])
        wanted = round(problem.missing * fold.y.size)
        if problem.mechanism == "mcar":
            assert masked.sum() == wanted
        else:
            eta = float(problem.mechanism.removeprefix("eta="))
            assert fold.y[masked].mean() == pytest.approx(eta, abs=1e-12)  # enough rows for exactly this share
            assert masked.sum() <= wanted
        seen.setdefault(problem.half, np.zeros(fold.y.size, dtype=bool))
        seen[problem.half] |= masked
    # The two halves of a fold have no row in common.
    assert not np.any(seen[0] & seen[1])


def test_figures_pool_all_predictions(finished):
    scores = scores_of(finished)["0.3", "mcar", "pemi_gauss,half", "accuracy"]
    assert isinstance(scores, Scores)
    assert np.unique(scores.truth).size == SMALL.folds


def test_the_quick_study_goes_through_all_steps_and_writes_the_same_bytes_twice(finished, work, monkeypatch):
    monkeypatch.setattr("experiments.paper.figures.DPI", 30)  # painting them takes most of the time

    def everything() -> dict[str, bytes]:
        study(SMALL, work, STEPS, quick=True, n_jobs=1)
        return {str(path): path.read_bytes() for path in work.rglob("*") if path.is_file()}

    first = everything()
    assert sum(name.endswith(".png") and "figures" in name for name in first) == 4
    for path in (*(work / "results").rglob("*.*"), *(work / "pages").rglob("*.png")):
        path.unlink()
    assert everything() == first


def test_configurations_that_differ_never_share_folds():
    assert Config.load().fingerprint != Config.load(quick=True).fingerprint == Config.load(quick=True).fingerprint


def test_without_a_data_folder_sets_come_from_openml_with_the_rarer_class_positive(monkeypatch):
    asked = []

    def fetch_openml(name, *, version, as_frame):
        asked.append((name, version, as_frame))
        target = pd.Series(["no", "yes", "no", "no"], dtype="category")
        return SimpleNamespace(data=pd.DataFrame({"x": [1, 2, 3, 4]}), target=target)

    monkeypatch.delenv("DARKMETRICS_DATA")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    x, y = load("bank")
    assert asked == [("bank-marketing", 1, True)]
    assert list(x.columns) == ["x"]
    assert y.tolist() == [0, 1, 0, 0]
    with pytest.raises(NoDataError, match="ohsumed: OpenML does not have it"):
        load("ohsumed")
