"""Cells of rows by score and age: what the model of delayed labels tells apart."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.age_grid import Ages, bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.score_table import score_table
from darkmetrics.wording import code, setting

# Age bins with the least content are joined until so many are left, with and without arrival times.
_MAX_AGE_BINS, _MAX_UNTIMED_BINS = 18, 14
# What a row with a label counts in age bins, against one without, where arrival times are not known.
_SETTLED_WEIGHT = 0.1
# Score bins contain equal shares of rows and positive labels. Delays depend on the score by zones of these bins.
_SCORE_BINS, _ZONES = 28, 6
# Ages at which the drift of the prevalence may change its slope.
_KNOTS = 7
# Propensities that are told apart; the largest log odds of one, and log odds that count as one unit in the curve.
_MAX_PROPENSITIES, _MAX_LOG_ODDS, _PROPENSITY_SCALE = 32, 9.0, 4.0
# Distances between the oldest ages, the smallest of which is how far the oldest age bin extends.
_OLDEST_GAPS = 3
# Jumps of the fraction of labels that may be a day on which labels of a class arrive, and how many per class.
_MIN_JUMP, _CLEAR_JUMP, _MAX_DAYS = 0.2, 4.0, 2
_NO_PROPENSITY = "none with these rows (Delayed)", "", f"Pass {setting('propensity')} with the rows."
# Labels from a row's own age bin that differ by so many standard deviations, and by such a factor, from what older
# rows had in it: labels then arrive by the calendar.
_CLEAR, _FACTOR = 3.0, 1.25


def ages_of(data: EvaluationSet) -> Ages:
    """Return the ages of the cells of a set, which must have them."""
    if data.cells.ages is None:
        raise InputError(
            "age",
            "none with these rows (Delayed)",
            "",
            f"Pass {code('dm.missing.Delayed(age=...), or for a table Delayed(scored_at=..., as_of=...)')}.",
        )
    return data.cells.ages


@dataclass(frozen=True, eq=False)
class AgeGrid:
    """Bins of scores and ages, for the set that was fitted and for parts of it.

    Attributes
    ----------
    calibrator : LogisticCalibrator
        The curve from scores to probabilities.
    starts : array of int
        First fine age bin (`_kernels.age_grid`) of each age bin.
    cuts : array
        Scores at which all score bins but the first begin.
    position : array (n_score_bins,)
        Middle rank of each score bin, from -1 to 1.
    occupied : array of int
        Fine age bins with rows or arrivals.
    young_at : array
        Number of rows below the maturity in each fine age bin.
    maturity : float, optional
        About the age from which rows without a label count as negative. No age bin lies above.
    oldest : float
        End of the oldest age bin.
    knots : array
        Ages at which the drift may change its slope, from the oldest on.
    threshold : float, optional
        Score from which on rows are predicted positive.
    propensity : array, optional
        Probabilities of a review that are told apart, in rising order.
    """

    calibrator: LogisticCalibrator
    starts: IntArray
    cuts: FloatArray
    position: FloatArray
    occupied: IntArray
    young_at: FloatArray
    maturity: float | None
    oldest: float
    knots: FloatArray
    threshold: float | None = None
    propensity: FloatArray | None = None

    @classmethod
    def of(cls, data: EvaluationSet, calibrator: LogisticCalibrator, *, uses_propensity: bool = False) -> "AgeGrid":
        """Return the grid that fits the rows of a set."""
        ages, cells = ages_of(data), data.cells
        n_fine = int(ages.age.max()) + 1
        rows_at = np.bincount(ages.age, cells.total, n_fine).astype(np.float64)
        labels = cells.positives + cells.negatives
        events = np.bincount(ages.delay[ages.timed], labels[ages.timed], n_fine)
        missing = np.bincount(ages.age, cells.missing, n_fine)
        is_timed = bool(ages.timed.any())
        weight = rows_at + events if is_timed else _SETTLED_WEIGHT * rows_at + missing
        starts = _join_bins(weight, _MAX_AGE_BINS if is_timed else _MAX_UNTIMED_BINS)
        young_at = np.bincount(ages.age, np.where(ages.mature, 0, cells.total), n_fine).astype(np.float64)
        occupied = np.flatnonzero(rows_at + events)
        maturity = None
        if ages.mature.any():
            first = int(ages.age[ages.mature].min())
            low, high = bin_start(np.array([first, first + 1])).tolist()
            maturity = float(low + young_at[first] / rows_at[first] * (high - low))
            starts = starts[(starts == 0) | (bin_start(starts) < maturity)]
            rows_at[first:] = np.append(rows_at[first:].sum(), np.zeros(n_fine - first - 1))
        cuts, position = _cut_scores(data)
        return cls(
            calibrator=calibrator,
            starts=starts,
            cuts=cuts,
            position=position,
            occupied=occupied,
            young_at=young_at,
            maturity=maturity,
            oldest=_find_oldest(occupied) if maturity is None else maturity,
            knots=_choose_knots(rows_at),
            threshold=data.threshold,
            propensity=_select_propensities(data) if uses_propensity else None,
        )

    @property
    def n_ages(self) -> int:
        """Number of age bins."""
        return self.starts.size

    @cached_property
    def edges(self) -> FloatArray:
        """Ages at which age bins begin, and the end of the last one."""
        return np.append(bin_start(self.starts), self.oldest)

    @cached_property
    def passed(self) -> FloatArray:
        """Fraction of its own age bin that a row has passed, on average: up to the next age or delay that occurs."""
        fine = np.flatnonzero(self.young_at)
        following = np.append(bin_start(self.occupied), np.inf)[np.searchsorted(self.occupied, fine, side="right")]
        index = self.age_bin(fine)
        fraction = (np.minimum(following, self.edges[index + 1]) - self.edges[index]) / np.diff(self.edges)[index]
        total = np.bincount(index, self.young_at[fine] * fraction, self.n_ages)
        rows = np.bincount(index, self.young_at[fine], self.n_ages)
        return np.asarray(np.clip(np.where(rows > 0.0, total / np.maximum(rows, 1.0), 0.5), 1e-3, 1.0))

    @cached_property
    def zone(self) -> IntArray:
        """Zone of each score bin; delays depend on the score by its zone."""
        return np.minimum((0.5 * (self.position + 1.0) * _ZONES).astype(np.int64), _ZONES - 1)

    @cached_property
    def zone_position(self) -> FloatArray:
        """Middle rank of each zone, from -1 to 1."""
        ends = np.linspace(-1.0, 1.0, _ZONES + 1)
        return np.asarray(0.5 * (ends[1:] + ends[:-1]), dtype=np.float64)

    @cached_property
    def drift(self) -> FloatArray:
        """Columns of the drift for each age bin: lines between knots, 0 at the oldest one."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        columns = [np.interp(-middle, -self.knots, unit) for unit in np.eye(self.knots.size)]
        return np.asarray(np.column_stack(columns)[:, 1:], dtype=np.float64)

    @cached_property
    def knot_times(self) -> FloatArray:
        """Time from the oldest knot to each of the others, as a fraction of the time to the newest."""
        times = (self.knots[0] - self.knots[1:]) / max(float(np.ptp(self.knots)), 1e-300)
        return np.asarray(times, dtype=np.float64)

    def age_bin(self, fine: IntArray) -> IntArray:
        """Return the age bins of fine bins; those beyond the last one count as the last one."""
        index: IntArray = np.searchsorted(self.starts, np.arange(int(fine.max(initial=0)) + 1), side="right") - 1
        return index[fine]

    def score_bin(self, score: FloatArray) -> IntArray:
        """Return the score bins of scores."""
        return np.searchsorted(self.cuts, score, side="right")

    def rate_bin(self, data: EvaluationSet) -> IntArray:
        """Return the bins of propensities of the cells of a set."""
        assert self.propensity is not None
        if data.cells.propensity is None:
            raise InputError("propensity", *_NO_PROPENSITY)
        return np.searchsorted(0.5 * (self.propensity[1:] + self.propensity[:-1]), data.cells.propensity)

    @cached_property
    def review_log_odds(self) -> FloatArray:
        """Log odds of a review in each rate bin, where they are known; bounded, so that a review is never certain."""
        assert self.propensity is not None
        odds = np.clip(self.propensity, 1e-300, 1.0 - 1e-16)
        return np.asarray(np.clip(np.log(odds) - np.log1p(-odds), -_MAX_LOG_ODDS, _MAX_LOG_ODDS), dtype=np.float64)

    def later(self, age_bin: IntArray, time: float) -> tuple[IntArray, FloatArray, BoolArray]:
        """Return where rows of an age bin are after some time: bin, fraction of it passed, and whether it exists."""
        edges, width = self.edges, np.diff(self.edges)
        age = edges[age_bin] + self.passed[age_bin] * width[age_bin] + time
        index = np.clip(np.searchsorted(edges, age, side="left") - 1, 0, self.n_ages - 1)
        return index, np.clip((age - edges[index]) / width[index], 0.0, 1.0), age <= edges[-1]

    def table(self, data: EvaluationSet, *, fine: bool = False) -> "AgeTable":
        """Return the cells of a set by score bin (`fine`: by row of its score table) and age bin."""
        cells, score_bin = data.cells, self.score_bin(data.cells.score)
        rate_bin, level = score_bin, score_table(data).row_of_cell if fine else score_bin
        if self.propensity is not None:
            rate_bin = self.rate_bin(data)
            level = level * self.propensity.size + rate_bin
        key = level * self.n_ages + self.age_bin(ages_of(data).age)
        occupied = np.bincount(key) > 0  # counted and not sorted: there may be many cells
        code, of_cell = np.flatnonzero(occupied), (np.cumsum(occupied) - 1)[key]

        def total(values: FloatArray | IntArray, index: IntArray = of_cell, size: int = code.size) -> FloatArray:
            return np.asarray(np.bincount(index, values, size), dtype=np.float64)

        code_level, age = np.divmod(code, self.n_ages)
        n_levels = int(level.max()) + 1
        rows = np.maximum(total(cells.total, level, n_levels), 1e-300)
        score = np.clip(total(cells.total * cells.score, level, n_levels) / rows, cells.score[0], cells.score[-1])
        columns = self.calibrator.design(score)[code_level]
        of_code = np.zeros((2, code.size), dtype=np.int64)
        of_code[:, of_cell] = score_bin, rate_bin
        if self.propensity is not None:
            columns = np.column_stack([columns, self.review_log_odds[of_code[1]] / _PROPENSITY_SCALE])
        counts = {name: total(getattr(cells, name)) for name in ("positives", "negatives", "missing")}
        decided = total(cells.missing * cells.decision)
        return AgeTable(columns, of_code[0], of_code[1], age, **counts, decided=decided, of_cell=of_cell)


