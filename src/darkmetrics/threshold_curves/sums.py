"""All thresholds at once: the paper's Gaussian for ratios of counts, mixed over the nodes (mathematics, section 13)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantiles
from darkmetrics._kernels.sums.smooth import ratio_variance
from darkmetrics.functional import RatioForm
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.confusion import Ratio
from darkmetrics.threshold_curves.above_and_below import Blocks, Stretch
from darkmetrics.threshold_curves.bands import Swept


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
        return Swept(value, column, low, high, undefined, labelled_only), np.zeros(value.shape, dtype=np.bool_)
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
