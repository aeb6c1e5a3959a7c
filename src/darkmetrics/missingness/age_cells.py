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

# Age bins with the least content are joined until so many are left, with and without arrival times.
_MAX_AGE_BINS, _MAX_UNTIMED_BINS = 18, 14
# What a row with a label counts in age bins, against one without, where arrival times are not known.
_SETTLED_WEIGHT = 0.1
# Score bins contain equal shares of rows and positive labels. Delays depend on the score by zones of these bins.
_SCORE_BINS, _ZONES = 28, 6
# Ages at which the drift of the prevalence may change its slope.
_KNOTS = 7
# Bins before the last fine age bin that tell how densely rows fill it.
_FILLED = 3
# Jumps of the fraction of labels that may be a day on which labels of a class arrive, and how many per class.
_MIN_JUMP, _CLEAR_JUMP, _MAX_DAYS = 0.2, 4.0, 2
# Labels from a row's own age bin that differ by so many standard deviations, and by such a factor, from what older
# rows had in it: labels then arrive by the calendar.
_CLEAR, _FACTOR = 3.0, 1.25


def ages_of(data: EvaluationSet) -> Ages:
    """Return the ages of the cells of a set, which must have them."""
    if data.cells.ages is None:
        raise InputError(
            "age: none with these rows (LateLabels). Give age= to evaluate or when building the EvaluationSet, or "
            "scored_at= and as_of= for a table."
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
    rows_at : array
        Number of rows in each fine age bin.
    whole : bool
        Whether ages are whole numbers.
    maturity : float, optional
        About the age from which rows without a label count as negative. No age bin lies above.
    oldest : float
        End of the oldest age bin.
    knots : array
        Ages at which the drift may change its slope, from the oldest on.
    """

    calibrator: LogisticCalibrator
    starts: IntArray
    cuts: FloatArray
    position: FloatArray
    rows_at: FloatArray
    whole: bool
    maturity: float | None
    oldest: float
    knots: FloatArray
    threshold: float | None = None

    @classmethod
    def of(cls, data: EvaluationSet, calibrator: LogisticCalibrator) -> "AgeGrid":
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
        maturity = None
        if ages.mature.any():
            first = int(ages.age[ages.mature].min())
            starts = starts[starts <= first]
            rows_at[first:] = np.append(rows_at[first:].sum(), np.zeros(n_fine - first - 1))
            young = cells.total[(ages.age == first) & ~ages.mature].sum() / cells.total[ages.age == first].sum()
            low, high = bin_start(np.array([first, first + 1])).tolist()
            maturity, n_fine = float(low + young * (high - low)), first + 1
        cuts, position = _cut_scores(data)
        oldest = float(bin_start(np.array(n_fine)))
        if maturity is None:
            oldest = _estimate_oldest(rows_at, whole=ages.whole)
        return cls(
            calibrator=calibrator,
            starts=starts,
            cuts=cuts,
            position=position,
            rows_at=rows_at,
            whole=ages.whole,
            maturity=maturity,
            oldest=oldest,
            knots=_place_knots(rows_at),
            threshold=data.threshold,
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
    def _ends(self) -> FloatArray:
        """The edges as rows pass them: whole days are passed whole."""
        return np.ceil(self.edges) if self.whole else self.edges

    @cached_property
    def passed(self) -> FloatArray:
        """Fraction of its own age bin that a row has passed, on average; the last of whole days counts as passed."""
        fine = np.flatnonzero(self.rows_at)
        low, high = bin_start(fine), np.minimum(bin_start(fine + 1), self.oldest)
        if self.whole:
            low, high = np.ceil(low) + 1.0, np.ceil(high)
        index = self.age_bin(fine)
        fraction = (0.5 * (low + high) - self._ends[index]) / np.maximum(np.diff(self._ends), 1e-300)[index]
        total = np.bincount(index, self.rows_at[fine] * fraction, self.n_ages)
        rows = np.bincount(index, self.rows_at[fine], self.n_ages)
        result = np.clip(np.where(rows > 0.0, total / np.maximum(rows, 1.0), 0.5), 1e-3, 1.0)
        if self.maturity is not None:  # rows of the last bin without a label have not reached the maturity
            result[-1] = np.clip(0.5 * (self.maturity - self.edges[-2]) / (self.oldest - self.edges[-2]), 1e-3, 0.5)
        return np.asarray(result)

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

    def later(self, age_bin: IntArray, time: float) -> tuple[IntArray, FloatArray, BoolArray]:
        """Return where rows of an age bin are after some time: bin, fraction of it passed, and whether it exists."""
        width = np.maximum(np.diff(self._ends), 1e-300)
        age = self._ends[age_bin] + self.passed[age_bin] * width[age_bin] + time
        index = np.clip(np.searchsorted(self._ends, age, side="left") - 1, 0, self.n_ages - 1)
        return index, np.clip((age - self._ends[index]) / width[index], 0.0, 1.0), age <= self._ends[-1]

    def table(self, data: EvaluationSet, *, fine: bool = False) -> "AgeTable":
        """Return the cells of a set by score bin (`fine`: by row of its score table) and age bin."""
        cells, score_bin = data.cells, self.score_bin(data.cells.score)
        level = score_table(data).place if fine else score_bin
        key = level * self.n_ages + self.age_bin(ages_of(data).age)
        occupied = np.bincount(key) > 0  # counted and not sorted: there may be many cells
        code, of_cell = np.flatnonzero(occupied), (np.cumsum(occupied) - 1)[key]

        def total(values: FloatArray | IntArray, index: IntArray = of_cell, size: int = code.size) -> FloatArray:
            return np.asarray(np.bincount(index, values, size), dtype=np.float64)

        code_level, age = np.divmod(code, self.n_ages)
        n_levels = int(level.max()) + 1
        rows = np.maximum(total(cells.total, level, n_levels), 1e-300)
        score = np.clip(total(cells.total * cells.score, level, n_levels) / rows, cells.score[0], cells.score[-1])
        columns = self.calibrator.design(score)
        of_code = np.zeros(code.size, dtype=np.int64)
        of_code[of_cell] = score_bin
        counts = {name: total(getattr(cells, name)) for name in ("positives", "negatives", "missing")}
        decided = total(cells.missing * cells.decision)
        return AgeTable(columns[code_level], of_code, age, **counts, decided=decided, of_cell=of_cell)


class AgeTable(NamedTuple):
    """Rows of a set by score and age.

    Attributes
    ----------
    columns : array (n, width)
        Columns of the calibration curve.
    score_bin, age : array of int (n,)
        Bins.
    positives, negatives, missing, decided : array (n,)
        Numbers of rows; `decided` of the missing ones that are predicted positive.
    of_cell : array of int
        Row of this table that each cell of the set belongs to.
    """

    columns: FloatArray
    score_bin: IntArray
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


def count_arrivals(grid: AgeGrid, ages: Ages, data: EvaluationSet, zone: IntArray, n_zones: int) -> ArrivalCounts:
    """Return the labels of a set by arrival; `zone` is that of each cell."""
    cells, n_ages = data.cells, grid.n_ages
    age, delay = grid.age_bin(ages.age), grid.age_bin(np.maximum(ages.delay, 0))
    own = ages.timed & (delay == age) & ~ages.mature

    def count(selected: BoolArray, index: IntArray) -> FloatArray:
        at = (zone * n_ages + index)[selected]
        both = [np.bincount(at, labels[selected], n_zones * n_ages) for labels in (cells.negatives, cells.positives)]
        return np.array(both, dtype=np.float64).reshape(2, n_zones, n_ages)

    return ArrivalCounts(
        full=count(ages.timed & ~own, delay),
        partial=count(own, delay),
        untimed=count(~ages.timed & ~ages.mature, age),
        declared=np.bincount(zone, cells.negatives * (ages.mature & ~ages.timed), n_zones).astype(np.float64),
    )


def without_calendar(grid: AgeGrid, data: EvaluationSet) -> Ages:
    """Return the ages of a set, without arrival times if labels arrive on certain days (a weekly file).

    Delays of one row then say little about those of others: rows of an age bin have far more labels from within it
    (the file came today) or far fewer (it comes tomorrow) than older rows got in it. One bin of one class may differ:
    many labels of a class may arrive at one age, which is no day of the calendar.
    """
    ages, cells = ages_of(data), data.cells
    if not ages.timed.any():
        return ages
    counts = count_arrivals(grid, ages, data, np.zeros(cells.score.size, dtype=np.int64), 1)
    own, full = counts.partial[:, 0], counts.full[:, 0]
    rows = np.bincount(grid.age_bin(ages.age), cells.total, grid.n_ages)
    older = rows[::-1].cumsum()[::-1] - rows
    has_older = older > 0.0
    if not has_older.any():
        return ages
    expected, arrived = (grid.passed * rows * full)[:, has_older] / older[has_older], own[:, has_older]
    worst = np.argmax(np.abs(arrived - expected))
    n_expected, n_arrived = (float(np.delete(values, worst).sum()) for values in (expected, arrived))
    is_clear = abs(n_arrived - n_expected) > _CLEAR * np.sqrt(n_arrived + n_expected)
    by_calendar = is_clear and abs(np.log((n_arrived + 1.0) / (n_expected + 1.0))) > np.log(_FACTOR)
    return ages.untimed() if by_calendar else ages


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
        is_wide = np.diff(grid._ends)[1:-1] > (1.0 if grid.whole else 0.0)
        order = np.argsort(-jump)
        days += [(y, int(k) + 1) for k in order[:_MAX_DAYS] if is_day[k] and is_wide[k]]
    return days


def _estimate_oldest(rows_at: FloatArray, *, whole: bool) -> float:
    """Return about the oldest age: rows fill the last fine age bin as densely as those before it."""
    low, high = (float(end) for end in bin_start(np.array([rows_at.size - 1, rows_at.size])))
    before = slice(max(0, rows_at.size - 1 - _FILLED), rows_at.size - 1)
    span = low - float(bin_start(np.array(before.start)))
    n_before = float(rows_at[before].sum())
    if not n_before > 0.0:
        return high
    n_expected = n_before / span * (high - low)
    if rows_at[-1] + 2.0 * np.sqrt(n_expected) > n_expected:
        return high
    end = low + (high - low) * float(rows_at[-1]) / n_expected
    return min(high, float(np.ceil(end))) if whole else end


def _join_bins(weight: FloatArray, max_bins: int) -> IntArray:
    """Return the first fine bin of each age bin: neighbors with the least content are joined."""
    starts = np.flatnonzero(weight)
    starts[0] = 0
    content = np.add.reduceat(weight, starts)
    while starts.size > max_bins:
        at = int(np.argmin(content[1:] + content[:-1])) + 1
        content[at - 1] += content[at]
        starts, content = np.delete(starts, at), np.delete(content, at)
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


def _place_knots(rows_at: FloatArray) -> FloatArray:
    """Return ages, from the oldest on, with equal numbers of rows between them."""
    fine = np.flatnonzero(rows_at)[::-1]
    before = np.cumsum(rows_at[fine])
    at = np.searchsorted(before, np.linspace(0.0, 1.0, _KNOTS) * before[-1])
    ends = fine[np.minimum(at, fine.size - 1)]
    return np.unique(0.5 * (bin_start(ends) + bin_start(ends + 1)))[::-1].copy()
