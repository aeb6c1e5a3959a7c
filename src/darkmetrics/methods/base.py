"""What every method is: settings with a `law` of a functional, and the problem that it is given.

A `Problem` has the nodes, and what the metrics of one set share at them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import ByteArray, FloatArray, IntArray, same_arrays
from darkmetrics._kernels.auc.ranks import RankData, RankSums
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._kernels.sums.quadrature import JointMass, NodeAxis
from darkmetrics._kernels.sums.weighted_sum import SumLaws, weighted_sum_laws
from darkmetrics.data.rules import is_whole
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, Undefined, mix
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.functional import CountFunctional, Functional, RankFunctional, Split
from darkmetrics.methods.group_sums import GroupSums
from darkmetrics.posterior import Posterior, columns_of

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

    def __init__(self, nodes: Posterior, counts: CountLaws | None = None) -> None:
        self.nodes, self._counts = nodes, counts
        self._like: Problem | None = None
        self._groups: list[Groups] = []
        self._rank_sums: list[tuple[RankData, RankSums]] = []
        # Laws of metrics of ranks, or why there is none: those of the same ranks are images of one another.
        self.ranked: list[tuple[RankFunctional, MetricDistribution | MethodError]] = []
        # Random labelings that all metrics share, by how many they are: packed, in portions.
        self.labelings: dict[int, list[ByteArray]] = {}

    @cached_property
    def each(self) -> list["Problem"]:
        """The problem at each node by itself."""
        one = len(self.nodes) == 1 and self.nodes.bucket is None
        if one:
            return [self]
        first, *others = self.nodes.on_all_cells.rows
        like = Problem(Posterior.single(first))
        return [like, *(alike(like, Posterior.single(p)) for p in others)]

    def groups(self, functional: CountFunctional) -> "Groups":
        """The groups of a formula of counts: the same for all formulas of the same groups."""
        for groups in self._groups:
            if groups.are_of(functional):
                return groups
        like = None if self._like is None else self._like.groups(functional)
        self._groups.append(Groups(functional.split, functional.missing, self.nodes, self._counts, like))
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


def alike(problem: Problem, nodes: Posterior) -> Problem:
    """The problem with other chances in the same columns: what does not depend on chances is taken from the first."""
    found = Problem(nodes)
    found._like = problem
    return found


def rank_sums_of(problem: Problem, data: RankData) -> RankSums:
    """Sums over the rows of each column: the same for all metrics of the same ranks, and problems that are alike."""
    if problem._like is not None:
        return rank_sums_of(problem._like, data)
    for known, sums in problem._rank_sums:
        if same_arrays(known, data):
            return sums
    sums = RankSums.of(data, columns_of(problem.nodes), problem.nodes.probability.shape[1])
    problem._rank_sums.append((data, sums))
    return sums


class Groups:
    """Groups of missing rows at the nodes; what their metrics share is found when the first of them asks for it."""

    def __init__(
        self,
        split: Split,
        missing: IntArray,
        nodes: Posterior,
        counts: CountLaws | None = None,
        like: "Groups | None" = None,
    ) -> None:
        self._split, self._missing, self._nodes, self._counts, self._like = split, missing, nodes, counts, like
        # Of weighted rows: laws by the groups that are used, and sums by group and whether on fewer places.
        self._weighted: dict[tuple[int, ...], GroupLaws | None] = {}
        self._sums: dict[tuple[int, bool], tuple[SumLaws, NodeAxis] | None] = {}

    def are_of(self, functional: CountFunctional) -> bool:
        """Whether a formula is one of the positives in these groups."""
        return same_arrays([self._missing], [functional.missing]) and self._split.same(functional.split)

    @cached_property
    def merged(self) -> tuple[Split, IntArray, Problem]:
        """The groups on the cells that the nodes tell apart, and the problem there."""
        assert self._nodes.bucket is not None
        split, missing, column = self._split.coarse(self._missing, self._nodes.bucket)
        return split, missing, Problem(self._nodes.on(column))

    @cached_property
    def laws(self) -> "GroupLaws | None":
        """The law of each group's positive weight at every node; None when no window holds all nodes."""
        if self._split.weight is not None:
            return self._weighted_laws(tuple(range(len(self._split.groups))))
        counted = _counts_of_groups(self._split, self._missing, self._nodes, self._counts)
        return None if counted is None else GroupLaws(counted, exact=True)

    def laws_for(self, functional: CountFunctional) -> "GroupLaws | None":
        """The same; a weighted group that a formula does not depend on has a single place."""
        if self._split.weight is None:
            return self.laws
        used = tuple(i for i, direction in enumerate(functional.direction) if direction != 0)
        if used not in self._weighted:
            self._weighted[used] = self._weighted_laws(used)
        return self._weighted[used]

    def _weighted_laws(self, used: tuple[int, ...], *, coarser: bool = False) -> "GroupLaws | None":
        laws, axes = [], []
        for i in range(len(self._split.groups)):
            found = self._weighted_sum(i, coarser) if i in used else _nothing(len(self._nodes))
            if found is None:
                return None
            laws.append(found[0])
            axes.append(found[1])
        rough = any(law.rough for law in laws)
        return GroupLaws(
            axes,
            all(law.exact for law in laws),
            rough,
            tuple((law.near, law.blurred) for law in laws),
            partial(self._weighted_laws, used, coarser=True) if rough else None,
        )

    def _weighted_sum(self, group: int, coarser: bool) -> "tuple[SumLaws, NodeAxis] | None":
        """The law of a weighted sum, found once for all metrics that depend on it."""
        whole = self._weighted_sum(group, False) if coarser else None
        if whole is not None and not whole[0].rough:  # fewer places are for sums that few rows decide
            return whole
        key = group, coarser
        if key not in self._sums:
            rows, weight, column = self._split.groups[group], self._split.weight, columns_of(self._nodes)
            assert weight is not None
            columns, own = np.unique(column[rows], return_inverse=True)
            p = self._nodes.probability[:, columns]
            laws = weighted_sum_laws(weight[rows], self._missing[rows], own, p, coarser=coarser)
            self._sums[key] = None if laws is None else (laws, NodeAxis(laws.values, laws.pmf))
        return self._sums[key]

    @cached_property
    def sums(self) -> "GroupSums":
        """Moments of each group's positive weight, at every node or at the only one."""
        return GroupSums(self._split, self._missing, self._nodes, None if self._like is None else self._like.sums)


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


