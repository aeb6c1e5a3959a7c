"""From what was learnt about delays to the record of it: shares of labels by age, and what is still to come."""

from collections.abc import Callable
from datetime import date

import numpy as np
from scipy.special import betaincinv, expit, logit

from darkmetrics._kernels.age_grid import Ages
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.label_models import delay_checks
from darkmetrics.label_models.arrival import AgeBin, Arrival, ClassArrival
from darkmetrics.label_models.delay_checks import DelayCheck
from darkmetrics.label_models.late import Arrivals, ages_of
from darkmetrics.missingness.base import Estimate
from darkmetrics.missingness.checks import AbsentError

_TAILS = (0.05, 0.95)
_MOST = 0.9
# Times at which it is asked how many labels will have come, and levels that stand for when so many of them have.
_TIMES, _LEVELS = 50, 20


def arrival_of(fitted: Arrivals, data: EvaluationSet, as_of: date | None = None) -> Arrival:
    """What the rows of the set that was fitted say about when labels come."""
    ages = ages_of(data)
    last = fitted.grid.bins - 1
    if ages.mature.any():  # older rows are all settled
        last = int(fitted.grid.bin_of(ages.age[ages.mature]).min())
    absent: dict[str, str] = {}
    positives, negatives, wait = _classes(fitted, last, mature=bool(ages.mature.any()))
    return Arrival(
        bins=_bins(fitted, data, ages, last),
        positives=positives,
        negatives=negatives,
        wait=wait,
        missing=data.n_missing,
        by_score=_checked("by_score", absent, lambda: delay_checks.by_score(fitted)),
        by_cohort=_checked("by_cohort", absent, lambda: delay_checks.by_cohort(fitted, data)),
        absent=absent,
        days=ages.days,
        timed=bool(ages.timed.any()),
        turning=fitted.turning,
        maturity=float(fitted.grid.edges[last + 1]) if ages.mature.any() else None,
        as_of=as_of,
    )


def _checked(name: str, absent: dict[str, str], check: Callable[[], DelayCheck]) -> DelayCheck | None:
    try:
        return check()
    except AbsentError as reason:
        absent[name] = str(reason)
        return None


def _bins(fitted: Arrivals, data: EvaluationSet, ages: Ages, last: int) -> tuple[AgeBin, ...]:
    grid, cells = fitted.grid, data.cells
    age, came = (np.minimum(grid.bin_of(bins), last) for bins in (ages.age, np.maximum(ages.delay, 0)))
    labels = cells.positives + cells.negatives
    columns = [(age, cells.total), (age, cells.positives), (age, cells.negatives), (age, cells.missing)]
    columns.append((came, labels * ages.timed))
    counts = [np.bincount(place, count, last + 1).astype(int).tolist() for place, count in columns]
    edges = grid.edges[: last + 2].tolist()
    return tuple(AgeBin(*row) for row in zip(edges[:-1], edges[1:], *counts, strict=True))


