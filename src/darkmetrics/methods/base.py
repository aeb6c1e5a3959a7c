"""What every method is: settings with a `law`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.rules import is_whole
from darkmetrics.distribution import Discrete, Interval, MetricDistribution, mix
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
