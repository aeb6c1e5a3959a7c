"""What lies above and below each threshold, and all metrics from it at once.

Sums over rows, for all thresholds and nodes from one pass; then the paper's Gaussian for ratios of counts, mixed over
the nodes (mathematics, section 13).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, merged_keys
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics._kernels.sums.smooth import ratio_variance
from darkmetrics.data.cells import COUNTS
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.functional import RatioForm
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.confusion import Ratio
from darkmetrics.posterior import Posterior, columns_of
from darkmetrics.threshold_curves.bands import Swept

# Numbers held at once: nodes x thresholds, and nodes x cells.
_MOST_NUMBERS = 1 << 21


class Blocks:
    """Rows between neighbouring thresholds, counted; `block` is the number of thresholds at or below a row's score.

    Sums above and below a threshold are added up from their own ends, so that few rows above a high threshold are not
    what is left of a difference of large numbers.
    """

    def __init__(self, data: EvaluationSet, nodes: Posterior, thresholds: FloatArray) -> None:
        self.data, self.nodes, self.size = data, nodes, thresholds.size
        cells = data.cells
        cuts = np.searchsorted(cells.score, thresholds)
        of_cell = np.repeat(np.arange(self.size + 1), np.diff(np.concatenate(([0], cuts, [cells.score.size]))))
        self.known = {
            name: _either_side(np.bincount(of_cell, cells.mass(getattr(cells, name)), self.size + 1)) for name in COUNTS
        }
        block = of_cell[data.missing_cells]
        weight = data.missing_weight
        count = data.missing_counts.astype(np.float64)
        self.least = self._least_weights(block, weight)
        self.column: IntArray = columns_of(nodes)
        self.block: IntArray = block
        # Rows, their weights and the squares of these: per missing cell, or per column within a block.
        self.rows = [count, count if weight is None else count * weight, count if weight is None else count * weight**2]
        if nodes.bucket is not None:
            first, owner = merged_keys(block, nodes.bucket)
            self.block, self.column = block[first], nodes.bucket[first]
            self.rows = [np.bincount(owner, rows, first.size).astype(np.float64) for rows in self.rows]

    def _least_weights(self, block: IntArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """The smallest weight of a missing row above and below each threshold; 1 where there is none."""
        if weight is None:
            return np.ones(self.size), np.ones(self.size)
        least = np.full(self.size + 1, np.inf)
        np.minimum.at(least, block, weight)
        above, below = np.minimum.accumulate(least[:0:-1])[::-1], np.minimum.accumulate(least[:-1])
        return np.where(np.isinf(above), 1.0, above), np.where(np.isinf(below), 1.0, below)

    def stretches(self) -> Iterator["Stretch"]:
        """The thresholds in stretches, short enough for every node at once."""
        length = max(1, _MOST_NUMBERS // len(self.nodes))
        starts = np.arange(0, self.size, length)
        total = _Totals(self, starts)
        for i, start in enumerate(starts.tolist()):
            yield Stretch(self, i, slice(start, min(start + length, self.size)), total)

    def sums(self, kind: str, starts: IntArray) -> FloatArray:
        """Sums at each node (nodes x stretches) over the cells from each start to the next."""
        result = np.zeros((len(self.nodes), starts.size - 1))
        held = np.flatnonzero(np.diff(starts))
        if not held.size:
            return result
        inside = slice(int(starts[0]), int(starts[-1]))
        column, rows = self.column[inside], [part[inside] for part in self.rows]
        step = max(1, _MOST_NUMBERS // column.size)
        for first in range(0, len(self.nodes), step):
            some = slice(first, first + step)
            term = _term(kind, self.nodes.probability[some][:, column], rows)
            result[some, held] = np.add.reduceat(term, starts[held] - starts[0], axis=1)
        return result


class _Totals:
    """Sums over each stretch of thresholds and over what lies above the last of them, made when first asked for."""

    def __init__(self, blocks: Blocks, starts: IntArray) -> None:
        self._blocks = blocks
        self._starts = np.concatenate(
            (np.searchsorted(blocks.block, np.append(starts, blocks.size)), [blocks.block.size])
        )
        self._kept: dict[str, tuple[FloatArray, FloatArray]] = {}

    def outside(self, kind: str, stretch: int) -> tuple[FloatArray, FloatArray]:
        """Sums at each node above the stretch and below it."""
        if kind not in self._kept:
            sums = self._blocks.sums(kind, self._starts)
            after = np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1]
            before = np.pad(np.cumsum(sums[:, :-1], axis=1), ((0, 0), (1, 0)))
            self._kept[kind] = after, before
        after, before = self._kept[kind]
        return after[:, stretch, None], before[:, stretch, None]


class Stretch:
    """Some neighbouring thresholds: the known counts, and sums over missing rows at every node (nodes x thresholds)."""

    def __init__(self, blocks: Blocks, number: int, where: slice, totals: _Totals) -> None:
        self._blocks, self._number, self.where, self._totals = blocks, number, where, totals
        (self.tp, self.fn), (self.fp, self.tn), self.open = (
            tuple(side[where] for side in blocks.known[name]) for name in COUNTS
        )
        self.yes, self.no = self.tp + self.fp + self.open[0], self.fn + self.tn + self.open[1]
        self.least = tuple(side[where] for side in blocks.least)

    @cached_property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Expected positive weight among the missing rows above and below each threshold."""
        return self._sums("mean")

    @cached_property
    def variances(self) -> tuple[FloatArray, FloatArray]:
        """Its variance."""
        return self._sums("variance")

    @cached_property
    def none(self) -> tuple[FloatArray, FloatArray]:
        """Probability that no missing row above, or below, is positive."""
        above, below = self._sums("log none")
        return np.exp(above), np.exp(below)

    @cached_property
    def all(self) -> tuple[FloatArray, FloatArray]:
        """Probability that every missing row above, or below, is positive."""
        above, below = self._sums("log all")
        return np.exp(above), np.exp(below)

    def _sums(self, kind: str) -> tuple[FloatArray, FloatArray]:
        blocks, first, last = self._blocks, self.where.start, self.where.stop
        sums = blocks.sums(kind, np.searchsorted(blocks.block, np.arange(first, last + 1)))
        after, before = self._totals.outside(kind, self._number)
        above = np.cumsum(np.concatenate((after, sums[:, :0:-1]), axis=1), axis=1)[:, ::-1]
        return above, np.cumsum(np.concatenate((before + sums[:, :1], sums[:, 1:]), axis=1), axis=1)


