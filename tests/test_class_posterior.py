"""The posterior of several classes against formulas written row by row, finite differences, and a long random walk."""

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.data.class_set import ClassSet, group_class_rows
from darkmetrics.missingness.class_tables import build_by_age, build_by_label, build_by_score_and_label
from darkmetrics.missingness.classes import ClassFitData, by_score, mixture_p_value
from darkmetrics.posterior import class_curve
from darkmetrics.posterior.class_curve import ClassCurve, CurvePosterior
from darkmetrics.posterior.class_fit import ClassLikelihood, fit_classes
from posterior_models import sample_by_random_walk


def random_set(n=60, n_classes=4, seed=0, missing=0.4, **columns):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.full(n_classes, 0.7), n)
    label = (score.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    label[rng.random(n) < missing] = -1
    return ClassSet(range(n_classes), group_class_rows(score, score.argmax(axis=1), label, **columns))


def with_ages(n=60, n_classes=4, *, timed):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(n_classes, 0.7), n)
    age = rng.integers(0, 40, n).astype(float)
    delay = rng.exponential(10.0, n)
    y = np.where(delay > age, np.nan, rng.integers(0, n_classes, n))
    delayed = dm.missing.Delayed(age=age, delay=np.where(np.isnan(y), np.nan, delay) if timed else None)
    return dm.evaluate(y, p, labels=range(n_classes), missingness=delayed, metrics="accuracy").data


def compute_eta(curve, line, decision, theta):
    """Return the log weights of one row, as the docstring of `class_curve` has them."""
    top = line[decision]
    rank = (np.sum(curve.levels < top) + np.sum(curve.levels <= top)) / curve.levels.size - 1.0
    eta = []
    for k, value in enumerate(line):
        d = float(k == decision)
        hinges = [max(value - knot, 0.0) for knot in curve.knots[k]]
        x = np.array([1.0, value - curve.center[k], *hinges, d, d * rank])
        eta.append(value + x @ theta[curve.group[k]])
    return np.array(eta)


def compute_log_likelihood(likelihood, theta):
    curve, rows, table = likelihood.curve, likelihood.rows, likelihood.table
    of_curve, psi = theta[: likelihood.n_curve].reshape(curve.shape), theta[likelihood.n_curve :]
    total, arrives = 0.0, np.zeros(0)
    if table is not None:
        arrives = 1.0 / (1.0 + np.exp(-(table.columns @ psi + table.offset)))
    for i in range(len(rows.line)):
        eta = compute_eta(curve, rows.line[i], rows.decision[i], of_curve)
        q = np.exp(eta) / np.exp(eta).sum()
        total += rows.labeled[i] @ np.log(q)
        if table is not None:
            m = np.prod((1.0 - arrives) ** table.steps[:, rows.bins[i]], axis=1)
            total += rows.missing[i] * np.log(q @ m)
    if table is not None:
        total += table.arrived @ np.log(arrives) + table.waited @ np.log(1.0 - arrives)
    return likelihood.power * total


CASES = ["by score", "by label", "both", "ages", "delays", "shared"]


def likelihood_of(case, monkeypatch):
    if case == "shared":
        monkeypatch.setattr(class_curve, "MAX_GROUPS", 3)
        data = random_set(n_classes=6)
    else:
        data = with_ages(timed=case == "delays") if case in ("ages", "delays") else random_set()
    fit_data = ClassFitData(data)
    if case == "by score":
        return fit_data.likelihood(None)
    build = {"both": build_by_score_and_label, "ages": build_by_age, "delays": build_by_age}.get(case, build_by_label)
    return fit_data.likelihood(*build(data, fit_data.curve))


@pytest.mark.parametrize("case", CASES)
def test_log_posterior_is_the_formula_of_each_row(case, monkeypatch):
    likelihood = likelihood_of(case, monkeypatch)
    theta = 0.4 * np.random.default_rng(1).normal(size=(likelihood.prior.mean.size, 3))
    found = likelihood.log_posterior(theta) - likelihood.prior.log_density(theta)
    expected = [compute_log_likelihood(likelihood, point) for point in theta.T]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_finite_differences(case, monkeypatch):
    likelihood, step = likelihood_of(case, monkeypatch), 1e-5
    theta = 0.3 * np.random.default_rng(2).normal(size=likelihood.prior.mean.size)
    value, gradient, precision = likelihood.expand(theta)
    assert value == pytest.approx(likelihood.log_posterior(theta[:, None])[0], rel=1e-12)
    moves = step * np.eye(theta.size)
    points = likelihood.log_posterior(np.concatenate([theta + moves, theta - moves]).T)
    np.testing.assert_allclose(gradient, (points[: theta.size] - points[theta.size :]) / (2 * step), atol=1e-6)
    for i in np.random.default_rng(4).choice(theta.size, 8, replace=False):
        slopes = likelihood.expand(theta + moves[i]).gradient - likelihood.expand(theta - moves[i]).gradient
        np.testing.assert_allclose(precision[i], -slopes / (2 * step), atol=1e-5)


