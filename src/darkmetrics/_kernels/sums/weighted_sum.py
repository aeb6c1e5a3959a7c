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
from darkmetrics._kernels.sums.linear_sum import common_unit, multiply_in
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs, tail_reach
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant

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
# Complex factors that rows may be multiplied in one by one, over all nodes.
_FACTOR_BUDGET = 1.5e8
# Chances up to this (and weights up to a tenth of a step) are taken together by a series, right to 1e-8 of a row.
_RARE, _TINY, _TERMS = 0.05, 0.1, 6
# The same with more terms, where so many factors would be left to multiply in.
_LESS_RARE, _MORE_TERMS, _MANY_FACTORS = 0.2, 18, 1e7
# Nodes at which it is seen first which frequencies matter, and from where on they do.
_PILOTS, _DAMPED_AWAY = 4, 1e-10
# How many frequencies are glanced at first, and by how much too many these have to show.
_GLANCED, _ENOUGH = 48, 1.25
# Rows of huge weight that are positive with this chance together at most are put back as single places.
_LONE_CHANCE, _LONE_SHARE = 1e-3, 8.0
_FAINT, _FAINT_END = 1e-18, 1e-30


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


class _Rows(NamedTuple):
    """Rows of one sum: weight, number, and column of `p` (nodes x columns), in which chances are."""

    weight: FloatArray
    counts: FloatArray
    column: IntArray
    p: FloatArray

    def some(self, which: BoolArray | IntArray) -> "_Rows":
        return self._replace(weight=self.weight[which], counts=self.counts[which], column=self.column[which])

    def per_column(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each column."""
        return np.asarray(np.bincount(self.column, values, self.p.shape[1]), dtype=np.float64)

    def cumulants(self, orders: int) -> FloatArray:
        """Cumulants 1..orders at each node (orders x nodes)."""
        scaled, found = self.counts, []
        for order in range(1, orders + 1):
            scaled = scaled * self.weight
            found.append(bernoulli_cumulant(order, self.p) @ self.per_column(scaled))
        return np.array(found)

    def chance_of_end(self, *, positive: bool) -> FloatArray:
        """Probability at each node that every row is positive, or that none is."""
        number = self.per_column(self.counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(self.p) if positive else np.log1p(-self.p)
            result: FloatArray = np.exp(np.where(number > 0.0, log, 0.0) @ number)
        return result

    @property
    def open(self) -> BoolArray:
        """Rows that are not sure at every node."""
        sure = np.all(self.p == self.p[0], axis=0) & ((self.p[0] == 0.0) | (self.p[0] == 1.0))
        result: BoolArray = ~sure[self.column]
        return result

    @property
    def total(self) -> float:
        return float((self.counts * self.weight).sum())


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
    rows = _Rows(weights, counts.astype(np.float64), column, p)
    atoms = _few_atoms(rows)
    if atoms is not None:
        return atoms
    unit = common_unit(weights)
    exact = None if unit is None else _on_unit_lattice(rows, unit)
    return exact if exact is not None else _on_fine_lattice(rows, coarser)


def _few_atoms(rows: _Rows) -> SumLaws | None:
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


def _window(rows: _Rows) -> tuple[float, float, FloatArray]:
    """Where the sums of all nodes have their mass, and the variance of each."""
    mean, variance = rows.cumulants(2)
    heaviest = float(rows.weight[rows.open].max(initial=0.0))
    reach = np.array([tail_reach(float(v), heaviest) for v in variance])
    low, high = max(0.0, float(np.min(mean - reach))), min(rows.total, float(np.max(mean + reach)))
    return low, high, variance


def _on_unit_lattice(rows: _Rows, unit: float) -> SumLaws | None:
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
    # Positions are kept modulo `length`: what falls outside the window has mass below 1e-18 and wraps around unseen.
    mass = np.zeros((rows.p.shape[0], length))
    mass[:, 0] = 1.0
    for one in distinct.tolist():
        own = rows.some(level == one)
        offset, pmfs = poisson_binomial_pmfs(rows.p, own.per_column(own.counts).astype(np.int64))
        new = np.zeros_like(mass)
        for k in range(pmfs.shape[1]):
            new += pmfs[:, k : k + 1] * np.roll(mass, ((offset + k) * one) % length, axis=1)
        mass = new
    mass = np.roll(mass, -(first % length), axis=1)
    kept = np.flatnonzero(mass.max(axis=0) > _FAINT_END)
    window = np.arange(kept[0], kept[-1] + 1)
    pmf = mass[:, window]
    return SumLaws(unit * (first + window.astype(np.float64)), pmf / pmf.sum(axis=1, keepdims=True), exact=True)


def _on_fine_lattice(rows: _Rows, coarser: bool) -> SumLaws | None:
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
    kept = largest > _FAINT
    kept[[0, -1]] = largest[[0, -1]] > _FAINT_END
    order = np.argsort(values[kept], kind="stable")
    pmf = pmf[:, kept][:, order]
    return SumLaws(values[kept][order], pmf / pmf.sum(axis=1, keepdims=True), False, rough, blurred, near)


def _lone_rows(rows: _Rows) -> IntArray:
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


def _between_the_ends(rows: _Rows, coarser: bool) -> tuple[FloatArray, FloatArray, bool] | None:
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
    rows: _Rows, small: BoolArray, smooth: BoolArray, low: float, step: float, size: int
) -> tuple[FloatArray, FloatArray] | None:
    """Places and masses on a lattice of so many steps; None where too many rows would have to go one by one."""
    # Two steps of margin either side, which sharing between neighbours may reach.
    margin = 2 + int(np.sqrt(rows.weight.size))
    flip = _flipped(rows if smooth.all() else rows._replace(p=rows.p[~smooth]))
    base = float((rows.counts * rows.weight)[flip].sum())
    first = math.floor((low - base) / step) - margin
    length = scipy.fft.next_fast_len(size + 2 * margin + 1, real=True)
    pmf = np.zeros((smooth.size, length))
    if not smooth.all():
        each = _row_by_row(rows._replace(p=rows.p[~smooth]), flip, step, first, length)
        if each is None:
            return None
        pmf[~smooth] = each
    if smooth.any():
        pmf[smooth] = _smooth(rows._replace(p=rows.p[smooth]), small, base + step * first, step, length)
    return base + step * (first + np.arange(length, dtype=np.float64)), pmf


def _smooth_nodes(rows: _Rows, sd: FloatArray) -> tuple[BoolArray, BoolArray]:
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


def _small_rows(rows: _Rows, node: int) -> BoolArray:
    """The rows that are small beside the standard deviation of all such rows, at a node."""
    p = rows.p[node, rows.column]
    order = np.argsort(rows.weight, kind="stable")
    sd = np.sqrt(np.cumsum((rows.counts * rows.weight**2 * p * (1.0 - p))[order]))
    fits = np.flatnonzero(rows.weight[order] <= _SMALL_SHARE * sd)
    small = np.zeros(order.size, dtype=np.bool_)
    if fits.size:
        small[order[: int(fits[-1]) + 1]] = True
    return small


def _smooth(rows: _Rows, small: BoolArray, origin: float, step: float, length: int) -> FloatArray:
    """Masses by inversion of the characteristic function: cumulants of the small rows, the others one by one."""
    cumulants = rows.some(small).cumulants(_ORDERS)
    sd = np.sqrt(cumulants[1])
    t = np.arange(length // 2 + 1) * (2.0 * np.pi / (length * step))
    t = t[t <= _DAMPED / float(sd.min())]
    log: ComplexArray = np.zeros((sd.size, t.size), dtype=np.complex128)
    for order in range(1, _ORDERS + 1):
        log += np.multiply.outer(cumulants[order - 1], (1j * t) ** order / math.factorial(order))
    # Beyond its own frequencies a node is damped away, and the series says nothing.
    inside = np.multiply.outer(sd, t) <= _DAMPED
    spectrum = np.where(inside, np.exp(np.where(inside, log, 0.0) - 1j * t * origin), 0.0)
    large = np.flatnonzero(~small)
    multiply_in(spectrum, rows.p, rows.column, rows.counts, large, lambda i: np.exp(1j * t * rows.weight[i]) - 1.0)
    return _inverted(spectrum, length)


def _inverted(spectrum: ComplexArray, length: int) -> FloatArray:
    full: ComplexArray = np.zeros((spectrum.shape[0], length // 2 + 1), dtype=np.complex128)
    full[:, : spectrum.shape[1]] = np.conj(spectrum)
    return np.maximum(scipy.fft.irfft(full, n=length, axis=1), 0.0)


def _flipped(rows: _Rows) -> BoolArray:
    """Rows that are negative less often than positive, all nodes taken together.

    Counting the rarer outcome of each row puts the largest atom on a place, where no rounding can move it.
    """
    flipped: BoolArray = rows.p.mean(axis=0) > 0.5
    return flipped[rows.column]


def _likeliest(rows: _Rows, flip: BoolArray) -> FloatArray:
    """The largest chance of each row's counted outcome: what is rare at one node may be common at another."""
    return np.asarray(np.where(flip, (1.0 - rows.p).max(axis=0)[rows.column], rows.p.max(axis=0)[rows.column]))


def _row_by_row(rows: _Rows, flip: BoolArray, step: float, first: int, length: int) -> FloatArray | None:
    """Masses by multiplying in each row, whose weight is shared between two places so that the mean stays right.

    None where that takes too long.
    """
    place = np.where(flip, -1.0, 1.0) * rows.weight / step
    t = np.arange(length // 2 + 1, dtype=np.float64) * (2.0 * np.pi / length)
    held = np.ones(t.size, dtype=np.bool_)
    nodes, rare, terms = rows.p.shape[0], _likeliest(rows, flip) <= _RARE, _TERMS
    explicit, least = float(np.sum(~rare & (np.abs(place) > _TINY))), min(nodes, _PILOTS + 1) * t.size
    if least * explicit > _MANY_FACTORS:
        rare, terms = _likeliest(rows, flip) <= _LESS_RARE, _MORE_TERMS
        explicit = float(np.sum(~rare & (np.abs(place) > _TINY)))
    if least * explicit > _FACTOR_BUDGET:
        return None
    # Rows ask for the same powers of exp(2 pi i / length) by the thousand, and an exponential takes longer.
    roots = np.exp(2j * np.pi / length * np.arange(length))
    spectrum_at = partial(_spectrum, flip=flip, place=place, t=t, rare=rare, terms=terms, roots=roots)
    if nodes > _PILOTS:
        # Where nothing is left of the characteristic function at a few nodes, nothing is at those in between.
        variance = rows.cumulants(2)[1]
        order = np.argsort(variance)
        heaviest = rows.p[:, rows.column[int(np.argmax(rows.weight))]]
        alone = np.argmax(heaviest * (1.0 - heaviest) / np.maximum(variance, 1e-300))  # one row may decide a node
        some = np.append(order[np.linspace(0, order.size - 1, _PILOTS).astype(np.int64)], alone)
        pilots = rows._replace(p=rows.p[some])
        # A few frequencies tell at once where those that matter are too many.
        last = math.ceil(_ENOUGH * _FACTOR_BUDGET / max(1.0, nodes * explicit))
        if last < t.size:
            few = np.isin(np.arange(t.size), np.linspace(0, last, _GLANCED).astype(np.int64))
            if np.all(np.abs(spectrum_at(pilots, held=few)).max(axis=0) > _DAMPED_AWAY):
                return None
        held = np.abs(spectrum_at(pilots, held=held)).max(axis=0) > _DAMPED_AWAY
        if nodes * float(np.sum(held)) * explicit > _FACTOR_BUDGET:
            return None
    phi = spectrum_at(rows, held=held)
    # The ends are set apart, each where sharing has put it: 0 with every flipped row turned, the total with all others.
    for of_end, positive in ((flip, False), (~flip, True)):
        chance = rows.chance_of_end(positive=positive)
        if chance.max() > _FAINT:
            image: ComplexArray = np.ones(phi.shape[1], dtype=np.complex128)
            for i in np.flatnonzero(of_end):
                image *= _shared(place[i], np.flatnonzero(held), roots) ** rows.counts[i]
            phi -= np.multiply.outer(chance, image)
    spectrum: ComplexArray = np.zeros((phi.shape[0], t.size), dtype=np.complex128)
    spectrum[:, held] = phi * np.exp(-1j * t[held] * first)
    return _inverted(spectrum, length)


def _spectrum(
    rows: _Rows,
    *,
    flip: BoolArray,
    place: FloatArray,
    t: FloatArray,
    held: BoolArray,
    rare: BoolArray,
    terms: int,
    roots: ComplexArray,
) -> ComplexArray:
    """The characteristic function at each node, at the frequencies that are held; `rare` rows by so many terms."""
    tiny = np.abs(place) <= _TINY
    rare = rare & ~tiny
    phi: ComplexArray = np.ones((rows.p.shape[0], int(np.sum(held))), dtype=np.complex128)
    turns = np.flatnonzero(held)
    for turned in (False, True):
        chances = 1.0 - rows.p if turned else rows.p
        single = np.flatnonzero(~tiny & ~rare & (flip == turned))
        multiply_in(phi, chances, rows.column, rows.counts, single, lambda i: _shared(place[i], turns, roots) - 1.0)
        for kind, series, number in ((tiny, _tiny_series, _TERMS), (rare, _rare_series, terms)):
            own = kind & (flip == turned)
            if own.any():
                phi *= np.exp(series(rows.some(own)._replace(p=chances), place[own], t, number)[:, held])
    return phi


def _shared(place: float, turns: IntArray, roots: ComplexArray) -> ComplexArray:
    """The characteristic function of a point between two places, its mass shared by both, at some of the roots of 1."""
    whole = math.floor(place)
    part = place - whole
    result: ComplexArray = roots[turns * whole % roots.size] * ((1.0 - part) + part * roots[turns])
    return result


def _tiny_series(rows: _Rows, place: FloatArray, t: FloatArray, terms: int) -> ComplexArray:
    """The sum of log(1 + p (E - 1)) over rows that leave their place by a small part f of a step: E - 1 = f (z - 1)."""
    turn = np.exp(np.sign(place[0]) * 1j * t) - 1.0
    log: ComplexArray = np.zeros((rows.p.shape[0], turn.size), dtype=np.complex128)
    for j in range(1, terms + 1):
        moved = rows.p**j @ rows.per_column(rows.counts * np.abs(place) ** j)
        log += np.multiply.outer((-1.0) ** (j + 1) / j * moved, turn**j)
    return log


def _rare_series(rows: _Rows, place: FloatArray, t: FloatArray, terms: int) -> ComplexArray:
    """The sum of log(1 + p (E - 1)) over rows of small chance p, where E^l is that of the l-fold weight."""
    columns, where = np.unique(rows.column, return_inverse=True)
    p = rows.p[:, columns]
    nodes, length = p.shape[0], round(2.0 * np.pi / float(t[1]))
    by_node = nodes * rows.weight.size < columns.size * length
    log: ComplexArray = np.zeros((nodes, t.size), dtype=np.complex128)
    for multiple in range(terms + 1):
        # The part of each power (E - 1)^j that is E^multiple.
        factor = np.zeros_like(p)
        for j in range(max(1, multiple), terms + 1):
            factor += (-1.0) ** (1 - multiple) / j * math.comb(j, multiple) * p**j
        spot = multiple * place
        whole = np.floor(spot).astype(np.int64)
        part = spot - whole
        held = np.zeros((nodes if by_node else columns.size, length))
        for shift, mass in ((0, rows.counts * (1.0 - part)), (1, rows.counts * part)):
            spots = (whole + shift) % length
            if by_node:
                held += np.array([np.bincount(spots, own[where] * mass, length) for own in factor])
            else:
                held += np.bincount(where * length + spots, mass, held.size).reshape(held.shape)
        spectrum = np.conj(scipy.fft.rfft(held, axis=1))
        log += spectrum if by_node else factor @ spectrum
    return log
