"""What every method is: settings with a `law` of a functional, and the problem that it is given.

A `Problem` has the nodes, and what the metrics of one set share at them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, dots
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.sums.quadrature import JointMass, NodeAxis
from darkmetrics._kernels.sums.weighted_sum import weighted_sum_laws
from darkmetrics.data.rules import is_whole
from darkmetrics.distribution import Discrete, Interval, MetricDistribution, Undefined, mix
from darkmetrics.exceptions import InputError
from darkmetrics.functional import CountFunctional, Functional, Split
from darkmetrics.nodes import Nodes, columns_of

F = TypeVar("F", bound=Functional)

# The law of the number of positives among some missing cells: the first number, and pmfs (nodes x window).
CountLaws: TypeAlias = Callable[[IntArray], tuple[int, FloatArray]]

# Numbers that the laws of one group may hold at all nodes on their common window.
_WINDOW_LIMIT = 2**24


class Problem:
    """The nodes at which laws are asked for, and what metrics of the same groups of rows share there.

    It lives as long as one call of `Method.laws`, and so does what is shared. Who has many problems that are alike may
    give laws of `counts` that were found from one another.
    """

    def __init__(self, nodes: Nodes, counts: CountLaws | None = None) -> None:
        self.nodes, self._counts = nodes, counts
        self._groups: list[Groups] = []

    @cached_property
    def each(self) -> list["Problem"]:
        """The problem at each node by itself."""
        one = len(self.nodes) == 1 and self.nodes.bucket is None
        return [self] if one else [Problem(Nodes.single(p)) for p in self.nodes.on_all_cells.rows]

    def groups(self, functional: CountFunctional) -> "Groups":
        """The groups of a formula of counts: the same for all formulas of the same groups."""
        for groups in self._groups:
            if groups.are_of(functional):
                return groups
        self._groups.append(Groups(functional.split, functional.missing, self.nodes, self._counts))
        return self._groups[-1]

    def on_cells(self, functional: F) -> tuple[F, "Problem"]:
        """The functional on the cells that the nodes tell apart, and the problem with a probability for each."""
        if self.nodes.bucket is None:
            return functional, self
        if isinstance(functional, CountFunctional):
            split, missing, problem = self.groups(functional).merged
            return replace(functional, split=split, missing=missing, bounds=functional.extremes), problem
        coarse, column = functional.coarse(self.nodes.bucket)
        return coarse, Problem(self.nodes.on(column))


class Groups:
    """Groups of missing rows at the nodes; what their metrics share is found when the first of them asks for it."""

    def __init__(self, split: Split, missing: IntArray, nodes: Nodes, counts: CountLaws | None = None) -> None:
        self._split, self._missing, self._nodes, self._counts = split, missing, nodes, counts

    def are_of(self, functional: CountFunctional) -> bool:
        """Whether a formula is one of the positives in these groups."""
        own, other = self._split, functional.split
        arrays: Any = (self._missing, own.weight, *own.groups), (functional.missing, other.weight, *other.groups)
        return all(a is b or np.array_equal(a, b) for a, b in zip_longest(*arrays))

    @cached_property
    def merged(self) -> tuple[Split, IntArray, Problem]:
        """The groups on the cells that the nodes tell apart, and the problem there."""
        assert self._nodes.bucket is not None
        split, missing, column = self._split.coarse(self._missing, self._nodes.bucket)
        return split, missing, Problem(self._nodes.on(column))

    @cached_property
    def laws(self) -> "GroupLaws | None":
        """The law of each group's positive weight at every node; None when no window holds all nodes."""
        return _group_laws(self._split, self._missing, self._nodes, self._counts)

    @cached_property
    def sums(self) -> "GroupSums":
        """Moments of each group's positive weight, at every node or at the only one."""
        return GroupSums(self._split, self._missing, chances_at(self._nodes))


@dataclass(frozen=True, eq=False)
class GroupLaws:
    """The law of each group's positive weight at every node, on places that the nodes share.

    `rough`: few rows of unequal weight decide, and their atoms were moved by about a step of a lattice.
    """

    axes: Sequence[NodeAxis]
    exact: bool
    rough: bool = False
    # How near an end, but not at it, the size of each sum is not known, and the chance of that.
    blurred: tuple[tuple[float, float], ...] = ()
    # The same on half as many places, where few rows decide: what a step does to a law shows there.
    coarser: Callable[[], "GroupLaws | None"] | None = field(default=None, repr=False)
    # What all metrics share that depend on the same of these groups.
    _joint: dict[tuple[int, ...], JointMass] = field(default_factory=dict, repr=False)

    @property
    def method(self) -> str:
        """The word for laws that come of these."""
        return "exact" if self.exact else "near exact"

    def sizes(self, used: list[int]) -> list[int]:
        """Values of each of these groups."""
        return [self.axes[i].values.size for i in used]

    def joint(self, used: Sequence[int], weight: FloatArray) -> JointMass:
        """The masses of these groups together, with these weights of the nodes, which are always the same."""
        key = tuple(used)
        if key not in self._joint:
            self._joint[key] = JointMass([self.axes[i].pmf for i in used], weight)
        return self._joint[key]

    @cached_property
    def halved(self) -> "GroupLaws | None":
        """The laws on half as many places, found once for all metrics."""
        return None if self.coarser is None else self.coarser()


