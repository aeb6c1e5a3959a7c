"""The difference in the population that the rows came from: what the labels leave open, and what drawing rows does."""

from collections.abc import Sequence
from functools import singledispatch
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.auc.expansion import Expansions, mixed_cdf
from darkmetrics.comparison.all_models import DRAWS, Together, shared_out
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.distribution import Discrete, Interval, MetricDistribution, NodeMoments, Normal, Tabulated
from darkmetrics.exceptions import MethodError
from darkmetrics.metrics import ConfusionMetric, LossMetric, Metric, RankMetric

# Derivatives of a formula of counts, by differences over this part of a count, or of a row where there are none.
_STEP = 1e-3


class Rows(NamedTuple):
    """One model's view of the rows, in an order of its own: score, decision, and the weight expected of each class.

    `typical` is the weight of a row, on average: weights have any unit.
    """

    score: FloatArray
    decision: FloatArray
    positive: FloatArray
    negative: FloatArray
    typical: float


class Effects(NamedTuple):
    """How far one more row of each cell moves a metric, per unit of its weight: a positive one, and a negative one."""

    positive: FloatArray
    negative: FloatArray


def sampling_variances(
    rows: SharedRows, chance: FloatArray, metric: Metric, models: Sequence[int], *, given: bool
) -> FloatArray:
    """Variance that drawing the rows leaves in the difference of each pair, to first order (models x models).

    Each row moves a difference by its influence: the paired variance of McNemar's test for accuracy, DeLong's for
    ROC-AUC. Labels missing have their `chance`; `given`: it came from outside, and its mean stands for such a label.
    """
    p = np.zeros(rows.missing.size)
    p[rows.open] = chance
    weight = np.ones(p.size) if rows.weight is None else rows.weight
    positive, negative = rows.positives + rows.missing * p, rows.negatives + rows.missing * (1.0 - p)
    n = rows.counts["rows"]
    typical = float(weight @ (positive + negative)) / n
    found = []
    for model in models:
        decision = rows.decision[model].astype(np.float64)
        view = Rows(rows.score[model], decision, weight * positive, weight * negative, typical)
        found.append(effects_of(metric, view))
    variance = np.zeros((len(found), len(found)))
    for i, j in combinations(range(len(found)), 2):
        one, zero = (weight * (f - g) for f, g in zip(found[i], found[j], strict=True))
        mean = float(one @ positive + zero @ negative) / n
        one, zero = one - mean, zero - mean
        unknown = (p * one + (1.0 - p) * zero) ** 2 if given else p * one**2 + (1.0 - p) * zero**2
        total = rows.positives @ one**2 + rows.negatives @ zero**2 + rows.missing @ unknown
        variance[i, j] = variance[j, i] = float(total) * n / max(n - 1, 1)
    return variance


def population_together(found: Together, variances: FloatArray, rng: np.random.Generator, *, given: bool) -> Together:
    """Values of all models in the population: those on the rows, with what drawing rows adds to their differences."""
    if given:  # what labels leave open is in the variances already
        values = np.broadcast_to(found.mass @ found.values / found.mass.sum(), (DRAWS, found.values.shape[1]))
    else:
        values = found.values[shared_out(found.mass, DRAWS)]
    # The first model stays where it is, which no difference can tell.
    covariance = 0.5 * (variances[0] + variances[0][:, None] - variances)
    scale, vectors = np.linalg.eigh(covariance)
    moved = rng.standard_normal(values.shape) @ (vectors * np.sqrt(np.maximum(scale, 0.0))).T
    # Models that no row tells apart stay tied.
    twin = (variances == 0.0).argmax(axis=0)
    return Together(values + moved[:, twin], np.full(len(values), 1.0 / len(values)), "gaussian", "population")


def check_known(metric: Metric) -> None:
    """Whether the influence of a row on the metric is known."""
    if effects_of.dispatch(type(metric)) is effects_of.dispatch(object):
        raise _not_known(metric)


def _not_known(metric: Metric) -> MethodError:
    return MethodError(f"scope: 'population' is not known for {metric.name!r}; ask about these rows.")


