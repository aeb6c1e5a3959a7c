"""Nodes: how missing labels are drawn at a node, and whether they are independent."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics.exceptions import MethodError
from darkmetrics.missing import Mechanism
from darkmetrics.posterior import Posterior


class AllAlike(Posterior):
    """The missing rows have one label, all of them."""

    independent = False

    def draw(self, node, missing, size, rng, of_ties=None):
        return (rng.random((size, 1)) < self.of_cells(node)[0]) * missing


class OneFate(Mechanism):
    """All missing rows are positive with probability 0.3, else none is."""

    def posterior(self, data):
        return AllAlike(np.ones(1), np.full((1, data.missing_cells.size), 0.3))

    def describe(self, data, posterior):
        return "Assumed: one label for all missing rows."


SCORE = np.array([0.9, 0.8, 0.7, 0.6, 0.25, 0.3, 0.1])
DATA = EvaluationSet([1, 0, None, None, None, 1, 0], SCORE)


@pytest.mark.parametrize("metric", ["recall", "accuracy", "brier", "roc_auc", "average_precision", "precision_at_k(3)"])
@pytest.mark.parametrize("method", ["monte_carlo", "auto"])
def test_monte_carlo_draws_labels_as_the_nodes_do(metric, method):
    distribution: Any = dm.evaluate(DATA, metrics=metric, missingness=OneFate(), method=method, rng=0)[metric]
    record = dm.metrics.metrics_from(metric)[0]
    y = np.array([1, 0, 0, 0, 0, 1, 0])
    values = {
        record.value(EvaluationSet(np.where(np.isin(np.arange(7), [2, 3, 4]), label, y), SCORE)): chance
        for label, chance in ((1, 0.3), (0, 0.7))
    }
    assert distribution.method == "monte carlo"
    assert sorted(distribution.atoms.tolist()) == pytest.approx(sorted(values), rel=1e-12)
    # Five standard errors of a share of 10,000 draws.
    masses = np.array([values[v] for v in sorted(values)])
    np.testing.assert_allclose(
        distribution.masses[np.argsort(distribution.atoms)], masses, atol=5.0 * np.sqrt(0.21 / 10_000)
    )
    assert not any("independent, with" in assumption.statement for assumption in distribution.certificate.assumptions)


@pytest.mark.parametrize("method", ["exact", "gaussian"])
def test_methods_that_need_independent_labels_say_so(method):
    with pytest.raises(MethodError, match=rf"^method: '{method}' needs missing labels that are independent given"):
        dm.evaluate(DATA, metrics="recall", missingness=OneFate(), method=method)


@pytest.mark.parametrize("method", ["auto", "exact", "gaussian"])
def test_curves_need_independent_labels(method):
    result = dm.evaluate(DATA, metrics="recall", missingness=OneFate(), rng=0)
    with pytest.raises(MethodError, match=r"^method: curves need missing labels that are independent given"):
        dm.threshold_curves(result, method=method)


def test_labels_are_independent_unless_said_otherwise():
    posterior = Posterior.single(np.array([0.2, 0.8]))
    assert posterior.independent
    drawn = posterior.draw(0, np.array([1, 1]), 20_000, np.random.default_rng(0))
    # Five standard errors of a covariance.
    assert abs(np.cov(drawn.T)[0, 1]) <= 5.0 * 0.16 / np.sqrt(20_000)


def test_groups_of_dependent_labels_have_no_total():
    rows = {"g": ["a"] * 4 + ["b"] * 4, "y": [1, 0, None, None] * 2, "p": [0.9, 0.1, 0.8, 0.2] * 2}
    text = r"^method: the total of groups needs missing labels that are independent"
    with pytest.raises(dm.exceptions.MethodError, match=text):
        dm.evaluate_by("y", "p", data=pd.DataFrame(rows), by="g", missingness=OneFate())