class AgeTable(NamedTuple):
    """Rows of a set by score and age.

    Attributes
    ----------
    columns : array (n, width)
        Columns of the calibration curve, with the propensity as another one if it is known.
    score_bin, rate_bin, age : array of int (n,)
        Bins. Rows of one rate bin have one review rate; it is the score bin if propensities are not known.
    positives, negatives, missing, decided : array (n,)
        Numbers of rows; `decided` of the missing ones that are predicted positive.
    of_cell : array of int
        Row of this table that each cell of the set belongs to.
    """

    columns: FloatArray
    score_bin: IntArray
    rate_bin: IntArray
    age: IntArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    decided: FloatArray
    of_cell: IntArray

    def with_missing(self) -> tuple["AgeTable", IntArray]:
        """Return the rows of the table that have missing labels, and the row among them of each row of the table."""
        selected = self.missing > 0.0
        arrays: list[Any] = [values[selected] for values in self[:-1]]
        return AgeTable(*[*arrays, self.of_cell]), np.cumsum(selected) - 1


class ArrivalCounts(NamedTuple):
    """Labels by class (negative first), zone and age bin.

    Attributes
    ----------
    full : array (2, n_zones, n_ages)
        Labels that arrived in an age bin that their row has passed.
    partial : array (2, n_zones, n_ages)
        Labels that arrived in the age bin of their row.
    untimed : array (2, n_zones, n_ages)
        Labels of unknown arrival time, by the age bin of their row.
    declared : array (n_zones,)
        Negatives that the maturity declared: no label arrived before.
    """

    full: FloatArray
    partial: FloatArray
    untimed: FloatArray
    declared: FloatArray


