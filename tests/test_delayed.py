"""Delayed labels: the posterior against plain sums over histories and MCMC, units, and who is reviewed."""

import math
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Delayed
from darkmetrics.missingness import delay_model
from darkmetrics.missingness.age_cells import AgeGrid
from darkmetrics.missingness.delay_fit import FittedSetting, compute_label_probability
from darkmetrics.missingness.delay_model import DelayData, Setting, declare
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.posterior.likelihood import Likelihood

METRICS = ("precision", "recall", "f1")


def simulate(
    seed: int, n: int = 2000, *, low: float = 1.0, high: float = 1.0, timed: bool = True, oldest: int = 60
) -> tuple[Any, ...]:
    """Labels, scores, ages, delays, true labels: `low` and `high` of the rows are reviewed below and from 0.5 on."""
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 1.8, n)
    y = (rng.random(n) < score).astype(float)
    age = rng.integers(5, oldest, n).astype(float)
    delay = np.floor(rng.exponential(np.where(y == 1.0, 12.0, 4.0))) + 1.0
    is_reviewed = rng.random(n) < np.where(score >= 0.5, high, low)
    known = is_reviewed & (delay <= age)
    return np.where(known, y, np.nan), score, age, np.where(known, delay, np.nan) if timed else None, y


def data_of(rows: tuple[Any, ...], maturity: float | None = None) -> dm.EvaluationSet:
    labels, score, age, delay, _ = rows
    mechanism = dm.missing.Delayed(age=age, delay=delay, maturity=maturity)
    return dm.EvaluationSet(labels, score, threshold=0.5, missingness=mechanism)


def delay_data(data: dm.EvaluationSet) -> DelayData:
    fit_data = FitData.of(data)
    grid = AgeGrid.of(data, fit_data.logistic_calibrator("flexible"))
    return DelayData.of(grid, data, 1.0)


def expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def log_likelihood_by_rows(data: dm.EvaluationSet, fit: DelayData, setting: Setting, theta: Any) -> float:
    """Multiply probabilities of histories one by one; nothing is shared with the engine."""
    declared, grid, table = declare(fit, setting), fit.grid, fit.table
    slope = theta[declared.slope]
    columns = delay_model.build_rate_columns(grid)

    def rate(y: int, score_bin: int) -> float:
        own = theta[declared.rates]
        return expit(columns[score_bin] @ own if setting.reviewed == "by_score" else own[y])

    def hazard(y: int, zone: int, j: int, *, own: bool = False) -> float:
        if y == 1 and grid.maturity is not None and j == grid.n_ages - 1:
            log_odds = 12.0
        else:
            first = delay_model.guess_hazards(grid, y)[0][j] + sum(theta[declared.hazards[y][: j + 1]])
            log_odds = first + grid.zone_position[zone] * (slope[0] + (y - 0.5) * slope[1])
        return expit(log_odds + (math.log(grid.passed[j]) if own else 0.0))

    def waits(y: int, zone: int, before: int) -> float:
        return math.prod(1.0 - hazard(y, zone, j) for j in range(before))

    def arrived(y: int, zone: int, age: int) -> float:
        if y not in declared.hazards:
            return 0.0
        before = sum(waits(y, zone, j) * hazard(y, zone, j) for j in range(age))
        return before + waits(y, zone, age) * hazard(y, zone, age, own=True)

    cells, ages = data.cells, data.cells.ages
    assert ages is not None
    age, delay = grid.age_bin(ages.age), grid.age_bin(np.maximum(ages.delay, 0))
    total = 0.0
    for i in range(cells.score.size):
        row, score_bin = table.of_cell[i], int(grid.score_bin(cells.score[i : i + 1])[0])
        zone, a = int(grid.zone[score_bin]), int(age[i])
        x = np.append(table.columns[row], grid.drift[a])
        p = expit(x @ theta[declared.curve])
        for y, count in ((0, cells.negatives[i]), (1, cells.positives[i])):
            if not count:
                continue
            value = (p if y else 1.0 - p) * rate(y, score_bin)
            if ages.timed[i]:
                d = int(delay[i])
                value *= waits(y, zone, d) * hazard(y, zone, d, own=d == a and not ages.mature[i])
            elif not ages.mature[i]:
                value *= arrived(y, zone, a)
            elif y == 0 and y in declared.hazards:
                value *= waits(y, zone, grid.n_ages)
            total += float(count) * math.log(value)
        if cells.missing[i]:
            left = [1.0 - rate(y, score_bin) * arrived(y, zone, a) for y in (0, 1)]
            total += float(cells.missing[i]) * math.log((1.0 - p) * left[0] + p * left[1])
    return total


