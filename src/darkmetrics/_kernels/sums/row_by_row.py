"""Rows of a weighted sum, and its law where few of them decide: each row multiplied in (mathematics, section 4)."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from darkmetrics._kernels.sums.factors import blocks, multiply_in
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant

# Complex factors that rows may be multiplied in one by one, over all nodes.
_FACTOR_BUDGET = 1.5e8
# Chances up to this (and weights up to a tenth of a step) are taken together by a series, right to 1e-8 of a row.
_RARE, _TINY, _TERMS = 0.05, 0.1, 6
# The same with more terms, where so many factors would be left to multiply in.
_LESS_RARE, _MORE_TERMS, _MANY_FACTORS = 0.2, 18, 1e7
# Nodes at which it is seen first which frequencies matter, and from where on they do.
_PILOTS, _DAMPED_AWAY = 4, 1e-10
# A damping by which nothing is left, and kinds of rows that are told apart for a bound on it.
_LOG_NOTHING, _KINDS = 32.0, 64
# Rows that are looked at together where each has a number at every frequency.
_TOGETHER = 32
# How many frequencies are glanced at first, and by how much too many these have to show.
_GLANCED, _ENOUGH = 48, 1.25
FAINT = 1e-18
# An atom that may not be spread over the places of other nodes.
_HEAVY = 1.0 / 512.0


class Rows(NamedTuple):
    """Rows of one sum: weight, number, and column of `p` (nodes x columns), in which chances are."""

    weight: FloatArray
    counts: FloatArray
    column: IntArray
    p: FloatArray

    def some(self, which: BoolArray | IntArray) -> "Rows":
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
    def likeliest(self) -> FloatArray:
        """Probability at each node of its likeliest labeling."""
        result: FloatArray = np.exp(np.log(np.maximum(self.p, 1.0 - self.p)) @ self.per_column(self.counts))
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


def counted_outcomes(rows: Rows) -> list[tuple[IntArray, BoolArray]]:
    """Nodes, and of which rows they count the negatives and not the positives: first the choice that is shared.

    Counting the rarer outcome of each row puts the largest atom on a place, where no rounding can move it. What is rare
    for all nodes taken together may be common at one: where that has a heavy atom it chooses for itself, and those that
    choose the same come together.
    """
    held = np.unique(rows.column)
    likely = rows.p[:, held] > 0.5
    shared = rows.p[:, held].mean(axis=0) > 0.5
    own = (rows.likeliest > _HEAVY) & np.any(likely != shared, axis=1)
    column = np.searchsorted(held, rows.column)
    found = [(np.flatnonzero(~own), shared[column])]
    if own.any():
        choices, which = np.unique(likely[own], axis=0, return_inverse=True)
        nodes = np.flatnonzero(own)
        found += [(nodes[which.ravel() == i], choice[column]) for i, choice in enumerate(choices)]
    return found


def _likeliest(rows: Rows, flip: BoolArray) -> FloatArray:
    """The largest chance of each row's counted outcome: what is rare at one node may be common at another."""
    return np.asarray(np.where(flip, (1.0 - rows.p).max(axis=0)[rows.column], rows.p.max(axis=0)[rows.column]))


