"""Metrics at all thresholds from drawn sums, like method "draw" at a single threshold.

A metric of the confusion matrix depends on two sums per threshold: the positive weight of the missing rows above it
and below it. Given the posterior draw the sums are independent. Sobol points select the draw and the quantiles of the
sums, which takes far fewer points than random sampling. All metrics share the sums.
"""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sobol import sobol_points
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics.curves.bands import Swept
from darkmetrics.curves.bounds import MetricRange
from darkmetrics.curves.sums import Sides, ThresholdRange
from darkmetrics.distributions.drawing import Flips, pick_at
from darkmetrics.distributions.functionals import LinearFunctional
from darkmetrics.distributions.problem import label_cumulant
from darkmetrics.posterior import columns_of

# Points per threshold.
N_POINTS = 2**13
# Effective number of rows that makes a sum nearly normal. With fewer, unequal rows this many labels are drawn.
_MIN_DECIDING, _N_LABELS = 10.0, 64
# The remaining rows need a smaller effective number, because their sum is small.
_MIN_DECIDING_OTHERS = 2.0
_SEED = 0


def draw_sums(window: ThresholdRange) -> Sides:
    """Draw the positive weight of the missing rows above and below each threshold (n_points x n_thresholds)."""
    n_labels = 0 if window.data.missing_weight is None else _N_LABELS
    points = sobol_points(N_POINTS, 3 + 2 * n_labels, _SEED).T
    # Sort draws by expected positives, so that the metric changes slowly from draw to draw.
    order = np.argsort(window.sums.expected, kind="stable")
    cumulative = np.cumsum(window.weight[order])
    draw = order[np.searchsorted(cumulative[:-1] / cumulative[-1], points[0], side="right")]
    above, below = (_draw_side(window, side, draw, points[1 + side], points[3 + side :: 2]) for side in (0, 1))
    return above, below


def _draw_side(
    window: ThresholdRange, side: int, draw: IntArray, uniform: FloatArray, for_labels: FloatArray
) -> FloatArray:
    """Draw the sums of a side: nearly normal if the effective number of rows is large, else from counts or labels."""
    cumulants = [window.cumulant(order)[side] for order in (1, 2, 3, 4)]
    weighted = window.data.missing_weight is not None
    values = _quantile_of_many(cumulants, draw, uniform, window.sums.lattice_step)
    for j in np.flatnonzero(window.n_deciding[side] < _MIN_DECIDING).tolist():
        if weighted:
            values[:, j] = _draw_labels(
                window, side, j, [cumulant[:, j] for cumulant in cumulants], draw, uniform, for_labels
            )
        else:
            values[:, j] = _draw_counts(window, side, j, draw, uniform)
    return np.clip(values, 0.0, window.missing[side])


def _quantile_of_many(cumulants: list[FloatArray], draw: IntArray, uniform: FloatArray, step: float) -> FloatArray:
    """Return quantiles of sums of many labels (n_points x n_thresholds): a Cornish-Fisher expansion.

    Sums on a lattice with this step are rounded to it.
    """
    mean, variance, third, fourth = cumulants
    # Rounding to the lattice adds a variance of step^2 / 12.
    sd = np.sqrt(np.maximum(variance - step**2 / 12.0, 1e-12 * variance))
    safe = np.where(sd > 0.0, sd, 1.0)
    skewness, kurtosis = np.clip(third / safe**3, -1.0, 1.0), np.clip(fourth / safe**4, -1.0, 1.0)
    z = ndtri(uniform)[:, None]
    linear = sd * (1.0 - kurtosis / 8.0 + 5.0 * skewness**2 / 36.0)
    square, cube = sd * skewness / 6.0, sd * (kurtosis / 24.0 - skewness**2 / 18.0)
    values = (mean - square)[draw] + z * (linear[draw] + z * (square[draw] + z * cube[draw]))
    return np.asarray(np.rint(values / step) * step if step else values)


