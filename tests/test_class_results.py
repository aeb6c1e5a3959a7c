"""Results by class, names of metrics, and plots."""

import matplotlib as mpl
import numpy as np
import pytest
import sklearn.metrics as sk

import darkmetrics as dm
from class_oracle import all_assignments, complete
from class_problems import DrawnClassPosterior, distributions, make_rows, metrics_named
from darkmetrics.metrics.class_names import class_metric_from_text, class_metrics_from

mpl.use("agg")
CLASSES = ("cat", "dog", "fish")


def make_evaluation(seed=0, n=300, fraction=0.4):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet([0.6, 0.6, 0.2], n)
    label = np.array([rng.choice(3, p=q) for q in score])
    y_true = [None if rng.random() < fraction else CLASSES[k] for k in label]
    scores = dict(zip(CLASSES, score.T, strict=True))
    return dm.evaluate(y_true, scores, missingness="by_score"), label, score


def test_entries_and_classes_equal_brute_force():
    rng = np.random.default_rng(1)
    rows = make_rows(rng, 15, 3, 6, weighted=True, ties=True)
    q = rng.dirichlet(np.ones(3), (2, rows.data.missing_cells.size))
    posterior = DrawnClassPosterior([0.3, 0.7], q)
    names = [f"confusion[{i},{j}]" for i in range(3) for j in range(3)] + ["recall[1]", "precision[2]", "roc_auc[0]"]
    found = distributions(rows.data, metrics_named(names, rows.data), posterior, fill=0.0)
    assignments = all_assignments(6, 3)
    y = complete(rows.label, assignments)
    mass = np.array([0.3, 0.7]) @ np.stack([table[rows.cell[None], assignments].prod(axis=1) for table in q])
    for name in names:
        if name.startswith("confusion"):
            i, j = int(name[10]), int(name[12])
            value = ((y == i) * (rows.decision == j) * rows.weight).sum(axis=1)
        else:
            k = int(name[-2])
            function = {"re": sk.recall_score, "pr": sk.precision_score, "ro": sk.roc_auc_score}[name[:2]]
            second = rows.score[:, k] if name.startswith("roc") else rows.decision == k
            extra = {} if name.startswith("roc") else {"zero_division": 0}
            value = np.array([function(labels == k, second, sample_weight=rows.weight, **extra) for labels in y])
        assert found[name].method == "exact", name
        points = np.unique(np.round(value, 9)) + 1e-7
        np.testing.assert_allclose(found[name].cdf(points), (mass * (value <= points[:, None])).sum(axis=1), atol=1e-12)


def test_confusion_matrix_of_known_labels_equals_scikit_learn():
    result, label, score = make_evaluation(fraction=0.0)
    expected = sk.confusion_matrix(label, score.argmax(axis=1))
    np.testing.assert_array_equal(result.confusion_matrix().mean, expected)
    recall = [record["mean"] for record in result.per_class("recall").to_records()]
    np.testing.assert_allclose(recall, sk.recall_score(label, score.argmax(axis=1), average=None), atol=1e-12)


def test_confusion_matrix_of_two_classes_equals_scikit_learn():
    y_true, y_score = [1, 0, 0, 1, 1, 0], [0.9, 0.2, 0.7, 0.4, 0.8, 0.1]
    matrix = dm.evaluate(y_true, y_score).confusion_matrix()
    np.testing.assert_array_equal(matrix.mean, sk.confusion_matrix(y_true, np.array(y_score) >= 0.5))


def test_rows_of_the_confusion_matrix_add_up_to_all_rows():
    result, *_ = make_evaluation()
    matrix = result.confusion_matrix()
    assert matrix.mean.sum() == pytest.approx(300)
    assert all(entry.interval().low <= entry.mean() <= entry.interval().high for row in matrix.entries for entry in row)


