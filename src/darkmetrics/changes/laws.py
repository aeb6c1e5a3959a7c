"""The law of a function of metrics of several sets: sums (a difference, a slope) and spreads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.changes.coupling import Block
from darkmetrics.changes.node_tables import NodeTable, placed
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, Tabulated, Undefined

# Combinations of values that are gone through one by one; beyond, sums are found on a lattice of so many places.
MOST_COMBINATIONS, _LATTICE = 1 << 22, 1 << 14
_ROUNDING = 4e-16
# Values of two sets that differ by this part of their size are the same but for rounding: of sums of weights, which may
# be in another unit, and order, in each.
_SAME = 1e-12
# Where many places are looked up: parts of a unit that are known beforehand, and steps from there.
_PARTS, _STEPS = 512, 4


def sum_law(tables: Sequence[NodeTable], blocks: Sequence[Block], factors: Sequence[float]) -> MetricDistribution:
    """The law of a weighted sum of metrics of different sets, one factor for each."""
    tables = [_of_one_value(table) for table in tables]
    ends = np.array([np.sort(factor * np.array(table.bounds)) for factor, table in zip(factors, tables, strict=True)])
    about = about_tables(tables, blocks, factors) | {"bounds": Interval(*ends.sum(axis=0).tolist())}
    size = np.prod([table.values.size for table in tables], dtype=np.float64)
    if size == 1 or (all(table.method == "exact" for table in tables) and size <= MOST_COMBINATIONS):
        values: FloatArray = np.zeros(1)
        for factor, table in zip(factors, tables, strict=True):
            values = np.add.outer(values, factor * table.values).ravel()
        return _discrete(values, _joint_mass(tables, blocks), about)
    return _on_lattice(tables, blocks, factors, about)


def _of_one_value(table: NodeTable) -> NodeTable:
    """A table whose places are all the same value has that one: on a lattice no atom would be left of it."""
    least, largest = float(table.values[0]), float(table.values[-1])
    if table.values.size == 1 or largest - least > _ROUNDING * max(abs(least), abs(largest)):
        return table
    return table._replace(values=table.values[:1], mass=table.mass.sum(axis=1, keepdims=True))


def about_tables(tables: Sequence[NodeTable], blocks: Sequence[Block], factors: Sequence[float]) -> dict[str, Any]:
    """What a law says of itself besides its numbers."""
    largest = max(float(np.abs(factor * table.values).max()) for factor, table in zip(factors, tables, strict=True))
    noise = sum(abs(factor) * table.noise for factor, table in zip(factors, tables, strict=True))
    methods = {table.method for table in tables}
    ranked = "monte carlo", "first order", "gaussian", "near exact"
    worst = next((word for word in ranked if word in methods), "exact")
    return {
        "method": worst,
        "bounds_sharp": all(table.sharp for table in tables),
        "noise": noise + _SAME * largest,
        "undefined": _undefined(tables, blocks),
        "given_defined": any(table.given_defined for table in tables),
    }


def _undefined(tables: Sequence[NodeTable], blocks: Sequence[Block]) -> float:
    """Probability that one of the metrics is 0/0."""
    defined = 0.0
    for block in blocks:
        each = block.weight.copy()
        for share, table in zip(block.shares, tables, strict=True):
            each = each * (share @ (1.0 - table.undefined))
        defined += float(each.sum())
    return float(np.clip(1.0 - defined, 0.0, 1.0)) if any(table.undefined.any() for table in tables) else 0.0


def _joint_mass(tables: Sequence[NodeTable], blocks: Sequence[Block]) -> FloatArray:
    """The mass of every combination of values, the last set's running fastest."""
    total: FloatArray = np.zeros(1)
    for block in blocks:
        rest, last = block.weight[:, None], np.ones((1, 1))
        for number, (share, table) in enumerate(zip(block.shares, tables, strict=True)):
            own = np.broadcast_to(share @ table.mass, (block.weight.size, table.values.size))
            if number == len(tables) - 1:
                last = own
            else:
                rest = (rest[:, :, None] * own[:, None, :]).reshape(block.weight.size, -1)
        total = total + (rest.T @ last).ravel()
    return total


