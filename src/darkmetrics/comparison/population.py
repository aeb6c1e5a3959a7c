"""The difference in the population that the rows came from: what the labels leave open, and what drawing rows does."""

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.beta_parts import PRIOR, few_betas
from darkmetrics.comparison.all_models import DRAWS, Together, shared_out
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.distributions import (
    BetaMixture,
    Discrete,
    Interval,
    MetricDistribution,
    Mixture,
    NodeMoments,
    Normal,
    Rational,
    Undefined,
)
from darkmetrics.exceptions import MethodError
from darkmetrics.metrics import ConfusionMetric, LossMetric, Metric, RankMetric

# Derivatives of a formula of counts, by differences over this part of a count.
_STEP = 1e-3
# A Beta law has no mean nearer to its ends, and comes from no fewer rows.
_END = 1e-6


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
    """How far one more row of each cell moves a metric, per unit of its weight: a positive one, and a negative one.

    `blind`: of one more row of either class of which a model knows nothing (mean, variance), where rows like that are
    counted; `shift` is what one of each does to the metric, NaN where that is 0/0 on the rows.
    """

    positive: FloatArray
    negative: FloatArray
    blind: tuple[FloatArray, FloatArray] | None = None
    shift: float = 0.0


class Sampling(NamedTuple):
    """What drawing the rows does to differences: their variances (models x models), and how far each model moves."""

    variance: FloatArray
    shift: FloatArray


