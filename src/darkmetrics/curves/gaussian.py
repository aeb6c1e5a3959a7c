"""The Gaussian of every metric at all thresholds at once, as `evaluate(method="gaussian")` has it at a single one."""

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics.curves.bands import Swept
from darkmetrics.curves.bounds import MetricRange
from darkmetrics.distributions.slopes import compute_ratio_slopes, compute_slope


def gaussian_range(metric: MetricRange, levels: FloatArray) -> tuple[Swept, BoolArray]:
    """Return mean and quantiles of mixtures of Gaussians, and the thresholds at which there is none."""
    mean, variance, undefined = metric.at(metric.window.means), _variance(metric), metric.undefined_mass
    weight = metric.window.weight
    # The weight of a draw is in proportion to the probability that the metric is defined there.
    shares = np.where(undefined >= 1.0, 0.0, weight[:, None] * (1.0 - undefined))
    total = shares.sum(axis=0)
    never = ~(total > 0.0)
    shares = shares / np.where(never, 1.0, total)
    used, finite = shares > 0.0, np.isfinite(mean) & np.isfinite(variance)
    regular = used & finite
    # Draws without weight get the mean of the others, which does not widen the search for quantiles.
    center = np.where(regular, shares * mean, 0.0).sum(axis=0)
    mean, sd = np.where(regular, mean, center), np.sqrt(np.where(regular, np.maximum(variance, 0.0), 0.0))
    quantiles = normal_mixture_quantiles(levels, shares, mean, sd)
    quantiles[:, never] = np.nan
    swept = metric.swept(
        np.where(never, np.nan, (shares * mean).sum(axis=0)),
        quantiles,
        np.where(never, 1.0, np.minimum(1.0, weight @ undefined)),
    )
    return swept, np.asarray((used & ~finite).any(axis=0))


def _variance(metric: MetricRange) -> FloatArray:
    """Return the first-order variance of the metric at every draw and threshold; NaN where there is no slope."""
    window, form = metric.window, metric.form
    offsets = window.tp, window.fn
    if form is not None:
        sums = [offset + mean for offset, mean in zip(offsets, window.means, strict=True)]
        slopes = compute_ratio_slopes(*form, metric.at(window.means), sums)
    else:
        sides = enumerate(zip(window.missing, offsets, strict=True))
        slopes = [compute_slope(metric.at, window.means, axis, total, offset) for axis, (total, offset) in sides]
    result: FloatArray = np.zeros(window.means[0].shape)
    with np.errstate(invalid="ignore", over="ignore"):
        for slope, variance in zip(slopes, window.variances, strict=True):
            # A side on which nothing is random has no part in the variance, and perhaps no slope.
            result += np.where(variance > 0.0, slope, 0.0) ** 2 * variance
    return result
