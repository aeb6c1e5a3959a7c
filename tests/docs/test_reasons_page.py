"""The page on assumptions says how often intervals held the truth on real data, as it was measured."""

import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")
# Told nothing: over all sets, and on each.
OVERALL, ON_EACH = 0.80, 0.70


@pytest.fixture(scope="module")
def measured():
    pd = pytest.importorskip("pandas")
    return pd.read_csv(ROOT / "experiments" / "results" / "reasons.csv")


def test_the_tables_are_those_of_the_results(measured):
    from experiments.reasons import docs

    page = docs.PAGE.read_text(encoding="utf-8")
    assert len(docs.MARKED.findall(page)) == len(docs.TABLES)
    assert docs.written(page, measured) == page


def test_every_reason_was_measured_on_every_set(measured):
    from experiments.reasons.problems import METRICS, REASONS, SETS

    own = measured[measured["arm"] == "nothing"]
    found = set(own[["n", "reason", "set", "metric"]].itertuples(index=False, name=None))
    every = set(itertools.product((500, 2000), REASONS, SETS, METRICS))
    assert every - found == {
        (n, "by a feature", "civil_comments_scores", metric) for n in (500, 2000) for metric in METRICS
    }
    assert (own["intervals"] >= 20).all()


def test_told_nothing_intervals_hold_the_truth_as_often_as_is_promised(measured):
    own = measured[measured["arm"] == "nothing"]
    pooled = own.groupby(["n", "reason", "metric"])[["held", "intervals"]].sum()
    assert (pooled["held"] / pooled["intervals"]).min() >= OVERALL
    assert (own["held"] / own["intervals"]).min() >= ON_EACH


def test_knowing_nothing_costs_no_more_width_than_is_said(measured):
    at_random = measured[measured["reason"] == "random"]
    width = at_random.groupby(["arm", "n", "metric"])["width"].median().unstack()
    for n in (500, 2000):
        assert (width.loc["nothing", n] / width.loc["stated", n]).median() <= 4.0
        assert (width.loc["stated", n] / width.loc["stated, beta", n]).median() <= 1.1


def test_few_labels_are_enough_for_intervals_that_hold(measured):
    few = measured[measured["arm"] == "few labels"]
    share: dict[str, dict[tuple[str, int], float]] = {row.metric: {} for row in few.itertuples()}
    for row in few.itertuples():
        share[row.metric][row.reason, row.n] = row.held / row.intervals
    for metric, found in share.items():
        assert all(0.86 <= found["random", n] <= 0.94 for n in (100, 300, 1000)), metric
    for metric in ("prevalence", "accuracy"):
        assert share[metric]["random", 30] >= share[metric]["Wilson", 30]
