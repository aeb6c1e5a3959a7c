"""The law of a weighted sum of labels at many nodes at once: what `linear_sum` does at one (mathematics, section 4).

The mixture has a characteristic function of its own, the mean of those of the nodes on the same frequencies, and one
inverse FFT turns it into a law. Rows of one column have the same chance at a node; chances are nodes x columns.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import ComplexArray, FloatArray, IntArray, dot
from darkmetrics._kernels.sums.factors import multiply_in
from darkmetrics._kernels.sums.linear_sum import Lattice, common_unit
from darkmetrics._kernels.sums.poisson_binomial import LOG_TAIL
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant

# Places of the window: at least, at most where the law may be smooth, and at most where it has many atoms.
_FEWEST, _MOST, _MOST_EXACT = 1 << 13, 1 << 16, 1 << 17
_STEPS_PER_SD = 512.0
# A lattice with fewer steps per standard deviation is too coarse to be called near exact.
_LEAST_STEPS = 16.0
# Frequencies at which the characteristic function is below exp(-36) = 2e-16 at every node are left out.
_LOG_NOTHING = 36.0
# Rows that may be a factor each, the multiplications that these may take, and cumulants of the other rows.
_MOST_LARGE, _MOST_FACTORS = 4096, 1.5e8
_ORDERS = 12
# The series of log(1 + r z) in the odds r is summed until its terms vanish; next to a chance of one half it never ends.
_MOST_RARE = 0.48
# Numbers that are held at a time: of all nodes, and of each.
_NUMBERS, _PORTION = 1 << 20, 1 << 13
_DUST = 1e-17
# Powers up to this one are found by steps of one, higher ones by steps of as many.
_BY_STEPS = 24
# Nodes that are looked at together, frequencies at which every row may be a factor of each, and after how many in a row
# that need more of them no further are looked at.
_ALIKE, _LOW, _FAILED = 4, 1024, 2
# Turns, in radians, beyond which a row is a factor there; below, twelve cumulants do: their series ends at pi.
_LARGE = 1.5


class MixedSum(NamedTuple):
    """The law of the mixture, and mean and variance at each node."""

    law: Lattice
    mean: FloatArray
    var: FloatArray


class _Sum(NamedTuple):
    """`base + sum u_i E_i` over cells of `counts` rows; E has the chance `chance[:, column]` at each node.

    E is the label, or its opposite where the label is likely: without any event the sum is at `base`.
    """

    base: float
    u: FloatArray
    counts: FloatArray
    column: IntArray
    chance: FloatArray
    mean: FloatArray
    var: FloatArray

    def per_bucket(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each column of a number that each cell has."""
        return np.asarray(np.bincount(self.column, self.counts * values, self.chance.shape[1]), dtype=np.float64)


class _Window(NamedTuple):
    """Places `base + step (first + k)` for k below `length`, and of each cell how many steps an event moves the sum."""

    step: float
    first: int
    length: int
    moves: IntArray
    exact: bool


