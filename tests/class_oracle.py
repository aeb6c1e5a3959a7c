"""Brute force for several classes: every metric from its definition, for label assignments (n x rows of class numbers).

It imports nothing of the library. `SKLEARN` has scikit-learn's own functions; a test ties the definitions to them.
"""

import warnings
from itertools import combinations, product

import numpy as np
import sklearn.metrics as sk


def _ratio(numerator, denominator):
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    result = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def confusion_matrix(y, n_classes, decision, weight):
    """Weight of the rows of each label and prediction: label, prediction, assignment."""
    return np.array(
        [[((y == k) * (decision == c) * weight).sum(axis=1) for c in range(n_classes)] for k in range(n_classes)]
    )


def _counts(matrix):
    tp = np.array([matrix[k, k] for k in range(len(matrix))])
    fp, fn = matrix.sum(axis=0) - tp, matrix.sum(axis=1) - tp
    return tp, fp, fn, matrix.sum(axis=(0, 1)) - tp - fp - fn


FORMULAS = {
    "precision": lambda tp, fp, fn, tn: _ratio(tp, tp + fp),
    "recall": lambda tp, fp, fn, tn: _ratio(tp, tp + fn),
    "f1": lambda tp, fp, fn, tn: _ratio(2 * tp, 2 * tp + fp + fn),
    "jaccard": lambda tp, fp, fn, tn: _ratio(tp, tp + fp + fn),
    "fbeta(2)": lambda tp, fp, fn, tn: _ratio(5 * tp, 5 * tp + fp + 4 * fn),
}


def _average(formula, kind, fill):
    def definition(y, score, decision, weight):
        matrix = confusion_matrix(y, score.shape[1], decision, weight)
        counts = _counts(matrix)
        value = formula(*counts)
        actual = matrix.sum(axis=1)
        is_listed = (actual > 0) | (matrix.sum(axis=0) > 0)
        undefined = (np.isnan(value) & is_listed & ((actual > 0) | (kind == "macro"))).any(axis=0)
        value = np.where(np.isnan(value), fill, value)
        size = np.where(is_listed & ~np.isnan(value), actual if kind == "weighted" else 1.0, 0.0)
        return _ratio((np.where(size > 0, value, 0) * size).sum(axis=0), size.sum(axis=0)), undefined

    return definition


def _simple(function):
    def definition(y, score, decision, weight):
        value = function(y, score, decision, weight)
        return value, np.isnan(value)

    return definition


def _balanced_accuracy(y, score, decision, weight):
    tp, _, fn, _ = _counts(confusion_matrix(y, score.shape[1], decision, weight))
    recall = _ratio(tp, tp + fn)
    present = ~np.isnan(recall)
    return np.where(present, recall, 0).sum(axis=0) / present.sum(axis=0)


def _mcc(y, score, decision, weight):
    matrix = confusion_matrix(y, score.shape[1], decision, weight)
    actual, predicted, n = matrix.sum(axis=1), matrix.sum(axis=0), matrix.sum(axis=(0, 1))
    correct = sum(matrix[k, k] for k in range(len(matrix)))
    covariance = correct * n - (actual * predicted).sum(axis=0)
    one_class = (actual > 0).sum(axis=0) == 1
    one_prediction = (predicted > 0).sum(axis=0) == 1
    product_ = (n**2 - (actual**2).sum(axis=0)) * (n**2 - (predicted**2).sum(axis=0))
    return _ratio(covariance, np.where(one_class | one_prediction, 0.0, np.sqrt(product_)))


def _kappa(power):
    def definition(y, score, decision, weight):
        matrix = confusion_matrix(y, score.shape[1], decision, weight)
        distance = np.abs(np.subtract.outer(*[np.arange(len(matrix))] * 2)).astype(float)
        cost = (distance > 0) * 1.0 if power == 0 else distance**power
        expected = np.einsum("k...,c...->kc...", matrix.sum(axis=1), matrix.sum(axis=0)) / matrix.sum(axis=(0, 1))
        return 1 - _ratio(np.einsum("kc,kc...->...", cost, matrix), np.einsum("kc,kc...->...", cost, expected))

    return definition


def _mean(loss):
    def definition(y, score, decision, weight):
        table = loss(score, decision)
        return (np.take_along_axis(table[None], y[..., None], axis=2)[..., 0] * weight).sum(axis=1) / weight.sum()

    return definition


def _top(k):
    def loss(score, decision):
        result = np.zeros(score.shape)
        np.put_along_axis(result, np.argsort(score, axis=1, kind="mergesort")[:, ::-1][:, :k], 1.0, axis=1)
        return result

    return _mean(loss)


def _correct(score, decision):
    return (decision[:, None] == np.arange(score.shape[1])) * 1.0


def _brier(score, decision):
    one = np.eye(score.shape[1])
    return ((one[None] - score[:, None]) ** 2).sum(axis=2) * (0.5 if score.shape[1] == 2 else 1.0)


def _area(positive, negative, score):
    """ROC-AUC for weights of positive and negative rows (assignments x rows)."""
    worth = 1.0 * (score[:, None] > score) + 0.5 * (score[:, None] == score)
    return _ratio(((positive @ worth) * negative).sum(axis=1), positive.sum(axis=1) * negative.sum(axis=1))


def _roc_auc_ovr(kind):
    def definition(y, score, decision, weight):
        k = score.shape[1]
        areas = np.array([_area((y == a) * weight, (y != a) * weight, score[:, a]) for a in range(k)])
        if kind == "macro":
            return areas.mean(axis=0)
        size = np.array([((y == a) * weight).sum(axis=1) for a in range(k)])
        return (np.where(size > 0, areas, 0) * size).sum(axis=0) / size.sum(axis=0)

    return definition


