"""Functions of several metrics of the same rows: differences, averages, or the vector of all values."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions.functional import (
    SAME,
    Extremes,
    Functional,
    Reordered,
    SumFunctional,
    merge_sums,
)
from darkmetrics.distributions.functionals import LinearFunctional
from darkmetrics.distributions.pairs import PairTerm
from darkmetrics.distributions.rank_functionals import RankFunctional


@dataclass(frozen=True, eq=False)
class Combined(Functional):
    """A function of several metrics of the same rows: a difference, an average, or their vector (`combine` None).

    Each metric's `fill` replaces its 0/0 before the values are combined.
    """

    terms: tuple[Functional, ...] = field(kw_only=True)
    combine: Callable[..., Any] | None = field(default=None, kw_only=True)
    smooth: bool = field(default=True, kw_only=True)

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, list[IntArray]] | None:
        """Distinct columns and constants of all terms, and the indices that each term uses."""
        if any(term.columns is None for term in self.terms):
            return None
        columns: list[FloatArray] = []
        indices: list[list[int]] = []
        index_of_column: dict[bytes, int] = {}
        for term in self.terms:
            term_columns: list[int] = []
            with_pairs = {pair.sum_index for pair in term.pairs}
            assert term.columns is not None
            for i, column in enumerate(np.vstack([term.constant, term.columns]).T):
                key = column.tobytes()
                if key not in index_of_column or i in with_pairs:
                    columns.append(column)
                if i not in with_pairs:
                    index_of_column.setdefault(key, len(columns) - 1)
                term_columns.append(len(columns) - 1 if i in with_pairs else index_of_column[key])
            indices.append(term_columns)
        stacked = np.stack(columns, axis=1) if columns else np.zeros((self.missing.size + 1, 0))
        return stacked[1:], stacked[0], [np.array(term_columns, dtype=np.int64) for term_columns in indices]

    @property
    def columns(self) -> FloatArray | None:
        return None if self._stacked is None else self._stacked[0]

    @property
    def constant(self) -> FloatArray:
        assert self._stacked is not None
        return self._stacked[1]

    @cached_property
    def pairs(self) -> tuple[PairTerm, ...]:
        if self._stacked is None:
            return ()
        with_columns = zip(self.terms, self._stacked[2], strict=True)
        return tuple(
            replace(pair, sum_index=int(term_columns[pair.sum_index]))
            for term, term_columns in with_columns
            for pair in term.pairs
        )

    @property
    def is_smooth(self) -> bool:
        return self.smooth and self.columns is not None and all(term.is_smooth for term in self.terms)

    @property
    def undefined_at_corners(self) -> bool:
        return False

    def _combine_values(self, values: Iterable[FloatArray]) -> FloatArray:
        filled: Any = (term.filled(value) for term, value in zip(self.terms, values, strict=True))
        if self.combine is None:  # no second copy of the values of many metrics
            first = next(filled)
            result = np.empty((len(self.terms), *first.shape))
            result[0] = first
            for i, value in enumerate(filled, start=1):
                result[i] = value
            return result
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.asarray(self.combine(*filled), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)

    def at(self, sums: FloatArray) -> FloatArray:
        assert self._stacked is not None
        return self._combine_values(
            term.at(sums[term_columns]) for term, term_columns in zip(self.terms, self._stacked[2], strict=True)
        )

    def values(self, positives: Any) -> FloatArray:
        if self.columns is None:
            return self._combine_values(term.values(positives) for term in self.terms)
        return self.at(self.sums(positives))

    def can_be_undefined(self) -> bool:
        return any(term.given_defined and term.can_be_undefined() for term in self.terms)

    def _extremes(self) -> Extremes:
        return self._extremes_or_range()

    def merge(self, column: IntArray) -> tuple[Functional, IntArray]:
        columns = self.columns
        if columns is None or self.pairs:
            return self, column
        return merge_sums(self, columns, column)


def combine_terms(
    terms: Sequence[Functional],
    combine: Callable[..., Any] | None,
    *,
    smooth: bool = True,
    bounds: Extremes | None = None,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> Combined:
    """Return a function of several metrics of the same cells; the vector of all metrics if `combine` is None."""
    size = max((term.size for term in terms), default=1.0)
    return Combined(
        missing=terms[0].missing,
        fill=np.nan,
        range=limits,
        bounds=bounds,
        last_digits=SAME * size,
        terms=tuple(terms),
        combine=combine,
        smooth=smooth,
    )


def subtract_terms(b: Functional, a: Functional) -> Functional:
    """Return `b - a` for two metrics of the same cells."""
    difference = subtract(b, a)
    if difference is None:
        low, high, _ = subtract_extremes(b.extremes, a.extremes)
        difference = combine_terms([b, a], np.subtract, limits=(low, high))
    return difference


def subtract_extremes(b: Extremes, a: Extremes) -> Extremes:
    """Return an enclosure of the difference of two metrics of the same rows."""
    return Extremes(float(b.low - a.high), float(b.high - a.low), sharp=False)


def subtract(b: Functional, a: Functional) -> Functional | None:
    """Return `b - a` as a function of fewer sums than the two metrics have; None if there is no such function.

    Both metrics depend on the same missing cells, in the same order. The difference of linear metrics is linear, and
    cells with equal increments do not move it. Two ROC-AUC divide by the same number of pairs.
    """
    noise, limits = SAME * max(b.size, a.size), (b.extremes.low - a.extremes.high, b.extremes.high - a.extremes.low)
    facts: dict[str, Any] = {"missing": a.missing, "fill": np.nan, "range": limits, "last_digits": noise}
    if b.linear is not None and a.linear is not None:
        weight, total = subtract_rounded(b.linear[0], a.linear[0]), b.linear[1] - a.linear[1]
        return LinearFunctional(**facts, weight=weight, total=total)
    f, g = (term.base if isinstance(term, Reordered) else term for term in (b, a))
    if not (isinstance(f, RankFunctional) and isinstance(g, RankFunctional)) or f.pairs or g.pairs:
        return None
    upper, lower = b.columns, a.columns
    assert upper is not None
    assert lower is not None
    if (f.scale, f.shift) != (g.scale, g.shift) or not np.array_equal(upper[:, 0], lower[:, 0]):
        return None
    columns = np.stack([lower[:, 0], subtract_rounded(upper[:, 1], lower[:, 1])], axis=1)
    constant = np.array([g.constant[0], subtract_rounded(f.constant[1:], g.constant[1:])[0]])
    return SumFunctional(
        **facts, coefficients=(columns, constant, ()), evaluate=partial(_subtract_areas, g, b.fill - a.fill)
    )


def _subtract_areas(g: RankFunctional, fill: float, sums: FloatArray) -> FloatArray:
    """Return the difference of two ROC-AUC at the sums P and R_b - R_a; `fill` where a class is absent."""
    p, r = sums
    value = 2.0 * (g.at(np.stack([p, 0.5 * r])) - g.at(np.stack([p, 0.0 * r])))
    return np.where(np.isnan(value), fill, value)


def subtract_rounded(b: FloatArray, a: FloatArray) -> FloatArray:
    """Subtract arrays; 0 replaces differences that are no larger than rounding errors."""
    result = b - a
    return np.where(np.abs(result) <= SAME * np.maximum(np.abs(b), np.abs(a)), 0.0, result)
