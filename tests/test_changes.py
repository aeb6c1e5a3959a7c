"""Changes, trends and gaps: against brute force over the labelings of all sets, and what they say of themselves."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
import oracle
from darkmetrics.nodes import Nodes

CONFUSION = ["accuracy", "precision", "recall", "f1", "specificity", "mcc", "brier", "roc_auc"]


class Several(dm.label_models.LabelModel):
    """Nodes as they are given."""

    def __init__(self, weight: Any, probability: Any) -> None:
        self.weight, self.probability = np.asarray(weight, float), np.asarray(probability, float)

    def nodes(self, data: dm.EvaluationSet) -> Nodes:
        return Nodes(self.weight, self.probability)

    def describe(self, data: dm.EvaluationSet, nodes: Nodes) -> str:
        return "Given."


def rows(seed: int, n: int = 9, missing: int = 4, nodes: int = 1, *, weighted: bool = False) -> dict[str, Any]:
    """A few rows with different scores, some without a label, and chances of these at one or more nodes."""
    rng = np.random.default_rng(seed)
    score = np.sort(rng.permutation(100)[:n] / 100.0)
    y = (rng.random(n) < 0.2 + 0.6 * score).astype(float)
    y[rng.permutation(n)[:missing]] = np.nan
    weight = rng.random(nodes) + 0.1
    return {
        "score": score,
        "y": y,
        "p": rng.random((nodes, missing)),
        "weight": weight / weight.sum(),
        "sample_weight": rng.integers(1, 4, n).astype(float) if weighted else None,
    }


def evaluated(one: dict[str, Any], metrics: Any, **settings: Any) -> dm.Evaluation:
    model = Several(one["weight"], one["p"])
    return dm.evaluate(
        one["y"], one["score"], metrics=metrics, label_model=model, sample_weight=one["sample_weight"], **settings
    )


def labelings(one: dict[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The metric of every labeling (NaN where 0/0), and the probability of each over the nodes."""
    gaps = np.flatnonzero(np.isnan(one["y"]))
    labels = np.array(list(product([0.0, 1.0], repeat=gaps.size)))
    y = np.tile(one["y"], (len(labels), 1))
    y[:, gaps] = labels
    weight = np.ones(one["y"].size) if one["sample_weight"] is None else one["sample_weight"]
    definition = oracle.DEFINITIONS.get(metric) or oracle.FAMILIES[metric]()
    values = definition(y, one["score"], (one["score"] >= 0.5).astype(float), weight)
    chances = np.prod(np.where(labels[None] == 1.0, one["p"][:, None], 1.0 - one["p"][:, None]), axis=2)
    return values, one["weight"] @ chances


@pytest.mark.parametrize("metric", CONFUSION)
@pytest.mark.parametrize(("nodes", "weighted"), [(1, False), (3, False), (2, True)])
def test_the_difference_equals_brute_force_over_the_labelings_of_both(metric, nodes, weighted):
    sets = [rows(seed, 9 + seed, 4 + seed, nodes, weighted=weighted) for seed in (1, 2)]
    after, before = (evaluated(one, metric, zero_division=np.nan) for one in sets)
    found = dm.change(after, before)[metric]
    values, masses = zip(*(labelings(one, metric) for one in sets), strict=True)
    difference = np.subtract.outer(*values).ravel()
    mass = np.multiply.outer(*masses).ravel()
    defined = ~np.isnan(difference)
    assert found.method == "exact"
    assert found.undefined == pytest.approx(mass[~defined].sum(), abs=1e-12)
    difference, mass = difference[defined], mass[defined] / mass[defined].sum()
    for t in np.unique(difference):
        assert found.cdf(t + oracle.ATOM) == pytest.approx(mass[difference <= t + oracle.ATOM].sum(), abs=1e-12)
    assert dm.change(after, before).fell(metric) == pytest.approx(mass[difference < -oracle.ATOM].sum(), abs=1e-12)
    assert found.mean() == pytest.approx(mass @ difference, abs=1e-12)
    assert found.support() == pytest.approx((difference.min(), difference.max()), abs=1e-12)
