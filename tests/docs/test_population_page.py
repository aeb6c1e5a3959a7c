"""The page on rows and population says how often intervals held, as it was measured."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")
FIVE = ("precision", "recall", "accuracy", "f1", "roc_auc")
# Figures outside of what they are aimed at: arm, set, rows, share missing, reason, scope, metric.
MISSED: set[tuple[object, ...]] = {
    # Hardly a label is open, and laws of few values hold more than they are asked for.
    *(("groups", "four, one by one", 100, 0.4, "random", "rows", metric) for metric in FIVE),
    # Eleven positives, a third of them open: a row of each class that models know nothing of weighs as much as some.
    ("differences", "two models", 100, 0.3, "random", "population", "roc_auc"),
}


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "population.csv")


def test_the_tables_are_those_of_the_results(measured):
    from experiments.population import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.written(page, measured) == page


def test_every_kind_of_sample_was_measured(measured):
    from experiments.population.__main__ import ARMS
    from experiments.population.problems import METRICS, pieces

    kinds = {tuple(piece)[:5] for arm in ARMS for piece in pieces(arm, 1, 1)}
    found = set(measured[["arm", "set", "n", "share", "reason"]].itertuples(index=False, name=None))
    assert found == kinds
    assert (measured.groupby(["arm", "set", "n", "share", "reason", "scope"])["metric"].nunique() == len(METRICS)).all()
    enough = measured["arm"].map({"groups": 500, "differences": 200}).fillna(1000)
    assert (measured["intervals"] >= enough).all()


def test_figures_that_miss_their_bar_are_those_that_are_known(measured):
    from experiments.population.docs import outside

    found = outside(measured)[["arm", "set", "n", "share", "reason", "scope", "metric"]]
    assert set(found.itertuples(index=False, name=None)) == MISSED


def test_intervals_for_the_rows_do_not_hold_the_value_of_the_population(measured):
    """The control: they are points where no label is missing, and much too narrow where few are."""
    own = measured[(measured["arm"] == "simulated") & (measured["scope"] == "rows") & (measured["share"] <= 0.3)]
    assert (own["held"] / own["intervals"]).max() < 0.86
