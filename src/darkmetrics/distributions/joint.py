"""Joint distribution of K metrics on M sets under paired posterior draws: everything computed from several metrics.

Labels are independent within and between sets, given a case: one posterior draw of every set. What the sets share (a
mechanism nobody stated, delays or reference rows learned together) is in how their draws are paired into cases, and
nowhere else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.base import Interval, MetricDistribution
from darkmetrics.distributions.choice import compute_distribution, exact_atoms, n_imputations
from darkmetrics.distributions.combined import Combined, combine_terms, subtract_extremes, subtract_terms
from darkmetrics.distributions.counting import Atoms
from darkmetrics.distributions.drawing import N_IMPUTATIONS, allocate, draw_values, draw_values_at, pick
from darkmetrics.distributions.functional import SAME, Extremes, Functional
from darkmetrics.distributions.kinds import Discrete
from darkmetrics.distributions.problem import Problem

# Combinations of the values of several sets at most; beyond, values are drawn together.
_MAX_COMBINATIONS = 2**21
# Numbers in one array of these combinations at most.
_MAX_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class Block:
    """Cases in which what the sets share is known, and then they are independent.

    `weight` has the probability of each case; `shares` the probability of each posterior draw of each set in each case
    (n_cases x n_draws), or one row if it is the same in all cases.
    """

    weight: FloatArray
    shares: tuple[FloatArray, ...]


class SetTerms(NamedTuple):
    """Metrics of one set, on the same missing cells, and the posterior of these cells."""

    terms: Sequence[Functional]
    problem: Problem


class JointDraws(NamedTuple):
    """Values of all metrics drawn together (n_metrics x n) and the mass of each draw; NaN where 0/0 is left out."""

    values: FloatArray
    mass: FloatArray
    is_exact: bool  # all combinations, not a sample
    draw: IntArray | None = None  # posterior draw of each sampled value, of one set


@dataclass(frozen=True, eq=False)
class Joint:
    """K metrics on M sets.

    Parameters
    ----------
    sets : sequence of SetTerms
        The metrics of each set; they are numbered from 0 over all sets, in order.
    blocks : sequence of Block, optional
        How the posterior draws of the sets belong together; independent unless given.
    """

    sets: Sequence[SetTerms]
    blocks: Sequence[Block] | None = None
    seed: int = 0

    @classmethod
    def of_set(cls, terms: Sequence[Functional], problem: Problem) -> "Joint":
        """Return the joint distribution of metrics of one set."""
        return cls([SetTerms(terms, problem)], seed=problem.seed)

    @cached_property
    def terms(self) -> list[Functional]:
        """All metrics, in order."""
        return [term for one in self.sets for term in one.terms]

    def distribution(
        self,
        combine: Callable[..., Any],
        *,
        smooth: bool = True,
        bounds: Extremes | None = None,
        limits: tuple[float, float] = (-np.inf, np.inf),
        n: int = N_IMPUTATIONS,
    ) -> MetricDistribution:
        """Return the distribution of `combine(metric_0, metric_1, ...)`.

        `smooth`: whether `combine` has derivatives, which a maximum has not. `bounds`: the extremes of the combination,
        where the caller knows them.
        """
        if len(self.sets) == 1:
            functional = self._combined(combine, smooth=smooth, bounds=bounds, limits=limits)
            return compute_distribution(functional, self.sets[0].problem, n)
        return self.distribution_of(self.draw(n), combine, bounds=bounds or Extremes(*limits, False))

    def distribution_of(
        self, drawn: JointDraws, combine: Callable[..., Any], *, bounds: Extremes
    ) -> MetricDistribution:
        """Return the distribution of a combination of values that were drawn."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(combine(*drawn.values), dtype=np.float64)
        values = np.where(np.isfinite(values), values, np.nan)
        low, high, sharp = bounds
        size = float(np.nanmax(np.abs(drawn.values), initial=0.0))
        noise = sum(term.noise for term in self.terms) + SAME * size
        facts: dict[str, Any] = {"bounds": Interval(low, high), "bounds_sharp": sharp, "noise": noise}
        return Discrete.from_atoms(
            values, drawn.mass, np.nan, method="exact" if drawn.is_exact else "monte carlo", **facts
        )

    def difference(self, b: int, a: int, *, bounds: Extremes | None = None) -> MetricDistribution:
        """Return the distribution of metric b minus metric a."""
        f, g = self.terms[b], self.terms[a]
        joint = self._only([b, a])
        if len(joint.sets) == 1:
            functional = subtract_terms(f, g)
            functional = functional if bounds is None else replace(functional, bounds=bounds)
            return compute_distribution(functional, joint.sets[0].problem)
        known = bounds or subtract_extremes(f.extremes, g.extremes)
        first = 0 if joint.terms[0] is f else 1
        return joint.distribution((lambda x, y: x - y) if first == 0 else (lambda x, y: y - x), bounds=known)

    def _only(self, numbers: Sequence[int]) -> "Joint":
        """The joint distribution of some of the metrics, in order of their sets."""
        kept, at = [], 0
        for one in self.sets:
            terms = [term for i, term in enumerate(one.terms, at) if i in numbers]
            kept.append(SetTerms(terms, one.problem))
            at += len(one.terms)
        if len(kept) > 1 and sum(bool(one.terms) for one in kept) == 1:
            return Joint([one for one in kept if one.terms], seed=self.seed)
        return replace(self, sets=kept)

    def _combined(self, combine: Callable[..., Any] | None, **facts: Any) -> Combined:
        return combine_terms(self.sets[0].terms, combine, **facts)

    def draw(self, n: int = N_IMPUTATIONS, *, equally_likely: bool = False) -> JointDraws:
        """Return values of all metrics together: every combination where there are few, else about n draws.

        `equally_likely`: n draws of the same mass in any case.
        """
        exact = None if equally_likely else self._exact()
        if exact is not None:
            return exact
        if len(self.sets) == 1 and not equally_likely:
            functional = combine_terms(self.sets[0].terms, None)
            drawn = draw_values(functional, self.sets[0].problem, n_imputations(functional, n))
            return JointDraws(drawn.values, drawn.mass, is_exact=False, draw=drawn.draw)
        parts = []
        for number, (one, draw) in enumerate(zip(self.sets, self._paired_draws(n), strict=True)):
            if not one.terms:
                continue
            parts.append(self._values_at(one, draw, number))
        return JointDraws(np.concatenate(parts), np.full(n, 1.0 / n), is_exact=False)

    def _values_at(self, one: SetTerms, draw: IntArray, number: int) -> FloatArray:
        """Values of one set's metrics at the given posterior draws."""
        functional = combine_terms(one.terms, None)
        atoms = self._atoms[number]
        if atoms is not None:
            rng = np.random.default_rng([self.seed, 7, number])
            blocks = [pick(block, draw, rng) for block in atoms.blocks]
            index: tuple[Any, ...] = (slice(None), *blocks)
            return np.asarray(atoms.values[index])
        problem = one.problem
        if number and problem.seed == self.seed:  # draws of different sets must not be the same random numbers
            problem = Problem(problem.posterior, seed=hash((self.seed, number)) % 2**32)
        return draw_values_at(functional, problem, draw)[0]

    @cached_property
    def _atoms(self) -> list[Atoms | None]:
        return [exact_atoms(combine_terms(one.terms, None), one.problem) if one.terms else None for one in self.sets]

    @property
    def _paired(self) -> Sequence[Block]:
        if self.blocks is not None:
            return self.blocks
        shares = tuple(one.problem.weight[None] / one.problem.weight.sum() for one in self.sets)
        return [Block(np.ones(1), shares)]

    def _exact(self) -> JointDraws | None:
        """Every combination of values of the sets with its mass; None if they are too many."""
        if any(atoms is None for atoms, one in zip(self._atoms, self.sets, strict=True) if one.terms):
            return None
        known = [
            (atoms, number) for number, atoms in enumerate(self._atoms) if atoms is not None and self.sets[number].terms
        ]
        sizes = [prod(block.shape[1] for block in atoms.blocks) for atoms, _ in known]
        n_combinations = prod(sizes)
        if n_combinations > _MAX_COMBINATIONS:
            return None
        if len(known) == 1 and len(self.sets) == 1:
            values = known[0][0].values
            return JointDraws(values.reshape(len(values), -1), known[0][0].probability.ravel(), is_exact=True)
        n_cases = max(block.weight.size for block in self._paired)
        at_draws = [size * atoms.weight.size for (atoms, _), size in zip(known, sizes, strict=True)]
        if max(*at_draws, n_combinations * len(self.terms), n_combinations // sizes[-1] * n_cases) > _MAX_NUMBERS:
            return None
        mass: FloatArray = np.zeros(n_combinations)
        tables = [atoms.at_draws() for atoms, _ in known]
        for block in self._paired:
            joint = block.weight[:, None]
            for table, (_, number) in zip(tables[:-1], known[:-1], strict=True):
                own = block.shares[number] @ table
                joint = (joint[:, :, None] * own[:, None, :]).reshape(block.weight.size, -1)
            last = np.broadcast_to(block.shares[known[-1][1]] @ tables[-1], (block.weight.size, sizes[-1]))
            mass += (joint.T @ last).ravel()
        repeated: list[FloatArray] = []
        before, after = 1, n_combinations
        for (atoms, _), size in zip(known, sizes, strict=True):
            after //= size
            own = atoms.values.reshape(len(atoms.values), size)
            repeated.append(np.tile(np.repeat(own, after, axis=1), (1, before)))
            before *= size
        return JointDraws(np.concatenate(repeated), mass, is_exact=True)

    def _paired_draws(self, n: int) -> list[IntArray]:
        """Posterior draw of each set in each of n cases."""
        weight = np.concatenate([block.weight for block in self._paired])
        case = allocate(weight, n)
        rng = np.random.default_rng([self.seed, 8])
        result = []
        for number in range(len(self.sets)):
            rows = [
                np.broadcast_to(block.shares[number], (block.weight.size, block.shares[number].shape[1]))
                for block in self._paired
            ]
            result.append(pick(np.concatenate(rows), case, rng))
        return result
