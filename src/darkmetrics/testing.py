"""Checks for metrics, mechanisms and methods of your own, to call in your tests.

Each check compares with brute force over all label assignments of small sets, raises an AssertionError that names the
rule that is broken, and returns nothing if there is none.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import binom

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.enumeration import list_assignments
from darkmetrics.constraints import checked
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.problem import Problem
from darkmetrics.methods import method_from
from darkmetrics.methods.base import MethodLike
from darkmetrics.metrics import metrics_from
from darkmetrics.metrics.metric import MetricLike
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.choice import mechanism_from
from darkmetrics.posterior import Posterior

# Values that differ by less are equal, relative to their size.
_SAME = 1e-9
# Largest difference of a cdf from brute force that a method may have.
_MAX_CDF_ERROR = 0.02


@checked
def check_metric(metric: MetricLike, *, rng: int = 0) -> None:
    """Check that a metric agrees with itself on every label assignment of small sets.

    The bound metric must return, for each assignment of the missing labels, the value that the metric has on the
    completed rows. Values must lie in `range`, and between the bounds of the functional.

    Parameters
    ----------
    metric : str, Metric or callable
        What `metrics=` accepts.
    rng : int
        Seed of the sets.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.testing import check_metric
    >>> check_metric("f1")
    >>> wrong = dm.metrics.ConfusionMetric(
    ...     name="wrong", formula=lambda tp, fp, fn, tn: 2 * tp / (tp + fn), range=(0, 1)
    ... )
    >>> check_metric(wrong)
    Traceback (most recent call last):
    AssertionError: wrong: a value of ... is outside its range (0, 1). ...
    """
    record = metrics_from(metric)[0]
    for data in _small_sets(rng):
        functional = record.bind(data, np.nan)
        assignments = list_assignments(functional.missing)
        values = functional.values(assignments)
        for positives, value in zip(assignments, values.tolist(), strict=True):
            expected = record.value(_complete(data, positives))
            assert _equal(value, expected), (
                f"{record.name}: bind(...).values() is {value:.6g} where value() of the completed rows is "
                f"{expected:.6g}, at {positives.tolist()} positives per missing cell."
            )
        defined = values[~np.isnan(values)]
        low, high = record.range
        outside = defined[(defined < low - _SAME) | (defined > high + _SAME)]
        assert not outside.size, (
            f"{record.name}: a value of {outside[0]:.6g} is outside its range ({low:g}, {high:g}). Set range= to the "
            "smallest and largest value on any data."
        )
        bounds = functional.extremes
        beyond = defined[(defined < bounds.low - _SAME) | (defined > bounds.high + _SAME)]
        assert not beyond.size, (
            f"{record.name}: a value of {beyond[0]:.6g} is outside the bounds ({bounds.low:.6g}, {bounds.high:.6g}). "
            "If it has a direction, the direction is wrong."
        )


@checked
def check_mechanism(missingness: MissingnessLike, *, rng: int = 0) -> None:
    """Check that a mechanism returns a valid posterior and description for sets of many kinds.

    It says nothing about whether the mechanism is right: for that, simulate labels and count how often intervals cover.

    Parameters
    ----------
    missingness : str or Mechanism
        What `missingness=` accepts, without values per row.
    rng : int
        Seed of the sets.

    Examples
    --------
    >>> from darkmetrics.testing import check_mechanism
    >>> check_mechanism("by_score")
    """
    mechanism = mechanism_from(missingness)
    name = type(mechanism).__name__
    for data in _large_sets(rng):
        posterior, again = mechanism.posterior(data), mechanism.posterior(data)
        p, weight = posterior.probability, posterior.weight
        assert p.ndim == 2, f"{name}: probability has {p.ndim} dimensions. It must be draws x columns."
        assert weight.shape == (len(p),), f"{name}: weight must have one number for each of the {len(p)} draws."
        n_columns = posterior.on_all_cells.probability.shape[1]
        assert n_columns == data.missing_cells.size, (
            f"{name}: {n_columns} columns of probabilities for {data.missing_cells.size} missing cells."
        )
        assert np.isfinite(p).all(), f"{name}: probabilities that are not finite."
        assert p.min() >= 0.0, f"{name}: a probability of {p.min():.6g}. They must lie in [0, 1]."
        assert p.max() <= 1.0, f"{name}: a probability of {p.max():.6g}. They must lie in [0, 1]."
        assert weight.min() >= 0.0, f"{name}: a negative weight."
        assert abs(weight.sum() - 1.0) < 1e-6, f"{name}: weights sum to {weight.sum():.6g}. They must sum to 1."
        assert np.array_equal(p, again.probability), f"{name}: two fits of the same rows differ. Fix its seed."
        text = mechanism.describe(data, posterior)
        assert isinstance(text, str), f"{name}: describe() returned {type(text).__name__}. It must return text."
        assert text, f"{name}: describe() returned no text. It must state what is assumed."


@checked
def check_method(method: MethodLike, *, rng: int = 0) -> None:
    """Check that the distributions of a method agree with brute force over all label assignments of small sets.

    The cdf may differ by at most 0.02, and no probability may lie outside the bounds.

    Parameters
    ----------
    method : str or Method
        What `method=` accepts.
    rng : int
        Seed of the sets.

    Examples
    --------
    >>> from darkmetrics.testing import check_method
    >>> check_method("exact")
    >>> check_method("gaussian")
    Traceback (most recent call last):
    AssertionError: gaussian: the cdf of precision differs from brute force by ...
    """
    chosen, generator = method_from(method), np.random.default_rng(rng)
    for data in _small_sets(rng):
        p = generator.uniform(0.1, 0.9, data.missing_cells.size)
        problem = Problem(Posterior.single(p))
        for metric in metrics_from(("precision", "recall", "accuracy", "f1", "roc_auc")):
            functional = metric.bind(data, 0.0)
            distribution = chosen.distribution(functional, problem)
            values, probability = _brute_force(functional, p)
            levels = np.unique(values)
            levels = np.concatenate([levels, 0.5 * (levels[1:] + levels[:-1])])
            expected = np.array([probability[values <= level + _SAME].sum() for level in levels])
            error = float(np.abs(np.asarray(distribution.cdf(levels + _SAME)) - expected).max())
            assert error <= _MAX_CDF_ERROR, (
                f"{chosen.name}: the cdf of {metric.name} differs from brute force by {error:.3f} "
                f"({data.n_missing} missing rows). At most {_MAX_CDF_ERROR:g} is allowed."
            )
            low, high = distribution.support()
            assert low >= values.min() - _SAME, f"{chosen.name}: {metric.name} has a support below its smallest value."
            assert high <= values.max() + _SAME, f"{chosen.name}: {metric.name} has a support above its largest value."


def _brute_force(functional: Functional, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values of all label assignments and their probabilities."""
    assignments = list_assignments(functional.missing)
    values = functional.values(assignments)
    probability = np.prod(binom.pmf(assignments, functional.missing, p), axis=1)
    return np.where(np.isnan(values), functional.fill, values), np.asarray(probability)


