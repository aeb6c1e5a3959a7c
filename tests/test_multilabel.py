"""Several labels per row: brute force over all labels, scikit-learn, and errors."""

from itertools import product

import numpy as np
import pytest
import sklearn.metrics as sk

import darkmetrics as dm

NAMES = ("f1_micro", "precision_micro", "hamming", "subset_accuracy", "jaccard_samples", "recall_macro", "recall[1]")


def make_table(seed, n, n_labels, fraction):
    rng = np.random.default_rng(seed)
    y_score = np.round(rng.random((n, n_labels)), 2)
    complete = (rng.random((n, n_labels)) < 0.2 + 0.6 * y_score).astype(float)
    complete[:2] = [[1.0] * n_labels, [0.0] * n_labels]
    y_true = complete.copy()
    y_true[2:][rng.random((n - 2, n_labels)) < fraction] = np.nan
    return y_true, y_score, complete


def values_of(y, y_score):
    """Return scikit-learn's values of complete labels."""
    pred = (y_score >= 0.5).astype(int)
    y = y.astype(int)
    return {
        "f1_micro": sk.f1_score(y, pred, average="micro", zero_division=0),
        "precision_micro": sk.precision_score(y, pred, average="micro", zero_division=0),
        "hamming": sk.hamming_loss(y, pred),
        "subset_accuracy": sk.accuracy_score(y, pred),
        "jaccard_samples": sk.jaccard_score(y, pred, average="samples", zero_division=0),
        "recall_macro": sk.recall_score(y, pred, average="macro", zero_division=0),
        "recall[1]": sk.recall_score(y[:, 1], pred[:, 1], zero_division=0),
    }


def test_values_equal_scikit_learn_when_nothing_is_missing():
    _, y_score, complete = make_table(1, 60, 4, 0.0)
    result = dm.evaluate(complete, y_score, metrics=[*NAMES, "roc_auc_macro"])
    expected = values_of(complete, y_score) | {"roc_auc_macro": sk.roc_auc_score(complete, y_score)}
    for name, value in expected.items():
        assert result[name].mean() == pytest.approx(value, abs=1e-12), name
        assert result[name].method == "exact", name
        assert result.labeled_only[name] == pytest.approx(value, abs=1e-12), name


def test_distributions_equal_brute_force():
    y_true, y_score, _ = make_table(3, 8, 3, 0.45)
    result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(0.3), metrics=list(NAMES))
    at = np.argwhere(np.isnan(y_true))
    assert 5 <= len(at) <= 11
    values, mass = [], []
    for labels in product((0.0, 1.0), repeat=len(at)):
        y = y_true.copy()
        y[tuple(at.T)] = labels
        values.append(values_of(y, y_score))
        mass.append(0.3 ** sum(labels) * 0.7 ** (len(labels) - sum(labels)))
    p = np.array(mass)
    for name in NAMES:
        x, distribution = np.array([value[name] for value in values]), result[name]
        drawn = {"monte carlo": 0.02, "exact": 1e-12}[distribution.method]
        assert distribution.mean() == pytest.approx(p @ x, abs=drawn * x.std() + 1e-12), name
        points = np.unique(np.round(x, 9)) + 1e-7
        np.testing.assert_allclose(distribution.cdf(points), (p * (x <= points[:, None])).sum(axis=1), atol=drawn)
        assert distribution.support().low <= x.min() + 1e-12
        assert distribution.support().high >= x.max() - 1e-12
    assert {name for name in NAMES if result[name].method != "exact"} == {"jaccard_samples", "recall_macro"}


def test_jaccard_of_many_rows_equals_drawn_labels():
    y_true, y_score, _ = make_table(4, 1500, 3, 0.4)
    result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(0.3), metrics="jaccard_samples")
    rng, pred = np.random.default_rng(0), y_score >= 0.5
    values = []
    for _ in range(4_000):
        y = np.where(np.isnan(y_true), rng.random(y_true.shape) < 0.3, y_true) > 0.5
        values.append(((y & pred).sum(axis=1) / np.maximum((y | pred).sum(axis=1), 1)).mean())
    distribution = result["jaccard_samples"]
    assert distribution.method == "near exact"
    levels = np.linspace(0.02, 0.98, 49)
    observed = np.searchsorted(np.sort(values), distribution.ppf(levels)) / len(values)
    np.testing.assert_allclose(observed, levels, atol=0.035)  # 4,000 draws alone are off by 0.03 in one of 1,000 cases


def test_states_that_labels_of_a_row_are_independent():
    y_true, y_score, _ = make_table(5, 80, 3, 0.3)
    result = dm.evaluate(y_true, y_score, missingness="random", metrics=["f1", "hamming"])
    assert "labels of one row are independent given the scores" in str(result)
    assert list(result) == ["f1_macro", "hamming"]
    assert len(result.per_class().to_records()) == 3
    assert result.to_dict()["labels"].keys() == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_score": [[0.5], [0.4]]}, "y_score: 1 column for 2 labels"),
        ({"metrics": "recall_weighted"}, "use a macro or micro average"),
        ({"metrics": "recall[x]"}, "'x' is no label"),
        ({"sample_weight": [1, 2]}, "sample_weight: not available"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    given = {"y_true": [[1, 0], [0, None]], "y_score": [[0.5, 0.1], [0.4, 0.9]], **arguments}
    with pytest.raises(dm.InputError, match="(?i)" + message):
        dm.evaluate(**given)
