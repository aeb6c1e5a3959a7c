"""Joint distribution of K metrics on M sets under paired posterior draws, for functions of several metrics.

A case is one posterior draw of every set. Given a case, labels are independent within and between sets. Everything that
the sets share (a mechanism that is not stated, delays, reference rows) enters through the pairing of draws into cases.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.base import Interval, MetricDistribution
from darkmetrics.distributions.choice import exact_atoms, n_imputations
from darkmetrics.distributions.combined import combine_terms
from darkmetrics.distributions.counting import Atoms
from darkmetrics.distributions.drawing import N_IMPUTATIONS, allocate, draw_values, draw_values_at, pick
from darkmetrics.distributions.functional import SAME, Extremes, Functional
from darkmetrics.distributions.kinds import Discrete
from darkmetrics.distributions.problem import Problem

# Maximum number of combinations of the values of several sets; beyond it, values are drawn jointly.
_MAX_COMBINATIONS = 2**21
# Maximum size of an array over these combinations.
_MAX_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class Block:
    """Cases and the probabilities of posterior draws in each case; given a case, the sets are independent.

    `weight` has the probability of each case. `shares` has one array per set: the probability of each posterior draw in
    each case (n_cases x n_draws), or one row if it is the same in all cases.
    """

    weight: FloatArray
    shares: tuple[FloatArray, ...]


class SetTerms(NamedTuple):
    """Metrics of one set, on the same missing cells, and the posterior of these cells."""

    terms: Sequence[Functional]
    problem: Problem


class JointDraws(NamedTuple):
    """Jointly drawn values of all metrics (n_metrics x n) and the mass of each draw; NaN: 0/0 is excluded."""

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
        The metrics of each set, numbered from 0 over all sets.
    blocks : sequence of Block, optional
        Pairing of the posterior draws of the sets; default: independent draws.
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
        return [term for set_terms in self.sets for term in set_terms.terms]

    def distribution_of(
        self, drawn: JointDraws, combine: Callable[..., Any], *, bounds: Extremes
    ) -> MetricDistribution:
        """Return the distribution of a combination of drawn values."""
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

    def draw(self, n: int = N_IMPUTATIONS, *, equally_likely: bool = False) -> JointDraws:
        """Return joint values of all metrics: every combination if there are few, else about n draws.

        `equally_likely`: always return n draws of equal mass.
        """
        exact = None if equally_likely else self._combine_atoms()
        if exact is not None:
            return exact
        if len(self.sets) == 1 and not equally_likely:
            functional = combine_terms(self.sets[0].terms, None)
            drawn = draw_values(functional, self.sets[0].problem, n_imputations(functional, n))
            return JointDraws(drawn.values, drawn.mass, is_exact=False, draw=drawn.draw)
        n = min(n_imputations(term, n) for term in self.terms)
        parts = []
        for number, (set_terms, draw) in enumerate(zip(self.sets, self._pair_draws(n), strict=True)):
            if not set_terms.terms:
                continue
            parts.append(self._draw_values_of_set(set_terms, draw, number))
        return JointDraws(np.concatenate(parts), np.full(n, 1.0 / n), is_exact=False)

    def _draw_values_of_set(self, set_terms: SetTerms, draw: IntArray, number: int) -> FloatArray:
        """Draw values of the metrics of a set at the given posterior draws."""
        functional = combine_terms(set_terms.terms, None)
        atoms = self._atoms[number]
        if atoms is not None:
            rng = np.random.default_rng([self.seed, 7, number])
            blocks = [pick(block, draw, rng) for block in atoms.blocks]
            index: tuple[Any, ...] = (slice(None), *blocks)
            return np.asarray(atoms.values[index])
        problem = set_terms.problem
        if number and problem.seed == self.seed:  # sets must not use the same random numbers
            problem = Problem(problem.posterior, seed=hash((self.seed, number)) % 2**32)
        return draw_values_at(functional, problem, draw)[0]

    @cached_property
    def _atoms(self) -> list[Atoms | None]:
        return [
            exact_atoms(combine_terms(set_terms.terms, None), set_terms.problem) if set_terms.terms else None
            for set_terms in self.sets
        ]

    @property
    def _all_blocks(self) -> Sequence[Block]:
        if self.blocks is not None:
            return self.blocks
        shares = tuple(set_terms.problem.weight[None] / set_terms.problem.weight.sum() for set_terms in self.sets)
        return [Block(np.ones(1), shares)]

    def _combine_atoms(self) -> JointDraws | None:
        """Return all combinations of the values of the sets with their masses; None if there are too many."""
        if any(atoms is None for atoms, set_terms in zip(self._atoms, self.sets, strict=True) if set_terms.terms):
            return None
        numbered_atoms = [
            (atoms, number) for number, atoms in enumerate(self._atoms) if atoms is not None and self.sets[number].terms
        ]
        sizes = [prod(block.shape[1] for block in atoms.blocks) for atoms, _ in numbered_atoms]
        n_combinations = prod(sizes)
        if n_combinations > _MAX_COMBINATIONS:
            return None
        if len(numbered_atoms) == 1 and len(self.sets) == 1:
            values = numbered_atoms[0][0].values
            return JointDraws(values.reshape(len(values), -1), numbered_atoms[0][0].probability.ravel(), is_exact=True)
        n_cases = max(block.weight.size for block in self._all_blocks)
        at_draws = [size * atoms.weight.size for (atoms, _), size in zip(numbered_atoms, sizes, strict=True)]
        if max(*at_draws, n_combinations * len(self.terms), n_combinations // sizes[-1] * n_cases) > _MAX_NUMBERS:
            return None
        mass: FloatArray = np.zeros(n_combinations)
        tables = [atoms.at_draws() for atoms, _ in numbered_atoms]
        for block in self._all_blocks:
            joint = block.weight[:, None]
            for table, (_, number) in zip(tables[:-1], numbered_atoms[:-1], strict=True):
                atom_probability = block.shares[number] @ table
                joint = (joint[:, :, None] * atom_probability[:, None, :]).reshape(block.weight.size, -1)
            last = np.broadcast_to(block.shares[numbered_atoms[-1][1]] @ tables[-1], (block.weight.size, sizes[-1]))
            mass += (joint.T @ last).ravel()
        repeated: list[FloatArray] = []
        before, after = 1, n_combinations
        for (atoms, _), size in zip(numbered_atoms, sizes, strict=True):
            after //= size
            set_values = atoms.values.reshape(len(atoms.values), size)
            repeated.append(np.tile(np.repeat(set_values, after, axis=1), (1, before)))
            before *= size
        return JointDraws(np.concatenate(repeated), mass, is_exact=True)

    def _pair_draws(self, n: int) -> list[IntArray]:
        """Return the posterior draw of each set in each of n cases."""
        weight = np.concatenate([block.weight for block in self._all_blocks])
        case = allocate(weight, n)
        rng = np.random.default_rng([self.seed, 8])
        result = []
        for number in range(len(self.sets)):
            rows = [
                np.broadcast_to(block.shares[number], (block.weight.size, block.shares[number].shape[1]))
                for block in self._all_blocks
            ]
            result.append(pick(np.concatenate(rows), case, rng))
        return result
