"""From fitted delays to the record of them: labels that are in by age, what is still to come, and checks of delays."""

from datetime import date

import numpy as np
from scipy.special import betaincinv, chdtrc

from darkmetrics._kernels.age_grid import Ages
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.log_odds import chance
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.age_cells import ages_of
from darkmetrics.missingness.arrival import CLASSES, AgeBin, Arrival, ClassArrival, DelayCheck
from darkmetrics.missingness.base import Estimate, estimate_count
from darkmetrics.missingness.checks import CLEARLY, AbsentError, p_text, run_check
from darkmetrics.missingness.delay_fit import compute_label_probability, count_missing
from darkmetrics.missingness.delayed import SCORE_GROUPS, SMALL_FRACTION, FittedDelays, test_cohorts

_TAILS, _MOST = (0.05, 0.95), 0.9
# Times at which arrived labels are counted, and levels that stand for when so many of them have arrived.
_TIMES, _LEVELS = 50, 20
# Smaller effects on the log odds of an arrival do not matter.
_SMALL = 0.2
# Labels of a class that each half of the cohorts needs.
_MIN_LABELS = 20.0
_TINY = np.finfo(np.float64).tiny


def arrival_of(fitted: FittedDelays, data: EvaluationSet, as_of: date | None = None) -> Arrival:
    """Return when labels arrive, as the rows of the set that was fitted show."""
    ages = ages_of(data)
    absent: dict[str, str] = {}
    is_mature = bool(ages.mature.any())
    positives, negatives, wait = _summarize_classes(fitted)
    return Arrival(
        bins=_count_bins(fitted, data, ages),
        positives=positives,
        negatives=negatives,
        wait=wait,
        missing=data.n_missing,
        by_score=run_check("by_score", absent, _check_scores, fitted),
        by_cohort=run_check("by_cohort", absent, _check_cohorts, fitted, data, ages),
        by_age_and_score=run_check("by_age_and_score", absent, _check_ages, fitted, SCORE_GROUPS),
        absent=absent,
        days=ages.days,
        timed=bool(ages.timed.any()),
        turning=fitted.turning,
        maturity=fitted.grid.oldest if is_mature else None,
        as_of=as_of,
    )


def _count_bins(fitted: FittedDelays, data: EvaluationSet, ages: Ages) -> tuple[AgeBin, ...]:
    grid, cells = fitted.grid, data.cells
    age, delay = grid.age_bin(ages.age), grid.age_bin(np.maximum(ages.delay, 0))
    labels = cells.positives + cells.negatives
    columns = [(age, cells.total), (age, cells.positives), (age, cells.negatives), (age, cells.missing)]
    columns.append((delay, labels * ages.timed))
    counts = [np.bincount(index, count, grid.n_ages).astype(int).tolist() for index, count in columns]
    edges = grid.edges.tolist()
    return tuple(AgeBin(*row) for row in zip(edges[:-1], edges[1:], *counts, strict=True))


def _summarize_classes(fitted: FittedDelays) -> tuple[ClassArrival, ClassArrival, Estimate]:
    """Return what is known of positives and of negatives, and the wait for labels of either."""
    grid, draws, table = fitted.grid, fitted.draws, fitted.data.table
    edges, n_ages, n_bins = grid.edges, grid.n_ages, grid.position.size
    rate = chance(draws.rate)
    if grid.propensity is not None:  # rows of a score bin have several rates, of which their mean stands for all
        count = table.positives + table.negatives + table.missing
        by_bin = np.bincount(table.score_bin, count * grid.propensity[table.rate_bin], n_bins)
        rate = np.tile(by_bin / np.maximum(np.bincount(table.score_bin, count, n_bins), _TINY), (len(rate), 2, 1))
    # P(no label at an edge of age bins), by draw, class, score bin and edge.
    left = 1.0 + rate[..., None] * np.expm1(draws.log_waits[:, :, grid.zone])
    if grid.maturity is not None:
        # A row whose label has not arrived by the maturity is not positive, and is then known to be negative.
        left[:, 1] = (left[:, 1] - left[:, 1, :, -1:]) / np.maximum(1.0 - left[:, 1, :, -1:], _TINY)
        left[:, 0, :, -1] = 0.0
    times = np.unique(np.append(np.linspace(0.0, edges[-1], _TIMES), edges))
    now = edges[:-1] + grid.passed * np.diff(edges)
    later = _interpolate_log(edges, left, now[:, None] + times)
    arrived = 1.0 - later / np.maximum(later[..., :1], _TINY)  # of rows without a label now, by score bin, age, time
    rows, _ = table.with_missing()
    p = compute_label_probability(grid, draws, rows)
    key = rows.score_bin * n_ages + rows.age
    classes, arriving, weight = [], np.zeros((len(p), times.size)), np.full(len(p), 1.0 / len(p))
    for y, (labels, probability) in enumerate(((table.negatives, 1.0 - p), (table.positives, p))):
        in_bin = np.bincount(table.score_bin, labels, n_bins)
        in_bin += np.bincount(rows.score_bin, rows.missing * probability.mean(axis=0), n_bins)
        fraction = 1.0 - np.einsum("kbe,b->ke", left[:, y], in_bin / in_bin.sum())
        counts = np.array([np.bincount(key, rows.missing * row, n_bins * n_ages) for row in probability])
        path = np.einsum("kc,kct->kt", counts, arrived[:, y].reshape(len(p), -1, times.size))
        arriving += path
        arrives = arrived[:, y, rows.score_bin, rows.age, -1]
        classes.append(
            ClassArrival(
                *_summarize(fraction[:, 1:]),
                missing=estimate_count(probability, rows.missing, weight),
                to_come=estimate_count(probability * arrives, rows.missing, weight),
                wait=_estimate_time(_draw_waits(times, path)),
                half=_estimate_time(_find_level(edges, fraction, 0.5)),
                most=_estimate_time(_find_level(edges, fraction, _MOST)),
                never=_estimate(1.0 - fraction[:, -1]),
            )
        )
    return classes[1], classes[0], _estimate_time(_draw_waits(times, arriving))