def count_arrivals(grid: AgeGrid, data: EvaluationSet, zone: IntArray, n_zones: int) -> ArrivalCounts:
    """Return the labels of a set by arrival; `zone` is that of each cell.

    Arrival times are ignored if labels arrive on certain days (a weekly file).
    """
    ages = ages_of(data)
    counts = _count_arrivals(grid, ages, data, zone, n_zones)
    if ages.timed.any() and _arrive_by_calendar(grid, ages, data, counts):
        return _count_arrivals(grid, ages.untimed(), data, zone, n_zones)
    return counts


def _count_arrivals(grid: AgeGrid, ages: Ages, data: EvaluationSet, zone: IntArray, n_zones: int) -> ArrivalCounts:
    cells, n_ages = data.cells, grid.n_ages
    age, delay = grid.age_bin(ages.age), grid.age_bin(np.maximum(ages.delay, 0))
    is_partial = ages.timed & (delay == age) & ~ages.mature

    def count(selected: BoolArray, index: IntArray) -> FloatArray:
        key, labels = (zone * n_ages + index)[selected], (cells.negatives[selected], cells.positives[selected])
        counts = [np.bincount(key, of_class, n_zones * n_ages) for of_class in labels]
        return np.array(counts, dtype=np.float64).reshape(2, n_zones, n_ages)

    return ArrivalCounts(
        full=count(ages.timed & ~is_partial, delay),
        partial=count(is_partial, delay),
        untimed=count(~ages.timed & ~ages.mature, age),
        declared=np.bincount(zone, cells.negatives * (ages.mature & ~ages.timed), n_zones).astype(np.float64),
    )


