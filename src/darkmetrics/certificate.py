"""Certificate: a proven bound on the error of an approximate law, with what it rests on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.cdf_bounds import CdfBounds, largest_gap
from darkmetrics._text import prints_plainly

# P(metric <= t), or P(metric < t) when `left`.
Cdf: TypeAlias = Callable[..., FloatArray]
# What is known of the true P(metric <= t).
Enclosure: TypeAlias = Callable[[FloatArray], CdfBounds]

# The end of an interval is looked for at so many places at once, and between two of them again.
_PLACES, _ROUNDS = 31, 4
# Points of the grid of a mixture.
_GRID = 128
_EXACT = "the law itself, without approximation"


class Together(ABC):
    """What is known at one node of a law at any places, and cheaper to find for many nodes at once than one by one."""

    @abstractmethod
    def __call__(self, t: FloatArray) -> Any:
        """What is known at these places."""

    @classmethod
    @abstractmethod
    def weighted(cls, parts: Sequence[Self], weight: FloatArray, t: FloatArray) -> FloatArray:
        """The weighted sum over the nodes of what is known there."""


def _weighted(parts: Sequence[Callable[[FloatArray], Any]], weight: FloatArray, t: FloatArray) -> Any:
    """The weighted sum of what these parts say about some places."""
    alike = [part for part in parts if isinstance(part, Together) and type(part) is type(parts[0])]
    if len(alike) == len(parts):
        return type(alike[0]).weighted(alike, weight, t)
    return sum(share * np.asarray(part(t)) for share, part in zip(weight.tolist(), parts, strict=True))


class Assumption(NamedTuple):
    """One condition of a theorem: `holds` is None when the data cannot tell."""

    statement: str
    holds: bool | None


@prints_plainly
@dataclass(frozen=True, eq=False)
class Certificate:
    """How far can this law be from the true one? A proven bound for the data at hand, not an estimate.

    The true law is that of the metric when the missing labels are independent with the probabilities that the label
    model gave; whether these are right is another question, which no certificate answers. Labelings for which the
    metric is 0/0 are left out or count with the value that `zero_division` gives them: the bound covers both.

    Attributes
    ----------
    ks_bound : float
        No probability P(metric <= t) of the law is further than this from the true one, whatever t.
    vacuous : bool
        Whether that says nothing: the bound is 1.
    theorem : str
        What proves it (see the explanation of certificates).
    assumptions : tuple of Assumption
        The theorem's conditions, each with whether it holds here; None means that data cannot tell.
    confidence : float
        1 for a bound that always holds; less for one that random draws may break, with chance 1 - confidence.

    The other fields are what the bound is computed from; laws make their certificates themselves.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, 1, 0] + [None] * 400, [0.9, 0.2, 0.6, 0.4] + [0.3, 0.7] * 200
    >>> law = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(y_score[4:]), method="gaussian")["accuracy"]
    >>> law.certificate
    <Certificate: within 0.03544 of the true law, by Berry-Esseen>
    >>> round(law.certificate.bound_at(0.5), 9)  # there the true law has next to no mass
    0.0
    """

    theorem: str
    assumptions: tuple[Assumption, ...]
    approximation: Cdf = field(repr=False)
    enclosure: Enclosure = field(repr=False)
    # A rising grid over the law, where the bound and the ends of intervals are looked for.
    grid: FloatArray = field(repr=False)
    confidence: float = 1.0
    # The bound, if it is known without a search over t.
    known: float | None = field(default=None, repr=False)
    # Whether bounds and law are steps at the points of the grid, between which there is nothing to look for.
    stepwise: bool = field(default=False, repr=False)
    # Bounds on the intervals between points of a grid, if a theorem gives them.
    between: Callable[[FloatArray], FloatArray] | None = field(default=None, repr=False)
    # Share of the bound that a finer search might gain.
    tolerance: float = field(default=0.0, repr=False)

    @cached_property
    def ks_bound(self) -> float:
        """No probability P(metric <= t) of the law is further than this from the true one, whatever t."""
        if self.known is not None:
            return min(1.0, self.known)
        between = np.ones(self.grid.size - 1) if self.between is None else self.between(self.grid)
        return largest_gap(self.grid, self.approximation, self.enclosure, between, self.tolerance)

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it is 1, as far as two laws can be apart at all."""
        return self.ks_bound >= 1.0

    def cdf_bounds(self, t: Any) -> tuple[Any, Any]:
        """Between which two numbers is the true P(metric <= t)?"""
        array = np.asarray(t, dtype=np.float64)
        lower, upper, _ = (bound.reshape(array.shape) for bound in self.enclosure(array.ravel()))
        return (float(lower), float(upper)) if array.ndim == 0 else (lower, upper)

    def bound_at(self, t: Any) -> Any:
        """How far can the law's P(metric <= t) be from the true one at this t? Never more than `ks_bound`."""
        array = np.asarray(t, dtype=np.float64)
        lower, upper, _ = self.enclosure(array.ravel())
        level = self.approximation(array.ravel(), left=False)
        gap = np.minimum(np.maximum(upper - level, level - lower), self.ks_bound).reshape(array.shape)
        return float(gap) if array.ndim == 0 else gap

    def inside(self, low: float, high: float, confidence_level: float) -> tuple[float, float]:
        """An interval inside these bounds that holds at least this much of the true law's mass."""
        tail = 0.5 * (1.0 - confidence_level)
        points = self.grid[(self.grid > low) & (self.grid < high)]
        # Both ends are looked for at once, each from the bound where nothing is cut off towards the other bound: rows.
        start, end = np.array([[low], [high]]), np.array([[high], [low]])
        found = self.enclosure(points)
        cut_off = np.stack([found.below, 1.0 - found.lower[::-1]])
        good, bad = _last_that_keeps(np.hstack([start, np.stack([points, points[::-1]]), end]), cut_off <= tail)
        refined = np.isfinite(good) & np.isfinite(bad) & (not self.stepwise)
        near, far = np.where(refined, good, 0.0), np.where(refined, bad, 0.0)
        for _ in range(_ROUNDS if refined.any() else 0):
            places = near + (far - near) * (np.arange(1, _PLACES + 1) / (_PLACES + 1))
            found = self.enclosure(places.ravel())
            cut_off = np.stack([found.below[:_PLACES], 1.0 - found.lower[_PLACES:]])
            near, far = _last_that_keeps(np.hstack([near, places, far]), cut_off <= tail)
        # An end that rounding alone tells from the bound is the bound.
        rounding = max(1e-9 * abs(high - low), 1e-12 * max(abs(low), abs(high)))
        if np.isfinite([low, high]).all():
            near = np.where(np.abs(near - start) <= rounding, start, near)
        first, last = np.where(refined, near, good)[:, 0].tolist()
        return first, last

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "ks_bound": self.ks_bound,
            "theorem": self.theorem,
            "confidence": self.confidence,
            "vacuous": self.vacuous,
            "assumptions": [assumption._asdict() for assumption in self.assumptions],
        }

    def __copy__(self) -> Self:
        return self  # as a tuple does: a certificate never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Stored it is the bound alone, the same for every t: what it was computed from may hold any formula."""
        distribution = getattr(self.approximation, "__self__", None)
        if self.theorem == _EXACT:
            return exact_certificate, (self.approximation,)
        if distribution is None:  # made by hand, of functions that may be stored or not
            return Certificate, tuple(getattr(self, field.name) for field in fields(self))
        return kept_certificate, (self.ks_bound, self.theorem, self.assumptions, self.confidence, distribution)

    def __repr__(self) -> str:
        if self.vacuous:
            return f"<Certificate: says nothing ({self.theorem})>"
        sure = "" if self.confidence == 1.0 else f" with confidence {self.confidence:g}"
        return f"<Certificate: within {self.ks_bound:.4g} of the true law{sure}, by {self.theorem}>"

    def __str__(self) -> str:
        words = {True: "holds", False: "does not hold", None: "cannot be checked"}
        lines = [f"  {words[assumption.holds]}: {assumption.statement}" for assumption in self.assumptions]
        return "\n".join([repr(self)[1:-1], *lines])


