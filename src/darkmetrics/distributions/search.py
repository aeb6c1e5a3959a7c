"""Quantiles of laws whose atoms are too many to list: a bracket shrinks until few are left, and these are listed."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_density, normal_mixture_quantile
from darkmetrics.distributions.base import NodeMoments, slack

# Among so many atoms a quantile is picked: they are listed in less time than a few crossings take.
LISTABLE = 1 << 15


class Atoms(Protocol):
    """A law that keeps its atoms in rows, each in order of their values; a crossing counts those that come before t."""

    def _crossing(self, t: float, between: tuple[IntArray, IntArray, float] | None = None) -> IntArray:
        """Per row, how many places come before t, which may be known to lie between two other crossings."""

    def _mass_up_to(self, crossing: IntArray) -> float:
        """P(metric <= t) from the crossing of t."""

    def _listed(self, row: IntArray, place: IntArray) -> tuple[FloatArray, FloatArray]:
        """Values and masses of some atoms."""

    @property
    def _listable(self) -> int:
        """How many atoms are listed, and not halved any more: `LISTABLE`, unless each is a sum of many terms."""


class Search:
    """A bracket [a, b] with cdf(a) < q <= cdf(b) that shrinks, keeping the crossings of both ends."""

    def __init__(self, laws: Sequence[Atoms], weight: Sequence[float], ends: tuple[float, float], q: float) -> None:
        self.laws, self.weight, self.q = laws, weight, q
        low, high = ends
        self.a, self.b = low - 1e-9 * max(abs(low), abs(high)), high
        self._few = min(law._listable for law in laws)
        self._at_a, self._at_b = ([law._crossing(end) for law in laws] for end in (self.a, self.b))
        self._level = 0.0
        self._fresh = True

    def quantile(self, moments: NodeMoments, noise: float) -> float:
        """The smallest atom at which the cdf reaches q, given moments of the law and rounding errors of its values."""
        # The law is nearly a mixture of Gaussians wherever it is not tabulated: Newton steps from the quantile of that
        # leave only a small fraction of a standard deviation to bisect. They are only tried; the bracket is proven.
        weight, mean, sd = moments.weight, moments.mean, np.sqrt(moments.var)
        whole = float(np.sqrt(moments.total()[1]))
        guess = normal_mixture_quantile(min(max(self.q, 1e-15), 1.0 - 1e-15), weight, mean, sd)
        step = whole
        for _ in range(3):
            density = normal_mixture_density(guess, weight, mean, sd)
            step = float(np.clip((self.q - self.try_at(guess)) / max(density, 1e-300), -whole, whole))
            guess += step
            if self._left() <= self._few:
                break
        reach = max(1e-7 * float(sd.max()), 0.1 * abs(step))
        for _ in range(8):
            if self._left() <= self._few or (self.a >= guess - reach and self.b <= guess + reach):
                break
            self.try_at(guess - reach)
            self.try_at(guess + reach)
            reach *= 16.0
        while self._left() > self._few:
            if self._halves():
                continue
            # What no cut takes apart has one value, the end of the bracket, however many combinations lead to it.
            below = float(np.nextafter(self.b - slack(np.array(self.b), noise), -np.inf))
            if below <= self.a or self.try_at(below) < self.q:
                return self.b
        return self._first_atom(noise)

    def _spans(self) -> list[IntArray]:
        """Per law and row, how many places may lie in the bracket."""
        return [np.abs(b - a) for a, b in zip(self._at_a, self._at_b, strict=True)]

    def _left(self) -> int:
        return sum(int(span.sum()) for span in self._spans())

    def _halves(self) -> bool:
        """Makes the bracket smaller if it can: cut in the middle, or, if that takes few values away, at one of them."""
        before = self._left()
        self.try_at(0.5 * (self.a + self.b))
        if self._left() > 0.75 * before:
            spans = self._spans()
            i = int(np.argmax([span.max() for span in spans]))
            row = np.array([np.argmax(spans[i])])
            value, _ = self.laws[i]._listed(row, (self._at_a[i][row] + self._at_b[i][row]) // 2)
            self.try_at(float(value[0]))
        return self._left() < before

    def try_at(self, t: float) -> float:
        """The cdf at t, which becomes an end of the bracket if it lies inside."""
        inside = self.a < t < self.b
        share = (t - self.a) / (self.b - self.a) if inside and not self._fresh else 0.0
        crossings = [
            law._crossing(t, (a, b, share) if inside and not self._fresh else None)
            for law, a, b in zip(self.laws, self._at_a, self._at_b, strict=True)
        ]
        parts = (law._mass_up_to(crossing) for law, crossing in zip(self.laws, crossings, strict=True))
        level = sum(weight * part for weight, part in zip(self.weight, parts, strict=True))
        if inside:
            self._fresh = False
            if level < self.q:
                self.a, self._at_a, self._level = t, crossings, level
            else:
                self.b, self._at_b = t, crossings
        return level

    def _first_atom(self, noise: float) -> float:
        """The smallest atom in the bracket at which the cdf reaches q; few are left by now."""
        values, masses = [], []
        for law, weight, span, a, b in zip(self.laws, self.weight, self._spans(), self._at_a, self._at_b, strict=True):
            row = np.repeat(np.arange(span.size), span)
            place = np.arange(row.size) - np.repeat(np.cumsum(span) - span, span) + np.minimum(a, b)[row]
            value, mass = law._listed(row, place)
            values.append(value)
            masses.append(weight * mass)
        atoms = np.concatenate(values)
        if atoms.size == 0:
            return self.b
        order = np.argsort(atoms)
        atoms = atoms[order]
        level = self._level + np.cumsum(np.concatenate(masses)[order])
        # Values that differ by rounding alone are one atom, and the largest of them carries all its mass.
        level = level[np.searchsorted(atoms, atoms + slack(atoms, noise), side="right") - 1]
        return float(atoms[min(int(np.searchsorted(level, self.q)), atoms.size - 1)])