def _roc_auc_ovo(kind):
    def definition(y, score, decision, weight):
        total, size = np.zeros(len(y)), np.zeros(len(y))
        for a, b in combinations(range(score.shape[1]), 2):
            in_a, in_b = (y == a) * weight, (y == b) * weight
            both = (in_a.sum(axis=1) > 0) & (in_b.sum(axis=1) > 0)
            area = (_area(in_a, in_b, score[:, a]) + _area(in_b, in_a, score[:, b])) / 2
            pair = np.where(both, 1.0 if kind == "macro" else in_a.sum(axis=1) + in_b.sum(axis=1), 0.0)
            total, size = total + np.where(both, area, 0.0) * pair, size + pair
        return _ratio(total, size)

    return definition


COST = np.array([[0.0, 1.0, 5.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0, 1.0], [4.0, 2.0, 0.0, 1.0, 1.0]] + [[2.0] * 5] * 2)


def definitions(fill=0.0):
    """Definitions by name: y, score, decision, weight -> value (NaN: 0/0) and whether a term is 0/0."""
    averages = {
        f"{name}_{kind}": _average(formula, kind, fill)
        for (name, formula), kind in product(FORMULAS.items(), ("macro", "weighted"))
    }
    return averages | {
        name: _simple(function)
        for name, function in {
            "accuracy": _mean(_correct),
            "f1_micro": _mean(_correct),
            "precision_micro": _mean(_correct),
            "jaccard_micro": lambda *rows: _mean(_correct)(*rows) / (2 - _mean(_correct)(*rows)),
            "zero_one": _mean(lambda score, decision: 1 - _correct(score, decision)),
            "balanced_accuracy": _balanced_accuracy,
            "mcc": _mcc,
            "cohen_kappa": _kappa(0),
            "cohen_kappa_linear": _kappa(1),
            "cohen_kappa_quadratic": _kappa(2),
            "top_k_accuracy(2)": _top(2),
            "log_loss": _mean(
                lambda score, decision: -np.log(np.clip(score, np.finfo(float).eps, 1 - np.finfo(float).eps))
            ),
            "brier": _mean(_brier),
            "expected_cost": _mean(lambda score, decision: COST.T[decision][:, : score.shape[1]]),
            "roc_auc_ovr": _roc_auc_ovr("macro"),
            "roc_auc_ovr_weighted": _roc_auc_ovr("weighted"),
            "roc_auc_ovo": _roc_auc_ovo("macro"),
            "roc_auc_ovo_weighted": _roc_auc_ovo("weighted"),
        }.items()
    }


def _averaged(function, kind, **settings):
    def call(y, score, decision, weight):
        return function(y, decision, average=kind, sample_weight=weight, zero_division=0, **settings)

    return call


def _scored(function, **settings):
    def call(y, score, decision, weight):
        return function(y, score, sample_weight=weight, labels=np.arange(score.shape[1]), **settings)

    return call


def _decided(function, **settings):
    return lambda y, score, decision, weight: function(y, decision, sample_weight=weight, **settings)


def _kappa_of(weights):
    def call(y, score, decision, weight):
        labels = np.arange(score.shape[1])
        return sk.cohen_kappa_score(y, decision, labels=labels, weights=weights, sample_weight=weight)

    return call


def _ovo(kind):
    return lambda y, score, decision, weight: sk.roc_auc_score(
        y, score, multi_class="ovo", average=kind, labels=np.arange(score.shape[1])
    )


FUNCTIONS = {
    "precision": (sk.precision_score, {}),
    "recall": (sk.recall_score, {}),
    "f1": (sk.f1_score, {}),
    "jaccard": (sk.jaccard_score, {}),
    "fbeta(2)": (sk.fbeta_score, {"beta": 2}),
}
# Each takes y, score, decision and weight of complete rows; one against one takes no weights.
SKLEARN = {
    f"{name}_{kind}": _averaged(function, kind, **settings)
    for (name, (function, settings)), kind in product(FUNCTIONS.items(), ("macro", "weighted", "micro"))
} | {
    "accuracy": _decided(sk.accuracy_score),
    "zero_one": _decided(sk.zero_one_loss),
    "hamming": _decided(sk.hamming_loss),
    "balanced_accuracy": _decided(sk.balanced_accuracy_score),
    "mcc": _decided(sk.matthews_corrcoef),
    "cohen_kappa": _kappa_of(None),
    "cohen_kappa_linear": _kappa_of("linear"),
    "cohen_kappa_quadratic": _kappa_of("quadratic"),
    "top_k_accuracy(2)": _scored(sk.top_k_accuracy_score, k=2),
    "log_loss": _scored(sk.log_loss),
    "brier": _scored(sk.brier_score_loss),
    "roc_auc_ovr": _scored(sk.roc_auc_score, multi_class="ovr"),
    "roc_auc_ovr_weighted": _scored(sk.roc_auc_score, multi_class="ovr", average="weighted"),
    "roc_auc_ovo": _ovo("macro"),
    "roc_auc_ovo_weighted": _ovo("weighted"),
}


def sklearn_value(name, y, score, decision, weight):
    """Return scikit-learn's value of a metric for complete labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SKLEARN[name](y, score, decision, weight)


def all_assignments(n_missing, n_classes):
    """Return all label assignments (n x n_missing)."""
    return np.array(list(product(range(n_classes), repeat=n_missing)), dtype=np.int64).reshape(-1, n_missing)


def complete(label, assignments):
    """Return complete labels (assignments x rows); -1 is missing in `label`."""
    y = np.repeat(label[None], len(assignments), axis=0)
    y[:, label < 0] = assignments
    return y
