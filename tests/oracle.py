"""Brute force: every metric written out from its definition, on every labeling of the missing rows.

Slow and plain on purpose, and it imports nothing of the library: what the tests expect comes from here. Definitions
take `y` with one complete labeling per row (labelings x rows of 0 and 1) and know rows, never cells. `SKLEARN` holds
scikit-learn's own functions, one labeling at a time; a test ties the definitions to them.
"""

import ast
import math
import warnings
from collections.abc import Callable
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

import numpy as np
import sklearn.metrics

Definition = Callable[[Any, Any, Any, Any], Any]

# Values closer than this are one atom: far above rounding (1e-15), far below the gaps of the problems drawn (1e-7).
ATOM = 1e-11


def _ratio(numerator, denominator):
    """The quotient, nan where the denominator is zero (whatever the numerator is)."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    result = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def confusion(formula) -> Definition:
    """The metric that is a formula of (weighted) true and false positives and negatives."""

    def definition(y, score, decision, weight):
        # Each count adds up its own rows: an empty class is exactly zero, also when weights are not whole numbers.
        tp = (y * decision * weight).sum(axis=1)
        fp = ((1 - y) * decision * weight).sum(axis=1)
        fn = (y * (1 - decision) * weight).sum(axis=1)
        tn = ((1 - y) * (1 - decision) * weight).sum(axis=1)
        return formula(tp, fp, fn, tn)

    return definition


def _fbeta(beta):
    b2 = beta**2
    return confusion(lambda tp, fp, fn, tn: _ratio((1 + b2) * tp, (1 + b2) * tp + b2 * fn + fp))


def _expected_cost(c_fp=1.0, c_fn=1.0):
    return confusion(lambda tp, fp, fn, tn: (c_fp * fp + c_fn * fn) / (tp + fp + fn + tn))


def _balanced_accuracy(tp, fp, fn, tn):
    both = np.stack([_ratio(tp, tp + fn), _ratio(tn, tn + fp)])
    present = ~np.isnan(both)
    return _ratio(np.where(present, both, 0.0).sum(axis=0), present.sum(axis=0))


def _mcc(tp, fp, fn, tn):
    return _ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def _cohen_kappa(tp, fp, fn, tn):
    n = tp + fp + fn + tn
    by_chance = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
    # Both raters naming one and the same class: exact zeros decide, not the rounding of 1 - 1.
    one_class = ((tp + fp == 0) & (tp + fn == 0)) | ((fn + tn == 0) & (fp + tn == 0))
    return _ratio((tp + tn) / n - by_chance, np.where(one_class, 0.0, 1 - by_chance))


def _roc_auc(ties="half", scale=1.0, shift=0.0) -> Definition:
    tie = {"half": 0.5, "full": 1.0}[ties]

    def definition(y, score, decision, weight):
        """Weight of the pairs (positive i, negative j) in the right order, over the weight of all such pairs."""
        worth = 1.0 * (score[:, None] > score[None, :]) + tie * (score[:, None] == score[None, :])
        right = (((y * weight) @ worth) * ((1 - y) * weight)).sum(axis=1)
        return shift + scale * _ratio(right, (y @ weight) * ((1 - y) @ weight))

    return definition


def _average_precision(y, score, decision, weight):
    """Sum over thresholds, from the highest, of the recall gained times the precision reached."""
    positives = y @ weight
    total, before = np.zeros(len(y)), np.zeros(len(y))
    for threshold in sorted(set(score.tolist()), reverse=True):
        taken = weight * (score >= threshold)
        found = y @ taken
        if taken.sum() > 0:
            total += (found - before) * found / taken.sum()
        before = found
    return _ratio(total, positives)


def _size_of_top(k, weight):
    """A whole number is a count; a fraction of the rows is rounded to whole rows (halves up, at least one).

    Unequal weights have no smallest unit, so a fraction of them is not rounded.
    """
    if isinstance(k, int):
        return float(k)
    counting = weight[weight > 0.0]
    if np.all(counting == counting[:1]):
        return float(counting[:1].sum()) * max(1.0, math.floor(k * len(counting) + 0.5))
    return k * weight.sum()


def _positives_in_top(y, score, weight, k):
    """Positive weight among the k highest scores; of the rows tied at the cut, the share that fits."""
    top, room = np.zeros(len(y)), k
    for value in sorted(set(score.tolist()), reverse=True):
        tied = weight * (score == value)
        if tied.sum() > 0:
            share = min(1.0, room / tied.sum())
            top += share * (y @ tied)
            room -= share * tied.sum()
    return top


def positives_in_top_by_permutation(y, score, k):
    """Mean number of positives among the first k rows over all ways to break ties; unit weights, few rows."""
    orders = [order for order in permutations(range(len(score))) if _falling(score, order)]
    return sum(sum(y[i] for i in order[:k]) for order in orders) / len(orders)


def _falling(score, order):
    return all(score[a] >= score[b] for a, b in pairwise(order))


def _precision_at_k(k) -> Definition:
    def definition(y, score, decision, weight):
        size = _size_of_top(k, weight)
        return _positives_in_top(y, score, weight, size) / size

    return definition


def _recall_at_k(k) -> Definition:
    def definition(y, score, decision, weight):
        return _ratio(_positives_in_top(y, score, weight, _size_of_top(k, weight)), y @ weight)

    return definition


def _lift_at_k(k) -> Definition:
    def definition(y, score, decision, weight):
        """Precision among the k highest scores over the precision of rows drawn at random."""
        n = weight.sum()
        return _ratio(_precision_at_k(k)(y, score, decision, weight) * n, y @ weight)

    return definition


def mean_of_loss(loss) -> Definition:
    """The weighted mean of a per-row loss(y, score)."""

    def definition(y, score, decision, weight):
        return (loss(y, score) * weight).sum(axis=1) / weight.sum()

    return definition


def _log_loss(y, score):
    eps = np.finfo(float).eps
    clipped = np.clip(score, eps, 1 - eps)
    return -(y * np.log(clipped) + (1 - y) * np.log(1 - clipped))


DEFINITIONS: dict[str, Definition] = {
    "accuracy": confusion(lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn)),
    "precision": confusion(lambda tp, fp, fn, tn: _ratio(tp, tp + fp)),
    "recall": confusion(lambda tp, fp, fn, tn: _ratio(tp, tp + fn)),
    "specificity": confusion(lambda tp, fp, fn, tn: _ratio(tn, tn + fp)),
    "npv": confusion(lambda tp, fp, fn, tn: _ratio(tn, tn + fn)),
    "fpr": confusion(lambda tp, fp, fn, tn: _ratio(fp, fp + tn)),
    "fnr": confusion(lambda tp, fp, fn, tn: _ratio(fn, fn + tp)),
    "f1": confusion(lambda tp, fp, fn, tn: _ratio(2 * tp, 2 * tp + fp + fn)),
    "balanced_accuracy": confusion(_balanced_accuracy),
    "mcc": confusion(_mcc),
    "cohen_kappa": confusion(_cohen_kappa),
    "jaccard": confusion(lambda tp, fp, fn, tn: _ratio(tp, tp + fp + fn)),
    "g_mean": confusion(lambda tp, fp, fn, tn: np.sqrt(_ratio(tp, tp + fn) * _ratio(tn, tn + fp))),
    "youden_j": confusion(lambda tp, fp, fn, tn: _ratio(tp, tp + fn) + _ratio(tn, tn + fp) - 1),
    "markedness": confusion(lambda tp, fp, fn, tn: _ratio(tp, tp + fp) + _ratio(tn, tn + fn) - 1),
    "prevalence": confusion(lambda tp, fp, fn, tn: (tp + fn) / (tp + fp + fn + tn)),
    "predicted_to_actual": confusion(lambda tp, fp, fn, tn: _ratio(tp + fp, tp + fn)),
    "average_precision": _average_precision,
    "brier": mean_of_loss(lambda y, score: (y - score) ** 2),
    "log_loss": mean_of_loss(_log_loss),
}

FAMILIES: dict[str, Callable[..., Definition]] = {
    "fbeta": _fbeta,
    "expected_cost": _expected_cost,
    "roc_auc": _roc_auc,
    "gini": lambda ties="half": _roc_auc(ties, scale=2.0, shift=-1.0),
    "precision_at_k": _precision_at_k,
    "recall_at_k": _recall_at_k,
    "lift_at_k": _lift_at_k,
}

# The value of 0/0 under zero_division="warn": scikit-learn's where it has the metric (for the negative class where it
# has the metric of the positive one); for the rest a share of nothing is 0, and what is no share has no value.
UNDEFINED_AS: dict[str, float] = dict.fromkeys(
    ("precision", "recall", "specificity", "npv", "fpr", "fnr", "f1", "fbeta", "mcc", "jaccard", "average_precision"),
    0.0,
) | {"recall_at_k": 0.0}


def definition_of(text: str) -> Definition:
    """The definition that a name, or a name with arguments such as "fbeta(2)", stands for."""
    name, _, rest = text.partition("(")
    if name in DEFINITIONS:
        return DEFINITIONS[name]
    if not rest:
        return FAMILIES[name]()
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    positional = [ast.literal_eval(argument) for argument in call.args]
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return FAMILIES[name](*positional, **named)


def undefined_as(text: str) -> float:
    return UNDEFINED_AS.get(text.partition("(")[0], math.nan)


# ------------------------------------------------------------------------------------------- scikit-learn's word

SKLEARN: dict[str, Callable[..., float]] = {
    "accuracy": lambda y, s, d, w: sklearn.metrics.accuracy_score(y, d, sample_weight=w),
    "precision": lambda y, s, d, w: sklearn.metrics.precision_score(y, d, sample_weight=w),
    "recall": lambda y, s, d, w: sklearn.metrics.recall_score(y, d, sample_weight=w),
    "specificity": lambda y, s, d, w: sklearn.metrics.recall_score(y, d, sample_weight=w, pos_label=0),
    "npv": lambda y, s, d, w: sklearn.metrics.precision_score(y, d, sample_weight=w, pos_label=0),
    "f1": lambda y, s, d, w: sklearn.metrics.f1_score(y, d, sample_weight=w),
    "fbeta(2)": lambda y, s, d, w: sklearn.metrics.fbeta_score(y, d, beta=2, sample_weight=w),
    "fbeta(0.5)": lambda y, s, d, w: sklearn.metrics.fbeta_score(y, d, beta=0.5, sample_weight=w),
    "balanced_accuracy": lambda y, s, d, w: sklearn.metrics.balanced_accuracy_score(y, d, sample_weight=w),
    "mcc": lambda y, s, d, w: sklearn.metrics.matthews_corrcoef(y, d, sample_weight=w),
    "cohen_kappa": lambda y, s, d, w: sklearn.metrics.cohen_kappa_score(y, d, sample_weight=w),
    "jaccard": lambda y, s, d, w: sklearn.metrics.jaccard_score(y, d, sample_weight=w),
    "roc_auc": lambda y, s, d, w: sklearn.metrics.roc_auc_score(y, s, sample_weight=w),
    "average_precision": lambda y, s, d, w: sklearn.metrics.average_precision_score(y, s, sample_weight=w),
    "brier": lambda y, s, d, w: sklearn.metrics.brier_score_loss(y, s, sample_weight=w, pos_label=1),
    "log_loss": lambda y, s, d, w: sklearn.metrics.log_loss(y, s, sample_weight=w, labels=[0, 1]),
}


def sklearn_value(name: str, y, score, decision, weight) -> float:
    """scikit-learn's value; it warns on one-class data, which is what is asked for here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(SKLEARN[name](np.asarray(y, int), score, np.asarray(decision, int), weight))