def _nothing(nodes: int) -> tuple[SumLaws, NodeAxis]:
    """A sum of no rows."""
    laws = SumLaws(np.zeros(1), np.ones((nodes, 1)), exact=True)
    return laws, NodeAxis(laws.values, laws.pmf)


def chances_at(nodes: Posterior) -> FloatArray:
    """The chance of each missing cell at the only node, or a row of them for each."""
    return nodes.of_cells(0) if len(nodes) == 1 else nodes.on_all_cells.probability


def chances_of(rows: IntArray, missing: IntArray, nodes: Posterior) -> tuple[FloatArray, IntArray]:
    """Chances of some missing cells at every node, those of one column once, and how many missing rows have them."""
    if nodes.bucket is None:
        return nodes.probability[:, rows], missing[rows]
    counts = np.bincount(nodes.bucket[rows], missing[rows], nodes.probability.shape[1]).astype(np.int64)
    held = np.flatnonzero(counts)
    return nodes.probability[:, held], counts[held]


def _counts_of_groups(
    split: Split, missing: IntArray, nodes: Posterior, given: CountLaws | None
) -> list[NodeAxis] | None:
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
    if p.shape[0] * float(counts.sum()) <= _WINDOW_LIMIT:  # no window has more places than rows, and one
        return False
    mean, sd = p @ counts, np.sqrt((p * (1.0 - p)) @ counts)
    width = float(np.max(mean + 10.0 * sd) - np.min(mean - 10.0 * sd))
    return bool(p.shape[0] * width > _WINDOW_LIMIT)


