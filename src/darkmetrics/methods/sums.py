"""The law of a weighted sum of labels: at one node, and mixed over many."""

from dataclasses import replace
from functools import partial

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sums.linear_sum import Lattice, linear_sum_law
from darkmetrics._kernels.sums.linear_sum_nodes import mixed_linear_sum
from darkmetrics.certificate import Certificate
from darkmetrics.distribution import Discrete, MetricDistribution, NodeMoments
from darkmetrics.functional import LinearFunctional
from darkmetrics.methods.base import about
from darkmetrics.methods.certificates import certifier
from darkmetrics.methods.ranks import tabulated
from darkmetrics.nodes import Nodes

# Fewer nodes take no longer one by one.
_MANY_NODES = 8


def linear_law(functional: LinearFunctional, p: FloatArray) -> MetricDistribution:
    """The law at one node."""
    return _of_lattice(functional, linear_sum_law(functional.weight, p, functional.missing))


def many_linear_laws(functional: LinearFunctional, nodes: Nodes) -> MetricDistribution | None:
    """The mixture of the laws at many nodes, found for all of them together; None where each has to go by itself."""
    if len(nodes) < _MANY_NODES:
        return None
    bucket = np.arange(functional.missing.size) if nodes.bucket is None else nodes.bucket
    found = mixed_linear_sum(functional.weight, functional.missing, bucket, nodes.probability, nodes.weight)
    if found is None:
        return None
    by_node = NodeMoments.of(nodes.weight, functional.constant + found.mean, found.var)
    law = replace(_of_lattice(functional, found.law), by_node=by_node)
    return law if law.method == "exact" else replace(law, certify=partial(_certificate, functional, nodes))


def _of_lattice(functional: LinearFunctional, law: Lattice) -> MetricDistribution:
    values = functional.constant + law.values()
    if not law.smooth:
        method = "exact" if law.exact else "near exact"
        return Discrete.from_atoms(values, law.pmf, functional.fill, **about(functional, method))
    edges = np.append(values - 0.5 * law.step, values[-1] + 0.5 * law.step)
    return tabulated(functional, edges, np.concatenate(([0.0], np.cumsum(law.pmf))))


def _certificate(functional: LinearFunctional, nodes: Nodes, law: MetricDistribution) -> Certificate:
    """What is proven, on merged cells: the law needs none of them, and a probability for each takes much memory."""
    if nodes.bucket is not None:
        functional, bucket = functional.coarse(nodes.bucket)
        nodes = nodes.on(bucket)
    return certifier(functional, nodes.rows, nodes.weight)(law)