# ------------------------------------------------------------------------------------------------------ the law


class Problem(NamedTuple):
    """Rows: label (nan: missing), score, decision (0 or 1), weight; and a chance for each missing row, in order."""

    y: Any
    score: Any
    decision: Any
    weight: Any
    p: Any

    @property
    def missing(self):
        return np.flatnonzero(np.isnan(self.y))


class Law(NamedTuple):
    """Distinct values in rising order, their probabilities, the chance of 0/0, and the extremes over all labelings."""

    values: Any
    masses: Any
    undefined: float
    low: float
    high: float

    def cdf(self, t):
        return np.concatenate([[0.0], np.cumsum(self.masses)])[np.searchsorted(self.values, t, side="right")]

    def mean(self) -> float:
        return math.fsum(self.values * self.masses) if len(self.values) else math.nan

    def std(self) -> float:
        mean = self.mean()
        return math.sqrt(math.fsum((self.values - mean) ** 2 * self.masses)) if len(self.values) else math.nan


def labelings(problem: Problem):
    """All 2^m complete labelings (rows of y), and the probability of each."""
    missing = problem.missing
    choices = np.array(list(product((0, 1), repeat=len(missing)))).reshape(2 ** len(missing), len(missing))
    y = np.tile(np.where(np.isnan(problem.y), 0.0, problem.y), (len(choices), 1))
    y[:, missing] = choices
    return y, np.prod(np.where(choices == 1, problem.p, 1.0 - problem.p), axis=1)