@singledispatch
def effects_of(metric: Metric, rows: Rows) -> Effects:
    """The influence of a row on the metric."""
    raise _not_known(metric)


@effects_of.register
def _(metric: ConfusionMetric, rows: Rows) -> Effects:
    yes, no = rows.decision, 1.0 - rows.decision
    counts = np.array([rows.positive @ yes, rows.negative @ yes, rows.positive @ no, rows.negative @ no])
    slopes = np.zeros(4)
    for i in range(4):
        step = np.zeros(4)
        step[i] = _STEP * max(counts[i], rows.typical)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [float(metric.formula(*(counts + times * step))) for times in (1.0, 0.0)]
            below = float(metric.formula(*(counts - step))) if counts[i] >= step[i] else np.nan
        slopes[i] = (ends[0] - below) / (2.0 * step[i]) if np.isfinite(below) else (ends[0] - ends[1]) / step[i]
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    return Effects(slopes[0] * yes + slopes[2] * no, slopes[1] * yes + slopes[3] * no)


@effects_of.register
def _(metric: RankMetric, rows: Rows) -> Effects:
    _, place = np.unique(rows.score, return_inverse=True)
    tied = [np.bincount(place, mass) for mass in (rows.positive, rows.negative)]
    totals = [float(mass.sum()) for mass in tied]
    if min(totals) <= 0.0:
        raise MethodError("scope: 'population' needs rows of both classes for ROC-AUC.")
    half = 0.0 if metric.full_ties else 0.5
    above = (totals[0] - np.cumsum(tied[0]) + (1.0 - half) * tied[0]) / totals[0]  # positives that score higher
    below = (np.cumsum(tied[1]) - half * tied[1]) / totals[1]  # negatives that score lower
    auc = float(tied[0] @ below) / totals[0]
    return Effects(metric.scale * (below - auc)[place] / totals[0], metric.scale * (above - auc)[place] / totals[1])


@effects_of.register
def _(metric: LossMetric, rows: Rows) -> Effects:
    one, zero = (np.asarray(metric.loss(np.full_like(rows.score, y), rows.score)) for y in (1.0, 0.0))
    total = float(rows.positive.sum() + rows.negative.sum())
    mean = float(rows.positive @ one + rows.negative @ zero) / total
    return Effects((one - mean) / total, (zero - mean) / total)


def population_law(
    law: MetricDistribution, variance: float, limits: tuple[float, float], *, given: bool
) -> MetricDistribution:
    """The law of a difference on these rows with the variance of drawing them on top, at each node a Gaussian.

    `limits` enclose what the difference can be on any rows.
    """
    own = law.by_node or NodeMoments(np.ones(1), np.array([law.mean()]), np.array([law.var()]))
    var = (0.0 if given else 1.0) * own.var + variance
    about: dict[str, Any] = {"bounds": Interval(*limits), "bounds_sharp": False, "undefined": law.undefined}
    if not var.any() and np.all(own.mean == own.mean[0]):  # models that no row tells apart: a tie, not a coin
        return Discrete(atoms=own.mean[:1], masses=np.ones(1), method="gaussian", **about)
    var = np.maximum(var, 1e-300)
    if own.weight.size == 1:
        return Normal(loc=float(own.mean[0]), scale=float(np.sqrt(var[0])), **about)
    none = np.zeros(var.size)
    polynomials = [
        np.stack([none, -np.sqrt(var)]),
        np.stack([var, none, none]),
        np.stack([none] * 4),
        np.stack([none] * 5),
    ]
    found = Expansions(polynomials, own.mean, np.sqrt(var), var, none)
    low, high = max(limits[0], -1e300), min(limits[1], 1e300)
    cdf = mixed_cdf(found, own.weight / own.weight.sum(), low, high)
    levels = (cdf.levels - cdf.levels[0]) / (cdf.levels[-1] - cdf.levels[0])
    by_node = NodeMoments.of(own.weight, own.mean, var)
    return Tabulated(grid=cdf.grid, levels=levels, method="gaussian", by_node=by_node, **about)
