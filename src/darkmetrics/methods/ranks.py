"""The law of ROC-AUC: at one node by atoms, lattices or an expansion, at many nodes by the same for all at once."""

from dataclasses import replace

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, dot
from darkmetrics._kernels.auc import settle
from darkmetrics._kernels.auc_edgeworth import mixed_edgeworth_cdf, split_at_leading_rows
from darkmetrics._kernels.auc_edgeworth_nodes import NodeCumulants, mixed_cdf, node_cumulants
from darkmetrics._kernels.auc_halves import NodeAtoms, auc_law_by_halves
from darkmetrics._kernels.auc_lattice import auc_law_by_groups, auc_law_on_lattice
from darkmetrics._kernels.auc_tilts import auc_law_by_tilts
from darkmetrics.distribution import Discrete, MetricDistribution, NodeMoments, Tabulated, Undefined, mix
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import Functional, RankFunctional
from darkmetrics.methods.base import about
from darkmetrics.methods.certificates import certifier
from darkmetrics.nodes import Nodes

# From this total label variance on, Edgeworth's four cumulants describe ROC-AUC to 0.005 or better, unless a few rows
# of high leverage decide; these are set apart.
_LATTICE_VARIANCE = 16.0
# Where at least eight laws are mixed their errors average out: the expansion does from a smaller variance on, and no
# row is set apart that contributes up to a fifth of the variance.
_MANY_NODES, _MIXED_VARIANCE, _MIXED_SHARE = 8, 4.0, 0.2
# Half the variance will do for nodes that have so little weight together.
_LITTLE_WEIGHT = 1.0 / 16.0
# The same for nodes that go one by one, with rows set apart.
_SPLIT_VARIANCE = 6.0


def many_rank_laws(functional: RankFunctional, nodes: Nodes) -> MetricDistribution | None:
    """The mixture of the laws at many nodes, found for all of them together; None where each has to go by itself."""
    data, p = functional.data, nodes.probability
    unit = bool(np.all(data.weight == 1.0))
    if len(nodes) < _MANY_NODES:
        return None
    fill = (functional.fill - functional.shift) / functional.scale
    if unit and (atoms := auc_law_by_halves(data, p, nodes.weight, fill)) is not None:
        law = _discrete(functional, atoms, "exact")
        return law if isinstance(law, Undefined) else replace(law, by_node=_moments(functional, nodes.weight, atoms))
    if data.full_ties:
        return None
    cumulants = node_cumulants(data, p)
    many = (cumulants.variance >= _MIXED_VARIANCE) & (cumulants.largest <= _MIXED_SHARE)
    if nodes.weight[~many].sum() <= _LITTLE_WEIGHT:
        many |= (cumulants.variance >= 0.5 * _MIXED_VARIANCE) & (cumulants.largest <= 2.0 * _MIXED_SHARE)
    if not (unit or np.all(many & (cumulants.variance >= _LATTICE_VARIANCE))):
        return None
    # Where few rows decide although much is random, they are set apart one node after the other.
    if np.any(~many & (cumulants.variance >= 4.0 * _LATTICE_VARIANCE)):
        return None
    return _mixed_laws(functional, nodes, cumulants, many, fill)


def _mixed_laws(
    functional: RankFunctional, nodes: Nodes, cumulants: NodeCumulants, many: BoolArray, fill: float
) -> MetricDistribution:
    """Expansions at the nodes where many rows decide, a lattice for all others."""
    weight, laws, shares = nodes.weight, [], []
    defined, mean, var = np.ones(weight.size), np.zeros(weight.size), np.zeros(weight.size)
    for some in (many, ~many):
        share = float(weight[some].sum())
        if not some.any():
            continue
        own = weight[some] / share if share > 0.0 else np.full(int(some.sum()), 1.0 / some.sum())
        if some is many:
            ends = (np.array([functional.extremes.low, functional.extremes.high]) - functional.shift) / functional.scale
            cdf = mixed_cdf(cumulants.of(some), own, float(ends.min()), float(ends.max()))
            mean[some], var[some] = cdf.mean, cdf.var
            laws.append(_from_cdf(functional, cdf.grid, cdf.levels))
        else:
            atoms = auc_law_by_tilts(functional.data, nodes.probability[some], own, fill)
            defined[some], mean[some], var[some] = atoms.defined, atoms.mean, atoms.var
            laws.append(_discrete(functional, atoms, "near exact"))
        shares.append(share)
    given_defined = bool(np.isnan(functional.fill))
    law = (
        laws[0]
        if len(laws) == 1
        else mix(laws, np.array(shares), given_defined=given_defined, **about(functional, "near exact"))
    )
    if isinstance(law, Undefined):
        return law
    total = weight * defined
    by_node = NodeMoments.of(total / total.sum(), functional.affine(mean), functional.scale**2 * var)
    return replace(law, by_node=by_node, certify=certifier(functional, nodes.rows, weight))