def distribution(definition: Definition, problem: Problem, zero_division: float = math.nan) -> Law:
    """The law of a metric by brute force; a 0/0 counts as `zero_division`, and is left out when that is nan."""
    y, probability = labelings(problem)
    values = definition(y, problem.score, problem.decision, problem.weight)
    return law_of_values(values, probability, zero_division)


def law_of_values(values, probability, zero_division: float = math.nan) -> Law:
    """The law that gives each value its probability; nan is 0/0."""
    nan = np.isnan(values)
    undefined = math.fsum(probability[nan])
    values = np.where(nan, zero_division, values)
    kept = ~np.isnan(values)
    if not kept.any():
        return Law(np.empty(0), np.empty(0), undefined, math.nan, math.nan)
    low, high = float(values[kept].min()), float(values[kept].max())
    kept &= probability > 0.0
    order = np.argsort(values[kept])
    atoms: list[list[float]] = []
    for value, mass in zip(values[kept][order].tolist(), probability[kept][order].tolist(), strict=True):
        if atoms and value - atoms[-1][0] <= ATOM * max(1.0, abs(value)):
            atoms[-1] = [value, atoms[-1][1] + mass]
        else:
            atoms.append([value, mass])
    total = math.fsum(mass for _, mass in atoms)
    table = np.array(atoms).reshape(-1, 2)
    return Law(table[:, 0], table[:, 1] / total, undefined, low, high)


