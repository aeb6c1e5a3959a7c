"""The difference of a metric between two models, as one function of the labels that they share.

Import rule: functionals of two models in, a functional of their difference out; no metric is known by name.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any, NamedTuple, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.functional import (
    CountFunctional,
    Extremes,
    Functional,
    LinearFunctional,
    RankFunctional,
    ScenarioFunctional,
    Split,
)

A = TypeVar("A", FloatArray, IntArray)

# Values of two metrics that differ by this part of their size are the same but for rounding: of sums of weights, which
# each model adds up in an order of its own.
_SAME = 1e-12
# The extremes of a difference are searched for over so many combinations of counts at most; beyond, those of its two
# parts enclose it.
_SEARCHED = 1 << 16


class Bound(NamedTuple):
    """A metric bound to the rows as one model orders them, and the place of its missing cells in the shared order."""

    functional: Functional
    place: IntArray

    def shared(self, values: A) -> A:
        """Values of the functional's missing cells, in the shared order."""
        result = np.empty_like(values)
        result[self.place] = values
        return result

    def values(self, positives: IntArray) -> FloatArray:
        """The metric of labelings in the shared order; a 0/0 counts as it is to."""
        value = self.functional.values(np.take(positives, self.place, axis=1))
        return np.where(np.isnan(value), self.functional.fill, value)


class Difference(NamedTuple):
    """A difference as a functional, and which of the shared missing cells are its own, in its order."""

    functional: Functional
    cells: IntArray
    # The same as a weighted sum of labels, where it is one.
    linear: LinearFunctional | None = None
    # Whether every labeling takes a call of a function that nothing is known of, as those of users do.
    called: bool = False


def difference(b: Bound, a: Bound) -> Difference:
    """What the first has more than the second: `b - a`."""
    found = _by_values(b, a) if type(a.functional) is not type(b.functional) else _difference(b.functional, b, a)
    blur = _SAME * max(b.functional.size, a.functional.size)
    linear = None if found.linear is None else replace(found.linear, last_digits=blur)
    return found._replace(functional=replace(found.functional, last_digits=blur), linear=linear)


@singledispatch
def _difference(kind: Functional, b: Bound, a: Bound) -> Difference:
    return _by_values(b, a)


def _by_values(b: Bound, a: Bound) -> Difference:
    """Of two metrics that are known by their values alone."""
    missing = a.shared(a.functional.missing)
    call = partial(_difference_of_values, b, a)
    functional = ScenarioFunctional(missing=missing, fill=np.nan, range=_range(b, a), call=call)
    called = any(type(one.functional) is ScenarioFunctional for one in (b, a))
    return Difference(functional, np.arange(missing.size), called=called)


def _difference_of_values(b: Bound, a: Bound, positives: IntArray) -> FloatArray:
    result: FloatArray = b.values(positives) - a.values(positives)
    return result


def _range(b: Bound, a: Bound) -> tuple[float, float]:
    (low_b, high_b), (low_a, high_a) = b.functional.range, a.functional.range
    return low_b - high_a, high_b - low_a


@_difference.register
def _(kind: LinearFunctional, b: Bound, a: Bound) -> Difference:
    assert isinstance(b.functional, LinearFunctional)
    assert isinstance(a.functional, LinearFunctional)
    weight = _apart(b.shared(b.functional.weight), a.shared(a.functional.weight))
    return _linear(a.shared(a.functional.missing), weight, b.functional.constant - a.functional.constant, _range(b, a))


def _apart(one: FloatArray, other: FloatArray) -> FloatArray:
    """The first less the second; zero where that leaves only rounding, or what cancels would count as a little."""
    result = one - other
    return np.where(np.abs(result) <= _SAME * np.maximum(np.abs(one), np.abs(other)), 0.0, result)


def _linear(missing: IntArray, weight: FloatArray, constant: float, limits: tuple[float, float]) -> Difference:
    """A weighted sum of labels; rows that both models treat alike take no part in it."""
    kept = np.flatnonzero(weight)
    functional = LinearFunctional(
        missing=missing[kept], fill=np.nan, range=limits, weight=weight[kept], constant=constant
    )
    return Difference(functional, kept)


@_difference.register
def _(kind: RankFunctional, b: Bound, a: Bound) -> Difference:
    f, g = b.functional, a.functional
    assert isinstance(f, RankFunctional)
    assert isinstance(g, RankFunctional)
    if f.data.full_ties or g.data.full_ties or f.scale != g.scale or f.shift != g.shift:
        return _by_values(b, a)
    # ROC-AUC - 1/2 is a weighted sum of the labels over P (W - P), and so is a difference of two: it is the ROC-AUC of
    # ranks that differ as those of the models do. Half of that keeps it inside [0, 1].
    total, weight = f.data.total, a.shared(g.data.weight)
    apart = b.shared(f.data.rho) - a.shared(g.data.rho)
    order = np.argsort(apart, kind="stable")
    missing, rho = a.shared(g.missing)[order], 0.5 * (total + apart[order])
    known = 0.5 * (total * f.data.known_p + f.data.known_r - g.data.known_r)
    tied = tied_groups(rho)
    data = f.data._replace(
        counts=missing.astype(np.float64),
        weight=weight[order],
        rho=rho,
        group=tied,
        known_r=known,
        group_total=np.bincount(tied, missing * weight[order]).astype(np.float64),
        group_known=np.zeros(int(tied.max(initial=-1)) + 1),
    )
    scale = 2.0 * f.scale
    functional = RankFunctional(
        missing=missing, fill=np.nan, range=_range(b, a), data=data, scale=scale, shift=-0.5 * scale
    )
    return Difference(functional, order)


