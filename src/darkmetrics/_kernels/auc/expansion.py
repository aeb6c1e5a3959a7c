"""The law of ROC-AUC where much is random: an expansion at every t, at one node or many (mathematics, section 3).

No ratio is expanded: {A / D <= t} = {A - tD <= 0}, and A - tD is quadratic in the two sums (P, R). A node is a row of a
matrix of chances. Ties count one half (`half_ties` takes the others there).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.auc.ranks import RankData, auc_influence, settle
from darkmetrics._kernels.sums.smooth import bernoulli_cumulant, edgeworth_cdf

# Nodes are taken in portions of at most this many numbers, which stay in the processor's cache.
_PORTION = 1 << 15
# Points for a standard deviation: cubics between them are off by 2e-6 of cdf, and straight lines by 1e-5 at eight times
# as many. Where nodes hardly overlap, each has some of its own.
_PER_SD, _FINER, _POINTS, _OWN_POINTS = 7.0, 8, 4096, 24
# What lies beyond, 1e-12, no expansion knows.
_REACH = 7.0
# Cubics through four points as sums of these, at places between the second and the third.
_CUBIC = (
    np.linalg.inv(np.arange(-1.0, 3.0)[:, None] ** np.arange(4)).T
    @ (np.arange(_FINER) / _FINER) ** np.arange(4)[:, None]
)
# The cumulants are polynomials in t of degree four at most: these places, in standard deviations, settle them.
_PLACES = np.array([-6.0, -3.0, 0.0, 3.0, 6.0])
_TO_POLYNOMIAL = np.linalg.inv(_PLACES[:, None] ** np.arange(5))
# Stretches of levels, in each of which the largest share of a row is bounded for all nodes at once.
_LEVELS = 16
# Rows that are looked at together for the largest share.
_LOOKED_AT = 2048
# As many leading rows are settled both ways.
_MOST_LEADING, _MOST_PARTS = 5, 64


class Expansions(NamedTuple):
    """Of each node: cumulants of A - tD as polynomials in (t - mean) / sd, and what decides if they will do."""

    # One for each cumulant: powers (lowest first) x nodes.
    polynomials: list[FloatArray]
    mean: FloatArray
    sd: FloatArray
    # Total variance of the labels.
    variance: FloatArray
    # The largest share of the variance that one row contributes.
    largest: FloatArray

    def of(self, nodes: BoolArray | IntArray) -> "Expansions":
        """Those of some nodes."""
        return Expansions([poly[:, nodes] for poly in self.polynomials], *(part[nodes] for part in self[1:]))

    def cdf(self, t: FloatArray) -> FloatArray:
        """P(ROC-AUC <= t) at each node: nodes x t, which may have a row for each."""
        u = (t - self.mean[:, None]) / self.sd[:, None]
        mean, variance, k3, k4 = (_horner(poly[:, :, None], u) for poly in self.polynomials)
        sd = np.sqrt(np.maximum(variance, 1e-300))
        return edgeworth_cdf(-mean / sd, k3 / (sd * variance), k4 / variance**2)


def joined(parts: list[Expansions]) -> Expansions:
    """The nodes of all of these, one after another."""
    polynomials = [np.concatenate(poly, axis=1) for poly in zip(*(part.polynomials for part in parts), strict=True)]
    return Expansions(polynomials, *(np.concatenate(each) for each in zip(*(part[1:] for part in parts), strict=True)))


def _horner(poly: FloatArray, u: FloatArray) -> FloatArray:
    result: FloatArray = poly[-1] * u + poly[-2]
    for coefficient in poly[-3::-1]:
        result *= u
        result += coefficient
    return result


class LabelSums(NamedTuple):
    """Sums over the missing rows at each node, which do not depend on the labels that are known."""

    # Means of what they add to P and R, in parts of the total weight, with ranks from the middle.
    mean_p: FloatArray
    mean_r: FloatArray
    # Of orders two, three and four: nodes x powers of the rank.
    cumulants: list[FloatArray]
    variance: FloatArray


def label_sums(data: RankData, p: FloatArray, column: IntArray | None = None) -> LabelSums:
    """What `expansions` need of the missing rows: cases of the same rows share it."""

    def by_column(values: FloatArray) -> FloatArray:
        """Sums over the cells of each column."""
        return values if column is None else np.asarray(np.bincount(column, values, p.shape[1]), np.float64)

    share, r = data.weight / data.total, data.rho / data.total - 0.5
    mean_p, mean_r = p @ by_column(data.counts * share), p @ by_column(data.counts * share * r)
    sums, variance = [np.zeros((p.shape[0], order + 1)) for order in (2, 3, 4)], np.zeros(p.shape[0])
    # Cells without a column of their own are taken in portions too: twelve powers of each would be most of the memory.
    size = share.size if column is not None else _PORTION
    for cells in (slice(i, i + size) for i in range(0, share.size, size)):
        columns = [
            np.stack([by_column(each) for each in powers], axis=1) if column is not None else powers.T
            for powers in _powers(data.counts[cells] * share[cells], share[cells], r[cells])
        ]
        own, rows = (p, by_column(data.counts)) if column is not None else (p[:, cells], data.counts[cells])
        for nodes in _portions(own):
            v = bernoulli_cumulant(2, own[nodes])
            variance[nodes] += v @ rows
            for order, of_cells, into in zip((2, 3, 4), columns, sums, strict=True):
                into[nodes] += bernoulli_cumulant(order, own[nodes], v) @ of_cells
    return LabelSums(mean_p, mean_r, sums, variance)


def expansions(
    data: RankData, p: FloatArray, column: IntArray | None = None, given: LabelSums | None = None
) -> Expansions:
    """The expansions at each node (row of `p`, whose columns are the cells, or cells have their `column`).

    `given`: the sums over these missing rows, where they are known.
    """
    known = given or label_sums(data, p, column)
    sums, variance = known.cumulants, known.variance
    mean_p = data.known_p / data.total + known.mean_p
    mean_r = (data.known_r / data.total - 0.5 * data.known_p) / data.total + known.mean_r
    # The cumulant of orders (i, j) of (P, R) is the j-th sum.
    (pp, pr, rr), third, fourth = (some.T[:, :, None] for some in sums)

    def slopes(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivatives g and h of A - tD by P, the first and the second, at the mean: nodes x places."""
        level = mean_p[:, None]
        return 0.5 - level - t * (1.0 - 2.0 * level), 2.0 * t - 1.0

    def spread(g: FloatArray, h: FloatArray) -> FloatArray:
        """The variance of A - tD."""
        linear = (g * pp + 2.0 * pr) * g + rr
        return np.asarray(linear + h * (g * third[0] + third[1] + h * (0.5 * pp**2 + 0.25 * fourth[0])))

    def at(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Cumulants of A - tD in units of the total weight squared: nodes x places.

        That is `value + g P + R + h P^2 / 2` in deviations of P and R: `smooth_cumulants` with one second derivative.
        """
        g, h = slopes(t)
        value = (mean_r + 0.5 * mean_p * (1.0 - mean_p))[:, None] - t * (mean_p * (1.0 - mean_p))[:, None]
        along, curve = g * pp + pr, h * pp  # covariance of P with the linear part, and what bends it
        pull, pull2 = g * third[0] + third[1], (g * third[0] + 2.0 * third[1]) * g + third[2]
        k3 = ((g * third[0] + 3.0 * third[1]) * g + 3.0 * third[2]) * g + third[3] + 3.0 * h * along**2
        k3 += 1.5 * h * ((g * fourth[0] + 2.0 * fourth[1]) * g + fourth[2]) + 3.0 * h * curve * pull + curve**3
        k4 = (((g * fourth[0] + 4.0 * fourth[1]) * g + 6.0 * fourth[2]) * g + 4.0 * fourth[3]) * g + fourth[4]
        k4 += 12.0 * h * along * (h * along * pp + pull2) + 3.0 * curve**4
        return value + 0.5 * curve, spread(g, h), k3, k4

    variance_p = sums[0][:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_d = mean_p * (1.0 - mean_p) - variance_p
        mean = (mean_r + 0.5 * mean_p * (1.0 - mean_p) - 0.5 * variance_p) / mean_d
        sd = np.sqrt(np.maximum(spread(*slopes(mean[:, None]))[:, 0], 1e-300)) / mean_d
        found = at(settling_places(mean, sd))
        level = mean_p + mean * (1.0 - 2.0 * mean_p)
        largest = (
            _largest_share(data, p, level, sums[0]) if column is None else _most_share(data, p, level, column, sums[0])
        )
        largest = np.where(mean_d > 0.0, largest, 1.0)
    return Expansions(polynomials_of(found), mean, sd, variance, largest)


def _powers(mass: FloatArray, share: FloatArray, r: FloatArray) -> Iterator[FloatArray]:
    """What the cumulants of order two, three and four are multiplied by: powers of the rank (rows), for each cell."""
    for order in (2, 3, 4):
        mass = mass * share
        powers = np.empty((order + 1, r.size))
        powers[0] = mass
        for power in range(order):
            np.multiply(powers[power], r, out=powers[power + 1])
        yield powers


def settling_places(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Places (nodes x places) at which the cumulants of a numerator less t times a denominator settle these."""
    return np.asarray(mean[:, None] + sd[:, None] * _PLACES)


def polynomials_of(cumulants: Sequence[FloatArray]) -> list[FloatArray]:
    """The polynomials of `Expansions` from the first four cumulants at these places (nodes x places)."""
    return [(each @ _TO_POLYNOMIAL.T).T[: degree + 1] for degree, each in enumerate(cumulants, start=1)]


def _portions(p: FloatArray) -> list[slice]:
    size = max(1, _PORTION // max(1, p.shape[1]))
    return [slice(i, i + size) for i in range(0, p.shape[0], size)]


def _most_share(data: RankData, p: FloatArray, level: FloatArray, column: IntArray, second: FloatArray) -> FloatArray:
    """A bound on that share which does not take every row at every node; `second` are the sums of order two.

    What a row adds is convex in the level: between two levels it is at most what it is at one of them.
    """
    off = 0.5 - level
    total = second[:, 2] + 2.0 * off * second[:, 1] + off**2 * second[:, 0]
    order = np.argsort(column, kind="stable")
    starts = np.flatnonzero(np.diff(column[order], prepend=-1))
    share, rank = (data.weight / data.total)[order], (data.rho / data.total)[order]
    largest = np.empty(level.size)
    for nodes in np.array_split(np.argsort(level), _LEVELS):
        ends = ((share * (rank - end)) ** 2 for end in (level[nodes].min(initial=1.0), level[nodes].max(initial=0.0)))
        own = np.maximum.reduceat(np.maximum(*ends), starts)
        v = p[nodes][:, column[order[starts]]]
        largest[nodes] = (v * (1.0 - v) * own).max(axis=1) / total[nodes]
    return largest


def _largest_share(data: RankData, p: FloatArray, levels: FloatArray, second: FloatArray) -> FloatArray:
    """The largest share of a row in the variance of A - tD at its mean, to first order; `second` as above."""
    square, rank = (data.weight / data.total) ** 2, data.rho / data.total
    off = 0.5 - levels
    total = second[:, 2] + 2.0 * off * second[:, 1] + off**2 * second[:, 0]
    # What no row is above at any node, as p (1 - p) is a quarter at most: few rows have to be looked at.
    most = 0.25 * square * np.maximum((rank - levels.min()) ** 2, (rank - levels.max()) ** 2)
    order = np.argsort(-most, kind="stable")
    largest = np.zeros(levels.size)
    for start in range(0, order.size, _LOOKED_AT):
        if most[order[start]] <= largest.min():
            break
        # All rows are looked at as they lie, without a copy.
        some = order[start : start + _LOOKED_AT] if order.size > _LOOKED_AT else slice(None)
        own = p[:, some]
        line = (rank[some] - levels[:, None]) ** 2
        line *= square[some]
        line *= own * (1.0 - own)
        largest = np.maximum(largest, line.max(axis=1))
    return np.asarray(largest / total)


def settle_leading_rows(
    data: RankData, p: FloatArray, weight: FloatArray, share: float
) -> list[tuple[RankData, FloatArray, FloatArray]] | None:
    """Cases that the labels of a few leading rows leave: data, chances and weight of each node; None if too many lead.

    An expansion needs many rows of comparable influence. A row that contributes more than a `share` of the variance is
    settled both ways instead, and the law is the mixture.
    """
    mean = weight @ p / weight.sum()
    variance = auc_influence(data, mean) ** 2 * mean * (1.0 - mean)
    left = float(variance @ data.counts)
    if np.isnan(left):
        return None
    leading: list[int] = []
    for cell in np.argsort(-variance)[: _MOST_LEADING + 1].tolist():
        if variance[cell] <= share * left:
            break
        if data.counts[cell] > 1 or len(leading) == _MOST_LEADING:
            return None
        leading.append(cell)
        left -= float(variance[cell])
    if not leading:
        return [(data, p, weight)]
    cases: list[tuple[RankData, FloatArray, FloatArray]] = []
    left_open = data.counts > 0
    left_open[leading] = False
    rest = p[:, left_open]  # the same however they are settled
    for signs in product((-1, 1), repeat=len(leading)):
        labels = np.zeros(mean.size, dtype=np.int64)
        labels[leading] = signs
        chances = np.where(np.array(signs) > 0, p[:, leading], 1.0 - p[:, leading]).prod(axis=1)
        # Once these rows are settled, others may lead: a heavy positive leaves only the rows that score above it.
        case, _ = settle(data, mean, labels)
        inner = settle_leading_rows(case, rest, weight * chances, share)
        if inner is None or len(cases) + len(inner) > _MOST_PARTS:
            return None
        cases += inner
    return cases


class MixedCdf(NamedTuple):
    """The cdf of a mixture on a rising grid, and mean and variance at each of its nodes."""

    grid: FloatArray
    levels: FloatArray
    mean: FloatArray
    var: FloatArray


def mixed_cdf(nodes: Expansions, weight: FloatArray, low: float, high: float) -> MixedCdf:
    """The mixture of the expansions within [low, high]; `weight` sums to one."""
    first, last = np.maximum(low, nodes.mean - _REACH * nodes.sd), np.minimum(high, nodes.mean + _REACH * nodes.sd)
    reach, centre = last - first, float(weight @ nodes.mean)
    # Each node on points of its own, as it bends on its own scale alone, and from there on to those that all share.
    place = np.linspace(0.0, 1.0, int(2.0 * _REACH * _PER_SD) + 1)
    cdf = np.maximum.accumulate(nodes.cdf(first[:, None] + reach[:, None] * place), axis=1)
    cdf = (cdf - cdf[:, :1]) / (cdf[:, -1:] - cdf[:, :1])
    mass, off = np.diff(cdf, axis=1), (first - centre)[:, None] + reach[:, None] * (0.5 * (place[1:] + place[:-1]))
    mean = (mass * off).sum(axis=1)
    # Sheppard's correction: mass that is spread evenly between two points has a little more spread than it had.
    second = (mass * off**2).sum(axis=1) - (reach * place[1]) ** 2 / 12.0
    t, fine = _common_grid(nodes, weight, first, last), _finer(weight[:, None] * cdf)
    places = first[:, None] + reach[:, None] * np.linspace(0.0, 1.0, fine.shape[1])
    starts, ends = np.searchsorted(t, first), np.searchsorted(t, last, side="right")
    levels: FloatArray = np.cumsum(np.bincount(ends, weight, t.size + 1), dtype=np.float64)[:-1]
    for start, end, place, own in zip(starts.tolist(), ends.tolist(), places, fine, strict=True):
        levels[start:end] += np.interp(t[start:end], place, own)
    levels = np.maximum.accumulate(np.clip(levels, 0.0, float(weight.sum())))
    return MixedCdf(t, levels, centre + mean, np.maximum(second - mean**2, 0.0))


def _common_grid(nodes: Expansions, weight: FloatArray, first: FloatArray, last: FloatArray) -> FloatArray:
    """Points from the first end of a node to the last, fine enough for their mixture.

    Straight lines are off by what a cdf bends, which goes with its share and with the square of how narrow it is.
    """
    low, high = float(first.min()), float(last.max())
    points = 4.5 * (high - low) * _PER_SD * float(np.sqrt(weight @ nodes.sd**-2.0))
    if points <= _POINTS:
        return np.linspace(low, high, int(points) + 129)
    share = np.linspace(-1.0, 1.0, _OWN_POINTS)
    # Denser in the middle, where the cdf bends.
    own = nodes.mean[:, None] + _REACH * nodes.sd[:, None] * (0.3 * share + 0.7 * share**3)
    return np.unique(np.concatenate([np.clip(own, first[:, None], last[:, None]).ravel(), [low, high]]))


def _finer(levels: FloatArray) -> FloatArray:
    """More evenly spaced points in each row, by cubics through the four nearest."""
    rows, gaps = len(levels), levels.shape[1] - 1
    padded = np.concatenate([levels[:, :1], levels, levels[:, -1:]], axis=1)
    four = np.stack([padded[:, i : i + gaps].ravel() for i in range(4)])
    result = np.empty((rows, _FINER * gaps + 1))
    result[:, -1] = levels[:, -1]
    for i, between in enumerate((_CUBIC.T @ four).reshape(_FINER, rows, gaps)):
        result[:, i:-1:_FINER] = between
    return result