def _last_that_keeps(path: FloatArray, keeps: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The last place of each row that keeps what is to be kept, and the next; the first does, the last does not."""
    place = (keeps * np.arange(1, keeps.shape[1] + 1)).max(axis=1, initial=0)[:, None]
    return np.take_along_axis(path, place, axis=1), np.take_along_axis(path, place + 1, axis=1)


def exact_certificate(cdf: Cdf) -> Certificate:
    """The certificate of a law that is no approximation."""

    def enclosure(t: FloatArray) -> CdfBounds:
        level = cdf(t, left=False)
        return CdfBounds(level, level, cdf(t, left=True))

    return Certificate(_EXACT, (), cdf, enclosure, np.empty(0), known=0.0)


def kept_certificate(
    ks_bound: float, theorem: str, assumptions: tuple[Assumption, ...], confidence: float, distribution: Any
) -> Certificate:
    """What is left of a certificate when its law is stored or sent elsewhere: the bound, the same for every t."""

    def enclosure(t: FloatArray) -> CdfBounds:
        level, before = distribution._cdf(t, left=False), distribution._cdf(t, left=True)
        lower, upper, below = level - ks_bound, level + ks_bound, before + ks_bound
        return CdfBounds(np.maximum(lower, 0.0), np.minimum(upper, 1.0), np.minimum(below, 1.0))

    grid = np.unique(distribution._ppf(np.arange(1, _GRID) / _GRID))
    return Certificate(theorem, assumptions, distribution._cdf, enclosure, grid, confidence, known=ks_bound)


def mixture_certificate(
    parts: Sequence[Certificate], weight: FloatArray, moved: float, cdf: Cdf, grid: FloatArray | None = None
) -> Certificate:
    """The weighted certificate of a mixture; `moved` is the part of the weight that 0/0 at the nodes shifts."""

    def enclosure(t: FloatArray) -> CdfBounds:
        total = _weighted([part.enclosure for part in parts], weight, t)
        lower, upper, below = np.clip(total + np.array([[-moved], [moved], [moved]]), 0.0, 1.0)
        return CdfBounds(lower, upper, below)

    inexact = [part for part in parts if part.known != 0.0]
    names = list(dict.fromkeys(part.theorem for part in inexact))
    if grid is None:
        every = np.sort(np.concatenate([np.empty(0), *(part.grid for part in inexact)]))
        grid = every[:: max(1, every.size // _GRID)]

    known = [1.0 if part.known is None else part.known for part in parts]
    open_ = [i for i, part in enumerate(parts) if part.known is None and part.between is not None]
    searched = [gaps for part in parts if part.known is None and (gaps := part.between) is not None]
    shares, settled_gaps = weight[open_], float(weight @ known) - float(weight[open_].sum())

    def between(points: FloatArray) -> FloatArray:
        total: FloatArray = np.full(points.size - 1, moved + settled_gaps)
        return total + _weighted(searched, shares, points) if searched else total

    # Bounds that need no search, as of laws with jumps, are averaged; others are better taken of the mixture at once.
    settled = all(part.known is not None for part in parts) or grid.size < 2
    return Certificate(
        theorem="none" if names == ["none"] else f"{' and '.join(names)}, weighted over {len(parts)} nodes",
        assumptions=tuple(dict.fromkeys(assumption for part in inexact for assumption in part.assumptions)),
        approximation=cdf,
        enclosure=enclosure,
        grid=grid,
        confidence=min((part.confidence for part in parts), default=1.0),
        known=float(weight @ [part.ks_bound for part in parts]) + moved if settled else None,
        between=between,
        tolerance=max(0.05, *(part.tolerance for part in parts)),  # every point costs as much as there are nodes
    )
