"""The engine against oracles: plain sums over histories, finite differences, numerical integrals and Metropolis."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp

from darkmetrics.posterior import Model, fit_model
from darkmetrics.posterior.fit import estimate_pareto_k
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.nuisance import NuisanceIntegral
from posterior_models import (
    SHAPES,
    build_by_label,
    build_by_score_and_label,
    build_several_histories,
    log_posterior_by_rows,
    sample_posterior_by_metropolis,
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("power", [1.0, 0.6])
def test_log_posterior_equals_sum_over_histories(shape, power):
    rng = np.random.default_rng(1)
    model = SHAPES[shape](rng)
    theta = rng.normal(size=(model.n_parameters, 4))
    expected = [log_posterior_by_rows(model, column, power) for column in theta.T]
    likelihood = Likelihood(model, power)
    np.testing.assert_allclose(likelihood.log_posterior(theta), expected, rtol=1e-12)
    assert likelihood.expand(theta[:, 0]).value == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_expand_matches_finite_differences(shape, seed):
    rng = np.random.default_rng(seed)
    model = SHAPES[shape](rng)
    likelihood, theta, step = Likelihood(model, 0.8), rng.normal(size=model.n_parameters), 1e-5
    moves = step * np.eye(theta.size)
    value = likelihood.log_posterior(theta[:, None] + np.hstack([moves, -moves]))
    gradient = (value[: theta.size] - value[theta.size :]) / (2.0 * step)
    hessian = [likelihood.expand(theta + m).gradient - likelihood.expand(theta - m).gradient for m in moves]
    expansion = likelihood.expand(theta)
    np.testing.assert_allclose(expansion.gradient, gradient, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(expansion.precision, -np.array(hessian) / (2.0 * step), rtol=1e-6, atol=1e-6)


def test_log_posterior_of_extreme_parameters_is_finite():
    model = build_by_label(np.random.default_rng(0), cauchy=False)
    theta = np.array([[0.0, 900.0, -900.0], [2000.0, -2000.0, 0.0], [800.0, 0.0, 0.0], [0.0, 1500.0, -1500.0]])
    expected = [log_posterior_by_rows(model, column) for column in theta.T]
    np.testing.assert_allclose(Likelihood(model).log_posterior(theta), expected, rtol=1e-12)


def test_by_label_likelihood_equals_sum_over_labels():
    """A missing row contributes p a_1 + (1 - p) a_0, a labeled row p_y (1 - a_y)."""
    rng = np.random.default_rng(3)
    model = build_by_label(rng, cauchy=False)
    theta = np.array([0.3, 1.2, -0.4, 0.9])
    negatives, positives, missing = (cells.count for cells in model.cells)
    p = expit(theta[0] + theta[1] * np.linspace(-1.5, 1.5, 5))
    missing_rate = expit(theta[2] + theta[3] * np.array([-0.5, 0.5]))
    expected = positives @ np.log(p * (1.0 - missing_rate[1]))
    expected += negatives @ np.log((1.0 - p) * (1.0 - missing_rate[0]))
    expected += missing @ np.log(p * missing_rate[1] + (1.0 - p) * missing_rate[0])
    expected += np.sum(stats.norm.logpdf(theta, [0.0, 1.0, 0.0, 0.5], [1.5, 1.0, 2.0, 2.0]))
    assert Likelihood(model).log_posterior(theta[:, None])[0] == pytest.approx(expected, rel=1e-13)


# the mean, sd, evidence


def integrate_on_grid(model, *axes):
    """Return points, weights and the log integral of the posterior of one or two parameters."""
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    log_density = Likelihood(model).log_posterior(points)
    widths = np.prod([axis[1] - axis[0] for axis in axes])
    weight = np.exp(log_density - log_density.max())
    return points, weight / weight.sum(), float(logsumexp(log_density) + np.log(widths))


def build_binomial(positives, negatives, *, cauchy=False, sd=1.5):
    model = Model()
    label = model.add_decisions((model.add_parameters(0.0, sd, cauchy=cauchy), np.ones((1, 1))))
    model.add_cells(float(negatives), [(0, [label[:, 0]])])
    model.add_cells(float(positives), [(1, [label[:, 1]])])
    return model


def build_product_of_rates(positives, negatives, sd=2.0):
    """An event occurs if two decisions come out 1; the data identify the product of their probabilities alone."""
    model = Model()
    decision = model.add_decisions((model.add_parameters(np.zeros(2), sd), np.eye(2)))
    model.add_cells(float(positives), [(1, [decision[0, 1], decision[1, 1]])])
    histories = [(0, [decision[0, i], decision[1, j]]) for i, j in ((0, 0), (0, 1), (1, 0))]
    model.add_cells(float(negatives), histories)
    return model


@pytest.mark.parametrize(("positives", "negatives"), [(3, 5), (0, 4), (12, 0), (200, 900)])
@pytest.mark.parametrize("cauchy", [False, True])
def test_evidence_equals_numerical_integral_in_one_dimension(positives, negatives, cauchy):
    model = build_binomial(positives, negatives, cauchy=cauchy)
    likelihood = Likelihood(model)
    peak = likelihood.log_posterior(np.linspace(-20, 20, 4001)[None]).max()
    density = lambda x: float(np.exp(likelihood.log_posterior(np.array([[x]]))[0] - peak))  # noqa: E731
    exact = peak + np.log(
        sum(integrate.quad(density, *ends)[0] for ends in ((-400, -20), (-20, 0), (0, 20), (20, 400)))
    )
    assert fit_model(model).log_evidence == pytest.approx(exact, abs=0.03)


def test_fit_follows_a_bent_posterior_with_a_grid():
    model = build_product_of_rates(300, 700)
    points, weight, log_evidence = integrate_on_grid(model, np.linspace(-4, 12, 801), np.linspace(-4, 12, 801))
    mean = points @ weight
    sd = np.sqrt((points - mean[:, None]) ** 2 @ weight)
    fitted = fit_model(model)
    assert fitted.grid_parameter is not None
    assert fitted.is_weighted
    drawn_mean = fitted.weight @ fitted.theta
    drawn_sd = np.sqrt(fitted.weight @ (fitted.theta - drawn_mean) ** 2)
    np.testing.assert_allclose(drawn_mean, mean, atol=0.1 * sd.min())
    np.testing.assert_allclose(drawn_sd, sd, rtol=0.07)
    assert fitted.log_evidence == pytest.approx(log_evidence, abs=0.05)


def test_fit_uses_no_grid_for_a_gaussian_posterior():
    assert fit_model(build_binomial(200, 900)).grid_parameter is None


def build_skewed_rates():
    """Sixty rates, of which few rows show one, have skewed posteriors: too many for importance weights."""
    model = Model()
    label = model.add_decisions((model.add_parameters(np.zeros(60), 6.0), np.eye(60)))
    model.add_cells(20.0, [(0, [label[:, 0]])])
    return model, integrate_on_grid(build_binomial(0, 20, sd=6.0), np.linspace(-60, 30, 20001))


def test_fit_truncates_weights_that_fail():
    model, (points, weight, log_evidence) = build_skewed_rates()
    fitted = fit_model(model)
    assert not fitted.is_weighted
    assert fitted.pareto_k > 0.7
    np.testing.assert_allclose(np.sort(fitted.weight)[-16:], fitted.weight.max())
    mean = points[0] @ weight
    sd = np.sqrt((points[0] - mean) ** 2 @ weight)
    np.testing.assert_array_less(np.abs(np.mean(fitted.weight @ fitted.theta) - mean), 0.1 * sd)
    # The evidence is that of Laplace's approximation, rate by rate.
    assert fitted.log_evidence == pytest.approx(60 * log_evidence, abs=60 * 0.15)


def test_estimate_pareto_k_recovers_the_tail_shape():
    u = (np.arange(20_000) + 0.5) / 20_000
    for k in (0.2, 0.5, 0.9):
        assert estimate_pareto_k(u**-k) == pytest.approx(k, abs=0.1)


# nuisance parameters


def test_nuisance_integral_equals_numerical_integral():
    model = build_by_score_and_label(np.random.default_rng(4))
    likelihood = Likelihood(model)
    theta = np.zeros((model.n_parameters, 2))
    theta[likelihood.main] = np.random.default_rng(5).normal(scale=0.5, size=(likelihood.main.size, 2))
    marginal = NuisanceIntegral(likelihood).integrate(theta).log_posterior
    axis = np.linspace(-6, 6, 121)
    points = np.stack([a.ravel() for a in np.meshgrid(axis, axis, axis, indexing="ij")])
    for column, value in zip(theta.T, marginal, strict=True):
        grid = np.repeat(column[:, None], points.shape[1], axis=1)
        grid[likelihood.nuisance] = points
        exact = logsumexp(likelihood.log_posterior(grid)) + 3 * np.log(axis[1] - axis[0])
        assert value == pytest.approx(exact, abs=0.1)  # Laplace's approximation of three rates


@pytest.mark.parametrize("seed", range(3))
def test_nuisance_parameters_have_the_posterior_of_main_ones(seed):
    main, nuisance = (build_by_score_and_label(np.random.default_rng(seed), nuisance=n) for n in (False, True))
    draws = sample_posterior_by_metropolis(main, n_steps=3000)
    fitted = fit_model(nuisance, 1024)
    mean, sd = draws.mean(axis=0), draws.std(axis=0)
    drawn_mean = fitted.weight @ fitted.theta
    drawn_sd = np.sqrt(fitted.weight @ (fitted.theta - drawn_mean) ** 2)
    np.testing.assert_array_less(np.abs(drawn_mean - mean), 0.15 * sd)
    np.testing.assert_allclose(drawn_sd, sd, rtol=0.12)


def test_nuisance_parameters_without_a_row_of_several_histories_are_integrated_out():
    """Two groups of labeled rows; one rate has no row at all and keeps its prior."""
    model = Model()
    label = model.add_decisions((model.add_parameters(np.zeros(3), 2.0, nuisance=True), np.eye(3)))
    for y, count in ((0, [40.0, 10.0, 0.0]), (1, [20.0, 30.0, 0.0])):
        model.add_cells(np.array(count), [(y, [label[:, y]])])
    model.add_parameters(0.0, 1.0)
    fitted = fit_model(model, 1024)
    exact = sum(
        integrate_on_grid(build_binomial(*c, sd=2.0), np.linspace(-9, 9, 2001))[2] for c in ((20, 40), (30, 10))
    )
    assert fitted.log_evidence == pytest.approx(exact, abs=0.02)
    assert fitted.theta[:, 2].std() == pytest.approx(2.0, rel=0.1)


def test_nuisance_parameters_that_share_a_cell_are_integrated_out_together():
    """Review and sampling rates of the same bins: two nuisance parameters in each decision and cell."""

    def build(nuisance):
        rng, model, n = np.random.default_rng(0), Model(), 3
        label = model.add_decisions((model.add_parameters([0.0, 1.0], 1.0), np.array([[1.0, -1], [1, 0], [1, 1]])))
        rate = model.add_parameters(np.zeros(n), 1.5, nuisance=nuisance), np.eye(n)
        effect = model.add_parameters(np.zeros(n), 0.7, nuisance=nuisance)
        is_missing = [model.add_decisions(rate, (effect, (y - 0.5) * np.eye(n))) for y in (0, 1)]
        for y in (0, 1):
            model.add_cells(rng.integers(20, 60, n), [(y, [label[:, y], is_missing[y][:, 0]])])
        model.add_cells(rng.integers(20, 60, n), [(y, [label[:, y], is_missing[y][:, 1]]) for y in (0, 1)])
        return model

    main, nuisance = fit_model(build(False), 8192), fit_model(build(True), 2048)
    assert nuisance.log_evidence == pytest.approx(main.log_evidence, abs=0.1)
    mean = main.weight @ main.theta
    sd = np.sqrt(main.weight @ (main.theta - mean) ** 2)
    # Nuisance parameters are drawn from a Gaussian around their conditional mode, which is not their mean.
    np.testing.assert_array_less(
        np.abs(nuisance.weight @ nuisance.theta - mean), np.where(np.arange(8) < 2, 0.1, 0.3) * sd
    )


# predictions


@pytest.mark.parametrize("shape", ["by label", "three classes", "several histories"])
def test_label_probability_equals_sum_over_histories(shape):
    model = SHAPES[shape](np.random.default_rng(2))
    fitted, cells = fit_model(model, 16), model.cells[-1]
    labels = sorted(set(cells.labels))
    probability = np.stack([fitted.label_probability(cells, label) for label in labels])
    np.testing.assert_allclose(probability.sum(axis=0), 1.0)
    for draw in (0, 7):
        for cell in range(cells.count.size):
            weight = np.zeros(len(labels))
            for h, label in enumerate(cells.labels):
                alone = Model()
                alone.means, alone.precisions, alone.is_cauchy = model.means, model.precisions, model.is_cauchy
                alone.decisions, alone.n_outcomes = model.decisions, model.n_outcomes
                alone.add_cells(1.0, [(label, [int(o) for o in cells.outcomes[:, h, cell]])])
                weight[labels.index(label)] += np.exp(log_posterior_by_rows(alone, fitted.theta[draw]))
            np.testing.assert_allclose(probability[:, draw, cell], weight / weight.sum(), rtol=1e-9)
    third = fitted.label_probability(cells, labels[1], draws=np.array([3]))
    np.testing.assert_allclose(third, probability[1, [3]])


def test_label_probability_of_a_known_label_is_certain():
    model = SHAPES["binary"](np.random.default_rng(0))
    fitted = fit_model(model, 16)
    assert np.all(fitted.label_probability(model.cells[1]) == 1.0)
    assert np.all(fitted.label_probability(model.cells[0]) == 0.0)


def test_cells_for_prediction_do_not_change_the_fit():
    model = build_several_histories(np.random.default_rng(0))
    before = fit_model(model)
    label = model.add_decisions((np.array([0, 1]), np.ones((7, 2))))
    model.add_cells(0.0, [(y, [label[:, y]]) for y in (0, 1)])
    after = fit_model(model)
    np.testing.assert_array_equal(before.theta, after.theta)
    assert before.log_evidence == after.log_evidence
