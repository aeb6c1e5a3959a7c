"""Sums of positive weights of Bernoulli variables, at many nodes on the same places (mathematics, section 4).

Whatever the way, the two ends carry their own exact masses: no row positive, and every row positive. They decide what
is 0/0, and a lattice whose steps are wider than the smallest weights cannot tell them from their neighbours.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from darkmetrics._kernels.sums.factors import blocks, multiply_in
from darkmetrics._kernels.sums.linear_sum import common_unit
from darkmetrics._kernels.sums.poisson_binomial import PART_OF_LEAST, poisson_binomial_pmfs, tail_reach
from darkmetrics._kernels.sums.row_by_row import FAINT, Rows, counted_outcomes, inverted, row_by_row

# Masses that may be held at all nodes together.
_MOST_MASSES = 2**22
_MOST_ATOMS = 2**11
# Multiplications that convolution on the lattice of commensurate weights may take, over all nodes.
_CONVOLUTION_BUDGET = 4e8
# Places of a lattice, and the most there may be so that a step is an eighth of every standard deviation at most.
_PLACES, _MOST_PLACES = 2048, 16384
# Places at several nodes where few rows decide: a formula is looked at wherever two lattices meet.
_FEW_PLACES, _FEW_ROWS = 1024, 64
_ORDERS = 12
# Rows of small weight: a sixth of their common standard deviation at most. They damp the characteristic function
# below 1e-14 beyond 9 / sd, where the error of its series, damped likewise, is below 1e-10.
_SMALL_SHARE, _DAMPED = 1.0 / 6.0, 9.0
# Shares of the nodes, those of least variance first, that are left to go row by row, tried in turn.
_LEFT_OUT = (0.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0)
# Rows of huge weight that are positive with this chance together at most are put back as single places.
_LONE_CHANCE, _LONE_SHARE = 1e-3, 8.0
_FAINT_END = 1e-30


# Sums of less than so many steps of a lattice are not known to a good part of their size.
_NEAR_STEPS = 4.0


class SumLaws(NamedTuple):
    """Mass `pmf[node, k]` at `values[k]`, which rise from 0 to the sum of all weights at most.

    `exact`: these are the true atoms. `rough`: few rows decide, and neighbouring atoms were moved by about a step.
    `blurred`: the largest chance at a node of a sum `near` an end, but not at it, so that its size is not known.
    """

    values: FloatArray
    pmf: FloatArray
    exact: bool
    rough: bool = False
    blurred: float = 0.0
    near: float = 0.0


def weighted_sum_laws(
    weights: FloatArray, counts: IntArray, column: IntArray, p: FloatArray, *, coarser: bool = False
) -> SumLaws | None:
    """The law at every node of sum w_i Y_i with `counts[i]` rows of weight `w_i > 0` and chance `p[node, column[i]]`.

    None where rows are too many for a law that few of them decide. `coarser`: that law on half as many places, which
    shows what its steps do to it.
    """
    if weights.size == 0:
        return SumLaws(np.zeros(1), np.ones((p.shape[0], 1)), exact=True)
    if np.all(weights == weights[0]):
        first, pmfs = poisson_binomial_pmfs(p, np.bincount(column, counts, p.shape[1]).astype(np.int64))
        return SumLaws(weights[0] * (first + np.arange(pmfs.shape[1], dtype=np.float64)), pmfs, exact=True)
    rows = Rows(weights, counts.astype(np.float64), column, p)
    atoms = _few_atoms(rows)
    if atoms is not None:
        return atoms
    unit = common_unit(weights)
    exact = None if unit is None else _on_unit_lattice(rows, unit)
    return exact if exact is not None else _on_fine_lattice(rows, coarser)


def _few_atoms(rows: Rows) -> SumLaws | None:
    """All sums there are, where they are few: rows of one weight only differ in how many of them are positive."""
    most = min(_MOST_ATOMS, _MOST_MASSES // rows.p.shape[0])
    sure, rows = rows.some(~rows.open), rows.some(rows.open)
    distinct, which = np.unique(rows.weight, return_inverse=True)
    if distinct.size > math.log2(most):
        return None
    values, masses = np.full(1, rows.p[0, sure.column] @ (sure.counts * sure.weight)), np.ones((rows.p.shape[0], 1))
    for i, weight in enumerate(distinct.tolist()):
        own = rows.some(which == i)
        offset, pmfs = poisson_binomial_pmfs(rows.p, own.per_column(own.counts).astype(np.int64))
        if values.size * pmfs.shape[1] > most:
            return None
        values = np.add.outer(values, weight * (offset + np.arange(pmfs.shape[1]))).ravel()
        masses = (masses[:, :, None] * pmfs[:, None, :]).reshape(masses.shape[0], -1)
    return _joined(values, masses)


def _joined(values: FloatArray, masses: FloatArray) -> SumLaws:
    """Atoms in order, those that rounding alone tells apart as one."""
    order = np.argsort(values, kind="stable")
    values, masses = values[order], masses[:, order]
    starts = np.flatnonzero(np.diff(values, prepend=-1.0) > 1e-13 * values)
    if values[0] == 0.0:
        starts = np.concatenate(([0], starts[starts > 0]))
    return SumLaws(values[starts], np.add.reduceat(masses, starts, axis=1), exact=True)


def _window(rows: Rows) -> tuple[float, float, FloatArray]:
    """Where the sums of all nodes have their mass, and the variance of each."""
    mean, variance = rows.cumulants(2)
    heaviest = float(rows.weight[rows.open].max(initial=0.0))
    reach = np.array([tail_reach(float(v), heaviest) for v in variance])
    low, high = max(0.0, float(np.min(mean - reach))), min(rows.total, float(np.max(mean + reach)))
    return low, high, variance


def _on_unit_lattice(rows: Rows, unit: float) -> SumLaws | None:
    """Weights that are multiples of a unit: one convolution for each of them, for all nodes at once."""
    level = np.rint(rows.weight / unit).astype(np.int64)
    low, high, _ = _window(rows)
    first, last = math.floor(low / unit), math.ceil(high / unit)
    length = last - first + 1
    distinct = np.unique(level)
    # Before anything is computed: about twenty standard deviations of the number of positives of each level.
    number = np.stack([rows.some(level == one).per_column(rows.counts[level == one]) for one in distinct.tolist()])
    spread = 20.0 * np.sqrt((number @ (rows.p * (1.0 - rows.p)).T).max(axis=1)) + 20.0
    if rows.p.shape[0] * length * float(spread.sum()) > _CONVOLUTION_BUDGET:
        return None
    # Sums of the levels so far are held where a node has mass: most of the window is out of their reach.
    begin, mass = 0, np.ones((rows.p.shape[0], 1))
    for one in distinct.tolist():
        own = rows.some(level == one)
        offset, pmfs = poisson_binomial_pmfs(rows.p, own.per_column(own.counts).astype(np.int64))
        mass = _convolved(mass, pmfs, one)
        kept = np.flatnonzero(mass.max(axis=0) > _FAINT_END * PART_OF_LEAST)
        begin, mass = begin + offset * one + int(kept[0]), mass[:, kept[0] : kept[-1] + 1]
    # What falls outside the window has mass below 1e-18.
    start, mass = max(begin, first), mass[:, max(0, first - begin) : last + 1 - begin]
    kept = np.flatnonzero(mass.max(axis=0) > _FAINT_END)
    pmf, values = mass[:, kept[0] : kept[-1] + 1], start + np.arange(kept[0], kept[-1] + 1, dtype=np.float64)
    return SumLaws(unit * values, pmf / pmf.sum(axis=1, keepdims=True), exact=True)


def _convolved(mass: FloatArray, pmfs: FloatArray, every: int) -> FloatArray:
    """Masses (nodes x places) once numbers with these pmfs are added, each of which is worth `every` places."""
    size, numbers = mass.shape[1], pmfs.shape[1]
    result = np.zeros((mass.shape[0], size + every * (numbers - 1)))
    if size < numbers:
        for place in range(size):
            result[:, place : place + every * (numbers - 1) + 1 : every] += mass[:, place : place + 1] * pmfs
    else:
        for k in range(numbers):
            result[:, every * k : every * k + size] += pmfs[:, k : k + 1] * mass
    return result


def _on_fine_lattice(rows: Rows, coarser: bool) -> SumLaws | None:
    """Weights of any size, on a lattice of their own between the exact ends."""
    none, every, least, total = (
        rows.chance_of_end(positive=False),
        rows.chance_of_end(positive=True),
        float(rows.weight.min()),
        rows.total,
    )
    lone = _lone_rows(rows)
    places, single = np.empty(0), np.empty((rows.p.shape[0], 0))
    rest = rows
    if lone.size:
        rest = rows.some(np.setdiff1d(np.arange(rows.weight.size), lone))
        chances = rows.p[:, rows.column[lone]]
        seldom = np.prod(1.0 - chances, axis=1, keepdims=True)
        single = chances / (1.0 - chances) * seldom - (every[:, None] if lone.size == 1 else 0.0)
        # Every other row positive is an end of their sum, but not of this one.
        single = np.hstack([np.maximum(single, 0.0), seldom * rest.chance_of_end(positive=True)[:, None]])
        places = np.append(rows.weight[lone] + float(rest.cumulants(1).mean()), rest.total)
    inner = _between_the_ends(rest, coarser)
    if inner is None:
        return None
    lattice, masses, rough = inner
    # What is not at an end lies at least the smallest weight away from it.
    values = np.concatenate(([0.0], np.clip(np.concatenate([lattice, places]), least, total - least), [total]))
    left = np.maximum(1.0 - none - every - single.sum(axis=1), 0.0)[:, None]
    share = masses.sum(axis=1, keepdims=True)
    masses = np.where(share > 0.0, masses / np.where(share > 0.0, share, 1.0), 0.0) * left
    near = _NEAR_STEPS * (lattice[1] - lattice[0])
    blurred = float(masses[:, (lattice < near) | (lattice > total - near)].sum(axis=1).max()) if rough else 0.0
    pmf = np.hstack([none[:, None], masses, single, every[:, None]])
    largest = pmf.max(axis=0)
    kept = largest > FAINT
    kept[[0, -1]] = largest[[0, -1]] > _FAINT_END
    order = np.argsort(values[kept], kind="stable")
    pmf = pmf[:, kept][:, order]
    return SumLaws(values[kept][order], pmf / pmf.sum(axis=1, keepdims=True), False, rough, blurred, near)


def _lone_rows(rows: Rows) -> IntArray:
    """Rows so much heavier than the others, and so unlikely, that their lattice would be too coarse for the rest."""
    order = np.argsort(-rows.weight, kind="stable")[:64]
    chance = np.cumsum((rows.counts[order] * rows.p[:, rows.column[order]]).max(axis=0))
    lone: IntArray = order[(chance <= _LONE_CHANCE) & (np.cumsum(rows.counts[order] > 1.0) == 0)]
    while lone.size:
        rest = np.setdiff1d(np.arange(rows.weight.size), lone)
        if not rest.size:
            return lone[:0]
        sd = math.sqrt(float(rows.some(rest).cumulants(2)[1].max()))
        if rows.weight[lone[-1]] > _LONE_SHARE * sd:
            return lone
        lone = lone[:-1]
    return lone


def _between_the_ends(rows: Rows, coarser: bool) -> tuple[FloatArray, FloatArray, bool] | None:
    """Places of a lattice, masses at each node without those of the two ends, and whether few rows decide."""
    low, high, variance = _window(rows)
    nodes = variance.size
    sd = np.sqrt(variance)
    size = _PLACES
    while size < _MOST_PLACES and (high - low) / size > 0.125 * float(sd.min()):
        size *= 2
    small, fits = _smooth_nodes(rows, sd)
    sizes = [size]
    if not (fits & (sd >= 2.0 * (high - low) / size)).all():
        # Rows that go one by one may be too many for a fine lattice, but not for a plain one.
        few = _FEW_PLACES if nodes > 1 and rows.weight.size <= _FEW_ROWS else _PLACES
        sizes = [each // (2 if coarser else 1) for each in ((size, few) if fits.any() and size > few else (few,))]
    for size in sizes:
        smooth = fits & (sd >= 2.0 * (high - low) / size)
        found = _on_places(rows, small, smooth, low, (high - low) / size, size)
        if found is not None:
            return *found, not bool(smooth.all())
    return None


def _on_places(
    rows: Rows, small: BoolArray, smooth: BoolArray, low: float, step: float, size: int
) -> tuple[FloatArray, FloatArray] | None:
    """Places and masses on a lattice of so many steps; None where too many rows would have to go one by one."""
    # Two steps of margin either side, which sharing between neighbours may reach.
    margin = 2 + int(np.sqrt(rows.weight.size))
    rough = np.flatnonzero(~smooth)
    choices = counted_outcomes(rows if smooth.all() else rows._replace(p=rows.p[rough]))
    bases = [float((rows.counts * rows.weight)[flip].sum()) for _, flip in choices]
    base = bases[0]
    first = math.floor((low - base) / step) - margin
    length = scipy.fft.next_fast_len(size + 2 * margin + 1, real=True)
    pmf = np.zeros((smooth.size, length))
    apart = np.zeros((smooth.size, len(choices)))
    for i, (nodes, flip) in enumerate(choices):
        if not rough.size or not nodes.size:
            continue
        own = rows._replace(p=rows.p[rough[nodes]])
        off = (bases[i] - base) / step
        each = row_by_row(own, flip, step, first - off, length)
        if each is None:
            return None
        if i > 0 and 0.0 < bases[i] < rows.total:
            # Between two of these places lies the heaviest atom of the node, which is no end: it has one of its own.
            whole, likeliest = math.floor(off), own.likeliest
            for shift, part in ((0, 1.0 - (off - whole)), (1, off - whole)):
                each[:, (whole - first + shift) % length] -= part * likeliest
            each = np.maximum(each, 0.0)
            left = 1.0 - likeliest - own.chance_of_end(positive=False) - own.chance_of_end(positive=True)
            each *= (np.maximum(left, 0.0) / np.maximum(each.sum(axis=1), _FAINT_END))[:, None]
            apart[rough[nodes], i] = likeliest
        pmf[rough[nodes]] = each
    if smooth.any():
        pmf[smooth] = _smooth(rows._replace(p=rows.p[smooth]), small, base + step * first, step, length)
    places = base + step * (first + np.arange(length, dtype=np.float64))
    return np.append(places, bases[1:]), np.hstack([pmf, apart[:, 1:]])


def _smooth_nodes(rows: Rows, sd: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Rows of small weight, and the nodes at which all such rows together are smooth enough for a series.

    Nodes that are nearly sure of every row have a hundredth of the variance of others, and nothing is small there. They
    go row by row, and do not take the others with them.
    """
    best: tuple[BoolArray, BoolArray] = np.zeros(rows.weight.size, np.bool_), np.zeros(sd.size, np.bool_)
    order = np.argsort(sd, kind="stable")
    for left_out in _LEFT_OUT:
        small = _small_rows(rows, int(order[int(left_out * sd.size)]))
        if small.any():
            own = np.sqrt(rows.some(small).cumulants(2)[1])
            smooth: BoolArray = (own * _SMALL_SHARE >= rows.weight[small].max()) & (own >= 0.05 * sd)
            if smooth.sum() > best[1].sum():
                best = small, smooth
        if best[1].all():
            break
    return best


