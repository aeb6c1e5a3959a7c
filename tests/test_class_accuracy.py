"""Expansions and draws of metrics of several classes against label assignments evaluated from the definitions."""

from itertools import pairwise

import numpy as np
import pytest

from class_oracle import complete, definitions
from class_problems import DrawnClassPosterior, distributions, make_rows, metrics_named
from darkmetrics.distributions import class_drawing
from darkmetrics.distributions.class_expansion import ClassExpansion
from darkmetrics.distributions.classes import ClassProblem

NAMES = ("balanced_accuracy", "f1_macro", "recall_weighted", "mcc", "cohen_kappa", "log_loss", "roc_auc_ovr")
N_DRAWN = 100_000
guaranteed = pytest.mark.guarantees


def make_problem(seed, n_classes, n_missing, **kind):
    """Return rows and a posterior of four draws whose probabilities follow the scores."""
    rng = np.random.default_rng([seed, n_classes, n_missing])
    rows = make_rows(rng, n_missing + 40, n_classes, n_missing, **kind)
    score = rows.data.cells.score[rows.data.missing_cells]
    q = np.stack([np.maximum(score, 1e-3) ** power for power in (0.7, 0.9, 1.1, 1.3)])
    return rows, DrawnClassPosterior(np.full(4, 0.25), q / q.sum(axis=2, keepdims=True))


def draw_values(rows, posterior, names, n=N_DRAWN, seed=1):
    """Return values of metrics for independent labels of every row, from the definitions."""
    rng = np.random.default_rng(seed)
    values: dict[str, list[np.ndarray]] = {name: [] for name in names}
    ends = np.linspace(0, n, len(posterior) + 1).astype(int)
    for draw, (start, stop) in enumerate(pairwise(ends)):
        q = posterior.of_draw(draw)[rows.cell]
        for _ in range(start, stop, 5_000):
            uniform = rng.random((5_000, rows.cell.size))
            labels = (uniform[:, :, None] >= np.cumsum(q, axis=1)[None, :, :-1]).sum(axis=2)
            y = complete(rows.label, labels)
            for name in names:
                values[name].append(definitions()[name](y, rows.score, rows.decision, rows.weight)[0])
    return {name: np.concatenate(portions) for name, portions in values.items()}


def distance(distribution, values):
    """Return the Kolmogorov-Smirnov distance between a distribution and drawn values."""
    values = np.sort(values)
    points = np.unique(np.round(values, 12))
    largest = 0.0
    for shift in (-1e-9, 1e-9):
        observed = np.searchsorted(values, points + shift, side="right") / values.size
        largest = max(largest, float(np.abs(distribution.cdf(points + shift) - observed).max()))
    return largest


@pytest.mark.parametrize(("n_classes", "kind"), [(3, {}), (3, {"rare": True}), (3, {"weighted": True})])
def test_distributions_of_60_missing_rows_are_those_of_fewer_drawn_labels(n_classes, kind):
    rows, posterior = make_problem(2, n_classes, 60, **kind)
    names = ("f1_macro", "mcc", "log_loss")
    found = distributions(rows.data, metrics_named(names, rows.data), posterior)
    drawn = draw_values(rows, posterior, names, 40_000)
    for name in names:
        assert distance(found[name], drawn[name]) <= 0.01, (name, found[name].method)


@guaranteed
@pytest.mark.parametrize(
    ("n_classes", "kind"),
    [(3, {}), (3, {"rare": True}), (3, {"ties": True}), (3, {"weighted": True}), (10, {}), (10, {"rare": True})],
)
def test_distributions_of_60_missing_rows_are_within_a_hundredth_of_drawn_labels(n_classes, kind):
    rows, posterior = make_problem(2, n_classes, 60, **kind)
    found = distributions(rows.data, metrics_named(NAMES, rows.data), posterior)
    drawn = draw_values(rows, posterior, NAMES, N_DRAWN if n_classes == 3 else 40_000)
    for name in NAMES:
        assert distance(found[name], drawn[name]) <= 0.01, (name, found[name].method)


@guaranteed
def test_one_against_one_roc_auc_is_within_a_hundredth_of_drawn_labels():
    names = ("roc_auc_ovo", "roc_auc_ovo_weighted")
    rows, posterior = make_problem(3, 3, 80)
    found = distributions(rows.data, metrics_named(names, rows.data), posterior)
    drawn = draw_values(rows, posterior, names, 20_000)
    for name in names:
        assert distance(found[name], drawn[name]) <= 0.015  # 20,000 draws alone are off by 0.006 on average


