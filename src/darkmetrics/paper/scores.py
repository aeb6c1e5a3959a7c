"""Masks and scores of the paper's experiments: MCAR and MNAR masks, the PIT, and its distance to uniform."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.hypothesis_tests import ks_to_uniform, w1_to_uniform
from darkmetrics.argument_types import ArrayLike, Numbers, RngLike
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import MetricDistribution
from darkmetrics.exceptions import InputError
from darkmetrics.masks import MCAR, ByLabel, Mask
from darkmetrics.question import generator_from


def mcar_mask(y_true: ArrayLike, p_m: float, *, rng: RngLike = None) -> BoolArray:
    """Return which labels to mask completely at random (MCAR): a fraction `p_m` of the rows, to the nearest row.

    Parameters
    ----------
    y_true : array-like
        Labels 0 and 1, none of them missing.
    p_m : float
        Fraction of the labels to mask.
    rng : None, int or numpy Generator
        Source of randomness.

    Returns
    -------
    array of bool
        True where the label is masked.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> int(dm.paper.mcar_mask([0, 1] * 50, 0.3, rng=0).sum())
    30
    """
    return _masked(MCAR(_fraction(p_m, "p_m")), y_true, rng)


def mnar_mask(y_true: ArrayLike, p_m: float, eta: float, *, rng: RngLike = None) -> BoolArray:
    """Return which labels to mask because of their value (MNAR): a fraction `eta` of the masked rows is positive.

    If a class has too few rows, fewer rows than `p_m` are masked, at the same `eta` (`dm.masks.ByLabel` has the rule).

    Parameters
    ----------
    y_true : array-like
        Labels 0 and 1, none of them missing.
    p_m : float
        Fraction of the labels to mask.
    eta : float
        Fraction of positives among the masked labels.
    rng : None, int or numpy Generator
        Source of randomness.

    Returns
    -------
    array of bool
        True where the label is masked.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> y = np.array([0, 1] * 50)
    >>> masked = dm.paper.mnar_mask(y, 0.3, eta=0.9, rng=0)
    >>> int(masked.sum()), int(y[masked].sum())
    (30, 27)
    """
    return _masked(ByLabel(_fraction(p_m, "p_m"), prevalence=_fraction(eta, "eta")), y_true, rng)


def pit(distribution: MetricDistribution | Iterable[MetricDistribution], truth: Numbers) -> Any:
    """Return the probability integral transform (PIT) of true values: the predicted cdf at the truth.

    Over many data sets the PIT values are uniform if the predicted distributions are right. A distribution with atoms
    gives larger values than uniform; the `pit` method of a distribution counts half of an atom instead.

    Parameters
    ----------
    distribution : MetricDistribution, or an iterable of these
        Predicted distributions of a metric.
    truth : float or array-like
        The metric with all labels known, one value per distribution.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None], [0.9, 0.8, 0.7])
    >>> precision = dm.paper.pemi(data, "precision", 0.5, rng=0)["precision"]
    >>> round(dm.paper.pit(precision, 1 / 3), 2), dm.paper.pit(precision, 2 / 3)
    (0.5, 1.0)
    """
    if isinstance(distribution, MetricDistribution):
        return distribution.cdf(truth)
    return np.array(
        [float(predicted.cdf(value)) for predicted, value in zip(distribution, np.asarray(truth), strict=True)]
    )


def wasserstein_1(pit_values: ArrayLike) -> float:
    """Return the Wasserstein-1 distance (W1) of PIT values to the uniform distribution.

    It is the integral of the absolute difference between the two cdfs: 0 at best, 1/2 at worst.

    Parameters
    ----------
    pit_values : array-like
        Numbers in [0, 1].

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.wasserstein_1([0.0, 0.0]), dm.paper.wasserstein_1([0.25, 0.75])
    (0.5, 0.125)
    """
    return float(w1_to_uniform(_sorted_levels(pit_values)))


def kolmogorov_smirnov(pit_values: ArrayLike) -> float:
    """Return the Kolmogorov-Smirnov distance (KS) of PIT values to the uniform distribution.

    It is the largest absolute difference between the two cdfs.

    Parameters
    ----------
    pit_values : array-like
        Numbers in [0, 1].

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.kolmogorov_smirnov([0.0, 0.0]), dm.paper.kolmogorov_smirnov([0.25, 0.75])
    (1.0, 0.25)
    """
    return float(ks_to_uniform(_sorted_levels(pit_values)))


def _masked(mask: Mask, y_true: ArrayLike, rng: RngLike) -> BoolArray:
    label = np.asarray(y_true)
    if label.ndim != 1 or not label.size or not np.isin(label, (0, 1)).all():
        raise InputError("y_true", "expected a column of labels 0 and 1, none of them missing")
    return mask.mask(label == 1, np.zeros(label.size), generator_from(rng)).missing


def _fraction(value: Any, name: str) -> float:
    if not is_number(value) or not 0.0 < value < 1.0:
        raise InputError(name, f"{value!r}", "It must lie strictly between 0 and 1.")
    return float(value)


def _sorted_levels(pit_values: ArrayLike) -> FloatArray:
    try:
        level = np.sort(np.asarray(pit_values, dtype=np.float64))
    except (TypeError, ValueError):
        level = np.full(1, np.nan)
    if level.ndim != 1 or not level.size or not np.all((level >= 0.0) & (level <= 1.0)):
        raise InputError("pit_values", "expected at least one number, all of them in [0, 1]")
    return level