def _classes(fitted: Arrivals, last: int, *, mature: bool) -> tuple[ClassArrival, ClassArrival, Estimate]:
    """Both classes, and the wait for labels of either."""
    grid, likelihood = fitted.grid, fitted.likelihood
    rows = likelihood  # the table of the set that was fitted
    edges = grid.edges[: last + 2]
    left = _left(fitted, last + 1, mature=mature)
    gone = rows.missing > 0.0
    missing, zone = rows.missing[gone], rows.place[gone] // grid.bins
    bin_ = np.minimum(rows.place[gone] % grid.bins, last)
    p = likelihood.share(fitted.draws[fitted.chosen], rows.X[gone], rows.place[gone])
    times = np.unique(np.append(np.linspace(0.0, edges[-1], _TIMES), edges))
    now = edges[:-1] + grid.passed[: last + 1] * np.diff(edges)
    # Of rows that have no label now, by node, class, zone and bin: how many have one after each time.
    later = _at(edges, left[fitted.chosen], now[:, None] + times)
    come = 1.0 - later / np.maximum(later[..., :1], np.finfo(np.float64).tiny)
    classes, coming = [], np.zeros((fitted.chosen.size, times.size))
    for y, (labelled, chance) in enumerate(((rows.positives, p), (rows.negatives, 1.0 - p))):
        of_zone = np.bincount(rows.place // grid.bins, labelled, grid.zones)
        of_zone += np.bincount(zone, missing * chance.mean(axis=0), grid.zones)
        share = 1.0 - np.einsum("kze,z->ke", left[:, y], of_zone / of_zone.sum())
        counts = np.array(
            [np.bincount(zone * (last + 1) + bin_, missing * row, grid.zones * (last + 1)) for row in chance]
        )
        path = np.einsum("kb,kbt->kt", counts, come[:, y].reshape(*counts.shape, times.size))
        coming += path
        classes.append(
            ClassArrival(
                *_band(share[:, 1:]),
                missing=_count(chance, missing),
                to_come=_count(chance * come[:, y, zone, bin_, -1], missing),
                wait=_time(_waits(times, path)),
                half=_time(_reached(edges, share, 0.5)),
                most=_time(_reached(edges, share, _MOST)),
                never=_over(1.0 - share[:, -1]),
            )
        )
    return classes[0], classes[1], _time(_waits(times, coming))


def _left(fitted: Arrivals, bins: int, *, mature: bool) -> FloatArray:
    """Chance to have no label at the end of bins, and before the first (draw, class, zone, edge).

    Few rows say in which of two bins a label came, but many that it has: hazards are open where their product is not.
    So the draws are of its log odds, which are nearly a straight line in the parameters, and not of hazards, whose
    means over draws would all lie above those of the mode.
    """
    likelihood = fitted.likelihood
    mode = fitted.draws.mean(axis=0)
    chances = likelihood.hazards(mode)
    hazard, never = chances[..., :bins], chances[..., -1:]
    off = np.tensordot((fitted.draws - mode)[:, likelihood.X.shape[1] :], likelihood.map, axes=([1], [3]))
    waiting = (1.0 - never) * np.exp(np.cumsum(np.log1p(-hazard), axis=-1))
    here = never + waiting
    moved = waiting * np.cumsum(-hazard * off[..., :bins], axis=-1) + never * (1.0 - here) * off[..., -1:]
    odds, moved = logit(here), moved / (here * (1.0 - here))
    left = np.minimum.accumulate(expit(odds + moved), axis=-1)
    left = np.concatenate([np.ones((*left.shape[:-1], 1)), left], axis=-1)
    if mature:
        # A row whose label has not come by the maturity is not positive, and is then known to be negative.
        left[:, 0] = (left[:, 0] - left[:, 0, :, -1:]) / (1.0 - left[:, 0, :, -1:])
        left[:, 1, :, -1] = 0.0
    return np.asarray(left, dtype=np.float64)


def _at(edges: FloatArray, left: FloatArray, ages: FloatArray) -> FloatArray:
    """What is left at any age: in a bin as many go at any time, of those left; beyond the last nobody does."""
    index = np.clip(np.searchsorted(edges, ages, side="right") - 1, 0, edges.size - 2)
    share = np.clip((ages - edges[index]) / np.diff(edges)[index], 0.0, 1.0)
    logs = np.log(np.maximum(left, np.finfo(np.float64).tiny))
    return np.asarray(np.exp(logs[..., index] * (1.0 - share) + logs[..., index + 1] * share), dtype=np.float64)


def _waits(times: FloatArray, path: FloatArray) -> FloatArray:
    """Times until nine in ten of the labels that are to come have come; each path (row) has how many are expected.

    The last of n labels' first nine tenths is not where the expected number gets there: the share of all labels like
    these that have come by then has a beta law. Its quantiles stand for it, several for each path.
    """
    n = np.maximum(np.rint(path[:, -1]), 1.0)
    last = np.ceil(_MOST * n)
    levels = betaincinv(last, n + 1.0 - last, ((np.arange(_LEVELS) + 0.5) / _LEVELS)[:, None])
    return np.concatenate([_reached(times, path, level) for level in levels])


def _reached(places: FloatArray, path: FloatArray, level: float | FloatArray) -> FloatArray:
    """Where each rising path (row) reaches a level of its end; the first place where it does not rise."""
    levels = np.broadcast_to(level, len(path))
    return np.array(
        [
            np.interp(q * row[-1], row, places) if row[-1] > 0.0 else places[0]
            for q, row in zip(levels, path, strict=True)
        ]
    )


def _band(draws: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = np.quantile(draws, _TAILS, axis=0)
    return draws.mean(axis=0), low, high


def _over(draws: FloatArray) -> Estimate:
    return Estimate(*(float(end) for end in _band(draws)))


def _time(draws: FloatArray) -> Estimate:
    """A time, whose middle is its median: a few draws may have it far out, where hardly a label comes any more."""
    return _over(draws)._replace(mean=float(np.median(draws)))


def _count(chance: FloatArray, missing: FloatArray) -> Estimate:
    """How many of the missing rows it is, each with its chance at each node."""
    mean, sd = chance @ missing, np.sqrt(np.maximum(chance * (1.0 - chance), 0.0) @ missing)
    weight = np.full(mean.size, 1.0 / mean.size)
    low, high = (normal_mixture_quantile(q, weight, mean, sd) for q in _TAILS)
    return Estimate(float(mean.mean()), max(0.0, low), min(float(missing.sum()), high))
