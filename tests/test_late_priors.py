"""What late labels take for likely before any label is seen: even delays, and shares of positives that drift."""

from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.label_models import LateLabels, late_prior
from darkmetrics.label_models.late_prior import Setting

OLDEST = 84


def rows(seed: int, n: int = 3000, rise: float = 0.0) -> tuple[Any, ...]:
    """Rows of twelve weeks, a fifth of them positive, rising by so much from first to last; positives are slower."""
    rng = np.random.default_rng(seed)
    age = np.floor(OLDEST * rng.random(n))
    y = rng.random(n) < 0.2 * (1.0 + rise * (0.5 - age / OLDEST))
    score = 1.0 / (1.0 + np.exp(np.log(4.0) + 1.28 - 1.6 * (rng.normal(size=n) + 1.6 * y)))
    known = np.floor(rng.gamma(1.5, np.where(y, 25.0, 8.0) / 1.5)) <= age
    return np.where(known, y, np.nan), score, age, y


@pytest.fixture(scope="module")
def grid() -> Any:
    labels, score, age, _ = rows(0)
    return LateLabels().fit(dm.EvaluationSet(labels, score, threshold=0.3, age=age)).grid


def test_a_priori_labels_come_evenly_whatever_the_bins_are(grid: Any) -> None:
    """At the mean of the prior those left fall exponentially, with a quarter of the oldest age as mean delay."""
    mean, _ = late_prior.prior(grid, late_prior.usual())
    first = grid.calibrator.prior_mean_.size + 2 * (grid.knots.size - 1)
    log_odds = mean[first : first + 2 * grid.bins].reshape(2, grid.bins)
    left = np.cumprod(1.0 / (1.0 + np.exp(log_odds)), axis=1)
    expected = np.exp(-grid.edges[1:] / (0.25 * grid.oldest))
    np.testing.assert_allclose(left, [expected, expected], rtol=1e-9)  # sums of 30 logarithms


def test_a_priori_all_positives_are_in_by_the_maturity() -> None:
    """Those that come evenly until then, of which the share that is left at each age is known."""
    labels, score, age, _ = rows(0)
    declared = np.where(np.nan_to_num(labels) == 1.0, 1.0, 0.0)
    grid = LateLabels().fit(dm.EvaluationSet(declared, score, threshold=0.3, age=age, maturity=60.0)).grid
    assert grid.maturity is not None
    assert grid.maturity == pytest.approx(60.0, abs=1.5)  # by how the rows of its bin, of eight days, lie around it
    mean, _ = late_prior.prior(grid, late_prior.usual())
    first = grid.calibrator.prior_mean_.size + 2 * (grid.knots.size - 1)
    left = np.cumprod(1.0 / (1.0 + np.exp(mean[first : first + grid.bins])))
    before = grid.edges[1:] < grid.maturity
    at = np.exp(-np.append(grid.edges[1:][before], grid.maturity) / (0.25 * grid.oldest))
    np.testing.assert_allclose(left[before], (at[:-1] - at[-1]) / (1.0 - at[-1]), rtol=1e-9)  # sums of 30 logarithms
    assert left[~before].max() < 0.001


def test_the_prior_of_the_path_is_that_of_a_walk_and_a_trend(grid: Any) -> None:
    wander, trend = 0.3, 0.7
    _, precision = late_prior.prior(grid, Setting(0.1, wander, trend))
    first, moves = grid.calibrator.prior_mean_.size, grid.knots.size - 1
    time = (grid.knots[0] - grid.knots[1:]) / np.ptp(grid.knots)
    walk = wander**2 * np.minimum.outer(time, time)
    for place, covariance in ((first, walk + trend**2 * np.outer(time, time)), (first + moves, walk)):
        own = precision[place : place + moves, place : place + moves]
        # The inverse of a matrix whose condition number is some thousands.
        np.testing.assert_allclose(np.linalg.inv(own), covariance, atol=1e-9)


def _bias(sets: int) -> float:
    """How far precision is off on average where positives rise by half, in its standard deviations."""
    off = []
    for seed in range(sets):
        labels, score, age, y = rows(seed, rise=0.5)
        data = dm.EvaluationSet(labels, score, threshold=0.3, age=age)
        law = dm.evaluate(data, metrics="precision", label_model=LateLabels().fit(data))["precision"]
        off.append((law.mean() - y[score >= 0.3].mean()) / law.std())
    return abs(float(np.mean(off)))


@pytest.mark.guarantees
def test_a_share_of_positives_that_rises_by_half_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the negative control: with a slow and a fast walk alone it is taken for hardly any rise."""
    assert _bias(24) < 0.6  # a mean of 24 is off by 0.2 itself
    monkeypatch.setattr(late_prior, "_DRIFTS", ((0.15, 0.0), (1.5, 0.0)))
    assert _bias(24) > 0.6
