"""The page on coverage shows the committed results of several classes, and the controls miss by label."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def results():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "classes.csv")


def test_page_shows_committed_results(results):
    from experiments.classes import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == 1
    assert docs.fill_page(page, results) == page


def coverage(results, stated, metric="accuracy"):
    rows = results[(results["stated"] == stated) & (results["metric"] == metric)]
    return rows["covered"].sum() / rows["intervals"].sum()


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "f1_macro", "roc_auc_ovr", "log_loss"])
def test_stated_mechanisms_cover_and_controls_do_not(results, metric):
    for stated in ("by_score", "by_label"):
        assert coverage(results, stated, metric) >= 0.85
    assert coverage(results, "not stated", metric) >= 0.8
    assert coverage(results, "scores as probabilities", metric) < 0.75