def sampling_of(
    rows: SharedRows, chance: FloatArray, metric: Metric, models: Sequence[int], *, given: bool
) -> Sampling:
    """Variance that drawing the rows leaves in the difference of each pair, to first order.

    Each row moves a difference by its influence: the paired variance of McNemar's test for accuracy, DeLong's for
    ROC-AUC. Labels missing have their `chance`; `given`: it came from outside, and its mean stands for such a label.

    One more row of either class, of which no model knows anything, nor one what another says, is counted with the
    others: Jeffreys' half a row on either side of each model's shares. Rows that all agree would make a few of them
    certain. Models that order and decide all rows alike are one.
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
        one, zero = weight * (found[i].positive - found[j].positive), weight * (found[i].negative - found[j].negative)
        if not (one.any() or zero.any()) and _ordered_alike(rows, models[i], models[j]):
            continue
        mean = float(one @ positive + zero @ negative) / n
        one, zero = one - mean, zero - mean
        unknown = (p * one + (1.0 - p) * zero) ** 2 if given else p * one**2 + (1.0 - p) * zero**2
        total = float(rows.positives @ one**2 + rows.negatives @ zero**2 + rows.missing @ unknown)
        blind = found[i].blind, found[j].blind
        if blind[0] is not None and blind[1] is not None:
            apart = (blind[0][0] - blind[1][0]) ** 2 + blind[0][1] + blind[1][1]
            total += typical**2 * float(apart.sum())
        variance[i, j] = variance[j, i] = total * n / max(n - 1, 1)
    return Sampling(variance, np.array([one.shift for one in found]))


def _ordered_alike(rows: SharedRows, one: int, other: int) -> bool:
    """Whether two models have the same order of the rows and the same decisions."""
    if not np.array_equal(rows.decision[one], rows.decision[other]):
        return False
    places = [np.unique(rows.score[model], return_inverse=True)[1] for model in (one, other)]
    return np.array_equal(places[0], places[1])


def population_together(found: Together, sampling: Sampling, rng: np.random.Generator, *, given: bool) -> Together:
    """Values of all models in the population: those on the rows, with what drawing rows adds to their differences."""
    variances = sampling.variance
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
    moved = (sampling.shift + moved)[:, twin]
    return Together(values + moved, np.full(len(values), 1.0 / len(values)), "gaussian", "population")


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
    with_blind = counts + PRIOR * rows.typical
    slopes = np.zeros(4)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(4):
            step = np.zeros(4)
            step[i] = _STEP * with_blind[i]
            above, below = (float(metric.formula(*(with_blind + sign * step))) for sign in (1.0, -1.0))
            slopes[i] = (above - below) / (2.0 * step[i])
        shift = float(metric.formula(*with_blind)) - float(metric.formula(*counts))
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    # A row of which the model knows nothing is decided by a coin: tp or fn, fp or tn.
    blind = 0.5 * (slopes[:2] + slopes[2:]), 0.25 * (slopes[:2] - slopes[2:]) ** 2
    effects = slopes[0] * yes + slopes[2] * no, slopes[1] * yes + slopes[3] * no
    return Effects(*effects, blind, shift)


@effects_of.register
def _(metric: RankMetric, rows: Rows) -> Effects:
    _, place = np.unique(rows.score, return_inverse=True)
    tied = [np.bincount(place, mass) for mass in (rows.positive, rows.negative)]
    totals = [float(mass.sum()) for mass in tied]
    if min(totals) <= 0.0:
        raise MethodError("scope: 'population' needs rows of both classes for ROC-AUC.")
    half = 0.0 if metric.full_ties else 0.5
    higher = totals[0] - np.cumsum(tied[0]) + (1.0 - half) * tied[0]  # positives that score higher
    lower = np.cumsum(tied[1]) - half * tied[1]  # negatives that score lower
    auc = float(tied[0] @ lower) / (totals[0] * totals[1])
    # A row of which the model knows nothing lies anywhere among those of the other class: uniformly.
    more = [total + rows.typical for total in totals]
    above, below = (higher + 0.5 * rows.typical) / more[0], (lower + 0.5 * rows.typical) / more[1]
    with_blind = (float(tied[0] @ below) + 0.5 * rows.typical) / more[0]
    unit = metric.scale / np.array(more)
    effects = unit[0] * (below - with_blind)[place], unit[1] * (above - with_blind)[place]
    return Effects(*effects, (unit * (0.5 - with_blind), unit**2 / 12.0), metric.scale * (with_blind - auc))


@effects_of.register
def _(metric: LossMetric, rows: Rows) -> Effects:
    one, zero = (np.asarray(metric.loss(np.full_like(rows.score, y), rows.score)) for y in (1.0, 0.0))
    total = float(rows.positive.sum() + rows.negative.sum())
    mean = float(rows.positive @ one + rows.negative @ zero) / total
    return Effects((one - mean) / total, (zero - mean) / total)


def population_law(
    law: MetricDistribution, variance: float, shift: float, limits: tuple[float, float], *, given: bool
) -> MetricDistribution:
    """The law of a difference on these rows with what drawing them does on top.

    At each node one of two parameters: a Beta law between the `limits` that enclose what the difference can be on any
    rows, a Gaussian where there are none.
    """
    own = law.by_node or NodeMoments(np.ones(1), np.array([law.mean()]), np.array([law.var()]))
    var = (0.0 if given else 1.0) * own.var + variance
    if np.isnan(shift):  # whatever stands for a 0/0 on the rows, it says nothing about others
        return Undefined(undefined=1.0, method=law.method, bounds=Interval(*limits))
    about: dict[str, Any] = {"bounds": Interval(*limits), "bounds_sharp": False, "undefined": law.undefined}
    if not var.any() and np.all(own.mean == own.mean[0]):  # models that no row tells apart: a tie, not a coin
        return Discrete(atoms=own.mean[:1], masses=np.ones(1), method="gaussian", **about)
    by_node = NodeMoments.of(own.weight, own.mean + shift, np.maximum(var, 1e-300))
    if by_node.weight.size > 1:
        about["by_node"] = by_node
    low, high = limits
    if np.isfinite(limits).all():
        share = np.clip((by_node.mean - low) / (high - low), _END, 1.0 - _END)
        size = np.maximum(share * (1.0 - share) * (high - low) ** 2 / by_node.var - 1.0, _END)
        few = few_betas(size * share, size * (1.0 - share), by_node.weight)
        return BetaMixture(
            a=few[0], b=few[1], weight=few[2], form=Rational(high, low, 1.0, 1.0), method="first order", **about
        )
    normal = [
        Normal(loc=mean, scale=sd, bounds=Interval(*limits), method="gaussian")
        for mean, sd in zip(by_node.mean.tolist(), np.sqrt(by_node.var).tolist(), strict=True)
    ]
    return (
        replace(normal[0], **about)
        if len(normal) == 1
        else Mixture(components=normal, weight=by_node.weight, method="gaussian", **about)
    )
