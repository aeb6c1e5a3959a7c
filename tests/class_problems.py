"""Problems of several classes: rows, the set of their cells, and posteriors."""

from typing import NamedTuple

import numpy as np

from darkmetrics.data.class_set import ClassSet, group_class_rows
from darkmetrics.methods import method_from
from darkmetrics.methods.classes import class_distributions
from darkmetrics.metrics.class_names import class_cost, class_metrics_from
from darkmetrics.posterior.classes import ClassPosterior


class DrawnClassPosterior(ClassPosterior):
    """Given probabilities at every draw (n_draws x n_missing_cells x K)."""

    def __init__(self, weight, probability):
        self.weight, self.probability = np.asarray(weight, float), np.asarray(probability, float)

    def of_draw(self, draw):
        return self.probability[draw]


class ClassRows(NamedTuple):
    """Rows (label -1: missing), the set of their cells, and the missing cell of each missing row."""

    score: np.ndarray
    label: np.ndarray
    decision: np.ndarray
    weight: np.ndarray
    data: ClassSet
    cell: np.ndarray


def make_rows(rng, n, n_classes, n_missing, *, weighted=False, ties=False, by_argmax=True, sharpness=1.0, rare=False):
    """Return random rows whose labels follow their scores."""
    size = np.ones(n_classes)
    if rare:
        size[-1] = 0.03
    score = rng.dirichlet(sharpness * size, n)
    label = np.array([rng.choice(n_classes, p=q) for q in score])
    score = 0.9 * score + 0.1 / n_classes
    if ties:
        score = np.round(score, 1) + 0.0
        score /= score.sum(axis=1, keepdims=True)
    decision = score.argmax(axis=1) if by_argmax else rng.integers(0, n_classes, n)
    weight = rng.choice([0.5, 1.0, 2.5], n) if weighted else np.ones(n)
    label[rng.choice(n, n_missing, replace=False)] = -1
    return set_of(score, label, decision, weight if weighted else None)


def set_of(score, label, decision, weight=None):
    """Return rows with the set of their cells."""
    n_classes = score.shape[1]
    cells = group_class_rows(score, decision, label, weight=weight)
    data = ClassSet(tuple(range(n_classes)), cells)
    row_weight = np.ones(len(label)) if weight is None else weight
    cell = []
    for i in np.flatnonzero(label < 0):
        same = (cells.score == score[i]).all(axis=1) & (cells.decision == decision[i])
        if weight is not None:
            same &= cells.weight == weight[i]
        (at,) = np.flatnonzero(same)
        cell.append(int(np.flatnonzero(data.missing_cells == at)[0]))
    return ClassRows(score, label, decision, row_weight, data, np.array(cell, dtype=np.int64))


def metrics_named(names, data):
    """Return the metrics of these names; "expected_cost" has the costs of the oracle."""
    from class_oracle import COST

    k = data.n_classes
    return [
        class_cost(COST[:k, :k]) if name == "expected_cost" else class_metrics_from(name, data.classes)[0]
        for name in names
    ]


def distributions(data, metrics, posterior, *, fill=None, method="auto"):
    """Return the distribution of each metric by name."""
    bound = [metric.bind(data, metric.undefined_as if fill is None else fill) for metric in metrics]
    computed = class_distributions(method_from(method), bound, posterior, data.missing_counts, 0)
    return {metric.name: distribution for metric, distribution in zip(metrics, computed, strict=True)}
