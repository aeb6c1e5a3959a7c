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

# Combinations of counts whose Beta laws are mixed as they are; of more, Gauss rules stand for them.
_EVERY = 512
# Gauss and Hermite's points for a count that is nearly normal.
_NORMAL_POINTS, _NORMAL_SHARES = np.polynomial.hermite_e.hermegauss(5)
# Numbers in one block of influences, and nodes at which the variance of sampling is found where cells are many.
_CHUNK, _MANY, _NODES = 1 << 21, 1 << 22, 12
# Samples of rows and labels where a metric is known by its values alone.
_DRAWS = 2_000
# Quantiles of a distribution that drawn values are mapped to, and how many standard deviations these reach.
_N_QUANTILES, _REACH = 385, 4.8
# Cells of which one more row is tried, of a metric that is known by its values alone.
_CELLS_MOVED = 256
# Multiples of a variance that is known from few groups.
_MULTIPLES = 16
# Labelings over which the spread of sums of groups is averaged, at all nodes together.
_LABELINGS = 200


class _Parts(NamedTuple):
    """Rows on either side of a share (nodes x combinations of counts), the mass of each, and whether these are all."""

    first: FloatArray
    second: FloatArray
    mass: FloatArray
    all_: bool


class Population:
    """One set and what is believed about its missing labels, for the laws of any number of metrics."""

    def __init__(self, data: EvaluationSet, posterior: Posterior) -> None:
        rows, posterior = posterior.without_strata(data)
        # Groups of rows are drawn whole; where every row is one of its own there is nothing to it.
        self._groups = rows.groups if isinstance(posterior, ClusteredPosterior) else None
        if self._groups is not None and int(self._groups.max()) < 1:
            raise InputError(
                "clusters",
                "all rows are in one cluster",
                "A population of clusters needs several.",
                f"Leave {named('scope')} at 'rows', or leave {named('clusters')} out.",
            )
        weight = rows.cells.weight
        if weight is not None and bool(np.all(weight == weight[0])):  # one weight for all is none
            cells = replace(rows.cells, weight=None)
            rows = EvaluationSet.from_cells(cells, threshold=rows.threshold, pos_label=rows.pos_label)
        self._rows, self._nodes, self._problem = rows, posterior, Problem(posterior)
        self._given = posterior.given
        # Labelings at each node over which sums of groups are averaged, for all metrics.
        self._labels: dict[int, FloatArray] = {}

    def distribution(self, metric: Metric, on_rows: MetricDistribution) -> MetricDistribution:
        """Return the distribution of a metric in the population, given that on the rows."""
        if on_rows.undefined >= 1.0:  # whatever stands for a 0/0 on the rows, it says nothing about others
            return Undefined(undefined=1.0, method=on_rows.method, bounds=Interval(*metric.range))
        share = metric.as_share() if isinstance(metric, ConfusionMetric) else None
        parts = None if share is None or self._given else self._parts(metric, share)
        if share is not None and parts is not None:
            return self._of_parts(metric, share, parts)
        if type(metric).row_influence is Metric.row_influence:  # known by its values alone
            return self._drawn(metric)
        return self._matched(metric, on_rows)

    def _parts(self, metric: Metric, share: Share) -> _Parts | None:
        """The counts that a share may come from; None where these have no law of their own."""
        rows, posterior = self._rows, self._nodes
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
        every = np.prod([self._problem.count_window(own, functional.missing) for own in cells]) <= _EVERY
        points = [np.broadcast_to(known @ side, (len(posterior), 1)).astype(np.float64) for side in sides]
        mass = np.ones((len(posterior), 1))
        for i, own in zip(used, cells, strict=True):
            value, chance = (self._counts if every else self._few_counts)(own, functional.missing)
            for j, side in enumerate(sides):
                step = float(moved[i] @ side) * value
                points[j] = (points[j][:, :, None] + step[:, None, :]).reshape(len(posterior), -1)
            mass = (mass[:, :, None] * chance[:, None, :]).reshape(len(posterior), -1)
        return _Parts(points[0], points[1], posterior.weight[:, None] * mass, bool(every))

    def _counts(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, FloatArray]:
        """Every number of positives in some cells, and its probability at every draw."""
        low, pmf = self._problem.count_pmfs(cells, missing)
        return low + np.arange(float(pmf.shape[1]))[None, :], pmf

    def _few_counts(self, cells: IntArray, missing: IntArray) -> tuple[FloatArray, FloatArray]:
        """A few numbers of positives with the mean, variance and skewness of all of them, at every draw."""
        p = self._nodes.on_all_cells.probability[:, cells]
        v = p * (1.0 - p)
        mean, sd, third = p @ missing[cells], np.sqrt(v @ missing[cells]), (v * (1.0 - 2.0 * p)) @ missing[cells]
        bend = np.divide(third, 6.0 * sd**2, out=np.zeros_like(sd), where=sd > 0.0)  # skewness times sd / 6
        value = mean[:, None] + sd[:, None] * _NORMAL_POINTS + bend[:, None] * (_NORMAL_POINTS**2 - 1.0)
        value = np.clip(value, 0.0, float(missing[cells].sum()))
        return value, np.broadcast_to(_NORMAL_SHARES / _NORMAL_SHARES.sum(), value.shape)

    def _of_parts(self, metric: Metric, share: Share, parts: _Parts) -> MetricDistribution:
        """The mixture of Beta laws; counts without a single row on either side say nothing and are left out."""
        empty = parts.first + parts.second < 1e-9
        undefined = float(parts.mass[empty].sum() / parts.mass.sum())
        mass = np.where(empty, 0.0, parts.mass)
        about: dict[str, object] = {"bounds": Interval(*metric.range), "undefined": undefined, "given_defined": True}
        if not mass.sum() > 0.0:
            return Undefined(**{**about, "undefined": 1.0})  # type: ignore[arg-type]  # one mapping for all kinds
        mass = mass / mass.sum()
        a, b = parts.first + PRIOR, parts.second + PRIOR
        form = Rational(*share.form)
        by_draw = _node_moments(a, b, mass, form)
        if parts.all_:  # the nodes share the counts
            a, b, mass = a[:1], b[:1], mass.sum(axis=0, keepdims=True)
        some = mass > 0.0
        few = few_betas(a[some], b[some], mass[some])
        return BetaMixture(
            a=few[0],
            b=few[1],
            weight=few[2],
            form=form,
            by_draw=by_draw if len(self._nodes) > 1 else None,
            method="exact" if parts.all_ else "near exact",
            **about,  # type: ignore[arg-type]  # as above
        )

    def _expected(self, posterior: Sequence[int]) -> FloatArray:
        """Weight of the negatives and positives that are expected in each cell, at some nodes."""
        return self._expected_of([self._nodes.of_cells(node) for node in posterior])

    def _expected_of(self, chances: Sequence[FloatArray]) -> FloatArray:
        """The same for some sets of chances of the missing cells."""
        cells, places, missing = self._rows.cells, self._rows.missing_cells, self._rows.missing_counts
        known = np.stack([cells.negatives, cells.positives])[:, None, :]
        counts = np.repeat(known, len(chances), axis=1).astype(np.float64)
        for i, p in enumerate(chances):
            counts[0, i, places] += missing * (1.0 - p)
            counts[1, i, places] += missing * p
        return counts if cells.weight is None else counts * cells.weight

    def _matched(self, metric: Metric, on_rows: MetricDistribution) -> MetricDistribution:
        """Laws with the mean and variance that the metric has at each node: of the labels, and of sampling rows."""
        cells, own = self._rows.cells, on_rows.by_draw
        if self._given or own is None:
            weight, mean = np.ones(1), np.array([on_rows.mean()])
            var = np.array([on_rows.var()])
            if self._given:
                mean, var = metric.of_counts(cells, self._expected([0])), np.zeros(1)
            sampling = np.array([float(self._nodes.weight @ self._sampling(metric, None))])
        else:
            weight, mean, var = own
            sampling = self._sampling(metric, mean)
        low, high = metric.range
        size, often = weight.size, self._multiples
        by_draw = DrawMoments.of(weight, mean, var + sampling * often.mean())
        weight, mean = np.repeat(weight / often.size, often.size), np.repeat(mean, often.size)
        var = (var[:, None] + np.multiply.outer(sampling, often)).ravel()
        about: dict[str, object] = {
            "bounds": Interval(low, high),
            "method": "first order",
            "undefined": on_rows.undefined,
            "given_defined": True,
            "by_draw": by_draw if size > 1 else None,
        }
        if np.isfinite([low, high]).all():
            width = high - low
            a, b = matched_beta(np.clip((mean - low) / width, 0.0, 1.0), var / width**2, self._rows_behind(metric))
            few = few_betas(a, b, weight)
            return BetaMixture(a=few[0], b=few[1], weight=few[2], form=Rational(high, low, 1.0, 1.0), **about)  # type: ignore[arg-type]
        normal = [
            Normal(loc=m, scale=s, bounds=Interval(low, high), method="first order")
            for m, s in zip(mean.tolist(), np.sqrt(var).tolist(), strict=True)
        ]
        if len(normal) == 1:
            return replace(normal[0], undefined=on_rows.undefined)
        return Mixture(components=normal, weight=weight, **about)  # type: ignore[arg-type]

    @cached_property
    def _multiples(self) -> FloatArray:
        """Multiples of the variance of sampling that are equally likely: few groups tell little of how they vary.

        A Gaussian mixed over these is Student's law with one degree of freedom fewer than there are groups.
        """
        if self._groups is None:
            return np.ones(1)
        freedom = float(self._groups.max())
        level = (np.arange(_MULTIPLES) + 0.5) / _MULTIPLES
        return np.asarray(0.5 * freedom / gammaincinv(0.5 * freedom, level))

    def _rows_behind(self, metric: Metric) -> FloatArray:
        """How many rows, all counting alike, a metric rests on: of the kind of which there are fewest."""
        cells = self._rows.cells
        mean = self._nodes.weight @ self._nodes.probability
        expected = self._expected_of([mean if self._nodes.column is None else mean[self._nodes.column]])[:, 0]
        per_row = 1.0 if cells.weight is None else cells.weight
        found = (
            (kind * expected).sum() ** 2 / max((kind**2 * expected * per_row).sum(), 1e-300)
            for kind in metric.rests_on(cells)
        )
        return np.array([min(found)])

    def _sampling(self, metric: Metric, mean: FloatArray | None) -> FloatArray:
        """The variance that a metric has at each node because the rows are a sample.

        Where cells and nodes are many, some nodes of all sizes of the metric stand for those between them.
        """
        cells, size = self._rows.cells, len(self._nodes)
        chosen: IntArray = np.arange(size)
        if mean is not None and size * cells.score.size > _MANY and size > _NODES:
            chosen = np.unique(np.argsort(mean)[np.linspace(0, size - 1, _NODES).astype(np.int64)])
        chunk = max(1, _CHUNK // cells.score.size)
        parts = [self._variances(metric, chosen[i : i + chunk].tolist()) for i in range(0, chosen.size, chunk)]
        var = np.concatenate(parts)
        if mean is None or chosen.size == size:
            return var
        order = np.argsort(mean[chosen])
        return np.interp(mean, mean[chosen][order], var[order])

    def _variances(self, metric: Metric, posterior: list[int]) -> FloatArray:
        cells = self._rows.cells
        effect = metric.row_influence(cells, self._expected(posterior))
        assert effect is not None
        if cells.weight is not None:
            effect = effect * cells.weight
        chance = np.zeros((len(posterior), cells.score.size))
        for i, node in enumerate(posterior):
            chance[i, self._rows.missing_cells] = self._nodes.of_cells(node)
        if self._groups is not None:
            return np.array([self._of_groups(effect[:, i], node) for i, node in enumerate(posterior)])
        negative, positive = effect
        missing = chance * positive**2 + (1.0 - chance) * negative**2
        if self._given:
            missing = (chance * positive + (1.0 - chance) * negative) ** 2
        var = cells.negatives * negative**2 + cells.positives * positive**2 + cells.missing * missing
        result: FloatArray = np.nan_to_num(var.sum(axis=1))
        return result

    def _of_groups(self, effect: FloatArray, node: int) -> float:
        """The variance at a node where groups are drawn whole: that of the sums of their influences, over labels."""
        cells, places, missing = self._rows.cells, self._rows.missing_cells, self._rows.missing_counts
        assert self._groups is not None
        if node not in self._labels:
            size = 1 if self._given or not places.size else max(8, _LABELINGS // len(self._nodes))
            self._labels[node] = (missing * self._nodes.of_cells(node))[None, :]
            if size > 1:
                drawn = self._nodes.draw(node, missing, size, np.random.default_rng(node))
                self._labels[node] = drawn.astype(np.float64)
        known = cells.negatives * effect[0] + cells.positives * effect[1]
        number = int(self._groups.max()) + 1
        squares = []
        for own in self._labels[node]:
            total = known.copy()
            total[places] += own * effect[1, places] + (missing - own) * effect[0, places]
            squares.append(float((np.bincount(self._groups, total, number) ** 2).sum()))
        return float(np.nan_to_num(np.mean(squares))) * number / max(number - 1, 1)

    def _drawn(self, metric: Metric) -> MetricDistribution:
        """A law of draws: labels at each node, and rows (or their groups) with replacement."""
        if self._given:
            raise MethodError(
                "scope",
                f"'population' for {metric.name!r}, which is known by its values only",
                "If probabilities of missing labels are passed, the population needs a formula of the metric.",
                "Write it as a ConfusionMetric or a LossMetric, or let a mechanism learn the probabilities.",
            )
        cells, posterior, rng = self._rows.cells, self._nodes, np.random.default_rng(0)
        places, missing = self._rows.missing_cells, self._rows.missing_counts
        ends = np.rint(_DRAWS * np.cumsum(posterior.weight) / posterior.weight.sum()).astype(np.int64)
        values = []
        for node, number in enumerate(np.diff(ends, prepend=0).tolist()):
            for labels in posterior.draw(node, missing, number, rng) if number else ():
                counts = np.stack([cells.negatives, cells.positives]).astype(np.int64)
                counts[1, places] += labels
                counts[0, places] += missing - labels
                drawn = self._sampled(counts, rng)
                drawn = drawn if cells.weight is None else drawn * cells.weight
                values.append(float(metric.of_counts(cells, drawn[:, None, :])[0]))
        return Discrete.from_atoms(
            np.array(values), np.ones(len(values)), np.nan, method="monte carlo", bounds=Interval(*metric.range)
        )

    def _sampled(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Rows of another sample of the same size, by class and cell."""
        if self._groups is not None:
            number = int(self._groups.max()) + 1
            return (counts * rng.multinomial(number, np.full(number, 1.0 / number))[self._groups]).astype(np.float64)
        total = int(counts.sum())
        return rng.multinomial(total, counts.ravel() / total).reshape(counts.shape).astype(np.float64)


class View(NamedTuple):
    """One model's metric on shared rows: its own evaluation set, and the shared cell of each of the set's cells."""

    metric: Metric
    data: EvaluationSet
    cell: IntArray | None = None


def sampling_correlation(views: Sequence[View], posterior: Posterior) -> FloatArray:
    """Compute how the sampling errors of several metrics of the same rows are correlated, to first order.

    A row that is sampled once more moves every metric by its influence. One more row of either class, of which the
    models know nothing, counts too, so that rows on which all models agree do not make their difference certain.
    Metrics without influences use resampled rows. `posterior` is that of the missing cells of the shared rows.
    """
    mean = posterior.weight @ posterior.on_all_cells.probability / posterior.weight.sum()
    moves = [_influence_of_rows(view, mean) for view in views]
    covariance = np.zeros((len(views), len(views)))
    for i, (one, blind) in enumerate(moves):
        for j, (other, _) in enumerate(moves[: i + 1]):
            covariance[i, j] = covariance[j, i] = float((one * other).sum())
            if i == j:
                covariance[i, i] += blind
    # Metrics that no row tells apart are one.
    orders = [_order_of_rows(view) for view in views]
    for i, (one, _) in enumerate(moves):
        for j, (other, _) in enumerate(moves[:i]):
            if np.array_equal(orders[i], orders[j]) and np.allclose(one, other, rtol=1e-9, atol=0.0):
                covariance[i], covariance[:, i] = covariance[j], covariance[:, j]
                covariance[i, i] = covariance[j, j]
                break
    sd = np.sqrt(np.diag(covariance))
    safe = np.where(sd > 0.0, sd, 1.0)
    correlation: FloatArray = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _order_of_rows(view: View) -> IntArray:
    """Rank of the score and prediction of each shared cell."""
    cells = view.data.cells
    rank = np.cumsum(np.diff(cells.score, prepend=cells.score[:1]) > 0.0)
    result = np.stack([rank, cells.decision.astype(np.int64)])
    if view.cell is not None:
        result[:, view.cell] = result.copy()
    return result


def _influence_of_rows(view: View, mean: FloatArray) -> tuple[FloatArray, float]:
    """Root of the rows times their influence (2 classes x shared cells), and the variance from a row nobody knows."""
    cells, places = view.data.cells, view.data.missing_cells
    p = np.zeros(cells.score.size)
    order = np.arange(cells.score.size) if view.cell is None else view.cell
    missing_number = np.searchsorted(np.sort(order[places]), order[places])
    p[places] = mean[missing_number]
    counts = np.stack([cells.negatives + cells.missing * (1.0 - p), cells.positives + cells.missing * p])
    weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
    effect = view.metric.row_influence(cells, (counts * weight)[:, None, :])
    moved = _resampled_influence(view.metric, cells, counts) if effect is None else np.nan_to_num(effect[:, 0]) * weight
    shared = np.empty_like(moved)
    shared[:, order] = np.sqrt(counts) * moved
    sides = [side for side in (cells.decision, ~cells.decision) if side.any()]
    rows = cells.total
    centre = [np.mean([rows[side] @ own[side] / rows[side].sum() for side in sides]) for own in moved]
    blind = sum(
        float(np.mean([rows[side] @ (own[side] - c) ** 2 / rows[side].sum() for side in sides]))
        for own, c in zip(moved, centre, strict=True)
    )
    return shared, blind


def _resampled_influence(metric: Metric, cells: Cells, counts: FloatArray) -> FloatArray:
    """Influence of a row on a metric that is known by its values alone: what one row more of each cell does to it."""
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
        noise = noise[first]  # metrics that no row tells apart move together to the last digit
    result = np.empty_like(values)
    fixed = np.broadcast_to(given, size)
    for k, (own, rows, population) in enumerate(zip(values, on_rows, in_population, strict=True)):
        sampling = population.var() if fixed[k] else max(population.var() - rows.var(), 0.0)
        moved = (0.0 if fixed[k] else own) + np.sqrt(sampling) * noise[k]
        result[k] = np.where(np.isnan(own), np.nan, _quantiles_by_rank(moved, population))
    return result


def _quantiles_by_rank(values: FloatArray, distribution: MetricDistribution) -> FloatArray:
    """The quantile of a distribution at the rank of each value."""
    defined = ~np.isnan(values)
    result = np.full(values.shape, np.nan)
    if distribution.undefined >= 1.0 or not defined.any():
        return result
    _, rank, counts = np.unique(values[defined], return_inverse=True, return_counts=True)
    level = (np.cumsum(counts) - 0.5 * counts)[rank] / defined.sum()
    scores = np.linspace(-_REACH, _REACH, _N_QUANTILES)
    if isinstance(distribution, Discrete):
        quantiles = np.asarray(distribution.ppf(ndtr(scores)))
    else:  # one table of the cdf takes less than a search for each quantile
        low, high = (float(distribution.ppf(ndtr(end))) for end in (-_REACH, _REACH))
        quantiles = np.linspace(low, high, 2 * _N_QUANTILES)
        scores = np.maximum.accumulate(ndtri(np.clip(distribution.cdf(quantiles), 1e-12, 1.0 - 1e-12)))
    result[defined] = np.interp(ndtri(level), scores, quantiles)
    return result


def _node_moments(a: FloatArray, b: FloatArray, mass: FloatArray, form: Rational) -> DrawMoments:
    """Mean and variance at each node of a rational function of a share, to first order."""
    weight = mass.sum(axis=1)
    own = mass / np.where(weight > 0.0, weight, 1.0)[:, None]
    share = a / (a + b)
    mean = (own * share).sum(axis=1)
    var = (own * (share * (1.0 - share) / (a + b + 1.0) + (share - mean[:, None]) ** 2)).sum(axis=1)
    p, q, r, s = form
    slope = (p * s - q * r) / (r * mean + s * (1.0 - mean)) ** 2
    return DrawMoments.of(weight, form.at(mean), slope**2 * var)