def _group_laws(
    split: Split, missing: IntArray, nodes: Nodes, given: CountLaws | None = None, *, coarser: bool = False
) -> GroupLaws | None:
    weight = split.weight
    if weight is None:
        counted = _counts_of_groups(split, missing, nodes, given)
        return None if counted is None else GroupLaws(counted, exact=True)
    axes, exact, rough, blurred = [], True, False, []
    column: IntArray = columns_of(nodes)
    for rows in split.groups:
        columns, own = np.unique(column[rows], return_inverse=True)
        laws = weighted_sum_laws(weight[rows], missing[rows], own, nodes.probability[:, columns], coarser=coarser)
        if laws is None:
            return None
        axes.append(NodeAxis(laws.values, laws.pmf))
        exact, rough = exact and laws.exact, rough or laws.rough
        blurred.append((laws.near, laws.blurred))
    return GroupLaws(
        axes, exact, rough, tuple(blurred), partial(_group_laws, split, missing, nodes, coarser=True) if rough else None
    )


def chances_at(nodes: Nodes) -> FloatArray:
    """The chance of each missing cell at the only node, or a row of them for each."""
    return nodes.of_cells(0) if len(nodes) == 1 else nodes.on_all_cells.probability


def chances_of(rows: IntArray, missing: IntArray, nodes: Nodes) -> tuple[FloatArray, IntArray]:
    """Chances of some missing cells at every node, those of one column once, and how many missing rows have them."""
    if nodes.bucket is None:
        return nodes.probability[:, rows], missing[rows]
    counts = np.bincount(nodes.bucket[rows], missing[rows], nodes.probability.shape[1]).astype(np.int64)
    held = np.flatnonzero(counts)
    return nodes.probability[:, held], counts[held]


def _counts_of_groups(split: Split, missing: IntArray, nodes: Nodes, given: CountLaws | None) -> list[NodeAxis] | None:
    """The law of the number of positives in each group; None when no window holds all nodes."""
    if given is not None:
        laws = [given(rows) for rows in split.groups]
    else:
        groups = [chances_of(rows, missing, nodes) for rows in split.groups]
        # Before anything of that size is made.
        if len(nodes) > 1 and any(_wide(p, counts) for p, counts in groups):
            return None
        laws = [poisson_binomial_pmfs(p, counts) for p, counts in groups]
    return [NodeAxis(first + np.arange(pmfs.shape[1], dtype=np.float64), pmfs) for first, pmfs in laws]


def _wide(p: FloatArray, counts: IntArray) -> bool:
    """Whether the window of a group, ten standard deviations either side of every mean, is too wide for all nodes."""
    mean, sd = p @ counts, np.sqrt((p * (1.0 - p)) @ counts)
    width = float(np.max(mean + 10.0 * sd) - np.min(mean - 10.0 * sd))
    return bool(p.shape[0] * width > _WINDOW_LIMIT)


class GroupSums:
    """Moments of the weighted labels of each group of rows, shared by all metrics of these groups.

    `p` has a chance for each missing cell, or a row of them for each node; chances are those of one node.
    """

    def __init__(self, split: Split, missing: IntArray, p: FloatArray) -> None:
        self._split, self._missing, self._p = split, missing, p

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Mean, variance, third absolute moment (groups, x nodes if there are several) and largest weight."""
        mean, variance, third, largest = [], [], [], []
        for rows in self._split.groups:
            counts, p = self._missing[rows], self._p[..., rows]
            w: FloatArray | float = 1.0 if self._split.weight is None else self._split.weight[rows]
            v = w * w * (p * (1.0 - p))
            mean.append(dots(w * p, counts))
            variance.append(dots(v, counts))
            third.append(dots(w * v * (1.0 - 2.0 * p * (1.0 - p)), counts))
            largest.append(float(np.max(w)) if counts.size else 0.0)
        return np.array(mean), np.array(variance), np.array(third), np.array(largest)

    def chance(self, group: int, *, positive: bool) -> float:
        """Probability that all missing rows of a group are positive, or that all are negative."""
        rows = self._split.groups[group]
        p = self._p[rows]
        with np.errstate(divide="ignore"):
            return float(np.exp(self._missing[rows] @ (np.log(p) if positive else np.log1p(-p))))

    def chance_of_all(self, *, positive: bool) -> float:
        """Probability that all missing rows are positive, or that all are negative."""
        return float(np.prod([self.chance(i, positive=positive) for i in range(len(self._split.groups))]))


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