class Method(ABC):
    """Settings of a way to find the laws of metrics."""

    name: ClassVar[str]

    @abstractmethod
    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        """The law of one metric: the mixture over `problem.nodes`; what needs `nodes.independent` checks it."""

    def laws(
        self, functionals: Iterable[Functional], nodes: Posterior, *, rng: np.random.Generator | int
    ) -> Iterator[MetricDistribution]:
        """The laws of metrics of one set, each when it is asked for; what they share is found once.

        A generator goes on from one metric to the next; a seed starts anew for each. Labels that depend on each other
        are drawn once for all metrics, where they fit into memory.
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


def point_mass(functional: Functional, nodes: Posterior) -> MetricDistribution | None:
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
    given_defined = functional.given_defined or any(law.given_defined for law in laws)
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
# Where quantiles take long: standard deviations within which places are tried, how far the cdf may rise from one to the
# next, and how often the place in between is tried.
_FAR, _RISE, _HALVINGS = 4.0, 0.15, 8


def _tried(law: MetricDistribution, moved: float) -> tuple[FloatArray, FloatArray, float]:
    """Places at which two laws are compared, the cdf there, and half the width of the middle of the law.

    Quantiles where they take no time. Else those of Gaussians at the nodes, and wherever the cdf rises by much from one
    place to the next, more in between, until what it jumps over is known to a small part of what may be `moved`.
    """
    if isinstance(law, Discrete):
        t = law._ppf(_TRIED)
        return t, law._cdf(t, left=False), float(np.ptp(law._ppf(_MIDDLE))) / 2.0
    weight, mean, var = law.by_node or (np.ones(1), np.array([law.mean()]), np.array([law.var()]))
    t = normal_mixture_quantiles(_TRIED, weight[:, None], mean[:, None], np.sqrt(var)[:, None])[:, 0]
    t = np.unique(np.clip(np.concatenate([t, law.mean() + _FAR * law.std() * np.array([-1.0, 1.0])]), *law.bounds))
    level = law._cdf(t, left=False)
    for _ in range(_HALVINGS):
        gap = np.flatnonzero((np.diff(level) > _RISE) & (np.diff(t) > 0.25 * moved))
        if not gap.size:
            break
        more = 0.5 * (t[gap] + t[gap + 1])
        t, level = np.insert(t, gap + 1, more), np.insert(level, gap + 1, law._cdf(more, left=False))
    return t, level, float(np.ptp(np.interp(_MIDDLE, level, t))) / 2.0


def settled(law: MetricDistribution, coarse: MetricDistribution | None, *, step: float = STEP_MOVED) -> bool:
    """Whether half as many places, or clusters, lead to the same law, but for steps moved by a little."""
    if isinstance(law, Undefined) or coarse is None or isinstance(coarse, Undefined):
        return isinstance(law, Undefined)
    # The scale of what is likely: a far tail, or nodes far from each other, say nothing of how fine a lattice must be.
    scales = [law.std()]
    if law.by_node is not None:
        scales.append(float(np.sqrt(law.by_node.var[law.by_node.weight > _LITTLE]).min(initial=np.inf)))
    moved = step * min((scale for scale in scales if scale > 0.0), default=0.0)
    t, level, half = _tried(law, moved)
    if half > 0.0 and step * half < moved:
        moved = step * half
        t, level, _ = _tried(law, moved)
    if not (abs(law.mean() - coarse.mean()) <= moved and abs(law.std() - coarse.std()) <= 2.0 * moved):
        return False
    # Together, as a law that is summed on demand shares the search between its places.
    below, above = np.split(coarse._cdf(np.concatenate([t - moved, t + moved]), left=False), 2)
    return bool(np.all(below <= level + LEVEL_MOVED) and np.all(level <= above + LEVEL_MOVED))