def mixed_linear_sum(
    weights: FloatArray, counts: IntArray, column: IntArray, p: FloatArray, share: FloatArray, *, quick: bool = False
) -> MixedSum | None:
    """The law of sum w_i Y_i, mixed over the nodes (rows of `p`) with `share`, which sums to one.

    `counts[i]` rows have the weight `weights[i]` and, at each node, the chance `p[:, column[i]]`. None where a few rows
    of huge weight leave no lattice fine enough for the others, or nothing is random; `quick`: or where it takes long
    and is near exact all the same.
    """
    total = _centred(weights, counts, column, p, share)
    if not total.var.max(initial=0.0) > 0.0:
        return None
    # Nodes whose law is much narrower than most are next to a point; the lattice need not be finer for them.
    order = np.argsort(total.var)[np.count_nonzero(total.var <= 0.0) :]
    place = np.searchsorted(np.cumsum(share[order]), 0.25 * share[order].sum())
    typical = math.sqrt(total.var[order[place]])
    window = _window(total, share, typical)
    if window is None:
        return None
    # |cf(t)| <= exp(-sum v (1 - cos(t u))), here for the smallest v of all nodes.
    v = np.min((total.chance * (1.0 - total.chance))[share > 0.0], axis=0)[total.column]
    spread = np.bincount(window.moves % window.length, total.counts * v, window.length)
    damping = spread.sum() - scipy.fft.rfft(spread).real
    needed = np.flatnonzero(damping < _LOG_NOTHING)
    smooth = not window.exact and int(needed[-1]) <= window.length // 8
    spectrum: ComplexArray = np.zeros(window.length // 2 + 1, dtype=np.complex128)
    t = np.asarray(2.0 * np.pi / (window.length * window.step) * needed, dtype=np.float64)
    large = np.abs(total.u) * t[-1] > 1.0
    few = int(large.sum()) <= min(_MOST_LARGE, _MOST_FACTORS / (t.size * share.size))
    if few and (smooth or window.exact):
        spectrum[needed] = share @ _by_factors(total, t, large, total.base + window.step * window.first)
        if smooth:  # the mass between two places, not the density in the middle
            spectrum[needed] *= np.sinc(0.5 * t * window.step / np.pi)
    elif quick and not window.exact:
        return None
    else:
        smooth = False
        spectrum = _by_series(total, window, share)
    # irfft sums with exp(+itk); the pmf needs exp(-itk), that is the conjugate spectrum.
    pmf = scipy.fft.irfft(np.conj(spectrum), n=window.length)
    held = np.flatnonzero(pmf > _DUST)
    pmf = np.where(pmf > _DUST, pmf, 0.0)[held[0] : held[-1] + 1]
    origin = total.base + window.step * (window.first + int(held[0]))
    return MixedSum(Lattice(origin, window.step, pmf / pmf.sum(), window.exact, smooth=smooth), total.mean, total.var)


def _centred(weights: FloatArray, counts: IntArray, column: IntArray, p: FloatArray, share: FloatArray) -> _Sum:
    used = np.flatnonzero((weights != 0.0) & (counts > 0))
    kept, column = np.unique(column[used], return_inverse=True)
    w, rows, p = weights[used], counts[used].astype(np.float64), p[:, kept]
    likely = share @ p > 0.5
    flip = likely[column]
    total = _Sum(
        base=dot(rows[flip], w[flip]),
        u=np.where(flip, -w, w),
        counts=rows,
        column=column,
        chance=np.where(likely, 1.0 - p, p),
        mean=np.zeros(0),
        var=np.zeros(0),
    )
    mean = total.base + total.chance @ total.per_bucket(total.u)
    var = (total.chance * (1.0 - total.chance)) @ total.per_bucket(total.u**2)
    return total._replace(mean=mean, var=var)


def _window(total: _Sum, share: FloatArray, typical: float) -> _Window | None:
    """A stretch outside of which no node has mass above 1e-18, and its places."""
    reach = _reaches(total)
    change = total.counts * total.u
    mean, reach = total.mean[share > 0.0] - total.base, reach[share > 0.0]
    low = max(float((mean - reach).min()), float(change[change < 0.0].sum()))
    high = min(float((mean + reach).max()), float(change[change > 0.0].sum()))
    unit = common_unit(total.u)
    if unit is not None and (high - low) / unit < _MOST_EXACT:
        first = math.floor(low / unit) - 1
        length = int(scipy.fft.next_fast_len(math.ceil(high / unit) + 2 - first, real=True))
        return _Window(unit, first, length, np.rint(total.u / unit).astype(np.int64), exact=True)
    steps = (high - low) * _STEPS_PER_SD / typical
    length = int(np.clip(1 << math.ceil(math.log2(steps)), _FEWEST, _MOST))
    step = (high - low) / (length - 4)
    if step * _LEAST_STEPS > typical:
        return None
    return _Window(step, math.floor(low / step) - 1, length, _rounded(total, share, step), exact=False)


def _reaches(total: _Sum) -> FloatArray:
    """For each node how far from its mean the sum can be, up to a mass of 1e-18.

    Chernoff's bound with log(1 + x) <= x, which makes it linear in the chances and costs little where they are small.
    """
    largest = float(np.abs(total.u).max())
    rare = np.minimum(total.chance, 1.0 - total.chance)
    turned = total.chance > 0.5
    reach = np.zeros(total.mean.size)
    s = np.geomspace(1e-3, 30.0, 32) / largest
    # The bound for moves u that are rarer than not, and for moves -u back from an event that is likelier than not.
    up, down = (
        np.stack([total.per_bucket(np.expm1(sign * x * total.u) - sign * x * total.u) for x in s], axis=1)
        for sign in (1.0, -1.0)
    )
    for one, other in ((up, down), (down, up)):
        cumulant = np.where(turned, 0.0, rare) @ one + np.where(turned, rare, 0.0) @ other
        reach = np.maximum(reach, ((cumulant + LOG_TAIL) / s).min(axis=1))
    return reach


def _rounded(total: _Sum, share: FloatArray, step: float) -> IntArray:
    """Every move as a whole number of steps, the next one or the one after, so that the mean of the mixture stays."""
    place = total.u / step
    moves = np.rint(place)
    expected = total.counts * (share @ total.chance)[total.column]
    off = float(expected @ (moves - place))
    # Moves that are hardly further from the other neighbour take that one, those that matter most first.
    other = moves - np.sign(moves - place)
    helps = np.flatnonzero((moves - other) * off > 0.0)
    helps = helps[np.argsort(np.abs(np.abs(place - moves) - 0.5)[helps], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(expected[helps]), abs(off)))
    moves[helps[:enough]] = other[helps[:enough]]
    left = abs(off) - float(expected[helps[:enough]].sum())
    rest = helps[enough : enough + 256]
    for i in rest[np.argsort(-expected[rest], kind="stable")].tolist():
        if 0.0 < expected[i] <= left:
            moves[i], left = other[i], left - float(expected[i])
    return moves.astype(np.int64)


def _by_factors(total: _Sum, t: FloatArray, large: np.ndarray, origin: float) -> ComplexArray:
    """The characteristic functions about `origin` at a few frequencies: small moves by cumulants, large ones each."""
    small = total._replace(u=total.u[~large], counts=total.counts[~large], column=total.column[~large])
    moments = [small.per_bucket(small.u**order) for order in range(1, _ORDERS + 1)]
    mean = total.base + total.chance @ moments[0]
    log_cf: ComplexArray = 1j * np.multiply.outer(mean - origin, t)
    variance = total.chance * (1.0 - total.chance)
    for order in range(2, _ORDERS + 1):
        cumulant = bernoulli_cumulant(order, total.chance, variance) @ moments[order - 1]
        log_cf += np.multiply.outer(cumulant, (1j * t) ** order / math.factorial(order))
    cf: ComplexArray = np.exp(log_cf)
    rows = total.chance, total.column, total.counts, total.u
    multiply_in(cf, *rows, np.flatnonzero(large), lambda u: np.expm1(1j * np.multiply.outer(u, t)))
    return cf


def _by_series(total: _Sum, window: _Window, share: FloatArray) -> ComplexArray:
    """The characteristic function of the mixture at all frequencies of the window, every move a whole number of steps.

    log(1 - a + a z) = log(1 - a) + sum (-1)^(j+1) r^j z^j / j with the odds r = a / (1 - a): a measure on the lattice,
    of which one FFT for each node takes care.
    """
    # Of an event that is likelier than not its absence is counted.
    turned = total.chance > 0.5
    rare = np.where(turned, 1.0 - total.chance, total.chance)
    odds, direct = rare / (1.0 - rare), rare > _MOST_RARE
    rows, steps = total.per_bucket(np.ones(total.u.size)), total.per_bucket(window.moves.astype(np.float64))
    constant, shift = (
        np.where(direct, 0.0, np.log1p(-rare)) @ rows,
        np.rint(turned @ steps).astype(np.int64) - window.first,
    )
    cells = _merged(total, window)
    spectrum: ComplexArray = np.zeros(window.length // 2 + 1, dtype=np.complex128)
    turn = 2j * np.pi / window.length
    roots = np.exp(turn * np.arange(window.length))
    left = _by_low_frequencies(spectrum, total, window, cells, roots, share)
    for nodes in np.array_split(left, -(-left.size * window.length // _NUMBERS)) if left.size else []:
        measure = np.zeros((window.length, nodes.size))
        for sign in (1, -1):
            counted = ~direct[nodes] & (turned[nodes] == (sign < 0))
            _add_series(measure, cells, sign, np.where(counted, odds[nodes], 0.0))
        log_cf: ComplexArray = np.conj(scipy.fft.rfft(measure, axis=0)).T
        for node, own in zip(nodes.tolist(), log_cf, strict=True):
            # At most frequencies nothing is left of it, and the factors below are at most 1 in size.
            k = np.flatnonzero(own.real + constant[node] > -LOG_TAIL)
            # Whole turns are taken off before anything is rounded.
            whole = k * (shift[node] % window.length) % window.length
            cf = np.exp(own[k] + (constant[node] + turn * whole))
            single = np.flatnonzero(direct[node, cells.column])
            for some in np.array_split(single, -(-single.size * k.size // _PORTION)) if k.size * single.size else []:
                column = cells.column[some]
                moves = np.where(turned[node, column], -cells.moves[some], cells.moves[some]) % window.length
                factor = 1.0 + rare[node, column, None] * (roots[moves[:, None] * k % window.length] - 1.0)
                many = np.flatnonzero(cells.rows[some] > 1.0)
                factor[many] **= cells.rows[some][many, None]
                cf *= factor.prod(axis=0)
            spectrum[k] += share[node] * cf
    return spectrum


def _by_low_frequencies(
    spectrum: ComplexArray, total: _Sum, window: _Window, cells: "_Steps", roots: ComplexArray, share: FloatArray
) -> IntArray:
    """Add the nodes of which nothing is left but at the lowest frequencies, row by row there; returns the others.

    Small moves go by cumulants, as in `_by_factors`.
    """
    held = _held_low(total, window, cells, min(_LOW, _NUMBERS // cells.rows.size))
    if not held:
        return np.arange(share.size)
    k = np.arange(max(size for _, size in held))
    t = 2.0 * np.pi / window.length * k
    moved = roots[cells.moves[:, None] * k % window.length] - 1.0
    orders = range(1, _ORDERS + 1)
    cumulants, terms = (
        [bernoulli_cumulant(i, total.chance) for i in orders],
        np.array([(1j * t) ** i / math.factorial(i) for i in orders]),
    )
    start = roots[k * (-window.first % window.length) % window.length]
    for nodes, size in held:
        large = np.abs(cells.moves) * t[size - 1] > _LARGE
        small, own = np.where(large, 0.0, cells.moves), np.flatnonzero(large)
        sums = [
            kappa[nodes] @ np.bincount(cells.column, cells.rows * small**i, total.chance.shape[1])
            for i, kappa in zip(orders, cumulants, strict=True)
        ]
        cf = np.exp(np.array(sums).T @ terms[:, :size]) * start[:size]
        many = np.flatnonzero(cells.rows[own] > 1.0)
        for i, node in enumerate(nodes.tolist()):
            factor = 1.0 + total.chance[node, cells.column[own], None] * moved[own, :size]
            factor[many] **= cells.rows[own][many, None]
            cf[i] *= factor.prod(axis=0)
        spectrum[:size] += share[nodes] @ cf
    return np.setdiff1d(np.arange(share.size), np.concatenate([nodes for nodes, _ in held]))


def _held_low(total: _Sum, window: _Window, cells: "_Steps", few: int) -> list[tuple[IntArray, int]]:
    """Nodes with the number of lowest frequencies beyond which nothing is left there, where that is `few` at most."""
    v, places = total.chance * (1.0 - total.chance), cells.moves % window.length
    held, failed = [], 0

    def needed(nodes: IntArray) -> int:
        spread = np.bincount(places, cells.rows * v[nodes].min(axis=0)[cells.column], window.length)
        return 1 + int(np.flatnonzero(spread.sum() - scipy.fft.rfft(spread).real < _LOG_NOTHING)[-1])

    # Those of about the same variance are looked at together, and each by itself only where that says nothing.
    order = np.argsort(-total.var, kind="stable")
    for nodes in np.array_split(order, -(-order.size // _ALIKE)):
        found = [(nodes, needed(nodes))]
        if found[0][1] > few:
            found = [(node, needed(node)) for node in nodes[:, None]]
        found = [(some, size) for some, size in found if size <= few]
        held += found
        failed = 0 if found else failed + 1
        if failed > _FAILED:
            break
    return held


class _Steps(NamedTuple):
    """Cells whose rows move the sum by the same number of steps with the same chance, by rising column."""

    column: IntArray
    moves: IntArray
    rows: FloatArray


def _merged(total: _Sum, window: _Window) -> _Steps:
    low, span = int(window.moves.min()), int(np.ptp(window.moves)) + 1
    keys, owner = np.unique(total.column * span + (window.moves - low), return_inverse=True)
    rows = np.asarray(np.bincount(owner, total.counts), dtype=np.float64)
    return _Steps(keys // span, keys % span + low, rows)


def _add_series(measure: FloatArray, cells: _Steps, sign: int, odds: FloatArray) -> None:
    """Add to the measure (places x nodes) the series of all cells whose odds (nodes x columns) are not zero."""
    with np.errstate(divide="ignore"):
        largest = np.log(odds.max(axis=0))
    rows = np.bincount(cells.column, cells.rows, largest.size)
    # Until all terms together are below 1e-18.
    terms = np.maximum(1, np.ceil((LOG_TAIL + np.log(np.maximum(rows, 1.0))) / -largest)).astype(np.int64)
    used = np.flatnonzero(np.isfinite(largest[cells.column]))
    size = np.cumsum(terms[cells.column[used]])
    portions = np.searchsorted(size, np.arange(_PORTION, size.max(initial=0), _PORTION))
    for some in np.split(used, portions) if used.size else []:
        # A column for each of these and power of its odds, and in it a number for each of its cells.
        used_columns, own = np.unique(cells.column[some], return_inverse=True)
        first = np.cumsum(terms[used_columns]) - terms[used_columns]
        which, power = _ranges(terms[used_columns])
        coefficients = _powers(odds.T[used_columns], which, power)
        coefficients *= (np.where(power % 2, 1.0, -1.0) / power)[:, None]
        cell, j = _ranges(terms[used_columns][own])
        # Few of the places are met, and a product with all of them would be mostly zeros.
        met, places = np.unique((sign * cells.moves[some][cell] * j) % measure.shape[0], return_inverse=True)
        entries = cells.rows[some][cell], (places, first[own[cell]] + j - 1)
        measure[met] += scipy.sparse.csc_array(entries, shape=(met.size, power.size)) @ coefficients


def _powers(base: FloatArray, which: IntArray, power: IntArray) -> FloatArray:
    """Rows of `base` to whole powers of one and more, each as a product of two, which takes less time than exp."""
    size, last = min(_BY_STEPS, int(power.max())), (int(power.max()) - 1) // _BY_STEPS
    with np.errstate(under="ignore"):
        small = np.cumprod(np.broadcast_to(base, (size, *base.shape)), axis=0)
        if not last:
            return np.asarray(small[power - 1, which], dtype=np.float64)
        large = np.cumprod(np.concatenate([np.ones((1, *base.shape)), np.repeat(small[-1:], last, axis=0)]), axis=0)
        return np.asarray(small[(power - 1) % _BY_STEPS, which] * large[(power - 1) // _BY_STEPS, which])


def _ranges(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The index of each range 1..size, and its numbers, one after the other."""
    owner = np.repeat(np.arange(sizes.size), sizes)
    return owner, np.arange(1, owner.size + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
