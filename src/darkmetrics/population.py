"""The population that the rows came from: laws of metrics there, given those on the rows (mathematics, section 15).

The rows are a sample, and so are their labels. What the metric is on the rows has the law of `methods/`; what it is in
the population differs from that by as much as another sample would. Probabilities that were learnt from the labelled
rows are mixed over, labels drawn (Rubin's rule with an exact law of the labels); probabilities that were given stand
for the labels themselves: drawing labels on top of them would count the same chance twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.beta_parts import PRIOR, few_betas, matched_beta
from darkmetrics.data.evaluation_set import EvaluationSet
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
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.functional import CountFunctional
from darkmetrics.label_models.clusters import ClusteredPosterior
from darkmetrics.methods import Problem
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.metrics.confusion import Share
from darkmetrics.posterior import Posterior

# Combinations of counts whose Beta laws are mixed as they are; of more, Gauss rules stand for them.
_EVERY = 512
# Numbers in one block of influences, and nodes at which the variance of sampling is found where cells are many.
_CHUNK, _MANY, _NODES = 1 << 21, 1 << 22, 12
# Samples of rows and labels where a metric is known by its values alone.
_DRAWS = 2_000
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

    def __init__(self, data: EvaluationSet, nodes: Posterior) -> None:
        rows, nodes = nodes.without_strata(data)
        # Groups of rows are drawn whole; where every row is one of its own there is nothing to it.
        self._groups = rows.groups if isinstance(nodes, ClusteredPosterior) else None
        if self._groups is not None and int(self._groups.max()) < 1:
            raise InputError(
                "groups: all rows are of one group, which says nothing about a population of groups. Leave scope at "
                "'rows', or leave groups out."
            )
        weight = rows.cells.weight
        if weight is not None and bool(np.all(weight == weight[0])):  # one weight for all is none
            cells = replace(rows.cells, weight=None)
            rows = EvaluationSet.from_cells(cells, threshold=rows.threshold, pos_label=rows.pos_label)
        self._rows, self._nodes, self._problem = rows, nodes, Problem(nodes)
        self._given = nodes.given
        # Labelings at each node over which sums of groups are averaged, for all metrics.
        self._labels: dict[int, FloatArray] = {}

    def law(self, metric: Metric, on_rows: MetricDistribution) -> MetricDistribution:
        """The law of a metric in the population, given its law on the rows."""
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
        rows, nodes = self._rows, self._nodes
        if rows.cells.weight is not None or not nodes.independent:
            return None
        functional, problem = self._problem.on_cells(metric.bind(rows, np.nan))
        assert isinstance(functional, CountFunctional)
        laws = problem.groups(functional).laws
        if laws is None:
            return None
        (tp, fn), (fp, tn), (open_yes, open_no) = (
            rows.by_decision[name] for name in ("positives", "negatives", "missing")
        )
        known = np.array([tp, fp + open_yes, fn, tn + open_no])
        moved = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
        sides = share.first, share.second
        used = [i for i in range(2) if any(moved[i] @ side for side in sides) and laws.axes[i].values.size > 1]
        every = np.prod([laws.axes[i].values.size for i in used], dtype=np.float64) <= _EVERY
        points = [np.broadcast_to(known @ side, (len(nodes), 1)).astype(np.float64) for side in sides]
        mass = np.ones((len(nodes), 1))
        for i in used:
            axis = laws.axes[i]
            value, chance = (axis.values[None, :], axis.pmf) if every else axis.rules[0]
            for j, side in enumerate(sides):
                step = float(moved[i] @ side) * value
                points[j] = (points[j][:, :, None] + step[:, None, :]).reshape(len(nodes), -1)
            mass = (mass[:, :, None] * chance[:, None, :]).reshape(len(nodes), -1)
        return _Parts(points[0], points[1], nodes.weight[:, None] * mass, bool(every))

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
        by_node = _node_moments(a, b, mass, form)
        if parts.all_:  # the nodes share the counts
            a, b, mass = a[:1], b[:1], mass.sum(axis=0, keepdims=True)
        some = mass > 0.0
        few = few_betas(a[some], b[some], mass[some])
        return BetaMixture(
            a=few[0],
            b=few[1],
            weight=few[2],
            form=form,
            by_node=by_node if len(self._nodes) > 1 else None,
            method="exact" if parts.all_ else "near exact",
            **about,  # type: ignore[arg-type]  # as above
        )

    def _expected(self, nodes: Sequence[int]) -> FloatArray:
        """Weight of the negatives and positives that are expected in each cell, at some nodes."""
        return self._expected_of([self._nodes.of_cells(node) for node in nodes])

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
        cells, own = self._rows.cells, on_rows.by_node
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
        by_node = NodeMoments.of(weight, mean, var + sampling * often.mean())
        weight, mean = np.repeat(weight / often.size, often.size), np.repeat(mean, often.size)
        var = (var[:, None] + np.multiply.outer(sampling, often)).ravel()
        about: dict[str, object] = {
            "bounds": Interval(low, high),
            "method": "first order",
            "undefined": on_rows.undefined,
            "given_defined": True,
            "by_node": by_node if size > 1 else None,
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
        expected = self._expected_of([mean if self._nodes.bucket is None else mean[self._nodes.bucket]])[:, 0]
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

    def _variances(self, metric: Metric, nodes: list[int]) -> FloatArray:
        cells = self._rows.cells
        effect = metric.row_influence(cells, self._expected(nodes))
        assert effect is not None
        if cells.weight is not None:
            effect = effect * cells.weight
        chance = np.zeros((len(nodes), cells.score.size))
        for i, node in enumerate(nodes):
            chance[i, self._rows.missing_cells] = self._nodes.of_cells(node)
        if self._groups is not None:
            return np.array([self._of_groups(effect[:, i], node) for i, node in enumerate(nodes)])
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
                f"scope: 'population' cannot be had for {metric.name!r}, of which only values are known, where the "
                "probabilities of missing labels are given and not learnt. Write it as a ConfusionMetric or a "
                "LossMetric, or let the label model learn them."
            )
        cells, nodes, rng = self._rows.cells, self._nodes, np.random.default_rng(0)
        places, missing = self._rows.missing_cells, self._rows.missing_counts
        ends = np.rint(_DRAWS * np.cumsum(nodes.weight) / nodes.weight.sum()).astype(np.int64)
        values = []
        for node, number in enumerate(np.diff(ends, prepend=0).tolist()):
            for labels in nodes.draw(node, missing, number, rng) if number else ():
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


def _node_moments(a: FloatArray, b: FloatArray, mass: FloatArray, form: Rational) -> NodeMoments:
    """Mean and variance at each node of a rational function of a share, to first order."""
    weight = mass.sum(axis=1)
    own = mass / np.where(weight > 0.0, weight, 1.0)[:, None]
    share = a / (a + b)
    mean = (own * share).sum(axis=1)
    var = (own * (share * (1.0 - share) / (a + b + 1.0) + (share - mean[:, None]) ** 2)).sum(axis=1)
    p, q, r, s = form
    slope = (p * s - q * r) / (r * mean + s * (1.0 - mean)) ** 2
    return NodeMoments.of(weight, form.at(mean), slope**2 * var)
