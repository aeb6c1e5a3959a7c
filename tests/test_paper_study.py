"""The study's machinery: a run can be killed and taken up again, and its files are the same to the last byte."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from darkmetrics.backtesting import Scores

pytest.importorskip("xgboost", reason="xgboost is not installed (pip install 'darkmetrics[study]')")
if "DARKMETRICS_DATA" not in os.environ:
    pytest.skip("DARKMETRICS_DATA does not name the folder with the data sets", allow_module_level=True)

from experiments.paper.__main__ import STEPS, study
from experiments.paper.algorithms import algorithms
from experiments.paper.config import Config
from experiments.paper.data_sets import load
from experiments.paper.problems import fold_of, problems_of
from experiments.paper.run import run
from experiments.paper.tables import scores_of, write_tables

# The quick study with fewer resamples and folds.
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
    # A summary has seven measures of each; bounds come once per mask and metric.
    summary, widths, pit = write_tables(finished, finished[0].parent / "out")
    assert len(summary.read_text().splitlines()) == 1 + 7 * len(found)
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
    assert sum(name.endswith(".png") and "figures" in name for name in first) == 5
    for path in (*(work / "results").rglob("*.*"), *(work / "pages").rglob("*.png")):
        path.unlink()
    assert everything() == first


def test_configurations_that_differ_never_share_folds():
    assert Config.load().fingerprint != Config.load(quick=True).fingerprint == Config.load(quick=True).fingerprint


def test_a_fold_does_not_depend_on_the_other_sets():
    assert replace(SMALL, sets=["diabetes", "bank"]).fingerprint == SMALL.fingerprint
    assert replace(SMALL, swapped=True).fingerprint != SMALL.fingerprint


def test_the_training_prevalence_is_that_of_the_other_folds():
    fold = fold_of(SMALL, "diabetes", 0)
    _, y = load("diabetes")
    n_test = fold.y.size
    assert fold.training_prevalence == pytest.approx((y.sum() - fold.y.sum()) / (y.size - n_test), abs=1e-12)


def test_a_stored_fold_is_the_fold(tmp_path):
    fresh = fold_of(SMALL, "diabetes", 1, tmp_path)
    stored = fold_of(SMALL, "diabetes", 1, tmp_path)
    for a, b in zip(fresh[:2] + fresh[2], stored[:2] + stored[2], strict=True):
        assert np.array_equal(a, b)
    assert fresh.training_prevalence == stored.training_prevalence


def test_swapped_classes_turn_scores_around():
    fold, swapped = (fold_of(replace(SMALL, swapped=flag), "diabetes", 0) for flag in (False, True))
    assert np.array_equal(np.sort(swapped.y), np.sort(1 - fold.y))
    assert swapped.training_prevalence == pytest.approx(1 - fold.training_prevalence, abs=1e-12)


def test_pit_of_the_study_is_the_cdf(finished):
    scores, middle = (
        scores_of(finished, middle=flag)["0.3", "mcar", "pemi_5,half", "recall"] for flag in (False, True)
    )
    assert np.allclose(scores.pit * 5, np.round(scores.pit * 5), atol=1e-9)  # multiples of 1 / B
    assert np.all(middle.pit <= scores.pit)
    assert np.any(middle.pit < scores.pit)
