"""Posteriors of the mechanisms against Metropolis, scipy's optimizers and unbinned rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, logit

from darkmetrics import EvaluationSet
from darkmetrics.missingness import rows as rows_module
from darkmetrics.missingness.by_label import add_by_label
from darkmetrics.missingness.by_score import add_by_score
from darkmetrics.missingness.by_score_and_label import add_by_score_and_label
from darkmetrics.missingness.curve import add_curve, add_reference
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.posterior import FittedModel, Model, fit_model
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.mode import find_mode
from posterior_models import sample_posterior_by_metropolis

MECHANISMS = ["by score", "by label", "by score and label"]


def simulate(mechanism, seed, n=500, gap=1.6):
    """Return labels (NaN if missing), scores, and reference rows."""
    rng = np.random.default_rng([seed, MECHANISMS.index(mechanism)])

    def draw(size):
        y = (rng.random(size) < 0.25).astype(float)
        z = rng.normal(np.where(y == 1, 0.75 * gap, -0.25 * gap))
        return y, expit(1.3 * z - 1.0), z

    y, s, z = draw(n)
    missing_rate = {
        "by score": expit(-0.6 - 1.2 * z),
        "by label": np.where(y == 1, 0.5, 0.2),
        "by score and label": expit(np.where(y == 1, 0.3, -1.0) - 0.6 * z),
    }[mechanism]
    reference = draw(400)[:2] if mechanism == "by score and label" else None
    return np.where(rng.random(n) < missing_rate, np.nan, y), s, reference


def build(mechanism, y, s, reference):
    """Return the model, the cells of missing rows, and the rows of the model."""
    fit_data = FitData.of(EvaluationSet(y, s, threshold=0.5), reference)
    calibrator = fit_data.logistic_calibrator("flexible")
    rows, model = fit_data.rows(calibrator), Model()
    label = add_curve(model, calibrator, rows)
    declare: Any = (add_by_score, add_by_label, add_by_score_and_label)[MECHANISMS.index(mechanism)]
    missing, _ = declare(model, label, rows)
    add_reference(model, calibrator, fit_data.reference)
    return model, missing, rows


def summarize(fitted, missing, rows):
    """Return mean and sd of the curve's coefficients and of the numbers of missing positives on either side."""
    p, count = fitted.label_probability(missing.select(slice(0, rows.n_bins))), rows.missing[: rows.n_bins]
    values = np.column_stack([fitted.theta[:, : rows.columns.shape[1]], p @ rows.decided, p @ (count - rows.decided)])
    mean = fitted.weight @ values
    return mean, np.sqrt(fitted.weight @ (values - mean) ** 2)


def run_metropolis(mechanism, model, seed):
    """Return the draws of a run as a fit."""
    n_steps = {"by score": 4000, "by label": 6000, "by score and label": 12000}[mechanism]
    theta = sample_posterior_by_metropolis(model, n_steps=n_steps, seed=seed)
    return FittedModel(
        model, theta, np.full(len(theta), 1.0 / len(theta)), np.nan, np.nan, np.nan, True, theta[0], None
    )


def assert_posterior_is_that_of(run, fitted, missing, rows):
    (mean, sd), (expected_mean, expected_sd) = (summarize(f, missing, rows) for f in (fitted, run))
    # The error of the run itself is about 0.01 standard deviations of a mean, and 1% of a standard deviation.
    np.testing.assert_array_less(np.abs(mean - expected_mean), 0.1 * expected_sd)
    np.testing.assert_allclose(sd, expected_sd, rtol=0.07)
    assert np.mean(np.abs(mean - expected_mean) / expected_sd) < 0.06
    assert np.mean(np.abs(sd / expected_sd - 1.0)) < 0.04


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.guarantees) for seed in range(1, 10))])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_posterior_has_mean_and_sd_of_a_metropolis_run(mechanism, seed):
    model, missing, rows = build(mechanism, *simulate(mechanism, seed))
    fitted = fit_model(model)
    assert_posterior_is_that_of(run_metropolis(mechanism, model, seed), fitted, missing, rows)
    # Proposals are centered where the density is, with missing rates integrated out.
    assert fitted.effective_size > 0.7 * len(fitted.theta)


