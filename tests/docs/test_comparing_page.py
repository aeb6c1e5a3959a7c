"""The page on champion and challenger says how often chances came true and intervals held, as it was measured."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")
# How reliable chances and how good intervals are to be, and how many cases a share must rest on to be judged.
RELIABLE, HOLDS, ENOUGH = 0.07, (0.85, 0.96), 25


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "comparing.csv")


def test_the_tables_are_those_of_the_results(measured):
    from experiments.comparing import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.written(page, measured) == page


def test_accuracy_is_no_further_off_than_with_labeled_rows_alone(measured):
    error = measured[measured["kind"].str.startswith("error")]
    both = error.pivot_table(index=["reason", "labels"], columns="kind", values="value")
    assert (both["error estimate"] <= both["error labeled"]).all()


def pooled(measured, kind, by):
    own = measured[measured["kind"] == kind].assign(total=lambda d: d["value"] * d["cases"])
    sums = own.groupby(by)[["total", "cases"]].sum()
    return (sums["total"] / sums["cases"])[sums["cases"] >= ENOUGH]


MISSED = pytest.mark.xfail(strict=True, reason="missed: 0.08 between 50 and 90%, accuracy and F1 with few labels")


@pytest.mark.parametrize("least", [pytest.param(50, marks=MISSED), 100, 300])
def test_chances_to_be_best_came_true_as_often_as_was_said(measured, least):
    from experiments.comparing.docs import chances

    found = chances(measured[measured["labels"] >= least])
    found = found[found["cases"] >= ENOUGH]
    assert len(found) > 4
    assert ((found["said"] - found["came true"]).abs() <= RELIABLE).all()


WIDE_WITH_FEW = "missed with 20 labels alone: 98.5%; within the bar for either reason"


@pytest.mark.parametrize(
    "metric",
    ["accuracy", "f1", pytest.param("roc_auc", marks=pytest.mark.xfail(strict=True, reason=WIDE_WITH_FEW))],
)
def test_intervals_of_differences_hold_as_often_as_they_should(measured, metric):
    for by in ("reason", "labels"):
        held = pooled(measured, "held", ["metric", by])[metric]
        assert held.between(*HOLDS).all()


def test_counting_labeled_rows_alone_is_further_off(measured):
    from experiments.comparing import docs

    ours = docs.chances(measured[(measured["labels"] >= docs.ASKED) & (measured["metric"] == "accuracy")])
    theirs = docs.counted()
    sure = ["0.7 to 0.9", "0.9 to 1.0"]
    gap = {name: (own["said"] - own["came true"]).abs()[sure] for name, own in (("ours", ours), ("theirs", theirs))}
    assert (theirs["cases"][sure] >= ENOUGH).all()
    assert (gap["theirs"] > gap["ours"]).all()
