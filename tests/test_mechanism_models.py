"""The model of every mechanism: derivatives against finite differences, posterior draws against Metropolis."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import missing
from darkmetrics.missingness import sampling
from darkmetrics.missingness.delay_fit import FittedSetting, compute_label_probability
from darkmetrics.posterior import FittedModel, fit_model
from darkmetrics.posterior.likelihood import Likelihood
from posterior_models import sample_posterior_by_metropolis
from row_values import build_set
from test_delayed import draw_by_mcmc

METRICS = ["recall"]
SLOW = pytest.mark.guarantees


def simulate(seed, n=1500):
    """Return a generator, labels, and the log odds of scores."""
    rng = np.random.default_rng([seed, 77])
    y = (rng.random(n) < 0.25).astype(float)
    return rng, y, 1.3 * rng.normal(np.where(y == 1, 1.2, -0.4)) - 1.0


def hide(rng, y, missing_rate):
    return np.where(rng.random(y.size) < missing_rate, np.nan, y)


def evaluate_mechanism(mechanism, seed, n=1500):
    """Evaluate simulated rows under a mechanism."""
    rng, y, z = simulate(seed, n)
    score, strata = expit(z), rng.integers(4, size=n)
    rows, reference = slice(n // 3, None), (y[: n // 3], score[: n // 3])
    by_score, by_label = expit(-1.2 - 0.4 * z + 0.3 * strata), np.where(y == 1, 0.4, 0.15) + 0.1 * strata
    if mechanism in ("by_score", "by_label"):
        labels = hide(rng, y, by_score if mechanism == "by_score" else by_label)
        return dm.evaluate(labels, score, missingness=mechanism, metrics=METRICS)
    if mechanism in ("by_score, strata", "by_label, strata"):
        name = mechanism.split(",")[0]
        labels = hide(rng, y, by_score if name == "by_score" else by_label)
        model = (missing.ByScore if name == "by_score" else missing.ByLabel)(strata=strata)
        return dm.evaluate(labels, score, missingness=model, metrics=METRICS)
    if mechanism in ("by_label, reference", "by_score_and_label, reference"):
        name, rate = mechanism.split(",")[0], by_label if "by_label," in mechanism else expit(1.5 * y - 1.5 - 0.5 * z)
        labels = hide(rng, y, rate)[rows]
        kind = missing.ByLabel if name == "by_label" else missing.ByScoreAndLabel
        return dm.evaluate(
            labels, score[rows], missingness=kind(reference=dm.missing.Reference(*reference)), metrics=METRICS
        )
    if mechanism == "propensity":
        propensity = np.where(z < -1.4, 1.0, rng.choice([0.1, 0.3, 0.6], n))
        return dm.evaluate(
            hide(rng, y, 1.0 - propensity), score, missingness=dm.missing.Propensity(propensity), metrics=METRICS
        )
    assert mechanism == "covariates"
    x = y + rng.normal(size=n)
    covariates = missing.Covariates(LogisticRegression(), x[:, None])
    return dm.evaluate(hide(rng, y, expit(x - 0.5)), score, missingness=covariates, metrics=METRICS)


MECHANISMS = [
    "by_score",
    "by_label",
    "by_score, strata",
    "by_label, strata",
    "by_label, reference",
    "by_score_and_label, reference",
    "propensity",
    "covariates",
]


def record_fit(mechanism, seed, monkeypatch, **settings):
    """Return the arguments of `sample_posterior` and its result."""
    calls = []

    def record(model, n_draws, *, likelihood_power):
        calls.append((model, likelihood_power, fit_model(model, n_draws, likelihood_power=likelihood_power)))
        return calls[-1][2]

    monkeypatch.setattr(sampling, "fit_model", record)
    evaluate_mechanism(mechanism, seed, **settings)
    return calls[-1]


def check_derivatives(likelihood, theta, step=1e-5):
    expansion, moves = likelihood.expand(theta), step * np.eye(theta.size)
    value = likelihood.log_posterior(theta[:, None] + np.hstack([moves, -moves]))
    gradient = (value[: theta.size] - value[theta.size :]) / (2.0 * step)
    ends = likelihood.expand_points(theta[:, None] + np.hstack([moves, -moves])).gradient
    hessian = (ends[: theta.size] - ends[theta.size :]) / (2.0 * step)
    scale = np.sqrt(np.diag(expansion.precision).clip(1.0))
    np.testing.assert_allclose(expansion.gradient / scale, gradient / scale, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        expansion.precision / np.outer(scale, scale), -hessian / np.outer(scale, scale), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_derivatives_match_finite_differences(mechanism, monkeypatch):
    model, power, fitted = record_fit(mechanism, 0, monkeypatch)
    theta = fitted.mode + 0.3 * np.random.default_rng(1).normal(size=fitted.mode.size)
    check_derivatives(Likelihood(model, power), theta)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW)])
@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS[2:] if "and_label" not in m])
def test_draws_have_mean_and_sd_of_a_metropolis_run(mechanism, seed, monkeypatch):
    model, power, fitted = record_fit(mechanism, seed, monkeypatch)
    draws = sample_posterior_by_metropolis(model, power=power, n_steps=4000, seed=seed)
    run = FittedModel(model, draws, np.full(len(draws), 1.0 / len(draws)), 0.0, 0.0, 0.0, True, fitted.mode, None)
    missing = model.cells[2]
    in_bins = missing.select(np.flatnonzero(missing.count > 0.0)) if missing.count.any() else missing

    def summarize(fit):
        values = fit.label_probability(in_bins)
        values = np.column_stack([values.sum(axis=1), fit.theta[:, :4]])
        mean = fit.weight @ values
        return mean, np.sqrt(fit.weight @ (values - mean) ** 2)

    (mean, sd), (expected_mean, expected_sd) = summarize(fitted), summarize(run)
    np.testing.assert_array_less(np.abs(mean - expected_mean), 0.1 * expected_sd)
    np.testing.assert_allclose(sd, expected_sd, rtol=0.07)


# delays


def simulate_delays(kind, seed, n=2000):
    """Return a set of rows with ages: labels arrive once they are reviewed and their delay has passed."""
    rng = np.random.default_rng([seed, 5])
    score = rng.beta(0.6, 1.8, n)
    y = (rng.random(n) < score).astype(float)
    age = rng.integers(5, 60, n).astype(float)
    delay = np.floor(rng.exponential(np.where(y == 1, 12.0, 4.0))) + 1.0
    if "batches" in kind:
        delay = np.where(y == 0, 30.0, delay)
    propensity, columns = rng.choice([0.3, 0.6, 0.9], n), {}
    rate = np.where(score >= 0.5, 0.9, 0.4) if "review" in kind else np.ones(n)
    if "propensity" in kind:
        columns["propensity"] = rate = propensity
    if "maturity" in kind:
        columns["maturity"], delay = 30, np.minimum(delay, 30.0)
    is_known = (rng.random(n) < rate) & (delay <= age)
    if "maturity" in kind:
        is_known &= y == 1
    if "times" in kind:
        columns["delay"] = np.where(is_known, delay, np.nan)
    return build_set(np.where(is_known, y, np.nan), score, threshold=0.5, age=age, **columns)


def fit_delays(kind, seed):
    reviewed = "by_score" if "review" in kind else "propensity" if "propensity" in kind else "all"
    return missing.Delayed(reviewed=reviewed).fit(simulate_delays(kind, seed)).best


DELAYS = ["ages", "times", "ages, batches", "times, batches", "ages, maturity", "times, maturity"]
DELAYS += ["ages, review", "times, review", "ages, propensity", "times, propensity"]


@pytest.mark.parametrize("kind", DELAYS)
def test_derivatives_of_delays_match_finite_differences(kind):
    fit = fit_delays(kind, 0)
    theta = fit.mode.theta + 0.1 * np.random.default_rng(1).normal(size=fit.mode.theta.size)
    check_derivatives(fit.likelihood, theta)
    assert fit.data.days or "batches" not in kind


def summarize_delays(fit: FittedSetting, draws, weight):
    table, _ = fit.data.table.with_missing()
    sides = np.stack([table.decided, table.missing - table.decided], axis=1)
    values = compute_label_probability(fit.data.grid, draws, table) @ sides
    mean = weight @ values
    return mean, np.sqrt(weight @ (values - mean) ** 2)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("times", 0),
        ("times, maturity", 0),
        *(pytest.param(kind, seed, marks=SLOW) for kind in ("times", "times, maturity") for seed in (1, 2)),
    ],
)
def test_draws_of_delays_have_mean_and_sd_of_a_metropolis_run(kind, seed):
    fit = fit_delays(kind, seed)
    chain = fit.to_draws(draw_by_mcmc(fit, fit.likelihood, n_steps=2400))
    expected_mean, expected_sd = summarize_delays(fit, chain, np.full(len(chain.curve), 1.0 / len(chain.curve)))
    mean, sd = summarize_delays(fit, *fit.draw(1024))
    np.testing.assert_array_less(np.abs(mean - expected_mean), 0.1 * expected_sd)
    np.testing.assert_allclose(sd, expected_sd, rtol=0.07)
