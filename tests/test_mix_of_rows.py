"""How much of a change is the mix of rows: against populations whose split is known."""

from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import beta as beta_law

import darkmetrics as dm


def months(before: tuple[float, float], after: tuple[float, float], shift: float, n: int, seed: int) -> Any:
    """Two months with scores of these Beta laws; later rows of a score have log odds that are moved by `shift`."""
    rng, found = np.random.default_rng(seed), []
    for (a, b), by in ((after, shift), (before, 0.0)):
        score = rng.beta(a, b, n)
        label = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.3 * logit(score) - by))).astype(float)
        label[rng.random(n) < 0.3] = np.nan
        found.append(dm.evaluate(label, score, missingness="random", metrics=["recall", "accuracy", "roc_auc"]))
    return dm.compare_evaluations(*found)


def true_metrics(distribution: tuple[float, float], shift: float) -> dict[str, float]:
    """Recall, accuracy and ROC-AUC of a population, by sums over 20,000 quantiles of the score."""
    score = beta_law(*distribution).ppf((np.arange(20_000) + 0.5) / 20_000)
    p = 1.0 / (1.0 + np.exp(-1.3 * logit(score) - shift))
    yes = score >= 0.5
    below = np.cumsum(1.0 - p) - 0.5 * (1.0 - p)
    auc = float(p @ below / (p.sum() * (1.0 - p).sum()))
    return {"recall": p[yes].sum() / p.sum(), "accuracy": np.where(yes, p, 1.0 - p).mean(), "roc_auc": auc}


MIXES = {"rows": ((1, 1), (2, 2), 0.0), "chances": ((1, 1), (1, 1), -0.7), "both": ((1, 2), (2, 2), -0.7)}


@pytest.mark.parametrize("kind", MIXES)
def test_the_mix_of_rows_is_what_the_scores_alone_move(kind):
    """Against the populations: 20,000 rows know a metric to 0.004, and what is learned of a curve is of that size."""
    before, after, shift = MIXES[kind]
    found = months(before, after, shift, 20_000, seed=5)
    first, mixed, last = true_metrics(before, 0.0), true_metrics(after, 0.0), true_metrics(after, shift)
    for metric in ("recall", "accuracy", "roc_auc"):
        split = found.split(metric)
        assert split.mix == pytest.approx(mixed[metric] - first[metric], abs=0.012), metric
        assert split.remainder == pytest.approx(last[metric] - mixed[metric], abs=0.02), metric
        assert sum(split) == pytest.approx(found[metric].mean(), abs=1e-12)
    # The control: the one part is not the other.
    if kind != "both":
        parts = [abs(found.split("accuracy").mix), abs(found.split("accuracy").remainder)]
        assert max(parts) > 4.0 * min(parts)
        assert (parts[0] > parts[1]) == (kind == "rows")


def test_rows_with_weights_count_by_them_in_the_mix():
    rng = np.random.default_rng(0)
    score, label = rng.random(3000), rng.random(3000)
    y = (label < score).astype(float)
    weight = rng.integers(1, 4, 1500)
    before = dm.evaluate(y[:1500], score[:1500], metrics="accuracy")
    once = dm.evaluate(y[1500:], score[1500:], sample_weight=weight, metrics="accuracy")
    repeated = dm.evaluate(np.repeat(y[1500:], weight), np.repeat(score[1500:], weight), metrics="accuracy")
    mixes = [dm.compare_evaluations(one, before).split("accuracy") for one in (once, repeated)]
    assert mixes[0] == pytest.approx(mixes[1], abs=1e-12)


def test_where_earlier_rows_do_not_say_the_mix_is_not_known():
    rng = np.random.default_rng(0)
    score = rng.random(400)
    y = (rng.random(400) < score).astype(float)
    high = dm.evaluate(y, score, metrics="accuracy")
    low = dm.evaluate(y, 0.5 * score, metrics="accuracy")
    none = dm.evaluate(np.zeros(400), score, metrics="accuracy")
    for earlier in (low, none):
        found = dm.compare_evaluations(high, earlier)
        assert found.split("accuracy") is None
        assert found.to_dict()["metrics"]["accuracy"]["mix"] is None
        assert "these rows do not say" in str(found)
    entry = dm.compare_evaluations(low, high).to_dict()["metrics"]["accuracy"]
    assert entry["mix"] + entry["remainder"] == pytest.approx(entry["mean"], abs=1e-12)
    with pytest.raises(KeyError, match="unknown metric 'recal'"):
        dm.compare_evaluations(low, high).split("recal")


@pytest.mark.parametrize("how", [[{"threshold": 0.3}, {"threshold": 0.5}], [{"y_pred": 0.3}, {"y_pred": 0.5}]])
def test_other_decisions_are_no_other_mix_of_rows(how):
    """Rows of one law, decided at another score: recall moves by 0.15, and none of it is the mix."""
    rng, found = np.random.default_rng(3), []
    for asked in how:
        score = rng.random(4000)
        label = np.where(rng.random(4000) < 0.3, np.nan, rng.random(4000) < score)
        given: Any = {"y_pred": score >= asked["y_pred"]} if "y_pred" in asked else asked
        found.append(dm.evaluate(label, score, missingness="random", metrics=["recall", "roc_auc"], **given))
    changed = dm.compare_evaluations(*found)
    assert changed["recall"].mean() > 0.1
    assert changed.split("recall") is None
    assert "in recall, " not in str(changed)
    # What does not look at decisions has its split, and rows of one law hardly any mix: 4,000 know it to 0.007.
    ranked = changed.split("roc_auc")
    assert ranked is not None
    assert abs(ranked.mix) < 0.03


def test_a_change_says_what_it_is_about_in_words_and_in_every_row():
    rng = np.random.default_rng(0)
    score = rng.random(600)
    y = (rng.random(600) < score).astype(float)
    may, june = (dm.evaluate(y[own], score[own], metrics="accuracy") for own in (slice(300), slice(300, None)))
    for found, scope in (
        (dm.compare_evaluations(june, may), "rows"),
        (dm.compare_evaluations(june.population, may.population), "population"),
    ):
        assert ("accuracy in the population" in found.sentence("accuracy")) == (scope == "population")
        assert {row["scope"] for row in found.to_records()} == {scope}