def _draw_counts(window: ThresholdRange, side: int, threshold: int, draw: IntArray, uniform: FloatArray) -> FloatArray:
    """Draw the number of positives from its exact distribution."""
    cells, probability = window.cells_of_side(window.sums.band, side, threshold), window.sums.posterior.probability
    counts = np.bincount(window.sums.column[cells], window.sums.rows[0][cells], probability.shape[1]).astype(np.int64)
    used = np.flatnonzero(counts)
    low, pmf = poisson_binomial_pmfs(probability[:, used], counts[used])
    return np.asarray(low + pick_at(pmf, draw, uniform), dtype=np.float64)


def _draw_labels(
    window: ThresholdRange,
    side: int,
    threshold: int,
    cumulants: list[FloatArray],
    draw: IntArray,
    uniform: FloatArray,
    for_labels: FloatArray,
) -> FloatArray:
    """Draw the labels of the rows with the largest variance, and the sum of the remaining rows."""
    data, posterior = window.data, window.sums.posterior
    assert data.missing_weight is not None
    cells = window.cells_of_side(window.sums.cell_band, side, threshold)
    row = np.repeat(np.arange(data.missing_counts.size)[cells], data.missing_counts[cells])
    weight, column = data.missing_weight[row], columns_of(posterior)[row]
    variance = window.sums.label_variance[column]
    order = np.argsort(-variance * weight**2, kind="stable")
    leading, others = order[:_N_LABELS], order[_N_LABELS:]
    p = posterior.probability[:, column[leading]]
    labels = p[draw] > for_labels[: leading.size].T
    values = np.asarray(labels @ weight[leading], dtype=np.float64)
    if not others.size:
        return values
    variance, weight_of_others = variance[others], weight[others]
    n_effective = (variance @ weight_of_others**2) ** 2 / max(1e-300, float(variance @ weight_of_others**4))
    if n_effective >= _MIN_DECIDING_OTHERS:
        remaining_cumulants = [
            (cumulant - label_cumulant(power, p) @ weight[leading] ** power)[:, None]
            for power, cumulant in enumerate(cumulants, 1)
        ]
        return values + _quantile_of_many(remaining_cumulants, draw, uniform, window.sums.lattice_step)[:, 0]
    single = np.ones(others.size, dtype=np.int64)
    flips = Flips(replace(posterior, column=column[others]), single, seed=side)
    total = LinearFunctional(single, np.nan, (-np.inf, np.inf), weight=weight_of_others, total=0.0)
    return np.asarray(values + flips.at_draws(draw).sums(total)[0])


def drawn_range(metric: MetricRange, sums: Sides, levels: FloatArray) -> Swept:
    """Return mean and quantiles of a metric at drawn sums."""
    values = metric.at(sums)
    if not np.isnan(metric.fill):
        values = np.where(np.isnan(values), metric.fill, values)
    values = np.ascontiguousarray(values.T)
    n_defined = np.count_nonzero(~np.isnan(values), axis=1)
    complete = n_defined == N_POINTS
    ranks = _rank(levels, np.array([N_POINTS]))[:, 0]
    values[complete] = np.partition(values[complete], ranks, axis=1)
    values[~complete] = np.sort(values[~complete], axis=1)  # NaN last
    quantiles = np.take_along_axis(values, _rank(levels, n_defined).T, axis=1).T
    with np.errstate(invalid="ignore"):
        mean = np.nansum(values, axis=1) / n_defined
    undefined = np.minimum(1.0, metric.window.weight @ metric.undefined_mass)
    return metric.swept(mean, quantiles, undefined)


def _rank(levels: FloatArray, size: IntArray) -> IntArray:
    """Return the index of each quantile (n_levels x n_sizes) among sorted values of these sizes."""
    ranks = np.ceil(levels[:, None] * size - 1e-9).astype(np.int64) - 1
    return np.clip(ranks, 0, np.maximum(size - 1, 0))