def _interpolate_log(edges: FloatArray, left: FloatArray, ages: FloatArray) -> FloatArray:
    """Return `left` at any age: log-linear between edges, constant beyond the last one."""
    index = np.clip(np.searchsorted(edges, ages, side="right") - 1, 0, edges.size - 2)
    fraction = np.clip((ages - edges[index]) / np.diff(edges)[index], 0.0, 1.0)
    logs = np.log(np.maximum(left, _TINY))
    return np.asarray(np.exp(logs[..., index] * (1.0 - fraction) + logs[..., index + 1] * fraction))


def _draw_waits(times: FloatArray, path: FloatArray) -> FloatArray:
    """Return times until nine in ten of the labels that are to come have arrived; rows of `path` are expected numbers.

    The fraction of all labels like these that have arrived when the last of n labels' first nine tenths arrives has a
    beta distribution. Several of its quantiles stand for it.
    """
    n = np.maximum(np.rint(path[:, -1]), 1.0)
    last = np.ceil(_MOST * n)
    levels = betaincinv(last, n + 1.0 - last, ((np.arange(_LEVELS) + 0.5) / _LEVELS)[:, None])
    return np.concatenate([_find_level(times, path, level) for level in levels])


def _find_level(places: FloatArray, path: FloatArray, level: float | FloatArray) -> FloatArray:
    """Return where each rising path (row) reaches a level of its end; the first place where it does not rise."""
    levels = np.broadcast_to(level, len(path))
    pairs = zip(levels, path, strict=True)
    return np.array([np.interp(q * row[-1], row, places) if row[-1] > 0.0 else places[0] for q, row in pairs])


