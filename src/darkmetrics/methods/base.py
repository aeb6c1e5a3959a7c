"""What every method is: settings with a `law`; and whether a law is settled."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.rules import is_whole
from darkmetrics.distribution import Discrete, Interval, MetricDistribution, Undefined, mix
from darkmetrics.exceptions import InputError
from darkmetrics.functional import Functional
from darkmetrics.methods.problem import Problem
from darkmetrics.nodes import Nodes


class Method(ABC):
    """Settings of a way to find the laws of metrics."""

    name: ClassVar[str]

    @abstractmethod
    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        """The law of one metric: the mixture over `problem.nodes`; what needs `nodes.independent` checks it."""

    def laws(
        self, functionals: Iterable[Functional], nodes: Nodes, *, rng: np.random.Generator | int
    ) -> Iterator[MetricDistribution]:
        """The laws of metrics of one set, each when it is asked for; what they share is found once.

        A generator goes on from one metric to the next; a seed starts anew for each.
        """
        problem = Problem(nodes)
        for functional in functionals:
            yield self.law(functional, problem, rng=np.random.default_rng(rng))


def about(functional: Functional, method: str) -> dict[str, Any]:
    """What a law says of itself besides its numbers: how it was found, and the bounds it cannot pass."""
    low, high, sharp = functional.extremes
    if method == "exact" and functional.rounded:
        method = "near exact"
    return {"method": method, "bounds": Interval(low, high), "bounds_sharp": sharp, "noise": functional.noise}


def point_mass(functional: Functional, nodes: Nodes) -> MetricDistribution | None:
    """The law when nothing is random: no missing row, or one labeling that is certain."""
    return point(functional, nodes.of_cells(0)) if nodes.certain else None


def point(functional: Functional, p: FloatArray) -> MetricDistribution:
    """The law when missing rows with a chance of 1 are positive, and no others."""
    value = functional.values((functional.missing * (p >= 1.0))[None, :].astype(np.int64))
    return Discrete.from_atoms(value, np.ones(1), functional.fill, **about(functional, "exact"))


def mixed(functional: Functional, laws: Sequence[MetricDistribution], weight: FloatArray) -> MetricDistribution:
    """The mixture of laws of the functional, called after the least exact of them."""
    if len(laws) == 1:
        return laws[0]
    method = min((law.method for law in laws), key=lambda name: name == "exact")
    given_defined = bool(np.isnan(functional.fill)) or any(law.given_defined for law in laws)
    return mix(laws, weight, given_defined=given_defined, **about(functional, method))


# How laws are found: "auto", "exact", "monte_carlo", "gaussian", or a settings object.
MethodLike: TypeAlias = str | Method


def check_n_resamples(number: Any, name: str = "n_resamples") -> int:
    """A number of random labelings, resamples or repeats, checked."""
    if not is_whole(number) or number < 1:
        raise InputError(f"{name}: {number!r}. It must be a whole number of at least 1.")
    return int(number)


# The quantiles at which two laws are compared, those between which the middle of a law lies, and the weight of nodes
# that are too unlikely to matter; then how far apart they may be there.
_TRIED, _MIDDLE, _LITTLE = np.linspace(0.05, 0.95, 11), np.array([0.15, 0.85]), 0.01
STEP_MOVED, LEVEL_MOVED = 0.05, 0.004


def settled(law: MetricDistribution, coarse: MetricDistribution | None, *, step: float = STEP_MOVED) -> bool:
    """Whether half as many places, or clusters, lead to the same law, but for steps moved by a little."""
    if isinstance(law, Undefined) or coarse is None or isinstance(coarse, Undefined):
        return isinstance(law, Undefined)
    t = law._ppf(_TRIED)
    # The scale of what is likely: a far tail, or nodes far from each other, say nothing of how fine a lattice must be.
    scales = [law.std(), float(np.ptp(law._ppf(_MIDDLE))) / 2.0]
    if law.by_node is not None:
        scales.append(float(np.sqrt(law.by_node.var[law.by_node.weight > _LITTLE]).min(initial=np.inf)))
    moved = step * min((scale for scale in scales if scale > 0.0), default=0.0)
    level = law._cdf(t, left=False)
    return bool(
        abs(law.mean() - coarse.mean()) <= moved
        and abs(law.std() - coarse.std()) <= 2.0 * moved
        and np.all(coarse._cdf(t - moved, left=False) <= level + LEVEL_MOVED)
        and np.all(level <= coarse._cdf(t + moved, left=False) + LEVEL_MOVED)
    )