def _small_rows(rows: Rows, node: int) -> BoolArray:
    """The rows that are small beside the standard deviation of all such rows, at a node."""
    p = rows.p[node, rows.column]
    order = np.argsort(rows.weight, kind="stable")
    sd = np.sqrt(np.cumsum((rows.counts * rows.weight**2 * p * (1.0 - p))[order]))
    fits = np.flatnonzero(rows.weight[order] <= _SMALL_SHARE * sd)
    small = np.zeros(order.size, dtype=np.bool_)
    if fits.size:
        small[order[: int(fits[-1]) + 1]] = True
    return small


def _smooth(rows: Rows, small: BoolArray, origin: float, step: float, length: int) -> FloatArray:
    """Masses by inversion of the characteristic function: cumulants of the small rows, the others one by one."""
    cumulants = rows.some(small).cumulants(_ORDERS)
    sd = np.sqrt(cumulants[1])
    t = np.arange(length // 2 + 1, dtype=np.float64) * (2.0 * np.pi / (length * step))
    t = t[t <= _DAMPED / float(sd.min())]
    log: ComplexArray = np.zeros((sd.size, t.size), dtype=np.complex128)
    for order in range(1, _ORDERS + 1):
        log += np.multiply.outer(cumulants[order - 1], (1j * t) ** order / math.factorial(order))
    # Beyond its own frequencies a node is damped away, and the series says nothing.
    inside = np.multiply.outer(sd, t) <= _DAMPED
    spectrum = np.where(inside, np.exp(np.where(inside, log, 0.0) - 1j * t * origin), 0.0)
    large = np.flatnonzero(~small)
    for nodes, turns in blocks(inside) if large.size else []:
        own = spectrum[np.ix_(nodes, turns)]
        chances = rows.p[nodes], rows.column, rows.counts, rows.weight
        multiply_in(own, *chances, large, partial(_moved, t=t[turns]))
        spectrum[np.ix_(nodes, turns)] = own
    return inverted(spectrum, length)


def _moved(weight: FloatArray, t: FloatArray) -> ComplexArray:
    """E - 1 of some weights at the frequencies."""
    turned: ComplexArray = np.exp(1j * np.multiply.outer(weight, t).astype(np.complex128))
    return turned - 1.0
