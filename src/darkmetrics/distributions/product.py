"""ProductLaw: a formula of independent counts, summed on demand (mathematics, section 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray, Formula, IntArray
from darkmetrics._kernels.sums.quadrature import (
    JointMass,
    NodeAxis,
    Terms,
    cumulated,
    product_moments,
    product_moments_by_node,
)
from darkmetrics.distributions.base import MetricDistribution, NodeMoments, slack
from darkmetrics.distributions.search import LISTABLE, Search

# Rows, and values of the first variable, at which the formula shows about where it crosses a value.
_CHARTED = 129
# Combinations that are listed however many nodes each has a mass at.
_FEW = 512
# Rows of crossings that are looked for together.
_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProductLaw(MetricDistribution):
    """A formula of independent lattice variables that is monotone in the first: nothing is tabulated.

    `P(metric <= t)` is a sum over the other variables of the first one's cdf at the place where the formula crosses t
    (mathematics, section 1); that place is found by bisection on the formula itself, so atoms are never misjudged. It
    does not depend on the probabilities: with several nodes (`weight`; masses are then nodes x values) one search does
    for all of them.
    """

    formula: Formula
    axes: Sequence[FloatArray]
    masses: Sequence[FloatArray]
    rising: bool
    weight: FloatArray | None = None
    # The same masses, mixed over the nodes, for all laws of these variables.
    joint: JointMass | None = field(default=None, repr=False)
    # The same variables at one node, with the Gauss rules that all laws of them share.
    lattices: Sequence[NodeAxis] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.weight is not None and self.by_node is None:
            each = [product_moments(self.formula, self.axes, masses) for masses in zip(*self.masses, strict=True)]
            object.__setattr__(self, "by_node", NodeMoments.of(self.weight, *np.array(each).T))

    @cached_property
    def _grid(self) -> list[FloatArray]:
        """All combinations of the variables after the first: the rows."""
        return [g.ravel() for g in np.meshgrid(*self.axes[1:], indexing="ij")]

    @cached_property
    def _terms(self) -> Terms:
        """What is summed, at several nodes."""
        assert self.weight is not None
        return (self.joint or JointMass(self.masses, self.weight)).terms

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """Mass of every row, and the cdf of the first variable, at one node."""
        mass = np.ones(1)
        for factor in self.masses[1:]:
            mass = np.multiply.outer(mass, factor).ravel()
        return mass, cumulated(self.masses[0])

    @property
    def _joint_mass(self) -> FloatArray | None:
        """Mass up to each value of the first variable, by rows, where that was tabulated for all nodes together."""
        return None if self.joint is None else self.joint.cumulative

    def _crossing(self, t: float, between: tuple[IntArray, IntArray, float] | None = None) -> IntArray:
        """Per row, how many values of the first variable come before the formula passes t.

        `between` holds crossings of a smaller and a larger t, and where between them t lies as a share.
        """
        if between is None:
            least, most = self._ends
            if t < least or t >= most:  # as at most of the nodes of a mixture, each of which is asked alone
                return np.full(self._grid[0].size, self.axes[0].size if (t >= most) == self.rising else 0)
            return self._crossings(np.array([t])).ravel()
        first, second, share = between
        start = np.rint(first + share * (second - first)).astype(np.int64)
        return self._from(t, self._grid, start, np.minimum(first, second), np.maximum(first, second))

    def _crossings(self, t: FloatArray) -> IntArray:
        """The crossing of each t (t x rows)."""
        rows, size, (least, most) = self._grid[0].size, self.axes[0].size, self._ends
        low, high = np.zeros((2, t.size, rows), dtype=np.int64)
        low[(t >= most) if self.rising else (t < least)] = size
        high[(t >= least) if self.rising else (t < most)] = size
        start = self._near(t) if len(self._grid) == 1 else np.full(low.shape, size // 2)
        each = np.repeat(t, rows) if t.size > 1 else float(t[0])
        grid = [np.tile(g, t.size) for g in self._grid]
        return self._from(each, grid, start.ravel(), low.ravel(), high.ravel()).reshape(t.size, -1)

    @cached_property
    def _chart(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Some values of the first variable, and the formula there in some rows, turned so that it rises.

        Then, for every row, which of these comes before it, and how far it is from there to the next.
        """
        rows, places = (
            np.unique(np.linspace(0, size - 1, min(size, _CHARTED)).astype(np.int64))
            for size in (self._grid[0].size, self.axes[0].size)
        )
        values = self.formula(*np.broadcast_arrays(self.axes[0][places], self._grid[0][rows, None]))
        every = np.arange(self._grid[0].size)
        owner = np.clip(np.searchsorted(rows, every, side="right") - 1, 0, max(rows.size - 2, 0))
        beyond = (every - rows[owner]) / np.diff(rows, append=rows[-1] + 1)[owner]
        return places, values if self.rising else -values, owner, beyond

    def _near(self, t: FloatArray) -> IntArray:
        """About where the crossing of each t is, by straight lines on the chart: it is looked for from here."""
        places, values, owner, beyond = self._chart
        t = (t if self.rising else -t)[:, None]
        last = places.size - 1
        left = np.clip(np.sum(values <= t[:, :, None], axis=2) - 1, 0, max(last - 1, 0))
        right, row = np.minimum(left + 1, last), np.arange(values.shape[0])
        rise = values[row, right] - values[row, left]
        share = np.divide(t - values[row, left], rise, out=np.zeros(rise.shape), where=rise > 0.0)
        # A t that is no number has no place of its own.
        reached = places[left] + np.fmin(np.fmax(share, 0.0), 1.0) * (places[right] - places[left])
        between = np.diff(reached, axis=1, append=reached[:, -1:])
        reached = reached[:, owner] + beyond * between[:, owner]
        near: IntArray = reached.astype(np.int64)
        return near

    def _from(
        self, t: float | FloatArray, grid: list[FloatArray], start: IntArray, low: IntArray, high: IntArray
    ) -> IntArray:
        """The crossing within [low, high], tried around `start` first and by bisection when it is not near.

        Of one t, or of one for each row.
        """
        axis, step = self.axes[0], 0
        result, rows, middle = low.copy(), np.flatnonzero(low < high), start
        low, high = low[rows], high[rows]
        middle = np.clip(middle[rows], low, high - 1)
        here, of_rows = [g[rows] for g in grid], np.ndim(t) > 0
        t = np.asarray(t)[rows] if of_rows else t
        while rows.size:
            value = self.formula(axis[middle], *here)
            before = (value <= t) if self.rising else (value > t)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
            result[rows] = low
            left = np.flatnonzero(low < high)
            if left.size < rows.size:
                rows, low, high, before = rows[left], low[left], high[left], before[left]
                here = [g[left] for g in here]
                t = np.asarray(t)[left] if of_rows else t
            if step <= 16:
                middle = np.clip(np.where(before, low + step, high - 1 - step), low, high - 1)
                step = 1 if step == 0 else 4 * step
            else:
                middle = (low + high) // 2
        return result

    def _mass_up_to(self, crossing: IntArray) -> float:
        """P(metric <= t) from the crossing of t."""
        cumulative = self._joint_mass
        if cumulative is not None:
            below = float(cumulative[crossing, np.arange(crossing.size)].sum())
            return below if self.rising else float(cumulative[-1].sum()) - below
        if self.weight is None:
            mass, cdf = self._rows
            level = cdf[crossing]
        else:
            mass, level = self._terms.mass, self._terms.levels(crossing)
        return float(mass @ (level if self.rising else 1.0 - level))

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        margin = slack(t, self.noise)
        # A margin of nothing, as at zero, must not put the atom there on the wrong side.
        shifted = np.nextafter(t - margin, -np.inf) if left else t + margin
        # Some places at a time: of few rows a formula takes longer to be called than to be found.
        size = max(1, _AT_ONCE // self._grid[0].size)
        parts = (self._crossings(shifted[i : i + size]) for i in range(0, t.size, size))
        return np.array([self._mass_up_to(crossing) for crossings in parts for crossing in crossings])

    def _ppf(self, q: FloatArray) -> FloatArray:
        return np.array([self._quantile(float(level)) for level in q])

    def _quantile(self, q: float) -> float:
        low, high = self._ends
        if q <= 0.0 or low == high:
            return low
        nodes = self.by_node or NodeMoments(np.ones(1), np.array([self.mean()]), np.array([self.var()]))
        return Search([self], [1.0], (low, high), q - LEVEL_ROUNDING).quantile(nodes, self.noise)

    @property
    def _listable(self) -> int:
        return max(_FEW, LISTABLE // (1 if self.weight is None or self._joint_mass is not None else self.weight.size))

    def _listed(self, row: IntArray, place: IntArray) -> tuple[FloatArray, FloatArray]:
        """Values and masses of some combinations."""
        values = self.formula(self.axes[0][place], *(g[row] for g in self._grid))
        cumulative = self._joint_mass
        if cumulative is not None:
            return values, cumulative[place + 1, row] - cumulative[place, row]
        each = np.atleast_2d(self.masses[0])[:, place]
        inner = np.unravel_index(row, [axis.size for axis in self.axes[1:]])
        for factor, at in zip(self.masses[1:], inner, strict=True):
            each *= np.atleast_2d(factor)[:, at]
        return values, each[0] if self.weight is None else self.weight @ each

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        generator = np.random.default_rng(rng)
        node: Any = 0
        if self.weight is not None:
            node = np.searchsorted(np.cumsum(self.weight), generator.random(size), side="right")
            node = np.minimum(node, self.weight.size - 1)
        draws = []
        for axis, mass in zip(self.axes, self.masses, strict=True):
            # The cdfs of all nodes on one line, each one unit above the one before.
            line = np.cumsum(np.atleast_2d(mass), axis=1)
            line = line if self.weight is None else line / line[:, -1:]
            line += np.arange(line.shape[0])[:, None]
            place = np.searchsorted(line.ravel(), node + generator.random(size), side="right") - node * axis.size
            draws.append(axis[np.clip(place, 0, axis.size - 1)])
        return self.formula(*draws) if size is not None else float(self.formula(*draws))

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Smallest and largest value on the lattice window."""
        rows = self._grid[0].size
        ends = [self.formula(np.full(rows, self.axes[0][end]), *self._grid) for end in (0, -1)]
        return float(np.min(ends)), float(np.max(ends))

    def _moments(self) -> tuple[float, float]:
        if self.by_node is not None:
            return self.by_node.total()
        if self.lattices is None:
            return product_moments(self.formula, self.axes, self.masses)
        mean, var = product_moments_by_node(self.formula, self.lattices, exact=self.method == "exact")
        return float(mean[0]), float(var[0])
