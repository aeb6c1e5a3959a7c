"""The tables of the page on changes are those of the results file, and the bars are those that were set."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.parametrize("nothing", [False, True], ids=["told why", "told nothing"])
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


def _reliability_of_an_ideal_analyst(recall, later):
    """Largest gap of tenths, both ways round, for pairs of months with these recalls and 70% missing at random.

    The analyst is told which rows are positive, so that labeled positives are independent trials: recall given them
    is a Beta law (Jeffreys), on these rows a Beta-binomial. Nothing of this library is in it.
    """
    rng = np.random.default_rng(5)
    true, mean, variance = [], [], []
    for r in (recall, later):
        positives = rng.binomial(2000, 0.2, r.size)
        known, caught = rng.binomial(positives, 0.3), rng.binomial(positives, r)
        seen = rng.hypergeometric(caught, positives - caught, known)
        a, b, left = seen + 0.5, known - seen + 0.5, positives - known
        true.append(caught / positives)
        mean.append((seen + left * a / (a + b)) / positives)
        variance.append(left * a * b * (a + b + left) / ((a + b) ** 2 * (a + b + 1.0)) / positives**2)
    fell = stats.norm.cdf((mean[0] - mean[1]) / np.sqrt(variance[0] + variance[1]))
    said = np.concatenate([fell, 1.0 - fell])
    did = np.concatenate([true[1] < true[0], true[1] > true[0]])
    tenth = np.minimum((10.0 * said).astype(int), 9)
    return max(abs(said[tenth == k].mean() - did[tenth == k].mean()) for k in range(10))


def test_in_the_months_of_the_study_an_ideal_analyst_is_further_off():
    n = 30_000
    drop = np.where(np.arange(n) % 3 == 0, 0.03, 0.0)  # of three kinds of pairs one has a drop in recall
    assert 0.09 <= _reliability_of_an_ideal_analyst(np.full(n, 0.75), 0.75 - drop) <= 0.13
    # The control: where months may differ by anything, as the analyst takes it, the same analyst is right.
    recall, later = np.random.default_rng(6).uniform(0.4, 0.95, (2, n))
    assert _reliability_of_an_ideal_analyst(recall, later) <= 0.03