def test_classes_with_few_labels_are_marked():
    result, *_ = make_evaluation(n=120)
    table = result.per_class()
    few = {record["class"] for record in table.to_records() if record["few_labels"]}
    assert few == {name for name, n in zip(CLASSES, result.data.label_counts, strict=True) if n < 20}
    assert few
    assert "* fewer than 20 labels" in str(table)
    assert set(table.to_frame("pandas").columns) >= {"class", "metric", "mean", "low", "high"}


def test_plots_draw_every_class_and_entry():
    result, *_ = make_evaluation()
    ax = result.per_class().plot("recall")
    assert [text.get_text() for text in ax.get_yticklabels()] == list(CLASSES)
    ax = result.confusion_matrix().plot()
    assert len(ax.texts) == 2 * 9


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("recall", "recall_macro"),
        ("F1", "f1_macro"),
        ("f1-weighted", "f1_weighted"),
        ("roc_auc", "roc_auc_ovr"),
        ("kappa", "cohen_kappa"),
        ("Matthews_corrcoef", "mcc"),
        ("top_k_accuracy", "top_k_accuracy(2)"),
        ("top_k_accuracy_score(k=3)", "top_k_accuracy(3)"),
        ("zero_one_loss", "zero_one"),
        ("balanced_accuracy_score", "balanced_accuracy"),
        ("recall[ dog ]", "recall[dog]"),
        ("confusion[cat, dog]", "confusion[cat,dog]"),
        ("fbeta(2)_macro", "fbeta(2)_macro"),
    ],
)
def test_names_are_read_as_in_scikit_learn(text, name):
    assert class_metric_from_text(text, CLASSES).name == name


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("recal", "unknown metric 'recal'"),
        ("recall[bird]", "unknown class 'bird'"),
        ("average_precision", "Name the class that is positive, such as 'average_precision\\[cat\\]'"),
        ("specificity_micro", "no micro average"),
        ("roc_auc_macro", "only metrics of the confusion matrix have averages"),
        ("top_k_accuracy(0)", "at least 1"),
        ("confusion[cat]", "Name label and prediction"),
        (["f1", "f1_macro"], "asked for twice"),
        ([], "none given"),
        ([3], "is no metric of several classes"),
    ],
)
def test_unknown_metrics_get_one_clear_error(metrics, message):
    with pytest.raises(dm.InputError, match=message):
        class_metrics_from(metrics, CLASSES)


def test_formula_of_the_confusion_matrix_equals_its_value():
    _, label, score = make_evaluation(fraction=0.0)
    formula = dm.metrics.MatrixMetric(name="fish as cat", formula=lambda c: c[2, 0] / c[2].sum(axis=0), smooth=True)
    found = dm.evaluate([CLASSES[k] for k in label], dict(zip(CLASSES, score.T, strict=True)), metrics=formula)
    matrix = sk.confusion_matrix(label, score.argmax(axis=1))
    assert found["fish as cat"].mean() == pytest.approx(matrix[2, 0] / matrix[2].sum(), abs=1e-12)
    partly, *_ = make_evaluation()
    expected = partly.confusion_matrix().entries[2][0].mean()
    count = dm.metrics.MatrixMetric(name="count", formula=lambda c: c[2, 0], smooth=True)
    (bound,) = [count.bind(partly.data, np.nan)]
    from darkmetrics.methods.classes import class_distributions

    (distribution,) = class_distributions(partly.method, [bound], partly.posterior, partly.data.missing_counts)
    assert distribution.mean() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_classes_break_ties_as_scikit_learn(k):
    rng = np.random.default_rng(k)
    score = rng.integers(0, 3, (200, 5)) / 2.0
    label = rng.integers(0, 5, 200)
    metric = class_metrics_from(f"top_k_accuracy({k})", range(5))[0]
    from class_problems import set_of

    rows = set_of(score, label, score.argmax(axis=1))
    assert metric.value(rows.data) == pytest.approx(
        sk.top_k_accuracy_score(label, score, k=k, labels=range(5)), abs=1e-12
    )