def test_the_prior_is_that_the_scores_are_right():
    data = random_set()
    curve = ClassCurve.of(data)
    posterior = CurvePosterior(curve, data, np.zeros((1, *curve.shape)), np.ones(1))
    score = data.cells.score[data.missing_cells]
    np.testing.assert_allclose(posterior.of_draw(0), score, atol=1e-6)


def test_draws_follow_bayes_rule_in_each_row(monkeypatch):
    monkeypatch.setattr(class_curve, "MAX_GROUPS", 3)
    monkeypatch.setattr(class_curve, "_BATCH", 64)
    data = random_set(n_classes=5)
    curve, rng = ClassCurve.of(data), np.random.default_rng(0)
    theta, log_missing = rng.normal(size=(11, *curve.shape)), rng.normal(size=(11, 5, 2))
    bins = rng.integers(0, 2, data.missing_cells.size)
    posterior = CurvePosterior(curve, data, theta, np.full(11, 1 / 11), log_missing, bins)
    line, decision = curve.log_score(data.cells.score), data.cells.decision
    events = [decision[data.missing_cells][:, None] == np.arange(5), rng.random((bins.size, 5)) < 0.5]
    of_events = [event.probability for event in posterior.of_events(events)]
    for draw in (0, 7, 10, 3):
        for i, cell in enumerate(data.missing_cells):
            weight = np.exp(compute_eta(curve, line[cell], decision[cell], theta[draw]) + log_missing[draw, :, bins[i]])
            np.testing.assert_allclose(posterior.of_draw(draw)[i], weight / weight.sum(), atol=1e-12)
            for event, members in zip(of_events, events, strict=True):
                assert event[draw, i] == pytest.approx(weight[members[i]].sum() / weight.sum(), abs=1e-12)


def test_draws_have_the_moments_of_a_long_random_walk():
    data = random_set(n=300, n_classes=3, seed=5)
    likelihood = ClassFitData(data).likelihood(None)
    fit = fit_classes(likelihood, 64)
    walk = sample_by_random_walk(likelihood, n_chains=32, n_steps=1500)
    mean, sd = fit.weight @ fit.theta, np.sqrt(fit.weight @ (fit.theta - fit.weight @ fit.theta) ** 2)
    np.testing.assert_allclose(mean, walk.mean(axis=0), atol=0.2 * sd.max())
    np.testing.assert_allclose(sd, walk.std(axis=0), rtol=0.15)


def test_a_class_that_is_missing_more_often_is_learned_from_scores():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.3), 4000)
    y = (p.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    missing = rng.random(4000) < np.array([0.2, 0.8, 0.2])[y]
    labels = np.where(missing, np.nan, y)
    truth = np.mean(p.argmax(axis=1)[y == 1] == 1)
    by_label = dm.evaluate(labels, p, missingness="by_label", metrics=["recall[1]", "confusion[1,1]"])
    low, high = by_label["recall[1]"].interval(0.98)
    assert low < truth < high
    count = np.sum((y == 1) & (p.argmax(axis=1) == 1))
    by_rest = dm.evaluate(labels, p, missingness="by_score", metrics="confusion[1,1]")["confusion[1,1]"]
    assert by_label["confusion[1,1]"].interval(0.98)[0] < count < by_label["confusion[1,1]"].interval(0.98)[1]
    assert not by_rest.interval(0.98)[0] < count < by_rest.interval(0.98)[1]


def test_by_label_is_refuted_by_scores_that_no_mixture_of_classes_has():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(3, 0.5), 3000)
    y = (p.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    p_values = []
    for chance in (np.array([0.2, 0.7, 0.4])[y], np.where(p.max(axis=1) < 0.7, 0.9, 0.1)):
        code = np.where(rng.random(3000) < chance, -1, y)
        p_values.append(mixture_p_value(ClassSet(range(3), group_class_rows(p, p.argmax(axis=1), code))))
    assert p_values[0] > 0.01
    assert p_values[1] < 1e-6


def test_a_large_set_has_the_same_posterior_as_a_small_fit(monkeypatch):
    data = random_set(n=3000, n_classes=4, seed=8)
    fit_data = ClassFitData(data)
    small = fit_classes(fit_data.likelihood(None), 64)
    monkeypatch.setattr("darkmetrics.posterior.class_fit._MAX_NUMBERS", 1000)
    large = fit_classes(fit_data.likelihood(None), 256)
    sd = np.sqrt(small.weight @ (small.theta - small.weight @ small.theta) ** 2)
    assert np.abs(small.weight @ small.theta - large.weight @ large.theta).max() < 0.35 * sd.max()
    assert np.abs(large.mode - small.mode).max() < 0.05
    assert large.log_evidence == pytest.approx(small.log_evidence, abs=1.0)


def test_many_classes_share_parameters():
    data = random_set(n=400, n_classes=60, seed=2)
    posterior = by_score(ClassFitData(data), 16)
    assert posterior.theta.shape[1] == class_curve.MAX_GROUPS
    np.testing.assert_allclose(posterior.of_draw(3).sum(axis=1), 1.0, atol=1e-12)


def test_likelihood_ignores_missing_rows_by_score():
    data = random_set()
    likelihood = ClassFitData(data).likelihood(None)
    assert isinstance(likelihood, ClassLikelihood)
    assert len(likelihood.rows.line) == np.count_nonzero(data.cells.n_labeled)
