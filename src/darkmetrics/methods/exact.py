"""The exact law: enumeration for few missing rows, two Poisson-binomials for counts, lattices and FFT for sums."""

from dataclasses import dataclass
from functools import partial, singledispatch
from typing import ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc import settle
from darkmetrics._kernels.auc_edgeworth import mixed_edgeworth_cdf, split_at_leading_rows
from darkmetrics._kernels.auc_lattice import auc_law_by_groups, auc_law_on_lattice
from darkmetrics._kernels.enumeration import all_labelings, number_of_labelings
from darkmetrics._kernels.linear_sum import Lattice, linear_sum_law
from darkmetrics.distribution import Discrete, MetricDistribution, ProductLaw, Tabulated
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import (
    CountFunctional,
    Functional,
    LinearFunctional,
    RankFunctional,
    ScenarioFunctional,
)
from darkmetrics.methods.base import Memo, Method, about, point_mass

_ENUMERATE_LIMIT = 2**15
# Up to this many combinations of counts the law is tabulated and sorted; above, it is summed on demand.
_TABLE_LIMIT = 2**17
_FORMULA_LIMIT = 2**23
# From this total label variance on, Edgeworth's four cumulants describe ROC-AUC to 0.005 or better, unless a few rows
# of high leverage decide; these are set apart.
_LATTICE_VARIANCE = 16.0


@dataclass(frozen=True)
class Exact(Method):
    """The true law, with no sampling.

    Confusion-matrix metrics of any size and, up to 2^15 labelings, everything else are exact to rounding. Linear
    metrics, ROC-AUC and unequally weighted counts with more missing rows have a law that is exact up to a fine lattice
    or a four-cumulant expansion; it is called "near exact". Black-box callables cannot go beyond 2^15 labelings (15
    missing rows with different scores).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> law = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=[0.8], method=dm.methods.Exact())["precision"]
    >>> law.ppf([0.1, 0.9]).tolist()
    [0.5, 1.0]
    """

    name: ClassVar[str] = "exact"

    def law(self, functional: Functional, p: FloatArray, *, rng: np.random.Generator, memo: Memo) -> MetricDistribution:
        point = point_mass(functional, p)
        return exact_law(functional, p, memo) if point is None else point


def enumerated_law(functional: Functional, p: FloatArray) -> MetricDistribution:
    """The law from all labelings of the missing rows."""
    positives, probability = all_labelings(functional.missing, p)
    values = functional.values(positives)
    return Discrete.from_atoms(values, probability, functional.fill, **about(functional, "exact"))


@singledispatch
def exact_law(functional: Functional, p: FloatArray, memo: Memo) -> MetricDistribution:
    """The exact law of a functional of this kind."""
    raise MethodError(f"method: no exact law for a {type(functional).__name__}; use 'monte_carlo'.")


@exact_law.register
def _(functional: ScenarioFunctional, p: FloatArray, memo: Memo) -> MetricDistribution:
    if number_of_labelings(functional.missing) > _ENUMERATE_LIMIT:
        raise MethodError(
            f"method: 'exact' goes through every labeling for this metric, which {int(functional.missing.sum()):,} "
            "missing rows forbid (15 rows with different scores are the most). Use method='auto' or 'monte_carlo'."
        )
    return enumerated_law(functional, p)


@exact_law.register
def _(functional: LinearFunctional, p: FloatArray, memo: Memo) -> MetricDistribution:
    if number_of_labelings(functional.missing) <= _ENUMERATE_LIMIT:
        return enumerated_law(functional, p)
    law = linear_sum_law(functional.weight, p, functional.missing)
    values = functional.constant + law.values()
    if not law.smooth:
        method = "exact" if law.exact else "near exact"
        return Discrete.from_atoms(values, law.pmf, functional.fill, **about(functional, method))
    edges = np.append(values - 0.5 * law.step, values[-1] + 0.5 * law.step)
    return _tabulated(functional, edges, np.concatenate(([0.0], np.cumsum(law.pmf))))


@exact_law.register
def _(functional: RankFunctional, p: FloatArray, memo: Memo) -> MetricDistribution:
    if number_of_labelings(functional.missing) <= _ENUMERATE_LIMIT:
        return enumerated_law(functional, p)
    # Rows that are sure take no part in the law; what is left is as if they had been labelled.
    sure = functional.missing * ((p >= 1.0).astype(np.int64) - (p <= 0.0))
    data, p = settle(functional.data, p, sure) if sure.any() else (functional.data, p)
    variance = dot(data.counts, p * (1.0 - p))
    if np.all(data.weight == 1.0):
        if (atoms := auc_law_by_groups(data, p)) is not None:
            values = functional.affine(atoms[0])
            return Discrete.from_atoms(values, atoms[1], functional.fill, **about(functional, "exact"))
        if variance < _LATTICE_VARIANCE:
            auc, masses, exact = auc_law_on_lattice(data, p)
            method = "exact" if exact else "near exact"
            return Discrete.from_atoms(functional.affine(auc), masses, functional.fill, **about(functional, method))
    parts = split_at_leading_rows(data, p)
    if parts is None or variance < _LATTICE_VARIANCE:
        raise MethodError(
            "method: no exact law of ROC-AUC where few rows decide (by their weight or their rank); "
            "use 'auto' or 'monte_carlo'."
        )
    ends = (np.array([functional.extremes.low, functional.extremes.high]) - functional.shift) / functional.scale
    t, levels = mixed_edgeworth_cdf(parts, float(ends.min()), float(ends.max()))
    if functional.scale < 0.0:
        t, levels = t[::-1], 1.0 - levels[::-1]
    return _tabulated(functional, functional.affine(t), levels)


