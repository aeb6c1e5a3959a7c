"""Statements of docs/explanation/mathematics.md, checked on small problems by going through all labelings."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.special import expit, logit, rel_entr

import darkmetrics as dm
from darkmetrics._kernels.auc.ranks import auc_moments
from darkmetrics.metrics.confusion import ConfusionMetric
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS

DECLARED = [m for m in CONFUSION_METRICS if isinstance(m, ConfusionMetric) and None not in m.direction]


@pytest.mark.parametrize("metric", DECLARED, ids=lambda metric: metric.name)
@pytest.mark.parametrize(("yes", "no"), [(6, 6), (9, 2), (2, 9), (5, 1), (1, 5)])
def test_metrics_move_with_the_counts_as_the_page_says(metric, yes, no):
    a, b = np.meshgrid(np.arange(yes + 1.0), np.arange(no + 1.0), indexing="ij")
    with np.errstate(divide="ignore", invalid="ignore"):
        value = metric.formula(a, yes - a, b, no - b)
    value = np.where(np.isfinite(value), value, np.nan)
    for axis, direction in enumerate(metric.direction):
        change = np.diff(value, axis=axis)
        change = change[np.isfinite(change)]
        # Steps of the metric are above 1e-3 on so few rows; 1e-12 is rounding.
        if direction == 0:
            assert np.abs(change).max() <= 1e-12
        else:
            assert (direction * change).min() >= -1e-12
            assert (direction * change).max() > 1e-3


def pairs_of(y, score, weight, tie):
    """Numerator and denominator of ROC-AUC from their definition as sums over pairs."""
    above = np.where(score[:, None] > score, 1.0, np.where(score[:, None] == score, tie, 0.0))
    positive, negative = weight * y, weight * (1 - y)
    return positive @ above @ negative, positive.sum() * negative.sum()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("ties", "tie"), [("half", 0.5), ("full", 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_roc_auc_moments_equal_those_over_all_labelings(ties, tie, weighted, seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 6, 14) / 5
    weight = rng.uniform(0.5, 3.0, 14) if weighted else np.ones(14)
    y, chance = rng.integers(0, 2, 14).astype(float), rng.uniform(0.02, 0.98, 14)
    missing = np.arange(14) < 8
    pairs, chances = [], []
    for labels in product((0.0, 1.0), repeat=8):
        y[missing] = labels
        pairs.append(pairs_of(y, score, weight, tie))
        chances.append(np.prod(np.where(y == 1.0, chance, 1.0 - chance)[missing]))
    values, mass = np.array(pairs), np.array(chances)
    mean = mass @ values
    (var_a, cov), (_, var_d) = ((values - mean).T * mass) @ (values - mean)

    data = dm.EvaluationSet(
        np.where(missing, np.nan, y), score, sample_weight=weight, missingness=dm.missing.Fixed(chance)
    )
    functional = dm.metrics.roc_auc(ties).bind(data, np.nan)
    assert data.cells.probability is not None
    found = auc_moments(functional.data, data.cells.probability[data.missing_cells])
    # Weights are divided by a power of two; numerator and denominator are sums over pairs of them.
    unit = (weight.sum() / functional.data.total) ** 2
    # 256 label assignments are added up: some 1e-14 of rounding.
    assert found == pytest.approx((*mean / unit, *np.array([var_a, var_d, cov]) / unit**2), rel=1e-11)


class Stated(dm.missing.Mechanism):
    """Nodes as they are given."""

    def __init__(self, weight, probability, shift=None):
        self._nodes = dm.missing.Posterior(np.array(weight), np.array(probability), shift=shift)

    def posterior(self, data):
        return self._nodes

    def describe(self, data, posterior):
        return "Assumed: what was given."


def test_odds_of_being_missing_by_label_are_a_mixture():
    p = np.linspace(0.01, 0.99, 50)
    a1, a0 = 0.6, 0.2
    missing, labeled = p * a1 + (1 - p) * a0, p * (1 - a1) + (1 - p) * (1 - a0)
    q = p * (1 - a1) / labeled
    # Equal up to a few roundings.
    assert missing / labeled == pytest.approx(q * a1 / (1 - a1) + (1 - q) * a0 / (1 - a0), rel=1e-13)
    # Missing and labeled rows differ by the same factor of the odds at every score.
    assert logit(p * a1 / missing) - logit(q) == pytest.approx(np.full(50, logit(a1) - logit(a0)), rel=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.35, 0.8])
def test_the_tilt_is_the_nearest_law_with_the_stated_share(share):
    weight, p = np.array([0.3, 0.7]), np.array([[0.2, 0.6, 0.9], [0.4, 0.5, 0.7]])
    data = dm.EvaluationSet([1, 0, None, None, None], [0.9, 0.1, 0.2, 0.5, 0.8])
    tilted = dm.missing.ExponentialTilt(Stated(weight, p), prevalence=share).posterior(data).probability

    y = np.array(list(product((0, 1), repeat=3)))
    positives = y.sum(axis=1)

    def law_of(chances):
        return np.array([np.prod(np.where(y == 1, row, 1 - row), axis=1) for row in chances])

    base, nearest = law_of(p), law_of(tilted)
    assert weight @ (nearest @ positives) / 3 == pytest.approx(share, abs=1e-10)

    def distance(distributions):
        return float(weight @ rel_entr(distributions, base).sum(axis=1))

    # Directions that keep every total, and the share of positives over both nodes.
    kept = np.vstack([np.repeat([1, 0], 8), np.repeat([0, 1], 8), np.outer(weight, positives).ravel()])
    free = null_space(kept)
    rng = np.random.default_rng(0)
    for _ in range(200):
        direction = (free @ rng.standard_normal(free.shape[1])).reshape(2, 8)
        # As far as half of the way to the first negative probability. The distance is convex: none near is nearer than
        # any that is far.
        step = 0.5 * np.min(nearest / np.abs(direction))
        assert distance(nearest + step * direction) > distance(nearest)


def test_variance_parts_are_those_of_the_law_of_total_variance():
    weight, base, shift = np.array([0.2, 0.5, 0.3]), np.array([0.2, 0.6, 0.7]), np.array([-0.5, 0.1, 1.2])
    p = expit(logit(base) + shift[:, None])
    y_true, y_score = [1, 0, 1, None, None, None], [0.9, 0.3, 0.4, 0.2, 0.6, 0.8]
    truth = np.array([[1, 0, 1, *labels] for labels in product((0, 1), repeat=3)])
    decided = np.array(y_score) >= 0.5
    recall = (truth * decided).sum(axis=1) / truth.sum(axis=1)
    mass = np.array([np.prod(np.where(truth[:, 3:] == 1, row, 1 - row), axis=1) for row in p])
    mean = mass @ recall
    within = weight @ (mass @ recall**2 - mean**2)
    total = weight @ (mass @ recall**2) - (weight @ mean) ** 2

    for given in (None, shift):
        model = Stated(weight, p, given)
        split = dm.evaluate(y_true, y_score, missingness=model, metrics="recall").variance_decomposition("recall")
        # Variances of 1e-2 from differences of numbers near 1: 1e-13 of rounding.
        assert split["labels"] == pytest.approx(within / total, rel=1e-11)
        # Without a shift nothing is due to the prevalence; with one, a parabola goes through three nodes, so all is.
        other, none = ("calibration", "prevalence") if given is None else ("prevalence", "calibration")
        assert split[other] == pytest.approx(1 - within / total, rel=1e-9)
        assert split[none] == pytest.approx(0.0, abs=1e-9)
