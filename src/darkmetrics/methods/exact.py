"""The exact law: enumeration for few missing rows, two Poisson-binomials for counts, lattices and FFT for sums."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from itertools import product
from typing import ClassVar, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sums.enumeration import all_labelings, number_of_labelings
from darkmetrics._kernels.sums.linear_sum import Lattice, linear_sum_law
from darkmetrics._kernels.sums.linear_sum_nodes import mixed_linear_sum
from darkmetrics._kernels.sums.quadrature import NodeAxis
from darkmetrics.distributions import Discrete, MetricDistribution, NodeMoments, Undefined
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import (
    CountFunctional,
    DrawnFunctional,
    Functional,
    LinearFunctional,
    RankFunctional,
    ScenarioFunctional,
)
from darkmetrics.methods.base import (
    LEVEL_MOVED,
    STEP_MOVED,
    GroupLaws,
    Method,
    Problem,
    about,
    mixed,
    point,
    point_mass,
    settled,
)
from darkmetrics.methods.counts import law_of_groups, product_node_moments
from darkmetrics.methods.expanded import expanded_law, many_rows
from darkmetrics.methods.proofs import certificate_on_cells, certifier
from darkmetrics.methods.rank_laws import shared_rank_law, tabulated
from darkmetrics.methods.smooth import law_of_many_losses, law_of_many_weights
from darkmetrics.posterior import Posterior, columns_of

F = TypeVar("F", bound=Functional)

_ENUMERATE_LIMIT = 2**15
_FEW_CELLS = 1024


@dataclass(frozen=True)
class Exact(Method):
    """The true law, with no sampling.

    Confusion-matrix metrics of any size and, up to 2^15 labelings, everything else are exact to rounding. Linear
    metrics, ROC-AUC and unequally weighted counts with more missing rows have a law that is exact up to a fine lattice,
    to what clusters of ranks leave open, or to a four-cumulant expansion (and, of few ranks or at nodes with less than
    a thirty-second of the weight, to many fixed labelings); it is called "near exact". So is that of average precision
    with 8,192 missing rows or more, unless few of them decide. Black-box callables cannot go beyond
    2^15 labelings (15 missing rows with different scores).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> law = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=[0.8], method=dm.methods.Exact())["precision"]
    >>> law.ppf([0.1, 0.9]).tolist()
    [0.5, 1.0]
    """

    name: ClassVar[str] = "exact"

    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        certain = point_mass(functional, problem.nodes)
        if certain is not None:
            return certain
        problem.nodes.check_independent("'exact' needs", " Use 'auto' or 'monte_carlo'.")
        return exact_law(functional, problem)


def over_nodes(
    functional: F, problem: Problem, law_at: Callable[[F, Problem], MetricDistribution]
) -> MetricDistribution:
    """The mixture of the laws at the nodes, some of which may leave nothing open."""
    laws = []
    for one in problem.each:
        p = one.nodes.of_cells(0)
        laws.append(law_at(functional, one) if np.any((p > 0.0) & (p < 1.0)) else point(functional, p))
    return mixed(functional, laws, problem.nodes.weight)


def few_labelings(functional: Functional) -> bool:
    """Whether all labelings of the missing rows can be gone through."""
    return number_of_labelings(functional.missing) <= _ENUMERATE_LIMIT


def enumerated_law(functional: Functional, nodes: Posterior) -> MetricDistribution:
    """The law from all labelings of the missing rows."""
    facts = about(functional, "exact")
    missing, p = functional.missing, nodes.on_all_cells.probability
    if len(nodes) == 1:
        positives, probability = all_labelings(missing, p[0])
        return Discrete.from_atoms(functional.values(positives), probability, functional.fill, **facts)
    # Given the node two halves of the cells are independent: what is mixed over nodes is a product of two matrices.
    half = int(np.searchsorted(np.cumsum(np.log1p(missing)), 0.5 * np.log1p(missing).sum()))
    (one, first), (two, second) = (all_labelings(missing[cells], p[:, cells]) for cells in np.s_[:half, half:])
    positives = np.hstack([np.repeat(one, len(two), axis=0), np.tile(two, (len(one), 1))])
    values = functional.values(positives).reshape(len(one), len(two))
    masses = (nodes.weight[:, None] * first).T @ second
    law = Discrete.from_atoms(values.ravel(), masses.ravel(), functional.fill, **facts)
    if isinstance(law, Undefined):
        return law
    return replace(law, by_node=product_node_moments(values, first, second, nodes.weight, functional.fill, law.mean()))


@singledispatch
def exact_law(functional: Functional, problem: Problem) -> MetricDistribution:
    """The exact law of a functional of this kind."""
    raise MethodError(f"method: no exact law for a {type(functional).__name__}; use 'monte_carlo'.")


@exact_law.register
def scenario_law(functional: ScenarioFunctional, problem: Problem) -> MetricDistribution:
    """The law by going through every labeling."""
    if not few_labelings(functional):
        raise MethodError(
            f"method: 'exact' goes through every labeling for this metric, which {int(functional.missing.sum()):,} "
            "missing rows forbid (15 rows with different scores are the most). Use method='auto' or 'monte_carlo'."
        )
    return enumerated_law(functional, problem.nodes)


@exact_law.register
def _(functional: DrawnFunctional, problem: Problem) -> MetricDistribution:
    if few_labelings(functional):
        return enumerated_law(functional, problem.nodes)
    law = expanded_law(functional, problem.nodes)
    if law is None and many_rows(functional):
        raise MethodError(
            f"method: 'exact' has no law of this metric where few of {int(functional.missing.sum()):,} missing rows "
            "decide: an expansion is not near enough there. Use method='auto' or 'monte_carlo'."
        )
    return scenario_law(functional, problem) if law is None else law


@exact_law.register
def _(functional: LinearFunctional, problem: Problem) -> MetricDistribution:
    if few_labelings(functional):
        return enumerated_law(functional, problem.nodes)
    law = many_linear_laws(functional, problem.nodes)
    return over_nodes(*problem.on_cells(functional), linear_law) if law is None else law


@exact_law.register
def _(functional: RankFunctional, problem: Problem) -> MetricDistribution:
    if few_labelings(functional):
        return enumerated_law(functional, problem.nodes)
    # Few cells are not merged: their ranks stay what they are.
    return shared_rank_law(functional, problem, merged=functional.missing.size > _FEW_CELLS)


@exact_law.register
def _(functional: CountFunctional, problem: Problem) -> MetricDistribution:
    if functional.split.weight is not None and few_labelings(functional):
        return enumerated_law(functional, problem.nodes)
    smooth = law_of_many_weights(functional, problem)
    if smooth is not None:
        return replace(smooth, certify=partial(certificate_on_cells, functional, problem.nodes))
    laws, weight = problem.groups(functional).laws_for(functional), problem.nodes.weight
    if laws is not None:
        law = law_of_groups(functional, laws, weight)
        if law is None and weight.size == 1:
            raise MethodError(
                "method: this formula is not monotone and has too many values for an exact law; "
                "use method='auto' or 'monte_carlo'."
            )
        if law is not None and laws.rough:
            if _blurred(functional, laws, law):  # which takes no time beside another law
                raise MethodError(_FEW_DECIDE)
            halved = laws.halved
            coarse = None if halved is None else law_of_groups(functional, halved, weight)
            if not settled(law, coarse):
                raise MethodError(_FEW_DECIDE)
        if law is not None and not laws.exact:
            return replace(law, certify=partial(certificate_on_cells, functional, problem.nodes))
        if law is not None:
            return law
    if functional.split.weight is not None:
        raise MethodError(_FEW_DECIDE)
    # Each node by itself has a smaller window, in which the formula may be defined and monotone.
    return over_nodes(*problem.on_cells(functional), exact_law)


_FEW_DECIDE = "method: no exact law where few rows of very different weights decide; use 'auto' or 'monte_carlo'."


def _blurred(functional: CountFunctional, laws: GroupLaws, law: MetricDistribution) -> bool:
    """Whether a sum is likely to be so near an end that its size is not known, and the metric depends on that."""
    much = STEP_MOVED * law.std()
    for i, (axis, (near, chance)) in enumerate(zip(laws.axes, laws.blurred, strict=True)):
        if chance <= LEVEL_MOVED:
            continue
        others = [_places(other, near) for k, other in enumerate(laws.axes) if k != i]
        # The other sums at an end, near it, or in the middle, with the chance of that.
        for state in product(*others):
            if chance * np.prod([likely for _, likely in state]) <= LEVEL_MOVED:
                continue
            for ends in ([axis.values[1], near], [axis.values[-2], axis.values[-1] - near]):
                sums: list[FloatArray] = [np.full(2, value) for value, _ in state]
                sums.insert(i, np.array(ends))
                if abs(float(np.diff(functional.at(sums))[0])) > much:
                    return True
    return False


def _places(axis: NodeAxis, near: float) -> list[tuple[float, float]]:
    """Places of a sum, with the chance to be there at the node where it is largest: the ends, near 0, the middle."""
    some = (axis.values > 0.0) & (axis.values <= near)
    first = float(axis.values[some][0]) if some.any() else 0.0
    close, pmf = float(axis.pmf[:, some].sum(axis=1).max()), axis.pmf.max(axis=0)
    middle = float(axis.values @ axis.pmf.mean(axis=0))
    return [
        (float(axis.values[0]), float(pmf[0])),
        (first, close),
        (middle, 1.0),
        (float(axis.values[-1]), float(pmf[-1])),
    ]


# Fewer nodes take no longer one by one.
_MANY_NODES = 8


def linear_law(functional: LinearFunctional, problem: Problem) -> MetricDistribution:
    """The law at one node, with what is proven about it, if it is only near the true one."""
    p = problem.nodes.of_cells(0)
    law = _of_lattice(functional, linear_sum_law(functional.weight, p, functional.missing))
    return law if law.method == "exact" else replace(law, certify=certifier(functional, problem))


def many_linear_laws(functional: LinearFunctional, nodes: Posterior) -> MetricDistribution | None:
    """The mixture of the laws at many nodes, found for all of them together; None where each has to go by itself."""
    if len(nodes) < _MANY_NODES:
        return None
    column = columns_of(nodes)
    rows = functional.weight, functional.missing, column, nodes.probability, nodes.weight
    found = mixed_linear_sum(*rows, quick=True)
    if found is None:
        smooth = law_of_many_losses(functional, nodes)
        if smooth is not None:
            return replace(smooth, certify=partial(certificate_on_cells, functional, nodes))
        found = mixed_linear_sum(*rows)
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