def _arrive_by_calendar(grid: AgeGrid, ages: Ages, data: EvaluationSet, counts: ArrivalCounts) -> bool:
    """Return whether labels arrive on certain days.

    Delays of one row then say little about those of others: rows of an age bin have far more labels from within it
    (the file came today) or far fewer (it comes tomorrow) than older rows got in it. One bin of one class may differ:
    many labels of a class may arrive at one age, which is no day of the calendar.
    """
    partial, full = counts.partial.sum(axis=1), counts.full.sum(axis=1)
    rows = np.bincount(grid.age_bin(ages.age), data.cells.total, grid.n_ages)
    older = rows[::-1].cumsum()[::-1] - rows
    has_older = older > 0.0
    if not has_older.any():
        return False
    expected, arrived = (grid.passed * rows * full)[:, has_older] / older[has_older], partial[:, has_older]
    worst = np.argmax(np.abs(arrived - expected))
    n_expected, n_arrived = (float(np.delete(values, worst).sum()) for values in (expected, arrived))
    is_clear = abs(n_arrived - n_expected) > _CLEAR * np.sqrt(n_arrived + n_expected)
    return bool(is_clear and abs(np.log((n_arrived + 1.0) / (n_expected + 1.0))) > np.log(_FACTOR))


def find_days(table: "AgeTable", grid: AgeGrid) -> list[tuple[int, int]]:
    """Return classes and age bins in which many labels of the class may arrive on one day (all on day 90).

    The fraction of rows with a label of the class is then clearly higher in the next age bin than in the one before.
    """
    rows = np.bincount(table.age, table.positives + table.negatives + table.missing, grid.n_ages)
    days = []
    for y, labels in enumerate((table.negatives, table.positives)):
        fraction = np.bincount(table.age, labels, grid.n_ages) / np.maximum(rows, 1.0)
        jump = fraction[2:] - fraction[:-2]
        variance = (fraction * (1.0 - fraction) + 0.01) / np.maximum(rows, 1.0)
        is_day = (jump > _MIN_JUMP) & (jump > _CLEAR_JUMP * np.sqrt(variance[2:] + variance[:-2]))
        is_wide = np.bincount(grid.age_bin(grid.occupied), minlength=grid.n_ages)[1:-1] > 1
        order = np.argsort(-jump)
        days += [(y, int(k) + 1) for k in order[:_MAX_DAYS] if is_day[k] and is_wide[k]]
    return days