def _moments(functional: RankFunctional, weight: FloatArray, atoms: NodeAtoms) -> NodeMoments:
    total = weight * atoms.defined
    return NodeMoments.of(total / total.sum(), functional.affine(atoms.mean), functional.scale**2 * atoms.var)


def _discrete(functional: RankFunctional, atoms: NodeAtoms, method: str) -> MetricDistribution:
    values = functional.affine(atoms.values)
    return Discrete.from_atoms(values, atoms.masses, functional.fill, **about(functional, method))


def rank_law(functional: RankFunctional, p: FloatArray, *, share: float) -> MetricDistribution:
    """The law at one node; as one of several laws that are mixed it gets a `share` of the work."""
    # Rows that are sure take no part in the law; what is left is as if they had been labelled.
    sure = functional.missing * ((p >= 1.0).astype(np.int64) - (p <= 0.0))
    data, p = settle(functional.data, p, sure) if sure.any() else (functional.data, p)
    variance = dot(data.counts, p * (1.0 - p))
    unit = bool(np.all(data.weight == 1.0))
    if unit and (atoms := auc_law_by_groups(data, p, share)) is not None:
        values = functional.affine(atoms[0])
        return Discrete.from_atoms(values, atoms[1], functional.fill, **about(functional, "exact"))
    # Of many laws that are mixed none matters much, and none may take long.
    mixed_in = share * _MANY_NODES <= 1.0
    parts = split_at_leading_rows(data, p) if variance >= (_SPLIT_VARIANCE if mixed_in else _LATTICE_VARIANCE) else None
    if parts is None and variance < _LATTICE_VARIANCE and unit:
        auc, masses, exact = auc_law_on_lattice(data, p, share)
        method = "exact" if exact else "near exact"
        return Discrete.from_atoms(functional.affine(auc), masses, functional.fill, **about(functional, method))
    if parts is None or (variance < _LATTICE_VARIANCE and not unit):
        raise MethodError(
            "method: no exact law of ROC-AUC where few rows decide (by their weight or their rank); "
            "use 'auto' or 'monte_carlo'."
        )
    points = 1001 if mixed_in else 4001  # 1e-5 and 1e-6 of cdf between the points
    ends = (np.array([functional.extremes.low, functional.extremes.high]) - functional.shift) / functional.scale
    t, levels = mixed_edgeworth_cdf(parts, float(ends.min()), float(ends.max()), points)
    return _from_cdf(functional, t, levels)


def _from_cdf(functional: RankFunctional, t: FloatArray, levels: FloatArray) -> MetricDistribution:
    """The law of the metric from the cdf of ROC-AUC on a grid."""
    if functional.scale < 0.0:
        t, levels = t[::-1], 1.0 - levels[::-1]
    return tabulated(functional, functional.affine(t), levels)


def tabulated(functional: Functional, grid: FloatArray, levels: FloatArray) -> MetricDistribution:
    """A continuous law on the part of the grid inside the bounds, from cdf 0 to cdf 1."""
    low, high, _ = functional.extremes
    levels = (levels - levels[0]) / (levels[-1] - levels[0])
    return Tabulated(grid=np.clip(grid, low, high), levels=levels, **about(functional, "near exact"))