def test_metropolis_run_detects_a_wrong_posterior():
    """The negative control: a discounted likelihood, and draws without their weights."""
    model, missing, rows = build("by label", *simulate("by label", 0))
    run, fitted = run_metropolis("by label", model, 0), fit_model(model)
    unweighted = replace(fitted, weight=np.full(len(fitted.theta), 1.0 / len(fitted.theta)))
    for wrong in (fit_model(model, likelihood_power=0.8), unweighted):
        with pytest.raises(AssertionError):
            assert_posterior_is_that_of(run, wrong, missing, rows)


KINDS = ["usual", "positives only", "negatives only", "separable", "constant", "few"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", KINDS)
def test_mode_is_as_high_as_any_that_scipy_finds(kind, mechanism):
    if (kind, mechanism) == ("separable", "by score and label"):
        pytest.skip("labels that contradict the reference rows leave two modes")
    rng = np.random.default_rng(KINDS.index(kind))
    n = 12 if kind == "few" else 120
    s = np.full(n, 0.3) if kind == "constant" else np.clip(rng.beta(1.0, 2.0, n), 0.01, 0.99)
    y = s > 0.4 if kind == "separable" else rng.random(n) < s
    missing = rng.random(n) < np.where(y, 0.6, 0.3)
    missing |= {"positives only": ~y, "negatives only": y}.get(kind, False)
    reference = np.clip(rng.beta(1.0, 2.0, 100), 0.01, 0.99)
    known = ((rng.random(100) < reference).astype(float), reference) if mechanism == "by score and label" else None
    model, _, _ = build(mechanism, np.where(missing, np.nan, y), s, known)
    likelihood = Likelihood(model)
    mode = find_mode(likelihood.expand, likelihood.prior.mean)

    def loss(theta):
        expansion = likelihood.expand(theta)
        return -expansion.value, -expansion.gradient

    starts = [likelihood.prior.mean]
    if mechanism != "by score and label":  # a Cauchy prior may leave several modes
        starts += list(likelihood.prior.mean + rng.normal(size=(2, mode.theta.size)))
    best = min(float(optimize.minimize(loss, start, jac=True, method="BFGS").fun) for start in starts)
    assert -mode.value <= best + 1e-6
    assert np.linalg.eigvalsh(mode.precision).min() > 0.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("spread", [0.5, 1.5, 4.0])
def test_bins_have_the_posterior_of_unbinned_rows(mechanism, spread, monkeypatch):
    y, s, reference = simulate(mechanism, 0, 900)
    s = expit(spread * logit(s))
    reference = None if reference is None else (reference[0], expit(spread * logit(reference[1])))
    binned = build(mechanism, y, s, reference)
    monkeypatch.setattr(rows_module, "_PARTS", 10**6)
    unbinned = build(mechanism, y, s, reference)
    assert binned[2].n_bins <= 128 < unbinned[2].n_bins
    (mean, sd), (expected_mean, expected_sd) = (summarize(fit_model(m, 2048), *more) for m, *more in (binned, unbinned))
    # With free rates, rows at the edges of rank bins change their bin.
    tolerance = 0.25 if mechanism == "by score and label" else 0.1
    np.testing.assert_array_less(np.abs(mean - expected_mean), tolerance * expected_sd)
    np.testing.assert_allclose(sd, expected_sd, rtol=tolerance)


def test_bins_do_not_extend_across_the_threshold():
    y, s, _ = simulate("by score", 0, 3000)
    _, _, rows = build("by score", y, s, None)
    assert set(rows.is_above.tolist()) == {0.0, 1.0}
    assert rows.positives.sum() + rows.negatives.sum() + rows.missing.sum() == 3000
    np.testing.assert_allclose(rows.decided[rows.is_above[: rows.n_bins] == 0.0], 0.0)
