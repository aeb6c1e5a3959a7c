"""The likelihood of labels that come with time, against products of chances and differences of its own values."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from darkmetrics._kernels.posterior.arrival import ArrivalLikelihood

ROWS, COLUMNS, BINS, ZONES = 40, 3, 5, 2
SIZE = COLUMNS + 2 * (BINS + 1) + ZONES - 1


def problem(seed: int) -> tuple[ArrivalLikelihood, Any]:
    rng = np.random.default_rng(seed)

    def counts(*shape: int) -> Any:
        return rng.integers(0, 5, shape).astype(float)

    root = rng.normal(size=(SIZE, SIZE))
    likelihood = ArrivalLikelihood(
        X=rng.normal(size=(ROWS, COLUMNS)),
        place=rng.integers(0, BINS * ZONES, ROWS),
        positives=counts(ROWS),
        negatives=counts(ROWS),
        missing=counts(ROWS),
        full=counts(2, ZONES, BINS),
        own=counts(2, ZONES, BINS),
        untimed=counts(2, ZONES, BINS),
        last=counts(2, ZONES),
        passed=rng.uniform(0.3, 1.0, (2, BINS)),
        prior_mean=rng.normal(size=SIZE),
        prior_precision=0.1 * root @ root.T + np.eye(SIZE),
        credit=0.8,
    )
    return likelihood, 0.7 * rng.normal(size=SIZE)


def by_products(likelihood: ArrivalLikelihood, parameters: Any) -> float:
    """The log posterior from chances that are multiplied one by one."""
    p = 1.0 / (1.0 + np.exp(-likelihood.X @ parameters[:COLUMNS]))
    level = parameters[COLUMNS : COLUMNS + 2 * BINS].reshape(2, BINS)
    never = 1.0 / (1.0 + np.exp(-parameters[COLUMNS + 2 * BINS : COLUMNS + 2 * BINS + 2]))
    zone = np.append(0.0, parameters[COLUMNS + 2 * BINS + 2 :])
    total, survival = 0.0, np.zeros((2, ZONES, BINS))
    for y in range(2):
        for z in range(ZONES):
            h = 1.0 / (1.0 + np.exp(-(level[y] + zone[z])))
            for k in range(BINS):
                before = np.prod(1.0 - h[:k])
                survival[y, z, k] = never[y] + (1.0 - never[y]) * before * (1.0 - likelihood.passed[y, k] * h[k])
                come = (1.0 - never[y]) * before * h[k]
                total += likelihood.full[y, z, k] * np.log(come)
                total += likelihood.own[y, z, k] * np.log(likelihood.passed[y, k] * come)
                total += likelihood.untimed[y, z, k] * np.log(1.0 - survival[y, z, k])
            total += likelihood.last[y, z] * np.log(never[y] + (1.0 - never[y]) * np.prod(1.0 - h))
    for row in range(ROWS):
        z, k = divmod(int(likelihood.place[row]), BINS)
        total += likelihood.positives[row] * np.log(p[row]) + likelihood.negatives[row] * np.log(1.0 - p[row])
        total += likelihood.missing[row] * np.log(p[row] * survival[0, z, k] + (1.0 - p[row]) * survival[1, z, k])
    off = parameters - likelihood.prior_mean
    prior = -0.5 * off @ likelihood.prior_precision @ off
    prior += 0.5 * np.log(np.linalg.det(likelihood.prior_precision)) - 0.5 * SIZE * np.log(2.0 * np.pi)
    return float(likelihood.credit * total + prior)


@pytest.mark.parametrize("seed", range(3))
def test_log_posterior_is_that_of_chances_multiplied_one_by_one(seed: int) -> None:
    likelihood, parameters = problem(seed)
    assert likelihood.expand(parameters).value == pytest.approx(by_products(likelihood, parameters), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_curvature_are_those_of_differences(seed: int) -> None:
    likelihood, parameters = problem(seed)
    at, step = likelihood.expand(parameters), 1e-5
    around = [[likelihood.expand(parameters + sign * step * unit) for sign in (1.0, -1.0)] for unit in np.eye(SIZE)]
    slope = [(up.value - down.value) / (2.0 * step) for up, down in around]
    curvature = [(down.gradient - up.gradient) / (2.0 * step) for up, down in around]
    np.testing.assert_allclose(at.gradient, slope, atol=1e-6)
    np.testing.assert_allclose(at.precision, curvature, atol=1e-6)


def test_slopes_in_what_was_passed_are_those_of_differences() -> None:
    likelihood, parameters = problem(1)
    likelihood = replace(likelihood, passed=np.clip(likelihood.passed, 0.0, 0.95))
    odds, step = np.log(likelihood.passed / (1.0 - likelihood.passed)), 1e-5
    for y, k in np.ndindex(2, BINS):
        ends = []
        for sign in (1.0, -1.0):
            moved = odds.copy()
            moved[y, k] += sign * step
            ends.append(replace(likelihood, passed=1.0 / (1.0 + np.exp(-moved))).expand(parameters).value)
        found = likelihood.credit * likelihood.passed_slopes(parameters)[0][y, k]
        assert found == pytest.approx((ends[0] - ends[1]) / (2.0 * step), abs=1e-6)


def test_share_of_positives_among_missing_rows_is_bayes_rule() -> None:
    likelihood, parameters = problem(0)
    p = 1.0 / (1.0 + np.exp(-likelihood.X @ parameters[:COLUMNS]))
    survival = np.exp(likelihood.log_survival(likelihood.hazards(parameters))).reshape(2, -1)[:, likelihood.place]
    expected = p * survival[0] / (p * survival[0] + (1.0 - p) * survival[1])
    found = likelihood.share(parameters[None], likelihood.X, likelihood.place)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def _of_cohorts(*, timed: bool) -> ArrivalLikelihood:
    """Rows of five ages whose scores say nothing, each with a share of positives of its own; hardly a prior."""
    rng = np.random.default_rng(5)
    labels = rng.integers(20, 50, (2, 1, BINS)).astype(float)
    none, size = np.zeros_like(labels), BINS + 2 * (BINS + 1)
    return ArrivalLikelihood(
        X=np.eye(BINS),
        place=np.arange(BINS),
        positives=labels[0, 0],
        negatives=labels[1, 0],
        missing=rng.integers(20, 50, BINS).astype(float),
        full=none,
        own=labels if timed else none,
        untimed=none if timed else labels,
        last=np.zeros((2, 1)),
        passed=np.ones((2, BINS)),
        prior_mean=np.zeros(size),
        prior_precision=np.eye(size) * 1e-12,
    )


def _told(share: Any, left: Any) -> Any:
    """Parameters for shares of positives by age, and shares of each class that have no label yet."""
    hazard = 1.0 - left / np.column_stack([np.ones(2), left[:, :-1]])
    return np.concatenate([np.log(share / (1.0 - share)), np.log(hazard / (1.0 - hazard)).ravel(), [-40.0, -40.0]])


@pytest.mark.parametrize("timed", [False, True], ids=["ages", "ages and arrivals"])
def test_from_ages_alone_more_positives_among_new_rows_are_as_likely_as_late_labels(timed: bool) -> None:
    """Twice as many of the newest rows positive, half as many of their labels in: the same is seen, to the last digit.

    The negative control knows when labels came.
    """
    likelihood = _of_cohorts(timed=timed)
    share, left = np.full(BINS, 0.2), np.array([[0.8, 0.5, 0.3, 0.2, 0.1], [0.5, 0.3, 0.2, 0.1, 0.05]])
    turned, later = share.copy(), left.copy()
    turned[0] = 0.4
    later[:, 0] = [1.0 - 0.2 * 0.2 / 0.4, 1.0 - 0.5 * 0.8 / 0.6]
    one, other = (likelihood.expand(_told(*how)).value for how in ((share, left), (turned, later)))
    if timed:
        assert abs(one - other) > 3.0
    else:
        assert one == pytest.approx(other, abs=1e-6)  # where the prior, which is hardly there, differs by less