def row_by_row(rows: Rows, flip: BoolArray, step: float, first: float, length: int) -> FloatArray | None:
    """Masses by multiplying in each row, whose weight is shared between two places so that the mean stays right.

    So are sums, where the first place lies between two of their own. None where that takes too long.
    """
    place = np.where(flip, -1.0, 1.0) * rows.weight / step
    t = np.arange(length // 2 + 1, dtype=np.float64) * (2.0 * np.pi / length)
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
    damping = _damping(rows, place, length)
    if nodes > _PILOTS:
        # Where nothing is left of the characteristic function at a few nodes, nothing is at those in between.
        variance = rows.cumulants(2)[1]
        order = np.argsort(variance)
        heaviest = rows.p[:, rows.column[int(np.argmax(rows.weight))]]
        alone = np.argmax(heaviest * (1.0 - heaviest) / np.maximum(variance, 1e-300))  # one row may decide a node
        some = np.append(order[np.linspace(0, order.size - 1, _PILOTS).astype(np.int64)], alone)
        left = np.exp(-damping[some].min(axis=0)) > _DAMPED_AWAY
        if nodes * float(np.sum(left)) * explicit > _FACTOR_BUDGET:  # a bound says too many, which may be wrong
            pilots, every = rows._replace(p=rows.p[some]), np.ones((some.size, 1), dtype=np.bool_)
            # A few frequencies tell at once where those that matter are too many.
            last = math.ceil(_ENOUGH * _FACTOR_BUDGET / max(1.0, nodes * explicit))
            if last < t.size:
                few = np.isin(np.arange(t.size), np.linspace(0, last, _GLANCED).astype(np.int64))
                glanced = spectrum_at(pilots, held=every & few)[:, few]
                if np.all(np.abs(glanced).max(axis=0) > _DAMPED_AWAY):
                    return None
            left &= np.abs(spectrum_at(pilots, held=every & left)).max(axis=0) > _DAMPED_AWAY
            if nodes * float(np.sum(left)) * explicit > _FACTOR_BUDGET:
                return None
    held = damping < _LOG_NOTHING
    phi, turns = spectrum_at(rows, held=held), np.flatnonzero(held.any(axis=0))
    # The ends are set apart, each where sharing has put it: 0 with every flipped row turned, the total with all others.
    for of_end, positive in ((flip, False), (~flip, True)):
        chance = rows.chance_of_end(positive=positive)
        if chance.max() > FAINT:
            image: ComplexArray = np.ones(turns.size, dtype=np.complex128)
            parts = -(-int(of_end.sum()) // _TOGETHER)
            for own in np.array_split(np.flatnonzero(of_end), parts) if parts else []:
                image *= np.prod(_shared(place[own], turns, roots) ** rows.counts[own, None], axis=0)
            phi[:, turns] -= np.where(held[:, turns], np.multiply.outer(chance, image), 0.0)
    phi[:, turns] *= _shared(np.asarray(-first), turns, roots)
    return inverted(phi, length)


def _damping(rows: Rows, place: FloatArray, length: int) -> FloatArray:
    """What the logarithm of each node's characteristic function is below zero at least (nodes x frequencies).

    |1 - p + pE|^2 <= 1 - 2 p (1 - p) (1 - Re E) for |E| <= 1. Rows of about the same chance go together, with the least
    p (1 - p) of them.
    """
    order = np.argsort(rows.p.mean(axis=0), kind="stable")
    number = min(_KINDS, order.size)
    starts = np.arange(number) * order.size // number
    v = np.minimum.reduceat((rows.p * (1.0 - rows.p))[:, order], starts, axis=1)
    kind = np.empty(order.size, dtype=np.int64)
    kind[order] = np.repeat(np.arange(number), np.diff(starts, append=order.size))
    held = _on_circle(kind[rows.column], place, rows.counts, (number, length)).toarray()
    result: FloatArray = v @ (held.sum(axis=0) - scipy.fft.rfft(held, axis=0).real).T
    return result


def _on_circle(owner: IntArray, place: FloatArray, mass: FloatArray, shape: tuple[int, int]) -> Any:
    """Masses of each owner on so many places of a circle (places x owners, sparse), shared by the two next to each."""
    whole = np.floor(place)
    part, spot = place - whole, whole.astype(np.int64)
    entries = np.concatenate([mass * (1.0 - part), mass * part])
    where = np.concatenate([spot, spot + 1]) % shape[1], np.concatenate([owner, owner])
    return scipy.sparse.csr_array((entries, where), shape=shape[::-1])


def _spectrum(
    rows: Rows,
    *,
    flip: BoolArray,
    place: FloatArray,
    t: FloatArray,
    held: BoolArray,
    rare: BoolArray,
    terms: int,
    roots: ComplexArray,
) -> ComplexArray:
    """The characteristic function at each node where it is held (nodes x frequencies); `rare` rows by so many terms."""
    tiny = np.abs(place) <= _TINY
    rare = rare & ~tiny
    sides = [(flip == turned, 1.0 - rows.p if turned else rows.p) for turned in (False, True)]
    phi: ComplexArray = np.where(held, 1.0 + 0.0j, 0.0)
    for kind, series, number in ((tiny, _tiny_series, _TERMS), (rare, _rare_series, terms)):
        for side, chances in sides:
            if np.any(kind & side):
                log = series(rows.some(kind & side)._replace(p=chances), place[kind & side], t, number)
                phi[held] *= np.exp(log[held])
    for nodes, turns in blocks(held):
        own, moved = phi[np.ix_(nodes, turns)], partial(_moved, turns=turns, roots=roots)
        for side, chances in sides:
            single = np.flatnonzero(~tiny & ~rare & side)
            multiply_in(own, chances[nodes], rows.column, rows.counts, place, single, moved)
        phi[np.ix_(nodes, turns)] = own
    return phi


def _moved(place: FloatArray, turns: IntArray, roots: ComplexArray) -> ComplexArray:
    return _shared(place, turns, roots) - 1.0


def _shared(place: FloatArray, turns: IntArray, roots: ComplexArray) -> ComplexArray:
    """The characteristic functions of points between two places, the mass shared by both, at some of the roots of 1."""
    whole = np.floor(place)
    part = (place - whole)[..., None]
    turned = np.multiply.outer(whole.astype(np.int64) % roots.size, turns) % roots.size
    result: ComplexArray = roots[turned] * ((1.0 - part) + part * roots[turns])
    return result


def _tiny_series(rows: Rows, place: FloatArray, t: FloatArray, terms: int) -> ComplexArray:
    """The sum of log(1 + p (E - 1)) over rows that leave their place by a small part f of a step: E - 1 = f (z - 1)."""
    turn = np.exp(np.sign(place[0]) * 1j * t) - 1.0
    log: ComplexArray = np.zeros((rows.p.shape[0], turn.size), dtype=np.complex128)
    for j in range(1, terms + 1):
        moved = rows.p**j @ rows.per_column(rows.counts * np.abs(place) ** j)
        log += np.multiply.outer((-1.0) ** (j + 1) / j * moved, turn**j)
    return log


def _rare_series(rows: Rows, place: FloatArray, t: FloatArray, terms: int) -> ComplexArray:
    """The sum of log(1 + p (E - 1)) over rows of small chance p, where E^l is that of the l-fold weight."""
    columns, where = np.unique(rows.column, return_inverse=True)
    p = rows.p[:, columns]
    length = round(2.0 * np.pi / float(t[1]))
    measure = np.zeros((length, p.shape[0]))
    for multiple in range(terms + 1):
        # The part of each power (E - 1)^j that is E^multiple.
        factor = np.zeros_like(p)
        for j in range(max(1, multiple), terms + 1):
            factor += (-1.0) ** (1 - multiple) / j * math.comb(j, multiple) * p**j
        measure += _on_circle(where, multiple * place, rows.counts, (columns.size, length)) @ factor.T
    result: ComplexArray = np.conj(scipy.fft.rfft(measure, axis=0)).T
    return result


def inverted(spectrum: ComplexArray, length: int) -> FloatArray:
    full: ComplexArray = np.zeros((spectrum.shape[0], length // 2 + 1), dtype=np.complex128)
    full[:, : spectrum.shape[1]] = np.conj(spectrum)
    return np.maximum(scipy.fft.irfft(full, n=length, axis=1), 0.0)
