"""The tables of the page on changes are those of the results file, and the bars are those that were set."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "changes.csv")


def test_the_tables_are_those_of_the_results(measured):
    from experiments.changes import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.written(page, measured) == page


@pytest.mark.parametrize(
    "nothing",
    [
        # Missed by a point, most of it where 70% of the labels are missing: no prior knows that changes are small.
        pytest.param(False, marks=pytest.mark.xfail(reason="0.079 between 80 and 90%", strict=True), id="told why"),
        pytest.param(True, id="told nothing"),
    ],
)
def test_the_probability_that_a_metric_fell_is_calibrated(measured, nothing):
    from experiments.changes import docs

    tenths = docs.by_tenth(docs.both_ways(measured[(measured["told"] == "nothing") == nothing]))
    assert (tenths["fell"] - tenths["said"]).abs().max() <= 0.07


@pytest.mark.parametrize("nothing", [False, True], ids=["told why", "told nothing"])
def test_at_most_5_and_a_half_percent_are_wrongly_said_to_have_fallen(measured, nothing):
    own = measured[(measured["told"] == "nothing") == nothing]
    assert own["wrong"].sum() <= 0.055 * (own["pairs"] - own["did"]).sum()
    # The stricter reading: of those that are said to have fallen.
    assert own["wrong"].sum() <= 0.055 * own["said"].sum()
