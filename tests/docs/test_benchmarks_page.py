"""The page on benchmarks shows the results that are committed beside the scripts."""

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


def test_a_peer_that_did_not_run_is_named_with_its_reason(tmp_path):
    from benchmarks.docs import poisson_binomial_table, skipped, speed_table

    rows: list[dict[str, Any]] = [
        {"peer": "one", "skipped": "does not install: no matching distribution"},
        {"way": "two", "n": 1_000, "skipped": "wants more than 8 GB"},
    ]
    assert list(skipped(rows)) == ["- one: does not install: no matching distribution"]
    assert len(list(speed_table(rows))) == 2  # the head alone
    assert "| 1,000 | two | wants more than 8 GB |" in list(poisson_binomial_table(rows))[-1]