def _tabulated(functional: Functional, grid: FloatArray, levels: FloatArray) -> MetricDistribution:
    """A continuous law on the part of the grid inside the bounds, from cdf 0 to cdf 1."""
    low, high, _ = functional.extremes
    levels = (levels - levels[0]) / (levels[-1] - levels[0])
    return Tabulated(grid=np.clip(grid, low, high), levels=levels, **about(functional, "near exact"))


@exact_law.register
def _(functional: CountFunctional, p: FloatArray, memo: Memo) -> MetricDistribution:
    if functional.split.weight is not None and number_of_labelings(functional.missing) <= _ENUMERATE_LIMIT:
        return enumerated_law(functional, p)
    laws = memo.get((functional.split.groups, p), partial(group_laws, functional, p))
    method = "exact" if all(law.exact for law in laws) else "near exact"
    # A variable the formula does not depend on takes no part in the law.
    used = [i for i, direction in enumerate(functional.direction) if direction != 0 and laws[i].pmf.size > 1]
    sizes = [laws[i].pmf.size for i in used]
    if len(used) < 2 or np.prod(sizes, dtype=np.float64) <= _TABLE_LIMIT:
        return _table(functional, laws, used, method)
    used.sort(key=lambda i: (functional.direction[i] is None, -laws[i].pmf.size))
    formula = partial(_formula_of, functional, laws, used)
    axes, masses = [laws[i].values() for i in used], [laws[i].pmf for i in used]
    rising = _rising(functional, formula, axes, used)
    if rising is None:
        if np.prod(sizes, dtype=np.float64) <= _FORMULA_LIMIT:
            return _table(functional, laws, used, method)
        raise MethodError(
            "method: this formula is not monotone and has too many values for an exact law; "
            "use method='auto' or 'monte_carlo'."
        )
    # Every point is defined here: `_rising` looked wherever the formula could be 0/0 within the window.
    return ProductLaw(formula=formula, axes=axes, masses=masses, rising=rising, **about(functional, method))


def group_laws(functional: CountFunctional, p: FloatArray) -> list[Lattice]:
    """The law of the positive weight among the missing rows of each group."""
    weight = np.ones(p.size) if functional.split.weight is None else functional.split.weight
    return [linear_sum_law(weight[rows], p[rows], functional.missing[rows]) for rows in functional.split.groups]


def _formula_of(functional: CountFunctional, laws: list[Lattice], used: list[int], *x: FloatArray) -> FloatArray:
    """The formula as a function of the variables in use, the others at a value that cannot matter."""
    sums: list[FloatArray] = [np.asarray(law.values()[0]) for law in laws]
    for i, value in zip(used, x, strict=True):
        sums[i] = value
    return functional.at(sums)


def _table(functional: CountFunctional, laws: list[Lattice], used: list[int], method: str) -> MetricDistribution:
    grid = np.meshgrid(*(laws[i].values() for i in used), indexing="ij") if used else []
    values = np.broadcast_to(_formula_of(functional, laws, used, *grid), tuple(laws[i].pmf.size for i in used))
    masses = np.ones(())
    for i in used:
        masses = np.multiply.outer(masses, laws[i].pmf)
    keep = masses > 1e-40
    return Discrete.from_atoms(values[keep], masses[keep], functional.fill, **about(functional, method))


def _rising(
    functional: CountFunctional, formula: partial[FloatArray], axes: list[FloatArray], used: list[int]
) -> bool | None:
    """Whether the formula rises (True) or falls (False) with the first variable everywhere; None if neither."""
    declared = functional.direction[used[0]]
    edges = formula(*np.meshgrid(*(a[[0, 1, -2, -1]] if a.size > 4 else a for a in axes), indexing="ij"))
    if np.isnan(edges).any():
        return None
    if declared is not None and functional.denominator_keeps_its_sign():
        return declared > 0  # the denominator vanishes nowhere inside if it does not at the edges
    grid = np.meshgrid(*axes[1:], indexing="ij")
    rises = falls = True
    before = formula(np.full(grid[0].shape, axes[0][0]), *grid)
    for x in axes[0][1:]:
        value = formula(np.full(grid[0].shape, x), *grid)
        change = value - before
        if declared is not None and not np.isnan(change).any():
            continue  # the direction is known; only a 0/0 inside is looked for
        rises, falls = rises and bool(np.all(change >= 0.0)), falls and bool(np.all(change <= 0.0))
        before = value
        if not (rises or falls):
            return None
    return rises if declared is None else declared > 0