@pytest.mark.parametrize("reviewed", ["all", "by_score"])
@pytest.mark.parametrize("told", ["ages", "times", "maturity"])
def test_log_posterior_is_that_of_histories_multiplied_one_by_one(reviewed: str, told: str) -> None:
    rows = simulate(1, 120, low=0.4, high=0.9, timed=told == "times", oldest=20)
    if told == "maturity":
        positives = (np.nan_to_num(rows[0]) == 1.0).astype(float)
        data = data_of((positives, *rows[1:]), maturity=15)
    else:
        data = data_of(rows)
    fit, setting = delay_data(data), Setting(reviewed)
    likelihood = Likelihood(declare(fit, setting).model)
    rng = np.random.default_rng(2)
    theta = likelihood.prior.mean + 0.3 * rng.normal(size=likelihood.prior.mean.size)
    value = float(likelihood.log_posterior(theta[:, None])[0] - likelihood.prior.log_density(theta[:, None])[0])
    assert value == pytest.approx(log_likelihood_by_rows(data, fit, setting, theta), rel=1e-9)


def draw_by_mcmc(fitted: FittedSetting, likelihood: Likelihood, n_chains: int = 32, n_steps: int = 1200) -> Any:
    """Draw parameters by random walks that leave the Gaussian at the mode invariant, corrected by Metropolis."""
    rng = np.random.default_rng(3)
    mode = fitted.mode
    values, vectors = np.linalg.eigh(mode.precision)
    root = vectors / np.sqrt(np.maximum(values, 1e-6))
    z = rng.standard_normal((mode.theta.size, n_chains))

    def log_ratio(z: Any) -> Any:
        return likelihood.log_posterior(mode.theta[:, None] + root @ z) + 0.5 * (z * z).sum(axis=0)

    ratio, kept = log_ratio(z), []
    for step in range(n_steps):
        size = rng.choice([0.2, 0.5, 0.9])
        new = np.sqrt(1.0 - size**2) * z + size * rng.standard_normal(z.shape)
        new_ratio = log_ratio(new)
        accepted = np.log(rng.random(n_chains)) < new_ratio - ratio
        z, ratio = np.where(accepted, new, z), np.where(accepted, new_ratio, ratio)
        if step >= n_steps // 4 and step % 5 == 0:
            kept.append(z)
    return (mode.theta[:, None] + root @ np.concatenate(kept, axis=1)).T


@pytest.mark.parametrize("timed", [True, False], ids=["times", "ages"])
def test_draws_agree_with_mcmc(timed: bool) -> None:
    fit = delay_data(data_of(simulate(4, 1500, timed=timed)))
    fitted = FittedSetting.of(fit, Setting("all"))
    table, _ = fit.table.with_missing()

    def summarize(draws: Any, weight: Any) -> tuple[float, float]:
        count = compute_label_probability(fit.grid, draws, table) @ table.missing
        mean = float(weight @ count)
        return mean, float(np.sqrt(weight @ (count - mean) ** 2))

    # From ages alone draws are from the posterior with the most likely Gaussian priors of steps, as documented.
    gaussian = Likelihood(declare(fit, fitted.setting, known=fitted.mode.theta).model)
    chain = fitted.to_draws(draw_by_mcmc(fitted, fitted.likelihood if timed else gaussian))
    expected, sd = summarize(chain, np.full(len(chain.curve), 1.0 / len(chain.curve)))
    mean, found = summarize(*fitted.draw(1024))
    # From ages alone the posterior has a long tail, where importance weights fail and skewed Gaussian draws are used.
    assert mean == pytest.approx(expected, abs=(0.1 if timed else 0.3) * sd)
    assert found == pytest.approx(sd, rel=0.1 if timed else 0.2)


@pytest.mark.parametrize(("unit", "factor"), [("hours", 24.0), ("weeks", 1.0 / 7.0)])
def test_results_do_not_depend_on_the_unit_of_age(unit: str, factor: float) -> None:
    labels, score, age, delay, _ = simulate(5)
    asked: dict[str, Any] = {"threshold": 0.5, "metrics": METRICS}
    rng = np.random.default_rng(0)
    shift = rng.random(age.size) * 0.5  # times of a day, so that ages are whole in no unit
    first, second = (
        dm.evaluate(labels, score, missingness=dm.missing.Delayed(age=(age + shift) * by, delay=delay * by), **asked)
        for by in (1.0, factor)
    )
    for name in METRICS:
        assert first[name].mean() == pytest.approx(second[name].mean(), abs=0.6 * first[name].std()), unit


