"""The page on coverage shows the committed results, and every control of the study misses."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def results():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "coverage.csv")


def test_page_shows_committed_results(results):
    from experiments.coverage import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.fill_page(page, results) == page


def test_every_measured_family_has_a_control_that_misses(results):
    is_control = results["case"].str.startswith("control")
    assert set(results["family"]) == set(results[is_control]["family"])
    coverage = (results["covered"] / results["intervals"])[is_control]
    for _, of_case in coverage.groupby([results["family"], results["case"]]):
        assert of_case.min() < 0.75


def test_run_of_a_family_replaces_its_own_rows(results, tmp_path):
    import pandas as pd
    from experiments.coverage.__main__ import replace_families

    path = tmp_path / "coverage.csv"
    replace_families(path, results)
    measured = results[results["family"] == "stated"].iloc[:3].assign(covered=0)
    replace_families(path, measured)
    stored = pd.read_csv(path)
    assert stored["covered"].iloc[:3].tolist() == [0, 0, 0]
    assert (stored["family"] == "stated").sum() == 3
    others = results[results["family"] != "stated"].reset_index(drop=True)
    pd.testing.assert_frame_equal(stored.iloc[3:].reset_index(drop=True), others)
