"""Distributions of metrics in the population that the rows came from (mathematics, section 15).

The rows are a sample, and so are their labels. Probabilities learned from the labeled rows are mixed over, with random
labels (Rubin's rule with the exact distribution of the labels), and the variance of sampling rows is added.

Probabilities that were passed are conditional on the row. The population averages over labels, so a metric there
depends on these probabilities and on how often each kind of row occurs, not on the labels of these missing rows. The
probability replaces the label of a missing row, and only the sampling of rows is random. The distribution can be
narrower than that on the rows: if every row has probability 0.5, the rate in the population is 0.5 exactly, and the
rate among ten rows is not.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.beta_mixture import PRIOR, few_betas, matched_beta
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import (
    BetaMixture,
    Discrete,
    DrawMoments,
    Interval,
    MetricDistribution,
    Mixture,
    Normal,
    Rational,
    Undefined,
)
from darkmetrics.distributions.functionals import CountFunctional
from darkmetrics.distributions.problem import Problem
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.metrics.confusion import Share
from darkmetrics.missingness.clusters import ClusteredPosterior
from darkmetrics.posterior import Posterior
from darkmetrics.wording import named

# Maximum number of combinations of counts, with a Beta distribution each; more are represented by Gauss rules.
_MAX_COMBINATIONS = 512
# Gauss-Hermite points for a count that is nearly normal.
_NORMAL_POINTS, _NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
# Numbers in one batch of influences; beyond the second number, the variance of sampling is computed at a few draws.
_BATCH, _MAX_INFLUENCES, _FEW_DRAWS = 1 << 21, 1 << 22, 12
# Samples of rows and labels for a metric that is known by its values only.
_N_SAMPLES = 2_000
# Quantiles of a distribution to which drawn values are mapped, and their range in standard deviations.
_N_QUANTILES, _REACH = 385, 4.8
# Cells to which a row is added, for a metric that is known by its values only.
_CELLS_MOVED = 256
# Multiples of a variance that is estimated from few clusters.
_N_MULTIPLES = 16
# Label assignments over which the variance of sums of clusters is averaged, at all draws together.
_N_ASSIGNMENTS = 200


class _Counts(NamedTuple):
    """Rows on either side of a fraction (n_draws x n_combinations), their mass, and whether these are all."""

    first: FloatArray
    second: FloatArray
    mass: FloatArray
    is_complete: bool


class Population:
    """A set and the posterior of its missing labels, for the distributions of any number of metrics."""

    def __init__(self, data: EvaluationSet, posterior: Posterior) -> None:
        rows, posterior = posterior.without_strata(data)
        # Clusters are drawn as a whole; single rows are no clusters.
        self._groups = rows.groups if isinstance(posterior, ClusteredPosterior) else None
        if self._groups is not None and int(self._groups.max()) < 1:
            raise InputError(
                "clusters",
                "all rows are in one cluster",
                "A population of clusters needs several.",
                f"Leave {named('scope')} at 'rows', or leave {named('clusters')} out.",
            )
        weight = rows.cells.weight
        if weight is not None and bool(np.all(weight == weight[0])):  # equal weights are no weights
            cells = replace(rows.cells, weight=None)
            rows = EvaluationSet.from_cells(cells, threshold=rows.threshold, pos_label=rows.pos_label)
        self._rows, self._posterior, self._problem = rows, posterior, Problem(posterior)
        self._given = posterior.given
        # Label assignments at each draw over which sums of clusters are averaged, for all metrics.
        self._assignments: dict[int, FloatArray] = {}

    def distribution(self, metric: Metric, on_rows: MetricDistribution) -> MetricDistribution:
        """Return the distribution of a metric in the population, given that on the rows."""
        if on_rows.undefined >= 1.0:  # the value of 0/0 on the rows is not that of other rows
            return Undefined(undefined=1.0, method=on_rows.method, bounds=Interval(*metric.range))
        share = metric.as_share() if isinstance(metric, ConfusionMetric) else None
        counts = None if share is None or self._given else self._counts_of(metric, share)
        if share is not None and counts is not None:
            return self._mix_betas(metric, share, counts)
        if type(metric).row_influence is Metric.row_influence:  # known by its values only
            return self._draw_samples(metric)
        return self._match_moments(metric, on_rows)

    def _counts_of(self, metric: Metric, share: Share) -> _Counts | None:
        """Return the possible counts of a fraction; None if rows have weights or labels are dependent."""
        rows, posterior = self._rows, self._posterior
        if rows.cells.weight is not None or not posterior.independent:
            return None
        functional = metric.bind(rows, np.nan)
        assert isinstance(functional, CountFunctional)
        (tp, fn), (fp, tn), (open_yes, open_no) = (
            rows.by_decision[name] for name in ("positives", "negatives", "missing")
        )
        known = np.array([tp, fp + open_yes, fn, tn + open_no])
        moved = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
        sides = share.first, share.second
        used = [i for i in range(2) if any(moved[i] @ side for side in sides) and functional.split.groups[i].size]
        cells = [functional.split.groups[i] for i in used]
        windows = [self._problem.count_window(group, functional.missing) for group in cells]
        is_complete = bool(np.prod(windows) <= _MAX_COMBINATIONS)
        points = [np.broadcast_to(known @ side, (len(posterior), 1)).astype(np.float64) for side in sides]
        mass = np.ones((len(posterior), 1))
        for i, group in zip(used, cells, strict=True):
            count = self._count_all if is_complete else self._count_by_rule
            value, probability = count(group, functional.missing)
            for j, side in enumerate(sides):
                step = float(moved[i] @ side) * value
                points[j] = (points[j][:, :, None] + step[:, None, :]).reshape(len(posterior), -1)
            mass = (mass[:, :, None] * probability[:, None, :]).reshape(len(posterior), -1)
        return _Counts(points[0], points[1], posterior.weight[:, None] * mass, is_complete)

    def _count_all(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return every number of positives in cells, and its probability at every draw."""
        low, pmf = self._problem.count_pmfs(cells, missing)
        return low + np.arange(float(pmf.shape[1]))[None, :], pmf

    def _count_by_rule(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return a few numbers of positives with the mean, variance and skewness of all of them, at every draw."""
        p = self._posterior.on_all_cells.probability[:, cells]
        v = p * (1.0 - p)
        mean, sd, third = p @ missing[cells], np.sqrt(v @ missing[cells]), (v * (1.0 - 2.0 * p)) @ missing[cells]
        bend = np.divide(third, 6.0 * sd**2, out=np.zeros_like(sd), where=sd > 0.0)  # skewness times sd / 6
        value = mean[:, None] + sd[:, None] * _NORMAL_POINTS + bend[:, None] * (_NORMAL_POINTS**2 - 1.0)
        value = np.clip(value, 0.0, float(missing[cells].sum()))
        return value, np.broadcast_to(_NORMAL_WEIGHTS / _NORMAL_WEIGHTS.sum(), value.shape)

    def _mix_betas(self, metric: Metric, share: Share, counts: _Counts) -> MetricDistribution:
        """Return the mixture of Beta distributions; combinations without rows on either side (0/0) are left out."""
        empty = counts.first + counts.second < 1e-9
        undefined = float(counts.mass[empty].sum() / counts.mass.sum())
        mass = np.where(empty, 0.0, counts.mass)
        facts: dict[str, object] = {"bounds": Interval(*metric.range), "undefined": undefined, "given_defined": True}
        if not mass.sum() > 0.0:
            return Undefined(**{**facts, "undefined": 1.0})  # type: ignore[arg-type]  # one mapping for all kinds
        mass = mass / mass.sum()
        a, b = counts.first + PRIOR, counts.second + PRIOR
        form = Rational(*share.form)
        by_draw = _moments_at_draws(a, b, mass, form)
        if counts.is_complete:  # the draws share the counts
            a, b, mass = a[:1], b[:1], mass.sum(axis=0, keepdims=True)
        is_possible = mass > 0.0
        a, b, weight = few_betas(a[is_possible], b[is_possible], mass[is_possible])
        return BetaMixture(
            a=a,
            b=b,
            weight=weight,
            form=form,
            by_draw=by_draw if len(self._posterior) > 1 else None,
            method="exact" if counts.is_complete else "near exact",
            **facts,  # type: ignore[arg-type]  # as above
        )

    def _expected(self, probabilities: Sequence[FloatArray]) -> FloatArray:
        """Return the expected weight of negatives and positives in each cell, given those of the missing cells."""
        cells, index, missing = self._rows.cells, self._rows.missing_cells, self._rows.missing_counts
        known = np.stack([cells.negatives, cells.positives])[:, None, :]
        counts = np.repeat(known, len(probabilities), axis=1).astype(np.float64)
        for i, p in enumerate(probabilities):
            counts[0, i, index] += missing * (1.0 - p)
            counts[1, i, index] += missing * p
        return counts if cells.weight is None else counts * cells.weight

    def _match_moments(self, metric: Metric, on_rows: MetricDistribution) -> MetricDistribution:
        """Return the mixture of distributions with the metric's mean and variance at each draw.

        The variance is that of the labels plus that of sampling rows.
        """
        cells, moments = self._rows.cells, on_rows.by_draw
        if self._given or moments is None:
            weight, mean = np.ones(1), np.array([on_rows.mean()])
            var = np.array([on_rows.var()])
            if self._given:
                mean, var = metric.of_counts(cells, self._expected([self._posterior.of_cells(0)])), np.zeros(1)
            sampling = np.array([float(self._posterior.weight @ self._sampling_variance(metric, None))])
        else:
            weight, mean, var = moments
            sampling = self._sampling_variance(metric, mean)
        low, high = metric.range
        size, multiples = weight.size, self._multiples
        by_draw = DrawMoments.of(weight, mean, var + sampling * multiples.mean())
        weight, mean = np.repeat(weight / multiples.size, multiples.size), np.repeat(mean, multiples.size)
        var = (var[:, None] + np.multiply.outer(sampling, multiples)).ravel()
        facts: dict[str, object] = {
            "bounds": Interval(low, high),
            "method": "first order",
            "undefined": on_rows.undefined,
            "given_defined": True,
            "by_draw": by_draw if size > 1 else None,
        }
        if np.isfinite([low, high]).all():
            width = high - low
            a, b = matched_beta(np.clip((mean - low) / width, 0.0, 1.0), var / width**2, self._effective_rows(metric))
            a, b, weight = few_betas(a, b, weight)
            return BetaMixture(a=a, b=b, weight=weight, form=Rational(high, low, 1.0, 1.0), **facts)  # type: ignore[arg-type]
        normals = [
            Normal(loc=m, scale=s, bounds=Interval(low, high), method="first order")
            for m, s in zip(mean.tolist(), np.sqrt(var).tolist(), strict=True)
        ]
        if len(normals) == 1:
            return replace(normals[0], undefined=on_rows.undefined)
        return Mixture(components=normals, weight=weight, **facts)  # type: ignore[arg-type]

    @cached_property
    def _multiples(self) -> FloatArray:
        """Equally likely multiples of the variance of sampling, which few clusters estimate poorly.

        A Gaussian mixed over them has Student's t distribution; its degrees of freedom are the clusters minus one.
        """
        if self._groups is None:
            return np.ones(1)
        freedom = float(self._groups.max())
        level = (np.arange(_N_MULTIPLES) + 0.5) / _N_MULTIPLES
        return np.asarray(0.5 * freedom / gammaincinv(0.5 * freedom, level))

    def _effective_rows(self, metric: Metric) -> FloatArray:
        """Return the effective number of rows that a metric depends on, of the kind with the fewest."""
        cells, posterior = self._rows.cells, self._posterior
        mean = posterior.weight @ posterior.probability
        expected = self._expected([mean if posterior.column is None else mean[posterior.column]])[:, 0]
        per_row = 1.0 if cells.weight is None else cells.weight
        n_rows = (
            (kind * expected).sum() ** 2 / max((kind**2 * expected * per_row).sum(), 1e-300)
            for kind in metric.rests_on(cells)
        )
        return np.array([min(n_rows)])

    def _sampling_variance(self, metric: Metric, mean: FloatArray | None) -> FloatArray:
        """Return the variance of a metric at each draw because the rows are a sample.

        With many cells and draws, it is computed at a few draws and interpolated in the mean of the metric.
        """
        n_cells, size = self._rows.cells.score.size, len(self._posterior)
        draws: IntArray = np.arange(size)
        if mean is not None and size * n_cells > _MAX_INFLUENCES and size > _FEW_DRAWS:
            draws = np.unique(np.argsort(mean)[np.linspace(0, size - 1, _FEW_DRAWS).astype(np.int64)])
        batch = max(1, _BATCH // n_cells)
        batches = [self._variance_at(metric, draws[i : i + batch].tolist()) for i in range(0, draws.size, batch)]
        var = np.concatenate(batches)
        if mean is None or draws.size == size:
            return var
        order = np.argsort(mean[draws])
        return np.interp(mean, mean[draws][order], var[order])

    def _variance_at(self, metric: Metric, draws: list[int]) -> FloatArray:
        cells = self._rows.cells
        probabilities = [self._posterior.of_cells(draw) for draw in draws]
        effect = metric.row_influence(cells, self._expected(probabilities))
        assert effect is not None
        if cells.weight is not None:
            effect = effect * cells.weight
        if self._groups is not None:
            return np.array([self._variance_of_clusters(effect[:, i], draw) for i, draw in enumerate(draws)])
        p = np.zeros((len(draws), cells.score.size))
        p[:, self._rows.missing_cells] = probabilities
        negative, positive = effect
        missing = p * positive**2 + (1.0 - p) * negative**2
        if self._given:
            missing = (p * positive + (1.0 - p) * negative) ** 2
        var = cells.negatives * negative**2 + cells.positives * positive**2 + cells.missing * missing
        result: FloatArray = np.nan_to_num(var.sum(axis=1))
        return result

    def _variance_of_clusters(self, effect: FloatArray, draw: int) -> float:
        """Return the variance at a draw if clusters are drawn as a whole: that of the sums of their influences."""
        cells, index, missing = self._rows.cells, self._rows.missing_cells, self._rows.missing_counts
        assert self._groups is not None
        if draw not in self._assignments:
            size = 1 if self._given or not index.size else max(8, _N_ASSIGNMENTS // len(self._posterior))
            self._assignments[draw] = (missing * self._posterior.of_cells(draw))[None, :]
            if size > 1:
                drawn = self._posterior.draw(draw, missing, size, np.random.default_rng(draw))
                self._assignments[draw] = drawn.astype(np.float64)
        known = cells.negatives * effect[0] + cells.positives * effect[1]
        n_clusters = int(self._groups.max()) + 1
        squares = []
        for positives in self._assignments[draw]:
            total = known.copy()
            total[index] += positives * effect[1, index] + (missing - positives) * effect[0, index]
            squares.append(float((np.bincount(self._groups, total, n_clusters) ** 2).sum()))
        return float(np.nan_to_num(np.mean(squares))) * n_clusters / max(n_clusters - 1, 1)

    def _draw_samples(self, metric: Metric) -> MetricDistribution:
        """Return the distribution of draws: labels at each posterior draw, and rows or clusters with replacement."""
        if self._given:
            raise MethodError(
                "scope",
                f"'population' for {metric.name!r}, which is known by its values only",
                "If probabilities of missing labels are passed, the population needs a formula of the metric.",
                "Write it as a ConfusionMetric or a LossMetric, or let a mechanism learn the probabilities.",
            )
        cells, posterior, rng = self._rows.cells, self._posterior, np.random.default_rng(0)
        index, missing = self._rows.missing_cells, self._rows.missing_counts
        ends = np.rint(_N_SAMPLES * np.cumsum(posterior.weight) / posterior.weight.sum()).astype(np.int64)
        values = []
        for draw, number in enumerate(np.diff(ends, prepend=0).tolist()):
            for labels in posterior.draw(draw, missing, number, rng) if number else ():
                counts = np.stack([cells.negatives, cells.positives]).astype(np.int64)
                counts[1, index] += labels
                counts[0, index] += missing - labels
                drawn = self._resample(counts, rng)
                drawn = drawn if cells.weight is None else drawn * cells.weight
                values.append(float(metric.of_counts(cells, drawn[:, None, :])[0]))
        return Discrete.from_atoms(
            np.array(values), np.ones(len(values)), np.nan, method="monte carlo", bounds=Interval(*metric.range)
        )

    def _resample(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw rows of another sample of the same size, by class and cell."""
        if self._groups is not None:
            n_clusters = int(self._groups.max()) + 1
            times = rng.multinomial(n_clusters, np.full(n_clusters, 1.0 / n_clusters))
            return (counts * times[self._groups]).astype(np.float64)
        total = int(counts.sum())
        return rng.multinomial(total, counts.ravel() / total).reshape(counts.shape).astype(np.float64)


class View(NamedTuple):
    """One model's metric on shared rows: its own evaluation set, and the shared cell of each of the set's cells."""

    metric: Metric
    data: EvaluationSet
    cell: IntArray | None = None


def sampling_correlation(views: Sequence[View], posterior: Posterior) -> FloatArray:
    """Compute how the sampling errors of several metrics of the same rows are correlated, to first order.

    A row that is sampled once more moves every metric by its influence. A row with random scores counts too, so that
    the difference is not certain if all models agree on all rows. Metrics without influences use resampled rows.
    `posterior` is that of the missing cells of the shared rows.
    """
    mean = posterior.weight @ posterior.on_all_cells.probability / posterior.weight.sum()
    moves = [_influence_of_rows(view, mean) for view in views]
    covariance = np.zeros((len(views), len(views)))
    for i, (effect, random_row) in enumerate(moves):
        for j, (other_effect, _) in enumerate(moves[: i + 1]):
            covariance[i, j] = covariance[j, i] = float((effect * other_effect).sum())
            if i == j:
                covariance[i, i] += random_row
    # Metrics with the same influence of every row are equal.
    orders = [_order_of_rows(view) for view in views]
    for i, (effect, _) in enumerate(moves):
        for j, (other_effect, _) in enumerate(moves[:i]):
            if np.array_equal(orders[i], orders[j]) and np.allclose(effect, other_effect, rtol=1e-9, atol=0.0):
                covariance[i], covariance[:, i] = covariance[j], covariance[:, j]
                covariance[i, i] = covariance[j, j]
                break
    sd = np.sqrt(np.diag(covariance))
    safe = np.where(sd > 0.0, sd, 1.0)
    correlation: FloatArray = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _order_of_rows(view: View) -> IntArray:
    """Return the rank of the score and the prediction of each shared cell."""
    cells = view.data.cells
    rank = np.cumsum(np.diff(cells.score, prepend=cells.score[:1]) > 0.0)
    result = np.stack([rank, cells.decision.astype(np.int64)])
    if view.cell is not None:
        result[:, view.cell] = result.copy()
    return result


def _influence_of_rows(view: View, mean: FloatArray) -> tuple[FloatArray, float]:
    """Return root of rows times influence (2 classes x shared cells), and the variance of a row with random scores."""
    cells, index = view.data.cells, view.data.missing_cells
    p = np.zeros(cells.score.size)
    order = np.arange(cells.score.size) if view.cell is None else view.cell
    p[index] = mean[np.searchsorted(np.sort(order[index]), order[index])]
    counts = np.stack([cells.negatives + cells.missing * (1.0 - p), cells.positives + cells.missing * p])
    weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
    effect = view.metric.row_influence(cells, (counts * weight)[:, None, :])
    moved = _resampled_influence(view.metric, cells, counts) if effect is None else np.nan_to_num(effect[:, 0]) * weight
    shared = np.empty_like(moved)
    shared[:, order] = np.sqrt(counts) * moved
    sides = [side for side in (cells.decision, ~cells.decision) if side.any()]
    rows = cells.total
    center = [np.mean([rows[side] @ of_class[side] / rows[side].sum() for side in sides]) for of_class in moved]
    random_row = sum(
        float(np.mean([rows[side] @ (of_class[side] - c) ** 2 / rows[side].sum() for side in sides]))
        for of_class, c in zip(moved, center, strict=True)
    )
    return shared, random_row


def _resampled_influence(metric: Metric, cells: Cells, counts: FloatArray) -> FloatArray:
    """Return the influence of a row on a metric that is known by its values only: the effect of adding a row."""
    weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
    value = float(metric.of_counts(cells, (counts * weight)[:, None, :])[0])
    chosen = np.unique(np.linspace(0, cells.score.size - 1, min(cells.score.size, _CELLS_MOVED)).astype(np.int64))
    moved = np.zeros((2, cells.score.size))
    for label in (0, 1):
        more = np.repeat(counts[:, None, :], chosen.size, axis=1)
        more[label, np.arange(chosen.size), chosen] += 1.0
        change = metric.of_counts(cells, more * weight) - value
        moved[label] = np.interp(np.arange(cells.score.size), chosen, np.nan_to_num(change))
    return moved


def draw_in_population(
    values: FloatArray,
    on_rows: Sequence[MetricDistribution],
    in_population: Sequence[MetricDistribution],
    *,
    correlation: FloatArray | None = None,
    given: bool | Sequence[bool] = False,
    seed: int = 0,
) -> FloatArray:
    """Turn values drawn together on the rows into values in the population (both n_metrics x n, equally likely).

    Each metric has the distribution `in_population`; how the metrics depend on each other comes from the drawn values
    plus sampling errors with this correlation (independent by default, as on different rows). `given`: passed
    probabilities replace the missing labels, so that drawn values add nothing.
    """
    size, n = values.shape
    rng = np.random.default_rng([seed, 9])
    noise = rng.standard_normal((size, n))
    if correlation is not None:
        scale, axes = np.linalg.eigh(correlation)
        noise = (axes * np.sqrt(np.maximum(scale, 0.0))) @ noise
        first = (np.abs(correlation - 1.0) < 1e-9).argmax(axis=0)
        noise = noise[first]  # equal metrics get equal errors
    result = np.empty_like(values)
    fixed = np.broadcast_to(given, size)
    for k, (drawn, rows, population) in enumerate(zip(values, on_rows, in_population, strict=True)):
        sampling = population.var() if fixed[k] else max(population.var() - rows.var(), 0.0)
        moved = (0.0 if fixed[k] else drawn) + np.sqrt(sampling) * noise[k]
        result[k] = np.where(np.isnan(drawn), np.nan, _quantiles_by_rank(moved, population))
    return result


def _quantiles_by_rank(values: FloatArray, distribution: MetricDistribution) -> FloatArray:
    """Return the quantile of a distribution at the rank of each value."""
    defined = ~np.isnan(values)
    result = np.full(values.shape, np.nan)
    if distribution.undefined >= 1.0 or not defined.any():
        return result
    _, rank, counts = np.unique(values[defined], return_inverse=True, return_counts=True)
    level = (np.cumsum(counts) - 0.5 * counts)[rank] / defined.sum()
    scores = np.linspace(-_REACH, _REACH, _N_QUANTILES)
    if isinstance(distribution, Discrete):
        quantiles = np.asarray(distribution.ppf(ndtr(scores)))
    else:  # a table of the cdf is faster than a search for each quantile
        low, high = (float(distribution.ppf(ndtr(end))) for end in (-_REACH, _REACH))
        quantiles = np.linspace(low, high, 2 * _N_QUANTILES)
        scores = np.maximum.accumulate(ndtri(np.clip(distribution.cdf(quantiles), 1e-12, 1.0 - 1e-12)))
    result[defined] = np.interp(ndtri(level), scores, quantiles)
    return result


def _moments_at_draws(a: FloatArray, b: FloatArray, mass: FloatArray, form: Rational) -> DrawMoments:
    """Return mean and variance of a rational function of a fraction at each draw, to first order."""
    weight = mass.sum(axis=1)
    probability = mass / np.where(weight > 0.0, weight, 1.0)[:, None]
    share = a / (a + b)
    mean = (probability * share).sum(axis=1)
    var = (probability * (share * (1.0 - share) / (a + b + 1.0) + (share - mean[:, None]) ** 2)).sum(axis=1)
    p, q, r, s = form
    slope = (p * s - q * r) / (r * mean + s * (1.0 - mean)) ** 2
    return DrawMoments.of(weight, form.at(mean), slope**2 * var)