def _discrete(values: FloatArray, masses: FloatArray, about: dict[str, Any]) -> MetricDistribution:
    kept = masses > 0.0
    facts = {name: value for name, value in about.items() if name != "undefined"}
    law = Discrete.from_atoms(values[kept], masses[kept], np.nan, **facts) if kept.any() else Undefined(undefined=1.0)
    return law if isinstance(law, Undefined) else replace(law, undefined=about["undefined"])


def _on_lattice(
    tables: Sequence[NodeTable], blocks: Sequence[Block], factors: Sequence[float], about: dict[str, Any]
) -> MetricDistribution:
    """Each set on a common lattice, sums by Fourier transforms: what is off is the step, which keeps the mean."""
    scaled = [factor * table.values for factor, table in zip(factors, tables, strict=True)]
    width = sum(float(np.ptp(values)) for values in scaled)
    step = width / (_LATTICE - len(tables) - 1)
    places = [placed(values, float(values.min()), step, _LATTICE) for values in scaled]
    total = np.zeros(_LATTICE // 2 + 1, dtype=np.complex128)
    for block in blocks:
        each: Any = block.weight[:, None]
        for shares, table, (place, share) in zip(block.shares, tables, places, strict=True):
            each = each * np.fft.rfft(_spread_out(shares @ table.mass, place, share), axis=1)
        total += each.sum(axis=0)
    mass = np.maximum(np.fft.irfft(total, _LATTICE), 0.0)
    if not mass.sum() > 1e-300:
        return Undefined(undefined=1.0)
    start = sum(float(values.min()) for values in scaled)
    edges = start + step * (np.arange(_LATTICE + 1) - 0.5)
    levels = np.concatenate(([0.0], np.cumsum(mass) / mass.sum()))
    # From where on, and up to where, there is mass; all of it may be at one place.
    first = max(0, int(np.searchsorted(levels, 1e-14)) - 1)
    end = max(first + 1, min(_LATTICE, int(np.searchsorted(levels, 1.0 - 1e-14))))
    method = "near exact" if about["method"] == "exact" else about["method"]
    inside = np.clip(edges[first : end + 1], *about["bounds"])
    levels = levels[first : end + 1]
    levels = (levels - levels[0]) / (levels[-1] - levels[0])
    return Tabulated(grid=inside, levels=levels, **about | {"method": method})


def _spread_out(mass: FloatArray, place: IntArray, share: FloatArray) -> FloatArray:
    """Masses (cases x values) at their places on the lattice."""
    result = np.zeros((mass.shape[0], _LATTICE))
    for case, row in enumerate(mass):
        result[case] = np.bincount(place, row * (1.0 - share), _LATTICE)
        result[case, 1:] += np.bincount(place, row * share, _LATTICE - 1)[: _LATTICE - 1]
    return result


# How far sets are apart, as a function of the largest and the smallest value.
Measure = Callable[[FloatArray, FloatArray], FloatArray]


class Spread(NamedTuple):
    """The law of a spread over sets, how likely each has the largest and the smallest value, and all have the same."""

    law: MetricDistribution
    largest: FloatArray
    smallest: FloatArray
    tie: float
    # How likely the spread is 0/0 itself, though no set is: a ratio of zeros.
    lost: float


def spread_law(
    values: FloatArray, masses: FloatArray, measure: Measure, about: dict[str, Any], *, drawn: bool
) -> Spread:
    """The law of a spread from cases: values (sets x metrics x cases) and the mass of each.

    Of several metrics the largest spread counts. `drawn`: cases are draws, not all that there are.
    """
    high, low = values.max(axis=0), values.min(axis=0)
    found = measure(high, low).max(axis=0)
    defined, known = ~np.isnan(found), ~np.isnan(high).any(axis=0)
    total = float(masses[known].sum()) or 1.0
    blur = _SAME * np.nanmax(np.abs(values[:, 0]), initial=0.0)

    def sure(chance: FloatArray) -> FloatArray:
        # Draws that all say the same do not make it certain.
        return np.clip(chance, 0.5 / masses.size, 1.0 - 0.5 / masses.size) if drawn else chance

    def share_of(end: FloatArray) -> FloatArray:
        at = (np.abs(values[:, 0] - end[0]) <= blur) & known
        # Sets that are level share what is theirs.
        return sure((masses * at / np.maximum(at.sum(axis=0), 1)).sum(axis=1) / total)

    tie = float(sure(masses[known & (high[0] - low[0] <= blur)].sum() / total))
    lost = min(1.0, float(masses[known & ~defined].sum()))
    if lost > 0.0:
        undefined = about["undefined"] + lost if about["given_defined"] else max(about["undefined"], lost)
        about = about | {"undefined": min(1.0, undefined), "given_defined": True}
    method = "monte carlo" if drawn else "exact"
    return Spread(
        _discrete(found[defined], masses[defined], about | {"method": method}), share_of(high), share_of(low), tie, lost
    )


def all_values(tables: Sequence[NodeTable], blocks: Sequence[Block]) -> tuple[FloatArray, FloatArray] | None:
    """Every combination of the values of the sets (sets x 1 x combinations) and its mass; None if they are too many."""
    size = np.prod([table.values.size for table in tables], dtype=np.float64)
    if any(table.method != "exact" for table in tables) or size * len(tables) > MOST_COMBINATIONS:
        return None
    values, before, after = [], 1, int(size)
    for table in tables:  # the last one's run fastest; an array of as many axes would end at 32 sets
        after //= table.values.size
        values.append(np.tile(np.repeat(table.values, after), before))
        before *= table.values.size
    return np.stack(values)[:, None], _joint_mass(tables, blocks)


def node_draws(blocks: Sequence[Block], size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """For each set its node in each of `size` random cases, which come up as often as they are likely."""
    weight = np.concatenate([block.weight for block in blocks])
    ends = np.rint(size * np.cumsum(weight) / weight.sum()).astype(np.int64)
    case = np.repeat(np.arange(weight.size), np.diff(ends, prepend=0))
    for one in zip(*(block.shares for block in blocks), strict=True):
        rows = [
            np.broadcast_to(share, (block.weight.size, share.shape[1]))
            for share, block in zip(one, blocks, strict=True)
        ]
        yield picked(np.concatenate(rows), case, rng)


def value_draws(table: NodeTable, node: IntArray, rng: np.random.Generator) -> FloatArray:
    """A value of the metric for each node; NaN where a 0/0 is left out."""
    place = picked(table.mass, node, rng)
    values: FloatArray = np.append(table.values, np.nan)[place]
    return values


def picked(mass: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """A column for each row that is asked for, as its masses have it; one beyond the last for what they lack of one."""
    # All rows on one line, each one unit above the one before; rounding must not leave a gap at the end of a row.
    line = np.cumsum(mass, axis=1)
    line[line > 1.0 - 1e-12] = 1.0
    line += np.arange(mass.shape[0])[:, None]
    place = _found(line.ravel(), row + rng.random(row.size)) - row * mass.shape[1]
    return np.asarray(np.clip(place, 0, mass.shape[1]), dtype=np.int64)


def _found(line: FloatArray, keys: FloatArray) -> IntArray:
    """`np.searchsorted(line, keys, side="right")`, for many keys in no order and a line that rises by one a row.

    Where the parts of each unit begin is found for all of them at once, in order. From there most keys are a few steps
    away at most, and those that are not are searched for.
    """
    last = int(line[-1]) + 2  # a key just below a whole number may be rounded to it
    # A power of two, so that no key is rounded to a later part.
    parts = 1 << int(np.clip(line.size // last, 1, _PARTS)).bit_length()
    if parts * last > keys.size:
        return np.searchsorted(line, keys, side="right")
    place = np.searchsorted(line, np.arange(last * parts) / parts, side="right")[(keys * parts).astype(np.int64)]
    beyond = np.append(line, np.inf)
    left = np.flatnonzero(beyond[place] <= keys)
    for _ in range(_STEPS):
        place[left] += 1
        left = left[beyond[place[left]] <= keys[left]]
    place[left] = np.searchsorted(line, keys[left], side="right")
    return place