def is_covered(rows: tuple[Any, ...], reviewed: str | None) -> tuple[list[bool], Any]:
    labels, score, age, delay, y = rows
    model = Delayed(age=age, delay=delay, reviewed=reviewed)
    result = dm.evaluate(labels, score, threshold=0.5, metrics=METRICS, missingness=model)
    flagged = score >= 0.5
    precision, recall = y[flagged].mean(), y[flagged].sum() / y.sum()
    truth = {"precision": precision, "recall": recall, "f1": 2.0 * precision * recall / (precision + recall)}
    ends = {name: result[name].interval(0.9) for name in METRICS}
    return [ends[name][0] <= truth[name] <= ends[name][1] for name in METRICS], result


@pytest.mark.filterwarnings("ignore::darkmetrics.exceptions.AssumptionWarning")
@pytest.mark.parametrize("reviewed", [None, "by_score"])
def test_rows_reviewed_by_score_and_confirmed_late_are_covered(reviewed: str | None) -> None:
    covered = [is_covered(simulate(seed, low=0.25, high=0.95), reviewed)[0] for seed in range(8)]
    assert np.mean(covered) >= 0.7


@pytest.mark.filterwarnings("ignore::darkmetrics.exceptions.AssumptionWarning")
def test_everybody_reviewed_is_not_covered_if_some_never_are() -> None:
    """The negative control of the test above."""
    covered = [is_covered(simulate(seed, low=0.25, high=0.95), "all")[0] for seed in range(4)]
    assert np.mean(covered) < 0.5


@pytest.mark.parametrize("reviewed", [None, "all"])
def test_everybody_reviewed_is_covered(reviewed: str | None) -> None:
    covered = [is_covered(simulate(seed), reviewed)[0] for seed in range(8)]
    assert np.mean(covered) >= 0.7


@pytest.mark.filterwarnings("ignore::darkmetrics.exceptions.AssumptionWarning")
def test_description_tells_who_is_reviewed() -> None:
    by_score = is_covered(simulate(1, low=0.25, high=0.95), None)[1].assumption
    assert "Not stated who is reviewed: all rows (0%) or chosen by score (100%)." in by_score
    assert "have no label, so the score decides who is reviewed, or how long it takes." in by_score
    stated = is_covered(simulate(1, low=0.25, high=0.95), "by_score")[1].assumption
    assert "Rows are reviewed by score; rows that are not reviewed never get a label." in stated
    everybody = is_covered(simulate(1), "all")[1].assumption
    assert "reviewed" not in everybody


def test_weights_of_both_statements_add_up_to_one() -> None:
    fitted = Delayed().fit(data_of(simulate(2)))
    assert sum(fitted.reviewed.values()) == pytest.approx(1.0)
    assert Delayed(reviewed="all").fit(data_of(simulate(2))).reviewed == {"all": 1.0, "by_score": 0.0}


def test_unknown_statement_of_who_is_reviewed_is_refused() -> None:
    with pytest.raises(InputError, match=r"^reviewed: .*'by_scores'.* Did you mean 'by_score'\?"):
        Delayed(reviewed="by_scores")


def test_delay_with_fractions_arrives_at_the_next_whole_age() -> None:
    data = dm.EvaluationSet(
        [1, 0, None], [0.9, 0.2, 0.5], missingness=dm.missing.Delayed(age=[4.0, 5.0, 3.0], delay=[3.2, 1.0, None])
    )
    whole = dm.EvaluationSet(
        [1, 0, None], [0.9, 0.2, 0.5], missingness=dm.missing.Delayed(age=[4.0, 5.0, 3.0], delay=[4.0, 1.0, None])
    )
    np.testing.assert_array_equal(data.cells.age, whole.cells.age)


@pytest.mark.parametrize("reviewed", [None, "all", "by_score"])
def test_rows_of_one_score_and_one_age_are_evaluated(reviewed: str | None) -> None:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(60) < 0.3, np.nan, rng.random(60) < 0.4)
    data = dm.EvaluationSet(
        labels, np.full(60, 0.4), threshold=0.5, missingness=dm.missing.Delayed(age=np.full(60, 7.0))
    )
    posterior = Delayed(reviewed=reviewed).posterior(data)
    assert posterior.weight.sum() == pytest.approx(1.0)
    assert np.all((posterior.probability > 0.0) & (posterior.probability < 1.0))