def tied_groups(rho: FloatArray) -> IntArray:
    """Numbers from 0 on for ranks in rising order, the same for those that are equal."""
    return np.cumsum(np.diff(rho, prepend=rho[:1]) > 0.0, dtype=np.int64)


@_difference.register
def _(kind: CountFunctional, b: Bound, a: Bound) -> Difference:
    f, g = b.functional, a.functional
    assert isinstance(f, CountFunctional)
    assert isinstance(g, CountFunctional)
    missing = a.shared(g.missing)
    weight = None if g.split.weight is None else a.shared(g.split.weight)
    # Rows fall into groups by what both models decide.
    own_b, own_a = b.shared(group_of(f)), a.shared(group_of(g))
    pairs = [(i, j) for i in range(len(f.split.groups)) for j in range(len(g.split.groups))]
    slopes, constant = _as_sum(f, g)
    direction = [
        _direction(f.direction[i], g.direction[j]) if slopes is None else int(np.sign(slopes[i, j])) for i, j in pairs
    ]
    rows = [np.flatnonzero((own_b == i) & (own_a == j)) for i, j in pairs]
    # Groups that move neither metric, or are empty, take no part; with decisions that are the same none does.
    same = np.array_equal(own_b, own_a) and _are_one(f, g)
    used = [k for k, own in enumerate(rows) if own.size and direction[k] != 0 and not same]
    cells = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(rows[k] for k in used)]))
    groups = tuple(np.searchsorted(cells, rows[k]) for k in used)
    functional = CountFunctional(
        missing=missing[cells],
        fill=np.nan,
        range=_range(b, a),
        split=Split(groups, None if weight is None else weight[cells]),
        offset=(0.0,) * len(used),
        formula=partial(_difference_of_counts, f, g, [pairs[k] for k in used]),
        direction=tuple(direction[k] for k in used),
    )
    linear = None
    if slopes is not None:
        effect = np.ones(cells.size) if weight is None else weight[cells]
        effect = effect * slopes[own_b[cells], own_a[cells]]
        linear = LinearFunctional(
            missing=functional.missing, fill=np.nan, range=functional.range, weight=effect, constant=constant
        )
    if functional.split.weight is not None or _places(functional) > _SEARCHED:
        ends = Extremes(f.extremes.low - g.extremes.high, f.extremes.high - g.extremes.low, sharp=False)
        functional = replace(functional, bounds=ends if linear is None else linear.extremes)
    return Difference(functional, cells, linear)


def _places(functional: CountFunctional) -> float:
    """How many combinations of counts would have to be searched for the extremes."""
    sizes = (total if way is None else 3.0 for total, way in zip(functional.totals, functional.direction, strict=True))
    return float(np.prod([size + 1.0 for size in sizes]))


def group_of(functional: CountFunctional) -> IntArray:
    """The number of the group that each missing cell of a functional is in."""
    group = np.zeros(functional.missing.size, dtype=np.int64)
    for i, rows in enumerate(functional.split.groups):
        group[rows] = i
    return group


def _are_one(f: CountFunctional, g: CountFunctional) -> bool:
    """Whether two formulas of the same groups agree wherever they are tried: they come of one metric."""
    share = np.array([0.0, 0.191, 0.437, 0.809, 1.0])
    places = [total * np.roll(share, i) for i, total in enumerate(f.totals)]
    close = partial(np.allclose, rtol=_SAME, atol=0.0, equal_nan=True)
    return bool(close(f.totals, g.totals) and close(f.at(places), g.at(places)))


def _direction(up: int | None, down: int | None) -> int | None:
    """How a difference moves with the positives of a group that moves its parts so."""
    if up is None or down is None:
        return None
    if up * down > 0:
        return None
    return up or -down


def _difference_of_counts(
    f: CountFunctional, g: CountFunctional, pairs: Sequence[tuple[int, int]], *sums: Any
) -> FloatArray:
    values = []
    for side, functional in enumerate((f, g)):
        own: list[Any] = [np.float64(0.0)] * len(functional.split.groups)
        for pair, positives in zip(pairs, sums, strict=True):
            own[pair[side]] = own[pair[side]] + positives
        value = functional.at(own)
        values.append(np.where(np.isnan(value), functional.fill, value))
    result: FloatArray = values[0] - values[1]
    return result


def _as_sum(f: CountFunctional, g: CountFunctional) -> tuple[FloatArray | None, float]:
    """How far a positive of each pair of groups moves `f - g`, and what it is without any; None where that varies.

    It does not where the denominators of both do not depend on labels.
    """
    slopes, constant = [], []
    for part in (f, g):
        if part.ratio is None or np.any(part.ratio.denominator[1:]) or not part.ratio.denominator[0] > 0.0:
            return None, 0.0
        numerator = part.ratio.numerator / part.ratio.denominator[0]
        constant.append(float(numerator[0] + numerator[1:] @ np.array(part.offset)))
        slopes.append(numerator[1:])
    return _apart(slopes[0][:, None], slopes[1][None, :]), constant[0] - constant[1]