def _summarize(draws: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = np.quantile(draws, _TAILS, axis=0)
    return draws.mean(axis=0), low, high


def _estimate(draws: FloatArray) -> Estimate:
    return Estimate(*(float(value) for value in _summarize(draws)))


def _estimate_time(draws: FloatArray) -> Estimate:
    """Return a time with its median in the middle: a few draws may be far out, where hardly a label arrives."""
    return _estimate(draws)._replace(mean=float(np.median(draws)))


def _check_scores(fitted: FittedDelays) -> DelayCheck:
    """Compare delays at low and high scores by the slope of the model."""
    if not fitted.grid.cuts.size:
        raise AbsentError("all rows have one score.")
    slopes = fitted.draws.slope
    mean, covariance = slopes.mean(axis=0), np.atleast_2d(np.cov(slopes.T))
    p_value = float(chdtrc(mean.size, mean @ np.linalg.solve(covariance, mean)))
    worst = int(np.argmax(np.abs(mean) / np.sqrt(np.diag(covariance))))
    low, high = np.exp(np.quantile(slopes[:, worst], _TAILS))
    check = DelayCheck(p_value, float(mean[worst]), bool(abs(mean[worst]) < _SMALL), "")
    if not check.differs:
        return check._replace(words=f"Delays are about the same at low and high scores ({p_text(p_value)}).")
    soon = "sooner" if mean[worst] > 0.0 else "later"
    return check._replace(
        words=f"Labels of {CLASSES[1 - worst]} with high scores come {soon} than at low scores: at any age the odds of "
        f"getting one are {np.exp(mean[worst]):.2g} times as high at the highest score as at the middle one "
        f"({low:.2g} to {high:.2g}, {p_text(p_value)})."
    )


def _check_cohorts(fitted: FittedDelays, data: EvaluationSet, ages: Ages) -> DelayCheck:
    """Compare delays of rows scored early and late; without arrival times, what ages alone can show."""
    grid = fitted.grid
    rows = np.bincount(grid.age_bin(ages.age), data.cells.total, grid.n_ages)
    # Rows of the first bins, about half of all, were scored last.
    is_late = np.arange(rows.size) < max(1, int(np.argmin(np.abs(np.cumsum(rows) / rows.sum() - 0.5))) + 1)
    if not rows[~is_late].sum():
        raise AbsentError("all rows are of about the same age.")
    if not ages.timed.any():
        return _check_ages(fitted, 1)
    timed = ages.timed & ~ages.mature
    late = is_late[grid.age_bin(ages.age)]
    labels = (data.cells.negatives, data.cells.positives)
    enough = [y for y in (1, 0) if min(labels[y][timed & (late == side)].sum() for side in (0, 1)) >= _MIN_LABELS]
    if not enough:
        raise AbsentError(f"fewer than {_MIN_LABELS:.0f} delays of a class are known in each half of the rows.")
    p_value, effects = test_cohorts(fitted, data, is_late, enough)
    worst = int(np.argmax(np.abs(effects)))
    effect = float(effects[worst])
    check = DelayCheck(p_value, effect, abs(effect) < _SMALL, "")
    if not check.differs:
        return check._replace(words=f"Rows scored early and late get their labels equally fast ({p_text(p_value)}).")
    return check._replace(
        words=f"Rows scored late get labels of {CLASSES[1 - enough[worst]]} {'sooner' if effect > 0.0 else 'later'} "
        f"than rows scored early did: at any age the odds of getting one are about {np.exp(effect):.2g} times as high "
        f"({p_text(p_value)})."
    )


def _check_ages(fitted: FittedDelays, n_score_groups: int) -> DelayCheck:
    """Compare the rows without a label at each age, and in each score group, with the fit."""
    counts = fitted.misfit if n_score_groups == SCORE_GROUPS else count_missing(fitted.best, n_score_groups)
    if counts.seen.size < 2:
        raise AbsentError("all rows are of about the same age, or all have a label.")
    excess, p_value = counts.excess, counts.p_value
    worst = int(np.argmax(np.abs(excess)))
    check = DelayCheck(p_value, float(excess[worst]), bool(abs(excess[worst]) < SMALL_FRACTION), "")
    grouped = n_score_groups > 1
    if not check.differs:
        words = "The fraction of rows without a label falls with age"
        words += " at low and high scores as the model expects" if grouped else ", as equal delays have it"
        return check._replace(words=f"{words} ({p_text(p_value)}).")
    edges = fitted.grid.edges
    missing, expected = (values[worst] / counts.rows[worst] for values in (counts.seen, counts.expected))
    model = "the model expects" if grouped else "equal delays for all rows would have"
    names = ("lower", "middle", "higher")
    where = f" with {names[counts.score_group[worst]]} scores" if grouped else ""
    return check._replace(
        words=f"Of rows{where} of age {edges[counts.first[worst]]:.3g} to {edges[counts.last[worst] + 1]:.3g}, "
        f"{missing:.1%} have no label where {model} {expected:.1%} ({p_text(p_value)})."
    )


def has_provisional_zeros(data: EvaluationSet) -> bool:
    """Return whether 0 seems to mean "not so far": no row lacks a label, and fewer young rows are positive.

    With a maturity, or with arrival times, the meaning of 0 is known.
    """
    ages, cells = ages_of(data), data.cells
    if data.n_missing or ages.mature.any() or ages.timed.any():
        return False
    rows, positives = (np.bincount(ages.age, count) for count in (cells.total, cells.positives))
    young = np.cumsum(rows) <= rows.sum() / 2.0
    n, n_positive = (np.array([values[young].sum(), values[~young].sum()]) for values in (rows, positives))
    prevalence = n_positive.sum() / n.sum()
    if not (n.all() and 0.0 < prevalence < 1.0):
        return False
    excess = n_positive[1] / n[1] - n_positive[0] / n[0]
    statistic = excess**2 / (prevalence * (1.0 - prevalence) * (1.0 / n).sum())
    return bool(excess > 0.0 and chdtrc(1, statistic) < CLEARLY)
