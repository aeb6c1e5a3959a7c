"""The law of a weighted sum of labels: at one node, and mixed over many."""

from dataclasses import replace
from functools import partial

import numpy as np

from darkmetrics._kernels.sums.linear_sum import Lattice, linear_sum_law
from darkmetrics._kernels.sums.linear_sum_nodes import mixed_linear_sum
from darkmetrics.distribution import Discrete, MetricDistribution, NodeMoments
from darkmetrics.functional import LinearFunctional
from darkmetrics.methods.base import about
from darkmetrics.methods.certificates import certificate_on_cells, certifier
from darkmetrics.methods.problem import Problem
from darkmetrics.methods.ranks import tabulated
from darkmetrics.nodes import Nodes

# Fewer nodes take no longer one by one.
_MANY_NODES = 8


def linear_law(functional: LinearFunctional, problem: Problem) -> MetricDistribution:
    """The law at one node, with what is proven about it, if it is only near the true one."""
    p = problem.nodes.of_cells(0)
    law = _of_lattice(functional, linear_sum_law(functional.weight, p, functional.missing))
    return law if law.method == "exact" else replace(law, certify=certifier(functional, problem))


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
    return law if law.method == "exact" else replace(law, certify=partial(certificate_on_cells, functional, nodes))


def _of_lattice(functional: LinearFunctional, law: Lattice) -> MetricDistribution:
    values = functional.constant + law.values()
    if not law.smooth:
        method = "exact" if law.exact else "near exact"
        return Discrete.from_atoms(values, law.pmf, functional.fill, **about(functional, method))
    edges = np.append(values - 0.5 * law.step, values[-1] + 0.5 * law.step)
    return tabulated(functional, edges, np.concatenate(([0.0], np.cumsum(law.pmf))))