def kolmogorov(cdf, sample, beside=1e-9):
    """Return the distance of a cdf and the empirical cdf of a sorted sample, on both sides of every atom.

    Sampled values closer together than `beside` are one atom: they differ by rounding.
    """
    start = np.flatnonzero(np.concatenate(([True], np.diff(sample) > beside)))
    end = np.append(start[1:], sample.size)
    at = np.abs(cdf(sample[end - 1] + beside) - end / sample.size)
    before = np.abs(cdf(sample[start] - beside) - start / sample.size)
    return float(max(at.max(), before.max()))


def count_pmf(p):
    """The law of the number of successes, one trial at a time."""
    pmf = np.ones(1)
    for chance in p:
        pmf = np.append(pmf * (1 - chance), 0.0) + np.append(0.0, pmf * chance)
    return pmf


def count_and_sum_pmf(steps, p):
    """The joint law of the number of successes and of the sum of their steps, which are whole numbers: a table."""
    table = np.zeros((len(p) + 1, int(np.sum(steps)) + 1))
    table[0, 0] = 1.0
    for step, chance in zip(np.asarray(steps).tolist(), np.asarray(p).tolist(), strict=True):
        moved = np.zeros_like(table)
        moved[1:, step:] = table[:-1, : table.shape[1] - step]
        table = (1.0 - chance) * table + chance * moved
    return table


def law_by_counts(formula, problem: Problem) -> Law:
    """The law of formula(tp, fp, fn, tn) for more rows than labelings can be listed; unit weights.

    True positives and false negatives among the missing rows are independent sums, so their joint law is a table.
    """
    decided = problem.decision[problem.missing] == 1
    first, second = count_pmf(problem.p[decided]), count_pmf(problem.p[~decided])
    tp = np.sum((problem.y == 1) & (problem.decision == 1)) + np.arange(len(first))[:, None]
    fn = np.sum((problem.y == 1) & (problem.decision == 0)) + np.arange(len(second))[None, :]
    yes, no = problem.decision.sum(), (1 - problem.decision).sum()
    values = formula(*np.broadcast_arrays(tp + 0.0, yes - tp + 0.0, fn + 0.0, no - fn + 0.0))
    return law_of_values(values.ravel(), np.multiply.outer(first, second).ravel())
