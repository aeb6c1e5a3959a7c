"""The law of ROC-AUC at one node or mixed over many: exact where little is open, else by clusters or an expansion."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc.clusters import Points, auc_law_by_clusters, auc_law_of_alike_nodes, of_node_groups
from darkmetrics._kernels.auc.expansion import (
    Expansions,
    expansions,
    joined,
    label_sums,
    mixed_cdf,
    settle_leading_rows,
)
from darkmetrics._kernels.auc.labelings import spread_counts, spread_labelings
from darkmetrics._kernels.auc.lattice import auc_law_on_lattice
from darkmetrics._kernels.auc.plan import (
    Plan,
    alike_nodes,
    all_light,
    clumped,
    combinations,
    neglected,
    nodes_by_labeling,
    rank_clusters,
    stepped,
    tie_clusters,
    tie_plan,
    whole_groups,
)
from darkmetrics._kernels.auc.ranks import RankData, half_ties, settle
from darkmetrics.distributions import Discrete, MetricDistribution, NodeMoments, Tabulated, Undefined, image, mix
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import Functional, RankFunctional
from darkmetrics.methods.base import Problem, about, settled
from darkmetrics.methods.proofs import certificate_on_cells
from darkmetrics.posterior import Posterior

# Combinations of counts that are all gone through, at one node and at many, and those that clusters may have.
_MOST_ATOMS, _MOST_MIXED, _MOST_COMBINATIONS = 1 << 20, 1 << 18, 1 << 13
# Where rows have very different weights, clusters may have more.
_MOST_UNEVEN = 1 << 15
# From this total label variance on four cumulants describe ROC-AUC to 0.005 or better, unless a few rows of high
# leverage decide or the law falls into clumps. The errors of many laws that are mixed average out: a smaller variance
# and larger shares of one row will do.
_MANY_NODES, _VARIANCE, _SHARE = 8, (16.0, 4.0), (0.05, 0.2)
# A node of less variance v is off by less than 4 exp(-v), and may be wholly off: together they may move the mixture by
# so much, which is less than what is asked of each law by itself.
_MOVED, _OFF = 0.004, 4.0
# Nodes of no more weight than this together have thousands of labelings for their law, which leave a thousandth of the
# mixture open; clusters would take longer for them than expansions for all others.
_LITTLE = 1.0 / 32.0
# How much of the spread may be left out where tied pairs that count in full are taken to first order.
_LEFT_OUT = 0.02
# Ranks (of rows of one weight) up to which steps of the law are looked for.
_FEW_RANKS = 32
# How many times fewer combinations should lead to the same law, where rows have weights.
_FEWER = 4
# By how much steps may move then, in standard deviations: clusters blur more than the places of a lattice do.
_STEP = 0.025
# Moments of clusters that are off by such a share of the law's standard deviation or variance are not believed.
_OTHER = 0.1
# Chance up to which one class may be left to rows that clusters do not tell apart.
_LIGHT = 0.005
# Rows beyond which there are no clusters: leading rows are settled both ways, and the rest is expanded.
_MOST_ROWS = 20_000
# The same at several nodes where rows have weights. Clusters with ever more combinations may agree there and be off
# together: by 0.11 where weights of a thousand rows have no mean to speak of (Pareto, 1.1).
_MOST_UNEVEN_ROWS = 600
# Cells that differ in weight, from which on all those of one chance are added up before the nodes are gone through.
_MANY_CELLS = 1 << 12
_FEW_DECIDE = (
    "method: no exact law of ROC-AUC where few rows of very different weights decide; use 'auto' or 'monte_carlo'."
)
_FEW_TIES = (
    "method: no exact law of ROC-AUC with ties in full where few groups of ties decide and their rows have several "
    "weights; use 'auto' or 'monte_carlo'."
)


def shared_rank_law(functional: RankFunctional, problem: Problem, *, merged: bool) -> MetricDistribution:
    """The law of ROC-AUC, or of what moves with it; the image of a law that is known where it has the same ranks.

    `merged`: cells that the nodes do not tell apart are one.
    """
    nodes = problem.nodes if merged else problem.nodes.on_all_cells
    for other, law in problem.ranked:
        scale = functional.scale / other.scale
        shift = functional.shift - scale * other.shift
        if not (scale > 0.0 and _same(functional, other, shift + scale * other.fill)):
            continue
        if isinstance(law, MethodError):
            raise law
        moved = image(law, shift, scale, **about(functional, law.method))
        if moved is not None:
            certify = None if law.certify is None else partial(certificate_on_cells, functional, nodes)
            return replace(moved, certify=certify)
    try:
        found = law_of_many_ranks(functional, nodes) if merged else None
        found = found or rank_law(*Problem(nodes).on_cells(functional))
    except MethodError as why:
        problem.ranked.append((functional, why))
        raise
    problem.ranked.append((functional, found))
    return found


def _same(functional: RankFunctional, other: RankFunctional, fill: float) -> bool:
    """Whether two metrics have the same ranks, and the image of one's value of a 0/0 stands for the other's."""
    if not np.array_equal(functional.fill, fill, equal_nan=True):
        return False
    pairs: Any = zip(functional.data, other.data, strict=True)
    return all(a is b or np.array_equal(a, b) for a, b in pairs)


def law_of_many_ranks(functional: RankFunctional, nodes: Posterior) -> MetricDistribution | None:
    """The mixture of expansions where very many cells have few different chances; None unless all nodes are smooth."""
    data, p, weight, column = functional.data, nodes.probability, nodes.weight, nodes.bucket
    if column is None or weight.size < _MANY_NODES or column.size < _MANY_CELLS or data.full_ties:
        return None
    held = p[:, nodes.used]
    if np.any((held <= 0.0) | (held >= 1.0)) or functional.never_moves:
        return None
    # Cells of few weights are merged, and few are left.
    if np.unique(data.weight).size < _MANY_CELLS or tie_clusters(data, np.log2(_MOST_MIXED)) is not None:
        return None
    found = expansions(data, p, column)
    if np.any(found.largest > _SHARE[1]) or np.any(found.variance < _VARIANCE[1]):
        return None
    if clumped(data, (weight @ p)[None, column], np.ones(1)):
        return None
    law, moments = _expanded(functional, found, weight)
    certify = partial(certificate_on_cells, functional, nodes)
    return replace(law, by_node=_by_node(functional, weight, moments), certify=certify)


def rank_law(functional: RankFunctional, problem: Problem) -> MetricDistribution:
    """The mixture over the nodes of the laws of ROC-AUC."""
    nodes = problem.nodes
    weight, fill = nodes.weight, (functional.fill - functional.shift) / functional.scale
    # Rows that are sure take no part in the law; what is left is as if they had been labelled.
    least, most = nodes.probability.min(axis=0), nodes.probability.max(axis=0)
    sure = functional.missing * ((least >= 1.0).astype(np.int64) - (most <= 0.0))
    data, p = functional.data, nodes.probability
    data, p = settle(data, p, sure) if sure.any() else (data, p)
    law = _all_counts(functional, data, p, weight, fill)
    if law is not None:
        return law
    if functional.never_moves:
        absent = float(weight @ [functional.undefined_mass(q) for q in nodes.probability])
        return _discrete(functional, np.array([0.5, np.nan]), np.array([1.0 - absent, absent]), "exact")
    halved = half_ties(data, weight @ p)
    # Tied pairs that count in full are taken to first order about what each node expects.
    found = joined([expansions(half_ties(data, q), q[None]) for q in p]) if data.full_ties else expansions(halved, p)
    mixed_in = int(weight.size >= _MANY_NODES)
    even = found.largest <= _SHARE[mixed_in]
    smooth = even & (found.variance >= _VARIANCE[mixed_in])
    off = np.minimum(_OFF * np.exp(-found.variance), 1.0)
    if mixed_in and weight[even & ~smooth] @ off[even & ~smooth] <= _MOVED:
        smooth = even
    no_group = np.zeros(data.group_total.size, dtype=np.bool_)
    left_out = neglected(data, halved, (weight @ p)[None], np.ones(1), no_group) if data.full_ties else 0.0
    ties = tie_clusters(data, _FEW_RANKS)
    if smooth.any() and (left_out > _LEFT_OUT or _falls_apart(halved, ties, p, weight, found)):
        smooth[:] = False
    if weight.size == 1 and not smooth[0] and np.all(data.weight == 1.0):
        lattice = auc_law_on_lattice(data, p[0])
        if lattice is not None:
            return _discrete(functional, *lattice, "exact")
    both_ways = None
    if weight.size > 1 and not even.all() and not data.full_ties:
        # Clusters know the nodes by their means, which is not enough where one row decides and the others are many.
        both_ways = _settled(functional, halved, p, weight, if_smooth=True)
    law, moments = both_ways or _in_parts(functional, nodes, data, ties, p, smooth, found, fill)
    if isinstance(law, Undefined):
        return law
    certify = partial(certificate_on_cells, functional, nodes)
    return replace(law, by_node=_by_node(functional, weight, moments), certify=certify)


def _falls_apart(
    data: RankData, ties: list[IntArray] | None, p: FloatArray, weight: FloatArray, found: Expansions
) -> bool:
    """Whether the law has clumps or steps that expansions do not show; `ties` are the clusters of few ranks."""
    if clumped(data, p, weight):
        return True
    return ties is not None and stepped(data, ties, p, weight, found.mean, found.sd)


def _in_parts(
    functional: RankFunctional,
    nodes: Posterior,
    data: RankData,
    ties: list[IntArray] | None,
    p: FloatArray,
    smooth: BoolArray,
    found: Expansions,
    fill: float,
) -> tuple[MetricDistribution, FloatArray]:
    """The nodes at which the law is smooth by their expansions, the others by clusters."""
    weight = nodes.weight
    laws, shares, moments = [], [], np.zeros((3, weight.size))
    parts, rough = [smooth, ~smooth], np.flatnonzero(~smooth)
    if rough.size < _MANY_NODES and bool(np.any(data.weight != 1.0)):
        # Clusters of rows of other weights that nodes far apart share can be off by 0.03, however many there are.
        parts = [smooth, *(np.arange(weight.size) == rough[:, None])]
    for some in parts:
        share = float(weight[some].sum())
        if not some.any():
            continue
        own = weight[some] / share if share > 0.0 else np.full(int(some.sum()), 1.0 / some.sum())
        if some is smooth:
            law, moments[:, some] = _expanded(functional, found.of(some), own)
        else:
            absent = float(own @ [functional.undefined_mass(q) for q in nodes.probability[some]])
            little = _of_labelings(functional, data, p[some], own, fill, absent) if share <= _LITTLE else None
            law, moments[:, some] = little or _clustered(functional, data, ties, p[some], own, fill, absent)
        laws.append(law)
        shares.append(share)
    facts = {"given_defined": functional.given_defined, **about(functional, "near exact")}
    return laws[0] if len(laws) == 1 else mix(laws, np.array(shares), **facts), moments


def _all_counts(
    functional: RankFunctional, data: RankData, p: FloatArray, weight: FloatArray, fill: float
) -> MetricDistribution | None:
    """The exact law from all combinations of the counts of tied rows; None where they are too many."""
    most = _MOST_ATOMS if weight.size == 1 else _MOST_MIXED
    if data.full_ties and not np.all(data.weight == 1.0):
        return None
    clusters = tie_clusters(data, np.log2(most))  # each has two counts at least
    if clusters is None or combinations(data, p, clusters) > most:
        return None
    atoms = auc_law_by_clusters(data, p, weight, Plan(clusters), fill)
    if atoms is None:
        return None
    law = _discrete(functional, atoms.values, atoms.masses, "exact")
    if weight.size == 1 or isinstance(law, Undefined):
        return law
    return replace(law, by_node=_by_node(functional, weight, np.stack(atoms[2:])))


def _expanded(
    functional: RankFunctional, found: Expansions, weight: FloatArray
) -> tuple[MetricDistribution, FloatArray]:
    ends = (np.array([functional.extremes.low, functional.extremes.high]) - functional.shift) / functional.scale
    cdf = mixed_cdf(found, weight, float(ends.min()), float(ends.max()))
    t, levels = (cdf.grid, cdf.levels) if functional.scale > 0.0 else (cdf.grid[::-1], 1.0 - cdf.levels[::-1])
    return tabulated(functional, functional.affine(t), levels), np.stack([np.ones(weight.size), cdf.mean, cdf.var])


def _of_labelings(
    functional: RankFunctional, data: RankData, p: FloatArray, weight: FloatArray, fill: float, absent: float
) -> tuple[MetricDistribution, FloatArray] | None:
    """The law of nodes of little weight; None where labelings would take long, or ties count in full."""
    found = None if data.full_ties else spread_labelings(data, p)
    return None if found is None else _of_points(functional, found.points(weight, fill), absent)


def _clustered(
    functional: RankFunctional,
    data: RankData,
    ties: list[IntArray] | None,
    p: FloatArray,
    weight: FloatArray,
    fill: float,
    absent: float,
) -> tuple[MetricDistribution, FloatArray]:
    """The law by clusters, those of few ranks if there are `ties`; `absent` is the chance that a class has no row."""
    if ties is not None:
        tied = of_node_groups(
            nodes_by_labeling(data, p, weight), weight, partial(_of_ties, data, p, weight, fill, ties)
        )
        assert tied is not None
        law, moments = _of_points(functional, tied, absent)
        return law, moments if isinstance(law, Undefined) else _in_all(functional, law, moments, weight)
    if data.counts.sum() > _MOST_ROWS:
        both_ways = _settled(functional, half_ties(data, weight @ p), p, weight)
        if both_ways is None:
            raise MethodError(
                "method: no exact law of ROC-AUC where few of very many rows decide (by their weight or their rank); "
                "use 'auto' or 'monte_carlo'."
            )
        return both_ways
    uneven = bool(np.any(data.weight != 1.0))
    if uneven and weight.size > 1 and data.counts.sum() > _MOST_UNEVEN_ROWS:
        raise MethodError(_FEW_DECIDE)
    by_clusters = partial(_of_clusters, functional, data, p, weight, fill, absent)
    law, moments, light, number = by_clusters(_MOST_COMBINATIONS)
    # Of rows of like ranks and very different weights few decide, which clusters of them do not show.
    if uneven and not isinstance(law, Undefined):
        most = _MOST_COMBINATIONS
        fewer, *_, before = by_clusters(most // _FEWER)
        # As many clusters as with fewer combinations are the same ones: that they agree says nothing.
        while light > _LIGHT or (number == before < data.counts.size) or not settled(law, fewer, step=_STEP):
            most *= _FEWER
            if most > _MOST_UNEVEN:
                raise MethodError(_FEW_DECIDE)
            fewer, before, (law, moments, light, number) = law, number, by_clusters(most)
    return law, moments if isinstance(law, Undefined) else _in_all(functional, law, moments, weight)


def _of_ties(
    data: RankData, p: FloatArray, weight: FloatArray, fill: float, ties: list[IntArray], own: IntArray, share: float
) -> Points:
    """The law of some nodes from the counts of all ranks: the combinations that matter or, of too many, a fixed set."""
    mixed, points = weight[own] / share, None
    plan = tie_plan(data, ties, p[own], mixed)
    if plan is not None and (not data.full_ties or whole_groups(data, ties).all()):
        points = auc_law_by_clusters(data, p[own], mixed, plan, fill)
    if points is not None:
        return points
    return spread_counts(data, p[own], ties, weight.size).points(mixed, fill)


def _of_clusters(
    functional: RankFunctional,
    data: RankData,
    p: FloatArray,
    weight: FloatArray,
    fill: float,
    absent: float,
    most: int,
) -> tuple[MetricDistribution, FloatArray, float, int]:
    """The law by about so many combinations of clusters, moments of nodes, chance `all_light`, number of clusters."""
    light, number = 0.0, 0

    def law(own: IntArray, share: float) -> Points | None:
        nonlocal light, number
        halved, mixed = half_ties(data, weight[own] / share @ p[own]), weight[own] / share
        plan = rank_clusters(halved, p[own], mixed, most)
        light += share * all_light(data, plan.clusters, p[own], mixed)
        number += len(plan.clusters)
        return _points(data, halved, p[own], mixed, fill, plan)

    found = of_node_groups(nodes_by_labeling(data, p, weight), weight, law)
    if found is None:
        raise MethodError(_FEW_DECIDE)
    return *_of_points(functional, found, absent), light, number


def _of_points(functional: RankFunctional, points: Points, absent: float) -> tuple[MetricDistribution, FloatArray]:
    """The law that has these points, and moments of the nodes."""
    auc, masses, *moments = points
    held = ~np.isnan(auc)
    if 0.0 < absent < 1.0 and held.any():  # that chance is known, and points need not meet it
        auc, masses = np.append(auc[held], np.nan), masses[held]
        masses = np.append(masses * ((1.0 - absent) / masses.sum()), absent)
    return _discrete(functional, auc, masses, "near exact"), np.array(moments)


def _points(
    data: RankData, halved: RankData, p: FloatArray, weight: FloatArray, fill: float, plan: Plan
) -> Points | None:
    """The law of ROC-AUC by clusters that these nodes share."""
    if data.full_ties:
        whole = whole_groups(data, plan.clusters)
        for own in alike_nodes(halved, p, weight, plan.clusters):
            if neglected(data, halved, p[own], weight[own] / weight[own].sum(), whole) > _LEFT_OUT:
                raise MethodError(_FEW_TIES)
    return auc_law_of_alike_nodes(data, halved, p, weight, plan, fill)


def _in_all(functional: RankFunctional, law: MetricDistribution, moments: FloatArray, weight: FloatArray) -> FloatArray:
    """Moments of the nodes, moved so that together they are those of the law where these are clearly others.

    Clusters of rows of very different weights are described by few numbers each: that blurs moments more than the law.
    """
    share = weight * moments[0] / (weight @ moments[0])
    mean, var = (law.mean() - functional.shift) / functional.scale, law.var() / functional.scale**2
    off = mean - float(share @ moments[1])
    own = moments[1] + off
    within, between = float(share @ moments[2]), float(share @ (own - mean) ** 2)
    if off**2 <= _OTHER**2 * var and abs(within + between - var) <= _OTHER * var:
        return moments
    scale = max(0.0, var - between) / within if within > 0.0 else 1.0
    return np.stack([moments[0], own, scale * moments[2]])


def _settled(
    functional: RankFunctional, data: RankData, p: FloatArray, weight: FloatArray, *, if_smooth: bool = False
) -> tuple[MetricDistribution, FloatArray] | None:
    """Leading rows settled both ways, expansions of the rest; None if too many lead, or if the rest is not smooth."""
    cases = settle_leading_rows(data, p, weight, _SHARE[0])
    if cases is None:
        return None
    parts, sums = [], label_sums(*cases[0][:2])
    for i, (case, chances, _) in enumerate(cases):
        if i and chances is not cases[i - 1][1]:  # cases of the same rows follow one another
            sums = label_sums(case, chances)
        parts.append(expansions(case, chances, given=sums))
    if if_smooth:
        share = _SHARE[int(weight.size >= _MANY_NODES)]
        if any(part.variance.min() < _VARIANCE[0] or part.largest.max() > share for part in parts):
            return None
        if any(
            _falls_apart(case, tie_clusters(case, _FEW_RANKS), chances, own / own.sum(), part)
            for (case, chances, own), part in zip(cases, parts, strict=True)
        ):
            return None
    shares = np.concatenate([own for _, _, own in cases])
    law, moments = _expanded(functional, joined(parts), shares / shares.sum())
    own = (shares / np.tile(weight, len(cases))).reshape(len(cases), -1)
    mean, var = moments[1:].reshape(2, len(cases), -1)
    total = (own * mean).sum(axis=0)
    return law, np.stack([np.ones(weight.size), total, (own * (var + (mean - total) ** 2)).sum(axis=0)])


def _by_node(functional: RankFunctional, weight: FloatArray, moments: FloatArray) -> NodeMoments:
    total = weight * moments[0]
    return NodeMoments.of(total / total.sum(), functional.affine(moments[1]), functional.scale**2 * moments[2])


def _discrete(functional: RankFunctional, auc: FloatArray, masses: FloatArray, method: str) -> MetricDistribution:
    values = functional.affine(auc)
    if method != "exact":
        values = np.clip(values, functional.extremes.low, functional.extremes.high)
    return Discrete.from_atoms(values, masses, functional.fill, **about(functional, method))


def tabulated(functional: Functional, grid: FloatArray, levels: FloatArray) -> MetricDistribution:
    """A continuous law on the part of the grid inside the bounds, from cdf 0 to cdf 1."""
    low, high, _ = functional.extremes
    levels = (levels - levels[0]) / (levels[-1] - levels[0])
    return Tabulated(grid=np.clip(grid, low, high), levels=levels, **about(functional, "near exact"))