def _equal(first: float, second: float) -> bool:
    if np.isnan(first) or np.isnan(second):
        return bool(np.isnan(first) and np.isnan(second))
    return bool(abs(first - second) <= _SAME * max(1.0, abs(first), abs(second)))


def _complete(data: EvaluationSet, positives: IntArray) -> EvaluationSet:
    """Return the rows with the missing labels filled in: positives per missing cell."""
    cells, at = data.cells, data.missing_cells
    counts = {name: getattr(cells, name).astype(np.int64) for name in ("positives", "negatives", "missing")}
    counts["positives"][at] += positives
    counts["negatives"][at] += cells.missing[at] - positives
    counts["missing"][:] = 0
    complete = Cells(cells.score, cells.decision, **counts, weight=cells.weight)
    return EvaluationSet.from_cells(complete, threshold=data.threshold, pos_label=data.pos_label)


def _small_sets(seed: int) -> Iterator[EvaluationSet]:
    """Yield sets with at most six missing rows: plain, tied, weighted, of one class, and nothing but missing rows."""
    rng = np.random.default_rng(seed)
    for kind in ("plain", "tied", "weighted", "one class", "no label"):
        n = 6 if kind == "no label" else 14
        y_score = rng.random(n).round(1 if kind == "tied" else 6)
        y = (rng.random(n) < y_score).astype(float)
        if kind == "one class":
            y[:] = 0.0
        y[rng.choice(n, n if kind == "no label" else 5, replace=False)] = np.nan
        weight = rng.uniform(0.5, 3.0, n).round(2) if kind == "weighted" else None
        yield EvaluationSet(y, y_score, sample_weight=weight)


def _large_sets(seed: int) -> Iterator[EvaluationSet]:
    """Yield sets to learn from: plain, rare positives, tied scores, scores that are no probabilities, few labels."""
    rng = np.random.default_rng(seed)
    for kind in ("plain", "rare", "tied", "log odds", "few labels"):
        y_score = rng.beta(1.0, 15.0 if kind == "rare" else 1.5, 1000).round(1 if kind == "tied" else 6)
        y = (rng.random(1000) < y_score).astype(float)
        y[rng.random(1000) < (0.95 if kind == "few labels" else 0.4)] = np.nan
        if kind == "log odds":
            yield EvaluationSet(y, 8.0 * y_score - 4.0, threshold=0.0)
        else:
            yield EvaluationSet(y, y_score)
