"""The tables of the page on delayed labels are those of the results file, and the bars are those that were set."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "late.csv")


def test_the_tables_are_those_of_the_results(measured):
    from experiments.late import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.written(page, measured) == page


# Where fewer than 86% of the intervals hold the truth; what was asked for is 86 to 96.
MISSED = {("positives equal, 10% never", "ages and arrivals", "roc_auc")}


def test_simulated_intervals_hold_or_are_listed_as_missed(measured):
    told = measured[(measured["kind"] == "simulated") & measured["told"].isin(["ages", "ages and arrivals"])]
    low = told[(100.0 * told["held"] / told["intervals"]).round() < 86]
    assert set(zip(low["problem"], low["told"], low["metric"], strict=True)) == MISSED


def test_ages_are_at_most_35_percent_as_wide_as_nothing_told(measured):
    own = measured[(measured["kind"] == "simulated") & (measured["metric"] == "precision")]
    width = own.pivot_table(index="problem", columns="told", values="width").drop("ages permuted")
    assert (width["ages"] <= 0.35 * width["nothing"]).all()
    assert (width["ages and arrivals"] <= 0.35 * width["nothing"]).all()