def _term(kind: str, p: FloatArray, rows: list[FloatArray]) -> Any:
    if kind == "mean":
        return p * rows[1]
    if kind == "variance":
        return p * (1.0 - p) * rows[2]
    with np.errstate(divide="ignore"):
        return (np.log1p(-p) if kind == "log none" else np.log(p)) * rows[0]


def _either_side(sums: Any) -> tuple[FloatArray, FloatArray]:
    """What lies above each threshold and below it, from the sums of the blocks."""
    return np.cumsum(sums[:0:-1])[::-1], np.cumsum(sums[:-1])


def sweep_by_sums(
    blocks: Blocks, metrics: Sequence[ConfusionMetric], fills: Sequence[float], levels: FloatArray
) -> list[tuple[Swept, BoolArray]]:
    """The Gaussian laws of ratios at all thresholds, and where there is none: those take each threshold by itself."""
    stretches = [
        [_swept(blocks, here, metric, fill, levels) for metric, fill in zip(metrics, fills, strict=True)]
        for here in blocks.stretches()
    ]
    result = []
    for parts in zip(*stretches, strict=True):
        columns = zip(*(part for part, _ in parts), strict=True)
        swept = Swept(*(np.concatenate(column, axis=-1) for column in columns))
        result.append((swept, np.concatenate([left for _, left in parts])))
    return result


