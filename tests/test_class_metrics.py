"""Metrics of several classes against scikit-learn and brute force over all label assignments."""

import numpy as np
import pytest

from class_oracle import SKLEARN, all_assignments, complete, definitions, sklearn_value
from class_problems import DrawnClassPosterior, distributions, make_rows, metrics_named, set_of

UNWEIGHTED = {"roc_auc_ovo", "roc_auc_ovo_weighted"}


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_definitions_equal_scikit_learn(n_classes, weighted, ties):
    rng = np.random.default_rng([n_classes, weighted, ties])
    rows = make_rows(rng, 40, n_classes, 0, weighted=weighted, ties=ties)
    for name, definition in definitions().items():
        if name in SKLEARN and not (weighted and name in UNWEIGHTED):
            value = definition(rows.label[None], rows.score, rows.decision, rows.weight)[0][0]
            expected = sklearn_value(name, rows.label, rows.score, rows.decision, rows.weight)
            assert value == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["plain", "ties", "class without rows", "class without predictions"])
def test_values_equal_scikit_learn_when_nothing_is_missing(n_classes, weighted, kind):
    rng = np.random.default_rng([n_classes, weighted, len(kind)])
    rows = make_rows(rng, 60, n_classes, 0, weighted=weighted, ties=kind == "ties")
    label, decision = rows.label.copy(), rows.decision.copy()
    if n_classes > 2 and kind == "class without rows":
        label[label == 1] = 0
    if n_classes > 2 and kind == "class without predictions":
        decision[decision == 1] = 2
    rows = set_of(rows.score, label, decision, rows.weight if weighted else None)
    posterior = DrawnClassPosterior([1.0], np.zeros((1, 0, n_classes)))
    names = [name for name in SKLEARN if n_classes > 2 or not name.startswith(("roc_auc", "top_k"))]
    metrics = metrics_named(names, rows.data)
    found = distributions(rows.data, metrics, posterior)
    for name, metric in zip(names, metrics, strict=True):
        if weighted and name in UNWEIGHTED:
            continue
        expected = sklearn_value(name, rows.label, rows.score, rows.decision, rows.weight)
        if np.isnan(expected):
            assert found[metric.name].undefined == 1.0
        else:
            assert found[metric.name].mean() == pytest.approx(expected, abs=1e-12), name
            assert metric.value(rows.data, metric.undefined_as) == pytest.approx(expected, abs=1e-12), name


def check_brute_force(rows, q, weight, *, fill=None, zero=0.0):
    """Compare every metric with all label assignments."""
    posterior = DrawnClassPosterior(weight, q)
    names = list(definitions())
    metrics = metrics_named(names, rows.data)
    found = distributions(rows.data, metrics, posterior, fill=fill)
    assignments = all_assignments(rows.cell.size, rows.data.n_classes)
    y = complete(rows.label, assignments)
    by_draw = np.stack([table[rows.cell[None], assignments].prod(axis=1) for table in q])
    mass = np.asarray(weight) @ by_draw
    for name, metric in zip(names, metrics, strict=True):
        distribution = found[metric.name]
        value, is_undefined = definitions(zero)[name](y, rows.score, rows.decision, rows.weight)
        if np.isnan(value).any() and not np.isnan(metric.undefined_as if fill is None else fill):
            value = np.where(np.isnan(value), metric.undefined_as if fill is None else fill, value)
        assert distribution.undefined == pytest.approx(mass @ is_undefined, abs=1e-12), name
        defined = ~np.isnan(value)
        if not (mass[defined] > 0.0).any():
            continue
        x, p = value[defined], mass[defined] / mass[defined].sum()
        assert distribution.method == "exact", name
        assert distribution.mean() == pytest.approx(p @ x, abs=1e-12), name
        assert distribution.var() == pytest.approx(p @ (x - p @ x) ** 2, abs=1e-12), name
        points = np.unique(np.round(x, 9))
        points = np.concatenate([points - 1e-7, points + 1e-7])
        expected = (p * (x[:, None] <= points).T).sum(axis=1)
        np.testing.assert_allclose(distribution.cdf(points), expected, atol=1e-12, err_msg=name)
        assert distribution.bounds_sharp, name
        np.testing.assert_allclose(distribution.support(), [x.min(), x.max()], atol=1e-12, err_msg=name)
        if len(weight) > 1:
            means = (by_draw[:, defined] @ x) / by_draw[:, defined].sum(axis=1)
            np.testing.assert_allclose(distribution.by_draw.mean, means, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_classes", "n_missing"), [(3, 6), (5, 4)])
def test_distributions_equal_brute_force(seed, n_classes, n_missing):
    rng = np.random.default_rng([seed, n_classes])
    rows = make_rows(rng, 14, n_classes, n_missing, weighted=bool(seed % 2), ties=seed > 1, by_argmax=seed != 3)
    q = rng.dirichlet(0.7 * np.ones(n_classes), (3, rows.data.missing_cells.size))
    check_brute_force(rows, q, [0.2, 0.5, 0.3])


@pytest.mark.parametrize(("n_classes", "n_missing"), [(3, 8), (5, 5)])
def test_distributions_equal_brute_force_with_more_missing_rows(n_classes, n_missing):
    rng = np.random.default_rng(n_classes)
    rows = make_rows(rng, 16, n_classes, n_missing, ties=True)
    q = rng.dirichlet(np.ones(n_classes), (2, rows.data.missing_cells.size))
    check_brute_force(rows, q, [0.4, 0.6])


@pytest.mark.parametrize("fill", [0.0, 1.0, np.nan])
def test_zero_division_equals_brute_force_without_labels_of_two_classes(fill):
    rng = np.random.default_rng(5)
    rows = make_rows(rng, 12, 4, 4)
    label, decision = rows.label.copy(), rows.decision.copy()
    label[(label == 1) | (label == 2)] = 0
    decision[decision == 3] = 0
    rows = set_of(rows.score, label, decision)
    q = rng.dirichlet(np.ones(4), (2, rows.data.missing_cells.size))
    check_brute_force(rows, q, [0.4, 0.6], fill=fill, zero=fill)