@guaranteed
def test_moments_of_draws_equal_those_of_drawn_labels():
    rows, posterior = make_problem(4, 4, 70)
    names = ("f1_macro", "mcc", "roc_auc_ovr")
    found = distributions(rows.data, metrics_named(names, rows.data), posterior)
    drawn = draw_values(rows, posterior, names)
    for name in names:
        by_draw = drawn[name].reshape(4, -1)
        np.testing.assert_allclose(found[name].by_draw.mean, by_draw.mean(axis=1), atol=0.03 * by_draw.std())
        np.testing.assert_allclose(found[name].by_draw.var, by_draw.var(axis=1), rtol=0.05)
        assert found[name].support().low <= drawn[name].min()
        assert found[name].support().high >= drawn[name].max()


@guaranteed
@pytest.mark.parametrize("max_events", [2**24, 2**14 * 60])
def test_events_equal_labels_drawn_row_by_row(monkeypatch, max_events):
    rows, posterior = make_problem(5, 4, 300, sharpness=0.15, rare=True)
    names = ("f1_macro", "roc_auc_ovr", "log_loss", "mcc")
    metrics = metrics_named(names, rows.data)
    bound = [metric.bind(rows.data, metric.undefined_as) for metric in metrics]
    problem = ClassProblem(bound, posterior, rows.data.missing_counts)
    by_row = problem.draw_distributions(bound, N_DRAWN)
    monkeypatch.setattr(class_drawing, "_MAX_ROWS", 0)
    monkeypatch.setattr(class_drawing, "_MAX_EVENTS", max_events)
    drawing = class_drawing.ClassDrawing(
        bound, [problem.moments_of(functional) for functional in bound], posterior, rows.data.missing_counts, 7
    )
    assert drawing._event_classes.all() == (max_events == 2**24)
    assert drawing._event_classes.any()
    for name, exact, draws in zip(names, by_row, drawing.draw(), strict=True):
        assert distance(exact, draws.values) <= 0.015, name


def test_drawn_categories_have_their_probabilities():
    rng = np.random.default_rng(0)
    q = np.array([[0.5, 0.001, 0.299, 0.2], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    labels = class_drawing.draw_categories(q, 400_000, rng)
    frequency = np.stack([(labels == k).mean(axis=0) for k in range(4)], axis=1)
    np.testing.assert_allclose(frequency, q, atol=4.0 * 0.5 / np.sqrt(400_000))
    assert not frequency[1, [0, 1, 3]].any()


@guaranteed
def test_expansion_without_second_order_terms_is_detected():
    """Negative control: the distance shows a mean that lacks its second-order term."""
    rows, posterior = make_problem(2, 3, 60)
    metric = metrics_named(["f1_macro"], rows.data)[0]
    functional = metric.bind(rows.data, 0.0)
    expansion = ClassExpansion(
        functional, ClassProblem([functional], posterior, rows.data.missing_counts).moments_of(functional)
    )
    drawn = draw_values(rows, posterior, ["f1_macro"], 40_000)["f1_macro"].reshape(4, -1)
    error, plain = (np.abs(mean - drawn.mean(axis=1)).max() for mean in (expansion.moments()[0], expansion.value))
    assert error < 0.3 * plain


def test_two_classes_equal_the_metrics_of_two_classes():
    import darkmetrics as dm

    rng = np.random.default_rng(8)
    score = rng.random(30)
    label = (rng.random(30) < score).astype(int)
    label[:7] = -1
    q = rng.random(7)
    y = [None if value < 0 else int(value) for value in label]
    binary = dm.evaluate(
        y,
        score,
        missingness=dm.missing.Fixed(q),
        metrics=[
            "accuracy",
            "precision",
            "recall",
            "f1",
            "balanced_accuracy",
            "mcc",
            "cohen_kappa",
            "roc_auc",
            "brier",
            "log_loss",
        ],
    )
    matrix = np.stack([1.0 - score, score], axis=1)
    from class_problems import set_of

    rows = set_of(matrix, label, (score >= 0.5).astype(int))
    table = np.empty((1, 7, 2))
    table[0, rows.cell] = np.stack([1.0 - q, q], axis=1)
    names = {
        **{name: name for name in ("accuracy", "balanced_accuracy", "mcc", "cohen_kappa", "brier", "log_loss")},
        **{f"{name}[1]": name for name in ("precision", "recall", "f1", "roc_auc")},
        "roc_auc_ovr": "roc_auc",
    }
    found = distributions(rows.data, metrics_named(names, rows.data), DrawnClassPosterior([1.0], table))
    for name, binary_name in names.items():
        of_matrix, expected = found[name], binary[binary_name]
        assert of_matrix.method == "exact"
        assert of_matrix.mean() == pytest.approx(expected.mean(), abs=1e-12), name
        points = np.linspace(*expected.support(), 51) + 1e-7
        np.testing.assert_allclose(of_matrix.cdf(points), expected.cdf(points), atol=1e-12, err_msg=name)
        np.testing.assert_allclose(of_matrix.support(), expected.support(), atol=1e-12, err_msg=name)
