"""Months with late labels: delays learned from all of them, a level of each, the newest with hardly a label."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import binom

import darkmetrics as dm
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missing import Delayed
from darkmetrics.missingness.base import missing_rows
from darkmetrics.missingness.delay_groups import GroupDelays, fit_groups, level_posterior
from darkmetrics.monitoring.total import GroupPosterior, stack_groups
from darkmetrics.posterior import Posterior

pytest.importorskip("experiments.late.months")
from experiments.late.months import newest_month, simulated

# Years that are looked at in every run, and where there is time.
SOME, MANY = 14, 100


def fewest(sets: int) -> int:
    """Fewer hits than this happen once in a thousand times if coverage is the 85% that is asked for."""
    return int(binom.ppf(0.001, sets, 0.85))


@pytest.fixture(scope="module")
def year():
    return simulated(np.random.default_rng(3), n=4000, apart=0.3)


def log_posterior(u, odds, survival, counts, spread):
    """Row by row as the model is written, and nothing shared with the kernel."""
    p = expit(odds + u)
    positives, negatives, missing = counts
    unlabeled = np.log(p * survival[0] + (1.0 - p) * survival[1])
    return positives @ np.log(p) + negatives @ np.log1p(-p) + missing @ unlabeled - 0.5 * (u / spread) ** 2


@pytest.mark.parametrize("spread", [0.1, 0.4, 0.8])
def test_level_is_the_mode_of_its_posterior_and_its_evidence_the_integral(spread):
    rng = np.random.default_rng(1)
    odds, survival = rng.normal(-1.0, 1.5, 60), rng.uniform(0.05, 0.95, (2, 60))
    counts = rng.integers(0, 4, (3, 60)).astype(float)
    counts[0] = rng.binomial(6, expit(odds + 0.3))
    moved = np.log(survival[0] / survival[1])[None]
    level = level_posterior(odds[None], moved, counts[0], counts[1], counts[2], np.array([spread]), 1.0)
    mode = minimize_scalar(
        lambda u: -log_posterior(u, odds, survival, counts, spread), bounds=(-3, 3), method="bounded"
    )
    assert level.mean[0] == pytest.approx(mode.x, abs=1e-4)
    at = [log_posterior(mode.x + step, odds, survival, counts, spread) for step in (-1e-3, 0.0, 1e-3)]
    assert level.sd[0] == pytest.approx((-(at[0] - 2.0 * at[1] + at[2]) / 1e-6) ** -0.5, rel=1e-3)
    without = log_posterior(0.0, odds, survival, counts, spread)
    area = quad(lambda u: np.exp(log_posterior(u, odds, survival, counts, spread) - without), -4, 4, limit=200)[0]
    # Laplace's approximation, on a posterior that is nearly Gaussian
    assert level.log_evidence[0] == pytest.approx(np.log(area / (spread * np.sqrt(2.0 * np.pi))), abs=0.02)


def test_a_group_without_rows_has_the_prior_for_its_level():
    none = np.zeros((3, 5))
    level = level_posterior(np.zeros((2, 5)), np.zeros((2, 5)), none[0], none[1], none[2], np.array([0.1, 0.5]), 0.7)
    assert np.allclose(level.mean, 0.0)
    assert np.allclose(level.sd, [0.1, 0.5])
    assert np.allclose(level.log_evidence, 0.0)


HOW: dict[str, dict[str, Any]] = {
    "ages": {},
    "timed": {"timed": True},
    "drift": {"drift": 0.5},
    "apart": {"apart": 0.4, "timed": True},
}


@pytest.mark.parametrize(
    ("how", "sets"),
    # Every run has the hardest of them; each by itself is for where there is time.
    [("apart", SOME), *(pytest.param(how, MANY, marks=pytest.mark.guarantees) for how in HOW)],
)
def test_newest_month_is_held(how, sets):
    how = HOW[how]
    found = newest_month(range(sets), **how)
    assert found.labeled.mean() < 0.1
    assert found.held.sum(axis=0).min() >= fewest(sets), found.coverage


# Those with other rows' ages hold half of the time: fewer years could not tell.
@pytest.mark.guarantees
@pytest.mark.parametrize("sets", [MANY])
def test_with_ages_permuted_the_newest_month_is_not_held(sets):
    found = newest_month(range(sets), permuted=True)
    assert found.held.sum(axis=0).min() < fewest(sets), found.coverage


def segments(seed: int, *levels: float) -> tuple[list[EvaluationSet], list[int]]:
    """A year of each of several segments, with the positives among its missing rows."""
    rng = np.random.default_rng(seed)
    years = [simulated(rng, 1500, level=level) for level in levels]
    return [EvaluationSet.concat(year.sets()) for year in years], [int((year.y & ~year.known).sum()) for year in years]


def expected(data: EvaluationSet, posterior: Posterior) -> float:
    """Positives expected among the missing rows."""
    return float(posterior.weight @ posterior.probability @ missing_rows(data, posterior))


def test_one_curve_for_all_hides_what_levels_show() -> None:
    sets, truth = segments(4, -0.8, 0.0, 0.8)
    own = [expected(data, model.posterior(data)) for model, data in zip(fit_groups(Delayed(), sets), sets, strict=True)]
    fit = Delayed().fit(EvaluationSet.concat(sets))
    shared = [expected(data, fit.posterior(data)) for data in sets]
    for place in (0, 2):
        assert abs(own[place] - truth[place]) < 0.4 * abs(shared[place] - truth[place])


def test_how_far_groups_differ_is_learned() -> None:
    alike, apart = (fit_groups(Delayed(), segments(8, *levels)[0])[0] for levels in ((0.0,) * 6, (-0.6, 0.6) * 3))
    assert isinstance(alike, GroupDelays)
    assert isinstance(apart, GroupDelays)
    assert alike.spread.mean() < 0.25 < 0.4 < apart.spread.mean()


def test_a_group_without_any_label_answers(year):
    sets = year.sets()
    blank = [sets[0].unlabeled(), *sets[1:]]
    posterior = fit_groups(Delayed(), blank)[0].posterior(blank[0])
    fraction = posterior.probability @ missing_rows(blank[0], posterior) / blank[0].n_missing
    assert abs(fraction.mean() - year.y[year.month == 0].mean()) < 3.0 * fraction.std()


def test_a_group_without_any_label_is_wider_than_with_labels():
    """The prevalence of the group, over several years: single ones differ by chance."""
    spreads = []
    for seed in (3, 4, 5):
        sets = simulated(np.random.default_rng(seed), n=4000, apart=0.3).sets()
        blank = [sets[0].unlabeled(), *sets[1:]]
        for groups in (sets, blank):
            data, posterior = groups[0], fit_groups(Delayed(), groups)[0].posterior(groups[0])
            spreads.append((posterior.probability @ missing_rows(data, posterior)).std() / data.n_rows)
    known, unknown = np.reshape(spreads, (3, 2)).mean(axis=0)
    assert unknown > known > 0.0


def test_total_is_the_sum_of_the_months_draw_by_draw(year):
    sets = year.sets()
    models = fit_groups(Delayed(), sets)
    posterior = [model.posterior(data) for model, data in zip(models, sets, strict=True)]
    posteriors = [GroupPosterior.of(data, one, len(sets)) for data, one in zip(sets, posterior, strict=True)]
    whole, joint, n_borrowing, _ = stack_groups(sets, posteriors, models, Delayed().posterior)
    assert not n_borrowing
    assert whole.n_rows == year.y.size
    months = sum(one.probability @ missing_rows(data, one) for data, one in zip(sets, posterior, strict=True))
    assert np.allclose(joint.probability @ missing_rows(whole, joint), months, rtol=1e-9)


def test_one_group_alone_is_the_model_of_its_rows(year):
    data = EvaluationSet.concat(year.sets())
    (model,) = fit_groups(Delayed(), [data])
    one, other = model.posterior(data), Delayed().posterior(data)
    assert np.array_equal(one.probability, other.probability)


@pytest.fixture(scope="module")
def months(year):
    """`evaluate_by` over the months of the year, the newest without a label."""
    table = pd.DataFrame(
        {
            "month": year.month,
            "y": np.where(year.known & (year.month > 0), year.y, np.nan),
            "p": year.score,
            "scored": np.datetime64("2026-12-31") - year.age,
        }
    )
    settings: dict[str, Any] = {"y_true": "y", "y_score": "p", "threshold": 0.3, "metrics": ["precision", "recall"]}
    return dm.evaluate_by(
        data=table, by="month", missingness=dm.missing.Delayed(scored_at="scored", as_of="2026-12-31"), **settings
    )


def test_evaluate_by_answers_for_every_month_with_one_fit(months):
    assert len(months) == 12
    assert not any(group.too_small for group in months.groups.values())
    newest = months.groups[0,]
    assert newest.counts["labeled"] == 0
    assert newest.metrics["precision"].low < newest.metrics["precision"].high
    assert months[0].stated == "delayed"
    assert "learned from all groups" in months._notes()[0]
    assert "learned from all their rows" in months.total.assumption


def test_total_of_evaluate_by_is_the_sum_of_its_months(months):
    by_month = sum(expected(one.data, one.posterior) for one in months.values())
    assert expected(months.total.data, months.total.posterior) == pytest.approx(by_month, rel=1e-9)
    assert months.total.data.n_rows == sum(group.counts["rows"] for group in months.groups.values())


def test_the_arrival_of_all_groups_is_that_of_all_rows():
    names: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "precision"}
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 1500)
    score = rng.random(1500)
    y = rng.random(1500) < score
    took = np.where(y, rng.exponential(40, 1500), rng.exponential(10, 1500))
    today = pd.Timestamp("2026-07-01")
    rows = pd.DataFrame(
        {"y": np.where(took <= age, y, np.nan), "p": score, "scored": today - pd.to_timedelta(age, "D")}
    )
    delayed = dm.missing.Delayed(scored_at="scored", as_of="2026-07-01")
    grouped = dm.evaluate_by(data=rows, missingness=delayed, time="scored", period="month", **names)
    found, expected = (
        grouped.arrival,
        dm.evaluate(data=rows, missingness=delayed, **names).arrival,
    )
    assert found is not None
    assert expected is not None
    assert found.headline() == expected.headline()
    assert found._table() == expected._table()
    pytest.importorskip("matplotlib").use("Agg")
    assert dm.plotting.plot_arrival(grouped).get_xlabel() == "age in days"
    for part in (grouped.total, grouped["2026-06"]):
        with pytest.raises(
            dm.InputError, match=r"Delays are learned from all groups together\. Pass the grouped result\."
        ):
            part.plot_arrival()


def test_groups_without_ages_have_no_arrival():
    rows = pd.DataFrame({"y": [1, 0, None] * 20, "p": [0.9, 0.2, 0.6] * 20, "shop": ["a", "b"] * 30})
    grouped = dm.evaluate_by("y", "p", data=rows, by="shop", missingness="random", metrics="recall")
    assert grouped.arrival is None
    for one in (grouped, grouped.total, grouped["a"]):
        with pytest.raises(
            dm.InputError,
            match=r"^evaluation: its rows have no ages\. Pass missingness= an object of dm\.missing\.Delayed\.",
        ):
            dm.plotting.plot_arrival(one)