def _select_propensities(data: EvaluationSet) -> FloatArray:
    """Return the propensities of a set; if there are many, quantiles of them."""
    if data.cells.propensity is None:
        raise InputError("propensity", *_NO_PROPENSITY)
    values = np.unique(data.cells.propensity)
    if values.size <= _MAX_PROPENSITIES:
        return values
    order = np.argsort(data.cells.propensity)
    rows = np.cumsum(data.cells.total[order])
    at = np.searchsorted(rows, (np.arange(_MAX_PROPENSITIES) + 0.5) / _MAX_PROPENSITIES * rows[-1])
    return np.unique(data.cells.propensity[order[at]])


def _find_oldest(occupied: IntArray) -> float:
    """Return the end of the oldest age bin: the last age covers as much time as the ages before it do."""
    low, high = bin_start(occupied[-1:] + np.array([0, 1])).tolist()
    gaps = np.diff(bin_start(occupied))[-_OLDEST_GAPS:]
    return max(float(high), float(low + gaps.min(initial=low))) if gaps.size else float(high)


def _join_bins(weight: FloatArray, max_bins: int) -> IntArray:
    """Return the first fine bin of each age bin: neighbors are joined so that bins have about equal content."""
    starts = np.flatnonzero(weight)
    if starts.size > max_bins:
        content = weight[starts]
        group = np.floor(max_bins * (np.cumsum(content) - 0.5 * content) / content.sum())
        starts = starts[np.diff(group, prepend=-1.0) > 0.0]
    starts[0] = 0
    return starts


def _cut_scores(data: EvaluationSet) -> tuple[FloatArray, FloatArray]:
    """Return the scores at which score bins begin, and the middle ranks of the bins, from -1 to 1."""
    cells = data.cells
    rows, positives = cells.total.astype(np.float64), cells.positives.astype(np.float64)
    weight = np.cumsum(rows / rows.sum() + positives / max(1.0, positives.sum()))
    at = np.searchsorted(weight, weight[-1] * np.arange(1, _SCORE_BINS) / _SCORE_BINS)
    cuts = cells.score[np.minimum(at, rows.size - 1)]
    cuts = np.unique(cuts if data.threshold is None else np.append(cuts, data.threshold))
    cuts = cuts[(cuts > cells.score[0]) & (cuts <= cells.score[-1])]
    in_bin = np.bincount(np.searchsorted(cuts, cells.score, side="right"), rows, cuts.size + 1)
    return np.asarray(cuts), np.asarray(2.0 * (np.cumsum(in_bin) - 0.5 * in_bin) / in_bin.sum() - 1.0)


def _choose_knots(rows_at: FloatArray) -> FloatArray:
    """Return ages, from the oldest on, with equal numbers of rows between them."""
    fine = np.flatnonzero(rows_at)[::-1]
    before = np.cumsum(rows_at[fine])
    at = np.searchsorted(before, np.linspace(0.0, 1.0, _KNOTS) * before[-1])
    ends = fine[np.minimum(at, fine.size - 1)]
    return np.unique(0.5 * (bin_start(ends) + bin_start(ends + 1)))[::-1].copy()
