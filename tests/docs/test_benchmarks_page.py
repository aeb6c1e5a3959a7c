"""The pages on benchmarks and on Spark show the results that are committed beside the scripts."""

import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="benchmarks are not shipped")


def test_the_benchmark_page_shows_the_committed_results(tmp_path):
    from benchmarks.docs import PAGE, fill_page

    shutil.copy(PAGE, tmp_path)
    fill_page(ROOT / "benchmarks" / "results", tmp_path / PAGE.name)
    assert (tmp_path / PAGE.name).read_text() == PAGE.read_text(), "the page is behind; run python -m benchmarks.docs"


def rows_of(section):
    """The first cells of the rows that begin with a name, of one marked table of the page."""
    page = (ROOT / "docs/explanation/benchmarks.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- benchmark: {section} -->")[2].partition("<!-- end -->")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    return {row[0]: row[1:] for row in cells}


def words_of(page):
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def test_the_spark_page_quotes_what_was_measured():
    measured = rows_of("scale")
    said = words_of("how-to/spark.md")
    assert float(measured["Spark, 20,000,000 rows: cells on the driver"][0]) == 5.33e4
    ratio, _, seconds = measured["Spark, 20,000,000 rows: evaluate / plain group-by"]
    assert round(float(ratio)) == 5
    assert seconds.startswith("37.2 s")
    assert "took 37 s, five times as long as a plain group-by; one shuffle, 53,300 cells" in said


def test_the_page_on_other_tools_quotes_what_was_measured():
    dropping = rows_of("by-label")["confidenceinterval on labeled rows"][0].split(", ")
    said = words_of("explanation/other-tools.md")
    assert f"its precision is off by {float(dropping[0]):.2f}" in said
    assert f"{dropping[2]} of them held the precision of the rows" in said
    assert float(rows_of("speed")["confidenceinterval on labeled rows"][3]) == pytest.approx(0.5, abs=0.05)


def test_a_peer_that_did_not_run_is_named_with_its_reason(tmp_path):
    from benchmarks.docs import poisson_binomial_table, skipped, speed_table

    rows: list[dict[str, Any]] = [
        {"peer": "one", "skipped": "does not install: no matching distribution"},
        {"way": "two", "n": 1_000, "skipped": "wants more than 8 GB"},
    ]
    assert list(skipped(rows)) == ["- one: does not install: no matching distribution"]
    assert len(list(speed_table(rows))) == 2  # the head alone
    assert "| 1,000 | two | wants more than 8 GB |" in list(poisson_binomial_table(rows))[-1]
