"""How far one label moves a metric, to first order: slopes of the definitions in the oracle, and what reads them."""

import math

import mpmath
import numpy as np
import pytest

import darkmetrics as dm
import oracle
from darkmetrics.distributions.functionals import CountFunctional
from darkmetrics.distributions.problem import Problem as PosteriorProblem
from darkmetrics.methods.gaussian import moments_at_draws
from darkmetrics.missing import Posterior
from oracle import Problem

LOSSES = ["brier", "log_loss"]
RANKS = ["roc_auc", "gini", "roc_auc(ties='full')", "average_precision"]
COUNTS = [
    *("accuracy", "precision", "recall", "specificity", "npv", "fpr", "fnr", "f1", "fbeta(beta=2)", "mcc"),
    *("cohen_kappa", "balanced_accuracy", "jaccard", "g_mean", "youden_j", "markedness", "prevalence"),
    *(
        "predicted_to_actual",
        "expected_cost(c_fn=5.0)",
        "precision_at_k(5)",
        "recall_at_k(5)",
        "lift_at_k(5)",
    ),
]
# Errors of a five-point difference with this step: 1e-12 by the fifth derivative, 1e-13 by rounding.
STEP, CLOSE = 1e-3, 1e-8
# Metrics of ranks are differentiated numerically, with a step of 2% of a standard deviation of their sums.
NUMERICAL = 1e-6


def random_problem(seed, *, weighted, rows=24, missing=10) -> Problem:
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, rows).round(1)
    y = np.concatenate([[0.0, 1.0, 0.0, 1.0], rng.integers(0, 2, rows - missing - 4), np.full(missing, math.nan)])
    weight = rng.choice([0.5, 1.0, 2.0], rows) if weighted else np.ones(rows)
    # Rows of one score and one weight are one cell, and have one chance.
    chance = 0.2 + 0.6 * score + 0.05 * weight
    return Problem(y, score, (score >= 0.5).astype(int), weight, chance[np.isnan(y)])


def bound(name, problem):
    """The functional, the chance of each missing cell and, of each, one row."""
    weight = None if np.all(problem.weight == 1.0) else problem.weight
    data = dm.EvaluationSet(problem.y, problem.score, y_pred=problem.decision, sample_weight=weight)
    [metric] = dm.metrics.metrics_from(name)
    rows = np.flatnonzero(np.isnan(problem.y))
    cells, at = data.cells, data.missing_cells
    weights = np.ones(at.size) if cells.weight is None else cells.weight[at]
    own = [
        int(np.flatnonzero((problem.score[rows] == s) & (problem.weight[rows] == w))[0])
        for s, w in zip(cells.score[at], weights, strict=True)
    ]
    return metric.bind(data, math.nan), problem.p[own], rows[own]


def slope(name, problem, row):
    """Derivative of the definition by the label of a row, where each missing label is its chance."""
    y = problem.y.copy()
    y[np.isnan(y)] = problem.p
    if name in LOSSES:  # a loss is defined for labels of 0 and 1; its mean is linear in between
        places, factors = np.array([0.0, 1.0]), np.array([-1.0, 1.0])
    else:
        places, factors = y[row] + STEP * np.array([-2, -1, 1, 2]), np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * STEP)
    labelings = np.repeat(y[None], places.size, axis=0)
    labelings[:, row] = places
    values = oracle.definition_of(name)(labelings, problem.score, problem.decision, problem.weight)
    return float(factors @ values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*COUNTS, *LOSSES, *RANKS])
def test_influence_is_the_slope_of_the_definition(name, weighted):
    for seed in range(3):
        problem = random_problem(seed, weighted=weighted)
        functional, p, rows = bound(name, problem)
        expected = [slope(name, problem, row) for row in rows]
        close = NUMERICAL if name in RANKS else CLOSE
        np.testing.assert_allclose(functional.influence(p), expected, rtol=close, atol=close)


def test_every_metric_is_looked_at():
    names = {name.split("(")[0] for name in [*COUNTS, *LOSSES, *RANKS]}
    assert names == set(dm.metrics.registered_names())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*COUNTS, *LOSSES])
def test_variance_of_the_gaussian_adds_up_the_influence_of_all_rows(name, weighted):
    problem = random_problem(5, weighted=weighted)
    functional, p, rows = bound(name, problem)
    of_rows = np.array([slope(name, problem, row) for row in rows])
    expected = float(functional.missing @ (of_rows**2 * p * (1.0 - p)))
    assert moments_at_draws(functional, PosteriorProblem(Posterior.single(p)))[1] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", ["mcc", "g_mean", "cohen_kappa", "balanced_accuracy", "f1", "brier"])
@pytest.mark.parametrize("sure", [0.0, 1.0])
def test_sure_rows_take_no_more_part_in_the_variance_than_labeled_ones(name, sure):
    problem = random_problem(2, weighted=False)
    missing = np.isnan(problem.y)
    decided = problem.decision[missing] == 0
    # No row that is decided negative is open, so that the metric moves with the others alone.
    given = problem._replace(p=np.where(decided, sure, problem.p))
    labeled = problem.y.copy()
    labeled[np.flatnonzero(missing)[decided]] = sure
    settled = problem._replace(y=labeled, p=problem.p[~decided])
    moments = []
    for one in (given, settled):
        functional, p, _ = bound(name, one)
        moments.append([m.item() for m in moments_at_draws(functional, PosteriorProblem(Posterior.single(p)))])
    assert moments[0] == pytest.approx(moments[1], rel=1e-9)
    assert moments[0][1] > 0.0


def test_influence_is_nan_where_a_class_is_absent():
    data = dm.EvaluationSet([0, 0, None], [0.9, 0.8, 0.7])
    for name in ("roc_auc", "recall"):
        [metric] = dm.metrics.metrics_from(name)
        assert np.isnan(metric.bind(data, math.nan).influence(np.zeros(1))).all()


@pytest.mark.parametrize("left", [0.5, 0.06, 1e-3])
def test_slope_of_a_root_next_to_its_end_is_the_derivative(left):
    """One missing row of small weight among many heavy positives: whether there is a negative at all is its doing."""
    weight = np.array([8.0, 2.5, 0.3, 0.15])
    y, decision = [1.0, 1.0, math.nan, math.nan], np.array([0, 1, 1, 0])
    data = dm.EvaluationSet(y, [0.1, 0.9, 0.8, 0.2], y_pred=decision, sample_weight=weight)
    functional = dm.metrics.metrics_from("g_mean")[0].bind(data, math.nan)
    assert isinstance(functional, CountFunctional)
    tp, fn = 0.2, (1.0 - left) * 0.15

    def g_mean(*sums):
        true_positive, miss = 2.5 + sums[0], 8.0 + sums[1]
        negative = (mpmath.mpf("0.3") - sums[0]) + (mpmath.mpf("0.15") - sums[1])
        right = (mpmath.mpf("0.15") - sums[1]) / negative
        return mpmath.sqrt(true_positive / (true_positive + miss) * right)

    expected = np.array([float(mpmath.diff(g_mean, (tp, fn), order)) for order in ((1, 0), (0, 1))])
    np.testing.assert_allclose(functional.slopes(np.array([tp, fn])), expected, rtol=1e-5)
