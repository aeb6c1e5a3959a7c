"""Changes, trends and gaps: against brute force over the labelings of all sets, and what they say of themselves."""

import json
import pickle
import warnings
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score

import darkmetrics as dm
import oracle
from darkmetrics.changes.disparity import disparity_between
from darkmetrics.changes.trend import trend_over
from darkmetrics.changes.wording import describe_move, describe_overlap
from darkmetrics.distributions import Discrete, Interval, Normal
from darkmetrics.posterior import Posterior

CONFUSION = ["accuracy", "precision", "recall", "f1", "specificity", "mcc", "brier", "roc_auc"]

# What is called with wrong types on purpose.
CHANGE: Any = dm.compare_evaluations


class Several(dm.missing.Mechanism):
    """Nodes as they are given."""

    def __init__(self, weight: Any, probability: Any) -> None:
        self.weight, self.probability = np.asarray(weight, float), np.asarray(probability, float)

    def posterior(self, data: dm.EvaluationSet) -> Posterior:
        return Posterior(self.weight, self.probability)

    def describe(self, data: dm.EvaluationSet, posterior: Posterior) -> str:
        return "Given."


def rows(seed: int, n: int = 9, missing: int = 4, posterior: int = 1, *, weighted: bool = False) -> dict[str, Any]:
    """A few rows with different scores, some without a label, and chances of these at one or more nodes."""
    rng = np.random.default_rng(seed)
    score = np.sort(rng.permutation(100)[:n] / 100.0)
    y = (rng.random(n) < 0.2 + 0.6 * score).astype(float)
    y[rng.permutation(n)[:missing]] = np.nan
    weight = rng.random(posterior) + 0.1
    return {
        "score": score,
        "y": y,
        "p": rng.random((posterior, missing)),
        "weight": weight / weight.sum(),
        "sample_weight": rng.integers(1, 4, n).astype(float) if weighted else None,
    }


def evaluated(one: dict[str, Any], metrics: Any, **settings: Any) -> dm.Evaluation:
    model = Several(one["weight"], one["p"])
    return dm.evaluate(
        one["y"], one["score"], metrics=metrics, missingness=model, sample_weight=one["sample_weight"], **settings
    )


