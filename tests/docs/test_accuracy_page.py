"""The page on methods has the table of methods and the errors that were measured (make accuracy)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "accuracy.csv"
PAGE = ROOT / "docs" / "explanation" / "choosing-a-method.md"
# Largest errors of a case, and of the median case of each method.
MAX_CDF_ERROR, MAX_QUANTILE_ERROR, MAX_MEDIAN = 0.01, 0.05, 0.005

pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(RESULTS)


@pytest.fixture(scope="module")
def judged(measured):
    from experiments.accuracy import MIN_DEFINED

    return measured[measured["defined"] >= MIN_DEFINED]


def test_page_shows_the_table_of_methods():
    pd = pytest.importorskip("pandas")
    from experiments.accuracy import describe_methods

    page = PAGE.read_text(encoding="utf-8")
    assert f"<!-- accuracy: methods -->\n\n{describe_methods(pd.DataFrame())}\n\n<!-- end -->" in page


def test_page_shows_the_results(measured):
    from experiments.accuracy import MARKED, TABLES, fill_page

    page = PAGE.read_text(encoding="utf-8")
    assert [mark["name"] for mark in MARKED.finditer(page)] == list(TABLES)
    assert fill_page(page, measured.sort_values("number", ignore_index=True)) == page


def test_results_have_every_case_once_and_every_method(measured):
    from experiments.accuracy import N_CASES

    assert sorted(measured["number"]) == list(range(N_CASES))
    assert set(measured["method"]) == {"enumerate or count", "expand", "draw"}


def test_no_case_exceeds_the_largest_error(judged):
    assert judged["cdf_error"].max() <= MAX_CDF_ERROR
    assert judged["quantile_error"].max() <= MAX_QUANTILE_ERROR


def test_no_method_exceeds_the_largest_median_error(judged):
    assert judged.groupby("method")["cdf_error"].median().max() <= MAX_MEDIAN