def _swept(
    blocks: Blocks, here: Stretch, metric: ConfusionMetric, fill: float, levels: FloatArray
) -> tuple[Swept, BoolArray]:
    formula = metric.of_positives(here.yes, here.no, blocks.data.dust)

    def at(positives_above: FloatArray, positives_below: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(formula(here.tp + positives_above, here.fn + positives_below), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)

    form = _form(metric, here)
    # The places where CountFunctional looks for extremes and 0/0, at every threshold.
    above, below = (_ends(total, least) for total, least in zip(here.open, here.least, strict=True))
    grid = at(above[:, None], below[None, :])
    low, high = np.fmin.reduce(grid, axis=(0, 1)), np.fmax.reduce(grid, axis=(0, 1))
    if not np.isnan(fill):
        open_ = np.isnan(grid).any(axis=(0, 1))
        low, high = (np.where(open_, end(x, fill), x) for end, x in ((np.fmin, low), (np.fmax, high)))
    with np.errstate(divide="ignore", invalid="ignore"):
        known = np.asarray(metric.formula(here.tp, here.fp, here.fn, here.tn), dtype=np.float64)
    labelled_only = np.where(np.isfinite(known), known, fill) if blocks.data.n_labelled else np.full(low.shape, np.nan)
    if blocks.nodes.certain:  # nothing is random: the law is a point, and a 0/0 counts as the fill
        value = at(*(mean[0] for mean in here.means))
        undefined = np.isnan(value).astype(np.float64)
        value = np.where(np.isnan(value), fill, value)
        column = np.broadcast_to(value, (levels.size, value.size))
        return Swept(value, column, low, high, undefined, labelled_only), ~_keeps_sign(form, here)
    undefined_at, odd = _undefined(np.isnan(grid), here)
    laws = _laws(here, at(*here.means), form, undefined_at, blocks.nodes.weight)
    quantiles = normal_mixture_quantiles(levels, laws.share, laws.mean, laws.sd)
    quantiles[:, laws.never] = np.nan
    mean = np.where(laws.never, np.nan, (laws.share * laws.mean).sum(axis=0))
    undefined = np.where(laws.never, 1.0, np.minimum(1.0, blocks.nodes.weight @ undefined_at))
    return Swept(mean, quantiles, low, high, undefined, labelled_only), odd | laws.odd | ~_keeps_sign(form, here)


class _Laws(NamedTuple):
    """Share, mean and standard deviation per node and threshold; where no node has a law, and where some lack it."""

    share: FloatArray
    mean: FloatArray
    sd: FloatArray
    never: BoolArray
    odd: BoolArray


def _laws(here: Stretch, mean: FloatArray, form: RatioForm, undefined: FloatArray, weight: FloatArray) -> _Laws:
    known = here.tp + here.means[0], here.fn + here.means[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variance = ratio_variance(mean, form.numerator, form.denominator, known, here.variances)
    # A node counts the more the likelier the metric is defined there (mathematics, section 10).
    share = np.where(undefined >= 1.0, 0.0, weight[:, None] * (1.0 - undefined))
    total = share.sum(axis=0)
    never = ~(total > 0.0)
    share = share / np.where(never, 1.0, total)
    used = share > 0.0
    lacks = used & ~(np.isfinite(mean) & np.isfinite(variance))
    fine = used & ~lacks
    # What has no share must only not widen the bracket of the others.
    centre = np.where(fine, share * mean, 0.0).sum(axis=0)
    sd = np.sqrt(np.where(fine, np.maximum(variance, 0.0), 0.0))
    return _Laws(share, np.where(fine, mean, centre), sd, never, lacks.any(axis=0))


def _undefined(nan: BoolArray, here: Stretch) -> tuple[FloatArray, BoolArray]:
    """Probability of 0/0 at each node (nodes x thresholds), and where it is not that of a face of the box of counts.

    A denominator that keeps its sign vanishes on a face: at one end of one sum or of both, or everywhere.
    """
    nodes, size = here.means[0].shape
    everywhere: BoolArray = np.asarray(nan.all(axis=(0, 1)))
    corner = nan[np.ix_([0, 3], [0, 3])]  # none or all positive above, none or all positive below
    mass = np.zeros((nodes, size))
    mass[:, everywhere] = 1.0
    odd = np.zeros(size, dtype=np.bool_)
    left = np.flatnonzero(nan.any(axis=(0, 1)) & ~everywhere)
    if left.size:
        ends = [(np.stack([none, all_])[:, :, left]) for none, all_ in zip(here.none, here.all, strict=True)]
        held = corner[:, :, left]
        number = np.asarray(held.sum(axis=(0, 1)))
        # A whole side: the other sum does not matter.
        above, below = np.asarray(held.all(axis=1)), np.asarray(held.all(axis=0))
        one = (held[:, :, None] * ends[0][:, None] * ends[1][None, :]).sum(axis=(0, 1))
        side = (above[:, None] * ends[0]).sum(axis=0) + (below[:, None] * ends[1]).sum(axis=0)
        mass[:, left] = np.where(number == 1, one, side)
        whole = above.any(axis=0) | below.any(axis=0)
        odd[left] = ~((number == 1) | ((number == 2) & whole))
    return np.minimum(mass, 1.0), odd


def _form(metric: ConfusionMetric, here: Stretch) -> RatioForm:
    """Coefficients of the ratio at each threshold (3 x thresholds)."""
    if isinstance(metric.formula, Ratio):
        return metric.formula.at(here.yes, here.no)
    forms = [metric.form_at(yes, no) for yes, no in zip(here.yes.tolist(), here.no.tolist(), strict=True)]
    return RatioForm(*(np.array(column).T for column in zip(*forms, strict=True)))


def _keeps_sign(form: RatioForm, here: Stretch) -> BoolArray:
    """Whether the denominator is nowhere negative or nowhere positive, at each threshold."""
    constant, *slopes = form.denominator
    start = constant + slopes[0] * here.tp + slopes[1] * here.fn
    change = np.stack([slope * total for slope, total in zip(slopes, here.open, strict=True)])
    falls, rises = np.minimum(change, 0.0).sum(axis=0), np.maximum(change, 0.0).sum(axis=0)
    return np.asarray((start + falls >= 0.0) | (start + rises <= 0.0), dtype=np.bool_)


def _ends(total: FloatArray, least: FloatArray) -> FloatArray:
    """The sums of a group at which an extreme or a 0/0 can be: the ends, and next to them."""
    return np.stack([np.zeros_like(total), np.minimum(least, total), np.maximum(0.0, total - least), total])