def labelings(one: dict[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The metric of every labeling (NaN where 0/0), and the probability of each over the nodes."""
    gaps = np.flatnonzero(np.isnan(one["y"]))
    labels = np.array(list(product([0.0, 1.0], repeat=gaps.size)))
    y = np.tile(one["y"], (len(labels), 1))
    y[:, gaps] = labels
    weight = np.ones(one["y"].size) if one["sample_weight"] is None else one["sample_weight"]
    definition = oracle.DEFINITIONS.get(metric) or oracle.FAMILIES[metric]()
    values = definition(y, one["score"], (one["score"] >= 0.5).astype(float), weight)
    chances = np.prod(np.where(labels[None] == 1.0, one["p"][:, None], 1.0 - one["p"][:, None]), axis=2)
    return values, one["weight"] @ chances


@pytest.mark.parametrize("metric", CONFUSION)
@pytest.mark.parametrize(("posterior", "weighted"), [(1, False), (3, False), (2, True)])
def test_the_difference_equals_brute_force_over_the_labelings_of_both(metric, posterior, weighted):
    sets = [rows(seed, 9 + seed, 4 + seed, posterior, weighted=weighted) for seed in (1, 2)]
    after, before = (evaluated(one, metric, zero_division=np.nan) for one in sets)
    found = dm.compare_evaluations(after, before)[metric]
    values, masses = zip(*(labelings(one, metric) for one in sets), strict=True)
    difference = np.subtract.outer(*values).ravel()
    mass = np.multiply.outer(*masses).ravel()
    defined = ~np.isnan(difference)
    assert found.method == "exact"
    assert found.undefined == pytest.approx(mass[~defined].sum(), abs=1e-12)
    difference, mass = difference[defined], mass[defined] / mass[defined].sum()
    for t in np.unique(difference):
        assert found.cdf(t + oracle.ATOM) == pytest.approx(mass[difference <= t + oracle.ATOM].sum(), abs=1e-12)
    assert dm.compare_evaluations(after, before).probability_decreased(metric) == pytest.approx(
        mass[difference < -oracle.ATOM].sum(), abs=1e-12
    )
    assert found.mean() == pytest.approx(mass @ difference, abs=1e-12)
    assert found.support() == pytest.approx((difference.min(), difference.max()), abs=1e-12)


def brute(sets: list[dict[str, Any]], metric: str, of: Any) -> tuple[np.ndarray, np.ndarray]:
    """A function of the metric in several sets over all labelings of all of them, and the mass of each."""
    values, masses = zip(*(labelings(one, metric) for one in sets), strict=True)
    found = of(np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")]))
    mass = np.array([np.prod(one) for one in product(*masses)])
    return found, mass


def same_law(distribution: dm.MetricDistribution, values: np.ndarray, mass: np.ndarray) -> None:
    assert distribution.method == "exact"
    for t in np.unique(values):
        assert distribution.cdf(t + oracle.ATOM) == pytest.approx(mass[values <= t + oracle.ATOM].sum(), abs=1e-12)


def test_the_slope_over_three_sets_equals_brute_force():
    sets = [rows(seed, 7, 3, 2) for seed in (3, 4, 5)]
    found = trend_over("recall", [evaluated(one, "recall", zero_division=0) for one in sets], list("abc"), [0, 1, 3])
    # Least squares by numpy, for every labeling.
    values, mass = brute(sets, "recall", lambda each: np.polyfit([0, 1, 3], np.nan_to_num(each), 1)[0])
    same_law(found.distribution, values, mass)
    assert found.probability_decreasing() == pytest.approx(mass[values < -oracle.ATOM].sum(), abs=1e-12)
    assert found.probability_decreasing() + found.probability_increasing() <= 1.0


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_the_gap_over_three_sets_equals_brute_force(kind):
    sets = [rows(seed, 8, 3, 2) for seed in (3, 4, 6)]
    metric = dm.metrics.metrics_from("accuracy")
    found = disparity_between(metric, [np.nan], kind, [evaluated(one, "accuracy") for one in sets], list("abc"))
    of = {"difference": lambda x: x.max(axis=0) - x.min(axis=0), "ratio": lambda x: x.min(axis=0) / x.max(axis=0)}
    values, mass = brute(sets, "accuracy", of[kind])
    same_law(found.distribution, values, mass)
    assert found.distribution.support() == pytest.approx((values.min(), values.max()))
    best, mass = brute(sets, "accuracy", lambda x: (x == x.max(axis=0)) / (x == x.max(axis=0)).sum(axis=0))
    assert list(found.probability_highest.values()) == pytest.approx((best @ mass).tolist(), abs=1e-12)


def test_equalized_odds_use_both_rates_of_the_same_labels():
    sets = [rows(seed, 9, 4) for seed in (1, 2)]
    evaluations = [evaluated(one, ["recall", "fpr"], zero_division=0) for one in sets]
    gap = disparity_between(
        dm.metrics.metrics_from(["recall", "fpr"]), [0.0, 0.0], "equalized_odds", evaluations, ["a", "b"]
    )
    spreads = [brute(sets, rate, lambda x: np.abs(np.diff(np.nan_to_num(x), axis=0)[0])) for rate in ("recall", "fpr")]
    same_law(gap.distribution, np.maximum(spreads[0][0], spreads[1][0]), spreads[0][1])


def months(seed: int, n: int = 1200, share: float = 0.3, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return np.where(rng.random(n) < share, np.nan, rng.random(n) < p), p**power


def answer(seed: int, **settings: Any) -> dm.Evaluation:
    how: dict[str, Any] = {"metrics": ["precision", "recall", "accuracy"], **settings}
    power, n = how.pop("power", 1.0), how.pop("n", 1200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        return dm.evaluate(*months(seed, n, power=power), **how)


@pytest.mark.parametrize("metric", ["recall", "roc_auc", "brier", "average_precision"])
def test_the_difference_of_large_sets_is_that_of_draws(metric):
    settings: dict[str, Any] = {"metrics": metric, "missingness": "random", "rng": 0}
    after, before = answer(0, **settings), answer(1, power=1.2, **settings)
    difference = dm.compare_evaluations(after, before)[metric]
    rng = np.random.default_rng(0)
    draws = np.sort(after[metric].rvs(2**20, rng) - before[metric].rvs(2**20, rng))
    at = np.arange(1, draws.size + 1) / draws.size
    assert np.abs(difference.cdf(draws) - at).max() < 0.01


def test_with_no_label_missing_the_difference_is_that_of_scikit_learn():
    sets = [months(seed, share=0.0) for seed in (0, 1)]
    found = dm.compare_evaluations(*(dm.evaluate(*one, metrics="recall") for one in sets))
    after, before = (recall_score(y, p >= 0.5) for y, p in sets)
    assert found["recall"].interval() == pytest.approx((after - before,) * 2, abs=1e-15)
    assert found.probability_decreased("recall") == float(after < before)
    assert "for certain" in str(found)


def test_after_less_before_mirrors_before_less_after():
    after, before = answer(0), answer(1, power=1.2)
    one, other = dm.compare_evaluations(after, before), dm.compare_evaluations(before, after)
    for metric in one:
        # Calibrations of what is not known are put in another order in the second set.
        assert one[metric].mean() == pytest.approx(-other[metric].mean(), abs=2e-3)
        assert one[metric].std() == pytest.approx(other[metric].std(), rel=0.1)
    stated = [answer(seed, missingness="random") for seed in (0, 1)]
    assert dm.compare_evaluations(*stated).probability_decreased("recall") == pytest.approx(
        dm.compare_evaluations(*stated[::-1]).probability_increased("recall"), abs=0.005
    )


def late_table(n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age, p = rng.integers(0, 112, n), rng.beta(1, 3, n)
    y = rng.random(n) < p
    known = rng.exponential(np.where(y, 40, 10)) <= age
    day = pd.Timestamp("2026-04-30") - pd.to_timedelta(age, unit="D")
    return pd.DataFrame({"day": day, "y": np.where(known, y, np.nan), "p": p})


def by_month(table: pd.DataFrame, **settings: Any) -> dm.GroupedEvaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        how: dict[str, Any] = {
            "time": "day",
            "period": "month",
            "metrics": ["precision", "recall"],
            "threshold": 0.4,
            **settings,
        }
        return dm.evaluate_by("y", "p", data=table, **how)


def grouped_late() -> dm.GroupedEvaluation:
    return by_month(late_table(), missingness=dm.missing.Delayed(scored_at="day", as_of="2026-04-30"))


def test_a_reason_that_is_open_is_the_same_in_both():
    after, before = answer(0), answer(1)
    found = dm.compare_evaluations(after, before)
    told = dm.compare_evaluations(*(answer(seed, missingness="random") for seed in (0, 1)))
    apart = np.hypot(after["recall"].std(), before["recall"].std())
    # What the label does to the chance to be missing moves both alike; little more is left than if it were known.
    assert told["recall"].std() < found["recall"].std() < 0.5 * apart
    assert "the same in each" in found.shared_uncertainty


def test_delays_that_were_learned_from_all_months_are_the_same_in_each():
    result = grouped_late()
    april, march = (result[key] for key in list(result)[-2:][::-1])
    found = dm.compare_evaluations(april, march)
    assert "learned from both at once" in found.shared_uncertainty
    one, other = april["recall"].by_draw, march["recall"].by_draw
    assert one is not None
    assert other is not None
    within = float(one.weight @ one.var + other.weight @ other.var)
    assert found["recall"].var() == pytest.approx(np.var(one.mean - other.mean) + within, rel=0.02)
    assert found["recall"].mean() == pytest.approx(april["recall"].mean() - march["recall"].mean(), abs=2e-4)


def test_sets_err_alike_as_far_as_they_learned_from_the_same_rows():
    spreads = []
    for n in (2400, 60):
        reference = months(9, n, share=0.0)
        told = dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(*reference))
        found = [answer(seed, missingness=told, n=600) for seed in (0, 1)]
        apart = np.hypot(found[0]["recall"].std(), found[1]["recall"].std())
        spreads.append(dm.compare_evaluations(*found)["recall"].std() / apart)
    # With many reference rows most of what is open is shared; with few hardly any is.
    assert spreads[0] < spreads[1] <= 1.0 + 1e-6
    assert spreads[1] > 0.9


def test_months_of_no_missing_label_have_no_open_reason():
    known, open_ = dm.evaluate(*months(0, share=0.0), metrics="recall"), answer(1, metrics="recall")
    found = dm.compare_evaluations(open_, known)["recall"]
    assert found.mean() == pytest.approx(open_["recall"].mean() - known["recall"].mean(), abs=1e-6)
    assert found.std() == pytest.approx(open_["recall"].std(), rel=1e-3)


def test_a_0_by_0_is_left_out_or_counted_as_asked():
    settings: dict[str, Any] = {"metrics": "precision", "missingness": dm.missing.Fixed([0.5])}
    none = dm.evaluate([0, 1, None], [0.1, 0.2, 0.3], zero_division=np.nan, **settings)
    other = dm.evaluate([0, 1, None], [0.1, 0.7, 0.8], zero_division=np.nan, **settings)
    found = dm.compare_evaluations(other, none)
    assert found["precision"].undefined == 1.0
    assert np.isnan(found.probability_decreased("precision"))
    assert "undefined" in str(found)
    none = dm.evaluate([0, 1, None], [0.1, 0.2, 0.3], zero_division=0, **settings)
    assert dm.compare_evaluations(other, none)["precision"].mean() == pytest.approx(0.75)


def test_worse_knows_which_way_is_worse():
    found = dm.compare_evaluations(
        answer(0, metrics=["recall", "brier", "prevalence"], missingness="random"),
        answer(1, metrics=["recall", "brier", "prevalence"], missingness="random"),
    )
    assert found.probability_worse("recall", 0.01) == found.probability_decreased("recall", by=0.01)
    assert found.probability_worse("brier") == found.probability_increased("brier")
    with pytest.raises(
        dm.InputError,
        match=r"metric: 'prevalence' has no better side and cannot get worse\. Use probability_decreased\(\) or",
    ):
        found.probability_worse("prevalence")


@pytest.mark.parametrize("metric", ["precision", "recall", "roc_auc", "average_precision"])
def test_a_change_in_the_population_is_the_difference_of_what_evaluate_returns(metric):
    """The distributions of evaluate are skewed (Beta), and the difference keeps that."""
    sets = [
        dm.evaluate(*months(seed, n, 0.2), metrics=metric, missingness="random", scope="population")
        for seed, n in ((0, 40), (1, 25))
    ]
    difference = dm.compare_evaluations(*sets)[metric]
    after, before = (np.asarray(one[metric].ppf((np.arange(300) + 0.5) / 300)) for one in sets)
    # Different rows are independent but for draws of what is not known: here there is nothing shared.
    exact = np.sort(np.subtract.outer(after, before).ravel())
    levels = np.linspace(0.01, 0.99, 99)
    assert difference.cdf(np.quantile(exact, levels)) == pytest.approx(levels, abs=0.01)
    assert difference.mean() == pytest.approx(sets[0][metric].mean() - sets[1][metric].mean(), abs=0.005)
    assert "populations that the rows came from" in str(dm.compare_evaluations(*sets))


def test_a_change_between_rows_and_a_population_is_refused():
    with pytest.raises(dm.InputError, match=r"before: about the rows, and after is about the population"):
        dm.compare_evaluations(answer(0, metrics="recall", scope="population"), answer(1, metrics="recall"))


def given(seed: int, **settings: Any) -> dm.Evaluation:
    """Few labels, and probabilities that are given: the population is known better than the labels of the rows."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.45, 0.55, 400)
    y = np.where(rng.random(400) < 0.9, np.nan, rng.random(400) < p)
    return dm.evaluate(y, p, missingness=dm.missing.Fixed(p), **settings)


def test_with_given_probabilities_a_change_in_the_population_is_that_of_the_two_laws():
    sets = [given(seed, scope="population") for seed in (1, 2)]
    found, on_rows = dm.compare_evaluations(*sets), dm.compare_evaluations(*(one.rows for one in sets))
    after, before = sets
    for name, distribution in found.items():
        expected = float(np.hypot(after[name].std(), before[name].std()))
        assert distribution.std() == pytest.approx(expected, rel=0.01)
        assert distribution.mean() == pytest.approx(after[name].mean() - before[name].mean(), abs=0.01 * expected)
    assert found["accuracy"].std() < 0.5 * on_rows["accuracy"].std()
    # Of two evaluations the slope is the change, and the gap its size.
    slope = trend_over("accuracy", [before, after], ["May", "June"], [0.0, 1.0])
    assert slope.distribution.std() == pytest.approx(found["accuracy"].std(), rel=0.01)
    metric = after.metrics["accuracy"]
    gap = disparity_between([metric], [after.fills["accuracy"]], "difference", sets, ["June", "May"])
    drawn = np.abs(found["accuracy"].rvs(50_000, np.random.default_rng(0)))
    assert gap.distribution.mean() == pytest.approx(drawn.mean(), rel=0.02)
    assert gap.distribution.std() == pytest.approx(drawn.std(), rel=0.02)


def test_with_learned_probabilities_a_change_in_the_population_has_the_variance_and_the_0_by_0_of_both():
    after, before = (
        answer(i, metrics=["recall", "average_precision"], missingness="random").population for i in (0, 1)
    )
    for name, distribution in dm.compare_evaluations(after, before).items():
        assert distribution.std() == pytest.approx(float(np.hypot(after[name].std(), before[name].std())), rel=1e-2)
        assert distribution.undefined == pytest.approx(0.0, abs=1e-12)


def test_what_is_said_of_a_change():
    found = dm.compare_evaluations(
        answer(0, power=1.4, missingness="random"), answer(1, missingness="random"), names=("June", "May")
    )
    assert found.surest == "recall"
    assert found._words()[0] == "June (1,200 rows, 382 missing) against May (1,200 rows, 372 missing)."
    assert found.sentence("recall").startswith("recall fell from 0.7")
    assert "Probability that it fell: >99.9%" in str(found)
    assert found._repr_html_().count("<tr>") == 4
    kept = pickle.loads(pickle.dumps(found))
    assert kept.to_dict() == found.to_dict()
    numbers = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert numbers["metrics"]["recall"]["probability_decreased"] > 0.999
    assert list(found.to_frame("pandas")["metric"]) == list(found)
    other = dm.compare_evaluations(
        answer(0, threshold=0.6, missingness="random"), answer(1, metrics="recall", missingness="random")
    )
    assert "Decisions differ: score >= 0.6 (after), score >= 0.5 (before)." in other._notes()
    assert "In one of the two alone, and left out: precision, accuracy." in other._notes()


def test_trends_have_their_place_in_time_and_say_what_they_leave_out():
    table = late_table()
    table["country"] = np.where(np.arange(len(table)) % 2, "DE", "FR")
    table = table[(table["day"].dt.month != 3)]
    result = by_month(table, by="country", missingness="by_label")
    found = result.trend("recall", "DE")
    assert found.periods == ("2026-01", "2026-02", "2026-04")
    assert found.positions == (0.0, 1.0, 3.0)
    assert found.unit == "month"
    assert str(found).startswith("recall ")
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    assert [one["period"] for one in found.to_dict()["periods"]] == list(found.periods)
    few = by_month(
        pd.concat([table, table.assign(day=pd.Timestamp("2026-06-01"), y=np.nan).head(20)]), missingness="random"
    )
    assert few.trend("recall").left_out == ("2026-06",)
    assert "Left out, with too few labels: 2026-06." in str(few.trend("recall"))


def shops(seed: int = 0, share: float = 0.3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.random(1500)
    shop = rng.choice(["app", "kiosk", "web"], 1500)
    y = rng.random(1500) < np.where(shop == "kiosk", p**1.4, p)
    return pd.DataFrame({"shop": shop, "y": np.where(rng.random(1500) < share, np.nan, y), "p": p})


def test_with_no_label_missing_gaps_are_those_of_fairlearn():
    """MetricFrame(...).difference(), .ratio() and equalized_odds_difference, written out; fairlearn 0.15 agrees."""
    table = shops(share=0.0)
    result = dm.evaluate_by("y", "p", data=table, by="shop", metrics=["recall", "precision"])
    for metric, score in (("recall", recall_score), ("precision", precision_score)):
        each = [score(one["y"], one["p"] >= 0.5) for _, one in table.groupby("shop")]
        assert result.disparity(metric).distribution.interval() == pytest.approx(
            (max(each) - min(each),) * 2, abs=1e-15
        )
        assert result.disparity(metric, kind="ratio").distribution.mean() == pytest.approx(
            min(each) / max(each), abs=1e-15
        )
    rates = [
        [recall_score(one["y"], one["p"] >= 0.5), recall_score(one["y"] == 0, one["p"] < 0.5)]
        for _, one in table.groupby("shop")
    ]
    odds = result.disparity(kind="equalized_odds")
    assert odds.distribution.method == "exact"
    assert odds.distribution.mean() == pytest.approx(np.ptp(np.array(rates), axis=0).max(), abs=1e-15)


def test_with_no_label_missing_fairlearn_says_the_same():
    fairness = pytest.importorskip("fairlearn.metrics")
    table = shops(share=0.0)
    result = dm.evaluate_by("y", "p", data=table, by="shop", metrics=["recall"])
    rows = {"y_true": table["y"], "y_pred": table["p"] >= 0.5, "sensitive_features": table["shop"]}
    frame = fairness.MetricFrame(metrics=recall_score, **rows)
    assert result.disparity("recall").distribution.mean() == pytest.approx(frame.difference(), abs=1e-15)
    assert result.disparity("recall", kind="ratio").distribution.mean() == pytest.approx(frame.ratio(), abs=1e-15)
    odds = fairness.equalized_odds_difference(**rows)
    assert result.disparity(kind="equalized_odds").distribution.mean() == pytest.approx(odds, abs=1e-15)


@pytest.mark.parametrize("groups", [33, 70])
def test_a_gap_over_many_groups_is_that_of_scikit_learn(groups):
    """An array has 32 axes at most, or 64: groups have none of their own."""
    rng = np.random.default_rng(groups)
    table = pd.DataFrame({"g": np.arange(20 * groups) // 20, "y": np.arange(20 * groups) % 3 == 0})
    table["p"] = rng.random(len(table))
    result = dm.evaluate_by("y", "p", data=table, by="g", metrics=["recall"])
    each = [recall_score(one["y"], one["p"] >= 0.5) for _, one in table.groupby("g")]
    assert result.disparity("recall").distribution.mean() == pytest.approx(max(each) - min(each), abs=1e-15)
    assert result.disparity("recall", kind="ratio").distribution.mean() == pytest.approx(
        min(each) / max(each), abs=1e-15
    )
    with pytest.raises(
        dm.InputError, match=r"^groups: 1 group with enough labels. A disparity needs two different groups.$"
    ):
        result.disparity("recall", groups=[0, 0])


def test_what_is_said_of_a_gap():
    result = dm.evaluate_by("y", "p", data=shops(), by="shop", metrics=["recall"], missingness="random")
    found = result.disparity("recall")
    assert found.groups == ("app", "kiosk", "web")
    # Half a draw for what none of them shows.
    assert sum(found.probability_highest.values()) == pytest.approx(1.0, abs=2e-5)
    assert sum(found.probability_lowest.values()) == pytest.approx(1.0, abs=2e-5)
    assert 0.0 < found.probability_above(0.03) < 1.0
    assert result.disparity("recall", kind="ratio").probability_above(0.8) < 0.5
    assert found.pairwise("app", "web").mean() == pytest.approx(result.compare("app", "web")["recall"].mean())
    assert str(found).startswith("Largest minus smallest recall over 3 groups: 0.")
    assert found._repr_html_().count("<tr>") == 4
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["kind"] == "difference"
    two = result.disparity("recall", groups=["app", "web"])
    # Of two groups the gap is the size of their difference.
    rng = np.random.default_rng(0)
    drawn = np.abs(result.compare("app", "web")["recall"].rvs(50_000, rng))
    assert two.distribution.mean() == pytest.approx(drawn.mean(), rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.compare("web", "shop"), r"before: 'shop' is not among the 3 groups"),
        (lambda r: r.compare("web", "web"), r"before: web, the same group as after"),
        (
            lambda r: r.compare("web", "app").probability_decreased("recal"),
            r"metric: unknown metric 'recal'\. Did you mean 'recall'",
        ),
        (
            lambda r: r.compare("web", "app").probability_decreased("recall", by="much"),
            r"by: 'much'\. It must be a number",
        ),
        (
            lambda r: r.compare("web", "app").probability_increased("recall", by=-0.1),
            r"by: -0\.1\. It must be a number of at least 0",
        ),
        (lambda r: r.disparity("precission"), r"metric: unknown metric 'precission'"),
        (lambda r: r.disparity(), r"metric: missing\. Name one of 'recall'"),
        (lambda r: r.disparity("recall", kind="diff"), r"kind: unknown kind 'diff'\. Did you mean 'difference'"),
        (
            lambda r: r.disparity("recall", groups=["app"]),
            r"groups: 1 group with enough labels\. A disparity needs two different groups",
        ),
        (lambda r: r.disparity("recall", groups="app"), r"groups: 'app'\. Give a list of keys"),
        (lambda r: r.disparity("recall", groups=["app", "shop"]), r"groups: 'shop' is not among the 3 groups"),
        (lambda r: r.disparity("recall").probability_above("much"), r"limit: 'much'\. It must be a number"),
        (lambda r: r.disparity("recall").probability_above(-1), r"limit: -1\. .* at least 0: how far groups are apart"),
        (lambda r: r.disparity("recall").pairwise("app", "zz"), r"second: 'zz' is not among the 3 groups"),
        (lambda r: r.disparity("recall").pairwise("app", "app"), r"second: app, the same group as first"),
        (lambda r: r.compare("web", "app").sentence("foo"), r"metric: unknown metric 'foo'"),
        (lambda r: r.disparity("mcc", kind="ratio"), r"kind: 'ratio', but mcc can be negative"),
        (
            lambda r: r.disparity("mcc", kind="equalized_odds"),
            r"metric: 'mcc'\. Equalized odds are those of 'recall'",
        ),
        (lambda r: r.trend("recall"), r"trend: no time among the grouping columns \('shop'\)"),
        (
            lambda r: CHANGE(r, r["app"]),
            r"after: expected an Evaluation, got GroupedEvaluation\. It has many",
        ),
        (lambda r: CHANGE(r["app"], 0.6), r"before: expected an Evaluation, got float"),
        (lambda r: dm.compare_evaluations(r["app"], r["app"]), r"before: the same rows as after"),
        (lambda r: CHANGE(r["app"], r["web"], names="May"), r"names: 'May'\. Give two texts"),
        (lambda r: dm.compare_evaluations(r["app"], r["web"], confidence_level=90), r"confidence_level: 90"),
        (
            lambda r: dm.compare_evaluations(r["app"], dm.evaluate([1, 0], [0.9, 0.1], metrics="accuracy")),
            r"after: it has no metric in common with before \(recall, mcc; accuracy\)",
        ),
    ],
)
def test_bad_input_is_one_clear_error(call, message, shops_by_name):
    with pytest.raises(dm.InputError, match=message):
        call(shops_by_name)


@pytest.fixture(scope="module")
def shops_by_name() -> dm.GroupedEvaluation:
    return dm.evaluate_by("y", "p", data=shops(), by="shop", metrics=["recall", "mcc"], missingness="random")


@pytest.mark.parametrize(
    ("mean", "level", "start"),
    [
        (-0.015, 0.9, "f1 seems to have fallen from 0.700 to 0.680: by 0.015 (90%: -0.001 to 0.031)."),
        (0.015, 0.9, "f1 seems to have risen from 0.700 to 0.680: by 0.015 (90%: -0.001 to 0.031)."),
        (-0.02, 0.9, "f1 fell from"),
        (-0.02, 0.99, "f1 seems to have fallen from"),
        (-0.01, 0.9, "f1 went from"),
    ],
)
def test_what_may_not_have_moved_is_not_said_to_have(mean, level, start):
    distribution = Normal(loc=mean, scale=0.01, bounds=Interval(-1.0, 1.0))
    said = describe_move("f1", (0.7, 0.68), distribution, level)
    assert said.startswith(start)
    assert f"Probability that it {'fell' if mean < 0 else 'rose'}: " in said


def test_a_trend_that_may_be_none_seems_to_be_one():
    after, before = (answer(seed, metrics="recall", missingness="random") for seed in (0, 1))
    found = trend_over("recall", [before, after], ["May", "June"], [0.0, 1.0])
    for mean, verb in ((-0.015, "seems to fall"), (0.015, "seems to rise"), (-0.03, "falls")):
        distribution = Normal(loc=mean, scale=0.01, bounds=Interval(-1.0, 1.0))
        assert replace(found, distribution=distribution)._words()[0].startswith(f"recall {verb} by 0.0")


def test_two_sets_that_look_identical_get_a_note():
    same = dm.compare_evaluations(answer(0, missingness="random"), answer(0, missingness="random"))
    other = dm.compare_evaluations(answer(0, missingness="random"), answer(1, missingness="random"))
    assert sum("look identical" in note for note in same._notes()) == 1
    assert "look identical" not in str(other)


@pytest.mark.filterwarnings("ignore:recall is undefined")
def test_a_change_from_an_undefined_value_says_what_that_counts_as():
    for fill, expected in (("warn", 1.0), (0, 1.0), (1, 0.0)):
        one, none = (dm.evaluate([y], [s], metrics="recall", zero_division=fill) for y, s in ((1, 0.7), (0, 0.2)))
        found = dm.compare_evaluations(one, none)
        assert found["recall"].mean() == expected
        assert "and so is its change" not in str(found)
        assert f"In before it is undefined (0/0) and counts as {1.0 - expected:g}." in found.sentence("recall")
        assert "In after" not in str(found)
    one, none = (dm.evaluate([y], [s], metrics="recall", zero_division=np.nan) for y, s in ((1, 0.7), (0, 0.2)))
    assert dm.compare_evaluations(one, none).sentence("recall").endswith("and so is its change.")


def scored(n=600, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score).astype(float), score, rng


def test_the_same_rows_with_more_labels_get_a_note():
    y, score, rng = scored()
    partly = np.where(rng.random(y.size) < 0.5, np.nan, y)
    for weight in (None, rng.integers(1, 4, y.size)):
        told: Any = {"missingness": "random", "metrics": "recall", "sample_weight": weight}
        found = dm.compare_evaluations(dm.evaluate(y, score, **told), dm.evaluate(partly, score, **told))
        assert "look like the same rows with other labels" in found.same_rows
        assert found._notes().count(found.same_rows) == 1
        assert found.same_rows in found.report().html
    moved = dm.compare_evaluations(
        dm.evaluate(y, score, metrics="recall", threshold=0.3), dm.evaluate(y, score, metrics="recall")
    )
    assert "look like the same rows with other labels or decisions" in moved.same_rows


def test_rows_that_hold_those_of_the_other_get_a_note():
    y, score, _ = scored()
    whole, part = (dm.evaluate(y[:n], score[:n], metrics="recall") for n in (600, 200))
    for found in (dm.compare_evaluations(whole, part), dm.compare_evaluations(part, whole)):
        assert "look as if they had rows in common" in found.same_rows
        assert found.same_rows in found._notes()


def test_different_rows_get_no_note_that_they_are_the_same():
    grids: Any = (1, 2, 10, 100, 1000, None)
    for grid, n, m in product(grids, (1, 5, 30, 400), (1, 8, 30, 400, 2000)):
        for seed in range(3):
            y, score, rng = scored(n + m, seed)
            score = score if grid is None else np.floor(score * grid) / grid
            y[rng.random(n + m) < 0.3] = np.nan
            sets: Any = [SimpleNamespace(data=dm.EvaluationSet(y[at], score[at])) for at in (slice(n), slice(n, None))]
            text = describe_overlap(*sets)
            assert not text or (n == m == 1 and "identical" in text), (grid, n, m, seed)


def test_other_weights_are_other_rows():
    y, score, rng = scored()
    sets = [dm.evaluate(y, score, metrics="recall", sample_weight=rng.random(600)) for _ in range(2)]
    assert dm.compare_evaluations(*sets).same_rows == ""


def test_two_models_of_one_comparison_are_no_change():
    y, score, rng = scored()
    one: Any = None
    for labels in (y, np.where(rng.random(600) < 0.5, np.nan, y)):
        one = dm.compare(labels, {"A": score, "B": rng.random(600)}, missingness="random", metrics="recall")
        with pytest.raises(dm.InputError, match=r"before: a model of the same comparison as after.*difference\("):
            dm.compare_evaluations(one["B"], one["A"])
        kept = pickle.loads(pickle.dumps(one))
        with pytest.raises(dm.InputError, match="before: a model of the same comparison"):
            dm.compare_evaluations(kept["B"], kept["A"])
    y, score, _ = scored(seed=1)
    other = dm.compare(y, {"A": score, "B": score**2}, metrics="recall")
    assert dm.compare_evaluations(other["A"], one["A"]).same_rows == ""


def test_a_change_is_a_mapping_with_a_default(shops_by_name):
    found = shops_by_name.compare("web", "app")
    assert found.get("zz") is None
    assert found.get("zz", 1.0) == 1.0
    assert found.get("recall") is found["recall"]


def test_what_is_about_the_population_says_so():
    settings: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "recall", "missingness": "random"}
    result = dm.evaluate_by(data=shops(), by="shop", scope="population", **settings)
    gap, change = result.disparity("recall"), result.compare("app", "web")
    sets = [result["app"], result["web"]]
    trend = trend_over("recall", sets, ["May", "June"], [0.0, 1.0])
    for found in (gap, change, trend):
        assert found.scope == found.to_dict()["scope"] == "population"
        assert "populations that the rows came from" in str(found)
        assert "these rows" not in str(found)
    assert "populations that the rows came from" in str(result.disparity(kind="equalized_odds"))


@pytest.mark.parametrize("ends", [("north", "south"), ("north" + "x" * 60, "south" + "x" * 60)])
def test_groups_of_long_names_are_not_taken_for_one(ends):
    names = {
        shop: "department of internal medicine, " * 2 + end for shop, end in zip(("app", "web"), ends, strict=True)
    }
    settings: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "recall", "missingness": "random"}
    short = dm.evaluate_by(data=shops(), by="shop", **settings).disparity("recall")
    long_ = dm.evaluate_by(data=shops().replace({"shop": names}), by="shop", **settings).disparity("recall")
    assert len(set(long_.groups)) == 3
    assert sorted(long_.means.values()) == pytest.approx(sorted(short.means.values()))
    assert sum(long_.probability_highest.values()) == pytest.approx(1.0, abs=1e-4)


def test_bad_segments_and_lone_periods_are_errors():
    table = late_table().assign(shop="web")
    result = by_month(table, by="shop", missingness="by_label")
    with pytest.raises(dm.InputError, match=r"segment: None\. Give the value of 'shop', such as 'web'"):
        result.trend("recall")
    with pytest.raises(dm.InputError, match=r"trend: 1 period with enough labels"):
        by_month(table[table["day"].dt.month == 2], missingness="by_label").trend("recall")
    with pytest.raises(dm.InputError, match=r"segment: 'web'\. There is none: leave it out"):
        by_month(table, missingness="by_label").trend("recall", "web")


def test_names_of_several_lines_stay_on_one():
    may, june = (evaluated(rows(seed), ["accuracy"]) for seed in (1, 2))
    found = dm.compare_evaluations(june, may, names=("June\n2026", "May\t 2026"))
    assert found.names == ("June\n2026", "May\t 2026")  # as given; what is printed writes them out
    header = next(line for line in str(found).splitlines() if "change" in line and "method" in line)
    assert r"June\n2026" in header
    assert r"May\t 2026" in header


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_the_same_for_certain_in_both_neither_fell_nor_rose(weighted):
    def month(seed):
        rng = np.random.default_rng(seed)
        p = rng.random(600)
        y = np.where(p >= 0.7, 1.0, rng.random(600) < p)
        y[(p < 0.6) & (rng.random(600) < 0.4)] = np.nan
        # With weights the law of precision has places near its values, which are all 1.
        asked: Any = {"sample_weight": rng.lognormal(size=600)} if weighted else {}
        return dm.evaluate(y, p, threshold=0.7, missingness="random", metrics=["precision", "recall"], **asked)

    found = dm.compare_evaluations(month(1), month(2))
    assert found.before["precision"].mean() == found.after["precision"].mean() == 1.0
    assert (
        found.probability_decreased("precision")
        == found.probability_increased("precision")
        == found.probability_worse("precision")
        == 0.0
    )
    assert found["precision"].interval(0.9) == (0.0, 0.0)
    assert 0.0 < found.probability_decreased("recall") < 1.0


def test_a_name_that_is_empty_is_refused():
    june = answer(0, missingness="random")
    with pytest.raises(dm.InputError, match=r"names: \('', 'May'\)\. Give two texts"):
        dm.compare_evaluations(june, answer(1, missingness="random"), names=("", "May"))


def test_a_change_mirrors_that_from_the_other_to_the_one():
    """Calibrations were put in another order in the set given last: means of f1 were off by 0.006 one way."""

    def month(seed, n):
        rng = np.random.default_rng(seed)
        p = rng.random(n)
        y = (rng.random(n) < p).astype(float)
        y[rng.random(n) < 0.4] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dm.evaluate(y, p, metrics=["accuracy", "f1", "roc_auc"])

    few, many = month(1, 40), month(2, 90)
    one, other = dm.compare_evaluations(few, many), dm.compare_evaluations(many, few)
    for metric in one:
        assert one.probability_decreased(metric) == pytest.approx(other.probability_increased(metric), abs=0.006)
        assert one[metric].mean() == pytest.approx(-other[metric].mean(), abs=0.02 * one[metric].std())
        assert one[metric].mean() == pytest.approx(
            few[metric].mean() - many[metric].mean(), abs=0.05 * one[metric].std()
        )


@pytest.mark.parametrize("seed", [0, 15])
def test_what_is_the_same_in_another_unit_of_weight_has_not_changed(seed):
    """What rounding leaves of two sums was a change, and made one group the largest of two that are the same."""
    rng = np.random.default_rng(seed)
    score, y = np.rint(8.0 * rng.random(200)) / 8.0, rng.integers(0, 2, 200).astype(float)
    y[rng.permutation(200)[:4]] = np.nan
    weight, order = rng.integers(1, 4, 200).astype(float), rng.permutation(200)
    turned = y[order], score[order], weight[order] / 3.0
    settings: dict[str, Any] = {"metrics": ["precision", "accuracy", "roc_auc"], "missingness": dm.missing.Fixed(0.5)}
    before = dm.evaluate(y, score, sample_weight=weight, **settings)
    found = dm.compare_evaluations(dm.evaluate(*turned[:2], sample_weight=turned[2], **settings), before)
    for metric, distribution in before.items():
        assert isinstance(distribution, Discrete)
        same = 1.0 - found.probability_decreased(metric) - found.probability_increased(metric)
        assert same == pytest.approx(float((distribution.masses**2).sum()), abs=1e-9)
    both = [np.concatenate(pair) for pair in zip((y, score, weight), turned, strict=True)]
    table = pd.DataFrame({"g": np.repeat(["x", "y"], 200), "y": both[0], "p": both[1], "w": both[2]})
    asked: dict[str, Any] = {"y_true": "y", "y_score": "p", "sample_weight": "w", "missingness": dm.missing.Fixed(0.5)}
    gap = dm.evaluate_by(data=table, by="g", metrics="precision", **asked).disparity("precision")
    assert list(gap.probability_highest.values()) == pytest.approx([0.5, 0.5])
    assert list(gap.probability_lowest.values()) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("metric", ["mcc", "gini", "cohen_kappa"])
def test_groups_whose_metric_is_zero_but_for_rounding_are_level(metric, monkeypatch):
    """The largest of two groups of the same rows was decided by the last digit, of which 0 has none to spare."""
    monkeypatch.setattr("darkmetrics.monitoring.groups.MIN_LABELS", 1)
    for seed in (8, 11, 12):
        rng = np.random.default_rng(seed)
        score, y = np.repeat([0.2, 0.8], 6), np.tile([0.0, 1.0], 6)
        y[rng.permutation(12)[:3]] = np.nan
        weight, order = np.tile(rng.integers(1, 4, 6).astype(float), 2), rng.permutation(12)
        table = pd.DataFrame(
            {
                "g": np.repeat(["x", "y"], 12),
                "y": np.concatenate([y, y[order]]),
                "p": np.concatenate([score, score[order]]),
                "w": np.concatenate([weight, weight[order] / 3.7]),
            }
        )
        asked: dict[str, Any] = {
            "y_true": "y",
            "y_score": "p",
            "sample_weight": "w",
            "missingness": dm.missing.Fixed(0.5),
        }
        gap = dm.evaluate_by(data=table, by="g", metrics=metric, **asked).disparity(metric)
        assert list(gap.probability_highest.values()) == pytest.approx([0.5, 0.5])
        assert list(gap.probability_lowest.values()) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("kind", ["difference", "ratio", "equalized_odds"])
def test_the_gap_over_many_sets_is_that_of_drawn_labels(kind):
    rng = np.random.default_rng(11)
    sets, evaluations, rates = 12, [], []
    draws = 40_000
    for _ in range(sets):
        score = np.concatenate([[0.9, 0.1], rng.random(38)])
        y = np.concatenate([[1.0, 0.0], np.where(rng.random(38) < 0.6, np.nan, rng.random(38) < score[2:])])
        p = rng.random(40)
        evaluations.append(
            dm.evaluate(
                y, score, missingness=dm.missing.Fixed(p[np.isnan(y)]), metrics=["recall", "fpr"], zero_division=np.nan
            )
        )
        labels = np.where(np.isnan(y), rng.random((draws, 40)) < p, y == 1.0)
        found = score >= 0.5
        rates.append([(labels & found).sum(1) / labels.sum(1), (~labels & found).sum(1) / (~labels).sum(1)])
    metrics = [
        evaluations[0].metrics[name] for name in (("recall", "fpr") if kind == "equalized_odds" else ("recall",))
    ]
    gap = disparity_between(metrics, [np.nan] * len(metrics), kind, evaluations, list("abcdefghijkl"))
    high, low = np.max(rates, axis=0), np.min(rates, axis=0)
    truth = {"difference": high[0] - low[0], "ratio": low[0] / high[0], "equalized_odds": (high - low).max(axis=0)}
    assert gap.distribution.method == "monte carlo"
    t = np.quantile(truth[kind], np.linspace(0.01, 0.99, 99)) + 1e-9
    # Two samples, of 131,072 and of so many: Dvoretzky-Kiefer-Wolfowitz for both, passed once in 10,000 runs.
    far = np.sqrt(np.log(4.0 / 1e-4) / 2.0) * (draws**-0.5 + 131_072**-0.5)
    np.testing.assert_allclose(gap.distribution.cdf(t), [(truth[kind] <= one).mean() for one in t], atol=far)
    at = np.abs(np.array(rates)[:, 0] - high[0]) < 1e-12
    np.testing.assert_allclose(list(gap.probability_highest.values()), (at / at.sum(axis=0)).mean(axis=1), atol=far)
