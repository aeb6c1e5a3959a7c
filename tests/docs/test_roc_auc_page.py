"""The page on methods says how far laws of ROC-AUC were from drawn labelings, as it was measured (make roc-auc)."""

import csv
from pathlib import Path

import pytest

from auc_layouts import GIVEN_ALONE, LAYOUTS, SIZES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "roc_auc.csv"
PAGE = ROOT / "docs" / "explanation" / "choosing-a-method.md"
# What is promised, and what sampling may add; seconds that one law may take among 5,000 rows.
PROMISED, SAMPLING, SECONDS = 0.005, 0.002, 0.2

pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def measured():
    with RESULTS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told(row, figure):
    return f"{float(row[figure]):.4f} ({row['layout']}, {row['missing']} missing)"


def test_every_layout_was_measured_at_every_size(measured):
    found = [(row["layout"], int(row["missing"]), row["chances"]) for row in measured]
    every = {(name, m, "given") for name in LAYOUTS for m in SIZES}
    every |= {(name, m, "default model") for name in LAYOUTS if name not in GIVEN_ALONE for m in SIZES}
    assert len(found) == len(every)
    assert set(found) == every


def test_no_law_is_further_from_drawn_labelings_than_promised(measured):
    assert max(float(row["distance"]) for row in measured) <= PROMISED + SAMPLING


def test_no_law_takes_longer_than_promised(measured):
    assert max(float(row["seconds"]) for row in measured) <= SECONDS


def test_the_page_says_what_was_measured(measured):
    page = PAGE.read_text(encoding="utf-8")
    for chances, words in (("given", "given"), ("default model", "of the default label model")):
        rows = [row for row in measured if row["chances"] == chances]
        by_distance = sorted(rows, key=lambda row: float(row["distance"]))
        slowest = max(rows, key=lambda row: float(row["seconds"]))
        cells = [told(by_distance[-1], "distance"), told(by_distance[-2], "distance"), told(slowest, "seconds")]
        assert f"| {words} | {len(rows)} | {' | '.join(cells)} |\n" in page
    worst = max(float(row["distance"]) for row in measured)
    assert f"it was within {worst:.4f} of 1,000,000 random labelings" in " ".join(page.split())
